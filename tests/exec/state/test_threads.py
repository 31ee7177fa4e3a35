"""Many threads on one session and one graph, and the end of a session under them."""

import threading
import time
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.exec.state.gates import Gate, gates, wait_op
from tests.exec.state.threads import run_together

CLOSED = (fb.errors.CancelledError, fb.errors.FailedPreconditionError)


@pytest.fixture
def gate() -> Gate:
    gates[""] = Gate()
    return gates[""]


@pytest.mark.filterwarnings("ignore::flowbook.graph.model.errors.GraphGrowthWarning")
def test_ten_threads_run_while_ten_build() -> None:
    graph = fb.get_default_graph()
    W = fb.Variable(0.0, name="W")
    x = fb.placeholder(fb.float32, [], name="x")
    add = fb.assign_add(W, x)
    with fb.Session() as sess:

        def run() -> None:
            for i in range(60):
                if i % 10 == 0:
                    assert sess.run(x * x, {x: float(i)}) == i * i
                sess.run(add, {x: 1.0})

        def build(which: int) -> None:
            with graph.as_default():
                for i in range(30):
                    V = fb.Variable(float(i), name=f"V{which}")
                    y = V * 2.0 + W * 0.0 + float(which)
                    if i % 5 == 0:
                        assert sess.run(y) == 2.0 * i + which

        run_together(*[run] * 10, *[lambda i=i: build(i) for i in range(10)])
        assert sess.run(W) == 600.0
        assert len({op.name for op in graph.operations}) == len(graph.operations)


def test_hundred_parallel_runs_keep_their_values_apart() -> None:
    x = fb.placeholder(fb.float32, [None], name="x")
    y = fb.reduce_sum(fb.square(x) + 1.0)
    z = x * 2.0
    with fb.Session() as sess:

        def run(which: int) -> None:
            value = np.full(which + 1, which, np.float32)
            for _ in range(10):
                total, doubled = sess.run([y, z], {x: value})
                assert total == (which * which + 1) * (which + 1)
                np.testing.assert_array_equal(doubled, value * 2)

        run_together(*[lambda i=i: run(i) for i in range(100)])


def test_hundred_runs_wait_side_by_side(gate: Gate) -> None:
    x = fb.placeholder(fb.int32, [])
    y = wait_op(x + 1) * 2
    with fb.Session() as sess:

        def run(which: int) -> None:
            assert sess.run(y, {x: which}) == (which + 1) * 2

        def finish() -> None:
            gate.await_begun(100)
            gate.open()

        run_together(*[lambda i=i: run(i) for i in range(100)], finish)


@pytest.mark.parametrize("earlier_runs", [0, 1, 3])
def test_close_cancels_runs_that_wait(gate: Gate, earlier_runs: int) -> None:
    x = fb.placeholder(fb.float32, [])
    W = fb.Variable(1.0)
    y = wait_op(x + W)
    sess = fb.Session()
    for _ in range(earlier_runs):
        run_together(lambda: sess.run(y, {x: 1.0}), lambda: (gate.await_begun(), gate.open()))
        gate.waiting.clear()

    def wait() -> None:
        with pytest.raises(fb.errors.CancelledError, match="closed"):
            sess.run(y, {x: 1.0})

    def close() -> None:
        gate.await_begun(5)
        sess.close()

    run_together(*[wait] * 5, close)
    assert len(gate.cancelled) == 5
    with pytest.raises(fb.errors.FailedPreconditionError, match="closed"):
        sess.run(y, {x: 1.0})


def test_close_lets_a_running_kernel_finish(gate: Gate) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(x: Any) -> Any:
        begun.set()
        assert go_on.wait(60)
        return x + 1

    W = fb.Variable(1.0)
    y = fb.py_func(slow, [W], fb.float32)
    sess = fb.Session()
    sess.run(W)
    found: list[Any] = []

    def close() -> None:
        assert begun.wait(60)
        sess.close()
        go_on.set()

    run_together(lambda: found.append(sess.run(y)), close)
    assert found == [2.0]


