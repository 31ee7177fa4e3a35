"""Runners: they start by themselves, end with what owns them, and pass on what went wrong."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

import flowbook as fb


@pytest.fixture(autouse=True)
def no_threads_are_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        thread.join(60)
        assert not thread.is_alive()


def counted(limit: int, threads: int = 1, capacity: int = 4) -> Any:
    """A queue that a runner fills with the numbers from 0 to a limit."""
    queue = fb.FIFOQueue(capacity, fb.int32, shapes=[[]], name="numbers")
    count = fb.Variable(0)
    fb.train.QueueRunner(queue, [queue.enqueue(fb.count_up_to(count, limit))] * threads)
    return queue


def everything(sess: fb.Session, taken: Any) -> list[int]:
    found = []
    with suppress(fb.errors.OutOfRangeError):
        while True:
            found.append(int(sess.run(taken)))
    return found


@pytest.mark.parametrize("threads", [1, 3])
def test_a_runner_starts_when_something_waits_and_ends_with_its_input(threads: int) -> None:
    queue = counted(20, threads)
    taken, size = queue.dequeue(), queue.size()
    with fb.Session() as sess:
        before = set(threading.enumerate())
        assert sess.run(size) == 0
        assert set(threading.enumerate()) <= before  # Nothing has waited.
        assert sorted(everything(sess, taken)) == [*range(20)]
    with fb.Session() as sess:
        assert sorted(everything(sess, taken)) == [*range(20)]


def test_one_runner_feeds_another() -> None:
    first = counted(10)
    second = fb.FIFOQueue(2, fb.int32, shapes=[[]], name="squares")
    number = first.dequeue()
    fb.train.QueueRunner(second, second.enqueue(number * number))
    with fb.Session() as sess:
        assert everything(sess, second.dequeue()) == [n * n for n in range(10)]


def test_the_queue_is_closed_when_all_its_runners_have_ended() -> None:
    queue = fb.FIFOQueue(4, fb.int32, shapes=[[]])
    for limit in (3, 30):
        count = fb.Variable(0)
        fb.train.QueueRunner(queue, queue.enqueue(fb.count_up_to(count, limit)))
    with fb.Session() as sess:
        assert sorted(everything(sess, queue.dequeue())) == sorted([*range(3), *range(30)])


def test_what_waits_fails_with_the_error_of_the_runner() -> None:
    queue = fb.FIFOQueue(2, fb.float32, shapes=[[]], name="q")
    x = fb.Variable(2.0)
    checked = fb.check_numerics(fb.log(fb.assign_sub(x, 1.0)), "wrong", name="checked")
    fb.train.QueueRunner(queue, queue.enqueue(checked))
    taken = queue.dequeue(name="taken")
    with fb.Session() as sess:
        assert sess.run(taken) == 0.0
        with pytest.raises(fb.errors.InvalidArgumentError) as caught:
            sess.run(taken)
    message = str(caught.value)
    assert (
        "QueueDequeue 'taken': the runner of queue 'q' failed: CheckNumerics 'checked'" in message
    )
    assert "checked = fb.check_numerics(" in message  # Where it is defined.
    assert caught.value.operation is taken.op


def test_who_closes_a_queue_needs_no_hint_that_it_ends() -> None:
    queue = counted(100, capacity=4)
    taken = queue.dequeue()
    with fb.Session() as sess:
        sess.run(taken)
        sess.run(queue.close())
        everything(sess, taken)
        for thread in threading.enumerate():
            if thread.name == "flowbook numbers_runner":
                thread.join(60)
        with pytest.raises(fb.errors.OutOfRangeError) as caught:
            sess.run(taken)
    assert caught.value.hint is None


def test_what_would_have_to_be_fed_is_refused_with_what_to_do() -> None:
    x = fb.placeholder(fb.float32, [], name="x")
    batch = fb.train.batch(x, 2)
    with fb.Session() as sess:
        with pytest.raises(fb.errors.InvalidArgumentError, match="Placeholder 'x': it must be fed"):
            sess.run(batch, {x: 1.0})
        with pytest.raises(fb.errors.InvalidArgumentError) as caught:
            sess.run(batch)
    assert str(caught.value.hint).startswith("a runner feeds nothing")


def test_closing_the_session_ends_the_threads() -> None:
    queue = counted(10**9)
    with fb.Session() as sess:
        sess.run(queue.dequeue())
        threads = [t for t in threading.enumerate() if t.name == "flowbook numbers_runner"]
        assert threads
    assert not any(thread.is_alive() for thread in threads)


def test_a_session_that_nobody_holds_ends_its_threads() -> None:
    queue = counted(10**9)
    sess = fb.Session()
    sess.run(queue.dequeue())
    threads = [t for t in threading.enumerate() if t.name == "flowbook numbers_runner"]
    gone = weakref.ref(sess)
    del sess
    gc.collect()
    assert gone() is None
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


def test_fetching_a_runner_fills_one_round() -> None:
    queue = counted(5)
    runner = queue.graph.get_operation_by_name("numbers_runner")
    with fb.Session() as sess:
        sess.run(runner)
        assert sess.run(queue.size()) == 1


def test_a_stored_graph_has_its_runners() -> None:
    queue = counted(5, threads=2)
    loaded = fb.Graph.from_bytes(queue.graph.to_bytes())
    with loaded.as_default(), fb.Session() as sess:
        again = fb.Queue.of(loaded.get_operation_by_name("numbers"))
        assert sorted(everything(sess, again.dequeue())) == [*range(5)]


def test_what_a_runner_is() -> None:
    queue = fb.FIFOQueue(2, fb.int32, name="q")
    put = queue.enqueue(1)
    runner = fb.train.QueueRunner(queue, [put, put])
    assert runner.queue.op is queue.op
    assert runner.enqueue_ops == [put, put]
    assert repr(runner) == "<QueueRunner 'q_runner' of 'q'>"
    with pytest.raises(fb.errors.InvalidTypeError, match="fills a queue"):
        fb.train.QueueRunner(put, put)  # type: ignore[arg-type]
    with pytest.raises(fb.errors.InvalidTypeError, match="runs operations"):
        fb.train.QueueRunner(queue, [1])  # type: ignore[list-item]
    with pytest.raises(fb.errors.InvalidArgumentError, match="at least one"):
        fb.train.QueueRunner(queue, [])


def test_a_runner_fills_no_queue_that_each_run_chooses() -> None:
    queues = [fb.FIFOQueue(2, fb.int32, shapes=[[]], name=name) for name in "ab"]
    chosen = fb.Queue.from_list(0, queues)
    put = chosen.enqueue(1)
    message = r"known before the run: 'QueueSelect' \(QueueSelect\) makes none"
    with pytest.raises(fb.errors.InvalidArgumentError, match=message) as caught:
        fb.train.QueueRunner(chosen, [put])
    assert "make a runner for each of the queues" in str(caught.value)
    # What it runs may choose.
    fb.train.QueueRunner(queues[0], [chosen.enqueue(fb.count_up_to(fb.Variable(0), 3))])
    with fb.Session() as sess:
        assert everything(sess, queues[0].dequeue()) == [0, 1, 2]


# With a coordinator


def test_a_coordinator_stops_runners() -> None:
    queue = counted(10**9)
    taken = queue.dequeue()
    with fb.Session() as sess:
        coord = fb.train.Coordinator()
        threads = fb.train.start_queue_runners(sess, coord)
        assert len(threads) == 1
        assert fb.train.start_queue_runners(sess, coord) == []
        assert sess.run(taken) == 0
        coord.request_stop()
        coord.join()
        assert not any(thread.is_alive() for thread in threads)
        assert sess.run(queue.is_closed())


def test_a_coordinator_passes_on_the_first_error() -> None:
    queue = fb.FIFOQueue(2, fb.float32)
    x = fb.Variable(1.0)
    fb.train.QueueRunner(queue, queue.enqueue(fb.check_numerics(fb.log(x - 1.0), "wrong")))
    with fb.Session() as sess:
        coord = fb.train.Coordinator()
        fb.train.start_queue_runners(sess, coord)
        assert coord.wait_for_stop(60)
        assert coord.should_stop()
        with pytest.raises(fb.errors.InvalidArgumentError, match="wrong"):
            coord.join()
    with pytest.raises(fb.errors.InvalidTypeError):
        fb.train.start_queue_runners(None)  # type: ignore[arg-type]
