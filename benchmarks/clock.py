"""Times a case: warm-up, enough repetitions for the clock, one sample.

The garbage collector stays on while a step is timed, as it is for a user; a full collection runs
before each turn, untimed, so that no case pays for what another or an earlier one left behind.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from itertools import repeat
from math import ceil
from time import monotonic, perf_counter, perf_counter_ns, process_time, sleep
from typing import NamedTuple

from benchmarks.case import Case


@dataclass(frozen=True)
class Effort:
    """How long to warm up and how long a sample lasts, in seconds."""

    warm_up: float
    sample: float


FULL = Effort(warm_up=0.5, sample=0.025)
QUICK = Effort(warm_up=0.1, sample=0.01)
# Beside busy processes a turn lasts for many of the system's time slices.
BUSY = Effort(warm_up=1.0, sample=1.0)

# Calls before any timing.  The first goes through reference executors and tracers, the second
# may generate or compile code.
_LEAST_WARM_UP_CALLS = 5

# OpenBLAS's idle threads spin for 2**28 cycles of the processor, a tenth of a second, and are a
# busy process to whatever runs meanwhile.
_LOOK_EVERY = 0.005
_AT_REST = 0.1
_LONGEST_UNREST = 2.0


def rest() -> None:
    """Wait until this process uses no processor any more: all of its thread pools sleep."""
    end = monotonic() + _LONGEST_UNREST
    while monotonic() < end:
        start, used = perf_counter(), process_time()
        sleep(_LOOK_EVERY)
        if process_time() - used < _AT_REST * (perf_counter() - start):
            return


class Sample(NamedTuple):
    """Seconds per step in one turn, and of what stands beside it, pair by pair."""

    seconds: list[float]
    beside: list[float]


class Timer:
    """Takes samples of one case."""

    def __init__(self, case: Case, effort: Effort) -> None:
        self._case = case
        self._effort = effort
        self._calls = 1
        self._pairs = 1

    def warm_up(self) -> None:
        """Bring the case to its steady state and choose how often a sample repeats its step."""
        if self._case.before_each is not None:
            if self._case.burst > 1:
                self._burst(self._case.before_each)
            return
        for step in (self._case.beside, self._case.step):
            deadline = perf_counter() + self._effort.warm_up
            calls = 0
            while step and (calls < _LEAST_WARM_UP_CALLS or perf_counter() < deadline):
                step()
                calls += 1
        if self._case.beside is not None:
            self._calls = self._case.period
            self._pairs = ceil(self._effort.sample / (self._repeat(self._case.step) * self._calls))
            return
        while (seconds := self._repeat(self._case.step)) * self._calls < self._effort.sample:
            # A tenth more than computed: a sample that is a little too short needs no new round.
            self._calls = max(self._calls + 1, int(1.1 * self._effort.sample / seconds))

    def sample(self) -> Sample:
        """One mean over many repetitions, or one figure per single call or pair."""
        gc.collect()
        if self._case.before_each is not None:
            return Sample(self._burst(self._case.before_each), [])
        if self._case.beside is not None:
            return self._alternate(self._case.beside)
        return Sample([self._once_warm(self._case.step)], [])

    def _alternate(self, plain: Callable[[], object]) -> Sample:
        sample = Sample([], [])
        pair = [(self._case.step, sample.seconds), (plain, sample.beside)]
        for _ in range(self._pairs):
            for step, seconds in pair:
                seconds.append(self._once_warm(step))
            pair.reverse()
        return sample

    def _once_warm(self, step: Callable[[], object]) -> float:
        # Whatever ran meanwhile has emptied the caches.
        step()
        return self._repeat(step)

    def _repeat(self, step: Callable[[], object]) -> float:
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
