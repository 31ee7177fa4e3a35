"""Comparison, logic, and the choice between values: elementwise, with NumPy's broadcasting."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.definition.inference import (
    broadcast_inputs,
    elementwise,
    same_as_input,
)
from flowbook.graph.definition.op_def import NO_GRADIENT, OpDef
from flowbook.graph.definition.packing import packed
from flowbook.graph.model.dtypes import INTS, MOVABLE, NUMBERS, REALS, VALUES, DType
from flowbook.graph.model.dtypes import bool as bool_
from flowbook.graph.model.errors import InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import UNKNOWN, Shape
from flowbook.graph.model.tensor import Arithmetic, Tensor
from flowbook.graph.numerics.element_choices import selected
from flowbook.graph.ops.basis.broadcasting import sum_to_shape
from flowbook.graph.ops.basis.constants import convert_to_tensor, zeros_like_op
from flowbook.graph.ops.basis.shaping import reshape

__all__ = [
    "equal",
    "greater",
    "greater_equal",
    "less",
    "less_equal",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "not_equal",
    "where",
]


def _comparison(
    type: str, ufunc: str, doc: str, T: tuple[DType, ...] = REALS, **facts: Any
) -> OpDef:
    return OpDef(
        type,
        "x: T, y: T -> z: bool",
        T=T,
        infer=broadcast_inputs,
        expression=f"{ufunc}(x, y)",
        grad=NO_GRADIENT,
        cost=elementwise(),
        doc=f"{doc}, elementwise with broadcasting: a bool tensor.",
        **facts,
    )


equal = _comparison("Equal", "equal", "Whether `x` equals `y`", VALUES, computes=False)

not_equal = _comparison(
    "NotEqual", "not_equal", "Whether `x` differs from `y`", VALUES, computes=False
)

less = _comparison("Less", "less", "Whether `x` is below `y`")

less_equal = _comparison("LessEqual", "less_equal", "Whether `x` is at most `y`")

greater = _comparison("Greater", "greater", "Whether `x` is above `y`")

greater_equal = _comparison("GreaterEqual", "greater_equal", "Whether `x` is at least `y`")


def _logic(type: str, signature: str, expression: str, infer: Any = broadcast_inputs) -> OpDef:
    return OpDef(
        type,
        signature,
        T=(bool_, *INTS),
        infer=infer,
        expression=expression,
        grad=NO_GRADIENT,
        cost=elementwise(),
    )


and_op = _logic("And", "x: T, y: T -> z: T", "bitwise_and(x, y)")
or_op = _logic("Or", "x: T, y: T -> z: T", "bitwise_or(x, y)")
xor_op = _logic("Xor", "x: T, y: T -> z: T", "bitwise_xor(x, y)")
not_op = _logic("Not", "x: T -> y: T", "invert(x)", same_as_input)


def _of_bools(op_def: OpDef, *values: Any, name: str | None) -> Tensor:
    tensors = [convert_to_tensor(value, bool_) for value in values]
    return op_def(*tensors, name=name)


def logical_and(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Whether both of two bool tensors are true, elementwise with broadcasting.

    `x & y` is the same, and for integers works on their bits.
    """
    return _of_bools(and_op, x, y, name=name)


