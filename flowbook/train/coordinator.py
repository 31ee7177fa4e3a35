"""The coordinator: several threads that stop together, and of whose errors the first counts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from flowbook.graph.model.errors import (
    DeadlineExceededError,
    InvalidTypeError,
    OutOfRangeError,
)

__all__ = ["Coordinator"]

# What `sys.exc_info()` gives.
ExcInfo = tuple[type[BaseException] | None, BaseException | None, TracebackType | None]

# How often to look whether to hurry, in seconds.
_LOOK = 0.1


class Coordinator:
    """Has several threads stop together.

    Any of them asks for it, and all ask whether they should; `join` waits for them, and raises the
    first error that one of them stopped for. The end of an input (OutOfRangeError) is none.

    Args:
        clean_stop_exception_types: errors that are a reason to stop, and no failure.

    >>> import threading
    >>> import flowbook as fb
    >>> coord = fb.train.Coordinator()
    >>> def work() -> None:
    ...     with coord.stop_on_exception():
    ...         raise ValueError("no more")
    >>> thread = threading.Thread(target=work)
    >>> thread.start()
    >>> try:
    ...     coord.join([thread])
    ... except ValueError as error:
    ...     print(error)
    no more
    """

    def __init__(self, clean_stop_exception_types: Iterable[type[BaseException]] = ()) -> None:
        self._clean = (*clean_stop_exception_types, OutOfRangeError)
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._error: BaseException | None = None
        self._threads: list[threading.Thread] = []
        self._functions: list[Callable[[], Any]] = []
        self._joined = False

    def request_stop(self, ex: BaseException | ExcInfo | None = None) -> None:
        """Have all stop.

        Args:
            ex: the error that is the reason, if there is one, or what `sys.exc_info()` gives; the
                first counts. What comes after somebody has asked, comes of that.

        Raises:
            InvalidTypeError: if it is something else.
        """
        if isinstance(ex, tuple) and len(ex) == 3:
            ex = ex[1]
        if ex is not None and not isinstance(ex, BaseException):
            raise InvalidTypeError(f"the reason to stop is an exception, not {ex!r}")
        with self._lock:
            if self._stop.is_set():
                return
            if ex is not None and not isinstance(ex, self._clean):
                self._error = ex
            self._stop.set()
            functions, self._functions = self._functions, []
        for function in functions:
            function()

    def should_stop(self) -> bool:
        """Whether somebody has asked to stop."""
        return self._stop.is_set()

    def wait_for_stop(self, timeout: float | None = None) -> bool:
        """Wait until somebody asks to stop.

        Args:
            timeout: for how many seconds at most.

        Returns:
            Whether somebody has.
        """
        return self._stop.wait(timeout)

    @contextmanager
    def stop_on_exception(self) -> Iterator[None]:
        """Have all stop for what the block raises, which goes no further."""
        try:
            yield
        except Exception as error:
            self.request_stop(error)

    def call_on_stop(self, function: Callable[[], Any]) -> None:
        """Have a function called when somebody asks to stop; at once, if somebody has."""
        with self._lock:
            if not self._stop.is_set():
                self._functions.append(function)
                return
        function()

    def register_thread(self, thread: threading.Thread) -> None:
        """Have `join` wait for a thread."""
        with self._lock:
            self._threads.append(thread)

    def clear_stop(self) -> None:
        """Begin anew: nobody has asked to stop, and there was no error."""
        with self._lock:
            self._stop.clear()
            self._error = None
            self._threads.clear()
            self._joined = False

    def raise_requested_exception(self) -> None:
        """Raise the error that all stopped for, if there was one."""
        if self._error is not None:
            raise self._error

    @property
    def joined(self) -> bool:
        """Whether `join` has come to its end."""
        return self._joined

    def join(
        self,
        threads: Iterable[threading.Thread] | None = None,
        stop_grace_period_secs: float = 120.0,
        ignore_live_threads: bool = False,
    ) -> None:
        """Wait until all threads have ended, and raise the error that they stopped for.

        Args:
            threads: those to wait for besides the registered ones.
            stop_grace_period_secs: how long they may take from when they were asked to stop.
            ignore_live_threads: whether threads that run even then are no error.

        Raises:
            DeadlineExceededError: if threads run longer than they may.
        """
        with self._lock:
            waited = list(dict.fromkeys([*self._threads, *(threads or ())]))
        # Only from when they are asked to stop do they have to hurry.
        while not self._stop.is_set() and any(thread.is_alive() for thread in waited):
            for thread in waited:
                thread.join(_LOOK / len(waited))
        end = time.monotonic() + stop_grace_period_secs
        for thread in waited:
            thread.join(max(0.0, end - time.monotonic()))
        running = [thread.name for thread in waited if thread.is_alive()]
        self._joined = True
        self.raise_requested_exception()
        if running and not ignore_live_threads:
            raise DeadlineExceededError(
                f"threads still run after {stop_grace_period_secs} seconds: {', '.join(running)}"
            )
