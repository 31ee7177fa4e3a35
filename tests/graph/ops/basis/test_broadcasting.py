"""Elementwise operations broadcast as NumPy does; their gradients have their operands' shapes."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes

import flowbook as fb
from flowbook.graph.building.graph import Graph
from flowbook.graph.gradients.backward import gradients
from flowbook.graph.ops.basis.broadcasting import sum_to_shape
from tests.interpreter import evaluate

PAIRS = mutually_broadcastable_shapes(num_shapes=2, max_dims=3, min_side=0, max_side=3)


@st.composite
def hidden(draw: Any, shape: tuple[int, ...]) -> Any:
    """The shape, or what remains of it when some of it is not known."""
    if draw(st.integers(0, 4)) == 0:
        return None
    return [draw(st.sampled_from([d, None])) for d in shape]


@given(st.data())
def test_shapes_and_gradients(data: Any) -> None:
    pair = data.draw(PAIRS)
    arrays = [np.arange(np.prod(s, dtype=float)).reshape(s) + 1 for s in pair.input_shapes]
    with Graph().as_default():
        x, y = (fb.placeholder(fb.float64, data.draw(hidden(s))) for s in pair.input_shapes)
        feeds = dict(zip((x, y), arrays, strict=True))
        product = x * y
        dx, dy = gradients(product, [x, y])
    assert product.shape.is_compatible_with(pair.result_shape)
    result, found_x, found_y = evaluate([product, dx, dy], feeds)
    assert result.shape == pair.result_shape
    ones = np.ones(pair.result_shape)
    for found, array, other in ((found_x, *arrays), (found_y, *arrays[::-1])):
        assert found.shape == array.shape
        whole = ones * other
        extra = whole.ndim - array.ndim
        expected = whole.sum(axis=tuple(range(extra)))
        for axis, size in enumerate(array.shape):
            if size == 1:
                expected = expected.sum(axis=axis, keepdims=True)
        np.testing.assert_allclose(found, expected)


@given(st.data())
def test_what_does_not_broadcast_is_an_error(data: Any) -> None:
    shapes = data.draw(st.tuples(*[st.lists(st.integers(0, 3), max_size=3)] * 2))
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        with Graph().as_default():
            x, y = (fb.placeholder(fb.float32, s) for s in shapes)
            with pytest.raises(fb.errors.InvalidArgumentError, match="do not broadcast"):
                operator.add(x, y)


def types_after(build: Any) -> list[str]:
    graph = fb.get_default_graph()
    before = len(graph.operations)
    build()
    return [op.type for op in graph.operations[before:]]


def test_equal_shapes_need_no_sum() -> None:
    x, y = fb.placeholder(fb.float32, [2, 3]), fb.placeholder(fb.float32, [2, 3])
    assert types_after(lambda: sum_to_shape(x, y)) == []


def test_known_shapes_need_one_sum_over_fixed_axes() -> None:
    whole, row = fb.placeholder(fb.float32, [None, 3]), fb.placeholder(fb.float32, [3])
    assert types_after(lambda: sum_to_shape(whole, row)) == ["Sum"]


def test_the_other_operand_may_show_that_nothing_was_repeated() -> None:
    x, bias = fb.placeholder(fb.float32, [None, 3]), fb.placeholder(fb.float32, [3])
    assert types_after(lambda: gradients(x + bias, x)).count("SumToShape") == 0


def test_unknown_shapes_are_compared_in_the_run() -> None:
    x, y = fb.placeholder(fb.float64, [None]), fb.placeholder(fb.float64, [None])
    [dx] = gradients(x * y, [x])
    assert dx.op.type == "SumToShape"
    assert evaluate(dx, {x: [2.0], y: [1.0, 2.0]}).tolist() == [3.0]
    assert evaluate(dx, {x: [2.0, 3.0], y: [1.0, 2.0]}).tolist() == [1.0, 2.0]


def test_broadcast_to_says_what_does_not_fit() -> None:
    x = fb.zeros([2, 3])
    for shape in ([3], [3, 3], [2, 3, 1]):
        with pytest.raises(fb.errors.InvalidArgumentError, match="does not broadcast to"):
            fb.broadcast_to(x, shape)
    shape = fb.placeholder(fb.int32, [2])
    with pytest.raises(fb.errors.InvalidArgumentError, match="does not broadcast to"):
        evaluate(fb.broadcast_to(x, shape), {shape: [4, 3]})
