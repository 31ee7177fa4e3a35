"""Complex numbers: gradients of every operation that takes them, by real differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.graph.building.graph import Graph
from flowbook.graph.ops.reduction import products, scans
from tests.differences import numeric_gradient
from tests.interpreter import evaluate

START = np.array([[0.5 + 0.75j, -1.25 + 0.5j, 0.25 - 0.5j], [1.5 - 1j, -0.5 - 0.25j, 0.75 + 1j]])
OTHER = START[::-1] * (0.5 - 0.3j)
STEP = 1e-6

ONE: dict[str, Callable[[Any], Any]] = {
    name: getattr(fb, name)
    for name in (
        "abs",
        "acos",
        "acosh",
        "angle",
        "asin",
        "asinh",
        "atan",
        "atanh",
        "conj",
        "cos",
        "cosh",
        "exp",
        "expm1",
        "imag",
        "log",
        "log1p",
        "negative",
        "real",
        "reciprocal",
        "reciprocal_no_nan",
        "reduce_mean",
        "reduce_prod",
        "reduce_std",
        "reduce_sum",
        "reduce_variance",
        "reduce_euclidean_norm",
        "norm",
        "rsqrt",
        "sigmoid",
        "sign",
        "sin",
        "sinh",
        "sqrt",
        "square",
        "tan",
        "tanh",
        "cumsum",
        "cumprod",
    )
} | {
    "prod": lambda z: fb.reduce_prod(z, 1, keepdims=True),
    "cumprod-exclusive": lambda z: fb.cumprod(z, 1, exclusive=True, reverse=True),
    "norm-1": lambda z: fb.norm(z, 1, axis=1),
    "norm-matrix": lambda z: fb.norm(z, np.inf, axis=(0, 1)),
    "others": lambda z: products.product_of_others(z, axis=(1,)),
    "halves": lambda z: fb.complex(fb.imag(z), fb.real(z) * 2.0),
}
TWO: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(fb, name)
    for name in (
        "add",
        "subtract",
        "multiply",
        "divide",
        "pow",
        "squared_difference",
        "div_no_nan",
        "multiply_no_nan",
        "xlogy",
        "xlog1py",
        "xdivy",
    )
} | {
    "recurrence": lambda a, b: scans.linear_recurrence(a, b, axis=1),
    "along": lambda x, d: products.product_of_others_gradient(x, [d], axis=(1,)),
}


def scalar(value: Any, seed: int) -> Any:
    """A real number to which all parts of a tensor contribute differently."""
    random = np.random.default_rng(seed)
    shape = value.shape.dims
    weights = random.uniform(0.5, 1.5, shape) + 1j * random.uniform(-1, 1, shape)
    if not value.dtype.is_complex:
        return fb.reduce_sum(value * weights.real)
    return fb.reduce_sum(fb.real(value * weights))


def numeric(loss: Any, at: Any, feeds: dict[Any, Any]) -> np.ndarray:
    """As in TensorFlow: for a real loss, df/dx + i df/dy."""
    return numeric_gradient(loss, at, feeds, STEP, (1, 1j))


@pytest.mark.parametrize(
    ("function", "count"),
    [pytest.param(f, 1, id=n) for n, f in ONE.items()]
    + [pytest.param(f, 2, id=n) for n, f in TWO.items()],
)
def test_gradients_of_both_orders(function: Any, count: int) -> None:
    with Graph().as_default():
        xs = [fb.placeholder(fb.complex128, START.shape) for _ in range(count)]
        feeds = dict(zip(xs, (START, OTHER), strict=False))
        first = scalar(function(*xs), 1)
        slopes = fb.gradients(fb.square(first), xs)
        second = sum((scalar(s, 2) for s in slopes[1:]), scalar(slopes[0], 3))
        curvatures = fb.gradients(second, xs)
        square = fb.square(first)
    for x, slope, curvature in zip(xs, slopes, curvatures, strict=True):
        np.testing.assert_allclose(
            evaluate(slope, feeds), numeric(square, x, feeds), rtol=1e-6, atol=1e-7
        )
        np.testing.assert_allclose(
            evaluate(curvature, feeds), numeric(second, x, feeds), rtol=1e-5, atol=1e-6
        )


def test_real_numbers_have_parts() -> None:
    x = fb.constant([1.5, -2.0])
    assert fb.real(x) is x
    assert fb.conj(x) is x
    assert evaluate(fb.imag(x)).tolist() == [0, 0]
    np.testing.assert_allclose(evaluate(fb.angle(x)), [0, np.pi], rtol=1e-7)
    for function in (fb.real, fb.imag, fb.angle, fb.conj, fb.abs):
        with pytest.raises(fb.errors.InvalidTypeError):
            function(fb.constant(True))
    with pytest.raises(fb.errors.InvalidTypeError, match="no angle"):
        fb.angle(fb.constant(1))


def test_parts_have_the_dtype_of_half_the_size() -> None:
    for whole, part in ((fb.complex64, fb.float32), (fb.complex128, fb.float64)):
        z = fb.zeros([2], whole)
        assert {f(z).dtype for f in (fb.real, fb.imag, fb.angle, fb.abs)} == {part}
        assert fb.complex(fb.zeros([2], part), 1.0).dtype is whole
        assert fb.complex(1.0, fb.zeros([2], part)).dtype is whole
    with pytest.raises(fb.errors.InvalidTypeError, match="float32 or float64"):
        fb.complex(fb.constant(1), fb.constant(2))


def test_gradients_at_0_are_0() -> None:
    z = fb.constant(np.zeros(2, complex))
    for function in (fb.abs, fb.angle, fb.sign):
        y = function(z)
        [gradient] = fb.gradients(fb.real(y), z)
        assert evaluate(gradient).tolist() == [0, 0]


def test_fetched_parts_are_the_callers_own() -> None:
    z = fb.placeholder(fb.complex64, [2])
    value = np.array([1 + 2j, 3 - 1j], np.complex64)
    with fb.Session() as sess:
        for _ in range(3):
            re, im = sess.run([fb.real(z), fb.imag(z)], {z: value})
            re += 1
            im += 1
    assert value.tolist() == [1 + 2j, 3 - 1j]


def test_pow_of_complex_zero() -> None:
    z = fb.constant(np.array([0j, 0j]))
    y = z ** np.array([2.0, 0.0])
    [gradient] = fb.gradients(fb.real(y), z)
    assert evaluate(gradient).tolist() == [0, 0]


def test_a_squared_difference_of_arrays() -> None:
    x, y = np.array([1 + 3j, 2 + 2j]), np.array([-3 + 1j, 2 - 2j])
    for built in (fb.squared_difference(x, y), fb.squared_difference(fb.constant(x), y)):
        assert evaluate(built).tolist() == [20, 16]
