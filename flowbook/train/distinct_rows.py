"""Sparse gradients in which every row is named once."""

from __future__ import annotations

from flowbook.graph.ops.arrays.indexed_slices import IndexedSlices
from flowbook.graph.ops.arrays.uniqueness import unique
from flowbook.graph.ops.basis.shaping import size
from flowbook.graph.ops.reduction.segments import unsorted_segment_sum


def distinct_rows(gradient: IndexedSlices) -> IndexedSlices:
    """The same gradient, with the rows that are named several times summed.

    It costs by the number of rows, whatever the size of the whole.

    Args:
        gradient: rows in any order.

    Returns:
        The sums, each row named once.
    """
    indices, places = unique(gradient.indices)
    rows = unsorted_segment_sum(gradient.values, places, size(indices))
    return IndexedSlices(rows, indices, gradient.dense_shape)
