"""Moving averages beyond TensorFlow's recorded values: names, starts, restoring, errors."""

from typing import Any

import numpy as np
import pytest

import flowbook as fb


def test_averages_start_with_the_initial_values_though_training_comes_first() -> None:
    x = fb.Variable([1.0, 2.0], name="x")
    average = fb.train.ExponentialMovingAverage(0.5)
    train = fb.train.GradientDescentOptimizer(1.0).minimize(fb.reduce_sum(x))
    with fb.control_dependencies([train]):
        move = average.apply()
    kept = average.average(x)
    assert kept is not None
    assert (kept.op.name, kept.trainable) == ("x/ExponentialMovingAverage", False)
    assert x.op in kept.op.colocation
    with fb.Session() as sess:
        sess.run(move)
        np.testing.assert_array_equal(sess.run(x), [0.0, 1.0])
        np.testing.assert_array_equal(sess.run(kept), [0.5, 1.5])


def test_averages_draw_no_random_numbers() -> None:
    x = fb.Variable(fb.random_normal([3]))
    average = fb.train.ExponentialMovingAverage(0.9)
    average.apply([x])
    kept = average.average(x)
    with fb.Session() as sess:
        np.testing.assert_array_equal(*sess.run([x, kept]))


def test_names_and_what_to_restore() -> None:
    x, y = fb.Variable(1.0, name="x"), fb.Variable(1.0, name="y")
    step = fb.Variable(0, trainable=False, name="step")
    stats = fb.Variable(0.0, trainable=False, name="stats")
    average = fb.train.ExponentialMovingAverage(0.9, name="EMA")
    assert average.average(x) is None
    assert average.average_name(x) == "x/EMA"
    average.apply([x, stats])
    assert average.variables_to_restore() == {
        "x/EMA": x,
        "y/EMA": y,
        "step": step,
        "stats/EMA": stats,
    }
    assert average.variables_to_restore([x]) == {
        "x/EMA": x,
        "y": y,
        "step": step,
        "stats": stats,
        "stats/EMA": average.average(stats),
    }


def test_averages_of_tensors_are_restored_too() -> None:
    x = fb.Variable(1.0, name="x")
    total = fb.add(x, x, name="total")
    average = fb.train.ExponentialMovingAverage(0.9, zero_debias=True, name="EMA")
    average.apply([x, total])
    restored = average.variables_to_restore()
    assert sorted(restored) == ["total/EMA", "total/EMA/biased", "total/EMA/local_step", "x/EMA"]
    assert restored["total/EMA"] is average.average(total)
    assert restored["x/EMA"] is x


def test_apply_twice_shares_the_averages() -> None:
    x = fb.Variable(1.0)
    average = fb.train.ExponentialMovingAverage(0.5)
    average.apply([x])
    kept = average.average(x)
    average.apply([x])
    assert average.average(x) is kept
    assert len(fb.get_default_graph().variables()) == 2


@pytest.mark.parametrize("decay", [0.9, fb.float32, fb.float64])
def test_corrected_averages_of_a_constant_are_the_constant(decay: Any) -> None:
    given = fb.constant(0.9, decay) if isinstance(decay, fb.DType) else decay
    average = fb.Variable(0.0, trainable=False)
    move = fb.train.assign_moving_average(average, 5.0, given)
    with fb.Session() as sess:
        for _ in range(30):
            assert sess.run(move) == pytest.approx(5.0, rel=1e-5)
        assert sess.run(average) == pytest.approx(5.0, rel=1e-5)


def test_uncorrected_average() -> None:
    average = fb.Variable(np.array([1.0, 2.0]), trainable=False)
    move = fb.train.assign_moving_average(average, [3.0, 3.0], 0.75, zero_debias=False)
    with fb.Session() as sess:
        np.testing.assert_array_equal(sess.run(move), [1.5, 2.25])
    assert len(fb.get_default_graph().variables()) == 1


def test_a_corrected_average_continues_what_was_begun() -> None:
    average = fb.Variable(0.0, trainable=False, name="a")
    moves = [fb.train.assign_moving_average(average, value, 0.5) for value in (2.0, 4.0)]
    names = [v.op.name for v in fb.get_default_graph().variables()]
    assert names == ["a", "a/biased", "a/local_step"]
    with fb.Session() as sess:
        sess.run(moves[0])
        assert sess.run(moves[1]) == pytest.approx((2.0 * 0.25 + 4.0 * 0.5) / 0.75)


def test_what_has_no_average_is_an_error() -> None:
    average = fb.train.ExponentialMovingAverage(0.9)
    with pytest.raises(fb.errors.InvalidArgumentError, match="nothing"):
        average.apply()
    for wrong in (fb.Variable(1), fb.constant(1), 3.0):
        with pytest.raises(TypeError, match="floating-point"):
            average.apply([wrong])
    with pytest.raises(fb.errors.InvalidArgumentError, match="shape"):
        average.apply([fb.placeholder(fb.float32, [None])])
    with pytest.raises(TypeError, match="variable"):
        fb.train.assign_moving_average(fb.constant(1.0), 1.0, 0.5)
