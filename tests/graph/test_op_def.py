"""Definitions: what attributes may be, and what a user's inference may give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.interpreter import evaluate

HERE = "test_op_def.py"

holder = fb.OpDef(
    "TestHolder",
    "-> output: float32",
    attributes={"value": None, "sizes": [1, [2]]},
    infer=lambda value, sizes: fb.Shape([]),
    kernel=lambda xp, value: xp.float32(np.sum(value)),
)


def test_an_array_given_as_an_attribute_is_a_read_only_copy() -> None:
    array = np.array([1.0, 2.0])
    whole, row = holder(value=array), holder(value=(array[:1],))
    array[:] = 9.0
    assert [evaluate(whole), evaluate(row)] == [3.0, 1.0]
    with pytest.raises(ValueError, match="read-only"):
        whole.op.attributes["value"][0] = 5.0


def test_lists_become_tuples() -> None:
    op = holder(value=[1, [2, [3]]]).op
    assert op.attributes["value"] == (1, (2, (3,)))
    assert op.attributes["sizes"] == (1, (2,))
    assert holder().op.attributes["sizes"] == (1, (2,))


def test_attributes_do_not_change() -> None:
    for op in (holder().op, holder(value=3).op, fb.constant(1.0).op, fb.negative(1.0).op):
        with pytest.raises(TypeError):
            op.attributes["value"] = 7
    assert holder().op.attributes["value"] is None


@pytest.mark.parametrize(
    "value", [{1}, {"a": 1}, (1, [object()]), np.array([1, None]), lambda: fb.constant(1.0)]
)
def test_what_is_not_plain_data_is_refused(value: Any) -> None:
    value = value() if callable(value) else value
    with pytest.raises(fb.errors.InvalidTypeError, match="TestHolder: 'value': ") as caught:
        holder(value=value)
    assert f"defined at {HERE}, line " in str(caught.value)


def test_functions_are_attributes() -> None:
    assert holder(value=np.add).op.attributes["value"] is np.add


def with_inference(infer: Any, outputs: str = "y: T") -> fb.OpDef:
    return fb.OpDef("TestInferred", f"x: T -> {outputs}", T=fb.FLOATS, infer=infer)


@pytest.mark.parametrize(
    ("infer", "outputs", "message"),
    [
        (lambda x: None, "y: T", "gave None, which is no Shape"),
        (lambda x: [2, 3], "y: T", "gave .2, 3., which is no Shape"),
        (lambda x: x.shape, "y: T, z: T", "gave 1 shapes for 2 outputs"),
        (lambda x: [x.shape, x.shape], "y: T", "gave 2 shapes for 1 outputs"),
        (lambda x: x.size, "y: T", "its infer raised AttributeError"),
        (lambda x: 1 / 0, "y: T", "its infer raised ZeroDivisionError: division by zero"),
    ],
)
def test_a_users_inference_is_checked(infer: Any, outputs: str, message: str) -> None:
    define = with_inference(infer, outputs)
    with pytest.raises(fb.errors.InvalidArgumentError, match=message) as caught:
        define(fb.zeros([2]), name="mine")
    assert str(caught.value).startswith("TestInferred 'mine': ")
    assert f"defined at {HERE}, line " in str(caught.value)
    assert not fb.get_default_graph().has_operation("mine")


def test_a_users_inference_may_give_lists_of_dimensions() -> None:
    one, two = with_inference(lambda x: [[2, None], x.shape], "y: T, z: T")(fb.zeros([3]))
    assert (one.shape, two.shape) == ([2, None], [3])
