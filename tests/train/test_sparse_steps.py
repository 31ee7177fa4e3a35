"""A sparse step reads and writes the rows that it names, and nothing of the table's size."""

import tracemalloc
from typing import Any

import numpy as np
import pytest

import flowbook as fb

BY_ROWS = {
    "descent": lambda: fb.train.GradientDescentOptimizer(0.5),
    "momentum": lambda: fb.train.MomentumOptimizer(0.5, 0.9),
    "nesterov": lambda: fb.train.MomentumOptimizer(0.5, 0.9, use_nesterov=True),
    "adagrad": lambda: fb.train.AdagradOptimizer(0.5),
    "adadelta": lambda: fb.train.AdadeltaOptimizer(0.5),
    "rmsprop": lambda: fb.train.RMSPropOptimizer(0.5, momentum=0.5, centered=True),
    "ftrl": lambda: fb.train.FtrlOptimizer(0.5),
    "proximal": lambda: fb.train.ProximalGradientDescentOptimizer(0.5, 0.1),
    "adam lazy": lambda: fb.train.AdamOptimizer(0.5, lazy=True),
    "adamw lazy": lambda: fb.train.AdamWOptimizer(0.1, 0.5, lazy=True),
}


@pytest.mark.parametrize("kind", BY_ROWS)
def test_nothing_of_the_tables_size_is_allocated(kind: str) -> None:
    table = np.ones((50_000, 4), np.float32)
    x = fb.Variable(table)
    indices = fb.placeholder(fb.int32, [None])
    optimizer: Any = BY_ROWS[kind]()
    train = optimizer.minimize(fb.reduce_sum(fb.gather(x, indices)))
    with fb.Session() as sess:
        for _ in range(3):  # The first runs initialise, compile and go through the reference.
            sess.run(train, {indices: [1, 7, 1]})
        kept = [x, *optimizer.variables()]
        buffers = [id(sess._master.resources.of(v.op)._buffer) for v in kept]
        tracemalloc.start()
        try:
            for _ in range(3):
                sess.run(train, {indices: [1, 7, 1]})
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < table.nbytes / 10
        assert [id(sess._master.resources.of(v.op)._buffer) for v in kept] == buffers
        value = sess.run(x)
        np.testing.assert_array_equal(np.flatnonzero((value != 1).any(axis=1)), [1, 7])


def test_adam_counts_a_sparse_gradient_as_a_dense_one() -> None:
    x = fb.Variable(np.ones((3, 1)))
    indices = fb.placeholder(fb.int32, [None])
    train = fb.train.AdamOptimizer(0.1).minimize(fb.reduce_sum(fb.gather(x, indices)))
    with fb.Session() as sess:
        sess.run(train, {indices: [1]})
        np.testing.assert_allclose(sess.run(x)[:, 0], [1.0, 0.9, 1.0])
        sess.run(train, {indices: [0]})
        assert sess.run(x)[1, 0] < 0.9  # Its momentum carries it on.


def test_rows_that_are_named_twice_count_once_with_their_sum() -> None:
    values = []
    for rows in ([2, 2, 0], [0, 2]):
        x = fb.Variable(np.ones((4, 2)))
        gradient = fb.constant([[1.0], [2.0], [5.0]] if len(rows) == 3 else [[5.0], [3.0]])
        slices = fb.IndexedSlices(
            fb.cast(fb.tile(gradient, [1, 2]), fb.float64), fb.constant(rows), fb.constant([4, 2])
        )
        train = fb.train.AdagradOptimizer(0.5).apply_gradients([(slices, x)])
        with fb.Session() as sess:
            sess.run(train)
            values.append(sess.run(x))
    np.testing.assert_allclose(values[0], values[1], rtol=1e-15)


def test_a_row_outside_is_an_error_and_changes_nothing() -> None:
    x = fb.Variable(np.ones((4, 2)))
    indices = fb.placeholder(fb.int32, [None])
    slices = fb.IndexedSlices(fb.ones([1, 2], fb.float64), indices, fb.constant([4, 2]))
    train = fb.train.MomentumOptimizer(0.5, 0.5).apply_gradients([(slices, x)])
    with fb.Session() as sess:
        sess.run(x)
        with pytest.raises(fb.errors.OutOfRangeError):
            sess.run(train, {indices: [4]})
        np.testing.assert_array_equal(sess.run(x), np.ones((4, 2)))
