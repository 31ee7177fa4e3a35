"""The resource behind `fb.Barrier`: elements whose components come one by one, under keys."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from flowbook.exec.resources.kinds import Birth, Definition, makes
from flowbook.exec.resources.queue_elements import rows_of, stacked
from flowbook.exec.resources.waiting import Attempt, WaitingResource
from flowbook.graph.definition.async_context import AsyncContext
from flowbook.graph.model.attributes import same_attributes
from flowbook.graph.model.errors import CancelledError, InvalidArgumentError, OutOfRangeError
from flowbook.graph.model.touch import BARRIER


class Incomplete:
    """An element of which not all components are there.

    Attributes:
        number: which of all elements it is, by the arrival of its first component.
        components: those that are there, by their places.
    """

    __slots__ = ("components", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self.components: dict[int, Any] = {}


# An element that is complete: its number, its key, its components.
Complete = tuple[int, bytes, tuple[Any, ...]]


class Barrier(WaitingResource):
    """Elements under keys, which can be taken once they are complete, the oldest first.

    Args:
        name: what errors call it.
        attributes: those of the operation that owns it.
    """

    is_initialized = False

    def __init__(self, name: str, attributes: Mapping[str, Any]) -> None:
        super().__init__(lines=2)
        self.name = name
        self.incomplete: dict[bytes, Incomplete] = {}
        self.ready: list[Complete] = []
        self.is_closed = self.admits_nothing = False
        self._attributes = attributes
        self._dtypes, self._shapes = attributes["dtypes"], attributes["shapes"]
        self._numbers = itertools.count(-(2**63))
        self._changing, self._taking = self._lines

    def insert_many(self, call: AsyncContext, component: int, keys: Any, values: Any) -> None:
        """Give elements one of their components."""
        if keys.ndim != 1 or not values.ndim or len(keys) != len(values):
            raise InvalidArgumentError(
                f"keys of shape {list(keys.shape)} do not fit values of shape {list(values.shape)}"
            )
        shape = self._shapes[component]
        if not shape.is_compatible_with(values.shape[1:]):
            raise InvalidArgumentError(
                f"component {component} is of shape {list(values.shape[1:])}, and barrier "
                f"{self.name!r} takes {shape}"
            )
        rows = list(zip(keys.tolist(), rows_of(values), strict=True))
        self._join(_Insert(call, self, component, rows), self._changing)

    def take_many(self, call: AsyncContext, count: Any, allows_few: bool) -> None:
        """Take complete elements, when there are enough."""
        if count < 0:
            raise InvalidArgumentError(f"no fewer than 0 elements are taken, and not {count}")
        self._join(_Take(call, self, int(count), allows_few), self._taking)

    def close(self, call: AsyncContext, cancel_pending_enqueues: bool) -> None:
        """Admit no new keys; if asked for, no components either."""
        self._join(_Close(call, self, cancel_pending_enqueues), self._changing)

    def sizes(self) -> tuple[Any, Any]:
        """How many elements are complete, and how many are not."""
        return np.int32(len(self.ready)), np.int32(len(self.incomplete))

    def adopt(self, definition: Definition) -> str | None:
        """Be what another operation owns, if it says the same; else what it is instead."""
        if definition.kind == BARRIER.name and same_attributes(
            definition.attributes, self._attributes
        ):
            return None
        return f"another barrier, not a {definition.kind}"

    def forget(self) -> None:
        """Drop all elements."""
        with self._lock:
            self.incomplete.clear()
            self.ready.clear()

    def start_over(self) -> None:
        """Be open, and hold nothing."""
        with self._lock:
            self.is_closed = self.admits_nothing = False
        self.forget()

    # What attempts ask, under the lock

    def insert(self, component: int, rows: Sequence[tuple[bytes, Any]]) -> Exception | None:
        """Give elements one of their components, all of them or none; why not, if that is so."""
        if self.admits_nothing:
            return CancelledError(f"barrier {self.name!r} is closed")
        seen: set[bytes] = set()
        for key, _ in rows:
            element = self.incomplete.get(key)
            if element is None and self.is_closed:
                return CancelledError(f"barrier {self.name!r} is closed, and {key!r} is new")
            if key in seen or (element is not None and component in element.components):
                return InvalidArgumentError(f"{key!r} has a value for component {component}")
            seen.add(key)
        for key, value in rows:
            element = self.incomplete.get(key)
            if element is None:
                element = self.incomplete[key] = Incomplete(next(self._numbers))
            element.components[component] = value
            if len(element.components) == len(self._dtypes):
                components = tuple([element.components[i] for i in range(len(self._dtypes))])
                self.ready.append((element.number, key, components))
                del self.incomplete[key]
        self.ready.sort(key=lambda complete: complete[0])
        return None

    def put_back(self, taken: list[Complete]) -> None:
        """Have elements that were taken again."""
        self.ready.extend(taken)
        self.ready.sort(key=lambda complete: complete[0])

    def batch_of(self, taken: Sequence[Complete]) -> tuple[Any, ...]:
        """The numbers, the keys, and each component of elements."""
        keys = np.empty(len(taken), object)
        keys[:] = [key for _, key, _ in taken]
        columns = [[each[2][i] for each in taken] for i in range(len(self._dtypes))]
        values = map(stacked, columns, self._dtypes, self._shapes)
        return np.array([number for number, _, _ in taken], np.int64), keys, *values


class _Insert(Attempt):
    """Gives elements one of their components."""

    __slots__ = ("_barrier", "_component", "_rows")

    def __init__(
        self,
        call: AsyncContext,
        barrier: Barrier,
        component: int,
        rows: Sequence[tuple[bytes, Any]],
    ) -> None:
        super().__init__(call)
        self._barrier = barrier
        self._component = component
        self._rows = rows

    def advance(self) -> bool:
        return self.end(self._barrier.insert(self._component, self._rows))

    def wish(self) -> str:
        return f"inserts into barrier {self._barrier.name!r}"


class _Take(Attempt):
    """Takes complete elements, when there are enough."""

    __slots__ = ("_allows_few", "_barrier", "_count", "_taken")

    def __init__(self, call: AsyncContext, barrier: Barrier, count: int, allows_few: bool) -> None:
        super().__init__(call)
        self._barrier = barrier
        self._count = count
        self._allows_few = allows_few
        self._taken: list[Complete] = []

    def advance(self) -> bool:
        barrier, count = self._barrier, self._count
        ready = len(barrier.ready)
        is_last = barrier.is_closed and (barrier.admits_nothing or not barrier.incomplete)
        if ready < count and not is_last:
            return False
        if ready < count and not (self._allows_few and ready):
            return self.end(
                OutOfRangeError(
                    f"barrier {barrier.name!r} is closed and has insufficient elements "
                    f"(requested {count}, total size {ready})"
                )
            )
        self._taken = barrier.ready[:count]
        del barrier.ready[:count]
        return self.end()

    def undo(self) -> None:
        self._barrier.put_back(self._taken)
        self._taken = []

    def outputs(self) -> tuple[Any, ...]:
        return self._barrier.batch_of(self._taken)

    def wish(self) -> str:
        return (
            f"waits for {self._count} complete elements in barrier {self._barrier.name!r}, "
            f"which has {len(self._barrier.ready)}"
        )


class _Close(Attempt):
    """Closes the barrier."""

    __slots__ = ("_barrier", "_is_cancelling")

    def __init__(self, call: AsyncContext, barrier: Barrier, is_cancelling: bool) -> None:
        super().__init__(call)
        self._barrier = barrier
        self._is_cancelling = is_cancelling

    def advance(self) -> bool:
        self._barrier.is_closed = True
        self._barrier.admits_nothing |= self._is_cancelling
        return self.end()

    def wish(self) -> str:
        return f"closes barrier {self._barrier.name!r}"


@makes(BARRIER)
def _barrier(birth: Birth) -> Barrier:
    return Barrier(birth.key.name, birth.attributes)
