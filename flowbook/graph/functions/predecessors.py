"""What stands in whose place when the cell runs again that made it: functions, templates."""

from __future__ import annotations

import weakref
from typing import Generic, NamedTuple, TypeVar

from flowbook.graph.model.origin.author import Author, Cell

Made = TypeVar("Made")


class _Execution(NamedTuple, Generic[Made]):
    """What one execution of a cell has made under one name, in order.

    Attributes:
        author: the execution.
        made: what it made.
        before: what the execution before it made.
    """

    author: Author
    made: list[weakref.ref[Made]]
    before: list[weakref.ref[Made]]


class Predecessors(Generic[Made]):
    """What the executions of cells have made of one kind, held weakly."""

    def __init__(self) -> None:
        self._executions: weakref.WeakKeyDictionary[Cell, dict[str, _Execution[Made]]] = (
            weakref.WeakKeyDictionary()
        )

    def of(self, made: Made, name: str, author: Author | None) -> Made | None:
        """What an earlier execution of the same cell made in the place of something new.

        Args:
            made: what has been made.
            name: its name.
            author: the execution that made it; None outside of cells, where nothing has one.
        """
        if author is None:
            return None
        names = self._executions.setdefault(author.cell, {})
        execution = names.get(name)
        if execution is None or execution.author is not author:
            before = execution.made if execution is not None else []
            execution = names[name] = _Execution(author, [], before)
        place = len(execution.made)
        execution.made.append(weakref.ref(made))
        return execution.before[place]() if place < len(execution.before) else None
