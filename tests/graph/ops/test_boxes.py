"""Bounding boxes that do not fit together are errors, at construction or in the run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowbook as fb

BOXES = np.zeros((3, 4), np.float32)
SCORES = np.zeros(3, np.float32)
IMAGES = np.zeros((2, 4, 5, 3), np.float32)
EDGES = np.zeros((2, 1, 4), np.float32)
COLOURS = np.zeros((1, 3), np.float32)


def choose(boxes: Any = BOXES, scores: Any = SCORES, *limits: Any) -> fb.Tensor:
    return fb.image.non_max_suppression(boxes, scores, *(limits or (2,)))


def draw(images: Any = IMAGES, boxes: Any = EDGES, colors: Any = COLOURS) -> fb.Tensor:
    return fb.image.draw_bounding_boxes(images, boxes, colors=colors)


@pytest.mark.parametrize(
    ("build", "values", "message"),
    [
        (choose, (BOXES[:, :3],), r"\[boxes, 4\], not of shape \[3, 3\]"),
        (choose, (BOXES, SCORES[:2]), r"each of 3 boxes has a score, .* is not \[2\]"),
        (choose, (BOXES, SCORES, np.int32([2])), "'max_output_size' is a scalar"),
        (choose, (BOXES, SCORES, np.int32(-1)), "max_output_size is not negative: -1"),
        (choose, (BOXES, SCORES, np.int32(1), np.float32(1.5)), "from 0 to 1, not 1.5"),
        (choose, (BOXES, SCORES, np.int32(1), np.float32("nan")), "from 0 to 1, not nan"),
        (draw, (IMAGES[0],), r"'images' is of shape \[4, 5, 3\]"),
        (draw, (IMAGES, EDGES[:1]), r"'boxes' is of shape \[1, 1, 4\]"),
        (draw, (IMAGES, EDGES, COLOURS[0]), r"'colors' is of shape \[3\]"),
        (draw, (IMAGES, EDGES, COLOURS[:, :2]), r"\[1, 2\] do not fill 3 channels"),
        (draw, (IMAGES, EDGES, COLOURS[:0]), r"\[0, 3\] do not fill 3 channels"),
    ],
)
@pytest.mark.parametrize("are_known", [True, False])
def test_what_does_not_fit_is_an_error(
    build: Any, values: Any, message: str, are_known: bool
) -> None:
    if are_known:
        with pytest.raises(fb.errors.InvalidArgumentError, match=message):
            build(*values)
        return
    fed = [fb.placeholder(value.dtype) for value in values]
    result = build(*fed)
    with fb.Session() as sess, pytest.raises(fb.errors.InvalidArgumentError, match=message):
        sess.run(result, dict(zip(fed, values, strict=True)))


def test_the_best_boxes_are_drawn() -> None:
    """What both are for, together: detections above a threshold, seen on the image."""
    boxes = fb.constant([[0.0, 0.0, 0.5, 0.5], [0.0, 0.1, 0.5, 0.6], [0.5, 0.5, 1.0, 1.0]])
    best = fb.image.non_max_suppression(boxes, [0.4, 0.9, 0.8], 5, score_threshold=0.5)
    drawn = fb.image.draw_bounding_boxes(
        fb.zeros([1, 5, 5, 3]), fb.gather(boxes, best)[None], colors=[[1, 0, 0], [0, 1, 0]]
    )
    with fb.Session() as sess:
        seen = sess.run(drawn)[0]
    # The second one's corner is drawn last.
    assert seen[..., 0].tolist() == [
        [1, 1, 1, 0, 0],
        [1, 0, 1, 0, 0],
        [1, 1, 0, 0, 0],
        [0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0],
    ]
    assert seen[2:, 2:, 1].tolist() == [[1, 1, 1], [1, 0, 1], [1, 1, 1]]


@pytest.mark.parametrize("size", [(0, 3), (3, -1)])
def test_images_are_fitted_into_some_pixels(size: tuple[int, int]) -> None:
    with pytest.raises(fb.errors.InvalidArgumentError, match="the new size is positive"):
        fb.image.resize_image_with_pad(IMAGES, *size)
