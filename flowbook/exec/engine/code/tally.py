"""What loops and branches did when they ran last: how often, and on which side.

Each piece of code, and each structure of the state machine, keeps what its own last run did: a
tuple that the run stores when it ends, so that no iteration costs anything. A run that fails stores
nothing. What is asked for is put together from all pieces, the latest first.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Ran(NamedTuple):
    """What loops and branches did in the last run that had them.

    Attributes:
        trips: how often each loop's body ran in it, by the name of the loop's frame.
        sides: which side was taken last, by the ids of the Switches that led there: 1 that of true,
            0 that of false, None neither.
    """

    trips: Mapping[str, int]
    sides: Mapping[int, int | None]


# Which run is later than which.
run_number = itertools.count()


class Tally:
    """What one piece did when it ran last.

    Args:
        loops: the names of its loops' frames.
        branches: for each of its branches the ids of the Switches that lead there.

    Attributes:
        latest: the number of that run, what each loop did and what each branch; or nothing. One
            store replaces it, whichever thread it is that runs.
    """

    def __init__(self, loops: Sequence[str], branches: Sequence[Sequence[int]]) -> None:
        self.loops = loops
        self.branches = branches
        self.latest: list[tuple[Any, ...]] = [()]


class Tallies:
    """Those of all that a session runs, while there are such."""

    def __init__(self) -> None:
        self._tallies: weakref.WeakValueDictionary[int, Tally] = weakref.WeakValueDictionary()
        self._numbers = itertools.count()

    def new(self, loops: Sequence[str], branches: Sequence[Sequence[int]]) -> Tally:
        """One for a further piece."""
        made = self._tallies[next(self._numbers)] = Tally(loops, branches)
        return made

    def ran(self) -> Ran:
        """What loops and branches did in the last run that had them."""
        trips: dict[str, int] = {}
        sides: dict[int, int | None] = {}
        # All references at once: other threads make tallies meanwhile.
        tallies = [reference() for reference in self._tallies.valuerefs()]
        found = [(tally.latest[0], tally) for tally in tallies if tally is not None]
        later = sorted([each for each in found if each[0]], key=lambda each: each[0][0])
        for (_, *did), tally in later:
            trips.update(zip(tally.loops, did, strict=False))
            for switches, side in zip(tally.branches, did[len(tally.loops) :], strict=True):
                sides.update(dict.fromkeys(switches, side))
        return Ran(trips, sides)
