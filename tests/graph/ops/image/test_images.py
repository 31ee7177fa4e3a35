"""Parts, borders, mirrors and turns of images, with shapes known and unknown."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.interpreter import Interpreter, evaluate

image = fb.image
ONE = np.arange(5 * 6 * 3.0).reshape(5, 6, 3).astype(np.float32)
BATCH = np.stack([ONE, -ONE])
Error = fb.errors.InvalidArgumentError

# What TensorFlow 1 does, in NumPy, on [..., height, width, channels].
FUNCTIONS: dict[str, Any] = {
    "crop": (
        lambda x: image.crop_to_bounding_box(x, 1, 2, 3, 4),
        lambda x: x[..., 1:4, 2:6, :],
    ),
    "pad": (lambda x: image.pad_to_bounding_box(x, 1, 2, 7, 9), lambda x: padded(x, 1, 1, 2, 1)),
    "smaller": (
        lambda x: image.resize_image_with_crop_or_pad(x, 2, 3),
        lambda x: x[..., 1:3, 1:4, :],
    ),
    "larger": (
        lambda x: image.resize_image_with_crop_or_pad(x, 8, 9),
        lambda x: padded(x, 1, 2, 1, 2),
    ),
    "both": (
        lambda x: image.resize_image_with_crop_or_pad(x, 4, 8),
        lambda x: padded(x[..., :4, :, :], 0, 0, 1, 1),
    ),
    "fitted": (
        lambda x: image.resize_image_with_pad(x, 10, 15, image.ResizeMethod.NEAREST_NEIGHBOR),
        lambda x: padded(x.repeat(2, -3).repeat(2, -2), 0, 0, 1, 2),
    ),
    "centre": (lambda x: image.central_crop(x, 0.5), lambda x: x[..., 1:4, 1:5, :]),
    "most": (lambda x: image.central_crop(x, 0.9), lambda x: x),
    "all": (lambda x: image.central_crop(x, 1.0), lambda x: x),
    "left-right": (image.flip_left_right, lambda x: x[..., ::-1, :]),
    "up-down": (image.flip_up_down, lambda x: x[..., ::-1, :, :]),
    "transpose": (image.transpose_image, lambda x: x.swapaxes(-3, -2)),
    "rot0": (lambda x: image.rot90(x, 4), lambda x: x),
    "rot1": (image.rot90, lambda x: np.rot90(x, 1, (-3, -2))),
    "rot2": (lambda x: image.rot90(x, 2), lambda x: np.rot90(x, 2, (-3, -2))),
    "rot3": (lambda x: image.rot90(x, -1), lambda x: np.rot90(x, 3, (-3, -2))),
}


def padded(x: np.ndarray, top: int, bottom: int, left: int, right: int) -> np.ndarray:
    batch = [(0, 0)] * (x.ndim - 3)
    return np.pad(x, [*batch, (top, bottom), (left, right), (0, 0)])


@pytest.mark.parametrize("kind", FUNCTIONS)
@pytest.mark.parametrize("value", [ONE, BATCH], ids=["one", "batch"])
@pytest.mark.parametrize("known", [True, False])
def test_values_and_gradients(kind: str, value: np.ndarray, known: bool) -> None:
    build, reference = FUNCTIONS[kind]
    x = fb.placeholder(fb.float32, value.shape if known else [None] * value.ndim)
    y = build(x)
    [slope] = fb.gradients(fb.reduce_sum(y), [x])
    found, gradient = evaluate([y, slope], {x: value})
    np.testing.assert_array_equal(found, reference(value))
    assert y.shape.is_compatible_with(found.shape)
    assert y.shape.is_fully_defined or not known
    # As many ones as pixels of the image are left.
    marks = np.ones_like(value)
    assert gradient.sum() == reference(marks).sum()


def test_numbers_may_be_tensors() -> None:
    n = fb.placeholder(fb.int32, [])
    y = image.crop_to_bounding_box(ONE, n, 0, n + 1, 6)
    np.testing.assert_array_equal(evaluate(y, {n: 2}), ONE[2:5])
    with pytest.raises(fb.errors.OpError):
        evaluate(y, {n: 3})
    z = image.pad_to_bounding_box(ONE, n, 0, 7, 6)
    np.testing.assert_array_equal(evaluate(z, {n: 1}), padded(ONE, 1, 1, 0, 0))
    with pytest.raises(fb.errors.OpError):
        evaluate(z, {n: 3})
    w = image.resize_image_with_crop_or_pad(ONE, n, fb.constant(6))
    assert w.shape == [None, 6, 3]
    assert evaluate(w, {n: 9}).shape == (9, 6, 3)


@pytest.mark.parametrize("flip", ["left_right", "up_down"])
def test_random_flips(flip: str) -> None:
    mirrored = evaluate(getattr(image, f"flip_{flip}")(ONE))
    many = np.stack([ONE] * 60)
    build = getattr(image, f"random_flip_{flip}")
    y = build(many, seed=3)
    interpreter = Interpreter()
    turned = [sum((v == mirrored).all() for v in interpreter.run(y)) for _ in range(2)]
    assert turned[0] != turned[1] or turned[0] != 30
    assert all(10 < n < 50 for n in turned)
    kept = sum((v == ONE).all() for v in Interpreter().run(build(many, seed=3)))
    assert 10 < kept < 50
    single = build(ONE)
    assert single.shape == [5, 6, 3]
    seen = {evaluate_sum(interpreter, single) for _ in range(30)}
    assert seen == {float(ONE[0, 0, 0]), float(mirrored[0, 0, 0])}
    unknown = fb.placeholder(fb.float32, [None, 5, 6, 3])
    assert evaluate(build(unknown), {unknown: BATCH}).shape == BATCH.shape


@pytest.mark.parametrize("pixels", [ONE, BATCH], ids=["one", "batch"])
def test_turns_that_the_run_tells(pixels: Any) -> None:
    k = fb.placeholder(fb.int32)
    known = image.rot90(pixels, k)
    assert known.shape.rank == pixels.ndim
    unknown = fb.placeholder(fb.float64, [None] * pixels.ndim)
    both = [known, image.rot90(unknown, k)]
    with fb.Session() as sess:
        for turns in range(-1, 5):
            expected = np.rot90(pixels, turns, axes=(-3, -2))
            for turned in sess.run(both, {k: turns, unknown: pixels}):
                np.testing.assert_array_equal(turned, expected)
    x = fb.constant(pixels.astype(float))
    turned = image.rot90(x, fb.placeholder_with_default(3, []))
    assert fb.gradient_error(turned * turned, x) < 1e-5


def test_a_tensor_of_unknown_rank_is_one_image() -> None:
    unknown = fb.placeholder(fb.float64)
    flipped, cropped = image.flip_up_down(unknown), image.crop_to_bounding_box(unknown, 1, 0, 3, 2)
    assert (flipped.shape, cropped.shape) == (fb.Shape([None] * 3), fb.Shape([3, 2, None]))
    with fb.Session() as sess:
        np.testing.assert_array_equal(sess.run(flipped, {unknown: ONE}), ONE[::-1])
        np.testing.assert_array_equal(sess.run(cropped, {unknown: ONE}), ONE[1:4, :2])
        with pytest.raises(Error, match="does not fit"):
            sess.run(flipped, {unknown: BATCH})


def evaluate_sum(interpreter: Interpreter, single: fb.Tensor) -> float:
    return float(interpreter.run(single)[0, 0, 0])


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: image.flip_left_right(ONE[0]), "images are"),
        (lambda: image.crop_to_bounding_box(ONE, 3, 0, 3, 1), "exceed"),
        (lambda: image.crop_to_bounding_box(ONE, -1, 0, 3, 1), "not negative"),
        (lambda: image.crop_to_bounding_box(ONE, 1.5, 0, 3, 1), "an int"),
        (lambda: image.crop_to_bounding_box(ONE, fb.constant(1.5), 0, 3, 1), "an int"),
        (lambda: image.pad_to_bounding_box(ONE, 3, 0, 6, 6), "does not fit"),
        (lambda: image.pad_to_bounding_box(ONE, -1, 0, 6, 6), "does not fit"),
        (lambda: image.resize_image_with_crop_or_pad(ONE, -1, 0), "not negative"),
        (lambda: image.central_crop(ONE, 0), "above 0"),
        (lambda: image.central_crop(ONE, 1.1), "up to 1"),
        (lambda: image.rot90(ONE, 0.5), "an int"),
    ],
    ids=count(),
)
def test_errors(build: Any, message: str) -> None:
    with pytest.raises(Error, match=message) as caught:
        build()
    assert "test_images.py" in str(caught.value)


@pytest.mark.parametrize("uniform", [True, False])
def test_outside_of_images_glimpses_see_noise(uniform: bool) -> None:
    pixels = np.arange(24.0).reshape(2, 3, 4, 1)
    x = fb.placeholder(fb.float64, None)
    places = [[0.0, 0.0], [99.0, -99.0]]
    seen = fb.image.extract_glimpse(x, [2, 2], places, False, False, uniform, seed=5)
    with fb.Session() as sess:
        first, second = (sess.run(seen, {x: pixels})[..., 0] for _ in range(2))
    # The window's middle is the image's corner; the other window lies beyond all corners.
    assert first[0, 1, 1] == second[0, 1, 1] == 0
    noise = np.concatenate([first[0].ravel()[:3], first[1].ravel()])
    assert len({*noise, *second[1].ravel()}) == 11
    if uniform:
        assert (first[0] <= 11).all()
        assert (first[0] >= 0).all()
        assert ((first[1] >= 12) & (first[1] <= 23)).all()
    [slope] = fb.gradients(fb.reduce_sum(seen[0, 1, 1]), x)
    with fb.Session() as sess:
        assert sess.run(slope, {x: pixels}).ravel().tolist() == [1] + [0] * 23


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"input": np.zeros((2, 2))}, "images are"),
        ({"input": np.zeros((1, 2, 2, 1), np.int32)}, "not int32"),
        ({"size": [2]}, r"a size is \[2\]"),
        ({"offsets": [0.0, 0.0]}, r"offsets are \[batch, 2\]"),
    ],
)
def test_glimpses_that_cannot_be(arguments: Any, message: str) -> None:
    given = {"input": np.zeros((1, 2, 2, 1)), "size": [1, 1], "offsets": [[0.0, 0.0]]}
    with pytest.raises(fb.errors.InvalidArgumentError, match=message):
        fb.image.extract_glimpse(**{**given, **arguments})
