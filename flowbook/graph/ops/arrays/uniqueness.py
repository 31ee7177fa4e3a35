"""Tensors as sets: their different elements in the order in which they first stand, differences."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from flowbook.graph.definition.axes import axis_or_tensor, in_range
from flowbook.graph.definition.inference import halvings
from flowbook.graph.definition.op_def import NO_GRADIENT, OpDef
from flowbook.graph.model.dtypes import INDICES, VALUES, DType, as_dtype, int32
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import UNKNOWN, Shape
from flowbook.graph.model.tensor import Tensor

__all__ = ["setdiff1d", "unique", "unique_with_counts"]


class Unique(NamedTuple):
    """The different elements, and which of them each element is."""

    y: Tensor
    idx: Tensor


class UniqueWithCounts(NamedTuple):
    """The different elements, which of them each element is, and how often each is."""

    y: Tensor
    idx: Tensor
    count: Tensor  # type: ignore[assignment]  # As a tuple it has a method of this name.


class ListDiff(NamedTuple):
    """The elements of one vector that another has not, and where they stand."""

    out: Tensor
    idx: Tensor


def _check_vectors(**vectors: Tensor) -> None:
    for name, vector in vectors.items():
        if vector.shape.rank not in (None, 1):
            raise InvalidArgumentError(f"{name!r} is a vector, not of shape {vector.shape}")


def _check_rank(name: str, value: Any) -> None:
    if value.ndim != 1:
        raise InvalidArgumentError(f"{name!r} is a vector, not of shape {list(value.shape)}")


def _index_dtype(name: str, dtype: Any) -> DType:
    found = as_dtype(dtype)
    if found not in INDICES:
        raise InvalidTypeError(f"{name} is int32 or int64, not {found.name}")
    return found


def _unique_shapes(x: Tensor, out_idx: DType, axis: int | None) -> list[Shape]:
    count = Shape.of((None,))
    if axis is None:
        _check_vectors(x=x)
        return [count, x.shape.merge(count), count]
    if x.shape.dims is None:
        return [UNKNOWN, count, count]
    i = in_range(axis, len(x.shape.dims))
    parts = Shape.of((*x.shape.dims[:i], None, *x.shape.dims[i + 1 :]))
    return [parts, Shape.of((x.shape.dims[i],)), count]


def _unique(xp: Any, x: Any, out_idx: DType, axis: int | None) -> tuple[Any, Any, Any]:
    if axis is None:
        _check_rank("x", x)
        return _firsts(xp, x, xp.argsort(x, kind="stable"), out_idx)
    first = xp.moveaxis(x, in_range(axis, x.ndim), 0)
    # Equal rows stand together once they are ordered by each of their elements, one by one.
    rows = xp.reshape(first, (len(first), math.prod(first.shape[1:])))
    order = xp.arange(len(rows))
    for column in range(rows.shape[1]):
        order = order[xp.argsort(rows[order, column], kind="stable")]
    parts, idx, count = _firsts(xp, rows, order, out_idx)
    parts = xp.reshape(parts, (len(parts), *first.shape[1:]))
    return xp.moveaxis(parts, 0, in_range(axis, x.ndim)), idx, count


def _firsts(xp: Any, x: Any, order: Any, out_idx: DType) -> tuple[Any, Any, Any]:
    """Of elements or rows the first of each kind, in their order; see `unique_with_counts`.

    Args:
        xp: the array module.
        x: elements, or rows of them.
        order: places at which equal ones stand together, the first of them first.
        out_idx: the dtype of the indices.
    """
    ordered = x[order]
    is_new = xp.ones(len(x), dtype=bool)
    differs = ordered[1:] != ordered[:-1]
    is_new[1:] = differs if x.ndim == 1 else differs.any(axis=1)
    starts = xp.flatnonzero(is_new)
    # The sort is stable: the first of equal elements is the first of its run.
    first = order[starts]
    by_place = xp.argsort(first)
    rank = xp.empty_like(by_place)
    rank[by_place] = xp.arange(first.size)
    idx = xp.empty(len(x), dtype=out_idx.numpy)
    idx[order] = rank[xp.cumsum(is_new) - 1]
    ends = xp.append(starts[1:], len(x))
    count = (ends - starts)[by_place].astype(out_idx.numpy)
    return x[first[by_place]], idx, count


def _comparisons(op: Operation) -> int:
    """What sorting takes."""
    size = sum(t.shape.size or 0 for t in op.inputs)
    return size * halvings(size)


unique_op: OpDef[tuple[Tensor, Tensor, Tensor]] = OpDef(
    "Unique",
    "x: T -> y: T, idx: out_idx, count: out_idx",
    T=VALUES,
    attributes={"out_idx": int32, "axis": None},
    infer=_unique_shapes,
    kernel=_unique,
    grad=NO_GRADIENT,
    computes=False,
    axis="axis",
    cost=_comparisons,
)


@unique_op.front
def unique(
    x: Any, out_idx: Any = int32, name: str | None = None, *, axis: int | None = None
) -> Unique:
    """The different elements of a vector, in the order in which they first stand.

    Args:
        x: [n], of any dtype. NaN differs from every element, itself included.
        out_idx: the dtype of the indices: int32 or int64.
        axis: where `x` has more dimensions, that along which its parts are told apart, each of
            them as a whole.

    Returns:
        `.y`, the different elements, how many only the run knows; and `.idx` [n], which of them
        each element is, so that `gather(y, idx)` is `x`; with an axis `gather(y, idx, axis)`.

    Raises:
        InvalidArgumentError: if there is no such axis, or `x` is no vector and none is given.

    >>> import flowbook as fb
    >>> with fb.Session() as sess:
    ...     print(*sess.run(fb.unique([7, 3, 7, 7, 5])))
    [7 3 5] [0 1 0 0 2]
    """
    return Unique(*_unique_of(x, out_idx, axis, name)[:2])


def _unique_of(x: Any, out_idx: Any, axis: Any, name: str | None) -> tuple[Tensor, Tensor, Tensor]:
    along = None if axis is None else axis_or_tensor(axis)
    return unique_op(x, out_idx=_index_dtype("out_idx", out_idx), axis=along, name=name)


def unique_with_counts(
    x: Any, out_idx: Any = int32, name: str | None = None, *, axis: int | None = None
) -> UniqueWithCounts:
    """The different elements of a vector and how often each stands there.

    Arguments as for `unique`.

    Returns:
        `.y` and `.idx` as of `unique`, and `.count`, of the same length as `.y`.
    """
    return UniqueWithCounts(*_unique_of(x, out_idx, axis, name))


def _difference_shapes(x: Tensor, y: Tensor, out_idx: DType) -> list[Shape]:
    _check_vectors(x=x, y=y)
    return [Shape.of((None,))] * 2


def _difference(xp: Any, x: Any, y: Any, out_idx: DType) -> tuple[Any, Any]:
    _check_rank("x", x)
    _check_rank("y", y)
    idx = xp.flatnonzero(xp.isin(x, y, invert=True))
    return x[idx], idx.astype(out_idx.numpy)


set_difference_op: OpDef[tuple[Tensor, Tensor]] = OpDef(
    "ListDiff",
    "x: T, y: T -> out: T, idx: out_idx",
    T=VALUES,
    attributes={"out_idx": int32},
    infer=_difference_shapes,
    kernel=_difference,
    grad=NO_GRADIENT,
    computes=False,
    cost=_comparisons,
)


@set_difference_op.front
def setdiff1d(x: Any, y: Any, index_dtype: Any = int32, name: str | None = None) -> ListDiff:
    """The elements of `x` that `y` does not hold, in their order; those that repeat stay.

    Args:
        x: a vector of any dtype.
        y: a vector of the same dtype.
        index_dtype: the dtype of the indices: int32 or int64.

    Returns:
        `.out`, the elements, how many only the run knows; and `.idx`, where in `x` they stand.
    """
    wanted = _index_dtype("index_dtype", index_dtype)
    return ListDiff(*set_difference_op(x, y, out_idx=wanted, name=name))
