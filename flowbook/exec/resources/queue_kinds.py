"""The kinds of queue: what holds their elements, and what some of them do beyond waiting.

A source's queue and a saved one belong to checkpoints; one with buckets gives batches of its own.
"""

from __future__ import annotations

import base64
import operator
import time
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import chain, repeat
from typing import Any

import numpy as np

from flowbook.exec.resources.kinds import Birth, makes
from flowbook.exec.resources.queue import Queue, held_by
from flowbook.exec.resources.queue_elements import (
    ByPriority,
    Element,
    InBuckets,
    InOrder,
    LatestFirst,
    Numbered,
    Shuffled,
    exhaust,
    padded,
    rows_of,
)
from flowbook.exec.resources.random_state import seeded
from flowbook.exec.resources.waiting import Attempt
from flowbook.graph.definition.async_context import AsyncContext
from flowbook.graph.model.dtypes import string
from flowbook.graph.model.errors import (
    InvalidArgumentError,
)
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.touch import (
    BUCKET_QUEUE,
    FIFO_QUEUE,
    PADDING_FIFO_QUEUE,
    PRIORITY_QUEUE,
    RANDOM_SHUFFLE_QUEUE,
    SAVED_QUEUE,
    SOURCE_QUEUE,
    STACK,
)


class CountedQueue(Queue):
    """A queue of which a checkpoint keeps what nobody has taken and used.

    What a step has taken and may yet put back counts as not taken. The state is asked for while
    `lock` is held.
    """

    def __init__(self, kind: str, name: str, attributes: Mapping[str, Any], elements: InOrder):
        super().__init__(kind, name, attributes, elements)
        # Those who wait or have taken, in order; not those whose elements have been used.
        self._takers: deque[Attempt] = deque()

    @property
    def lock(self) -> Any:
        """What nobody has while the state is asked for."""
        return self._lock

    def take_out(self, attempt: Attempt) -> None:
        """See `Queue`."""
        with self._lock:
            takers = self._takers
            while takers and takers[0].call.is_settled:
                takers.popleft()
            takers.append(attempt)
        super().take_out(attempt)

    def held(self) -> list[Element]:
        """What has been taken and not used, in order."""
        takers = [attempt for attempt in self._takers if not attempt.call.is_settled]
        return [element for attempt in takers for element in held_by(attempt)]

    def drop_held(self) -> None:
        """Have nothing come back that has been taken. Called under the lock."""
        for attempt in self._takers:
            if attempt in self._taking:
                held_by(attempt).clear()
        self._takers = deque([attempt for attempt in self._takers if attempt in self._taking])


class SourceQueue(CountedQueue):
    """A queue of what a source gives, one after the other, which a checkpoint keeps the place of.

    Args:
        name: what errors call it.
        attributes: those of the operation that owns it.
    """

    def __init__(self, name: str, attributes: Mapping[str, Any]) -> None:
        super().__init__(SOURCE_QUEUE.name, name, attributes, InOrder())
        # How many more had been taken than were taken of it, and how many of these come again.
        self._before = 0
        self._again = 0

    def put(self, source: deque[Element], count: int) -> None:
        """See `Queue`; what was taken before is left out."""
        again = min(self._again, count)
        exhaust(map(deque.popleft, repeat(source, again)))
        self._again -= again
        super().put(source, count - again)

    def state(self) -> Any:
        """How many elements have been taken."""
        return self._before + self._taken - len(self.held())

    def set_state(self, state: Any) -> None:
        """Go on behind so many elements of the source, which begins with the first."""
        taken = operator.index(state)
        if taken < 0:
            raise ValueError(f"{taken} elements cannot have been taken")
        with self._lock:
            self.drop_held()
            self._before, self._again = taken - self._taken, taken

    def forget(self) -> None:
        """See `Queue`; the source begins with the first element again."""
        super().forget()
        self.set_state(0)

    @property
    def _taken(self) -> int:
        return self._put - self._dropped - len(self.elements)


class UnfilledQueue(CountedQueue):
    """A queue of what a source has by numbers: who takes an element makes it.

    Nobody fills it; it holds what a step that was given up had taken. A checkpoint keeps its place.

    Args:
        name: what errors call it.
        attributes: those of the operation that owns it.
    """

    elements: Numbered

    def __init__(self, name: str, attributes: Mapping[str, Any]) -> None:
        super().__init__(SOURCE_QUEUE.name, name, attributes, Numbered())
        self._source = attributes["source"]()

    @property
    def available(self) -> int:
        """How many elements may be taken out; the next one is made if there is none."""
        count = len(self.elements)
        if count or self.is_closed:
            return count
        self._make()
        return len(self.elements)

    def _make(self) -> None:
        start = time.monotonic()
        number = self.elements.next
        try:
            found = self._source[number]
        except IndexError:
            self.is_spent = True
            self.stop_admitting(is_cancelling=False)
            return
        element = tuple([value if value.flags.owndata else value.copy() for value in found])
        self.elements.append((number, element))
        self._put += 1
        # Who takes an element waits while it is made.
        self._taking.waited += time.monotonic() - start

    def state(self) -> Any:
        """How many elements have been taken."""
        return min([number for number, _ in self.held()], default=self.elements.first)

    def set_state(self, state: Any) -> None:
        """Go on behind so many elements of the source."""
        taken = operator.index(state)
        if taken < 0:
            raise ValueError(f"{taken} elements cannot have been taken")
        with self._lock:
            self.drop_held()
            self._dropped += len(self.elements)
            self.elements.clear()
            self.elements.next = taken
            self.is_closed = self.is_spent = False

    def start_over(self) -> None:
        """See `Queue`."""
        self.set_state(0)

    forget = start_over


