"""Fourier transforms beyond their rows: complex gradients, lengths, errors and dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.graph.model.errors import InvalidArgumentError
from tests.graph.ops.math.complex_gradients import check_complex_gradient

RANDOM = np.random.default_rng(5)
WAVES = RANDOM.standard_normal((2, 3, 4)) + 1j * RANDOM.standard_normal((2, 3, 4))


def as_complex(x: Any) -> Any:
    return fb.cast(x, fb.complex128)


@pytest.mark.parametrize(
    "function",
    [fb.fft, fb.ifft, fb.fft2d, fb.ifft2d, fb.fft3d, fb.ifft3d],
    ids=lambda function: function.__name__,
)
def test_gradients_of_complex_transforms(function: Any) -> None:
    for norm in ("backward", "forward", "ortho"):
        check_complex_gradient(lambda x, norm=norm: function(x, norm=norm), [WAVES])


@pytest.mark.parametrize(
    ("function", "length"),
    [
        (fb.irfft, None),
        (fb.irfft, 7),
        (fb.irfft, [5]),
        (fb.irfft, 12),
        (fb.irfft2d, None),
        (fb.irfft2d, (4, 5)),
        (fb.irfft2d, (2, 6)),
        (fb.irfft3d, None),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_gradients_of_half_spectra(function: Any, length: Any) -> None:
    check_complex_gradient(lambda x: as_complex(function(x, length)), [WAVES])


@pytest.mark.parametrize("dtype", [fb.float32, fb.float64])
def test_there_and_back(dtype: fb.DType) -> None:
    x = RANDOM.standard_normal((2, 3, 5)).astype(dtype.numpy)
    spectra = {
        fb.irfft: (fb.rfft(x), [5]),
        fb.irfft2d: (fb.rfft2d(x), [3, 5]),
        fb.irfft3d: (fb.rfft3d(x), [2, 3, 5]),
    }
    with fb.Session() as sess:
        for inverse, (spectrum, lengths) in spectra.items():
            found = sess.run(inverse(spectrum, lengths))
            assert found.dtype == dtype.numpy
            np.testing.assert_allclose(found, x, atol=1e-6)


def test_lengths_may_be_constants_of_the_graph() -> None:
    x = np.ones((2, 6), np.float32)
    assert fb.rfft(x, fb.constant([4])).shape == [2, 3]
    assert fb.irfft(fb.rfft(x), np.array([5])).shape == [2, 5]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda: fb.fft2d(np.ones(3, np.complex64)), "2 dimensions"),
        (lambda: fb.fft(np.ones(3, np.complex64), norm="none"), "backward.*ortho.*, not 'none'"),
        (lambda: fb.rfft(np.float32(3)), "1 dimension"),
        (lambda: fb.rfft2d(np.ones((3, 3), np.float32), [3]), "each of 2"),
        (lambda: fb.rfft(np.ones(3, np.float32), [-1]), "each of 1"),
        (lambda: fb.rfft(np.ones(3, np.complex64)), "one of float32, float64"),
        (lambda: fb.fft(np.ones(3, np.float32)), "one of complex64"),
        (lambda: fb.rfft(np.ones(3, np.float32), fb.placeholder(fb.int32, [1])), "fixed when"),
    ],
)
def test_arguments_are_checked(function: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        function()


def test_a_transform_of_too_few_dimensions_is_an_error_in_the_run_too() -> None:
    x = fb.placeholder(fb.complex64)
    with fb.Session() as sess, pytest.raises(InvalidArgumentError, match="3 dimensions"):
        sess.run(fb.fft3d(x), {x: np.ones((2, 2), np.complex64)})


def test_transforms_of_nothing() -> None:
    with fb.Session() as sess:
        assert sess.run(fb.rfft(np.zeros((2, 0), np.float32))).shape == (2, 0)
        assert sess.run(fb.irfft(np.zeros((2, 0), np.complex64))).shape == (2, 0)
        assert sess.run(fb.irfft(np.ones((2, 1), np.complex64))).shape == (2, 0)
        assert sess.run(fb.rfft(np.zeros((2, 0), np.float32), [4])).tolist() == [[0, 0, 0]] * 2
        assert sess.run(fb.fft(np.zeros((2, 0), np.complex64))).shape == (2, 0)


@pytest.mark.parametrize("n", [3, 6])
def test_cosine_transforms_of_other_lengths(n: int) -> None:
    x = RANDOM.standard_normal((2, 4))
    padded = np.concatenate([x, np.zeros((2, 2))], 1)[:, :n]
    fed = fb.placeholder(fb.float64, [None, None])
    with fb.Session() as sess:
        wanted = sess.run(fb.dct(padded))
        np.testing.assert_allclose(sess.run(fb.dct(x, n=n)), wanted)
        np.testing.assert_allclose(sess.run(fb.dct(fed, n=n), {fed: x}), wanted)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"type": 5}, "type 5"),
        ({"type": 1, "norm": "ortho"}, "type 1"),
        ({"norm": "backward"}, "'norm' is one of None, 'ortho', not 'backward'"),
        ({"axis": 0}, "last one"),
        ({"n": 0}, "at least 1"),
        ({"n": 1, "type": 1}, "at least 2"),
    ],
)
def test_cosine_transforms_check_their_arguments(options: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        fb.dct(np.ones((2, 3), np.float32), **options)
