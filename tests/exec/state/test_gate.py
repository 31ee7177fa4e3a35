"""Snapshots are taken between two steps that write, and hold up nobody else."""

import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.resources.gate import Gate, Passage
from tests.exec.state.gates import Gate as Completion
from tests.exec.state.gates import gates, wait_op
from tests.exec.state.threads import run_together
from tests.graph.ops.queues.waiting import begun

DeadlineExceeded = fb.errors.DeadlineExceededError


@pytest.fixture(autouse=True)
def fresh_containers() -> Iterator[None]:
    yield
    fb.reset_container("shared")


def pair(container: str = "") -> tuple[fb.Variable, fb.Variable, fb.Operation]:
    """Two variables, and a step that counts in both, one long after the other."""
    with fb.container(container):
        first, second = fb.Variable(np.zeros(1000), name="a"), fb.Variable(0.0, name="b")
    with fb.control_dependencies([fb.assign_add(first, np.ones(1000))]):
        total = fb.reduce_sum(fb.matrix_inverse(fb.eye(60) * 2.0))
    with fb.control_dependencies([total]):
        count = fb.assign_add(second, 1.0)
    return first, second, fb.group(count, name="train")


@pytest.mark.parametrize("container", ["", "shared"])
def test_a_snapshot_is_as_whole_steps_leave_it(container: str) -> None:
    first, second, train = pair(container)
    with fb.Session() as sess, fb.Session() as other:
        sess.run(train)

        def training(mine: fb.Session) -> None:
            for _ in range(100):
                mine.run(train)

        def saving() -> None:
            for _ in range(100):
                values = sess.snapshot().values
                assert (values[first.op] == values[second.op]).all()

        run_together(
            lambda: training(sess), lambda: training(other if container else sess), saving, saving
        )
        assert sess.run(second) == 201.0


def test_what_a_snapshot_holds_stays_as_it_is() -> None:
    first, _, train = pair()
    with fb.Session() as sess:
        sess.run(train)
        snapshot = sess.snapshot()
        for _ in range(3):
            sess.run(train)
        assert set(snapshot.values[first.op].tolist()) == {1.0}
        sess.put(snapshot)
        assert set(sess.run(first).tolist()) == {1.0}


def blocked(variable: fb.Variable, started: threading.Event, go_on: threading.Event) -> Any:
    """A step that writes a variable, and in between waits for the test."""

    def wait() -> np.float32:
        started.set()
        assert go_on.wait(60)
        return np.float32(1.0)

    return fb.assign_add(variable, fb.py_func(wait, [], fb.float32), name="slow")


def test_a_timeout_names_the_step_that_is_under_way() -> None:
    variable, other = fb.Variable(0.0, name="v"), fb.Variable(0.0, name="w")
    started, go_on = threading.Event(), threading.Event()
    slow = blocked(variable, started, go_on)
    with fb.Session() as sess:
        sess.run([variable, other])
        running = threading.Thread(target=sess.run, args=(slow,))
        running.start()
        assert started.wait(60)
        with pytest.raises(DeadlineExceeded, match=r"was under way: the step that runs 'slow'"):
            sess.snapshot(timeout=0.01)
        # It has let go of the gate, and nobody else is held up.
        assert sess.run(fb.assign_add(other, 1.0)) == 1.0
        go_on.set()
        running.join(60)
        assert sess.snapshot().values[variable.op] == 1.0


class _Held:
    """A gate of a session that a test holds closed."""

    def __init__(self, sess: fb.Session) -> None:
        self._gates = sess._master.stores.gates([""])  # type: ignore[attr-defined]
        self._go_on = threading.Event()
        self._is_closed = threading.Event()
        self._thread = threading.Thread(target=self._hold)

    def _hold(self) -> None:
        with self._gates[0].closed(None, "variables are saved"):
            self._is_closed.set()
            assert self._go_on.wait(60)

    def __enter__(self) -> None:
        self._thread.start()
        assert self._is_closed.wait(60)

    def __exit__(self, *_: object) -> None:
        self._go_on.set()
        self._thread.join(60)


def test_while_it_is_closed_only_steps_that_write_variables_wait() -> None:
    variable = fb.Variable(0.0, name="v")
    add = fb.assign_add(variable, 1.0)
    drawn = fb.random_uniform([2])
    with fb.Session() as sess:
        for _ in range(2):
            sess.run([variable, drawn])
            sess.run(add)
        with _Held(sess):
            assert sess.run(variable) == 2.0
            assert sess.run(drawn).shape == (2,)
            with pytest.raises(DeadlineExceeded, match="held still, to be saved"):
                sess.run(add, timeout=0.01)
        assert sess.run(add) == 3.0


