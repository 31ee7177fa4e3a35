"""The variables that the calls of a template share, while one of them builds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

# Where a call makes a variable: the scope within the call's own, the name, and how many of that
# name the call has made there before.
Place = tuple[str, str, int]


class Sharing:
    """What a call of a template knows of variables.

    Args:
        prefix: the call's name scope.
        first: the variables of the template's first call, by their places; None in that call.
        missing: gives the error for a variable that the first call did not make, by its name.
        outer: that of the call around it, if there is one: a template that is made and first called
            in another finds what the other shares.

    Attributes:
        taken: the variables that the call has made or found.
    """

    def __init__(
        self,
        prefix: str,
        first: Mapping[Place, Any] | None,
        missing: Callable[[str], Exception],
        outer: Sharing | None,
    ) -> None:
        self._prefix = prefix
        self._first = first
        self._missing = missing
        self._outer = outer
        self._counts: Counter[tuple[str, str]] = Counter()
        self.taken: dict[Place, Any] = {}

    def variable(self, prefix: str, name: str, make: Callable[[], Any]) -> Any:
        """The variable that is asked for now: a new one, or that of the first call.

        Args:
            prefix: the name scope that holds.
            name: the name that it is asked for by.
            make: gives a new one.
        """
        scope = prefix.removeprefix(self._prefix)
        place = (scope, name, self._counts[scope, name])
        self._counts[scope, name] += 1
        if self._first is not None:
            if place not in self._first:
                raise self._missing(scope + name)
            found = self._first[place]
        elif self._outer is not None:
            found = self._outer.variable(prefix, name, make)
        else:
            found = make()
        self.taken[place] = found
        return found
