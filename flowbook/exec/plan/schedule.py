"""The order in which a device runs its nodes when several could run.

Writes to variables wait for the uses of what was read, where nothing forbids it: a buffer that no
value refers to any more is updated in place.
"""

from __future__ import annotations

from flowbook.graph.model.touch import Access
from flowbook.graph.rewrite.subgraph import Node, Subgraph


def schedule(graph: Subgraph) -> None:
    """Bring the nodes into the order in which they run."""
    if any(node.op_def.access is Access.WRITE for node in graph.new):
        graph.sort(_writes_last)


def _writes_last(node: Node) -> tuple[bool, int]:
    return node.op_def.access is Access.WRITE, node.operation.id
