"""Colours against Python's own conversions; dtypes, ranges, randomness, errors."""

from __future__ import annotations

import colorsys
from itertools import count
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.interpreter import Interpreter, evaluate

image = fb.image
Error = fb.errors.InvalidArgumentError
FLOATS = np.random.default_rng(2).uniform(0, 1, (2, 4, 5, 3))
FLOATS[0, 0, :4] = [[0, 0, 0], [0.5, 0.5, 0.5], [1, 1, 0], [0.25, 0.75, 0.75]]
BYTES = (FLOATS * 255).astype(np.uint8)


def each(function: Any, pixels: np.ndarray) -> np.ndarray:
    return np.array([function(*p) for p in pixels.reshape(-1, 3).tolist()]).reshape(pixels.shape)


@pytest.mark.parametrize("dtype", [fb.float16, fb.float32, fb.float64])
def test_hue_saturation_value(dtype: fb.DType) -> None:
    pixels = FLOATS.astype(dtype.numpy)
    near = {"atol": 8 * np.finfo(dtype.numpy).eps, "rtol": 0}
    hsv = image.rgb_to_hsv(pixels)
    assert (hsv.dtype, hsv.shape) == (dtype, pixels.shape)
    np.testing.assert_allclose(evaluate(hsv), each(colorsys.rgb_to_hsv, pixels), **near)
    rgb = image.hsv_to_rgb(pixels)
    np.testing.assert_allclose(evaluate(rgb), each(colorsys.hsv_to_rgb, pixels), **near)


def test_gradients_of_colours() -> None:
    x = fb.placeholder(fb.float64, [2, 4, 5, 3])
    weights = np.cos(np.arange(FLOATS.size)).reshape(FLOATS.shape)
    pixels = np.random.default_rng(4).uniform(0.05, 0.95, FLOATS.shape)
    for build in (
        image.rgb_to_hsv,
        image.hsv_to_rgb,
        lambda v: image.adjust_hue(v, 0.1),
        lambda v: image.adjust_saturation(v, 0.7),
        lambda v: image.adjust_contrast(v, 1.5),
        lambda v: image.adjust_gamma(v, 2.0),
        image.per_image_standardization,
    ):
        loss = fb.reduce_sum(build(x) * weights)
        [slope] = fb.gradients(loss, [x])
        gradient = evaluate(slope, {x: pixels})
        step = 1e-6 * np.sin(3 * np.arange(FLOATS.size)).reshape(FLOATS.shape)
        ends = [evaluate(loss, {x: pixels + s * step}) for s in (1, -1)]
        np.testing.assert_allclose((gradient * step).sum(), (ends[0] - ends[1]) / 2, rtol=1e-4)
    [slope] = fb.gradients(image.rgb_to_hsv(x), [x])
    assert np.isfinite(evaluate(slope, {x: np.zeros(FLOATS.shape)})).all()


@pytest.mark.parametrize(
    ("given", "wanted", "values", "expected"),
    [
        (np.uint8, np.float32, [0, 51, 255], [0, 0.2, 1]),
        (np.float32, np.uint8, [0, 0.2, 0.5, 1], [0, 51, 127, 255]),
        (np.uint8, np.uint16, [0, 1, 255], [0, 256, 65280]),
        (np.uint16, np.uint8, [0, 256, 65535], [0, 1, 255]),
        (np.uint8, np.int32, [1, 255], [2**23, 255 * 2**23]),
        (np.int32, np.uint8, [2**23, 2**31 - 1], [1, 255]),
        (np.float64, np.float32, [0.5, 2.0], [0.5, 2.0]),
        (np.uint8, np.uint8, [7], [7]),
    ],
    ids=count(),
)
def test_dtypes(given: Any, wanted: Any, values: Any, expected: Any) -> None:
    y = image.convert_image_dtype(np.array(values, given), wanted)
    assert y.dtype == wanted
    np.testing.assert_allclose(evaluate(y), np.array(expected, wanted), rtol=1e-6)


@pytest.mark.parametrize("wanted", [np.uint8, np.int16, np.int32, np.int64, np.uint64])
@pytest.mark.parametrize("given", [np.float16, np.float32, np.float64])
def test_saturation_of_dtypes(given: Any, wanted: Any) -> None:
    limits = np.iinfo(wanted)
    y = evaluate(image.convert_image_dtype(np.array([-100, 0, 1, 100], given), wanted, True))
    assert y[1] == 0
    assert y[3] >= y[2] >= limits.max * 0.99
    assert y[3] >= limits.max * 0.99
    assert y[0] == limits.min


def test_saturation_between_integers() -> None:
    y = image.convert_image_dtype(np.array([-1, -300, 5], np.int16), np.uint8, True)
    assert evaluate(y).tolist()[:2] == [0, 0]


def test_integer_images_stay_in_range() -> None:
    for build in (
        lambda v: image.adjust_brightness(v, 0.5),
        lambda v: image.adjust_brightness(v, fb.constant(-0.5)),
        lambda v: image.adjust_contrast(v, 9.0),
        lambda v: image.adjust_gamma(v, 1.0, 5.0),
    ):
        y = build(BYTES)
        assert y.dtype is fb.uint8
        as_floats = evaluate(build(BYTES.astype(np.float32) / np.float32(255)))
        expected = np.clip(as_floats, 0, 1) * 255
        assert np.abs(evaluate(y) - expected).max() < 1


