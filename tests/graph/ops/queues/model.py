"""A queue in the simplest way, to hold the others against: after every change all are asked again.

Its elements are whatever compares. It says of everybody who came what came of that.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

GIVEN_UP = "given up"
CANCELLED = "CancelledError"


def drained(requested: int, size: int) -> str:
    """What came of who would take what will not come."""
    return f"OutOfRangeError (requested {requested}, current size {size})"


def told(error: BaseException) -> str:
    """What came of who was told of an error, as the model says it."""
    sizes = re.search(r" \(requested .*\)", str(error))
    return type(error).__name__ + (sizes[0] if sizes else "")


@dataclass(eq=False)
class Wish:
    """What somebody wants of a queue.

    Attributes:
        line: where it waits.
        left: what is not yet put in.
        count: how many elements it takes.
        is_less_enough: whether those are enough that are left when the queue is closed.
        has: those that it has taken.
        result: the elements that it got, or which error; None while it waits.
    """

    line: list[Wish]
    left: list[Any] = field(default_factory=list)
    count: int = 0
    is_less_enough: bool = False
    has: list[Any] = field(default_factory=list)
    result: Any = None


class Model:
    """A queue of elements that compare.

    Args:
        capacity: how many it holds; -1 for any number.
        order: which goes next: the "first", the "last", the "least", or "any". What the model
            takes of any says how many there are, and not which.
        reserve: how many stay in it until it is closed.

    Attributes:
        elements: those that are in it, the next one first.
        wishes: those of everybody who came.
        entered: all that were put in, ever.
    """

    def __init__(self, capacity: int, order: str, reserve: int = 0) -> None:
        self.capacity = capacity
        self.order = order
        self.reserve = reserve
        self.elements: list[Any] = []
        self.is_closed = False
        self.putting: list[Wish] = []
        self.taking: list[Wish] = []
        self.wishes: list[Wish] = []
        self.entered: list[Any] = []

    @property
    def waiting(self) -> list[Wish]:
        """Those who wait."""
        return [wish for wish in self.wishes if wish.result is None]

    def put(self, elements: Sequence[Any]) -> Wish:
        """Somebody comes to put in elements."""
        wish = Wish(self.putting, left=list(elements))
        if self.is_closed:
            wish.result = CANCELLED
        else:
            self.putting.append(wish)
        return self._came(wish)

    def take(self, count: int, is_less_enough: bool = False) -> Wish:
        """Somebody comes to take out elements."""
        wish = Wish(self.taking, count=count, is_less_enough=is_less_enough)
        self.taking.append(wish)
        return self._came(wish)

    def close(self, is_cancelling: bool) -> None:
        """It admits no more."""
        self.is_closed = True
        if is_cancelling:
            for wish in list(self.putting):
                self._end(wish, CANCELLED)
        self._settle()

    def give_up(self, wish: Wish) -> None:
        """Somebody who waits does so no longer."""
        self._end(wish, GIVEN_UP)
        self._put_back(wish)
        self._settle()

    def _came(self, wish: Wish) -> Wish:
        self.wishes.append(wish)
        self._settle()
        return wish

    def _settle(self) -> None:
        while self._one_put() or self._one_take():
            pass

    def _one_put(self) -> bool:
        if not self.putting:
            return False
        first = self.putting[0]
        if not first.left:
            return self._end(first, [])
        # What was put back may be more than it holds.
        if 0 <= self.capacity <= len(self.elements):
            return False
        element = first.left.pop(0)
        self.entered.append(element)
        self.elements.insert(0 if self.order == "last" else len(self.elements), element)
        if self.order == "least":
            self.elements.sort()
        return True

    def _one_take(self) -> bool:
        if not self.taking:
            return False
        first = self.taking[0]
        wanted = first.count - len(first.has)
        if not wanted:
            return self._end(first, first.has)
        # What is there when somebody comes to take goes together, before anything is put in.
        available = len(self.elements) - (0 if self.is_closed else self.reserve)
        if available > 0:
            taken = min(available, wanted)
            first.has += self.elements[:taken]
            del self.elements[:taken]
            return True
        if not self.is_closed:
            return False
        if first.has and first.is_less_enough:
            return self._end(first, first.has)
        self._put_back(first)
        return self._end(first, drained(first.count, len(self.elements)))

    def _put_back(self, wish: Wish) -> None:
        self.elements[:0] = wish.has
        if self.order == "least":
            self.elements.sort()

    def _end(self, wish: Wish, result: Any) -> bool:
        wish.result = result
        wish.line.remove(wish)
        return True
