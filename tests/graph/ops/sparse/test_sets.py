"""Sets of dense and sparse tensors, of any rank, and what does not go together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowbook as fb
from tests.interpreter import evaluate

Error = fb.errors.InvalidArgumentError
TABLES = st.lists(st.lists(st.integers(-3, 3), min_size=4, max_size=4), min_size=2, max_size=2)


def rows(value: fb.SparseTensorValue) -> list[list[Any]]:
    found: list[list[Any]] = [[] for _ in range(value.dense_shape[0])]
    for (row, _), element in zip(value.indices, value.values.tolist(), strict=True):
        found[row].append(element)
    return found


@given(TABLES, TABLES)
def test_dense_sets_are_those_of_python(a: Any, b: Any) -> None:
    with fb.Graph().as_default(), fb.Session() as sess:
        found = sess.run(
            [
                fb.sets.union(a, b),
                fb.sets.intersection(a, b),
                fb.sets.difference(a, b),
                fb.sets.difference(a, b, aminusb=False),
            ]
        )
    pairs = [({*x}, {*y}) for x, y in zip(a, b, strict=True)]
    wanted = ([x | y, x & y, x - y, y - x] for x, y in pairs)
    for result, sets in zip(found, zip(*wanted, strict=True), strict=True):
        assert rows(result) == [sorted(s) for s in sets]


@pytest.mark.parametrize("known", [True, False])
def test_zeros_are_elements_and_shapes_may_be_unknown(known: bool) -> None:
    x = fb.placeholder(fb.int64, [2, 2] if known else None)
    sparse = fb.sparse.placeholder(fb.int64)
    common = fb.sets.intersection(x, sparse)
    sizes = fb.sets.size(common)
    assert sizes.shape.is_compatible_with([2])
    with fb.Session() as sess:
        fed = {x: [[0, 1], [5, 0]], sparse: ([[0, 0], [1, 0], [1, 1]], [0, 5, 0], [2, 9])}
        for _ in range(2):
            value, count = sess.run([common, sizes], fed)
            assert rows(value) == [[0], [0, 5]]
            assert count.tolist() == [1, 2]


def test_one_set_and_sets_of_sets() -> None:
    assert evaluate(fb.sets.union([3, 1], [2, 1]).values).tolist() == [1, 2, 3]
    assert evaluate(fb.sets.size(fb.sparse.from_dense([4, 5, 4]))) == 2
    deep = np.arange(8).reshape(2, 2, 2) // 2
    union = fb.sets.union(deep, deep[::-1])
    assert (union.shape.rank, evaluate(union.dense_shape).tolist()) == (3, [2, 2, 2])
    assert evaluate(union.values).tolist() == [0, 2, 1, 3, 0, 2, 1, 3]


def test_strings() -> None:
    left = fb.sets.difference([["a", "b", "a"]], [["b"]])
    assert evaluate(left.values).tolist() == [b"a"]


def test_more_sets_than_int64_counts() -> None:
    n = 2**40
    x = fb.SparseTensor([[1, 5, 0], [n - 1, 2, 0]], [3, 4], [n, n, 1])
    value = evaluate(fb.sets.union(x, x).indices)
    assert value.tolist() == [[1, 5, 0], [n - 1, 2, 0]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: fb.sets.union([[1]], [[1], [2]]), "not as many sets"),
        (lambda x: fb.sets.union(1, 2), "a scalar has not"),
        (lambda x: fb.sets.union([[1.5]], [[1.5]]), "float32"),
        (lambda x: fb.sets.size([1, 2]), "a SparseTensor is wanted"),
    ],
)
def test_what_does_not_go_together(call: Any, message: str) -> None:
    with pytest.raises(Error, match=message):
        call(None)


def test_what_only_the_run_sees() -> None:
    x = fb.placeholder(fb.int32)
    with fb.Session() as sess, pytest.raises(Error, match="not as many sets"):
        sess.run(fb.sets.union(x, [[1]]).values, {x: [[1], [2]]})


def test_sizes_that_only_the_run_knows():
    x = fb.placeholder(fb.int32, [None, 2, None])
    both = fb.sets.intersection(x, [[[1, 0], [3, 4]]])
    assert both.shape.rank == 3
    with fb.Session() as sess:
        value = sess.run(both, {x: [[[0, 2, 0], [4, 3, 5]]]})
    assert value.indices.tolist() == [[0, 0, 0], [0, 1, 0], [0, 1, 1]]
    assert value.values.tolist() == [0, 3, 4]
    assert value.dense_shape.tolist() == [1, 2, 2]


def test_lists_take_dtype_and_graph_of_tensors():
    with fb.Graph().as_default():
        b = fb.constant([[2, 3]], fb.int64)
    assert fb.sets.union([[1, 2]], b).dtype is fb.int64
    assert fb.sets.union([[1, 2]], b).graph is b.graph
    assert fb.sets.union(b, [[1, 2]]).graph is b.graph
