"""Summaries in memory, for showing them: bounded, whatever is put in.

Of curves see `curve.py`; of histograms, images and texts every other one goes when there are too
many. The logs lose nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple

from flowbook.exec.instruments.summaries.curve import Columns, Curve, Point
from flowbook.exec.instruments.summaries.event import Summary
from flowbook.graph.building.graph import Graph
from flowbook.graph.model.errors import InvalidArgumentError, NotFoundError

__all__ = ["SummaryHistory"]

_LEAST = 100  # Points of a curve that are kept however many curves there are.


class News(NamedTuple):
    """What has changed in a series since somebody looked.

    Attributes:
        run: the run's id.
        tag: what it is called.
        kind: see `Summary`.
        start: what was known from this place on is no longer so.
        kept: of what was known before, only these places are still kept; all, if it is None.
        columns: what is kept now from `start` on.
    """

    run: str
    tag: str
    kind: str
    start: int
    kept: list[int] | None
    columns: Columns


class _Samples:
    """The histograms, images or texts of one tag."""

    def __init__(self, capacity: int, most_bytes: int) -> None:
        self._capacity = capacity
        self._most_bytes = most_bytes
        self._stride = 1
        self._count = 0
        self._kept: list[tuple[int, Summary]] = []
        self._bytes = 0

    def add(self, summary: Summary) -> None:
        kept = self._kept
        # The latest is there always; it stays if it is of the stride.
        if kept and kept[-1][0] % self._stride:
            self._bytes -= kept.pop()[1].nbytes
        kept.append((self._count, summary))
        self._count += 1
        self._bytes += summary.nbytes
        while len(kept) > 1 and (len(kept) > self._capacity or self._bytes > self._most_bytes):
            if len(kept) == 2:
                self._bytes -= kept.pop(0)[1].nbytes
                return
            self._stride *= 2
            last = len(kept) - 1
            kept[:] = [k for i, k in enumerate(kept) if i == last or not k[0] % self._stride]
            self._bytes = sum(s.nbytes for _, s in kept)

    @property
    def state(self) -> tuple[int, int]:
        """Which of them are kept, and how many it was given."""
        return self._stride, self._count

    def since(self, state: tuple[int, int]) -> tuple[int, list[int], Columns]:
        """How many it had been given in a state, which of these are kept, and what came then."""
        _, count = state
        kept = [place for place, _ in self._kept if place < count]
        new = self._kept[len(kept) :]
        given = [summary for _, summary in new]
        return (
            count,
            kept,
            Columns(
                [place for place, _ in new],
                [summary.step for summary in given],
                [summary.wall_time for summary in given],
                [summary.value for summary in given],
            ),
        )

    def points(self) -> list[Point]:
        return [Point(s.step, s.wall_time, s.value) for _, s in self._kept]


_NOTHING = (1, 0)  # The state of a series that was given nothing.


class Seen:
    """What somebody who looks at a history again and again has seen of it: nothing, at first."""

    def __init__(self) -> None:
        self.version = -1
        self.series: dict[tuple[str, str], tuple[Curve | _Samples, tuple[int, int]]] = {}


class SummaryHistory:
    """A sink that keeps summaries in memory, of any number of runs.

    Threads may add and look at the same time. A view that wants to know whether there is something
    new compares `version`.

    Args:
        points: how many points of a curve are kept at most; at least 10.
        most_points: how many points of all curves together are kept, about: where there are many
            curves each keeps fewer, but 100.
        samples: how many histograms, images or texts of one tag are kept at most.
        most_bytes: how much memory the histograms, images or texts of one tag take at most; the
            latest is kept in any case.

    Attributes:
        version: grows with everything that is added.
        remarks: what whoever looks at it is told.
        closed: whether nobody adds to it any more.

    >>> import flowbook as fb
    >>> from flowbook.exec.instruments.summaries.event import Summary
    >>> history = fb.summary.SummaryHistory(points=10)
    >>> history.add([Summary("a", "loss", "scalar", i, 0.0, 100.0 - i) for i in range(1000)])
    >>> points = history.points("loss")
    >>> (len(points) <= 10, points[0].value, points[-1].value)
    (True, 100.0, -899.0)
    """

    def __init__(
        self,
        points: int = 2000,
        samples: int = 50,
        most_bytes: int = 1 << 24,
        most_points: int = 250_000,
    ) -> None:
        if points < 10 or samples < 1 or most_bytes < 1:
            raise InvalidArgumentError(
                "a history keeps at least 10 points and 1 sample, "
                f"not {points} and {samples} of {most_bytes} bytes"
            )
        self.version = 0
        self.remarks: list[str] = []
        self.closed = False
        self._points = points
        self._most_points = most_points
        self._capacity = points  # Of each curve.
        self._samples = samples
        self._most_bytes = most_bytes
        self._series: dict[tuple[str, str], tuple[str, Curve | _Samples]] = {}
        self._names: dict[str, str] = {}
        self._lock = threading.Lock()

    def add(self, summaries: Sequence[Summary]) -> None:
        """Keep what one step gave."""
        with self._lock:
            for summary in summaries:
                key = summary.run, summary.tag
                known = self._series.get(key)
                if known is None or known[0] != summary.kind:
                    known = self._series[key] = summary.kind, self._new(summary.kind)
                series = known[1]
                if isinstance(series, Curve):
                    series.add(
                        summary.step, summary.wall_time, float(summary.value), self._capacity
                    )
                else:
                    series.add(summary)
            self.version += 1

    def _new(self, kind: str) -> Curve | _Samples:
        if kind == "scalar":
            share = self._most_points // (len(self._series) + 1)
            self._capacity = min(self._points, max(_LEAST, share))
            return Curve()
        return _Samples(self._samples, self._most_bytes)

    def add_graph(self, run: str, graph: Graph) -> None:
        """Nothing is kept: whoever shows the graph has it."""

    def flush(self) -> None:
        """Nothing is written."""

    def close(self) -> None:
        """Nobody adds to it any more; what is kept stays."""
        with self._lock:
            self.closed = True
            self.version += 1

    def remark(self, remarks: list[str]) -> None:
        """Tell whoever looks at it something beside what is kept."""
        with self._lock:
            if remarks != self.remarks:
                self.remarks = remarks
                self.version += 1

    def name_run(self, run: str, name: str) -> None:
        """Say what tells a run from the others."""
        with self._lock:
            self._names[run] = name

    def name_of(self, run: str) -> str:
        """What tells a run from the others; empty if nothing was said."""
        return self._names.get(run, "")

    @property
    def runs(self) -> list[str]:
        """The ids of the runs, in the order of their first summaries."""
        with self._lock:
            return list(dict.fromkeys(run for run, _ in self._series))

    def tags(self, run: str | None = None) -> dict[str, str]:
        """The tags, and of which kind each is: "scalar", "histogram", "image" or "text".

        Args:
            run: of which run; by default of all.
        """
        with self._lock:
            return {
                tag: kind
                for (owner, tag), (kind, _) in self._series.items()
                if run is None or owner == run
            }

    def points(self, tag: str, run: str | None = None) -> list[Point]:
        """What is kept of a tag, in the order in which it came.

        Args:
            tag: what it is called.
            run: of which run; by default of the last that has it.

        Raises:
            NotFoundError: if there is no such tag.
        """
        with self._lock:
            found = [
                series
                for (owner, name), (_, series) in self._series.items()
                if name == tag and run in (None, owner)
            ]
            if not found:
                names = sorted({name[:80] for _, name in self._series})
                raise NotFoundError(
                    f"there is no summary {tag!r:.80}" + (f" of run {run!r:.80}" if run else ""),
                    hint=f"there are {', '.join(names[:20])}" if names else "there is none yet",
                )
            return found[-1].points()

    def news(self, seen: Seen) -> list[News]:
        """What has changed since somebody looked, who from now on has seen it."""
        if seen.version == self.version:
            return []
        changed = []
        with self._lock:
            seen.version = self.version
            for key, (kind, series) in self._series.items():
                known, state = seen.series.get(key, (None, _NOTHING))
                if known is not series:
                    state = _NOTHING
                if series.state != state:
                    changed.append(News(*key, kind, *series.since(state)))
                    seen.series[key] = series, series.state
        return changed

    def __repr__(self) -> str:
        with self._lock:
            tags, runs = len(self._series), len({run for run, _ in self._series})
        return f"<SummaryHistory of {tags} tags in {runs} runs>"
