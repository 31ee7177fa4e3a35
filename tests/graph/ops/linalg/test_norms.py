"""Norms agree with NumPy's, and clipping keeps to them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.interpreter import evaluate

VALUES = np.array([[[3.0, -4.0, 0.5], [1.0, 2.0, -2.0]], [[0.0, 1.0, 5.0], [-1.0, 0.25, 2.0]]])
Error = fb.errors.InvalidArgumentError


def _exists(ord: Any, axis: Any) -> bool:
    """Matrices have no norms of other orders, and that of 2 needs singular values."""
    return not isinstance(axis, tuple) or ord not in (
        (3, 1.5) if hasattr(fb, "svd") else (2, 3, 1.5)
    )


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("complex_", [False, True])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), (-1, 1)])
@pytest.mark.parametrize("ord", ["euclidean", 1, 2, np.inf, 3, 1.5])
def test_values(ord: Any, axis: Any, complex_: bool, keepdims: bool) -> None:
    if not _exists(ord, axis):
        return
    value = VALUES * (0.6 + 0.8j) if complex_ else VALUES
    result = fb.norm(fb.constant(value), ord, axis, keepdims)
    flat = value.reshape(-1) if axis is None else value
    order = None if ord == "euclidean" else ord
    expected = np.linalg.norm(flat, order, axis, keepdims=keepdims and axis is not None)
    if axis is None and keepdims:
        expected = np.reshape(expected, (1, 1, 1))
    assert result.dtype is fb.float64
    assert result.shape == np.shape(expected)
    np.testing.assert_allclose(evaluate(result), expected, rtol=1e-12)


@pytest.mark.parametrize("axis", [None, 0, (1, 2)])
@pytest.mark.parametrize("complex_", [False, True])
@pytest.mark.parametrize("ord", ["euclidean", 1, np.inf])
def test_normalized(ord: Any, complex_: bool, axis: Any) -> None:
    value = VALUES * (0.6 + 0.8j) if complex_ else VALUES
    normalized, size = fb.normalize(fb.constant(value), ord, axis)
    found, norms = evaluate([normalized, size])
    expected = evaluate(fb.norm(fb.constant(value), ord, axis, keepdims=True))
    np.testing.assert_array_equal(norms, expected)
    np.testing.assert_allclose(found, value / expected, rtol=1e-15)


@pytest.mark.parametrize("axis", [None, 1, (1, 2)])
@pytest.mark.parametrize("ord", ["euclidean", 1, 2, np.inf, 3])
def test_gradients(ord: Any, axis: Any) -> None:
    if not _exists(ord, axis):
        return
    x = fb.placeholder(fb.float64, VALUES.shape)
    loss = fb.reduce_sum(fb.norm(x, ord, axis))
    [gradient] = fb.gradients(loss, x)
    found = evaluate(gradient, {x: VALUES})
    expected = np.zeros_like(VALUES)
    for place in np.ndindex(VALUES.shape):
        ends = []
        for step in (1e-6, -1e-6):
            moved = VALUES.copy()
            moved[place] += step
            ends.append(evaluate(loss, {x: moved}))
        expected[place] = (ends[0] - ends[1]) / 2e-6
    # At 0 the slope of the absolute value is the mean of both sides', and so is the difference.
    np.testing.assert_allclose(found, expected, atol=1e-7)


@pytest.mark.parametrize("ord", ["euclidean", 1, 2, np.inf, 3])
def test_of_zeros_the_gradient_is_finite(ord: Any) -> None:
    x = fb.constant(np.zeros(3))
    [gradient] = fb.gradients(fb.norm(x, ord), x)
    assert evaluate(gradient).tolist() == [0, 0, 0]


def test_nothing_overflows() -> None:
    x = fb.constant(np.array([3e30, 4e30, 0.0], np.float32))
    for ord in (2, "euclidean"):
        y = fb.norm(x, ord)
        np.testing.assert_allclose(evaluate(y), 5e30, rtol=1e-6)
        [gradient] = fb.gradients(y, x)
        np.testing.assert_allclose(evaluate(gradient), [0.6, 0.8, 0], rtol=1e-6)
    np.testing.assert_allclose(evaluate(fb.norm(x, 3)), 91 ** (1 / 3) * 1e30, rtol=1e-6)
    half = fb.constant(np.full(10_000, 300.0, np.float16))
    assert evaluate(fb.norm(half)) == 30_000
    assert np.isinf(evaluate(fb.norm(fb.constant([1.0, np.inf]))))
    assert np.isnan(evaluate(fb.norm(fb.constant([1.0, np.nan]))))


@pytest.mark.parametrize(
    ("ord", "axis", "match"),
    [
        ("fro", 0, "a vector has no norm 'fro'"),
        ("nuclear", (0, 1), "a matrix has no norm 'nuclear'"),
        (3, (0, 1), "a matrix has no norm 3"),
        (-1, None, "a vector has no norm -1"),
        (2, (0, 3), "out of range"),
        (2, (0, -3), "twice"),
        (2, (0, 1, 2), "a pair of ints"),
    ],
)
def test_what_has_no_norm(ord: Any, axis: Any, match: str) -> None:
    with pytest.raises(Error, match=match):
        fb.norm(fb.constant(VALUES), ord, axis)


def test_integers_have_no_norm() -> None:
    with pytest.raises(fb.errors.InvalidTypeError, match="floating-point"):
        fb.norm(fb.constant([3, 4]))


# Clipping


def test_spectral_norms_of_matrices_of_unknown_rank() -> None:
    x = np.arange(12.0).reshape(2, 3, 2)
    unknown = fb.placeholder_with_default(x, None)
    expected = np.linalg.norm(x, 2, axis=(1, 2), keepdims=True)
    for axis in ((-2, -1), (-1, -2)):
        np.testing.assert_allclose(evaluate(fb.norm(unknown, 2, axis, keepdims=True)), expected)
    with pytest.raises(fb.errors.UnimplementedError, match="rank"):
        fb.norm(unknown, 2, (0, 1))


def test_clipped_slices_stay_slices() -> None:
    slices = fb.IndexedSlices(fb.constant([[-3.0, 0.5]]), fb.constant([2]), fb.constant([4, 2]))
    clipped = fb.clip_by_value(slices, 1.0, 2.0)
    assert isinstance(clipped, fb.IndexedSlices)
    assert evaluate(clipped.values).tolist() == [[1, 1]]


def test_clip_by_norm() -> None:
    x = fb.constant(VALUES)
    for axes in (None, 1, [0, 2]):
        numpy_axes = tuple(axes) if isinstance(axes, list) else axes
        length = np.sqrt(np.sum(VALUES**2, axis=numpy_axes, keepdims=True))
        expected = VALUES * np.minimum(1, 2.0 / length)
        np.testing.assert_allclose(evaluate(fb.clip_by_norm(x, 2.0, axes)), expected, rtol=1e-12)
    zeros = fb.constant([0.0, 0.0])
    y = fb.clip_by_norm(zeros, 1.0)
    assert evaluate([y, *fb.gradients(y, zeros)])[1].tolist() == [1, 1]
    average = evaluate(fb.clip_by_average_norm(fb.constant([3.0, 4.0]), 1.0))
    np.testing.assert_allclose(average, [1.2, 1.6], rtol=1e-6)


def test_clip_by_norm_is_differentiable() -> None:
    x = fb.placeholder(fb.float64, [2])
    [gradient] = fb.gradients(fb.clip_by_norm(x, 1.0)[0], x)
    at = np.array([3.0, 4.0])
    # Of x0 / |x|.
    np.testing.assert_allclose(evaluate(gradient, {x: at}), [16 / 125, -12 / 125], rtol=1e-12)
    np.testing.assert_allclose(evaluate(gradient, {x: at / 10}), [1, 0])


def test_clip_by_global_norm() -> None:
    table = fb.constant(np.ones((4, 2)))
    x = fb.constant(np.array([3.0, 4.0]))
    [rows] = fb.gradients(fb.reduce_sum(fb.gather(table, [1, 1])), table)
    clipped, length = fb.clip_by_global_norm([x, None, rows], 1.0)
    assert clipped[1] is None
    assert isinstance(clipped[2], fb.IndexedSlices)
    expected = np.sqrt(25 + 4)
    found, sparse, total = evaluate([clipped[0], clipped[2].values, length])
    assert total == pytest.approx(expected)
    np.testing.assert_allclose(found, np.array([3.0, 4.0]) / expected)
    np.testing.assert_allclose(sparse, np.ones((2, 2)) / expected)
    same, _ = fb.clip_by_global_norm([x], 10.0)
    assert evaluate(same[0]).tolist() == [3, 4]
    given, _ = fb.clip_by_global_norm([x], 1.0, use_norm=fb.constant(np.float64(10)))
    np.testing.assert_allclose(evaluate(given[0]), [0.3, 0.4])


def test_a_norm_that_is_not_finite_shows_everywhere() -> None:
    x, y = fb.constant([3.0, np.inf]), fb.constant([1.0])
    clipped, length = fb.clip_by_global_norm([x, y], 1.0)
    assert np.isinf(evaluate(length))
    assert all(np.isnan(evaluate(c)).all() for c in clipped)


def test_lists_are_lists() -> None:
    with pytest.raises(fb.errors.InvalidTypeError, match="list of tensors"):
        fb.clip_by_global_norm(fb.constant([1.0]), 1.0)
    with pytest.raises(fb.errors.InvalidTypeError, match="list of tensors"):
        fb.global_norm(fb.constant([1.0]))
    with pytest.raises(Error, match="no tensor"):
        fb.global_norm([None])


def test_rows_of_slices_are_clipped_as_they_are() -> None:
    rows = fb.IndexedSlices(fb.constant([[-3.0], [0.5], [3.0]]), fb.constant([4, 0, 4]))
    clipped = fb.clip_by_value(rows, -1.0, 1.0)
    assert isinstance(clipped, fb.IndexedSlices)
    with fb.Session() as sess:
        value = sess.run(clipped)
    assert value.values.tolist() == [[-1.0], [0.5], [1.0]]
    assert value.indices.tolist() == [4, 0, 4]


def test_a_greatest_norm_for_each_row() -> None:
    x = fb.constant([[3.0, 4.0], [3.0, 4.0]])
    with fb.Session() as sess:
        clipped = sess.run(fb.clip_by_norm(x, [[1.0], [10.0]], axes=1))
    np.testing.assert_allclose(clipped, [[0.6, 0.8], [3.0, 4.0]], rtol=1e-6)
    with pytest.raises(fb.errors.InvalidArgumentError, match=r"clip_norm \[2\] does not fit t"):
        fb.clip_by_norm(fb.expand_dims(x, 2), [1.0, 2.0])
