"""What a signal's handler raises in a run comes out of it as it is, and nothing is left behind."""

import functools
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.interruptions import is_interruption
from tests.exec.state.executors import EXECUTORS, run_in
from tests.graph.ops.queues.waiting import waiters

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")


class Alarm(ValueError):
    """As an error of a kernel's it would be an InvalidArgumentError."""


class Ringing:
    """Handlers of signals, which raise."""

    def method(self, number: int, frame: Any) -> None:
        raise Alarm

    def __call__(self, number: int, frame: Any) -> None:
        raise Alarm


def ring(*_: Any) -> None:
    raise Alarm


def ring_by(what: str, number: int, frame: Any) -> None:
    ring(what)


@pytest.fixture(autouse=True)
def ringing() -> Iterator[None]:
    before = signal.signal(signal.SIGALRM, ring)
    yield
    signal.signal(signal.SIGALRM, before)


def ring_here(x: Any = None) -> Any:
    """Send the signal; in a run with a timeout this is on another thread."""
    signal.raise_signal(signal.SIGALRM)
    while threading.current_thread() is not threading.main_thread():
        pass  # Until the run is given up.
    return x


def error_of(function: Callable[[], Any]) -> Exception:
    try:
        function()
    except Exception as error:
        return error
    raise AssertionError


HANDLERS: dict[str, Any] = {
    "function": ring,
    "method": Ringing().method,
    "object": Ringing(),
    "partial": functools.partial(ring_by, "a"),
    "lambda": lambda number, frame: ring(),
}


@pytest.mark.parametrize("handler", HANDLERS.values(), ids=HANDLERS)
def test_any_handler_is_known_by_the_frame_that_it_interrupts(handler: Any) -> None:
    signal.signal(signal.SIGALRM, handler)
    assert is_interruption(error_of(ring_here))


def test_other_errors_are_no_interruptions() -> None:
    elsewhere = sys._getframe()  # None that the error passes.

    def fail(frame: Any, *others: Any) -> None:
        raise Alarm

    assert not is_interruption(Alarm())
    assert not is_interruption(error_of(lambda: fail(elsewhere, 1, np.zeros(2), (elsewhere,))))


@pytest.mark.parametrize("kind", EXECUTORS)
def test_it_stops_a_run_between_two_kernels(kind: str) -> None:
    first, second = fb.Variable(np.zeros(3)), fb.Variable(np.zeros(3))
    before = fb.assign_add(first, np.ones(3))
    with fb.control_dependencies([before]):
        middle = fb.py_func(ring_here, [first.value], fb.float64)
    with fb.control_dependencies([middle]):
        after = fb.assign_add(second, np.ones(3)).op
    with fb.Session() as sess:
        for number in (1.0, 2.0):
            with pytest.raises(Alarm):
                run_in(kind, sess, after)
            np.testing.assert_array_equal(sess.run([first, second]), [[number] * 3, [0.0] * 3])


@pytest.mark.parametrize("runs", [0, 1, 2])
def test_it_stops_a_run_on_several_devices(runs: int) -> None:
    x = fb.placeholder(fb.float32, [])
    with fb.device("/cpu:0"):
        here = fb.py_func(lambda x: ring_here(x) if x > 0 else x, [x], fb.float32)
    with fb.device("/cpu:1"):
        total = fb.Variable(0.0)
        add = fb.assign_add(total, here + 1.0)
    with fb.Session(cpus=2) as sess:
        for _ in range(runs):
            sess.run(add, {x: 0.0})
        for _ in range(2):
            with pytest.raises(Alarm):
                sess.run(add, {x: 1.0})
            assert sess.run(total) == runs
        assert sess.run(add, {x: 0.0}) == runs + 1


def test_it_ends_what_another_device_computes() -> None:
    begun, finished = threading.Event(), []

    def compute(xp: Any, x: Any) -> Any:
        begun.set()
        end = time.monotonic() + 30.0
        while time.monotonic() < end:
            pass
        finished.append(x)
        return x

    def ring_then(x: Any) -> Any:
        assert begun.wait(60)
        return ring_here(x)

    computing = fb.OpDef(
        "InterruptionsTestComputing",
        "x: T -> y: T",
        T=(fb.float32,),
        infer=lambda x: x.shape,
        kernel=compute,
    )
    x = fb.placeholder(fb.float32, [])
    with fb.device("/cpu:0"):
        here = fb.py_func(ring_then, [x], fb.float32)
    with fb.device("/cpu:1"):
        there = computing(x)
    with fb.Session(cpus=2) as sess:
        with pytest.raises(Alarm):
            sess.run([here, there], {x: 1.0})
        assert finished == []


@pytest.mark.parametrize("cpus", [1, 2], ids=["one device", "two devices"])
def test_it_stops_a_run_that_waits(cpus: int) -> None:
    queue = fb.FIFOQueue(4, fb.float32, shapes=[[]])
    with fb.device("/cpu:0"):
        here = fb.random_uniform([]) * 0.0
    with fb.device(f"/cpu:{cpus - 1}"):
        taken = queue.dequeue() + here
    with fb.Session(cpus=cpus) as sess:

        def send() -> None:
            while not waiters(sess, queue):
                pass
            signal.pthread_kill(threading.main_thread().ident, signal.SIGALRM)  # type: ignore[arg-type]

        sender = threading.Thread(target=send)
        sender.start()
        with pytest.raises(Alarm) as caught:
            sess.run(taken)
        sender.join(60)
        assert "this run waited: QueueDequeue" in "".join(caught.value.__notes__)
        assert not waiters(sess, queue)
        sess.run(queue.enqueue(3.0))
        assert sess.run(taken) == 3.0


def test_it_ends_a_partial_run() -> None:
    x = fb.placeholder(fb.float32, [])
    y = fb.py_func(ring_here, [x], fb.float32)
    with fb.Session() as sess:
        step = sess.partial_run([y], [x])
        with pytest.raises(Alarm):
            step.run(y, {x: 1.0})
        assert step.closed


def test_what_a_function_of_ones_own_raises_is_still_told_by_its_operation() -> None:
    y = fb.py_func(ring, [1.0], fb.float32)
    with fb.Session() as sess, pytest.raises(fb.errors.InvalidArgumentError, match="PyFunc"):
        sess.run(y)
