"""Hessians against closed forms and numeric derivatives, and what they need to know."""

from __future__ import annotations

import numpy as np
import pytest

import flowbook as fb
from tests.interpreter import evaluate

RANDOM = np.random.default_rng(2)
A = RANDOM.normal(size=(4, 4))


def test_a_quadratic_form_has_its_matrix() -> None:
    x = fb.placeholder(fb.float64, [4])
    [h] = fb.hessians(fb.reduce_sum(x * fb.matvec(A, x)), x)
    assert h is not None
    assert h.shape == [4, 4]
    np.testing.assert_allclose(evaluate(h, {x: RANDOM.normal(size=4)}), A + A.T)


def test_matrices_variables_and_several() -> None:
    W = fb.Variable(A[:2, :3])
    s = fb.constant(np.float64(0.5))
    ys = [fb.reduce_sum(W**3) * s, s * s]
    h, of_scalar, none = fb.hessians(ys, [W, s, fb.constant([1.0])])
    assert h is not None
    assert of_scalar is not None
    assert none is None
    expected = np.diag(3 * A[:2, :3].ravel()).reshape(2, 3, 2, 3)
    with fb.Session() as sess:
        found, two = sess.run([h, of_scalar])
    np.testing.assert_allclose(found, expected)
    assert two == 2.0


def test_a_linear_function_and_rows_of_a_table() -> None:
    x = fb.placeholder(fb.float64, [3])
    [flat] = fb.hessians(fb.reduce_sum(x * 5.0), x)
    np.testing.assert_array_equal(evaluate(flat, {x: np.ones(3)}), np.zeros((3, 3)))
    table = fb.placeholder(fb.float64, [3, 1])
    [h] = fb.hessians(fb.reduce_sum(fb.gather(table, [2, 2]) ** 2), table)
    expected = np.zeros((3, 1, 3, 1))
    expected[2, 0, 2, 0] = 4
    np.testing.assert_array_equal(evaluate(h, {table: np.ones((3, 1))}), expected)
    empty = fb.placeholder(fb.float64, [0, 2])
    [h] = fb.hessians(fb.reduce_sum(empty**2), empty)
    assert evaluate(h, {empty: np.ones((0, 2))}).shape == (0, 2, 0, 2)


def test_numeric_derivatives_of_a_network() -> None:
    x = fb.placeholder(fb.float64, [4])
    y = fb.reduce_logsumexp(fb.tanh(fb.matvec(A, x)))
    [slope] = fb.gradients(y, x)
    [h] = fb.hessians(y, x)
    at = RANDOM.normal(size=4)
    columns = [
        (evaluate(slope, {x: at + step}) - evaluate(slope, {x: at - step})) / 2e-6
        for step in np.eye(4) * 1e-6
    ]
    np.testing.assert_allclose(evaluate(h, {x: at}), np.stack(columns, 1), rtol=1e-6, atol=1e-8)


def test_shapes_have_to_be_known() -> None:
    x = fb.placeholder(fb.float64, [None], name="x")
    with pytest.raises(fb.errors.InvalidArgumentError, match=r"x:0 has the shape \[\?\]") as caught:
        fb.hessians(fb.reduce_sum(x**2), x)
    assert "test_hessians.py, line" in str(caught.value)
    known = fb.ensure_shape(x, [2])
    with pytest.raises(LookupError):
        fb.hessians(fb.py_func(np.sin, [known], fb.float64), known)
