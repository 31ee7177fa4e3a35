"""Containers: the session's own, and named ones that sessions and graphs share by name."""

import gc
import sys
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.devices.device import Device
from flowbook.exec.devices.simulated import Simulated
from flowbook.exec.resources.kinds import Definition
from flowbook.exec.resources.session_stores import SessionStores
from flowbook.exec.resources.variable import VariableResource
from flowbook.exec.signature.signature import Signature
from flowbook.graph.model.resource_key import ResourceKey
from flowbook.graph.ops.state.variables import read_variable
from tests.exec.state.threads import run_together

VARIABLE = Definition("variable", {"dtype": fb.float32, "shape": fb.Shape([2])})


@pytest.fixture(autouse=True)
def fresh_containers() -> Iterator[None]:
    yield
    for name in ("shared", "other"):
        fb.reset_container(name)


def build(value: Any = 1.0, name: str = "W", container: str = "shared") -> fb.Variable:
    with fb.container(container):
        return fb.Variable(value, name=name)


def test_sessions_share_a_named_container() -> None:
    W = build()
    add = fb.assign_add(W, 1.0)
    with fb.Session() as first, fb.Session() as second:
        assert first.run(add) == 2.0
        assert second.run(add) == 3.0
        assert first.run(W) == 3.0
    with fb.Session() as later:
        assert later.run(W) == 3.0


def test_disjoint_graphs_share_by_name() -> None:
    W = build()
    with fb.Session() as first:
        first.run(fb.assign(W, 5.0))
    with fb.Graph().as_default() as graph:
        again, other = build(), build(7.0, name="V")
        with fb.Session(graph) as second:
            assert second.run([again, other]) == [5.0, 7.0]


def test_containers_are_kept_apart() -> None:
    W = build()
    with fb.Graph().as_default() as graph:
        V = build(2.0, container="other")
        with fb.Session(graph) as sess:
            assert sess.run(V) == 2.0
    with fb.Session() as sess:
        assert sess.run(W) == 1.0
        fb.reset_container("other")
        sess.run(fb.assign(W, 3.0))
        assert sess.run(W) == 3.0


def test_reset_starts_over_in_prepared_and_in_new_steps() -> None:
    W = build()
    add = fb.assign_add(W, 1.0)
    with fb.Session() as sess, fb.Session() as other:
        for _ in range(3):
            sess.run(add)
            other.run(W)
        fb.reset_container("shared")
        assert sess.run(add) == 2.0
        assert other.run(W) == 2.0
        fb.reset_container("shared")
        assert other.run(W + 0.0) == 1.0
        assert sess.run(add) == 2.0
        assert other.run(W) == 2.0


def resetting(times: int) -> fb.OpDef:
    """An operation without effects, in whose kernel the container is reset so many times."""
    left = [times]

    def kernel(xp: Any, x: Any) -> Any:
        if left[0]:
            left[0] -= 1
            fb.reset_container("shared")
        return x

    return fb.OpDef(
        f"Resetting{times}", "x: float32 -> y: float32", infer=lambda x: x.shape, kernel=kernel
    )


@pytest.mark.parametrize("times", [1, 3, 1200])
def test_a_step_that_reads_what_is_reset_while_it_is_under_way_runs_once_more(times: int) -> None:
    W, x = build(), fb.placeholder(fb.float32, [])
    reset = resetting(times)(x)
    with fb.control_dependencies([reset]):
        y = W * x
    with fb.Session() as sess:
        assert sess.run(W) == 1.0
        assert sess.run([reset, y], {x: 2.0}) == [2.0, 2.0]


def test_an_initial_value_reads_what_is_reset_meanwhile_once_more() -> None:
    W = build()
    with fb.control_dependencies([resetting(2)(fb.constant(1.0))]):
        initial = W * 2.0
    V = fb.Variable(initial)
    with fb.Session() as sess:
        assert sess.run(W) == 1.0
        assert sess.run(V) == 2.0


