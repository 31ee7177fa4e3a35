"""Operations that pass a value on unchanged drop out of the step."""

from __future__ import annotations

from flowbook.graph.model.dtypes import resource
from flowbook.graph.rewrite.subgraph import Node, Subgraph


def simplify(graph: Subgraph) -> None:
    """Let consumers of an identity use its input.

    An identity that waits for something besides its input stays: who uses it waits with it. So
    does one that is asked to run on another device: it moves its input there.
    """
    kept: list[Node] = []
    values: dict[int, int] = {}
    instead: dict[Node, tuple[Node, ...]] = {}
    waited = {other for node in graph.new for other in node.after} if graph.is_routed else ()
    for node in graph.new:
        if values:
            node.inputs = tuple([values.get(v, v) for v in node.inputs])
        if _passes_on(node):
            (value,) = node.inputs
            source = graph.producer.get(value)
            if source is not None and source.op_def.gives_dead and node in waited:
                kept.append(node)  # It is alive on one side only, and the Switch in any case.
                continue
            values[node.outputs[0]] = value
            instead[node] = (source,) if source is not None and value not in graph.constants else ()
            graph.went[node.operation] = "passed on: it only hands its input over"
        else:
            kept.append(node)
    if values:
        graph.replace(kept, values, instead)


def _passes_on(node: Node) -> bool:
    if node.after or node.behind or not node.op_def.is_identity:
        return False
    operation = node.operation
    given, source = operation.inputs[0].dtype, operation.inputs[0].op
    if operation.device != source.device or operation.colocation != source.colocation:
        return False
    # A resource is given to a variable's read that a feed made an identity of.
    return given is operation.outputs[0].dtype or given is resource
