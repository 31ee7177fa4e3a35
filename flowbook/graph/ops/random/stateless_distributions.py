"""Random numbers without state, of distributions whose parameters are tensors.

Gamma and Poisson variates are those that TensorFlow's stateless operations draw. Classes are its
too where TensorFlow draws all rows on one thread; with more, it starts rows elsewhere in the
stream.
"""

from __future__ import annotations

from typing import Any

from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.inference import elementwise
from flowbook.graph.definition.op_def import HOST, NO_GRADIENT, REQUIRED, OpDef
from flowbook.graph.model.dtypes import FLOATS, INDICES, DType, float32, int32, int64
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.numerics.random import sampling
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.shaping import dims_of, shape_argument
from flowbook.graph.ops.random.distributions import (
    categorical_shape,
    check_samples,
    class_weights,
    gamma_gradient,
    gamma_samples,
    poisson_samples,
    scaled_gamma,
)
from flowbook.graph.ops.random.random_numbers import check_dims, drawn_dtype, drawn_shape
from flowbook.graph.ops.random.stateless_numbers import check_seed, start_of

__all__ = ["stateless_random_categorical", "stateless_random_gamma", "stateless_random_poisson"]


def _whole_shape(shape: Tensor, seed: Tensor, parameter: Tensor, **_: Any) -> Shape:
    check_seed(seed)
    found, last = drawn_shape(shape), parameter.shape
    if found.dims is not None and last.dims is not None:
        _split_dims(found.dims, last.dims)
    return found


def _split_dims(dims: tuple[Any, ...], last: tuple[Any, ...]) -> tuple[Any, ...]:
    """The dimensions in front of a parameter's, with which they end."""
    front = len(dims) - len(last)
    if front < 0 or not Shape.of(dims[front:]).is_compatible_with(last):
        raise InvalidArgumentError(
            f"the shape {Shape.of(dims)} does not end with that of the parameters, {Shape.of(last)}"
        )
    return dims[:front]


def _gamma(xp: Any, shape: Any, seed: Any, alpha: Any) -> Any:
    dims = _split_dims(dims_of(check_dims(shape)), alpha.shape)
    return gamma_samples(lambda _: start_of(seed), dims, alpha)


stateless_gamma_op = OpDef(
    "StatelessRandomGamma",
    "shape: I, seed: S, alpha: T -> output: T",
    I=INDICES,
    S=INDICES,
    T=FLOATS,
    infer=_whole_shape,
    kernel=_gamma,
    kinds=HOST,
    host_args=("shape", "seed"),
    grad=gamma_gradient,
    cost=elementwise(flops=300),
)


@stateless_gamma_op.front
@composed
def stateless_random_gamma(
    shape: Any,
    seed: Any,
    alpha: Any,
    beta: Any = None,
    dtype: Any = float32,
    name: str | None = None,
) -> Tensor:
    """Random numbers as from `random_gamma`, that only the seeds decide.

    Args:
        shape: of the result, ending with the shape of `alpha` and `beta`: an int vector tensor, or
            a sequence of ints and int scalar tensors.
        seed: two ints, a tensor of int32 or int64 or a sequence.
        alpha: the shape parameters, not negative, of `dtype`.
        beta: the inverse scales, of `dtype`, broadcasting with `alpha`; by default 1.
        dtype: a floating-point dtype.

    Raises:
        InvalidArgumentError: if `shape` ends otherwise; in the run, if an alpha is negative or NaN.

    >>> import flowbook as fb
    >>> fb.stateless_random_gamma([10, 2], seed=[3, 7], alpha=[0.5, 1.5]).shape
    Shape([10, 2])
    """
    wanted = drawn_dtype(dtype, FLOATS)
    shape = shape_argument(shape)
    alpha = convert_to_tensor(alpha, wanted)
    beta = None if beta is None else convert_to_tensor(beta, wanted)
    return scaled_gamma(lambda each: stateless_gamma_op(shape, seed, each), alpha, beta, name)


def _poisson(xp: Any, shape: Any, seed: Any, lam: Any, dtype: DType) -> Any:
    dims = _split_dims(dims_of(check_dims(shape)), lam.shape)
    return poisson_samples(lambda _: start_of(seed), dims, lam, dtype)


stateless_poisson_op = OpDef(
    "StatelessRandomPoisson",
    "shape: I, seed: S, lam: T -> output: dtype",
    I=INDICES,
    S=INDICES,
    T=FLOATS + INDICES,
    attributes={"dtype": REQUIRED},
    infer=_whole_shape,
    kernel=_poisson,
    kinds=HOST,
    host_args=("shape", "seed"),
    grad=NO_GRADIENT,
    cost=elementwise(flops=200),
)


@stateless_poisson_op.front
def stateless_random_poisson(
    shape: Any, seed: Any, lam: Any, dtype: Any = int32, name: str | None = None
) -> Tensor:
    """Random counts as from `random_poisson`, that only the seeds decide.

    Args:
        shape: of the result, ending with the shape of `lam`: an int vector tensor, or a sequence
            of ints and int scalar tensors.
        seed: two ints, a tensor of int32 or int64 or a sequence.
        lam: their means, not negative, of a floating-point dtype, int32 or int64.
        dtype: of the counts: a floating-point dtype, int32 or int64.

    Raises:
        InvalidArgumentError: if `shape` ends otherwise; in the run, if a mean is negative, NaN, or
            more than `dtype` holds.
    """
    wanted = drawn_dtype(dtype, FLOATS + INDICES)
    shape = shape_argument(shape)
    return stateless_poisson_op(shape, seed, lam, dtype=wanted, name=name)


def _classes_shape(logits: Tensor, num_samples: Tensor, seed: Tensor, **_: Any) -> Shape:
    check_seed(seed)
    return categorical_shape(logits, num_samples)


def _classes(xp: Any, logits: Any, num_samples: Any, seed: Any, dtype: DType) -> Any:
    weights, count = class_weights(logits), check_samples(num_samples)
    return sampling.categorical(*start_of(seed), weights, count, dtype.numpy)


stateless_categorical_op = OpDef(
    "StatelessRandomCategorical",
    "logits: T, num_samples: int32, seed: S -> output: dtype",
    T=FLOATS,
    S=INDICES,
    attributes={"dtype": REQUIRED},
    infer=_classes_shape,
    kernel=_classes,
    kinds=HOST,
    host_args=("num_samples", "seed"),
    grad=NO_GRADIENT,
    cost=elementwise(40),
)


@stateless_categorical_op.front
def stateless_random_categorical(
    logits: Any, num_samples: Any, seed: Any, dtype: Any = int64, name: str | None = None
) -> Tensor:
    """Random classes as from `random_categorical`, that only the seeds decide.

    Args:
        logits: [batch, classes] of a floating-point dtype.
        num_samples: how many to draw for each row, an int or an int32 scalar tensor.
        seed: two ints, a tensor of int32 or int64 or a sequence.
        dtype: of the classes, int32 or int64.

    Returns:
        [batch, num_samples], numbers in [0, classes).

    Raises:
        InvalidArgumentError: in the run, if a row's highest logit is not finite.
    """
    wanted = drawn_dtype(dtype, INDICES)
    return stateless_categorical_op(logits, num_samples, seed, dtype=wanted, name=name)
