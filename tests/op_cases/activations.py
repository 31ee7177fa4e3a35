"""Activations and losses."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.ops import (
    activations,
    losses,
)
from tests.op_cases.case import (
    CUBE,
    NONE,
    ODD,
    OTHER,
    ROW,
    SOME,
    Array,
    Case,
    f,
    i,
    unary,
)


def _softmax(x: Array, axis: int = -1) -> Array:
    e = np.exp(x - np.max(x, axis=axis, keepdims=True, initial=-1e9))
    return e / e.sum(axis=axis, keepdims=True)


LABELS = f([[0.2, 0.3, 0.5], [1.0, 0.0, 0.5]])


def _cross_entropy(labels: Array, logits: Array) -> Any:
    loss = -(labels * np.log(_softmax(logits))).sum(-1)
    return loss, _softmax(logits) * labels.sum(-1, keepdims=True) - labels


def _sparse_cross_entropy(labels: Array, logits: Array) -> Any:
    return _cross_entropy(np.eye(3)[np.asarray(labels, int)].reshape(logits.shape), logits)


def _in_top_k(predictions: Array, targets: Array, k: Array) -> Array:
    found = [
        np.isfinite(row).all() and sum(row > row[target]) < k
        for row, target in zip(predictions, np.asarray(targets, int), strict=True)
    ]
    return np.array(found, bool)


CASES = [
    unary(activations.relu, lambda x: np.maximum(x, 0), tensorflow=lambda tf, x: tf.nn.relu(x)),
    Case(
        "ReluGrad",
        activations.relu_gradient,
        [OTHER, SOME],
        lambda dy, y: dy * (y > 0),
        [0],
        empty=[NONE, NONE],
    ),
    unary(activations.relu6, lambda x: np.clip(x, 0, 6), SOME * 4),
    unary(
        activations.elu, lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))), special=ODD[1:]
    ),
    unary(activations.leaky_relu_op, lambda x: np.where(x > 0, x, 0.2 * x), special=ODD),
    unary(activations.softplus, lambda x: np.logaddexp(x, 0), SOME * 10, tolerance=16),
    Case(
        "Softmax",
        activations.softmax,
        [SOME],
        _softmax,
        [0],
        empty=[NONE],
        special=[f([[1000.0, 1.0], [-np.inf, 0.0]])],
    ),
    Case(
        "Softmax",
        lambda x: activations.softmax(x, 0),
        [SOME],
        lambda x: _softmax(x, 0),
        [0],
        note="axis",
    ),
    Case(
        "LogSoftmax",
        activations.log_softmax,
        [SOME],
        lambda x: np.log(_softmax(x)),
        [0],
        empty=[NONE],
        tolerance=4,
    ),
    Case(
        "BiasAdd",
        activations.bias_add,
        [CUBE, f(1.0, 2.0, 3.0, 4.0)],
        np.add,
        [0, 1],
        empty=[NONE, ROW],
    ),
    Case(
        "SoftmaxCrossEntropyWithLogits",
        losses.cross_entropy_op,
        [LABELS, SOME],
        _cross_entropy,
        [0, 1],
        empty=[NONE, NONE],
        tolerance=8,
    ),
    Case(
        "SparseSoftmaxCrossEntropyWithLogits",
        losses.sparse_cross_entropy_op,
        [i([2, 0]), SOME],
        _sparse_cross_entropy,
        [1],
        empty=[i([]), NONE],
        tolerance=8,
    ),
    Case(
        "SparseSoftmaxCrossEntropyWithLogits",
        losses.sparse_cross_entropy_op,
        [i([[2, 0], [1, 1]]), np.stack([SOME, OTHER])],
        _sparse_cross_entropy,
        [1],
        tolerance=8,
        note="batches",
    ),
    Case(
        "SigmoidCrossEntropyWithLogits",
        losses.sigmoid_cross_entropy_op,
        [LABELS, SOME],
        lambda z, x: np.logaddexp(x, 0) - x * z,
        [0, 1],
        empty=[NONE, NONE],
        tolerance=16,
    ),
    Case("L2Loss", losses.l2_loss, [SOME], lambda x: (x * x).sum() / 2, [0], empty=[NONE]),
    Case(
        "InTopK",
        losses.in_top_k,
        [SOME, i([2, 1]), i(2)],
        _in_top_k,
        fixed=[2],
        empty=[NONE, i([]), i(2)],
        special=[f([[np.nan, 1.0], [np.inf, 1.0], [2.0, 1.0]]), i([0, 0, 0]), i(1)],
    ),
]
