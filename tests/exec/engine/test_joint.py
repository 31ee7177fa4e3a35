"""Steps on several devices: programs scattered over them at random mean what they mean on one."""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import flowbook as fb
from flowbook.exec.devices.simulated import Simulated
from flowbook.exec.engine import executor
from flowbook.exec.placement import assignment, receiving, together
from flowbook.exec.plan import pipeline
from flowbook.exec.plan.partition import partition
from flowbook.exec.signature.signature import Signature
from tests.exec.engine.code.test_lowering import (
    STATE,
    build,
    interpret,
    pauses,
    programs,
    starts,
    waits,
)
from tests.exec.random_graphs import examples
from tests.graph.ops.queues.waiting import given_up


def scatter(patch: pytest.MonkeyPatch, seed: int) -> None:
    """Have operations placed by chance, those of loops too."""
    draw = random.Random(seed)

    def anywhere(problem: Any, order: Any, chosen: Any, best: float) -> Any:
        return [draw.choice(feasible) for feasible in problem.feasible], best

    patch.setattr(assignment, "_improved", anywhere)
    patch.setattr(assignment, "_beside_users", lambda problem, order, *found: found)
    patch.setattr(together, "_join_loops", lambda *_: None)
    patch.setattr(receiving, "LEAST_BYTES", 0)


DEVICES = st.sampled_from([["cpu:0", "cpu:1", "cpu:2"], ["cpu:0", "simulated:0", "simulated:1"]])


# A write waits for a read in another branch, whether that runs or not.
WRITES = [("constant", 1, 5), ("write", 1, 1)]
WRITE_BEHIND_READ = [("while", 0, 2, [("act", 1), ("if", 0, 2, [], WRITES)])]
# A loop that is not entered is told so where it lies on other devices too.
LOOP_IN_LOOP = [("while", 0, 0, [("while", 2, 1, [])])]
# What takes nothing waits in a loop within a loop for what is outside of both.
READ_BEHIND_WRITE = [("write", 0, 0), ("while", 1, 1, [("while", 2, 2, [("read", 0)])])]


@settings(max_examples=60, deadline=None)
@example(READ_BEHIND_WRITE, [0, 2, 1], ["cpu:0", "cpu:1", "cpu:2"], 0)
@example(WRITE_BEHIND_READ, [34, 35, 30], ["cpu:0", "cpu:1", "cpu:2"], 4)
@example(LOOP_IN_LOOP, [18, 37, 4], ["cpu:0", "simulated:0", "simulated:1"], 1)
@given(programs(waits, pauses), starts, DEVICES, st.integers(0, 1000))
def test_loops_and_branches_across_devices(
    program: Any, start: list[int], devices: list[str], seed: int
) -> None:
    hold_against_python(program, start, devices, seed)


def hold_against_python(program: Any, start: list[int], devices: list[str], seed: int) -> None:
    """Run a program scattered over devices, three times, and in Python."""
    with pytest.MonkeyPatch.context() as patch, fb.Graph().as_default():
        scatter(patch, seed)
        feeds = [fb.placeholder(fb.int32, []) for _ in range(STATE)]
        variable = fb.Variable(1, name="variable")
        ends: list[Any] = []
        values = build(program, feeds, variable, ends)
        state, kept = list(start), [1]
        with fb.Session(devices=devices) as sess:
            for _ in range(3):
                found = sess.run([*values, *ends], dict(zip(feeds, start, strict=True)), timeout=60)
                state = list(start)
                interpret(program, state, kept)
                assert [int(v) for v in found[:STATE]] == state
                assert int(sess.run(variable)) == kept[0]


@settings(max_examples=60, deadline=None)
@given(examples(), DEVICES, st.integers(0, 1000), st.sampled_from([1, 200]))
def test_random_graphs_across_devices(
    example: Any, devices: list[str], seed: int, least_to_grow: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "LEAST_TO_GROW", least_to_grow)
        hold_against_one(example, devices, seed)


