"""Follows a log directory that another process writes, as its files grow."""

from __future__ import annotations

import math
import os
import threading
import time
import warnings
from itertools import islice
from typing import Any

from flowbook.exec.instruments.summaries import tensorboard
from flowbook.exec.instruments.summaries.history import SummaryHistory
from flowbook.exec.instruments.summaries.log import write_waiting
from flowbook.exec.instruments.summaries.records import read_records
from flowbook.graph.model.errors import NotFoundError
from flowbook.graph.storing import files

__all__ = ["follow"]

# So many bytes of a file are read at once: a fraction of a second's work.
_SLICE = 1 << 19

# So many summaries are there at once: fewer than new objects make Python's garbage collector,
# which stops every thread, look at all that there is.
_AT_ONCE = 200


class LogFollower:
    """A log directory that is being read; `fb.summary.follow` makes it.

    Threads may read and look at the same time.

    Attributes:
        path: the directory.
        history: what was read.
        problems: what is wrong with its files, as text.
    """

    def __init__(self, path: str, history: SummaryHistory) -> None:
        self.path = path
        self.history = history
        self.problems: list[str] = []
        self._files: dict[str, _File] = {}
        self._warned = 0
        self._lock = threading.Lock()

    def poll(self, final: bool = False) -> int:
        """Read what was written since the last time, and warn of what is wrong with it.

        Args:
            final: whether nobody writes any more: what is then at the end of a file and no whole
                record is damage.

        Returns:
            How many summaries there were.
        """
        count = self.read(final)
        for problem in self.problems[self._warned :]:
            warnings.warn(problem, stacklevel=2)
        self._warned = len(self.problems)
        return count

    def read(self, final: bool = False, seconds: float = math.inf) -> int:
        """As `poll`, on a thread that must not warn, and for about so long; the rest is later's."""
        count = 0
        deadline = time.monotonic() + seconds
        write_waiting(self.path)
        with self._lock:
            for folder, names in _event_files(self.path):
                run = os.path.relpath(folder, self.path)
                for name in names:
                    path = os.path.join(folder, name)
                    file = self._files.get(path)
                    if file is None:
                        file = _File(path, run, self.history, self.problems)
                        self._files[path] = file
                    has_more = True
                    while has_more and time.monotonic() < deadline:
                        # The writer of a later file has given up the ones before.
                        found, has_more = file.read(final or name != names[-1])
                        count += found
                    if has_more:
                        return count
        return count

    def __repr__(self) -> str:
        return f"<LogFollower of {self.path!r}: {self.history!r}>"


class _File:
    """One event file, and how far it was read."""

    def __init__(self, path: str, run: str, history: SummaryHistory, problems: list[str]) -> None:
        self._path = path
        self._run = run
        self._history = history
        self._problems = problems
        self._place = 0
        self._most = _SLICE
        self._has_problem = False
        self._is_over = False

    def read(self, is_final: bool) -> tuple[int, bool]:
        """Read a slice; tell how many summaries there were, and whether there is more."""
        try:
            size = os.path.getsize(self._path)
            if size < self._place:  # Another file by the same name.
                self._place, self._is_over, self._has_problem = 0, False, False
            if self._is_over or (size == self._place and not is_final):
                return 0, False
            with open(self._path, "rb") as file:
                records = read_records(file, self._place, self._most)
        except OSError as error:
            self._note(f"cannot be read: {error}")
            return 0, False
        has_more = records.end + records.rest < size and records.damage is None
        # A record may be longer than a slice.
        self._most = _SLICE if records.end > self._place else 2 * self._most
        self._place = records.end
        count = 0
        for data in records.data:
            try:
                summaries = tensorboard.read_summaries(data, self._run)
                while some := list(islice(summaries, _AT_ONCE)):
                    self._history.add(some)
                    count += len(some)
            except ValueError as error:
                self._note(f"is damaged: {error}")
        if records.skipped:
            self._note(f"is damaged: {records.skipped} records are skipped")
        if records.damage is not None:
            self._is_over = True
            rest = size - records.end
            self._note(f"is damaged: {records.damage}; the last {rest} bytes are skipped")
        elif is_final and records.rest and not has_more:
            self._is_over = True
            self._note(f"ends in the middle of a record: its last {records.rest} bytes are skipped")
        return count, has_more

    def _note(self, what: str) -> None:
        if not self._has_problem:
            self._has_problem = True
            self._problems.append(f"the log {self._path!r} {what}")


def _event_files(path: str) -> list[tuple[str, list[str]]]:
    """The folders that hold event files, and their names, in the order of their making."""
    found = []
    for folder, _, names in os.walk(path):
        logs = sorted(name for name in names if ".tfevents." in name)
        if logs:
            found.append((folder, logs))
    return sorted(found)


def follow(path: Any, history: SummaryHistory | None = None) -> LogFollower:
    """Read a log directory, which another process may be writing.

    Args:
        path: the directory: TensorBoard's event files in it, or in folders below it, each of which
            is a run.
        history: where what is read goes; a new one by default.

    Returns:
        What has been read so far; its `poll()` reads on. A record that is not whole yet is waited
        for; one that is damaged is skipped with a warning.

    Raises:
        NotFoundError: if there is no such directory.
        UnimplementedError: if tensorboard is not installed.
    """
    follower = opened(path, SummaryHistory() if history is None else history)
    follower.poll()
    return follower


def opened(path: Any, history: SummaryHistory) -> LogFollower:
    """A log directory of which nothing has been read yet; see `follow`."""
    found = files.as_path(path)
    tensorboard.protocol()
    if not os.path.isdir(found):
        raise NotFoundError(f"there is no log directory {found!r}")
    return LogFollower(found, history)
