"""Schedules beyond TensorFlow's recorded values: dtypes, ends, errors, and warming up."""

from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.train.settings import SCHEDULES


def values(rate: Any, step: Any, counts: Any) -> list[Any]:
    with fb.Session() as sess:
        return [sess.run(rate, {step: count}) for count in counts]


@pytest.mark.parametrize("counter", [fb.int32, fb.int64, fb.float32], ids=lambda d: d.name)
@pytest.mark.parametrize("name", SCHEDULES)
def test_the_counter_may_be_any_number_and_the_rate_decides_the_dtype(
    name: str, counter: fb.DType
) -> None:
    kind, arguments = SCHEDULES[name]
    step = fb.placeholder(counter, [])
    rates = [
        getattr(fb.train, kind)(fb.constant(0.3, dtype), step, **arguments)
        for dtype in (fb.float32, fb.float64)
    ]
    assert [rate.dtype for rate in rates] == [fb.float32, fb.float64]
    with fb.Session() as sess:
        narrow, wide = sess.run(rates, {step: 9})
    np.testing.assert_allclose(narrow, wide, rtol=1e-5)


def test_arguments_may_be_tensors() -> None:
    step, period = fb.placeholder(fb.int64, []), fb.placeholder(fb.int32, [])
    rate = fb.train.exponential_decay(fb.Variable(2.0), step, period, fb.constant(0.5))
    with fb.Session() as sess:
        assert sess.run(rate, {step: 6, period: 3}) == 0.5


def test_ends_stay() -> None:
    step = fb.placeholder(fb.int64, [])
    for rate, end in (
        (fb.train.polynomial_decay(1.0, step, 10, 0.25), 0.25),
        (fb.train.cosine_decay(1.0, step, 10, alpha=0.125), 0.125),
        (fb.train.linear_cosine_decay(1.0, step, 10, beta=0.5), 0.5),
    ):
        assert values(rate, step, [10, 11, 10**9]) == pytest.approx([end] * 3)


def test_warming_up() -> None:
    step = fb.placeholder(fb.int64, [])
    rate = fb.train.linear_warmup(2.0, step, 4)
    assert values(rate, step, range(6)) == [0.5, 1.0, 1.5, 2.0, 2.0, 2.0]
    assert values(fb.train.linear_warmup(2.0, step, 0), step, [0]) == [2.0]


def test_piecewise_constant_of_tensors_and_of_reals() -> None:
    step = fb.placeholder(fb.float32, [])
    rate = fb.train.piecewise_constant(step, [0.5, fb.constant(2.0)], [1, fb.constant(2), 3])
    assert rate.dtype is fb.int32
    assert values(rate, step, [0.5, 0.6, 2.0, 2.1]) == [1, 2, 2, 3]
    only = fb.train.piecewise_constant(step, [], [7.0])
    assert values(only, step, [1.0]) == [7.0]


@pytest.mark.parametrize(
    ("boundaries", "rates"), [([1, 2], [1.0, 2.0]), ([2, 1], [1.0, 2.0, 3.0]), ([1, 1], [1.0] * 3)]
)
def test_boundaries_that_part_nothing_are_errors(boundaries: Any, rates: Any) -> None:
    with pytest.raises(fb.errors.InvalidArgumentError):
        fb.train.piecewise_constant(fb.constant(1), boundaries, rates)


def test_impossible_arguments_are_errors() -> None:
    with pytest.raises(fb.errors.InvalidArgumentError, match="floating-point"):
        fb.train.cosine_decay(1, fb.constant(1), 10)
    with pytest.raises(fb.errors.InvalidArgumentError, match="at least 1"):
        fb.train.cosine_decay_restarts(1.0, fb.constant(1), 10, t_mul=0.5)


def test_a_schedule_of_the_global_step_trains() -> None:
    step = fb.train.get_or_create_global_step()
    x = fb.Variable(0.0)
    rate = fb.train.inverse_time_decay(1.0, step, 1, 1.0)
    train = fb.train.GradientDescentOptimizer(rate).minimize(x * 1.0, step)
    with fb.Session() as sess:
        for count in range(1, 5):
            sess.run(train)
            assert fb.train.global_step(sess, step) == count
        assert sess.run(x) == pytest.approx(-sum(1 / n for n in range(1, 5)))


# The counter


def test_the_global_step_is_one_per_graph() -> None:
    with fb.name_scope("inner"), fb.device("/device:cpu:0"):
        step = fb.train.get_or_create_global_step()
    assert (step.op.name, step.dtype, step.trainable) == ("global_step", fb.int64, False)
    assert fb.train.get_or_create_global_step() is step
    other = fb.Graph()
    apart = fb.train.get_or_create_global_step(other)
    assert apart is not step
    assert apart.graph is other
    assert step.op.device == ""
    loaded = fb.Graph.from_bytes(other.to_bytes())
    assert fb.train.get_or_create_global_step(loaded).graph is loaded


@pytest.mark.parametrize(
    "make",
    [lambda n: fb.Variable(0.5, name=n), lambda n: fb.zeros([], name=n)],
    ids=["floating", "tensor"],
)
def test_something_else_by_that_name_is_an_error(make: Any) -> None:
    make("global_step")
    with pytest.raises(TypeError, match="global_step"):
        fb.train.get_or_create_global_step()
