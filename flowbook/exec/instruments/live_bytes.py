"""How much memory the values of a step took, found out afterwards from what was called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from flowbook.exec.engine.recording import Noted
from flowbook.graph.model.registry import op_keyed


@dataclass(eq=False)
class _Life:
    """What a call gave, views of it included.

    Attributes:
        size: in bytes.
        last: the last call that takes it, by its place; None if it is there until the step ends.
    """

    size: int
    last: int | None = None


def live_bytes(calls: Sequence[Noted]) -> list[int]:
    """For each call how many bytes that its part of the step has made are there when it ends.

    What is not the step's own memory is not counted: feeds, constants, the values of variables. An
    output that may share the memory of an input is taken to do so if it is as large, or if that is
    none of the step's own.

    Args:
        calls: in the order in which they began.
    """
    lives: dict[tuple[int, int, int], _Life] = {}
    begun: list[_Life | None] = []
    for place, call in enumerate(calls):
        node, within = call.place.node, (call.step, call.place.part)
        given = [lives.get((*within, value)) for value in node.inputs]
        for life in given:
            if life is not None:
                life.last = place
        aliases = op_keyed(node.type).aliases
        own = _Life(call.size)
        made = [own if aliases is not None else None for _ in node.outputs]
        for port, source in (aliases or {}).items():
            life = given[source]
            if life is None or life.size == call.size:
                made[port] = life
        begun.append(own if own in made else None)
        for value, life in zip(node.outputs, made, strict=True):
            before = lives.pop((*within, value), None)
            if before is not None and before.last is None:
                before.last = place  # An iteration's value makes room for that of the next one.
            if life is not None:
                lives[*within, value] = life
    return _sums(calls, begun)


def _sums(calls: Sequence[Noted], begun: Sequence[_Life | None]) -> list[int]:
    freed: Counter[int] = Counter()
    for life in begun:
        if life is not None and life.last is not None:
            freed[life.last] += life.size
    live: Counter[tuple[int, int]] = Counter()
    found = []
    for place, (call, life) in enumerate(zip(calls, begun, strict=True)):
        within = call.step, call.place.part
        live[within] += life.size if life is not None else 0
        found.append(live[within])
        live[within] -= freed[place]
    return found
