"""The live view of a trace."""

from __future__ import annotations

import traitlets

from flowbook.graph.building.graph import Graph
from flowbook.widgets.live_view import LiveView, name_of_graph


class LiveTimeline(LiveView):
    """One timeline in a page.

    Args:
        payload: the trace, packed.
        graph: whose operations it is of; None if there is none.
    """

    graph_name = traitlets.Unicode().tag(sync=True)  # By which views of one graph find each other.

    def __init__(self, payload: bytes, graph: Graph | None) -> None:
        name = "" if graph is None else name_of_graph(graph)
        super().__init__("renderTimeline", payload=payload, graph_name=name)
