"""Activations and losses where numbers are extreme: values and gradients stay finite and right."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.interpreter import evaluate

LOGITS = [1e4, -1e4, 30.0, -30.0, 0.0, 1e-4]

TOLERANCE = {fb.bfloat16: 1e-2, fb.float16: 2e-3, fb.float32: 2e-4, fb.float64: 2e-4}
DTYPES = pytest.mark.parametrize("dtype", fb.FLOATS)


def with_slope(build: Any, *values: Any, dtype: fb.DType) -> Any:
    """A function's value, and its gradient to the last argument."""
    tensors = [fb.constant(v, dtype) for v in values]
    y = build(*tensors)
    [slope] = fb.gradients(y, tensors[-1:])
    return evaluate([y, slope])


def close(found: Any, wanted: Any, dtype: fb.DType) -> None:
    found = np.asarray(found, np.float64)
    np.testing.assert_allclose(found, wanted, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@DTYPES
@pytest.mark.parametrize(
    ("function", "values", "slopes"),
    [
        (fb.nn.relu, [1e4, 0, 30, 0, 0, 1e-4], [1, 0, 1, 0, 0, 1]),
        (fb.nn.relu6, [6, 0, 6, 0, 0, 1e-4], [0, 0, 0, 0, 0, 1]),
        (fb.nn.elu, [1e4, -1, 30, -1, 0, 1e-4], [1, 0, 1, 0, 1, 1]),
        (
            fb.nn.selu,
            [1.0507e4, -1.7581, 31.521, -1.7581, 0, 1.0507e-4],
            [1.0507, 0, 1.0507, 0, 1.0507, 1.0507],
        ),
        (fb.nn.softplus, [1e4, 0, 30, 0, 0.6931, 0.6932], [1, 0, 1, 0, 0.5, 0.5]),
        (fb.log_sigmoid, [0, -1e4, 0, -30, -0.6931, -0.6931], [0, 1, 0, 1, 0.5, 0.5]),
        (fb.nn.softsign, [1, -1, 0.9677, -0.9677, 0, 1e-4], [0, 0, 0.001, 0.001, 1, 1]),
        (fb.nn.swish, [1e4, 0, 30, 0, 0, 5e-5], [1, 0, 1, 0, 0.5, 0.5]),
        (fb.nn.gelu, [1e4, 0, 30, 0, 0, 5e-5], [1, 0, 1, 0, 0.5, 0.5]),
        (
            lambda x: fb.nn.gelu(x, approximate=True),
            [1e4, 0, 30, 0, 0, 5e-5],
            [1, 0, 1, 0, 0.5, 0.5],
        ),
    ],
)
def test_activations(function: Any, values: Any, slopes: Any, dtype: fb.DType) -> None:
    if dtype is fb.float16 and function is fb.nn.softsign:
        slopes = [0, 0, *slopes[2:]]  # (1 + 1e4) ** 2 is infinite there, and its inverse 0.
    value, slope = with_slope(function, LOGITS, dtype=dtype)
    close(value, values, dtype)
    close(slope, slopes, dtype)


def test_small_tails_keep_their_digits() -> None:
    x = fb.constant([-30.0, -10.0], fb.float64)
    value = evaluate(fb.nn.gelu(x))
    np.testing.assert_allclose(value, [-1.472014178e-196, -7.61985302e-23], rtol=1e-8)
    loss = fb.nn.sigmoid_cross_entropy_with_logits(labels=[1.0], logits=[20.0])
    np.testing.assert_allclose(evaluate(loss), np.log1p(np.exp(-20.0)), rtol=1e-6)
    weighted = fb.nn.weighted_cross_entropy_with_logits([1.0, 0.0], [20.0, -20.0], 3.0)
    expected = np.array([3, 1]) * np.log1p(np.exp(-20.0))
    np.testing.assert_allclose(evaluate(weighted), expected, rtol=1e-6)


def test_gradients_have_the_shapes_of_labels_and_logits_that_broadcast_in_the_run() -> None:
    labels, logits = fb.placeholder(fb.float64), fb.placeholder(fb.float64)
    loss = fb.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
    z, x = np.array([[1.0], [0.0]]), np.array([[0.5, -1.0, 2.0]])
    dz, dx = evaluate(fb.gradients(loss, [labels, logits]), {labels: z, logits: x})
    np.testing.assert_allclose(dz, np.full((2, 1), -x.sum()))
    np.testing.assert_allclose(dx, 2 / (1 + np.exp(-x)) - z.sum())


@DTYPES
def test_the_second_gradient_of_gelu_far_from_zero(dtype: fb.DType) -> None:
    x = fb.constant([-300.0, -20.0, -11.0, 0.0, 11.0, 20.0, 300.0], dtype)
    [slope] = fb.gradients(fb.nn.gelu(x, approximate=True), [x])
    [curvature] = fb.gradients(slope, [x])
    wanted = np.zeros(7)
    wanted[3] = math.sqrt(2 / math.pi)
    close(evaluate(curvature), wanted, dtype)


@pytest.mark.parametrize("function", [fb.nn.relu, fb.nn.relu6, fb.nn.leaky_relu, fb.nn.crelu])
def test_the_second_gradient_of_what_has_corners_is_zero(function: Any) -> None:
    x = fb.constant([-300.0, -0.5, 0.0, 0.5, 6.0, 300.0])
    [slope] = fb.gradients(function(x), [x])
    [curvature] = fb.gradients(slope, [x])
    np.testing.assert_array_equal(evaluate(curvature), np.zeros(6))


@DTYPES
def test_softmaxes(dtype: fb.DType) -> None:
    logits = [[1e4, -1e4, 0.0], [-np.inf, 2.0, 2.0], [-1e4, -1e4, -1e4]]
    value, slope = with_slope(lambda x: fb.nn.softmax(x)[:, 0], logits, dtype=dtype)
    close(value, [1, 0, 1 / 3], dtype)
    close(slope, [[0, 0, 0], [0, 0, 0], [2 / 9, -1 / 9, -1 / 9]], dtype)
    value, slope = with_slope(lambda x: fb.nn.log_softmax(x)[:, 1], logits, dtype=dtype)
    close(value, [-2e4, -np.log(2), -np.log(3)], dtype)
    close(slope, [[-1, 1, 0], [0, 0.5, -0.5], [-1 / 3, 2 / 3, -1 / 3]], dtype)


@DTYPES
def test_softmax_losses(dtype: fb.DType) -> None:
    logits = [[1e4, -1e4, 0.0], [-np.inf, 2.0, 2.0], [-1e4, 0.0, 1e4]]
    labels = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    slopes = [[1, -1, 0], [0, 0.5, -0.5], [0, 0, 0]]
    value, slope = with_slope(
        lambda z, x: fb.nn.softmax_cross_entropy_with_logits(labels=z, logits=x),
        labels,
        logits,
        dtype=dtype,
    )
    close(value, [2e4, np.log(2), 0], dtype)
    close(slope, slopes, dtype)
    value, slope = with_slope(
        lambda x: fb.nn.sparse_softmax_cross_entropy_with_logits(labels=[1, 2, 2], logits=x),
        logits,
        dtype=dtype,
    )
    close(value, [2e4, np.log(2), 0], dtype)
    close(slope, slopes, dtype)


@DTYPES
def test_sigmoid_losses(dtype: fb.DType) -> None:
    logits, labels = [1e4, 1e4, -1e4, -1e4, 0.0], [1.0, 0.0, 1.0, 0.0, 1.0]
    value, slope = with_slope(
        lambda z, x: fb.nn.sigmoid_cross_entropy_with_logits(labels=z, logits=x),
        labels,
        logits,
        dtype=dtype,
    )
    close(value, [0, 1e4, 1e4, 0, np.log(2)], dtype)
    close(slope, [0, 1, -1, 0, -0.5], dtype)
    value, slope = with_slope(
        lambda z, x: fb.nn.weighted_cross_entropy_with_logits(z, x, 3.0),
        labels,
        logits,
        dtype=dtype,
    )
    close(value, [0, 1e4, 3e4, 0, 3 * np.log(2)], dtype)
    close(slope, [0, 1, -3, 0, -1.5], dtype)


def test_poisson_loss_of_no_counts() -> None:
    targets = fb.constant([0.0, 0.5, 3.0])
    for full in (False, True):
        loss = fb.nn.log_poisson_loss(targets, [-1e4, 0.0, 2.0], full)
        value, slope = evaluate([loss, fb.gradients(loss, [targets])[0]])
        assert np.isfinite(value).all()
        assert np.isfinite(slope).all()


def test_full_poisson_loss_of_negative_counts_has_no_value() -> None:
    loss = fb.nn.log_poisson_loss([-0.5, 0.0, 1.0, np.nan], fb.zeros([4]), True)
    assert np.isnan(evaluate([loss])[0]).tolist() == [True, False, False, True]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: fb.nn.gelu([1, 2]), "floating-point"),
        (lambda: fb.nn.swish(fb.constant(1)), "cast"),
        (lambda: fb.nn.crelu([1.0], axis=1), "out of range"),
        (lambda: fb.nn.weighted_cross_entropy_with_logits([1.0], [1.0, 2.0], 1.0), "differ"),
        (
            lambda: fb.nn.weighted_cross_entropy_with_logits([1.0], [1.0], [1.0, 2.0]),
            "pos_weight of shape",
        ),
        (lambda: fb.nn.log_poisson_loss([1.0], [1.0, 2.0]), "logits of shape \\[2\\] differ"),
    ],
)
def test_errors(build: Any, message: str) -> None:
    with pytest.raises(fb.errors.InvalidArgumentError, match=message) as caught:
        build()
    assert "test_activations.py" in str(caught.value)


def test_errors_in_the_run() -> None:
    x, weight = fb.placeholder(fb.float32), fb.placeholder(fb.float32)
    loss = fb.nn.weighted_cross_entropy_with_logits(x, x, weight)
    for wrong in ([1.0, 2.0], [[1.0]] * 4):
        with pytest.raises(fb.errors.InvalidArgumentError, match="pos_weight of shape"):
            evaluate(loss, {x: [1.0, 2.0, 3.0], weight: wrong})


def test_labels_of_one_hot_vectors_are_told_where_they_belong() -> None:
    with pytest.raises(fb.errors.InvalidTypeError, match=r"fb\.nn\.softmax_cross_entropy"):
        fb.nn.sparse_softmax_cross_entropy_with_logits(
            labels=fb.one_hot([0], 3), logits=fb.zeros([1, 3])
        )
