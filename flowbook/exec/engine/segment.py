"""Units that need no waiting between them, in stretches that are written as code one by one.

At first a stretch runs unit by unit, and every kernel's result is checked against its definition.
Either way a value that the segment made is let go after its last use. The state machine of the step
sees the segment as one unit.

Programs that grow from one another share their stretches, but for those in which another value
lives on than before: so what has been checked and written is not checked and written again because
something was added to the graph.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate, chain
from typing import Any

from flowbook.exec.engine.code.generate import Generated, on_values
from flowbook.exec.engine.code.setting import Setting
from flowbook.exec.engine.code.statements import Branches
from flowbook.exec.engine.units import Handle, Kernel, Unit, Values
from flowbook.exec.interruptions import is_interruption
from flowbook.exec.plan.failure import UnitFailure, late
from flowbook.graph.rewrite.layered import Table, grown

# Units in a stretch at most: compiling a function costs memory by its length.
LONGEST = 1000

# A stretch that has run so often, in programs that grew from one another, is worth its code.
RUNS_UNWRITTEN = 2

# Most stretches are never written.
_UNWRITTEN: Mapping[bool, Generated] = {}


class Stretch:
    """Units in the order in which they run.

    Args:
        units: the units.
        dying: for each of them the values that nothing needs after it.
        setting: what code is written with.

    Attributes:
        runs: how often it has run to its end.
    """

    __slots__ = ("_dying", "_setting", "_written", "runs", "units")

    def __init__(
        self, units: Sequence[Unit], dying: Sequence[tuple[int, ...]], setting: Setting
    ) -> None:
        self.units = units
        self.runs = 0
        self._dying = dying
        self._setting = setting
        self._written = _UNWRITTEN

    def cut(self) -> list[Stretch]:
        """This stretch in pieces that are not too long, where it can be cut so."""
        if len(self.units) <= LONGEST:
            return [self] if self.units else []
        together = _until(self.units)
        pieces, start = [], 0
        while start < len(self.units):
            stop = min(start + LONGEST, len(self.units))
            while stop < len(self.units) and together[stop - 1] >= stop:
                stop = together[stop - 1] + 1
            pieces.append(Stretch(self.units[start:stop], self._dying[start:stop], self._setting))
            start = stop
        return pieces

    def joined(self, other: Stretch) -> Stretch:
        """This stretch and one that follows it, whose program may have grown from this one's."""
        units, dying = [*self.units, *other.units], [*self._dying, *other._dying]
        return Stretch(units, dying, other._setting)

    def with_change(self, place: int, value: int, dies: bool) -> Stretch:
        """This stretch, but that a value dies after the unit at that place, or lives on."""
        dying = self._dying[place]
        if (value in dying) is dies:
            return self
        changed = list(self._dying)
        changed[place] = (*dying, value) if dies else tuple([v for v in dying if v != value])
        return Stretch(self.units, changed, self._setting)

    def run_checked(self, values: Values, deadline: float | None) -> None:
        """Run unit by unit.

        Raises:
            UnitFailure: if one failed.
            DeadlineExceededError: if the deadline passes first.
        """
        unit = None
        try:
            for unit, dying in zip(self.units, self._dying, strict=True):
                if deadline is not None and time.monotonic() > deadline and self._may_stop():
                    raise late()
                unit.put(values)
                for value in dying:
                    values[value] = None
        except Exception as error:
            if isinstance(unit, Kernel) and not is_interruption(error):
                raise UnitFailure(unit.index, [values[v] for v in unit.inputs]) from error
            raise
        self.runs += 1

    def _may_stop(self) -> bool:
        may_stop = self._setting.may_stop
        return may_stop is None or may_stop()

    def run_written(self, values: Values, deadline: float | None) -> None:
        """Run as generated code, which is written when it is first wanted.

        Raises:
            UnitFailure: if a unit failed.
            DeadlineExceededError: if the deadline passes first.
        """
        with_deadline = deadline is not None
        written = self._written.get(with_deadline)
        if written is None:
            dying = {*chain.from_iterable(self._dying)}
            written = on_values(self.units, dying, self._setting, with_deadline)
            self._written = {**self._written, with_deadline: written}
        try:
            written.function(values, deadline)
        except Exception as error:
            failure = None if is_interruption(error) else written.failure(error)
            if failure is None:
                raise
            try:
                raise failure from error
            finally:
                del failure  # It holds this frame.
        self.runs += 1


