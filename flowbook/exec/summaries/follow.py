"""Follows a log directory that another process writes, as its files grow."""

from __future__ import annotations

import os
import warnings
from typing import Any

from flowbook.exec.summaries import tensorboard
from flowbook.exec.summaries.event import Summary
from flowbook.exec.summaries.history import SummaryHistory
from flowbook.exec.summaries.records import read_records
from flowbook.graph import files
from flowbook.graph.errors import NotFoundError


class LogFollower:
    """A log directory that is being read; `fb.summary.follow` makes it.

    Attributes:
        path: the directory.
        history: what was read.
    """

    def __init__(self, path: str, history: SummaryHistory) -> None:
        self.path = path
        self.history = history
        self._files: dict[str, _File] = {}

    def poll(self, final: bool = False) -> int:
        """Read what was written since the last time.

        Args:
            final: whether nobody writes any more: what is then at the end of a file and no whole
                record is damage.

        Returns:
            How many summaries there were.
        """
        count = 0
        for folder, names in _event_files(self.path):
            run = os.path.relpath(folder, self.path)
            for name in names:
                path = os.path.join(folder, name)
                file = self._files.get(path)
                if file is None:
                    file = self._files[path] = _File(path, run)
                # The writer of a later file has given up the ones before.
                found = file.read(final or name != names[-1])
                count += len(found)
                self.history.add(found)
        return count

    def __repr__(self) -> str:
        return f"<LogFollower of {self.path!r}: {self.history!r}>"


class _File:
    """One event file, and how far it was read."""

    def __init__(self, path: str, run: str) -> None:
        self._path = path
        self._run = run
        self._place = 0
        self._has_warned = False
        self._is_over = False

    def read(self, is_final: bool) -> list[Summary]:
        try:
            size = os.path.getsize(self._path)
            if size < self._place:  # Another file by the same name.
                self._place, self._is_over, self._has_warned = 0, False, False
            if self._is_over or (size == self._place and not is_final):
                return []
            with open(self._path, "rb") as file:
                records = read_records(file, self._place)
        except OSError as error:
            self._warn(f"cannot be read: {error}")
            return []
        self._place = records.end
        found: list[Summary] = []
        for data in records.data:
            try:
                found += tensorboard.read_summaries(data, self._run)
            except ValueError as error:
                self._warn(f"is damaged: {error}")
        if records.skipped:
            self._warn(f"is damaged: {records.skipped} records are skipped")
        if records.damage is not None:
            self._is_over = True
            self._warn(f"is damaged: {records.damage}; the last {records.rest} bytes are skipped")
        elif is_final and records.rest:
            self._is_over = True
            self._warn(f"ends in the middle of a record: its last {records.rest} bytes are skipped")
        return found

    def _warn(self, what: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            warnings.warn(f"the log {self._path!r} {what}", stacklevel=4)


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
    found = files.as_path(path)
    tensorboard.protocol()
    if not os.path.isdir(found):
        raise NotFoundError(f"there is no log directory {found!r}")
    follower = LogFollower(found, history if history is not None else SummaryHistory())
    follower.poll()
    return follower