def hold_against_one(example: Any, devices: list[str], seed: int) -> None:
    """Run a graph's steps scattered over devices, three times, and on a CPU alone."""
    with pytest.MonkeyPatch.context() as patch:
        scatter(patch, seed)
        with fb.Session(example.graph) as one, fb.Session(example.graph, devices=devices) as more:
            more._master.stores.entropy = one._master.stores.entropy
            for _ in range(3):
                for fetches, feeds in example.steps:
                    wanted = outcome(one, fetches, feeds)
                    assert_same(outcome(more, fetches, feeds), wanted)


def outcome(sess: fb.Session, fetches: Any, feeds: Any) -> Any:
    try:
        return sess.run(fetches, feeds, timeout=60)
    except fb.errors.OpError as error:
        return type(error)


def assert_same(found: Any, wanted: Any) -> None:
    if isinstance(wanted, type) or isinstance(found, type):
        assert found is wanted
        return
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.fixture
def x() -> fb.Tensor:
    return fb.placeholder(fb.float32, [None], name="x")


@pytest.fixture
def sess() -> Any:
    with fb.Session(cpus=3) as sess:
        yield sess


def program_of(sess: fb.Session, fetches: Any, feeds: Any) -> Any:
    """The program that a step runs."""
    made = sess._master.prepare(Signature(tuple(fetches), (), tuple(feeds)))
    return made.program


def test_a_value_goes_to_a_device_once(x: fb.Tensor, sess: fb.Session) -> None:
    """White paper, figure 4: two consumers of one tensor on a device share one transfer."""
    with fb.device("cpu:0"):
        w, y = fb.exp(x, name="W"), fb.negative(x, name="y")
    with fb.device("cpu:1"):
        a, b, c = w + 1.0, w * 2.0, y + w
    program = program_of(sess, [a, b, c], [x])
    here, there = program.parts
    assert sorted(n.type for n in here.nodes) == ["Exp", "Neg", "Send", "Send"]
    assert [n.type for n in there.nodes].count("Recv") == 2
    sent = {n.attributes["key"] for n in here.nodes if n.type == "Send"}
    assert sent == {n.attributes["key"] for n in there.nodes if n.type == "Recv"}
    given = np.array([1.0, 2.0], np.float32)
    one, two, three = sess.run([a, b, c], {x: given})
    np.testing.assert_allclose(one, np.exp(given) + 1, rtol=1e-6)
    np.testing.assert_allclose(two, np.exp(given) * 2, rtol=1e-6)
    np.testing.assert_allclose(three, np.exp(given) - given, rtol=1e-6)


def test_an_order_crosses_devices(x: fb.Tensor, sess: fb.Session) -> None:
    seen: list[str] = []

    def note(name: str) -> Any:
        return lambda value: (seen.append(name), value)[1]

    with fb.device("cpu:1"):
        first = fb.py_func(note("first"), [x], fb.float32, stateful=False)
    with fb.device("cpu:2"), fb.control_dependencies([first]):
        second = fb.py_func(note("second"), [x], fb.float32, stateful=False)
    for _ in range(5):
        seen.clear()
        sess.run(second, {x: [1.0]})
        assert seen == ["first", "second"]


def test_the_first_error_ends_the_step_and_names_its_line(x: fb.Tensor, sess: fb.Session) -> None:
    with fb.device("cpu:1"):
        rows = fb.gather(x, [5], name="rows")
    with fb.device("cpu:2"):
        total = fb.reduce_sum(rows)
    late = total + fb.reduce_sum(x)
    for _ in range(3):
        with pytest.raises(fb.errors.InvalidIndexError, match="index 5 is out of range") as caught:
            sess.run(late, {x: [1.0]})
        assert caught.value.operation is rows.op
        assert "test_joint.py, line" in str(caught.value)
        assert "given [1]" in str(caught.value)
    assert sess.run(late, {rows: [2.0], x: [1.0]}) == 3.0


