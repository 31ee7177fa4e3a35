"""Long work tells how far it is, to whoever shows that: layers above this one, if they are there.

Invariant: what shows it sees no more than the items as they are gone through, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Protocol, TypeVar

Item = TypeVar("Item")


class Tracker(Protocol):
    """Gives the items of a collection in order, and shows how far it is."""

    def __call__(self, items: Collection[Item], what: str) -> Iterable[Item]:
        """Go through items; `what` says what is done with them."""


def _untold(items: Collection[Item], what: str) -> Iterable[Item]:
    return items


_tracker: Tracker = _untold


def show_with(tracker: Tracker) -> None:
    """Have a tracker show all long work from now on."""
    global _tracker
    _tracker = tracker


def track(items: Collection[Item], what: str) -> Iterable[Item]:
    """The items in order, where going through them may take seconds.

    Args:
        items: what to go through.
        what: what is done, in a word or two, such as "loading".
    """
    return _tracker(items, what)
