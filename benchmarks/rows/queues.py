"""Queues: an element put in and one taken out and used, and an input pipeline that threads fill."""

from __future__ import annotations

import atexit
import os
import tempfile
from collections.abc import Callable
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


def _flowbook(fb: Any, graph: Any) -> Any:
    return fb.Session(graph=graph)


def _tf1(tf: Any, graph: Any) -> Any:
    session = tf1.session(tf, graph)
    with graph.as_default():
        tf.train.start_queue_runners(session)
    return session


def _element(session_of: Callable[[Any, Any], Any], api: Any) -> Case:
    """Puts in an element, and takes one out that a small computation uses."""
    graph = api.Graph()
    with graph.as_default():
        x = api.placeholder(api.float32, [64], name="x")
        queue = api.FIFOQueue(_CAPACITY, api.float32, shapes=[[64]])
        put, used = queue.enqueue(x), queue.dequeue() * 2.0
    session = session_of(api, graph)
    for number in range(_CAPACITY // 2):
        session.run(put, {x: _ROWS[number]})

    def step() -> None:
        session.run(put, {x: _ROWS[0]})
        session.run(used)

    session.run(put, {x: _ROWS[0]})
    return Case(step=step, value=session.run(used))


def _batch(session_of: Callable[[Any, Any], Any], api: Any) -> Case:
    graph = api.Graph()
    with graph.as_default():
        [row] = api.train.slice_input_producer([_ROWS], shuffle=False)
        batch = api.train.batch([row * 2.0], _BATCH, capacity=4 * _BATCH)
        total = api.reduce_sum(batch)
    session = session_of(api, graph)
    return Case(step=lambda: session.run(total), value=session.run(total))


def _file_of_lines() -> str:
    """A file of many lines of one kind, so that every batch has the same sum."""
    with tempfile.NamedTemporaryFile("w", suffix=".csv", delete=False) as file:
        file.write("1,0.5\n" * 10_000)
    atexit.register(os.remove, file.name)
    return file.name


def _lines(session_of: Callable[[Any, Any], Any], api: Any, at_once: int | None = None) -> Case:
    """So many batches at a time that what waits in the queue before makes no difference."""
    graph = api.Graph()
    with graph.as_default():
        names = api.train.string_input_producer([_file_of_lines()], shuffle=False)
        reader = api.TextLineReader()
        _, lines = reader.read_up_to(names, at_once) if at_once else reader.read(names)
        number, x = api.decode_csv(lines, [[0], [0.0]])
        enqueue_many, capacity = bool(at_once), 8 * _BATCH
        batch = api.train.batch([number, x], _BATCH, capacity=capacity, enqueue_many=enqueue_many)
        total = api.reduce_sum(api.cast(batch[0], api.float32) + batch[1])
    session = session_of(api, graph)

    def step() -> None:
        for _ in range(_STEP // _BATCH):
            session.run(total)

    return Case(step=step, value=session.run(total))


def _cases(build: Callable[..., Case], **how: Any) -> dict[str, Callable[[Any], Case]]:
    return {
        "flowbook": partial(build, _flowbook, **how),
        "tf1": partial(build, _tf1, **how),
    }


ROWS = (
    Row(
        name="queue",
        title="an element put into a FIFOQueue, and one taken out and doubled: two runs",
        cases=_cases(_element),
        target=Within(1.0, "tf1"),
        unit="us",
    ),
    Row(
        name="queue_batch",
        title="the sum of a batch of 32 rows, which a queue runner makes one by one",
        cases=_cases(_batch),
        target=Within(1.0, "tf1"),
        unit="us",
    ),
    Row(
        name="queue_lines",
        title="a line of a file, read and decoded from CSV by a runner, in batches of 32",
        cases=_cases(_lines),
        target=Within(1.0, "tf1"),
        unit="us",
        divisor=_STEP,
    ),
    Row(
        name="queue_lines_many",
        title=f"the same, {_AT_ONCE} lines at a time",
        cases=_cases(_lines, at_once=_AT_ONCE),
        target=Within(1.0, "tf1"),
        unit="us",
        divisor=_STEP,
    ),
)
