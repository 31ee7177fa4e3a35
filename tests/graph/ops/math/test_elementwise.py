"""Elementwise operations: edges, errors, and what is composed of others."""

from __future__ import annotations

import itertools
import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.special

import flowbook as fb
from flowbook.graph.numerics.element_choices import selected
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


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.complex64])
def test_numbers_are_as_elements_where_a_factor_is_0(dtype: Any) -> None:
    """To the bit, in the first run and later; and nothing of what was fed is handed on."""
    x, y, dy = [fb.placeholder(dtype, []) for _ in range(3)]
    elements = [fb.reshape(t, [1]) for t in (x, y, dy)]
    both = []
    for a, b, slope in ((x, y, dy), elements):
        [over] = fb.gradients(a / b, [a], [slope])
        both.append([fb.multiply_no_nan(a, b), over])
    edges = [dtype(v) for v in (0.0, -0.0, np.inf, np.nan, -1.5)]
    with fb.Session() as sess:
        for one, other, third in itertools.product(edges, repeat=3):
            feeds = {x: one, y: np.array(other), dy: np.array(third)}
            numbers, arrays = sess.run(both, feeds)
            for number, array in zip(numbers, arrays, strict=True):
                assert number.tobytes() == array.tobytes() or np.isnan([number, array[0]]).all()
                assert not any(np.may_share_memory(number, fed) for fed in feeds.values())


@pytest.mark.parametrize(
    "values", [(1.5, np.nan), (2, 3), (True, False), (1 + 2j, 0j), ("a", "")], ids=str
)
def test_numbers_are_chosen_as_elements_are(values: Any) -> None:
    """In the first run and later; and what is given is not handed on as it is."""
    dtype = fb.constant(values[0]).dtype
    condition, x, y = fb.placeholder(fb.bool, []), *[fb.placeholder(dtype, []) for _ in range(2)]
    both = [fb.where(condition, x, y), fb.where(fb.reshape(condition, [1]), x, y)[0]]
    with fb.Session() as sess:
        for holds in (True, False, True):
            feeds = {condition: np.array(holds), x: np.array(values[0]), y: np.array(values[1])}
            number, element = sess.run(both, feeds)
            np.testing.assert_array_equal(number, element)
            assert type(number) is type(element)
            given = feeds[condition], np.array(values[0]), np.array(values[1])
            chosen = np.asarray(selected(np, *given))
            assert not any(np.may_share_memory(chosen, each) for each in given)


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


def test_order() -> None:
    for values, weakly, strictly in (
        ([1, 2, 2], True, False),
        ([1, 2, 3], True, True),
        ([[1, 5], [2, 6]], False, False),
        ([7], True, True),
        ([1, 3, 2], False, False),
    ):
        assert evaluate(fb.is_non_decreasing(values)) == weakly
        assert evaluate(fb.is_strictly_increasing(values)) == strictly
    x = fb.placeholder(fb.float32)
    assert evaluate(fb.is_non_decreasing(x), {x: np.zeros(0)})


def test_polynomials() -> None:
    x = fb.constant(np.array([[0.5, -2.0], [3.0, 0.0]]))
    y = fb.polyval([2.0, fb.constant(np.array([-1.0, 0.5])), 4.0], x)
    at = evaluate(x)
    np.testing.assert_allclose(evaluate(y), 2 * at**2 + np.array([-1.0, 0.5]) * at + 4)
    assert evaluate(fb.polyval([], x)).tolist() == [[0, 0], [0, 0]]
    with pytest.raises(TypeError_, match="a list"):
        fb.polyval(2.0, x)


def test_scalars() -> None:
    """Of no dimensions, which kernels may get as NumPy's scalars."""
    x = fb.placeholder(fb.float64, [])
    h = x * 0.5
    names = [
        "abs",
        "acos",
        "asin",
        "asinh",
        "atan",
        "bessel_i0",
        "bessel_i0e",
        "bessel_i1",
        "bessel_i1e",
        "cbrt",
        "cos",
        "cosh",
        "digamma",
        "erf",
        "erfc",
        "erfinv",
        "exp2",
        "expm1",
        "lgamma",
        "log10",
        "log2",
        "ndtri",
        "reciprocal_no_nan",
        "reduce_std",
        "reduce_euclidean_norm",
        "reduce_variance",
        "round",
        "sign",
        "sinc",
        "sinh",
        "tan",
        "trunc",
        "norm",
        "angle",
        "real",
        "imag",
        "count_nonzero",
    ]
    two = [
        "atan2",
        "copysign",
        "div_no_nan",
        "heaviside",
        "hypot",
        "igamma",
        "igammac",
        "logaddexp",
        "multiply_no_nan",
        "nextafter",
        "polygamma",
        "truncatediv",
        "truncatemod",
        "xdivy",
        "xlog1py",
        "xlogy",
        "zeta",
        "complex",
        "isclose",
        "approximate_equal",
    ]
    outputs = [getattr(fb, n)(h) for n in names] + [getattr(fb, n)(h, h) for n in two]
    floats = [y for y in outputs if y.dtype is fb.float64]
    outputs += fb.gradients(floats, h)
    z = fb.complex(h, x)
    outputs += [fb.abs(z), fb.angle(z), fb.real(z), fb.imag(z), fb.sign(z), z**z]
    n = fb.cast(x, fb.int32) + 1
    outputs += [n << 1, n >> 1, fb.population_count(n), fb.bitcast(h, fb.uint8)]
    outputs += [fb.saturate_cast(h, fb.int8), fb.bitcast(h, fb.int64), fb.bincount(n)]
    outputs += [fb.betainc(h, h, h), fb.histogram_fixed_width_bins(h, [0.0, 1.0])]
    expected = evaluate(outputs, {x: 0.75})
    with fb.Session() as sess:
        for _ in range(3):
            for y, value, wanted in zip(
                outputs, sess.run(outputs, {x: 0.75}), expected, strict=True
            ):
                assert np.shape(value) == y.shape or y.op.type == "Bincount"
                assert value.dtype == y.dtype.numpy
                np.testing.assert_array_equal(value, wanted)


