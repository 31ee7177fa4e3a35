"""A step as it would run: when each node would begin and end on each device (white paper, 3.2.1).

A device runs one node after the other. Those of higher priority are given their time first, and
others run while these wait for their inputs, where they hinder none (Topcuoglu, Hariri, Wu:
"Performance-effective and low-complexity task scheduling for heterogeneous computing", 2002).
Transfers go on beside that, and do not hinder one another. No kernel is called: what is added up
are the cost model's seconds.
"""

from __future__ import annotations

import bisect
import heapq
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple


class Job(NamedTuple):
    """A node, as the simulation sees it.

    Attributes:
        seconds: how long it takes on each device.
        taken: the values that it takes: who makes each (-1 is there before), which of its outputs
            it is, and how many bytes it has.
        waited: the jobs that must have ended besides.
        trips: how often it runs.
    """

    seconds: tuple[float, ...]
    taken: tuple[tuple[int, int, int], ...]
    waited: tuple[int, ...]
    trips: int = 1


# The seconds that so many bytes take from one device to another, by their numbers; -1 is the host.
Transfer = Callable[[int, int, int], float]


def ranks(jobs: Sequence[Job], transfer: Transfer) -> list[float]:
    """For each job how long it takes from its beginning to the end of all that needs it, at least.

    Transfers between devices are counted by half: some of them will not be needed.
    """
    count = len(jobs[0].seconds) if jobs else 0
    found = [0.0] * len(jobs)
    for index in range(len(jobs) - 1, -1, -1):
        job = jobs[index]
        mean = sum(job.seconds) / count
        found[index] += mean
        for maker, _, size in job.taken:
            if maker >= 0:
                moved = transfer(size, 0, 1) / 2 if count > 1 else 0.0
                found[maker] = max(found[maker], found[index] + moved)
        for other in job.waited:
            found[other] = max(found[other], found[index])
    return found


def order_of(jobs: Sequence[Job], priorities: Sequence[float]) -> list[int]:
    """A topological order in which those with higher priorities come first."""
    waits = [0] * len(jobs)
    followers: list[list[int]] = [[] for _ in jobs]
    for index, job in enumerate(jobs):
        before = {maker for maker, _, _ in job.taken if maker >= 0}.union(job.waited)
        waits[index] = len(before)
        for other in before:
            followers[other].append(index)
    ready = [(-priorities[i], i) for i, left in enumerate(waits) if not left]
    heapq.heapify(ready)
    order = []
    while ready:
        _, index = heapq.heappop(ready)
        order.append(index)
        for other in followers[index]:
            waits[other] -= 1
            if not waits[other]:
                heapq.heappush(ready, (-priorities[other], other))
    return order


class Idle:
    """When a device has nothing to do: intervals in rising order, the last without an end."""

    def __init__(self) -> None:
        self._begins = [0.0]
        self._ends = [math.inf]

    def first(self, ready: float, seconds: float) -> float:
        """When something can begin that takes so long, and is ready at some time."""
        begins, ends = self._begins, self._ends
        place = len(ends) - 1
        if ready + seconds <= begins[place]:
            place = bisect.bisect_left(ends, ready + seconds)
        begin = max(begins[place], ready)
        while begin + seconds > ends[place]:
            place += 1
            begin = max(begins[place], ready)
        return begin

    def take(self, begin: float, end: float) -> None:
        """Have it do something in a time in which it had nothing to do."""
        if begin == end:
            return
        begins, ends = self._begins, self._ends
        place = bisect.bisect_right(begins, begin) - 1
        left = [begins[place]] if begins[place] < begin else []
        right = [ends[place]] if end < ends[place] else []
        begins[place : place + 1] = [*left, *([end] if right else [])]
        ends[place : place + 1] = [*([begin] if left else []), *right]


class Simulation:
    """A step under way.

    Args:
        jobs: what runs.
        count: how many devices there are.
        transfer: what transfers take.

    Attributes:
        placed: the device of each job that has run, by their numbers; -1 of the others.
        ends: when each ended.
    """

    def __init__(self, jobs: Sequence[Job], count: int, transfer: Transfer) -> None:
        self._jobs = jobs
        self._transfer = transfer
        self._idle = [Idle() for _ in range(count)]
        self.placed = [-1] * len(jobs)
        self.ends = [0.0] * len(jobs)

    def ready_on(self, index: int, device: int) -> float:
        """When all that a job needs would be on a device."""
        job = self._jobs[index]
        ready = 0.0
        for maker, _, size in job.taken:
            ready = max(ready, self.arrival(maker, size, device, job.trips))
        for other in job.waited:
            ready = max(ready, self.arrival(other, 0, device, job.trips))
        return ready

    def end_on(self, index: int, device: int) -> float:
        """When a job would end on a device."""
        seconds = self._jobs[index].seconds[device]
        return self._idle[device].first(self.ready_on(index, device), seconds) + seconds

    def run_on(self, index: int, device: int) -> float:
        """Run a job on a device; when it begins."""
        seconds, idle = self._jobs[index].seconds[device], self._idle[device]
        begin = idle.first(self.ready_on(index, device), seconds)
        idle.take(begin, begin + seconds)
        self.ends[index] = begin + seconds
        self.placed[index] = device
        return begin

    def arrival(self, maker: int, size: int, device: int, trips: int) -> float:
        """When a value that a job of so many trips takes is on a device."""
        if maker < 0:
            return self._transfer(size, -1, device)
        source = self.placed[maker]
        if source == device:
            return self.ends[maker]
        # In a loop a value crosses in each iteration.
        times = min(trips, self._jobs[maker].trips)
        return self.ends[maker] + self._transfer(size, source, device) * times

    @property
    def end(self) -> float:
        """When all is done."""
        return max(self.ends, default=0.0)


def finish(
    jobs: Sequence[Job], order: Sequence[int], placed: Sequence[int], count: int, transfer: Transfer
) -> float:
    """When a step would be done whose jobs run on given devices."""
    simulation = Simulation(jobs, count, transfer)
    for index in order:
        simulation.run_on(index, placed[index])
    return simulation.end
