"""A step that is stopped has written all that it computed from a batch, or nothing of it."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.engine.parts.joint import Joint
from flowbook.exec.plan.failure import StepFailed
from tests.exec.state.executors import runner_of
from tests.graph.ops.queues.waiting import waiters
from tests.interrupts import signalled_at


def drawn_noise() -> fb.Tensor:
    return fb.random_uniform([], seed=3, dtype=fb.float64)


@cache
def sums_of_noise() -> Any:
    """What a variable holds to which so many draws have been added."""
    with fb.Graph().as_default():
        noise = drawn_noise()
        with fb.Session() as sess:
            return np.cumsum([0.0, *[sess.run(noise) for _ in range(5000)]])


KINDS = ["at once", "regions", "first", "reference", "devices", "loop", "branch"]


class Training:
    """Steps that take a number and write several variables, and what has become of that.

    Args:
        kind: how they run.
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind
        cpus = 2 if kind == "devices" else 1
        self.sess = fb.Session(cpus=cpus)
        self._queue = fb.FIFOQueue(100, fb.float64, shapes=[[]])
        with fb.device("/cpu:0"):
            first, drawn = (fb.Variable(np.float64(0.0)) for _ in range(2))
        with fb.device(f"/cpu:{cpus - 1}"):
            second = fb.Variable(np.float64(0.0))
        self._state = [first, second, drawn]
        self.step = self._built()
        self._put = self._queue.enqueue_many(np.arange(1.0, 3.0))
        self._left = self._queue.dequeue_many(self._queue.size())
        self._noise = sums_of_noise()
        self._count = 0
        self.sess.run(fb.global_variables_initializer())
        self._held = [0.0, 0.0, 0.0]

    def _built(self) -> Any:
        queue = self._queue
        if self._kind == "loop":

            def body(i: Any) -> Any:
                with fb.control_dependencies([self._written(queue.dequeue())]):
                    return i + 1

            return fb.while_loop(lambda i: i < 2, body, 0, parallel_iterations=1)
        x = queue.dequeue()
        if self._kind == "branch":

            def written() -> Any:
                with fb.control_dependencies([self._written(x)]):
                    return fb.identity(x)

            return fb.cond(x > 0.0, written, lambda: x)
        return self._written(x)

    def _written(self, x: Any) -> Any:
        first, second, drawn = self._state
        y = fb.sqrt(x * x)
        one, two = fb.assign_add(first, y), fb.assign_sub(second, y * 2.0)
        noise = drawn_noise()
        return fb.group(one, two, fb.assign_add(drawn, noise + 0.0 * y))

    def run(self, timeout: float | None = None) -> None:
        """Run one step."""
        if self._kind in ("first", "reference"):
            runner = runner_of(self.sess, self.step)[1]
            how = runner.run_checked if self._kind == "first" else runner.run_reference
            deadline = None if timeout is None else time.monotonic() + timeout
            runner.whole.drawing(how, [], deadline)
        else:
            is_timed = self._kind == "regions" and timeout is None
            self.sess.run(self.step, timeout=60 if is_timed else timeout)

    def prepare(self) -> None:
        """Run as often as it takes to be written as code."""
        for _ in range(4):
            self.check(self.run, "not stopped")

    def check(self, stopped: Callable[[], Any], about: Any) -> int:
        """Run a step that may be stopped; of how many numbers it has written all."""
        before = self._held
        self.sess.run(self._put)
        stopped()
        left = self.sess.run(self._left).tolist()
        self._held = [value.item() for value in self.sess.run(self._state)]
        first, second, drawn = self._held
        used = [x for x in (1.0, 2.0) if x not in left]
        assert (used, left) in [([1.0, 2.0][:k], [1.0, 2.0][k:]) for k in range(3)], about
        assert (first - before[0], second - before[1]) == (sum(used), -2.0 * sum(used)), about
        self._count += len(used)
        if self._kind == "loop":  # What was drawn in iterations before is drawn again.
            assert (drawn != before[2]) == bool(used), about
        else:
            assert drawn == self._noise[self._count], about
        return len(used)


@pytest.mark.parametrize(
    ("sent", "error"),
    [(signal.SIGINT, KeyboardInterrupt), (signal.SIGALRM, TimeoutError)],
    ids=["interrupt", "alarm"],
)
@pytest.mark.parametrize("kind", KINDS)
def test_a_signal_anywhere_stops_a_step_before_it_writes_or_behind(
    kind: str, sent: signal.Signals, error: type[BaseException]
) -> None:
    training = Training(kind)
    with training.sess:
        training.prepare()
        before, seen = signal.getsignal(sent), set()
        for number in itertools.count(1):
            is_stopped: list[bool] = []

            def stopped(number: int = number, to: list[bool] = is_stopped) -> None:
                to.append(signalled_at(number, training.run, sent, error))

            seen.add((training.check(stopped, (kind, number)) > 0, is_stopped[0]))
            assert signal.getsignal(sent) is before
            if not is_stopped[0]:
                break
        assert seen == {(False, True), (True, True), (True, False)}
        if kind == "devices":
            assert isinstance(runner_of(training.sess, training.step)[1], Joint)


