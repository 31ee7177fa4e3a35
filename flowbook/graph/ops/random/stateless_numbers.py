"""Random numbers without state: two seeds, given as a tensor, decide all of them.

The same seeds give the same numbers in every run, session and graph, on every device. Uniform
numbers and integers are those that TensorFlow's stateless operations draw on CPUs, bit for bit, and
normals agree with them to the last places (see `numerics/philox_numbers.py`).
"""

from __future__ import annotations

from typing import Any

from flowbook.graph.definition.inference import elementwise
from flowbook.graph.definition.op_def import NO_GRADIENT, REQUIRED, OpDef
from flowbook.graph.model.dtypes import FLOATS, INDICES, DType, float32
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.numerics.random import philox, sampling
from flowbook.graph.ops.basis.shaping import dims_of, shape_argument
from flowbook.graph.ops.random.random_numbers import (
    around,
    between,
    check_bounds,
    check_dims,
    drawn_dtype,
    drawn_shape,
    integers_shape,
)

__all__ = ["stateless_random_normal", "stateless_random_uniform", "stateless_truncated_normal"]


def start_of(seed: Any) -> tuple[philox.Key, philox.Counter]:
    """Where the draw of two seeds begins."""
    if seed.shape != (2,):
        raise InvalidArgumentError(f"the seed is two ints, not of shape {list(seed.shape)}")
    return philox.stateless_key_and_counter(*seed.tolist())


def check_seed(seed: Tensor) -> None:
    """See that a seed is two ints, as far as its shape tells."""
    if not seed.shape.is_compatible_with((2,)):
        raise InvalidArgumentError(f"the seed is two ints, not of shape {seed.shape}")


def _shape(shape: Tensor, seed: Tensor, **_: Any) -> Shape:
    check_seed(seed)
    return drawn_shape(shape)


def _drawn(kind: philox.Kind) -> Any:
    def kernel(xp: Any, shape: Any, seed: Any, dtype: DType) -> Any:
        dims = dims_of(check_dims(shape))
        return xp.asarray(philox.draw(kind, *start_of(seed), dims, dtype.numpy)[0])

    return kernel


def _floats(type: str, kernel: Any, flops: int) -> OpDef:
    return OpDef(
        type,
        "shape: I, seed: S -> output: dtype",
        I=INDICES,
        S=INDICES,
        attributes={"dtype": REQUIRED},
        infer=_shape,
        kernel=kernel,
        host_args=("shape", "seed"),
        grad=NO_GRADIENT,
        cost=elementwise(flops),
    )


stateless_uniform_op = _floats("StatelessRandomUniform", _drawn("uniform"), 20)
stateless_normal_op = _floats("StatelessRandomNormal", _drawn("normal"), 60)
stateless_truncated_op = _floats(
    "StatelessTruncatedNormal",
    lambda xp, shape, seed, dtype: xp.asarray(
        sampling.truncated_normal(*start_of(seed), dims_of(check_dims(shape)), dtype.numpy)
    ),
    120,
)


def _integers_shape(shape: Tensor, seed: Tensor, low: Tensor, high: Tensor, **_: Any) -> Shape:
    check_seed(seed)
    return integers_shape(shape, low, high)


def _integers(xp: Any, shape: Any, seed: Any, low: Any, high: Any, dtype: DType) -> Any:
    check_bounds(low, high)
    key, counter = start_of(seed)
    dims = dims_of(check_dims(shape))
    drawn, _ = philox.draw(
        "uniform_int", key, counter, dims, dtype.numpy, low=int(low), high=int(high)
    )
    return xp.asarray(drawn)


stateless_uniform_int_op = OpDef(
    "StatelessRandomUniformInt",
    "shape: I, seed: S, low: dtype, high: dtype -> output: dtype",
    I=INDICES,
    S=INDICES,
    attributes={"dtype": REQUIRED},
    infer=_integers_shape,
    kernel=_integers,
    host_args=("shape", "seed", "low", "high"),
    grad=NO_GRADIENT,
    cost=elementwise(20),
)


@stateless_uniform_op.front
def stateless_random_uniform(
    shape: Any,
    seed: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = float32,
    name: str | None = None,
) -> Tensor:
    """Random numbers, uniform in [minval, maxval), that only the seeds decide.

    Args:
        shape: an int vector tensor, or a sequence of ints and int scalar tensors.
        seed: two ints, a tensor of int32 or int64 or a sequence.
        minval: the lower limit, included; of `dtype`.
        maxval: the upper limit, excluded; by default 1 for floats; needed for integers.
        dtype: a floating-point dtype, int32 or int64.

    Raises:
        InvalidArgumentError: if integers have no `maxval`, or one not above `minval`.

    >>> import flowbook as fb
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.stateless_random_uniform([3], seed=[3, 7])))
    [0.88220143 0.02823412 0.9534571 ]
    """
    wanted = drawn_dtype(dtype, FLOATS + INDICES)
    shape = shape_argument(shape)
    if wanted.is_integer and maxval is None:
        raise InvalidArgumentError("random integers need a maxval")
    if wanted.is_integer:
        return stateless_uniform_int_op(shape, seed, minval, maxval, dtype=wanted, name=name)
    return between(
        lambda name: stateless_uniform_op(shape, seed, dtype=wanted, name=name),
        minval,
        1 if maxval is None else maxval,
        wanted,
        name,
        "stateless_random_uniform",
    )


def _normal(
    op_def: OpDef, shape: Any, seed: Any, mean: Any, stddev: Any, dtype: Any, name: str | None
) -> Tensor:
    wanted = drawn_dtype(dtype, FLOATS)
    shape = shape_argument(shape)
    return around(
        lambda name: op_def(shape, seed, dtype=wanted, name=name),
        mean,
        stddev,
        wanted,
        name,
        op_def.__name__,
    )


@stateless_normal_op.front
def stateless_random_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = float32,
    name: str | None = None,
) -> Tensor:
    """Random numbers, normally distributed, that only the seeds decide.

    Args:
        shape: an int vector tensor, or a sequence of ints and int scalar tensors.
        seed: two ints, a tensor of int32 or int64 or a sequence.
        mean: of `dtype`, of a shape that broadcasts to `shape`.
        stddev: the standard deviation, likewise.
        dtype: a floating-point dtype.
    """
    return _normal(stateless_normal_op, shape, seed, mean, stddev, dtype, name)


@stateless_truncated_op.front
def stateless_truncated_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = float32,
    name: str | None = None,
) -> Tensor:
    """Random numbers as from `truncated_normal`, that only the seeds decide.

    Args:
        shape: an int vector tensor, or a sequence of ints and int scalar tensors.
        seed: two ints, a tensor of int32 or int64 or a sequence.
        mean: of `dtype`, of a shape that broadcasts to `shape`.
        stddev: the standard deviation before the ends are cut off, likewise.
        dtype: a floating-point dtype.
    """
    return _normal(stateless_truncated_op, shape, seed, mean, stddev, dtype, name)
