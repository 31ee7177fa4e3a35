"""A part frame by frame: a loop within a frame is one item of it, and each item says when it runs.

Pure: from plain data to plain data. What an item gives may be dead, being of a branch not taken. So
each has a guard: the sides of predicates on which it runs in an iteration of its frame. Of what is
not known as a side of a predicate, as what comes from another device, the guard names the value
itself. A loop that may lie in a branch not taken has iterations even then, in which all is dead:
the guards of all that is in it name the loop.

A loop is regular if its variables are all there in every iteration: all enter it together, all go
on to the next iteration on one side of one predicate, and all leave on the other. It is so in the
first iteration, and if it is so in one, then in the next.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from flowbook.exec.plan.program import Block, Part, PlanNode
from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.registry import op_keyed
from flowbook.graph.model.retag import Retag
from flowbook.graph.ops.communicate.transfer import receive_op

# Sides of predicates (0 false, 1 true), all of which must have been taken.
Guard = frozenset[tuple[int, int]]

# In the place of a side: the value itself is there; the loop that begins with a node was entered.
_THERE = 2
_ENTERED = 3

_ALWAYS: Guard = frozenset()


@dataclass
class Item:
    """A node of a frame, or a frame that is entered from there, with its entrances.

    Attributes:
        nodes: the numbers of its nodes, of a frame those of its entrances first.
        block: the frame; None of a node.
        before: the items of the same frame that end before it begins, by their places.
        guard: when it runs, and what waits for it may run.
        is_even: whether all of it that the frame sees runs or none.
    """

    nodes: Sequence[int]
    block: Block | None = None
    before: set[int] = field(default_factory=set)
    guard: Guard = _ALWAYS
    is_even: bool = True


@dataclass
class Layout:
    """What runs in a frame.

    Attributes:
        block: the frame.
        items: all of it, each after those before it.
        item_of: for each node of the frame, or of one within it, the place of its item.
    """

    block: Block
    items: list[Item]
    item_of: dict[int, int]


class Outline:
    """The frames of a part.

    Args:
        part: the part.

    Attributes:
        layouts: by the frames' names; that of the outermost is empty.
        guards: for each value when it is there in an iteration of its frame, if not always.
    """

    def __init__(self, part: Part) -> None:
        self._nodes = part.nodes
        self._defs: list[OpDef] = [op_keyed(node.type) for node in part.nodes]
        self._producer = {
            value: index
            for index, node in enumerate(self._nodes)
            for value in node.outputs
            if value not in part.constants
        }
        self._first = _first_numbers(part.block)
        self.layouts: dict[str, Layout] = {}
        self.guards: dict[int, Guard] = {}
        self._lay_out(part.block)
        self._guard_items(self.layouts[""], _ALWAYS)

    def numbers(self, block: Block) -> range:
        """Those of a block's nodes, and of those of the blocks within it."""
        first = self._first[block.frame]
        return range(first, first + sum(len(each.nodes) for each in block.walk()))

    def own_numbers(self, block: Block) -> range:
        """Those of a block's nodes."""
        first = self._first[block.frame]
        return range(first, first + len(block.nodes))

    def may_be_dead(self, layout: Layout, place: int) -> bool:
        """Whether an item may not run, or give a value that is dead."""
        item = layout.items[place]
        given = [value for index in item.nodes for value in self._nodes[index].outputs]
        return bool(item.guard) or any(self.guards.get(value) for value in given)

    # What comes before what

    def _lay_out(self, block: Block) -> None:
        made = list(self._items(block))
        places = {index: place for place, item in enumerate(made) for index in item.nodes}
        for place, item in enumerate(made):
            sources = {source for index in item.nodes for source in self._sources(index)}
            item.before = {places[source] for source in sources & places.keys()} - {place}
        order = _ordered(made)
        moved = {old: new for new, old in enumerate(order)}
        for item in made:
            item.before = {moved[place] for place in item.before}
        item_of = {index: moved[place] for index, place in places.items()}
        self.layouts[block.frame] = Layout(block, [made[old] for old in order], item_of)
        for inner in block.blocks:
            self._lay_out(inner)

    def _items(self, block: Block) -> Iterator[Item]:
        entrances: dict[str, list[int]] = {inner.frame: [] for inner in block.blocks}
        for index in self.own_numbers(block):
            if self._defs[index].retag is Retag.PUSH:
                entrances[self._nodes[index].attributes["frame_name"]].append(index)
            else:
                yield Item([index])
        for inner in block.blocks:
            yield Item([*entrances[inner.frame], *self.numbers(inner)], inner)

    def _sources(self, index: int) -> Iterator[int]:
        """The nodes that another one waits for in its iteration."""
        node = self._nodes[index]
        for value in node.inputs:
            source = self._producer.get(value)
            if source is not None and self._defs[source].retag is not Retag.INCREMENT:
                yield source
        yield from node.after
        yield from node.behind

    # When what runs

    def _guard_items(self, layout: Layout, carried: Guard | None) -> None:
        """Find when the items of a frame run.

        Args:
            layout: the frame's.
            carried: when what its iterations carry is there; None if not together.
        """
        for item in layout.items:
            if item.block is None:
                self._guard_node(layout, item, item.nodes[0], carried)
            else:
                self._guard_frame(layout, item, item.block)

    def _guard_of(self, layout: Layout, values: Iterable[int], after: Iterable[int]) -> Guard:
        """When all of some values are there, and all of some nodes have run."""
        found = [self.guards.get(value, _ALWAYS) for value in values]
        for index in after:
            if index in layout.item_of:
                found.append(layout.items[layout.item_of[index]].guard)
            else:  # It enters the frame.
                found += [self.guards.get(value, _ALWAYS) for value in self._nodes[index].outputs]
        return _ALWAYS.union(*found)

    def _guard_node(self, layout: Layout, item: Item, index: int, carried: Guard | None) -> None:
        node, op_def = self._nodes[index], self._defs[index]
        if op_def.fires_on_any:
            guard = self._merged(node, carried) | self._guard_of(layout, (), node.after)
        else:
            guard = self._guard_of(layout, node.inputs, node.after)
        if op_def.sees_dead:
            item.is_even = not guard
            guard = _ALWAYS
        if arrives_dead(node):
            guard |= {(node.outputs[0], _THERE)}
        item.guard = guard
        for port, value in enumerate(node.outputs):
            self.guards[value] = guard
            if op_def.gives_dead:
                self.guards[value] |= {(node.inputs[-1], port)}

    def _merged(self, node: PlanNode, carried: Guard | None) -> Guard:
        """When one of the inputs of a Merge is there."""
        if self._carries(node):
            return frozenset([(node.outputs[0], _THERE)]) if carried is None else carried
        found = [self.guards.get(value, _ALWAYS) for value in node.inputs]
        if not all(found):
            return _ALWAYS
        if len(found) == 2:
            one, other = found[0] - found[1], found[1] - found[0]
            if len(one) == 1 and other == {(pred, 1 - side) for pred, side in one}:
                return found[0] & found[1]
        return frozenset([(node.outputs[0], _THERE)])

    def _carries(self, node: PlanNode) -> bool:
        """Whether a Merge takes what comes from the iteration before."""
        sources = [self._producer[value] for value in node.inputs if value in self._producer]
        return any(self._defs[source].retag is Retag.INCREMENT for source in sources)

    def _guard_frame(self, layout: Layout, item: Item, block: Block) -> None:
        inner = self.layouts[block.frame]
        entrances = [self._nodes[i] for i in item.nodes if i not in inner.item_of]
        guards = {self._guard_of(layout, node.inputs, node.after) for node in entrances}
        item.guard = _ALWAYS.union(*guards)
        item.is_even = len(guards) == 1
        entered = frozenset([(item.nodes[0], _ENTERED)]) if item.guard else _ALWAYS
        for node in entrances:
            (value,) = node.outputs
            self.guards[value] = entered if item.is_even else frozenset([(value, _THERE)])
        self._guard_items(inner, entered)
        is_regular = item.is_even and self._is_regular(inner, entered)
        if not is_regular:
            self._guard_items(inner, None)
        for index in self.own_numbers(block):
            if self._defs[index].retag is Retag.POP:
                (value,) = self._nodes[index].outputs
                known = _ALWAYS if is_regular else {(value, _THERE)}
                self.guards[value] = item.guard | known

    def _is_regular(self, layout: Layout, entered: Guard) -> bool:
        """Whether all that a loop carries is there in the next iteration, if it is in one.

        Args:
            layout: the loop's.
            entered: when it is there in the first.
        """
        goes_on: set[Guard] = set()
        leaves: set[Guard] = set()
        for index in self.own_numbers(layout.block):
            node, op_def = self._nodes[index], self._defs[index]
            guard = layout.items[layout.item_of[index]].guard
            if op_def.retag is Retag.INCREMENT:
                goes_on.add(guard)
            elif op_def.retag is Retag.POP:
                leaves.add(guard)
            elif op_def.fires_on_any and self._carries(node) and not _is_plain(node):
                return False
        if len(goes_on) != 1 or len(leaves) > 1:
            return False
        (guard,) = goes_on
        if not entered <= guard or len(guard - entered) != 1:
            return False
        ((pred, side),) = guard - entered
        return leaves <= {entered | {(pred, 1 - side)}}


def arrives_dead(node: PlanNode) -> bool:
    """Whether a node receives from another device what may be dead."""
    return node.type == receive_op.key and bool(node.attributes["may_be_dead"])


def _is_plain(merge: PlanNode) -> bool:
    """Whether a Merge takes what enters and what goes on, and waits for nothing else."""
    return len(merge.inputs) == 2 and not merge.after and not merge.behind


def _first_numbers(block: Block) -> dict[str, int]:
    """For each block, by its frame's name, the number of its first node."""
    found, first = {}, 0
    for each in block.walk():
        found[each.frame] = first
        first += len(each.nodes)
    return found


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