def test_a_timeout_ends_what_waits_on_other_devices(x: fb.Tensor, sess: fb.Session) -> None:
    released = threading.Event()

    def wait(value: Any) -> Any:
        released.wait(60)
        return value

    with fb.device("cpu:1"):
        slow = fb.py_func(wait, [x], fb.float32, stateful=False)
    with fb.device("cpu:2"):
        y = slow + 1.0
    with pytest.raises(fb.errors.DeadlineExceededError):
        sess.run(y, {x: [1.0]}, timeout=0.05)
    released.set()
    assert sess.run(y, {x: [1.0]}, timeout=60).tolist() == [2.0]


@pytest.mark.parametrize("taking", [0, 1])
def test_a_part_that_waits_for_others_leaves_it_to_them_to_say_for_what(
    monkeypatch: pytest.MonkeyPatch, taking: int
) -> None:
    """Though its time is over first."""
    here, looks = threading.local(), list[int]()
    next_report = executor.Execution._next_report

    def waiting(execution: Any) -> Any:
        here.receives = not execution.waits_outside()
        return next_report(execution)

    def clock() -> float:
        if getattr(here, "receives", False):
            looks.append(1)
            return 1000.0
        return 1000.0 if hasattr(here, "receives") and len(looks) > 3 else 0.0

    queue = fb.FIFOQueue(3, fb.float32, [[]], name="q")
    with fb.device(f"cpu:{taking}"):
        taken = queue.dequeue(name="taken")
    with fb.device(f"cpu:{1 - taking}"):
        y = taken * 2.0
    monkeypatch.setattr(executor.Execution, "_next_report", waiting)
    monkeypatch.setattr(executor, "LONGEST_WAIT", 0.001)
    monkeypatch.setattr(time, "monotonic", clock)
    with fb.Session(cpus=2) as sess, pytest.raises(fb.errors.DeadlineExceededError) as caught:
        sess.run(y, timeout=100.0)
    assert "'taken' (test_joint.py, line" in str(caught.value)
    assert "waits for an element of queue 'q', which has 0 of 3 elements" in str(caught.value)


def test_what_a_part_receives_is_no_operation_that_has_not_completed() -> None:
    taken = []
    for number in (0, 1):
        with fb.device(f"cpu:{number}"):
            taken.append(fb.FIFOQueue(3, fb.float32, [[]], name="q").dequeue())
    with fb.device("cpu:0"):
        total = fb.add_n(taken)
    with fb.Session(cpus=2) as sess:
        for _ in range(5):  # Either part may be the first to notice.
            assert "asynchronous" not in str(given_up(sess, total, "waits for an element"))


def test_closing_the_session_ends_a_step_on_several_devices(x: fb.Tensor) -> None:
    begun, released = threading.Event(), threading.Event()

    def wait(value: Any) -> Any:
        begun.set()
        released.wait(60)
        return value

    with fb.device("cpu:1"):
        slow = fb.py_func(wait, [x], fb.float32, stateful=False)
    y = slow + 1.0
    sess = fb.Session(cpus=2)
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(sess.run, y, {x: [1.0]})
        assert begun.wait(60)
        sess.close()
        with pytest.raises(fb.errors.CancelledError):
            run.result(60)
        released.set()


def test_draws_of_a_step_that_fails_on_another_device_do_not_count(
    x: fb.Tensor, sess: fb.Session
) -> None:
    with fb.device("cpu:1"):
        drawn = fb.random_uniform([3], seed=1)
    with fb.device("cpu:2"):
        rows = fb.gather(x, [1])
    both = [drawn, rows]
    with fb.Session(cpus=3) as other:
        wanted = other.run(both, {x: [1.0, 2.0]})[0]
    with pytest.raises(fb.errors.InvalidIndexError):
        sess.run([fb.identity(drawn), rows], {x: [1.0]})
    np.testing.assert_array_equal(sess.run(both, {x: [1.0, 2.0]})[0], wanted)


