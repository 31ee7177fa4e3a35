"""What the optimizers and schedules are tried on, here and where TensorFlow records its values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

# By what they are for: the class, its arguments, and whether TensorFlow has it.
OPTIMIZERS: dict[str, tuple[str, dict[str, Any], bool]] = {
    "descent": ("GradientDescentOptimizer", {"learning_rate": 0.1}, True),
    "momentum": ("MomentumOptimizer", {"learning_rate": 0.05, "momentum": 0.9}, True),
    "nesterov": (
        "MomentumOptimizer",
        {"learning_rate": 0.05, "momentum": 0.9, "use_nesterov": True},
        True,
    ),
    "proximal": (
        "ProximalGradientDescentOptimizer",
        {
            "learning_rate": 0.1,
            "l1_regularization_strength": 0.3,
            "l2_regularization_strength": 0.2,
        },
        True,
    ),
    "adagrad": ("AdagradOptimizer", {"learning_rate": 0.3}, True),
    "adagrad from 2": (
        "AdagradOptimizer",
        {"learning_rate": 0.3, "initial_accumulator_value": 2.0},
        True,
    ),
    "adagrad proximal": (
        "ProximalAdagradOptimizer",
        {
            "learning_rate": 0.3,
            "initial_accumulator_value": 0.5,
            "l1_regularization_strength": 0.2,
            "l2_regularization_strength": 0.1,
        },
        True,
    ),
    "adadelta": ("AdadeltaOptimizer", {"learning_rate": 1.0, "rho": 0.9, "epsilon": 1e-4}, True),
    "rmsprop": ("RMSPropOptimizer", {"learning_rate": 0.05}, True),
    "rmsprop momentum": (
        "RMSPropOptimizer",
        {"learning_rate": 0.05, "decay": 0.8, "momentum": 0.7, "epsilon": 1e-5},
        True,
    ),
    "rmsprop centered": (
        "RMSPropOptimizer",
        {"learning_rate": 0.05, "momentum": 0.5, "epsilon": 1e-3, "centered": True},
        True,
    ),
    "adam": ("AdamOptimizer", {"learning_rate": 0.05}, True),
    "adam others": (
        "AdamOptimizer",
        {"learning_rate": 0.05, "beta1": 0.8, "beta2": 0.9, "epsilon": 0.1},
        True,
    ),
    "adam lazy": ("AdamOptimizer", {"learning_rate": 0.05, "lazy": True}, False),
    "adamw": ("AdamWOptimizer", {"weight_decay": 0.02, "learning_rate": 0.05}, False),
    "adamw lazy": (
        "AdamWOptimizer",
        {"weight_decay": 0.02, "learning_rate": 0.05, "lazy": True},
        False,
    ),
    "adafactor": ("AdafactorOptimizer", {}, False),
    "adafactor others": (
        "AdafactorOptimizer",
        {
            "learning_rate": 0.1,
            "multiply_by_parameter_scale": False,
            "decay_rate": 0.9,
            "beta1": 0.6,
            "clipping_threshold": None,
            "factored": False,
        },
        False,
    ),
    "ftrl": ("FtrlOptimizer", {"learning_rate": 0.3}, True),
    "ftrl regularised": (
        "FtrlOptimizer",
        {
            "learning_rate": 0.3,
            "learning_rate_power": -0.7,
            "initial_accumulator_value": 0.5,
            "l1_regularization_strength": 0.4,
            "l2_regularization_strength": 0.2,
            "l2_shrinkage_regularization_strength": 0.1,
        },
        True,
    ),
}

SCHEDULES: dict[str, tuple[str, dict[str, Any]]] = {
    "exponential": ("exponential_decay", {"decay_steps": 7, "decay_rate": 0.6}),
    "exponential stairs": (
        "exponential_decay",
        {"decay_steps": 7, "decay_rate": 0.6, "staircase": True},
    ),
    "natural": ("natural_exp_decay", {"decay_steps": 7, "decay_rate": 0.6}),
    "natural stairs": (
        "natural_exp_decay",
        {"decay_steps": 7, "decay_rate": 0.6, "staircase": True},
    ),
    "inverse": ("inverse_time_decay", {"decay_steps": 7, "decay_rate": 0.6}),
    "inverse stairs": (
        "inverse_time_decay",
        {"decay_steps": 7, "decay_rate": 0.6, "staircase": True},
    ),
    "polynomial": ("polynomial_decay", {"decay_steps": 12, "end_learning_rate": 0.01}),
    "polynomial root": (
        "polynomial_decay",
        {"decay_steps": 12, "end_learning_rate": 0.01, "power": 0.5},
    ),
    "polynomial cycle": (
        "polynomial_decay",
        {"decay_steps": 12, "end_learning_rate": 0.01, "power": 2.0, "cycle": True},
    ),
    "cosine": ("cosine_decay", {"decay_steps": 12}),
    "cosine alpha": ("cosine_decay", {"decay_steps": 12, "alpha": 0.1}),
    "restarts": ("cosine_decay_restarts", {"first_decay_steps": 5}),
    "restarts others": (
        "cosine_decay_restarts",
        {"first_decay_steps": 5, "t_mul": 1.5, "m_mul": 0.8, "alpha": 0.1},
    ),
    "restarts even": (
        "cosine_decay_restarts",
        {"first_decay_steps": 5, "t_mul": 1.0, "m_mul": 0.8},
    ),
    "linear cosine": ("linear_cosine_decay", {"decay_steps": 12}),
    "linear cosine others": (
        "linear_cosine_decay",
        {"decay_steps": 12, "num_periods": 2.0, "alpha": 0.2, "beta": 0.05},
    ),
}
COUNTS = range(40)
BOUNDARIES, VALUES = [3, 10, 20], [1.0, 0.5, 0.25, 0.125]

# Decay, whether updates are counted, whether the start from zero is corrected.
AVERAGES = {
    "plain": (0.9, False, False),
    "counted": (0.9, True, False),
    "corrected": (0.9, False, True),
    "counted corrected": (0.9, True, True),
}

START = np.array([[1.0, -2.0, 0.5], [3.0, 0.25, -0.75], [-0.1, 0.6, 2.0], [0.0, 1.5, -1.0]])


def dense_gradients(steps: int) -> Iterator[Array]:
    """Gradients of START's shape."""
    random = np.random.default_rng(1)
    for _ in range(steps):
        yield random.normal(size=START.shape)


def sparse_gradients(steps: int) -> Iterator[tuple[Array, Array]]:
    """Rows, some of them named twice, and which they are."""
    random = np.random.default_rng(2)
    for _ in range(steps):
        indices = random.integers(0, len(START), 3).astype(np.int32)
        yield random.normal(size=(3, START.shape[1])), indices
