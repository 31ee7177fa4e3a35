"""The resource behind queues: elements, and those who wait to put some in or to take some out.

The kinds of queue differ in what holds the elements, and so in which of them goes next; one that
pads differs in how a batch is made of elements.

An element is a tuple of values that the queue owns. What moves elements is one call of a C function
each time, so that an interrupt finds every element in one place.
"""

from __future__ import annotations

import base64
import heapq
import itertools
import math
import operator
import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, repeat
from typing import Any, NamedTuple, Protocol

import numpy as np

from flowbook.exec.resources.kinds import Birth, Definition, makes
from flowbook.exec.resources.random_state import seeded
from flowbook.exec.resources.waiting import Attempt, Line, WaitingResource
from flowbook.graph.definition.op_def import AsyncContext
from flowbook.graph.model.attributes import same_value
from flowbook.graph.model.dtypes import DType, string
from flowbook.graph.model.errors import (
    CancelledError,
    InvalidArgumentError,
    OpError,
    OutOfRangeError,
)
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.touch import (
    BUCKET_QUEUE,
    FIFO_QUEUE,
    PADDING_FIFO_QUEUE,
    PRIORITY_QUEUE,
    RANDOM_SHUFFLE_QUEUE,
    SAVED_QUEUE,
    STACK,
)

Element = tuple[Any, ...]


class Elements(Protocol):
    """What holds a queue's elements, and knows which goes next."""

    def __len__(self) -> int:
        """How many there are."""

    def put(self, source: deque[Element], count: int) -> None:
        """Take in the first elements of a source."""

    def take(self, target: deque[Element], count: int) -> None:
        """Move the next elements to the end of a target."""

    def put_back(self, taken: deque[Element]) -> None:
        """Take in again what was taken, where it was."""

    def components(self, taken: Element) -> Element:
        """The values of an element that was taken."""

    def clear(self) -> None:
        """Drop all elements."""


class InOrder:
    """First in, first out."""

    def __init__(self) -> None:
        self._elements: deque[Element] = deque()

    def __len__(self) -> int:
        return len(self._elements)

    def __iter__(self) -> Iterator[Element]:
        return iter(self._elements)

    def put(self, source: deque[Element], count: int) -> None:
        """See `Elements`."""
        self._elements.extend(map(deque.popleft, repeat(source, count)))

    def take(self, target: deque[Element], count: int) -> None:
        """See `Elements`."""
        target.extend(map(deque.popleft, repeat(self._elements, count)))

    def put_back(self, taken: deque[Element]) -> None:
        """See `Elements`."""
        self._elements.extendleft(map(deque.pop, repeat(taken, len(taken))))

    def components(self, taken: Element) -> Element:
        """See `Elements`."""
        return taken

    def clear(self) -> None:
        """See `Elements`."""
        self._elements.clear()


class LatestFirst(InOrder):
    """Last in, first out."""

    def take(self, target: deque[Element], count: int) -> None:
        """See `Elements`."""
        target.extend(map(deque.pop, repeat(self._elements, count)))

    def put_back(self, taken: deque[Element]) -> None:
        """See `Elements`."""
        self._elements.extend(map(deque.pop, repeat(taken, len(taken))))


class Shuffled:
    """Any of them goes next, each as likely as the others.

    Args:
        seed: of the order.
    """

    def __init__(self, seed: str) -> None:
        self._elements: list[Element] = []
        self._below = random.Random(seed).randrange

    def __len__(self) -> int:
        return len(self._elements)

    def put(self, source: deque[Element], count: int) -> None:
        """See `Elements`."""
        self._elements.extend(map(deque.popleft, repeat(source, count)))

    def take(self, target: deque[Element], count: int) -> None:
        """See `Elements`."""
        elements = self._elements
        for _ in range(count):
            chosen = self._below(len(elements))
            elements[chosen], elements[-1] = elements[-1], elements[chosen]
            target.extend(map(list.pop, (elements,)))

    def put_back(self, taken: deque[Element]) -> None:
        """See `Elements`."""
        self.put(taken, len(taken))

    def components(self, taken: Element) -> Element:
        """See `Elements`."""
        return taken

    def clear(self) -> None:
        """See `Elements`."""
        self._elements.clear()


