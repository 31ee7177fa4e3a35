"""Pages of what a notebook shows, for readers without one.

A page holds the static form and fetches nothing. What is live in a notebook brings its own page,
which is live too (`GraphView.export_html`, `SummaryView.export_html`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowbook.exec.instruments.summaries.follow import LogFollower
from flowbook.exec.instruments.summaries.history import SummaryHistory
from flowbook.exec.instruments.summaries.summarizing import Summarizing
from flowbook.exec.instruments.trace import Trace
from flowbook.exec.plan.explanation import Explanation
from flowbook.graph.building.graph import Graph
from flowbook.graph.model.errors import InvalidTypeError, OpError
from flowbook.graph.storing import files
from flowbook.widgets.graphs.graph_view import GraphView
from flowbook.widgets.placements.placement_view import PlacementView
from flowbook.widgets.progress import Progress
from flowbook.widgets.shown_text import shown_text
from flowbook.widgets.summaries.summary_view import SummaryView
from flowbook.widgets.tables import table_of
from flowbook.widgets.timelines.timeline_view import TimelineView

__all__ = ["export_html"]

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ margin: 0; padding: 16px; font: 14px/1.5 system-ui, sans-serif;
  color: light-dark(#1f2328, #e6e8eb); background: light-dark(#fff, #111418); }}
table {{ border-collapse: collapse; }}
th, td {{ padding: 4px 12px; border-bottom: 1px solid light-dark(#d8dce1, #343a41); }}
pre, code {{ font: 13px/1.5 ui-monospace, monospace; }}
pre {{ white-space: pre-wrap; }}
</style>
</head>
<body>
{form}
</body>
</html>
"""

# What is shown as a view of its own.
_VIEWS: dict[type, Callable[[Any], Any]] = {
    Explanation: PlacementView,
    Graph: GraphView,
    LogFollower: SummaryView,
    SummaryHistory: SummaryView,
    Summarizing: SummaryView,
    Trace: TimelineView,
}


def export_html(shown: Any, path: Any) -> None:
    """Write what a notebook shows of something as a page, which needs no kernel and no network.

    Args:
        shown: a graph, tensor, operation, variable, session, report, list of stale operations,
            history of summaries, view, bar or error.
        path: the file, such as "loss.html". An existing one is replaced whole or not at all.

    Raises:
        InvalidTypeError: if it is nothing that Flowbook shows.
        FailedPreconditionError: if it has a live view, and the front end has not been built, or
            nothing that draws the picture is installed.
        OSError: if the file cannot be written.

    >>> import flowbook as fb, pathlib, tempfile
    >>> x = fb.placeholder(fb.float32, [None, 2], name="x")
    >>> page = pathlib.Path(tempfile.mkdtemp(), "x.html")
    >>> fb.export_html(x, page)
    >>> "Tensor <code>x:0</code>" in page.read_text()
    True
    """
    view = next((view(shown) for kind, view in _VIEWS.items() if isinstance(shown, kind)), shown)
    write = getattr(view, "export_html", None)
    if write is not None and not isinstance(shown, type):
        write(path)
        return
    page = _PAGE.format(title=shown_text(_title(shown)), form=_form(shown))
    with files.written_whole(files.as_path(path)) as file:
        file.write(page.encode())


def _title(shown: Any) -> str:
    return str(shown if isinstance(shown, OpError) else repr(shown)).partition("\n")[0][:200]


def _form(shown: Any) -> str:
    table = table_of(shown)
    if table is not None:
        return table
    if isinstance(shown, OpError):
        return f"<pre>{_lines(f'{type(shown).__name__}: {shown}')}</pre>"
    if isinstance(shown, Progress):
        return f"<pre>{_lines(repr(shown))}</pre>"
    raise InvalidTypeError(f"{shown!r:.80} is nothing that Flowbook shows")


def _lines(text: str) -> str:
    return "\n".join(shown_text(line) for line in text.split("\n"))
