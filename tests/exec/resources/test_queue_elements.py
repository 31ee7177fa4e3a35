"""What queues make of arrays: rows with memory of their own, and batches of them."""

from __future__ import annotations

import numpy as np
import pytest

from flowbook.exec.resources.queue_elements import rows_of, stacked
from flowbook.graph.model.dtypes import MOVABLE, DType, string
from flowbook.graph.model.shape import Shape

SHAPES = [(5,), (4, 3), (3, 2, 2), (1, 1), (0,), (0, 3), (3, 0), (0, 0, 2)]


@pytest.mark.parametrize("dtype", MOVABLE, ids=str)
def test_the_rows_of_an_array_make_it_again(dtype: DType) -> None:
    for dims in SHAPES:
        numbers = np.arange(np.prod(dims)).reshape(dims)
        array = np.empty(dims, object)
        array[...] = [b"%d" % n for n in numbers.flat] if len(dims) == 1 else b"text"
        if dtype is not string:
            array = (numbers % 2).astype(dtype.numpy)
        rows = rows_of(array)
        assert [np.shape(row) for row in rows] == [dims[1:]] * dims[0]
        assert not any(np.shares_memory(row, array) for row in rows if isinstance(row, np.ndarray))
        batch = stacked(rows, dtype, Shape(dims[1:]))
        assert (batch.dtype, batch.shape) == (array.dtype, array.shape)
        assert repr(batch) == repr(array)  # What is no number is equal to nothing.
        assert not np.shares_memory(batch, array)


@pytest.mark.parametrize("dtype", MOVABLE, ids=str)
def test_elements_that_came_one_by_one(dtype: DType) -> None:
    """They are arrays, those without axes too."""
    for dims in ((), (2,), (2, 3)):
        value = b"text" if dtype is string else 1
        column = [np.full(dims, value, dtype.numpy) for _ in range(3)]
        batch = stacked(column, dtype, Shape(dims))
        assert batch.dtype == dtype.numpy
        assert batch.tolist() == np.full((3, *dims), value, dtype.numpy).tolist()
        assert all(type(each) is not np.ndarray for each in batch.flat)
