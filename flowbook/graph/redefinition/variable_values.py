"""What a graph tells those who hold its variables' values, such as sessions, and asks of them.

A graph has no values. But redefinition decides which of them live on: a variable that is built as
before keeps its operation, and with it its value; one whose value is given up all the same (see
`unnamed.py`) is listed here, and whoever holds the value drops it before the next step.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from flowbook.graph.model.operation import Operation


class Holder(Protocol):
    """What holds values of variables, such as a session."""

    def has_value(self, operation: Operation) -> bool:
        """Whether the variable of this handle operation has a value here now."""


class VariableValues:
    """Who holds values of a graph's variables, and which values have been given up.

    Attributes:
        forgets: how often a value was given up.
    """

    def __init__(self) -> None:
        self.forgets = 0
        self._holders: weakref.WeakSet[Holder] = weakref.WeakSet()
        self._forgotten: weakref.WeakKeyDictionary[Operation, int] = weakref.WeakKeyDictionary()

    def add_holder(self, holder: Holder) -> None:
        """Ask `holder` too whether a variable has a value. It is held weakly."""
        self._holders.add(holder)

    def has_value(self, operation: Operation) -> bool:
        """Whether anyone holds a value of the variable of this handle operation."""
        return any(holder.has_value(operation) for holder in list(self._holders))

    def forget(self, operation: Operation) -> None:
        """Give up the value of the variable of this handle operation, wherever it is held."""
        self.forgets += 1
        self._forgotten[operation] = self.forgets

    def forgotten_since(self, forgets: int) -> list[Operation]:
        """The handle operations whose values were given up after `forgets` stood at that number."""
        return [op for op, count in list(self._forgotten.items()) if count > forgets]
