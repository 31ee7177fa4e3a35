"""Embeddings: looked up one by one, and combined over lists of ids."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.graph.model.registry import op_definitions
from tests.interpreter import Interpreter, evaluate

TABLE = np.array([[3.0, 4.0], [0.0, 0.0], [0.3, 0.4], [-6.0, 8.0], [1.0, 0.0]], np.float32)


def sparse(indices: Any, values: Any, shape: Any) -> Any:
    return SimpleNamespace(
        indices=np.array(indices, np.int64).reshape(-1, 2),
        values=values,
        dense_shape=np.array(shape, np.int64),
    )


IDS = sparse([[0, 0], [0, 2], [2, 0], [2, 1], [2, 2]], np.array([0, 3, 2, 2, 4]), [4, 3])
WEIGHTS = sparse(IDS.indices, np.array([1.0, 2.0, 0.5, 0.5, -1.0], np.float32), [4, 3])


def test_rows_of_a_variable_are_gathered_from_it() -> None:
    table = fb.Variable(TABLE)
    rows = fb.nn.embedding_lookup(table, [[4, 0], [1, 1]])
    [slope] = fb.gradients(rows, [table])
    assert rows.op.type == "VariableGather"
    assert isinstance(slope, fb.IndexedSlices)
    assert rows.shape == [2, 2, 2]
    np.testing.assert_array_equal(evaluate(rows), TABLE[[[4, 0], [1, 1]]])


@pytest.mark.parametrize("shape", [[3, 0], [None, None], None])
def test_rows_without_elements_have_gradients(shape: Any) -> None:
    table = fb.placeholder(fb.float32, shape)
    rows = fb.nn.embedding_lookup(table, fb.placeholder_with_default([[1, 2]], [None, None]))
    [slope] = fb.gradients(rows, [table])
    assert evaluate(slope.values, {table: np.zeros((3, 0))}).shape == (2, 0)


def test_norms_of_arrays_are_limited() -> None:
    rows = fb.nn.embedding_lookup(np.array([[3.0, 4.0], [0.0, 0.5]]), [0, 1], max_norm=1.0)
    np.testing.assert_allclose(evaluate(rows), [[0.6, 0.8], [0, 0.5]])


def test_norms_are_limited() -> None:
    table = fb.Variable(TABLE)
    rows = fb.nn.embedding_lookup(table, [0, 1, 2, 3], max_norm=1.0)
    np.testing.assert_allclose(
        evaluate(rows), [[0.6, 0.8], [0, 0], [0.3, 0.4], [-0.6, 0.8]], rtol=1e-6
    )
    [slope] = fb.gradients(rows[:, 0], [table])
    assert isinstance(slope, fb.IndexedSlices)
    found = evaluate(slope.values)
    assert np.isfinite(found).all()
    assert found[1].tolist() == [1, 0]
    # Of what would lengthen a row at its limit nothing remains.
    np.testing.assert_allclose(found, [[0.128, -0.096], [1, 0], [1, 0], [0.064, 0.048]], atol=1e-6)
    scalars = fb.nn.embedding_lookup(fb.constant([3.0, -0.5]), [0, 1], max_norm=1)
    assert evaluate(scalars).tolist() == [1, -0.5]


@pytest.mark.skipif("DynamicPartition" not in op_definitions(), reason="it parts the ids")
@pytest.mark.parametrize("strategy", ["mod", "div"])
@pytest.mark.parametrize("shards", [2, 3, 7])
@pytest.mark.parametrize("ids", [[4, 0, 0, 2], [[1, 4], [3, 3]], np.zeros((0, 2), np.int64)])
def test_shards(ids: Any, shards: int, strategy: str) -> None:
    parts = np.array_split(TABLE, shards)
    if strategy == "mod":
        parts = [TABLE[i::shards] for i in range(shards)]
    tables = [fb.Variable(part) for part in parts]
    ids = np.asarray(ids)
    rows = fb.nn.embedding_lookup(tables, ids, strategy)
    slopes = fb.gradients(rows, tables)
    assert rows.shape == (*ids.shape, 2)
    assert all(isinstance(s, fb.IndexedSlices) for s in slopes)
    value, *slopes = evaluate([rows, *(s.as_tensor() for s in slopes)])
    np.testing.assert_array_equal(value, TABLE[ids])
    expected = np.bincount(ids.ravel(), minlength=5)
    found = np.zeros(5)
    numbers = np.array_split(np.arange(5), shards)
    for i, slope in enumerate(slopes):
        found[np.arange(5)[i::shards] if strategy == "mod" else numbers[i]] = slope[:, 0]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
def test_combining(combiner: str, weighted: bool) -> None:
    table = fb.Variable(TABLE)
    result = fb.nn.embedding_lookup_sparse(
        table, IDS, WEIGHTS if weighted else None, combiner=combiner
    )
    w = WEIGHTS.values if weighted else np.ones(5, np.float32)
    rows = TABLE[IDS.values] * w[:, None]
    divisor = {"sum": np.ones_like, "mean": lambda w: w, "sqrtn": np.square}[combiner]
    expected = np.zeros((4, 2))
    for example in (0, 2):
        own = IDS.indices[:, 0] == example
        total = divisor(w[own])
        by = {"sum": 1, "mean": total.sum(), "sqrtn": np.sqrt(total.sum())}[combiner]
        # The last example's weights cancel.
        expected[example] = rows[own].sum(0) / by if by else 0
    np.testing.assert_allclose(evaluate(result), expected, rtol=1e-5)
    [slope] = fb.gradients(result, [table])
    assert isinstance(slope, fb.IndexedSlices)
    assert np.isfinite(evaluate(slope.values)).all()


@pytest.mark.parametrize("dtype", [fb.float16, fb.bfloat16])
def test_rows_of_half_precision_are_combined_in_single(dtype: fb.DType) -> None:
    table = np.full((5, 1), 300, dtype.numpy)
    result = fb.nn.embedding_lookup_sparse(table, IDS, None, combiner="sum")
    assert result.dtype is fb.float32
    assert evaluate(result).ravel().tolist() == [600, 0, 900, 0]


def test_sparse_arguments_may_be_tensors() -> None:
    indices = fb.placeholder(fb.int64, [None, 2])
    ids = fb.placeholder(fb.int32, [None])
    given = SimpleNamespace(indices=indices, values=ids, dense_shape=fb.constant([2, 9], fb.int64))
    result = fb.nn.embedding_lookup_sparse(fb.Variable(TABLE), given, None, combiner="sum")
    assert result.shape == [2, 2]
    value = Interpreter().run(result, {indices: [[1, 0], [1, 1]], ids: [0, 4]})
    assert value.tolist() == [[0, 0], [4, 4]]
    empty = Interpreter().run(result, {indices: np.zeros((0, 2)), ids: []})
    assert empty.tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda t: fb.nn.embedding_lookup(t, [5]), "5 is out of range"),
        (lambda t: fb.nn.embedding_lookup(t, [0], "modulo"), "'mod' or 'div'"),
        (lambda t: fb.nn.embedding_lookup([], [0]), "no rows"),
        (lambda t: fb.nn.embedding_lookup(t, [0.5]), "not float32"),
        (lambda t: fb.nn.embedding_lookup_sparse(t, IDS, None, combiner="max"), "'sqrtn'"),
        (lambda t: fb.nn.embedding_lookup_sparse(t, [1, 2], None), "sparse tensor"),
        (
            lambda t: fb.nn.embedding_lookup_sparse(
                t, sparse([[0, 0]], np.array([0.5]), [1, 1]), None
            ),
            "int32 or int64",
        ),
        (
            lambda t: fb.nn.embedding_lookup_sparse(
                t, IDS, sparse([[0, 0]], np.array([0.5]), [1, 1])
            ),
            "one for each",
        ),
        (
            lambda t: fb.nn.embedding_lookup_sparse(
                t, sparse([[0, 0]], np.array([1, 2]), [1, 1]), None
            ),
            "2 dimensions",
        ),
    ],
)
def test_errors(build: Any, message: str) -> None:
    with pytest.raises(fb.errors.OpError, match=message) as caught:
        build(fb.Variable(TABLE))
    assert "test_embedding.py" in str(caught.value)


@pytest.mark.parametrize("shape", [[None, 2], [2, None], [None]])
@pytest.mark.parametrize("default", [None, 4])
def test_ids_that_are_invalid_or_missing_are_left_out(shape: Any, default: int | None) -> None:
    ids = fb.sparse.placeholder(fb.int64, shape if len(shape) == 2 else None)
    rows = fb.nn.safe_embedding_lookup_sparse(TABLE, ids, default_id=default)
    value = fb.SparseTensorValue([[0, 0], [0, 1]], [0, -2], [2, 2])
    with fb.Session() as sess:
        found = sess.run(rows, {ids: value})
    assert rows.shape.is_compatible_with(found.shape)
    np.testing.assert_array_equal(found, [TABLE[0], [0, 0] if default is None else TABLE[default]])


def test_an_id_beyond_the_table_is_no_missing_one() -> None:
    ids = fb.SparseTensor([[0, 0]], [5], [1, 1])
    with fb.Session() as sess, pytest.raises(fb.errors.InvalidIndexError, match="5"):
        sess.run(fb.nn.safe_embedding_lookup_sparse(TABLE, ids))
    with pytest.raises(fb.errors.InvalidTypeError, match="a SparseTensor is wanted"):
        fb.nn.safe_embedding_lookup_sparse(TABLE, [1, 2])
