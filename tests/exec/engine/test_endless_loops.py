"""Loops that are given up, by a deadline or an interrupt, and those of several threads at once."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

import flowbook as fb


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
