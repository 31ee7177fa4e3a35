"""Threads for a step's further parts, kept when idle: to start one takes as long as a step.

An idle thread holds nothing of the step that it ran. One that was told to stop is not used again.
"""

from __future__ import annotations

import ctypes
import os
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import Any

from flowbook.exec.engine.abandoned import GivenUp

# So many wait for work at most.
MOST_IDLE = 32


class PartThread:
    """A thread that calls one function after the other."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[tuple[Callable[..., Any], tuple[Any, ...]]] = (
            queue.SimpleQueue()
        )
        self._lock = threading.Lock()
        self._call: object = None
        self._is_stopped = False
        # The process does not wait for a function that does not end.
        self._thread = threading.Thread(target=self._work, name="flowbook part", daemon=True)
        self._thread.start()

    def begin(
        self, call: object, function: Callable[..., None], arguments: tuple[Any, ...]
    ) -> None:
        """Call a function in the caller's context."""
        self._call = call
        self._calls.put((copy_context().run, (function, *arguments)))

    def stop(self, call: object) -> None:
        """Have a call end at the next instruction of Python's that it comes to, unless it has."""
        with self._lock:
            if self._call is not call:
                return
            self._is_stopped = True
            identifier = ctypes.c_ulong(self._thread.ident or 0)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(identifier, ctypes.py_object(GivenUp))

    def _work(self) -> None:
        # What stops a call may arrive before it has begun, or when it has ended.
        with suppress(GivenUp):
            self._call_each()

    def _call_each(self) -> None:
        while True:
            function, arguments = self._calls.get()
            function(*arguments)
            del function, arguments
            with self._lock:
                if self._is_stopped:
                    return
                self._call = None
                if len(_idle) >= MOST_IDLE:
                    return
                _idle.append(self)


_idle: list[PartThread] = []


def _forget_threads() -> None:
    """A forked process has none of its parent's threads."""
    _idle.clear()


os.register_at_fork(after_in_child=_forget_threads)


def begin(function: Callable[..., None], *arguments: Any) -> Callable[[], None]:
    """Call a function on a thread of its own, in the caller's context; what is given stops it."""
    call = object()
    try:
        thread = _idle.pop()
    except IndexError:
        thread = PartThread()
    thread.begin(call, function, arguments)
    return lambda: thread.stop(call)
