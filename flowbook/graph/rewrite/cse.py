"""Common subexpressions are computed once (white paper, section 5.1).

Two nodes merge if they do the same with the same inputs under the same constraints. Nothing
stateful or random merges, except reads of a variable that see the same state: those whose
preceding writes are the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.model.attributes import hashable
from flowbook.graph.model.retag import Retag
from flowbook.graph.model.touch import Access, Order
from flowbook.graph.rewrite.layered import since
from flowbook.graph.rewrite.subgraph import Node, Subgraph

SMALL = 256


def merge_common(graph: Subgraph) -> None:
    """Let the first of equal nodes stand for all of them."""
    takers = graph.takers
    kept: list[Node] = []
    values = _equal_constants(graph)
    merged: dict[Node, tuple[Node, ...]] = {}
    for node in graph.new:
        if values:
            node.inputs = tuple([values.get(v, v) for v in node.inputs])
        if node.after and merged:
            waited = [merged.get(n, (n,))[0] for n in node.after]
            node.after = tuple(dict.fromkeys(waited))
        if node.behind and merged:
            node.behind = tuple(dict.fromkeys([merged.get(n, (n,))[0] for n in node.behind]))
        if _is_mergeable(node):
            # Few take what another of their type takes: the rest is asked of these alone.
            alike = takers.setdefault(_taking(node), node)
            same = node if alike is node else _first(graph, alike, node)
            if same is not node:
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
    alike = graph.takers.get(_taking(node))
    if alike is None:
        return False
    meaning = _meaning(node)
    same = graph.equal.get(meaning, alike)
    return same not in graph.waited and _meaning(same) == meaning


def _first(graph: Subgraph, alike: Node, node: Node) -> Node:
    """The first node that means what one does, which takes what another of its type takes."""
    first, meaning = graph.equal, _meaning(node)
    first.setdefault(_meaning(alike), alike)
    same = first.setdefault(meaning, node)
    if same in graph.waited:
        same = first[meaning] = node
    return same


def _taking(node: Node) -> tuple[int, ...]:
    """What is equal for nodes of one type that take the same values.

    Garbage collection passes by what holds numbers alone.
    """
    return (id(node.op_def), *node.inputs)


def _meaning(node: Node) -> Any:
    """What is equal for equal nodes."""
    operation = node.operation
    return (
        node.op_def,
        node.inputs,
        tuple([(k, hashable(v)) for k, v in node.attributes.items()]),
        node.after and frozenset(node.after),
        node.behind and frozenset(node.behind),
        operation.context if node.op_def.is_router else None,
        operation.device,
        operation.colocation,
    )


def _is_mergeable(node: Node) -> bool:
    op_def = node.op_def
    if op_def.is_router and (op_def.fires_on_any or op_def.retag in (Retag.INCREMENT, Retag.POP)):
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
    if len(constants) == graph.compared:
        return values
    for value in since(constants, graph.compared):
        array = constants[value]
        if array.nbytes <= SMALL and not array.dtype.hasobject:
            bits = array.tobytes()
            same = first.setdefault(bits, value)
            if same != value and not _are_laid_out_alike(constants.get(same), array):
                key = array.dtype, array.shape, array.strides, bits
                same = first.setdefault(key, value)
                if same not in constants:
                    same = first[key] = value
            if same != value:
                values[value] = same
    return values


def _are_laid_out_alike(one: np.ndarray[Any, Any] | None, other: np.ndarray[Any, Any]) -> bool:
    """Whether the same bits mean the same; if the first one is still there."""
    return (
        one is not None
        and one.dtype == other.dtype
        and one.strides == other.strides
        and one.shape == other.shape
    )
