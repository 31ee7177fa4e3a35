"""What holds the elements of a queue, and makes batches of them: each kind of queue has its own.

An element is a tuple of values that the queue owns. What moves elements is one call of a C function
each time, so that an interrupt finds every element in one place.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, repeat
from typing import Any, Protocol

import numpy as np

from flowbook.graph.model.dtypes import DType, string
from flowbook.graph.model.shape import Shape

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


class Numbered(InOrder):
    """First in, first out, each with its number.

    Attributes:
        next: the number behind those of all that were taken.
    """

    def __init__(self) -> None:
        super().__init__()
        self.next: int = 0

    @property
    def first(self) -> int:
        """The least number of what is there, or will be put in."""
        return min((number for number, _ in self), default=self.next)

    def append(self, element: Element) -> None:
        """Take in one element."""
        self._elements.append(element)

    def take(self, target: deque[Element], count: int) -> None:
        """See `Elements`."""
        # What was put back is to the left, and does not count again.
        self.next = max(self.next, 1 + self._elements[-1][0])
        super().take(target, count)

    def components(self, taken: Element) -> Element:
        """See `Elements`."""
        return taken[1]  # type: ignore[no-any-return]


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
        exhaust(zip(pushed, map(deque.popleft, repeat(source)), strict=False))

    def take(self, target: deque[Element], count: int) -> None:
        """See `Elements`."""
        target.extend(map(heapq.heappop, repeat(self._heap, count)))

    def put_back(self, taken: deque[Element]) -> None:
        """See `Elements`."""
        exhaust(
            map(heapq.heappush, repeat(self._heap), map(deque.popleft, repeat(taken, len(taken))))
        )

    def components(self, taken: Element) -> Element:
        """See `Elements`."""
        return taken[2]  # type: ignore[no-any-return]

    def clear(self) -> None:
        """See `Elements`."""
        self._heap.clear()


def exhaust(iterator: Iterable[Any]) -> None:
    """Go through an iterator, in one call."""
    deque(iterator, maxlen=0)


def rows_of(array: Any) -> list[Any]:
    """The rows of an array, each with memory of its own."""
    if array.ndim > 1:
        return [row.copy() for row in array]
    if array.dtype == object:
        return [array[place, ...].copy() for place in range(len(array))]
    return list(array)  # Scalars.


def stacked(column: Sequence[Any], dtype: DType, shape: Shape) -> Any:
    """The values of a component, which are all of its shape, as one array."""
    assert shape.dims is not None
    batch: Any = np.empty((len(column), *shape.dims), dtype.numpy)
    if batch.dtype == object:
        for place, value in enumerate(column):
            batch[place, ...] = value
    elif column:
        batch[:] = column
    return batch


def padded(column: Sequence[Any], dtype: DType, shape: Shape) -> Any:
    """The values of a component, each filled up with zeros to the largest, as one array."""
    known = [dim or 0 for dim in shape]
    dims = np.max([known, *[value.shape for value in column]], axis=0, initial=0)
    filling = b"" if dtype is string else dtype.numpy.type()
    batch: Any = np.full((len(column), *map(int, dims)), filling, dtype.numpy)
    for place, value in enumerate(column):
        batch[(place, ..., *map(slice, value.shape))] = value
    return batch
