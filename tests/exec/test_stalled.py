"""Runs that wait say what for, and fail where they would wait for ever."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest

import flowbook as fb
from flowbook.exec.engine import executor
from tests.graph.ops.queues.waiting import begun


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Time passes only where somebody looks at the clock: nobody waits for it."""
    looks = itertools.count()
    monkeypatch.setattr(executor.time, "monotonic", lambda: next(looks) / 100)
    monkeypatch.setattr(executor, "LONGEST_WAIT", 0.001)
    fb.options.report_waits = 0.0
    yield
    fb.options.report_waits = None


@pytest.fixture
def sess() -> Iterator[fb.Session]:
    with fb.Session() as session:
        yield session


@pytest.fixture(params=[1, 2], ids=["one device", "two devices"])
def either(request: pytest.FixtureRequest) -> Iterator[fb.Session]:
    with fb.Session(cpus=request.param, soft_placement=True) as session:
        yield session


def waited(sess: fb.Session, fetches: Any) -> str:
    """What a run that waits is told of it."""
    with (
        pytest.warns(fb.errors.WaitingWarning) as caught,
        pytest.raises(fb.errors.DeadlineExceededError),
    ):
        sess.run(fetches, timeout=2.0)
    [warning] = caught
    assert warning.filename == __file__
    return str(warning.message)


def test_a_run_says_what_it_waits_for_and_what_would_wake_it(sess: fb.Session) -> None:
    queue = fb.FIFOQueue(3, fb.float32, name="q")
    taken = queue.dequeue(name="taken")
    message = waited(sess, taken)
    assert "QueueDequeue 'taken' (test_stalled.py, line" in message
    assert "waits for an element of queue 'q', which has 0 of 3 elements" in message
    assert "nothing in the graph wakes it" in message
    # The same run is told of once.
    with pytest.raises(fb.errors.DeadlineExceededError, match=r"'taken' .* waits for an element"):
        sess.run(taken, timeout=1.0)
    queue.enqueue(1.0, name="put")
    assert "it goes on after QueueEnqueue 'put' (test_stalled.py" in waited(sess, taken + 1.0)


def test_a_run_says_which_runner_has_ended(sess: fb.Session) -> None:
    queue = fb.FIFOQueue(3, fb.float32, shapes=[[]])
    other = fb.FIFOQueue(3, fb.float32, shapes=[[]], name="other")
    fb.train.QueueRunner(queue, queue.enqueue(1.0), name="runner")
    [runner] = fb.train.start_queue_runners(sess)
    # It ends where its queue is closed.
    sess.run(queue.close(cancel_pending_enqueues=True))
    runner.join(60)
    feeder = next(iter(sess.feeding._feeders.values()))
    feeder.runner = fb.train.QueueRunner(other, other.enqueue(1.0), name="of_other").op
    sess.feeding._feeders = {feeder.runner: feeder}
    assert "its runner 'of_other' has come to its end" in waited(sess, other.dequeue())


def test_who_waits_for_what_comes_after_it_fails(sess: fb.Session) -> None:
    queue = fb.FIFOQueue(3, fb.float32, name="q")
    taken = queue.dequeue(name="taken")
    put = queue.enqueue(taken + 1.0, name="put")
    with pytest.raises(fb.errors.FailedPreconditionError) as caught:
        sess.run(put)
    assert "QueueDequeue 'taken': it waits for an element of queue 'q'" in str(caught.value)
    assert "QueueEnqueue 'put' (test_stalled.py" in str(caught.value)
    # Of a full queue the other way round.
    full = fb.FIFOQueue(1, fb.float32, name="full")
    sess.run(full.enqueue(1.0))
    with fb.control_dependencies([full.enqueue(2.0, name="second")]):
        after = full.dequeue()
    with pytest.raises(fb.errors.FailedPreconditionError, match="'second': it waits for room"):
        sess.run(after)
    full.dequeue(name="another")  # This one could take out of it.
    assert "QueueDequeue 'another'" in waited(sess, after)


def test_who_waits_for_a_gradient_that_comes_after_it_fails(sess: fb.Session) -> None:
    sums = fb.ConditionalAccumulator(fb.float32, [], name="sums")
    applied = sums.apply_grad(sums.take_grad(1, name="taken"), name="applied")
    sums.set_global_step(3)  # This wakes nobody.
    with pytest.raises(fb.errors.FailedPreconditionError, match=r"'taken': .* 'applied' .* after"):
        sess.run(applied)


# A part may be told that it waits before the others have come to wait.
may_tell = pytest.mark.filterwarnings("ignore:this run waits")


@may_tell
def test_who_waits_for_what_comes_after_it_on_another_device_fails(either: fb.Session) -> None:
    with fb.device("cpu:0"):
        queue = fb.FIFOQueue(3, fb.float32, shapes=[[]], name="q")
        taken = queue.dequeue(name="taken")
    with fb.device("cpu:1"):
        more = taken + 1.0
    with fb.device("cpu:0"):
        put = queue.enqueue(more, name="put")
    for _ in range(3):
        with pytest.raises(fb.errors.FailedPreconditionError) as caught:
            either.run(put)
        assert "QueueDequeue 'taken': it waits for an element of queue 'q'" in str(caught.value)
        assert "QueueEnqueue 'put' (test_stalled.py" in str(caught.value)
        assert "would wake it, and runs only after it" in str(caught.value)
    either.run(put, {taken: 1.0})
    either.run(put)
    assert either.run(taken) == 3.0


