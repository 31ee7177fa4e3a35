"""The state machine of one step: what may run next (white paper, section 3.1).

Pure: no threads, no kernels, no values. It counts for every unit of work how many others it still
waits for; `complete` says what became ready. A unit is one kernel call, or a region of them, or the
arrival of a late feed, which is never ready and completed from outside.
"""

from __future__ import annotations

from collections.abc import Sequence

from flowbook.exec.engine.units import Unit


class Structure:
    """What all steps of one plan share.

    Attributes:
        waits: for each unit how many others it waits for.
        successors: for each unit those that wait for it.
        first: the units that wait for none.
        uses: for each value how often units take it.
    """

    def __init__(self, units: Sequence[Unit], values: int) -> None:
        producer = [-1] * values
        for index, unit in enumerate(units):
            for value in unit.outputs:
                producer[value] = index
        self.waits: list[int] = []
        self.successors: list[list[int] | tuple[()]] = [()] * len(units)
        self.uses = [0] * values
        successors = self.successors
        for index, unit in enumerate(units):
            for value in unit.inputs:
                self.uses[value] += 1
            before = {producer[value] for value in unit.inputs}
            before.update(unit.after)
            before.discard(-1)
            for other in before:
                followers = successors[other]
                if followers:
                    followers.append(index)
                else:
                    successors[other] = [index]
            self.waits.append(len(before))
        self.first = [
            i for i, unit in enumerate(units) if not self.waits[i] and not unit.is_external
        ]


class Step:
    """One run of a plan.

    Attributes:
        waits: for each unit how many others it still waits for; -1 once it has completed.
        unfinished: how many units have not completed.
    """

    __slots__ = ("_successors", "unfinished", "waits")

    def __init__(self, structure: Structure) -> None:
        self.waits = structure.waits.copy()
        self._successors = structure.successors
        self.unfinished = len(self.waits)

    def complete(self, unit: int) -> list[int]:
        """Note that a unit has ended; return those that became ready by it."""
        self.unfinished -= 1
        waits = self.waits
        waits[unit] = -1
        ready = []
        for other in self._successors[unit]:
            waits[other] -= 1
            if not waits[other]:
                ready.append(other)
        return ready

    def is_complete(self, unit: int) -> bool:
        """Whether a unit has ended."""
        return self.waits[unit] < 0
