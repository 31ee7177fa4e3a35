"""The live view of a session's queues: a widget that is sent what there is, also in a busy cell."""

from __future__ import annotations

import time

from flowbook.widgets.pipelines.history import EVERY, PipelineHistory
from flowbook.widgets.pipelines.payload import pipeline_payload
from flowbook.widgets.published_view import PublishedView

# Seconds for which a state is sent again where nothing is new: servers drop messages, and slow
# pages miss some.
_AGAIN = 3.0


class LivePipeline(PublishedView):
    """The queues of a session.

    Args:
        history: what it shows.
    """

    def __init__(self, history: PipelineHistory) -> None:
        self._history = history
        self._version = -1
        self._changed = self._sent = 0.0
        super().__init__("renderPipeline")

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
        self.send_open({}, self.payload_now())
