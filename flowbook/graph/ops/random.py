"""Random numbers (white paper, section 2: stateful operations).

A random operation owns its state: a counter that every run advances. Its key comes from the
graph's seed and its own; the resource (`flowbook/exec/resources/random_state.py`) draws. What is
drawn is standard; scaling it is arithmetic like any other, and gradients flow to the scale.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.dtypes import FLOATS, INDICES, DType, as_dtype, float32
from flowbook.graph.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.graph import get_default_graph
from flowbook.graph.op_def import NO_GRADIENT, REQUIRED, Effects, OpDef
from flowbook.graph.ops.arithmetic import add, multiply, subtract
from flowbook.graph.ops.constants import convert_to_tensor
from flowbook.graph.ops.inference import constant_value, elementwise, shape_from
from flowbook.graph.ops.located import located
from flowbook.graph.ops.shaping import check_vector, dims_of, shape_argument
from flowbook.graph.scopes import name_scope
from flowbook.graph.shape import Shape
from flowbook.graph.tensor import Arithmetic, Tensor

_SEEDED = {"dtype": REQUIRED, "seed": None, "graph_seed": None}


def _drawn_shape(shape: Tensor, *_: Any, **__: Any) -> Shape:
    check_vector("shape", shape)
    known = constant_value(shape)
    if known is not None:
        _check_dims(known)
    return shape_from(shape)


def _check_dims(shape: Any) -> Any:
    if any(d < 0 for d in dims_of(shape)):
        raise InvalidArgumentError(f"a dimension is not negative: {shape.tolist()}")
    return shape


uniform_op = OpDef(
    "RandomUniform",
    "shape: I -> output: dtype",
    I=INDICES,
    attributes=_SEEDED,
    infer=_drawn_shape,
    kernel=lambda xp, state, shape, dtype: state.uniform(_check_dims(shape), dtype),
    grad=NO_GRADIENT,
    effects=Effects.RANDOM,
    resource="random_state",
    aliases={},
    cost=elementwise(flops=20),
)

normal_op = OpDef(
    "RandomNormal",
    "shape: I -> output: dtype",
    I=INDICES,
    attributes=_SEEDED,
    infer=_drawn_shape,
    kernel=lambda xp, state, shape, dtype: state.normal(_check_dims(shape), dtype),
    grad=NO_GRADIENT,
    effects=Effects.RANDOM,
    resource="random_state",
    aliases={},
    cost=elementwise(flops=60),
)


def _integers_shape(shape: Tensor, low: Tensor, high: Tensor, **_: Any) -> Shape:
    for name, tensor in (("minval", low), ("maxval", high)):
        if tensor.shape.rank not in (None, 0):
            raise InvalidArgumentError(f"{name!r} is a scalar, not of shape {tensor.shape}")
    ends = constant_value(low), constant_value(high)
    if ends[0] is not None and ends[1] is not None:
        _check_bounds(*ends)
    return _drawn_shape(shape)


def _check_bounds(low: Any, high: Any) -> None:
    if not low < high:
        raise InvalidArgumentError(f"minval {low} is not below maxval {high}")


def _integers(xp: Any, state: Any, shape: Any, low: Any, high: Any, dtype: DType) -> Any:
    _check_bounds(low, high)
    return state.integers(_check_dims(shape), low, high, dtype)


uniform_int_op = OpDef(
    "RandomUniformInt",
    "shape: I, low: dtype, high: dtype -> output: dtype",
    I=INDICES,
    attributes=_SEEDED,
    infer=_integers_shape,
    kernel=_integers,
    grad=NO_GRADIENT,
    effects=Effects.RANDOM,
    resource="random_state",
    aliases={},
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


def _attributes(dtype: Any, seed: Any, admitted: tuple[DType, ...]) -> dict[str, Any]:
    wanted = as_dtype(dtype)
    if wanted not in admitted:
        names = ", ".join(t.name for t in admitted)
        raise InvalidTypeError(f"random numbers are drawn as {names}, not {wanted.name}")
    graph_seed = get_default_graph().seed
    return {"dtype": wanted, "seed": as_seed(seed), "graph_seed": graph_seed}


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
    __tracebackhide__ = True
    with located("RandomUniform"):
        attributes = _attributes(dtype, seed, FLOATS + INDICES)
        shape = shape_argument(shape)
        if attributes["dtype"].is_integer and maxval is None:
            raise InvalidArgumentError("random integers need a maxval")
    result: Tensor
    if attributes["dtype"].is_integer:
        result = uniform_int_op(shape, minval, maxval, **attributes, name=name)
        return result
    maxval = 1 if maxval is None else maxval
    if _is(minval, 0) and _is(maxval, 1):
        result = uniform_op(shape, **attributes, name=name)
        return result
    with name_scope(name or "random_uniform") as scope:
        result = uniform_op(shape, **attributes)
        if isinstance(minval, Arithmetic) or isinstance(maxval, Arithmetic):
            low = convert_to_tensor(minval, attributes["dtype"], name="minval")
            span: Any = subtract(convert_to_tensor(maxval, attributes["dtype"], name="maxval"), low)
        else:
            low, span = minval, np.subtract(maxval, minval)
        if _is(low, 0):
            return multiply(result, _of(span, attributes["dtype"]), name=scope)  # type: ignore[no-any-return]
        scaled = multiply(result, _of(span, attributes["dtype"]))
        return add(scaled, _of(low, attributes["dtype"]), name=scope)  # type: ignore[no-any-return]


def _of(value: Any, dtype: DType) -> Any:
    return value if isinstance(value, Arithmetic) else np.asarray(value, dtype=dtype.numpy)


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
    __tracebackhide__ = True
    with located("RandomNormal"):
        attributes = _attributes(dtype, seed, FLOATS)
        shape = shape_argument(shape)
    result: Tensor
    if _is(mean, 0) and _is(stddev, 1):
        result = normal_op(shape, **attributes, name=name)
        return result
    with name_scope(name or "random_normal") as scope:
        result = normal_op(shape, **attributes)
        if not _is(stddev, 1):
            last = scope if _is(mean, 0) else None
            result = multiply(result, _of(stddev, attributes["dtype"]), name=last)
        if not _is(mean, 0):
            result = add(result, _of(mean, attributes["dtype"]), name=scope)
    return result