def test_a_step_that_waits_before_it_writes_holds_nobody_up() -> None:
    gate = gates["gate of a save"] = Completion()
    variable = fb.Variable(0.0, name="v")
    arrived = wait_op(fb.constant(1.0), gate="gate of a save")
    train = fb.assign_add(variable, arrived)
    with fb.Session() as sess:
        for _ in range(2):  # Kernel by kernel, then as regions.
            before = sess.run(variable)
            running = threading.Thread(target=sess.run, args=(train,))
            running.start()
            gate.await_begun()
            assert sess.snapshot(timeout=60).values[variable.op] == before
            with _Held(sess):
                gate.open()
                assert sess.run(variable) == before
            running.join(60)
            gate.waiting.clear()
        assert sess.run(variable) == 2.0


def test_parts_of_a_step_pass_one_by_one() -> None:
    variable = fb.Variable(0.0, name="v")
    x = fb.placeholder(fb.float32, [])
    add = fb.assign_add(variable, x)
    with fb.Session() as sess:
        step = sess.partial_run([variable, add], [x])
        assert step.run(variable) == 0.0
        assert sess.snapshot(timeout=60).values[variable.op] == 0.0
        assert step.run(add, {x: 2.0}) == 2.0


def test_a_step_inside_of_a_step_is_inside_too() -> None:
    inner, outer = fb.Variable(0.0, name="inner"), fb.Variable(0.0, name="outer")
    add = fb.assign_add(inner, 1.0)
    sess = fb.Session()
    closing: list[threading.Thread] = []
    wanted = threading.Event()

    def nested() -> np.float32:
        # Somebody wants to save, and waits for the step that this is part of.
        closing.append(threading.Thread(target=save))
        closing[-1].start()
        assert wanted.wait(60)
        return np.float32(sess.run(add))

    def save() -> None:
        gate = sess._master.stores.gates([""])[0]  # type: ignore[attr-defined]
        wait = gate._await_empty

        def told(*how: Any) -> None:
            wanted.set()
            wait(*how)

        gate._await_empty = told
        found.append(sess.snapshot().values[outer.op])

    found: list[Any] = []
    train = fb.assign_add(outer, fb.py_func(nested, [], fb.float32))
    with sess:
        sess.run([inner, outer, add])
        assert sess.run(train) == 2.0
        closing[0].join(60)
        assert found == [2.0]


def test_saving_inside_of_a_step_that_writes_is_refused(tmp_path: Any) -> None:
    variable = fb.Variable(1.0, name="v")
    saver = fb.train.Saver()
    sess = fb.Session()

    def save() -> np.float32:
        saver.save(sess, tmp_path / "model")
        return np.float32(1.0)

    saving = fb.py_func(save, [], fb.float32)
    with sess:
        with pytest.raises(fb.errors.FailedPreconditionError, match="inside of one that writes"):
            sess.run(fb.assign_add(variable, saving))
        assert sess.run(saving) == 1.0
    assert fb.train.load_variable(tmp_path, "v") == 1.0


def test_who_was_interrupted_on_the_way_out_is_forgotten() -> None:
    gate = Gate()
    lost = Passage([gate], lambda: "lost", None)
    lost.enter()
    with pytest.raises(DeadlineExceeded, match="lost"), gate.closed(0.0, "variables are saved"):
        pass
    del lost
    with gate.closed(0.0, "variables are saved"):
        pass


@pytest.fixture(params=[1, 2], ids=["one device", "two devices"])
def sess(request: pytest.FixtureRequest) -> Iterator[fb.Session]:
    with fb.Session(cpus=request.param, soft_placement=True) as session:
        yield session


def two_writes() -> tuple[fb.Variable, fb.Variable, fb.FIFOQueue, fb.Operation]:
    """A step that writes a variable, waits at a queue, and writes another on another device."""
    queue = fb.FIFOQueue(3, fb.float32, shapes=[[]])
    with fb.device("cpu:0"):
        first = fb.Variable(0.0, name="a")
        written = fb.assign_add(first, 1.0)
    with fb.device("cpu:1"):
        second = fb.Variable(0.0, name="b")
        with fb.control_dependencies([written]):
            taken = queue.dequeue()
        train = fb.assign_add(second, taken)
    return first, second, queue, train.op


