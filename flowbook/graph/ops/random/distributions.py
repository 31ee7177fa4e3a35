"""Random numbers of distributions whose parameters are tensors: gamma, Poisson, classes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from ml_dtypes import finfo

from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.inference import constant_value, elementwise
from flowbook.graph.definition.op_def import HOST
from flowbook.graph.model.dtypes import FLOATS, INDICES, DType, float32, int64
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.numerics.random import gamma_variates, philox, poisson_variates, sampling
from flowbook.graph.ops.basis.broadcasting import sum_to_shape
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.filling import zeros_like
from flowbook.graph.ops.basis.shaping import dims_of, shape_argument
from flowbook.graph.ops.math.arithmetic import divide, maximum
from flowbook.graph.ops.math.incomplete_gamma import relative_grad_a
from flowbook.graph.ops.random.random_numbers import (
    SEEDED,
    check_dims,
    drawing_op,
    drawn_dtype,
    drawn_shape,
    seeded,
    seeds,
)

__all__ = ["random_categorical", "random_gamma", "random_poisson"]


def _per_parameter(shape: Tensor, parameter: Tensor, **_: Any) -> Shape:
    drawn = drawn_shape(shape)
    return drawn.concatenate(parameter.shape)


Start: TypeAlias = Callable[[int], tuple[philox.Key, philox.Counter]]
"""Of a number of blocks: where a draw that takes so many of them begins."""


def _drawn(
    start: Start, dims: tuple[int, ...], parameter: Any, draw: Any, dtype: np.dtype[Any]
) -> Any:
    """Samples of the given shape for every parameter: in TensorFlow's order, one after another."""
    each = np.broadcast_to(parameter.reshape(-1, 1), (parameter.size, math.prod(dims)))
    samples = draw(*start(sampling.blocks_for(each.size)), each, dtype)
    return np.reshape(samples.T, dims + parameter.shape, copy=True)


def gamma_samples(start: Start, dims: tuple[int, ...], alpha: Any) -> Any:
    """Samples of gamma distributions, [*dims, *alpha.shape]."""
    wrong = alpha[~(alpha >= 0)]
    if wrong.size:
        raise InvalidArgumentError(f"alpha is at least 0, not {wrong.ravel()[0]}")
    return _drawn(start, dims, alpha, gamma_variates.gamma, alpha.dtype)


def _gamma(xp: Any, state: Any, shape: Any, alpha: Any) -> Any:
    return gamma_samples(state.reserve, dims_of(check_dims(shape)), alpha)


def gamma_gradient(op: Operation, dy: Tensor) -> Any:
    """The gradient of samples to alpha, the last input."""
    *others, alpha = op.inputs
    slope = relative_grad_a(alpha, op.outputs[0])
    return (*(None for _ in others), sum_to_shape(-dy * slope, alpha))


gamma_op = drawing_op(
    "RandomGamma",
    "shape: I, alpha: T -> output: T",
    I=INDICES,
    T=FLOATS,
    attributes=SEEDED,
    infer=_per_parameter,
    kernel=_gamma,
    kinds=HOST,
    host_args=("shape",),
    grad=gamma_gradient,
    cost=elementwise(flops=300),
)


