"""What a step takes from one queue and does not use, as it waits at another in vain."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.graph.ops.queues.waiting import begun, waiters
from tests.interrupts import interrupted_at


@pytest.fixture
def sess() -> Iterator[fb.Session]:
    with fb.Session() as session:
        yield session


@pytest.fixture
def first() -> fb.FIFOQueue:
    return fb.FIFOQueue(100, fb.int32, shapes=[[]], name="first")


@pytest.fixture
def second() -> fb.FIFOQueue:
    return fb.FIFOQueue(100, fb.int32, shapes=[[]], name="second")


def put(sess: fb.Session, queue: fb.FIFOQueue, *values: int) -> None:
    sess.run(queue.enqueue_many(np.array(values, np.int32)))


def left(sess: fb.Session, queue: fb.FIFOQueue) -> list[int]:
    return [int(sess.run(queue.dequeue())) for _ in range(sess.run(queue.size()))]


@pytest.mark.parametrize("runs", [0, 1, 4])
def test_a_step_that_is_given_up_puts_back_what_it_took(
    sess: fb.Session, first: Any, second: Any, runs: int
) -> None:
    pair = first.dequeue_many(2), second.dequeue(), first.dequeue()
    for number in range(runs):
        put(sess, first, 1, 2, 3)
        put(sess, second, number)
        sess.run(pair)
    put(sess, first, 4, 5, 6, 7)
    with pytest.raises(fb.errors.DeadlineExceededError):
        sess.run(pair, timeout=0.01)
    run = begun(sess, second, pair)
    assert sess.run(first.size()) == 1
    sess.run(second.close())
    with pytest.raises(fb.errors.OutOfRangeError):
        run.result()
    assert sorted(left(sess, first)) == [4, 5, 6, 7]
    put(sess, first, 8, 9)
    with pytest.raises(fb.errors.OutOfRangeError):
        sess.run((first.dequeue(), second.dequeue()))
    assert left(sess, first) == [8, 9]


def waits_in_vain(sess: fb.Session, queue: fb.FIFOQueue, fetches: Any) -> None:
    """Run what comes to wait for an element that does not come."""
    run = begun(sess, queue, fetches)
    sess.run(queue.close())
    with pytest.raises(fb.errors.OutOfRangeError):
        run.result()


@pytest.mark.parametrize("runs", [0, 1, 4])
def test_what_has_been_used_is_not_put_back(
    sess: fb.Session, first: Any, second: Any, runs: int
) -> None:
    v = fb.Variable(0)
    both = [fb.assign_add(v, first.dequeue()), second.dequeue()]
    for _ in range(runs):
        put(sess, first, 5)
        put(sess, second, 1)
        sess.run(both)
    put(sess, first, 5)
    waits_in_vain(sess, second, both)
    assert sess.run(v) == 5 * runs + 5
    assert left(sess, first) == []


def test_what_others_do_uses_nothing(sess: fb.Session, first: Any, second: Any) -> None:
    v = fb.Variable(0)
    put(sess, first, 5)
    waits_in_vain(sess, second, [first.dequeue(), second.dequeue(), fb.assign(v, 1)])
    assert left(sess, first) == [5]


def test_what_has_been_put_elsewhere_is_not_put_back(
    sess: fb.Session, first: Any, second: Any
) -> None:
    small = fb.FIFOQueue(2, fb.int32, shapes=[[]])
    put(sess, first, 1, 2, 3, 4)
    waits_in_vain(sess, second, [small.enqueue(first.dequeue()), second.dequeue()])
    assert left(sess, small) == [1]
    # Of several, some.
    run = begun(sess, small, small.enqueue_many(first.dequeue_many(3)))
    sess.run(small.close(cancel_pending_enqueues=True))
    with pytest.raises(fb.errors.CancelledError):
        run.result()
    assert [left(sess, first), left(sess, small)] == [[], [2, 3]]


@pytest.mark.parametrize("timeout", [None, 60])
def test_what_nothing_can_be_computed_from_has_been_used(
    sess: fb.Session, first: Any, second: Any, timeout: float | None
) -> None:
    """As otherwise who leaves bad elements out would get the same one for ever."""
    moved = second.enqueue(12 // first.dequeue())
    put(sess, first, 1, 2, 3, 0, 4, 6)
    failed = 0
    for _ in range(6):
        try:
            sess.run(moved, timeout=timeout)
        except fb.errors.InvalidArgumentError:
            failed += 1
    assert failed == 1
    assert [left(sess, first), left(sess, second)] == [[], [12, 6, 4, 3, 2]]


def test_a_runner_that_is_stopped_loses_nothing(
    sess: fb.Session, first: Any, second: Any, tmp_path: Path
) -> None:
    path = tmp_path / "lines"
    path.write_text("a\nb\nc\n")
    names = fb.FIFOQueue(2, fb.string, shapes=[[]])
    reader = fb.TextLineReader()
    sess.run(names.enqueue(str(path)))
    line = reader.read(names)[1]
    filled = fb.FIFOQueue(10, [fb.int32, fb.string, fb.int32], [[], [], []])
    fb.train.QueueRunner(filled, [filled.enqueue((first.dequeue(), line, second.dequeue()))])
    put(sess, first, 1, 2, 3)
    put(sess, second, 10)
    coordinator = fb.train.Coordinator()
    threads = fb.train.start_queue_runners(sess, coordinator)
    assert sess.run(filled.dequeue()) == [1, b"a", 10]
    begun_waiting(sess, second)
    assert sess.run(first.size()) == 1
    coordinator.request_stop()
    coordinator.join(threads)
    assert left(sess, first) == [2, 3]
    assert sess.run(line) == b"b"


def begun_waiting(sess: fb.Session, queue: fb.FIFOQueue) -> None:
    """Return when somebody waits for an element."""
    for _ in itertools.takewhile(lambda _: not waiters(sess, queue), itertools.count()):
        pass


def test_an_interrupt_anywhere_moves_all_or_nothing(
    sess: fb.Session, first: Any, second: Any
) -> None:
    third = fb.FIFOQueue(100, fb.int32, shapes=[[]])
    moved = third.enqueue(first.dequeue() + second.dequeue())
    filled = [first.enqueue(1), second.enqueue(2)]
    sizes = [first.size(), second.size(), third.size()]
    both, sums = (first.dequeue(), second.dequeue()), third.dequeue()
    for number in itertools.count(-2):
        sess.run(filled)
        # With a timeout it asks for one after the other. The first runs prepare it.
        stopped = interrupted_at(number, lambda: sess.run(moved, timeout=60))
        found = tuple(map(int, sess.run(sizes)))
        assert found in ((1, 1, 0), (0, 0, 1)), number
        if found[0]:
            assert sess.run(both) == (1, 2), number
        else:
            assert sess.run(sums) == 3, number
        assert not any(sess.run(sizes)), number
        if number > 0 and stopped is None:
            break


def take_op() -> fb.OpDef[Any]:
    """A user's own operation that takes an element, as a queue's does."""
    return fb.OpDef(
        "TakeOne",
        "queue: resource -> taken: int32",
        infer=lambda queue: fb.Shape([]),
        kernel=lambda context, queue: queue.dequeue(context),
        kinds=("cpu",),
        is_async=True,
        touches=fb.Touch(fb.Access.WAIT, 0, woken_by=("QueueClose",), takes=True),
    )


def test_what_a_users_operation_took_is_put_back_too(
    sess: fb.Session, first: Any, second: Any
) -> None:
    pair = take_op()(first.handle), second.dequeue()
    put(sess, first, 1, 2)
    with pytest.raises(fb.errors.DeadlineExceededError):
        sess.run(pair, timeout=0.01)
    assert left(sess, first) == [1, 2]


def test_what_a_users_operation_takes_and_puts_is_told_of(sess: fb.Session, first: Any) -> None:
    put_op = fb.OpDef(
        "PutOne",
        "queue: resource, value: int32 ->",
        infer=lambda queue, value: [],
        kernel=lambda context, queue, value: queue.enqueue(context, [value]),
        kinds=("cpu",),
        is_async=True,
        touches=fb.Touch(fb.Access.WAIT, 0, puts=True),
    )
    taken = take_op()(first.handle, name="taken")
    own = put_op(first.handle, 1, name="own")
    with pytest.raises(fb.errors.DeadlineExceededError, match="it goes on after PutOne 'own'"):
        sess.run(taken, timeout=0.01)
    first.enqueue(2, name="usual")
    with pytest.raises(fb.errors.DeadlineExceededError, match=r"PutOne 'own' .* or .* 'usual'"):
        sess.run(taken, timeout=0.01)
    sess.run(own)
    assert sess.run(taken) == 1
