"""Ctrl-C stops a run anywhere; variables stay whole, locks are free, the session goes on."""

import random
import signal
import sys
import threading
import timeit
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.exec.held import held
from tests.exec.state.executors import EXECUTORS, run_in
from tests.exec.state.gates import Gate, gates, wait_op

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")


@pytest.fixture
def gate() -> Gate:
    gates[""] = Gate()
    return gates[""]


def interrupt_main() -> None:
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)  # type: ignore[arg-type]


@contextmanager
def interrupted_when(condition: Callable[[], Any]) -> Iterator[None]:
    """Expect the block to be stopped by an interrupt, sent once `condition` has returned."""

    def wait() -> None:
        condition()
        interrupt_main()

    thread = threading.Thread(target=wait, daemon=True)
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012, as it may come before the block begins.
        thread.start()
        yield
    thread.join(60)


def interrupt_here() -> None:
    """Interrupt the run that this is called by; in one with a timeout it is on another thread."""
    signal.raise_signal(signal.SIGINT)
    while threading.current_thread() is not threading.main_thread():
        pass  # Until the run is given up.


class Bomb:
    """A function that sends the interrupt while it is armed, and counts what came through it."""

    def __init__(self) -> None:
        self.armed = False
        self.passed = 0

    def __call__(self, x: Any) -> Any:
        if self.armed:
            interrupt_here()
        self.passed += 1
        return x


@pytest.mark.parametrize("kind", EXECUTORS)
def test_run_stops_between_two_kernels(kind: str) -> None:
    bomb = Bomb()
    A, B = fb.Variable(np.zeros(10)), fb.Variable(np.zeros(10))
    first = fb.assign_add(A, np.ones(10))
    with fb.control_dependencies([first]):
        middle = fb.py_func(bomb, [A.value], fb.float64)
    with fb.control_dependencies([middle]):
        second = fb.assign_add(B, np.ones(10)).op
    with fb.Session() as sess:
        run_in(kind, sess, second)
        bomb.armed = True
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                run_in(kind, sess, second)
        bomb.armed = False
        np.testing.assert_array_equal(sess.run(A), np.full(10, 3.0))
        np.testing.assert_array_equal(sess.run(B), np.full(10, 1.0))
        run_in(kind, sess, second)
        np.testing.assert_array_equal(sess.run([A, B]), [np.full(10, 4.0), np.full(10, 2.0)])
        # The leases of the stopped steps are gone: updates are in place again.
        resource = held(sess, A)
        sess.run(first.op)
        buffer = id(resource._buffer)
        sess.run(first.op)
        assert id(resource._buffer) == buffer


def _interrupting_kernel(xp: Any, x: Any) -> Any:
    interrupt_here()
    return x


interrupting_op = fb.OpDef(
    "StateTestInterrupting",
    "x: T -> y: T",
    T=(fb.float32,),
    infer=lambda x: x.shape,
    kernel=_interrupting_kernel,
)


@pytest.mark.parametrize("kind", EXECUTORS)
def test_users_kernel_can_be_interrupted(kind: str) -> None:
    W = fb.Variable([1.0, 2.0])
    bad = fb.assign(W, interrupting_op(W + 1.0))
    with fb.Session() as sess:
        for _ in range(3):
            with pytest.raises(KeyboardInterrupt):
                run_in(kind, sess, bad)
        np.testing.assert_array_equal(sess.run(W), [1.0, 2.0])


@pytest.mark.parametrize("earlier_runs", [0, 1, 2])
def test_wait_can_be_interrupted(gate: Gate, earlier_runs: int) -> None:
    W = fb.Variable(1.0)
    y = wait_op(W + 1.0) * 2.0
    add = fb.assign_add(W, 1.0)
    with fb.Session() as sess:
        for i in range(1, 4):
            with interrupted_when(gate.await_begun):
                sess.run([y, add])
            assert len(gate.cancelled) == i
        gate.waiting.clear()
        opener = threading.Thread(target=lambda: (gate.await_begun(), gate.open()), daemon=True)
        opener.start()
        before = sess.run(W)
        assert sess.run(y) == (before + 1.0) * 2.0
        opener.join(60)


def test_late_completion_of_an_interrupted_wait_is_ignored(gate: Gate) -> None:
    y = wait_op(fb.constant(3.0) + fb.random_uniform([]))
    with fb.Session() as sess:
        with interrupted_when(gate.await_begun):
            sess.run(y)
        gate.open()
        assert sess.run(fb.constant(1.0)) == 1.0


def test_wait_for_another_threads_initialisation_can_be_interrupted() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def initial() -> Any:
        begun.set()
        assert go_on.wait(60)
        return np.float32(1.0)

    W = fb.Variable(fb.py_func(initial, [], fb.float32))
    with fb.Session() as sess:
        other = threading.Thread(target=lambda: sess.run(W), daemon=True)
        other.start()
        assert begun.wait(60)
        assert not held(sess, W).wait_for_claim(0.0)
        # Nothing tells that a thread waits for a lock; if it does not yet, it soon will.
        with interrupted_when(lambda: threading.Event().wait(0.2)):
            sess.run(W)
        go_on.set()
        other.join(60)
        assert sess.run(W) == 1.0


