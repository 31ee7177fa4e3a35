"""Bounding boxes drawn into images.

A box is [y1, x1, y2, x2], with 0 for the first row or column and 1 for the last.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.definition.op_def import HOST, NO_GRADIENT, OpDef
from flowbook.graph.model.dtypes import FLOATS
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor

__all__ = ["draw_bounding_boxes"]

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
    kinds=HOST,
    grad=NO_GRADIENT,
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
    return draw_bounding_boxes_op(images, boxes, _COLOURS if colors is None else colors, name=name)
