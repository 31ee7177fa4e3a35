"""Which execution of a cell a thread belongs to: the one during which it was started.

Python does not say who started a thread. But a thread that did not exist when an execution began,
and does when it builds or when the execution ends, was started in between.
"""

from __future__ import annotations

import threading
import weakref

from flowbook.graph.model.origin.author import Author


class ThreadStarters:
    """Remembers the threads that each execution found, and those that it left behind."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[Author, weakref.WeakSet[threading.Thread]] = {}
        self._starters: weakref.WeakKeyDictionary[threading.Thread, Author] = (
            weakref.WeakKeyDictionary()
        )

    def begin(self, author: Author) -> None:
        """Note which threads an execution finds."""
        with self._lock:
            self._open[author] = weakref.WeakSet(threading.enumerate())
            # Others may hold threads that have ended: a kernel does, for seconds.
            for thread in list(self._starters):
                if not thread.is_alive():
                    del self._starters[thread]

    def end(self, author: Author) -> None:
        """Note which threads it leaves behind."""
        with self._lock:
            found = self._open.pop(author)
            for thread in threading.enumerate():
                if thread not in found:
                    self._starters.setdefault(thread, author)

    def starter(self) -> Author | None:
        """The execution that the current thread was started in, if it is known."""
        thread = threading.current_thread()
        known = self._starters.get(thread)
        if known is not None:
            return known
        with self._lock:
            for author, found in reversed(self._open.items()):
                if thread not in found:
                    self._starters[thread] = author
                    return author
        return None
