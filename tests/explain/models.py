"""A small model that the tools explain."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import flowbook as fb


class Model(NamedTuple):
    """A classifier with one hidden layer, its training step, and a batch for it."""

    loss: Any
    train: Any
    rate: Any
    feeds: dict[Any, Any]


def classifier() -> Model:
    """Build it in the default graph."""
    x = fb.placeholder(fb.float32, [None, 8], name="x")
    y = fb.placeholder(fb.int32, [None], name="y")
    rate = fb.placeholder(fb.float32, [], name="rate")
    with fb.name_scope("hidden"):
        w = fb.Variable(fb.random_normal([8, 16], seed=1), name="w")
        b = fb.Variable(fb.zeros([16]), name="b")
        h = fb.nn.dropout(fb.nn.relu(x @ w + b), rate=0.5, seed=2)
    with fb.name_scope("output"):
        v = fb.Variable(fb.random_normal([16, 3], seed=3), name="w")
        c = fb.Variable(fb.zeros([3]), name="b")
        logits = h @ v + c
    losses = fb.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
    loss = fb.reduce_mean(losses, name="loss")
    train = fb.train.MomentumOptimizer(rate, 0.9).minimize(loss)
    random = np.random.default_rng(0)
    feeds = {x: random.normal(size=(20, 8)), y: random.integers(0, 3, 20), rate: 0.1}
    return Model(loss, train, rate, feeds)
