"""What becomes of what a notebook cell made: trained sessions, their summaries, partial runs.

It lives until its cell has run again, has ended well, and has made another in its place: a cell
that fails, or makes none any more, takes nothing away.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from flowbook.graph.model.origin.site import Site


class Lasting(Protocol):
    """What lives on between cells, as a session does, which holds values of trained variables."""

    @property
    def closed(self) -> bool:
        """Whether it has ended already."""

    @property
    def site(self) -> Site:
        """Where it was made."""

    @property
    def has_values(self) -> bool:
        """Whether anything would be lost with it."""

    def give_way(self, successor: Any) -> str:
        """End in favour of another; return what the cell's output says of it, "" for nothing."""

    def lose_cell(self) -> None:
        """Its cell was deleted: end, if running the cell again brings back all that it was."""


class Succession:
    """What one execution of a cell made, and what executions before made that lives still."""

    def __init__(self) -> None:
        self._made: list[weakref.ref[Lasting]] = []
        self._earlier: list[list[weakref.ref[Lasting]]] = []
        self._held: list[Lasting] = []
        self._notices: list[str] = []

    def add(self, lasting: Lasting, at_once: bool = False) -> None:
        """Note what the execution made.

        Args:
            lasting: what it made.
            at_once: whether it cannot stand beside the one in whose place it is made, which then
                ends now.
        """
        if at_once:
            for earlier in self._earlier:
                for old, new in _paired(_open(earlier), [lasting]):
                    old.give_way(new)
        self._made = [*_references(_open(self._made)), weakref.ref(lasting)]

    def follow(self, before: Succession) -> None:
        """Begin: what the execution before leaves is this one's to end."""
        found = [_open(each) for each in (*before._earlier, before._made)]
        self._earlier = [_references(each) for each in found if each]
        # The execution is about to give their names to others.
        self._held = [lasting for each in found for lasting in each]

    def before(self, lasting: Lasting) -> Lasting | None:
        """What will end in favour of something that the execution made, as far as one can say."""
        made = _open(self._made)
        pairs = [pair for each in reversed(self._earlier) for pair in _paired(_open(each), made)]
        return next((old for old, new in pairs if new is lasting), None)

    def say(self, notice: str) -> None:
        """Have the cell's output say something when the execution has ended."""
        self._notices.append(notice)

    def end(self, completed: bool) -> list[str]:
        """End what others have been made in place of; return what the cell's output says.

        Args:
            completed: whether the execution ended without an error.
        """
        made = _open(self._made)
        notices, self._notices = self._notices, []
        if completed:
            for earlier in self._earlier:
                notices += [old.give_way(new) for old, new in _paired(_open(earlier), made)]
        # Below an error the names may be those of new ones, which nobody wants.
        self._held = [
            each
            for each in self._held
            if not completed and made and not each.closed and each.has_values
        ]
        if self._held:
            notices.append(
                "the session that this cell made before is still open, with its values: "
                "see fb.open_sessions()"
            )
        return [notice for notice in dict.fromkeys(notices) if notice]

    def lose_cell(self) -> None:
        """The cell was deleted."""
        for each in (*self._earlier, self._made):
            for lasting in _open(each):
                lasting.lose_cell()


def _open(references: Iterable[weakref.ref[Lasting]]) -> list[Lasting]:
    found = [reference() for reference in references]
    return [each for each in found if each is not None and not each.closed]


def _references(found: Iterable[Lasting]) -> list[weakref.ref[Lasting]]:
    return [weakref.ref(each) for each in found]


def _paired(old: Sequence[Lasting], new: Sequence[Lasting]) -> list[tuple[Lasting, Lasting]]:
    """Each old one with what was made in its place: by the same line if possible, else in order."""
    pairs: list[tuple[Lasting, Lasting]] = []
    unpaired, left = list(old), list(new)
    for is_by_line in (True, False):
        for each in unpaired.copy():
            alike = [n for n in left if type(n) is type(each)]
            fitting = [n for n in alike if not is_by_line or n.site.source == each.site.source]
            if fitting:
                pairs.append((each, fitting[0]))
                unpaired.remove(each)
                left.remove(fitting[0])
    return pairs
