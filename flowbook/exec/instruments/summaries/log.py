"""A log directory: summaries in files that TensorBoard reads, and `fb.summary.follow`.

What runs give is taken down in memory and written by a thread of its own, so that a step never
waits for a disk. Every few seconds all that was taken is written in whole records: a crash loses at
most what came since.
"""

from __future__ import annotations

import itertools
import os
import socket
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path

from flowbook.exec.files.framing import record
from flowbook.exec.instruments.summaries import tensorboard
from flowbook.exec.instruments.summaries.event import Summary
from flowbook.graph.building.graph import Graph
from flowbook.graph.model.errors import FailedPreconditionError, InvalidArgumentError

__all__ = ["LogDirectory"]

# Beyond so many bytes waiting, whoever adds more writes first.
_MOST_WAITING = 1 << 26

_serial = itertools.count()

_logs: weakref.WeakSet[LogDirectory] = weakref.WeakSet()


def write_waiting(path: str) -> None:
    """Write what this process has taken for logs in a directory: whoever reads it is to see it."""
    folder = Path(path).resolve()
    for log in list(_logs):
        if folder.is_relative_to(log.folder) or log.folder.is_relative_to(folder):
            log.write()


class LogDirectory:
    """A sink that writes a log directory; each run has a folder of its own in it.

    Args:
        path: the directory; it is made if need be.
        flush_seconds: how often what was taken is written. A crash loses no more than that.

    Attributes:
        folder: where it is, whatever links lead there.

    Raises:
        UnimplementedError: if tensorboard is not installed.
        OSError: if the directory cannot be made.
    """

    def __init__(self, path: str, flush_seconds: float = 2.0) -> None:
        if not flush_seconds > 0:
            raise InvalidArgumentError(f"flush_seconds is greater than 0, not {flush_seconds}")
        tensorboard.protocol()
        os.makedirs(path, exist_ok=True)
        self.path = path
        self.folder = Path(path).resolve()
        self._writer = _Writer(path)
        self._stop = threading.Event()
        thread = threading.Thread(
            target=_flush_from_time_to_time,
            args=(weakref.ref(self), self._stop, flush_seconds),
            name="flowbook-log",
            daemon=True,
        )
        # Also where nobody closed it: when it is forgotten, and when the process ends.
        self._finalizer = weakref.finalize(self, _end, self._stop, self._writer)
        thread.start()
        _logs.add(self)

    def add(self, summaries: Sequence[Summary]) -> None:
        """Take what one step gave."""
        if not summaries:
            return
        self._check_open()
        run, kept = summaries[0].run, tuple(summaries)
        size = sum(s.nbytes + len(s.tag) for s in kept)
        self._writer.take(run, lambda: tensorboard.summary_event(kept), size)
        self._warn()

    def add_graph(self, run: str, graph: Graph) -> None:
        """Take the graph, unless it is there as it is."""
        self._check_open()
        self._writer.take_graph(run, graph)

    def write(self) -> None:
        """Write what was taken, on a thread that must not warn."""
        self._writer.flush()

    def flush(self) -> None:
        """Write what was taken."""
        self.write()
        self._warn()

    def close(self) -> None:
        """Write what was taken, and be done."""
        self._finalizer()
        self._warn()

    def _check_open(self) -> None:
        if not self._finalizer.alive:
            raise FailedPreconditionError(f"the log {self.path!r} is closed")

    def _warn(self) -> None:
        """Say on the caller's thread what went wrong on the log's own: a run does not fail."""
        error = self._writer.take_error()
        if error is not None:
            warnings.warn(
                f"the log {self.path!r} cannot be written; what is missing is tried again: {error}",
                stacklevel=2,
            )

    def __repr__(self) -> str:
        return f"<LogDirectory {self.path!r}>"


def _flush_from_time_to_time(
    log: weakref.ref[LogDirectory], stop: threading.Event, seconds: float
) -> None:
    while not stop.wait(seconds):
        found = log()
        if found is None:
            return
        found.write()
        del found


def _end(stop: threading.Event, writer: _Writer) -> None:
    stop.set()
    writer.flush()
    writer.close()


class _Writer:
    """What waits to be written, and the files that it goes to."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._waiting: list[tuple[str, Callable[[], bytes], int]] = []
        self._size = 0
        self._files: dict[str, _File] = {}
        self._graphs: dict[str, tuple[int, int]] = {}
        self._error: Exception | None = None
        self._has_failed = False
        self._lock = threading.Lock()
        self._writing = threading.Lock()

    def take(self, run: str, made: Callable[[], bytes], size: int) -> None:
        with self._lock:
            self._waiting.append((run, made, size))
            self._size += size
            is_much = self._size > _MOST_WAITING
        if is_much:
            self.flush()

    def take_graph(self, run: str, graph: Graph) -> None:
        version = (id(graph), graph.version)
        with self._lock:
            if self._graphs.get(run) == version:
                return
            self._graphs[run] = version
        data = tensorboard.graph_event(graph, time.time())
        self.take(run, lambda: data, len(data))

    def flush(self) -> None:
        with self._writing:
            with self._lock:
                taken, self._waiting, self._size = self._waiting, [], 0
            parts: dict[str, list[bytes]] = {}
            for run, made, _ in taken:
                parts.setdefault(run, []).append(record(made()))
            for run in parts:
                if run not in self._files:
                    self._files[run] = _File(os.path.join(self._path, run))
            for run, file in self._files.items():
                self._write(file, b"".join(parts.get(run, ())))

    def _write(self, file: _File, data: bytes) -> None:
        try:
            if file.write(data):
                self._has_failed = False
        except OSError as error:
            with self._lock:
                if not self._has_failed:
                    self._error = error
                self._has_failed = True

    def take_error(self) -> Exception | None:
        """What went wrong since it was asked last; a fault that lasts is told once."""
        with self._lock:
            error, self._error = self._error, None
        return error

    def close(self) -> None:
        with self._writing:
            for file in self._files.values():
                file.close()


class _File:
    """The event file of a run; what could not be written stays, up to a size, for the next time."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._rest = b""
        self._descriptor: int | None = None

    def write(self, data: bytes) -> bool:
        """Write data, after what could not be written before; whether there was any.

        Raises:
            OSError: if it cannot be written; nothing is lost unless too much waits.
        """
        if not data and not self._rest:
            return False
        if len(self._rest) < _MOST_WAITING:
            self._rest += data
        if self._descriptor is None:
            self._descriptor = self._open()
        while self._rest:
            written = os.write(self._descriptor, self._rest)
            self._rest = self._rest[written:]
        return True

    def _open(self) -> int:
        os.makedirs(self._folder, exist_ok=True)
        now = time.time()
        name = f"events.out.tfevents.{int(now):010d}.{socket.gethostname()}.{os.getpid()}"
        path = os.path.join(self._folder, f"{name}.{next(_serial)}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_BINARY", 0)
        descriptor = os.open(path, flags, 0o644)
        self._rest = record(tensorboard.first_event(now)) + self._rest
        return descriptor

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
