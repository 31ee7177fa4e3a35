"""Writes to parts of variables, on a plain resource; `tests/exec` tests the real one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowbook as fb
from flowbook.graph.building.graph import Graph
from tests.graph.ops.basis.test_indexing import SHAPES, as_tensors, keys
from tests.interpreter import Interpreter, evaluate

Error = fb.errors.InvalidArgumentError
InvalidIndex = fb.errors.InvalidIndexError


def rows(dtype: Any = np.float64) -> Any:
    return fb.Variable(np.arange(1, 7, dtype=dtype).reshape(3, 2), name="rows")


@pytest.mark.parametrize(
    ("scatter", "expected"),
    [
        (fb.scatter_mul, [[1 * 10 * 20, 2 * 20 * 20], [3, 4], [50, 120]]),
        (fb.scatter_div, [[1 / 200, 2 / 400], [3, 4], [0.5, 0.3]]),
        (fb.scatter_max, [[20, 20], [3, 4], [10, 20]]),
        (fb.scatter_min, [[1, 2], [3, 4], [5, 6]]),
    ],
)
def test_updates_of_rows(scatter: Any, expected: Any) -> None:
    updates = [[10.0, 20.0], [10.0, 20.0], [20.0, 20.0]]
    result = evaluate(scatter(rows(), [2, 0, 0], updates))
    np.testing.assert_allclose(result, expected)


def test_one_value_serves_for_all_rows() -> None:
    assert evaluate(fb.scatter_add(rows(), [[0, 0], [2, 0]], 1.0)).tolist() == [
        [4, 5],
        [3, 4],
        [6, 7],
    ]
    assert evaluate(fb.scatter_update(rows(), [1], 0.0)).tolist() == [[1, 2], [0, 0], [5, 6]]


@pytest.mark.parametrize(
    ("scatter", "expected"),
    [
        (fb.scatter_nd_add, [[1, 2 + 10 + 30], [3, 4], [5 + 20, 6]]),
        (fb.scatter_nd_sub, [[1, 2 - 10 - 30], [3, 4], [5 - 20, 6]]),
        (fb.scatter_nd_update, [[1, 30], [3, 4], [20, 6]]),
    ],
)
def test_updates_of_elements(scatter: Any, expected: Any) -> None:
    result = evaluate(scatter(rows(), [[0, 1], [2, 0], [0, 1]], [10.0, 20.0, 30.0]))
    assert result.tolist() == expected


def test_updates_of_rows_by_vectors() -> None:
    result = evaluate(fb.scatter_nd_update(rows(), [[[2]], [[0]]], [[[7.0, 8.0]], [[9.0, 9.0]]]))
    assert result.tolist() == [[9, 9], [3, 4], [7, 8]]


@given(st.data())
def test_slices_are_written_as_numpy_writes_them(data: Any) -> None:
    shape = data.draw(SHAPES)
    key = data.draw(keys(shape))
    array = np.arange(np.prod(shape, dtype=float)).reshape(shape)
    # Some of the leading axes and those of size 1 are left to broadcasting.
    part = array[key].shape
    dropped = part[data.draw(st.integers(0, len(part))) :]
    value = -1 - np.arange(np.prod(dropped, dtype=float)).reshape(dropped)
    expected = array.copy()
    expected[key] = value
    feeds: dict[Any, Any] = {}
    with Graph().as_default():
        static = fb.assign_slice(fb.Variable(array), key, value)
        given = fb.placeholder(fb.float64)
        feeds[given] = value
        dynamic = fb.assign_slice(fb.Variable(array), as_tensors(key, feeds), given)
        assert static.shape == shape
        for result in evaluate([static, dynamic], feeds):
            np.testing.assert_array_equal(result, expected)


def test_a_slice_is_written_in_the_order_of_construction() -> None:
    v = fb.Variable([1, 2, 3, 4])
    first = fb.assign_slice(v, slice(0, 2), v[2:])
    second = fb.assign_slice(v, slice(2, None), [0, 0])
    interpreter = Interpreter()
    assert interpreter.run([v, second, first])[0].tolist() == [1, 2, 3, 4]
    assert interpreter.run(v).tolist() == [3, 4, 0, 0]


def test_booleans_are_scattered_by_or_and_strings_in_order() -> None:
    places = [[2], [0], [2]]
    found = evaluate(fb.scatter_nd(places, [True, False, False], [4]))
    assert found.tolist() == [False, False, True, False]
    assert evaluate(fb.scatter_nd(places, ["a", "b", "c"], [4])).tolist() == [b"b", b"", b"ac", b""]
    pairs = fb.scatter_nd([[1], [1]], [["a", "b"], ["c", "d"]], [2, 2])
    assert evaluate(pairs).tolist() == [[b"", b""], [b"ac", b"bd"]]


def test_what_does_not_fit_is_an_error() -> None:
    v = rows()
    with pytest.raises(Error, match="does not broadcast to"):
        fb.assign_slice(v, 0, [1.0, 2.0, 3.0])
    with pytest.raises(Error, match="does not broadcast to"):
        fb.assign_slice(v, (slice(1), 0), [[1.0], [2.0]])
    with pytest.raises(InvalidIndex, match="index 3 is out of range"):
        fb.assign_slice(v, 3, 0.0)
    with pytest.raises(fb.errors.InvalidTypeError, match="only a variable"):
        fb.assign_slice(fb.constant([1.0]), 0, 2.0)
    with pytest.raises(fb.errors.InvalidTypeError, match="quotients"):
        fb.scatter_div(rows(np.int32), [0], [[1, 1]])
    with pytest.raises(Error, match="do not fit indices"):
        fb.scatter_nd_add(v, [[0, 1]], [1.0, 2.0])
    with pytest.raises(Error, match="too long"):
        fb.scatter_nd_add(v, [[0, 1, 0]], [1.0])
    with pytest.raises(InvalidIndex, match=r"\[0, 2\] lie outside the shape \[3, 2\]"):
        fb.scatter_nd_add(v, [[0, 1], [0, 2]], [1.0, 1.0])


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda v, i: fb.assign_slice(v, i[0], 0.0), "index 3 is out of range"),
        (lambda v, i: fb.scatter_nd_add(v, i[None], [1.0]), "lie outside the shape"),
        (lambda v, i: fb.scatter_nd_update(v, i[1:, None], [[1.0, 1.0]] * 2), "do not fit"),
    ],
)
def test_errors_in_the_run_leave_the_variable_as_it_was(build: Any, message: str) -> None:
    v = rows()
    i = fb.placeholder(fb.int32)
    interpreter = Interpreter()
    with pytest.raises(fb.errors.OpError, match=message):
        interpreter.run(build(v, i), {i: [3, 0]})
    assert interpreter.run(v).tolist() == [[1, 2], [3, 4], [5, 6]]
