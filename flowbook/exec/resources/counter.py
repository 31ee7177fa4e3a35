"""The resource behind operations that do something only so many times: how often they ran."""

from __future__ import annotations

import operator
import threading
from typing import Any

from flowbook.exec.resources.kinds import Birth, makes
from flowbook.graph.model.touch import COUNTER


class Counter:
    """Counts the runs of one operation in one session; safe to use from several threads."""

    __slots__ = ("_count", "_lock")

    def __init__(self) -> None:
        self._count = 0
        self._lock = threading.Lock()

    def next(self) -> int:
        """How often it was asked before."""
        with self._lock:
            count = self._count
            self._count = count + 1
        return count

    def state(self) -> Any:
        """How often it was asked."""
        return self._count

    def set_state(self, state: Any) -> None:
        """Go on from there; ValueError or TypeError if it is no count."""
        self._count = operator.index(state)

    def forget(self) -> None:
        """Begin afresh."""
        self._count = 0


@makes(COUNTER)
def _counter(birth: Birth) -> Counter:
    return Counter()
