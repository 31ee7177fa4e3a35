"""Loops that are given up, by a deadline, an interrupt or a session that ends; and several."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.exec.state.executors import EXECUTORS, run_in


def counting(v: fb.Variable, limit: Any, acts: Callable[[], Any] | None = None) -> Any:
    """A loop that counts in a variable as far as a limit, below 0 for ever."""

    def body(i: Any) -> Any:
        acting = [fb.assign_add(v, 1), *([acts()] if acts else [])]
        with fb.control_dependencies(acting):
            return i + 1

    return fb.while_loop(lambda i: fb.not_equal(i, limit), body, [0])


def test_a_deadline_ends_an_endless_loop_and_leaves_the_session_whole() -> None:
    v, limit = fb.Variable(0, name="v"), fb.placeholder(fb.int32, [], name="limit")
    loop = counting(v, limit)
    with fb.Session() as sess:
        for _ in range(2):
            with pytest.raises(fb.errors.DeadlineExceededError):
                sess.run(loop, {limit: -1}, timeout=0.05)
            sess.run(fb.assign(v, 0))
            assert sess.run(loop, {limit: 5}, timeout=100.0) == [5]
            assert sess.run(v) == 5


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_an_interrupt_ends_an_endless_loop_and_leaves_the_session_whole() -> None:
    v, limit = fb.Variable(0, name="v"), fb.placeholder(fb.int32, [], name="limit")
    seen: list[int] = []

    def act(i: Any) -> Any:
        seen.append(1)
        if len(seen) == 30:
            signal.raise_signal(signal.SIGINT)
        return i

    loop = counting(v, limit, lambda: fb.py_func(act, [fb.constant(0)], fb.int32).op)
    with fb.Session() as sess:
        with pytest.raises(KeyboardInterrupt):
            sess.run(loop, {limit: -1})
        assert sess.run(v) in (29, 30)
        sess.run(fb.assign(v, 0))
        assert sess.run(loop, {limit: 5}) == [5]
        assert sess.run(v) == 5


def closed_meanwhile(sess: fb.Session, v: fb.Variable, run: Callable[[], Any]) -> BaseException:
    """What a run ends with whose session is closed when it has counted some iterations."""
    sess.run(v)
    found: list[BaseException] = []

    def report() -> None:
        try:
            run()
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=report, daemon=True)
    thread.start()
    while thread.is_alive() and sess.run(v) < 10:
        pass
    sess.close()
    thread.join(60)
    assert not thread.is_alive(), "the loop goes on"
    return found[0]


@pytest.mark.parametrize("kind", EXECUTORS)
def test_a_session_that_is_closed_ends_an_endless_loop(kind: str) -> None:
    v, limit = fb.Variable(0, name="v"), fb.placeholder(fb.int32, [], name="limit")
    loop, sess = counting(v, limit), fb.Session()
    error = closed_meanwhile(
        sess, v, lambda: run_in(kind, sess, loop, {limit: np.array(-1, np.int32)})
    )
    assert isinstance(error, fb.errors.CancelledError)
    assert str(error) == "the session was closed"


def test_so_it_does_on_several_devices() -> None:
    with fb.device("/cpu:1"):
        v = fb.Variable(0, name="v")
    with fb.device("/cpu:0"):
        limit = fb.placeholder(fb.int32, [], name="limit")
        loop = counting(v, limit)
    sess = fb.Session(cpus=2)
    error = closed_meanwhile(sess, v, lambda: sess.run(loop, {limit: -1}))
    assert isinstance(error, fb.errors.CancelledError)
    assert error.message == "the session was closed"


def test_so_it_does_where_the_loop_takes_what_is_always_there() -> None:
    v, limit = fb.Variable(0, name="v"), fb.placeholder(fb.int32, [], name="limit")
    batches = lambda: fb.train.batches(np.arange(4), 2, epochs=None, prefetch=0)  # noqa: E731
    loop, sess = counting(v, limit, batches), fb.Session()
    error = closed_meanwhile(sess, v, lambda: sess.run(loop, {limit: -1}))
    assert isinstance(error, fb.errors.CancelledError)
    assert error.message.endswith("the session was closed")


def test_threads_run_one_loop_at_once() -> None:
    v, x = fb.Variable(0, name="v"), fb.placeholder(fb.int32, [], name="x")

    def body(i: Any, u: Any) -> Any:
        with fb.control_dependencies([fb.assign_add(v, 1)]):
            return i + 1, u + x

    total = fb.while_loop(lambda i, u: i < 20, body, (0, 0))[1]
    found: dict[int, list[int]] = {}
    with fb.Session() as sess:
        sess.run(v)

        def run(k: int) -> None:
            found[k] = [int(sess.run(total, {x: k})) for _ in range(10)]

        threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert found == {k: [20 * k] * 10 for k in range(4)}
        assert sess.run(v) == 4 * 10 * 20