def test_contrast_and_standardization() -> None:
    y = evaluate(image.adjust_contrast(FLOATS, 2.0))
    means = FLOATS.mean((1, 2), keepdims=True)
    np.testing.assert_allclose(y, (FLOATS - means) * 2 + means)
    z = evaluate(image.per_image_standardization(BYTES))
    assert z.dtype == np.float32
    np.testing.assert_allclose(z.mean((1, 2, 3)), 0, atol=1e-5)
    np.testing.assert_allclose(z.std((1, 2, 3)), 1, rtol=1e-5)
    assert (evaluate(image.per_image_standardization(np.full((4, 4, 3), 9.0))) == 0).all()


def test_grey() -> None:
    y = image.rgb_to_grayscale(BYTES)
    assert (y.dtype, y.shape) == (fb.uint8, [2, 4, 5, 1])
    np.testing.assert_allclose(evaluate(y)[..., 0], BYTES @ [0.2989, 0.587, 0.114], atol=1)
    back = evaluate(image.grayscale_to_rgb(y))
    assert back.shape == BYTES.shape
    assert (back == evaluate(y)).all()
    unknown = fb.placeholder_with_default(evaluate(y), None)
    assert (evaluate(image.grayscale_to_rgb(unknown)) == back).all()
    assert evaluate(image.rgb_to_grayscale([0.0, 1.0, 0.0])).shape == (1,)


def test_hue_turns() -> None:
    red, green = [[[1.0, 0, 0]]], [[[0, 1.0, 0]]]
    np.testing.assert_allclose(evaluate(image.adjust_hue(red, 1 / 3)), green, atol=1e-6)
    np.testing.assert_allclose(evaluate(image.adjust_hue(green, -1 / 3)), red, atol=1e-6)
    np.testing.assert_allclose(evaluate(image.adjust_hue(FLOATS, 1.0)), FLOATS, atol=1e-6)
    grey = evaluate(image.adjust_saturation(FLOATS, 0.0))
    assert np.ptp(grey, axis=-1).max() == 0


def test_random_colours() -> None:
    interpreter = Interpreter()
    base = np.full((2, 2, 3), [0.2, 0.4, 0.6])
    for build in (
        lambda: image.random_brightness(base, 0.2, seed=1),
        lambda: image.random_contrast(FLOATS, 0.5, 1.5, seed=1),
        lambda: image.random_saturation(base, 0.5, 1.5, seed=1),
        lambda: image.random_hue(base, 0.2, seed=1),
    ):
        y = build()
        values = [interpreter.run(y) for _ in range(3)]
        assert not np.array_equal(values[0], values[1])
        again = build()
        with fb.Session() as one, fb.Session() as two:
            np.testing.assert_array_equal(one.run(y), two.run(again))
    y = image.random_brightness(base, 0.2)
    shifts = [interpreter.run(y)[0, 0, 0] - 0.2 for _ in range(50)]
    assert -0.2 <= min(shifts) < -0.1 < 0.1 < max(shifts) < 0.2


def test_total_variation_and_noise() -> None:
    pixels = np.array([[1.0, 2.0], [4.0, 8.0]])[..., None]
    assert evaluate(image.total_variation(pixels)) == 3 + 6 + 1 + 4
    both = image.total_variation(np.stack([pixels, 2 * pixels]))
    assert evaluate(both).tolist() == [14, 28]
    noise = evaluate(image.psnr(BYTES, BYTES ^ 1, 255))
    np.testing.assert_allclose(noise, 20 * np.log10(255), rtol=1e-5)
    small = np.zeros((2, 2, 1), np.int8)
    noise = evaluate(image.psnr(small, small + np.int8(1), 255))
    np.testing.assert_allclose(noise, 20 * np.log10(255), rtol=1e-5)
    assert (evaluate(image.psnr(FLOATS, FLOATS, 1.0)) == np.inf).all()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: image.rgb_to_hsv(BYTES), "hues are floats"),
        (lambda: image.rgb_to_hsv(FLOATS[..., :2]), "three channels"),
        (lambda: image.hsv_to_rgb(1.0), "three channels"),
        (lambda: image.rgb_to_grayscale(FLOATS[..., :1]), "three channels"),
        (lambda: image.grayscale_to_rgb(FLOATS), "width, 1"),
        (lambda: image.grayscale_to_rgb([1.0]), "width, 1"),
        (lambda: image.convert_image_dtype(FLOATS, fb.bool), "not bool"),
        (lambda: image.convert_image_dtype(["a"], fb.uint8), "not string"),
        (lambda: image.adjust_gamma(FLOATS, -1.0), "gamma is not negative"),
        (lambda: image.adjust_contrast(1.0, 2.0), "images are"),
        (lambda: image.adjust_contrast(FLOATS, [2.0]), "is a scalar"),
        (lambda: image.random_brightness(FLOATS, -1), "max_delta"),
        (lambda: image.random_hue(FLOATS, 0.6), "max_delta"),
        (lambda: image.random_contrast(FLOATS, 2, 1), "lower < upper"),
        (lambda: image.random_saturation(FLOATS, -1, 1), "lower < upper"),
        (lambda: image.psnr(FLOATS, FLOATS[..., :1], 1.0), "do not compare"),
        (lambda: image.ssim(FLOATS, FLOATS[:, :1], 1.0), "do not compare"),
    ],
    ids=count(),
)
def test_errors(build: Any, message: str) -> None:
    with pytest.raises(Error, match=message) as caught:
        build()
    assert "test_colours.py" in str(caught.value)


def test_gamma_in_the_run() -> None:
    gamma = fb.placeholder(fb.float32, [])
    y = image.adjust_gamma(FLOATS.astype(np.float32), gamma)
    assert evaluate(y, {gamma: 2.0}).shape == FLOATS.shape
    with pytest.raises(Error, match="gamma is not negative"):
        evaluate(y, {gamma: -2.0})
