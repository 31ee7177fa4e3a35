"""The search over placements: never worse than the greedy one, repeatable, interruptible."""

import random

import pytest

from flowbook.exec.placement import search as searching
from flowbook.exec.placement.assignment import assign, finish_of
from flowbook.exec.placement.room import Need
from flowbook.exec.placement.search import Search
from flowbook.exec.placement.simulation import Job, order_of, ranks
from tests.exec.placement.test_assignment import COUNT, best_of_all, drawn, problem_of


def crossed(rng=None):
    """Chains whose jobs change places: where each is placed first, all of them have to move."""
    rng = rng or random.Random(3)
    jobs = [Job((0.1,) * COUNT, (), ())]
    for _ in range(30):
        makers = rng.sample(range(len(jobs)), min(len(jobs), 2))
        once = rng.uniform(0.1, 1.0)
        jobs.append(Job((once,) * COUNT, tuple([(m, 0, rng.randint(0, 60)) for m in makers]), ()))
    return problem_of(jobs)


def test_it_finds_what_the_greedy_choice_does_not():
    greedy, ends = [], []
    for seed in range(6):
        problem = crossed(random.Random(seed))
        greedy.append(assign(problem).end)
        ends.append(Search(None, 400)(problem).end)
    assert all(end <= first for end, first in zip(ends, greedy, strict=True))
    assert sum(ends) < 0.99 * sum(greedy)


def test_it_comes_nearer_to_the_best_than_the_greedy_choice():
    rng = random.Random(7)
    problems = [drawn(rng, most=6) for _ in range(20)]
    best = [best_of_all(problem) for problem in problems]
    found = [Search(None, 300)(problem).end for problem in problems]
    assert all(end >= least * 0.999 for end, least in zip(found, best, strict=True))
    assert max(end / least for end, least in zip(found, best, strict=True)) < 1.02
    assert max(assign(p).end / least for p, least in zip(problems, best, strict=True)) > 1.02


def test_as_many_tries_find_the_same():
    one, two, other = Search(None, 200, 1), Search(None, 200, 1), Search(None, 200, 2)
    problem = crossed()
    assert one(problem) == two(problem)
    assert one.best == two.best
    other(problem)
    assert (one.tried, two.tried, other.tried) == (200, 200, 200)
    assert other.best != one.best


def test_what_it_tells_is_what_steps_take():
    problem = crossed()
    search = Search(None, 300, most=4)
    found = search(problem)
    order = order_of(problem.jobs, ranks(problem.jobs, problem.transfer))
    ends = [each.end for each in search.best]
    assert ends == [finish_of(problem, order, each.chosen) for each in search.best]
    assert search.best[0] == assign(problem)
    assert ends[1:] == sorted(ends[1:])
    assert 2 <= len(ends) <= 5
    assert found.end == min(ends)


def test_devices_that_are_not_feasible_or_full_are_not_chosen():
    problem = crossed()
    count = len(problem.feasible)
    narrow = problem._replace(
        feasible=[[1], *[range(COUNT)] * (count - 1)],
        limits=[5, None, None],
        needs=[Need(1)] * count,
    )
    search = Search(None, 300)
    search(narrow)
    for found in search.best:
        assert found.chosen[0] == 1
        assert list(found.chosen).count(0) <= 5


def test_an_interrupt_keeps_the_best(monkeypatch):
    def interrupted(items, what):
        for number, item in enumerate(items):
            if number == 50:
                raise KeyboardInterrupt
            yield item

    monkeypatch.setattr(searching, "track", interrupted)
    search, whole = Search(None, 400), Search(None, 400)
    problem = crossed()
    found = search(problem)
    assert (search.is_interrupted, search.tried) == (True, 200)
    assert found.end <= assign(problem).end
    monkeypatch.undo()
    whole(problem)
    assert not whole.is_interrupted


def test_time_ends_it():
    search = Search(0.02, None)
    search(crossed())
    assert search.tried > 0
    assert Search(1e-9, None)(crossed()) == assign(crossed())


@pytest.mark.parametrize("jobs", [[], [Job((1.0,) * COUNT, (), ())]])
def test_what_leaves_no_choice(jobs):
    problem = problem_of(jobs)._replace(feasible=[[1]] * len(jobs))
    search = Search(None, 10)
    assert search(problem) == assign(problem)
    assert search.tried == 0