def test_close_cancels_a_wait_that_comes_after_it(gate: Gate) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(x: Any) -> Any:
        begun.set()
        assert go_on.wait(60)
        return x

    y = wait_op(fb.reshape(fb.py_func(slow, [1.0], fb.float32), []))
    sess = fb.Session()

    def run() -> None:
        with pytest.raises(fb.errors.CancelledError, match="closed"):
            sess.run(y)

    def close() -> None:
        assert begun.wait(60)
        sess.close()
        go_on.set()

    run_together(run, close)


def test_close_under_many_runs_gives_values_or_a_clear_error() -> None:
    for _ in range(10):
        with fb.Graph().as_default() as graph:
            W = fb.Variable(np.ones(100))
            V = fb.Variable(W * 2.0)
            fetches = [V + float(i) for i in range(8)]
        sess = fb.Session(graph)
        middle = threading.Barrier(9)

        def run(which: int, sess: Any = sess, fetches: Any = fetches, middle: Any = middle) -> None:
            def go_on() -> None:
                while True:
                    found = sess.run(fetches[which])
                    np.testing.assert_array_equal(found, np.full(100, 2.0 + which))

            middle.wait(60)
            with pytest.raises(CLOSED, match="closed"):
                go_on()

        def close(sess: Any = sess, middle: Any = middle) -> None:
            middle.wait(60)
            sess.close()

        run_together(*[lambda i=i: run(i) for i in range(8)], close)


def test_error_on_one_thread_leaves_the_others_alone() -> None:
    x = fb.placeholder(fb.float32, [])

    def check(value: Any) -> Any:
        if value < 0:
            raise ValueError(f"negative: {value}")
        return value

    y = fb.py_func(check, [x], fb.float32)
    with fb.Session() as sess:

        def good() -> None:
            for i in range(100):
                assert sess.run(y, {x: float(i)}) == i

        def bad() -> None:
            for i in range(1, 100):
                with pytest.raises(fb.errors.InvalidArgumentError, match=f"negative: -{i}"):
                    sess.run(y, {x: float(-i)})

        run_together(good, bad, good, bad)


def test_timeout_ends_a_wait_and_leaves_the_session_usable(gate: Gate) -> None:
    W = fb.Variable(1.0)
    y = wait_op(W + 1.0)
    seconds = 0.02
    with fb.Session() as sess:
        while len(gate.cancelled) < 3:
            with pytest.raises(fb.errors.DeadlineExceededError):
                sess.run(y, timeout=seconds)
            assert len(gate.cancelled) == len(gate.waiting)
            seconds *= 2  # On a busy machine no wait may have begun.
        assert sess.run(fb.assign_add(W, 1.0)) == 2.0


def _outlast(x: Any) -> Any:
    """Take longer than the tests' timeout, which began before."""
    end = time.monotonic() + 0.03
    while time.monotonic() <= end:
        pass
    return x


outlasting = fb.OpDef(
    "ThreadsOutlasting",
    "x: float32 -> y: float32",
    infer=lambda x: x.shape,
    kernel=lambda xp, x: _outlast(x),
)


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("earlier_runs", [0, 1, 2])
def test_timeout_is_over_in_the_last_kernel(gate: Gate, earlier_runs: int, waits: bool) -> None:
    gate.is_open = True
    x = fb.placeholder(fb.float32, [])
    y = outlasting(wait_op(x) if waits else x)
    with fb.Session() as sess:
        for _ in range(earlier_runs):
            assert sess.run(y, {x: 1.0}, timeout=100.0) == 1.0
        for _ in range(2):
            with pytest.raises(fb.errors.DeadlineExceededError):
                sess.run(y, {x: 1.0}, timeout=0.03)
        assert sess.run(y, {x: 1.0}) == 1.0
