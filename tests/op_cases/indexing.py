"""Parts of tensors: slices, gathers, segments."""

from __future__ import annotations

import numpy as np

from flowbook.graph.ops import (
    gathering,
    indexing,
    segments,
)
from tests.op_cases.case import (
    CUBE,
    NONE,
    SOME,
    Case,
    f,
    i,
)

KEY = (slice(None, None, -2), None, Ellipsis, -1)

CASES = [
    Case(
        "StridedSlice",
        lambda x: indexing.strided_slice(x, KEY),
        [CUBE],
        lambda x: x[::-2, None, ..., -1],
        [0],
        empty=[np.zeros((2, 0, 4))],
    ),
    Case(
        "StridedSlice",
        lambda x, a, b: indexing.strided_slice(x, (a, slice(b, None, 2))),
        [CUBE, np.int64(1), i(-2)],
        lambda x, a, b: x[1, -2::2],
        [0],
        by_value=True,
        note="tensors",
    ),
    Case(
        "StridedSlice",
        lambda x: indexing.strided_slice(x, 1),
        [f(2.0, 3.0)],
        lambda x: x[1],
        [0],
        note="element",
    ),
    Case(
        "StridedSliceGrad",
        lambda dy, s: indexing.strided_slice_gradient_op(dy, s, [], key=(("slice", 1, 3, None),)),
        [f(2.0, 3.0), i([4])],
        lambda dy, s: np.pad(dy, 1) if dy.size else dy,
        [0],
        fixed=[1],
        empty=[f(2.0, 3.0)[:0], i([0])],
    ),
    Case(
        "Slice",
        indexing.slice,
        [CUBE, i([1, 0, 2]), i([1, -1, 2])],
        lambda x, b, s: x[1:, :, 2:],
        [0],
        fixed=[1, 2],
        empty=[np.zeros((2, 0)), i([0, 0]), i([2, -1])],
    ),
    Case(
        "Gather",
        gathering.gather,
        [SOME, i([[1, 0], [1, 1]])],
        lambda x, k: x[k],
        [0],
        empty=[SOME, i([[], []])],
    ),
    Case(
        "Gather",
        lambda x, k: gathering.gather(x, k, -1),
        [SOME, i([2, 0, 2])],
        lambda x, k: x[:, [2, 0, 2]],
        [0],
        note="axis",
    ),
    Case(
        "GatherGrad",
        lambda dy, k, s: gathering.gather_gradient_op(dy, k, s, axis=1),
        [SOME, i([1, 0, 1]), i([2, 2])],
        lambda dy, k, s: np.stack([dy[:, 1], dy[:, 0] + dy[:, 2]], 1),
        [0],
        fixed=[2],
        empty=[np.zeros((2, 0)), i([]), i([2, 2])],
    ),
    Case(
        "OneHot",
        lambda k, n, a, b: gathering.one_hot(k, n, a, b, axis=0),
        [i([0, 2, 3, -1]), i(3), f(2.0), f(-1.0)],
        lambda k, n, a, b: np.where(np.arange(n)[:, None] == k, a, b),
        fixed=[1],
        empty=[i([]), i(3), f(2.0), f(-1.0)],
    ),
    Case(
        "UnsortedSegmentSum",
        segments.unsorted_segment_sum,
        [f([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]), i([2, 0, -1, 2]), i(4)],
        lambda x, k, n: np.stack([x[1], 0 * x[0], x[0] + x[3], 0 * x[0]]),
        [0],
        fixed=[2],
        empty=[np.zeros((0, 2)), i([]), i(4)],
    ),
    Case(
        "UnsortedSegmentSum",
        segments.unsorted_segment_sum,
        [SOME, i([[2, 0, -1], [2, 0, 1]]), np.int64(3)],
        lambda x, k, n: np.stack([x[0, 1] + x[1, 1], x[1, 2], x[0, 0] + x[1, 0]]),
        [0],
        fixed=[2],
        note="of-scalars",
    ),
    Case(
        "UnsortedSegmentTake",
        segments.unsorted_segment_take,
        [SOME, i([1, -1, 0])],
        lambda x, k: np.stack([x[1], 0 * x[0], x[0]]),
        [0],
        empty=[NONE, i([])],
    ),
]
