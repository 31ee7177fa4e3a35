"""Which operations remember the tensors that their axes were read from."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

import flowbook as fb
from flowbook.graph.building import verify


@pytest.fixture
def x() -> fb.Tensor:
    return fb.ones([2, 3])


def total(x: Any, axis: Any) -> Any:
    return fb.reduce_sum(x, axis)


def test_one_line_that_reads_a_tensor_and_then_none(x: fb.Tensor) -> None:
    first, second = fb.constant(0), fb.constant(1)
    sums = [total(x, axis) for axis in (first, 1, second, None, first)]
    assert [s.op.settled_by for s in sums] == [(first,), (), (second,), (), (first,)]


def test_a_call_that_failed_leaves_nothing_to_the_next(x: fb.Tensor) -> None:
    found = []
    for axis in (fb.constant(5), 0):
        with contextlib.suppress(fb.errors.InvalidArgumentError):
            found.append(total(x, axis))
    [built] = found
    assert built.op.settled_by == ()


def test_all_that_a_call_builds_remembers(x: fb.Tensor) -> None:
    axis = fb.constant(0)
    before = len(x.graph.operations)
    fb.nn.moments(x, axis)
    built = [op for op in x.graph.operations[before:] if op.type != "Const"]
    assert len(built) > 2
    assert {op.settled_by for op in built} == {(axis,)}


def test_calls_within_a_call(x: fb.Tensor) -> None:
    outer, inner = fb.constant(0), fb.constant(1)
    found = total(total(x, inner), outer)
    assert found.op.settled_by == (outer,)
    assert found.op.inputs[0].op.settled_by == (inner,)


def test_what_only_the_run_knows_was_not_read(x: fb.Tensor) -> None:
    fed = fb.placeholder(fb.int32, [])
    one = fb.constant(1)
    both = fb.stack([fed * 2, one])
    found = total(x, both[1])
    assert found.op.settled_by[1:] == (both, one)
    with fb.Session() as sess:
        assert sess.run([found, both], {fed: 3})[0].tolist() == [3, 3]


def test_gradients_do_not_read_what_the_forward_operation_read(x: fb.Tensor) -> None:
    mean = fb.reduce_mean(x, fb.constant(0))
    before = len(x.graph.operations)
    fb.gradients(mean, x)
    assert not any(op.settled_by for op in x.graph.operations[before:])


@pytest.mark.parametrize("is_imported", [False, True])
def test_a_stored_graph_remembers(x: fb.Tensor, is_imported: bool) -> None:
    fb.reduce_sum(x, fb.rank(x) - fb.constant(1, name="one"), name="total")
    stored, prefix = x.graph.to_bytes(), ""
    if is_imported:
        with fb.Graph().as_default() as graph:
            fb.import_graph_def(stored)
        prefix = "import/"
    else:
        graph = fb.Graph.from_bytes(stored)
    verify.check(graph)
    with (
        fb.Session(graph=graph) as sess,
        pytest.raises(fb.errors.InvalidArgumentError, match="one:0' is fed, but its value"),
    ):
        sess.run(f"{prefix}total:0", {f"{prefix}one:0": 2})
    assert is_imported or graph.to_bytes() == stored


def test_an_import_cannot_replace_what_was_read(x: fb.Tensor) -> None:
    fb.reduce_sum(x, fb.constant(1, name="one"), name="total")
    stored = x.graph.to_bytes()
    with (
        fb.Graph().as_default(),
        pytest.raises(fb.errors.InvalidArgumentError, match="stands for 'one:0', but its value"),
    ):
        fb.import_graph_def(stored, {"one:0": fb.constant(0)})
