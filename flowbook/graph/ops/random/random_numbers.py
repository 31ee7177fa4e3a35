"""Random numbers (white paper, section 2: stateful operations).

A random operation owns its state: a counter that every run advances. Its key comes from the
graph's seed and its own; the resource (`flowbook/exec/resources/random_state.py`) draws. What is
drawn is standard; scaling it is arithmetic like any other, and gradients flow to the scale.

The state lies in host memory, and so does what is drawn by the kernels here, which then goes to the
device that asks for it: the bits are the same on all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from ml_dtypes import finfo

from flowbook.graph.building.graph import get_default_graph
from flowbook.graph.building.scopes import name_scope
from flowbook.graph.definition.inference import constant_value, elementwise, shape_from
from flowbook.graph.definition.op_def import NO_GRADIENT, REQUIRED, OpDef
from flowbook.graph.definition.packing import packed
from flowbook.graph.model.convert import to_array
from flowbook.graph.model.dtypes import FLOATS, INDICES, DType, as_dtype, float32, float64
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Arithmetic, Tensor
from flowbook.graph.model.touch import DRAWS
from flowbook.graph.numerics.random import sampling
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.shaping import check_vector, dims_of, shape_argument
from flowbook.graph.ops.math.arithmetic import add, minimum, multiply, subtract

__all__ = ["random_normal", "random_uniform", "set_random_seed", "truncated_normal"]

SEEDED = {"seed": None, "graph_seed": None}
_TYPED = {"dtype": REQUIRED, **SEEDED}


def drawn_shape(shape: Tensor, *_: Any, **__: Any) -> Shape:
    """The shape that the first input holds."""
    check_vector("shape", shape)
    known = constant_value(shape)
    if known is not None:
        check_dims(known)
    return shape_from(shape)


def check_dims(shape: Any) -> Any:
    """See that a shape has no negative dimension; gives it back."""
    if any(d < 0 for d in dims_of(shape)):
        raise InvalidArgumentError(f"a dimension is not negative: {shape.tolist()}")
    return shape


def drawing_op(type: str, signature: str, **definition: Any) -> OpDef:
    """The definition of an operation that draws from a random state of its own.

    Args:
        type: the operation type.
        signature: as `OpDef` takes it.
        definition: what else it takes; by default no gradient flows, and the attributes are those
            of what draws as some dtype.
    """
    usual = {"attributes": _TYPED, "grad": NO_GRADIENT}
    return OpDef(type, signature, touches=DRAWS, owns="random_state", **{**usual, **definition})


uniform_op = drawing_op(
    "RandomUniform",
    "shape: I -> output: dtype",
    I=INDICES,
    infer=drawn_shape,
    kernel=lambda xp, state, shape, dtype: xp.asarray(state.uniform(check_dims(shape), dtype)),
    host_args=("shape",),
    cost=elementwise(flops=20),
)

normal_op = drawing_op(
    "RandomNormal",
    "shape: I -> output: dtype",
    I=INDICES,
    infer=drawn_shape,
    kernel=lambda xp, state, shape, dtype: xp.asarray(state.normal(check_dims(shape), dtype)),
    host_args=("shape",),
    cost=elementwise(flops=60),
)


def _truncated(xp: Any, state: Any, shape: Any, dtype: DType) -> Any:
    dims = dims_of(check_dims(shape))
    key, counter = state.reserve(sampling.blocks_for(math.prod(dims)))
    return xp.asarray(sampling.truncated_normal(key, counter, dims, dtype.numpy))


truncated_normal_op = drawing_op(
    "TruncatedNormal",
    "shape: I -> output: dtype",
    I=INDICES,
    infer=drawn_shape,
    kernel=_truncated,
    host_args=("shape",),
    cost=elementwise(flops=120),
)


def integers_shape(shape: Tensor, low: Tensor, high: Tensor, *_: Any, **__: Any) -> Shape:
    """The shape that the first input holds; limits that are known are checked."""
    for name, tensor in (("minval", low), ("maxval", high)):
        if tensor.shape.rank not in (None, 0):
            raise InvalidArgumentError(f"{name!r} is a scalar, not of shape {tensor.shape}")
    ends = constant_value(low), constant_value(high)
    if ends[0] is not None and ends[1] is not None:
        check_bounds(*ends)
    return drawn_shape(shape)


def check_bounds(low: Any, high: Any) -> None:
    """See that there are integers from `low` to below `high`."""
    if not low < high:
        raise InvalidArgumentError(f"minval {low} is not below maxval {high}")


def _integers(xp: Any, state: Any, shape: Any, low: Any, high: Any, dtype: DType) -> Any:
    check_bounds(low, high)
    return xp.asarray(state.integers(check_dims(shape), low, high, dtype))


uniform_int_op = drawing_op(
    "RandomUniformInt",
    "shape: I, low: dtype, high: dtype -> output: dtype",
    I=INDICES,
    infer=integers_shape,
    kernel=_integers,
    host_args=("shape", "low", "high"),
    cost=elementwise(flops=20),
)


def set_random_seed(seed: int | None) -> None:
    """Set the seed of the default graph, which random operations built from now on take part in.

    Args:
        seed: an int; with it, every session draws the same numbers. None takes entropy again.

    Operations without a seed of their own still differ from one another: theirs comes from their
    names.
    """
    get_default_graph().seed = as_seed(seed)


def as_seed(seed: Any) -> int | None:
    """A seed as an int, or None.

    Raises:
        InvalidTypeError: if it is no integer.
        InvalidArgumentError: if it does not fit 64 bits.
    """
    if seed is None:
        return None
    try:
        found = int(seed.__index__())
    except AttributeError:
        raise InvalidTypeError(f"a seed is an int or None, not {seed!r}") from None
    if not -(2**63) <= found < 2**64:
        raise InvalidArgumentError(f"the seed {found} does not fit 64 bits")
    return found


def drawn_dtype(dtype: Any, admitted: tuple[DType, ...]) -> DType:
    """The dtype to draw as, which must be among those admitted."""
    wanted = as_dtype(dtype)
    if wanted not in admitted:
        names = ", ".join(t.name for t in admitted)
        raise InvalidTypeError(f"random numbers are drawn as {names}, not {wanted.name}")
    return wanted


def seeds(seed: Any) -> dict[str, Any]:
    """The attributes that decide a random operation's key."""
    return {"seed": as_seed(seed), "graph_seed": get_default_graph().seed}


