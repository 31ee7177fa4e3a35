"""The live view of a graph, which follows it as cells extend it."""

from __future__ import annotations

import itertools
import weakref

import traitlets

from flowbook.exec.session.session import Session, open_sessions
from flowbook.graph.building.graph import Graph
from flowbook.widgets import fetch_requests
from flowbook.widgets.graphs.flow_runs import what_ran
from flowbook.widgets.graphs.overlay import Overlay
from flowbook.widgets.graphs.payload import Needed, graph_payload
from flowbook.widgets.live_view import LiveViewOfGraph


class LiveGraph(LiveViewOfGraph):
    """One picture of a graph.

    Args:
        graph: the graph; it is held weakly.
        needed: what stands out; None if nothing does.
        session: what fetches tensors that are asked for; None is one that runs the graph then.
        overlay: what is laid over it.
        of_cell: whether it shows at first the graph as of the cell that made it.
    """

    view = traitlets.Unicode().tag(sync=True)  # By which the page names it in requests.
    begun = traitlets.Bytes().tag(sync=True)  # What its cell saw; nothing where that is no matter.
    said = traitlets.Unicode().tag(sync=True)  # What stands beside the picture; mostly nothing.
    ran = traitlets.Dict().tag(sync=True)  # What is said of loops and branches, by their names.

    def __init__(
        self,
        graph: Graph,
        needed: Needed | None = None,
        session: Session | None = None,
        overlay: Overlay | None = None,
        of_cell: bool = False,
    ) -> None:
        self._graph = weakref.ref(graph)
        self._session = None if session is None else weakref.ref(session)
        self._needed = needed
        self._overlay = overlay
        self._version = graph.version
        name = f"{next(_numbers)}"
        ran = what_ran(graph, session)
        payload = graph_payload(graph, needed, overlay)
        begun = payload if of_cell else b""
        super().__init__("renderGraph", graph, view=name, ran=ran, payload=payload, begun=begun)
        _views.add(self)
        fetch_requests.listen(live_view)

    @property
    def graph(self) -> Graph | None:
        """The graph, while there is one."""
        return self._graph()

    @property
    def session(self) -> Session | None:
        """What fetches its tensors: its own session, or the latest open one of its graph."""
        own = None if self._session is None else self._session()
        graph = self._graph()
        if graph is None or (own is not None and not own.closed):
            return own
        return next(reversed(open_sessions(graph)), None)

    def close(self) -> None:
        """End it: the page has it no longer."""
        _views.discard(self)
        super().close()

    def follow(self) -> None:
        """Send the graph anew if it has changed, what its loops did since, and whether it ended."""
        if self.closed:
            return
        graph = self._graph()
        self.said = self._what_has_ended()
        if graph is None:
            return
        if graph.version != self._version:
            self._version = graph.version
            self.payload = graph_payload(graph, self._needed, self._overlay)
        self.ran = what_ran(graph, self.session)  # Sent only if it is something else.

    def _what_has_ended(self) -> str:
        if self._graph() is None:
            return self.ended("the graph")
        session = None if self._session is None else self._session()
        is_open = session is not None and not session.closed
        return "" if is_open or self._session is None else self.ended("the session")


_views: weakref.WeakSet[LiveGraph] = weakref.WeakSet()
_numbers = itertools.count(1)


def live_view(name: str) -> LiveGraph | None:
    """The view that a page names in a request, if there is one."""
    return next((each for each in list(_views) if each.view == name), None)


def follow_all() -> None:
    """Have every view show its graph as it is now: a cell has run."""
    for view in list(_views):
        view.follow()
