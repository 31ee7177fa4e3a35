"""Live views that are sent what is new also while a cell runs, on the publisher's thread."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import traitlets

from flowbook.widgets.live_view import LiveView
from flowbook.widgets.publisher import publisher


def _as_it_is_now(_: bytes, view: PublishedView) -> bytes:
    return view.payload_now()


class PublishedView(LiveView):
    """A live view that has turns.

    Args:
        renderer: as of `LiveView`.
        state: as of `LiveView`.

    Attributes:
        failure: why it is sent nothing more, if that is so.
    """

    # Whenever a page is opened.
    payload = traitlets.Bytes().tag(sync=True, to_json=_as_it_is_now)

    def __init__(self, renderer: str, **state: Any) -> None:
        self.failure: Exception | None = None
        self._sending = threading.Lock()
        super().__init__(renderer, **state)
        publisher.add(self)

    def payload_now(self) -> bytes:
        """What a page that is opened now begins with."""
        raise NotImplementedError

    def publish(self) -> None:
        """Send what is new; called on the publisher's thread."""
        raise NotImplementedError

    def fail(self, error: Exception) -> None:
        """Take note of why it is sent nothing more."""
        self.failure = error

    def close(self) -> None:
        """End it: the page has it no longer. May be called again, as widgets do when they go."""
        publisher.discard(self)
        with self._sending:
            super().close()

    def send_open(self, content: Mapping[str, Any], buffer: bytes) -> bool:
        """Send a message, unless it is closed; whether it was sent."""
        with self._sending:
            if self.closed:
                return False
            self.send(content, [buffer])
            return True
