"""The numeric check of gradients: it is small for right gradients and large for wrong ones."""

import numpy as np
import pytest

import flowbook as fb

wrong_square = fb.OpDef(
    "TrainTestWrongSquare",
    "x: T -> y: T",
    T=fb.FLOATS,
    infer=lambda x: x.shape,
    kernel=lambda xp, x: x * x,
    grad=lambda op, dy: dy * op.inputs[0],  # half of what it should be
)


scaled_gradient = fb.OpDef(
    "TrainTestScaledGradient",
    "x: T -> y: T",
    T=fb.FLOATS,
    attributes={"factor": 1.0},
    infer=lambda x, factor: x.shape,
    kernel=lambda xp, x, factor: x * 2,
    grad=lambda op, dy: dy * op.attributes["factor"],
)


def test_right_gradient_has_a_small_error() -> None:
    x = fb.placeholder(fb.float64, [2, 2])
    value = np.array([[0.5, -1.0], [2.0, 30.0]])
    assert fb.gradient_error(fb.square(x), x, {x: value}) < 1e-6
    assert fb.gradient_error([fb.sin(x), fb.exp(-x)], [x], {x: value}) < 1e-6


def test_wrong_gradient_shows() -> None:
    x = fb.placeholder(fb.float64, [3])
    error = fb.gradient_error(wrong_square(x), x, {x: [1.0, -4.0, 2.0]})
    assert error == pytest.approx(4.0, abs=1e-6)


def test_a_gradient_that_is_not_finite_shows() -> None:
    x = fb.placeholder(fb.float64, [3])
    for wrong in (np.nan, np.inf):
        error = fb.gradient_error(scaled_gradient(x, factor=wrong), x, {x: [1.0, -4.0, 2.0]})
        assert not error < np.inf


def test_missing_gradient_counts_as_zero() -> None:
    x = fb.placeholder(fb.float64, [])
    assert fb.gradient_error(fb.stop_gradient(x) * 3.0, x, {x: 1.0}) == pytest.approx(3.0)
    y = fb.placeholder(fb.float64, [])
    assert fb.gradient_error(x * x, y, {x: 1.0, y: 1.0}) == 0.0


def test_variables_are_moved_without_being_written() -> None:
    W = fb.Variable(np.array([[1.0, 2.0], [3.0, 4.0]]), name="W")
    loss = fb.reduce_sum(fb.square(W)) + fb.reduce_sum(fb.gather(W, [1, 1]) ** 3)
    with fb.Session() as sess:
        sess.run(fb.assign_add(W, np.ones((2, 2))))
        assert fb.gradient_error(loss, W, session=sess) < 1e-5
        np.testing.assert_array_equal(sess.run(W), [[2, 3], [4, 5]])
        assert not sess.closed


def test_rows_are_compared_as_a_whole() -> None:
    table = fb.placeholder(fb.float64, [4, 2])
    assert (
        fb.gradient_error(fb.exp(fb.gather(table, [0, 2, 2])), table, {table: np.ones((4, 2))})
        < 1e-6
    )


def test_float32_gets_a_larger_step() -> None:
    x = fb.placeholder(fb.float32, [3])
    assert fb.gradient_error(fb.square(x), x, {x: [1.0, 2.0, 100.0]}) < 0.5
    assert fb.gradient_error(fb.square(x), x, {x: [1.0, 2.0, 3.0]}, delta=0.25) < 1e-4


def test_empty_and_scalar_inputs() -> None:
    empty, one = fb.placeholder(fb.float64, [0]), fb.placeholder(fb.float64, [])
    assert fb.gradient_error(fb.square(empty), empty, {empty: np.zeros(0)}) == 0.0
    assert fb.gradient_error(fb.square(one), one, {one: 2.0}) < 1e-8


def test_feeds_may_be_named_in_any_way() -> None:
    x = fb.placeholder(fb.float64, [2], name="x")
    W = fb.Variable(np.ones(2), name="W")
    loss = fb.square(x) * W
    for feeds in ({"x": [1.0, 2.0]}, {"x:0": [1, 2], "W": [3.0, 1.0]}, {x: [0.0, 1.0], W: [1, 1]}):
        assert fb.gradient_error(loss, [x, W], feeds) < 1e-6


def test_given_arrays_stay_as_they_are() -> None:
    x, value = fb.placeholder(fb.float64, [2]), np.array([1.0, 2.0])
    fb.gradient_error(fb.square(x), x, {x: value})
    np.testing.assert_array_equal(value, [1.0, 2.0])


@pytest.mark.parametrize("dtype", [fb.int32, fb.bool])
def test_what_is_not_floating_is_refused(dtype: fb.DType) -> None:
    x = fb.placeholder(dtype, [])
    with pytest.raises(TypeError, match="floating"):
        fb.gradient_error(fb.cast(x, fb.float32), x, {x: 1})
