"""Losses against their formulas in NumPy, under all weights and reductions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import log_softmax

import flowbook as fb
from tests.interpreter import evaluate

losses = fb.losses
Reduction = losses.Reduction

RANDOM = np.random.default_rng(0)
PREDICTIONS = RANDOM.uniform(0.05, 0.95, (4, 3))
LABELS = RANDOM.uniform(0.0, 1.0, (4, 3))
CLASSES = np.array([0, 2, 1, 2])
LOGITS = RANDOM.normal(size=(4, 3)) * 4


def huber(wanted: Any, given: Any, delta: float) -> Any:
    distance = np.abs(wanted - given)
    return np.where(distance < delta, distance**2 / 2, delta * (distance - delta / 2))


# Each loss of elements: how it is called, and its formula.
ELEMENTWISE: dict[str, tuple[Any, Any]] = {
    "absolute_difference": (losses.absolute_difference, lambda y, p: np.abs(y - p)),
    "mean_squared_error": (losses.mean_squared_error, lambda y, p: (y - p) ** 2),
    "huber_loss": (
        lambda y, p, *args: losses.huber_loss(y, p, *args[:1], 0.3, *args[1:]),
        lambda y, p: huber(y, p, 0.3),
    ),
    "log_loss": (
        lambda y, p, *args: losses.log_loss(y, p, *args[:1], 1e-3, *args[1:]),
        lambda y, p: -y * np.log(p + 1e-3) - (1 - y) * np.log(1 - p + 1e-3),
    ),
    "hinge_loss": (losses.hinge_loss, lambda y, p: np.maximum(0, 1 - (2 * y - 1) * p)),
    "sigmoid_cross_entropy": (
        lambda y, p, *args: losses.sigmoid_cross_entropy(y, p, *args[:1], 0.0, *args[1:]),
        lambda y, p: np.log1p(np.exp(p)) - y * p,
    ),
}

WEIGHTS = {
    "number": 2.5,
    "zero": 0.0,
    "rows": np.array([[1.0], [0.0], [0.5], [3.0]]),
    "columns": np.array([[1.0, 2.0, 0.0]]),
    "elements": np.arange(12.0).reshape(4, 3) % 5,
    "nothing": np.zeros((4, 3)),
    "integers": np.array([[1], [0], [2], [3]]),
    "mask": np.array([[True], [False], [True], [True]]),
}


def reduced(values: Any, weights: Any, reduction: str) -> Any:
    weights = np.broadcast_to(np.asarray(weights, float), values.shape)
    total = (values * weights).sum()
    divisor = {
        Reduction.SUM: 1,
        Reduction.MEAN: weights.sum(),
        Reduction.SUM_OVER_BATCH_SIZE: values.size,
        Reduction.SUM_BY_NONZERO_WEIGHTS: np.count_nonzero(weights),
    }
    if reduction == Reduction.NONE:
        return values * weights
    return total / divisor[reduction] if divisor[reduction] else 0.0


REDUCTIONS = [v for k, v in vars(Reduction).items() if k.isupper()]


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_losses_of_elements(name: str, weights: Any, reduction: str) -> None:
    build, formula = ELEMENTWISE[name]
    loss = build(fb.constant(LABELS), fb.constant(PREDICTIONS), weights, reduction)
    wanted = reduced(formula(LABELS, PREDICTIONS), weights, reduction)
    assert loss.dtype is fb.float64
    assert loss.shape == np.shape(wanted)
    np.testing.assert_allclose(evaluate(loss), wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_gradients_are_those_of_the_formula(name: str) -> None:
    build, _ = ELEMENTWISE[name]
    x = fb.constant(PREDICTIONS)
    loss = build(fb.constant(LABELS), x, WEIGHTS["rows"], Reduction.SUM_BY_NONZERO_WEIGHTS)
    assert fb.gradient_error(loss, x) < 1e-6


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_cross_entropies_of_classes(smoothing: float) -> None:
    weights = np.array([1.0, 0.0, 2.0, 0.5])
    onehot = np.eye(3)[CLASSES] * (1 - smoothing) + smoothing / 3
    each = -(onehot * log_softmax(LOGITS, axis=1)).sum(1)
    wanted = reduced(each, weights, Reduction.SUM_BY_NONZERO_WEIGHTS)
    found = [
        losses.softmax_cross_entropy(np.eye(3, dtype=int)[CLASSES], LOGITS, weights, smoothing)
    ]
    if not smoothing:
        for labels in (CLASSES, CLASSES[:, None]):
            for given in (weights, weights[:, None]):
                found.append(losses.sparse_softmax_cross_entropy(labels, LOGITS, given))
    np.testing.assert_allclose(evaluate(found), wanted, rtol=1e-12)


def test_smoothed_labels_of_independent_classes() -> None:
    loss = losses.sigmoid_cross_entropy(np.array([[1, 0]]), [[2.0, -1.0]], label_smoothing=0.2)
    wanted = np.mean([np.log1p(np.exp(2)) - 0.9 * 2, np.log1p(np.exp(-1)) + 0.1])
    np.testing.assert_allclose(evaluate(loss), wanted, rtol=1e-6)


def test_no_gradient_flows_to_the_labels_of_a_softmax() -> None:
    labels, logits = fb.constant(np.eye(3)[CLASSES]), fb.constant(LOGITS)
    to_labels, to_logits = fb.gradients(
        losses.softmax_cross_entropy(labels, logits, label_smoothing=0.1), [labels, logits]
    )
    assert to_labels is None
    assert to_logits is not None


@pytest.mark.parametrize("axis", [0, 1])
def test_cosine_distance(axis: int) -> None:
    loss = losses.cosine_distance(LABELS, PREDICTIONS, axis, reduction=Reduction.NONE)
    wanted = 1 - (LABELS * PREDICTIONS).sum(axis, keepdims=True)
    np.testing.assert_allclose(evaluate(loss), wanted, rtol=1e-12)


@pytest.mark.parametrize("shape", [(4, 3), (4, 2, 3), (4, 1), (0, 3)])
def test_pairwise_differences(shape: tuple[int, ...]) -> None:
    random = np.random.default_rng(shape)
    labels, predictions = random.normal(size=(2, *shape))
    weights = random.uniform(size=shape[0])
    wanted = 0.0
    for w, d in zip(weights, map(np.ravel, predictions - labels), strict=True):
        first, second = np.triu_indices(d.size, 1)
        wanted += w * np.mean((d[first] - d[second]) ** 2) if len(first) else 0.0
    weights = weights.reshape(-1, *[1] * (len(shape) - 1))
    loss = losses.mean_pairwise_squared_error(labels, predictions, weights)
    np.testing.assert_allclose(evaluate(loss), wanted, rtol=1e-10, atol=1e-12)
    unknown = fb.placeholder(fb.float64)
    loss = losses.mean_pairwise_squared_error(
        labels, unknown, fb.placeholder_with_default(2.0, None)
    )
    twice = losses.mean_pairwise_squared_error(labels, predictions, 2.0)
    with fb.Session() as sess:
        np.testing.assert_allclose(*sess.run([loss, twice], {unknown: predictions}), rtol=1e-10)


def test_pairwise_differences_of_an_example_with_several_weights() -> None:
    labels, predictions = np.array([[1.0, 9.0, 2.0]]), np.array([[4.0, 8.0, 12.0]])
    once = evaluate(losses.mean_pairwise_squared_error(labels, predictions))
    whole = losses.mean_pairwise_squared_error(labels, predictions, [[1.0, 2.0, 0.5]])
    np.testing.assert_allclose(evaluate(whole), 3.5 * once)
    # What TensorFlow makes of two weights: 2 (Σd² / (2 - 1) - (Σd)² / (2 (2 - 1))), for each.
    d = predictions - labels
    part = losses.mean_pairwise_squared_error(labels, predictions, [[1.0, 0.0, 1.0]])
    wanted = 2 * 2 * (np.sum(d**2) - np.sum(d) ** 2 / 2)
    np.testing.assert_allclose(evaluate(part), wanted)
    x = fb.constant(predictions)
    [gradient] = fb.gradients(losses.mean_pairwise_squared_error(x, x, 0), x)
    assert not np.isnan(evaluate(gradient)).any()


def test_pairwise_differences_far_from_zero() -> None:
    predictions = np.array([[1e4, 1e4 + 1, 1e4 + 3], [1e5, 1e5, 1e5]], np.float32)
    loss = losses.mean_pairwise_squared_error(np.zeros((2, 3), np.float32), predictions)
    np.testing.assert_allclose(evaluate(loss), 14 / 3, rtol=1e-6)


def test_integers_count_as_single_precision_and_half_is_summed_in_single() -> None:
    loss = losses.absolute_difference(np.array([1, 2]), np.array([4, 9]))
    assert (loss.dtype, evaluate(loss)) == (fb.float32, 5.0)
    # 70000 does not fit half precision.
    half = losses.mean_squared_error(fb.ones([70000], fb.float16), fb.zeros([70000], fb.float16))
    assert (half.dtype, evaluate(half)) == (fb.float16, 1.0)


def test_names() -> None:
    logits = fb.constant(LOGITS)
    assert losses.sparse_softmax_cross_entropy(CLASSES, logits).name == (
        "sparse_softmax_cross_entropy_loss/value:0"
    )
    assert losses.hinge_loss(LABELS, PREDICTIONS, name="mine").name == "mine/value:0"


def test_weights_of_an_unknown_shape_never_add_losses() -> None:
    weights = fb.placeholder(fb.float32)
    loss = losses.mean_squared_error(np.ones(3), np.zeros(3), weights)
    with fb.Session() as sess:
        assert sess.run(loss, {weights: 2.0}) == 2.0
        assert sess.run(loss, {weights: [1.0, 0.0, 3.0]}) == 2.0
        with pytest.raises(fb.errors.InvalidArgumentError, match="broadcast"):
            sess.run(loss, {weights: np.ones(2)})
        with pytest.raises(fb.errors.InvalidArgumentError, match="weights do not fit"):
            sess.run(loss, {weights: np.ones((3, 1))})
    for loss in (
        losses.mean_squared_error(np.ones((2, 3)), np.zeros((2, 3)), weights),
        losses.mean_pairwise_squared_error(np.ones((2, 3)), np.zeros((2, 3)), weights),
    ):
        with fb.Session() as sess, pytest.raises(fb.errors.InvalidArgumentError, match="not fit"):
            sess.run(loss, {weights: np.ones(3)})


def test_columns_of_classes_and_weights_of_unknown_rank() -> None:
    classes, logits = fb.placeholder(fb.int32), fb.placeholder(fb.float32)
    weights = fb.placeholder(fb.float32)
    loss = losses.sparse_softmax_cross_entropy(classes, logits, weights)
    fed = {classes: [2, 0, 1], logits: 10 * np.eye(3), weights: [1.2, 3.4, 5.6]}
    with fb.Session() as sess:
        for reshaped in ((3,), (3, 1)):
            feeds = {**fed, **{k: np.reshape(fed[k], reshaped) for k in (classes, weights)}}
            np.testing.assert_allclose(sess.run(loss, feeds), 34.0, rtol=1e-4)
        for wrong in ({classes: [[0, 1], [1, 2], [2, 0]]}, {weights: np.ones((3, 3))}):
            with pytest.raises(fb.errors.InvalidArgumentError):
                sess.run(loss, {**fed, **wrong})


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: losses.absolute_difference(LABELS, PREDICTIONS[:, :2]), "labels of shape"),
        (lambda: losses.hinge_loss(LABELS[0], PREDICTIONS), "labels of shape"),
        (lambda: losses.mean_squared_error(LABELS, PREDICTIONS, np.ones(3)), "do not broadcast"),
        (lambda: losses.mean_squared_error(LABELS, PREDICTIONS, np.ones((4, 2))), "do not broad"),
        (lambda: losses.log_loss(LABELS, PREDICTIONS, None), "not None"),
        (lambda: losses.sparse_softmax_cross_entropy(CLASSES, LOGITS, None), "not None"),
        (lambda: losses.compute_weighted_loss([1.0], reduction="mean"), "'weighted_mean'.*'mean'"),
        (lambda: losses.mean_pairwise_squared_error(1.0, 2.0), "not a scalar"),
    ],
    ids=["columns", "rank", "row", "width", "none", "no weights", "reduction", "scalar"],
)
def test_errors_name_the_values_and_the_line(build: Any, message: str) -> None:
    with pytest.raises(fb.errors.InvalidArgumentError, match=message) as caught:
        build()
    assert "test_losses.py, line" in str(caught.value)


@pytest.mark.parametrize(
    "build",
    [
        lambda z: losses.mean_squared_error(z, z),
        lambda z: losses.sigmoid_cross_entropy(z, [1.0]),
        lambda z: losses.sparse_softmax_cross_entropy([0], [z]),
        lambda z: losses.compute_weighted_loss(z),
    ],
    ids=["differences", "cross_entropy", "classes", "weighted"],
)
def test_imaginary_parts_are_not_dropped(build: Any) -> None:
    with pytest.raises(fb.errors.InvalidTypeError, match="losses are real"):
        build(np.array([1 + 2j]))