@gamma_op.front
@composed
def random_gamma(
    shape: Any,
    alpha: Any,
    beta: Any = None,
    dtype: Any = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Random numbers of gamma distributions.

    Gradients flow to both parameters; samples move with `alpha` as if they had been drawn by
    inverting the distribution function.

    Args:
        shape: how many samples for each parameter: an int vector tensor, or a sequence of ints and
            int scalar tensors.
        alpha: the shape parameters, not negative, of `dtype`.
        beta: the inverse scales, of `dtype`, broadcasting with `alpha`; by default 1.
        dtype: a floating-point dtype.
        seed: an int that makes the numbers reproducible, see `set_random_seed`.

    Returns:
        A tensor of shape `shape + (alpha + beta).shape`. Where alpha is so small that a sample is 0
        as `dtype`, it is the least normal number instead, as in TensorFlow.

    Raises:
        InvalidArgumentError: in the run, if an alpha is negative or NaN.

    Sources: Marsaglia and Tsang, "A simple method for generating gamma variables", TOMS 2000;
    Figurnov, Mohamed, Mnih, "Implicit reparameterization gradients", 2018.

    >>> import flowbook as fb
    >>> fb.random_gamma([10], alpha=[0.5, 1.5]).shape
    Shape([10, 2])
    """
    wanted = drawn_dtype(dtype, FLOATS)
    shape = shape_argument(shape)
    alpha = convert_to_tensor(alpha, wanted)
    beta = None if beta is None else convert_to_tensor(beta, wanted)
    attributes = seeds(seed)
    return scaled_gamma(lambda each: gamma_op(shape, each, **attributes), alpha, beta, name)


def scaled_gamma(
    draw: Callable[[Tensor], Tensor], alpha: Tensor, beta: Tensor | None, name: str | None
) -> Tensor:
    """Samples of an inverse scale, from those that `draw` gives for alphas; never 0."""
    each = alpha if beta is None else alpha + zeros_like(beta)
    sample = draw(each)
    scaled = sample if beta is None else divide(sample, beta)
    least = float(finfo(alpha.dtype.numpy).tiny)  # type: ignore[no-untyped-call]
    return maximum(scaled, least, name=name)


def poisson_samples(start: Start, dims: tuple[int, ...], lam: Any, dtype: DType) -> Any:
    """Samples of Poisson distributions, [*dims, *lam.shape]."""
    greatest = dtype.max
    wrong = lam[~((lam >= 0) & (lam <= float(greatest)))]
    if wrong.size:
        raise InvalidArgumentError(
            f"lam is from 0 to the greatest {dtype.name}, {greatest}, not {wrong.ravel()[0]}"
        )
    return _drawn(start, dims, lam, poisson_variates.poisson, dtype.numpy)


def _poisson(xp: Any, state: Any, shape: Any, lam: Any, dtype: DType) -> Any:
    return poisson_samples(state.reserve, dims_of(check_dims(shape)), lam, dtype)


poisson_op = drawing_op(
    "RandomPoisson",
    "shape: I, lam: T -> output: dtype",
    I=INDICES,
    T=FLOATS + INDICES,
    infer=_per_parameter,
    kernel=_poisson,
    kinds=HOST,
    host_args=("shape",),
    cost=elementwise(flops=200),
)


@poisson_op.front
def random_poisson(
    lam: Any,
    shape: Any,
    dtype: Any = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Random counts of Poisson distributions.

    Args:
        lam: their means, not negative, of a floating-point dtype, int32 or int64.
        shape: how many samples for each mean: an int vector tensor, or a sequence of ints and int
            scalar tensors.
        dtype: of the counts: a floating-point dtype, int32 or int64.
        seed: an int that makes the numbers reproducible, see `set_random_seed`.

    Returns:
        A tensor of shape `shape + lam.shape`. A count that `dtype` cannot hold is its greatest
        value.

    Raises:
        InvalidArgumentError: in the run, if a mean is negative, NaN, or more than `dtype` holds.

    Source: Hoermann, "The transformed rejection method for generating Poisson random variables",
    1993, for means from 10; below, inversion.
    """
    attributes = seeded(dtype, seed, FLOATS + INDICES)
    shape = shape_argument(shape)
    return poisson_op(shape, lam, **attributes, name=name)


def categorical_shape(logits: Tensor, num_samples: Tensor, *_: Any, **__: Any) -> Shape:
    """The shape of classes drawn: [batch, samples]."""
    if logits.shape.rank not in (None, 2):
        raise InvalidArgumentError(f"logits are [batch, classes], not of shape {logits.shape}")
    if num_samples.shape.rank not in (None, 0):
        raise InvalidArgumentError(f"'num_samples' is a scalar, not of shape {num_samples.shape}")
    known = constant_value(num_samples)
    if known is not None:
        check_samples(known)
    batch = None if logits.shape.dims is None else logits.shape.dims[0]
    return Shape.of((batch, None if known is None else int(known)))


def check_samples(count: Any) -> int:
    """See that a number of samples is not negative."""
    if count < 0:
        raise InvalidArgumentError(f"num_samples is not negative: {count}")
    return int(count)


def class_weights(logits: Any) -> Any:
    """What classes are drawn in proportion to: float64 [batch, classes], at most 1 each.

    Raises:
        InvalidArgumentError: if a row has no class that can be drawn.
    """
    if logits.ndim != 2:
        raise InvalidArgumentError(f"logits are [batch, classes], not of shape {logits.shape}")
    if not logits.shape[0]:
        return np.zeros(logits.shape, np.float64)
    highest = np.max(logits, axis=1, keepdims=True, initial=-np.inf).astype(np.float64)
    wrong = np.flatnonzero(~np.isfinite(highest))
    if wrong.size:
        raise InvalidArgumentError(
            f"row {wrong[0]} of the logits has no class to draw: its highest is "
            f"{highest[wrong[0], 0]}",
            hint="logits are finite, or -inf for what is never drawn",
        )
    return np.exp(logits - highest)


def _categorical(xp: Any, state: Any, logits: Any, num_samples: Any, dtype: DType) -> Any:
    weights, count = class_weights(logits), check_samples(num_samples)
    blocks = philox.blocks_for(np.float64, weights.shape[0] * count)
    key, counter = state.reserve(blocks)
    return sampling.categorical(key, counter, weights, count, dtype.numpy)


def _draws(op: Operation) -> int:
    return 20 * (op.inputs[0].shape.size or 0) + 40 * (op.outputs[0].shape.size or 0)


categorical_op = drawing_op(
    "RandomCategorical",
    "logits: T, num_samples: int32 -> output: dtype",
    T=FLOATS,
    infer=categorical_shape,
    kernel=_categorical,
    kinds=HOST,
    host_args=("num_samples",),
    cost=_draws,
)


@categorical_op.front
def random_categorical(
    logits: Any,
    num_samples: Any,
    dtype: Any = int64,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Random classes, drawn with replacement.

    Args:
        logits: [batch, classes] of a floating-point dtype, the logarithms of probabilities up to a
            constant for each row; a class of -inf is never drawn.
        num_samples: how many to draw for each row, an int or an int32 scalar tensor.
        dtype: of the classes, int32 or int64.
        seed: an int that makes the numbers reproducible, see `set_random_seed`.

    Returns:
        [batch, num_samples], numbers in [0, classes).

    Raises:
        InvalidArgumentError: in the run, if a row's highest logit is not finite.

    >>> import flowbook as fb
    >>> fb.random_categorical(fb.log([[0.2, 0.8]]), 5).shape
    Shape([1, 5])
    """
    attributes = seeded(dtype, seed, INDICES)
    return categorical_op(logits, num_samples, **attributes, name=name)
