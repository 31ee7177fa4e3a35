"""The resource behind operations that give a Python iterable's elements, one in each run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any

from flowbook.exec.interruptions import is_interruption
from flowbook.exec.resources.kinds import Birth, Lasting, makes
from flowbook.graph.model.errors import CancelledError, OpError, OutOfRangeError, UnknownError
from flowbook.graph.model.origin import site as sites
from flowbook.graph.model.touch import STREAM


class Stream(Lasting):
    """The elements that a source gives to one session, from the first on.

    Args:
        source: makes an iterable of them; is called when the first is wanted.
    """

    def __init__(self, source: Callable[[], Iterable[Any]]) -> None:
        self._source = source
        self._iterator: Iterator[Any] | None = None
        self._is_over = False
        self._turn = 0  # How often it began anew.
        self._lock = threading.Lock()

    def next(self) -> Any:
        """The next element.

        Raises:
            OutOfRangeError: if there is none.
            CancelledError: if the session has ended, or it was to begin anew meanwhile.
            UnknownError: if the iterable raises something else than Flowbook's own errors.
        """
        with self._lock:
            turn = self._turn
            try:
                found = self._next()
            finally:
                if self._is_over or turn != self._turn:
                    self._close()
        if turn != self._turn:
            raise CancelledError("it was to begin anew")
        return found

    def _next(self) -> Any:
        if self._is_over:
            raise CancelledError("its session has ended")
        try:
            if self._iterator is None:
                self._iterator = iter(self._source())
            return next(self._iterator)
        except StopIteration:
            raise OutOfRangeError("it has come to its end") from None
        except OpError:
            raise
        except Exception as error:
            if is_interruption(error):
                raise
            raise UnknownError(f"{type(error).__name__}: {error}{_place(error)}") from error

    def start_over(self) -> None:
        """Begin with the first element again."""
        self._turn += 1
        self._close_now()

    forget = start_over

    def let_go(self) -> None:
        """Close the iterator; while it makes an element, whoever waits for that does."""
        self._is_over = True
        self._close_now()

    def _close_now(self) -> None:
        """Close the iterator, unless it makes an element: then whoever waits for that does."""
        if self._lock.acquire(blocking=False):
            try:
                self._close()
            finally:
                self._lock.release()

    def _close(self) -> None:
        iterator, self._iterator = self._iterator, None
        close = getattr(iterator, "close", None)
        if close is not None:
            close()


def _place(error: Exception) -> str:
    """The line of the user's own code that raised an error; empty if there is none."""
    found: TracebackType | None = None
    traceback = error.__traceback__
    while traceback is not None:
        if sites.is_users(traceback.tb_frame.f_code.co_filename):
            found = traceback
        traceback = traceback.tb_next
    if found is None:
        return ""
    return f", raised at {sites.Site(found.tb_frame.f_code, found.tb_lasti, None)}"


@makes(STREAM)
def _stream(birth: Birth) -> Stream:
    return Stream(birth.attributes["source"])
