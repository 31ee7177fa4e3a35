"""A part seen from its outermost frame: each loop is one item, and each item says when it runs.

Pure: from plain data to plain data. What an item gives may be dead, being of a branch not taken. So
each has a guard: the sides of predicates on which it runs. Of what is not known as a side of a
predicate, as what comes from another device or out of a loop, the guard names the value itself.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from flowbook.exec.plan.program import Block, Part, PlanNode
from flowbook.graph.model.registry import op_keyed
from flowbook.graph.model.retag import Retag

# Sides of predicates (0 false, 1 true), all of which must have been taken.
Guard = frozenset[tuple[int, int]]

# In the place of a side: the value itself is there.
_THERE = 2

_ALWAYS: Guard = frozenset()


@dataclass
class Item:
    """A node of the outermost frame, or a frame that is entered from there, with its entrances.

    Attributes:
        nodes: the numbers of its nodes: those of the outermost frame first.
        block: the frame; None of a node.
        before: the items that end before it begins, by their places.
        guard: when it runs, and what waits for it may run.
        is_even: whether all of it that the outermost frame sees runs or none.
    """

    nodes: Sequence[int]
    block: Block | None = None
    before: set[int] = field(default_factory=set)
    guard: Guard = _ALWAYS
    is_even: bool = True


class Outline:
    """The items of a part, each after those before it.

    Args:
        part: the part.
        opaque: frames, by name, of which it is not sure that all values leave them that can.

    Attributes:
        items: all of them.
        item_of: for each node the place of its item.
        guards: for each value that an item gives when it is there.
    """

    def __init__(self, part: Part, opaque: Collection[str] = ()) -> None:
        self._nodes = part.nodes
        self._constants = part.constants
        self._producer = {
            value: index
            for index, node in enumerate(self._nodes)
            for value in node.outputs
            if value not in part.constants
        }
        made = list(_items(part.block))
        places = {index: place for place, item in enumerate(made) for index in item.nodes}
        for place, item in enumerate(made):
            sources = {s for index in item.nodes for s in self._sources(self._nodes[index])}
            item.before = {places[source] for source in sources} - {place}
        order = _ordered(made)
        moved = {old: new for new, old in enumerate(order)}
        self.items = [made[old] for old in order]
        self.item_of = {index: moved[place] for index, place in places.items()}
        self.guards: dict[int, Guard] = {}
        for item in self.items:
            item.before = {moved[place] for place in item.before}
            if item.block is None:
                self._guard_node(item, self._nodes[item.nodes[0]])
            else:
                self._guard_frame(item, item.block.frame in opaque)

    def _sources(self, node: PlanNode) -> Iterator[int]:
        for value in node.inputs:
            if value in self._producer:
                yield self._producer[value]
        yield from node.after
        yield from node.behind

    def may_be_dead(self, place: int) -> bool:
        """Whether an item may not run, or give a value that is dead."""
        item = self.items[place]
        given = [value for index in item.nodes for value in self._nodes[index].outputs]
        return bool(item.guard) or any(self.guards.get(value) for value in given)

    # When what runs

    def guard_of(self, values: Iterable[int], after: Iterable[int] = ()) -> Guard:
        """When all of some values are there, and all of some nodes have run."""
        found = [self.guards.get(value, _ALWAYS) for value in values]
        waited = [self.items[self.item_of[index]].guard for index in after]
        return _ALWAYS.union(*found, *waited)

    def _guard_node(self, item: Item, node: PlanNode) -> None:
        op_def = op_keyed(node.type)
        guard = self.guard_of(node.inputs, node.after)
        if op_def.fires_on_any:
            guard = self._merged(node) | self.guard_of((), node.after)
        if op_def.sees_dead:
            item.is_even = not guard
            guard = _ALWAYS
        if node.attributes.get("may_be_dead"):
            guard |= {(node.outputs[0], _THERE)}
        item.guard = guard
        for port, value in enumerate(node.outputs):
            self.guards[value] = guard
            if op_def.gives_dead:
                self.guards[value] |= {(node.inputs[-1], port)}

    def _merged(self, node: PlanNode) -> Guard:
        """When one of the inputs is there."""
        found = [self.guards.get(value, _ALWAYS) for value in node.inputs]
        if not all(found):
            return _ALWAYS
        if len(found) == 2:
            one, other = found[0] - found[1], found[1] - found[0]
            if len(one) == 1 and other == {(pred, 1 - side) for pred, side in one}:
                return found[0] & found[1]
        return frozenset([(node.outputs[0], _THERE)])

    def _guard_frame(self, item: Item, is_opaque: bool) -> None:
        nodes = [self._nodes[index] for index in item.nodes]
        entrances = [n for n in nodes if _enters(n) == item.block.frame]  # type: ignore[union-attr]
        guards = {self.guard_of(node.inputs, node.after) for node in entrances}
        item.guard = _ALWAYS.union(*guards)
        item.is_even = len(guards) == 1
        for node in nodes:
            if op_keyed(node.type).retag is Retag.POP:
                for value in node.outputs:
                    is_known = item.is_even and not is_opaque
                    self.guards[value] = item.guard | (_ALWAYS if is_known else {(value, _THERE)})


def _items(block: Block) -> Iterator[Item]:
    """The items of an outermost block, in the order of their first nodes' numbers."""
    entrances: dict[str, list[int]] = {}
    for index, node in enumerate(block.nodes):
        name = _enters(node)
        if name:
            entrances.setdefault(name, []).append(index)
        else:
            yield Item([index])
    first = len(block.nodes)
    for inner in block.blocks:
        count = sum(len(each.nodes) for each in inner.walk())
        yield Item([*entrances[inner.frame], *range(first, first + count)], inner)
        first += count


def _enters(node: PlanNode) -> str:
    """The frame that a node enters; empty if it enters none."""
    if op_keyed(node.type).retag is not Retag.PUSH:
        return ""
    name: str = node.attributes["frame_name"]
    return name


def _ordered(items: Sequence[Item]) -> list[int]:
    """The places of items, each after those before it, in the order of their nodes where it can."""
    left = [len(item.before) for item in items]
    dependents: dict[int, list[int]] = {}
    for place, item in enumerate(items):
        for other in item.before:
            dependents.setdefault(other, []).append(place)
    ready = [(item.nodes[0], place) for place, item in enumerate(items) if not item.before]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        _, place = heapq.heappop(ready)
        order.append(place)
        for other in dependents.get(place, ()):
            left[other] -= 1
            if not left[other]:
                heapq.heappush(ready, (items[other].nodes[0], other))
    return order
