"""What a step takes from queues and readers, and gives back if it is given up while it waits.

A step that waits at one queue may have taken from another already. If it is given up then, by a
timeout, an interrupt or who stops its runner, or if what it waits for does not come, it puts back
what it took, the last first. So nothing is lost, and what is taken in pairs stays in pairs.

What has been used is not put back: something was computed from it that others can tell of, such as
a variable's value or another queue's element, or computing failed on it. Nor is what was taken
inside of a loop, or in a step on several devices, or where feeds arrive late.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from flowbook.exec.engine.async_call import AsyncCall
from flowbook.exec.engine.structure import Structure


class Uses(NamedTuple):
    """Who uses what the steps of one plan take.

    Attributes:
        waiting: how many units may have to wait.
        taken: for each unit that somebody can tell ran those units that take what it uses.
    """

    waiting: int
    taken: Mapping[int, Collection[int]]


def uses_of(structure: Structure) -> Uses | None:
    """Who uses what; None if a step has nothing to give back when it waits."""
    units = structure.units
    asynchronous = [index for index, unit in enumerate(units) if unit.is_async]
    taking = [index for index in asynchronous if units[index].takes]
    is_plain = len(structure.frames) == 1 and structure.port is None
    if len(asynchronous) < 2 or not is_plain or any(unit.is_external for unit in units):
        return None
    used: dict[int, set[int]] = {}
    for index in taking:
        for other in _behind(structure, index):
            if units[other].acts and other not in taking:
                used.setdefault(other, set()).add(index)
    return Uses(len(asynchronous), used) if taking else None


def _behind(structure: Structure, index: int) -> set[int]:
    """The units that need what a unit gives, or run after it."""
    found: set[int] = set()
    left = [index]
    while left:
        each = left.pop()
        takers = [t for v in structure.units[each].outputs for t in structure.takers.get(v, ())]
        following = {*takers, *structure.followers[each], *structure.later.get(each, ())} - found
        found |= following
        left += following
    return found


class GivingBack:
    """What a step has taken and not used, as long as it may have to wait for more.

    Args:
        uses: who uses what.
    """

    __slots__ = ("_calls", "_left", "_uses")

    def __init__(self, uses: Uses) -> None:
        self._uses = uses
        self._left = uses.waiting
        self._calls: list[AsyncCall] = []

    def begin(self, index: int, call: AsyncCall | None = None) -> None:
        """Note that a unit is about to run; one that puts something somewhere may have to wait."""
        if call is None or not call.unit.puts:
            self.use(index)

    def take(self, call: AsyncCall) -> None:
        """Note what is about to be taken."""
        if call.unit.takes:
            self._calls.append(call)

    def end(self, index: int) -> None:
        """Note that a unit has what it waited for, or has done that."""
        self._left -= 1
        self.use(index)
        if not self._left:
            self._calls.clear()

    def use(self, index: int) -> None:
        """Note that what a unit does has been done."""
        used = self._uses.taken.get(index)
        if used is not None:
            self._calls = [call for call in self._calls if call.index not in used]

    def give_back(self) -> None:
        """Put back what is left, the last first."""
        calls = self._calls
        while calls:
            calls[-1].give_back()
            calls.pop()
