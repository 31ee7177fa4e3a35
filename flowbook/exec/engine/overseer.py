"""Who is told of steps that wait, and what is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from flowbook.graph.model.errors import OpError


class Wait(NamedTuple):
    """What waits in a step.

    Attributes:
        node: the number of the node that waits.
        wish: what for, such as "waits for an element of queue 'q'".
        since: when that began, on the clock of `time.monotonic`.
    """

    node: int
    wish: str
    since: float


class Overseer(Protocol):
    """Who is told of steps that wait."""

    def begin(self, nodes: Sequence[int]) -> None:
        """Hear which nodes wait, before the step's thread does."""

    def long(self, waits: Sequence[Wait]) -> None:
        """Hear what waits for long."""

    def endless(self, waits: Sequence[Wait], others: Sequence[Any]) -> tuple[int, OpError] | None:
        """The node and the error that the step is to fail with, if it can never go on.

        Args:
            waits: what waits, while no other step that may wait is under way in the session.
            others: what waits in the other parts of the step, all of which wait.
        """

    def waiters(self, waits: Sequence[Wait]) -> Sequence[Any]:
        """The operations that wait, as whoever has the graph names them."""

    def described(self, waits: Sequence[Wait]) -> str:
        """What is told of what waits where the step ends while it does."""
