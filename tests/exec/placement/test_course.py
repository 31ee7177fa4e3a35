"""A step in virtual time: who waits for whom, what crosses, what lies in memory."""

import pytest

from flowbook.exec.placement.course import Course, Output, follow
from flowbook.exec.placement.simulation import Job, finish


def transfer(size: int, source: int, destination: int) -> float:
    """A tenth of a second and a hundredth for each byte; the host's memory is that of device 0."""
    return 0.0 if source == destination or (source, destination) == (-1, 0) else 0.1 + size / 100


def course_of(jobs: list[Job], placed: list[int], outputs: list[list[Output]], kept=()) -> Course:
    order = range(len(jobs))
    course = follow(jobs, order, placed, 2, transfer, outputs, kept)
    assert course.end == finish(jobs, order, placed, 2, transfer)
    return course


def job(*taken: tuple[int, int, int], waited: tuple[int, ...] = (), trips: int = 1) -> Job:
    return Job((1.0, 2.0), taken, waited, trips)


def test_begins_ends_and_what_decides_the_end():
    # 0 -> 1 on one device; 2 on the other takes what 0 makes; 3 takes both.
    jobs = [job(), job((0, 0, 10)), job((0, 0, 10)), job((1, 0, 10), (2, 0, 10))]
    course = course_of(jobs, [0, 0, 1, 0], [[Output(10)]] * 4)
    assert course.begins == pytest.approx([0.0, 1.0, 1.2, 3.4])
    assert course.ends == pytest.approx([1.0, 2.0, 3.2, 4.4])
    assert course.busy == pytest.approx([3.0, 2.0])
    assert course.critical == [0, 2, 3]


def test_a_device_that_is_busy_decides_too():
    course = course_of([job(), job(), job((0, 0, 10))], [0, 0, 0], [[Output(10)]] * 3)
    assert course.critical == [0, 1, 2]


def test_what_crosses_does_so_once_for_all_that_take_it():
    jobs = [job(), job((0, 0, 10)), job((0, 0, 10)), job(waited=(0,)), job((-1, 7, 40))]
    course = course_of(jobs, [0, 1, 1, 1, 1], [[Output(10)]] * 5)
    found = [(c.maker, c.port, c.source, c.destination, c.size) for c in course.crossings]
    assert found == [(0, 0, 0, 1, 10), (0, -1, 0, 1, 0), (-1, 7, -1, 1, 40)]
    assert [c.begin for c in course.crossings] == [1.0, 1.0, 0.0]
    assert [c.end for c in course.crossings] == pytest.approx([1.2, 1.1, 0.5])


def test_what_crosses_in_a_loop_does_so_in_each_iteration():
    jobs = [job(trips=10), job((0, 0, 10), trips=10)]
    (crossing,) = course_of(jobs, [0, 1], [[Output(10)]] * 2).crossings
    assert crossing.size == 100
    assert crossing.end - crossing.begin == pytest.approx(2.0)
    outside = [job(), job((0, 0, 10), trips=10)]
    (crossing,) = course_of(outside, [0, 1], [[Output(10)]] * 2).crossings
    assert crossing.size == 10


def test_values_are_freed_after_their_last_use():
    jobs = [job(), job((0, 0, 10)), job((1, 0, 20)), job((2, 0, 30))]
    outputs = [[Output(10)], [Output(20)], [Output(30)], [Output(5)]]
    most, held = course_of(jobs, [0] * 4, outputs).peak(0)
    assert most == 50
    assert [(each.maker, each.size) for each in held] == [(2, 30), (1, 20)]
    most, held = course_of(jobs, [0] * 4, outputs, kept=[(0, 0)]).peak(0)
    assert most == 60
    assert [each.maker for each in held] == [2, 1, 0]


def test_a_view_keeps_what_it_shows():
    jobs = [job(), job((0, 0, 10)), job(), job((1, 0, 10))]
    shown = [[Output(10)], [Output(0, (0, 0))], [Output(100)], [Output(1)]]
    own = [[Output(10)], [Output(0)], [Output(100)], [Output(1)]]
    assert course_of(jobs, [0] * 4, shown).peak(0)[0] == 110
    assert course_of(jobs, [0] * 4, own).peak(0)[0] == 100


def test_what_crosses_lies_on_both_devices():
    jobs = [job(), job((0, 0, 10))]
    course = course_of(jobs, [0, 1], [[Output(10)], [Output(4)]])
    assert course.peak(0)[0] == 10
    assert course.peak(1)[0] == 14
    (sent,) = course.held[0]
    assert sent.end == pytest.approx(1.2)
    taken_here_too = course_of([*jobs, job((0, 0, 10))], [0, 1, 0], [[Output(10)]] * 3)
    assert max(each.end for each in taken_here_too.held[0] if each.maker == 0) == 2.0


def test_a_feed_takes_memory_where_it_is_not_the_callers():
    jobs = [job((-1, 0, 10))]
    assert course_of(jobs, [0], [[Output(1)]]).peak(0)[0] == 1
    assert course_of(jobs, [1], [[Output(1)]]).peak(1)[0] == 11


def test_a_step_of_nothing():
    course = course_of([], [], [])
    assert course.end == 0.0
    assert course.critical == []
    assert course.peak(0) == (0, [])
