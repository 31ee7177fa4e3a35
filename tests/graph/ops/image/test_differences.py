"""Differences of images against NumPy, SciPy and the formulas; the colours of television."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.ndimage

import flowbook as fb
from tests.interpreter import evaluate

image = fb.image


def pixels(*dims: int) -> Any:
    return np.random.default_rng(dims).random(dims).astype(np.float32)


def similarity(x: Any, y: Any, size: int, sigma: float, k1: float, k2: float) -> float:
    """The mean of the index over all windows, as it is defined, for images of one channel."""
    place = np.arange(size) - (size - 1) / 2
    line = np.exp(-(place**2) / (2 * sigma**2))
    weights = np.outer(line, line) / np.outer(line, line).sum()
    found = []
    for i in range(x.shape[0] - size + 1):
        for j in range(x.shape[1] - size + 1):
            a, b = (v[i : i + size, j : j + size].astype(np.float64) for v in (x, y))
            mean_a, mean_b = (weights * a).sum(), (weights * b).sum()
            var_a = (weights * (a - mean_a) ** 2).sum()
            var_b = (weights * (b - mean_b) ** 2).sum()
            cov = (weights * (a - mean_a) * (b - mean_b)).sum()
            means = (2 * mean_a * mean_b + k1**2) / (mean_a**2 + mean_b**2 + k1**2)
            found.append(means * (2 * cov + k2**2) / (var_a + var_b + k2**2))
    return float(np.mean(found))


@pytest.mark.parametrize("settings", [(11, 1.5, 0.01, 0.03), (4, 0.8, 0.1, 0.2)])
def test_structural_similarity(settings: Any) -> None:
    x, y = pixels(2, 12, 13, 2), pixels(2, 12, 13, 2)[:, ::-1]
    wanted = [
        np.mean([similarity(x[n, ..., c], y[n, ..., c], *settings) for c in range(2)])
        for n in range(2)
    ]
    np.testing.assert_allclose(evaluate(image.ssim(x, y, 1.0, *settings)), wanted, rtol=1e-4)
    single = image.ssim(x[0], y[0], np.float64(1.0), *map(np.array, settings))
    assert single.shape == ()
    np.testing.assert_allclose(evaluate(single), wanted[0], rtol=1e-4)
    np.testing.assert_allclose(
        evaluate(image.ssim(x * 255, y * 255, 255.0, *settings)), wanted, rtol=1e-4
    )


def test_similarity_of_bytes_and_of_images_whose_size_the_run_tells() -> None:
    x = (pixels(3, 2, 12, 12, 1) * 255).astype(np.uint8)
    of_bytes = evaluate(image.ssim(x, x[..., ::-1, :], 255))
    assert of_bytes.shape == (3, 2)
    floats = fb.placeholder(fb.float32, [None, None, None, None, None])
    index = image.ssim(floats, fb.reverse(floats, [3]), 1.0)
    with fb.Session() as sess:
        np.testing.assert_allclose(sess.run(index, {floats: x / 255}), of_bytes, rtol=1e-4)
        np.testing.assert_allclose(sess.run(image.ssim(floats, floats, 1.0), {floats: x / 255}), 1)
        assert sess.run(index, {floats: np.zeros((0, 2, 12, 12, 1))}).shape == (0, 2)


def test_similarity_of_each_image_with_each_other() -> None:
    x = pixels(2, 12, 12, 1)
    y = pixels(3, 12, 12, 1)[:, ::-1]
    unknown = fb.placeholder_with_default(x[:, None], None)
    for first in (fb.constant(x[:, None]), unknown):
        found = evaluate(image.ssim(first, y, 1.0))
        for i in range(2):
            np.testing.assert_allclose(
                found[i], evaluate(image.ssim(np.stack([x[i]] * 3), y, 1.0)), rtol=1e-5
            )
    assert evaluate(image.psnr(x[:, None], y, 1.0)).shape == (2, 3)


def test_similarity_at_several_sizes() -> None:
    # Odd sizes, and a channel that nothing says about another.
    x = pixels(2, 25, 23, 2)
    y = np.clip(x + 0.2 * pixels(2, 25, 23, 2)[::-1], 0, 1).astype(np.float32)
    wanted = np.ones((2, 2))
    a, b = x, y
    for scale, power in enumerate((0.25, 0.75)):
        if scale:
            a, b = (
                np.pad(v, [(0, 0), (0, 1), (0, 1), (0, 0)], "edge")
                .reshape(2, 13, 2, 12, 2, 2)
                .mean((2, 4))
                for v in (a, b)
            )
        for n in range(2):
            for c in range(2):
                settings = (5, 1.5, 0.01, 0.03)
                whole = similarity(a[n, ..., c], b[n, ..., c], *settings)
                # Without the luminance, which k1 makes 1.
                parts = similarity(a[n, ..., c], b[n, ..., c], 5, 1.5, 1e6, 0.03)
                wanted[n, c] *= (whole if scale else parts) ** power
    found = image.ssim_multiscale(x, y, 1.0, (0.25, 0.75), filter_size=5)
    np.testing.assert_allclose(evaluate(found), wanted.mean(1), rtol=1e-4)
    floats = fb.placeholder(fb.float32, [None, None, None, None])
    with fb.Session() as sess:
        index = image.ssim_multiscale(floats, floats[:, ::-1], 1.0, (0.25, 0.75), 5)
        unknown = sess.run(index, {floats: x})
    known = evaluate(image.ssim_multiscale(x, x[:, ::-1], 1.0, (0.25, 0.75), 5))
    np.testing.assert_allclose(unknown, known, rtol=1e-4)
    assert evaluate(image.ssim_multiscale(x[0], x[0], 1.0, (0.5, 0.5), 5)) == pytest.approx(1)


def test_similarity_has_gradients() -> None:
    x, y = fb.constant(pixels(6, 6, 1)), pixels(6, 6, 1)[::-1]
    index = image.ssim(x, y, 1.0, filter_size=5)
    assert fb.gradient_error(index, x) < 1e-2


@pytest.mark.parametrize("dims", [(2, 5, 6, 3), (1, 2, 2, 1)])
def test_sobel_edges(dims: Any) -> None:
    x = pixels(*dims)
    found = evaluate(image.sobel_edges(x))
    # SciPy smooths along every other axis; here batches and channels are on their own.
    for n in range(dims[0]):
        for c in range(dims[3]):
            down = scipy.ndimage.sobel(x[n, ..., c], 0, mode="mirror")
            right = scipy.ndimage.sobel(x[n, ..., c], 1, mode="mirror")
            wanted = np.stack([down, right], -1)
            np.testing.assert_allclose(found[n, :, :, c], wanted, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("dims", [(4, 5, 3), (2, 4, 5, 3)])
def test_image_gradients(dims: Any) -> None:
    x = pixels(*dims)
    down, right = evaluate(list(image.image_gradients(x)))
    for found, axis in ((down, -3), (right, -2)):
        last = np.take(x, [-1], axis)
        np.testing.assert_array_equal(found, np.diff(x, axis=axis, append=last))


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int32, np.float32])
def test_total_variation_does_not_wrap_around(dtype: Any) -> None:
    x = np.array([[0, 120], [120, 0]], dtype)[..., None]
    total = image.total_variation(x)
    assert total.dtype is {np.int32: fb.int32, np.float32: fb.float32}.get(dtype, fb.int64)
    assert evaluate(total) == 480


def test_no_images() -> None:
    nothing = np.zeros((0, 12, 12, 3), np.float32)
    assert evaluate(image.ssim(nothing, nothing, 1.0)).shape == (0,)
    assert evaluate(image.total_variation(nothing)).shape == (0,)
    assert evaluate(image.sobel_edges(nothing)).shape == (0, 12, 12, 3, 2)
    assert evaluate(image.per_image_standardization(nothing)).shape == nothing.shape


@pytest.mark.parametrize("name", ["yiq", "yuv"])
def test_colours_of_television(name: str) -> None:
    there, back = getattr(image, f"rgb_to_{name}"), getattr(image, f"{name}_to_rgb")
    white, grey = evaluate(there([[1.0, 1.0, 1.0], [0.5, 0.5, 0.5]]))
    np.testing.assert_allclose(white, [1, 0, 0], atol=1e-4)
    np.testing.assert_allclose(grey, [0.5, 0, 0], atol=1e-4)
    x = pixels(2, 4, 5, 3).astype(np.float64)
    np.testing.assert_allclose(evaluate(back(there(x))), x, rtol=1e-12)
    brightness = evaluate(there(x))[..., 0]
    np.testing.assert_allclose(brightness, x @ [0.299, 0.587, 0.114])
    unknown = fb.placeholder_with_default(x, None)
    np.testing.assert_allclose(evaluate(back(there(unknown))), x, rtol=1e-12)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda x: image.ssim(x, x[:, 1:], 1.0), "do not compare"),
        (lambda x: image.ssim(x[:, :4], x[:, :4], 1.0), "smaller than the window of 11 by 11"),
        (lambda x: image.ssim(x[0, 0], x[0, 0], 1.0), "height, width, channels"),
        (lambda x: image.ssim_multiscale(x, x, 1.0), "smaller than the window of 11 by 11"),
        (lambda x: image.ssim_multiscale(x, x, 1.0, ()), "no power_factors"),
        (lambda x: image.sobel_edges(x[0]), "images are .batch"),
        (lambda x: image.sobel_edges(x.astype(int)), "int64"),
        (lambda x: image.rgb_to_yiq(x.astype(int)), "floating-point dtype, not int64"),
        (lambda x: image.yuv_to_rgb(x[..., :2]), r"\[\.\.\., 3\], not of shape"),
        (lambda x: image.rgb_to_yuv(1.0), r"\[\.\.\., 3\], not of shape"),
    ],
    ids=[
        "compare",
        "small",
        "rank",
        "halved",
        "sizes",
        "batch",
        "integers",
        "dtype",
        "channels",
        "scalar",
    ],
)
def test_errors(build: Any, message: str) -> None:
    with pytest.raises(fb.errors.InvalidArgumentError, match=message) as caught:
        build(pixels(1, 12, 12, 3))
    assert "test_differences.py, line" in str(caught.value)
