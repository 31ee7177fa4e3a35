"""Which group of jobs goes to which device, so that a step ends early (white paper, section 3.2.1).

The step is gone through as it would run, those jobs first from which the longest way leads to the
end. A group goes where the first of its jobs would end first. That is greedy: where one device
alone would be faster, or moving a group would end a small step earlier, that is done instead. And a
group that lasts, as a variable with what reads and writes it, goes where the most of its bytes are
made and used, if the step ends no later: what does not cross takes no memory elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from flowbook.exec.placement.room import Need, Room
from flowbook.exec.placement.simulation import Job, Simulation, Transfer, finish, order_of, ranks

# So many jobs are simulated, at most, to improve a small step by moving groups.
MOST_TRIES = 20_000


class Problem(NamedTuple):
    """What is to be assigned.

    Attributes:
        jobs: what runs, each after what it needs.
        group_of: for each job the number of its group.
        feasible: for each group the devices that it may go to.
        alike: for each device what its jobs' times depend on, such as its kind.
        transfer: what transfers take.
        limits: how many bytes each device has; None for any.
        needs: how many each group takes.
        lasting: the groups that have a resource, which stays.
    """

    jobs: Sequence[Job]
    group_of: Sequence[int]
    feasible: Sequence[Sequence[int]]
    alike: Sequence[object]
    transfer: Transfer
    limits: Sequence[int | None]
    needs: Sequence[Need]
    lasting: Sequence[int] = ()

    @property
    def room(self) -> Room:
        """The devices' memory, of which nothing is taken yet."""
        return Room(self.limits, self.needs)

    @property
    def is_free(self) -> bool:
        """Whether every group may go to every device."""
        return all(len(feasible) == len(self.alike) for feasible in self.feasible)


class Assignment(NamedTuple):
    """What was decided.

    Attributes:
        chosen: the device of each group.
        ends: for each group that was decided by that when the first of its jobs would have ended on
            each of its devices that had room for it.
        end: when the step would end.
        full: for a group the devices that had no room for it when it was decided.
    """

    chosen: Sequence[int]
    ends: Mapping[int, Mapping[int, float]]
    end: float
    full: Mapping[int, Sequence[int]]


def assign(problem: Problem) -> Assignment:
    """Choose a device for each group.

    One has not enough memory for what it is chosen for only if no other was left to choose.
    """
    order = order_of(problem.jobs, ranks(problem.jobs, problem.transfer))
    chosen, ends, full = _greedy(problem, order)
    best = finish_of(problem, order, chosen)
    for alone in _alone(problem):
        other = [alone if alone in feasible else feasible[0] for feasible in problem.feasible]
        end = finish_of(problem, order, other)
        is_better = end < best * 0.999 or (end <= best and alone == 0)
        if is_better and problem.room.fit(other):
            best, chosen = end, other
    chosen, best = _improved(problem, order, chosen, best)
    chosen, best = _beside_users(problem, order, chosen, best)
    return Assignment(chosen, ends, best, full)


def finish_of(problem: Problem, order: Sequence[int], chosen: Sequence[int]) -> float:
    """When a step ends whose groups are on given devices."""
    placed = [chosen[number] for number in problem.group_of]
    return finish(problem.jobs, order, placed, len(problem.alike), problem.transfer)


def _alone(problem: Problem) -> Sequence[int]:
    """The devices on which it is worth a try to run all that can run there."""
    if problem.is_free:
        return [problem.alike.index(each) for each in dict.fromkeys(problem.alike)]
    return range(len(problem.alike))


def _greedy(
    problem: Problem, order: Sequence[int]
) -> tuple[list[int], dict[int, dict[int, float]], dict[int, list[int]]]:
    """Each group where the first of it would end first, of the devices that have room for it.

    Also when it would end on each of these, and which have no room.
    """
    # What is not left to run goes anywhere.
    chosen = [feasible[0] for feasible in problem.feasible]
    decided = [len(feasible) == 1 for feasible in problem.feasible]
    room = problem.room
    is_bounded = any(limit is not None for limit in problem.limits)
    for number, is_decided in enumerate(decided):
        if is_decided:
            room.take(number, chosen[number])
    ends: dict[int, dict[int, float]] = {}
    full: dict[int, list[int]] = {}
    simulation = Simulation(problem.jobs, len(problem.alike), problem.transfer)
    for index in order:
        number = problem.group_of[index]
        if not decided[number]:
            feasible = problem.feasible[number]
            if is_bounded:
                fitting = [device for device in feasible if room.fits(number, device)]
                if len(fitting) < len(feasible):
                    full[number] = [device for device in feasible if device not in fitting]
                feasible = fitting or feasible
            found = {device: simulation.end_on(index, device) for device in feasible}
            ends[number] = found
            chosen[number] = min(found, key=found.__getitem__)
            room.take(number, chosen[number])
            decided[number] = True
        simulation.run_on(index, chosen[number])
    return chosen, ends, full


def _beside_users(
    problem: Problem, order: Sequence[int], chosen: list[int], best: float
) -> tuple[list[int], float]:
    """The same with what lasts where the fewest of its bytes cross, if it ends no later so."""
    crossing: dict[int, dict[int, int]] = {number: {} for number in problem.lasting}
    for index, job in enumerate(problem.jobs):
        own = problem.group_of[index]
        for maker, _, size in job.taken:
            source = problem.group_of[maker] if maker >= 0 else -1
            if source == own:
                continue
            for number, other in ((own, source), (source, own)):
                if number in crossing and other not in crossing:
                    there = chosen[other] if other >= 0 else -1
                    sizes = crossing[number]
                    sizes[there] = sizes.get(there, 0) + size
    moved = chosen.copy()
    for number, sizes in crossing.items():
        here = chosen[number]
        moved[number] = max(
            problem.feasible[number], key=lambda device: (sizes.get(device, 0), device == here)
        )
    end = finish_of(problem, order, moved)
    # A cheaper kernel here or there decides nothing.
    if moved != chosen and end <= best * 1.001 and problem.room.fit(moved):
        return moved, end
    return chosen, best


def _improved(
    problem: Problem, order: Sequence[int], chosen: list[int], best: float
) -> tuple[list[int], float]:
    """The same with groups moved one by one, as long as that ends a small step earlier."""
    tries = MOST_TRIES // max(1, len(problem.jobs))
    is_better = True
    while is_better and tries > 0:
        is_better = False
        for number, feasible in enumerate(problem.feasible):
            for device in feasible:
                if device == chosen[number] or tries <= 0:
                    continue
                tries -= 1
                moved = chosen.copy()
                moved[number] = device
                end = finish_of(problem, order, moved)
                if end < best * 0.999 and problem.room.fit(moved):
                    best, chosen, is_better = end, moved, True
    return chosen, best
