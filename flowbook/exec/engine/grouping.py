"""A program that waits, as the state machine sees it: few units, of which most need no waiting.

What needs no waiting is a segment, which runs as code; beside these stay single kernels that wait,
and those that route values where it is not settled before the step where they go. A loop in which
nothing waits, nor goes to another device, is code like all else.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from flowbook.exec.engine.generate import Setting
from flowbook.exec.engine.lowering import lowered
from flowbook.exec.engine.regions import Place, find_regions, split_region
from flowbook.exec.engine.segment import Region, Segment
from flowbook.exec.engine.step import Frame, Structure
from flowbook.exec.engine.units import Kernel, Unit
from flowbook.exec.plan.outline import Item, Outline
from flowbook.exec.plan.program import Block, Part


class _Group(NamedTuple):
    """Units that become a segment.

    Attributes:
        members: their numbers.
        lowered: the same without any that route values; None if there are none such among them.
    """

    members: Sequence[int]
    lowered: Sequence[Unit] | None = None


class _Opaque(Exception):
    """Some loops cannot be written as code."""

    def __init__(self, frames: Collection[str]) -> None:
        self.frames = frames


class Grouping:
    """The units of a program that waits, and how they are grouped.

    Args:
        units: those of the part's nodes, then others.
        part: the part.
        late: which units are late feeds.
        is_routed: whether values may be dead, or go round.
        port: the value that knows in which iteration it is.
    """

    def __init__(
        self,
        units: Sequence[Unit],
        part: Part,
        late: Sequence[int],
        is_routed: bool,
        port: int | None,
    ) -> None:
        self._units = units
        self._part = part
        self._late = late
        self._is_routed = is_routed
        self._port = port
        self._first_of = _first_numbers(part.block)
        self._takers: dict[int, list[int]] = {}
        for index, unit in enumerate(units):
            for value in unit.inputs:
                self._takers.setdefault(value, []).append(index)

    def structure(self, setting: Setting, is_first: bool) -> Structure:
        """The state machine's view of the program.

        Args:
            setting: what code is written with.
            is_first: whether kernels are called one by one, and checked, where there are no loops
                or branches among them.
        """
        opaque = set(self._waiting_frames()) if self._is_routed else set()
        while True:
            try:
                groups = self._routed(opaque, setting) if self._is_routed else self._plain()
                return self._made(groups, setting, is_first)
            except _Opaque as found:
                opaque.update(found.frames)

    # What runs together

    def _plain(self) -> list[_Group]:
        """The groups of a program of one frame all of which runs."""
        order = [*self._late, *range(len(self._part.nodes))]
        place_of = {index: place for place, index in enumerate(order)}
        producer = {v: place_of[i] for i, unit in enumerate(self._units) for v in unit.outputs}
        places = []
        for index in order:
            unit = self._units[index]
            sources = {producer[v] for v in unit.inputs if v in producer}
            places.append(Place(sources.union([place_of[i] for i in unit.after]), unit.waits))
        return [_Group([order[place] for place in region]) for region in find_regions(places)]

    def _routed(self, opaque: Collection[str], setting: Setting) -> list[_Group]:
        outline = Outline(self._part, opaque)
        opaque = {*opaque, *_uneven(outline)}
        places = [Place(item.before, self._waits(item, opaque)) for item in outline.items]
        groups: list[_Group] = []
        for region in find_regions(places):
            group = self._group(outline, region, setting) if _is_sure(outline, region) else None
            if group is not None:
                groups.append(group)
                continue
            alone = [place for place in region if self._routes(outline.items[place])]
            for members in split_region(outline, region, alone):
                group = self._group(outline, members, setting)
                if group is None:
                    items = [outline.items[place] for place in members]
                    raise _Opaque([item.block.frame for item in items if item.block is not None])
                groups.append(group)
        return groups

    def _group(self, outline: Outline, places: Sequence[int], setting: Setting) -> _Group | None:
        """Items as one segment; None if they cannot be written as code."""
        items = [outline.items[place] for place in places]
        members = [index for item in items for index in item.nodes]
        if not any(item.block is not None or self._routes(item) for item in items):
            return _Group(members)
        blocks = [item.block for item in items if item.block is not None]
        inside = {index for block in blocks for index in self._numbers(block)}
        order = sorted(set(members) - inside)
        nodes = tuple([self._part.nodes[index] for index in order])
        block = self._part.block._replace(nodes=nodes, blocks=tuple(blocks))
        for inner in blocks:
            order += self._numbers(inner)
        unit_of = {index: number for number, index in enumerate(order)}
        units = [_moved(self._units[index], unit_of) for index in order]
        _, outputs = self._border(members, setting.known)
        known, specs = setting.known, setting.specs
        found = lowered(units, block, known, specs, outputs, setting.is_wary)
        return _Group(members, found) if found is not None else None

    def _routes(self, item: Item) -> bool:
        """Whether an item is a node that takes or gives what may be dead."""
        unit = self._units[item.nodes[0]]
        is_node = item.block is None
        return is_node and (unit.fires_on_any or unit.gives_dead or not item.is_even)

    def _waits(self, item: Item, opaque: Collection[str]) -> bool:
        if item.block is None:
            return self._units[item.nodes[0]].waits
        return item.block.frame in opaque

    def _waiting_frames(self) -> Iterator[str]:
        """The loops in which something waits or goes to another device."""
        for block in self._part.block.blocks:
            units = [self._units[index] for index in self._numbers(block)]
            if any(unit.waits or self._port in unit.inputs for unit in units):
                yield block.frame

    def _numbers(self, block: Block) -> range:
        """Those of a block's units, and of those of the blocks within it."""
        first = self._first_of[block.frame]
        return range(first, first + sum(len(each.nodes) for each in block.walk()))

    # What becomes of it

    def _made(self, groups: Sequence[_Group], setting: Setting, is_first: bool) -> Structure:
        units, part = self._units, self._part
        unit_of = {index: number for number, g in enumerate(groups) for index in g.members}
        single = [index for index in range(len(units)) if index not in unit_of]
        unit_of |= {index: len(groups) + place for place, index in enumerate(single)}
        made: list[Unit] = []
        for number, (members, written) in enumerate(groups):
            inputs, outputs = self._border(members, setting.known)
            after = {unit_of[other] for index in members for other in units[index].after}
            behind = {unit_of[other] for index in members for other in units[index].behind}
            within = [units[index] for index in members] if written is None else written
            after_it = tuple(after - {number})
            segment = Segment(within, inputs, outputs, after_it, part.values, setting)
            segment.behind = tuple(behind - {number} - after)
            made.append(segment if is_first and written is None else Region(segment))
        made += [_moved(units[index], unit_of) for index in single]
        root = [*range(len(groups))]
        root += [unit_of[i] for i in single if i < len(part.block.nodes) or i >= len(part.nodes)]
        frames = [Frame("", 1, root)]
        first = len(part.block.nodes)
        for block in list(part.block.walk())[1:]:
            numbers = range(first, first + len(block.nodes))
            first += len(block.nodes)
            if numbers and unit_of[numbers[0]] >= len(groups):
                members = [unit_of[index] for index in numbers]
                frames.append(Frame(block.frame, block.parallel_iterations, members))
        structure = Structure(made, dict(setting.known), part.fetches, frames, self._port)
        if len(frames) == 1 and not any(map(_holds_up, made)):
            structure.straighten()
        return structure

    def _border(
        self, members: Sequence[int], known: Mapping[int, Any]
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The values that some units take from outside, and those that are needed outside."""
        units, fetched = self._units, {*self._part.fetches}
        own = {*members}
        inside = {v for i in members for v in units[i].outputs}
        inputs = {v for i in members for v in units[i].inputs if v not in known} - inside
        outputs = [
            v
            for v in inside
            if v not in known and (v in fetched or not own.issuperset(self._takers.get(v, ())))
        ]
        return tuple(sorted(inputs)), tuple(sorted(outputs))


def _first_numbers(block: Block) -> dict[str, int]:
    """For each block within one the number of its first node."""
    found, first = {}, 0
    for each in block.walk():
        found[each.frame] = first
        first += len(each.nodes)
    return found


def _uneven(outline: Outline) -> list[str]:
    """The loops of which it is not sure that all values enter them together."""
    items = [item for item in outline.items if not item.is_even]
    return [item.block.frame for item in items if item.block is not None]


def _is_sure(outline: Outline, region: Sequence[int]) -> bool:
    """Whether nothing that a region takes from outside may be dead."""
    inside = {*region}
    before = {other for place in region for other in outline.items[place].before} - inside
    return not any(map(outline.may_be_dead, before))


def _holds_up(unit: Unit) -> bool:
    """Whether it is not sure that a unit runs, or those that take what it gives."""
    may_be_dead = isinstance(unit, Kernel) and unit.node.attributes.get("may_be_dead")
    return bool(unit.is_external or unit.fires_on_any or unit.gives_dead or may_be_dead)


def _moved(unit: Unit, unit_of: Mapping[int, int]) -> Unit:
    """The unit, with what it waits for numbered anew; what has no number is not waited for."""
    if not unit.after and not unit.behind:
        return unit
    moved = copy.copy(unit)
    moved.after = tuple(dict.fromkeys([unit_of[i] for i in unit.after if i in unit_of]))
    moved.behind = tuple(dict.fromkeys([unit_of[i] for i in unit.behind if i in unit_of]))
    return moved