@may_tell
def test_two_parts_that_wait_for_each_other_at_queues_fail(either: fb.Session) -> None:
    with fb.device("cpu:0"):
        one = fb.FIFOQueue(3, fb.float32, shapes=[[]], name="one")
        from_one = one.dequeue()
    with fb.device("cpu:1"):
        other = fb.FIFOQueue(3, fb.float32, shapes=[[]], name="other")
        from_other = other.dequeue()
        put = other.enqueue(from_one)
    with fb.device("cpu:0"):
        step = fb.group(put, one.enqueue(from_other))
    for _ in range(3):
        with pytest.raises(fb.errors.FailedPreconditionError, match="would do so for ever"):
            either.run(step)
    either.run(one.enqueue(1.0))
    either.run(step)
    assert [either.run(q.size()) for q in (one, other)] == [1, 0]


def test_parts_that_another_step_may_wake_do_not_fail(either: fb.Session) -> None:
    with fb.device("cpu:0"):
        queue = fb.FIFOQueue(3, fb.float32, shapes=[[]], name="q")
        taken = queue.dequeue()
        other = fb.FIFOQueue(3, fb.float32, shapes=[[]], name="other")
    with fb.device("cpu:1"):
        more = taken + 1.0
    with fb.device("cpu:0"):
        put = queue.enqueue(more)
        queue.enqueue(other.dequeue(), name="from_elsewhere")
    looks = itertools.count()

    def late_once_told() -> float:
        """No part gives up before the one that waits at the queue has come to tell of it."""
        has_told = any("'from_elsewhere'" in str(told.message) for told in caught)
        return next(looks) / 100 + (1e9 if has_told else 0.0)

    with (
        pytest.warns(fb.errors.WaitingWarning, match="goes on after .* 'from_elsewhere'") as caught,
        mock.patch.object(executor.time, "monotonic", late_once_told),
        pytest.raises(fb.errors.DeadlineExceededError),
    ):
        either.run(put, timeout=1e6)


@may_tell
def test_a_step_fails_when_the_last_that_might_have_woken_it_ends(either: fb.Session) -> None:
    with fb.device("cpu:0"):
        queue = fb.FIFOQueue(3, fb.float32, shapes=[[]], name="q")
        taken = queue.dequeue()
        other = fb.FIFOQueue(3, fb.float32, shapes=[[]])
        elsewhere = other.dequeue()
    with fb.device("cpu:1"):
        more = taken + 1.0
    with fb.device("cpu:0"):
        put = queue.enqueue(more)
    waiting = begun(either, other, elsewhere)
    endless = begun(either, queue, put)
    either.run(other.enqueue(1.0))
    assert waiting.result() == 1.0
    with pytest.raises(fb.errors.FailedPreconditionError, match="would do so for ever"):
        endless.result()


@may_tell
def test_a_part_that_fails_ends_others_that_wait_at_queues(either: fb.Session) -> None:
    x = fb.placeholder(fb.float32, [None])
    with fb.device("cpu:0"):
        queue = fb.FIFOQueue(3, fb.float32, shapes=[[]])
        taken = queue.dequeue()
    with fb.device("cpu:1"):
        rows = fb.gather(x, [5])
    for _ in range(3):
        with pytest.raises(fb.errors.InvalidIndexError):
            begun(either, queue, [taken, rows], feeds={x: [1.0]}).result()
    either.run(queue.enqueue(1.0))
    assert either.run(taken) == 1.0


def test_nobody_fails_while_another_step_may_wake_it(sess: fb.Session) -> None:
    """Two steps that pass one element on: while one has it, the other waits."""
    queue = fb.FIFOQueue(3, fb.float32, shapes=[[]])
    go, has = threading.Event(), threading.Event()
    go.set()

    def hold(value: Any) -> Any:
        has.set()
        assert go.wait(60)
        return value

    taken = queue.dequeue()
    passed = queue.enqueue(fb.py_func(hold, [taken], fb.float32))
    sess.run(passed, {taken: 1.0})  # The only way in from outside.
    has.clear()
    go.clear()
    first = threading.Thread(target=lambda: sess.run(passed), daemon=True)
    first.start()
    assert has.wait(60)

    def wait_for_it() -> None:
        second = begun(sess, queue, passed)
        while not caught:
            threading.Event().wait(0.001)
        go.set()
        second.result()

    with pytest.warns(fb.errors.WaitingWarning) as caught:
        wait_for_it()
    first.join(60)
    assert sess.run(queue.size()) == 1


def test_an_interrupt_says_what_was_waited_for(
    sess: fb.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = fb.FIFOQueue(3, fb.float32, name="q")
    taken = queue.dequeue()
    fb.options.report_waits = None

    def interrupt(queue: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sess.feeding, "wanted", interrupt)
    with pytest.raises(KeyboardInterrupt) as caught:
        sess.run(taken)
    [note] = caught.value.__notes__
    assert "this run waited: taken (QueueDequeue 'q_dequeue')" in note
    sess.run(queue.enqueue(2.0))
    assert sess.run(taken) == 2.0


def test_what_the_option_can_be() -> None:
    for wrong in (-1.0, "soon"):
        with pytest.raises(ValueError, match="report_waits is None or a number of seconds"):
            fb.options.report_waits = wrong  # type: ignore[assignment]
