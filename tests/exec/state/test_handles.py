"""A handle means the resource of the operation that owns it, whatever it has passed through."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.graph.model.resource_key import ResourceKey, owner_of
from flowbook.graph.ops.state.variables import assign_op, is_initialized_op, read_variable
from flowbook.graph.ops.state.writing import assign_add_op
from tests.exec.held import held
from tests.exec.plan.elsewhere import prepared_for
from tests.exec.state.executors import EXECUTORS, everywhere, run_in


def scalar(*_: Any, **__: Any) -> fb.Shape:
    return fb.Shape([])


passed = fb.OpDef(
    "HandlePassed",
    "handle: resource -> same: resource",
    infer=scalar,
    kernel=lambda xp, handle: handle,
    aliases={0: 0},
)
# The second of its outputs is the first of its inputs.
crossed = fb.OpDef(
    "HandlesCrossed",
    "one: resource, other: resource -> second: resource, first: resource",
    infer=lambda one, other: [fb.Shape([]), fb.Shape([])],
    kernel=lambda xp, one, other: (other, one),
    aliases={0: 1, 1: 0},
)
hidden = fb.OpDef(
    "HandleHidden",
    "handle: resource -> some: resource",
    infer=scalar,
    kernel=lambda xp, handle: handle,
)


def directly(variable: fb.Variable) -> fb.Tensor:
    return variable.handle


def through_one(variable: fb.Variable) -> fb.Tensor:
    return passed(variable.handle)


def through_two(variable: fb.Variable) -> fb.Tensor:
    return passed(passed(variable.handle))


def through_two_that_wait(variable: fb.Variable) -> fb.Tensor:
    with fb.control_dependencies([fb.py_func(lambda: np.float32(0), [], fb.float32)]):
        first = passed(variable.handle)
    with fb.control_dependencies([fb.constant(0.0) + 1.0]):
        return passed(first)


def across(variable: fb.Variable) -> fb.Tensor:
    other = fb.Variable(-1.0, name="beside")
    return crossed(variable.handle, other.handle)[1]


WAYS = [directly, through_one, through_two, through_two_that_wait, across]
Way = Callable[[fb.Variable], fb.Tensor]
every_way = pytest.mark.parametrize("way", WAYS)


def read(handle: fb.Tensor, variable: fb.Variable) -> fb.Tensor:
    return read_variable(handle, dtype=variable.dtype, shape=variable.shape)


def add(handle: fb.Tensor, variable: fb.Variable, value: float) -> fb.Tensor:
    return assign_add_op(handle, value, dtype=variable.dtype, shape=variable.shape)


@every_way
def test_it_is_initialised_read_and_written(way: Way) -> None:
    W = fb.Variable(2.0, name="W")
    seen, added = read(way(W), W), add(way(W), W, 3.0)
    for kind, sess, found in everywhere(fb.get_default_graph(), [added, seen, W]):
        # The reads see the value from before, and nobody had to initialise it.
        assert found == [5.0, 2.0, 2.0], kind
        assert sess.run(W) == 5.0, kind


@every_way
def test_writes_go_in_the_order_of_construction(way: Way) -> None:
    W = fb.Variable(1.0, name="W")
    writes = [add(way(W), W, 2.0), fb.assign(W, 10.0), add(way(W), W, 4.0)]
    for kind, _, found in everywhere(fb.get_default_graph(), writes[::-1]):
        assert found == [14.0, 10.0, 3.0], kind


@every_way
def test_what_a_handle_waits_for_comes_before_what_is_done_with_it(way: Way) -> None:
    W = fb.Variable(1.0, name="W")
    other = fb.Variable(0.0, name="other")
    with fb.control_dependencies([fb.assign(W, 7.0), fb.assign_add(other, 1.0)]):
        handle = passed(way(W))
    seen = read(passed(handle), W)
    for kind, sess, found in everywhere(fb.get_default_graph(), seen):
        assert found == 7.0, kind
        assert sess.run(other) == 1.0, kind


@every_way
@pytest.mark.parametrize("kind", EXECUTORS)
def test_a_fed_variable_is_read_as_fed(way: Way, kind: str) -> None:
    W = fb.Variable(fb.py_func(lambda: np.float32(1 / 0), [], fb.float32), name="W")
    doubled = read(way(W), W) * 2.0
    with fb.Session() as sess:
        assert run_in(kind, sess, doubled, {W: np.float32(4.0)}) == 8.0
        assert not sess.run(is_initialized_op(way(W)))


@pytest.mark.parametrize("kind", EXECUTORS)
def test_what_a_handle_waits_for_runs_where_the_variable_is_fed_too(kind: str) -> None:
    W, other = fb.Variable(1.0, name="W"), fb.Variable(0.0, name="other")
    with fb.control_dependencies([fb.assign_add(other, 1.0)]):
        handle = passed(W.handle)
    seen = read(handle, W)
    with fb.Session() as sess:
        assert run_in(kind, sess, seen, {W: np.float32(4.0)}) == 4.0
        assert sess.run(other) == 1.0


sums = fb.OpDef("SumOfFactorAndValue", "x: T, value: T -> y: T", T=fb.FLOATS, infer=scalar,
                kernel=lambda xp, x, value: x * 10 + value)  # fmt: skip
sums_read = fb.OpDef(
    "SumOfFactorAndVariable",
    "x: float32, handle: resource -> y: float32",
    infer=scalar,
    kernel=lambda xp, x, variable: x * 10 + variable.read(),
    touches=fb.Touch(fb.Access.READ, 1),
    reads_as=sums,
)


@every_way
@pytest.mark.parametrize("kind", EXECUTORS)
def test_a_fed_variable_stands_where_its_handle_does(way: Way, kind: str) -> None:
    W = fb.Variable(2.0, name="W")
    total = sums_read(fb.constant(3.0) + 1.0, way(W))
    with fb.Session() as sess:
        assert run_in(kind, sess, total) == 42.0
        assert run_in(kind, sess, total, {W: np.float32(5.0)}) == 45.0


@every_way
def test_an_initial_value_reads_through_it(way: Way) -> None:
    W = fb.Variable(3.0, name="W")
    V = fb.Variable(read(way(W), W) * 2.0, name="V")
    changed = add(way(W), W, 1.0)
    with fb.Session() as sess:
        # V is initialised before what it reads is changed.
        assert sess.run(changed) == 4.0
        assert sess.run(V) == 6.0


@every_way
def test_a_plain_assignment_through_it_needs_no_value(way: Way) -> None:
    W = fb.Variable(fb.py_func(lambda: np.float32(1 / 0), [], fb.float32), name="W")
    assigned = assign_op(way(W), 5.0, dtype=W.dtype, shape=W.shape)
    with fb.control_dependencies([assigned]):
        seen = read(way(W), W)
    with fb.Session() as sess:
        assert not sess.run(is_initialized_op(way(W)))
        assert sess.run(seen) == 5.0


@pytest.mark.parametrize("way", [way for way in WAYS if way is not through_two_that_wait])
def test_it_is_peeked_at(way: Way) -> None:
    W = fb.Variable(3.0, name="W")
    seen, added = read(way(W), W) + 1.0, add(way(W), W, 1.0)
    with fb.Session() as sess:
        with pytest.raises(fb.errors.FailedPreconditionError, match="'W'"):
            sess.peek(seen)
        sess.run(W)
        assert sess.peek(seen) == 4.0
        with pytest.raises(fb.errors.FailedPreconditionError, match="changes a variable"):
            sess.peek(added)
        with sess.retain_feeds():
            sess.run(seen, {W: 5.0})
            assert sess.peek(seen) == 6.0


@every_way
def test_it_is_guarded(way: Way) -> None:
    W = fb.Variable([1.0, 1.0], name="W")
    x = fb.placeholder(fb.float32, [2])
    seen = fb.multiply(read(way(W), W), x, name="seen")
    written = assign_op(way(W), fb.log(x, name="logs"), dtype=W.dtype, shape=W.shape, name="write")
    with fb.Session() as sess, sess.guard():
        for _ in range(3):
            np.testing.assert_array_equal(sess.run([seen, written], {x: [1, 1]})[1], [0.0, 0.0])
            with pytest.raises(fb.errors.InvalidArgumentError) as caught:
                sess.run([seen, written], {x: [1.0, -1.0]})
            assert caught.value.operation.name == "logs"
            assert "the step changed no variable" in str(caught.value)
            np.testing.assert_array_equal(sess.run(W), [0.0, 0.0])


@every_way
def test_a_partial_run_reads_and_writes_through_it(way: Way) -> None:
    W = fb.Variable(1.0, name="W")
    x = fb.placeholder(fb.float32, [])
    seen = read(way(W), W) + x
    written = assign_add_op(way(W), x, dtype=W.dtype, shape=W.shape)
    with fb.Session() as sess:
        step = sess.partial_run([seen, written], [x])
        assert step.run([seen, written], {x: 2.0}) == [3.0, 3.0]


def test_reads_through_different_ways_are_merged() -> None:
    W = fb.Variable(1.0, name="W")
    total = read(through_one(W), W) + read(through_two(W), W)
    nodes = prepared_for([total]).program.parts[0].nodes
    assert [node.key.name for node in nodes if node.type == "ReadVariable"] == ["W"] * 2
    assert {node.inputs for node in nodes if node.type == "ReadVariable"} == {nodes[0].outputs}


def test_a_handle_that_nobody_can_trace_is_an_error_that_names_the_operation() -> None:
    W = fb.Variable(1.0, name="W")
    handle = passed(hidden(W.handle, name="somewhere"))
    seen, added = read(handle, W), add(handle, W, 1.0)
    with fb.Session() as sess:
        ways = [(sess.run, seen), (sess.partial_run, seen), (sess.peek, seen), (sess.run, added)]
        for run, fetched in ways:
            with pytest.raises(fb.errors.InvalidArgumentError, match=r"'somewhere' \(HandleHidden"):
                run(fetched)


def test_an_initial_value_that_nobody_can_trace_fails_its_own_runs_alone() -> None:
    W = fb.Variable(1.0, name="W")
    V = fb.Variable(read(hidden(W.handle, name="somewhere"), W), name="V")
    with fb.Session() as sess:
        assert sess.run(W) == 1.0
        for _ in range(2):
            with pytest.raises(fb.errors.InvalidArgumentError, match="'somewhere'"):
                sess.run(V)
        assert sess.run(fb.assign_add(W, 1.0)) == 2.0


def test_the_owner_is_found_by_port() -> None:
    one, other = fb.Variable(1.0), fb.Variable(2.0)
    second, first = crossed(one.handle, other.handle)
    assert owner_of(first) is one.op
    assert owner_of(passed(second)) is other.op
    seen = [read(second, one), read(first, one)]
    for kind, _, found in everywhere(fb.get_default_graph(), seen):
        assert found == [2.0, 1.0], kind


# Redefinition


@pytest.fixture
def _stale_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fb.options, "stale", "ignore")


stale_runs = pytest.mark.usefixtures("_stale_runs")


def retired(variable: fb.Variable) -> fb.Variable:
    """The variable, after its cell has built another thing under its name."""
    variable.graph.members.retire(variable.op)
    return variable


@stale_runs
def test_a_key_stays_when_its_operation_is_retired() -> None:
    W = fb.Variable(1.0, name="W")
    added = fb.assign_add(W, 1.0)
    key = W.op.key
    assert key == ResourceKey("", "W", 1)
    with fb.Session() as sess:
        assert sess.run(added) == 2.0
        retired(W)
        assert W.op.name == "W@1"
        assert W.op.key == key
        assert sess.run(added) == 3.0
        assert fb.get_default_graph().values.has_value(W.op)


@stale_runs
def test_generations_have_values_of_their_own() -> None:
    old = fb.Variable(1.0, name="W")
    old_added = fb.assign_add(old, 1.0)
    with fb.Session() as sess:
        assert sess.run(old_added) == 2.0
        retired(old)
        new = fb.Variable(10.0, name="W")
        assert (old.op.key.generation, new.op.key.generation) == (1, 2)
        new_added = fb.assign_add(new, 1.0)
        for turn in range(3):
            assert sess.run([old_added, new_added]) == [3.0 + turn, 11.0 + turn]
        assert sess.run([old.value, new.value]) == [5.0, 13.0]


@stale_runs
def test_generations_in_a_named_container_are_one_resource() -> None:
    try:
        with fb.container("handles"):
            old = fb.Variable(1.0, name="W")
            added = fb.assign_add(old, 1.0)
            retired(old)
            new = fb.Variable(10.0, name="W")
        assert old.op.key == new.op.key == ResourceKey("handles", "W", 0)
        with fb.Session() as sess:
            assert sess.run(added) == 2.0
            assert sess.run(new) == 2.0
    finally:
        fb.reset_container("handles")


def test_only_kinds_that_are_shared_are_shared_by_a_named_container() -> None:
    with fb.container("handles"):
        drawn = fb.random_uniform([], name="drawn")
    assert drawn.op.key == ResourceKey("", "drawn", 1)


def test_a_value_goes_with_the_last_reference_to_a_retired_operation() -> None:
    old = fb.Variable(np.zeros(10), name="W")
    added = fb.assign_add(old, np.ones(10))
    values = fb.get_default_graph().values
    with fb.Session() as sess:
        for _ in range(3):
            sess.run(added)
        retired(old)
        for operation in (added.op, old.value.op, old.initializer, old.initial_value.op):
            fb.get_default_graph().members.retire(operation)
        new = fb.Variable(np.zeros(10), name="W")
        sess.run(new)  # The session drops what it has prepared for the old one.
        key, kept = old.op.key, weakref.ref(old.op)
        buffer = weakref.ref(held(sess, old)._buffer)
        gc.collect()
        assert sess._master.stores.find(key) is not None
        assert values.has_value(old.op)
        del old, added, operation
        gc.collect()
        assert kept() is None
        assert buffer() is None
        assert sess._master.stores.find(key) is None
        assert key not in values.held_by(sess._master)
        assert values.has_value(new.op)


def doubling(factor: float) -> fb.OpDef:
    return fb.OpDef(
        "HandlesScaled",
        "x: float32 -> y: float32",
        infer=lambda x: x.shape,
        kernel=lambda xp, x: x * np.float32(factor),
    )


def test_a_type_defined_again_keeps_its_kernel_for_what_was_built_before() -> None:
    x = fb.placeholder(fb.float32, [])
    first = doubling(2.0)
    old = first(x)
    with fb.Session() as sess:
        sess.run(old, {x: 1.0})
    second = doubling(3.0)
    assert first.key != second.key
    new = second(x)
    for kind, _, found in everywhere(fb.get_default_graph(), [old, new], {x: np.float32(1.0)}):
        assert found == [2.0, 3.0], kind
    with fb.Session() as sess, sess.guard():
        for _ in range(3):
            assert sess.run([old, new], {x: 1.0}) == [2.0, 3.0]
    types = {node.type for node in prepared_for([old, new], feeds=[x]).program.parts[0].nodes}
    assert types == {first.key, second.key}
