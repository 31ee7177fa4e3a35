"""A Transformer block: width 256, 4 heads, 128 tokens, batch 8, inner width 1024; an Adam step.

Attention, two dense layers, each with a residual and a layer normalisation behind it; the loss is
the mean squared distance from a target.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import tf1
from benchmarks.case import Case, Row, Within
from benchmarks.models import start, step_in_torch, training, training_in_jax, weights

_BATCH, _TOKENS, _WIDTH, _INNER, _HEADS = 8, 128, 256, 1024, 4
_HEAD = _WIDTH // _HEADS
_RATE, _BETA1, _BETA2, _EPSILON = 1e-3, 0.9, 0.999, 1e-8
_NORM_EPSILON = 1e-5
_SHAPES = (*[[_WIDTH, _WIDTH]] * 4, [_WIDTH], [_WIDTH])
_INNER_SHAPES = ([_WIDTH, _INNER], [_INNER], [_INNER, _WIDTH], [_WIDTH], [_WIDTH], [_WIDTH])


def _problem() -> tuple[Any, Any, list[Any]]:
    random = np.random.default_rng(0)
    x, target = random.standard_normal([2, _BATCH, _TOKENS, _WIDTH], dtype=np.float32)
    values = weights((*_SHAPES, *_INNER_SHAPES))
    values[4] += 1  # The factors of both normalisations.
    values[10] += 1
    return x, target, values


def _flowbook(fb: Any) -> Case:
    from examples import transformer

    given, wanted, values = _problem()
    graph = fb.Graph()
    with graph.as_default():
        x, target = (fb.placeholder(fb.float32, a.shape) for a in (given, wanted))
        y = transformer.encoder_layer(x, transformer.Sizes(1, _WIDTH, _INNER, _HEADS))
        loss = fb.reduce_mean(fb.square(y - target))
        train = fb.train.AdamOptimizer(_RATE).minimize(loss)
    session = start(fb, graph, values)
    feeds = {x: given, target: wanted}
    return training(lambda: session.run([loss, train], feeds)[0])


def _tf1(tf: Any) -> Case:
    given, wanted, values = _problem()
    graph = tf.Graph()
    with graph.as_default():
        x, target = (tf.placeholder(tf.float32, a.shape) for a in (given, wanted))
        fed = [tf.placeholder(tf.float32, value.shape) for value in values]
        wq, wk, wv, wo, g1, o1, w1, b1, w2, b2, g2, o2 = (tf.Variable(v) for v in fed)

        def heads(rows: Any, kernel: Any) -> Any:
            split = tf.reshape(tf.matmul(rows, kernel), [_BATCH, _TOKENS, _HEADS, _HEAD])
            return tf.transpose(split, [0, 2, 1, 3])

        def normal(x: Any, scale: Any, offset: Any) -> Any:
            mean, variance = tf.nn.moments(x, [-1], keepdims=True)
            return tf.nn.batch_normalization(x, mean, variance, offset, scale, _NORM_EPSILON)

        rows = tf.reshape(x, [-1, _WIDTH])
        q, k, v = (heads(rows, kernel) for kernel in (wq, wk, wv))
        seen = tf.matmul(tf.nn.softmax(tf.matmul(q * _HEAD**-0.5, k, transpose_b=True)), v)
        together = tf.reshape(tf.transpose(seen, [0, 2, 1, 3]), [-1, _WIDTH])
        rows = normal(rows + tf.matmul(together, wo), g1, o1)
        inner = tf.nn.relu(tf.matmul(rows, w1) + b1)
        rows = normal(rows + tf.matmul(inner, w2) + b2, g2, o2)
        loss = tf.reduce_mean(tf.square(rows - tf.reshape(target, [-1, _WIDTH])))
        train = tf.train.AdamOptimizer(_RATE).minimize(loss)
        initialize = tf.global_variables_initializer()
    session = tf1.session(tf, graph)
    session.run(initialize, dict(zip(fed, values, strict=True)))
    feeds = {x: given, target: wanted}
    return training(lambda: session.run([loss, train], feeds)[0])


def _jax(jax: Any) -> Case:
    given, wanted, values = _problem()
    jnp = jax.numpy

    def normal(x: Any, scale: Any, offset: Any) -> Any:
        distances = x - x.mean(-1, keepdims=True)
        variance = jnp.square(distances).mean(-1, keepdims=True)
        return distances * jax.lax.rsqrt(variance + _NORM_EPSILON) * scale + offset

    def loss_of(values: Any, x: Any, target: Any) -> Any:
        wq, wk, wv, wo, g1, o1, w1, b1, w2, b2, g2, o2 = values
        rows = x.reshape(-1, _WIDTH)

        def heads(kernel: Any) -> Any:
            split = (rows @ kernel).reshape(_BATCH, _TOKENS, _HEADS, _HEAD)
            return split.transpose(0, 2, 1, 3)

        q, k, v = (heads(kernel) for kernel in (wq, wk, wv))
        seen = jax.nn.softmax((q * _HEAD**-0.5) @ k.swapaxes(-1, -2)) @ v
        rows = normal(rows + seen.transpose(0, 2, 1, 3).reshape(-1, _WIDTH) @ wo, g1, o1)
        rows = normal(rows + jax.nn.relu(rows @ w1 + b1) @ w2 + b2, g2, o2)
        return jnp.mean(jnp.square(rows - target.reshape(-1, _WIDTH)))

    def train(state: Any, x: Any, target: Any) -> Any:
        values, means, squares, count = state
        loss, gradients = jax.value_and_grad(loss_of)(values, x, target)
        count = count + 1
        rate = _RATE * jnp.sqrt(1 - _BETA2**count) / (1 - _BETA1**count)
        means = [m + (1 - _BETA1) * (g - m) for m, g in zip(means, gradients, strict=True)]
        squares = [v + (1 - _BETA2) * (g * g - v) for v, g in zip(squares, gradients, strict=True)]
        values = [
            w - rate * m / (jnp.sqrt(v) + _EPSILON)
            for w, m, v in zip(values, means, squares, strict=True)
        ]
        return (values, means, squares, count), loss

    zeros = [[np.zeros_like(value) for value in values] for _ in range(2)]
    return training_in_jax(jax, train, (values, *zeros, np.float32(0)), given, wanted)


def _torch(torch: Any) -> Case:
    given, wanted, values = _problem()
    functional = torch.nn.functional
    kept = [torch.from_numpy(value).requires_grad_() for value in values]
    wq, wk, wv, wo, g1, o1, w1, b1, w2, b2, g2, o2 = kept
    optimizer = torch.optim.Adam(kept, lr=_RATE, betas=(_BETA1, _BETA2), eps=_EPSILON, fused=True)

    def normal(x: Any, scale: Any, offset: Any) -> Any:
        return functional.layer_norm(x, [_WIDTH], scale, offset, _NORM_EPSILON)

    def step() -> float:
        rows = torch.from_numpy(given).reshape(-1, _WIDTH)

        def heads(kernel: Any) -> Any:
            return (rows @ kernel).reshape(_BATCH, _TOKENS, _HEADS, _HEAD).transpose(1, 2)

        seen = functional.scaled_dot_product_attention(heads(wq), heads(wk), heads(wv))
        rows = normal(rows + seen.transpose(1, 2).reshape(-1, _WIDTH) @ wo, g1, o1)
        inner = functional.relu(torch.addmm(b1, rows, w1))
        rows = normal(rows + torch.addmm(b2, inner, w2), g2, o2)
        loss = functional.mse_loss(rows, torch.from_numpy(wanted).reshape(-1, _WIDTH))
        return step_in_torch(optimizer, loss)

    return training(step)


ROWS = (
    Row(
        name="transformer",
        title="Transformer block (width 256, 4 heads, 128 tokens, batch 8), one Adam step",
        cases={"flowbook": _flowbook, "tf1": _tf1, "jax": _jax, "torch": _torch},
        target=Within(0.9, "torch"),
        unit="ms",
        rtol=1e-3,
        atol=1e-4,
        rounds=20,
        notes=("JAX: jit, state donated. PyTorch: eager, fused attention, fused Adam.",),
    ),
)
