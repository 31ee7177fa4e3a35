"""Queues: an element put in and one taken out and used, and an input pipeline that threads fill."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import tf1
from benchmarks.case import Case, Row, Within

_CAPACITY = 100
_BATCH = 32
_ROWS = np.arange(64 * 100, dtype=np.float32).reshape(100, 64)


def _element_case(session: Any, put: Any, used: Any, feeds: Any) -> Case:
    """Puts in an element, and takes one out that a small computation uses."""
    for number in range(_CAPACITY // 2):
        session.run(put, {feeds: _ROWS[number]})

    def step() -> None:
        session.run(put, {feeds: _ROWS[0]})
        session.run(used)

    session.run(put, {feeds: _ROWS[0]})
    return Case(step=step, value=session.run(used))


def _element_flowbook(fb: Any) -> Case:
    graph = fb.Graph()
    with graph.as_default():
        x = fb.placeholder(fb.float32, [64], name="x")
        queue = fb.FIFOQueue(_CAPACITY, fb.float32, shapes=[[64]])
        put, used = queue.enqueue(x), queue.dequeue() * 2.0
    return _element_case(fb.Session(graph=graph), put, used, x)


def _element_tf1(tf: Any) -> Case:
    graph = tf.Graph()
    with graph.as_default():
        x = tf.placeholder(tf.float32, [64], name="x")
        queue = tf.FIFOQueue(_CAPACITY, tf.float32, shapes=[[64]])
        put, used = queue.enqueue(x), queue.dequeue() * 2.0
    return _element_case(tf1.session(tf, graph), put, used, x)


def _batch_flowbook(fb: Any) -> Case:
    graph = fb.Graph()
    with graph.as_default():
        [row] = fb.train.slice_input_producer([_ROWS], shuffle=False)
        batch = fb.train.batch(row * 2.0, _BATCH, capacity=4 * _BATCH)
        total = fb.reduce_sum(batch)
    session = fb.Session(graph=graph)
    return Case(step=lambda: session.run(total), value=session.run(total))


def _batch_tf1(tf: Any) -> Case:
    graph = tf.Graph()
    with graph.as_default():
        [row] = tf.train.slice_input_producer([_ROWS], shuffle=False)
        batch = tf.train.batch([row * 2.0], _BATCH, capacity=4 * _BATCH)
        total = tf.reduce_sum(batch)
    session = tf1.session(tf, graph)
    with graph.as_default():
        tf.train.start_queue_runners(session)
    return Case(step=lambda: session.run(total), value=session.run(total))


ROWS = (
    Row(
        name="queue",
        title="an element put into a FIFOQueue, and one taken out and doubled: two runs",
        cases={"flowbook": _element_flowbook, "tf1": _element_tf1},
        target=Within(1.0, "tf1"),
        unit="us",
    ),
    Row(
        name="queue_batch",
        title="the sum of a batch of 32 rows, which a queue runner makes one by one",
        cases={"flowbook": _batch_flowbook, "tf1": _batch_tf1},
        target=Within(1.0, "tf1"),
        unit="us",
    ),
)
