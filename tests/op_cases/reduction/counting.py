"""Counts of whole numbers, of values in ranges, and of pairs."""

from __future__ import annotations

import numpy as np

from flowbook.graph.model import dtypes
from flowbook.graph.ops.reduction import counting
from tests.op_cases.case import NONE, ODD, SOME, Case, f, i

VALUES = i([1, 4, 1], [0, 4, 4])
WEIGHTS = f([[1.0, 2.0, 3.0], [1.0, 2.0, 5.0]])
LABELS, PREDICTIONS = i(0, 2, 1, 2, 2), i(0, 2, 2, 2, 1)


def _sums(values: np.ndarray, weights: np.ndarray, length: int) -> np.ndarray:
    return np.array([weights[values == k].sum() for k in range(length)])


def _bins(x: np.ndarray, ends: np.ndarray) -> np.ndarray:
    edges = np.linspace(ends[0], ends[1], 6)[1:-1]
    return np.where(np.isnan(x), 0, np.searchsorted(edges, x, side="right")).astype(np.int32)


def _pairs(labels: np.ndarray, predictions: np.ndarray, weights: np.ndarray) -> np.ndarray:
    classes = range(1 + max(labels.max(initial=-1), predictions.max(initial=-1)))
    return np.array(
        [
            [weights[(labels == k) & (predictions == other)].sum() for other in classes]
            for k in classes
        ]
    ).reshape(len(classes), len(classes))


CASES = [
    Case(
        "Bincount",
        counting.bincount,
        [VALUES],
        lambda x: _sums(x, np.ones(x.shape, int), 5),
        by_value=True,
        tensorflow=lambda tf, x: tf.math.bincount(np.int32(x)),
    ),
    *(
        Case(
            "Bincount",
            lambda x, n=length: counting.bincount(x, minlength=n, maxlength=n, dtype=dtypes.int64),
            [VALUES],
            lambda x, n=length: _sums(x, np.ones(x.shape, np.int64), n),
            empty=[VALUES[:0]],
            note=f"to-{length}",
            tensorflow=lambda tf, x, n=length: tf.math.bincount(
                np.int32(x), minlength=n, maxlength=n, dtype=tf.int64
            ),
        )
        for length in (2, 8)
    ),
    Case(
        "WeightedBincount",
        counting.bincount,
        [VALUES, WEIGHTS],
        lambda x, w: _sums(x, w, 5),
        by_value=True,
        tensorflow=lambda tf, x, w: tf.math.bincount(np.int32(x), w),
    ),
    Case(
        "WeightedBincount",
        lambda x, w: counting.bincount(x, w, maxlength=2, minlength=2),
        [VALUES, WEIGHTS],
        lambda x, w: _sums(x, w, 2),
        empty=[VALUES[:0], NONE],
        note="to-2",
    ),
    Case(
        "HistogramFixedWidthBins",
        lambda x, ends: counting.histogram_fixed_width_bins(x, ends, 5),
        [SOME, f(-1.0, 4.0)],
        _bins,
        empty=[NONE, f(0.0, 1.0)],
        special=[ODD, f(-5.0, 5.0)],
        only=[t for t in dtypes.REALS if t.numpy.kind != "u"],
    ),
    Case(
        "HistogramFixedWidthBins",
        lambda x, ends: counting.histogram_fixed_width_bins(x, ends, 5, dtypes.int64),
        [np.abs(SOME) * 4, f(0.0, 10.0)],
        _bins,
        note="positive",
        tensorflow=lambda tf, x, ends: np.int64(
            tf.histogram_fixed_width_bins(tf.constant(x), tf.constant(ends), 5)
        ),
    ),
    Case(
        "ConfusionMatrix",
        lambda x, y, w: counting.confusion_matrix(x, y, weights=w, dtype=dtypes.float64),
        [LABELS, PREDICTIONS, f(1.0, 2.0, 3.0, 1.0, 1.0)],
        _pairs,
        only=dtypes.REALS,
        by_value=True,
        tensorflow=lambda tf, x, y, w: tf.math.confusion_matrix(x, y, weights=w, dtype=tf.float64),
    ),
    Case(
        "ConfusionMatrix",
        lambda x, y, w: counting.confusion_matrix(x, y, 4, weights=w),
        [LABELS, PREDICTIONS, f(1.0, 2.0, 3.0, 1.0, 1.0)],
        lambda x, y, w: np.pad(_pairs(x, y, w), (0, 4 - len(_pairs(x, y, w)))),
        empty=[LABELS[:0], LABELS[:0], np.zeros(0)],
        only=dtypes.REALS,
        note="of-4",
    ),
]
