"""Times a case: warm-up, enough repetitions for the clock, one sample.

The garbage collector stays on while a step is timed, as it is for a user; a full collection runs
before each turn, untimed, so that no case pays for what another or an earlier one left behind.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from itertools import repeat
from time import perf_counter, perf_counter_ns

from benchmarks.case import Case


@dataclass(frozen=True)
class Effort:
    """How long to warm up and how long a sample lasts, in seconds."""

    warm_up: float
    sample: float


FULL = Effort(warm_up=0.5, sample=0.025)
QUICK = Effort(warm_up=0.1, sample=0.01)

# Calls before any timing.  The first goes through reference executors and tracers, the second
# may generate or compile code.
_LEAST_WARM_UP_CALLS = 5


class Timer:
    """Takes samples of one case."""

    def __init__(self, case: Case, effort: Effort) -> None:
        self._case = case
        self._effort = effort
        self._calls = 1

    def warm_up(self) -> None:
        """Bring the case to its steady state and choose how often a sample repeats its step."""
        if self._case.before_each is not None:
            if self._case.burst > 1:
                self._burst(self._case.before_each)
            return
        deadline = perf_counter() + self._effort.warm_up
        calls = 0
        while calls < _LEAST_WARM_UP_CALLS or perf_counter() < deadline:
            self._case.step()
            calls += 1
        while (seconds := self._repeat()) * self._calls < self._effort.sample:
            # A tenth more than computed: a sample that is a little too short needs no new round.
            self._calls = max(self._calls + 1, int(1.1 * self._effort.sample / seconds))

    def sample(self) -> list[float]:
        """Seconds per step: one mean over many repetitions, or one figure per single call."""
        gc.collect()
        if self._case.before_each is not None:
            return self._burst(self._case.before_each)
        # Whatever ran meanwhile has emptied the caches.
        self._case.step()
        return [self._repeat()]

    def _repeat(self) -> float:
        step = self._case.step
        start = perf_counter_ns()
        for _ in repeat(None, self._calls):
            step()
        return (perf_counter_ns() - start) * 1e-9 / self._calls

    def _burst(self, before_each: Callable[[], object]) -> list[float]:
        step = self._case.step
        samples = []
        for _ in range(self._case.burst):
            before_each()
            start = perf_counter_ns()
            step()
            samples.append((perf_counter_ns() - start) * 1e-9)
        return samples
