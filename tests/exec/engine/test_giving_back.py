"""What a step takes from one queue and does not use, as it waits at another in vain."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.engine import executor
from flowbook.exec.engine.atomic import at_once, giving_back
from flowbook.exec.local import session_state
from flowbook.exec.resources.queue_kinds import SavedQueue
from tests.graph.ops.queues.waiting import Waiting, begun, steps_that_wait
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


@pytest.mark.parametrize("runs", [0, 1, 4])
def test_a_step_whose_time_is_over_while_it_computes_puts_back_what_it_took(
    sess: fb.Session, first: Any, runs: int
) -> None:
    count = fb.placeholder(fb.int32, [])
    x = first.dequeue()
    counted = fb.while_loop(lambda i: i < count, lambda i: i + 1, x)
    for _ in range(runs):
        put(sess, first, 1)
        sess.run(counted, {count: 2}, timeout=60)
    put(sess, first, 1)
    with pytest.raises(fb.errors.DeadlineExceededError):
        sess.run(counted, {count: 10**9}, timeout=0.05)
    assert left(sess, first) == [1]


def waits_in_vain(sess: fb.Session, queue: fb.FIFOQueue, fetches: Any, feeds: Any = None) -> None:
    """Run what comes to wait for an element that does not come."""
    run = begun(sess, queue, fetches, feeds=feeds)
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
    # Of several, some: the rest goes there too.
    run = begun(sess, small, small.enqueue_many(first.dequeue_many(3)))
    sess.run(small.close(cancel_pending_enqueues=True))
    with pytest.raises(fb.errors.CancelledError):
        run.result()
    assert [left(sess, first), left(sess, small)] == [[], [2, 3, 4]]


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
    while not steps_that_wait(sess):
        threading.Event().wait(0.001)
    assert sess.run(first.size()) == 1
    coordinator.request_stop()
    coordinator.join(threads)
    assert left(sess, first) == [2, 3]
    assert sess.run(line) == b"b"


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


def test_the_rest_of_what_was_fed_is_not_put(sess: fb.Session) -> None:
    """As who fed it has it still."""
    small = fb.FIFOQueue(2, fb.int32, shapes=[[]])
    run = begun(sess, small, small.enqueue_many([1, 2, 3]))
    sess.run(small.close(cancel_pending_enqueues=True))
    with pytest.raises(fb.errors.CancelledError):
        run.result()
    assert left(sess, small) == [1, 2]


# Loops and branches


def summed(first: Any, second: Any, body: Any = None, parallel_iterations: int = 10) -> Any:
    """The sum over three iterations of what is taken in pairs, and what is made of each pair."""

    def step(i: Any, total: Any) -> Any:
        x, y = first.dequeue(), second.dequeue()
        product = x * y if body is None else body(x, y)
        return i + 1, total + product

    loop = fb.while_loop(lambda i, _: i < 3, step, (0, 0), parallel_iterations=parallel_iterations)
    return loop[1]


@pytest.mark.parametrize("parallel_iterations", [1, 10])
@pytest.mark.parametrize("runs", [0, 1, 4])
def test_a_loop_puts_back_what_all_its_iterations_took(
    sess: fb.Session, first: Any, second: Any, runs: int, parallel_iterations: int
) -> None:
    total = summed(first, second, parallel_iterations=parallel_iterations)
    for _ in range(runs):
        put(sess, first, 1, 2, 3)
        put(sess, second, 4, 5, 6)
        assert sess.run(total) == 32
    put(sess, first, 1, 2, 3)
    put(sess, second, 4, 5)
    with pytest.raises(fb.errors.DeadlineExceededError):
        sess.run(total, timeout=0.01)
    waits_in_vain(sess, second, total)
    assert [left(sess, first), left(sess, second)] == [[1, 2, 3], [4, 5]]


def test_what_one_iteration_has_used_keeps_no_other_from_going_back(
    sess: fb.Session, first: Any, second: Any
) -> None:
    v = fb.Variable(0)
    total = summed(first, second, lambda x, y: fb.assign_add(v, x * y))
    put(sess, first, 1, 2, 3)
    put(sess, second, 4, 5)
    waits_in_vain(sess, second, total)
    assert sess.run(v) == 14
    assert [left(sess, first), left(sess, second)] == [[3], []]


def test_what_later_iterations_use_is_used(sess: fb.Session, first: Any, second: Any) -> None:
    v = fb.Variable(0)

    def step(i: Any, total: Any) -> Any:
        sum_so_far = fb.assign(v, total) + first.dequeue()
        return i + 1, sum_so_far

    put(sess, first, 1, 2, 3)
    total = fb.while_loop(lambda i, _: i < 5, step, (0, 0))[1]
    waits_in_vain(sess, first, total)
    # The third was added and not written, as there was no fourth iteration's sum to write yet.
    assert sess.run(v) == 1 + 2 + 3
    assert left(sess, first) == []


def test_what_later_iterations_would_have_used_is_put_back(
    sess: fb.Session, first: Any, second: Any
) -> None:
    v = fb.Variable(0)

    def step(i: Any, total: Any) -> Any:
        x = first.dequeue()
        written = fb.assign(v, total + second.dequeue())
        with fb.control_dependencies([x, written]):
            return i + 1, written + x + third.dequeue()

    third = fb.FIFOQueue(100, fb.int32, shapes=[[]])
    put(sess, first, 1, 2, 3)
    put(sess, second, 10, 20, 30)
    put(sess, third, 0)
    total = fb.while_loop(lambda i, _: i < 3, step, (0, 0), parallel_iterations=1)[1]
    waits_in_vain(sess, third, total)
    assert sess.run(v) == 31
    assert [left(sess, first), left(sess, second)] == [[2, 3], [30]]


def test_nested_loops_put_back_in_order(sess: fb.Session, first: Any, second: Any) -> None:
    def outer(i: Any, total: Any) -> Any:
        inner = fb.while_loop(
            lambda j, _: j < 2, lambda j, sum: (j + 1, sum + first.dequeue()), (0, 0)
        )
        return i + 1, total + inner[1] * second.dequeue()

    put(sess, first, 1, 2, 3, 4, 5, 6)
    put(sess, second, 1, 2)
    total = fb.while_loop(lambda i, _: i < 3, outer, (0, 0), parallel_iterations=1)[1]
    waits_in_vain(sess, second, total)
    assert [left(sess, first), left(sess, second)] == [[1, 2, 3, 4, 5, 6], [1, 2]]


@pytest.mark.parametrize("runs", [0, 1, 4])
@pytest.mark.parametrize("is_written", [False, True])
def test_a_branch_that_was_not_taken_has_used_nothing(
    sess: fb.Session, first: Any, second: Any, is_written: bool, runs: int
) -> None:
    v = fb.Variable(0)
    flag = fb.placeholder(fb.bool, [])
    x = first.dequeue()
    written = fb.cond(flag, lambda: fb.assign(v, x), lambda: -x)
    both = [written, second.dequeue()]
    for number in range(runs):
        put(sess, first, 5)
        put(sess, second, 1)
        sess.run(both, {flag: number % 2 == 1})
    sess.run(v.initializer)
    put(sess, first, 5)
    waits_in_vain(sess, second, both, {flag: is_written})
    assert sess.run(v) == (5 if is_written else 0)
    assert left(sess, first) == ([] if is_written else [5])


def test_what_is_taken_in_a_branch_is_put_back(sess: fb.Session, first: Any, second: Any) -> None:
    flag = fb.placeholder(fb.bool, [])
    taken = fb.cond(flag, lambda: first.dequeue(), lambda: fb.constant(0))
    put(sess, first, 5)
    with pytest.raises(fb.errors.DeadlineExceededError):
        sess.run([taken, second.dequeue()], {flag: True}, timeout=0.01)
    assert left(sess, first) == [5]


# Several devices


@pytest.mark.parametrize("runs", [0, 1, 4])
@pytest.mark.parametrize("waits_on", ["cpu:0", "cpu:1"])
@pytest.mark.parametrize("between", ["cpu:2", "simulated:0"])
def test_a_step_on_several_devices_puts_back(
    first: Any, second: Any, runs: int, waits_on: str, between: str
) -> None:
    with fb.Session(devices=["cpu:0", "cpu:1", between]) as sess:
        v = fb.Variable(0)
        with fb.device("cpu:1"):
            x = first.dequeue()
        with fb.device(between):
            y = x + 1
        with fb.device(waits_on):
            waited = second.dequeue() + y
        both = [waited, fb.assign_add(v, waited)]
        for _ in range(runs):
            put(sess, first, 5)
            put(sess, second, 1)
            sess.run(both)
        put(sess, first, 5)
        with pytest.raises(fb.errors.DeadlineExceededError):
            sess.run(both, timeout=0.05)
        waits_in_vain(sess, second, both)
        assert left(sess, first) == [5]
        assert sess.run(v) == 7 * runs


def test_what_another_device_has_used_is_not_put_back(first: Any, second: Any) -> None:
    with fb.Session(cpus=2) as sess:
        v = fb.Variable(0)
        with fb.device("/cpu:1"):
            x = first.dequeue()
        with fb.device("/cpu:0"):
            written = fb.assign_add(v, x + 1)
        with fb.control_dependencies([written]):
            last = second.dequeue()
        put(sess, first, 5)
        waits_in_vain(sess, second, last)
        assert sess.run(v) == 6
        assert left(sess, first) == []


def test_what_another_device_cannot_compute_from_has_been_used(first: Any, second: Any) -> None:
    with fb.Session(cpus=2) as sess:
        with fb.device("/cpu:1"):
            quotient = 12 // first.dequeue()
        with fb.device("/cpu:0"):
            both = [quotient + 1, second.dequeue()]
        put(sess, first, 0, 4)
        with pytest.raises(fb.errors.InvalidArgumentError):
            sess.run(both)
        assert left(sess, first) == [4]


# Partial runs


@pytest.mark.parametrize("cpus", [1, 2])
@pytest.mark.parametrize("is_fetched", [False, True])
def test_a_partial_run_puts_back_what_nobody_got(
    first: Any, second: Any, is_fetched: bool, cpus: int
) -> None:
    with fb.Session(cpus=cpus) as sess:
        place, later = fb.placeholder(fb.int32, []), fb.placeholder(fb.int32, [])
        with fb.device(f"/cpu:{cpus - 1}"):
            x, y = first.dequeue() + place, second.dequeue()
        with fb.device("/cpu:0"):
            total = x + y + later
        for is_complete in (True, False):
            put(sess, first, 5)
            put(sess, second, 6)
            run = sess.partial_run([x, total], [place, later])
            if is_fetched or is_complete:
                assert run.run(x, {place: 1}) == 6
            if is_complete:
                assert run.run(total, {later: 2}) == 14
            run.close()
        assert left(sess, first) == ([] if is_fetched else [5])
        assert left(sess, second) == [6]


def test_a_partial_run_that_fails_to_get_something_puts_back_the_rest(
    sess: fb.Session, first: Any, second: Any
) -> None:
    place = fb.placeholder(fb.int32, [])
    x = first.dequeue()
    with fb.control_dependencies([x]):
        total = x + place + second.dequeue()
    put(sess, first, 5)
    sess.run(second.close())
    run = sess.partial_run([total], [place])
    with pytest.raises(fb.errors.OutOfRangeError):
        run.run(total, {place: 1})
    assert left(sess, first) == [5]


# Interrupts


@pytest.mark.parametrize("kind", ["loop", "devices", "partial", "many"])
def test_an_interrupt_anywhere_loses_nothing(first: Any, second: Any, kind: str) -> None:
    """What a step takes in pairs is in its place again, or is where the step has put it."""
    third = fb.FIFOQueue(2 if kind == "many" else 100, fb.int32, shapes=[[]])
    cpus = 2 if kind == "devices" else 1
    count = 3 if kind in ("loop", "many") else 1
    with fb.Session(cpus=cpus) as sess:
        if kind == "loop":

            def step(i: Any) -> Any:
                with fb.control_dependencies([third.enqueue(first.dequeue() + second.dequeue())]):
                    return i + 1

            moved = fb.while_loop(lambda i: i < 3, step, 0)
        elif kind == "many":
            moved = third.enqueue_many(first.dequeue_many(3) + second.dequeue_many(3))
        else:
            with fb.device(f"/cpu:{cpus - 1}"):
                x = first.dequeue()
            with fb.device("/cpu:0"):
                moved = third.enqueue(x + second.dequeue())

        def run() -> None:
            if kind == "partial":
                sess.partial_run([moved], []).run(moved)
            else:
                # Where there is no room for all, it waits until its time is over.
                with suppress(fb.errors.DeadlineExceededError):
                    sess.run(moved, timeout=0.0001 if kind == "many" else 60)

        filled = [first.enqueue_many([1, 2, 3][:count]), second.enqueue_many([10, 20, 30][:count])]
        rest = [queue.dequeue_many(queue.size()) for queue in (first, second, third)]
        for number in itertools.count(-2):
            sess.run(filled)
            stopped = interrupted_at(number, run)
            found = [values.tolist() for values in sess.run(rest)]
            moved_on = [1, 2, 3][: count - len(found[0])]
            assert found[0] == [1, 2, 3][len(moved_on) : count], number
            assert found[1] == [10 * x for x in found[0]], number
            assert sorted(found[2]) == [11 * x for x in moved_on], number
            if number > 0 and stopped is None:
                break


@pytest.mark.parametrize("looks", range(1, 5))
def test_an_interrupt_of_a_step_that_is_late_loses_nothing(
    first: Any, second: Any, looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time is over when it has looked so often, and what it has taken goes back."""
    third = fb.FIFOQueue(100, fb.int32, shapes=[[]])
    moved = third.enqueue_many(first.dequeue_many(3) + second.dequeue_many(3))
    filled = [first.enqueue_many([1, 2, 3]), second.enqueue_many([10, 20, 30])]
    rest = [queue.dequeue_many(queue.size()) for queue in (first, second, third)]
    with fb.Session() as sess:
        for number in itertools.count(-2):
            sess.run(filled)
            # From the first look that says so all do.
            moments = itertools.chain(itertools.repeat(0.0, looks - 1), itertools.repeat(1e12))
            clock = SimpleNamespace(monotonic=lambda moments=moments: next(moments))
            with monkeypatch.context() as patch:
                patch.setattr(executor, "time", clock)

                def run() -> None:
                    with suppress(fb.errors.DeadlineExceededError):
                        sess.run(moved, timeout=60)

                stopped = interrupted_at(number, run)
            found = [values.tolist() for values in sess.run(rest)]
            assert found in ([[1, 2, 3], [10, 20, 30], []], [[], [], [11, 22, 33]]), number
            if number > 0 and stopped is None:
                break


