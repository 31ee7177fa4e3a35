"""What a detector found: the best boxes of all classes, of each image of a batch."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from flowbook.graph.definition.inference import constant_value
from flowbook.graph.definition.op_def import HOST, NO_GRADIENT, REQUIRED, OpDef
from flowbook.graph.model.dtypes import FLOATS
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.image.suppression import (
    check_limits,
    chosen,
    comparing_flops,
    intersections,
)

__all__ = ["Detections", "combined_non_max_suppression"]


class Detections(NamedTuple):
    """The boxes that are left of each image, from the best on, and zeros behind them.

    Attributes:
        nmsed_boxes: [batch, detections, 4].
        nmsed_scores: [batch, detections].
        nmsed_classes: [batch, detections], of the scores' dtype.
        valid_detections: int32 [batch], how many there are.
    """

    nmsed_boxes: Tensor
    nmsed_scores: Tensor
    nmsed_classes: Tensor
    valid_detections: Tensor


def _check(boxes: Any, scores: Any) -> None:
    """The same for tensors as for arrays."""
    given, rated = Shape(boxes.shape), Shape(scores.shape)
    batch, count, classes = rated.with_rank(3).as_list()
    if not given.is_compatible_with((batch, count, None, 4)) or (
        given.dims and classes is not None and given.dims[2] not in (None, 1, classes)
    ):
        raise InvalidArgumentError(
            f"boxes are [batch, boxes, 1 or classes, 4] and scores [batch, boxes, classes], not of "
            f"shape {given} and {rated}"
        )


def _most(per_class: Any, total: Any, classes: Any, pad_per_class: bool) -> int | None:
    if total is None or (pad_per_class and (per_class is None or classes is None)):
        return None
    return min(int(total), int(per_class) * classes) if pad_per_class else int(total)


def _shapes(
    boxes: Tensor,
    scores: Tensor,
    per_class: Tensor,
    total: Tensor,
    iou_threshold: Tensor,
    score_threshold: Tensor,
    pad_per_class: bool,
    clip_boxes: bool,
) -> list[Shape]:
    _check(boxes, scores)
    each, all_ = constant_value(per_class), constant_value(total)
    limits = constant_value(iou_threshold), constant_value(score_threshold)
    check_limits(each, *limits)
    check_limits(all_, *limits)
    batch, _, classes = scores.shape.with_rank(3).as_list()
    most = _most(each, all_, classes, pad_per_class)
    return [Shape.of((batch, most, 4)), *[Shape.of((batch, most))] * 2, Shape.of((batch,))]


def _detected(
    xp: Any,
    boxes: Any,
    scores: Any,
    per_class: Any,
    total: Any,
    iou_threshold: Any,
    score_threshold: Any,
    pad_per_class: bool,
    clip_boxes: bool,
) -> tuple[Any, ...]:
    _check(boxes, scores)
    limits = iou_threshold, score_threshold
    check_limits(per_class, *limits)
    check_limits(total, *limits)
    batch, _, classes = scores.shape
    most = _most(per_class, total, classes, pad_per_class) or 0
    left = xp.zeros((batch, most, 4), boxes.dtype)
    rated, kinds = (xp.zeros((batch, most), scores.dtype) for _ in range(2))
    counts = xp.zeros(batch, np.int32)
    for image in range(batch):
        found: list[tuple[Any, int, int]] = []
        for kind in range(classes):
            own = boxes[image, :, min(kind, boxes.shape[2] - 1)]
            best, having = chosen(
                xp, scores[image, :, kind], per_class, *limits, intersections(xp, own)
            )
            found += [(score, kind, k) for score, k in zip(having, best, strict=True)]
        found = sorted(found, key=lambda one: -one[0])[:most]
        counts[image] = len(found)
        for place, (score, kind, k) in enumerate(found):
            left[image, place] = boxes[image, k, min(kind, boxes.shape[2] - 1)]
            rated[image, place], kinds[image, place] = score, kind
    return xp.clip(left, 0, 1) if clip_boxes else left, rated, kinds, counts


def _flops(op: Operation) -> int:
    """Boxes are compared within a class, whose scores lie in a column."""
    scores = op.inputs[1].shape
    if scores.dims is None:
        return 0
    images, boxes, classes = scores.dims
    return comparing_flops(Shape.of((images, classes, boxes)), op.inputs[2], each=16)


combined_op: OpDef[tuple[Tensor, Tensor, Tensor, Tensor]] = OpDef(
    "CombinedNonMaxSuppression",
    "boxes: T, scores: T, max_output_size_per_class: int32, max_total_size: int32,"
    " iou_threshold: T, score_threshold: T"
    " -> nmsed_boxes: T, nmsed_scores: T, nmsed_classes: T, valid_detections: int32",
    T=FLOATS,
    attributes={"pad_per_class": REQUIRED, "clip_boxes": REQUIRED},
    infer=_shapes,
    kernel=_detected,
    kinds=HOST,
    host_args=("max_output_size_per_class", "max_total_size", "iou_threshold", "score_threshold"),
    grad=NO_GRADIENT,
    cost=_flops,
)


@combined_op.front
def combined_non_max_suppression(
    boxes: Any,
    scores: Any,
    max_output_size_per_class: Any,
    max_total_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = -math.inf,
    pad_per_class: bool = False,
    clip_boxes: bool = True,
    name: str | None = None,
) -> Detections:
    """The best boxes of all classes, each class without those that overlap with a better one.

    Args:
        boxes: [batch, boxes, 1, 4] of a floating-point dtype, or [batch, boxes, classes, 4] where
            each class has its own; each [y1, x1, y2, x2] of two opposite corners.
        scores: [batch, boxes, classes] of the same dtype.
        max_output_size_per_class: how many to take of a class at most, an int or an int32 scalar
            tensor.
        max_total_size: how many to take of an image at most, likewise.
        iou_threshold: as for `non_max_suppression`, within each class.
        score_threshold: take only boxes of higher scores.
        pad_per_class: have results with as many places as all classes can fill, if these are fewer
            than `max_total_size`; else with `max_total_size`.
        clip_boxes: have coordinates between 0 and 1.

    Returns:
        Detections: boxes, scores and classes, from the best on and then zeros, and how many.

    Raises:
        InvalidArgumentError: if shapes or limits do not fit; in the run, where they are known
            only then.
    """
    limits = max_output_size_per_class, max_total_size, iou_threshold, score_threshold
    how = {"pad_per_class": bool(pad_per_class), "clip_boxes": bool(clip_boxes)}
    return Detections(*combined_op(boxes, scores, *limits, **how, name=name))
