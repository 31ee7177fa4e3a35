"""The live view of a graph, which follows it as cells extend it."""

from __future__ import annotations

import weakref

import traitlets

from flowbook.graph.graph import Graph
from flowbook.widgets.graph_payload import Needed, graph_payload
from flowbook.widgets.live_view import LiveView


class LiveGraph(LiveView):
    """One picture of a graph.

    Args:
        graph: the graph; it is held weakly.
        needed: what stands out; None if nothing does.
    """

    payload = traitlets.Bytes().tag(sync=True)

    def __init__(self, graph: Graph, needed: Needed | None = None) -> None:
        self._graph = weakref.ref(graph)
        self._needed = needed
        self._version = graph.version
        super().__init__("renderGraph", payload=_packed(graph, needed))
        _views.add(self)

    def close(self) -> None:
        """End it: the page has it no longer."""
        _views.discard(self)
        super().close()

    def follow(self) -> None:
        """Send the graph anew if it has changed."""
        graph = self._graph()
        if graph is not None and graph.version != self._version and not self.closed:
            self._version = graph.version
            self.payload = _packed(graph, self._needed)


_views: weakref.WeakSet[LiveGraph] = weakref.WeakSet()
_payloads: weakref.WeakKeyDictionary[Graph, tuple[int, bytes]] = weakref.WeakKeyDictionary()


def follow_all() -> None:
    """Have every view show its graph as it is now: a cell has run."""
    for view in list(_views):
        view.follow()


def _packed(graph: Graph, needed: Needed | None) -> bytes:
    """The graph as pages get it; several views of one state share it."""
    if needed is not None:
        return graph_payload(graph, needed)
    version = graph.version
    known = _payloads.get(graph)
    if known is None or known[0] != version:
        known = _payloads[graph] = version, graph_payload(graph)
    return known[1]
