"""A step as it would run, in detail: who waits for whom, what crosses, what lies in memory.

As `simulation.py`, of which this tells what the choice of devices need not know. Of a loop the
values of one iteration count.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from math import inf
from typing import NamedTuple

from flowbook.exec.placement.simulation import Job, Simulation, Transfer


class Output(NamedTuple):
    """What a job gives.

    Attributes:
        size: the bytes that are taken for it.
        shows: the value in whose memory it lies: who makes it, and which of its outputs it is.
        whole: the bytes of a copy of it; None if that is `size`.
    """

    size: int
    shows: tuple[int, int] | None = None
    whole: int | None = None


class Crossing(NamedTuple):
    """A value that goes from one device to another.

    Attributes:
        maker: the job that makes it; -1 if it is fed.
        port: which of its outputs it is, or which value is fed; -1 is an order alone.
        source: the device that it comes from; -1 is the host.
        destination: the device that it goes to.
        size: how many bytes go over, in all iterations together.
        begin: when it sets out.
        end: when it is there.
    """

    maker: int
    port: int
    source: int
    destination: int
    size: int
    begin: float
    end: float


class Held(NamedTuple):
    """A value in the memory of a device.

    Attributes:
        maker: the job that makes it; -1 if it is fed.
        port: which of its outputs it is, or which value is fed.
        size: how many bytes it has.
        begin: from when.
        end: until when.
    """

    maker: int
    port: int
    size: int
    begin: float
    end: float


class Course(NamedTuple):
    """How a step goes.

    Attributes:
        begins: when each job begins.
        ends: when each ends.
        busy: how long each device computes.
        crossings: what goes from one device to another.
        held: the values in each device's memory.
        critical: the jobs that one after the other decide when the step ends.
    """

    begins: Sequence[float]
    ends: Sequence[float]
    busy: Sequence[float]
    crossings: Sequence[Crossing]
    held: Sequence[Sequence[Held]]
    critical: Sequence[int]

    @property
    def end(self) -> float:
        """When all is done."""
        return max(self.ends, default=0.0)

    def peak(self, device: int) -> tuple[int, list[Held]]:
        """The most bytes in a device's memory at once, and what they are, the largest first."""
        changes = [(each.begin, 1, each.size) for each in self.held[device]]
        # What is freed makes room for what begins at the same time.
        changes += [(each.end, 0, -each.size) for each in self.held[device]]
        now = most = 0
        at = 0.0
        for time, _, size in sorted(changes):
            now += size
            if now > most:
                most, at = now, time
        there = [each for each in self.held[device] if each.begin <= at < each.end and each.size]
        return most, sorted(there, key=lambda each: -each.size)


def follow(
    jobs: Sequence[Job],
    order: Sequence[int],
    placed: Sequence[int],
    count: int,
    transfer: Transfer,
    outputs: Sequence[Sequence[Output]],
    kept: Collection[tuple[int, int]] = (),
    late: Mapping[tuple[int, int, int], float] | None = None,
) -> Course:
    """How a step goes whose jobs run on given devices.

    Args:
        jobs: what runs.
        order: the order in which devices take them.
        placed: the device of each.
        count: how many devices there are.
        transfer: what transfers take.
        outputs: what each job gives.
        kept: the values, by maker and port, that are wanted at the end.
        late: for values that are received late, by maker, port and device, from when on.
    """
    simulation = Simulation(jobs, count, transfer)
    begins, busy = [0.0] * len(jobs), [0.0] * count
    causes = [-1] * len(jobs)
    ended: list[dict[float, int]] = [{} for _ in range(count)]
    crossings: dict[tuple[int, int, int], Crossing] = {}
    for index in order:
        job, device = jobs[index], placed[index]
        ready, cause = 0.0, -1
        for maker, port, size in _needs(job):
            source = placed[maker] if maker >= 0 else -1
            arrival = simulation.arrival(maker, size, device, job.trips)
            if arrival > ready:
                ready, cause = arrival, maker
            key = maker, port, device
            if source != device and key not in crossings and transfer(size, source, device):
                times = min(job.trips, jobs[maker].trips) if maker >= 0 else 1
                sets_out = simulation.ends[maker] if maker >= 0 else 0.0
                crossings[key] = Crossing(
                    maker, port, source, device, size * times, sets_out, arrival
                )
        begin = begins[index] = simulation.run_on(index, device)
        # Where it did not wait for its inputs, it waited for what ran there before.
        causes[index] = cause if ready == begin else ended[device][begin]
        ended[device][simulation.ends[index]] = index
        busy[device] += job.seconds[device]
    ends = simulation.ends
    held = _held(jobs, placed, count, begins, ends, outputs, crossings, kept, late or {})
    last = max(range(len(jobs)), key=ends.__getitem__, default=-1)
    critical = list(_back(last, causes))[::-1]
    return Course(begins, ends, busy, list(crossings.values()), held, critical)


def _needs(job: Job) -> Iterator[tuple[int, int, int]]:
    yield from job.taken
    for other in job.waited:
        yield other, -1, 0


def _back(index: int, causes: Sequence[int]) -> Iterator[int]:
    """A job, the one that it waited for last, and so on."""
    while index >= 0:
        yield index
        index = causes[index]


def _held(
    jobs: Sequence[Job],
    placed: Sequence[int],
    count: int,
    begins: Sequence[float],
    ends: Sequence[float],
    outputs: Sequence[Sequence[Output]],
    crossings: Mapping[tuple[int, int, int], Crossing],
    kept: Collection[tuple[int, int]],
    late: Mapping[tuple[int, int, int], float],
) -> list[list[Held]]:
    """The values in each device's memory, each until the last that takes it has ended."""
    until: dict[tuple[int, int, int], float] = {}

    def hold(maker: int, port: int, device: int, end: float) -> None:
        while maker >= 0 and placed[maker] == device:
            shown = outputs[maker][port].shows
            if shown is None:
                break
            maker, port = shown
        key = maker, port, device
        until[key] = max(until.get(key, 0.0), end)

    for index, job in enumerate(jobs):
        for port in range(len(outputs[index])):
            hold(index, port, placed[index], ends[index])
        for maker, port, _ in job.taken:
            hold(maker, port, placed[index], ends[index])
    for each in crossings.values():
        if each.maker >= 0 and each.port >= 0:
            hold(each.maker, each.port, each.source, each.end)
    for maker, port in kept:
        hold(maker, port, placed[maker], inf)
    fed = {port: size for job in jobs for maker, port, size in job.taken if maker < 0}
    found: list[list[Held]] = [[] for _ in range(count)]
    for key, end in until.items():
        maker, port, device = key
        if maker >= 0 and placed[maker] == device:
            held = Held(maker, port, outputs[maker][port].size, begins[maker], end)
        elif key in crossings:
            size = _copied(outputs[maker][port]) if maker >= 0 else fed[port]
            # What is received late waits in the host's memory; feeds are held by who runs the step.
            begin = late.get(key, crossings[key].begin)
            held = Held(maker, port, size, begin, end if maker >= 0 else inf)
        else:
            continue  # It lies in host memory, and is the caller's.
        found[device].append(held)
    return found


def _copied(output: Output) -> int:
    return output.size if output.whole is None else output.whole
