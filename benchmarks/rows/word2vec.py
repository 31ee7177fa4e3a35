"""A word2vec step: skip-gram, batch 128, width 128, NCE with 64 noise words, sparse SGD.

With tables of 10,000 and of 1,000,000 rows: the time must not grow with them. All systems get the
same noise words, so that values agree; `sampling` draws them in the step, as one would.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks import tf1
from benchmarks.case import Case, Row, Within
from benchmarks.models import step_in_torch, training, training_in_jax

_BATCH, _WIDTH, _NOISE = 128, 128, 64
_RATE = 0.1


class _Problem:
    """Tables, a batch, noise words, and how often words are expected among them."""

    def __init__(self, rows: int) -> None:
        random = np.random.default_rng(0)
        # A small table, repeated: drawing all of a large one takes seconds.
        drawn = random.standard_normal([10_000, _WIDTH], dtype=np.float32) / np.float32(_WIDTH**0.5)
        self.embeddings = np.tile(drawn, [rows // 10_000, 1])
        self.weights = np.tile(drawn[::-1], [rows // 10_000, 1])
        self.biases = np.zeros(rows, np.float32)
        self.words, self.contexts = random.zipf(1.2, [2, _BATCH]).clip(1, rows).astype(np.int64) - 1
        self.noise = np.unique(random.integers(0, rows, 2 * _NOISE))[:_NOISE]
        self.expected_contexts = self._expected(self.contexts, rows)
        self.expected_noise = self._expected(self.noise, rows)

    @staticmethod
    def _expected(classes: Any, rows: int) -> Any:
        found = _NOISE * np.log1p(1 / (classes + 1)) / np.log1p(rows)
        return found.astype(np.float32)


def _steps(lib: Any, rows: int, embeddings: Any, weights: Any, biases: Any) -> Any:
    """Two steps: with noise that is fed, and with noise that it draws; and what they are fed."""
    words = lib.placeholder(lib.int64, [_BATCH])
    contexts = lib.placeholder(lib.int64, [_BATCH, 1])
    noise = (
        lib.placeholder(lib.int64, [_NOISE]),
        lib.placeholder(lib.float32, [_BATCH, 1]),
        lib.placeholder(lib.float32, [_NOISE]),
    )
    embedded = lib.nn.embedding_lookup(embeddings, words)

    def step_with(sampled: Any) -> Any:
        losses = lib.nn.nce_loss(
            weights, biases, contexts, embedded, _NOISE, rows, sampled_values=sampled
        )
        loss = lib.reduce_mean(losses)
        return loss, lib.train.GradientDescentOptimizer(_RATE).minimize(loss)

    return step_with(noise), step_with(None), (words, contexts), noise


def _case(problem: _Problem, samples: bool, session: Any, steps: Any) -> Case:
    told, sampling, places, noise = steps
    batch = dict(zip(places, (problem.words, problem.contexts[:, None]), strict=True))
    drawn = (problem.noise, problem.expected_contexts[:, None], problem.expected_noise)
    feeds = {**batch, **dict(zip(noise, drawn, strict=True))}
    case = training(lambda: session.run(told, feeds)[0])
    if not samples:
        return case
    return Case(lambda: session.run(sampling, batch), case.value)


def _flowbook(rows: int, samples: bool, fb: Any) -> Case:
    problem = _Problem(rows)
    graph = fb.Graph()
    with graph.as_default():
        given = [fb.placeholder(fb.float32, [rows, _WIDTH]) for _ in range(2)]
        embeddings = fb.Variable(fb.zeros([rows, _WIDTH]), name="embeddings")
        weights = fb.Variable(fb.zeros([rows, _WIDTH]), name="weights")
        biases = fb.Variable(fb.zeros([rows]), name="biases")
        filled = [fb.assign(embeddings, given[0]).op, fb.assign(weights, given[1]).op]
        steps = _steps(fb, rows, embeddings, weights, biases)
    session = fb.Session(graph=graph)
    session.run(filled, dict(zip(given, (problem.embeddings, problem.weights), strict=True)))
    return _case(problem, samples, session, steps)


def _tf1(rows: int, samples: bool, tf: Any) -> Case:
    problem = _Problem(rows)
    graph = tf.Graph()
    with graph.as_default():
        given = [tf.placeholder(tf.float32, [rows, _WIDTH]) for _ in range(2)]
        embeddings, weights = (tf.Variable(value) for value in given)
        biases = tf.Variable(tf.zeros([rows]))
        steps = _steps(tf, rows, embeddings, weights, biases)
        initialize = tf.global_variables_initializer()
    session = tf1.session(tf, graph)
    tables = (problem.embeddings, problem.weights)
    session.run(initialize, dict(zip(given, tables, strict=True)))
    return _case(problem, samples, session, steps)


def _jax(rows: int, jax: Any) -> Case:
    problem = _Problem(rows)
    jnp = jax.numpy

    def loss_of(embedded: Any, of_classes: Any, offsets: Any, expected: Any) -> Any:
        right = jnp.sum(embedded * of_classes[:_BATCH], 1) + offsets[:_BATCH]
        noise = embedded @ of_classes[_BATCH:].T + offsets[_BATCH:]
        right -= jnp.log(expected[:_BATCH])
        noise -= jnp.log(expected[_BATCH:])
        return jnp.mean(jax.nn.softplus(-right) + jnp.sum(jax.nn.softplus(noise), 1))

    def train(tables: Any, words: Any, classes: Any, expected: Any) -> Any:
        embeddings, weights, biases = tables
        found = embeddings[words], weights[classes], biases[classes]
        loss, slopes = jax.value_and_grad(loss_of, argnums=(0, 1, 2))(*found, expected)
        return (
            embeddings.at[words].add(-_RATE * slopes[0]),
            weights.at[classes].add(-_RATE * slopes[1]),
            biases.at[classes].add(-_RATE * slopes[2]),
        ), loss

    tables = (problem.embeddings, problem.weights, problem.biases)
    words = problem.words.astype(np.int32)
    classes = np.concatenate([problem.contexts, problem.noise]).astype(np.int32)
    expected = np.concatenate([problem.expected_contexts, problem.expected_noise])
    return training_in_jax(jax, train, tables, words, classes, expected)


def _torch(rows: int, torch: Any) -> Case:
    problem = _Problem(rows)
    functional = torch.nn.functional
    arrays = (problem.embeddings, problem.weights, problem.biases[:, None])
    tables = [torch.from_numpy(a).requires_grad_() for a in arrays]
    optimizer = torch.optim.SGD(tables, lr=_RATE)
    classes = np.concatenate([problem.contexts, problem.noise])
    expected = np.concatenate([problem.expected_contexts, problem.expected_noise])

    def step() -> float:
        chosen = torch.from_numpy(classes)
        embedded = functional.embedding(torch.from_numpy(problem.words), tables[0], sparse=True)
        of_classes = functional.embedding(chosen, tables[1], sparse=True)
        offsets = functional.embedding(chosen, tables[2], sparse=True)[:, 0]
        offsets = offsets - torch.from_numpy(expected).log()
        right = (embedded * of_classes[:_BATCH]).sum(1) + offsets[:_BATCH]
        noise = torch.addmm(offsets[_BATCH:], embedded, of_classes[_BATCH:].T)
        loss = (functional.softplus(-right) + functional.softplus(noise).sum(1)).mean()
        return step_in_torch(optimizer, loss)

    return training(step)


def _row(name: str, rows: int) -> Row:
    return Row(
        name=name,
        title=f"word2vec step, batch 128, width 128, 64 noise words, {rows:,} rows",
        cases={
            "flowbook": partial(_flowbook, rows, False),
            "flowbook sampling": partial(_flowbook, rows, True),
            "tf1": partial(_tf1, rows, False),
            "tf1 sampling": partial(_tf1, rows, True),
            "jax": partial(_jax, rows),
            "torch": partial(_torch, rows),
        },
        target=Within(0.9, "jax"),
        unit="ms",
        rtol=1e-4,
        atol=1e-4,
        rounds=20,
        shows_growth=True,
        notes=("JAX: jit, tables donated. PyTorch: eager, sparse gradients.",),
        not_compared=frozenset(["tf1 sampling"]),
    )


ROWS = (_row("word2vec_10k", 10_000), _row("word2vec_1m", 1_000_000))
