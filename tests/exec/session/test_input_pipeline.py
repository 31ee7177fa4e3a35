"""What a session tells of its queues: counts, waits, and the verdict in words."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.resources import waiting
from flowbook.exec.resources.queue import Reading
from flowbook.exec.resources.waiting import WaitingResource
from flowbook.exec.session.input_pipeline import (
    NOTHING,
    InputPipeline,
    Look,
    QueuePlace,
    RunnerState,
    input_pipeline,
    percent,
    queue_places,
)
from flowbook.graph.model.operation import Operation


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(waiting, "monotonic", made.monotonic)
    return made


class Attempt:
    """Wants nothing but to be told when it has it; it is its own step."""

    is_over = False

    def __init__(self) -> None:
        self.call = self
        self.wish = ""

    def on_cancel(self, callback: Callable[[], object]) -> None:
        pass

    def arrive(self) -> None:
        pass

    def advance(self) -> bool:
        return self.is_over

    def report(self) -> None:
        pass


def test_a_line_knows_for_how_long_somebody_has_waited(clock: Clock) -> None:
    resource: Any = WaitingResource(lines=2)
    line, other = resource._lines

    def come(attempt: Attempt) -> None:
        resource._join(attempt, line)

    one, two = Attempt(), Attempt()
    resource._serve()
    assert (line.first, line.since, line.waited) == (None, None, 0.0)
    come(one)
    clock.now += 2
    come(two)
    one.is_over = True
    resource._serve()  # The second one waits still.
    assert (line.since, line.waited, line.last) == (100.0, 0.0, 102.0)
    clock.now += 3
    two.is_over = True
    resource._serve()
    assert (line.first, line.last, line.since, line.waited) == (100.0, 105.0, None, 5.0)
    clock.now += 7
    come(two)  # It is served at once.
    assert (line.last, line.since, line.waited) == (112.0, None, 5.0)
    assert (other.first, other.waited) == (None, 0.0)


def test_what_is_put_back_or_dropped_was_not_taken() -> None:
    queue = fb.FIFOQueue(9, fb.int32, shapes=[[]])
    put, two = queue.enqueue_many([1, 2, 3, 4, 5]), queue.dequeue_many(2)
    many = queue.dequeue_many(9)
    with fb.Session() as sess:
        sess.run(put)
        sess.run(two)
        with pytest.raises(fb.errors.DeadlineExceededError):
            sess.run(many, timeout=0.01)
        [use] = sess.pipeline().queues
        assert (use.put, use.taken, use.fill, use.capacity) == (5, 2, 3, 9)
        sess._master.monitor.find(queue.op.key).forget()
        sess.run(put)
        [use] = sess.pipeline().queues
        assert (use.put, use.taken, use.fill) == (10, 2, 5)


def test_it_names_what_waits_now() -> None:
    queue = fb.FIFOQueue(1, fb.int32, shapes=[[]], name="numbers")
    element, put = queue.dequeue(name="next"), queue.enqueue(7)
    with fb.Session() as sess:
        assert sess.pipeline().verdict.state == "unused"
        found: list[Any] = []
        thread = threading.Thread(target=lambda: found.append(sess.run(element)))
        thread.start()
        waits = threading.Event()
        while not ((use := sess.pipeline().queues[0]).waiting and use.element_share):
            waits.wait(0.005)  # Between two looks.
        [waiter] = use.waiting
        assert waiter.operation == element.op.name
        assert "test_input_pipeline.py, line" in waiter.place
        assert waiter.wish.startswith("waits for an element of queue 'numbers'")
        assert str(waiter).startswith(f"a run waits for elements: {element.op.name!r}")
        assert use.element_share == 1.0
        pipeline = sess.pipeline()
        assert pipeline.verdict.text == (
            "Training waits for input 100 % of the time: queue 'queue' runs empty; "
            "no runner fills it"
        )
        sess.run(put)
        thread.join(60)
        assert found == [7]
        assert sess.pipeline().queues[0].waiting == []
    with pytest.raises(fb.errors.FailedPreconditionError, match="closed"):
        sess.pipeline()


def test_runners_tell_what_became_of_them() -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise OSError("cut off")

    bad = fb.train.from_generator(broken)
    good = fb.train.batches(np.arange(4), 2, prefetch=1)
    with fb.Session() as sess:
        states = [use.runners[0].state for use in sess.pipeline().queues]
        assert states == ["not started", "not started"]
        list(fb.train.until_end(sess, good))
        pipeline = sess.pipeline()
        [failing, ending] = [use.runners[0] for use in pipeline.queues]
        assert (failing.state, ending.state) == ("not started", "ended")
        assert "The input has come to its end" in pipeline.verdict.detail
        sess.run(bad)
        with pytest.raises(fb.errors.UnknownError, match="cut off"):
            sess.run(bad)
        pipeline = sess.pipeline()
        assert pipeline.queues[0].runners[0].state == "failed"
        assert pipeline.verdict.state == "failed"
        assert "cut off" in pipeline.verdict.text
        assert "'bad'" in pipeline.verdict.text
        assert "failed: " in str(pipeline)


def test_queues_are_known_by_variables_and_in_the_order_of_filling() -> None:
    numbers = fb.train.range_input_producer(5)
    squares = fb.train.batch(fb.square(numbers.dequeue()), 2)
    left, right = fb.train.batches((np.arange(4), np.arange(4)), 2, name="pairs")
    queue = fb.FIFOQueue(1, fb.int32, name="alone")
    assert squares is not left is not right is not queue
    places, of_runners = queue_places(fb.get_default_graph())
    assert [place.name for place in places] == ["numbers", "squares", "pairs", "queue"]
    assert [[op.name for op in place.sources] for place in places] == [
        [],
        [numbers.op.name],
        [],
        [],
    ]
    assert [place.feeds_training for place in places] == [False, True, True, False]
    assert all(runner in places[0].operation.outputs[0].consumers() for runner in places[0].runners)
    assert {op.type for op in of_runners} >= {"QueueEnqueueMany", "QueueDequeue", "Square"}


# Verdicts, of what was seen


def seen(**readings: tuple[Reading, int]) -> tuple[Look, dict[str, Operation]]:
    """What was seen of queues that fill one another in turn: readings, and runners' threads."""
    queues = {name: fb.FIFOQueue(4, fb.int32, name=name).op for name in readings}
    places, before = [], []
    runners = {}
    for name, (_, threads) in readings.items():
        queue = queues[name]
        is_last = name == list(readings)[-1]
        places.append(QueuePlace(queue, name, [], list(before), is_last))
        before = [queue]
        runners[queue] = [RunnerState(f"{name}_runner", threads, threads, "runs")] * bool(threads)
    found = {queues[name]: reading for name, (reading, _) in readings.items()}
    return Look(0.0, places, found, runners, {}, False), queues