def test_zeta_at_its_ends() -> None:
    orders = np.array([1.0, 2.0, np.inf, np.nan])
    places = np.array([[-2.0], [0.0], [0.5], [1.0], [2.5], [np.inf], [np.nan]])
    found = evaluate(fb.zeta(orders, places))
    np.testing.assert_array_equal(found[:, 0], [np.inf] * 6 + [np.nan])
    np.testing.assert_array_equal(found[:, 2], [np.inf, np.inf, np.inf, 1.0, 0.0, 0.0, np.nan])
    np.testing.assert_array_equal(found[:, 3], np.nan)


def test_variables_are_taken() -> None:
    v = fb.Variable([4.0, -9.0])
    with fb.Session() as sess:
        for function in (fb.abs, fb.round, fb.conj, fb.real, fb.angle, fb.norm, fb.reduce_variance):
            function(v)
        assert sess.run(abs(v)).tolist() == [4, 9]
        assert sess.run(fb.abs(fb.complex(v, 0.0))).tolist() == [4, 9]
        assert sess.run(fb.global_norm([v])) == pytest.approx(97**0.5)
        assert sess.run(fb.polyval([v, 1.0], v)).tolist() == [17, 82]


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


@pytest.mark.parametrize("known", list(itertools.product([True, False], repeat=3)))
def test_a_vector_chooses_rows_whatever_is_known_before_the_run(known: tuple[bool, ...]) -> None:
    square = np.arange(4.0).reshape(2, 2)
    values = [np.array([True, False]), square, -square]
    condition, x, y = inputs = [
        fb.placeholder(fb.as_dtype(v.dtype), v.shape if is_known else None)
        for v, is_known in zip(values, known, strict=True)
    ]
    chosen = fb.where(condition, x, y)
    [dx] = fb.gradients(chosen, [x])
    feeds = dict(zip(inputs, values, strict=True))
    with fb.Session() as sess:
        for _ in range(2):
            assert sess.run(chosen, feeds).tolist() == [[0.0, 1.0], [-2.0, -3.0]]
            assert sess.run(dx, feeds).tolist() == [[1.0, 1.0], [0.0, 0.0]]
        with pytest.raises(fb.errors.InvalidArgumentError):
            sess.run(chosen, {**feeds, x: np.ones((3, 2)), y: np.ones((3, 2))})
        if not known[1]:
            assert sess.run(chosen, {**feeds, x: [8.0, 9.0]}).tolist() == [[8.0, -1.0], [8.0, -3.0]]


def test_derivatives_of_igamma_at_zero() -> None:
    """Of `1 - exp(-x)`, `1 - exp(-x) * (1 + x)` and so on, and where they are infinite."""
    a, x = fb.constant([0.5, 1.0, 1.5, 2.0, 3.0, 4.0], fb.float64), fb.constant(np.zeros(6))
    inf = np.inf
    wanted = (
        [inf, 1, 0, 0, 0, 0],
        [-inf, -1, inf, 1, 0, 0],
        [inf, 1, -inf, -2, 1, 0],
        [-inf, -1, inf, 3, -3, 1],
    )
    for sign, of in ((1, fb.igamma(a, x)), (-1, fb.igammac(a, x))):
        found = of
        for order in wanted:
            [found] = fb.gradients(found, x)
            np.testing.assert_allclose(sign * evaluate(found), order, rtol=1e-12)
        for first, second in ((a, x), (x, a)):
            [mixed] = fb.gradients(fb.gradients(of, first)[0], second)
            np.testing.assert_array_equal(sign * evaluate(mixed), [-inf, -inf, 0, 0, 0, 0])


def test_a_cast_to_the_same_dtype_is_no_operation_unless_it_has_a_name() -> None:
    x = fb.constant(1.0)
    assert fb.cast(x, fb.float32) is x
    assert fb.cast(x, fb.float32, name="again").op.type == "Cast"