def test_a_step_that_may_have_done_something_is_aborted_by_a_reset() -> None:
    W, V, x = build(), build(1.0, "V"), fb.placeholder(fb.float32, [])
    reset = resetting(1)(x)
    with fb.control_dependencies([reset]):
        y = W * x
    with fb.Session() as sess:
        assert sess.run([W, V]) == [1.0, 1.0]
        added = fb.assign_add(V, 1.0)
        with pytest.raises(fb.errors.AbortedError, match="lost its value while it was under way"):
            sess.run([y, added], {x: 2.0})


def test_another_error_stays_what_it_is_though_something_is_reset_meanwhile() -> None:
    mutex, V, x = fb.Mutex(), fb.Variable(1.0), fb.placeholder(fb.float32, [])
    reset = resetting(1)(x)
    with fb.control_dependencies([reset]), mutex.scope():
        added = fb.assign_add(V, 1.0)
        with fb.control_dependencies([added]), mutex.scope():
            again = fb.assign_add(V, 1.0)
    with fb.Session() as sess:
        sess.run(V)
        with pytest.raises(fb.errors.FailedPreconditionError, match="held by its own step"):
            sess.run([reset, again], {x: 1.0})


def test_without_automatic_initialisation_what_is_reset_has_no_value() -> None:
    W, x = build(), fb.placeholder(fb.float32, [])
    reset = resetting(1)(x)
    with fb.control_dependencies([reset]):
        y = W * x
    V = fb.Variable(1.0)
    added = fb.assign_add(V, 1.0)
    with fb.Session(auto_initialize=False) as sess:
        sess.run([W.initializer, V.initializer])
        with pytest.raises(fb.errors.FailedPreconditionError, match="uninitialized value"):
            sess.run([y, added], {x: 2.0})


def test_resets_beside_runs_fail_none() -> None:
    W, V = build(), fb.Variable(2.0)
    total = W + V
    interval = sys.getswitchinterval()
    with fb.Session() as sess:
        done = threading.Event()

        def reset() -> None:
            while not done.is_set():
                fb.reset_container("shared")
                sess.reset()

        def run() -> None:
            try:
                for _ in range(200):
                    assert sess.run(total) == 3.0
            finally:
                done.set()

        sys.setswitchinterval(1e-6)
        try:
            run_together(reset, run, run)
        finally:
            sys.setswitchinterval(interval)


def test_a_store_that_is_made_while_values_are_dropped_knows_which_are_there() -> None:
    first, second = build(), build(name="V", container="other")
    with fb.Session() as sess:
        sess.run([first, second])
        held: dict[Any, bool] = {}

        def note(key: Any, has_value: bool) -> None:
            held[key] = has_value
            if key == first.op.key and has_value:
                fb.reset_container("other")

        store = SessionStores(0, note)
        assert [held[first.op.key], held[second.op.key]] == [True, False]
        store.close()


def test_reset_of_what_does_not_exist_does_nothing() -> None:
    fb.reset_container("never heard of")


def test_a_reset_of_the_class_as_in_tensorflow_names_the_sessions() -> None:
    reset: Any = fb.Session.reset
    for given in ((["c"],), ("", ["c"])):
        with pytest.raises(fb.errors.InvalidTypeError, match="by a session") as caught:
            reset(*given)
        assert "sess.reset(containers)" in str(caught.value)


def test_reset_leaves_an_explicit_session_uninitialised() -> None:
    W = build()
    with fb.Session(auto_initialize=False) as sess:
        sess.run(W.initializer)
        for _ in range(3):
            assert sess.run(W) == 1.0
        fb.reset_container("shared")
        with pytest.raises(fb.errors.FailedPreconditionError, match="uninitialized value"):
            sess.run(W)