def test_interrupted_initialiser_leaves_the_variable_without_a_value() -> None:
    bomb = Bomb()
    bomb.armed = True
    W = fb.Variable(fb.py_func(lambda: bomb(np.float32(4.0)), [], fb.float32))
    V = fb.Variable(W * 2.0)
    with fb.Session() as sess:
        for _ in range(3):
            with pytest.raises(KeyboardInterrupt):
                sess.run(V)
            assert not sess.run(fb.is_variable_initialized(W))
        bomb.armed = False
        assert sess.run([W, V]) == [4.0, 8.0]
        assert bomb.passed == 1


def test_partial_run_can_be_interrupted(gate: Gate) -> None:
    x = fb.placeholder(fb.float32, [])
    y = wait_op(x + 1.0)
    with fb.Session() as sess:
        step = sess.partial_run([y], [x])
        with interrupted_when(gate.await_begun):
            step.run(y, {x: 1.0})
        with pytest.raises(fb.errors.FailedPreconditionError, match="ended"):
            step.run(y)


# Interrupts at any moment


class Alarm(BaseException):
    """What the stress interrupts with: not mistaken for the interrupt of who runs the tests."""


@contextmanager
def alarms() -> Iterator[Callable[[Callable[[], Any], float], bool]]:
    """A function that runs another, stopped after a time unless it has ended; says if stopped."""
    is_armed = False

    def ring(*_: Any) -> None:
        if is_armed:
            raise Alarm

    def run(function: Callable[[], Any], seconds: float) -> bool:
        nonlocal is_armed
        is_armed = True
        try:
            try:
                signal.setitimer(signal.ITIMER_REAL, seconds)
                function()
            finally:
                is_armed = False
                signal.setitimer(signal.ITIMER_REAL, 0.0)
        except Alarm:
            is_armed = False
            return True
        return False

    before = signal.signal(signal.SIGALRM, ring)
    try:
        yield run
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def stress_updates(rounds: int) -> None:
    chance = random.Random(1)
    size = 3000
    ones = np.ones(size)
    W = fb.Variable(np.zeros(size))
    writes = {
        "add": fb.assign_add(W, ones).op,
        "scatter": fb.scatter_add(W, np.arange(size), ones).op,
        "assign": fb.assign(W, W + ones).op,
        "held": [W, fb.assign_add(W, ones)],
    }
    x = fb.placeholder(fb.float64, [])
    many = fb.add_n([fb.fill([4], x) for _ in range(30)])
    stopped = dict.fromkeys(writes, 0)
    floating_point_errors = np.geterr()
    with fb.Session() as sess, alarms() as run_stopped:
        for name, write in writes.items():
            sess.run(write)
            longest = 2 * min(timeit.repeat(lambda w=write: sess.run(w), number=1, repeat=9))
            sess.run(W.initializer)
            least = most = 0
            for _ in range(rounds):
                was_stopped = run_stopped(
                    lambda w=write: sess.run(w), chance.uniform(1e-6, longest)
                )
                stopped[name] += was_stopped
                # Whatever else the machine does, some are stopped and some are not.
                longest *= 1.05 if was_stopped else 0.95
                most += 1
                least += not was_stopped
                found = sess.run(W)
                assert found.min() == found.max(), "half a write"
                assert least <= found[0] <= most
                least = most = found[0]
            assert sess.run(many, {x: 1.0})[0] == 30.0
            assert np.geterr() == floating_point_errors
    # Otherwise nothing was tested.
    assert all(0 < count < rounds for count in stopped.values()), stopped


def stress_beginnings(rounds: int) -> None:
    chance = random.Random(2)
    stopped = 0
    with alarms() as run_stopped:
        for _ in range(rounds):
            graph = fb.Graph()
            with graph.as_default():
                A = fb.Variable(fb.fill([100], 2.0), name="A")
                B = fb.Variable(A * 3.0, name="B")
                C = fb.Variable(B + A, name="C")
                add = fb.assign_add(A, fb.ones([100]))
                sess = fb.Session(graph)
                for _ in range(3):
                    stopped += run_stopped(lambda s=sess, c=C: s.run(c), chance.uniform(1e-6, 3e-3))
                for resource in [held(sess, v) for v in (A, B, C)]:
                    assert resource.wait_for_claim(0.0), "a claim has not ended"
                found = sess.run([C, add, B])
                assert [v[0] for v in found] == [8.0, 3.0, 6.0]
                before = len(graph.operations)
                stopped += run_stopped(
                    lambda: [fb.Variable(0.0, name="later") + i for i in range(20)],
                    chance.uniform(1e-6, 2e-3),
                )
                built = fb.assign_add(A, fb.ones([100]), name="after")
                assert len(graph.operations) > before
                assert sess.run(built)[0] == 4.0
                assert built.op.name == "after"
                sess.close()
    assert 0 < stopped < 4 * rounds, stopped


# Python drops an interrupt that comes while it forgets a weak reference, and says so.
dropped_in_callbacks = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.mark.timeout(method="thread")  # The alarm is the test's own.
def test_updates_stopped_at_any_moment_leave_variables_whole() -> None:
    stress_updates(400)


@pytest.mark.timeout(method="thread")
@dropped_in_callbacks
def test_first_runs_stopped_at_any_moment_leave_nothing_locked() -> None:
    stress_beginnings(60)


@pytest.mark.soak
@pytest.mark.timeout(600, method="thread")
@dropped_in_callbacks
def test_stopping_for_a_long_time() -> None:
    stress_updates(20_000)
    stress_beginnings(3_000)
