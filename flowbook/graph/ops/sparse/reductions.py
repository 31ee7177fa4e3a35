"""Reductions of sparse tensors that give sparse ones: elements only where there were some."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowbook.graph.definition.axes import all_in_range, as_axes
from flowbook.graph.definition.composed import composed
from flowbook.graph.model.dtypes import bool as bool_
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.arrays.masking import boolean_mask
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.filling import zeros_like
from flowbook.graph.ops.basis.indexing import strided_slice
from flowbook.graph.ops.basis.joining import concat, stack
from flowbook.graph.ops.basis.shaping import shape_op
from flowbook.graph.ops.basis.sparse_tensor import SparseTensor
from flowbook.graph.ops.math.comparison import where
from flowbook.graph.ops.reduction.segments import unsorted_segment_max, unsorted_segment_sum
from flowbook.graph.ops.sparse.arithmetic import sparse_union
from flowbook.graph.ops.sparse.arranging import known_rank
from flowbook.graph.ops.sparse.axes import dims_beside

__all__ = ["reduce_max_sparse", "reduce_sum_sparse"]


def _of_known_rank(
    x: SparseTensor, axes: tuple[int, ...] | None, keepdims: bool
) -> tuple[Tensor, Any]:
    """The indices of a reduction before equal ones are combined, and its shape."""
    rank = known_rank(x)
    gone = range(rank) if axes is None else all_in_range(axes, rank)
    columns: list[Tensor] = []
    dims: list[Any] = []
    for k in range(rank):
        column = x.indices[:, k : k + 1]
        if k not in gone:
            columns.append(column)
            dims.append(strided_slice(x.dense_shape, k))
        elif keepdims:
            columns.append(zeros_like(column))
            dims.append(np.int64(1))
    shape = stack(dims) if dims else np.zeros(0, np.int64)
    return concat(columns, 1) if columns else x.indices[:, :0], shape


def _of_any_rank(
    x: SparseTensor, axes: tuple[int, ...] | None, keepdims: bool
) -> tuple[Tensor, Tensor]:
    stays = zeros_like(x.dense_shape, bool_) if axes is None else dims_beside(x, axes)
    if keepdims:
        indices = x.indices * cast(stays, x.indices.dtype)
        return indices, where(stays, x.dense_shape, np.int64(1))
    return boolean_mask(x.indices, stays, axis=1), boolean_mask(x.dense_shape, stays)


def _reduced(
    combine: Callable[..., Tensor], sp_input: Any, axis: Any, keepdims: bool
) -> SparseTensor:
    x = SparseTensor.from_value(sp_input)
    taken = _of_any_rank if x.shape.rank is None else _of_known_rank
    indices, shape = taken(x, as_axes(axis), keepdims)
    none = strided_slice(indices, np.s_[:0])
    found, segments = sparse_union(indices, shape, none, shape)
    values = combine(x.values, segments, strided_slice(shape_op(found), 0))
    return SparseTensor(found, values, shape)


@composed("SparseReduceSumSparse")
def reduce_sum_sparse(
    sp_input: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> SparseTensor:
    """The sum of a sparse tensor over axes, as a sparse tensor.

    Args:
        sp_input: a SparseTensor of a number dtype.
        axis: an int or a list of them, negative ones from the last; by default all.
        keepdims: whether reduced dimensions stay, as 1.

    >>> import flowbook as fb
    >>> x = fb.SparseTensor([[0, 1], [2, 0], [2, 1]], [5, 7, 1], [3, 2])
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.sparse.reduce_sum_sparse(x, axis=1)).values)
    [5 8]
    """
    return _reduced(unsorted_segment_sum, sp_input, axis, keepdims)


@composed("SparseReduceMaxSparse")
def reduce_max_sparse(
    sp_input: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> SparseTensor:
    """The greatest element of a sparse tensor over axes, as a sparse tensor.

    What is not there does not count as zero. Arguments as for `reduce_sum_sparse`.
    """
    return _reduced(unsorted_segment_max, sp_input, axis, keepdims)
