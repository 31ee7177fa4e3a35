"""A sparse step reads and writes the rows that it names, and nothing of the table's size."""

import tracemalloc
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.exec.held import held

BY_ROWS = {
    "descent": lambda: fb.train.GradientDescentOptimizer(0.5),
    "momentum": lambda: fb.train.MomentumOptimizer(0.5, 0.9),
    "nesterov": lambda: fb.train.MomentumOptimizer(0.5, 0.9, use_nesterov=True),
    "adagrad": lambda: fb.train.AdagradOptimizer(0.5),
    "adadelta": lambda: fb.train.AdadeltaOptimizer(0.5),
    "rmsprop": lambda: fb.train.RMSPropOptimizer(0.5, momentum=0.5, centered=True),
    "ftrl": lambda: fb.train.FtrlOptimizer(0.5),
    "proximal adagrad": lambda: fb.train.ProximalAdagradOptimizer(0.5, 0.1, 0.1),
    "proximal": lambda: fb.train.ProximalGradientDescentOptimizer(0.5, 0.1),
    "adam lazy": lambda: fb.train.AdamOptimizer(0.5, lazy=True),
    "adafactor": lambda: fb.train.AdafactorOptimizer(0.5, beta1=0.5),
    "adafactor whole": lambda: fb.train.AdafactorOptimizer(0.5, factored=False),
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
        buffers = [id(held(sess, v)._buffer) for v in kept]
        tracemalloc.start()
        try:
            for _ in range(3):
                sess.run(train, {indices: [1, 7, 1]})
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < table.nbytes / 10
        assert [id(held(sess, v)._buffer) for v in kept] == buffers
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
        with pytest.raises(fb.errors.InvalidIndexError):
            sess.run(train, {indices: [4]})
        np.testing.assert_array_equal(sess.run(x), np.ones((4, 2)))


def test_adafactor_keeps_the_scale_of_each_row() -> None:
    # Of two rows in turn, the one with gradients a thousand times smaller moves as far.
    x = fb.Variable(np.zeros((3, 2)))
    indices, values = fb.placeholder(fb.int32, [None]), fb.placeholder(fb.float64, [None, 2])
    slices = fb.IndexedSlices(values, indices, fb.constant([3, 2]))
    train = fb.train.AdafactorOptimizer(0.1, multiply_by_parameter_scale=False).apply_gradients(
        [(slices, x)]
    )
    with fb.Session() as sess:
        for _ in range(50):
            sess.run(train, {indices: [0], values: [[1000.0, 500.0]]})
            sess.run(train, {indices: [1], values: [[1.0, 0.5]]})
        value = sess.run(x)
    np.testing.assert_allclose(value[0], value[1], rtol=0.1)
    np.testing.assert_array_equal(value[2], 0)


def test_adafactor_of_stacked_matrices_touches_those_that_are_named() -> None:
    start = np.arange(1.0, 25.0).reshape(4, 2, 3)
    x = fb.Variable(start)
    indices, scale = fb.placeholder(fb.int32, [None]), np.arange(1.0, 7.0).reshape(2, 3)
    loss = fb.reduce_sum(fb.square(fb.gather(x, indices)) * scale)
    optimizer = fb.train.AdafactorOptimizer()
    train = optimizer.minimize(loss)
    # The same for a variable of these matrices only.
    y = fb.Variable(start[[1, 3]])
    other = fb.train.AdafactorOptimizer().minimize(fb.reduce_sum(fb.square(y) * scale), var_list=y)
    with fb.Session() as sess:
        for _ in range(5):
            sess.run([train, other], {indices: [3, 1]})
        value, expected = sess.run([x, y])
    np.testing.assert_allclose(value[[1, 3]], expected, rtol=1e-12)
    np.testing.assert_array_equal(value[[0, 2]], start[[0, 2]])


def test_a_step_that_names_no_row_computes_nothing_that_is_not_finite() -> None:
    table = fb.Variable(np.ones((4, 2), np.float32))
    ids = fb.placeholder(fb.int32, [None])
    loss = fb.reduce_sum(fb.square(fb.gather(table, ids)))
    train = fb.train.AdafactorOptimizer().minimize(loss)
    with fb.Session() as sess, sess.guard():
        sess.run(train, {ids: []})
        np.testing.assert_array_equal(sess.run(table), np.ones((4, 2)))
        sess.run(train, {ids: [1]})
        assert (sess.run(table)[1] < 1).all()
