"""Reductions agree with NumPy over any axes, and refuse axes that do not exist."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import flowbook as fb
from flowbook.graph.building.graph import Graph
from tests.interpreter import evaluate

PUBLIC = {
    "sum": fb.reduce_sum,
    "prod": fb.reduce_prod,
    "max": fb.reduce_max,
    "min": fb.reduce_min,
    "mean": fb.reduce_mean,
}


@st.composite
def reduced(draw: Any) -> Any:
    array = draw(
        arrays.arrays(
            np.float64,
            arrays.array_shapes(min_dims=0, max_dims=4, min_side=1, max_side=3),
            elements=st.integers(-3, 3).map(float),
        )
    )
    places = st.sampled_from(range(array.ndim)) if array.ndim else st.nothing()
    axes = draw(st.lists(places, max_size=array.ndim, unique=True))
    signed = [a - array.ndim if draw(st.booleans()) else a for a in axes]
    axis: Any = draw(st.sampled_from([None, signed, tuple(signed)]))
    if len(signed) == 1 and draw(st.booleans()):
        axis = signed[0]
    return array, axis


@given(st.sampled_from(sorted(PUBLIC)), reduced(), st.booleans(), st.booleans())
def test_values_and_shapes(name: str, case: Any, keepdims: bool, known: bool) -> None:
    array, axis = case
    numpy_axis = tuple(axis) if isinstance(axis, list) else axis
    expected = getattr(np, name)(array, axis=numpy_axis, keepdims=keepdims)
    with Graph().as_default():
        x = fb.placeholder(fb.float64, array.shape if known else None)
        y = PUBLIC[name](x, axis, keepdims)
        [gradient] = fb.gradients(y, x)
    result, slope = evaluate([y, gradient], {x: array})
    np.testing.assert_allclose(result, expected)
    assert y.shape.is_compatible_with(np.shape(result))
    assert y.shape == expected.shape or not known
    assert slope.shape == array.shape


@pytest.mark.parametrize("axis", [2, -3, [0, 5]])
def test_an_axis_out_of_range_is_an_error_at_construction(axis: Any) -> None:
    with pytest.raises(fb.errors.InvalidArgumentError, match="out of range for 2 dimensions"):
        fb.reduce_sum(fb.zeros([2, 3]), axis)


@pytest.mark.parametrize("axis", [[0, 0], [1, -1]])
def test_an_axis_named_twice_is_an_error(axis: Any) -> None:
    with pytest.raises(fb.errors.InvalidArgumentError, match="twice"):
        fb.reduce_sum(fb.zeros([2, 3]), axis)


def test_axes_of_an_unknown_rank_are_checked_in_the_run() -> None:
    x = fb.placeholder(fb.float32)
    with pytest.raises(fb.errors.InvalidArgumentError, match="out of range"):
        evaluate(fb.reduce_sum(x, 2), {x: np.ones((2, 2))})
    with pytest.raises(fb.errors.InvalidArgumentError, match="twice"):
        evaluate(fb.reduce_max(x, [1, -1]), {x: np.ones((2, 2))})
    with pytest.raises(fb.errors.InvalidArgumentError, match="out of range"):
        evaluate(fb.argmax(x, 2), {x: np.ones((2, 2))})


def test_a_tensor_stands_for_axes_where_the_graph_determines_its_value() -> None:
    x = fb.constant(np.arange(24.0).reshape(2, 3, 4))
    behind_the_first = fb.range(1, fb.rank(x))
    assert evaluate(fb.reduce_sum(x, behind_the_first)).tolist() == [66.0, 210.0]
    assert fb.reduce_sum(x, fb.constant(-1)).op.attributes["axis"] == (2,)
    assert fb.reduce_sum(x, [fb.constant(0), 1]).shape.dims == (4,)
    assert fb.argmax(x, fb.constant(1, fb.int64)).shape.dims == (2, 4)


def test_an_axis_is_no_number_of_a_run_and_no_float() -> None:
    x = fb.zeros([2, 3])
    with pytest.raises(fb.errors.InvalidTypeError, match="fixed when the graph is built"):
        fb.stack([x, x], fb.placeholder(fb.int32, []))
    with pytest.raises(fb.errors.InvalidTypeError, match="fixed when the graph is built"):
        fb.stack([x, x], fb.Variable(1))
    with pytest.raises(fb.errors.InvalidTypeError, match="an axis is an int"):
        fb.reduce_sum(x, fb.constant(0.5))
    with pytest.raises(fb.errors.InvalidTypeError, match="an axis is an int"):
        fb.reduce_sum(x, 0.5)


@pytest.mark.parametrize("dtype", [fb.int32, fb.int64])
def test_axes_may_be_constants(dtype: fb.DType) -> None:
    x = fb.constant(np.arange(6.0).reshape(2, 3))
    axis = fb.constant(-1, dtype)
    for built in (fb.reduce_sum(x, axis), fb.reduce_sum(x, fb.constant([1], dtype))):
        assert evaluate(built).tolist() == [3.0, 12.0]
    assert evaluate(fb.argmax(x, axis)).tolist() == [2, 2]
    assert evaluate(fb.cumsum(x, fb.rank(x) - 1)).tolist() == [[0, 1, 3], [3, 7, 12]]
    assert fb.expand_dims(x, axis).shape == [2, 3, 1]
    assert fb.concat([x, x], axis).shape == [2, 6]


@pytest.mark.parametrize(
    "axis", [range(1, 3), np.array([1, 2]), np.array([-1, 1]), [np.int64(1), 2]]
)
def test_axes_may_be_a_range_or_an_array(axis: Any) -> None:
    assert evaluate(fb.reduce_sum(np.ones((2, 3, 4)), axis)).tolist() == [12.0, 12.0]
    assert evaluate(fb.reduce_sum(np.ones((2, 3)), np.array(1))).tolist() == [3.0, 3.0]


def test_axes_are_stored_as_they_count_from_the_first() -> None:
    x = fb.zeros([2, 3])
    assert fb.reduce_sum(x, -1).op.attributes["axis"] == (1,)


def test_ties_share_the_gradient() -> None:
    x = fb.constant([3.0, 1.0, 3.0])
    for reduce, expected in ((fb.reduce_max, [0.5, 0, 0.5]), (fb.reduce_min, [0, 1, 0])):
        [gradient] = fb.gradients(reduce(x), x)
        assert evaluate(gradient).tolist() == expected


def test_the_gradient_of_a_product_with_zeros() -> None:
    for values, expected in (
        ([0.0, 2.0, 3.0], [6.0, 0, 0]),
        ([0.0, 0.0, 3.0], [0, 0, 0]),
        ([5.0], [1.0]),
        ([], []),
    ):
        with Graph().as_default():
            x = fb.constant(np.array(values))
            [gradient] = fb.gradients(fb.reduce_prod(x), x)
        assert evaluate(gradient).tolist() == expected


def test_half_precision_means_of_many_values() -> None:
    x = fb.constant(np.full(70_000, 3.0, np.float16))
    assert evaluate(fb.reduce_mean(x)) == 3.0


def test_logsumexp_neither_overflows_nor_loses_infinities() -> None:
    x = fb.constant([[1000.0, 1000.0], [-np.inf, -np.inf], [np.inf, 0.0]])
    expected = [1000 + np.log(2), -np.inf, np.inf]
    np.testing.assert_allclose(evaluate(fb.reduce_logsumexp(x, 1)), expected)


def test_extremes_of_nothing() -> None:
    for dtype in (fb.float32, fb.int8):
        nothing = fb.zeros([0, 2], dtype)
        low = -np.inf if dtype.is_floating else dtype.min
        assert evaluate(fb.reduce_max(nothing, 0)).tolist() == [low, low]
    assert np.isnan(evaluate(fb.reduce_mean(fb.zeros([0]))))


def test_integers_keep_their_dtype() -> None:
    for dtype in fb.INTS:
        total = evaluate(fb.reduce_sum(fb.ones([3], dtype)))
        assert total.dtype == dtype.numpy


def test_argmax_of_nothing_is_an_error() -> None:
    with pytest.raises(fb.errors.InvalidArgumentError, match="has no elements"):
        fb.argmax(fb.zeros([0, 2]))
    x = fb.placeholder(fb.float32)
    with pytest.raises(fb.errors.InvalidArgumentError, match="has no elements"):
        evaluate(fb.argmax(x), {x: np.zeros((0, 2))})


@pytest.mark.parametrize("axis", [True, [False, True], np.True_])
def test_truth_values_are_no_axes(axis: Any) -> None:
    with pytest.raises(fb.errors.InvalidTypeError, match="an axis is an int, not"):
        fb.reduce_sum(fb.ones([2, 3]), axis)
    with pytest.raises(fb.errors.InvalidTypeError, match="an axis is an int, not"):
        fb.reverse(fb.ones([2, 3]), axis)


@pytest.mark.parametrize("dtype", [fb.bfloat16, fb.float16, fb.float32, fb.float64])
def test_extremes_of_empty_segments_are_finite(dtype: fb.DType) -> None:
    x = fb.constant([1.0, 2.0], dtype)
    largest = fb.unsorted_segment_min(x, [0, 0], 2)
    lowest = fb.unsorted_segment_max(x, [0, 0], 2)
    for values, known in ((largest, dtype.max), (lowest, dtype.min)):
        assert evaluate(values)[1] == known


@pytest.mark.parametrize("place", range(3))
def test_nan_goes_before_every_number(place: int) -> None:
    values = np.array([1.0, 3.0, 2.0], np.float32)
    values[place] = np.nan
    assert evaluate([fb.argmax(values), fb.argmin(values)]) == [place, place]
    pooled = fb.nn.max_pool(values.reshape(1, 1, 3, 1), [1, 3], 1, "VALID")
    segments = [
        *(f(values, [0, 0, 0]) for f in (fb.segment_max, fb.segment_min)),
        *(f(values, [0, 0, 0], 1) for f in (fb.unsorted_segment_max, fb.unsorted_segment_min)),
    ]
    for found in evaluate([pooled, *segments]):
        assert np.isnan(found).all()
