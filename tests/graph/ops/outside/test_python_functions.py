"""`py_func`: read-only inputs, copied and checked results, effects in order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.graph.model.touch import Access
from tests.interpreter import evaluate


def test_one_result() -> None:
    y = fb.py_func(lambda a, b: a + b, [fb.constant([1.0, 2.0]), 3.0], fb.float32)
    assert y.dtype is fb.float32
    assert y.shape.rank is None
    assert evaluate(y).tolist() == [4, 5]


def test_several_results() -> None:
    y, n = fb.py_func(lambda a: (a * 2, a.size), [fb.constant([1.0, 2.0])], [fb.float32, fb.int32])
    assert [v.tolist() for v in evaluate([y, n])] == [[2, 4], 2]


@pytest.mark.parametrize("returned", [2.5, [2.5], (2.5,)])
def test_one_result_may_come_in_a_list(returned: Any) -> None:
    """As in TensorFlow 1; `Tout` says whether the tensor does."""
    assert evaluate(fb.py_func(lambda: returned, [], fb.float32)) == 2.5
    listed = fb.py_func(lambda: returned, [], [fb.float32])
    assert isinstance(listed, list)
    assert [v.item() for v in evaluate(listed)] == [2.5]


def test_no_results() -> None:
    seen: list[Any] = []
    operation = fb.py_func(lambda a: seen.append(a.item()), [fb.constant(5)], [])
    assert isinstance(operation, fb.Operation)
    assert evaluate(operation) is None
    assert seen == [5]


def test_inputs_are_read_only() -> None:
    def write(a: Any) -> Any:
        a[0] = 1
        return a

    x = fb.placeholder(fb.float64, [2])
    with pytest.raises(ValueError, match="read-only"):
        evaluate(fb.py_func(write, [x], fb.float64), {x: [1.0, 2.0]})


def test_scalars_are_arrays() -> None:
    def check(a: Any) -> Any:
        assert isinstance(a, np.ndarray)
        assert a.shape == ()
        return a

    x = fb.constant([1.0, 2.0])
    assert evaluate(fb.py_func(check, [fb.reduce_sum(x)], fb.float32)) == 3


def test_results_are_copied() -> None:
    kept = np.zeros(2)
    value = evaluate(fb.py_func(lambda: kept, [], fb.float64))
    kept[:] = 7
    assert value.tolist() == [0, 0]
    assert value.flags.writeable


def test_results_take_the_promised_dtype() -> None:
    value = evaluate(fb.py_func(lambda: np.array([1.5, 2.5]), [], fb.float32))
    assert value.dtype == np.float32
    assert value.tolist() == [1.5, 2.5]
    text = evaluate(fb.py_func(lambda: "text", [], fb.string))
    assert text.dtype == object
    assert text.item() == b"text"


@pytest.mark.parametrize(
    ("function", "promised", "message"),
    [
        (lambda: 1.5, fb.int32, "result 0 of .* is not int32"),
        (lambda: 300, fb.int8, "300 does not fit int8"),
        (lambda: None, fb.float32, "result 0"),
        (lambda: (1, 2, 3), [fb.int32, fb.int32], "a list of 3 where 2 were promised"),
        (lambda: 1, [fb.int32, fb.int32], "one int where 2 were promised"),
        (lambda: 1, [], "where none was promised"),
    ],
)
def test_wrong_results_are_errors(function: Any, promised: Any, message: str) -> None:
    made = fb.py_func(function, [], promised)
    first = made[0] if isinstance(made, list | tuple) and made else made
    with pytest.raises(fb.errors.InvalidArgumentError, match=message):
        evaluate(first)


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(fb.errors.InvalidTypeError, match="takes a function"):
        fb.py_func(3, [], fb.float32)
    with pytest.raises(fb.errors.InvalidTypeError, match="list of tensors"):
        fb.py_func(abs, fb.constant(1), fb.float32)


def test_it_has_no_gradient() -> None:
    x = fb.constant(1.0)
    with pytest.raises(LookupError, match="PyFunc"):
        fb.gradients(fb.py_func(lambda a: a, [x], fb.float32), x)


def test_effects() -> None:
    stateful = fb.py_func(lambda: 1, [], fb.int32)
    pure = fb.py_func(lambda: 1, [], fb.int32, stateful=False)
    assert stateful.op.op_def.access is Access.OUTSIDE
    assert pure.op.op_def.is_pure


# Gradients


def test_a_gradient_that_is_given() -> None:
    x = fb.constant([1.0, 2.0])

    def grad(op: fb.Operation, dy: fb.Tensor) -> fb.Tensor:
        return dy * fb.py_func(lambda v: 2 * v, [op.inputs[0]], fb.float32)

    y = fb.py_func(np.square, [x], fb.float32, grad=grad)
    [found] = fb.gradients(y * [1.0, 10.0], x)
    assert evaluate(found).tolist() == [2.0, 40.0]


def test_a_gradient_of_several_results() -> None:
    x, y = fb.constant(3.0), fb.constant(5.0)
    total, product = fb.py_func(
        lambda x, y: [x + y, x * y],
        [x, y],
        [fb.float32, fb.float32],
        grad=lambda op, ds, dp: [ds + dp * op.inputs[1], ds + dp * op.inputs[0]],
    )
    assert evaluate(fb.gradients([total, product], [x, y])) == [6.0, 4.0]


def test_a_gradient_that_is_none() -> None:
    x = fb.constant([1.0, 2.0])
    with pytest.raises(LookupError, match="no gradient is defined") as caught:
        fb.gradients(fb.py_func(np.square, [x], fb.float32), x)
    assert "give py_func a `grad`" in str(caught.value)
    with pytest.raises(fb.errors.InvalidTypeError, match="built by a function"):
        fb.py_func(np.square, [x], fb.float32, grad=2.0)  # type: ignore[arg-type]
    wrong = fb.py_func(np.square, [x], fb.float32, grad=lambda op, dy: 1 / 0)
    with pytest.raises(fb.errors.InvalidArgumentError, match="raised ZeroDivisionError"):
        fb.gradients(wrong, x)
