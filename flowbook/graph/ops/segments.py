"""Sums over rows that share a segment."""

from __future__ import annotations

from typing import Any

from flowbook.graph.dtypes import INDICES, NUMBERS
from flowbook.graph.errors import InvalidArgumentError, OutOfRangeError
from flowbook.graph.op_def import OpDef
from flowbook.graph.operation import Operation
from flowbook.graph.ops.indexing import strided_slice
from flowbook.graph.ops.inference import constant_value
from flowbook.graph.ops.shaping import shape_op
from flowbook.graph.shape import UNKNOWN, Shape
from flowbook.graph.tensor import Tensor


def _segments_shape(data: Tensor, segment_ids: Tensor, num_segments: Tensor) -> Shape:
    if num_segments.shape.rank not in (None, 0):
        raise InvalidArgumentError(f"'num_segments' is a scalar, not of shape {num_segments.shape}")
    ids, rows = segment_ids.shape.dims, data.shape.dims
    if ids is None or rows is None:
        return UNKNOWN
    if not Shape.of(rows[: len(ids)]).is_compatible_with(segment_ids.shape):
        raise InvalidArgumentError(
            f"the shape {data.shape} of the data does not begin with the shape "
            f"{segment_ids.shape} of the segment ids"
        )
    known = constant_value(num_segments)
    if known is not None:
        _check_count(int(known))
    return Shape.of((None if known is None else int(known), *rows[len(ids) :]))


def _check_count(count: int) -> int:
    if count < 0:
        raise InvalidArgumentError(f"the number of segments is not negative: {count}")
    return count


def _segment_sum(xp: Any, data: Any, segment_ids: Any, num_segments: Any) -> Any:
    if data.shape[: segment_ids.ndim] != segment_ids.shape:
        raise InvalidArgumentError(
            f"the shape {list(data.shape)} of the data does not begin with the shape "
            f"{list(segment_ids.shape)} of the segment ids"
        )
    count = _check_count(int(num_segments))
    ids = xp.reshape(segment_ids, (-1,))
    row = data.shape[segment_ids.ndim :]
    result = xp.zeros((count, *row), dtype=data.dtype)
    if not ids.size:
        return result
    if ids.max() >= count:
        raise OutOfRangeError(f"segment id {ids.max()} is out of range: there are {count}, from 0")
    rows = xp.reshape(data, (ids.size, *row))
    if ids.min() < 0:
        kept = ids >= 0
        ids, rows = ids[kept], rows[kept]
    if row:
        _add_rows(xp, result, ids, rows)
    else:
        xp.add.at(result, ids, rows)
    return result


def _add_rows(xp: Any, result: Any, ids: Any, rows: Any) -> None:
    """Sum rows in runs of equal ids: much faster than adding them one by one."""
    if not ids.size:
        return
    order = xp.argsort(ids, kind="stable")
    ordered = ids[order]
    starts = xp.concatenate([xp.zeros(1, int), xp.flatnonzero(ordered[1:] != ordered[:-1]) + 1])
    result[ordered[starts]] = xp.add.reduceat(rows[order], starts, axis=0, dtype=rows.dtype)


def _segment_sum_gradient(op: Operation, dy: Tensor) -> Any:
    return unsorted_segment_take(dy, op.inputs[1]), None, None


unsorted_segment_sum = OpDef(
    "UnsortedSegmentSum",
    "data: T, segment_ids: I, num_segments: S -> output: T",
    T=NUMBERS,
    I=INDICES,
    S=INDICES,
    infer=_segments_shape,
    kernel=_segment_sum,
    grad=_segment_sum_gradient,
    aliases={},
    cost=lambda op: op.inputs[0].shape.size or 0,
    doc="""For each segment the sum of its rows.

    Args:
        data: of a number dtype; its shape begins with that of `segment_ids`.
        segment_ids: int32 or int64 of any shape, in any order: which segment each row belongs to.
            Rows with a negative id belong to none.
        num_segments: an int scalar.

    Returns:
        A tensor of shape `[num_segments] + data.shape[segment_ids.rank:]`, zero for empty segments.

    Raises:
        OutOfRangeError: in the run, if an id is not below `num_segments`.

    >>> import flowbook as fb
    >>> sums = fb.unsorted_segment_sum([1.0, 2.0, 4.0], [1, 0, 1], 3)
    >>> with fb.Session() as sess:
    ...     print(sess.run(sums))
    [2. 5. 0.]
    """,
)


def _taken_shape(segments: Tensor, segment_ids: Tensor) -> Shape:
    if segments.shape.dims is None:
        return UNKNOWN
    return segment_ids.shape.concatenate(segments.shape.dims[1:])


def _take(xp: Any, segments: Any, segment_ids: Any) -> Any:
    if not segment_ids.size:
        return xp.zeros((*segment_ids.shape, *segments.shape[1:]), dtype=segments.dtype)
    if segment_ids.max() >= segments.shape[0]:
        raise OutOfRangeError(
            f"segment id {segment_ids.max()} is out of range: there are {segments.shape[0]}, from 0"
        )
    if segment_ids.min() >= 0:
        return xp.take(segments, segment_ids, axis=0)
    if not segments.shape[0]:
        return xp.zeros((*segment_ids.shape, *segments.shape[1:]), dtype=segments.dtype)
    taken = xp.take(segments, xp.maximum(segment_ids, 0), axis=0)
    taken[segment_ids < 0] = 0
    return taken


unsorted_segment_take = OpDef(
    "UnsortedSegmentTake",
    "segments: T, segment_ids: I -> output: T",
    T=NUMBERS,
    I=INDICES,
    infer=_taken_shape,
    kernel=_take,
    grad=lambda op, dy: (
        unsorted_segment_sum(dy, op.inputs[1], strided_slice(shape_op(op.inputs[0]), 0)),
        None,
    ),
    aliases={},
    cost=lambda op: 0,
    doc="The segment of each row, zeros for negative ids: the gradient of `unsorted_segment_sum`.",
)
