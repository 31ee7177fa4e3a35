"""A session's queues as they are shown: live where there is a notebook, static forms everywhere.

The static forms are what a notebook shows without a kernel: equal measurements give equal forms,
and they fetch nothing.
"""

from __future__ import annotations

from typing import Any

from flowbook.exec.session.session import Session
from flowbook.graph.model.errors import FailedPreconditionError, InvalidTypeError
from flowbook.widgets import front_end
from flowbook.widgets.pipelines.history import PipelineHistory
from flowbook.widgets.pipelines.payload import pipeline_payload
from flowbook.widgets.pipelines.svg import HAS_ENDED, pipeline_svg
from flowbook.widgets.summaries import growing
from flowbook.widgets.view import Page, View

__all__ = ["PipelineView"]


class PipelineView(View):
    """The queues of a session: how full each is, what goes through, who waits, and for what.

    Above them stands the answer to the question whether a training waits for its input, and if so,
    which queue runs empty and how long what fills it takes. In JupyterLab the view is live, also
    while the kernel is busy. It tells of the last minute in which something happened; from when it
    is made, it looks at the queues a few times a second. `sess.pipeline()` gives the same as data.

    Args:
        session: the session.

    Raises:
        InvalidTypeError: if it is no session.
        FailedPreconditionError: if it is closed.

    >>> import numpy as np
    >>> import flowbook as fb
    >>> x = fb.train.batches(np.arange(8), 2, prefetch=4)
    >>> sess = fb.Session()
    >>> fb.PipelineView(sess)
    No run has taken an element yet
      queue    fill  in /s  out /s  waits for room  for elements  runner
      x      0 of 4      0       0             0 %           0 %  not started
    Queues are filled from the first run on.
    """

    def __init__(self, session: Session) -> None:
        if not isinstance(session, Session):
            raise InvalidTypeError(f"{session!r:.80} has no queues: an fb.Session has")
        if session.closed:
            raise FailedPreconditionError("the session is closed")
        self._history = PipelineHistory(session)

    def _ipython_display_(self) -> None:
        live = front_end.live_form(self._live)
        growing.show(self._history, lambda: self._forms(live))

    def _live(self) -> Any:
        from flowbook.widgets.pipelines.live import LivePipeline

        return LivePipeline(self._history)

    def _page(self) -> Page:
        self._history.catch_up()
        shown = self._history.shown()
        payload = pipeline_payload(shown, HAS_ENDED if shown.has_ended else "")
        return Page("Input pipeline", pipeline_svg(shown), "renderExportedPipeline", payload)

    def _svg(self) -> str:
        self._history.catch_up()
        return pipeline_svg(self._history.shown())

    def __repr__(self) -> str:
        self._history.catch_up()
        shown = self._history.shown()
        return f"{shown.pipeline}\n{HAS_ENDED}" if shown.has_ended else str(shown.pipeline)
