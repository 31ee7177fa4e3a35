"""The resource behind queues: elements, and those who wait to put some in or to take some out.

The kinds of queue (`queue_kinds.py`) differ in what holds the elements (`queue_elements.py`), and
so in which of them goes next; one that pads differs in how a batch is made of elements.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from flowbook.exec.resources.kinds import Definition
from flowbook.exec.resources.queue_elements import (
    Element,
    Elements,
    rows_of,
    stacked,
)
from flowbook.exec.resources.waiting import Attempt, Line, WaitingResource, moving
from flowbook.graph.definition.async_context import AsyncContext
from flowbook.graph.model.attributes import same_value
from flowbook.graph.model.dtypes import DType
from flowbook.graph.model.errors import (
    CancelledError,
    InvalidArgumentError,
    OpError,
    OutOfRangeError,
)
from flowbook.graph.model.shape import Shape


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
        is_spent: whether that is as what fills it has come to its end.
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
        self.is_spent = False
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
        self.take_out(_Dequeue(call, self))

    def dequeue_many(self, call: AsyncContext, n: Any, is_less_enough: bool) -> None:
        """Take out `n` elements as a batch, or, once it is closed, those that are left."""
        if n < 0:
            raise InvalidArgumentError(f"a batch has no fewer than 0 elements, and not {n}")
        self.take_out(_DequeueMany(call, self, int(n), is_less_enough))

    def take_out(self, attempt: Attempt) -> None:
        """Serve who takes elements out."""
        self._join(attempt, self._taking)

    def close(self, call: AsyncContext, cancel_pending_enqueues: bool) -> None:
        """Admit no more elements; doing so twice is harmless."""
        self._join(_Close(call, self, cancel_pending_enqueues), self._putting)

    def shut(self, is_cancelling: bool, failure: OpError | None = None) -> None:
        """Close it from outside of any step.

        Args:
            is_cancelling: whether those who wait to put something in are given up; if not, what
                fills it has come to its end.
            failure: why nothing will come, if that is an error.
        """
        with self._lock:
            self.failure = failure
            self.is_spent |= not (is_cancelling or self.is_closed)
            self.stop_admitting(is_cancelling)
            self._serve()
        self._report()

    def bound(self, is_bounded: bool) -> None:
        """Have it take no more elements than its capacity, as it does at first, or any number."""
        with self._lock:
            self.capacity = self._attributes["capacity"] if is_bounded else -1
            self._serve()
        self._report()

    def let_in(self) -> None:
        """Have those who wait for room put in what they have, whatever room there is."""
        with self._lock:
            before, self.capacity = self.capacity, -1
            try:
                self._serve()
            finally:
                self.capacity = before
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
            self.is_closed, self.is_spent, self.failure = False, False, None
        self.forget()

    # What attempts ask

    def put(self, source: deque[Element], count: int) -> None:
        """Take in the first elements of a source."""
        self.elements.put(source, count)
        self._put += count

    def put_over_capacity(self, source: deque[Element]) -> None:
        """Take in all elements of a source, whatever room there is; not under the lock."""
        with self._lock:
            self.put(source, len(source))
            self._serve()
        self._report()

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
        return CancelledError(
            f"queue {self.name!r} is closed",
            hint="`sess.reset()` opens it, and in a notebook so does its cell when it runs again",
        )

    def described(self) -> str:
        """What is told of it to who waits."""
        room = f" of {self.capacity}" if self.capacity >= 0 else ""
        return f"queue {self.name!r}, which has {len(self.elements)}{room} elements"

    def drained(self, requested: int) -> OpError:
        """The error of an operation that would take out what will not come."""
        if self.failure is not None:
            return _again(self.failure)
        return OutOfRangeError(
            f"queue {self.name!r} is closed and has insufficient elements "
            f"(requested {requested}, current size {len(self.elements)})",
            hint=_ENDS if self.is_spent else None,
        )

    def _check(self, components: Sequence[Any], shapes: Sequence[Shape]) -> None:
        for place, (value, shape) in enumerate(zip(components, shapes, strict=True)):
            if shape.dims != value.shape and not shape.is_compatible_with(value.shape):
                raise InvalidArgumentError(
                    f"component {place} is of shape {list(value.shape)}, and queue {self.name!r} "
                    f"takes {shape}"
                )


def _waited(line: Line, end: float) -> float:
    return line.waited + (max(0.0, end - line.since) if line.since is not None else 0.0)


_ENDS = (
    "`fb.train.until_end(sess, fetches)` is the loop that ends with its input, which begins anew "
    "in a new session, and in a notebook when its cell runs again"
)

# What two operations that share a queue may have of their own.
_OWN = ("names", "seed", "graph_seed")


class _Enqueue(Attempt):
    """Puts in elements, as many at a time as there is room for."""

    __slots__ = ("_count", "_elements", "_queue")

    def __init__(self, call: AsyncContext, queue: Queue, elements: Iterable[Element]) -> None:
        super().__init__(call)
        self._queue = queue
        self._elements = deque(elements)
        self._count = len(self._elements)

    def arrive(self) -> None:
        if self._queue.is_closed:
            self.end(self._queue.closed())

    def advance(self) -> bool:
        queue, elements = self._queue, self._elements
        count = min(queue.room, len(elements))
        if count < len(elements) and not self.call.is_patient:
            return False
        if count > 0:
            # As what was taken elsewhere has been used then.
            with moving:
                queue.put(elements, int(count))
        return count > 0 if elements else self.end()

    def is_done(self) -> bool:
        return len(self._elements) < self._count

    def finish(self) -> None:
        self._queue.put_over_capacity(self._elements)

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
        wanted = self._count - len(taken)
        count = min(queue.available, wanted)
        # What is taken in part lets others put in more, which its coming back would put in order.
        if count < wanted and not (queue.is_closed or self.call.is_patient):
            return False
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


def _again(failure: OpError) -> OpError:
    """An error like another, which says by itself what it is about."""
    error = type(failure)(failure.message, hint=failure.hint)
    error.details += failure.details
    return error


def _listed(items: Iterable[Any]) -> str:
    return " and ".join(map(str, items))


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_shown, value))}]"
    return getattr(value, "name", None) or str(value)


def held_by(waiting: Attempt) -> deque[Element]:
    """The elements that are with who waits at a queue, and not in it."""
    if isinstance(waiting, _Enqueue):
        return waiting._elements
    return waiting._taken if isinstance(waiting, _Dequeue | _DequeueMany) else deque()
