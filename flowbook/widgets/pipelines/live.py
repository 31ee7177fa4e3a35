"""The live view of a session's queues: a widget that is sent what there is, also in a busy cell."""

from __future__ import annotations

import threading
import time

import traitlets

from flowbook.widgets.live_view import LiveView
from flowbook.widgets.pipelines.history import EVERY, PipelineHistory
from flowbook.widgets.pipelines.payload import pipeline_payload
from flowbook.widgets.publisher import publisher

# Seconds for which a state is sent again where nothing is new: servers drop messages, and slow
# pages miss some.
_AGAIN = 3.0


def _as_it_is_now(_: bytes, view: LivePipeline) -> bytes:
    return view.payload_now()


class LivePipeline(LiveView):
    """The queues of a session.

    Args:
        history: what it shows.

    Attributes:
        failure: why it is sent nothing more, if that is so.
    """

    # Whenever a page is opened.
    payload = traitlets.Bytes().tag(sync=True, to_json=_as_it_is_now)

    def __init__(self, history: PipelineHistory) -> None:
        self.failure: Exception | None = None
        self._history = history
        self._version = -1
        self._changed = self._sent = 0.0
        self._sending = threading.Lock()
        super().__init__("renderPipeline")
        publisher.add(self)

    def payload_now(self) -> bytes:
        """What a page that is opened now begins with."""
        history = self._history
        said = self.ended("the session") if history.has_ended else ""
        return pipeline_payload(history.shown(), said)

    def publish(self) -> None:
        """Send what is new; called on the publisher's thread."""
        now, version = time.monotonic(), self._history.version
        if version != self._version:
            self._version, self._changed = version, now
        elif now > self._changed + _AGAIN:
            return
        if now < self._sent + EVERY:
            return
        self._sent = now
        payload = self.payload_now()
        with self._sending:
            if not self.closed:
                self.send({}, [payload])

    def fail(self, error: Exception) -> None:
        """Take note of why it is sent nothing more."""
        self.failure = error

    def close(self) -> None:
        """End it: the page has it no longer. May be called again, as widgets do when they go."""
        publisher.discard(self)
        with self._sending:
            super().close()
