"""Which elements of a sparse tensor there are: kept, left out, filled in."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.inference import constant_value
from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.dtypes import INDICES, MOVABLE
from flowbook.graph.model.dtypes import bool as bool_
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.arrays.gathering import gather_op
from flowbook.graph.ops.arrays.indexed_slices import IndexedSlices
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.joining import concat_op
from flowbook.graph.ops.basis.shaping import reshape_op
from flowbook.graph.ops.basis.sparse_tensor import SparseTensor
from flowbook.graph.ops.sparse.arranging import int64_vector, known_shape
from flowbook.graph.ops.sparse.conversion import sparse_take
from flowbook.graph.ops.sparse.indices import check_shapes, check_sparse, checked_dims, rank_of

__all__ = ["fill_empty_rows", "mask", "reset_shape", "retain"]


def _some_places(*vectors: Tensor) -> Shape:
    for vector in vectors:
        if vector.shape.rank not in (None, 1):
            raise InvalidArgumentError(f"vectors are wanted, not the shape {vector.shape}")
    return Shape.of((None,))


def _kept_places(kept: Tensor, values: Tensor) -> Shape:
    if not kept.shape.is_compatible_with(values.shape):
        raise InvalidArgumentError(
            f"there are bools of shape {kept.shape} for values of shape {values.shape}"
        )
    return _some_places(kept, values)


def _kept(xp: Any, kept: Any, values: Any) -> Any:
    if kept.ndim != 1 or kept.shape != values.shape:
        raise InvalidArgumentError(
            f"there are bools of shape {list(kept.shape)} for values of {list(values.shape)}"
        )
    return xp.flatnonzero(kept).astype(np.int64)


sparse_kept = OpDef(
    "SparseKept",
    "kept: bool, values: T -> places: int64",
    T=MOVABLE,
    infer=_kept_places,
    kernel=_kept,
    only_moves=True,
    doc="The places of the values for which a vector is true.",
)


def elements(x: SparseTensor, places: Tensor) -> SparseTensor:
    """The sparse tensor of the elements at some places."""
    return SparseTensor(gather_op(x.indices, places), sparse_take(x.values, places), x.dense_shape)


@composed("SparseRetain")
def retain(sp_input: Any, to_retain: Any, name: str | None = None) -> SparseTensor:
    """The elements of a sparse tensor for which a vector is true.

    Args:
        sp_input: a SparseTensor of n elements.
        to_retain: [n] bools.

    Returns:
        A SparseTensor of the same dense shape.

    Raises:
        InvalidArgumentError: if there are not as many; in the run, where it is known only then.

    >>> import flowbook as fb
    >>> x = fb.sparse.from_dense([5, -1, 7])
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.sparse.retain(x, fb.greater(x.values, 0))).values)
    [5 7]
    """
    x = SparseTensor.from_value(sp_input)
    wanted = convert_to_tensor(to_retain, bool_)
    return elements(x, sparse_kept(wanted, x.values))


def _masked(xp: Any, indices: Any, mask_indices: Any) -> Any:
    return xp.flatnonzero(~xp.isin(indices, mask_indices)).astype(np.int64)


sparse_mask = OpDef(
    "SparseMask",
    "indices: I, mask_indices: I -> places: int64",
    I=INDICES,
    infer=_some_places,
    kernel=_masked,
    only_moves=True,
    doc="The places of the indices that are not among others.",
)


@composed("SparseMask")
def mask(a: Any, mask_indices: Any, name: str | None = None) -> IndexedSlices:
    """IndexedSlices without the rows at some indices.

    Args:
        a: IndexedSlices.
        mask_indices: the indices of the rows to leave out, a vector of the dtype of `a.indices`.

    Raises:
        InvalidTypeError: if `a` is something else.
    """
    if not isinstance(a, IndexedSlices):
        raise InvalidTypeError(
            f"rows of IndexedSlices are left out, not of {a!r:.80}",
            hint="of a SparseTensor: fb.sparse.retain" if hasattr(a, "values") else None,
        )
    places = sparse_mask(a.indices, mask_indices)
    return IndexedSlices(sparse_take(a.values, places), gather_op(a.indices, places), a.dense_shape)


# Rows without elements


class FilledRows(NamedTuple):
    """What `fill_empty_rows` gives: the sparse tensor, and which rows were empty."""

    sp_ordered_output: SparseTensor
    empty_row_indicator: Tensor


def _filled_shapes(indices: Tensor, dense_shape: Tensor) -> list[Shape]:
    known = check_shapes(indices, dense_shape)
    if known.rank == 0:
        raise InvalidArgumentError("a scalar has no rows")
    rows = known.dims[0] if known.dims is not None else None
    return [Shape.of((None, rank_of(indices))), Shape.of((None,)), Shape.of((rows,))]


def _fill_empty_rows(xp: Any, indices: Any, dense_shape: Any) -> Any:
    dims = checked_dims(dense_shape)
    if not dims:
        raise InvalidArgumentError("a scalar has no rows")
    check_sparse(indices, dims)
    counts = xp.bincount(indices[:, 0], minlength=dims[0])
    is_empty = counts == 0
    rows = xp.flatnonzero(is_empty)
    if len(rows) and 0 in dims[1:]:
        raise InvalidArgumentError(f"the dense shape {list(dims)} has no place for an element")
    new = xp.zeros((len(rows), len(dims)), dtype=np.int64)
    new[:, 0] = rows
    joined = xp.concatenate([indices, new])
    places = xp.concatenate([xp.arange(len(indices)), xp.full(len(rows), len(indices))])
    order = xp.argsort(joined[:, 0], kind="stable")
    return joined[order], places[order].astype(np.int64), is_empty


sparse_fill_empty_rows: OpDef[tuple[Tensor, Tensor, Tensor]] = OpDef(
    "SparseFillEmptyRows",
    "indices: int64, dense_shape: int64 "
    "-> new_indices: int64, places: int64, empty_row_indicator: bool",
    infer=_filled_shapes,
    kernel=_fill_empty_rows,
    host_args=("dense_shape",),
    only_moves=True,
    doc="""Indices with one added in each row without, and the places of the values.

    The place after the last value stands for the default.
    """,
)


@composed("SparseFillEmptyRows")
def fill_empty_rows(sp_input: Any, default_value: Any, name: str | None = None) -> FilledRows:
    """A sparse tensor in which each row without elements has got one, in its first place.

    Args:
        sp_input: a SparseTensor of at least one dimension.
        default_value: the value of what is added, a scalar of its dtype.

    Returns:
        A named tuple of the SparseTensor, in order of rows, and a bool vector that is true where
        a row was empty.

    >>> import flowbook as fb
    >>> x = fb.SparseTensor([[0, 1], [2, 0]], [5, 7], [3, 4])
    >>> filled, was_empty = fb.sparse.fill_empty_rows(x, -1)
    >>> with fb.Session() as sess:
    ...     print(sess.run([filled.values, was_empty]))
    [array([ 5, -1,  7], dtype=int32), array([False,  True, False])]
    """
    x = SparseTensor.from_value(sp_input)
    default = convert_to_tensor(default_value, x.dtype)
    if default.shape.rank not in (None, 0):
        raise InvalidArgumentError(f"the default is a scalar, not of {default.shape}")
    indices, places, is_empty = sparse_fill_empty_rows(x.indices, x.dense_shape)
    values = sparse_take(concat_op([x.values, reshape_op(default, [1])], axis=0), places)
    return FilledRows(SparseTensor(indices, values, x.dense_shape), is_empty)


# Another dense shape


def _bounds(xp: Any, indices: Any) -> Any:
    if indices.ndim != 2:
        raise InvalidArgumentError(f"indices have the shape [n, r], not {list(indices.shape)}")
    if not len(indices):
        return xp.zeros(indices.shape[1], dtype=np.int64)
    return indices.max(axis=0) + 1


sparse_bounds = OpDef(
    "SparseBounds",
    "indices: int64 -> dense_shape: int64",
    infer=lambda indices: Shape.of((rank_of(indices),)),
    kernel=_bounds,
    only_moves=True,
    doc="The smallest dense shape that indices lie in.",
)


def _check_reset(dims: tuple[int | None, ...], new: tuple[int | None, ...]) -> None:
    if len(dims) != len(new):
        raise InvalidArgumentError(
            f"the new shape {Shape.of(new)} has another rank than {Shape.of(dims)}"
        )
    for i, (old, wanted) in enumerate(zip(dims, new, strict=True)):
        if old is not None and wanted is not None and wanted < old:
            raise InvalidArgumentError(
                f"the new shape {Shape.of(new)} is smaller than {Shape.of(dims)} in dimension {i}"
            )


def _reset_shape(dense_shape: Tensor, new_shape: Tensor) -> Shape:
    found = [constant_value(t) for t in (dense_shape, new_shape)]
    if found[0] is not None and found[1] is not None:
        _check_reset(checked_dims(found[0]), checked_dims(found[1], "new shape"))
    return dense_shape.shape.merge(new_shape.shape)


def _reset(xp: Any, dense_shape: Any, new_shape: Any) -> Any:
    _check_reset(checked_dims(dense_shape), checked_dims(new_shape, "new shape"))
    return xp.asarray(new_shape)


sparse_reset_shape = OpDef(
    "SparseResetShape",
    "dense_shape: int64, new_shape: int64 -> output: int64",
    infer=_reset_shape,
    kernel=_reset,
    host_args=("dense_shape", "new_shape"),
    aliases={0: 1},
    only_moves=True,
    doc="The new dense shape, which is seen to be nowhere smaller.",
)


@composed("SparseResetShape")
def reset_shape(sp_input: Any, new_shape: Any = None, name: str | None = None) -> SparseTensor:
    """The same elements at the same indices in another dense shape.

    Args:
        sp_input: a SparseTensor.
        new_shape: the dense shape, nowhere smaller than the old one; by default the smallest that
            all indices lie in.

    Raises:
        InvalidArgumentError: if the new shape has another rank or is smaller somewhere; in the
            run, where it is known only then.
    """
    x = SparseTensor.from_value(sp_input)
    if new_shape is None:
        return SparseTensor(x.indices, x.values, sparse_bounds(x.indices))
    wanted = int64_vector(new_shape)
    shape = sparse_reset_shape(x.dense_shape, wanted)
    known = constant_value(wanted)
    if known is not None and x.shape.is_fully_defined:
        shape = known_shape(shape, Shape(known.tolist()))
    return SparseTensor(x.indices, x.values, shape)
