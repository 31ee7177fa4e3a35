"""Training: optimizers, moving averages and schedules, composed from the public operations."""

from flowbook._renamed import no_such_name_in
from flowbook.train.adafactor import AdafactorOptimizer
from flowbook.train.adagrad import (
    AdadeltaOptimizer,
    AdagradOptimizer,
    ProximalAdagradOptimizer,
)
from flowbook.train.adam import AdamOptimizer, AdamWOptimizer
from flowbook.train.ftrl import FtrlOptimizer
from flowbook.train.gradient_descent import (
    GradientDescentOptimizer,
    MomentumOptimizer,
    ProximalGradientDescentOptimizer,
)
from flowbook.train.lbfgs import LBFGSOptimizer, LBFGSResult
from flowbook.train.moving_averages import ExponentialMovingAverage, assign_moving_average
from flowbook.train.optimizer import Optimizer
from flowbook.train.rmsprop import RMSPropOptimizer
from flowbook.train.schedules import (
    cosine_decay,
    cosine_decay_restarts,
    exponential_decay,
    inverse_time_decay,
    linear_cosine_decay,
    linear_warmup,
    natural_exp_decay,
    piecewise_constant,
    polynomial_decay,
)
from flowbook.train.step_counter import get_or_create_global_step, global_step

__all__ = [
    "AdadeltaOptimizer",
    "AdafactorOptimizer",
    "AdagradOptimizer",
    "AdamOptimizer",
    "AdamWOptimizer",
    "ExponentialMovingAverage",
    "FtrlOptimizer",
    "GradientDescentOptimizer",
    "LBFGSOptimizer",
    "LBFGSResult",
    "MomentumOptimizer",
    "Optimizer",
    "ProximalAdagradOptimizer",
    "ProximalGradientDescentOptimizer",
    "RMSPropOptimizer",
    "assign_moving_average",
    "cosine_decay",
    "cosine_decay_restarts",
    "exponential_decay",
    "get_or_create_global_step",
    "global_step",
    "inverse_time_decay",
    "linear_cosine_decay",
    "linear_warmup",
    "natural_exp_decay",
    "piecewise_constant",
    "polynomial_decay",
]

__getattr__ = no_such_name_in(__name__)
