"""What is said of loops and branches in a picture: what they did when they ran last."""

from __future__ import annotations

import weakref
from collections.abc import Mapping

from flowbook.exec.session.session import Session, open_sessions
from flowbook.graph.building.graph import Graph
from flowbook.graph.model.counted import counted
from flowbook.widgets.graphs.flow_blocks import Block, BlockKind, pictured

_blocks: weakref.WeakKeyDictionary[Graph, tuple[int, list[Block]]] = weakref.WeakKeyDictionary()


def what_ran(graph: Graph, session: Session | None = None) -> dict[str, str]:
    """What is said of the loops and branches of a graph, by their names.

    Args:
        graph: the graph.
        session: whose runs are told of; None is the latest open session of the graph.
    """
    asked = session or next(reversed(open_sessions(graph)), None)
    if asked is None:
        return {}
    trips, sides = asked.ran()
    if not trips and not sides:
        return {}
    said: dict[str, str] = {}
    for block in _blocks_of(graph):
        if block.kind is BlockKind.LOOP and block.frame in trips:
            said[block.name] = f"ran {counted(trips[block.frame], 'time')}"
        elif block.kind is BlockKind.BRANCH:
            taken = _taken(block, sides)
            if taken:
                said[block.name] = f"{taken} ran last"
    return said


def _taken(block: Block, sides: Mapping[int, int | None]) -> str:
    """What the side is called that a branch took; empty where that is not known."""
    # Outer decisions come first: what was decided within a side that was left since says nothing.
    return next((label for switch, side, label in block.ends if sides.get(switch) == side), "")


def _blocks_of(graph: Graph) -> list[Block]:
    version = graph.version
    known = _blocks.get(graph)
    if known is None or known[0] != version:
        found = list(pictured(graph.operations).blocks.values())
        known = _blocks[graph] = version, found
    return known[1]
