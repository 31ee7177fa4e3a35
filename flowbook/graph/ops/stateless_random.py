"""Random numbers without state: two seeds, given as a tensor, decide all of them.

The same seeds give the same numbers in every run, session and graph, on every device. Uniform
numbers and integers are those that TensorFlow's stateless operations draw on CPUs, bit for bit, and
normals agree with them to the last places (see `numerics/philox_numbers.py`). Classes are its too
where TensorFlow draws all rows on one thread; with more, it starts rows elsewhere in the stream.
"""

from __future__ import annotations

from typing import Any

from flowbook.graph.dtypes import FLOATS, INDICES, DType, float32, int64
from flowbook.graph.errors import InvalidArgumentError
from flowbook.graph.numerics import philox, sampling
from flowbook.graph.op_def import NO_GRADIENT, REQUIRED, OpDef
from flowbook.graph.ops.inference import elementwise
from flowbook.graph.ops.located import located
from flowbook.graph.ops.random import (
    around,
    between,
    check_bounds,
    check_dims,
    drawn_dtype,
    drawn_shape,
    integers_shape,
)
from flowbook.graph.ops.random_distributions import (
    categorical_shape,
    check_samples,
    class_weights,
)
from flowbook.graph.ops.shaping import dims_of, shape_argument
from flowbook.graph.shape import Shape
from flowbook.graph.tensor import Tensor


def _start(seed: Any) -> tuple[philox.Key, philox.Counter]:
    """Where the draw of two seeds begins."""
    if seed.shape != (2,):
        raise InvalidArgumentError(f"the seed is two ints, not of shape {list(seed.shape)}")
    return philox.stateless_key_and_counter(*seed.tolist())


def _check_seed(seed: Tensor) -> None:
    if not seed.shape.is_compatible_with((2,)):
        raise InvalidArgumentError(f"the seed is two ints, not of shape {seed.shape}")


def _shape(shape: Tensor, seed: Tensor, **_: Any) -> Shape:
    _check_seed(seed)
    return drawn_shape(shape)


def _drawn(kind: philox.Kind) -> Any:
    def kernel(xp: Any, shape: Any, seed: Any, dtype: DType) -> Any:
        return philox.draw(kind, *_start(seed), dims_of(check_dims(shape)), dtype.numpy)[0]

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
        grad=NO_GRADIENT,
        aliases={},
        cost=elementwise(flops),
    )


stateless_uniform_op = _floats("StatelessRandomUniform", _drawn("uniform"), 20)
stateless_normal_op = _floats("StatelessRandomNormal", _drawn("normal"), 60)
stateless_truncated_op = _floats(
    "StatelessTruncatedNormal",
    lambda xp, shape, seed, dtype: sampling.truncated_normal(
        *_start(seed), dims_of(check_dims(shape)), dtype.numpy
    ),
    120,
)


def _integers_shape(shape: Tensor, seed: Tensor, low: Tensor, high: Tensor, **_: Any) -> Shape:
    _check_seed(seed)
    return integers_shape(shape, low, high)


def _integers(xp: Any, shape: Any, seed: Any, low: Any, high: Any, dtype: DType) -> Any:
    check_bounds(low, high)
    key, counter = _start(seed)
    dims = dims_of(check_dims(shape))
    drawn, _ = philox.draw(
        "uniform_int", key, counter, dims, dtype.numpy, low=int(low), high=int(high)
    )
    return drawn


stateless_uniform_int_op = OpDef(
    "StatelessRandomUniformInt",
    "shape: I, seed: S, low: dtype, high: dtype -> output: dtype",
    I=INDICES,
    S=INDICES,
    attributes={"dtype": REQUIRED},
    infer=_integers_shape,
    kernel=_integers,
    grad=NO_GRADIENT,
    aliases={},
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
        name: the operation's name.

    Raises:
        InvalidArgumentError: if integers have no `maxval`, or one not above `minval`.

    >>> import flowbook as fb
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.stateless_random_uniform([3], seed=[3, 7])))
    [0.88220143 0.02823412 0.9534571 ]
    """
    __tracebackhide__ = True
    with located("StatelessRandomUniform"):
        wanted = drawn_dtype(dtype, FLOATS + INDICES)
        shape = shape_argument(shape)
        if wanted.is_integer and maxval is None:
            raise InvalidArgumentError("random integers need a maxval")
    if wanted.is_integer:
        result: Tensor = stateless_uniform_int_op(
            shape, seed, minval, maxval, dtype=wanted, name=name
        )
        return result
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
    with located(op_def.type):
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
        name: the operation's name.
    """
    __tracebackhide__ = True
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
        name: the operation's name.
    """
    __tracebackhide__ = True
    return _normal(stateless_truncated_op, shape, seed, mean, stddev, dtype, name)


def _classes_shape(logits: Tensor, num_samples: Tensor, seed: Tensor, **_: Any) -> Shape:
    _check_seed(seed)
    return categorical_shape(logits, num_samples)


def _classes(xp: Any, logits: Any, num_samples: Any, seed: Any, dtype: DType) -> Any:
    weights, count = class_weights(logits), check_samples(num_samples)
    return sampling.categorical(*_start(seed), weights, count, dtype.numpy)


stateless_categorical_op = OpDef(
    "StatelessRandomCategorical",
    "logits: T, num_samples: int32, seed: S -> output: dtype",
    T=FLOATS,
    S=INDICES,
    attributes={"dtype": REQUIRED},
    infer=_classes_shape,
    kernel=_classes,
    grad=NO_GRADIENT,
    aliases={},
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
        name: the operation's name.

    Returns:
        [batch, num_samples], numbers in [0, classes).

    Raises:
        InvalidArgumentError: in the run, if a row's highest logit is not finite.
    """
    __tracebackhide__ = True
    with located("StatelessRandomCategorical"):
        wanted = drawn_dtype(dtype, INDICES)
    result: Tensor = stateless_categorical_op(logits, num_samples, seed, dtype=wanted, name=name)
    return result
