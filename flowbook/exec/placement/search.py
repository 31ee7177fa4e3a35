"""A search over placements, against the simulation of a step (simulated annealing).

Where the greedy choice ends is where it begins: what it gives never ends later. As in the learned
placement of Mirhoseini et al., "Device Placement Optimization with Reinforcement Learning" (2017),
what is moved is groups of operations, single ones and such as follow one another; here nothing is
learned but which placements end early.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Sequence

from flowbook.exec.placement.assignment import Assignment, Problem, assign, finish_of
from flowbook.exec.placement.simulation import order_of, ranks
from flowbook.graph.model.long_work import track

# A search tells so often how far it is.
_SLICES = 100

# A step may end later by such a part for a while: at the beginning, and at the end.
_HOT, _COLD = 0.05, 0.0005

# Placements are different if their ends are by such a part.
_DIFFERENT = 1e-3


class Search:
    """Looks for an assignment that ends earlier than the greedy one.

    Args:
        seconds: how long it looks; None for any time.
        tries: how many placements are simulated, at most; None for any number.
        seed: what it draws from: with as many tries it finds the same.
        most: so many of the best are kept.

    Attributes:
        tried: how many it has simulated.
        is_interrupted: whether Ctrl-C has ended it; the best until then are kept.
        found: the best, with the groups' devices, each after those that end earlier.
        greedy: what it began with.
    """

    def __init__(
        self, seconds: float | None, tries: int | None, seed: int = 0, most: int = 3
    ) -> None:
        self.tried = 0
        self.is_interrupted = False
        self.found: list[tuple[float, list[int]]] = []
        self.greedy: Assignment | None = None
        self._seconds = math.inf if seconds is None else seconds
        self._tries = tries
        self._random = random.Random(seed)
        self._most = most

    def __call__(self, problem: Problem) -> Assignment:
        """The best assignment that was found."""
        greedy = self.greedy = assign(problem)
        self._keep(greedy.end, list(greedy.chosen))
        order = order_of(problem.jobs, ranks(problem.jobs, problem.transfer))
        free = [number for number in problem.group_of if len(problem.feasible[number]) > 1]
        if free:
            try:
                self._anneal(problem, order)
            except KeyboardInterrupt:
                self.is_interrupted = True
        return self.best[0] if len(self.best) == 1 else self.best[1]

    @property
    def best(self) -> list[Assignment]:
        """The greedy assignment, and those that end earlier, the earliest first."""
        greedy = self.greedy
        if greedy is None:
            return []
        earlier = [(end, chosen) for end, chosen in self.found if end < greedy.end]
        return [greedy, *[greedy._replace(chosen=c, end=end) for end, c in earlier]]

    def _anneal(self, problem: Problem, order: Sequence[int]) -> None:
        """Move groups, at first also where the step ends later then."""
        end, chosen = self.found[0]
        begun = time.monotonic()
        for share in track(range(_SLICES), "searching"):
            heat = _HOT * (_COLD / _HOT) ** (share / _SLICES) * self.found[0][0]
            while not self._is_over(share + 1, time.monotonic() - begun):
                moved = self._moved(problem, order, chosen)
                self.tried += 1
                other = finish_of(problem, order, moved)
                if other > end and self._random.random() > math.exp((end - other) / heat):
                    continue
                if problem.room.fit(moved):
                    end, chosen = other, moved
                    self._keep(end, chosen)
            if end > self.found[0][0] * (1 + _HOT):
                end, chosen = self.found[0]

    def _is_over(self, share: int, passed: float) -> bool:
        """Whether a slice of the search is."""
        if self._tries is not None and self.tried >= self._tries * share // _SLICES:
            return True
        return passed >= self._seconds * share / _SLICES

    def _moved(self, problem: Problem, order: Sequence[int], chosen: Sequence[int]) -> list[int]:
        """The same with a group, or some whose jobs follow one another, on another device."""
        draw, moved = self._random, list(chosen)
        first = draw.randrange(len(order))
        # Of long stretches there are few, and of single jobs as many as of all others.
        length = 1 if draw.random() < 0.5 else int(len(order) ** draw.random())
        device = draw.randrange(len(problem.alike))
        for index in order[first : first + length]:
            number = problem.group_of[index]
            if device in problem.feasible[number]:
                moved[number] = device
        return moved

    def _keep(self, end: float, chosen: list[int]) -> None:
        """Keep an assignment if it is one of the best, and ends like none of these."""
        if len(self.found) == self._most and end >= self.found[-1][0]:
            return
        for place, (other, _) in enumerate(self.found):
            if abs(end - other) <= _DIFFERENT * other:
                if end < other:
                    self.found[place] = end, chosen
                    self.found.sort(key=lambda each: each[0])
                return
        self.found.append((end, chosen))
        self.found.sort(key=lambda each: each[0])
        del self.found[self._most :]
