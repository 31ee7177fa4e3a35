"""Summaries as they are shown: live charts where there is a notebook, static forms everywhere.

The live view works in the page alone. The static forms are what a notebook shows without a kernel:
they are deterministic and fetch nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.widgets import front_end
from flowbook.widgets.summaries import growing
from flowbook.widgets.summaries.payload import everything
from flowbook.widgets.summaries.sources import Snapshot, Sources
from flowbook.widgets.summaries.svg import summary_svg
from flowbook.widgets.summaries.table import summary_table, title
from flowbook.widgets.view import Page, View

__all__ = ["SummaryView"]

_AXES = ("step", "relative", "time")
_SMOOTHEST = 0.99


class SummaryView(View):
    """Charts of the summaries of runs, which follow them while they train.

    What `sess.summarize(...)` returns, a history and a log directory that is followed are shown
    like this too at the end of a cell. In JupyterLab the charts are live, and work while the kernel
    is busy: smoothing, steps or time, logarithmic scales, runs to compare. Elsewhere, and without a
    kernel, they are static.

    Args:
        sources: a session that summarises, what its `summarize` returned, an
            `fb.summary.SummaryHistory`, or a log directory, which another process may be writing;
            a list of them, or a dict that names them.
        tags: show tags that contain this at first, or match it as a regular expression.
        smoothing: how much curves are smoothed at first, from 0 to 0.99. If None, live curves of
            10,000 points or more are, and lie over a faint band of their values.
        x: what lies on the horizontal axis at first: "step", "relative" (time since the run began)
            or "time".
        log: whether the vertical axes are logarithmic at first.

    Raises:
        FailedPreconditionError: if a session has summarised nothing yet.
        InvalidArgumentError: if an argument has no such value.
        NotFoundError: if there is no such log directory.

    >>> import flowbook as fb
    >>> from flowbook.exec.instruments.summaries.event import Summary
    >>> history = fb.summary.SummaryHistory()
    >>> history.add([Summary("a", "loss", "scalar", i, float(i), 1 / (i + 1)) for i in range(100)])
    >>> fb.SummaryView(history)
    1 run, 1 tag
      tag   step  last  least  greatest
      loss    99  0.01   0.01         1
    """

    def __init__(
        self,
        sources: Any,
        tags: str = "",
        smoothing: float | None = None,
        x: str = "step",
        log: bool = False,
    ) -> None:
        if x not in _AXES:
            raise InvalidArgumentError(f"x is one of {', '.join(_AXES)}, not {x!r:.80}")
        if smoothing is not None and not 0 <= smoothing <= _SMOOTHEST:
            raise InvalidArgumentError(
                f"smoothing is a number from 0 to {_SMOOTHEST}, not {smoothing!r:.80}"
            )
        self._sources = Sources(sources)
        self._options: dict[str, Any] = {
            "tags": str(tags),
            "smoothing": None if smoothing is None else float(smoothing),
            "x": x,
            "log": bool(log),
        }

    def _ipython_display_(self) -> None:
        live = front_end.live_form(self._live)
        growing.show(self._sources, lambda: self._forms(live))

    def _forms(self, live: Mapping[str, Any]) -> front_end.Forms:
        snapshot = self._sources.snapshot()  # The same for both.
        return front_end.forms(str(summary_table(snapshot)), lambda: self._svg_of(snapshot), live)

    def _live(self) -> Any:
        from flowbook.widgets.summaries.live import LiveSummaries

        return LiveSummaries(self._sources, self._options)

    def _page(self) -> Page:
        snapshot = self._sources.snapshot()
        said = [*self._sources.problems, *self._sources.remarks]
        payload = everything(self._sources, said, sequence=0)
        picture = self._svg_of(snapshot)
        return Page(title(snapshot), picture, "renderExportedSummaries", payload, self._options)

    def _svg(self) -> str:
        return self._svg_of(self._sources.snapshot())

    def _svg_of(self, snapshot: Snapshot) -> str:
        return summary_svg(snapshot, self._options["smoothing"] or 0.0, self._options["log"])

    def __repr__(self) -> str:
        return str(summary_table(self._sources.snapshot()))


def show_summaries(shown: Any) -> None:
    """Show what holds summaries: as a view of it."""
    SummaryView(shown)._ipython_display_()
