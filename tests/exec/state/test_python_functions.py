"""Python functions in steps: which overlap, and what ends a wait for one that does not end."""

import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.exec.state.executors import EXECUTORS, run_in
from tests.exec.state.test_interrupt import interrupted_when


class Stuck:
    """A function that does not end before the test does, and says when it has begun."""

    def __init__(self) -> None:
        self.__qualname__ = "Stuck"  # By which errors name it.
        self.begun = threading.Event()
        self.go_on = threading.Event()

    def __call__(self) -> Any:
        self.begun.set()
        # As where a C function holds the thread: an interrupt is no way out of it.
        while not self.go_on.wait(0.05):
            pass
        return np.float32(1.0)


@pytest.fixture
def stuck() -> Iterator[Stuck]:
    function = Stuck()
    yield function
    function.go_on.set()


@pytest.mark.parametrize("kind", EXECUTORS)
def test_functions_without_state_may_wait_for_one_another(kind: str) -> None:
    meeting = threading.Barrier(3)

    def meet(x: Any) -> Any:
        meeting.wait(60)
        return x

    met = [fb.py_func(meet, [float(i)], fb.float32, stateful=False) for i in range(3)]
    with fb.Session() as sess:
        for _ in range(3):
            assert run_in(kind, sess, met) == [0.0, 1.0, 2.0]


def test_functions_with_state_go_in_the_order_of_construction_on_the_callers_thread() -> None:
    seen: list[Any] = []
    for i in range(3):
        fb.py_func(lambda i=i: seen.append((i, threading.get_ident())), [], [], name=f"f{i}")
    graph = fb.get_default_graph()
    with fb.Session() as sess:
        sess.run([graph.get_operation_by_name(f"f{i}") for i in (2, 0, 1)])
    assert seen == [(i, threading.get_ident()) for i in range(3)]


@pytest.mark.parametrize("stateful", [False, True])
@pytest.mark.parametrize("earlier_runs", [0, 1, 2])
def test_a_timeout_ends_the_wait_for_a_function(
    stuck: Stuck, stateful: bool, earlier_runs: int
) -> None:
    stuck.go_on.set()
    W = fb.Variable(1.0)
    y = fb.py_func(stuck, [], fb.float32, stateful=stateful) * W
    with fb.Session() as sess:
        for _ in range(earlier_runs):
            assert sess.run(y, timeout=100.0) == 1.0
        sess.run(W)
        stuck.go_on.clear()
        stuck.begun.clear()
        seconds = 0.02
        while not stuck.begun.is_set():
            with pytest.raises(fb.errors.DeadlineExceededError) as caught:
                sess.run(y, timeout=seconds)
            seconds *= 2
        assert "; still running: Stuck" in caught.value.message
        assert sess.run(fb.assign_add(W, 1.0)) == 2.0
        stuck.go_on.set()
        assert sess.run(y, timeout=100.0) == 2.0


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
@pytest.mark.parametrize(("stateful", "timeout"), [(False, None), (False, 100.0), (True, 100.0)])
def test_an_interrupt_ends_the_wait_for_a_function(
    stuck: Stuck, stateful: bool, timeout: float | None
) -> None:
    y = fb.py_func(stuck, [], fb.float32, stateful=stateful)
    notes: list[str] = []
    with fb.Session() as sess:

        def run() -> None:
            try:
                sess.run(y, timeout=timeout)
            except KeyboardInterrupt as interrupt:
                notes.extend(interrupt.__notes__)
                raise

        with interrupted_when(lambda: stuck.begun.wait(60)):
            run()
        assert "flowbook; still running: Stuck" in notes
        stuck.go_on.set()
        assert sess.run(y) == 1.0


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_an_interrupt_ends_a_function_on_the_callers_thread() -> None:
    y = fb.py_func(lambda: signal.raise_signal(signal.SIGINT), [], [])
    with fb.Session() as sess, pytest.raises(KeyboardInterrupt):
        sess.run(y)


@pytest.mark.parametrize("stateful", [False, True])
def test_a_function_that_nobody_waits_for_ends(stateful: bool) -> None:
    begun, ended = threading.Event(), threading.Event()

    def endless() -> None:
        begun.set()
        try:
            while True:
                pass
        finally:
            ended.set()

    y = fb.py_func(endless, [], [], stateful=stateful)
    with fb.Session() as sess:
        seconds = 0.02
        while not begun.is_set():
            with pytest.raises(fb.errors.DeadlineExceededError):
                sess.run(y, timeout=seconds)
            seconds *= 2
        assert ended.wait(60)


def test_errors_on_other_threads_are_those_of_the_function() -> None:
    def fail(x: Any) -> Any:
        raise ValueError(f"no {x}")

    for stateful in (False, True):
        y = fb.py_func(fail, [1.0], fb.float32, stateful=stateful)
        with fb.Session() as sess:
            for timeout in (None, 100.0) * 2:
                with pytest.raises(fb.errors.InvalidArgumentError, match=r"no 1\.0") as caught:
                    sess.run(y, timeout=timeout)
                assert caught.value.operation is y.op
                assert isinstance(caught.value.__cause__, ValueError)


@pytest.mark.parametrize("stateful", [False, True])
@pytest.mark.parametrize("timeout", [None, 100.0])
def test_an_initial_value_that_needs_its_own_variable_is_an_error_on_any_thread(
    stateful: bool, timeout: float | None
) -> None:
    with fb.Session() as sess:
        value = fb.py_func(lambda: sess.run(W), [], fb.float32, stateful=stateful)
        W: Any = fb.Variable(fb.ensure_shape(value, []), name="W")
        with pytest.raises(fb.errors.OpError, match="needs the variable itself"):
            sess.run(W, timeout=timeout)
