"""The one thread that has live views send what is new, at most ten times a second.

It never prints, warns or displays: what a thread prints goes to whichever cell is current. It ends
with the last view, and begins again with the next.
"""

from __future__ import annotations

import threading
import time
from typing import Protocol

_EVERY = 0.1  # Seconds from one turn to the next,
_PAUSE = 0.05  # of which it rests for so long at least.


class Published(Protocol):
    """A live view that has turns."""

    def publish(self) -> None:
        """Send what is new."""

    def fail(self, error: Exception) -> None:
        """Take note of why there are no more turns."""


class Publisher:
    """Gives views their turns, on a thread of its own."""

    def __init__(self) -> None:
        self._views: list[Published] = []
        self._thread: threading.Thread | None = None
        # Garbage may be collected anywhere, here too, and widgets close themselves when they go.
        self._lock = threading.RLock()

    def add(self, view: Published) -> None:
        """Give a view its turns from now on."""
        with self._lock:
            self._views.append(view)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="flowbook-publisher", daemon=True
                )
                self._thread.start()

    def discard(self, view: Published) -> None:
        """Give a view no more turns; one that has none does not matter."""
        with self._lock:
            self._views = [other for other in self._views if other is not view]

    def _run(self) -> None:
        while True:
            started = time.monotonic()
            with self._lock:
                views = self._views
                if not views:
                    self._thread = None
                    return
            for view in views:
                try:
                    view.publish()
                except Exception as error:
                    # The others go on, and so does what the kernel computes.
                    self.discard(view)
                    view.fail(error)
            time.sleep(max(_PAUSE, started + _EVERY - time.monotonic()))


publisher = Publisher()
