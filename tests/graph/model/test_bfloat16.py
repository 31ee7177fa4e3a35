"""bfloat16 stores; operations on it compute in float32 and round once."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import flowbook as fb
from flowbook.graph.building.graph import Graph
from tests.interpreter import evaluate

BF16 = ml_dtypes.bfloat16


def both(fetches: object, feeds: object = None) -> list[object]:
    """What the first run of a signature gives, and the second, which is generated code."""
    with fb.Session() as sess:
        return [sess.run(fetches, feeds), sess.run(fetches, feeds)]


def test_long_sums_do_not_stop_growing() -> None:
    ones = fb.placeholder(fb.bfloat16, [4096])
    for total in both(fb.reduce_sum(ones), {ones: np.ones(4096, BF16)}):
        assert total.dtype == BF16
        assert float(total) == 4096


def test_long_sums_of_scattered_rows_do_not_either() -> None:
    ones = fb.placeholder(fb.bfloat16, [4096])
    sums = fb.scatter_nd(np.zeros((4096, 1), np.int32), ones, [1])
    for total in both(sums, {ones: np.ones(4096, BF16)}):
        assert total.dtype == BF16
        assert total.tolist() == [4096]


def test_an_operation_rounds_once() -> None:
    """Each of the functions in sigmoid's expression would round otherwise."""
    x = fb.placeholder(fb.bfloat16, [None])
    values = np.linspace(-6, 6, 301).astype(BF16)
    wanted = (1 / (1 + np.exp(-values.astype(np.float32)))).astype(BF16)
    for y in both(fb.sigmoid(x), {x: values}):
        np.testing.assert_array_equal(y, wanted)


def test_constants_fold_the_same() -> None:
    x = fb.constant(np.full(1000, 1.0, BF16))
    assert [float(y) for y in both(fb.reduce_sum(x))] == [1000, 1000]


def test_numbers_are_fed_rounded() -> None:
    x = fb.placeholder(fb.bfloat16, [2])
    for y in both(fb.identity(x), {x: [1.0, 1.001]}):
        assert y.dtype == BF16
        assert y.tolist() == [1.0, 1.0]


def test_it_feeds_no_integers() -> None:
    x = fb.placeholder(fb.int32, [1])
    with fb.Session() as sess, pytest.raises(fb.errors.InvalidTypeError):
        sess.run(x, {x: np.ones(1, BF16)})


def test_variables_keep_and_train_in_it() -> None:
    w = fb.Variable(fb.cast([1.0, 2.0], fb.bfloat16), name="w")
    loss = fb.reduce_sum(fb.cast(fb.square(w), fb.float32))
    step = fb.train.GradientDescentOptimizer(0.25).minimize(loss)
    with fb.Session() as sess:
        for _ in range(3):
            sess.run(step)
        value = sess.run(w)
    assert value.dtype == BF16
    assert value.tolist() == [0.125, 0.25]


def test_a_stored_graph_keeps_its_constants() -> None:
    values = np.array([1.5, -np.inf, 3e38], BF16)
    x = fb.constant(values, name="x")
    loaded = Graph.from_bytes(x.graph.to_bytes())
    copy = loaded.get_tensor_by_name("x:0")
    assert copy.dtype is fb.bfloat16
    np.testing.assert_array_equal(evaluate(copy), values)


def test_limits_are_its_own() -> None:
    assert float(fb.bfloat16.max) == float(ml_dtypes.finfo(BF16).max)
    assert fb.bfloat16.is_floating
    assert fb.as_dtype("bfloat16") is fb.as_dtype(BF16) is fb.bfloat16


def test_users_kernels_compute_in_float32() -> None:
    seen = []

    def kernel(xp: object, x: np.ndarray) -> np.ndarray:
        seen.append(x.dtype)
        return x + x

    double = fb.OpDef(
        "DoubleOfBfloat16",
        "x: T -> y: T",
        T=fb.FLOATS,
        infer=lambda x: x.shape,
        kernel=kernel,
        grad=fb.NO_GRADIENT,
    )
    x = fb.placeholder(fb.bfloat16, [2])
    for y in both(double(x), {x: [1.0, 2.0]}):
        assert y.dtype == BF16
        assert y.tolist() == [2.0, 4.0]
    assert set(seen) == {np.dtype(np.float32)}
