"""Registers the forms of Flowbook's types with IPython's display formatter.

Their plain text is their `repr`. All static forms are deterministic and free of addresses, so that
notebooks can be compared with their stored outputs. Graphs and summaries have live views beside
them.
"""

from __future__ import annotations

import sys
from typing import Any

from flowbook.exec.instruments.summaries.follow import LogFollower
from flowbook.exec.instruments.summaries.history import SummaryHistory
from flowbook.exec.instruments.summaries.summarizing import Summarizing
from flowbook.exec.instruments.trace import Trace
from flowbook.exec.plan.explanation import Explanation
from flowbook.graph.building.graph import Graph
from flowbook.graph.model import long_work
from flowbook.widgets import progress, tables
from flowbook.widgets.graphs.graph_view import graph_forms
from flowbook.widgets.placements.placement_view import show_plan
from flowbook.widgets.summaries import growing
from flowbook.widgets.summaries.summary_view import show_summaries
from flowbook.widgets.timelines.timeline_view import show_trace


def install(shell: Any) -> None:
    """Have an IPython shell show Flowbook's types as tables and pictures, and long work as bars.

    Args:
        shell: the `InteractiveShell`. Installing twice changes nothing.
    """
    formatter = shell.display_formatter
    formatters = formatter.formatters
    html = formatters["text/html"]
    for kind, form in tables.FORMS.items():
        html.for_type(kind, form)
    formatter.mimebundle_formatter.for_type(Graph, graph_forms)
    for shown in (LogFollower, SummaryHistory, Summarizing):
        formatter.ipython_display_formatter.for_type(shown, show_summaries)
    formatter.ipython_display_formatter.for_type(Explanation, show_plan)
    formatter.ipython_display_formatter.for_type(Trace, show_trace)
    long_work.show_with(progress.track_long)
    if _follow not in shell.events.callbacks["post_run_cell"]:
        shell.events.register("post_run_cell", _follow)


def _follow(_: Any) -> None:
    """A cell has ended: views show what it did to their graphs and summaries, if there are any."""
    progress.close_left()
    growing.follow_all()
    live = sys.modules.get("flowbook.widgets.graphs.live")
    if live is not None:
        live.follow_all()