def logical_or(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Whether one of two bool tensors is true, elementwise with broadcasting.

    `x | y` is the same, and for integers works on their bits.
    """
    return _of_bools(or_op, x, y, name=name)


def logical_xor(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Whether exactly one of two bool tensors is true, elementwise with broadcasting.

    `x ^ y` is the same, and for integers works on their bits.
    """
    return _of_bools(xor_op, x, y, name=name)


def logical_not(x: Any, name: str | None = None) -> Tensor:
    """Whether a bool tensor is false, elementwise.

    `~x` is the same, and for integers works on their bits.
    """
    return _of_bools(not_op, x, name=name)


def _indices_shape(condition: Tensor) -> Shape:
    known = condition.op.attributes["value"] if condition.op.op_def.is_constant else None
    count = None if known is None else int(np.count_nonzero(known))
    return Shape.of((count, condition.shape.rank))


def _true_indices(xp: Any, condition: Any) -> Any:
    # A scalar that holds has one index, of no parts.
    if not condition.ndim:
        return xp.zeros((int(bool(condition)), 0), dtype=np.int64)
    return xp.stack(xp.nonzero(condition), axis=1).astype(np.int64, copy=False)


true_indices = OpDef(
    "TrueIndices",
    "condition: T -> output: int64",
    T=(bool_, *NUMBERS),
    infer=_indices_shape,
    kernel=_true_indices,
    only_moves=True,
    doc="The indices of the elements that hold: what `where` gives without `x` and `y`.",
)


def _where_gradient(op: Operation, dz: Tensor) -> Any:
    condition, x, y = op.inputs
    zero = zeros_like_op(dz)
    return (
        None,
        sum_to_shape(where_op(condition, dz, zero), x, condition, y),
        sum_to_shape(where_op(condition, zero, dz), y, condition, x),
    )


where_op: OpDef = OpDef(
    "Where",
    "condition: bool, x: T, y: T -> z: T",
    T=MOVABLE,
    infer=broadcast_inputs,
    kernel=selected,
    expression="where(condition, x, y)",
    grad=_where_gradient,
    computes=False,
    cost=elementwise(),
)


@where_op.front
def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """`x` where the condition holds and `y` elsewhere, elementwise; or where it holds.

    Args:
        condition: a bool tensor. Without `x` and `y` it may also hold numbers, of which those
            other than zero count.
            With `x` and `y` of one rank above 1, a vector chooses among their rows.
        x: what to take where it holds. Both are computed, and otherwise all three broadcast. No
            gradient flows to the one that was not chosen, whatever it is there.
        y: what to take elsewhere.

    Returns:
        What was chosen. Without `x` and `y`, the indices of the elements that hold, in row-major
        order: an int64 tensor of shape [number of them, condition.rank].

    Raises:
        InvalidTypeError: if only one of `x` and `y` is given.

    >>> import flowbook as fb
    >>> x = fb.constant([-1.0, 4.0])
    >>> fb.where(x > 0.0, x, 0.0)
    <Tensor 'Where:0' shape=[2] dtype=float32>
    >>> fb.where(x > 0.0)
    <Tensor 'TrueIndices:0' shape=[?, 1] dtype=int64>
    """
    result: Tensor
    if x is None and y is None:
        result = true_indices(condition, name=name)
        return result
    if x is None or y is None:
        raise InvalidTypeError("where takes both x and y, or neither of them")
    condition, x, y = packed(condition), packed(x), packed(y)
    condition = _by_rows(condition, x, y)
    result = where_op(condition, x, y, name=name)
    return result


def _by_rows(condition: Any, x: Any, y: Any) -> Any:
    """A condition as it broadcasts to `x` and `y`: a vector holds for their rows."""
    rank, *ranks = (_rank(value) for value in (condition, x, y))
    known = {r for r in ranks if r is not None}
    if rank not in (None, 1) or len(known) > 1 or not known.isdisjoint((0, 1)):
        return condition
    if rank is None or None in ranks:
        return row_condition_op(condition, x, y)
    return reshape(condition, [-1] + [1] * (known.pop() - 1))


def _rank(value: Any) -> int | None:
    """The rank of a tensor, variable or array, if it is known."""
    return value.shape.rank if isinstance(value, Arithmetic) else np.ndim(value)  # type: ignore[attr-defined]


def _as_rows(xp: Any, condition: Any, x: Any, y: Any) -> Any:
    if condition.ndim != 1 or x.ndim != y.ndim or x.ndim < 2:
        return condition
    return xp.reshape(condition, (-1, *(1,) * (x.ndim - 1)))


def _row_shape(condition: Tensor, x: Tensor, y: Tensor) -> Shape:
    dims, rank = condition.shape.dims, x.shape.rank
    if dims is None or (len(dims) == 1 and None in (rank, y.shape.rank)):
        return UNKNOWN
    if len(dims) != 1 or rank is None or rank != y.shape.rank or rank < 2:
        return condition.shape
    return Shape.of((*dims, *(1,) * (rank - 1)))


row_condition_op = OpDef(
    "RowCondition",
    "condition: bool, x: T, y: T -> output: bool",
    T=VALUES,
    infer=_row_shape,
    kernel=_as_rows,
    aliases={0: 0},
    only_moves=True,
    doc="What `where` makes of a condition where only the run knows whether it chooses rows.",
)
