"""Threads that help with work which is cut into parts: `share`.

Who has the work takes parts of it too, and waits for no thread that has not begun one: on a busy
machine, where the others are late or do not come at all, it does everything itself. A helper is
started when it is first wanted, sleeps while there is nothing to do, and then holds nothing. To
call one takes a tenth of a millisecond, for the change of threads in Python: for products of
matrices there is a quicker crew (`native_crew.py`).
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any

import numpy as np

Part = Sequence[Any]


class _Job:
    """A function, those parts that nobody has begun, and how those ended that helpers had."""

    def __init__(self, function: Callable[..., object], parts: Sequence[Part]) -> None:
        self.function = function
        self.left = deque(parts)
        self.ended: SimpleQueue[BaseException | None] = SimpleQueue()

    def next(self) -> Part | None:
        """A part that is the caller's from now on; None if none is left."""
        try:
            return self.left.popleft()
        except IndexError:
            return None

    def help(self) -> None:
        """Do parts as long as there are any."""
        while (part := self.next()) is not None:
            try:
                self.function(*part)
            except BaseException as error:
                self.ended.put(error)
            else:
                self.ended.put(None)


class _Crew:
    """The helpers of this process, and the jobs that they are called to."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[_Job] = SimpleQueue()
        self._lock = Lock()
        self._size = 0

    def call(self, job: _Job, helpers: int) -> None:
        """Have so many helpers look at a job, as soon as they can."""
        if self._size < helpers:
            self._grow(helpers)
        for _ in range(min(helpers, self._size)):
            self._calls.put(job)

    def _grow(self, size: int) -> None:
        with self._lock:
            while self._size < size:
                name = f"flowbook helper {self._size}"
                try:
                    Thread(target=self._help, name=name, daemon=True).start()
                except RuntimeError:
                    return  # There can be no more: who has the work does it.
                self._size += 1

    def _help(self) -> None:
        # As in the step that has the work (`exec/devices/quiet.py`).
        np.seterr(all="ignore")
        while True:
            self._calls.get().help()


_crew = _Crew()


def _forget() -> None:
    global _crew
    _crew = _Crew()


if hasattr(os, "register_at_fork"):
    # A forked process has no helpers.
    os.register_at_fork(after_in_child=_forget)


def share(function: Callable[..., object], parts: Sequence[Part], threads: int) -> None:
    """Call a function with the arguments of each part, here and in helpers at the same time.

    Args:
        function: called from any of the threads, with NumPy's warnings off.
        parts: in the order in which they are begun.
        threads: how many may take part, this one included.

    Raises:
        BaseException: the first that a part raised, or what interrupted this thread. What is not
            begun then stays undone, while helpers may still be at what they have begun.
    """
    job = _Job(function, parts)
    own = 0
    try:
        _crew.call(job, min(threads, len(parts)) - 1)
        while (part := job.next()) is not None:
            function(*part)
            own += 1
        for _ in range(len(parts) - own):
            error = job.ended.get()
            if error is not None:
                raise error
    finally:
        job.left.clear()
