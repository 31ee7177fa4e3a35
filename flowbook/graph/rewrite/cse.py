"""Common subexpressions are computed once (white paper, section 5.1).

Two nodes merge if they do the same with the same inputs under the same constraints. Nothing
stateful or random merges, except reads of a variable that see the same state: those whose
preceding writes are the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flowbook.graph.model.attributes import hashable
from flowbook.graph.model.retag import Retag
from flowbook.graph.model.touch import Access, Order
from flowbook.graph.rewrite.layered import since
from flowbook.graph.rewrite.subgraph import Node, Subgraph

SMALL = 256


def merge_common(graph: Subgraph) -> None:
    """Let the first of equal nodes stand for all of them."""
    first = graph.equal
    kept: list[Node] = []
    values = _equal_constants(graph)
    merged: dict[Node, tuple[Node, ...]] = {}
    attribute_keys: dict[int, Any] = {}
    swept = graph.swept
    for node in graph.new:
        if values:
            node.inputs = tuple([values.get(v, v) for v in node.inputs])
        if node.after and merged:
            waited = [merged.get(n, (n,))[0] for n in node.after]
            node.after = tuple(dict.fromkeys(waited))
        if node.behind and merged:
            node.behind = tuple(dict.fromkeys([merged.get(n, (n,))[0] for n in node.behind]))
        if _is_mergeable(node):
            attributes = attribute_keys.get(id(node.attributes))
            if attributes is None:
                attributes = attribute_keys[id(node.attributes)] = _hashable(node.attributes)
            key = _meaning(node, attributes)
            same = first.setdefault(key, node)
            if same in swept:
                first[key] = node
            elif same is not node:
                values.update(zip(node.outputs, same.outputs, strict=True))
                merged[node] = (same,)
                went = f"merged into {same.operation.name!r}, which is the same"
                graph.went[node.operation] = went
                continue
        kept.append(node)
    if values:
        graph.replace(kept, values, merged)


def is_there(graph: Subgraph, node: Node) -> bool:
    """Whether a node would be merged into one that a subgraph has already."""
    same = graph.equal.get(_meaning(node, _hashable(node.attributes)))
    return same is not None and same not in graph.swept


def _hashable(attributes: Mapping[str, Any]) -> Any:
    return tuple([(k, hashable(v)) for k, v in attributes.items()])


def _meaning(node: Node, attributes: Any) -> Any:
    """What is equal for equal nodes."""
    operation = node.operation
    return (
        node.op_def,
        node.inputs,
        attributes,
        node.after and frozenset(node.after),
        node.behind and frozenset(node.behind),
        operation.context if node.op_def.is_router else None,
        operation.device,
        operation.colocation,
    )


def _is_mergeable(node: Node) -> bool:
    op_def = node.op_def
    if op_def.fires_on_any or op_def.retag in (Retag.INCREMENT, Retag.POP):
        return False  # Two loops may begin with the same values.
    if op_def.gives_variant:
        return False  # Who reads an array may let go of what is read.
    return op_def.is_pure or _reads_state(node)


def _reads_state(node: Node) -> bool:
    """Whether it gives the same wherever the same writes precede it."""
    return node.op_def.access is Access.READ and node.order is Order.READS_FIRST


def _equal_constants(graph: Subgraph) -> dict[int, int]:
    """For small constants the first one of the same bits in the same order of memory.

    Large ones are not worth comparing.
    """
    first, constants = graph.alike, graph.constants
    values: dict[int, int] = {}
    for value in since(constants, graph.compared):
        array = constants[value]
        if array.nbytes <= SMALL and not array.dtype.hasobject:
            key = array.dtype, array.shape, array.strides, array.tobytes()
            same = first.get(key)
            if same is not None and same in constants:
                values[value] = same
            else:
                first[key] = value
    return values
