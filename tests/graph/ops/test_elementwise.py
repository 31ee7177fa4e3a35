"""Elementwise operations: edges, errors, and what is composed of others."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.special

import flowbook as fb
from tests.interpreter import evaluate

TypeError_ = fb.errors.InvalidTypeError


# Operators


def test_shifts() -> None:
    x = fb.constant([1, -8, 5])
    assert evaluate(x << 2).tolist() == [4, -32, 20]
    assert evaluate(x >> 1).tolist() == [0, -4, 2]
    assert evaluate(1 << fb.constant([0, 3])).tolist() == [1, 8]
    assert evaluate(256 >> fb.constant([1, 8])).tolist() == [128, 1]
    assert evaluate(x << 32).tolist() == [0, 0, 0]
    assert evaluate(x >> -1).tolist() == [0, -1, 0]
    with pytest.raises(TypeError_):
        fb.constant([1.0]) << 1


def test_bitwise_functions() -> None:
    x = fb.constant([12, -1], fb.int8)
    assert evaluate(fb.bitwise_and(x, 10)).tolist() == [8, 10]
    assert evaluate(fb.bitwise_or(3, x)).tolist() == [15, -1]
    assert evaluate(fb.bitwise_xor(x, x)).tolist() == [0, 0]
    assert evaluate(fb.invert(x)).tolist() == [-13, 0]
    with pytest.raises(TypeError_, match="bits are those of integers") as caught:
        fb.invert(fb.constant(True))
    assert "logical_not" in str(caught.value.hint)


def test_divisions_of_floats_round_the_quotient() -> None:
    """As in TensorFlow, where 1 // 0.1 is 10, since the float quotient is."""
    x = fb.constant(np.array([1.0, np.inf, -np.inf, -7.0]))
    y = fb.constant(np.array([0.1, 2.0, 2.0, 2.0]))
    assert evaluate(x // y).tolist() == [10, np.inf, -np.inf, -4]


def test_integers_are_not_divided_by_zero() -> None:
    for function in (fb.truncatediv, fb.truncatemod, fb.floordiv, fb.mod):
        with pytest.raises(fb.errors.InvalidArgumentError, match="divided by zero"):
            evaluate(function(fb.constant([1, 2]), [1, 0]))


@pytest.mark.parametrize("dtype", [fb.int8, fb.int64, fb.uint8])
def test_truncated_division_of_all_signs(dtype: Any) -> None:
    low = 0 if dtype is fb.uint8 else -20
    x, y = np.meshgrid(np.arange(low, 21), [d for d in range(low // 4, 6) if d])
    x, y = x.astype(dtype.numpy), y.astype(dtype.numpy)
    quotient, rest = evaluate([fb.truncatediv(x, y), fb.truncatemod(x, y)])
    np.testing.assert_array_equal(quotient, np.trunc(x / y))
    np.testing.assert_array_equal(quotient * y + rest, x)


# Gradients that are zeros, or none


def test_steps_have_no_slope() -> None:
    x = fb.constant([1.5, -0.5])
    for function in (fb.floor, fb.ceil, fb.round, fb.trunc):
        assert fb.gradients(function(x), x) == [None]
    [zeros] = fb.gradients(fb.sign(x), x)
    assert evaluate(zeros).tolist() == [0, 0]


def test_where_a_factor_is_0_gradients_are_finite() -> None:
    x, y = fb.constant([0.0, 0.0, 2.0]), fb.constant([0.0, -1.0, 0.5])
    for function in (fb.xlogy, fb.xlog1py, fb.xdivy):
        for gradient in evaluate(fb.gradients(function(x, y), [x, y])):
            assert gradient[:2].tolist() == [0, 0]
    for gradient in evaluate(fb.gradients(fb.div_no_nan(y, x), [x, y])):
        assert gradient[:2].tolist() == [0, 0]
    y = fb.reciprocal_no_nan(x)
    assert evaluate(y).tolist() == [0, 0, 0.5]
    assert evaluate(fb.gradients(y, x)[0]).tolist() == [0, 0, -0.25]
    origin = fb.constant([0.0])
    for function in (fb.atan2, fb.hypot):
        assert evaluate(fb.gradients(function(origin, origin), origin)[0]).tolist() == [0]


def test_equal_infinities_share_the_gradient() -> None:
    x = fb.constant([np.inf, -np.inf, 1.0])
    y = fb.identity(x)
    found = evaluate(fb.gradients(fb.logaddexp(x, y), [x, y], stop_gradients=[y]))
    assert found[0].tolist() == [0.5, 0.5, 0.5]
    assert evaluate(fb.logaddexp(x, y)).tolist()[:2] == [np.inf, -np.inf]


def test_slopes_far_out_are_accurate() -> None:
    cases = [
        (fb.asinh, 1e30, 1e-30),
        (fb.acosh, 1e30, 1e-30),
        (fb.atan, 1e30, 0.0),
        (fb.sinc, 1e-4, -(np.pi**2) / 3 * 1e-4),
        (fb.sinc, 0.0, 0.0),
        (fb.tanh, 50.0, 0.0),
        (fb.cbrt, 1e-30, 1e20 / 3),
    ]
    for function, at, slope in cases:
        x = fb.constant(np.float32(at))
        [gradient] = fb.gradients(function(x), x)
        np.testing.assert_allclose(evaluate(gradient), slope, rtol=2e-5, atol=1e-37)


# Closeness


def test_isclose_is_numpys() -> None:
    odd = np.array([0.0, 1e-9, 1.0, 1 + 1e-6, 1e10, 1e10 + 1e4, np.nan, np.inf, -np.inf])
    a, b = odd[:, None], odd
    for nan in (False, True):
        found = evaluate(fb.isclose(fb.constant(a), b, equal_nan=nan))
        np.testing.assert_array_equal(found, np.isclose(a, b, equal_nan=nan))
    assert evaluate(fb.isclose(fb.constant([1 + 1j]), [1 + 1.0000001j])).tolist() == [True]


def test_approximately_equal() -> None:
    x = fb.constant([1.0, 2.0, 3.0])
    assert evaluate(fb.approximate_equal(x, [1.0, 2.5, 2.0], 0.75)).tolist() == [True, True, False]


# Bits


def test_bits_and_back() -> None:
    for dtype in fb.NUMBERS:
        values = np.arange(24).reshape(2, 3, 4).astype(dtype.numpy)
        x = fb.constant(values)
        for other in fb.NUMBERS:
            if other.size <= dtype.size:
                back = fb.bitcast(fb.bitcast(x, other), dtype)
                assert back.shape == [2, 3, 4]
                np.testing.assert_array_equal(evaluate(back), values)


def test_the_bits_of_bfloat16() -> None:
    values = np.array([1.0, -2.5], ml_dtypes.bfloat16)
    bits = fb.bitcast(fb.constant(values), fb.uint16)
    assert evaluate(bits).tolist() == [0x3F80, 0xC020]
    with fb.Session() as sess:
        for _ in range(2):
            assert sess.run(fb.bitcast(bits, fb.bfloat16)).tolist() == [1.0, -2.5]


def test_bits_that_do_not_fit() -> None:
    error = fb.errors.InvalidArgumentError
    with pytest.raises(error, match="one int32 is made of 4 uint8"):
        fb.bitcast(fb.zeros([2, 3], fb.uint8), fb.int32)
    with pytest.raises(error, match="one int32 is made of 4 uint8"):
        fb.bitcast(fb.zeros([], fb.uint8), fb.int32)
    x = fb.placeholder(fb.uint8)
    with pytest.raises(error, match="one int32 is made of 4 uint8"):
        evaluate(fb.bitcast(x, fb.int32), {x: np.zeros((2, 3), np.uint8)})
    with pytest.raises(TypeError_, match="bool is no number"):
        fb.bitcast(fb.zeros([2]), fb.bool)


def test_saturated_halves() -> None:
    x = fb.constant([1e6, -1e6, 2.0, np.nan])
    y = fb.saturate_cast(x, fb.float16)
    assert evaluate(y).tolist()[:3] == [65504, -65504, 2]
    assert np.isnan(evaluate(y)[3])
    assert evaluate(fb.gradients(y, x)[0])[:3].tolist() == [0, 0, 1]
    large = fb.saturate_cast(fb.constant(np.array([1e39, 3.0])), fb.bfloat16)
    assert evaluate(large)[0] == ml_dtypes.finfo(ml_dtypes.bfloat16).max
    with pytest.raises(TypeError_, match="no smallest and largest"):
        fb.saturate_cast(x, fb.complex64)


# Special functions


def test_lbeta() -> None:
    x = np.array([[3.0, 4.0, 0.5], [1.0, 2.0, 1.5]])
    expected = scipy.special.gammaln(x).sum(-1) - scipy.special.gammaln(x.sum(-1))
    y = fb.lbeta(fb.constant(x))
    np.testing.assert_allclose(evaluate(y), expected, rtol=1e-14)
    assert evaluate(fb.lbeta(fb.zeros([2, 0]))).tolist() == [-np.inf, -np.inf]
    with pytest.raises(fb.errors.InvalidArgumentError, match="out of range"):
        fb.lbeta(fb.constant(2.0))


def test_the_edges_of_the_incomplete_gamma_function() -> None:
    a = fb.constant(np.array([2.0, 2.0, 1.0]))
    x = fb.constant(np.array([0.0, np.inf, 0.0]))
    for sign, function in ((1, fb.igamma), (-1, fb.igammac)):
        da, dx = evaluate(fb.gradients(function(a, x), [a, x]))
        assert da.tolist() == [0, 0, 0]
        assert (sign * dx).tolist()[::2] == [0, 1]


def test_importing_flowbook_does_not_load_scipy() -> None:
    program = "import sys, flowbook; print('scipy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "False"
