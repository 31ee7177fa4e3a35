"""Plans of a run as they are shown: on the graph's picture, one or two of them, with their reasons.

The live view works in the page alone. The static forms are what a notebook shows without a kernel:
they are deterministic and fetch nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from flowbook.exec.instruments.trace import Trace
from flowbook.exec.plan.explanation import Explanation
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.widgets.graphs.flow_runs import what_ran
from flowbook.widgets.graphs.graph_view import needed_for
from flowbook.widgets.graphs.overlay import Overlay
from flowbook.widgets.graphs.payload import graph_payload
from flowbook.widgets.graphs.plan_overlay import plan_overlay
from flowbook.widgets.graphs.svg import document, graph_picture
from flowbook.widgets.packing import packed
from flowbook.widgets.placements.tables import tables_html, tables_text
from flowbook.widgets.view import Page, View

__all__ = ["PlacementView"]


class PlacementView(View):
    """A picture of which device does what in a run, and why.

    The plan that `sess.explain` gives is shown like this too at the end of a cell. Operations have
    the colours of their devices, and scopes a share of each; lines that lead to another device have
    the bytes that go over. A click tells why an operation runs where it does: when it would have
    ended on each device, and what ruled others out. Colours can also tell predicted times and
    memory. In JupyterLab the picture is live; elsewhere, and without a kernel, it is static.

    Args:
        plan: what `sess.explain` gave.
        other: another plan of the same graph, as for other devices, beside it. What is selected in
            one picture is so in the other, and what runs elsewhere is marked.
        trace: what `sess.trace` gave of the same run: what was predicted is held against what was
            measured.

    Raises:
        InvalidArgumentError: if the plans are of different graphs, or of nothing.

    >>> import flowbook as fb
    >>> x = fb.placeholder(fb.float32, [2], name="x")
    >>> with fb.Session() as sess:
    ...     here = sess.explain(fb.exp(x), {x: (2,)})
    ...     there = sess.explain(fb.exp(x), {x: (2,)}, devices=["gpu:0", "gpu:1"])
    >>> fb.PlacementView(here, there)
    <PlacementView of 2 plans of 1 and 1 operations>
    """

    def __init__(
        self, plan: Explanation, other: Explanation | None = None, trace: Trace | None = None
    ) -> None:
        plans = [plan] if other is None else [plan, other]
        for each in plans:
            if not isinstance(each, Explanation):
                raise InvalidTypeError(f"a plan is what sess.explain gives, not {each!r:.80}")
        if trace is not None and not isinstance(trace, Trace):
            raise InvalidTypeError(f"a trace is what sess.trace gives, not {trace!r:.80}")
        graph = plan.graph
        if graph is None:
            raise InvalidArgumentError("a plan that fetches nothing has no picture")
        if any(each.graph is not graph for each in plans):
            raise InvalidArgumentError("the plans are of different graphs")
        self._graph = graph
        self._plans = plans
        self._trace = trace

    @cached_property
    def _overlays(self) -> list[Overlay]:
        plan, other = self._plans[0], self._plans[-1]
        overlays = [plan_overlay(plan, other if len(self._plans) > 1 else None, self._trace)]
        # What was measured is of the devices that are here.
        return overlays if len(self._plans) == 1 else [*overlays, plan_overlay(other, plan)]

    def _ipython_display_(self) -> None:
        from IPython.display import publish_display_data

        _show_tables(self._plans, self._trace)
        publish_display_data(*self._repr_mimebundle_())

    def _live(self) -> Any:
        from flowbook.widgets.live_view import LiveViewOfGraph

        return LiveViewOfGraph("renderPlacement", self._graph, payload=self._payload())

    def _page(self) -> Page:
        title = self._overlays[0].title
        return Page(title, self._svg(), "renderExportedPlacement", self._payload())

    def _payload(self) -> bytes:
        """Each plan with the graph, as a column of bytes."""
        columns = {
            name: np.frombuffer(self._graph_payload(plan, overlay), np.uint8)
            for name, plan, overlay in zip(
                ("plan", "other"), self._plans, self._overlays, strict=False
            )
        }
        return packed({}, columns)

    def _graph_payload(self, plan: Explanation, overlay: Overlay) -> bytes:
        return graph_payload(self._graph, needed_for(self._graph, plan.fetched, plan.fed), overlay)

    def _svg(self) -> str:
        ran = what_ran(self._graph)
        pictures = [
            graph_picture(self._graph, needed_for(self._graph, plan.fetched, plan.fed), ran, each)
            for plan, each in zip(self._plans, self._overlays, strict=True)
        ]
        return document(pictures, self._overlays[0].title)

    def __repr__(self) -> str:
        counts = " and ".join(f"{len(plan.operations):,}" for plan in self._plans)
        plans = "2 plans" if len(self._plans) > 1 else "a plan"
        return f"<PlacementView of {plans} of {counts} operations>"


def show_plan(plan: Explanation) -> None:
    """Show a plan: its tables, and its picture if it is of anything."""
    if plan.graph is not None:
        PlacementView(plan)._ipython_display_()
    else:
        _show_tables([plan], None)


def _show_tables(plans: Sequence[Explanation], trace: Trace | None) -> None:
    from IPython.display import publish_display_data

    data = {"text/html": tables_html(plans, trace), "text/plain": tables_text(plans, trace)}
    publish_display_data(data)
