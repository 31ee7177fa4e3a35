"""Mutexes: one step at a time, whatever becomes of it."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.exec.state.executors import EXECUTORS, run_in
from tests.exec.state.threads import run_together
from tests.graph.ops.queues.waiting import begun, waiters
from tests.interrupts import interrupted_at


def guarded() -> tuple[fb.Mutex, fb.Variable, Any]:
    """A read and a write that follows it, which no other step may come between."""
    mutex, v = fb.Mutex(name="m"), fb.Variable(0, name="v")
    with mutex.scope():
        changed = fb.assign(v, fb.py_func(lambda x: x + np.int32(1), [v], fb.int32))
    return mutex, v, changed


def test_no_step_comes_between() -> None:
    _, v, changed = guarded()
    with fb.Session() as sess:
        sess.run(changed)
        run_together(*[lambda: [sess.run(changed) for _ in range(50)]] * 4)
        assert sess.run(v) == 201


@pytest.mark.parametrize("kind", EXECUTORS)
def test_it_is_held_until_the_end_of_the_step(kind: str) -> None:
    mutex, v, changed = guarded()
    with fb.Session() as sess:
        for number in (1, 2):
            run_in(kind, sess, changed)
            assert sess.run(v) == number
        assert sess._master.store.find(mutex.op.key).holder is None


@pytest.mark.parametrize("kind", EXECUTORS)
def test_what_is_executed_is_done_before_the_step_is(kind: str) -> None:
    """A second holder in the same step would wait for ever for one that waits for the end."""
    mutex, v = fb.Mutex(), fb.Variable(1)
    first, none = mutex.execute(lambda: [fb.assign(v, v + 1), fb.no_op()])
    with fb.control_dependencies([first, none]):
        second = mutex.execute(lambda: fb.assign(v, v * 10))
        nothing = mutex.execute(fb.no_op)
    with fb.Session() as sess:
        assert run_in(kind, sess, [second, nothing]) == [20, None]
        assert sess.run([second, nothing]) == [210, None]


def test_it_is_held_while_what_is_executed_runs() -> None:
    mutex, v = fb.Mutex(), fb.Variable(0)
    changed = mutex.execute(lambda: fb.assign(v, fb.py_func(lambda x: x + 1, [v], fb.int32)))
    with fb.Session() as sess:
        sess.run(changed)
        run_together(*[lambda: [sess.run(changed) for _ in range(50)]] * 4)
        assert sess.run(v) == 201
    with pytest.raises(fb.errors.InvalidTypeError):
        mutex.execute(lambda: None)


def test_it_is_held_until_all_that_is_executed_has_run() -> None:
    mutex, queue = fb.Mutex(), fb.FIFOQueue(1, fb.int32, shapes=[[]])
    first, taken = mutex.execute(lambda: [fb.constant(1), queue.dequeue()])
    with fb.Session() as sess:
        run = begun(sess, queue, [first, taken])
        assert sess._master.store.find(mutex.op.key).holder is not None
        sess.run(queue.enqueue(2))
        assert run.result() == [1, 2]
        assert sess._master.store.find(mutex.op.key).holder is None


def test_who_releases_lets_the_next_go_on_in_the_same_step() -> None:
    mutex = fb.Mutex()
    first = mutex.acquire()
    with fb.control_dependencies([first]):
        second = mutex.acquire()
    released = mutex.release(first)
    with fb.control_dependencies([mutex.release(second)]):
        done = fb.constant(1.0) + 1.0
    with fb.Session() as sess:
        assert sess.run([done, released]) == [2.0, None]


def test_it_is_released_once() -> None:
    mutex = fb.Mutex(name="m")
    holding = mutex.acquire()
    released = mutex.release(holding)
    with fb.control_dependencies([released]):
        again = mutex.release(holding)
    with (
        fb.Session() as sess,
        pytest.raises(fb.errors.FailedPreconditionError, match="released already"),
    ):
        sess.run(again)


def test_a_step_that_fails_or_is_given_up_holds_it_no_longer() -> None:
    mutex = fb.Mutex()
    x = fb.placeholder(fb.float32, [])
    queue = fb.FIFOQueue(1, fb.float32, shapes=[[]])
    with mutex.scope():
        checked = fb.check_numerics(x, "wrong") + 0.0
        late = queue.dequeue()
    with fb.Session() as sess:
        for _ in range(3):
            with pytest.raises(fb.errors.InvalidArgumentError, match="wrong"):
                sess.run(checked, {x: np.nan})
            with pytest.raises(fb.errors.DeadlineExceededError):
                sess.run(late, timeout=0.01)
            assert sess.run(checked, {x: 1.0}) == 1.0


def test_who_waits_for_it_goes_on_in_order_or_gives_up() -> None:
    mutex = fb.Mutex(name="m")
    queue = fb.FIFOQueue(1, fb.float32, shapes=[[]])
    with mutex.scope():
        slow = queue.dequeue()
    with mutex.scope():
        other = fb.constant(3.0) + 1.0
    with fb.Session() as sess:
        first = begun(sess, queue, slow)
        second = begun(sess, mutex, other)
        with pytest.raises(fb.errors.DeadlineExceededError):
            sess.run(other, timeout=0.2)
        assert waiters(sess, mutex) == 1
        sess.run(queue.enqueue(2.0))
        assert (first.result(), second.result()) == (2.0, 4.0)


def test_an_interrupt_anywhere_leaves_it_free() -> None:
    mutex, _, changed = guarded()
    with fb.Session() as sess:
        for _ in range(3):
            sess.run(changed)
        for number in itertools.count(1):
            stopped = interrupted_at(number, lambda: sess.run(changed))
            assert sess._master.store.find(mutex.op.key).holder is None, number
            if stopped is None:
                break


def test_what_waits_for_itself_fails() -> None:
    mutex = fb.Mutex(name="m")
    first = mutex.acquire()
    with fb.control_dependencies([first]):
        second = mutex.acquire(name="second")
    with fb.control_dependencies([second]):
        released = mutex.release(first)
    fb.options.report_waits = 0.0
    try:
        with fb.Session() as sess, pytest.raises(fb.errors.FailedPreconditionError) as caught:
            sess.run(released)
    finally:
        fb.options.report_waits = None
    assert "'second': it waits for mutex 'm', which is held" in str(caught.value)
