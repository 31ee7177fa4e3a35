"""Random operations: shapes, dtypes, limits, seeds and errors; `tests/exec` tests the numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.interpreter import Interpreter, evaluate


@pytest.mark.parametrize("dtype", [*fb.FLOATS, fb.int32, fb.int64])
@pytest.mark.parametrize("shape", [[], [3], [0, 2], [4, 5]])
def test_uniform(dtype: fb.DType, shape: Any) -> None:
    x = fb.random_uniform(shape, 2, 5, dtype)
    value = evaluate(x)
    assert value.dtype == dtype.numpy
    assert x.dtype is dtype
    assert x.shape == value.shape == tuple(shape)
    assert ((value >= 2) & (value < 5)).all()


@pytest.mark.parametrize("dtype", fb.FLOATS)
@pytest.mark.parametrize("limits", [(2, 3), (100, 101), (-3, -2), ([0, 2], [1, 3]), (0, 1e-7)])
def test_no_rounding_reaches_the_upper_limit(dtype: fb.DType, limits: Any) -> None:
    low, high = (np.asarray(v, dtype.numpy) for v in limits)
    with fb.Session() as sess:
        value = sess.run(fb.random_uniform([5000, 2], *limits, dtype=dtype, seed=1))
    assert value.dtype == dtype.numpy
    assert ((value >= low) & (value < high)).all()


@pytest.mark.parametrize("dtype", fb.FLOATS)
def test_normal(dtype: fb.DType) -> None:
    x = fb.random_normal([1000], 10, 0.5, dtype)
    value = evaluate(x)
    assert (x.dtype, value.dtype) == (dtype, dtype.numpy)
    assert abs(float(value.mean(dtype=np.float64)) - 10) < 0.1
    assert abs(float(value.std(dtype=np.float64)) - 0.5) < 0.1


def scaling(x: fb.Tensor) -> list[str]:
    return sorted(op.type for op in x.graph.operations if op.type in ("Mul", "Add", "Sub"))


def test_scaling_is_built_only_where_it_changes_something() -> None:
    for build, expected in (
        (lambda: fb.random_uniform([2]), []),
        (lambda: fb.random_uniform([2], 0, 3), ["Mul"]),
        (lambda: fb.random_uniform([2], -1, 1), ["Add", "Mul"]),
        (lambda: fb.random_normal([2]), []),
        (lambda: fb.random_normal([2], stddev=0.1), ["Mul"]),
        (lambda: fb.random_normal([2], 3.0), ["Add"]),
        (lambda: fb.random_normal([2], 3.0, 2.0), ["Add", "Mul"]),
    ):
        with fb.Graph().as_default():
            x = build()
            assert scaling(x) == expected
            assert "random" in x.name.lower()


def test_a_name_is_that_of_the_result() -> None:
    assert fb.random_uniform([2], -1, 1, name="start").name == "start:0"
    assert fb.random_normal([2], 1.0, 2.0, name="noise").name == "noise:0"


def test_limits_may_be_tensors() -> None:
    low, high = fb.constant([[10.0], [20.0]]), fb.constant([[11.0], [22.0]])
    value = evaluate(fb.random_uniform([2, 50], low, high))
    assert ((value[0] >= 10) & (value[0] < 11)).all()
    assert ((value[1] >= 20) & (value[1] < 22)).all()
    [slope] = fb.gradients(fb.random_normal([3], stddev=low), [low])
    assert slope.shape == [2, 1]
    bound = fb.placeholder(fb.int32, [])
    drawn = fb.random_uniform([9], 0, bound, fb.int32)
    assert (evaluate(drawn, {bound: 2}) < 2).all()


def test_the_shape_may_be_a_tensor() -> None:
    x = fb.placeholder(fb.float32, [None, 3])
    y = fb.random_uniform(fb.shape(x))
    assert y.shape == [None, 3]
    assert evaluate(y, {x: np.zeros((2, 3))}).shape == (2, 3)


def test_seeds_are_attributes() -> None:
    fb.set_random_seed(7)
    x = fb.random_uniform([2], seed=3)
    assert (x.op.attributes["graph_seed"], x.op.attributes["seed"]) == (7, 3)
    fb.set_random_seed(None)
    attributes = fb.random_normal([2]).op.attributes
    assert (attributes["graph_seed"], attributes["seed"]) == (None, None)


def test_each_run_draws_anew() -> None:
    x = fb.random_uniform([5])
    interpreter = Interpreter()
    assert (interpreter.run(x) != interpreter.run(x)).any()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: fb.random_uniform([2], dtype=fb.int32), "need a maxval"),
        (lambda: fb.random_uniform([2], 3, 3, fb.int32), "not below"),
        (lambda: fb.random_uniform([2], dtype=fb.bool), "not bool"),
        (lambda: fb.random_normal([2], dtype=fb.int32), "not int32"),
        (lambda: fb.random_uniform([-2]), "not negative"),
        (lambda: fb.random_uniform([2], seed=0.5), "a seed is an int"),
        (lambda: fb.random_uniform([2], seed=2**64), "64 bits"),
        (lambda: fb.random_uniform([2.5]), "not all integers"),
    ],
)
def test_errors_at_construction(build: Any, message: str) -> None:
    with pytest.raises(fb.errors.InvalidArgumentError, match=message) as caught:
        build()
    assert "test_random_numbers.py" in str(caught.value)


def test_errors_in_the_run() -> None:
    shape, bound = fb.placeholder(fb.int32, [None]), fb.placeholder(fb.int32, [])
    x = fb.random_uniform(shape, 0, bound, fb.int32)
    with pytest.raises(fb.errors.InvalidArgumentError, match="not negative"):
        evaluate(x, {shape: [-1], bound: 3})
    with pytest.raises(fb.errors.InvalidArgumentError, match="not below"):
        evaluate(x, {shape: [1], bound: 0})
    unknown = fb.placeholder(fb.int32)
    with pytest.raises(fb.errors.InvalidArgumentError, match="a shape is a vector"):
        evaluate(fb.random_uniform(unknown), {unknown: 3})


def test_no_gradient_flows_through_a_shape() -> None:
    x = fb.constant([1.0, 2.0])
    [gradient] = fb.gradients(x * fb.random_uniform(fb.shape(x)), [x])
    assert gradient is not None
    assert fb.gradients(fb.random_uniform(fb.shape(x)), [x]) == [None]


def test_dropout_of_a_fed_rate_keeps_the_shape() -> None:
    x = fb.placeholder(fb.float32, [None, 3])
    rate = fb.placeholder(fb.float32)
    y = fb.nn.dropout(x, rate=rate)
    assert y.shape == [None, 3]
    with fb.Session() as sess:
        assert sess.run(y, {x: np.ones((2, 3)), rate: 0.0}).tolist() == [[1.0] * 3] * 2
        with pytest.raises(fb.errors.InvalidArgumentError):
            sess.run(y, {x: np.ones((2, 3)), rate: [0.0, 0.5, 0.5]})


def test_dropout() -> None:
    x = fb.constant(np.ones(10_000, np.float32))
    y = fb.nn.dropout(x, rate=0.25)
    [slope] = fb.gradients(y, x)
    value, gradient = evaluate([y, slope])
    assert set(np.unique(value).tolist()) == {0.0, np.float32(1 / 0.75)}
    assert abs(value.mean() - 1) < 0.05
    np.testing.assert_array_equal(value, gradient)
    with pytest.raises(TypeError):
        fb.nn.dropout(x, 0.25)  # type: ignore[misc]
    assert fb.nn.dropout(x, rate=0).op.type == "Identity"
    noise = evaluate(fb.nn.dropout(fb.ones([3, 100]), rate=0.5, noise_shape=[1, 100]))
    assert (noise == noise[0]).all()
    unknown = fb.placeholder(fb.float32, [None, 100])
    for of in (fb.ones([3, 100]), unknown):
        noise = evaluate(
            fb.nn.dropout(of, rate=0.5, noise_shape=[None, 1]), {unknown: np.ones((3, 100))}
        )
        assert (noise == noise[:, :1]).all()
    rate = fb.placeholder(fb.float32, [])
    assert evaluate(fb.nn.dropout(x, rate=rate), {rate: 0.0}).min() == 1
    shape = fb.placeholder(fb.int32)
    noise = fb.nn.dropout(fb.ones([3, 100]), rate=0.5, noise_shape=shape)
    assert noise.shape == [3, 100]
    assert len(np.unique(evaluate(noise, {shape: [1, 1]}))) == 1
    with pytest.raises(fb.errors.InvalidArgumentError, match="does not fit"):
        evaluate(noise, {shape: [2, 3, 100]})
    for wrong in (1, -0.1, 1.5):
        with pytest.raises(fb.errors.InvalidArgumentError, match="probability"):
            fb.nn.dropout(x, rate=wrong)


def test_limits_and_moments_are_lists_that_hold_tensors() -> None:
    far = fb.constant(100.0)
    with fb.Session() as sess:
        for drawn in (
            fb.random_uniform([50, 2], [far, 0.0], [far + 1.0, 1.0]),
            fb.random_normal([50, 2], [far, 0.0], [1.0, far / 100.0]),
            fb.truncated_normal([50, 2], mean=[far, 0.0]),
        ):
            first, second = sess.run(drawn).T
            assert (first > 80).all()
            assert (abs(second) < 10).all()
