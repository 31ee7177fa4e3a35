"""Sparse gradients in which every row is named once."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph import dtypes
from flowbook.graph.indexed_slices import IndexedSlices
from flowbook.graph.ops.functions import py_func
from flowbook.graph.ops.segments import unsorted_segment_sum
from flowbook.graph.ops.shaping import size


def distinct_rows(gradient: IndexedSlices) -> IndexedSlices:
    """The same gradient, with the rows that are named several times summed.

    It costs by the number of rows, whatever the size of the whole.

    Args:
        gradient: rows in any order.

    Returns:
        The sums, each row named once.
    """

    def _unique(ids: Any) -> Any:
        a, b = np.unique(ids, return_inverse=True)
        return a, b.astype(np.int32)

    kinds = [gradient.indices.dtype, dtypes.int32]
    indices, positions = py_func(_unique, [gradient.indices], kinds, stateful=False)
    indices, positions = (x for x in (indices, positions))
    rows = unsorted_segment_sum(gradient.values, positions, size(indices))
    return IndexedSlices(rows, indices, gradient.dense_shape)
