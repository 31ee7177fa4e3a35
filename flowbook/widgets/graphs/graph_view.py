"""A graph as it is shown: a live view where there is a notebook, and static forms everywhere.

The live view works in the page alone. The static forms are what a notebook shows without a kernel:
they are deterministic and fetch nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flowbook.exec.instruments.trace import Trace
from flowbook.exec.plan.explanation import Explanation
from flowbook.exec.session.session import Session
from flowbook.exec.signature.feeds import feedable
from flowbook.exec.signature.fetches import flatten
from flowbook.graph.building.graph import Graph, get_default_graph
from flowbook.graph.model.dtypes import resource
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.rewrite.prune import closure
from flowbook.widgets import front_end
from flowbook.widgets.graphs.flow_runs import what_ran
from flowbook.widgets.graphs.overlay import Overlay
from flowbook.widgets.graphs.payload import Needed, graph_payload
from flowbook.widgets.graphs.plan_overlay import plan_overlay
from flowbook.widgets.graphs.svg import graph_svg
from flowbook.widgets.graphs.trace_overlay import trace_overlay
from flowbook.widgets.view import Page, View

__all__ = ["GraphView"]


class GraphView(View):
    """A picture of a graph, in which name scopes open and close.

    A graph at the end of a cell is shown like this too. In JupyterLab the picture is live: it
    follows the graph as cells extend it, and it works while the kernel is busy. A click on an edge
    offers the code that fetches or feeds its tensor, and shows its value where that changes
    nothing (`Session.peek`). Elsewhere, and without a kernel, it is a static picture of
    what it shows at first.

    A loop is one block, with its condition, its body and its variables in it, whose lines go round;
    a branch is one with its sides. They say how often, and on which side, they ran last. The
    operations that only route values are shown on request.

    Args:
        graph: the graph, or a session, which then fetches the tensors that are asked for in the
            picture; without one, that does the latest open session of the graph. None is the
            default graph.
        fetches: what a run would fetch. What it needs then stands out, the rest is faint (white
            paper, figure 6).
        feeds: the tensors, variables or names that the run would feed.
        color: what colours tell, with a legend: a trace (`sess.trace`), of the time, the memory and
            the device of each operation in a run, or a plan (`sess.explain`), of the same as it is
            predicted. None gives one colour to what is built alike.
        color_by: what colours tell at first: "time", "memory" or "device".

    Raises:
        NotFoundError: if a name is not in the graph.
        InvalidArgumentError: if something belongs to another graph, or colours cannot tell that.

    >>> import flowbook as fb
    >>> x = fb.placeholder(fb.float32, [2], name="x")
    >>> fb.GraphView(fetches=x * 2, feeds=[x])
    <GraphView of 3 operations, 2 of them needed>
    """

    def __init__(
        self,
        graph: Any = None,
        fetches: Any = None,
        feeds: Iterable[Any] = (),
        color: Any = None,
        color_by: str | None = None,
    ) -> None:
        found = get_default_graph() if graph is None else getattr(graph, "graph", graph)
        if not isinstance(found, Graph):
            raise InvalidTypeError(f"{graph!r} is neither a graph nor has one")
        self.graph = found
        self._session = graph if isinstance(graph, Session) else None
        self.needed = None if fetches is None else needed_for(found, fetches, feeds)
        if color is None and color_by is not None:
            raise InvalidArgumentError("color_by chooses what `color` tells, and there is none")
        self._overlay = None if color is None else _overlay(color).coloured_by(color_by)

    def _svg(self) -> str:
        ran = what_ran(self.graph, self._session)
        return graph_svg(self.graph, self.needed, ran, self._overlay)

    def _live(self) -> Any:
        from flowbook.widgets.graphs.live import LiveGraph

        return LiveGraph(self.graph, self.needed, self._session, self._overlay)

    def _page(self) -> Page:
        title = repr(self)[1:-1].partition(",")[0]
        payload = graph_payload(self.graph, self.needed, self._overlay)
        ran = what_ran(self.graph, self._session)
        picture = graph_svg(self.graph, self.needed, ran, self._overlay)
        return Page(title, picture, "renderExported", payload, {"ran": ran})

    def __repr__(self) -> str:
        count = f"<GraphView of {len(self.graph.operations)} operations"
        if self.needed is None:
            return f"{count}>"
        return f"{count}, {len(self.needed.operations)} of them needed>"


def needed_for(graph: Graph, fetches: Any, feeds: Iterable[Any]) -> Needed:
    """What a run of the fetches needs, given the feeds."""
    flat = flatten(graph, fetches)
    fed = {feedable(graph, key) for key in feeds}
    handles = {tensor for tensor in fed if tensor.dtype is resource}
    return Needed(
        frozenset(closure(flat.tensors, flat.targets, fed, handles)),
        frozenset(tensor.op for tensor in fed),
        frozenset([*(tensor.op for tensor in flat.tensors), *flat.targets]),
    )


def graph_forms(graph: Graph) -> front_end.Forms:
    """How a graph is shown: as a view of it, as of the cell that shows it."""

    def make() -> Any:
        from flowbook.widgets.graphs.live import LiveGraph

        return LiveGraph(graph, of_cell=True)

    live = front_end.live_form(make)
    return front_end.forms(repr(graph), lambda: graph_svg(graph, ran=what_ran(graph)), live)


def _overlay(told: Any) -> Overlay:
    if isinstance(told, Trace):
        return trace_overlay(told)
    if isinstance(told, Explanation):
        return plan_overlay(told)
    raise InvalidTypeError(f"colours tell of a trace or a plan, not of {told!r:.80}")
