"""How good placements are: against the best there is, and against what others would do."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowbook.exec.placement.assignment import Problem, assign, finish_of
from flowbook.exec.placement.room import Need
from flowbook.exec.placement.simulation import Idle, Job, Simulation, finish, order_of, ranks
from tests.tries import in_one_try

COUNT = 3


def problem_of(jobs: Sequence[Job], latency: float = 0.2) -> Problem:
    """Every job a group of its own, which may go anywhere."""

    def transfer(size: int, source: int, destination: int) -> float:
        return 0.0 if source in (-1, destination) else latency + size * 0.01

    everywhere = [range(COUNT)] * len(jobs)
    none, needs = [None] * COUNT, [Need()] * len(jobs)
    return Problem(jobs, range(len(jobs)), everywhere, list(range(COUNT)), transfer, none, needs)


def drawn(rng: random.Random, most: int = 8) -> Problem:
    """A random graph on devices of different speeds."""
    jobs = []
    for index in range(rng.randint(2, most)):
        makers = rng.sample(range(index), rng.randint(0, min(index, 2)))
        once = rng.uniform(0.1, 2.0)
        seconds = tuple([once * rng.choice([0.5, 1.0, 2.0]) for _ in range(COUNT)])
        jobs.append(Job(seconds, tuple([(m, 0, rng.randint(0, 50)) for m in makers]), ()))
    return problem_of(jobs)


def best_of_all(problem: Problem) -> float:
    """The earliest end over all assignments, in the order that steps are simulated in."""
    order = order_of(problem.jobs, ranks(problem.jobs, problem.transfer))
    assignments = itertools.product(range(COUNT), repeat=len(problem.jobs))
    return min(finish_of(problem, order, chosen) for chosen in assignments)


def test_small_steps_come_near_the_best() -> None:
    rng = random.Random(7)
    problems = [drawn(rng, most=8) for _ in range(40)]
    factors = [assign(problem).end / best_of_all(problem) for problem in problems]
    assert min(factors) >= 0.999
    assert sum(factors) / len(factors) < 1.06
    assert max(factors) < 1.35


def heft(problem: Problem) -> float:
    """Heterogeneous earliest finish time: by upward rank, into the first gap that fits.

    Topcuoglu, Hariri, Wu, 2002.
    """
    jobs = problem.jobs
    order = order_of(jobs, ranks(jobs, problem.transfer))
    busy: list[list[tuple[float, float]]] = [[] for _ in range(COUNT)]
    ends, placed = [0.0] * len(jobs), [-1] * len(jobs)
    for index in order:
        found = []
        for device in range(COUNT):
            ready = max(
                [
                    ends[maker] + problem.transfer(size, placed[maker], device)
                    for maker, _, size in jobs[index].taken
                    if maker >= 0
                ],
                default=0.0,
            )
            begin, length = ready, jobs[index].seconds[device]
            for start, stop in busy[device]:
                if begin + length <= start:
                    break
                begin = max(begin, stop)
            found.append((begin + length, begin, device))
        end, begin, device = min(found)
        busy[device] = sorted([*busy[device], (begin, end)])
        ends[index], placed[index] = end, device
    return max(ends)


def wide() -> list[Job]:
    """Modules of four branches of different lengths, one after the other, as in Inception."""
    jobs = [Job((1.0,) * COUNT, (), ())]
    for _ in range(6):
        joined, source = [], len(jobs) - 1
        for length, cost in ((1, 1.0), (2, 1.2), (3, 0.8), (1, 0.5)):
            before = source
            for _ in range(length):
                jobs.append(Job((cost,) * COUNT, ((before, 0, 5),), ()))
                before = len(jobs) - 1
            joined.append(before)
        jobs.append(Job((0.1,) * COUNT, tuple([(j, 0, 5) for j in joined]), ()))
    return jobs


def deep() -> list[Job]:
    """Eight recurrent layers over twelve steps: each needs the one below and the step before."""
    jobs: list[Job] = []
    above: dict[tuple[int, int], int] = {}
    for step in range(12):
        for layer in range(8):
            makers = [above[key] for key in ((step, layer - 1), (step - 1, layer)) if key in above]
            jobs.append(Job((1.0,) * COUNT, tuple([(m, 0, 10) for m in makers]), ()))
            above[step, layer] = len(jobs) - 1
    return jobs


@pytest.mark.parametrize("jobs", [wide(), deep()], ids=["wide", "deep"])
def test_it_beats_what_others_do(jobs: list[Job]) -> None:
    problem = problem_of(jobs)
    found = assign(problem).end
    order = order_of(jobs, ranks(jobs, problem.transfer))
    count = range(len(jobs))
    in_turn = finish(jobs, order, [i % COUNT for i in count], COUNT, problem.transfer)
    alone = finish(jobs, order, [0 for _ in count], COUNT, problem.transfer)
    assert found < in_turn
    assert found < alone
    assert found <= heft(problem) * 1.001


def test_a_transfer_goes_on_beside_what_runs() -> None:
    jobs = [
        Job((1.0, 1.0, 1.0), (), ()),
        Job((1.0, 1.0, 1.0), ((0, 0, 100),), ()),
        Job((1.0, 1.0, 1.0), ((0, 0, 100),), ()),
    ]
    simulation = Simulation(jobs, COUNT, problem_of(jobs).transfer)
    simulation.run_on(0, 0)
    assert simulation.end_on(1, 1) == pytest.approx(1.0 + 1.2 + 1.0)
    simulation.run_on(1, 1)
    simulation.run_on(2, 1)
    assert simulation.end == pytest.approx(1.0 + 1.2 + 2.0)


def test_a_device_takes_no_more_than_fits() -> None:
    jobs = [Job((1.0, 3.0, 3.0), (), ()) for _ in range(6)]
    free = problem_of(jobs)
    assert list(assign(free).chosen).count(0) > 2
    narrow = free._replace(limits=[50, None, None], needs=[Need(20, 5)] * 6)
    found = assign(narrow)
    assert list(found.chosen).count(0) == 2
    assert found.full
    assert all(devices == [0] for devices in found.full.values())
    assert all(0 not in found.ends[number] for number in found.full)


def test_what_has_no_choice_takes_its_room_first() -> None:
    jobs = [Job((1.0, 3.0, 3.0), (), ()), Job((1.0, 3.0, 3.0), (), ())]
    problem = problem_of(jobs)._replace(
        feasible=[range(COUNT), [0]], limits=[50, None, None], needs=[Need(40), Need(40)]
    )
    assert assign(problem).chosen[0] != 0
    assert problem.room.fit(assign(problem).chosen)


def test_where_nothing_fits_it_is_told() -> None:
    problem = problem_of([Job((1.0,) * COUNT, (), ())])
    narrow = problem._replace(limits=[10] * COUNT, needs=[Need(4, 7)])
    found = assign(narrow)
    assert narrow.room.overfull(found.chosen) == found.chosen[0]
    assert found.full == {0: [0, 1, 2]}


def test_a_device_runs_what_is_ready_while_others_wait() -> None:
    """In the time until a value arrives runs what is of lower priority and short enough."""
    jobs = [
        Job((1.0, 1.0, 1.0), (), ()),
        Job((5.0, 5.0, 5.0), ((0, 0, 100),), ()),
        Job((2.0, 2.0, 2.0), (), ()),
        Job((1.5, 1.5, 1.5), (), ()),
    ]
    simulation = Simulation(jobs, COUNT, problem_of(jobs).transfer)
    simulation.run_on(0, 0)
    assert simulation.run_on(1, 1) == pytest.approx(2.2)  # It waits for what comes from 0.
    assert simulation.run_on(2, 1) == 0.0
    assert simulation.run_on(3, 1) == pytest.approx(7.2)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 6)), max_size=30))
def test_a_device_does_one_thing_at_a_time(asked: list[tuple[int, int]]) -> None:
    idle = Idle()
    busy: list[tuple[float, float]] = []
    for ready, seconds in asked:
        begin = idle.first(ready, seconds)
        assert begin >= ready
        overlapping = [(b, e) for b, e in busy if b < begin + seconds and begin < e]
        assert not overlapping
        # It could not have begun earlier: at no time when it is ready, or something ends.
        for early in [ready, *[e for _, e in busy if e >= ready]]:
            is_free = all(e <= early or early + seconds <= b for b, e in busy)
            assert not (is_free and early < begin)
        idle.take(begin, begin + seconds)
        idle.take(begin, begin)  # What takes no time hinders nobody.
        busy.append((begin, begin + seconds))


def test_four_times_as_many_jobs_take_no_more_than_in_proportion() -> None:
    """On eight devices."""

    def spent(count: int) -> float:
        problem = chains(count)
        begun = time.process_time()
        found = assign(problem)
        seconds = time.process_time() - begun
        assert found.end < sum(job.seconds[0] for job in problem.jobs) / 6
        return seconds

    # In proportion it is four, by the square sixteen.
    assert in_one_try(lambda: spent(16_000) < 10 * spent(4_000))


def chains(count: int) -> Problem:
    """Jobs in chains that cross now and then, on eight devices."""
    rng = random.Random(1)
    jobs: list[Job] = []
    for index in range(count):
        makers = {index - 40, rng.randrange(index)} if index >= 40 else set()
        seconds = (rng.uniform(1e-6, 1e-3),) * 8
        jobs.append(Job(seconds, tuple([(maker, 0, 1000) for maker in makers]), ()))
    everywhere, none = [range(8)] * len(jobs), [None] * 8
    needs = [Need()] * len(jobs)

    def transfer(size: int, source: int, destination: int) -> float:
        return 0.0 if source in (-1, destination) else 1e-4 + size * 1e-9

    return Problem(jobs, range(len(jobs)), everywhere, list(range(8)), transfer, none, needs)