class _Saving:
    """A snapshot on a thread of its own, which waits for a step that is inside."""

    def __init__(self, sess: fb.Session) -> None:
        self._sess = sess
        self._gate = sess._master.stores.gates([""])[0]  # type: ignore[attr-defined]
        self._waits = threading.Event()
        self._values: dict[Any, Any] = {}
        self._thread = threading.Thread(target=self._save)
        self._thread.start()
        assert self._waits.wait(60)

    def _save(self) -> None:
        await_empty = self._gate._await_empty

        def told(*how: Any) -> None:
            self._waits.set()
            await_empty(*how)

        self._gate._await_empty = told
        self._values = self._sess.snapshot(timeout=60).values

    def values(self) -> list[float]:
        """What the variables held, in the order of their names."""
        self._thread.join(60)
        return [float(v) for _, v in sorted(self._values.items(), key=lambda item: item[0].name)]


def test_who_waits_at_a_queue_before_it_writes_holds_nobody_up(
    sess: fb.Session, tmp_path: Any
) -> None:
    queue = fb.FIFOQueue(3, fb.float32, shapes=[[]])
    with fb.device("cpu:0"):
        variable = fb.Variable(0.0, name="v")
    with fb.device("cpu:1"):
        taken = queue.dequeue() * 2.0
    with fb.device("cpu:0"):
        train = fb.assign_add(variable, taken)
    for before in (0.0, 2.0):  # Kernel by kernel, then as regions.
        sess.run(variable)
        run = begun(sess, queue, train)
        path = fb.train.Saver().save(sess, tmp_path / "model", timeout=60)
        assert fb.train.load_variable(path, "v") == before
        sess.run(queue.enqueue(1.0))
        assert run.result() == before + 2.0
    assert sess.snapshot(timeout=60).values[variable.op] == 4.0


def test_who_waits_at_a_queue_between_two_writes_stays_inside(sess: fb.Session) -> None:
    """Who is inside goes on even where somebody waits to close the gate."""
    first, second, queue, train = two_writes()
    sess.run([first, second])
    for steps in (1.0, 2.0):
        run = begun(sess, queue, train)
        while sess.run(first) != steps:
            pass  # Another part may still be at it.
        saving = _Saving(sess)
        sess.run(queue.enqueue(1.0))
        run.result()
        assert saving.values() == [steps, steps]


def test_saving_inside_of_a_step_that_waited_and_wrote_is_refused(sess: fb.Session) -> None:
    first, second, queue, train = two_writes()

    def save() -> np.float32:
        return np.float32(len(sess.snapshot(timeout=60).values))

    with fb.device("cpu:0"), fb.control_dependencies([train]):
        saved = fb.py_func(save, [], fb.float32)
    again = fb.assign_add(first, saved)
    sess.run([first, second, queue.enqueue(1.0)])
    with pytest.raises(fb.errors.FailedPreconditionError, match="inside of one that writes"):
        sess.run(again)


def test_a_step_inside_of_one_part_is_inside_where_another_part_is(sess: fb.Session) -> None:
    first, second, queue, train = two_writes()
    with fb.device("cpu:0"):
        inner = fb.Variable(0.0, name="c")
        add = fb.assign_add(inner, 1.0)
    saving: list[_Saving] = []

    def nested(value: Any) -> np.float32:
        saving.append(_Saving(sess))
        return np.float32(sess.run(add, timeout=60))

    with fb.device("cpu:0"), fb.control_dependencies([train]):
        found = fb.py_func(nested, [fb.constant(0.0)], fb.float32)
    with fb.device("cpu:1"):
        last = fb.assign_add(second, found)
    sess.run([first, second, inner, queue.enqueue(1.0)])
    assert sess.run(last, timeout=60) == 2.0
    assert saving[0].values() == [1.0, 2.0, 1.0]


def test_who_finds_the_gate_closed_by_another_gives_up_in_time() -> None:
    gate = Gate()
    with gate.closed(None, "variables are saved"):
        with (
            pytest.raises(
                fb.errors.DeadlineExceededError, match="somebody else held the variables"
            ),
            gate.closed(time.monotonic() + 0.01, "a session is reset"),
        ):
            pass
        step = Passage([gate], str, time.monotonic())
        with pytest.raises(fb.errors.DeadlineExceededError, match="were held still"):
            step.enter()
    with gate.closed(time.monotonic(), "a session is reset"):
        pass


def test_a_snapshot_initialises_again_what_is_reset_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    W = fb.Variable(2.0)
    with fb.Session() as sess:
        initialisation = sess._master.resources._initialisation
        prepare_for = initialisation.prepare_for
        resets = [sess.reset] * 3

        def prepare_and_lose(*arguments: Any) -> None:
            prepare_for(*arguments)
            if resets:
                resets.pop()()

        monkeypatch.setattr(initialisation, "prepare_for", prepare_and_lose)
        [value] = sess.snapshot().values.values()
    assert (value, W.op.name, resets) == (2.0, "Variable", [])