@pytest.mark.parametrize("value", [np.float64(1.0), [1.0, 2.0], 1])
def test_another_dtype_or_shape_is_refused_until_a_reset(value: Any) -> None:
    W = build()
    with fb.Session() as first, fb.Graph().as_default() as graph:
        for _ in range(2):
            first.run(W)
        V = build(value)
        with fb.Session(graph) as second:
            for use in (V, fb.assign(V, value)):
                with pytest.raises(fb.errors.InvalidArgumentError, match="'shared' holds 'W'"):
                    second.run(use)
            fb.reset_container("shared")
            np.testing.assert_array_equal(second.run(V), value)
            for _ in range(2):
                with pytest.raises(fb.errors.InvalidArgumentError, match="'shared' holds 'W'"):
                    first.run(W)


def test_concurrent_first_runs_of_sessions_and_graphs_initialise_once() -> None:
    began = threading.Barrier(6)
    all_began = threading.Event()
    calls: list[int] = []

    def initial() -> Any:
        # Whoever would initialise a second time has begun by then, or soon will.
        assert all_began.wait(60)
        threading.Event().wait(0.02)
        calls.append(1)
        return np.float32(1.0)

    def first_run(sess: fb.Session, made: list[fb.Variable]) -> None:
        began.wait(60)
        all_began.set()
        assert sess.run(made) == [1.0, 1.0]

    sessions = []
    for which in range(6):
        with fb.Graph().as_default() as graph, fb.container("shared"):
            # Built in either order: threads must not wait for one another in a circle.
            names = ["A", "B"] if which % 2 else ["B", "A"]
            made = [fb.Variable(fb.py_func(initial, [], fb.float32), name=n) for n in names]
            sessions.append((fb.Session(graph), made))
    run_together(*[lambda s=s, m=m: first_run(s, m) for s, m in sessions])
    assert len(calls) == 2


def test_what_was_prepared_before_a_container_put_a_variable_elsewhere_is_prepared_anew() -> None:
    W = build([1.0, 2.0])
    uses = [fb.identity(W), fb.assign_add(W, [1.0, 1.0]), fb.gather(W, 1)]
    with fb.Graph().as_default() as graph, fb.device("simulated:0"):
        V = build([1.0, 2.0])
        there = fb.assign_add(V, [4.0, 4.0])
    with fb.Session() as first, fb.Session(graph, devices=["cpu:0", "simulated:0"]) as second:
        for use in uses * 3:
            first.run(use)
        fb.reset_container("shared")
        np.testing.assert_array_equal(second.run(there), [5.0, 6.0])
        for use in uses * 2:
            with pytest.raises(fb.errors.FailedPreconditionError, match="here it is wanted on"):
                first.run(use)
        np.testing.assert_array_equal(second.run(V), [5.0, 6.0])
        fb.reset_container("shared")
        np.testing.assert_array_equal(first.run(uses[1]), [2.0, 3.0])
        with pytest.raises(fb.errors.FailedPreconditionError, match="here it is wanted on"):
            second.run(there)


def test_what_has_failed_for_want_of_a_value_is_prepared_anew_too() -> None:
    W = build([1.0, 2.0])
    row = fb.gather(W, 1)
    with fb.Graph().as_default() as graph, fb.device("simulated:0"):
        there = fb.assign_add(build([1.0, 2.0]), [4.0, 4.0])
    with fb.Session(auto_initialize=False) as first:
        for _ in range(2):
            with pytest.raises(fb.errors.FailedPreconditionError, match="uninitialized value"):
                first.run(row)
        with fb.Session(graph, devices=["cpu:0", "simulated:0"]) as second:
            second.run(there)
        with pytest.raises(fb.errors.FailedPreconditionError, match="here it is wanted on"):
            first.run(row)


