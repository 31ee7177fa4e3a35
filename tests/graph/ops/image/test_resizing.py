"""Resizing and cutting out: dtypes, shapes, proportions, boxes, errors."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.interpreter import evaluate

image = fb.image
METHODS = [0, 1, 2, 3]
PIXELS = np.random.default_rng(3).uniform(0, 1, (2, 5, 6, 3)).astype(np.float32)


@pytest.mark.parametrize("method", METHODS)
def test_dtypes_and_shapes(method: int) -> None:
    for dtype in (np.uint8, np.int32, np.float16, np.float64):
        pixels = fb.constant((PIXELS * 200).astype(dtype))
        y = image.resize_images(pixels, [3, 4], method)
        kept = method == image.ResizeMethod.NEAREST_NEIGHBOR or np.dtype(dtype).kind == "f"
        assert y.dtype == (dtype if kept else np.float32)
        assert y.shape == evaluate(y).shape == (2, 3, 4, 3)
    one = image.resize_images(PIXELS[0], [3, 4], method, name="small")
    assert (one.shape, one.name) == ([3, 4, 3], "small:0")
    np.testing.assert_array_equal(
        evaluate(one), evaluate(image.resize_images(PIXELS, [3, 4], method))[0]
    )


@pytest.mark.parametrize("method", METHODS)
def test_sizes_known_in_the_run_only(method: int) -> None:
    x = fb.placeholder(fb.float32, [None, None, None, 3])
    size = fb.placeholder(fb.int32, [2])
    y = image.resize_images(x, size, method)
    assert y.shape == [None, None, None, 3]
    [slope] = fb.gradients(y, [x])
    value, gradient = evaluate([y, slope], {x: PIXELS, size: [4, 9]})
    assert value.shape == (2, 4, 9, 3)
    assert gradient.shape == PIXELS.shape
    np.testing.assert_allclose(gradient.sum(), value.size, rtol=1e-5)
    same = evaluate(y, {x: PIXELS, size: [5, 6]})
    np.testing.assert_array_equal(same, PIXELS)


def test_the_same_size_changes_nothing() -> None:
    pixels = fb.constant(np.ones((5, 6, 3), np.uint8))
    assert image.resize_images(pixels, [5, 6]).dtype is fb.uint8


def test_constant_images_stay_constant() -> None:
    for method in METHODS:
        for size in ([1, 1], [2, 11], [17, 3]):
            for align in (False, True):
                y = evaluate(
                    image.resize_images(np.ones((1, 5, 6, 1), np.float32), size, method, align)
                )
                np.testing.assert_allclose(y, 1, rtol=1e-6)


def test_proportions() -> None:
    def shape(size: Any, dims: Any = (4, 8, 3), known: bool = True) -> Any:
        x = fb.placeholder(fb.float32, dims if known else [None, None, 3])
        y = image.resize_images(x, size, preserve_aspect_ratio=True)
        found = evaluate(y, {x: np.ones(dims)}).shape
        assert y.shape.is_compatible_with(found)
        return found[:2]

    for known in (True, False):
        assert shape([8, 8], known=known) == (4, 8)
        assert shape([2, 100], known=known) == (2, 4)
        assert shape([100, 16], known=known) == (8, 16)


def test_crops_against_loops() -> None:
    boxes = np.float32([[0, 0, 1, 1], [0.1, 0.93, 0.83, 0.22], [-0.5, 0.21, 0.5, 1.4]])
    which = np.int32([0, 1, 1])
    for method in ("bilinear", "nearest"):
        for size in ([4, 3], [1, 1], [1, 5]):
            y = image.crop_and_resize(PIXELS, boxes, which, size, method, 7.0)
            assert y.shape == [3, *size, 3]
            np.testing.assert_allclose(
                evaluate(y), by_loops(boxes, which, size, method), rtol=1e-4, atol=1e-5
            )


def by_loops(boxes: Any, which: Any, size: Any, method: str) -> np.ndarray:
    found = np.full((len(boxes), *size, 3), 7.0)
    for b, (y1, x1, y2, x2) in enumerate(boxes.astype(float)):
        pixels = PIXELS[which[b]].astype(float)
        for i, j in np.ndindex(*size):
            y = 4 * (y1 + (y2 - y1) * (i / (size[0] - 1) if size[0] > 1 else 0.5))
            x = 5 * (x1 + (x2 - x1) * (j / (size[1] - 1) if size[1] > 1 else 0.5))
            if not (0 <= y <= 4 and 0 <= x <= 5):
                continue
            if method == "nearest":
                found[b, i, j] = pixels[int(y + 0.5), int(x + 0.5)]
                continue
            near = (
                np.maximum(0, 1 - np.abs(np.arange(5) - y)),
                np.maximum(0, 1 - np.abs(np.arange(6) - x)),
            )
            found[b, i, j] = np.einsum("h,w,hwc->c", *near, pixels)
    return found


def test_gradients_of_crops() -> None:
    x = fb.placeholder(fb.float64, [2, 5, 6, 3])
    boxes = fb.constant([[0.13, 0.93, 0.83, 0.22], [0.05, 0.23, 0.53, 0.71]])
    y = image.crop_and_resize(x, boxes, [1, 0], [3, 4])
    loss = fb.reduce_sum(y * y)
    to_image, to_boxes = fb.gradients(loss, [x, boxes])
    value, moved = evaluate([to_image, to_boxes], {x: PIXELS})
    assert value.dtype == np.float64
    step = 0.01
    direction = np.cos(np.arange(PIXELS.size)).reshape(PIXELS.shape)
    ends = [evaluate(loss, {x: PIXELS + s * step * direction}) for s in (1, -1)]
    np.testing.assert_allclose(
        (value * direction).sum(), (ends[0] - ends[1]) / (2 * step), rtol=1e-3
    )
    assert moved.shape == (2, 4)
    first = fb.placeholder(fb.float32, [2, 4])
    again = fb.reduce_sum(fb.square(image.crop_and_resize(x, first, [1, 0], [3, 4])))
    start = evaluate(boxes)
    for place in np.ndindex(2, 4):
        shift = np.zeros((2, 4), np.float32)
        shift[place] = 2e-4
        ends = [evaluate(again, {x: PIXELS, first: start + s * shift}) for s in (1, -1)]
        np.testing.assert_allclose(moved[place], (ends[0] - ends[1]) / 4e-4, rtol=0.1, atol=0.05)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: image.resize_bilinear(PIXELS[0], [2, 2]), "batch, height"),
        (lambda: image.resize_bilinear(PIXELS, [2]), "height, width"),
        (lambda: image.resize_bilinear(PIXELS, [2, 0]), "positive"),
        (lambda: image.resize_bilinear(PIXELS, [2, 2], True, True), "either corners"),
        (lambda: image.resize_bilinear(PIXELS[:, :0], [2, 2]), "without pixels"),
        (lambda: image.resize_images(PIXELS, [2, 2], 4), "no ResizeMethod"),
        (lambda: image.resize_images(fb.placeholder(fb.float32), [2, 2]), "3 or 4"),
        (lambda: image.resize_images(PIXELS[0, 0], [2, 2]), "3 or 4"),
        (lambda: image.crop_and_resize(PIXELS, [[0.0] * 4], [0], [2, 2], "area"), "not 'area'"),
        (lambda: image.crop_and_resize(PIXELS[0], [[0.0] * 4], [0], [2, 2]), "batch, height"),
        (lambda: image.crop_and_resize(PIXELS, [[0.0] * 3], [0], [2, 2]), "boxes, 4"),
        (lambda: image.crop_and_resize(PIXELS, [[0.0] * 4], [0, 1], [2, 2]), "for each box"),
    ],
    ids=count(),
)
def test_errors(build: Any, message: str) -> None:
    with pytest.raises(fb.errors.InvalidArgumentError, match=message):
        evaluate(build())


def test_boxes_of_no_image() -> None:
    for wrong in (-1, 2):
        with pytest.raises(fb.errors.InvalidIndexError):
            evaluate(image.crop_and_resize(PIXELS, [[0.0, 0.0, 1.0, 1.0]], [wrong], [2, 2]))


def test_a_size_has_two_sides() -> None:
    for size in (3, fb.constant(3), [3, 4, 5]):
        with pytest.raises(fb.errors.InvalidArgumentError, match=r"a size is \[height, width\]"):
            fb.image.resize_images(fb.zeros([1, 4, 4, 3]), size)
