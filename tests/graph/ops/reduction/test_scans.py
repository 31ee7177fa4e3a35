"""Scans: what rows of values cannot express."""

from __future__ import annotations

import numpy as np
import pytest

import flowbook as fb
from tests.interpreter import evaluate


@pytest.mark.parametrize("reverse", [False, True])
def test_the_gradient_of_an_exclusive_cumulative_logsumexp(reverse: bool) -> None:
    at = np.array([0.5, -1.0, 2.0, 0.25])
    x = fb.placeholder(fb.float64, [4])
    sums = fb.cumulative_logsumexp(x, exclusive=True, reverse=reverse)
    kept = sums[:-1] if reverse else sums[1:]
    loss = fb.reduce_sum(kept * kept * np.array([1.0, -2.0, 0.5]))
    [first] = fb.gradients(loss, x)
    total = fb.reduce_sum(first * np.array([1.0, 0.5, -1.0, 2.0]))
    [second] = fb.gradients(total, x)
    for value, gradient in ((loss, first), (total, second)):
        expected = []
        for k in range(4):
            step = 1e-6 * np.eye(4)[k]
            ends = [evaluate(value, {x: at + s * step}) for s in (1, -1)]
            expected.append((ends[0] - ends[1]) / 2e-6)
        np.testing.assert_allclose(evaluate(gradient, {x: at}), expected, rtol=1e-6, atol=1e-7)


def test_where_nothing_is_summed_the_gradient_is_0() -> None:
    x = fb.constant([-np.inf, -np.inf, 0.0])
    for y in (fb.cumulative_logsumexp(x), fb.reduce_logsumexp(x[:2])):
        [gradient] = fb.gradients(y, x)
        assert evaluate(gradient)[:2].tolist() == [0, 0]


def test_half_precision_sums_of_many_values() -> None:
    x = fb.constant(np.ones(5000, np.float16))
    assert evaluate(fb.cumsum(x))[-1] == 5000
    assert evaluate(fb.reduce_sum(fb.ones([5000, 2], fb.float16), 0)).tolist() == [5000, 5000]


def test_an_axis_that_does_not_exist() -> None:
    with pytest.raises(fb.errors.InvalidArgumentError, match="out of range"):
        fb.cumsum(fb.zeros([2]), 1)
    with pytest.raises(fb.errors.InvalidArgumentError, match="out of range"):
        fb.cumprod(fb.constant(1.0))
    x = fb.placeholder(fb.float32)
    with pytest.raises(fb.errors.InvalidArgumentError, match="out of range"):
        evaluate(fb.cumsum(x, 2), {x: np.ones((2, 2))})


def test_products_have_derivatives_of_any_order() -> None:
    """The fourth derivatives of x0 x1 x2 x3 x4, in turn by each of the first four."""
    at = np.array([0.0, 2.0, 0.0, -1.0, 3.0])
    for product in (fb.reduce_prod, lambda x: fb.cumprod(x)[-1]):
        x = fb.constant(at)
        y = product(x)
        for k in range(4):
            [gradient] = fb.gradients(y, x)
            y = gradient[k]
        assert evaluate(y) == pytest.approx(3.0)
