"""The order in which a device runs its nodes when several could run.

Writes to variables wait for the uses of what was read, where nothing forbids it: a buffer that no
value refers to any more is updated in place.
"""

from __future__ import annotations

from flowbook.graph.model.touch import Access
from flowbook.graph.rewrite.subgraph import Node, Subgraph


def schedule(graph: Subgraph) -> None:
    """Bring the nodes into the order in which they run.

    What depends on as many writes, one after the other, runs together, the writes last. So it is an
    order that obeys all edges, if the nodes were in one.
    """
    if not any(node.op_def.access is Access.WRITE for node in graph.new):
        return
    producer, constants = graph.producer, graph.constants
    ranks: dict[Node, int] = {}  # Twice the number of writes before it, and one for a write.
    for node in graph.nodes:
        rank = 0
        for value in node.inputs:
            if value in producer and value not in constants:
                rank = max(rank, ranks[producer[value]])
        for other in (*node.after, *node.behind):
            rank = max(rank, ranks[other])
        ranks[node] = rank + rank % 2 + (node.op_def.access is Access.WRITE)
    graph.nodes.sort(key=ranks.__getitem__)