@pytest.mark.parametrize("kind", KINDS)
def test_a_deadline_anywhere_stops_a_step_before_it_writes_or_behind(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, clock = 0, time.monotonic

    def late() -> float:
        nonlocal left
        left -= 1
        return clock() + (1e6 if left < 0 else 0.0)

    def stopped() -> None:
        nonlocal left
        left = number
        try:
            with suppress(fb.errors.DeadlineExceededError, StepFailed):
                training.run(timeout=1000)
        finally:
            is_late.append(left < 0)
            left = 10**9

    left = 10**9
    monkeypatch.setattr(time, "monotonic", late)
    training = Training(kind)
    with training.sess:
        training.prepare()
        seen = set()
        is_late: list[bool] = []
        for number in itertools.count(1):
            seen.add(training.check(stopped, (kind, number)) > 0)
            if not is_late[-1]:
                break
        assert seen == {False, True}


@pytest.mark.parametrize("cpus", [1, 2])
def test_a_deadline_anywhere_gives_what_was_taken_or_puts_it_back(
    cpus: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = fb.FIFOQueue(100, fb.float64, shapes=[[]])
    left, clock = 10**9, time.monotonic

    def late() -> float:
        nonlocal left
        left -= 1
        return clock() + (1e6 if left < 0 else 0.0)

    monkeypatch.setattr(time, "monotonic", late)
    with fb.Session(cpus=cpus) as sess:
        with fb.device(f"/cpu:{cpus - 1}"):
            x = queue.dequeue()
        with fb.device("/cpu:0"):
            taken = x * 2.0
        put, rest = queue.enqueue(3.0), queue.dequeue_many(queue.size())
        seen = set()
        for number in itertools.count(-2):
            sess.run(put)
            left, found = number if number > 0 else 10**9, []
            with suppress(fb.errors.DeadlineExceededError):
                found.append(sess.run(taken, timeout=1000))
            is_over, left = left >= 0, 10**9
            assert (found, sess.run(rest).tolist()) in (([6.0], []), ([], [3.0])), number
            seen.add(bool(found))
            if number > 0 and is_over:
                break
        assert seen == {False, True}


def test_a_second_signal_is_not_put_off() -> None:
    """As what is called between two writes may take for ever."""
    queue, v = fb.FIFOQueue(10, fb.int32, shapes=[[]]), fb.Variable(0)
    signals = 0

    def interrupt(x: Any) -> Any:
        nonlocal signals
        for _ in range(2):
            signals += 1
            signal.raise_signal(signal.SIGINT)
        return x

    x = queue.dequeue()
    with fb.control_dependencies([fb.assign_add(v, x)]):
        asked = fb.py_func(interrupt, [x], fb.int32)
    with fb.control_dependencies([asked]):
        both = fb.group(fb.assign_add(v, 10))
    with fb.Session() as sess:
        sess.run(queue.enqueue(1))
        with pytest.raises(KeyboardInterrupt):
            sess.run(both)
        assert (signals, sess.run(v)) == (2, 1)


def test_a_step_that_has_written_and_waits_can_be_interrupted() -> None:
    """What it has written stays, and what it took for that is used."""
    first, second = (fb.FIFOQueue(10, fb.int32, shapes=[[]]) for _ in range(2))
    v = fb.Variable(0)
    with fb.control_dependencies([fb.assign_add(v, first.dequeue())]):
        waits = second.dequeue()
    with fb.Session() as sess:
        for _ in range(3):
            sess.run(first.enqueue(5))
            sess.run(second.enqueue(0))
            sess.run(waits)
        sess.run(first.enqueue(5))

        other = threading.Thread(target=interrupt_when_waiting, args=(sess, second))
        other.start()
        with pytest.raises(KeyboardInterrupt):
            sess.run(waits)
        other.join()
        assert sess.run([v, first.size()]) == [20, 0]


def interrupt_when_waiting(sess: fb.Session, queue: fb.FIFOQueue) -> None:
    """Interrupt the main thread as soon as somebody waits for an element of a queue."""
    while not waiters(sess, queue):
        time.sleep(0)
    os.kill(os.getpid(), signal.SIGINT)
