"""The network of TensorFlow's CIFAR-10 tutorial on 128 crops of 24 x 24: one SGD step.

Two convolutions of 5 x 5 with pooling and local response normalisation, two dense layers with a
penalty on their weights, ten classes. No moving averages.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import tf1
from benchmarks.case import AtMost, Case, Row
from benchmarks.models import start, step_in_torch, training, training_in_jax, weights

_BATCH = 128
_RATE, _PENALTY = 0.01, 0.002
_SHAPES = (
    [5, 5, 3, 64],
    [64],
    [5, 5, 64, 64],
    [64],
    [2304, 384],
    [384],
    [384, 192],
    [192],
    [192, 10],
    [10],
)
_RADIUS, _ALPHA, _BETA = 4, 0.001 / 9, 0.75


def _problem() -> tuple[Any, Any, list[Any]]:
    random = np.random.default_rng(0)
    images = random.standard_normal([_BATCH, 24, 24, 3], dtype=np.float32)
    return images, random.integers(0, 10, _BATCH).astype(np.int32), weights(_SHAPES)


def trained(fb: Any) -> tuple[Any, list[Any], dict[Any, Any]]:
    """A session, and the fetches and feeds of a step."""
    from examples import cifar10

    images, labels, values = _problem()
    graph = fb.Graph()
    with graph.as_default():
        x = fb.placeholder(fb.float32, images.shape)
        y = fb.placeholder(fb.int32, labels.shape)
        loss = cifar10.loss(cifar10.cifar10(x), y)
        train = fb.train.GradientDescentOptimizer(_RATE).minimize(loss)
    session = start(fb, graph, values)
    return session, [loss, train], {x: images, y: labels}


def _flowbook(fb: Any) -> Case:
    session, fetches, feeds = trained(fb)
    return training(lambda: session.run(fetches, feeds)[0])


def _tf1(tf: Any) -> Case:
    images, labels, values = _problem()
    graph = tf.Graph()
    with graph.as_default():
        x = tf.placeholder(tf.float32, images.shape)
        y = tf.placeholder(tf.int32, labels.shape)
        given = [tf.placeholder(tf.float32, value.shape) for value in values]
        variables = [tf.Variable(value) for value in given]
        k1, b1, k2, b2, w3, b3, w4, b4, w5, b5 = variables

        def normal(x: Any) -> Any:
            return tf.nn.local_response_normalization(x, _RADIUS, 1.0, _ALPHA, _BETA)

        def pooled(x: Any) -> Any:
            return tf.nn.max_pool2d(x, 3, 2, "SAME")

        first = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, k1, 1, "SAME"), b1))
        first = normal(pooled(first))
        second = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(first, k2, 1, "SAME"), b2))
        second = tf.reshape(pooled(normal(second)), [_BATCH, -1])
        third = tf.nn.relu(tf.matmul(second, w3) + b3)
        fourth = tf.nn.relu(tf.matmul(third, w4) + b4)
        logits = tf.matmul(fourth, w5) + b5
        entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
        penalty = 2 * _PENALTY * (tf.nn.l2_loss(w3) + tf.nn.l2_loss(w4))
        loss = tf.reduce_mean(entropy) + penalty
        train = tf.train.GradientDescentOptimizer(_RATE).minimize(loss)
        initialize = tf.global_variables_initializer()
    session = tf1.session(tf, graph)
    session.run(initialize, dict(zip(given, values, strict=True)))
    feeds = {x: images, y: labels}
    return training(lambda: session.run([loss, train], feeds)[0])


def _jax(jax: Any) -> Case:
    images, labels, values = _problem()
    jnp, lax = jax.numpy, jax.lax

    def convolve(x: Any, f: Any) -> Any:
        layout = ("NHWC", "HWIO", "NHWC")
        return lax.conv_general_dilated(x, f, (1, 1), "SAME", dimension_numbers=layout)

    def normal(x: Any) -> Any:
        width, pads = (1, 1, 1, 2 * _RADIUS + 1), [(0, 0)] * 3 + [(_RADIUS, _RADIUS)]
        sums = lax.reduce_window(x * x, 0.0, lax.add, width, (1,) * 4, pads)
        return x * (1.0 + _ALPHA * sums) ** -_BETA

    def pooled(x: Any) -> Any:
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")

    def loss_of(values: Any, x: Any, y: Any) -> Any:
        k1, b1, k2, b2, w3, b3, w4, b4, w5, b5 = values
        first = normal(pooled(jax.nn.relu(convolve(x, k1) + b1)))
        second = pooled(normal(jax.nn.relu(convolve(first, k2) + b2))).reshape(_BATCH, -1)
        third = jax.nn.relu(second @ w3 + b3)
        logits = jax.nn.relu(third @ w4 + b4) @ w5 + b5
        chosen = jnp.take_along_axis(logits, y[:, None], axis=1)[:, 0]
        entropy = jnp.mean(jax.nn.logsumexp(logits, axis=1) - chosen)
        return entropy + _PENALTY * (jnp.sum(w3 * w3) + jnp.sum(w4 * w4))

    def train(values: Any, x: Any, y: Any) -> Any:
        loss, gradients = jax.value_and_grad(loss_of)(values, x, y)
        return [w - _RATE * g for w, g in zip(values, gradients, strict=True)], loss

    return training_in_jax(jax, train, values, images, labels)


def _torch(torch: Any) -> Case:
    images, labels, values = _problem()
    functional = torch.nn.functional
    kept = []
    for value in values:
        tensor = torch.from_numpy(value)
        if tensor.ndim == 4:
            tensor = tensor.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
        kept.append(tensor.requires_grad_())
    k1, b1, k2, b2, w3, b3, w4, b4, w5, b5 = kept
    optimizer = torch.optim.SGD(kept, lr=_RATE)
    width = 2 * _RADIUS + 1

    def normal(x: Any) -> Any:
        # PyTorch divides alpha by the width.
        return functional.local_response_norm(x, width, _ALPHA * width, _BETA, 1.0)

    def pooled(x: Any) -> Any:
        return functional.max_pool2d(x, 3, 2, ceil_mode=True)

    def step() -> float:
        x = torch.from_numpy(images).permute(0, 3, 1, 2)
        y = torch.from_numpy(labels).long()
        first = normal(pooled(functional.relu(functional.conv2d(x, k1, b1, padding=2))))
        second = pooled(normal(functional.relu(functional.conv2d(first, k2, b2, padding=2))))
        flat = second.permute(0, 2, 3, 1).reshape(_BATCH, -1)
        third = functional.relu(torch.addmm(b3, flat, w3))
        logits = torch.addmm(b5, functional.relu(torch.addmm(b4, third, w4)), w5)
        penalty = _PENALTY * (w3.square().sum() + w4.square().sum())
        loss = functional.cross_entropy(logits, y) + penalty
        return step_in_torch(optimizer, loss)

    return training(step)


ROWS = (
    Row(
        name="cifar10",
        title="CIFAR-10 tutorial network (24 x 24 crops), batch 128, one SGD step",
        cases={"flowbook": _flowbook, "tf1": _tf1, "jax": _jax, "torch": _torch},
        target=AtMost(70e-3),
        unit="ms",
        rtol=1e-3,
        atol=1e-4,
        rounds=15,
        notes=("JAX: jit, weights donated. PyTorch: eager, channels last.",),
    ),
)
