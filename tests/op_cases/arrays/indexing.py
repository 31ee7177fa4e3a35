"""Parts of tensors: slices, gathers, segments."""

from __future__ import annotations

import numpy as np

from flowbook.graph.ops.arrays import gathering
from flowbook.graph.ops.basis import indexing, padding
from flowbook.graph.ops.reduction import segments
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
        tensorflow=lambda tf, x: tf.constant(x)[::-2, None, ..., -1],
    ),
    Case(
        "StridedSlice",
        lambda x, a, b: indexing.strided_slice(x, (a, slice(b, None, 2))),
        [CUBE, np.int64(1), i(-2)],
        lambda x, a, b: x[1, -2::2],
        [0],
        by_value=True,
        tensorflow=lambda tf, x, a, b: tf.constant(x)[a, b::2],
        note="tensors",
    ),
    Case(
        "StridedSlice",
        lambda x: indexing.strided_slice(x, 1),
        [f(2.0, 3.0)],
        lambda x: x[1],
        [0],
        tensorflow=lambda tf, x: tf.constant(x)[1],
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
        tensorflow=lambda tf, dy, s: tf.raw_ops.StridedSliceGrad(
            shape=s, begin=[1], end=[3], strides=[1], dy=dy
        ),
    ),
    Case(
        "Slice",
        padding.slice,
        [CUBE, i([1, 0, 2]), i([1, -1, 2])],
        lambda x, b, s: x[1:, :, 2:],
        [0],
        fixed=[1, 2],
        empty=[np.zeros((2, 0)), i([0, 0]), i([2, -1])],
        tensorflow=lambda tf, x, b, s: tf.slice(x, b, s),
    ),
    Case(
        "Gather",
        gathering.gather,
        [SOME, i([[1, 0], [1, 1]])],
        lambda x, k: x[k],
        [0],
        empty=[SOME, i([[], []])],
        tensorflow=lambda tf, x, k: tf.gather(x, k),
    ),
    Case(
        "Gather",
        lambda x, k: gathering.gather(x, k, -1),
        [SOME, i([2, 0, 2])],
        lambda x, k: x[:, [2, 0, 2]],
        [0],
        tensorflow=lambda tf, x, k: tf.gather(x, k, axis=-1),
        note="axis",
    ),
    Case(
        "Gather",
        lambda x, k: gathering.gather(x, k, batch_dims=1),
        [CUBE, i([[2, 0], [1, 1]])],
        lambda x, k: np.stack([row[np.asarray(j, int)] for row, j in zip(x, k, strict=True)]),
        [0],
        empty=[CUBE, i([[], []])],
        tensorflow=lambda tf, x, k: tf.gather(x, k, batch_dims=1),
        note="batch",
    ),
    Case(
        "Gather",
        lambda x, k: gathering.gather(x, k, axis=2, batch_dims=1),
        [CUBE, i([[3, 0, 3], [1, 1, 2]])],
        lambda x, k: np.stack([x[0][:, [3, 0, 3]], x[1][:, [1, 1, 2]]]),
        [0],
        tensorflow=lambda tf, x, k: tf.gather(x, k, axis=2, batch_dims=1),
        note="batch-axis",
    ),
    Case(
        "Gather",
        lambda x, k: gathering.gather(x, k, axis=2, batch_dims=2),
        [CUBE, i([[3, 0, 2], [1, 1, 2]])],
        lambda x, k: np.take_along_axis(x, k[:, :, None], 2)[:, :, 0],
        [0],
        tensorflow=lambda tf, x, k: tf.gather(x, k, axis=2, batch_dims=2),
        note="batch-scalars",
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
        "GatherGrad",
        lambda dy, k, s: gathering.gather_gradient_op(dy, k, s, axis=1, batch_dims=1),
        [SOME, i([[1, 0, 1], [0, 0, 0]]), i([2, 2])],
        lambda dy, k, s: np.array([[dy[0, 1], dy[0, 0] + dy[0, 2]], [dy[1].sum(), 0]]),
        [0],
        fixed=[2],
        note="batch",
    ),
    Case(
        "OneHot",
        lambda k, n, a, b: gathering.one_hot(k, n, a, b, axis=0),
        [i([0, 2, 3, -1]), i(3), f(2.0), f(-1.0)],
        lambda k, n, a, b: np.where(np.arange(n)[:, None] == k, a, b),
        fixed=[1],
        empty=[i([]), i(3), f(2.0), f(-1.0)],
        tensorflow=lambda tf, k, n, a, b: tf.one_hot(k, n, a, b, axis=0),
    ),
    Case(
        "UnsortedSegmentSum",
        segments.unsorted_segment_sum,
        [f([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]), i([2, 0, -1, 2]), i(4)],
        lambda x, k, n: np.stack([x[1], 0 * x[0], x[0] + x[3], 0 * x[0]]),
        [0],
        fixed=[2],
        empty=[np.zeros((0, 2)), i([]), i(4)],
        tensorflow=lambda tf, x, k, n: tf.math.unsorted_segment_sum(x, k, n),
    ),
    Case(
        "UnsortedSegmentSum",
        segments.unsorted_segment_sum,
        [SOME, i([[2, 0, -1], [2, 0, 1]]), np.int64(3)],
        lambda x, k, n: np.stack([x[0, 1] + x[1, 1], x[1, 2], x[0, 0] + x[1, 0]]),
        [0],
        fixed=[2],
        tensorflow=lambda tf, x, k, n: tf.math.unsorted_segment_sum(x, k, n),
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
