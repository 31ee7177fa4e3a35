"""The resource behind operations that do something only so many times: how often they ran."""

from __future__ import annotations

import itertools

from flowbook.exec.resources.kinds import Birth, makes
from flowbook.graph.model.touch import COUNTER


class Counter:
    """Counts the runs of one operation in one session; safe to use from several threads."""

    __slots__ = ("_numbers",)

    def __init__(self) -> None:
        self._numbers = itertools.count()

    def next(self) -> int:
        """How often it was asked before."""
        return next(self._numbers)


@makes(COUNTER)
def _counter(birth: Birth) -> Counter:
    return Counter()
