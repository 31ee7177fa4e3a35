"""Reductions of sparse tensors that give sparse ones: elements only where there were some."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowbook.graph.ops.axes import all_in_range, as_axes
from flowbook.graph.ops.filling import zeros_like
from flowbook.graph.ops.indexing import strided_slice
from flowbook.graph.ops.joining import concat, stack
from flowbook.graph.ops.located import located
from flowbook.graph.ops.segments import unsorted_segment_max, unsorted_segment_sum
from flowbook.graph.ops.shaping import shape_op
from flowbook.graph.ops.sparse_arithmetic import sparse_union
from flowbook.graph.ops.sparse_arranging import known_rank
from flowbook.graph.scopes import name_scope
from flowbook.graph.sparse_tensor import SparseTensor
from flowbook.graph.tensor import Tensor


def _reduced(
    what: str,
    combine: Callable[..., Tensor],
    sp_input: Any,
    axis: Any,
    keepdims: bool,
    name: str | None,
) -> SparseTensor:
    __tracebackhide__ = True
    x = SparseTensor.from_value(sp_input)
    with x.graph.as_default(), name_scope(name or what), located(what):
        rank = known_rank(x)
        axes = as_axes(axis)
        gone = range(rank) if axes is None else all_in_range(axes, rank)
        columns, dims = [], []
        for k in range(rank):
            column = x.indices[:, k : k + 1]
            if k not in gone:
                columns.append(column)
                dims.append(strided_slice(x.dense_shape, k))
            elif keepdims:
                columns.append(zeros_like(column))
                dims.append(np.int64(1))
        none = np.zeros((0, len(dims)), np.int64)
        shape = stack(dims) if dims else np.zeros(0, np.int64)
        indices = concat(columns, 1) if columns else x.indices[:, :0]
        found, segments = sparse_union(indices, shape, none, shape)
        values = combine(x.values, segments, strided_slice(shape_op(found), 0))
        return SparseTensor(found, values, shape)


def reduce_sum_sparse(
    sp_input: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> SparseTensor:
    """The sum of a sparse tensor over axes, as a sparse tensor.

    Args:
        sp_input: a SparseTensor of a number dtype, of known rank.
        axis: an int or a list of them, negative ones from the last; by default all.
        keepdims: whether reduced dimensions stay, as 1.
        name: the name scope.

    >>> import flowbook as fb
    >>> x = fb.SparseTensor([[0, 1], [2, 0], [2, 1]], [5, 7, 1], [3, 2])
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.sparse.reduce_sum_sparse(x, axis=1)).values)
    [5 8]
    """
    __tracebackhide__ = True
    how = sp_input, axis, keepdims, name
    return _reduced("SparseReduceSumSparse", unsorted_segment_sum, *how)


def reduce_max_sparse(
    sp_input: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> SparseTensor:
    """The greatest element of a sparse tensor over axes, as a sparse tensor.

    What is not there does not count as zero. Arguments as for `reduce_sum_sparse`.
    """
    __tracebackhide__ = True
    how = sp_input, axis, keepdims, name
    return _reduced("SparseReduceMaxSparse", unsorted_segment_max, *how)
