"""Counting: nothing to count, and what cannot be counted."""

from __future__ import annotations

import numpy as np
import pytest

import flowbook as fb
from tests.interpreter import evaluate

Error = fb.errors.InvalidArgumentError


def test_of_nothing() -> None:
    nothing = fb.constant(np.zeros(0, np.int32))
    assert evaluate(fb.bincount(nothing)).shape == (0,)
    assert evaluate(fb.bincount(nothing, minlength=2)).tolist() == [0, 0]
    assert evaluate(fb.bincount(nothing, fb.zeros([0]))).dtype == np.float32
    assert evaluate(fb.confusion_matrix(nothing, nothing)).shape == (0, 0)
    assert evaluate(fb.count_nonzero(fb.zeros([0, 2]), 0)).tolist() == [0, 0]


def test_classes_in_columns_and_of_several_dtypes() -> None:
    column = fb.constant(np.array([[0], [1], [1]], np.uint8))
    expected = [[1, 0], [1, 1]]
    assert evaluate(fb.confusion_matrix(column, [0, 0, 1])).tolist() == expected
    labels = fb.constant([0, 1, 1])
    predictions = fb.constant(np.array([[0], [0], [1]]))
    matrix = fb.confusion_matrix(labels, predictions, 2, fb.float32)
    assert evaluate(matrix).tolist() == expected
    assert matrix.dtype is fb.float32


def test_count_nonzero() -> None:
    x = fb.constant([[0.0, -0.0, np.nan], [1.0, 0.0, np.inf]])
    assert evaluate(fb.count_nonzero(x)) == 3
    assert evaluate(fb.count_nonzero(x, 1, keepdims=True, dtype=fb.int32)).tolist() == [[1], [2]]
    assert evaluate(fb.count_nonzero(fb.constant([True, False]))).dtype == np.int64
    assert evaluate(fb.count_nonzero(fb.constant([0j, 1j]))) == 1
    assert evaluate(fb.count_nonzero(fb.constant(["a", "", "b"]))) == 2


def test_large_weights_add_up_exactly() -> None:
    weights = fb.constant(np.array([2**53, 1, 1], np.int64))
    assert evaluate(fb.bincount([0, 0, 0], weights)).tolist() == [2**53 + 2]


def test_histograms() -> None:
    values = fb.placeholder(fb.float32, [None])
    histogram = fb.histogram_fixed_width(values, [0.0, 5.0], 5, fb.int64)
    assert histogram.shape == [5]
    counts = evaluate(histogram, {values: [-1.0, 0.0, 1.5, 2.0, 5.0, 15.0]})
    assert counts.tolist() == [2, 1, 1, 0, 2]


def test_what_cannot_be_counted() -> None:
    with pytest.raises(Error, match="a negative number, -2"):
        evaluate(fb.bincount([1, -2]))
    with pytest.raises(Error, match="has a weight"):
        fb.bincount([1, 2], [1.0])
    with pytest.raises(Error, match="minlength is a length, not -1"):
        fb.bincount([1], minlength=-1)
    with pytest.raises(Error, match="the label 4 is none of 3 classes"):
        evaluate(fb.confusion_matrix([1, 4], [0, 0], 3))
    with pytest.raises(Error, match="the prediction -1 is none of 2 classes"):
        evaluate(fb.confusion_matrix([1, 0], [0, -1]))
    with pytest.raises(Error, match="one shape"):
        fb.confusion_matrix([1, 0], [0])
    with pytest.raises(Error, match="0 bins"):
        fb.histogram_fixed_width([1.0], [0.0, 1.0], 0)
    with pytest.raises(Error, match=r"not \[1.0, 1.0\]"):
        evaluate(fb.histogram_fixed_width_bins([1.0], [1.0, 1.0], 3))
    with pytest.raises(Error, match=r"\[lowest, highest\]"):
        fb.histogram_fixed_width_bins([1.0], [1.0], 3)
