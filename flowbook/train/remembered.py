"""Variables that an idiom makes once and finds again: slots, averages, counters.

An optimizer may outlive the notebook cell in which it is applied. When that cell runs again, what
it does not build again is retired; so what was made in an earlier execution of the cell is built
anew, which gives the same operations, and keeps their values.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from flowbook.graph.model.origin import site as sites
from flowbook.graph.ops.state.variables import Variable


def is_current(variable: Variable) -> bool:
    """Whether a variable is in its graph, and stays there when the running cell ends."""
    author = sites.capture().author
    takes_over = author is not None and author.may_take(variable.op.site.author)
    return not variable.op.retired and not takes_over


class Remembered:
    """Variables by what they are for, in the order in which they were made.

    What was retired is forgotten, so that what it kept alive can go.
    """

    def __init__(self) -> None:
        self._made: dict[Hashable, Variable] = {}
        self._retirements = 0

    def find(self, key: Hashable) -> Variable | None:
        """The variable, if it was made."""
        return self._made.get(key)

    def get(self, key: Hashable, build: Callable[[], Variable]) -> Variable:
        """The variable, built if it has to be."""
        found = self._made.get(key)
        if found is None or not is_current(found):
            found = self._made[key] = build()
            if found.graph.retirements != self._retirements:
                self._retirements = found.graph.retirements
                self._made = {k: v for k, v in self._made.items() if not v.op.retired}
        return found

    def items(self) -> list[tuple[Hashable, Variable]]:
        """All that were made, with their keys."""
        return list(self._made.items())
