"""Sparse tensors as strings, and back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowbook as fb
from flowbook.graph.model.dtypes import MOVABLE, DType
from tests.exec.state.executors import EXECUTORS, run_in

INDICES = np.array([[2, 1], [0, 3], [2, 0], [0, 0]])


def there_and_back(x: fb.SparseTensor, dtype: DType, rank: int) -> fb.SparseTensor:
    return fb.sparse.deserialize_many(fb.sparse.serialize_many(x), dtype, rank)


@pytest.mark.parametrize("dtype", MOVABLE, ids=str)
def test_every_dtype_comes_back(dtype: DType) -> None:
    given: object = [b"", b"a", b"\0", b"zz"] if dtype is fb.string else [0, 1, 1, 0]
    x = fb.SparseTensor(INDICES, np.array(given, dtype.numpy), [3, 4])
    with fb.Session() as sess:
        value = sess.run(there_and_back(x, dtype, 1))
    assert value.indices.tolist() == [[0, 3], [0, 0], [2, 1], [2, 0]]
    assert value.values.dtype == dtype.numpy
    wanted = np.array(given, dtype.numpy)[[1, 3, 0, 2]]
    assert list(map(str, value.values)) == list(map(str, wanted))  # One has no zero, but NaN.
    assert value.dense_shape.tolist() == [3, 4]


@pytest.mark.parametrize("kind", EXECUTORS)
def test_rows_come_from_anywhere_and_make_the_largest(kind: str) -> None:
    strings = [
        fb.sparse.serialize_many(fb.SparseTensor([[0, 1, 0]], [5.0], [1, 2, 3])),
        fb.sparse.serialize_many(fb.SparseTensor(np.zeros((0, 3), int), fb.zeros([0]), [2, 4, 1])),
    ]
    found = fb.sparse.deserialize_many(fb.concat(strings, 0), fb.float32, 2)
    assert found.shape.rank == 3
    with fb.Session() as sess:
        value = run_in(kind, sess, found)
    assert value.indices.tolist() == [[0, 1, 0]]
    assert value.values.tolist() == [5.0]
    assert value.dense_shape.tolist() == [3, 4, 3]


def test_no_rows_and_rows_of_rank_0() -> None:
    empty = fb.SparseTensor(np.zeros((0, 2), int), fb.zeros([0]), [0, 7])
    scalars = fb.SparseTensor([[2], [0]], [4, 5], [3])
    with fb.Session() as sess:
        assert sess.run(there_and_back(empty, fb.float32, 1)).dense_shape.tolist() == [0, 0]
        value = sess.run(there_and_back(scalars, fb.int32, 0))
    assert value.indices.tolist() == [[0], [2]]
    assert value.values.tolist() == [5, 4]
    assert value.dense_shape.tolist() == [3]


def test_another_dtype_or_rank_is_told() -> None:
    x = fb.SparseTensor([[0, 1]], [5], [1, 2])
    with fb.Session() as sess:
        with pytest.raises(fb.errors.InvalidArgumentError, match="int32 of rank 1"):
            sess.run(there_and_back(x, fb.float32, 1))
        with pytest.raises(fb.errors.InvalidArgumentError, match="int32 of rank 1"):
            sess.run(there_and_back(x, fb.int32, 2))
    with pytest.raises(fb.errors.InvalidArgumentError, match="rank 0 has no rows"):
        fb.sparse.serialize_many(fb.SparseTensor(np.zeros((1, 0), int), [1.0], np.zeros(0, int)))
    with pytest.raises(fb.errors.InvalidArgumentError, match="a vector of strings"):
        fb.sparse.deserialize_many("a", fb.int32, 1)


@given(st.data(), st.sampled_from([fb.int32, fb.string]))
def test_what_is_damaged_is_told(data: st.DataObject, dtype: DType) -> None:
    values = np.array([b"ab", b"c"] if dtype is fb.string else [1, 2], dtype.numpy)
    with fb.Graph().as_default(), fb.Session() as sess:
        x = fb.SparseTensor([[0, 1], [0, 0]], values, [1, 2])
        [whole] = sess.run(fb.sparse.serialize_many(x))
        strings = fb.placeholder(fb.string, [1])
        found = fb.sparse.deserialize_many(strings, dtype, 1)
        cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
        for wrong in (cut, whole + b"x"):
            with pytest.raises(fb.errors.DataLossError):
                sess.run(found, {strings: [wrong]})
