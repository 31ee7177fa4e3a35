"""A language model of two LSTM layers of 200 units, 20 steps unrolled, batch 20, 10,000 words.

One SGD step; the gradients' common norm is clipped to 5, sparse embeddings' as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import tf1
from benchmarks.case import Case, Row, Within
from benchmarks.models import start, training, training_in_jax

_BATCH, _STEPS, _WORDS, _UNITS = 20, 20, 10_000, 200
_RATE, _LARGEST_NORM = 1.0, 5.0


def _problem() -> tuple[Any, Any, list[Any]]:
    random = np.random.default_rng(0)
    words, targets = random.integers(0, _WORDS, [2, _BATCH, _STEPS]).astype(np.int32)
    shapes = ([_WORDS, _UNITS], *[[2 * _UNITS, 4 * _UNITS], [4 * _UNITS]] * 2, [_UNITS, _WORDS])
    drawn = [random.uniform(-0.1, 0.1, shape).astype(np.float32) for shape in shapes]
    return words, targets, [*drawn, np.zeros(_WORDS, np.float32)]


def trained(fb: Any) -> tuple[Any, list[Any], dict[Any, Any]]:
    """A session, and the fetches and feeds of a step."""
    from examples import language_model

    words, targets, values = _problem()
    graph = fb.Graph()
    with graph.as_default():
        x = fb.placeholder(fb.int32, words.shape)
        y = fb.placeholder(fb.int32, targets.shape)
        model = language_model.language_model(x, y, _WORDS, _UNITS)
        train = language_model.training_step(model.loss, _RATE, _LARGEST_NORM)
    session = start(fb, graph, values)
    return session, [model.loss, train], {x: words, y: targets}


def _flowbook(fb: Any) -> Case:
    session, fetches, feeds = trained(fb)
    return training(lambda: session.run(fetches, feeds)[0])


def _tf1(tf: Any) -> Case:
    words, targets, values = _problem()
    graph = tf.Graph()
    with graph.as_default():
        x = tf.placeholder(tf.int32, words.shape)
        y = tf.placeholder(tf.int32, targets.shape)
        given = [tf.placeholder(tf.float32, value.shape) for value in values]
        variables = [tf.Variable(value) for value in given]
        table, k1, b1, k2, b2, w, b = variables
        outputs = tf.unstack(tf.nn.embedding_lookup(table, x), axis=1)
        for kernel, bias in ((k1, b1), (k2, b2)):
            c = h = tf.zeros([_BATCH, _UNITS])
            inputs, outputs = outputs, []
            for step_input in inputs:
                gates = tf.nn.bias_add(tf.matmul(tf.concat([step_input, h], 1), kernel), bias)
                i, j, f, o = tf.split(gates, 4, axis=1)
                c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(j)
                h = tf.sigmoid(o) * tf.tanh(c)
                outputs.append(h)
        together = tf.reshape(tf.stack(outputs, axis=1), [-1, _UNITS])
        logits = tf.matmul(together, w) + b
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=tf.reshape(y, [-1]), logits=logits
        )
        loss = tf.reduce_mean(losses)
        clipped, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), _LARGEST_NORM)
        optimizer = tf.train.GradientDescentOptimizer(_RATE)
        train = optimizer.apply_gradients(list(zip(clipped, variables, strict=True)))
        initialize = tf.global_variables_initializer()
    session = tf1.session(tf, graph)
    session.run(initialize, dict(zip(given, values, strict=True)))
    feeds = {x: words, y: targets}
    return training(lambda: session.run([loss, train], feeds)[0])


def _jax(jax: Any) -> Case:
    words, targets, values = _problem()
    jnp = jax.numpy

    def loss_of(values: Any, embedded: Any, y: Any) -> Any:
        k1, b1, k2, b2, w, b = values
        outputs = [embedded[:, i] for i in range(_STEPS)]
        for kernel, bias in ((k1, b1), (k2, b2)):
            c = h = jnp.zeros([_BATCH, _UNITS])
            inputs, outputs = outputs, []
            for step_input in inputs:
                gates = jnp.concatenate([step_input, h], 1) @ kernel + bias
                i, j, f, o = jnp.split(gates, 4, axis=1)
                c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(j)
                h = jax.nn.sigmoid(o) * jnp.tanh(c)
                outputs.append(h)
        logits = jnp.stack(outputs, axis=1).reshape(-1, _UNITS) @ w + b
        chosen = jnp.take_along_axis(logits, y.reshape(-1, 1), axis=1)[:, 0]
        return jnp.mean(jax.nn.logsumexp(logits, axis=1) - chosen)

    def train(values: Any, x: Any, y: Any) -> Any:
        table, *others = values
        both = jax.value_and_grad(loss_of, argnums=(0, 1))
        loss, (gradients, of_rows) = both(others, table[x], y)
        norm = jnp.sqrt(sum(jnp.sum(g * g) for g in (*gradients, of_rows)))
        rate = _RATE * _LARGEST_NORM / jnp.maximum(norm, _LARGEST_NORM)
        moved = [w - rate * g for w, g in zip(others, gradients, strict=True)]
        return [table.at[x].add(-rate * of_rows), *moved], loss

    return training_in_jax(jax, train, values, words, targets)


def _torch(torch: Any) -> Case:
    """The library's own LSTM: its gates are i, f, j, o, and it has a second, superfluous bias."""
    words, targets, values = _problem()
    table, *layers, w, b = values
    network = torch.nn.LSTM(_UNITS, _UNITS, 2, batch_first=True)

    def reordered(array: Any) -> Any:
        i, j, f, o = np.split(array, 4, axis=-1)
        return torch.from_numpy(np.concatenate([i, f, j, o], -1).T.copy())

    with torch.no_grad():
        for layer, (kernel, bias) in enumerate((layers[:2], layers[2:])):
            getattr(network, f"weight_ih_l{layer}").copy_(reordered(kernel[:_UNITS]))
            getattr(network, f"weight_hh_l{layer}").copy_(reordered(kernel[_UNITS:]))
            getattr(network, f"bias_ih_l{layer}").copy_(reordered(bias))
            getattr(network, f"bias_hh_l{layer}").zero_().requires_grad_(False)
    rows, w, b = (torch.from_numpy(a.copy()).requires_grad_() for a in (table, w, b))
    dense = [*(p for p in network.parameters() if p.requires_grad), w, b]
    optimizer = torch.optim.SGD([rows, *dense], lr=_RATE)
    functional = torch.nn.functional

    def step() -> float:
        embedded = functional.embedding(torch.from_numpy(words), rows, sparse=True)
        outputs, _ = network(embedded)
        logits = torch.addmm(b, outputs.reshape(-1, _UNITS), w)
        loss = functional.cross_entropy(logits, torch.from_numpy(targets).long().reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        # As a list of rows, those that are named twice count twice: as in the other systems.
        gradients = [rows.grad._values(), *(p.grad for p in dense)]
        norm = torch.sqrt(sum(g.square().sum() for g in gradients))
        factor = _LARGEST_NORM / torch.clamp(norm, min=_LARGEST_NORM)
        for gradient in gradients:
            gradient.mul_(factor)
        optimizer.step()
        return float(loss.detach())

    return training(step)


ROWS = (
    Row(
        name="lstm",
        title="LSTM 2 x 200, 20 steps unrolled, batch 20, vocabulary 10,000, one SGD step",
        cases={"flowbook": _flowbook, "tf1": _tf1, "jax": _jax, "torch": _torch},
        target=Within(0.8, "tf1"),
        unit="ms",
        rtol=1e-3,
        atol=1e-4,
        rounds=15,
        notes=("JAX: jit, weights donated. PyTorch: eager, its own LSTM, sparse embeddings.",),
    ),
    Row(
        name="lstm_busy",
        title="the same, beside three busy processes",
        cases={"flowbook": _flowbook, "tf1": _tf1, "jax": _jax, "torch": _torch},
        target=Within(1.0, "jax"),
        unit="ms",
        rtol=1e-3,
        atol=1e-4,
        rounds=12,
        busy=3,
        notes=("Means of turns of a second.",),
    ),
)
