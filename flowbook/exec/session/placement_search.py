"""A search for a placement: simulated steps first, then the best few as steps that are run.

What is run for that is undone: variables and random states are put back, and everything returns to
where it was. A step that does more, as one that takes from a queue, is not run.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from flowbook.exec.placement.search import Search
from flowbook.exec.plan.explanation import Explanation
from flowbook.exec.plan.pipeline import Prepared
from flowbook.exec.report import Report, Table, in_seconds
from flowbook.graph.model.counted import counted
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.long_work import track
from flowbook.graph.model.touch import RANDOM_STATE, VARIABLE, Access
from flowbook.graph.model.whole_numbers import as_whole

# Before steps are timed so many run, in which code is written; so many are timed at least.
_BEFORE = 3
_LEAST = 3

_UNDONE = {VARIABLE.name, RANDOM_STATE.name}


class Candidate(NamedTuple):
    """A placement that was looked at.

    Attributes:
        name: what it is.
        plan: the plan of the step with it.
        measured: the seconds of its fastest step; None if none was run.
    """

    name: str
    plan: Explanation
    measured: float | None


class PlacementSearch(Report):
    """What a search for a placement has found.

    Attributes:
        plan: the best: by the steps that were run or, if none were, by the simulation.
            `sess.replace` takes it.
        candidates: what there was before, and the best that were found.
        tried: how many placements were simulated.
        is_interrupted: whether Ctrl-C ended it; the best until then is kept.
        not_run: why no steps were run; empty if some were.
    """

    def __init__(self, candidates: Sequence[Candidate], search: Search, not_run: str) -> None:
        best = min(candidates, key=_taken)
        self.plan = best.plan
        self.candidates = candidates
        self.tried = search.tried
        self.is_interrupted = search.is_interrupted
        self.not_run = not_run

    @property
    def table(self) -> Table:
        """A row for each placement."""
        rows = [
            (
                each.name,
                in_seconds(each.plan.seconds),
                "–" if each.measured is None else in_seconds(each.measured),
            )
            for each in self.candidates
        ]
        notes = [f"No step was run: {self.not_run}."] if self.not_run else []
        if self.plan is not self.candidates[0].plan:
            notes.append("`sess.replace(found.plan)` takes the best.")
        interrupted = ", until it was interrupted" if self.is_interrupted else ""
        title = f"{counted(self.tried, 'placement')} simulated{interrupted}"
        return Table(title, ("placement", "predicted", "measured"), rows, notes, (1, 2))


def _taken(candidate: Candidate) -> float:
    """What a step takes: as measured, if steps were run."""
    return candidate.plan.seconds if candidate.measured is None else candidate.measured


class Running(NamedTuple):
    """How steps are run with a placement.

    Attributes:
        put: puts operations where a plan has them, and gives what runs a step.
        keep: keeps what variables hold, and gives what puts it back, and operations where the
            present plan has them.
    """

    put: Callable[[Explanation], Callable[[], object]]
    keep: Callable[[Explanation], Callable[[], object]]


def searched(
    plans: Sequence[tuple[str, Explanation]],
    search: Search,
    running: Running | None,
    not_run: str,
    seconds: float,
) -> PlacementSearch:
    """Which of some placements is the best, the first of which is the present one.

    Args:
        plans: the placements, each with what it is.
        search: what found them.
        running: how their steps are run; None if they are not.
        not_run: why not.
        seconds: how long they may be run.
    """
    measured: list[float | None] = [None] * len(plans)
    if running is not None and not search.is_interrupted:
        put_back = running.keep(plans[0][1])
        try:
            for place in track(range(len(plans)), "measuring"):
                run = running.put(plans[place][1])
                measured[place] = _fastest(run, seconds / len(plans))
        except KeyboardInterrupt:
            search.is_interrupted = True
        finally:
            put_back()
    if None in measured:  # Of what was run and what was not none is better.
        measured = [None] * len(plans)
    found = [Candidate(*plan, took) for plan, took in zip(plans, measured, strict=True)]
    return PlacementSearch(found, search, not_run)


def _fastest(run: Callable[[], object], seconds: float) -> float:
    """The seconds of the fastest step."""
    for _ in range(_BEFORE):
        run()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < _LEAST or time.perf_counter() < end:
        begun = time.perf_counter()
        run()
        times.append(time.perf_counter() - begun)
    return min(times)


def what_stays(prepared: Prepared) -> str:
    """Why a step cannot be run for a measurement, as all that it does can be undone; or empty."""
    for operation in prepared.stateful:
        kind = operation.op_def.owns
        if kind is not None and kind not in _UNDONE:
            return f"{operation.name!r} is a {kind.replace('_', ' ')}, which cannot be put back"
    for operation in prepared.operations:
        touches = operation.op_def.touches
        if touches is not None and touches.access is Access.OUTSIDE and not touches.only_fails:
            return f"{operation.name!r} acts outside the graph"
    return ""


def search_of(seconds: Any, tries: Any, seed: Any) -> Search:
    """A search that takes half of some time.

    Raises:
        InvalidArgumentError: if a number is not positive, or none.
    """
    is_time = isinstance(seconds, int | float | np.number) and 0 < seconds < math.inf
    if not is_time or isinstance(seconds, bool):
        raise InvalidArgumentError(f"seconds is how long to search, more than 0, not {seconds!r}")
    if tries is not None and (as_whole(tries) or 0) < 1:
        raise InvalidArgumentError(f"tries is a number of placements from 1 on, not {tries!r}")
    if as_whole(seed) is None:
        raise InvalidArgumentError(f"seed is an integer, not {seed!r}")
    return Search(seconds / 2, tries, seed)
