"""What a summary says of one step: plain data, the same for every sink and from every log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from flowbook.graph.building.graph import Graph

__all__ = ["Histogram", "Image", "Summary"]


class Histogram(NamedTuple):
    """How values are distributed.

    Attributes:
        low: the least finite value.
        high: the greatest.
        number: how many finite values there are.
        total: their sum.
        squares: the sum of their squares.
        lost: how many values were not finite.
        limits: the upper limits of buckets, ascending.
        counts: how many values lie in each.
    """

    low: float
    high: float
    number: float
    total: float
    squares: float
    lost: int
    limits: tuple[float, ...]
    counts: tuple[float, ...]


class Image(NamedTuple):
    """A picture.

    Attributes:
        height: in pixels.
        width: in pixels.
        channels: 1 (grey), 3 or 4.
        png: the contents of a PNG file.
    """

    height: int
    width: int
    channels: int
    png: bytes


class Summary(NamedTuple):
    """One value of one tag.

    Attributes:
        run: the run's id: the session's, or the folder below the log directory.
        tag: what it is called.
        kind: "scalar", "histogram", "image" or "text".
        step: the step of the training that it belongs to.
        wall_time: when, in seconds since 1970.
        value: a float, a Histogram, an Image, or a tuple of strings.
    """

    run: str
    tag: str
    kind: str
    step: int
    wall_time: float
    value: Any

    @property
    def nbytes(self) -> int:
        """About how much memory the value takes."""
        if isinstance(self.value, Histogram):
            return 64 * len(self.value.limits)
        if isinstance(self.value, Image):
            return len(self.value.png)
        if isinstance(self.value, tuple):
            return 64 + sum(map(len, self.value))
        return 64


class Sink(Protocol):
    """Where summaries go. What it has not written it keeps; it never fails the run."""

    def add(self, summaries: Sequence[Summary]) -> None:
        """Take what one step gave; called on the thread that ran it."""

    def add_graph(self, run: str, graph: Graph) -> None:
        """Take the graph whose runs are summarised."""

    def flush(self) -> None:
        """Bring what was taken to where it lasts."""

    def close(self) -> None:
        """Flush, and be done."""
