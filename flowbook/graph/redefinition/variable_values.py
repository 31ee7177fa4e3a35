"""What a graph knows of its variables' values, and asks of those who hold them, such as sessions.

A graph has no values. But redefinition decides which of them live on: a variable that is built as
before keeps its operation, and with it its value; one whose value is given up all the same (see
`unnamed.py`) is listed here, and whoever holds the value drops it before the next step. So is what
a cell has built again as before and operations close, as a queue: closed it would be of no use to
the cells that go on with it, and it is opened. Holders report when a variable gets a value and when
it loses it, so that nobody has to ask them.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flowbook.graph.model.operation import Operation
    from flowbook.graph.model.resource_key import ResourceKey


class VariableValues:
    """Who holds values of a graph's variables, and which values have been given up.

    Attributes:
        forgets: how often a value was given up.
        renewals: how often a cell has built again what owns something that can be closed.
    """

    def __init__(self) -> None:
        self.forgets = 0
        self.renewals = 0
        self._held: weakref.WeakKeyDictionary[object, set[ResourceKey]] = (
            weakref.WeakKeyDictionary()
        )
        self._forgotten: weakref.WeakKeyDictionary[Operation, int] = weakref.WeakKeyDictionary()
        self._renewed: weakref.WeakKeyDictionary[Operation, int] = weakref.WeakKeyDictionary()

    def held_by(self, holder: object) -> set[ResourceKey]:
        """The keys of the variables whose values `holder` has, which keeps the set up to date.

        The holder is held weakly.
        """
        return self._held.setdefault(holder, set())

    def let_go(self, holder: object) -> None:
        """Note that a holder has no values any more."""
        self._held.pop(holder, None)

    def has_value(self, operation: Operation) -> bool:
        """Whether anyone holds a value of the variable of this handle operation."""
        return any(operation.key in held for held in list(self._held.values()))

    def forget(self, operation: Operation) -> None:
        """Give up the value of the variable of this handle operation, wherever it is held."""
        self.forgets += 1
        self._forgotten[operation] = self.forgets

    def forgotten_since(self, forgets: int) -> list[Operation]:
        """The handle operations whose values were given up after `forgets` stood at that number."""
        return [op for op, count in list(self._forgotten.items()) if count > forgets]

    def renew(self, operation: Operation) -> None:
        """Note that a cell has built an operation again that owns what can be closed."""
        self.renewals += 1
        self._renewed[operation] = self.renewals

    def renewed_since(self, renewals: int) -> list[Operation]:
        """The operations that were built again after `renewals` stood at that number."""
        return [op for op, count in list(self._renewed.items()) if count > renewals]
