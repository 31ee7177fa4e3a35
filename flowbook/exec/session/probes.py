"""Small networks of several sizes, whose steps tell what kernels make of this machine.

Each is what people train: layers, a loss, its gradients, an update. It is built in the default
graph and gives what to fetch and what to feed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from flowbook.graph.gradients.backward import gradients
from flowbook.graph.model.dtypes import float32, int32
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.arrays.gathering import gather
from flowbook.graph.ops.basis.broadcasting import reduce_sum
from flowbook.graph.ops.basis.constants import placeholder
from flowbook.graph.ops.basis.joining import concat, split, stack, unstack
from flowbook.graph.ops.basis.permuting import transpose
from flowbook.graph.ops.basis.shaping import reshape
from flowbook.graph.ops.linalg.matrix_products import matmul
from flowbook.graph.ops.linalg.tensordot import tensordot
from flowbook.graph.ops.math.arithmetic import maximum
from flowbook.graph.ops.math.comparison import greater, where
from flowbook.graph.ops.math.elementwise import exp, log, sigmoid, sqrt, square, tanh
from flowbook.graph.ops.nn.activations import bias_add, relu, softmax
from flowbook.graph.ops.nn.clipping import clip_by_global_norm
from flowbook.graph.ops.nn.losses import l2_loss, sparse_softmax_cross_entropy_with_logits
from flowbook.graph.ops.nn.normalisation import local_response_normalization, moments
from flowbook.graph.ops.reduction.reductions import reduce_max, reduce_mean
from flowbook.graph.ops.state.variables import Variable
from flowbook.graph.ops.state.writing import assign_sub
from flowbook.graph.ops.windows.convolution import conv2d
from flowbook.graph.ops.windows.pooling import avg_pool, max_pool

_RATE = 1e-4
_STEPS = 3


class Probe(NamedTuple):
    """What a network's step fetches and is fed."""

    fetches: Sequence[Operation]
    feeds: dict[Tensor, Any]


def probes() -> Iterator[Callable[[], Probe]]:
    """What builds each network in each size, the smallest first."""
    for batch, width, classes in ((2, 8, 4), (32, 128, 10), (128, 512, 100), (256, 1024, 4000)):
        yield partial(_dense, batch, width, classes)
    for batch, side, channels in ((1, 4, 4), (8, 16, 16), (32, 20, 48)):
        yield partial(_convolutional, batch, side, channels)
    for batch, width in ((2, 8), (16, 128), (32, 384)):
        yield partial(_recurrent, batch, width)
    for side in (4, 64, 512, 1500):
        yield partial(_elementwise, side)


def _dense(batch: int, width: int, classes: int) -> Probe:
    """Two dense layers, an entropy and a penalty; gradients are clipped."""
    x, labels = placeholder(float32, [batch, width]), placeholder(int32, [batch])
    weights = [_drawn(width, width), _drawn(width), _drawn(width, classes), _drawn(classes)]
    w1, b1, w2, b2 = weights
    hidden = relu(matmul(x, w1) + b1)
    loss = _entropy(bias_add(tensordot(hidden, w2, 1), b2), labels) + l2_loss(w1) * _RATE
    found = gradients(loss, weights)
    clipped, _ = clip_by_global_norm(found, 1.0)
    return Probe(
        _updates(weights, clipped), {x: _values(batch, width), labels: np.zeros(batch, np.int32)}
    )


def _convolutional(batch: int, side: int, channels: int) -> Probe:
    """Two convolutions with pooling and normalisation by neighbours and by moments."""
    x = placeholder(float32, [batch, side, side, 3])
    weights = [_drawn(5, 5, 3, channels), _drawn(channels), _drawn(3, 3, channels, channels)]
    k1, b1, k2 = weights
    first = relu(bias_add(conv2d(x, k1, 1, "SAME"), b1))
    first = local_response_normalization(max_pool(first, 3, 2, "SAME"), 4, 1.0, 1e-4, 0.75)
    second = conv2d(first, k2, 1, "SAME")
    mean, variance = moments(second, [0, 1, 2])
    second = avg_pool((second - mean) / sqrt(variance + 1e-3), 2, 2, "SAME")
    loss = reduce_mean(square(second))
    return Probe(_updates(weights, gradients(loss, weights)), {x: _values(batch, side, side, 3)})


def _recurrent(batch: int, width: int) -> Probe:
    """Some steps of an LSTM over embedded words."""
    words = placeholder(int32, [batch, _STEPS])
    weights = [_drawn(4 * width, width), _drawn(2 * width, 4 * width), _drawn(4 * width)]
    table, kernel, bias = weights
    cell = hidden = placeholder(float32, [batch, width])
    start, given = hidden, []
    for step in unstack(gather(table, words), axis=1):
        gates = bias_add(matmul(concat([step, hidden], 1), kernel), bias)
        i, j, f, o = split(gates, 4, axis=1)
        cell = sigmoid(f) * cell + sigmoid(i) * tanh(j)
        hidden = sigmoid(o) * tanh(cell)
        given.append(hidden)
    together = reshape(stack(given, axis=1), [-1, width])
    loss = _entropy(together, placeholder(int32, [batch * _STEPS], name="labels"))
    labels = loss.graph.get_tensor_by_name("labels:0")
    dense = weights[1:]
    feeds = {
        words: np.zeros((batch, _STEPS), np.int32),
        start: _values(batch, width),
        labels: np.zeros(batch * _STEPS, np.int32),
    }
    return Probe(_updates(dense, gradients(loss, dense)), feeds)


def _elementwise(side: int) -> Probe:
    """What goes through a matrix once, by itself and together with another one."""
    x = placeholder(float32, [side, side])
    y = x * 2.0 + 1.0
    alone = [exp(x), log(y), sqrt(y), square(x), tanh(x), sigmoid(x), relu(x), softmax(x)]
    pairs = [x - y, x / y, maximum(x, y), where(greater(x, y), x, y), transpose(x)]
    sums = [reduce_sum(x, 0), reduce_sum(x, 1), reduce_mean(x), reduce_max(x, 1)]
    return Probe([each.op for each in (*alone, *pairs, *sums)], {x: _values(side, side)})


def _entropy(logits: Tensor, labels: Tensor) -> Tensor:
    return reduce_mean(sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def _updates(weights: Sequence[Variable], found: Sequence[Any]) -> list[Operation]:
    return [assign_sub(w, g * _RATE).op for w, g in zip(weights, found, strict=True)]


def _drawn(*shape: int) -> Variable:
    return Variable(_values(*shape))


def _values(*shape: int) -> Any:
    """Numbers of which a square root exists, and a logarithm."""
    return np.random.default_rng(0).uniform(0.01, 0.1, shape).astype(np.float32)