class InBuckets:
    """Each in the bucket whose number is its first component; of several the oldest goes next.

    Args:
        sizes: for each bucket how many make a batch.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self._sizes = sizes
        self._buckets: tuple[deque[Element], ...] = tuple(deque() for _ in sizes)
        self._arrivals = itertools.count()

    def __len__(self) -> int:
        return sum(map(len, self._buckets))

    def put(self, source: deque[Element], count: int) -> None:
        """See `Elements`."""
        for _ in range(count):
            bucket = self._buckets[int(source[0][0])]
            bucket.extend(zip(self._arrivals, map(deque.popleft, (source,)), strict=False))

    def take(self, target: deque[Element], count: int) -> None:
        """See `Elements`."""
        for _ in range(count):
            oldest = min((b for b in self._buckets if b), key=lambda bucket: bucket[0])
            target.extend(map(deque.popleft, (oldest,)))

    def take_batch(self, target: deque[Element], is_less_enough: bool) -> bool:
        """Move the batch that was the first to be whole to a target; whether there is one.

        Args:
            target: where to.
            is_less_enough: whether those are a batch that are in a bucket, if none is whole.
        """
        whole = [
            (bucket[size - 1][0], bucket, size)
            for bucket, size in zip(self._buckets, self._sizes, strict=True)
            if len(bucket) >= size
        ]
        if not whole and is_less_enough:
            whole = [(bucket[0][0], bucket, len(bucket)) for bucket in self._buckets if bucket]
        if not whole:
            return False
        _, bucket, size = min(whole, key=lambda found: found[0])
        target.extend(map(deque.popleft, repeat(bucket, size)))
        return True

    def put_back(self, taken: deque[Element]) -> None:
        """See `Elements`."""
        while taken:
            bucket = self._buckets[int(self.components(taken[-1])[0])]
            bucket.extendleft(map(deque.pop, (taken,)))

    def components(self, taken: Element) -> Element:
        """See `Elements`."""
        return taken[1]  # type: ignore[no-any-return]

    def clear(self) -> None:
        """See `Elements`."""
        for bucket in self._buckets:
            bucket.clear()


class ByPriority:
    """The one whose first component is the least goes next; of equals the one that came first."""

    def __init__(self) -> None:
        self._heap: list[Element] = []
        self._arrivals = itertools.count()

    def __len__(self) -> int:
        return len(self._heap)

    def put(self, source: deque[Element], count: int) -> None:
        """See `Elements`."""
        entries = [
            (int(element[0]), next(self._arrivals), element) for element in islice(source, count)
        ]
        pushed = map(heapq.heappush, repeat(self._heap), entries)
        _exhaust(zip(pushed, map(deque.popleft, repeat(source)), strict=False))

    def take(self, target: deque[Element], count: int) -> None:
        """See `Elements`."""
        target.extend(map(heapq.heappop, repeat(self._heap, count)))

    def put_back(self, taken: deque[Element]) -> None:
        """See `Elements`."""
        _exhaust(
            map(heapq.heappush, repeat(self._heap), map(deque.popleft, repeat(taken, len(taken))))
        )

    def components(self, taken: Element) -> Element:
        """See `Elements`."""
        return taken[2]  # type: ignore[no-any-return]

    def clear(self) -> None:
        """See `Elements`."""
        self._heap.clear()


def _exhaust(iterator: Iterable[Any]) -> None:
    """Go through an iterator, in one call."""
    deque(iterator, maxlen=0)


class Reading(NamedTuple):
    """How a queue has been used until a moment.

    Attributes:
        put: how many elements were put in.
        taken: how many were taken out.
        fill: how many are in it.
        waited_for_room: for how many seconds somebody waited to put something in, until an element
            was asked for last.
        waited_for_elements: for how many seconds somebody waited to take something out.
        seconds: how long elements have been asked for, from the first time to the last.
        awaited_since: since when somebody has been waiting to take something out, on the clock of
            `time.monotonic`; None if nobody is.
        is_closed: whether it admits no more.
    """

    put: int
    taken: int
    fill: int
    waited_for_room: float
    waited_for_elements: float
    seconds: float
    awaited_since: float | None
    is_closed: bool


class Queue(WaitingResource):
    """Elements, and those who wait to put some in or to take some out.

    Args:
        kind: the name of its kind of resource.
        name: what errors call it.
        attributes: those of the operation that owns it.
        elements: what holds them.
        reserve: how many elements stay in it until it is closed, so that there is a choice.
        stack: makes the values of one component of several elements one array.

    Attributes:
        is_closed: whether it admits no more elements.
    """

    def __init__(
        self,
        kind: str,
        name: str,
        attributes: Mapping[str, Any],
        elements: Elements,
        reserve: int = 0,
        stack: Callable[[Sequence[Any], DType, Shape], Any] | None = None,
    ) -> None:
        super().__init__(lines=2)
        self.kind = kind
        self.name = name
        self.elements = elements
        self.reserve = reserve
        self.is_closed = False
        self.failure: OpError | None = None
        self.capacity: int = attributes["capacity"]
        self.dtypes: tuple[DType, ...] = attributes["dtypes"]
        self.shapes: tuple[Shape, ...] = attributes["shapes"]
        self._batches = [Shape([None]).concatenate(shape) for shape in self.shapes]
        self._stack = stack or stacked
        self._attributes = attributes
        self._putting, self._taking = self._lines
        self._put = 0
        self._dropped = 0

    # What operations do

    def enqueue(self, call: AsyncContext, components: Sequence[Any]) -> None:
        """Put in one element."""
        self._check(components, self.shapes)
        element = tuple([np.array(value) for value in components])
        self._join(_Enqueue(call, self, (element,)), self._putting)

    def enqueue_many(self, call: AsyncContext, components: Sequence[Any]) -> None:
        """Put in one element for each row of the components."""
        self._check(components, self._batches)
        lengths = {len(value) for value in components}
        if len(lengths) > 1:
            raise InvalidArgumentError(
                f"the components have {_listed(sorted(lengths))} rows, and each element takes one "
                "row of each"
            )
        elements = zip(*map(rows_of, components), strict=True)
        self._join(_Enqueue(call, self, elements), self._putting)

    def dequeue(self, call: AsyncContext) -> None:
        """Take out one element."""
        self._join(_Dequeue(call, self), self._taking)

    def dequeue_many(self, call: AsyncContext, n: Any, is_less_enough: bool) -> None:
        """Take out `n` elements as a batch, or, once it is closed, those that are left."""
        if n < 0:
            raise InvalidArgumentError(f"a batch has no fewer than 0 elements, and not {n}")
        self._join(_DequeueMany(call, self, int(n), is_less_enough), self._taking)

    def close(self, call: AsyncContext, cancel_pending_enqueues: bool) -> None:
        """Admit no more elements; doing so twice is harmless."""
        self._join(_Close(call, self, cancel_pending_enqueues), self._putting)

    def shut(self, is_cancelling: bool, failure: OpError | None = None) -> None:
        """Close it from outside of any step.

        Args:
            is_cancelling: whether those who wait to put something in are given up.
            failure: why nothing will come, if that is an error.
        """
        with self._lock:
            self.failure = failure
            self.stop_admitting(is_cancelling)
            self._serve()
        self._report()

    def size(self) -> Any:
        """How many elements there are."""
        return np.int32(len(self.elements))

    def reading(self) -> Reading:
        """How it has been used until now."""
        with self._lock:
            fill, taking = len(self.elements), self._taking
            end = taking.last if taking.since is None else time.monotonic()
            return Reading(
                put=self._put,
                # What was taken and put back was not taken.
                taken=self._put - self._dropped - fill,
                fill=fill,
                # A full queue that nobody takes from says nothing.
                waited_for_room=_waited(self._putting, end),
                waited_for_elements=_waited(taking, end),
                seconds=end - taking.first if taking.first is not None else 0.0,
                awaited_since=taking.since,
                is_closed=self.is_closed,
            )

    # Sharing

    is_initialized = False

    def adopt(self, definition: Definition) -> str | None:
        """Be what another operation owns, if it says the same; else what differs."""
        if definition.kind != self.kind:
            return f"a {self.kind}, not a {definition.kind}"
        given = definition.attributes
        differing = [
            f"{key} {_shown(self._attributes[key])}, not {_shown(given[key])}"
            for key in self._attributes
            if key not in _OWN and not same_value(self._attributes[key], given[key])
        ]
        return f"a {self.kind} of {' and '.join(differing)}" if differing else None

    def forget(self) -> None:
        """Drop all elements."""
        with self._lock:
            self._dropped += len(self.elements)
            self.elements.clear()
            self._serve()
        self._report()

    def start_over(self) -> None:
        """Be open, and hold nothing."""
        with self._lock:
            self.is_closed, self.failure = False, None
        self.forget()

    # What attempts ask

    def put(self, source: deque[Element], count: int) -> None:
        """Take in the first elements of a source."""
        self.elements.put(source, count)
        self._put += count

    @property
    def room(self) -> float:
        """How many more elements it takes."""
        return self.capacity - len(self.elements) if self.capacity >= 0 else math.inf

    @property
    def available(self) -> int:
        """How many elements may be taken out."""
        return len(self.elements) - (0 if self.is_closed else self.reserve)

    def stop_admitting(self, is_cancelling: bool) -> None:
        """Be closed from now on. Called under the lock, as `room` and `available` are."""
        self.is_closed = True
        if is_cancelling:
            for waiting in self._putting:
                waiting.end(self.closed())

    def values_of(self, taken: Element) -> Element:
        """The values of one element, as operations give them."""
        return self.elements.components(taken)

    def batch_of(self, taken: Sequence[Element]) -> Element:
        """The values of several elements, as a batch of each component."""
        elements = [self.elements.components(each) for each in taken]
        columns = zip(*elements, strict=True) if elements else repeat((), len(self.dtypes))
        return tuple(
            [
                self._stack(column, dtype, shape)
                for column, dtype, shape in zip(columns, self.dtypes, self.shapes, strict=True)
            ]
        )

    def closed(self) -> OpError:
        """The error of an operation that would put something in when it is closed."""
        return CancelledError(f"queue {self.name!r} is closed")

    def described(self) -> str:
        """What is told of it to who waits."""
        room = f" of {self.capacity}" if self.capacity >= 0 else ""
        return f"queue {self.name!r}, which has {len(self.elements)}{room} elements"

    def drained(self, requested: int) -> OpError:
        """The error of an operation that would take out what will not come."""
        if self.failure is not None:
            return _passed_on(self.failure, self.name)
        return OutOfRangeError(
            f"queue {self.name!r} is closed and has insufficient elements "
            f"(requested {requested}, current size {len(self.elements)})"
        )

    def _check(self, components: Sequence[Any], shapes: Sequence[Shape]) -> None:
        for place, (value, shape) in enumerate(zip(components, shapes, strict=True)):
            if shape.dims != value.shape and not shape.is_compatible_with(value.shape):
                raise InvalidArgumentError(
                    f"component {place} is of shape {list(value.shape)}, and queue {self.name!r} "
                    f"takes {shape}"
                )


class SourceQueue(Queue):
    """A queue of what a source gives, one after the other, which a checkpoint keeps the place of.

    Args:
        name: what errors call it.
        attributes: those of the operation that owns it.
    """

    def __init__(self, name: str, attributes: Mapping[str, Any]) -> None:
        super().__init__(FIFO_QUEUE.name, name, attributes, InOrder())
        # How many more had been taken than were taken of it, and how many of these come again.
        self._before = 0
        self._again = 0

    def put(self, source: deque[Element], count: int) -> None:
        """See `Queue`; what was taken before is left out."""
        again = min(self._again, count)
        _exhaust(map(deque.popleft, repeat(source, again)))
        self._again -= again
        super().put(source, count - again)

    def state(self) -> Any:
        """How many elements have been taken."""
        with self._lock:
            return self._before + self._taken

    def set_state(self, state: Any) -> None:
        """Go on behind so many elements of the source, which begins with the first."""
        taken = operator.index(state)
        if taken < 0:
            raise ValueError(f"{taken} elements cannot have been taken")
        with self._lock:
            self._before, self._again = taken - self._taken, taken

    def start_over(self) -> None:
        """See `Queue`."""
        super().start_over()
        self.set_state(0)

    @property
    def _taken(self) -> int:
        return self._put - self._dropped - len(self.elements)


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
        super().__init__(BUCKET_QUEUE.name, name, attributes, elements, stack=_padded)

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


def _waited(line: Line, end: float) -> float:
    return line.waited + (max(0.0, end - line.since) if line.since is not None else 0.0)


class SavedQueue(Queue):
    """A queue of scalars that belongs to a checkpoint: those that nobody has taken, in order.

    What waits to be put in counts as being in it. Whether it is closed is no part of its state: who
    fills it finds that there is no more.

    Args:
        name: what errors call it.
        attributes: those of the operation that owns it.
    """

    elements: InOrder

    def __init__(self, name: str, attributes: Mapping[str, Any]) -> None:
        super().__init__(SAVED_QUEUE.name, name, attributes, InOrder())

    def state(self) -> Any:
        """The scalars."""
        with self._lock:
            taken, coming = (chain.from_iterable(map(_held_by, line)) for line in self._lines[::-1])
            values = [value for (value,) in chain(taken, self.elements, coming)]
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
            for line in self._lines:
                for waiting in line:
                    _held_by(waiting).clear()
            # What it holds instead was neither put in nor taken out.
            self._dropped += len(self.elements) - len(elements)
            self.elements.clear()
            self.elements.put(elements, len(elements))
            self._serve()
        self._report()


def _held_by(waiting: Attempt) -> deque[Element]:
    """The elements that are with who waits at a queue, and not in it."""
    if isinstance(waiting, _Enqueue):
        return waiting._elements
    return waiting._taken if isinstance(waiting, _Dequeue | _DequeueMany) else deque()


# What two operations that share a queue may have of their own.
_OWN = ("names", "seed", "graph_seed")


class _Enqueue(Attempt):
    """Puts in elements, as many at a time as there is room for."""

    __slots__ = ("_elements", "_queue")

    def __init__(self, call: AsyncContext, queue: Queue, elements: Iterable[Element]) -> None:
        super().__init__(call)
        self._queue = queue
        self._elements = deque(elements)

    def arrive(self) -> None:
        if self._queue.is_closed:
            self.end(self._queue.closed())

    def advance(self) -> bool:
        queue, elements = self._queue, self._elements
        count = min(queue.room, len(elements))
        if count < len(elements) and not self.call.is_patient:
            return False
        if count > 0:
            queue.put(elements, int(count))
        return count > 0 if elements else self.end()

    def is_done(self) -> bool:
        return not self._elements

    def wish(self) -> str:
        left = len(self._elements)
        what = "its element" if left == 1 else f"{left} elements"
        return f"waits for room in {self._queue.described()} for {what}"


class _Dequeue(Attempt):
    """Takes out one element."""

    __slots__ = ("_queue", "_taken")

    def __init__(self, call: AsyncContext, queue: Queue) -> None:
        super().__init__(call)
        self._queue = queue
        self._taken: deque[Element] = deque()

    def advance(self) -> bool:
        queue = self._queue
        if queue.available > 0:
            queue.elements.take(self._taken, 1)
            return self.end()
        return self.end(queue.drained(1)) if queue.is_closed else False

    def undo(self) -> None:
        self._queue.elements.put_back(self._taken)

    def outputs(self) -> Element:
        return self._queue.values_of(self._taken[0])

    def wish(self) -> str:
        return f"waits for an element of {self._queue.described()}"


class _DequeueMany(Attempt):
    """Takes out elements as they come, until they are a batch."""

    __slots__ = ("_count", "_is_less_enough", "_queue", "_taken")

    def __init__(self, call: AsyncContext, queue: Queue, count: int, is_less_enough: bool) -> None:
        super().__init__(call)
        self._queue = queue
        self._count = count
        self._is_less_enough = is_less_enough
        self._taken: deque[Element] = deque()

    def advance(self) -> bool:
        queue, taken = self._queue, self._taken
        count = min(queue.available, self._count - len(taken))
        if count > 0:
            queue.elements.take(taken, count)
        if len(taken) == self._count:
            return self.end()
        if count > 0 or not queue.is_closed:
            return count > 0
        if taken and self._is_less_enough:
            return self.end()
        self.undo()
        return self.end(queue.drained(self._count))

    def undo(self) -> None:
        self._queue.elements.put_back(self._taken)

    def outputs(self) -> Element:
        return self._queue.batch_of(self._taken)

    def wish(self) -> str:
        left = self._count - len(self._taken)
        more = "more " if self._taken else ""
        return f"waits for {left} {more}elements of {self._queue.described()}"


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


class _Close(Attempt):
    """Closes the queue, whoever waits there."""

    __slots__ = ("_is_cancelling", "_queue")

    def __init__(self, call: AsyncContext, queue: Queue, is_cancelling: bool) -> None:
        super().__init__(call)
        self._queue = queue
        self._is_cancelling = is_cancelling

    def arrive(self) -> None:
        self._queue.stop_admitting(self._is_cancelling)
        self.end()

    def advance(self) -> bool:
        return False

    def wish(self) -> str:
        return f"closes {self._queue.described()}"


def rows_of(array: Any) -> list[Any]:
    """The rows of an array, each with memory of its own."""
    if array.ndim == 1 and array.dtype != object:
        return list(array)  # Scalars.
    return [array[place, ...].copy() for place in range(len(array))]


def stacked(column: Sequence[Any], dtype: DType, shape: Shape) -> Any:
    """The values of a component, which are all of its shape, as one array."""
    assert shape.dims is not None
    batch: Any = np.empty((len(column), *shape.dims), dtype.numpy)
    for place, value in enumerate(column):
        batch[place, ...] = value
    return batch


def _padded(column: Sequence[Any], dtype: DType, shape: Shape) -> Any:
    """The values of a component, each filled up with zeros to the largest, as one array."""
    known = [dim or 0 for dim in shape]
    dims = np.max([known, *[value.shape for value in column]], axis=0, initial=0)
    filling = b"" if dtype is string else dtype.numpy.type()
    batch: Any = np.full((len(column), *map(int, dims)), filling, dtype.numpy)
    for place, value in enumerate(column):
        batch[(place, ..., *map(slice, value.shape))] = value
    return batch


def _passed_on(failure: OpError, name: str) -> OpError:
    """The error of who waits for what will not come, as its runner failed."""
    error = type(failure)(
        f"the runner of queue {name!r} failed: {failure.message}", hint=failure.hint
    )
    error.details += failure.details
    return error


def _listed(items: Iterable[Any]) -> str:
    return " and ".join(map(str, items))


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_shown, value))}]"
    return getattr(value, "name", None) or str(value)


@makes(FIFO_QUEUE)
def _fifo_queue(birth: Birth) -> Queue:
    name, attributes = birth.key.name, birth.attributes
    if "source" in attributes:
        return SourceQueue(name, attributes)
    return Queue(FIFO_QUEUE.name, name, attributes, InOrder())


@makes(SAVED_QUEUE)
def _saved_queue(birth: Birth) -> Queue:
    return SavedQueue(birth.key.name, birth.attributes)


@makes(PADDING_FIFO_QUEUE)
def _padding_fifo_queue(birth: Birth) -> Queue:
    name = birth.key.name
    return Queue(PADDING_FIFO_QUEUE.name, name, birth.attributes, InOrder(), stack=_padded)


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
