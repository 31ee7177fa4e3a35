"""The live view of summaries: a widget that is sent what is new, also while a cell runs.

The page cannot be asked whether it got a message while the kernel is busy, and servers drop
messages where a cell prints too much. So nothing is asked: whatever was sent is sent again as a
whole, as often as few bytes a second allow; where nothing is new ever more rarely, until every page
has had the time to load. Once the kernel is free, a page that missed something also asks for it.
"""

from __future__ import annotations

import math
import time
from typing import Any

import traitlets

from flowbook.widgets.published_view import PublishedView
from flowbook.widgets.summaries.payload import everything, frames
from flowbook.widgets.summaries.sources import Sources

_FRAME = 1e6  # Bytes of one message,
_AGAIN = 2e5  # and of what is sent again, in a second.
_SOONEST, _LATEST = 0.5, 60.0  # Seconds after which it may be, and no longer is,
_SHARE = 0.05  # and how much of the time it may take.


class LiveSummaries(PublishedView):
    """Charts of summaries.

    Args:
        sources: what it shows.
        options: how it is shown at first.
    """

    options = traitlets.Dict().tag(sync=True)

    def __init__(self, sources: Sources, options: dict[str, Any]) -> None:
        self._sources = sources
        self._seen = sources.unseen()
        self._version: tuple[int, ...] | None = None
        self._sequence = 0
        self._is_wanted = False  # Whether a page has asked for everything.
        self._mended = (
            -math.inf
        )  # When everything was sent last. It is again after so many seconds:
        self._pause = _SOONEST
        self._price = 0.0  # At least: see _AGAIN and _SHARE.
        super().__init__("renderSummaries", options=options)
        self.on_msg(self._hear)

    def payload_now(self) -> bytes:
        """What a page that is opened now begins with."""
        return everything(self._sources, self._said(), self._sequence)

    def publish(self) -> None:
        """Send what is new; called on the publisher's thread."""
        for source in self._sources.all:
            source.read()
        version = self._sources.version
        now = time.monotonic()
        is_new = version != self._version
        if is_new:
            self._version, self._pause = version, _SOONEST
        is_due = self._pause < _LATEST and now >= self._mended + max(self._pause, self._price)
        if is_due or self._is_wanted:
            self._is_wanted = False
            self._seen = self._sources.unseen()
            sent = self._send_news()
            self._mended, self._price = now, max(sent / _AGAIN, (time.monotonic() - now) / _SHARE)
            if not is_new:
                self._pause = 2 * max(self._pause, self._price)
        elif is_new:
            self._send_news()

    def _send_news(self) -> int:
        """Send what was not seen; return how many bytes that took."""
        news = self._sources.news(self._seen)
        self._sequence += 1
        sent = 0
        for frame in frames(self._sequence, self._sources.runs, self._said(), news, _FRAME):
            if not self.send_open({"sequence": self._sequence}, frame):
                break
            sent += len(frame)
        return sent

    def _said(self) -> list[str]:
        """What stands above the charts."""
        said = [*self._sources.problems, *self._sources.remarks]
        if self._sources.has_ended:
            said.append(self.ended("the session"))
        return said

    def _hear(self, _: Any, content: Any, __: Any) -> None:
        """A page says what it has seen; called on the kernel's thread."""
        if isinstance(content, dict) and content.get("sequence") != self._sequence:
            self._is_wanted = True
