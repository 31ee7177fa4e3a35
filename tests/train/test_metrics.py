"""Metrics over several batches against their formulas in NumPy for all examples at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowbook as fb

metrics = fb.metrics

RANDOM = np.random.default_rng(0)
SIZES = (4, 1, 7)
# Each in batches: classes right and predicted, and probabilities of "yes", which 0 and 1 bound.
LABELS = [RANDOM.integers(0, 3, (n, 2)) for n in SIZES]
FOUND = [RANDOM.integers(0, 3, (n, 2)) for n in SIZES]
SCORES = [np.round(RANDOM.random((n, 2)) * 8).astype(np.float32) / 8 for n in SIZES]
WEIGHTS: dict[str, Any] = {
    "one": None,
    "rows": [RANDOM.integers(0, 3, (n, 1)) for n in SIZES],
    "elements": [RANDOM.random((n, 2)) for n in SIZES],
    "nothing": [np.zeros((n, 1)) for n in SIZES],
}


def quotient(x: Any, y: Any) -> Any:
    return np.divide(x, y, out=np.zeros(np.broadcast(x, y).shape), where=np.asarray(y) != 0)


def average(values: Any, w: Any) -> Any:
    return quotient((values * w).sum(), w.sum())


def matrix(y: Any, p: Any, w: Any) -> Any:
    found = np.zeros((4, 4))
    np.add.at(found, (y.ravel(), p.ravel()), w.ravel())
    return found


def overlap(y: Any, p: Any, w: Any) -> Any:
    m = matrix(y, p, w)
    either = m.sum(0) + m.sum(1) - m.diagonal()
    return quotient(quotient(m.diagonal(), either).sum(), (either != 0).sum())


def rates(threshold: float) -> Callable[..., Any]:
    def counts(y: Any, p: Any, w: Any) -> Any:
        return [(w * (p > threshold) * kind).sum() for kind in (y > 0, y == 0)]

    return counts


THRESHOLDS = [0.5, 0.0, 1.0, 0.125]


def area(y: Any, p: Any, w: Any) -> Any:
    """How often a "yes" has the higher score, ties half: what a curve of all scores encloses."""
    yes, no = y > 0, y == 0
    pairs = w[yes][:, None] * w[no]
    wins = (p[yes][:, None] > p[no]) + 0.5 * (p[yes][:, None] == p[no])
    return (pairs * wins).sum() / pairs.sum() if pairs.sum() else None


# Each metric: how it is called, which predictions it takes, and its formula.
CASES: dict[str, tuple[Any, Any, Any]] = {
    "mean": (lambda y, p, w: metrics.mean(p, w), SCORES, lambda y, p, w: average(p, w)),
    "percentage_below": (
        lambda y, p, w: metrics.percentage_below(p, 0.5, w),
        SCORES,
        lambda y, p, w: average(p < 0.5, w),
    ),
    "accuracy": (metrics.accuracy, FOUND, lambda y, p, w: average(y == p, w)),
    "mean_absolute_error": (
        metrics.mean_absolute_error,
        FOUND,
        lambda y, p, w: average(abs(y - p), w),
    ),
    "mean_squared_error": (
        metrics.mean_squared_error,
        FOUND,
        lambda y, p, w: average((y - p) ** 2, w),
    ),
    "root_mean_squared_error": (
        metrics.root_mean_squared_error,
        FOUND,
        lambda y, p, w: np.sqrt(average((y - p) ** 2, w)),
    ),
    "mean_relative_error": (
        lambda y, p, w: metrics.mean_relative_error(
            fb.cast(y, fb.float32), p, fb.cast(y, fb.float32), w
        ),
        SCORES,
        lambda y, p, w: average(quotient(abs(y - p), y), w),
    ),
    "true_positives": (metrics.true_positives, FOUND, lambda y, p, w: (w * (y * p > 0)).sum()),
    "false_positives": (
        metrics.false_positives,
        FOUND,
        lambda y, p, w: (w * ((y == 0) & (p > 0))).sum(),
    ),
    "false_negatives": (
        metrics.false_negatives,
        FOUND,
        lambda y, p, w: (w * ((y > 0) & (p == 0))).sum(),
    ),
    "true_negatives": (metrics.true_negatives, FOUND, lambda y, p, w: (w * (y + p == 0)).sum()),
    "precision": (metrics.precision, FOUND, lambda y, p, w: average(y > 0, w * (p > 0))),
    "recall": (metrics.recall, FOUND, lambda y, p, w: average(p > 0, w * (y > 0))),
    "precision_at_thresholds": (
        lambda y, p, w: metrics.precision_at_thresholds(y, p, THRESHOLDS, w),
        SCORES,
        lambda y, p, w: [average(y > 0, w * (p > t)) for t in THRESHOLDS],
    ),
    "recall_at_thresholds": (
        lambda y, p, w: metrics.recall_at_thresholds(y, p, THRESHOLDS, w),
        SCORES,
        lambda y, p, w: [average(p > t, w * (y > 0)) for t in THRESHOLDS],
    ),
    "mean_iou": (lambda y, p, w: metrics.mean_iou(y, p, 4, w), FOUND, overlap),
    "mean_per_class_accuracy": (
        lambda y, p, w: metrics.mean_per_class_accuracy(y, p, 4, w),
        FOUND,
        lambda y, p, w: np.mean([average(p == k, w * (y == k)) for k in range(4)]),
    ),
    "auc": (metrics.auc, SCORES, area),
}


def test_each_has_a_case() -> None:
    assert set(dir(metrics)) - {"Metric"} == CASES.keys()


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("known", [True, False])
def test_batches_count_as_all_examples_at_once(name: str, weights: str, known: bool) -> None:
    build, predictions, formula = CASES[name]
    given = WEIGHTS[weights]
    width = [None, 2] if known else None
    y = fb.placeholder(fb.int64, width)
    p = fb.placeholder(fb.as_dtype(predictions[0].dtype), width)
    w = None if given is None else fb.placeholder(fb.float32, [None, None] if known else None)
    metric = build(y, p, w)
    seen: list[list[Any]] = []
    last: Any = None
    with fb.Session() as sess:
        for k in range(len(SIZES)):
            before = sess.run(metric.value)
            feeds = {y: LABELS[k], p: predictions[k], **({} if w is None else {w: given[k]})}
            updated = sess.run(metric.update, feeds)
            assert updated.dtype == np.float32
            # What is read does not count, and what is counted is there afterwards.
            if last is not None:
                np.testing.assert_array_equal(before, last)
            last = updated
            np.testing.assert_array_equal(sess.run(metric.value), updated)
            one = np.ones(LABELS[k].shape) if given is None else given[k].astype(np.float32)
            seen.append([LABELS[k], predictions[k], np.broadcast_to(one, LABELS[k].shape)])
            expected = formula(*(np.concatenate(parts) for parts in zip(*seen, strict=True)))
            if expected is not None:
                np.testing.assert_allclose(updated, expected, rtol=1e-5, atol=1e-5)


def test_what_is_counted_can_begin_anew_and_is_not_trained() -> None:
    x = fb.placeholder(fb.float32, [None])
    metric = metrics.mean(x, name="epoch")
    counts = fb.get_default_graph().variables(scope="epoch")
    assert [v.trainable for v in counts] == [False, False]
    with fb.Session() as sess:
        assert sess.run(metric.update, {x: [1.0, 3.0]}) == 2.0
        sess.run(fb.variables_initializer(counts))
        assert sess.run(metric.value) == 0.0
        assert sess.run(metric.update, {x: [5.0]}) == 5.0


def test_counts_do_not_stop_growing() -> None:
    metric = metrics.mean([1.0], weights=2.0**25 + 1.0)
    ones = metrics.true_positives([True], [True], name="ones")
    [count] = fb.get_default_graph().variables(scope="ones")
    with fb.Session() as sess:
        sess.run(fb.assign(count, 2.0**24))
        sess.run(ones.update)
        assert sess.run(count) == 2.0**24 + 1.0
        assert sess.run(metric.update) == 1.0


def test_the_area_of_perfect_and_of_inverted_scores() -> None:
    labels, scores = [0, 0, 1, 1], np.array([0.1, 0.2, 0.7, 0.9])
    right, wrong = metrics.auc(labels, scores), metrics.auc(labels, 1 - scores)
    curve = metrics.auc(labels, scores, curve="PR")
    only_no = metrics.auc([0, 0], [0.0, 0.0])
    with fb.Session() as sess:
        found = sess.run([m.update for m in (right, wrong, curve, only_no)])
    np.testing.assert_allclose(found, [1.0, 0.0, 1.0, 1.0], atol=1e-5)


def test_a_threshold_is_rounded_as_scores_are() -> None:
    metric = metrics.recall_at_thresholds([1, 1], np.array([0.1, 0.2], np.float32), [0.1])
    with fb.Session() as sess:
        assert sess.run(metric.update) == [0.5]


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda: metrics.accuracy([1, 2], [[1], [2]]), "differ"),
        (lambda: metrics.mean([1.0, 2.0], [1.0, 2.0, 3.0]), "do not broadcast"),
        (lambda: metrics.auc([1], [0.5], curve="LIFT"), "'ROC' or 'PR'"),
        (lambda: metrics.auc([1], [0.5], num_thresholds=1), "at least 2"),
        (lambda: metrics.recall_at_thresholds([1], [0.5], [2.0]), "from 0 to 1"),
    ],
)
def test_what_cannot_be_counted(build: Callable[[], Any], text: str) -> None:
    with pytest.raises(fb.errors.InvalidArgumentError, match=text):
        build()


@pytest.mark.parametrize(
    ("labels", "scores", "text"),
    [
        ([[1], [0]], [0.5, 0.5], "differ in shape"),
        ([1, 0], [0.5, 1.5], "probabilities"),
        ([1, 0], [0.5, np.nan], "probabilities"),
    ],
)
def test_what_the_run_refuses_is_not_counted(labels: Any, scores: Any, text: str) -> None:
    y, p = fb.placeholder(fb.int32), fb.placeholder(fb.float32)
    metric = metrics.auc(y, p)
    with fb.Session() as sess:
        with pytest.raises(fb.errors.InvalidArgumentError, match=text):
            sess.run(metric.update, {y: labels, p: scores})
        assert sess.run(metric.update, {y: [0, 1], p: [0.25, 0.75]}) == pytest.approx(1.0)
