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


OBJECTS = np.array([[[0.25, 0.25, 0.75, 0.75]]], np.float32)


def test_each_run_takes_another_part_that_holds_enough_of_an_object() -> None:
    part = fb.image.sample_distorted_bounding_box(
        [40, 60, 3], OBJECTS, seed=5, min_object_covered=0.5, area_range=(0.2, 0.8)
    )
    image = fb.reshape(fb.range(40 * 60), [40, 60, 1])
    cut = fb.slice(image, part.begin, part.size)
    with fb.Session() as sess:
        found = [sess.run([part, cut]) for _ in range(20)]
    assert len({tuple(values.bboxes.ravel()) for values, _ in found}) > 10
    for (begin, size, box), pixels in found:
        assert pixels.shape == (*size[:2], 1)
        assert pixels[0, 0, 0] == begin[0] * 60 + begin[1]
        corners = [*begin[:2], *(begin + size)[:2]]
        np.testing.assert_allclose(box[0, 0], np.array(corners) / [40, 60, 40, 60], rtol=1e-6)
        rows, columns = size[:2]
        assert 0.2 * 2400 <= rows * columns <= 0.8 * 2400
        high = np.minimum(begin[:2] + size[:2], [30, 45])
        shared = np.maximum(high - np.maximum(begin[:2], [10, 15]), 0).prod()
        assert shared >= 0.5 * 20 * 30


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_attempts": 0}, "max_attempts is at least 1, not 0"),
        ({"area_range": (0.5, 1.5)}, r"area_range is two numbers .* up to 1, not \(0.5, 1.5\)"),
        ({"area_range": (0.5, 0.1)}, "area_range is two numbers in order"),
        ({"aspect_ratio_range": (0, 1)}, r"aspect_ratio_range .* above 0, not \(0, 1\)"),
        ({"image_size": [4, 5]}, r"'image_size' is of shape \[3\], not \[2\]"),
        ({"bounding_boxes": OBJECTS[0]}, r"'bounding_boxes' is of shape \[\?, \?, 4\]"),
    ],
)
def test_arguments_of_random_parts_are_checked(arguments: Any, message: str) -> None:
    given = {"image_size": [4, 5, 3], "bounding_boxes": OBJECTS, **arguments}
    with pytest.raises(fb.errors.InvalidArgumentError, match=message):
        fb.image.sample_distorted_bounding_box(**given)


@pytest.mark.parametrize(
    ("size", "objects", "covered", "message"),
    [
        ([0, 5, 3], OBJECTS, 0.1, "0 x 5 pixels has no parts"),
        ([4, 5, 3], OBJECTS * 2, 0.1, r"lies in \[0, 1\], not at \[0.5, 0.5, 1.5, 1.5\]"),
        ([4, 5, 3], OBJECTS * np.float32("nan"), 0.1, r"lies in \[0, 1\], not at \[nan"),
        ([4, 5, 3], OBJECTS[:, :0], 0.1, "no bounding boxes"),
        ([4, 5, 3], OBJECTS, -0.1, "min_object_covered is not negative"),
    ],
)
def test_random_parts_of_what_has_none(
    size: Any, objects: Any, covered: float, message: str
) -> None:
    part = fb.image.sample_distorted_bounding_box(size, objects, min_object_covered=covered)
    with fb.Session() as sess, pytest.raises(fb.errors.InvalidArgumentError, match=message):
        sess.run(part.begin)


def test_an_image_without_objects_may_be_one_itself() -> None:
    part = fb.image.sample_distorted_bounding_box(
        [4, 5, 3], OBJECTS[:, :0], use_image_if_no_bounding_boxes=True
    )
    with fb.Session() as sess:
        assert sess.run(part.size)[2] == -1


def test_as_many_boxes_as_are_wanted() -> None:
    most = fb.placeholder(fb.int32, [])
    for limit in (5, most):
        found, count = fb.image.non_max_suppression_padded(
            BOXES, SCORES, limit, 1.0, pad_to_max_output_size=True
        )
        assert found.shape == [5 if limit == 5 else None]
        with fb.Session() as sess:
            indices, valid = sess.run([found, count], {most: 5})
        assert valid == 3
        assert indices.tolist()[3:] == [0, 0]
        assert sorted(indices.tolist()[:3]) == [0, 1, 2]
    found, count = fb.image.non_max_suppression_padded(BOXES, SCORES, 2, 1.0)
    with fb.Session() as sess:
        assert sess.run(count) == 2


def test_places_for_as_many_detections_as_classes_can_have() -> None:
    boxes, scores = BOXES[None, :, None] + 2, np.stack([SCORES, SCORES[::-1]], -1)[None]
    for total, wanted in ((3, 3), (9, 4)):
        found = fb.image.combined_non_max_suppression(
            boxes, scores, 2, total, 1.0, pad_per_class=True, clip_boxes=False
        )
        assert found.nmsed_boxes.shape == [1, wanted, 4]
        with fb.Session() as sess:
            values = sess.run(found)
        assert values.valid_detections.tolist() == [wanted]
        assert values.nmsed_boxes.max() > 1
    with pytest.raises(fb.errors.InvalidArgumentError, match="1 or classes"):
        fb.image.combined_non_max_suppression(boxes[:, :, 0], scores, 2, 9)
