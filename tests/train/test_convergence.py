"""Every optimizer solves small problems, and does so equally each time."""

from typing import Any

import numpy as np
import pytest

import flowbook as fb

OPTIMIZERS: dict[str, Any] = {
    "descent": lambda: fb.train.GradientDescentOptimizer(0.5),
    "momentum": lambda: fb.train.MomentumOptimizer(0.1, 0.9),
    "nesterov": lambda: fb.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adagrad": lambda: fb.train.AdagradOptimizer(0.5),
    "adadelta": lambda: fb.train.AdadeltaOptimizer(1.0, 0.9, 1e-3),
    "rmsprop": lambda: fb.train.RMSPropOptimizer(0.02),
    "rmsprop centered": lambda: fb.train.RMSPropOptimizer(0.01, momentum=0.5, centered=True),
    "adam": lambda: fb.train.AdamOptimizer(0.05),
    "adam lazy": lambda: fb.train.AdamOptimizer(0.05, lazy=True),
    "adamw": lambda: fb.train.AdamWOptimizer(1e-4, 0.05),
    "adafactor": lambda: fb.train.AdafactorOptimizer(0.1),
    "ftrl": lambda: fb.train.FtrlOptimizer(0.5),
    "proximal adagrad": lambda: fb.train.ProximalAdagradOptimizer(0.5, 0.1, 1e-4),
    "proximal": lambda: fb.train.ProximalGradientDescentOptimizer(0.5, 1e-4),
}

EACH = pytest.mark.parametrize("kind", OPTIMIZERS)


def spirals() -> tuple[Any, Any]:
    """Two classes that no line parts."""
    random = np.random.default_rng(0)
    place = random.uniform(-1, 1, size=(64, 2)).astype(np.float32)
    return place, (place[:, :1] * place[:, 1:] > 0).astype(np.float32)


def trained(kind: str, steps: int) -> tuple[float, list[Any]]:
    """The loss of a small network after some steps, and its variables."""
    graph = fb.Graph()
    with graph.as_default(), fb.Session() as sess:
        fb.set_random_seed(3)
        place, label = spirals()
        x, y = fb.placeholder(fb.float32, [None, 2]), fb.placeholder(fb.float32, [None, 1])
        W = fb.Variable(fb.random_uniform([2, 16], -1, 1), name="W")
        b = fb.Variable(fb.zeros([16]), name="b")
        V = fb.Variable(fb.random_uniform([16, 1], -1, 1), name="V")
        logits = fb.matmul(fb.tanh(3.0 * x @ W + b), V)
        losses = fb.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits)
        loss = fb.reduce_mean(losses)
        train = OPTIMIZERS[kind]().minimize(loss)
        feeds = {x: place, y: label}
        for _ in range(steps):
            sess.run(train, feeds)
        return float(sess.run(loss, feeds)), sess.run([W, b, V])


@EACH
def test_a_small_network_learns(kind: str) -> None:
    loss, values = trained(kind, 400)
    assert loss < 0.3
    again, same = trained(kind, 400)
    assert again == loss
    for value, other in zip(values, same, strict=True):
        np.testing.assert_array_equal(value, other)


@EACH
def test_an_embedding_learns_from_rows(kind: str) -> None:
    wanted = np.random.default_rng(0).uniform(0.5, 1.0, size=(20, 2)).astype(np.float32)
    table = fb.Variable(fb.zeros([20, 2]) + 0.1)
    indices = fb.placeholder(fb.int32, [None])
    loss = fb.reduce_sum(fb.square(fb.gather(table, indices) - fb.gather(wanted, indices))) / 2
    train = OPTIMIZERS[kind]().minimize(loss)
    random = np.random.default_rng(1)
    with fb.Session() as sess:
        for _ in range(300):
            sess.run(train, {indices: random.integers(0, 20, 8)})
        np.testing.assert_allclose(sess.run(table), wanted, atol=0.15)


@EACH
def test_clipped_gradients_are_applied(kind: str) -> None:
    x = fb.Variable([[1.0, 2.0], [3.0, 4.0]])
    optimizer = OPTIMIZERS[kind]()
    pairs = optimizer.compute_gradients(fb.reduce_sum(fb.square(x)) * 1e6)
    clipped = [(fb.clip_by_value(g, -1.0, 1.0), v) for g, v in pairs]
    train = optimizer.apply_gradients(clipped)
    with fb.Session() as sess:
        before = sess.run(x)
        sess.run(train)
        after = sess.run(x)
        assert (after < before).all()
        assert np.abs(after - before).max() < 2.0
