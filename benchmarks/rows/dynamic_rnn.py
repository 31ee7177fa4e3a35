"""An LSTM of 200 units in a loop over 20 steps, batch 20: one step of gradient descent.

The loop's length is the run's to decide: steps come first, and of unknown number.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import tf1
from benchmarks.case import Case, Row, Within
from benchmarks.models import start, training, training_in_jax

_BATCH, _STEPS, _UNITS = 20, 20, 200
_RATE = 0.5


def _problem() -> tuple[Any, list[Any]]:
    random = np.random.default_rng(0)
    x = random.uniform(-1, 1, [_STEPS, _BATCH, _UNITS]).astype(np.float32)
    kernel = random.uniform(-0.1, 0.1, [2 * _UNITS, 4 * _UNITS]).astype(np.float32)
    return x, [kernel, np.zeros(4 * _UNITS, np.float32)]


def _loss(system: Any, outputs: Any) -> Any:
    return system.reduce_mean(system.square(outputs - 0.25))


def _flowbook(fb: Any, unrolled: bool = False) -> Case:
    value, values = _problem()
    graph = fb.Graph()
    with graph.as_default():
        x = fb.placeholder(fb.float32, [_STEPS if unrolled else None, _BATCH, _UNITS])
        # The variables are read once, before all steps.
        weights = [fb.identity(fb.Variable(array)) for array in values]

        def cell(x: Any, state: Any) -> Any:
            return fb.nn.lstm_cell(x, state, *weights, forget_bias=0.0)

        zeros = fb.zeros([_BATCH, _UNITS])
        if unrolled:
            outputs, _ = fb.nn.static_rnn(cell, fb.unstack(x), (zeros, zeros))
            outputs = fb.stack(outputs)
        else:
            outputs, _ = fb.nn.dynamic_rnn(cell, x, (zeros, zeros), time_major=True)
        loss = _loss(fb, outputs)
        train = fb.train.GradientDescentOptimizer(_RATE).minimize(loss)
    session = start(fb, graph, values)
    return training(lambda: session.run([loss, train], {x: value})[0])


class _Cell:
    """An LSTM's cell as TensorFlow's `dynamic_rnn` takes it."""

    state_size = (_UNITS, _UNITS)
    output_size = _UNITS

    def __init__(self, tf: Any, kernel: Any, bias: Any) -> None:
        self._tf = tf
        self._weights = kernel, bias

    def zero_state(self, batch: Any, dtype: Any) -> Any:
        zeros = self._tf.zeros([_BATCH, _UNITS], dtype)
        return zeros, zeros

    def __call__(self, x: Any, state: Any, scope: Any = None) -> Any:
        tf, (kernel, bias), (c, h) = self._tf, self._weights, state
        gates = tf.nn.bias_add(tf.matmul(tf.concat([x, h], 1), kernel), bias)
        i, j, f, o = tf.split(gates, 4, axis=1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(j)
        h = tf.sigmoid(o) * tf.tanh(c)
        return h, (c, h)


def _tf1(tf: Any) -> Case:
    value, values = _problem()
    graph = tf.Graph()
    with graph.as_default():
        x = tf.placeholder(tf.float32, [None, _BATCH, _UNITS])
        given = [tf.placeholder(tf.float32, array.shape) for array in values]
        variables = [tf.Variable(array) for array in given]
        cell = _Cell(tf, *variables)
        outputs, _ = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32, time_major=True)
        loss = _loss(tf, outputs)
        train = tf.train.GradientDescentOptimizer(_RATE).minimize(loss)
        initialize = tf.global_variables_initializer()
    session = tf1.session(tf, graph)
    session.run(initialize, dict(zip(given, values, strict=True)))
    return training(lambda: session.run([loss, train], {x: value})[0])


def _jax(jax: Any) -> Case:
    value, values = _problem()
    jnp = jax.numpy

    def loss_of(weights: Any, x: Any) -> Any:
        kernel, bias = weights

        def step(state: Any, row: Any) -> Any:
            c, h = state
            i, j, f, o = jnp.split(jnp.concatenate([row, h], 1) @ kernel + bias, 4, axis=1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(j)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (c, h), h

        zeros = jnp.zeros([_BATCH, _UNITS])
        _, outputs = jax.lax.scan(step, (zeros, zeros), x)
        return jnp.mean(jnp.square(outputs - 0.25))

    def train(weights: Any, x: Any) -> Any:
        loss, gradients = jax.value_and_grad(loss_of)(weights, x)
        return [w - _RATE * g for w, g in zip(weights, gradients, strict=True)], loss

    return training_in_jax(jax, train, values, value)


ROWS = (
    Row(
        name="lstm_dynamic",
        title="LSTM of 200 units by dynamic_rnn, 20 steps, batch 20, one SGD step",
        cases={
            "flowbook": _flowbook,
            "flowbook unrolled": lambda fb: _flowbook(fb, unrolled=True),
            "tf1": _tf1,
            "jax": _jax,
        },
        target=Within(1.15, "flowbook unrolled"),
        unit="ms",
        rtol=1e-3,
        atol=1e-5,
        rounds=15,
        threads=1,
        notes=("One thread. TF1: `dynamic_rnn`. JAX: `lax.scan`, jit, weights donated.",),
    ),
)
