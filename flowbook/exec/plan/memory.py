"""Who owns which memory: what a step returns belongs to the caller alone.

A fetched value must be copied if its memory may also be that of a feed, a constant, a variable, or
another fetched value. Definitions declare which outputs may share an input's memory.
"""

from __future__ import annotations

from enum import Enum

from flowbook.graph.rewrite.subgraph import Subgraph

# Memory that outlives the step, or of which nothing is known.
_FOREIGN = -1


class Ownership(Enum):
    """Whose memory a fetched value has when the step ends."""

    FRESH = "its own: a kernel made it"
    VIEW = "what a kernel made, as a view; broadcasting's are read-only and overlap"
    FOREIGN = "that of a feed, a constant, a variable or another fetch: it must be copied"


def ownership(graph: Subgraph) -> tuple[Ownership, ...]:
    """Whose memory each fetch has."""
    given: set[int] = set()
    found = []
    for value in graph.fetches:
        owner = _owner(graph, value)
        if owner == _FOREIGN or owner in given:
            found.append(Ownership.FOREIGN)
        else:
            found.append(Ownership.FRESH if owner == value else Ownership.VIEW)
        given.add(owner)
    return tuple(found)


def _owner(graph: Subgraph, value: int) -> int:
    """The value whose memory this one may share."""
    while value in graph.producer and value not in graph.constants:
        node = graph.producer[value]
        aliases = node.op_def.aliases
        if aliases is None or node.op_def.is_handle:
            return _FOREIGN
        if node.op_def.expression is not None and not node.op_def.is_builtin:
            return _FOREIGN  # An expression may be one of its inputs, or a view, as `real(x)` is.
        port = node.outputs.index(value)
        if port not in aliases:
            return value
        value = node.inputs[aliases[port]]
    return _FOREIGN
