"""Conversions beside `cast`: to the nearest value that a dtype holds, and of bare bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.definition.batching import Batching
from flowbook.graph.definition.inference import elementwise, same_as_input
from flowbook.graph.definition.op_def import NO_GRADIENT, REQUIRED, OpDef
from flowbook.graph.model.dtypes import NUMBERS, REALS, SMALL_FLOATS, DType, as_dtype
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import UNKNOWN, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.constants import convert_to_tensor, zeros_like_op
from flowbook.graph.ops.math.comparison import greater, less, where_op

__all__ = ["bitcast", "saturate_cast"]


def _saturate(xp: Any, value: Any, dtype: DType) -> Any:
    low, high = dtype.min, dtype.max
    if value.dtype.kind in "iu":
        if dtype.is_floating:
            clipped = xp.clip(value.astype(np.float64), float(low), float(high))
            return clipped.astype(dtype.numpy)
        own = np.iinfo(value.dtype)
        return xp.clip(value, max(low, own.min), min(high, own.max)).astype(dtype.numpy)
    if dtype.is_floating:
        is_wider = np.dtype(dtype.numpy).itemsize >= value.dtype.itemsize
        return (value if is_wider else xp.clip(value, low, high)).astype(dtype.numpy)
    # The largest integers round up to floats that no longer fit, so that they are set afterwards.
    fits = (value > low) & (value < float(high))
    whole = xp.where(fits, value, 0).astype(dtype.numpy)
    whole = xp.where(value <= low, low, whole)
    return xp.where(value >= float(high), high, whole).astype(dtype.numpy)


def _saturate_gradient(op: Operation, dy: Tensor) -> Tensor | None:
    value, wanted = op.inputs[0], op.attributes["dtype"]
    if not value.dtype.is_floating or not wanted.is_floating:
        return None
    found = cast(dy, value.dtype)
    if wanted.size >= value.dtype.size:
        return found
    beyond = less(value, float(wanted.min)) | greater(value, float(wanted.max))
    return where_op(beyond, zeros_like_op(found), found)


saturate_cast_op = OpDef(
    "SaturateCast",
    "value: T -> output: dtype",
    T=REALS,
    attributes={"dtype": REQUIRED},
    infer=same_as_input,
    kernel=_saturate,
    grad=_saturate_gradient,
    batching=Batching.ELEMENTWISE,
    cost=elementwise(flops=3),
)


@saturate_cast_op.front
def saturate_cast(value: Any, dtype: Any, name: str | None = None) -> Tensor:
    """Convert to another dtype, with what it cannot hold as its smallest or largest value.

    Args:
        value: of a real dtype.
        dtype: the wanted dtype, a real one.

    Returns:
        The values as of `cast`, those below `dtype.min` or above `dtype.max` as the limit, infinite
        ones too where `dtype` is smaller; NaN becomes 0 as an integer.

    >>> import flowbook as fb
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.saturate_cast([-3.0, 7.5, 300.0], fb.uint8)))
    [  0   7 255]
    """
    wanted = as_dtype(dtype)
    if wanted not in REALS:
        raise InvalidTypeError(f"{wanted.name} has no smallest and largest value")
    return saturate_cast_op(value, dtype=wanted, name=name)


def _reinterpreted(input: Tensor, dtype: DType) -> Shape:
    dims = input.shape.dims
    if dims is None:
        return UNKNOWN
    given, wanted = input.dtype.size, dtype.size
    if given == wanted:
        return input.shape
    if given > wanted:
        return Shape.of((*dims, given // wanted))
    _check_last(dims[-1] if dims else 1, dims, input.dtype.name, dtype.name, wanted // given)
    return Shape.of(dims[:-1])


def _check_last(last: int | None, dims: Any, given: str, wanted: str, parts: int) -> None:
    if last is not None and last != parts:
        raise InvalidArgumentError(
            f"one {wanted} is made of {parts} {given}, so that the last dimension has the size "
            f"{parts}; the shape is {list(dims)}"
        )


def _bitcast(xp: Any, input: Any, dtype: DType) -> Any:
    given, wanted = input.dtype.itemsize, dtype.size
    if given == wanted:
        return input.view(dtype.numpy)
    if given > wanted:
        whole = xp.ascontiguousarray(input)
        return xp.reshape(xp.reshape(whole, -1).view(dtype.numpy), (*input.shape, given // wanted))
    last = input.shape[-1] if input.ndim else 1
    _check_last(last, input.shape, input.dtype.name, dtype.name, wanted // given)
    whole = xp.reshape(xp.ascontiguousarray(input), -1)
    return xp.reshape(whole.view(dtype.numpy), input.shape[:-1])


# Those of 4 and 2 bits leave parts of their bytes unused.
_BYTES = tuple(t for t in SMALL_FLOATS if t.name.startswith("float8"))

bitcast_op = OpDef(
    "Bitcast",
    "input: T -> output: dtype",
    T=NUMBERS + _BYTES,
    attributes={"dtype": REQUIRED},
    infer=_reinterpreted,
    kernel=_bitcast,
    grad=NO_GRADIENT,
    aliases={0: 0},
    only_moves=True,
)


@bitcast_op.front
def bitcast(input: Any, type: Any, name: str | None = None) -> Tensor:
    """The same bits read as another dtype.

    Args:
        input: of a numeric dtype, or of floats of 8 bits.
        type: the wanted dtype, another such.

    Returns:
        A tensor of `input`'s shape. Where `type` is smaller there is one more dimension, for the
        parts of each element, the lowest first; where it is larger, the last dimension, of that
        size, is gone.

    Raises:
        InvalidArgumentError: if the last dimension does not hold the parts of one element.

    >>> import flowbook as fb
    >>> fb.bitcast(fb.zeros([2, 3]), fb.uint8).shape
    Shape([2, 3, 4])
    """
    wanted = as_dtype(type)
    if wanted not in bitcast_op.type_variables["T"]:
        raise InvalidTypeError(f"{wanted.name} is no number of whole bytes")
    input = convert_to_tensor(input)
    return bitcast_op(input, dtype=wanted, name=name)
