"""Units that need no waiting between them, run one after the other: how a plan first runs.

Every kernel's result is checked against its definition, and a value that the segment made is let go
after its last use. The state machine of the step sees the segment as one unit.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from flowbook.exec.engine.units import Handle, Kernel, Unit, Values
from flowbook.exec.plan.failure import UnitFailure, late


class Segment(Unit):
    """Units in the order in which they run.

    Args:
        units: what runs, each after all that it needs.
        outputs: the values that are needed when it has run.
        inputs, after: see `Unit`.
        deadline: the place of the deadline among the values.
        begun: another segment that this one begins with, whose units it shares.

    Attributes:
        members: the units.
    """

    __slots__ = ("_deadline", "_dying", "_last_use", "members")

    def __init__(
        self,
        units: Sequence[Unit],
        inputs: tuple[int, ...],
        outputs: tuple[int, ...],
        after: tuple[int, ...],
        deadline: int,
        begun: Segment | None = None,
    ) -> None:
        super().__init__(inputs, outputs, after)
        self.members = units
        self._deadline = deadline
        self._last_use: dict[int, int] = {} if begun is None else begun._last_use.copy()
        self._dying: list[tuple[int, ...]] = [] if begun is None else begun._dying.copy()
        self._find_dying({*outputs}, {*begun.outputs} if begun is not None else set())

    def _find_dying(self, kept: set[int], kept_before: set[int]) -> None:
        """For each unit the values that nothing needs after it; of the first ones that is known.

        Only what new units take, or what is kept now and was not, or the other way round, may die
        elsewhere than before.
        """
        last_use, dying, start = self._last_use, self._dying, len(self._dying)
        affected = kept ^ kept_before
        new: dict[int, int] = {}
        for index in range(start, len(self.members)):
            unit = self.members[index]
            if not isinstance(unit, Handle):
                new.update(dict.fromkeys(unit.outputs, index))
            for value in unit.inputs:
                if value in new or value in last_use:
                    new[value] = index
        for value in affected.union(new):
            place = last_use.get(value)
            if place is not None:
                others = tuple([v for v in dying[place] if v != value])
                dying[place] = others if value in new or value in kept else (*others, value)
        last_use.update(new)
        dying += [()] * (len(self.members) - start)
        for value, index in new.items():
            if value not in kept:
                dying[index] += (value,)

    def run(self, values: Values) -> Sequence[Any]:
        """Run all units.

        Raises:
            UnitFailure: if one failed.
            DeadlineExceededError: if the deadline passes first.
        """
        deadline = values[self._deadline]
        unit = None
        try:
            for unit, dying in zip(self.members, self._dying, strict=True):
                if deadline is not None and time.monotonic() > deadline:
                    raise late()
                unit.put(values)
                for value in dying:
                    values[value] = None
        except Exception as error:
            if isinstance(unit, Kernel):
                raise UnitFailure(unit.index, [values[v] for v in unit.inputs]) from error
            raise
        return [values[v] for v in self.outputs]
