"""Bounding boxes in images: choosing among those that overlap, and drawing them.

A box is [y1, x1, y2, x2]. What is drawn has 0 for the first row or column and 1 for the last;
overlaps may be asked for in any unit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flowbook.graph.dtypes import FLOATS
from flowbook.graph.errors import InvalidArgumentError
from flowbook.graph.op_def import NO_GRADIENT, OpDef
from flowbook.graph.ops.inference import constant_value
from flowbook.graph.shape import Shape
from flowbook.graph.tensor import Tensor


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


def _check_limits(max_output_size: Any, iou_threshold: Any, score_threshold: Any) -> None:
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
    _check_limits(*(constant_value(limit) for limit in limits))
    return Shape.of((None,))


def _selected(
    xp: Any, boxes: Any, scores: Any, max_output_size: Any, iou_threshold: Any, score_threshold: Any
) -> Any:
    _check_boxes(boxes, scores)
    _check_limits(max_output_size, iou_threshold, score_threshold)
    # Areas of halves would overflow.
    boxes = boxes.astype(xp.promote_types(boxes.dtype, np.float32))
    low, high = xp.minimum(boxes[:, :2], boxes[:, 2:]), xp.maximum(boxes[:, :2], boxes[:, 2:])
    area = (high - low).prod(axis=1)
    candidates = xp.flatnonzero(scores > score_threshold)
    candidates = candidates[xp.argsort(-scores[candidates], kind="stable")]
    found: list[int] = []
    while candidates.size and len(found) < max_output_size:
        best, candidates = candidates[0], candidates[1:]
        found.append(int(best))
        sides = xp.minimum(high[best], high[candidates]) - xp.maximum(low[best], low[candidates])
        shared = xp.maximum(sides, 0).prod(axis=1)
        together = area[best] + area[candidates] - shared
        # Boxes without an area overlap with nothing.
        overlap = xp.divide(shared, together, out=xp.zeros_like(shared), where=shared > 0)
        candidates = candidates[~(overlap > iou_threshold)]
    return xp.array(found, np.int32)


non_max_suppression_op = OpDef(
    "NonMaxSuppression",
    "boxes: T, scores: T, max_output_size: int32, iou_threshold: T, score_threshold: T"
    " -> selected_indices: int32",
    T=FLOATS,
    infer=_selected_shape,
    kernel=_selected,
    grad=NO_GRADIENT,
    aliases={},
    cost=lambda op: 16 * (op.inputs[1].shape.size or 0),
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
        name: the operation's name.

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
    __tracebackhide__ = True
    result: Tensor = non_max_suppression_op(
        boxes, scores, max_output_size, iou_threshold, score_threshold, name=name
    )
    return result


# Yellow, blue, red, lime, purple, olive, maroon, navy, aqua, fuchsia; all opaque.
_COLOURS = np.array(
    [
        *([1, 1, 0, 1], [0, 0, 1, 1], [1, 0, 0, 1], [0, 1, 0, 1], [0.5, 0, 0.5, 1]),
        *([0.5, 0.5, 0, 1], [0.5, 0, 0, 1], [0, 0, 0.5, 1], [0, 1, 1, 1], [1, 0, 1, 1]),
    ],
    np.float32,
)


def _check_drawing(images: Any, boxes: Any, colors: Any) -> None:
    """The same for tensors as for arrays."""
    given = {"images": images, "boxes": boxes, "colors": colors}
    shapes = {name: Shape(value.shape) for name, value in given.items()}
    dims = shapes["images"].dims
    batch, channels = (dims[0], dims[-1]) if dims else (None, None)
    wanted = {"images": (None,) * 4, "boxes": (batch, None, 4), "colors": (None, None)}
    for name, dims in wanted.items():
        if not shapes[name].is_compatible_with(dims):
            raise InvalidArgumentError(
                f"images are [batch, height, width, channels], boxes [batch, boxes, 4] and colors "
                f"[colors, channels]; {name!r} is of shape {shapes[name]}"
            )
    count, parts = shapes["colors"].dims or (None, None)
    if count == 0 or (parts is not None and channels is not None and parts < channels):
        raise InvalidArgumentError(
            f"colors of shape {shapes['colors']} do not fill {channels} channels"
        )


def _drawn_shape(images: Tensor, boxes: Tensor, colors: Tensor) -> Shape:
    _check_drawing(images, boxes, colors)
    return images.shape


def _drawn(xp: Any, images: Any, boxes: Any, colors: Any) -> Any:
    _check_drawing(images, boxes, colors)
    result = images.copy()
    _, height, width, channels = images.shape
    colors = colors[:, :channels].copy()
    if channels == 1:
        colors[:] = 1
    last = np.array([height - 1, width - 1] * 2, np.float32)
    # Far outside, NaN too: which edges are then seen is as in TensorFlow.
    places = xp.nan_to_num(boxes * last, nan=-1e9, posinf=1e9, neginf=-1e9).astype(np.int64)
    for image, of_image in zip(result, places.tolist(), strict=True):
        for turn, (top, left, bottom, right) in enumerate(of_image):
            if top <= bottom and left <= right:
                _outline(image, top, left, bottom, right, colors[turn % len(colors)])
    return result


def _outline(image: Any, top: int, left: int, bottom: int, right: int, color: Any) -> None:
    """Draw those of the four edges that lie inside, as far as they do."""
    height, width, _ = image.shape
    rows, columns = slice(max(top, 0), max(bottom + 1, 0)), slice(max(left, 0), max(right + 1, 0))
    for row in (top, bottom):
        if 0 <= row < height:
            image[row, columns] = color
    for column in (left, right):
        if 0 <= column < width:
            image[rows, column] = color


draw_bounding_boxes_op = OpDef(
    "DrawBoundingBoxes",
    "images: T, boxes: float32, colors: float32 -> output: T",
    T=FLOATS,
    infer=_drawn_shape,
    kernel=_drawn,
    grad=NO_GRADIENT,
    aliases={},
    cost=lambda op: op.inputs[0].shape.size or 0,
)


@draw_bounding_boxes_op.front
def draw_bounding_boxes(
    images: Any, boxes: Any, name: str | None = None, colors: Any = None
) -> Tensor:
    """Images with the outlines of boxes, one pixel wide. No gradient flows through it.

    Args:
        images: [batch, height, width, channels] of a floating-point dtype, between 0 and 1.
        boxes: float32 [batch, boxes, 4], each [y1, x1, y2, x2] where 0 is the first row or column
            and 1 the last. What lies outside is not drawn, nor are boxes with y1 > y2 or x1 > x2.
        name: the operation's name.
        colors: float32 [colors, channels], which the boxes take in turn; more channels than the
            images' are not used. By default ten colours, the first of them yellow. Where there is
            but one channel, all boxes are white.

    Returns:
        The images' shape and dtype.

    >>> import flowbook as fb
    >>> drawn = fb.image.draw_bounding_boxes(fb.zeros([1, 3, 4, 1]), [[[0.0, 0.0, 1.0, 1.0]]])
    >>> with fb.Session() as sess:
    ...     print(sess.run(drawn)[0, :, :, 0])
    [[1. 1. 1. 1.]
     [1. 0. 0. 1.]
     [1. 1. 1. 1.]]
    """
    __tracebackhide__ = True
    result: Tensor = draw_bounding_boxes_op(
        images, boxes, _COLOURS if colors is None else colors, name=name
    )
    return result