def _until(units: Sequence[Unit]) -> Sequence[int]:
    """For each unit the last one that has to be in a stretch with it.

    What is made in a branch may have no value where that ends, until what runs on the other side
    has made it too, or nothing on this side needs it any more.
    """
    branches = [index for index, unit in enumerate(units) if isinstance(unit, Branches)]
    if not branches:
        return range(len(units))
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for index in branches:
        for value in units[index].outputs:
            first.setdefault(value, index)
            last[value] = index
    needed = {v for unit in units if not isinstance(unit, Branches) for v in unit.inputs}
    for index in branches:
        for value in units[index].inputs:
            if value in first and value not in needed:
                last[value] = max(last[value], index)
    found = list(range(len(units)))
    for value, index in first.items():
        found[index] = max(found[index], last[value])
    return list(accumulate(found, max))


class Segment(Unit):
    """Stretches in the order in which they run.

    Args:
        units: what runs, each after all that it needs.
        inputs, outputs, after: see `Unit`.
        setting: what code is written with.
        begun: another segment that this one begins with, unit by unit.

    Attributes:
        deadline: the place of the deadline among the values.
        stretches: all units.
    """

    __slots__ = ("_last_use", "deadline", "stretches")

    def __init__(
        self,
        units: Sequence[Unit],
        inputs: tuple[int, ...],
        outputs: tuple[int, ...],
        after: tuple[int, ...],
        deadline: int,
        setting: Setting,
        begun: Segment | None = None,
    ) -> None:
        super().__init__(inputs, outputs, after)
        self.deadline = deadline
        self._last_use: Table[int, int] = {} if begun is None else grown(begun._last_use)
        self.stretches: list[Stretch] = [] if begun is None else begun.stretches.copy()
        kept, kept_before = {*outputs}, {*begun.outputs} if begun is not None else set()
        self._append(units, kept, kept ^ kept_before, setting)

    @property
    def within(self) -> Sequence[Unit]:
        """See `Unit`."""
        return [unit for stretch in self.stretches for unit in stretch.units]

    def _append(
        self, units: Sequence[Unit], kept: set[int], affected: set[int], setting: Setting
    ) -> None:
        """Append what is new, and let values live on, or not, for which that has changed.

        These are what new units take, and what is kept now and was not, or the other way round.
        """
        last_use, stretches = self._last_use, self.stretches
        starts = [0, *accumulate([len(stretch.units) for stretch in stretches])]
        start = starts.pop()
        added = units[start:]
        new: dict[int, int] = {}
        for index, unit in enumerate(added, start):
            if not isinstance(unit, Handle):
                for value in unit.outputs:
                    new[value] = index
            for value in unit.inputs:
                if value in new or value in last_use:
                    new[value] = index
        for value in affected.union(new):
            if value not in last_use:
                continue
            place = last_use[value]
            number = bisect_right(starts, place) - 1
            dies = value not in new and value not in kept
            stretches[number] = stretches[number].with_change(place - starts[number], value, dies)
        last_use.update(new)
        dying: list[tuple[int, ...]] = [()] * len(added)
        for value, index in new.items():
            if value not in kept:
                dying[index - start] += (value,)
        tail = Stretch(added, dying, setting)
        # So that there are few, each is longer than what was added to it.
        while stretches and len(stretches[-1].units) <= len(tail.units) <= LONGEST // 2:
            tail = stretches.pop().joined(tail)
        stretches += tail.cut()

    def run(self, values: Values) -> Sequence[Any]:
        """Run all units, those one by one that have not often run.

        Raises:
            UnitFailure: if one failed.
            DeadlineExceededError: if the deadline passes first.
        """
        deadline = values[self.deadline]
        for stretch in self.stretches:
            if stretch.runs < RUNS_UNWRITTEN:
                stretch.run_checked(values, deadline)
            else:
                stretch.run_written(values, deadline)
        return [values[v] for v in self.outputs]


class Region(Unit):
    """A segment as generated code."""

    __slots__ = ("_segment",)

    def __init__(self, segment: Segment) -> None:
        super().__init__(segment.inputs, segment.outputs, segment.after)
        self.behind = segment.behind
        self._segment = segment

    @property
    def within(self) -> Sequence[Unit]:
        """See `Unit`."""
        return self._segment.within

    def run(self, values: Values) -> Sequence[Any]:
        """Run all units, as `Segment.run` does."""
        deadline = values[self._segment.deadline]
        for stretch in self._segment.stretches:
            stretch.run_written(values, deadline)
        return [values[v] for v in self.outputs]
