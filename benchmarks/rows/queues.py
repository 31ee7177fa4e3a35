"""Queues: an element put in and one taken out and used, and an input pipeline that threads fill."""

from __future__ import annotations

import atexit
import os
import tempfile
from functools import partial
from typing import Any

import numpy as np

from benchmarks import tf1
from benchmarks.case import Case, Row, Within

_CAPACITY = 100
_BATCH = 32
# Lines in a step, and those that a runner reads at a time.
_STEP, _AT_ONCE = 64 * _BATCH, 256
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


def _file_of_lines() -> str:
    """A file of many lines of one kind, so that every batch has the same sum."""
    with tempfile.NamedTemporaryFile("w", suffix=".csv", delete=False) as file:
        file.write("1,0.5\n" * 10_000)
    atexit.register(os.remove, file.name)
    return file.name


def _lines_case(session: Any, total: Any) -> Case:
    """So many batches at a time that what waits in the queue before makes no difference."""

    def step() -> None:
        for _ in range(_STEP // _BATCH):
            session.run(total)

    return Case(step=step, value=session.run(total))


def _lines_flowbook(fb: Any, at_once: int | None = None) -> Case:
    graph = fb.Graph()
    with graph.as_default():
        names = fb.train.string_input_producer([_file_of_lines()], shuffle=False)
        reader = fb.TextLineReader()
        _, lines = reader.read_up_to(names, at_once) if at_once else reader.read(names)
        number, x = fb.decode_csv(lines, [[0], [0.0]])
        enqueue_many, capacity = bool(at_once), 8 * _BATCH
        batch = fb.train.batch([number, x], _BATCH, capacity=capacity, enqueue_many=enqueue_many)
        total = fb.reduce_sum(fb.cast(batch[0], fb.float32) + batch[1])
    session = fb.Session(graph=graph)
    return _lines_case(session, total)


def _lines_tf1(tf: Any, at_once: int | None = None) -> Case:
    graph = tf.Graph()
    with graph.as_default():
        names = tf.train.string_input_producer([_file_of_lines()], shuffle=False)
        reader = tf.TextLineReader()
        _, lines = reader.read_up_to(names, at_once) if at_once else reader.read(names)
        number, x = tf.decode_csv(lines, [[0], [0.0]])
        enqueue_many, capacity = bool(at_once), 8 * _BATCH
        batch = tf.train.batch([number, x], _BATCH, capacity=capacity, enqueue_many=enqueue_many)
        total = tf.reduce_sum(tf.cast(batch[0], tf.float32) + batch[1])
    session = tf1.session(tf, graph)
    with graph.as_default():
        tf.train.start_queue_runners(session)
    return _lines_case(session, total)


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
    Row(
        name="queue_lines",
        title="a line of a file, read and decoded from CSV by a runner, in batches of 32",
        cases={"flowbook": _lines_flowbook, "tf1": _lines_tf1},
        target=Within(1.0, "tf1"),
        unit="us",
        divisor=_STEP,
    ),
    Row(
        name="queue_lines_many",
        title=f"the same, {_AT_ONCE} lines at a time",
        cases={
            "flowbook": partial(_lines_flowbook, at_once=_AT_ONCE),
            "tf1": partial(_lines_tf1, at_once=_AT_ONCE),
        },
        target=Within(1.0, "tf1"),
        unit="us",
        divisor=_STEP,
    ),
)
