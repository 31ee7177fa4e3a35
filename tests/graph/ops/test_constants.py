"""Constants, placeholders and operations that only pass on or wait."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.interpreter import evaluate


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (1, fb.int32),
        (2**40, fb.int64),
        (1.5, fb.float32),
        (True, fb.bool),
        (1j, fb.complex128),
        ("text", fb.string),
        (np.float64(1), fb.float64),
        (np.arange(3, dtype=np.int8), fb.int8),
        ([[1, 2], [3, 4]], fb.int32),
    ],
)
def test_constants_take_the_dtype_of_their_values(value: Any, dtype: fb.DType) -> None:
    made = fb.constant(value)
    assert made.dtype is dtype
    assert made.shape == np.shape(value)
    result = evaluate(made)
    assert result.dtype == dtype.numpy
    expected = np.asarray(value)
    if dtype is fb.string:
        expected = np.array(b"text", object)
    np.testing.assert_array_equal(result, expected)


def test_a_constant_is_a_read_only_copy() -> None:
    array = np.ones(3)
    made = fb.constant(array)
    array[:] = 7
    value = evaluate(made)
    assert value.tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="read-only"):
        value[0] = 2


def test_a_constants_shape() -> None:
    assert evaluate(fb.constant(3, shape=[2, 2])).tolist() == [[3, 3], [3, 3]]
    assert evaluate(fb.constant([1, 2, 3, 4], shape=[2, 2])).tolist() == [[1, 2], [3, 4]]
    with pytest.raises(fb.errors.InvalidArgumentError, match="3 values do not fit"):
        fb.constant([1, 2, 3], shape=[2, 2])


def test_a_placeholder_takes_its_dtype_first() -> None:
    with pytest.raises(fb.errors.InvalidTypeError, match="takes the dtype first"):
        fb.placeholder([2, 3])
    x = fb.placeholder(fb.float32, [None, 2])
    assert evaluate(x, {x: [[1, 2]]}).tolist() == [[1, 2]]


def test_a_placeholder_that_is_not_fed_has_no_value() -> None:
    with pytest.raises(fb.errors.InvalidArgumentError, match="not fed"):
        evaluate(fb.placeholder(fb.float32) + 1.0)


def test_groups_wait_for_all() -> None:
    v = fb.Variable(1.0)
    both = fb.group(fb.assign_add(v, 1.0), [fb.no_op()])
    assert both.type == "NoOp"
    assert evaluate([both]) == [None]
    assert {op.type for op in both.control_inputs} == {"AssignAdd", "NoOp"}


def test_gradients_stop_and_are_prevented() -> None:
    x = fb.constant(2.0)
    assert fb.gradients(fb.stop_gradient(x) * 3.0, x) == [None]
    with pytest.raises(LookupError, match="on purpose"):
        fb.gradients(fb.prevent_gradient(x, message="on purpose"), x)
