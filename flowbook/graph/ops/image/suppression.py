"""Choosing among bounding boxes that overlap.

A box is [y1, x1, y2, x2] in any unit. The one of the highest score is taken, all that overlap with
it too much are dropped, and so on with those that are left. Of equal scores the first comes first;
NaN is never taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.inference import constant_value
from flowbook.graph.definition.op_def import HOST, NO_GRADIENT, OpDef
from flowbook.graph.model.dtypes import FLOATS
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.padding import pad
from flowbook.graph.ops.basis.shaping import size
from flowbook.graph.ops.checks.checking import ensure_shape

__all__ = [
    "non_max_suppression",
    "non_max_suppression_overlaps",
    "non_max_suppression_padded",
    "non_max_suppression_with_scores",
]


def _check_boxes(boxes: Any, scores: Any) -> None:
    """The same for tensors as for arrays."""
    if not Shape(boxes.shape).is_compatible_with((None, 4)):
        raise InvalidArgumentError(f"boxes are [boxes, 4], not of shape {Shape(boxes.shape)}")
    count = Shape(boxes.shape).dims
    if not Shape(scores.shape).is_compatible_with((count and count[0],)):
        raise InvalidArgumentError(
            f"each of {count and count[0]} boxes has a score, so the shape of scores is not "
            f"{Shape(scores.shape)}"
        )


def check_limits(max_output_size: Any, iou_threshold: Any, score_threshold: Any) -> None:
    """See that limits, None where one is not known, are scalars in their ranges.

    Raises:
        InvalidArgumentError: if they are not.
    """
    limits = {
        "max_output_size": max_output_size,
        "iou_threshold": iou_threshold,
        "score_threshold": score_threshold,
    }
    for name, limit in limits.items():
        if limit is not None and limit.ndim:
            raise InvalidArgumentError(f"{name!r} is a scalar, not of shape {list(limit.shape)}")
    if max_output_size is not None and max_output_size < 0:
        raise InvalidArgumentError(f"max_output_size is not negative: {int(max_output_size)}")
    if iou_threshold is not None and not 0 <= iou_threshold <= 1:
        raise InvalidArgumentError(f"iou_threshold is from 0 to 1, not {float(iou_threshold)}")


def _selected_shape(boxes: Tensor, scores: Tensor, *limits: Tensor) -> Shape:
    _check_boxes(boxes, scores)
    check_limits(*(constant_value(limit) for limit in limits))
    return Shape.of((None,))


# Of one box and some others: how much it overlaps with each, between 0 and 1.
Overlap = Callable[[int, Any], Any]


def chosen(
    xp: Any,
    scores: Any,
    most: Any,
    overlap_threshold: Any,
    score_threshold: Any,
    overlap: Overlap,
    sigma: float = 0.0,
) -> tuple[list[int], list[Any]]:
    """The boxes that are taken from the best on, and the scores that they had when they were."""
    candidates = xp.flatnonzero(scores > score_threshold)
    current = scores[candidates]
    found: list[int] = []
    having: list[Any] = []
    while candidates.size and len(found) < most:
        k = int(xp.argmax(current))
        found.append(int(candidates[k]))
        having.append(current[k])
        shared = overlap(found[-1], candidates)
        if sigma:
            current = current * xp.exp(shared * shared * (-0.5 / sigma)).astype(current.dtype)
        keep = ~(shared > overlap_threshold) & (current > score_threshold)
        keep[k] = False
        candidates, current = candidates[keep], current[keep]
    return found, having


def comparing_flops(scores: Shape, most: Tensor, each: int) -> int:
    """What `chosen` takes at most: every box that is taken is compared with all others.

    Args:
        scores: [..., boxes].
        most: how many are taken.
        each: the operations for each pair.
    """
    if scores.size is None or not scores.dims:
        return 0
    boxes, limit = scores.dims[-1] or 0, constant_value(most)
    return each * scores.size * (boxes if limit is None else min(boxes, int(limit)))


def intersections(xp: Any, boxes: Any) -> Overlap:
    """Intersection over union, of boxes in any unit."""
    # Areas of halves would overflow.
    boxes = boxes.astype(xp.promote_types(boxes.dtype, np.float32))
    low, high = xp.minimum(boxes[:, :2], boxes[:, 2:]), xp.maximum(boxes[:, :2], boxes[:, 2:])
    area = (high - low).prod(axis=1)

    def overlap(best: int, others: Any) -> Any:
        sides = xp.minimum(high[best], high[others]) - xp.maximum(low[best], low[others])
        shared = xp.maximum(sides, 0).prod(axis=1)
        together = area[best] + area[others] - shared
        # Boxes without an area overlap with nothing.
        return xp.divide(shared, together, out=xp.zeros_like(shared), where=shared > 0)

    return overlap


def _selected(
    xp: Any, boxes: Any, scores: Any, max_output_size: Any, iou_threshold: Any, score_threshold: Any
) -> Any:
    _check_boxes(boxes, scores)
    check_limits(max_output_size, iou_threshold, score_threshold)
    limits = max_output_size, iou_threshold, score_threshold
    return xp.array(chosen(xp, scores, *limits, intersections(xp, boxes))[0], np.int32)


non_max_suppression_op = OpDef(
    "NonMaxSuppression",
    "boxes: T, scores: T, max_output_size: int32, iou_threshold: T, score_threshold: T"
    " -> selected_indices: int32",
    T=FLOATS,
    infer=_selected_shape,
    kernel=_selected,
    kinds=HOST,
    host_args=("max_output_size", "iou_threshold", "score_threshold"),
    cost=lambda op: comparing_flops(op.inputs[1].shape, op.inputs[2], each=16),
)


@non_max_suppression_op.front
def non_max_suppression(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = -math.inf,
    name: str | None = None,
) -> Tensor:
    """The best boxes, without those that overlap with a better one.

    The box of the highest score is taken, all that overlap with it too much are dropped, and so on
    with those that are left. Of equal scores the first comes first; NaN is never taken.

    Args:
        boxes: [boxes, 4] of a floating-point dtype, each [y1, x1, y2, x2] of two opposite corners
            in any unit.
        scores: [boxes] of the same dtype.
        max_output_size: how many to take at most, an int or an int32 scalar tensor.
        iou_threshold: in [0, 1]: drop a box whose intersection with a better one exceeds this part
            of their union.
        score_threshold: take only boxes of higher scores.

    Returns:
        int32 [taken], the indices of the boxes from the best on; how many only the run knows.

    Raises:
        InvalidArgumentError: if shapes or limits do not fit; in the run, where they are known
            only then.

    >>> import flowbook as fb
    >>> boxes = [[0.0, 0.0, 4.0, 4.0], [0.0, 0.5, 4.0, 4.5], [6.0, 6.0, 9.0, 9.0]]
    >>> best = fb.image.non_max_suppression(boxes, [0.6, 0.9, 0.7], 10)
    >>> with fb.Session() as sess:
    ...     print(sess.run(best))
    [1 2]
    """
    limits = max_output_size, iou_threshold, score_threshold
    return non_max_suppression_op(boxes, scores, *limits, name=name)


@composed
def non_max_suppression_padded(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = -math.inf,
    pad_to_max_output_size: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """The best boxes, as of `non_max_suppression`, and how many they are.

    Args:
        boxes: as for `non_max_suppression`, and so are the following.
        scores: [boxes].
        max_output_size: how many to take at most.
        iou_threshold: what part of their union two boxes may share.
        score_threshold: take only boxes of higher scores.
        pad_to_max_output_size: fill the indices up with zeros to `max_output_size`.

    Returns:
        `(selected_indices, valid_outputs)`: int32 [taken], or [max_output_size]; and how many of
        them are boxes, an int32 scalar.
    """
    most = convert_to_tensor(max_output_size)
    found = non_max_suppression(boxes, scores, most, iou_threshold, score_threshold)
    count = size(found)
    if not pad_to_max_output_size:
        return found, count
    padded = pad(found, [[0, most - count]])
    known = constant_value(most)
    length = [None] if known is None else [int(known)]
    return ensure_shape(padded, length), count


def _scored_shapes(boxes: Tensor, scores: Tensor, *limits: Tensor) -> list[Shape]:
    return [_selected_shape(boxes, scores, *limits[:-1])] * 2


def _scored(
    xp: Any,
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any,
    score_threshold: Any,
    soft_nms_sigma: Any,
) -> tuple[Any, Any]:
    _check_boxes(boxes, scores)
    check_limits(max_output_size, iou_threshold, score_threshold)
    if soft_nms_sigma.ndim or not soft_nms_sigma >= 0:
        raise InvalidArgumentError(f"soft_nms_sigma is a number from 0 on, not {soft_nms_sigma}")
    limits = max_output_size, iou_threshold, score_threshold
    sigma = float(soft_nms_sigma)
    found, having = chosen(xp, scores, *limits, intersections(xp, boxes), sigma)
    return xp.array(found, np.int32), xp.array(having, scores.dtype)


with_scores_op: OpDef[tuple[Tensor, Tensor]] = OpDef(
    "NonMaxSuppressionWithScores",
    "boxes: T, scores: T, max_output_size: int32, iou_threshold: T, score_threshold: T,"
    " soft_nms_sigma: T -> selected_indices: int32, selected_scores: T",
    T=FLOATS,
    infer=_scored_shapes,
    kernel=_scored,
    kinds=HOST,
    host_args=("max_output_size", "iou_threshold", "score_threshold", "soft_nms_sigma"),
    grad=NO_GRADIENT,
    cost=lambda op: comparing_flops(op.inputs[1].shape, op.inputs[2], each=30),
)


@with_scores_op.front
def non_max_suppression_with_scores(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = -math.inf,
    soft_nms_sigma: Any = 0.0,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """The best boxes and their scores, which may fall with what they share with better ones.

    Args:
        boxes: as for `non_max_suppression`, and so are the following.
        scores: [boxes].
        max_output_size: how many to take at most.
        iou_threshold: what part of their union two boxes may share; 1 where scores are to decide.
        score_threshold: take only boxes of higher scores.
        soft_nms_sigma: if it is not 0, a score is multiplied by `exp(-overlap ** 2 / (2 * sigma))`
            for each better box that is taken.

    Returns:
        `(selected_indices, selected_scores)`: int32 [taken], from the best on; and the scores that
        they were taken with.

    Source: Bodla et al., "Soft-NMS: improving object detection with one line of code", 2017.

    >>> import flowbook as fb
    >>> boxes = [[0.0, 0.0, 4.0, 4.0], [0.0, 0.0, 4.0, 4.0], [6.0, 6.0, 9.0, 9.0]]
    >>> best, scores = fb.image.non_max_suppression_with_scores(
    ...     boxes, [0.9, 0.8, 0.7], 10, iou_threshold=1.0, soft_nms_sigma=0.5
    ... )
    >>> with fb.Session() as sess:
    ...     print(sess.run(best), sess.run(scores).round(3))
    [0 2 1] [0.9   0.7   0.294]
    """
    limits = max_output_size, iou_threshold, score_threshold, soft_nms_sigma
    found, having = with_scores_op(boxes, scores, *limits, name=name)
    return found, having


def _check_overlaps(overlaps: Any, scores: Any) -> None:
    count = Shape(scores.shape).with_rank(1).dims
    assert count is not None
    if not Shape(overlaps.shape).is_compatible_with(count * 2):
        raise InvalidArgumentError(
            f"overlaps are [boxes, boxes] and scores [boxes], not {Shape(overlaps.shape)} and "
            f"{Shape(scores.shape)}"
        )


def _overlapping_shape(overlaps: Tensor, scores: Tensor, *limits: Tensor) -> Shape:
    _check_overlaps(overlaps, scores)
    check_limits(*(constant_value(limit) for limit in limits))
    return Shape.of((None,))


def _overlapping(
    xp: Any, overlaps: Any, scores: Any, most: Any, threshold: Any, score_threshold: Any
) -> Any:
    _check_overlaps(overlaps, scores)
    check_limits(most, threshold, score_threshold)
    limits = most, threshold, score_threshold
    found, _ = chosen(xp, scores, *limits, lambda best, others: overlaps[others, best])
    return xp.array(found, np.int32)


overlaps_op = OpDef(
    "NonMaxSuppressionWithOverlaps",
    "overlaps: T, scores: T, max_output_size: int32, overlap_threshold: T, score_threshold: T"
    " -> selected_indices: int32",
    T=FLOATS,
    infer=_overlapping_shape,
    kernel=_overlapping,
    kinds=HOST,
    host_args=("max_output_size", "overlap_threshold", "score_threshold"),
    cost=lambda op: comparing_flops(op.inputs[1].shape, op.inputs[2], each=4),
)


@overlaps_op.front
def non_max_suppression_overlaps(
    overlaps: Any,
    scores: Any,
    max_output_size: Any,
    overlap_threshold: Any = 0.5,
    score_threshold: Any = -math.inf,
    name: str | None = None,
) -> Tensor:
    """The best of what overlaps in any sense, without what overlaps with a better one.

    Args:
        overlaps: [boxes, boxes] of a floating-point dtype: in the row of each how much it overlaps
            with the others, which is symmetric or not. The row of what may be dropped counts.
        scores: [boxes] of the same dtype.
        max_output_size: how many to take at most, an int or an int32 scalar tensor.
        overlap_threshold: in [0, 1]: drop what overlaps with a better one by more.
        score_threshold: take only what has higher scores.

    Returns:
        int32 [taken], the indices from the best on; how many only the run knows.
    """
    limits = max_output_size, overlap_threshold, score_threshold
    return overlaps_op(overlaps, scores, *limits, name=name)