def test_variables_live_where_they_were_first_used(sess: fb.Session) -> None:
    with fb.device("cpu:2"):
        counter = fb.Variable(0, name="counter")
    with fb.device("cpu:1"):
        more = fb.assign_add(counter, 1)
    for expected in (1, 2, 3):
        assert sess.run(more) == expected
    program = program_of(sess, [more], [])
    assert [part.device[-5:] for part in program.parts] == ["cpu:2"]


def test_threads_step_at_once(x: fb.Tensor, sess: fb.Session) -> None:
    with fb.device("cpu:1"):
        counter = fb.Variable(0.0)
        more = fb.assign_add(counter, fb.reduce_sum(x))
    with fb.device("cpu:2"):
        y = more * 0.0 + fb.reduce_sum(x)
    sess.run(y, {x: [0.0]})
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda i: sess.run(y, {x: [float(i)]}), range(100)))
    assert found == [float(i) for i in range(100)]
    assert sess.run(counter) == sum(range(100))


def test_a_guard_watches_every_device(x: fb.Tensor, sess: fb.Session) -> None:
    with fb.device("cpu:1"):
        y = fb.log(x, name="lost")
    with fb.device("cpu:2"):
        total = fb.reduce_sum(y)
    with sess.guard():
        assert sess.run(total, {x: [1.0]}) == 0.0
        for _ in range(3):
            with pytest.raises(fb.errors.InvalidArgumentError, match="it gave 1 Inf") as caught:
                sess.run(total, {x: [0.0, 1.0]})
            assert caught.value.operation is y.op


def test_shapes_stay_in_host_memory() -> None:
    x = fb.placeholder(fb.float32, [None, 2], name="x")
    with fb.device("cpu:0"):
        shape = fb.stack([2, fb.shape(x)[0]])
    with fb.device("simulated:0"):
        y = fb.reshape(x * 2.0, shape)
    device = Simulated()
    copied = 4
    with fb.Session(devices=[device]) as sess:
        for rows in (1, 3):
            given = np.arange(2.0 * rows, dtype=np.float32).reshape(rows, 2)
            np.testing.assert_array_equal(sess.run(y, {x: given}), (given * 2).reshape(2, rows))
            # The array alone, and once the constant.
            copied += given.nbytes
            assert device.copied_in == copied


def test_what_a_gradient_needs_of_each_iteration_may_be_kept_in_host_memory() -> None:
    x = fb.placeholder(fb.float32, [1000], name="x")
    given = np.linspace(0.5, 1.5, 1000, dtype=np.float32)
    found = []
    for swap_memory in (False, True):
        with fb.device("simulated:0"):
            _, y = fb.while_loop(
                lambda i, _: i < 20,
                lambda i, y: (i + 1, fb.sin(y) * x),
                (0, x),
                swap_memory=swap_memory,
            )
            [slope] = fb.gradients(y, x)
        narrow, wide = Simulated(memory_limit=100_000), Simulated()
        with fb.Session(devices=[wide]) as sess:
            found.append(sess.run(slope, {x: given}))
            copied = wide.copied_out, wide.copied_in
            np.testing.assert_array_equal(sess.run(slope, {x: given}), found[0])
        kept = fb.forecast(slope, {x: (1000,)}, trips=20).stack_bytes
        assert kept == 2 * 20 * given.nbytes
        assert all((count > kept) is swap_memory for count in copied)
        with fb.Session(devices=[narrow]) as sess:
            if swap_memory:
                sess.run(slope, {x: given})
            else:
                with pytest.raises(fb.errors.ResourceExhaustedError):
                    sess.run(slope, {x: given})


