"""Activations and losses."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from flowbook.graph.model.dtypes import FLOATS, float32
from flowbook.graph.ops.nn import activations, gated_activations, losses
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


def _log_softmax(x: Array) -> Array:
    shifted = x - np.max(x, axis=-1, keepdims=True, initial=-1e9)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


LABELS = f([[0.2, 0.3, 0.5], [1.0, 0.0, 0.5]])


def _cross_entropy(labels: Array, logits: Array) -> Any:
    logs = np.where(labels == 0, 0, _log_softmax(logits))
    loss = -(labels * logs).sum(-1)
    return loss, _softmax(logits) * labels.sum(-1, keepdims=True) - labels


def _sparse_cross_entropy(labels: Array, logits: Array) -> Any:
    return _cross_entropy(np.eye(3)[np.asarray(labels, int)].reshape(logits.shape), logits)


def _in_top_k(predictions: Array, targets: Array, k: Array) -> Array:
    found = [
        np.isfinite(row).all() and sum(row > row[target]) < k
        for row, target in zip(predictions, np.asarray(targets, int), strict=True)
    ]
    return np.array(found, bool)


EXTREME = f([[1e4, -1e4, 0.0], [-np.inf, 2.0, -1.0], [-1e4, -1e4, 1e4]])
FINITE = f([[1e4, -1e4, 0.0], [30.0, -30.0, -1.0]])
SELU = 1.0507009873554805, 1.6732632423543772


def _selu(x: Array) -> Array:
    return SELU[0] * np.where(x > 0, x, SELU[1] * np.expm1(np.minimum(x, 0)))


def _normal(x: Array) -> Array:
    return np.vectorize(lambda v: math.erfc(-v / math.sqrt(2)) / 2)(x) if x.size else x


def _gelu(x: Array, approximate: bool = False) -> Array:
    if approximate:
        return x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2
    return x * _normal(x)


def _gelu_tanh(x: Array) -> tuple[Array, Array]:
    gate = 1 / (1 + np.exp(-math.sqrt(8 / math.pi) * (x + 0.044715 * x**3)))
    return x * gate, gate


COUNTS = f([[0.0, 1.5, 3.0], [4.0, 0.5, 7.0]])


def _full_poisson(targets: Array, log_input: Array) -> Array:
    count = np.maximum(targets, 1e-9)
    stirling = count * np.log(count) - count + np.log(2 * np.pi * count) / 2
    return np.exp(log_input) - targets * log_input + np.where(targets > 1, stirling, 0)


def _weighted(labels: Array, logits: Array, weight: Array) -> Array:
    yes, no = np.logaddexp(0, -logits), np.logaddexp(0, logits)
    return weight * labels * yes + (1 - labels) * no


CASES = [
    unary(activations.relu, lambda x: np.maximum(x, 0), tensorflow=lambda tf, x: tf.nn.relu(x)),
    Case(
        "ReluGrad",
        activations.relu_gradient,
        [OTHER, SOME],
        lambda dy, y: dy * (y > 0),
        [0, 1],
        empty=[NONE, NONE],
        tensorflow=lambda tf, dy, y: tf.raw_ops.ReluGrad(gradients=dy, features=y),
    ),
    Case(
        "ReluGrad",
        activations.relu_gradient,
        [OTHER, np.maximum(SOME, 0)],
        lambda dy, y: dy * (y > 0),
        [0],
        note="at zero",
    ),
    Case(
        "Relu6Grad",
        activations.relu6_gradient,
        [OTHER, f([[0.0, 6.0, 0.5], [7.0, -1.0, 5.5]])],
        lambda dy, y: dy * ((y > 0) & (y < 6)),
        [0],
        empty=[NONE, NONE],
        tensorflow=lambda tf, dy, y: tf.raw_ops.Relu6Grad(gradients=dy, features=y),
    ),
    Case(
        "Relu6Grad",
        activations.relu6_gradient,
        [OTHER, SOME * 4],
        lambda dy, y: dy * ((y > 0) & (y < 6)),
        [0, 1],
        note="between",
    ),
    Case(
        "LeakyReluGrad",
        lambda dy, x: activations.leaky_relu_gradient(dy, x, alpha=0.25),
        [OTHER, SOME],
        lambda dy, x: np.where(x > 0, dy, dy * 0.25),
        [0, 1],
        empty=[NONE, NONE],
        tensorflow=lambda tf, dy, x: tf.raw_ops.LeakyReluGrad(gradients=dy, features=x, alpha=0.25),
    ),
    unary(
        activations.relu6,
        lambda x: np.clip(x, 0, 6),
        SOME * 4,
        tensorflow=lambda tf, x: tf.nn.relu6(x),
    ),
    unary(
        activations.elu,
        lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
        tensorflow=lambda tf, x: tf.nn.elu(x),
    ),
    unary(
        activations.selu,
        _selu,
        tensorflow=lambda tf, x: tf.nn.selu(x),
    ),
    unary(
        activations.leaky_relu_op,
        lambda x: np.where(x > 0, x, 0.2 * x),
        special=ODD,
        # TensorFlow keeps the slope in float32.
        tensorflow=lambda tf, x: np.where(x > 0, x, tf.nn.leaky_relu(x, 0.25) * 0.8),
    ),
    unary(
        activations.softplus,
        lambda x: np.logaddexp(x, 0),
        SOME * 10,
        tolerance=16,
        tensorflow=lambda tf, x: tf.nn.softplus(x),
    ),
    unary(
        activations.softsign,
        lambda x: x / (1 + np.abs(x)),
        tensorflow=lambda tf, x: tf.nn.softsign(x),
    ),
    unary(
        gated_activations.normal_distribution_op,
        _normal,
        SOME * 2,
        tolerance=4,
        tensorflow=lambda tf, x: tf.math.erfc(x * -math.sqrt(0.5)) / 2,
    ),
    Case(
        "GeluTanh",
        gated_activations.gelu_tanh_op,
        [SOME * 2],
        _gelu_tanh,
        [0],
        empty=[NONE],
        tolerance=16,
    ),
    Case(
        "Swish",
        gated_activations.swish_op,
        [SOME * 2],
        lambda x: (x / (1 + np.exp(-x)), 1 / (1 + np.exp(-x))),
        [0],
        empty=[NONE],
    ),
    Case(
        "Softmax",
        activations.softmax,
        [SOME],
        _softmax,
        [0],
        empty=[NONE],
        special=[EXTREME],
        tensorflow=lambda tf, x: tf.nn.softmax(x),
    ),
    Case(
        "Softmax",
        lambda x: activations.softmax(x, 0),
        [SOME],
        lambda x: _softmax(x, 0),
        [0],
        tensorflow=lambda tf, x: tf.nn.softmax(x, 0),
        note="axis",
    ),
    Case(
        "LogSoftmax",
        activations.log_softmax,
        [SOME],
        _log_softmax,
        [0],
        empty=[NONE],
        special=[EXTREME],
        tolerance=4,
        tensorflow=lambda tf, x: tf.nn.log_softmax(x),
    ),
    Case(
        "BiasAdd",
        activations.bias_add_op,
        [CUBE, f(1.0, 2.0, 3.0, 4.0)],
        np.add,
        [0, 1],
        empty=[NONE, ROW],
        tensorflow=lambda tf, x, b: tf.nn.bias_add(x, b),
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
        "SoftmaxCrossEntropyWithLogits",
        losses.cross_entropy_op,
        [f([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]), SOME],
        _cross_entropy,
        [0, 1],
        special=[f([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]), f([[-1e4, 1e4, 0.0], [-1e4, 1e4, 0.0]])],
        tolerance=8,
        tensorflow=lambda tf, z, x: tf.raw_ops.SoftmaxCrossEntropyWithLogits(labels=z, features=x),
        note="extreme",
    ),
    Case(
        "Selu",
        activations.selu,
        [f([0.0, -0.0])],
        _selu,
        tensorflow=lambda tf, x: tf.nn.selu(x),
        note="at-0",
    ),
    Case(
        "SparseSoftmaxCrossEntropyWithLogits",
        losses.sparse_cross_entropy_op,
        [i([2, 0]), SOME],
        _sparse_cross_entropy,
        [1],
        empty=[i([]), NONE],
        special=[i([2, 1, 0]), EXTREME],
        tolerance=8,
        tensorflow=lambda tf, z, x: tf.raw_ops.SparseSoftmaxCrossEntropyWithLogits(
            labels=z, features=x
        ),
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
        special=[f([[1.0, 0.0, 1.0], [1.0, 0.0, 0.0]]), FINITE],
        tolerance=16,
        tensorflow=lambda tf, z, x: tf.nn.sigmoid_cross_entropy_with_logits(labels=z, logits=x),
    ),
    Case(
        "WeightedCrossEntropyWithLogits",
        losses.weighted_cross_entropy_with_logits,
        [LABELS, SOME, f([3.0, 0.5, 2.0])],
        _weighted,
        [0, 1, 2],
        empty=[NONE, NONE, f(2.0)],
        special=[f([[1.0, 0.0, 1.0], [1.0, 0.0, 0.0]]), FINITE, f(2.0)],
        tolerance=16,
        tensorflow=lambda tf, z, x, q: tf.nn.weighted_cross_entropy_with_logits(
            labels=z, logits=x, pos_weight=q
        ),
    ),
    Case(
        "L2Loss",
        losses.l2_loss,
        [SOME],
        lambda x: (x * x).sum() / 2,
        [0],
        empty=[NONE],
        tensorflow=lambda tf, x: tf.nn.l2_loss(x),
    ),
    Case(
        "InTopK",
        losses.in_top_k,
        [SOME, i([2, 1]), i(2)],
        _in_top_k,
        fixed=[2],
        empty=[NONE, i([]), i(2)],
        special=[f([[np.nan, 1.0], [np.inf, 1.0], [2.0, 1.0]]), i([0, 0, 0]), i(1)],
        tensorflow=lambda tf, x, z, k: tf.math.in_top_k(z, tf.cast(x, tf.float32), k),
    ),
    # Composed functions, under the type of their last operation.
    unary(
        gated_activations.swish,
        lambda x: x / (1 + np.exp(-x)),
        type="Swish",
        only=FLOATS,
        special=f([[np.nan, np.inf, 1e4], [-1e4, 30.0, -30.0]]),
        tensorflow=lambda tf, x: tf.nn.silu(x),
        note="swish",
    ),
    Case(
        "Mul",
        lambda x, beta: gated_activations.swish(x, beta),
        [SOME, ROW],
        lambda x, beta: x / (1 + np.exp(-beta * x)),
        [0, 1],
        only=FLOATS,
        note="swish-beta",
    ),
    unary(
        gated_activations.gelu,
        _gelu,
        type="Mul",
        only=FLOATS,
        special=f([[np.nan, np.inf, 1e4], [-1e4, 30.0, -30.0]]),
        note="gelu",
    ),
    unary(
        partial(gated_activations.gelu, approximate=True),
        partial(_gelu, approximate=True),
        type="GeluTanh",
        only=FLOATS,
        special=f([[np.nan, np.inf, 1e4], [-1e4, 30.0, -30.0]]),
        note="gelu-approximate",
    ),
    # TensorFlow's constants are those of float32.
    *(
        unary(
            partial(gated_activations.gelu, approximate=approximate),
            partial(_gelu, approximate=approximate),
            SOME * 3,
            type="GeluTanh" if approximate else "Mul",
            only=[float32],
            smooth=False,
            special=f([[np.nan, np.inf, 1e4], [-1e4, 30.0, -30.0]]),
            tensorflow=partial(
                lambda tf, x, approximate: tf.nn.gelu(x, approximate), approximate=approximate
            ),
            note=f"gelu-float32-{approximate}",
        )
        for approximate in (False, True)
    ),
    unary(
        activations.log_sigmoid,
        lambda x: -np.logaddexp(0, -x),
        SOME * 10,
        type="Neg",
        only=FLOATS,
        tolerance=16,
        tensorflow=lambda tf, x: tf.math.log_sigmoid(x),
        note="log_sigmoid",
    ),
    unary(
        lambda x: activations.crelu(x, axis=0),
        lambda x: np.concatenate([np.maximum(x, 0), np.maximum(-x, 0)]),
        type="Relu",
        only=FLOATS,
        tensorflow=lambda tf, x: tf.compat.v1.nn.crelu(x, axis=0),
        note="crelu",
    ),
    Case(
        "Sub",
        losses.log_poisson_loss,
        [COUNTS, SOME],
        lambda z, x: np.exp(x) - z * x,
        [0, 1],
        empty=[NONE, NONE],
        special=[f([0.0, 2.0, 0.0]), f([-np.inf, -1e4, 1e4])],
        only=FLOATS,
        tolerance=4,
        tensorflow=lambda tf, z, x: tf.nn.log_poisson_loss(z, x),
        note="log_poisson_loss",
    ),
    Case(
        "Add",
        lambda z, x: losses.log_poisson_loss(z, x, compute_full_loss=True),
        [COUNTS + 0.25, SOME],  # Below 0 it is NaN: 0 has no difference on both sides.
        _full_poisson,
        [0, 1],
        empty=[NONE, NONE],
        only=FLOATS,
        tolerance=4,
        tensorflow=lambda tf, z, x: tf.nn.log_poisson_loss(z, x, compute_full_loss=True),
        note="log_poisson_loss",
    ),
]
