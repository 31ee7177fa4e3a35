"""Softmax, losses, and what they are measured by."""

from __future__ import annotations

from typing import Any

from flowbook import nn
from flowbook.graph.ops.math.arithmetic import subtract
from flowbook.graph.ops.nn.losses import cross_entropy_op, sparse_cross_entropy_op
from flowbook.tensorflow.node import Node, Rules, named


def _cross_entropy(n: Node, logits: Any, labels: Any) -> Any:
    loss, _ = cross_entropy_op(labels, logits, name=n.scope)
    # TensorFlow's derivative is that for labels whose sum is 1, whatever theirs is.
    return [loss, subtract(nn.softmax(logits), labels)]


def _sparse_cross_entropy(n: Node, logits: Any, labels: Any) -> Any:
    return sparse_cross_entropy_op(labels, logits, name=n.scope)


RULES: Rules = {
    "InTopK": named(nn.in_top_k, k=lambda n: n.whole("k")),
    "InTopKV2": named(nn.in_top_k),
    "SoftmaxCrossEntropyWithLogits": _cross_entropy,
    "SparseSoftmaxCrossEntropyWithLogits": _sparse_cross_entropy,
}
