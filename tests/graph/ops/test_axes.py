"""Which operations remember the tensors that their axes were read from."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

import flowbook as fb


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


def test_gradients_do_not_read_what_the_forward_operation_read(x: fb.Tensor) -> None:
    mean = fb.reduce_mean(x, fb.constant(0))
    before = len(x.graph.operations)
    fb.gradients(mean, x)
    assert not any(op.settled_by for op in x.graph.operations[before:])