def used(put: int, room: float, elements: float, fill: int = 0) -> Reading:
    """A queue that was used for ten seconds."""
    return Reading(put, put - fill, fill, room, elements, 10.0, None, False)


def verdict(**readings: tuple[Reading, int]) -> str:
    look, _ = seen(**readings)
    found = input_pipeline(look).verdict
    return f"{found.text}. {found.detail}".rstrip(". ")


def test_verdicts() -> None:
    assert verdict() == "There are no queues yet. What the graph gains appears here"
    assert verdict(a=(NOTHING, 1)).startswith("No run has taken an element yet")
    assert verdict(a=(used(1000, 8.8, 0.01), 1)) == (
        "Input keeps up: training waits for it <1 % of the time. "
        "What fills queue 'a' waits for room 88 % of the time"
    )
    assert verdict(a=(used(500, 0.0, 6.3), 1)) == (
        "Training waits for input 63 % of the time: queue 'a' runs empty; "
        "its runner takes 20.0 ms an element"
    )
    assert verdict(a=(used(500, 5.0, 2.0), 4)) == (
        "Training waits for input 20 % of the time: queue 'a' runs empty; "
        "its runner gives an element every 10.0 ms"
    )
    assert verdict(a=(used(0, 0.0, 10.0), 1)).endswith(
        "runs empty; its runner has given nothing meanwhile"
    )
    assert verdict(a=(used(9, 0.0, 10.0), 0)).endswith("runs empty; no runner fills it")


def test_a_run_that_makes_its_own_elements_waits_for_itself() -> None:
    fb.train.batches(np.arange(6), 2)
    place = queue_places(fb.get_default_graph())[0][0]
    look = Look(
        0.0, [place], {place.operation: used(100, 0.0, 2.0)}, {place.operation: []}, {}, False
    )
    pipeline = input_pipeline(look)
    assert pipeline.verdict.text == (
        "Training waits for input 20 % of the time: each run makes its element of queue 'batches' "
        "itself, in 20.0 ms; `prefetch` has a thread make some ready"
    )
    assert "0 of 0" in str(pipeline)
    assert "not needed" in str(pipeline)


def test_what_a_run_spends_on_its_own_element_counts_as_waiting() -> None:
    x = fb.train.batches(np.arange(40_000.0), 20_000, prefetch=0)
    with fb.Session() as sess:
        for _ in fb.train.until_end(sess, x):
            pass
        [use] = sess.pipeline().queues
    assert (use.put, use.taken, use.fill, use.is_closed) == (2, 2, 0, True)
    assert use.element_share > 0


def test_the_cause_may_lie_several_queues_back() -> None:
    text = verdict(
        files=(used(500, 0.0, 9.0), 1), images=(used(500, 0.0, 9.0), 1), batch=(used(500, 0, 5), 2)
    )
    assert text == (
        "Training waits for input 50 % of the time: queue 'batch' runs empty, as its runner waits "
        "for queue 'images', whose runner waits for queue 'files', whose runner takes 20.0 ms an "
        "element"
    )
    # A runner that seldom waits itself is what takes so long.
    text = verdict(files=(used(100, 0.0, 2.0), 1), batch=(used(100, 0.0, 5.0), 1))
    assert text.endswith("queue 'batch' runs empty; its runner takes 80.0 ms an element")


def test_a_part_of_the_time_is_told_alone() -> None:
    look, queues = seen(a=(used(500, 0.0, 6.3), 1))
    found = input_pipeline(look, {queues["a"]: used(100, 0.0, 6.0)}, 4.0)
    assert isinstance(found, InputPipeline)
    [use] = found.queues
    assert (use.put_rate, use.taken_rate) == (100.0, 100.0)
    assert use.element_share == pytest.approx(0.075)
    assert use.seconds == 4.0


def test_parts_of_the_time_as_text() -> None:
    assert [percent(share) for share in (0.0, 0.001, 0.006, 0.634, 1.0)] == [
        "0 %",
        "<1 %",
        "1 %",
        "63 %",
        "100 %",
    ]
