"""Random interleavings of operations on a queue, against a model in plain Python.

Attempts are made on the resource itself, one after the other on one thread, so that what waits, and
what goes on in which order, is the same in every run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import flowbook as fb
from flowbook.exec.devices.cpu import Cpu
from flowbook.exec.resources.kinds import Birth, Definition, maker_of
from flowbook.graph.model.resource_key import ResourceKey
from tests.graph.ops.queues.model import GIVEN_UP, Model, told


class Call:
    """What an operation is told, as an asynchronous kernel's context would be."""

    is_patient = True

    xp = np

    def __init__(self) -> None:
        self.outputs: Any = None
        self.error: BaseException | None = None
        self.wish: Callable[[], str] | None = None
        self._callbacks: list[Callable[[], None]] = []

    def complete(self, outputs: tuple[Any, ...] = ()) -> None:
        assert not self.is_over, "it is told twice"
        self.outputs = outputs

    def fail(self, error: BaseException) -> None:
        assert not self.is_over, "it is told twice"
        self.error = error

    def on_cancel(self, callback: Callable[[], None]) -> None:
        self._callbacks.append(callback)

    def call(self, function: Any, name: str) -> None:
        raise AssertionError

    def cancel(self) -> None:
        for callback in self._callbacks:
            callback()

    @property
    def is_over(self) -> bool:
        return self.outputs is not None or self.error is not None

    @property
    def result(self) -> Any:
        """What came of it, as the model says it."""
        if self.error is not None:
            return told(self.error)
        if self.outputs is None:
            return None
        return [value for output in self.outputs for value in np.ravel(output).tolist()]


STEPS = st.one_of(
    st.tuples(st.just("put"), st.integers(0, 5)),
    st.tuples(st.just("take"), st.integers(0, 4)),
    st.tuples(st.just("take up to"), st.integers(0, 4)),
    st.tuples(st.just("take one"), st.just(0)),
    st.tuples(st.just("cancel"), st.integers(0, 5)),
    st.tuples(st.just("close"), st.integers(0, 1)),
)


ORDERS = {
    "fifo_queue": "first",
    "padding_fifo_queue": "first",
    "stack": "last",
    "priority_queue": "least",
}


def play(kind: str, capacity: int, steps: list[tuple[str, int]]) -> None:
    """Do the same with a queue and with the model, and compare what came of every attempt."""
    dtypes, shapes = (fb.int64,), (fb.Shape([]),)
    attributes = {"capacity": capacity, "dtypes": dtypes, "shapes": shapes, "names": ()}
    key = ResourceKey("", "q", 1)
    maker = maker_of(key, Definition(kind, attributes))
    queue = maker(Birth(key, attributes, 0, lambda has: None, Cpu()))
    model = Model(capacity, ORDERS[kind])
    calls: list[Call] = []
    given_up: set[int] = set()
    number = 0
    for step, argument in steps:
        call = Call()
        if step == "put":
            # Priorities that differ, and not in the order in which they come.
            values = [(number + i) * 7 % 101 for i in range(argument)]
            number += argument
            queue.enqueue_many(call, [np.array(values, np.int64)])
            model.put(values)
        elif step == "take one":
            queue.dequeue(call)
            model.take(1)
        elif step in ("take", "take up to"):
            queue.dequeue_many(call, argument, step == "take up to")
            model.take(argument, step == "take up to")
        elif step == "close":
            queue.close(call, bool(argument))
            assert call.outputs == ()
            model.close(bool(argument))
            continue
        else:
            if model.waiting:
                wish = model.waiting[argument % len(model.waiting)]
                chosen = model.wishes.index(wish)
                given_up.add(chosen)
                calls[chosen].cancel()
                model.give_up(wish)
            call = None  # type: ignore[assignment]
        if call is not None:
            calls.append(call)
        expected = [wish.result for wish in model.wishes]
        found = [GIVEN_UP if i in given_up else c.result for i, c in enumerate(calls)]
        assert found == expected, (step, argument)
        assert int(queue.size()) == len(model.elements)


CAPACITIES = st.sampled_from([1, 2, 5])


@given(CAPACITIES, st.lists(STEPS, max_size=25))
def test_first_in_first_out(capacity: int, steps: list[tuple[str, int]]) -> None:
    play("fifo_queue", capacity, steps)


@given(CAPACITIES, st.lists(STEPS, max_size=25))
def test_filling_up_changes_nothing_else(capacity: int, steps: list[tuple[str, int]]) -> None:
    play("padding_fifo_queue", capacity, steps)


@given(CAPACITIES, st.lists(STEPS, max_size=25))
def test_last_in_first_out(capacity: int, steps: list[tuple[str, int]]) -> None:
    play("stack", capacity, steps)


@given(CAPACITIES, st.lists(STEPS, max_size=25))
def test_by_priority(capacity: int, steps: list[tuple[str, int]]) -> None:
    play("priority_queue", capacity, steps)


SIZES = (1, 2, 3)

BUCKET_STEPS = st.one_of(
    st.tuples(st.just("put"), st.lists(st.integers(0, 2), max_size=4)),
    st.tuples(st.just("take"), st.just([])),
    st.tuples(st.just("take and give up"), st.just([])),
)


@given(st.lists(BUCKET_STEPS, max_size=25), st.booleans())
def test_batches_of_one_bucket(steps: list[tuple[str, list[int]]], is_less_enough: bool) -> None:
    """Batches leave as they became whole, and what is given up is as if nobody had taken it."""
    dtypes, shapes = (fb.int32, fb.int64), (fb.Shape([]), fb.Shape([]))
    attributes = {"capacity": 200, "dtypes": dtypes, "shapes": shapes, "names": (), "sizes": SIZES}
    key = ResourceKey("", "q", 1)
    maker = maker_of(key, Definition("bucket_queue", attributes))
    queue = maker(Birth(key, attributes, 0, lambda has: None, Cpu()))
    filling: list[list[int]] = [[] for _ in SIZES]
    whole: list[tuple[int, list[int]]] = []
    waiting: list[Call] = []
    taken: list[tuple[int, list[int]]] = []
    number = 0

    def gone(call: Call) -> tuple[int, list[int]]:
        (bucket,) = set(call.outputs[0].tolist())
        return bucket, call.outputs[1].tolist()

    for step, buckets in steps:
        if step == "put":
            numbers = np.arange(number, number + len(buckets))
            queue.enqueue_many(Call(), [np.array(buckets, np.int32), numbers])
            for each, bucket in zip(numbers.tolist(), buckets, strict=True):
                filling[bucket].append(each)
                if len(filling[bucket]) == SIZES[bucket]:
                    whole.append((bucket, filling[bucket][:]))
                    filling[bucket].clear()
            number += len(buckets)
        else:
            call = Call()
            queue.dequeue_bucket(call, is_less_enough)
            if step == "take":
                waiting.append(call)
            else:
                call.cancel()
        while waiting and waiting[0].is_over:
            taken.append(gone(waiting.pop(0)))
        assert taken == whole[: len(taken)]
        assert not waiting or len(taken) == len(whole)
    queue.close(Call(), False)
    left = [(bucket, numbers) for bucket, numbers in enumerate(filling) if numbers]
    rest = whole[len(taken) :] + (sorted(left, key=lambda b: b[1][0]) if is_less_enough else [])
    for wanted in rest:
        if not waiting:
            waiting.append(Call())
            queue.dequeue_bucket(waiting[0], is_less_enough)
        assert gone(waiting.pop(0)) == wanted
    last = Call()
    queue.dequeue_bucket(last, is_less_enough)
    assert isinstance(last.error, fb.errors.OutOfRangeError)
