"""Queues: what goes in comes out, in which order, and who waits for whom."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.exec.state.executors import EXECUTORS, run_in
from tests.exec.state.threads import run_together


@pytest.fixture
def sess() -> Iterator[fb.Session]:
    with fb.Session() as session:
        yield session


class Waiting:
    """A run on a thread of its own, which waits."""

    def __init__(self, sess: fb.Session, fetches: Any, **how: Any) -> None:
        self.found: Any = None
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(sess, fetches, how), daemon=True)
        self._thread.start()

    def _run(self, sess: fb.Session, fetches: Any, how: Any) -> None:
        try:
            self.found = sess.run(fetches, **how)
        except BaseException as error:
            self.error = error

    def result(self) -> Any:
        """What it gave, or raises what it raised; none may hang."""
        self._thread.join(60)
        assert not self._thread.is_alive(), "a run hangs"
        if self.error is not None:
            raise self.error
        return self.found


def waiters(sess: fb.Session, queue: Any) -> int:
    """How many operations wait at a queue."""
    resource = sess._master.store.find(queue.op.key)
    return 0 if resource is None else sum(map(len, resource._lines))


def begun(sess: fb.Session, queue: Any, fetches: Any, **how: Any) -> Waiting:
    """A run that has come to wait at a queue."""
    before = waiters(sess, queue)
    run = Waiting(sess, fetches, **how)
    while waiters(sess, queue) == before and run._thread.is_alive():
        threading.Event().wait(0.001)
    return run


# One after the other


@pytest.mark.parametrize("kind", EXECUTORS)
def test_elements_leave_in_the_order_in_which_they_came(sess: fb.Session, kind: str) -> None:
    queue = fb.FIFOQueue(10, fb.float32, shapes=[[]])
    x = fb.placeholder(fb.float32, [])
    put, taken = queue.enqueue(x), queue.dequeue()
    for value in (10.0, 20.0, 30.0):
        run_in(kind, sess, put, {x: np.float32(value)})
    assert [run_in(kind, sess, taken) for _ in range(3)] == [10.0, 20.0, 30.0]


@pytest.mark.parametrize("kind", EXECUTORS)
def test_a_step_that_puts_in_what_it_takes_out(sess: fb.Session, kind: str) -> None:
    queue = fb.FIFOQueue(1, fb.float32)
    taken, put = queue.dequeue(), queue.enqueue(7.0)
    assert run_in(kind, sess, [taken * 2.0, put]) == [14.0, None]


def test_two_threads_meet(sess: fb.Session) -> None:
    queue = fb.FIFOQueue(1, fb.int32, shapes=[[]])
    x = fb.placeholder(fb.int32, [])
    put, taken = queue.enqueue(x), queue.dequeue()
    found = []

    def put_all() -> None:
        for value in range(200):
            sess.run(put, {x: value})
        sess.run(queue.close())

    def take_all() -> None:
        with suppress(fb.errors.OutOfRangeError):
            while True:
                found.append(int(sess.run(taken)))

    run_together(put_all, take_all)
    assert found == [*range(200)]


def test_what_waits_goes_on_when_an_element_comes(sess: fb.Session) -> None:
    queue = fb.FIFOQueue(10, fb.float32)
    taken = begun(sess, queue, queue.dequeue() + 1.0)
    sess.run(queue.enqueue(2.0))
    assert taken.result() == 3.0


def test_what_waits_for_room_goes_on_when_an_element_leaves(sess: fb.Session) -> None:
    queue = fb.FIFOQueue(1, fb.float32)
    sess.run(queue.enqueue(1.0))
    put = begun(sess, queue, queue.enqueue(2.0))
    assert sess.run(queue.dequeue()) == 1.0
    put.result()
    assert sess.run(queue.dequeue()) == 2.0


def test_a_closed_queue_admits_nothing_and_gives_what_it_has(sess: fb.Session) -> None:
    queue = fb.FIFOQueue(10, fb.float32, name="q")
    sess.run(queue.enqueue(1.0))
    assert not sess.run(queue.is_closed())
    sess.run(queue.close())
    assert sess.run(queue.is_closed())
    with pytest.raises(fb.errors.CancelledError, match="QueueEnqueue 'late': queue 'q' is closed"):
        sess.run(queue.enqueue(2.0, name="late"))
    assert sess.run(queue.dequeue()) == 1.0
    with pytest.raises(fb.errors.OutOfRangeError, match=r"\(requested 1, current size 0\)"):
        sess.run(queue.dequeue())
