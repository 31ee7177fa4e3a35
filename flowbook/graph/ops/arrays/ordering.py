"""Sorting along an axis.

Invariant: equal elements keep their order, in both directions, and NaN counts as larger than all
numbers. So every result is determined.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.definition.axes import as_axis, in_range
from flowbook.graph.definition.batching import Batching
from flowbook.graph.definition.inference import halvings, shape_from
from flowbook.graph.definition.op_def import REQUIRED, OpDef
from flowbook.graph.model.attributes import check_choice
from flowbook.graph.model.dtypes import INDICES, MOVABLE, NUMBERS, REALS
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.shaping import dims_of, shape_of

__all__ = ["argsort", "sort"]


def _same_shape(values: Tensor, axis: int, **_: Any) -> Shape:
    if values.shape.rank is not None:
        in_range(axis, values.shape.rank)
    return values.shape


def comparisons(op: Operation) -> int:
    """What sorting takes: one for each element and each halving of the row that it is in."""
    shape = op.inputs[0].shape
    length = shape.dims[op.attributes.get("axis", -1)] if shape.dims else None
    return (shape.size or 0) * halvings(length)


def order_of(xp: Any, values: Any, axis: int, descending: bool) -> Any:
    """The indices that sort, stable in both directions."""
    if not descending:
        return xp.argsort(values, axis=axis, kind="stable")
    # Sorted from behind and turned around, equal elements end up as they stood.
    found = xp.argsort(xp.flip(values, axis), axis=axis, kind="stable")
    return values.shape[axis] - 1 - xp.flip(found, axis)


def _sort(xp: Any, values: Any, axis: int, descending: bool) -> Any:
    i = in_range(axis, values.ndim)
    result = xp.sort(values, axis=i)
    return xp.flip(result, i) if descending else result


def _sort_gradient(op: Operation, dy: Tensor) -> Tensor:
    order = argsort_op(op.inputs[0], **op.attributes)
    axis = op.attributes["axis"]
    # The order is a permutation: what it takes is given back by its inverse.
    inverse = argsort_op(order, axis=axis, descending=False)
    return take_along_axis_op(dy, inverse, axis=axis)


sort_op = OpDef(
    "Sort",
    "values: T -> output: T",
    T=REALS,
    attributes={"axis": -1, "descending": False},
    infer=_same_shape,
    kernel=_sort,
    grad=_sort_gradient,
    batching=Batching.ALONG_AXIS,
    cost=comparisons,
)


@sort_op.front
def sort(
    values: Any, axis: int = -1, direction: str = "ASCENDING", name: str | None = None
) -> Tensor:
    """The elements in order, along an axis. NaN counts as the largest.

    Args:
        values: of a real dtype and at least one dimension.
        axis: an int, negative ones counted from the last.
        direction: "ASCENDING" or "DESCENDING".

    Raises:
        InvalidArgumentError: if there is no such axis or direction.
    """
    axis, descending = as_axis(axis), _is_descending(direction)
    return sort_op(values, axis=axis, descending=descending, name=name)


def _is_descending(direction: str) -> bool:
    check_choice("direction", direction, ("ASCENDING", "DESCENDING"))
    return direction == "DESCENDING"


def _argsort(xp: Any, values: Any, axis: int, descending: bool) -> Any:
    return order_of(xp, values, in_range(axis, values.ndim), descending).astype(np.int32)


argsort_op = OpDef(
    "ArgSort",
    "values: T -> output: int32",
    T=REALS,
    attributes={"axis": -1, "descending": False},
    infer=_same_shape,
    kernel=_argsort,
    batching=Batching.ALONG_AXIS,
    cost=comparisons,
)


@argsort_op.front
def argsort(
    values: Any,
    axis: int = -1,
    direction: str = "ASCENDING",
    stable: bool = False,
    name: str | None = None,
) -> Tensor:
    """The indices that put the elements in order, along an axis: int32.

    Args:
        values: of a real dtype and at least one dimension.
        axis: an int, negative ones counted from the last.
        direction: "ASCENDING" or "DESCENDING".
        stable: whether equal elements must keep their order. They always do.

    Raises:
        InvalidArgumentError: if there is no such axis or direction.
    """
    axis, descending = as_axis(axis), _is_descending(direction)
    return argsort_op(values, axis=axis, descending=descending, name=name)


def _along_shape(values: Tensor, indices: Tensor, axis: int) -> Shape:
    dims, chosen = values.shape.dims, indices.shape.dims
    if dims is None or chosen is None:
        return indices.shape
    i = in_range(axis, len(dims))
    return Shape.of((*dims[:i], chosen[i], *dims[i + 1 :]))


take_along_axis_op = OpDef(
    "TakeAlongAxis",
    "values: T, indices: I -> output: T",
    T=MOVABLE,
    I=INDICES,
    attributes={"axis": REQUIRED},
    infer=_along_shape,
    kernel=lambda xp, values, indices, axis: xp.take_along_axis(values, indices, axis=axis),
    grad=lambda op, dy: (
        take_along_axis_gradient_op(
            dy, op.inputs[1], shape_of(op.inputs[0]), axis=op.attributes["axis"]
        ),
        None,
    ),
    only_moves=True,
)


def _put_along(xp: Any, dy: Any, indices: Any, shape: Any, axis: int) -> Any:
    result = xp.zeros(dims_of(shape), dtype=dy.dtype)
    # No index stands twice in a row of what sorts or selects.
    xp.put_along_axis(result, indices, dy, axis=axis)
    return result


take_along_axis_gradient_op: OpDef = OpDef(
    "TakeAlongAxisGrad",
    "dy: T, indices: I, shape: S -> output: T",
    T=NUMBERS,
    I=INDICES,
    S=INDICES,
    attributes={"axis": REQUIRED},
    infer=lambda dy, indices, shape, axis: shape_from(shape),
    kernel=_put_along,
    host_args=("shape",),
    grad=lambda op, dz: (
        take_along_axis_op(dz, op.inputs[1], axis=op.attributes["axis"]),
        None,
        None,
    ),
    only_moves=True,
)
