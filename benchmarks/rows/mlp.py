"""MLP 784-500-10, batch 100: one SGD step, forward, backward and update, loss fetched.

Every system starts from the same weights and gets the same batch from the caller's NumPy arrays in
every step.  The value is the loss over the first ten steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count, cycle
from typing import Any

import numpy as np

from benchmarks import tf1
from benchmarks.case import Above, AtMost, Case, Row, Within

_INPUTS, _HIDDEN, _CLASSES = 784, 500, 10
_BATCH = 100
_RATE = 0.1
_COMPARED_STEPS = 10
_REPEATED = 500
_ONE_THREAD = (
    "One thread: with two, OpenBLAS makes a step last either 0.9 or 1.25 ms, for seconds at a time."
)


@dataclass(frozen=True)
class _Problem:
    """A batch and the initial weights."""

    x: Any
    labels: Any
    w1: Any
    b1: Any
    w2: Any
    b2: Any


def _problem() -> _Problem:
    random = np.random.default_rng(0)

    def weights(rows: int, columns: int) -> Any:
        bound = (6 / (rows + columns)) ** 0.5
        return random.uniform(-bound, bound, [rows, columns]).astype(np.float32)

    return _Problem(
        x=random.uniform(0, 1, [_BATCH, _INPUTS]).astype(np.float32),
        labels=random.integers(0, _CLASSES, [_BATCH]).astype(np.int32),
        w1=weights(_INPUTS, _HIDDEN),
        b1=np.zeros([_HIDDEN], dtype=np.float32),
        w2=weights(_HIDDEN, _CLASSES),
        b2=np.zeros([_CLASSES], dtype=np.float32),
    )


def _case(step: Callable[[], Any]) -> Case:
    return Case(step=step, value=[float(step()) for _ in range(_COMPARED_STEPS)])


def _training(fb: Any, problem: _Problem, x: Any, labels: Any) -> list[Any]:
    """The loss and a step, in the default graph."""
    w1, b1 = fb.Variable(problem.w1, name="w1"), fb.Variable(problem.b1, name="b1")
    w2, b2 = fb.Variable(problem.w2, name="w2"), fb.Variable(problem.b2, name="b2")
    hidden = fb.nn.relu(fb.matmul(x, w1) + b1)
    logits = fb.matmul(hidden, w2) + b2
    loss = fb.reduce_mean(
        fb.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    )
    train = fb.train.GradientDescentOptimizer(_RATE).minimize(loss)
    fb.summary.scalar("loss", loss)
    fb.summary.histogram("w1", w1)
    return [loss, train]


def trained(fb: Any) -> tuple[Any, list[Any], dict[Any, Any]]:
    """A session, and the fetches and feeds of a step."""
    problem = _problem()
    graph = fb.Graph()
    with graph.as_default():
        x = fb.placeholder(fb.float32, [_BATCH, _INPUTS], name="x")
        labels = fb.placeholder(fb.int32, [_BATCH], name="labels")
        fetches = _training(fb, problem, x, labels)
    return fb.Session(graph=graph), fetches, {x: problem.x, labels: problem.labels}


def _flowbook(fb: Any, watch: Callable[[Any], object] | None = None) -> Case:
    session, fetches, feeds = trained(fb)
    if watch is not None:
        watch(session)
    return _case(lambda: session.run(fetches, feeds)[0])


def _repeated(problem: _Problem) -> tuple[Any, Any]:
    """Many rows: those of a batch lie far apart in memory, as in a real training."""
    return np.tile(problem.x, [_REPEATED, 1]), np.tile(problem.labels, _REPEATED)


def _orders() -> Iterator[Any]:
    """Of each epoch which rows make a batch, as `fb.train.batches` chooses them."""
    for epoch in count():
        order = np.random.default_rng([0, epoch]).permutation(_BATCH * _REPEATED)
        yield order.reshape(_REPEATED, _BATCH)


def _cut(fb: Any) -> Callable[[], Any]:
    """A step that is fed with batches that were cut beforehand, each once in an epoch."""
    problem = _problem()
    images, labels = _repeated(problem)
    batches = cycle([(images[rows], labels[rows]) for rows in next(_orders())])
    session, fetches, feeds = trained(fb)
    return lambda: session.run(fetches, dict(zip(feeds, next(batches), strict=True)))[0]


def _batches(fb: Any) -> Case:
    problem = _problem()
    graph = fb.Graph()
    with graph.as_default():
        images, labels = _repeated(problem)
        batch = fb.train.batches((images, labels), _BATCH, epochs=None, shuffle=0)
        fetches = _training(fb, problem, *batch)
    session = fb.Session(graph=graph)
    return replace(_case(lambda: session.run(fetches)[0]), beside=_cut(fb))


def _guarded(fb: Any) -> Case:
    guarded = _flowbook(fb, lambda session: session.guard())
    return replace(guarded, beside=_flowbook(fb).step)


def _summarized(fb: Any) -> Case:
    every = 100
    summarized = _flowbook(fb, lambda session: session.summarize(every=every))
    return replace(summarized, beside=_flowbook(fb).step, period=every)


def _tf1_training(tf: Any, problem: _Problem, x: Any, labels: Any) -> list[Any]:
    """The loss and a step, in the default graph."""
    w1, b1 = tf.Variable(problem.w1, name="w1"), tf.Variable(problem.b1, name="b1")
    w2, b2 = tf.Variable(problem.w2, name="w2"), tf.Variable(problem.b2, name="b2")
    hidden = tf.nn.relu(tf.matmul(x, w1) + b1)
    logits = tf.matmul(hidden, w2) + b2
    loss = tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    )
    return [loss, tf.train.GradientDescentOptimizer(_RATE).minimize(loss)]


def _tf1(tf: Any, guarded: bool = False) -> Case:
    problem = _problem()
    graph = tf.Graph()
    with graph.as_default():
        x = tf.placeholder(tf.float32, [_BATCH, _INPUTS], name="x")
        labels = tf.placeholder(tf.int32, [_BATCH], name="labels")
        fetches = _tf1_training(tf, problem, x, labels)
        fetches += [tf.add_check_numerics_ops()] if guarded else []
        initialize = tf.global_variables_initializer()
    session = tf1.session(tf, graph)
    session.run(initialize)
    feeds = {x: problem.x, labels: problem.labels}
    return _case(lambda: session.run(fetches, feeds)[0])


def _tf1_batches(tf: Any) -> Case:
    """A runner gathers whole batches, the fastest way that its queues have; epochs are alike."""
    problem = _problem()
    graph = tf.Graph()
    with graph.as_default():
        images, labels = (tf.constant(array) for array in _repeated(problem))
        rows = tf.train.input_producer(next(_orders()), shuffle=False).dequeue()
        queue = tf.FIFOQueue(4, [tf.float32, tf.int32], [[_BATCH, _INPUTS], [_BATCH]])
        put = queue.enqueue([tf.gather(images, rows), tf.gather(labels, rows)])
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [put]))
        fetches = _tf1_training(tf, problem, *queue.dequeue())
        initialize = tf.global_variables_initializer()
    session = tf1.session(tf, graph)
    session.run(initialize)
    with graph.as_default():
        tf.train.start_queue_runners(session)
    return _case(lambda: session.run(fetches)[0])


def _tf1_guarded(tf: Any) -> Case:
    return _tf1(tf, guarded=True)


def _jax(jax: Any) -> Case:
    problem = _problem()
    jnp = jax.numpy

    def loss_of(weights: Any, x: Any, labels: Any) -> Any:
        w1, b1, w2, b2 = weights
        logits = jax.nn.relu(x @ w1 + b1) @ w2 + b2
        chosen = jnp.take_along_axis(logits, labels[:, None], axis=1)[:, 0]
        return jnp.mean(jax.nn.logsumexp(logits, axis=1) - chosen)

    def train(weights: Any, x: Any, labels: Any) -> Any:
        loss, gradients = jax.value_and_grad(loss_of)(weights, x, labels)
        return [w - _RATE * g for w, g in zip(weights, gradients, strict=True)], loss

    compiled = jax.jit(train, donate_argnums=0)
    weights = [jnp.array(w) for w in (problem.w1, problem.b1, problem.w2, problem.b2)]

    def step() -> float:
        nonlocal weights
        weights, loss = compiled(weights, problem.x, problem.labels)
        jax.block_until_ready(weights)
        return float(loss)

    return _case(step)


def _torch(torch: Any) -> Case:
    problem = _problem()
    weights = [
        torch.tensor(w, requires_grad=True)
        for w in (problem.w1, problem.b1, problem.w2, problem.b2)
    ]
    w1, b1, w2, b2 = weights
    optimizer = torch.optim.SGD(weights, lr=_RATE)
    functional = torch.nn.functional

    def step() -> float:
        x = torch.from_numpy(problem.x)
        # PyTorch wants 64-bit labels; converting a hundred of them is part of feeding them.
        labels = torch.from_numpy(problem.labels).long()
        hidden = functional.relu(torch.addmm(b1, x, w1))
        loss = functional.cross_entropy(torch.addmm(b2, hidden, w2), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return _case(step)


def _numpy(np: Any) -> Case:
    problem = _problem()
    step = _by_hand(problem)
    return _case(lambda: step(problem.x, problem.labels))


def _numpy_batches(np: Any) -> Case:
    problem = _problem()
    step = _by_hand(problem)
    images, labels = _repeated(problem)
    batches = (rows for order in _orders() for rows in order)

    def fed() -> float:
        rows = next(batches)
        return step(images[rows], labels[rows])

    return _case(fed)


def _by_hand(problem: _Problem) -> Callable[[Any, Any], float]:
    """A step in place: every intermediate has its buffer, made once."""
    w1, b1, w2, b2 = (w.copy() for w in (problem.w1, problem.b1, problem.w2, problem.b2))
    hidden = np.empty([_BATCH, _HIDDEN], np.float32)
    hidden_gradient = np.empty_like(hidden)
    active = np.empty([_BATCH, _HIDDEN], bool)
    logits = np.empty([_BATCH, _CLASSES], np.float32)
    per_example = np.empty([_BATCH, 1], np.float32)
    w1_gradient, b1_gradient = np.empty_like(w1), np.empty_like(b1)
    w2_gradient, b2_gradient = np.empty_like(w2), np.empty_like(b2)
    examples = np.arange(_BATCH)

    def update(weights: Any, gradient: Any) -> None:
        np.multiply(gradient, np.float32(_RATE), gradient)
        np.subtract(weights, gradient, weights)

    def step(x: Any, labels: Any) -> float:
        np.matmul(x, w1, hidden)
        np.add(hidden, b1, hidden)
        np.greater(hidden, 0, active)
        np.maximum(hidden, 0, hidden)
        np.matmul(hidden, w2, logits)
        np.add(logits, b2, logits)

        np.max(logits, axis=1, keepdims=True, out=per_example)
        np.subtract(logits, per_example, logits)
        chosen = logits[examples, labels]
        np.exp(logits, logits)
        np.sum(logits, axis=1, keepdims=True, out=per_example)
        loss = float(np.mean(np.log(per_example[:, 0]) - chosen))

        # From here `logits` holds its own gradient: softmax minus one at the label.
        np.divide(logits, per_example, logits)
        logits[examples, labels] -= 1
        np.divide(logits, np.float32(_BATCH), logits)
        np.matmul(hidden.T, logits, w2_gradient)
        np.sum(logits, axis=0, out=b2_gradient)
        np.matmul(logits, w2.T, hidden_gradient)
        np.multiply(hidden_gradient, active, hidden_gradient)
        np.matmul(x.T, hidden_gradient, w1_gradient)
        np.sum(hidden_gradient, axis=0, out=b1_gradient)

        update(w1, w1_gradient)
        update(b1, b1_gradient)
        update(w2, w2_gradient)
        update(b2, b2_gradient)
        return loss

    return step


ROWS = (
    Row(
        name="mlp",
        title="MLP 784-500-10, batch 100, one SGD step",
        cases={
            "flowbook": _flowbook,
            "tf1": _tf1,
            "jax": _jax,
            "torch": _torch,
            "numpy": _numpy,
        },
        target=AtMost(1.1e-3),
        unit="ms",
        rtol=1e-4,
        rounds=40,
        notes=(
            "JAX: jit, weights donated. PyTorch: eager. "
            "NumPy by hand: in place, buffers made once.",
        ),
    ),
    Row(
        name="mlp_busy",
        title="the same, beside three busy processes",
        cases={"flowbook": _flowbook, "tf1": _tf1, "jax": _jax, "torch": _torch},
        target=Within(1.0, "jax"),
        unit="ms",
        rtol=1e-4,
        rounds=12,
        busy=3,
        notes=("Means of turns of a second.",),
    ),
    Row(
        name="mlp_guarded",
        title="the same, guarded against NaN and Inf",
        cases={"flowbook": _guarded, "tf1": _tf1_guarded},
        target=Above(0.05),
        unit="ms",
        rtol=1e-4,
        rounds=40,
        threads=1,
        notes=(f"{_ONE_THREAD} TF1: add_check_numerics_ops.",),
    ),
    Row(
        name="mlp_summarized",
        title="the same, the loss and a histogram of w1 summarised in every 100th step",
        cases={"flowbook": _summarized},
        target=Above(0.1),
        unit="ms",
        rtol=1e-4,
        rounds=40,
        threads=1,
        notes=(_ONE_THREAD,),
    ),
    Row(
        name="mlp_batches",
        title="the same, fed by fb.train.batches with shuffled rows of 50,000",
        cases={"flowbook": _batches, "tf1": _tf1_batches, "numpy": _numpy_batches},
        target=Above(0.05),
        unit="ms",
        rtol=1e-4,
        rounds=40,
        threads=1,
        notes=(
            f"{_ONE_THREAD} Beside it the step is fed with batches that were cut beforehand, each "
            "once in an epoch, so that none is in the processor's cache. TF1: batches are gathered "
            "by a queue's runner. NumPy: by hand, in the loop.",
        ),
    ),
)
