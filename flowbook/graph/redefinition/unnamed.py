"""Which unnamed variables a notebook cell makes, in order.

The names "Variable", "Variable_1" say only which came first. When a cell that runs again makes one
more, one less or others, a name may mean something else than before; so its unnamed variables keep
their values only if the cell makes the same ones in the same order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flowbook.graph.model.operation import Operation
    from flowbook.graph.model.origin.author import Author


class UnnamedVariables:
    """The unnamed variables of one cell in one graph: the handle operations, in order."""

    __slots__ = ("_author", "_before", "_made", "_matches")

    def __init__(self) -> None:
        self._author: Author | None = None
        self._before: list[Operation] = []
        self._made: list[Operation] = []
        self._matches = True

    def note(self, operation: Operation, author: Author) -> list[Operation]:
        """Note that an execution made one; return those whose values have to be given up now."""
        if author is not self._author:
            if self._author is not None and author.serial < self._author.serial:
                return []  # A thread of an earlier execution that goes on.
            self._author, self._made, self._matches = author, [], True
        position = len(self._made)
        self._made.append(operation)
        if not self._before:
            return []
        if self._matches:
            self._matches = position < len(self._before) and self._before[position] is operation
            return [] if self._matches else list(self._made)
        return [operation]

    def end(self, author: Author, completed: bool) -> list[Operation]:
        """End an execution; return those whose values have to be given up."""
        made = self._made if author is self._author else []
        self._made = []
        given_up: list[Operation] = []
        if completed:
            if self._matches and len(made) < len(self._before):
                given_up = made
            self._before = made
        elif author is self._author and not (self._before and self._matches):
            self._before = made
        return given_up