def seeded(dtype: Any, seed: Any, admitted: tuple[DType, ...]) -> dict[str, Any]:
    """The attributes of a random operation that draws as `dtype`."""
    return {"dtype": drawn_dtype(dtype, admitted), **seeds(seed)}


def _is(value: Any, number: float) -> bool:
    return not isinstance(value, Arithmetic) and np.ndim(value) == 0 and value == number


def random_uniform(
    shape: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Random numbers, uniform in [minval, maxval).

    Args:
        shape: an int vector tensor, or a sequence of ints and int scalar tensors.
        minval: the lower limit, included; of `dtype`. For floats it may be of a shape that
            broadcasts to `shape`.
        maxval: the upper limit, excluded; by default 1 for floats; needed for integers.
        dtype: a floating-point dtype, int32 or int64.
        seed: an int that makes the numbers reproducible, see `set_random_seed`.
        name: the operation's name.

    Raises:
        InvalidArgumentError: if integers have no `maxval`, or one not above `minval`.

    >>> import flowbook as fb
    >>> fb.random_uniform([784, 100], -1, 1).shape
    Shape([784, 100])
    """
    attributes = seeded(dtype, seed, FLOATS + INDICES)
    shape = shape_argument(shape)
    if attributes["dtype"].is_integer and maxval is None:
        raise InvalidArgumentError("random integers need a maxval")
    result: Tensor
    if attributes["dtype"].is_integer:
        result = uniform_int_op(shape, minval, maxval, **attributes, name=name)
        return result
    return between(
        lambda name: uniform_op(shape, **attributes, name=name),
        minval,
        1 if maxval is None else maxval,
        attributes["dtype"],
        name,
        "random_uniform",
    )


def between(
    draw: Callable[[str | None], Tensor],
    low: Any,
    high: Any,
    dtype: DType,
    name: str | None,
    scope: str,
) -> Tensor:
    """What `draw(name)` draws from [0, 1), scaled to [low, high).

    Only arithmetic that changes something is built.
    """
    low, high = packed(low), packed(high)
    if _is(low, 0) and _is(high, 1):
        return draw(name)
    with name_scope(name or scope) as scope:
        result = draw(None)
        span, low, below = _span(low, high, dtype)
        last = scope if below is None else None
        result = multiply(result, span, name=last if _is(low, 0) else None)
        if not _is(low, 0):
            result = add(result, low, name=last)
        return result if below is None else minimum(result, below, name=scope)


def _span(low: Any, high: Any, dtype: DType) -> tuple[Any, Any, Any]:
    """`high - low`, `low`, and what results must not exceed, as `dtype`; None where none does."""
    if isinstance(low, Arithmetic) or isinstance(high, Arithmetic):
        low = convert_to_tensor(low, dtype, name="minval")
        return subtract(convert_to_tensor(high, dtype, name="maxval"), low), low, None
    exact_low, exact_high = (to_array(v, float64) for v in (low, high))
    span = to_array(exact_high - exact_low, dtype)
    low, high = to_array(low, dtype), to_array(high, dtype)
    # The greatest number that is drawn may be rounded up to the limit, which is excluded.
    draws = 1 - float(finfo(dtype.numpy).eps)  # type: ignore[no-untyped-call]
    with np.errstate(all="ignore"):
        greatest = np.asarray(draws * span.astype(np.float64)).astype(dtype.numpy) + low
        reached = (greatest >= high) & (high > low)
        below = np.where(reached, np.nextafter(high, low), dtype.numpy.type(np.inf))
    return span, low, below if reached.any() else None


def around(
    draw: Callable[[str | None], Tensor],
    mean: Any,
    stddev: Any,
    dtype: DType,
    name: str | None,
    scope: str,
) -> Tensor:
    """What `draw(name)` draws with mean 0 and deviation 1, scaled to others."""
    mean, stddev = packed(mean), packed(stddev)
    if _is(mean, 0) and _is(stddev, 1):
        return draw(name)
    mean, stddev = _of(mean, dtype), _of(stddev, dtype)
    with name_scope(name or scope) as scope:
        result = draw(None)
        if not _is(stddev, 1):
            last = scope if _is(mean, 0) else None
            result = multiply(result, stddev, name=last)
        if not _is(mean, 0):
            result = add(result, mean, name=scope)
    return result


def _of(value: Any, dtype: DType) -> Any:
    return value if isinstance(value, Arithmetic) else to_array(value, dtype)


def random_normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Random numbers, normally distributed.

    Args:
        shape: an int vector tensor, or a sequence of ints and int scalar tensors.
        mean: of `dtype`, of a shape that broadcasts to `shape`.
        stddev: the standard deviation, likewise.
        dtype: a floating-point dtype.
        seed: an int that makes the numbers reproducible, see `set_random_seed`.
        name: the operation's name.
    """
    attributes = seeded(dtype, seed, FLOATS)
    shape = shape_argument(shape)
    return around(
        lambda name: normal_op(shape, **attributes, name=name),
        mean,
        stddev,
        attributes["dtype"],
        name,
        "random_normal",
    )


def truncated_normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Random numbers, normally distributed but none further than 2 `stddev` from the mean.

    What falls outside is drawn again. `stddev` is that of the whole distribution; that of the
    results is 0.88 times as large.

    Args:
        shape: an int vector tensor, or a sequence of ints and int scalar tensors.
        mean: of `dtype`, of a shape that broadcasts to `shape`.
        stddev: the standard deviation before the ends are cut off, likewise.
        dtype: a floating-point dtype.
        seed: an int that makes the numbers reproducible, see `set_random_seed`.
        name: the operation's name.
    """
    attributes = seeded(dtype, seed, FLOATS)
    shape = shape_argument(shape)
    return around(
        lambda name: truncated_normal_op(shape, **attributes, name=name),
        mean,
        stddev,
        attributes["dtype"],
        name,
        "truncated_normal",
    )
