"""`x[key]` has NumPy's meaning, whether indices are known at construction or in the run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowbook as fb
from flowbook.graph.building.graph import Graph
from flowbook.graph.model.shape import Shape
from tests.interpreter import evaluate

SHAPES = st.lists(st.integers(0, 4), max_size=4)
BOUNDS = st.none() | st.integers(-6, 6)
STEPS = st.none() | st.integers(-3, 3).filter(bool)


@st.composite
def keys(draw: Any, shape: list[int]) -> Any:
    """A key for an array of that shape; its ints are mostly in range."""
    parts: list[Any] = []
    used = draw(st.integers(0, len(shape)))
    for size in shape[:used]:
        if size and draw(st.booleans()):
            parts.append(draw(st.integers(-size, size - 1)))
        else:
            parts.append(slice(draw(BOUNDS), draw(BOUNDS), draw(STEPS)))
    for _ in range(draw(st.integers(0, 2))):
        parts.insert(draw(st.integers(0, len(parts))), None)
    if draw(st.booleans()):
        # What comes after an Ellipsis counts from the last axis, so the sizes must suit.
        after = [slice(draw(BOUNDS), draw(BOUNDS), draw(STEPS))] if used < len(shape) else []
        parts = [*parts, Ellipsis, *after]
    return parts[0] if len(parts) == 1 and draw(st.booleans()) else tuple(parts)


@given(st.data())
def test_static_keys(data: Any) -> None:
    shape = data.draw(SHAPES)
    key = data.draw(keys(shape))
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    expected = array[key]
    with Graph().as_default():
        known = fb.constant(array)[key]
        unknown = fb.placeholder(fb.int64, [None] * len(shape))
        partly = unknown[key]
        anything = fb.placeholder(fb.int64)
        never = anything[key]
    assert known.shape == expected.shape
    assert partly.shape.is_compatible_with(expected.shape)
    assert partly.shape.rank == expected.ndim
    results = evaluate([known, partly, never], {unknown: array, anything: array})
    for result in results:
        np.testing.assert_array_equal(result, expected)


def as_tensors(key: Any, feeds: dict[Any, Any]) -> Any:
    """The key with placeholders for its ints."""
    if isinstance(key, tuple):
        return tuple(as_tensors(part, feeds) for part in key)
    if isinstance(key, slice):
        return slice(*(as_tensors(end, feeds) for end in (key.start, key.stop, key.step)))
    if isinstance(key, int):
        tensor = fb.placeholder(fb.int64 if key % 2 else fb.int32, [])
        feeds[tensor] = key
        return tensor
    return key


@given(st.data())
def test_tensors_as_indices_and_bounds(data: Any) -> None:
    shape = data.draw(SHAPES)
    key = data.draw(keys(shape))
    array = np.arange(np.prod(shape, dtype=float)).reshape(shape)
    feeds: dict[Any, Any] = {}
    with Graph().as_default():
        x = fb.constant(array)
        y = x[as_tensors(key, feeds)]
        [gradient] = fb.gradients(y, x)
    result, slope = evaluate([y, gradient], feeds)
    np.testing.assert_array_equal(result, array[key])
    assert y.shape.is_compatible_with(result.shape)
    expected = np.zeros(shape)
    expected[key] = 1
    np.testing.assert_array_equal(slope, expected)


X = np.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize("key", [2, -3, (0, 3), (0, 0, 0), (slice(None), -4), (..., 3)])
def test_a_static_index_out_of_range_is_an_error_at_construction(key: Any) -> None:
    with pytest.raises(fb.errors.InvalidIndexError, match="StridedSlice"):
        fb.constant(X)[key]


@pytest.mark.parametrize("row", [2, -3])
def test_an_index_out_of_range_in_the_run_names_it(row: int) -> None:
    index = fb.placeholder(fb.int32, [])
    with pytest.raises(
        fb.errors.InvalidIndexError, match=f"index {row} is out of range for axis 0"
    ):
        evaluate(fb.constant(X)[index], {index: row})


def test_an_index_into_an_unknown_shape_is_checked_in_the_run() -> None:
    x = fb.placeholder(fb.float64)
    with pytest.raises(fb.errors.InvalidIndexError, match="index 5"):
        evaluate(x[:, 5], {x: X})
    with pytest.raises(fb.errors.InvalidIndexError, match="3 indices"):
        evaluate(x[0, 0, 0], {x: X})


@pytest.mark.parametrize(
    "key",
    [[0, 1], np.array([0, 1]), np.array([True, False]), True, np.True_, ([0, 1], 0), np.array([0])],
    ids=repr,
)
def test_arrays_and_masks_are_no_keys(key: Any) -> None:
    with pytest.raises(fb.errors.InvalidTypeError, match=r"fb\.gather"):
        fb.constant(X)[key]


@pytest.mark.parametrize("key", [1.0, "a", slice(0.5), object()])
def test_other_values_are_no_keys(key: Any) -> None:
    with pytest.raises(fb.errors.InvalidTypeError, match="an index is"):
        fb.constant(X)[key]


def test_tensors_that_are_no_scalars_are_no_keys() -> None:
    x = fb.constant(X)
    for key in (fb.constant([0, 1]), fb.constant(True), fb.constant(1.0), x > 2.0):
        with pytest.raises(fb.errors.InvalidTypeError, match=r"fb\.gather"):
            x[key]


def test_a_vector_where_a_scalar_was_expected_is_an_error_in_the_run() -> None:
    index = fb.placeholder(fb.int32)
    with pytest.raises(fb.errors.InvalidArgumentError, match="an index is a scalar"):
        evaluate(fb.constant(X)[index], {index: [0, 1]})


def test_numpy_integers_are_indices() -> None:
    x = fb.constant(X)
    y = x[np.int64(1), np.uint8(2)]
    assert evaluate(y) == 5
    assert evaluate(x[np.array(1)]).tolist() == [3, 4, 5]


def test_a_zero_step_is_an_error() -> None:
    x = fb.constant(X)
    with pytest.raises(fb.errors.InvalidArgumentError, match="step"):
        x[::0]
    step = fb.placeholder(fb.int32, [])
    with pytest.raises(fb.errors.InvalidArgumentError, match="step"):
        evaluate(x[::step], {step: 0})


def test_two_ellipses_are_an_error() -> None:
    with pytest.raises(fb.errors.InvalidArgumentError, match="Ellipsis"):
        fb.constant(X)[..., ...]


def test_a_variable_indexes_and_is_indexed() -> None:
    place = fb.Variable(1, trainable=False)
    table = fb.Variable(X)
    assert evaluate(table[place, 1:]).tolist() == [4, 5]


def test_shapes_are_followed_through_their_parts() -> None:
    x = fb.placeholder(fb.float32, [None, 3, 4])
    n = fb.shape(x)
    assert fb.reshape(x, [n[0], 12]).shape == [None, 12]
    assert fb.reshape(x, [n[0], n[1] * n[2]]).shape == [None, 12]
    assert fb.zeros(fb.concat([n[1:], [2]], 0)).shape == [3, 4, 2]
    assert fb.zeros(fb.stack([n[0], n[2]])).shape == [None, 4]
    assert fb.zeros(n[::-1]).shape == [4, 3, None]


def test_a_long_chain_of_integers_does_not_make_inference_slow() -> None:
    n = fb.placeholder(fb.int32, [])
    total = fb.constant(1)
    for _ in range(2000):
        total = total + total
    assert fb.zeros(fb.stack([total, n])).shape == [None, None]


def test_slice_takes_blocks() -> None:
    x = fb.constant(X)
    assert evaluate(fb.slice(x, [0, 1], [2, -1])).tolist() == [[1, 2], [4, 5]]
    with pytest.raises(fb.errors.InvalidIndexError, match="axis 1"):
        fb.slice(x, [0, 1], [2, 3])
    begin = fb.placeholder(fb.int32, [2])
    with pytest.raises(fb.errors.InvalidIndexError, match="axis 0"):
        evaluate(fb.slice(x, begin, [1, 1]), {begin: [2, 0]})
    with pytest.raises(fb.errors.InvalidArgumentError, match="begin"):
        fb.slice(x, [0], [1])


def test_iteration_and_unpacking() -> None:
    first, second = fb.constant(X)
    assert first.shape == Shape([3])
    assert evaluate(second).tolist() == [3, 4, 5]


def test_a_row_of_a_constant_tells_a_shape() -> None:
    sizes = fb.constant([[2, 3], [3, 2]])
    assert fb.reshape(fb.placeholder(fb.float32, [None]), sizes[1]).shape == Shape([3, 2])


def test_a_part_of_a_shape_that_is_known_in_part() -> None:
    whole = fb.shape(fb.placeholder(fb.float32, [None, 4, 5]))
    flat = fb.placeholder(fb.float32, [None])
    assert fb.reshape(flat, whole[1:]).shape == Shape([4, 5])
    assert fb.reshape(flat, whole[::-1]).shape == Shape([5, 4, None])
    assert fb.reshape(flat, [whole[0], whole[1] * whole[2]]).shape == Shape([None, 20])


@pytest.mark.parametrize("kind", [list, tuple, Shape])
def test_shapes_are_put_together_with_lists_and_tuples(kind: Any) -> None:
    shape, more = Shape([None, 4]), kind([3, 2])
    assert shape[1:] + more == Shape([4, 3, 2])
    assert more + shape == Shape([3, 2, None, 4])
    assert isinstance(more + shape, Shape)
    assert more + Shape() == Shape()


def test_floats_that_are_cast_tell_no_shape() -> None:
    sizes = fb.cast(fb.constant([2.7, 3.0]), fb.int32)
    assert fb.reshape(fb.placeholder(fb.float32, [None]), sizes).shape == Shape([None, None])
