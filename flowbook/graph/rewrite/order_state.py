"""Edges that make reads and writes of one step deterministic (fixed on the pruned graph).

Which edges is a policy of the resource's kind (`touch.Order`). Of a variable, a read that no path
orders after a write sees the value from before it, and unordered writes go in the order of
construction; an edge that would close a cycle yields to the order of construction. Other kinds get
none: what meets in a queue may come in any order. What acts outside the graph goes in the order of
construction.
"""

from __future__ import annotations

import itertools

from flowbook.graph.model.operation import Operation
from flowbook.graph.model.touch import Access, Order
from flowbook.graph.rewrite.subgraph import Node, Subgraph


def order_state(graph: Subgraph) -> None:
    """Add the edges to the nodes' `after`, and bring the nodes into an order that obeys them."""
    writes: dict[Operation, list[Node]] = {}
    reads: dict[Operation, list[Node]] = {}
    outside: list[Node] = []
    for node in graph.new:
        access = node.op_def.access
        if access is Access.OUTSIDE:
            outside.append(node)
        elif access is not None and node.owner is not None and node.order is Order.READS_FIRST:
            touching = writes if access is Access.WRITE else reads
            touching.setdefault(node.owner, []).append(node)
    _chain(outside)
    if not writes:
        return
    graph.written |= writes.keys()
    for chained in writes.values():
        _chain(chained)
    bits = {w: 1 << i for i, w in enumerate(w for chained in writes.values() for w in chained)}
    reaching = _reaching(graph, bits)
    backward: list[tuple[Node, Node]] = []
    for owner, chained in writes.items():
        for read in reads.get(owner, ()):
            seen = [i for i, w in enumerate(chained) if reaching.get(read, 0) & bits[w]]
            for write in chained[seen[-1] + 1 if seen else 0 :]:
                if read.operation.id < write.operation.id:
                    write.after += (read,)
                    break  # The later ones follow this one.
                backward.append((read, write))
    if backward:
        _insert_backward(graph, backward)
        graph.sort(lambda node: node.operation.id)


def _chain(nodes: list[Node]) -> None:
    for earlier, later in itertools.pairwise(nodes):
        later.after += (earlier,)


def _reaching(graph: Subgraph, bits: dict[Node, int]) -> dict[Node, int]:
    """For every node the writes that a path leads from, as bits; nodes without any are left out."""
    reaching: dict[Node, int] = {}
    producer = graph.producer
    for node in graph.nodes:
        found = bits.get(node, 0)
        for value in node.inputs:
            source = producer.get(value)
            if source in reaching:
                found |= reaching[source]
        for other in node.after:
            found |= reaching.get(other, 0)
        if found:
            reaching[node] = found
    return reaching


def _insert_backward(graph: Subgraph, edges: list[tuple[Node, Node]]) -> None:
    """Let reads that were built after a write, but are not ordered after it, precede it.

    Args:
        graph: the graph.
        edges: such reads and writes. A read precedes the first write of its variable that it can
            precede without closing a cycle, and so all later ones.
    """
    successors: dict[Node, list[Node]] = {}
    for node in graph.nodes:
        for value in node.inputs:
            if value in graph.producer:
                successors.setdefault(graph.producer[value], []).append(node)
        for other in node.after:
            successors.setdefault(other, []).append(node)
    done: set[tuple[Node, Operation | None]] = set()
    for read, write in sorted(edges, key=lambda e: (e[0].operation.id, e[1].operation.id)):
        placed = (read, write.owner)
        if placed in done or _leads_to(write, read, successors):
            continue
        done.add(placed)  # The later writes follow this one.
        write.after += (read,)
        successors.setdefault(read, []).append(write)


def _leads_to(start: Node, goal: Node, successors: dict[Node, list[Node]]) -> bool:
    stack, seen = [start], {start}
    while stack:
        node = stack.pop()
        if node is goal:
            return True
        for other in successors.get(node, ()):
            if other not in seen:
                seen.add(other)
                stack.append(other)
    return False
