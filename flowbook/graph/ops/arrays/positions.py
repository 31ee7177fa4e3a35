"""Arithmetic of places: where values belong in an order, and flat indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.definition.inference import constant_value, halvings
from flowbook.graph.definition.op_def import NO_GRADIENT, OpDef
from flowbook.graph.model.dtypes import INDICES, REALS, DType, as_dtype, int32, string
from flowbook.graph.model.errors import InvalidArgumentError, InvalidIndexError, InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import UNKNOWN, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.numerics.bounds import check_indices
from flowbook.graph.ops.basis.shaping import check_vector, dims_of, shape_argument

__all__ = ["searchsorted", "unravel_index"]


def _searched_shape(sorted_sequence: Tensor, values: Tensor, side: str, out_type: DType) -> Shape:
    rows, found = sorted_sequence.shape.dims, values.shape.dims
    if rows is None or found is None:
        return values.shape
    if not rows or not found or not Shape.of(rows[:-1]).is_compatible_with(found[:-1]):
        raise InvalidArgumentError(
            f"the shapes {sorted_sequence.shape} and {values.shape} differ in more than the last "
            "axis"
        )
    return Shape.of((*Shape.of(rows[:-1]).merge(found[:-1]), found[-1]))


def _searched(xp: Any, sorted_sequence: Any, values: Any, side: str, out_type: DType) -> Any:
    if not sorted_sequence.ndim or sorted_sequence.shape[:-1] != values.shape[:-1]:
        raise InvalidArgumentError(
            f"the shapes {list(sorted_sequence.shape)} and {list(values.shape)} differ in more "
            "than the last axis"
        )
    result = xp.empty(values.shape, dtype=out_type.numpy)
    # One call for each row: there is no search of many rows at once.
    for row in np.ndindex(values.shape[:-1]):
        result[row] = xp.searchsorted(sorted_sequence[row], values[row], side)
    return result


def _comparisons(op: Operation) -> int:
    """What looking for each value takes, by bisection."""
    row, values = op.inputs[0].shape.dims, op.inputs[1].shape.size
    return (values or 0) * halvings(row[-1] if row else None)


search_sorted_op = OpDef(
    "SearchSorted",
    "sorted_sequence: T, values: T -> output: out_type",
    T=(*REALS, string),
    attributes={"side": "left", "out_type": int32},
    choices={"side": ("left", "right")},
    infer=_searched_shape,
    kernel=_searched,
    grad=NO_GRADIENT,
    cost=_comparisons,
)


@search_sorted_op.front
def searchsorted(
    sorted_sequence: Any,
    values: Any,
    side: str = "left",
    out_type: Any = int32,
    name: str | None = None,
) -> Tensor:
    """Where values would have to stand in sorted rows, so that these stay sorted.

    Args:
        sorted_sequence: [..., n], real numbers or strings, each row sorted in ascending order.
        values: [..., m], of the same dtype and the same first dimensions.
        side: "left" for the first such place, "right" for the last.
        out_type: the dtype of the result: int32 or int64.

    Returns:
        Places in [0, n], of the values' shape.

    Raises:
        InvalidArgumentError: if the first dimensions differ.

    >>> import flowbook as fb
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.searchsorted([1.0, 3.0, 5.0], [3.0, 9.0])))
    [1 3]
    """
    wanted = as_dtype(out_type)
    if wanted not in INDICES:
        raise InvalidTypeError(f"out_type is int32 or int64, not {wanted.name}")
    return search_sorted_op(sorted_sequence, values, side=side, out_type=wanted, name=name)


def _unravelled_shape(indices: Tensor, dims: Tensor) -> Shape:
    check_vector("dims", dims)
    count = dims.shape.dims[0] if dims.shape.dims is not None else None
    known = constant_value(dims)
    places = constant_value(indices)
    if known is not None and places is not None:
        _check_flat(places, tuple(known.tolist()))
    if indices.shape.dims is None:
        return UNKNOWN
    return Shape.of((count, *indices.shape.dims))


def _check_flat(indices: Any, dims: tuple[int, ...]) -> None:
    size = int(np.prod(dims, dtype=np.int64))
    try:
        check_indices(indices, size)
    except InvalidIndexError as error:
        error.message += f", in the shape {list(dims)}"
        raise


def _unravelled(xp: Any, indices: Any, dims: Any) -> Any:
    shape = dims_of(dims)
    _check_flat(indices, shape)
    found = []
    rest = indices
    for d in shape[::-1]:
        found.append(rest % d if d else rest)
        rest = rest // d if d else rest
    if not found:
        return xp.zeros((0, *indices.shape), dtype=indices.dtype)
    return xp.stack(found[::-1]).astype(indices.dtype, copy=False)


unravel_index_op = OpDef(
    "UnravelIndex",
    "indices: I, dims: I -> output: I",
    I=INDICES,
    infer=_unravelled_shape,
    kernel=_unravelled,
    host_args=("dims",),
    only_moves=True,
)


@unravel_index_op.front
def unravel_index(indices: Any, dims: Any, name: str | None = None) -> Tensor:
    """The indices along each axis of elements that are counted in row-major order.

    Args:
        indices: int32 or int64 of any shape, each in [0, product of dims).
        dims: the shape that they count through, an int vector tensor or a sequence.

    Returns:
        A tensor of shape `[number of dims] + indices.shape`.

    Raises:
        InvalidIndexError: if an index lies outside; in the run, where it is known only then.
    """
    dims = shape_argument(dims)
    return unravel_index_op(indices, dims, name=name)
