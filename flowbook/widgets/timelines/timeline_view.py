"""A trace as it is shown: what ran when, live where there is a notebook, a picture everywhere.

The live view works in the page alone. The static forms are what a notebook shows without a kernel:
equal traces give equal forms, and they fetch nothing.
"""

from __future__ import annotations

from typing import Any

from flowbook.exec.instruments.trace import Trace
from flowbook.graph.model.counted import counted
from flowbook.graph.model.errors import InvalidTypeError
from flowbook.widgets.shown_text import shown_text
from flowbook.widgets.tables import table_html
from flowbook.widgets.timelines.payload import timeline_payload
from flowbook.widgets.timelines.svg import timeline_svg
from flowbook.widgets.timelines.timeline import timeline_of
from flowbook.widgets.view import Page, View

__all__ = ["TimelineView"]


class TimelineView(View):
    """A picture of what ran when: a lane for each device and thread, and for what waits.

    A trace at the end of a cell is shown like this too, below its table. A wheel, "+" and "-" zoom
    from all steps to one kernel; what is narrower than a pixel is drawn as a block of what took
    most of its time. The line before a call tells since when it was ready, and arrows lead from
    what was sent to where it was received. A click on a call tells its times, its bytes and its
    cell and line; pictures of the same graph in the page (`fb.GraphView`) select its operation,
    and what is selected in one of these stands out here. In JupyterLab the picture is live;
    elsewhere, and without a kernel, it shows the slowest step.

    Args:
        trace: what `sess.trace` gave. What is traced later is in a later picture.

    Raises:
        InvalidTypeError: if it is no trace.

    >>> import flowbook as fb
    >>> x = fb.placeholder(fb.float32, [2])
    >>> with fb.Session() as sess, sess.trace() as trace:
    ...     y = sess.run(fb.exp(x), {x: [0.0, 0.0]})
    >>> fb.TimelineView(trace)
    <TimelineView of 1 step, 1 call of kernels>
    """

    def __init__(self, trace: Trace) -> None:
        if not isinstance(trace, Trace):
            raise InvalidTypeError(f"a trace is what sess.trace gives, not {trace!r:.80}")
        self._trace = trace

    def _svg(self) -> str:
        return timeline_svg(timeline_of(self._trace))

    def _live(self) -> Any:
        from flowbook.widgets.live_view import LiveViewOfGraph

        payload = timeline_payload(timeline_of(self._trace), self._trace.sites)
        return LiveViewOfGraph("renderTimeline", self._trace.graph, payload=payload)

    def _page(self) -> Page:
        timeline = timeline_of(self._trace)
        payload = timeline_payload(timeline, self._trace.sites)
        return Page(timeline.title, timeline_svg(timeline), "renderExportedTimeline", payload)

    def __repr__(self) -> str:
        steps, calls = len(self._trace.steps), len(self._trace.calls)
        counts = f"{counted(steps, 'step')}, {counted(calls, 'call')} of kernels"
        return f"<TimelineView of {counts}>"


def show_trace(trace: Trace) -> None:
    """Show a trace: its tables, and its timeline if it has one."""
    from IPython.display import publish_display_data

    publish_display_data({"text/html": _tables_html(trace), "text/plain": str(trace.table)})
    if trace.calls:
        publish_display_data(*TimelineView(trace)._repr_mimebundle_())


def _tables_html(trace: Trace) -> str:
    """The table by operation, and those by scope and device, folded up."""
    parts = [table_html(trace.table)]
    for shares in (trace.by_scope(), trace.by_device()):
        if len(shares.shares) > 1:
            summary = f"<summary>by {shown_text(shares.of)}</summary>"
            parts.append(f"<details>{summary}{table_html(shares.first(20), '')}</details>")
    return "\n".join(parts)
