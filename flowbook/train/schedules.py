"""Schedules: learning rates as tensors of a step counter.

Each takes the counter (a variable, or any scalar tensor of numbers) and gives a scalar of the
dtype of the learning rate, computed anew at each run; so every one can be a hyperparameter of
every optimizer.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.descriptions import arguments_as
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.filling import ones_like
from flowbook.graph.ops.math.arithmetic import maximum, minimum
from flowbook.graph.ops.math.comparison import equal, less_equal, where
from flowbook.graph.ops.math.elementwise import ceil, cos, exp, floor, log
from flowbook.graph.ops.math.powers import pow
from flowbook.train.optimizer import as_number

__all__ = [
    "cosine_decay",
    "cosine_decay_restarts",
    "exponential_decay",
    "inverse_time_decay",
    "linear_cosine_decay",
    "linear_warmup",
    "natural_exp_decay",
    "piecewise_constant",
    "polynomial_decay",
]


@composed("ExponentialDecay")
def exponential_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """`learning_rate * decay_rate ** (global_step / decay_steps)`.

    Args:
        learning_rate: the rate at step 0, a floating-point scalar.
        global_step: the counter.
        decay_steps: in how many steps the rate falls by `decay_rate`.
        decay_rate: a scalar.
        staircase: whether `global_step / decay_steps` is rounded down.

    >>> import flowbook as fb
    >>> step = fb.placeholder(fb.int64, [])
    >>> rate = fb.train.exponential_decay(0.5, step, decay_steps=10, decay_rate=0.5)
    >>> with fb.Session() as sess:
    ...     print(sess.run(rate, {step: 20}))
    0.125
    """
    rate, step, period, factor = _numbers(learning_rate, global_step, decay_steps, decay_rate)
    return rate * pow(factor, _periods(step, period, staircase))


@arguments_as(exponential_decay)
@composed("NaturalExpDecay")
def natural_exp_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """`learning_rate * exp(-decay_rate * global_step / decay_steps)`.

    Args:
        decay_steps: the unit in which `decay_rate` counts.
    """
    rate, step, period, factor = _numbers(learning_rate, global_step, decay_steps, decay_rate)
    return rate * exp(-factor * _periods(step, period, staircase))


@arguments_as(natural_exp_decay)
@composed("InverseTimeDecay")
def inverse_time_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """`learning_rate / (1 + decay_rate * global_step / decay_steps)`."""
    rate, step, period, factor = _numbers(learning_rate, global_step, decay_steps, decay_rate)
    return rate / (1.0 + factor * _periods(step, period, staircase))


@composed("PiecewiseConstant")
def piecewise_constant(
    x: Any, boundaries: Sequence[Any], values: Sequence[Any], name: str | None = None
) -> Tensor:
    """The first of `values` while `x <= boundaries[0]`, then the next, and so on.

    Args:
        x: the counter.
        boundaries: increasing numbers, up to and including which the values hold.
        values: scalars of one dtype, one more than boundaries.

    Raises:
        InvalidArgumentError: if the boundaries do not increase, or the values are not one more.
    """
    if len(values) != len(boundaries) + 1:
        raise InvalidArgumentError(
            f"{len(boundaries)} boundaries part {len(boundaries) + 1} values, not {len(values)}"
        )
    fixed = [b for b in boundaries if isinstance(b, int | float | np.number)]
    if any(b >= a for b, a in itertools.pairwise(fixed)):
        raise InvalidArgumentError(f"the boundaries do not increase: {list(boundaries)}")
    counter = convert_to_tensor(x)
    chosen = convert_to_tensor(values[-1])
    for boundary, value in zip(reversed(boundaries), reversed(values[:-1]), strict=True):
        below = less_equal(counter, as_number(boundary, counter.dtype))
        chosen = where(below, as_number(value, chosen.dtype), chosen)
    return chosen


@arguments_as(exponential_decay)
@composed("PolynomialDecay")
def polynomial_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    end_learning_rate: Any = 0.0001,
    power: Any = 1.0,
    cycle: bool = False,
    name: str | None = None,
) -> Tensor:
    """A polynomial from `learning_rate` at step 0 to `end_learning_rate` at `decay_steps`.

    `(learning_rate - end) * (1 - global_step / decay_steps) ** power + end`, and `end` from there.

    Args:
        decay_steps: where the end is reached.
        end_learning_rate: the rate there.
        power: of the polynomial; 1 is a line, 0.5 a square root.
        cycle: whether, instead of staying at the end, `decay_steps` becomes its next multiple
            that is not below the counter: the rate jumps up each time.
    """
    rate, step, period, end, exponent = _numbers(
        learning_rate, global_step, decay_steps, end_learning_rate, power
    )
    if cycle:
        cycles = where(equal(step, 0.0), ones_like(step), ceil(step / period))
        period = period * cycles
    else:
        step = minimum(step, period)
    return (rate - end) * pow(1.0 - step / period, exponent) + end


@arguments_as(exponential_decay)
@composed("CosineDecay")
def cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    alpha: Any = 0.0,
    name: str | None = None,
) -> Tensor:
    """Half a cosine from `learning_rate` at step 0 to `alpha * learning_rate` at `decay_steps`.

    Args:
        decay_steps: where the end is reached; the rate stays there.
        alpha: what part of the rate remains.

    Source: Loshchilov, Hutter, "SGDR: stochastic gradient descent with warm restarts", 2017.
    """
    rate, step, period, rest = _numbers(learning_rate, global_step, decay_steps, alpha)
    wave = _half_cosine(minimum(step, period) / period)
    return rate * ((1.0 - rest) * wave + rest)


@arguments_as(exponential_decay)
@composed("SGDRDecay")
def cosine_decay_restarts(
    learning_rate: Any,
    global_step: Any,
    first_decay_steps: Any,
    t_mul: float = 2.0,
    m_mul: Any = 1.0,
    alpha: Any = 0.0,
    name: str | None = None,
) -> Tensor:
    """Half cosines one after the other: each begins high again ("warm restarts").

    Args:
        first_decay_steps: the length of the first half cosine.
        t_mul: how much longer each is than the one before, a number of at least 1.
        m_mul: how much higher each begins than the one before, a scalar.
        alpha: what part of the rate remains at the ends.

    Raises:
        InvalidArgumentError: if `t_mul` is below 1.

    Source: Loshchilov, Hutter, "SGDR: stochastic gradient descent with warm restarts", 2017.
    """
    if not t_mul >= 1:
        raise InvalidArgumentError(f"t_mul is at least 1, not {t_mul!r}")
    rate, step, period, height, rest = _numbers(
        learning_rate, global_step, first_decay_steps, m_mul, alpha
    )
    periods = step / period
    if t_mul == 1:
        restarts = floor(periods)
        place = periods - restarts
    else:
        # The k-th restart comes after 1 + t_mul + ... + t_mul**(k - 1) first lengths.
        restarts = floor(log(1.0 - periods * (1.0 - t_mul)) / math.log(t_mul))
        length = pow(as_number(t_mul, rate.dtype), restarts)
        place = (periods - (1.0 - length) / (1.0 - t_mul)) / length
    wave = pow(height, restarts) * _half_cosine(place)
    return rate * ((1.0 - rest) * wave + rest)


@arguments_as(polynomial_decay)
@composed("LinearCosineDecay")
def linear_cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    num_periods: Any = 0.5,
    alpha: Any = 0.0,
    beta: Any = 0.001,
    name: str | None = None,
) -> Tensor:
    """A cosine under a falling line: `learning_rate * ((alpha + line) * wave + beta)`.

    `line` falls from 1 at step 0 to 0 at `decay_steps`, and `wave = (1 + cos(2 * pi * num_periods *
    global_step / decay_steps)) / 2`; both stay there.

    Args:
        learning_rate: a floating-point scalar.
        num_periods: how many whole cosines fit before it.
        alpha: what is added to the line.
        beta: what part of the rate remains.

    Source: Bello, Zoph, Vasudevan, Le, "Neural optimizer search with reinforcement learning",
    2017.
    """
    rate, step, period, periods, offset, rest = _numbers(
        learning_rate, global_step, decay_steps, num_periods, alpha, beta
    )
    place = minimum(step, period) / period
    return rate * ((offset + 1.0 - place) * _half_cosine(2.0 * periods * place) + rest)


@composed("LinearWarmup")
def linear_warmup(
    learning_rate: Any, global_step: Any, warmup_steps: Any, name: str | None = None
) -> Tensor:
    """The learning rate, after it has risen to it in even steps.

    `learning_rate * min(1, (global_step + 1) / warmup_steps)`: the first step, with a counter of 0,
    is not lost to a rate of zero, and the step with the counter `warmup_steps - 1` is the first
    with the whole rate. The learning rate may be a schedule of the same counter.

    Args:
        learning_rate: a floating-point scalar.
        global_step: the counter.
        warmup_steps: how many steps it takes, at least 1; 0 counts as 1.

    Source: Goyal and others, "Accurate, large minibatch SGD: training ImageNet in 1 hour", 2017,
    section 2.2.

    >>> import flowbook as fb
    >>> step = fb.train.get_or_create_global_step()
    >>> rate = fb.train.cosine_decay(0.5, step, decay_steps=1000)
    >>> rate = fb.train.linear_warmup(rate, step, warmup_steps=4)
    >>> with fb.Session() as sess:
    ...     print(sess.run(rate, {step: 0}))
    0.125
    """
    rate, step, length = _numbers(learning_rate, global_step, warmup_steps)
    return rate * minimum((step + 1.0) / maximum(length, 1.0), 1.0)


def _numbers(learning_rate: Any, *others: Any) -> list[Tensor]:
    """Scalars in the dtype of the learning rate."""
    rate = convert_to_tensor(learning_rate)
    if not rate.dtype.is_floating:
        raise InvalidArgumentError(
            f"a learning rate is a floating-point number, not {rate.dtype.name}"
        )
    return [rate, *(as_number(value, rate.dtype) for value in others)]


def _periods(step: Tensor, period: Tensor, staircase: bool) -> Tensor:
    periods = step / period
    return floor(periods) if staircase else periods


def _half_cosine(place: Tensor) -> Tensor:
    """1 at 0, 0 at 1."""
    return 0.5 * (1.0 + cos(math.pi * place))