class BucketQueue(Queue):
    """A queue that gives batches of elements of one bucket.

    Args:
        name: what errors call it.
        attributes: those of the operation that owns it.
    """

    elements: InBuckets

    def __init__(self, name: str, attributes: Mapping[str, Any]) -> None:
        self._sizes: tuple[int, ...] = attributes["sizes"]
        elements = InBuckets(self._sizes)
        super().__init__(BUCKET_QUEUE.name, name, attributes, elements, stack=padded)

    def dequeue_bucket(self, call: AsyncContext, is_less_enough: bool) -> None:
        """Take out a batch of one bucket or, once it is closed, those that are left in one."""
        self._join(_DequeueBucket(call, self, min(self._sizes), is_less_enough), self._taking)

    def _check(self, components: Sequence[Any], shapes: Sequence[Shape]) -> None:
        super()._check(components, shapes)
        for bucket in np.ravel(components[0]):
            if not 0 <= bucket < len(self._sizes):
                raise InvalidArgumentError(
                    f"there is no bucket {bucket}: queue {self.name!r} has {len(self._sizes)}"
                )


class SavedQueue(CountedQueue):
    """A queue of scalars that belongs to a checkpoint: those that nobody has taken, in order.

    What waits to be put in counts as being in it, too. Whether it is closed is no part of its
    state: who fills it finds that there is no more.

    Args:
        name: what errors call it.
        attributes: those of the operation that owns it.
    """

    elements: InOrder

    def __init__(self, name: str, attributes: Mapping[str, Any]) -> None:
        super().__init__(SAVED_QUEUE.name, name, attributes, InOrder())

    def state(self) -> Any:
        """The scalars."""
        coming = chain.from_iterable(map(held_by, self._putting))
        values = [value for (value,) in chain(self.held(), self.elements, coming)]
        if self.dtypes[0] is string:
            return [base64.b64encode(value.item()).decode() for value in values]
        return base64.b64encode(np.array(values, self.dtypes[0].numpy).tobytes()).decode()

    def set_state(self, state: Any) -> None:
        """Hold these instead; ValueError or TypeError if they are none."""
        values: Sequence[Any]
        if self.dtypes[0] is string:
            if not isinstance(state, list):
                raise TypeError("strings are a list")
            values = [np.array(base64.b64decode(text, validate=True), object) for text in state]
        else:
            values = rows_of(
                np.frombuffer(base64.b64decode(state, validate=True), self.dtypes[0].numpy)
            )
        elements = deque([(value,) for value in values])
        with self._lock:
            self.drop_held()
            for waiting in self._putting:
                held_by(waiting).clear()
            # What it holds instead was neither put in nor taken out.
            self._dropped += len(self.elements) - len(elements)
            self.elements.clear()
            self.elements.put(elements, len(elements))
            self._serve()
        self._report()


class _DequeueBucket(Attempt):
    """Takes out a batch of one bucket."""

    __slots__ = ("_is_less_enough", "_least", "_queue", "_taken")

    def __init__(
        self, call: AsyncContext, queue: BucketQueue, least: int, is_less_enough: bool
    ) -> None:
        super().__init__(call)
        self._queue = queue
        self._least = least
        self._is_less_enough = is_less_enough
        self._taken: deque[Element] = deque()

    def advance(self) -> bool:
        queue = self._queue
        if queue.elements.take_batch(self._taken, self._is_less_enough and queue.is_closed):
            return self.end()
        return self.end(queue.drained(self._least)) if queue.is_closed else False

    def undo(self) -> None:
        self._queue.elements.put_back(self._taken)

    def outputs(self) -> Element:
        return self._queue.batch_of(self._taken)

    def wish(self) -> str:
        return f"waits for a batch of one bucket of {self._queue.described()}"


@makes(FIFO_QUEUE)
def _fifo_queue(birth: Birth) -> Queue:
    return Queue(FIFO_QUEUE.name, birth.key.name, birth.attributes, InOrder())


@makes(SOURCE_QUEUE)
def _source_queue(birth: Birth) -> Queue:
    kind = SourceQueue if birth.attributes["capacity"] else UnfilledQueue
    return kind(birth.key.name, birth.attributes)


@makes(SAVED_QUEUE)
def _saved_queue(birth: Birth) -> Queue:
    return SavedQueue(birth.key.name, birth.attributes)


@makes(PADDING_FIFO_QUEUE)
def _padding_fifo_queue(birth: Birth) -> Queue:
    name = birth.key.name
    return Queue(PADDING_FIFO_QUEUE.name, name, birth.attributes, InOrder(), stack=padded)


@makes(PRIORITY_QUEUE)
def _priority_queue(birth: Birth) -> Queue:
    return Queue(PRIORITY_QUEUE.name, birth.key.name, birth.attributes, ByPriority())


@makes(BUCKET_QUEUE)
def _bucket_queue(birth: Birth) -> Queue:
    return BucketQueue(birth.key.name, birth.attributes)


@makes(STACK)
def _stack(birth: Birth) -> Queue:
    return Queue(STACK.name, birth.key.name, birth.attributes, LatestFirst())


@makes(RANDOM_SHUFFLE_QUEUE)
def _random_shuffle_queue(birth: Birth) -> Queue:
    attributes = birth.attributes
    seeds = attributes["graph_seed"], attributes["seed"]
    elements = Shuffled(str(seeded(birth.key.name, *seeds, birth.entropy)))
    reserve = attributes["min_after_dequeue"]
    return Queue(RANDOM_SHUFFLE_QUEUE.name, birth.key.name, attributes, elements, reserve)
