"""The order in which a device runs its nodes when several could run.

Writes to variables wait for the uses of what was read, where nothing forbids it: a buffer that no
value refers to any more is updated in place.
"""

from __future__ import annotations

from flowbook.graph.definition.op_def import Effects
from flowbook.graph.rewrite.subgraph import Node, Subgraph


def schedule(graph: Subgraph) -> None:
    """Bring the nodes into the order in which they run."""
    if any(node.op_def.effects is Effects.WRITES for node in graph.nodes):
        graph.sort(_writes_last)


def _writes_last(node: Node) -> tuple[bool, int]:
    return node.op_def.effects is Effects.WRITES, node.operation.id
