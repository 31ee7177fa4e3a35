"""The order in which a device runs its nodes when several could run.

Writes to variables wait for the uses of what was read, where nothing forbids it: a buffer that no
value refers to any more is updated in place. What makes room runs as soon as what it takes is
there.
"""

from __future__ import annotations

from operator import attrgetter

from flowbook.graph.model.touch import Access
from flowbook.graph.rewrite.subgraph import Node, Subgraph

# Of a node.
_runs_early = attrgetter("op_def.runs_early")


def schedule(graph: Subgraph) -> None:
    """Bring the nodes into the order in which they run, which obeys all edges if theirs does."""
    if graph.touching and any(node.op_def.access is Access.WRITE for node in graph.touching):
        _write_late(graph)
    if any(map(_runs_early, graph.new)):
        _make_room_early(graph)


def _write_late(graph: Subgraph) -> None:
    """Have what depends on as many writes, one after the other, run together, the writes last."""
    ranks: dict[Node, int] = {}  # Twice the number of writes before it, and one for a write.
    for node in graph.new:
        rank = max((ranks.get(other, 0) for other in _before(graph, node)), default=0)
        ranks[node] = rank + rank % 2 + (node.op_def.access is Access.WRITE)
    graph.nodes[graph.start :] = sorted(graph.new, key=ranks.__getitem__)


def _make_room_early(graph: Subgraph) -> None:
    """Have what makes room, with what it takes out of nothing, run right after what it needs."""
    early = {node for node in graph.new if node.op_def.runs_early}
    for node in tuple(early):
        early.update(other for other in graph.producers(node) if not _before(graph, other))
    # After which node, by its place, and in which order among those after it.
    places: dict[Node, tuple[int, int]] = {}
    for place, node in enumerate(graph.nodes):
        if node in early:
            before = [places[other][0] for other in _before(graph, node)]
            places[node] = max(before, default=graph.start), place
        else:
            places[node] = place, -1
    graph.nodes[graph.start :] = sorted(graph.new, key=places.__getitem__)


def _before(graph: Subgraph, node: Node) -> list[Node]:
    """What has to have run before a node."""
    return [*graph.producers(node), *node.after, *node.behind]
