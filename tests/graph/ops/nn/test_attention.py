"""Attention: masks, shapes that only the run knows, and several heads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.interpreter import evaluate

RANDOM = np.random.default_rng(5)
X = RANDOM.normal(size=(2, 3, 8)).astype(np.float32)
KERNELS = [RANDOM.normal(size=(8, 8)).astype(np.float32) for _ in range(4)]
BIASES = [RANDOM.normal(size=8).astype(np.float32) for _ in range(4)]


def attention(q: Any, k: Any, v: Any, mask: Any = True) -> Any:
    scores = np.exp(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) * mask
    return scores / scores.sum(-1, keepdims=True) @ v


@pytest.mark.parametrize("dtype", fb.FLOATS)
def test_nothing_to_look_at_gives_zeros(dtype: fb.DType) -> None:
    x = fb.constant(X, dtype)
    hidden = np.zeros((3, 3), bool)
    added = fb.constant(np.where(hidden, 0, -np.inf), dtype)
    for mask in (fb.constant(hidden), added):
        y = fb.nn.scaled_dot_product_attention(x, x, x, mask)
        value, slope = evaluate([y, fb.gradients(y, [x])[0]])
        assert (value == 0).all()
        assert (slope == 0).all()


@pytest.mark.parametrize("dtype", fb.FLOATS)
def test_what_is_hidden_does_not_matter(dtype: fb.DType) -> None:
    large = np.where(np.arange(3)[:, None] == 1, 200.0, X)
    keys = fb.constant(large, dtype)
    mask = np.array([True, False, True])
    value = evaluate(fb.nn.scaled_dot_product_attention(fb.constant(X, dtype), keys, keys, mask))
    expected = attention(X, X[:, [0, 2]], X[:, [0, 2]])
    tolerance = {fb.bfloat16: 5e-2, fb.float16: 1e-2}.get(dtype, 1e-5)
    np.testing.assert_allclose(value.astype(np.float64), expected, rtol=tolerance, atol=tolerance)


def test_large_products_are_stable() -> None:
    x = fb.constant([[1e2, 0.0], [0.0, 1e2]])
    y = fb.nn.scaled_dot_product_attention(x, x, x)
    value, slope = evaluate([y, fb.gradients(y, [x])[0]])
    np.testing.assert_array_equal(value, [[100, 0], [0, 100]])
    assert np.isfinite(slope).all()


def test_scales() -> None:
    x = fb.constant(X)
    value = evaluate(fb.nn.scaled_dot_product_attention(x, x, x, scale=0.0))
    np.testing.assert_allclose(value, np.repeat(X.mean(1, keepdims=True), 3, 1), rtol=1e-5)


@pytest.mark.parametrize("shape", [None, [None, None, None], [None, None, 8], [2, 3, 8]])
def test_shapes_of_the_run(shape: Any) -> None:
    x = fb.placeholder(fb.float32, shape)
    y = fb.nn.scaled_dot_product_attention(x, x, x, is_causal=True)
    mask = np.tri(3, dtype=bool)
    np.testing.assert_allclose(evaluate(y, {x: X}), attention(X, X, X, mask), rtol=1e-5, atol=1e-6)


def test_the_last_query_sees_all_keys() -> None:
    x = fb.constant(X)
    last = evaluate(fb.nn.scaled_dot_product_attention(x[:, 2:], x, x, is_causal=True))
    whole = evaluate(fb.nn.scaled_dot_product_attention(x, x, x, is_causal=True))
    np.testing.assert_allclose(last, whole[:, 2:], rtol=1e-6)


def heads(x: Any) -> Any:
    return x.reshape(2, 3, 2, 4).transpose(0, 2, 1, 3)


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("shape", [[None, None, 8], [2, 3, 8], [None, None, None]])
def test_several_heads(shape: Any, biased: bool) -> None:
    x = fb.placeholder(fb.float32, shape)
    variables = [fb.Variable(k) for k in KERNELS]
    biases = [fb.Variable(b) for b in BIASES] if biased else []
    y = fb.nn.multi_head_attention(x, x, x, 2, *variables, *biases, is_causal=True)
    b = BIASES if biased else [0] * 4
    q, k, v = (heads(X @ KERNELS[i] + b[i]) for i in range(3))
    seen = attention(q, k, v, np.tri(3, dtype=bool)).transpose(0, 2, 1, 3).reshape(2, 3, 8)
    assert y.shape.is_compatible_with([2, 3, 8])
    assert y.shape[2:] == [8]
    grads = fb.gradients(y, [*variables, *biases])
    value, *slopes = evaluate([y, *grads], {x: X})
    np.testing.assert_allclose(value, seen @ KERNELS[3] + b[3], rtol=1e-4, atol=1e-5)
    assert [s.shape for s in slopes] == [v.shape for v in (*variables, *biases)]
    if shape == [2, 3, 8]:
        assert y.shape == [2, 3, 8]


def test_padding_is_hidden_in_all_heads() -> None:
    x = fb.constant(X)
    mask = np.array([[True, True, False], [True, False, False]])[:, None, None]
    y = fb.nn.multi_head_attention(x, x, x, 2, *KERNELS, mask=mask)
    changed = X.copy()
    changed[0, 2], changed[1, 1:] = 7, -7
    z = fb.nn.multi_head_attention(x, changed, changed, 2, *KERNELS, mask=mask)
    value, other = evaluate([y, z])
    np.testing.assert_allclose(value, other, rtol=1e-5)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: fb.nn.scaled_dot_product_attention([[1]], [[1]], [[1]]), "floating-point"),
        (lambda: fb.nn.scaled_dot_product_attention(X, X, X, [1, 1, 1]), "a mask is bool"),
        (lambda: fb.nn.multi_head_attention(X, X, X, 3, *KERNELS), "divide into 3"),
        (lambda: fb.nn.multi_head_attention(X, X, X, 0, *KERNELS), "at least 1"),
        (lambda: fb.nn.multi_head_attention(X[0], X, X, 2, *KERNELS), "3"),
    ],
)
def test_errors(build: Any, message: str) -> None:
    with pytest.raises(fb.errors.InvalidArgumentError, match=message) as caught:
        build()
    assert "test_attention.py" in str(caught.value)