def test_what_is_put_elsewhere_and_back_under_a_step_is_told_as_that() -> None:
    steps = []

    def elsewhere() -> None:
        steps.append(len(steps))
        if len(steps) > 3:  # Only first runs look at what the system's own kernels give.
            fb.reset_container("shared")
            second.run(there)

    def back() -> None:
        if len(steps) > 3:
            fb.reset_container("shared")
            third.run(W)

    W = build([1.0, 2.0])
    with fb.control_dependencies([fb.py_func(elsewhere, [], [])]):
        read = read_variable(W.handle, dtype=W.dtype, shape=W.shape)
    with fb.control_dependencies([read]):
        returned = fb.py_func(back, [], [])
    with fb.control_dependencies([returned]):
        twice = read * 2.0
    with fb.Graph().as_default() as graph, fb.device("simulated:0"):
        there = fb.assign_add(build([1.0, 2.0]), [4.0, 4.0])
    with (
        fb.Session() as first,
        fb.Session() as third,
        fb.Session(graph, devices=["cpu:0", "simulated:0"]) as second,
    ):
        for _ in range(3):
            np.testing.assert_array_equal(first.run(twice), [2.0, 4.0])
        with pytest.raises(fb.errors.AbortedError, match="was put on another device while"):
            first.run(twice)
        np.testing.assert_array_equal(first.run(W), [1.0, 2.0])


def test_what_moves_while_it_gets_its_initial_value_gets_it_all_the_same() -> None:
    begun, go_on, calls = threading.Event(), threading.Event(), []

    def initial() -> Any:
        calls.append(1)
        begun.set()
        assert go_on.wait(60)
        return np.array([1.0, 2.0], np.float32)

    devices = ["cpu:0", "simulated:0"]
    W = build(fb.reshape(fb.py_func(initial, [], fb.float32), [2]))
    with fb.Graph().as_default() as graph, fb.device("simulated:0"):
        V = build([5.0, 6.0])
        size = fb.size(V)
    found: list[Any] = []
    with fb.Session(devices=devices) as first, fb.Session(graph, devices=devices) as second:
        running = threading.Thread(target=lambda: found.append(first.run(W)))
        running.start()
        assert begun.wait(60)
        master = second._master
        prepared = master.prepare(Signature((V.value, size), (), ()))
        assert master.stores.find(V.op.key).device.kind == "simulated"
        go_on.set()
        running.join(60)
        assert [each.tolist() for each in found] == [[1.0, 2.0]]
        assert len(calls) == 2
        assert master.run(prepared, [])[0].tolist() == [1.0, 2.0]


def test_who_begins_or_ends_while_something_moves_finds_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    there = Simulated(0)
    stores, others = SessionStores(0), SessionStores(1, host=there)
    key = ResourceKey("shared", "W", 0)
    made = stores.of(key, VARIABLE)
    epochs = [stores.epoch]
    moved = VariableResource.move

    def move(resource: VariableResource, device: Device) -> None:
        assert stores.moved_since(epochs[0], [key]) == [key]
        epochs.append(stores.epoch)
        moved(resource, device)

    monkeypatch.setattr(VariableResource, "move", move)
    assert others.of(key, VARIABLE) is made
    assert made.device is there
    assert [stores.moved_since(epoch, [None, key]) for epoch in epochs] == [[key], [key]]
    assert not stores.moved_since(stores.epoch, [key])
    assert not stores.moved_since(epochs[0], [ResourceKey("shared", "V", 0)])
    assert others.of(key, VARIABLE) is made
    assert len(epochs) == 2


def test_random_operations_are_not_shared() -> None:
    with fb.container("shared"):
        drawn = fb.random_uniform([4], seed=3)
    with fb.Session() as first, fb.Session() as second:
        np.testing.assert_array_equal(first.run(drawn), second.run(drawn))


def test_closing_frees_the_sessions_own_variables_and_keeps_shared_ones() -> None:
    W, V = build(), fb.Variable(np.ones(1000))
    sess = fb.Session()
    for _ in range(3):
        sess.run([W, V])
    buffer = weakref.ref(sess._master.stores.find(V.op.key)._buffer)
    sess.close()
    gc.collect()
    assert buffer() is None
    with fb.Session() as later:
        assert later.run(fb.is_variable_initialized(W))
        assert not later.run(fb.is_variable_initialized(V))


def test_session_without_references_is_collected() -> None:
    W = fb.Variable(np.ones(1000))
    sess = fb.Session()
    sess.run(W)
    sess.run(W)
    buffer = weakref.ref(sess._master.stores.find(W.op.key)._buffer)
    del sess
    gc.collect()
    assert buffer() is None
