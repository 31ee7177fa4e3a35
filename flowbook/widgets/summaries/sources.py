"""What a view of summaries looks at: sessions, histories and log directories, run by run.

Runs are numbered in the order in which they are first seen, and keep their numbers: a page colours
them by it. Threads may look at the same time; each has its own `Seen` of every source.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from flowbook.exec.instruments.summaries.curve import Columns
from flowbook.exec.instruments.summaries.follow import LogFollower, opened
from flowbook.exec.instruments.summaries.history import News, Seen, SummaryHistory
from flowbook.exec.instruments.summaries.summarizing import Summarizing
from flowbook.exec.session.session import Session
from flowbook.graph.model.errors import FailedPreconditionError, InvalidTypeError

# A directory is looked through so often at most, in seconds, and for so long at once.
_POLL_EVERY, _POLL_FOR = 0.5, 0.2
_REST = 5  # Between two looks lies so many times what the last one took;
_BACKLOG_REST = 1  # where it left something for later, so many times.
_FIRST_LOOK = 1.0  # What is not read by then comes when it is shown.


class Run(NamedTuple):
    """One run.

    Attributes:
        id: what it is called where it comes from.
        label: what it is called here.
    """

    id: str
    label: str


class Snapshot(NamedTuple):
    """What there is at a moment.

    Attributes:
        runs: by their numbers.
        curves: the points of each tag with numbers, by the number of the run; in the order in which
            tags are read.
        others: how many tags of other kinds there are.
        remarks: what is to be said beside.
    """

    runs: list[Run]
    curves: dict[str, dict[int, Columns]]
    others: Counter[str]
    remarks: list[str]


class Source:
    """Where runs come from.

    Args:
        given: a session that summarises, what `summarize` gave, a history, or a log directory that
            is followed or named by its path.
        name: what it is called; empty if it has no name.

    Attributes:
        history: its summaries.
    """

    def __init__(self, given: Any, name: str) -> None:
        self._name = name
        self._follower: LogFollower | None = None
        self._is_session = isinstance(given, Session | Summarizing)
        self._next_poll = 0.0
        if isinstance(given, str | os.PathLike):
            given = opened(given, SummaryHistory())
            given.read(seconds=_FIRST_LOOK)
        if isinstance(given, LogFollower):
            self._follower = given
        self.history = _history_of(given)

    @property
    def problems(self) -> list[str]:
        """What is wrong with its files."""
        return [] if self._follower is None else list(self._follower.problems)

    def catch_up(self) -> None:
        """Read what was written since, for a moment."""
        if self._follower is not None:
            self._follower.read(seconds=_FIRST_LOOK)

    def read(self) -> None:
        """Read what was written since, if it is time to: never for long."""
        started = time.monotonic()
        if self._follower is None or started < self._next_poll:
            return
        self._follower.read(seconds=_POLL_FOR)
        ended = time.monotonic()
        took = ended - started
        # What the kernel computes meanwhile needs its share of the processor.
        pause = _BACKLOG_REST * took if took >= _POLL_FOR else max(_POLL_EVERY, _REST * took)
        self._next_poll = ended + pause

    def label(self, run: str, number: int, runs: int) -> str:
        """What one of its runs is called.

        Args:
            run: the run's id.
            number: which of the sources this is, from 1.
            runs: how many runs it has.
        """
        if self._is_session:
            named = self.history.name_of(run)
            return f"{self._name or f'run {number}'}{named and f', {named}'}"
        if self._name:
            return self._name if runs == 1 or run == "." else f"{self._name}/{run}"
        if self._follower is not None and run == ".":
            return os.path.basename(os.path.abspath(self._follower.path))
        return run


class Sources:
    """All that a view looks at.

    Args:
        given: one source, a list of them, or a dict with their names.
    """

    def __init__(self, given: Any) -> None:
        self.all = [Source(each, name) for each, name in _named(given)]
        self._open = [source for source in self.all if not source.history.closed]
        self._numbers: dict[tuple[int, str], int] = {}
        self._lock = threading.Lock()

    @property
    def version(self) -> tuple[int, ...]:
        """Grows with everything that is added to one of them, and with every problem."""
        return tuple(n for s in self.all for n in (s.history.version, len(s.problems)))

    def catch_up(self) -> None:
        """Read what was written to log directories, for a moment."""
        for source in self.all:
            source.catch_up()

    @property
    def problems(self) -> list[str]:
        """What is wrong with their files."""
        return [problem for source in self.all for problem in source.problems]

    @property
    def remarks(self) -> list[str]:
        """What is to be said beside what they hold."""
        return list(dict.fromkeys(each for source in self.all for each in source.history.remarks))

    @property
    def has_ended(self) -> bool:
        """Whether all of them, which were open when this began to look at them, are closed."""
        return bool(self._open) and all(source.history.closed for source in self._open)

    def unseen(self) -> list[Seen]:
        """For one who has seen nothing of them yet."""
        return [Seen() for _ in self.all]

    def news(self, seen: list[Seen]) -> list[tuple[int, News]]:
        """What has changed since somebody looked: for each series the number of its run, and it."""
        found = [
            (place, news)
            for place, source in enumerate(self.all)
            for news in source.history.news(seen[place])
        ]
        with self._lock:
            return [
                (self._numbers.setdefault((place, news.run), len(self._numbers)), news)
                for place, news in found
            ]

    def snapshot(self) -> Snapshot:
        """What there is now, for pictures that stay as they are."""
        news = self.news(self.unseen())
        tags: dict[str, dict[int, Columns]] = {}
        for run, each in news:
            if each.kind == "scalar":
                tags.setdefault(each.tag, {})[run] = each.columns
        curves = {tag: dict(sorted(tags[tag].items())) for tag in sorted(tags, key=_reading_order)}
        others = Counter(kind for kind, _ in {(n.kind, n.tag) for _, n in news} if kind != "scalar")
        return Snapshot(self.runs, curves, others, self.remarks)

    @property
    def runs(self) -> list[Run]:
        """The runs seen so far, by their numbers; no two have one label."""
        with self._lock:
            keys = list(self._numbers)
        each = Counter(place for place, _ in keys)
        taken: Counter[str] = Counter()
        found = []
        for place, run in keys:
            label = self.all[place].label(run, place + 1, each[place])
            taken[label] += 1
            found.append(Run(run, label if taken[label] == 1 else f"{label} ({taken[label]})"))
        return found


def _reading_order(tag: str) -> list[tuple[bool, int, str]]:
    """What is without a prefix first; numbers by their size."""
    prefix, slash, rest = tag.partition("/")
    key: list[tuple[bool, int, str]] = []
    for part in (prefix, rest) if slash else ("", prefix):
        found = re.split(r"(\d{1,18})", part.lower())
        key += [(False, int(n), "") if n.isdecimal() else (True, 0, n) for n in found]
        key.append((False, -1, ""))
    return [*key, (True, 0, tag)]


def _named(given: Any) -> Iterable[tuple[Any, str]]:
    if isinstance(given, Mapping):
        for name in given:
            if not isinstance(name, str) or not name:
                raise InvalidTypeError(f"a run is named by a text, not {name!r:.80}")
        return [(each, name) for name, each in given.items()]
    if isinstance(given, list | tuple):
        return [(each, "") for each in given]
    return [(given, "")]


def _history_of(given: Any) -> SummaryHistory:
    if isinstance(given, SummaryHistory):
        return given
    if isinstance(given, Summarizing | LogFollower):
        return given.history
    if isinstance(given, Session):
        found = given.summary_history
        if found is None:
            raise FailedPreconditionError(
                "the session is closed" if given.closed else "the session summarises nothing yet",
                hint="show what `sess.summarize(...)` returns"
                if given.closed
                else "sess.summarize(every=10), then run what trains",
            )
        return found
    raise InvalidTypeError(
        f"{given!r:.80} has no summaries: a session, a history or a log directory has"
    )
