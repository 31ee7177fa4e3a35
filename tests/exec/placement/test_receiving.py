"""What is received late takes less memory, no more time, and ends in no circle."""

from __future__ import annotations

from graphlib import TopologicalSorter
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import flowbook as fb
from flowbook.exec.devices.simulated import Simulated
from flowbook.exec.placement.course import Output, follow
from flowbook.exec.placement.receiving import LEAST_BYTES, Waits, late_receives
from flowbook.exec.placement.simulation import Job
from flowbook.exec.signature.signature import Signature

COUNT = 3


def transfer(size: int, source: int, destination: int) -> float:
    return 0.0 if source == destination else 0.5 + size / LEAST_BYTES


@st.composite
def steps(draw: Any) -> tuple[list[Job], list[int]]:
    """Jobs, each of which takes what some before it make, and where they run."""
    jobs: list[Job] = []
    placed, sizes = [], []
    for index in range(draw(st.integers(1, 14))):
        before = draw(st.lists(st.integers(0, index - 1), max_size=3)) if index else []
        sizes.append(draw(st.integers(1, 3)) * LEAST_BYTES)
        taken = [(b, 0, sizes[b]) for b in dict.fromkeys(before)]
        seconds = draw(st.integers(1, 4)) / 2
        jobs.append(Job((seconds,) * COUNT, tuple(taken), ()))
        placed.append(draw(st.integers(0, COUNT - 1)))
    return jobs, placed


@settings(max_examples=200, deadline=None)
@given(steps())
def test_nothing_ends_later_takes_more_or_waits_for_itself(step: Any) -> None:
    jobs, placed = step
    outputs = [[Output(LEAST_BYTES)] for _ in jobs]
    how = jobs, range(len(jobs)), placed, COUNT, transfer, outputs
    early = follow(*how)
    waits = Waits([False, True, True], [True] * len(jobs), range(len(jobs)))
    late = late_receives(jobs, placed, early.ends, transfer, waits)
    then = follow(*how, (), {key: each.begin for key, each in late.items()})
    for device in range(COUNT):
        assert then.peak(device)[0] <= early.peak(device)[0]
    # Of all devices together: what takes a value follows its receiver, and that what it waits for.
    before: dict[Any, set[Any]] = {i: set() for i in range(len(jobs))}
    for index, job in enumerate(jobs):
        for maker, port, size in job.taken:
            key = maker, port, placed[index]
            before[index].add(key if placed[maker] != placed[index] else maker)
            before.setdefault(key, {maker})
            if key in late:
                # What sets out then still comes before it is taken.
                arrival = late[key].begin + transfer(size, placed[maker], placed[index])
                assert arrival <= early.begins[index]
    for key, each in late.items():
        assert placed[each.after] == key[2] != 0
        takers = [i for i, job in enumerate(jobs) if placed[i] == key[2] and key[:2] in _taken(job)]
        assert each.after < min(takers)
        before[key].add(each.after)
    TopologicalSorter(before).prepare()


def _taken(job: Job) -> list[tuple[int, int]]:
    return [(maker, port) for maker, port, _ in job.taken]


def chained(x: fb.Tensor, stages: int) -> fb.Tensor:
    """On an accelerator one product after the other, each stage with a value that the CPU makes."""
    with fb.device("cpu:0"):
        made = [fb.exp(x * float(i), name=f"made{i}") for i in range(stages)]
    with fb.device("simulated:0"):
        h = x
        for value in made:
            h = (h + value) / 100.0
            for _ in range(20):
                h = fb.matmul(h, h) / 200.0
    return h


def test_many_early_receives_take_the_memory_of_a_few() -> None:
    x = fb.placeholder(fb.float32, [200, 200], name="x")
    size, stages = 200 * 200 * 4, 12
    y = chained(x, stages)
    given = np.full((200, 200), 0.1, np.float32)
    narrow = Simulated(memory_limit=8 * size)
    with fb.Session(devices=["cpu:0", narrow]) as sess, fb.Session(soft_placement=True) as one:
        wanted = one.run(y, {x: given})
        plan = sess.explain(y, {x: given})
        assert plan.loads[narrow.name].value_bytes <= 4 * size
        for _ in range(3):
            np.testing.assert_allclose(sess.run(y, {x: given}), wanted, rtol=1e-5)
        program = sess._master.prepare(Signature((y,), (), (x,))).program
        there = next(p for p in program.parts if "simulated" in p.device)
        delayed = [node for node in there.nodes if node.type == "Recv" and node.after]
        assert len(delayed) >= stages - 3


def test_what_may_have_to_wait_delays_nothing() -> None:
    x = fb.placeholder(fb.float32, [200, 200], name="x")
    with fb.device("cpu:0"):
        made = [fb.exp(x * float(i)) for i in range(4)]
        gate = fb.FIFOQueue(1, [fb.float32], [[]])
    h = x + gate.dequeue()
    with fb.device("simulated:0"):
        for value in made:
            h = h + value
            for _ in range(20):
                h = fb.matmul(h, h) / 200.0
    with fb.Session(devices=["cpu:0", "simulated:0"]) as sess:
        program = sess._master.prepare(Signature((h,), (), (x,))).program
        there = next(p for p in program.parts if "simulated" in p.device)
        assert sum(node.type == "Recv" for node in there.nodes) == 5
        assert not any(node.after for node in there.nodes if node.type == "Recv")


def test_nothing_waits_for_what_its_device_takes_later() -> None:
    x = fb.placeholder(fb.float32, [200, 200], name="x")
    with fb.device("cpu:0"):
        early = fb.exp(x, name="early")
        late = x
        for _ in range(10):
            late = fb.matmul(late, late) / 200.0
    with fb.device("simulated:0"):
        both = early + late
        # It has time to run before, though it was built after.
        beside = fb.matmul(x, x)
    given = np.full((200, 200), 0.1, np.float32)
    with fb.Session(devices=["cpu:0", "simulated:0"]) as sess:
        for _ in range(3):
            found, _ = sess.run([both, beside], {x: given}, timeout=60)
            np.testing.assert_allclose(found, np.exp(given) + 0.1**1024, rtol=1e-5)


def test_nothing_waits_for_a_loop_in_which_it_is_used() -> None:
    x = fb.placeholder(fb.float32, [300, 300], name="x")
    with fb.device("cpu:0"):
        early = fb.negative(x)
        late = fb.assign_add(fb.Variable(fb.ones([300, 300])), x)
        for _ in range(6):
            late = fb.matmul(late, x) / 300.0
    with fb.device("simulated:0"):
        both = early + late
    with fb.device("cpu:0"):
        _, total = fb.while_loop(
            lambda i, _: i < 2, lambda i, t: (i + 1, t + fb.reduce_mean(both)), (0, 0.0)
        )
    with fb.device("simulated:0"):
        # Nothing says that it comes after what is used in the loop alone.
        y = -total
    given = np.ones((300, 300), np.float32)
    with fb.Session(devices=["cpu:0", "simulated:0"]) as sess:
        for number in range(1, 4):
            found = sess.run(y, {x: given}, timeout=60)
            np.testing.assert_allclose(found, -2.0 * number, rtol=1e-5)