def test_barriers_and_accumulators_have_what_was_taken_again(sess: fb.Session, second: Any) -> None:
    barrier = fb.Barrier(fb.float32, shapes=[[]])
    sums = fb.ConditionalAccumulator(fb.float32, shape=[])
    sess.run(barrier.insert_many(0, ["a", "b"], [1.0, 2.0]))
    sess.run(sums.apply_grad(4.0))
    sizes = [barrier.ready_size(), sums.num_accumulated()]
    taken = [barrier.take_many(2)[2], sums.take_grad(1)]
    for each in taken:
        with pytest.raises(fb.errors.DeadlineExceededError):
            sess.run((each, second.dequeue()), timeout=0.01)
        assert sess.run(sizes) == [2, 1]
    sess.run(second.close())
    for each in taken:
        with pytest.raises(fb.errors.OutOfRangeError):
            sess.run((each, second.dequeue()))
        assert sess.run(sizes) == [2, 1]
    assert sess.run(taken[1]) == 4.0


def take_op() -> fb.OpDef[Any]:
    """A user's own operation that takes an element, as a queue's does."""
    return fb.OpDef(
        "TakeOne",
        "queue: resource -> taken: int32",
        infer=lambda queue: fb.Shape([]),
        kernel=lambda context, queue: queue.dequeue(context),
        kinds=("cpu",),
        is_async=True,
        touches=fb.Touch(fb.Access.WAIT, 0, takes=True),
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


class Moving:
    """A lock that says when somebody has to wait for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.is_wanted = threading.Event()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            self.is_wanted.set()
            self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("timeout", [None, 60])
@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.parametrize("runs", [0, 1, 4])
def test_who_saves_sees_all_that_a_step_took_or_nothing(
    monkeypatch: pytest.MonkeyPatch, runs: int, devices: int, timeout: float | None, fails: bool
) -> None:
    moving = Moving()
    for module in (at_once, giving_back, session_state):
        monkeypatch.setattr(module, "moving", moving)
    queues = [fb.train.range_input_producer(9, 1, shuffle=False) for _ in range(2)]
    pair = [queue.dequeue() for queue in queues]
    first = fb.placeholder(fb.int32, [])
    with fb.device(f"/cpu:{devices - 1}"):
        row = fb.gather(np.arange(9), first + pair[0] - pair[1])
    has_taken, may_end = threading.Event(), threading.Event()
    taken: list[int] | None = None
    keep, give = SavedQueue.state, SavedQueue.values_of

    def values_of(queue: SavedQueue, element: Any) -> Any:
        """As before; the second that a step takes comes when it may end."""
        found = give(queue, element)
        if taken is not None:
            taken.append(found[0])
            if len(taken) == 2:
                has_taken.set()
                assert may_end.wait(60)
        return found

    def state(queue: SavedQueue) -> Any:
        """As before; behind the first the step goes on, to its end if it can."""
        found = keep(queue)
        if has_taken.is_set() and not may_end.is_set():
            may_end.set()
            while step._thread.is_alive() and not moving.is_wanted.wait(0.001):
                pass
        return found

    monkeypatch.setattr(SavedQueue, "values_of", values_of)
    monkeypatch.setattr(SavedQueue, "state", state)
    with fb.Session(cpus=devices) as sess:
        sess.run(pair)  # The queues are full now.
        for _ in range(runs):
            sess.run([pair, row], {first: 0}, timeout=timeout)
        taken = []
        feeds = {first: 9 if fails else 0}
        step = Waiting(sess, [pair, row], feeds=feeds, timeout=timeout)
        assert has_taken.wait(60)
        saved = sess.snapshot()
        if fails:
            with pytest.raises(fb.errors.InvalidArgumentError, match="9"):
                step.result()
        else:
            assert step.result()[0] == [runs + 1, runs + 1]
        taken = None
        sess.put(saved)
        left = [(int(x), int(y)) for x, y in fb.train.until_end(sess, pair)]
        assert left == [(n, n) for n in range(runs + 1, 9)]
