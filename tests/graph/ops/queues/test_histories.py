"""Random histories of runs at a queue, in a session and on threads, against a model.

One step follows another when all has come to rest: who waits then, and who goes on in which order,
is the same in every run. `test_interleavings.py` holds the resource alone against the same model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import flowbook as fb
from tests.graph.ops.queues.model import CANCELLED, Model, Wish, drained, told
from tests.graph.ops.queues.waiting import Waiting, attempts_at, begun, given_up

# What comes to its end by the model takes less.
LONG = 60.0

Columns = list[np.ndarray[Any, Any]]


@dataclass(frozen=True)
class Kind:
    """A kind of queue.

    Attributes:
        order: which element goes next, as the model calls it.
        make: a queue, by its capacity and by how many stay in it.
        elements: what somebody puts in, by the numbers that nobody else has.
        columns: elements as the components of a batch.
        read: the components of a batch as elements.
    """

    order: str
    make: Callable[[int, int], fb.Queue]
    elements: Callable[[range], list[Any]]
    columns: Callable[[list[Any]], Columns]
    read: Callable[[Columns], list[Any]]


def scalars(elements: list[int]) -> Columns:
    return [np.array(elements, np.int64)]


def numbers(columns: Columns) -> list[int]:
    return columns[0].tolist()  # type: ignore[no-any-return]


def of_one_length(these: range) -> list[tuple[int, int]]:
    """Elements, which are a number and how often it is there; rows of one array have one length."""
    return [(number, these.start % 3 + 1) for number in these]


def repeated(elements: list[tuple[int, int]]) -> Columns:
    rows = [[number] * length for number, length in elements]
    return [np.array(rows or np.zeros([0, 2]), np.int64)]


def without_filling(columns: Columns) -> list[tuple[int, int]]:
    """The elements of a batch, which is filled up with zeros to the length of the longest."""
    (rows,) = columns
    elements = [(int(row[0]), int(np.count_nonzero(row))) for row in rows]
    width = max([length for _, length in elements], default=0)
    filled = [[number] * length + [0] * (width - length) for number, length in elements]
    assert rows.tolist() == filled
    return elements


def with_priorities(these: range) -> list[tuple[int, int]]:
    """Elements of few priorities, which are not in the order in which they come."""
    return [(number * 7 % 3, number) for number in these]


def pairs(elements: list[tuple[int, int]]) -> Columns:
    return list(np.array(elements, np.int64).reshape(-1, 2).T)


def paired(columns: Columns) -> list[tuple[int, int]]:
    return list(zip(*[column.tolist() for column in columns], strict=True))


KINDS = {
    "first in, first out": Kind(
        "first",
        lambda capacity, _: fb.FIFOQueue(capacity, fb.int64, shapes=[[]]),
        list,
        scalars,
        numbers,
    ),
    "filled up": Kind(
        "first",
        lambda capacity, _: fb.PaddingFIFOQueue(capacity, fb.int64, shapes=[[None]]),
        of_one_length,
        repeated,
        without_filling,
    ),
    "by priority": Kind(
        "least",
        lambda capacity, _: fb.PriorityQueue(capacity, fb.int64, shapes=[[]]),
        with_priorities,
        pairs,
        paired,
    ),
    "shuffled": Kind(
        "any",
        lambda capacity, reserve: fb.RandomShuffleQueue(
            capacity, reserve, fb.int64, shapes=[[]], seed=7
        ),
        list,
        scalars,
        numbers,
    ),
}


@dataclass
class Run:
    """A run that puts in or takes out, beside what the model knows of it.

    Attributes:
        wish: what it wants, in the model.
        is_of_one: whether it takes one element, and not a batch.
        waiting: the run.
        veto: a queue that it takes from, too, where it may be told to fail.
    """

    wish: Wish
    is_of_one: bool
    waiting: Waiting
    veto: fb.Queue | None


class History:
    """What happens to a queue in a session, and to the model beside it.

    Args:
        kind: which queue.
        capacity: how many elements it holds.
        reserve: how many stay in one that shuffles.
    """

    def __init__(self, kind: str, capacity: int, reserve: int) -> None:
        self.kind = KINDS[kind]
        self.model = Model(capacity, self.kind.order, reserve if kind == "shuffled" else 0)
        queue = self.queue = self.kind.make(capacity, reserve)
        shapes = list(zip(queue.dtypes, queue.shapes, strict=True))
        self.one = [fb.placeholder(dtype, shape) for dtype, shape in shapes]
        self.rows = [fb.placeholder(dtype, [None, *shape]) for dtype, shape in shapes]
        self.n = fb.placeholder(fb.int32, [])
        self.enqueue = queue.enqueue(self.one)
        self.enqueue_many = queue.enqueue_many(self.rows)
        self.dequeue = queue.dequeue()
        self.dequeue_many = queue.dequeue_many(self.n)
        self.dequeue_up_to = queue.dequeue_up_to(self.n)
        self.closing = [queue.close(), queue.close(cancel_pending_enqueues=True)]
        self.state = [queue.size(), queue.is_closed()]
        self.sess = fb.Session()
        self.runs: list[Run] = []
        self.came = 0
        self.taken: Counter[Any] = Counter()

    # What may happen

    def put(self, count: int | None, how: str) -> None:
        """Somebody puts in so many elements; None is one that is no batch."""
        these = range(self.came + 1, self.came + 1 + (1 if count is None else count))
        self.came = these.stop - 1
        elements = self.kind.elements(these)
        columns = self.kind.columns(elements)
        wish = self.model.put(elements)
        if count is None:
            feeds = {x: column[0] for x, column in zip(self.one, columns, strict=True)}
            self._start(self.enqueue, feeds, wish, how)
        else:
            self._start(self.enqueue_many, dict(zip(self.rows, columns, strict=True)), wish, how)

    def take(self, count: int | None, is_less_enough: bool, how: str) -> None:
        """Somebody takes out so many elements; None is one that is no batch."""
        if count is None:
            self._start(self.dequeue, {}, self.model.take(1), how, is_of_one=True)
        else:
            taken = self.dequeue_up_to if is_less_enough else self.dequeue_many
            self._start(taken, {self.n: count}, self.model.take(count, is_less_enough), how)

    def close(self, is_cancelling: bool) -> None:
        """Somebody closes the queue."""
        self.model.close(is_cancelling)
        self.sess.run(self.closing[is_cancelling], timeout=LONG)
        self.compare()

    def fail(self, which: int) -> None:
        """One of the runs that wait fails elsewhere, if there is one that can."""
        able = [run for run in self.runs if run.veto is not None]
        if able:
            run = able[which % len(able)]
            self.runs.remove(run)
            assert run.veto is not None
            self.model.give_up(run.wish)
            self.sess.run(run.veto.enqueue(np.nan), timeout=LONG)
            with pytest.raises(fb.errors.InvalidArgumentError, match="vetoed"):
                run.waiting.result()
            self.compare()

    def _start(
        self, fetch: Any, feeds: Any, wish: Wish, how: str, *, is_of_one: bool = False
    ) -> None:
        waits = wish.result is None
        if waits and how == "for a moment":
            given_up(self.sess, fetch, "waits for", feeds)
            self.model.give_up(wish)
            self.compare()
            return
        veto, fetches = None, [fetch]
        if waits and how == "with a veto":
            veto = fb.FIFOQueue(1, fb.float32, shapes=[[]])
            fetches.append(fb.check_numerics(veto.dequeue(), "vetoed"))
        run = Run(wish, is_of_one, begun(self.sess, self.queue, fetches, feeds=feeds), veto)
        self.runs.append(run)
        self.compare()

    # What came of it

    def compare(self) -> None:
        """Compare what came of everybody, and what there is now, with the model."""
        # First, as who waits wrongly never comes to an end.
        assert len(attempts_at(self.sess, [self.queue])) == len(self.model.waiting)
        for run in [run for run in self.runs if run.wish.result is not None]:
            self.runs.remove(run)
            if run.veto is not None:
                self.sess.run(run.veto.enqueue(0.0), timeout=LONG)
            self._compare_run(run)
        found = self.sess.run(self.state, timeout=LONG)
        assert found == [len(self.model.elements), self.model.is_closed]

    def _compare_run(self, run: Run) -> None:
        expected = run.wish.result
        try:
            found = run.waiting.result()[0]
        except fb.errors.OpError as error:
            found = told(error)
        if found is None:
            found = []  # Who puts in gets nothing.
        elif not isinstance(found, str):
            columns = found if isinstance(found, list) else [found]
            if run.is_of_one:
                columns = [np.expand_dims(column, 0) for column in columns]
            found = self.kind.read(columns)
            self.taken.update(found)
            assert self.taken <= Counter(self.model.entered)
        if self.model.order == "any" and isinstance(found, list):
            # Which they are was compared above.
            assert isinstance(expected, list)
            assert len(found) == len(expected)
        else:
            assert found == expected

    # How it ends

    def drain(self) -> None:
        """Close the queue, and take out what is left."""
        self.close(True)
        assert not self.runs
        self.take(len(self.model.elements) + 1, True, "patiently")
        assert self.taken == Counter(self.model.entered)
        self.take(None, False, "patiently")
        assert self.model.wishes[-1].result == drained(1, 0)
        self.put(None, "patiently")
        assert self.model.wishes[-1].result == CANCELLED

    def end_session(self) -> None:
        """Close the session, and with it what waits."""
        self.sess.close()
        for run in self.runs:
            with pytest.raises(fb.errors.CancelledError, match="session was closed"):
                run.waiting.result()


COUNTS = st.one_of(st.none(), st.integers(0, 5))
HOW = st.sampled_from(["patiently"] * 4 + ["with a veto"] * 3 + ["for a moment"])
PUT = st.tuples(st.just("put"), COUNTS, HOW)
TAKE = st.tuples(st.just("take"), COUNTS, st.booleans(), HOW)
FAIL = st.tuples(st.just("fail"), st.integers(0, 5))
CLOSE = st.tuples(st.just("close"), st.booleans())


@st.composite
def histories(draw: st.DrawFn) -> list[Any]:
    """Steps, the more of them while the queue is open: closed it has little to tell."""
    steps = draw(st.lists(st.one_of(PUT, TAKE, FAIL), min_size=5, max_size=16))
    if draw(st.booleans()):
        closed = st.lists(st.one_of(PUT, TAKE, FAIL, CLOSE), max_size=6)
        steps += [draw(CLOSE), *draw(closed)]
    return steps


# How many elements a queue holds, and how many stay in one that shuffles.
SIZES = st.sampled_from([(1, 0), (2, 1), (5, 0), (5, 2), (-1, 0), (-1, 3)])


# The third run of a kind is code, which first tries whether it has to wait.
TRYING: list[Any] = [("put", None, "patiently")] * 6
TRYING += [("take", count, True, "patiently") for count in (0, 2, 5)]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=30)
@example((1, 0), TRYING, True)
@given(SIZES, histories(), st.booleans())
def test_a_history_is_as_the_model_says(
    kind: str, sizes: tuple[int, int], steps: list[Any], is_drained: bool
) -> None:
    with fb.Graph().as_default():
        history = History(kind, *sizes)
        try:
            for what, *args in steps:
                getattr(history, what)(*args)
            if is_drained:
                history.drain()
        finally:
            history.end_session()
