"""A program that waits, as the state machine sees it: few units, of which most need no waiting.

What needs no waiting is a segment, which runs as code; beside these stay single kernels that wait,
and those that route values where it is not settled before the step where they go. A loop in which
nothing waits, nor goes to another device, is code like all else.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from flowbook.exec.engine.atomic.giving_back import begin_acting, may_stop, pause_acting
from flowbook.exec.engine.code.lowering import lowered
from flowbook.exec.engine.code.marking import marked
from flowbook.exec.engine.code.setting import Setting
from flowbook.exec.engine.regions import Place, find_regions, places_of, split_region
from flowbook.exec.engine.segment import Region, Segment
from flowbook.exec.engine.structure import Frame, Structure
from flowbook.exec.engine.units import Unit
from flowbook.exec.plan.outline import Item, Layout, Outline
from flowbook.exec.plan.program import Block, Part
from flowbook.graph.model.retag import Retag


class _Group(NamedTuple):
    """Units that become a segment.

    Attributes:
        members: their numbers.
        frame: the name of the frame in which they run.
        lowered: the same without any that route values; None if there are none such among them.
    """

    members: Sequence[int]
    frame: str = ""
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
        takes: whether the step takes what may be used here.
    """

    def __init__(
        self,
        units: Sequence[Unit],
        part: Part,
        late: Sequence[int],
        is_routed: bool,
        port: int | None,
        takes: bool,
    ) -> None:
        self._units = units
        self._part = part
        self._late = late
        self._port = port
        self._takes = takes
        self._outline = Outline(part) if is_routed else None
        self._takers: dict[int, list[int]] = {}
        self._followers: dict[int, list[int]] = {}
        for index, unit in enumerate(units):
            for value in unit.inputs:
                self._takers.setdefault(value, []).append(index)
            for other in unit.after:
                self._followers.setdefault(other, []).append(index)

    def structure(self, setting: Setting, is_first: bool) -> Structure:
        """The state machine's view of the program.

        Args:
            setting: what code is written with.
            is_first: whether kernels are called one by one, and checked, where there are no loops
                or branches among them.
        """
        if self._outline is None:
            return self._made(self._plain(), setting, is_first)
        opaque = set(self._waiting_frames(self._outline))
        while True:
            try:
                groups = list(self._routed(self._outline, "", opaque, setting))
            except _Opaque as found:
                opaque.update(found.frames)
            else:
                return self._made(groups, setting, is_first)

    # What runs together

    def _plain(self) -> list[_Group]:
        """The groups of a program of one frame all of which runs."""
        order = [*self._late, *range(len(self._part.nodes))]
        regions = find_regions(places_of(self._units, order))
        return [_Group([order[place] for place in region]) for region in regions]

    def _routed(
        self, outline: Outline, frame: str, opaque: Collection[str], setting: Setting
    ) -> Iterator[_Group]:
        """The groups of a frame, and of those within it that are no code."""
        layout = outline.layouts[frame]
        stays = [self._stays(item, opaque) for item in layout.items]
        places = [
            Place(item.before, stays[place] or self._waits(item))
            for place, item in enumerate(layout.items)
        ]
        for region in find_regions(places):
            group = None
            if _is_sure(outline, layout, region):
                group = self._group(outline, layout, region, setting)
            if group is not None:
                yield group
                continue
            alone = [place for place in region if self._routes(layout.items[place])]
            for members in split_region(layout, region, alone):
                group = self._group(outline, layout, members, setting)
                if group is None:
                    blocks = [layout.items[place].block for place in members]
                    raise _Opaque([block.frame for block in blocks if block is not None])
                yield group
        for item, stays_so in zip(layout.items, stays, strict=True):
            if stays_so and item.block is not None:
                yield from self._routed(outline, item.block.frame, opaque, setting)

    def _group(
        self, outline: Outline, layout: Layout, places: Sequence[int], setting: Setting
    ) -> _Group | None:
        """Items of a frame as one segment; None if they cannot be written as code."""
        items = [layout.items[place] for place in places]
        frame = layout.block.frame
        members = [index for item in items for index in item.nodes]
        if not any(item.block is not None or self._routes(item) for item in items):
            return _Group(members, frame)
        if any(self._goes_round(item) for item in items):
            return None
        blocks = [item.block for item in items if item.block is not None]
        inside = {index for block in blocks for index in outline.numbers(block)}
        order = sorted(set(members) - inside)
        nodes = tuple([self._part.nodes[index] for index in order])
        whole = Block(nodes, tuple(blocks))
        for block in blocks:
            order += outline.numbers(block)
        unit_of = {index: number for number, index in enumerate(order)}
        units = [_moved(self._units[index], unit_of) for index in order]
        _, outputs = self._border(members, setting.known)
        own = {*members}
        waited = [unit_of[i] for i in members if not own.issuperset(self._followers.get(i, ()))]
        found = lowered(units, whole, outputs, setting, waited)
        return _Group(members, frame, found) if found is not None else None

    def _routes(self, item: Item) -> bool:
        """Whether an item is a node that takes or gives what may be dead, or goes round."""
        unit = self._units[item.nodes[0]]
        may_die = unit.fires_on_any or unit.gives_dead or not item.is_even
        return item.block is None and (may_die or self._goes_round(item))

    def _goes_round(self, item: Item) -> bool:
        """Whether an item takes values from one iteration to another, or out of them."""
        unit = self._units[item.nodes[0]]
        if item.block is not None:
            return False
        return unit.retag is not Retag.NONE or any(map(self._is_carried, unit.inputs))

    def _is_carried(self, value: int) -> bool:
        return value in self._carried

    @cached_property
    def _carried(self) -> set[int]:
        """What comes from the iteration before."""
        units = [unit for unit in self._units if unit.retag is Retag.INCREMENT]
        return {value for unit in units for value in unit.outputs}

    def _waits(self, item: Item) -> bool:
        return item.block is None and self._units[item.nodes[0]].waits

    def _stays(self, item: Item, opaque: Collection[str]) -> bool:
        """Whether an item is a loop that the state machine goes round."""
        return item.block is not None and (item.block.frame in opaque or not item.is_even)

    def _waiting_frames(self, outline: Outline) -> Iterator[str]:
        """The loops in which something waits or goes to another device."""
        for layout in outline.layouts.values():
            units = [self._units[index] for index in outline.numbers(layout.block)]
            if any(unit.waits or self._port in unit.inputs for unit in units):
                yield layout.block.frame

    # What becomes of it

    def _made(self, groups: Sequence[_Group], setting: Setting, is_first: bool) -> Structure:
        units, part = self._units, self._part
        if self._takes:
            setting = setting._replace(may_stop=may_stop)
        unit_of = {index: number for number, g in enumerate(groups) for index in g.members}
        single = [index for index in range(len(units)) if index not in unit_of]
        unit_of |= {index: len(groups) + place for place, index in enumerate(single)}
        made: list[Unit] = []
        for number, (members, frame, written) in enumerate(groups):
            inputs, outputs = self._border(members, setting.known)
            if frame:
                # An iteration has only what is asked for: constants and the deadline too.
                taken = {value for index in members for value in units[index].inputs}
                inputs += (*sorted(taken & setting.known.keys()), part.values)
            after = {unit_of[other] for index in members for other in units[index].after}
            behind = {unit_of[other] for index in members for other in units[index].behind}
            within = [units[index] for index in members] if written is None else written
            after_it = tuple(after - {number})
            if self._takes:
                within = marked(within, begin_acting, pause_acting)
            segment = Segment(within, inputs, outputs, after_it, part.values, setting)
            segment.behind = tuple(behind - {number} - after)
            made.append(segment if is_first and written is None else Region(segment))
        made += [_moved(units[index], unit_of) for index in single]
        frames = list(self._frames(groups, single, len(groups)))
        return Structure(made, dict(setting.known), part.fetches, frames, self._port)

    def _frames(
        self, groups: Sequence[_Group], single: Sequence[int], first: int
    ) -> Iterator[Frame]:
        """The frames that are left, the outermost first."""
        if self._outline is None:
            yield Frame("", 1, range(first + len(single)))
            return
        number_of = {index: first + place for place, index in enumerate(single)}
        for layout in self._outline.layouts.values():
            block = layout.block
            members = [n for n, group in enumerate(groups) if group.frame == block.frame]
            own = self._outline.own_numbers(block)
            members += [number_of[index] for index in own if index in number_of]
            if members or not block.frame:
                yield Frame(block.frame, block.parallel_iterations, members)

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


def _is_sure(outline: Outline, layout: Layout, region: Sequence[int]) -> bool:
    """Whether nothing that a region takes from outside may be dead."""
    inside = {*region}
    before = {other for place in region for other in layout.items[place].before} - inside
    return not any(outline.may_be_dead(layout, other) for other in before)


def _moved(unit: Unit, unit_of: Mapping[int, int]) -> Unit:
    """The unit, with what it waits for numbered anew; what has no number is not waited for."""
    if not unit.after and not unit.behind:
        return unit
    moved = copy.copy(unit)
    moved.after = tuple(dict.fromkeys([unit_of[i] for i in unit.after if i in unit_of]))
    moved.behind = tuple(dict.fromkeys([unit_of[i] for i in unit.behind if i in unit_of]))
    return moved