def test_gradients_of_gradients_with_what_is_kept_in_host_memory() -> None:
    x = fb.placeholder(fb.float32, [2], name="x")

    def inner(y: fb.Tensor) -> fb.Tensor:
        _, z = fb.while_loop(
            lambda j, _: j < 2, lambda j, z: (j + 1, fb.sin(z * x)), (0, y), swap_memory=True
        )
        return z

    def body(i: fb.Tensor, y: fb.Tensor) -> tuple[fb.Tensor, fb.Tensor]:
        return i + 1, fb.cond(fb.equal(i, 1), lambda: y * x, lambda: inner(y))

    _, y = fb.while_loop(lambda i, _: i < 3, body, (0, x), swap_memory=True)
    [slope] = fb.gradients(y, x)
    [curvature] = fb.gradients(slope, x)
    feeds = {x: np.array([0.5, 1.5])}
    with fb.Session() as sess:
        wanted = sess.run([y, slope, curvature], feeds)
    with fb.Session(devices=[Simulated()]) as sess:
        for _ in range(2):
            found = sess.run([y, slope, curvature], feeds)
            np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_a_checkpoint_has_a_file_for_each_device(sess: fb.Session, tmp_path: Path) -> None:
    with fb.device("cpu:1"):
        a = fb.Variable([1.0, 2.0], name="a")
    with fb.device("cpu:2"):
        b = fb.Variable(3.0, name="b")
    with fb.device("cpu:0"):
        total = fb.reduce_sum(a * b)
    change = fb.group(fb.assign_add(a, [1.0, 1.0]), fb.assign_add(b, 1.0))
    sess.run(change)
    path = fb.train.Saver().save(sess, tmp_path / "model")
    assert len(list(Path(path).glob("*.safetensors"))) == 2
    before = sess.run(total)
    sess.run(change)
    assert sess.run(total) != before
    fb.train.Saver().restore(sess, path)
    assert sess.run(total) == before
    assert {name for name, *_ in fb.train.list_variables(path)} == {"a", "b"}


def test_runners_fill_queues_that_a_part_waits_at(x: fb.Tensor, sess: fb.Session) -> None:
    queue = fb.FIFOQueue(4, [fb.float32], [[]])
    with fb.device("cpu:1"):
        taken = queue.dequeue()
    with fb.device("cpu:2"):
        y = taken * 2.0
    for value in (1.0, 2.0):
        sess.run(queue.enqueue(value))
    assert [sess.run(y) for _ in range(2)] == [2.0, 4.0]
    fb.train.QueueRunner(queue, [queue.enqueue(5.0)])
    assert sess.run(y, timeout=60) == 10.0


def test_what_a_branch_not_taken_would_write_on_another_device_stays(sess: fb.Session) -> None:
    taken = fb.placeholder(fb.bool, [], name="taken")
    with fb.device("cpu:1"):
        counter = fb.Variable(0, name="counter")

    def count() -> fb.Tensor:
        with fb.device("cpu:1"):
            return fb.assign_add(counter, 1)

    with fb.device("cpu:0"):
        found = fb.cond(taken, count, lambda: fb.constant(-1))
    assert [int(sess.run(found, {taken: t})) for t in (False, True, False, True)] == [-1, 1, -1, 2]
    assert sess.run(counter) == 2


def test_what_a_loop_sends_names_its_iteration_though_it_receives_nothing(
    x: fb.Tensor, sess: fb.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, value, total = fb.while_loop(
        lambda i, value, total: i < 3,
        lambda i, value, total: (i + 1, value * 2.0, fb.add(total, 1.0, name="total")),
        (0, fb.reduce_sum(x, name="first"), 0.0),
    )
    homes = {"first": 1, "while/total": 2}

    def parted(program: Any, *_: Any) -> Any:
        """All that there is of the third variable on one device, what enters on another."""
        nodes = program.parts[0].nodes
        where = [homes.get(node.name, 2 * node.name.endswith("_2")) for node in nodes]
        return partition(program, [sess.list_devices()[place].name for place in where])

    monkeypatch.setattr(pipeline, "partition", parted)
    here = next(
        p for p in program_of(sess, [total, value], [x]).parts if p.device.endswith("cpu:0")
    )
    (inside,) = here.block.blocks
    assert "Recv" in [node.type for node in here.block.nodes]
    types = [node.type for node in inside.nodes]
    assert "Send" in types
    assert "Recv" not in types
    for _ in range(3):
        assert sess.run([total, value], {x: [1.0, 2.0]}, timeout=60) == [3.0, 24.0]
