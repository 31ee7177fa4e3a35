"""What every pass must keep: the checker that runs between passes in the tests."""

from __future__ import annotations

from typing import NoReturn

from flowbook.graph.model.errors import InternalError
from flowbook.graph.rewrite.subgraph import Node, Subgraph


def check_subgraph(graph: Subgraph) -> None:
    """Check that a subgraph could run as it stands, from its first node to its last.

    Raises:
        InternalError: naming the first node that breaks a rule, and its surroundings.
    """
    known = {*range(len(graph.feeds)), *graph.constants}
    earlier: set[Node] = set()
    for node in graph.nodes:
        missing = [value for value in node.inputs if value not in known]
        if missing:
            _broken(graph, node, f"takes the values {missing}, which nothing before it gives")
        if not earlier.issuperset(node.after):
            _broken(graph, node, "waits for a node that does not come before it")
        if not known.isdisjoint(node.outputs):
            _broken(graph, node, "gives a value that is given already")
        if node.operation not in graph.operations:
            _broken(graph, node, "comes from an operation that the run does not need")
        arity = None if any(a.is_list for a in node.op_def.inputs) else len(node.op_def.inputs)
        if arity not in (None, len(node.inputs)):
            _broken(graph, node, f"has {len(node.inputs)} inputs instead of {arity}")
        known.update(node.outputs)
        earlier.add(node)
    if not known.issuperset(graph.fetches):
        raise InternalError(f"the fetched values {graph.fetches} are not all given")
    if not earlier.issuperset(graph.targets):
        raise InternalError(f"targets are missing: {set(graph.targets) - earlier}")


def _broken(graph: Subgraph, node: Node, problem: str) -> NoReturn:
    near = [other for other in graph.nodes if set(other.outputs) & set(node.inputs)]
    near += [other for other in graph.nodes if set(other.inputs) & set(node.outputs)]
    raise InternalError(f"{node!r} {problem}; near it: {near}")
