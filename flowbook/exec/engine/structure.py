"""What all steps of one plan share: frames, and which units wait for which.

A step itself, which runs through it, is `step.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from flowbook.exec.engine.units import Unit
from flowbook.graph.model.retag import Retag


class Frame:
    """One block of units, as all steps of one plan share it.

    Attributes:
        name: by which units enter it; empty for the outermost.
        parallel_iterations: how many iterations of it may be under way at once.
        members: its units, by number.
        waits: for each of them how many others it waits for.
        choices: for those that fire on any input how many they have in the first iteration, and
            in later ones.
        uses: for each value how many of its units take it.
        values: a place for each value that its units take, with what is there before the step; of
            the outermost nothing.
        fed: the fed values that its units take; of the outermost nothing.
        entrances: how many units of other frames enter it.
        exits: its units that leave it.
    """

    def __init__(self, name: str, parallel_iterations: int, members: Sequence[int]) -> None:
        self.name = name
        self.parallel_iterations = parallel_iterations
        self.members = members
        self.waits: dict[int, int] = {}
        self.choices: tuple[dict[int, int], dict[int, int]] = ({}, {})
        self.uses: dict[int, int] = {}
        self.values: dict[int, Any] = {}
        self.fed: list[int] = []
        self.entrances = 0
        self.exits: list[int] = []


class Structure:
    """What all steps of one plan share: who waits for whom.

    Args:
        units: what runs.
        known: values that are there before the step, in every iteration.
        kept: values that outlive their last use, being fetched.
        frames: the outermost frame and those within it, whose units follow one another.
        port: the value that goes to other parts of the step, and knows which iteration it is in.

    Attributes:
        taken: for each unit the values that it takes, each once.
        takers: for each value the units that take it.
        followers: for each unit those that wait for it otherwise, and run only if it does.
        later: for each unit those that wait for it, and run even if it does not.
        next: for each unit whose outputs stay in its iteration and have all that take them wait
            for them: all that wait for it, as often as they do; None for other units.
        first: the units that wait for nothing.
    """

    def __init__(
        self,
        units: Sequence[Unit],
        known: Mapping[int, Any],
        kept: Iterable[int],
        frames: Sequence[Frame] = (),
        port: int | None = None,
    ) -> None:
        self.units = units
        self.port = port
        self.root = frames[0] if frames else Frame("", 1, range(len(units)))
        self.frames = {frame.name: frame for frame in frames or (self.root,)}
        producer = {value: unit for unit in units for value in unit.outputs}
        self.takers: dict[int, list[int]] = {}
        self.followers: list[list[int] | tuple[()]] = [()] * len(units)
        self.later: dict[int, list[int]] = {}
        self.taken: list[tuple[int, ...]] = [()] * len(units)
        for frame in self.frames.values():
            for index in frame.members:
                self._add(index, units[index], frame, producer, known)
        # What is known before the step is taken by members of regions too, which do not say so.
        for value in {*kept, *[value for value in self.root.uses if value in known]}:
            self.root.uses[value] = self.root.uses.get(value, 0) + 1
        self.next: list[Sequence[int] | None] = [None] * len(units)
        for frame in self.frames.values():
            for index in frame.members:
                self.next[index] = self._next(index, frame)
        self.first = [
            index
            for index in self.root.members
            if not self.root.waits[index] and not units[index].is_external
        ]

    def _next(self, index: int, frame: Frame) -> Sequence[int] | None:
        """Who waits for a unit; see `next`."""
        unit, takers, choices = self.units[index], self.takers, frame.choices[0]
        if unit.retag is not Retag.NONE:
            return None
        found: list[int] = []
        for value in unit.outputs:
            if value not in frame.uses:
                return None  # It is let go at once.
            found += takers.get(value, ())
        if choices and not choices.keys().isdisjoint(found):
            return None
        return [*found, *self.followers[index], *self.later.get(index, ())]

    @cached_property
    def writing(self) -> frozenset[int]:
        """The units that write variables."""
        return frozenset([index for index, unit in enumerate(self.units) if unit.writes])

    @cached_property
    def switches(self) -> list[int]:
        """The units that give a value on one of two sides."""
        return [index for index, unit in enumerate(self.units) if unit.gives_dead]

    def _add(
        self,
        index: int,
        unit: Unit,
        frame: Frame,
        producer: dict[int, Unit],
        known: Mapping[int, Any],
    ) -> None:
        if unit.retag is Retag.PUSH:
            self.frames[unit.enters].entrances += 1
        elif unit.retag is Retag.POP:
            frame.exits.append(index)
        taken = self.taken[index] = tuple(dict.fromkeys(unit.inputs))
        sources = [v for v in taken if v in producer and v not in known]
        for value in taken:
            frame.uses[value] = frame.uses.get(value, 0) + 1
            if frame is self.root:
                continue
            frame.values[value] = known.get(value)
            if value not in producer and value not in known:  # It is fed, and so there everywhere.
                frame.fed.append(value)
                self.root.uses[value] = self.root.uses.get(value, 0) + 1
        for other in unit.after:
            followers = self.followers[other]
            if followers:
                followers.append(index)
            else:
                self.followers[other] = [index]
        for other in unit.behind:
            self.later.setdefault(other, []).append(index)
        waited = len(unit.after) + len(unit.behind)
        if unit.fires_on_any and len(sources) < len(taken):
            frame.waits[index] = waited
            return  # A feed or a constant is alive from the beginning: it waits for no other input.
        for value in sources:
            self.takers.setdefault(value, []).append(index)
        if not unit.fires_on_any:
            frame.waits[index] = len(sources) + waited
            return
        units = [producer[v] for v in sources]
        begins = sum(s.retag is Retag.PUSH and not s.is_constant for s in units)
        goes_on = sum(s.retag is Retag.INCREMENT for s in units)
        frame.waits[index] = waited + 1
        frame.choices[0][index] = len(sources) - goes_on
        frame.choices[1][index] = len(sources) - begins
