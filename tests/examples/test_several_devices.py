"""The ways to divide work among devices compute what one device computes, and divide it."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from examples import concurrent_steps, data_parallel, model_parallel

CPUS = ["cpu:0", "cpu:1", "cpu:2"]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def short(device: str) -> str:
    return device.rsplit("device:")[-1]


class Layered:
    """A small deep LSTM that learns to repeat what it reads."""

    def __init__(self, devices: list[str]) -> None:
        with fb.Graph().as_default() as self.graph:
            fb.set_random_seed(1)
            self.text = fb.placeholder(fb.float32, [5, 16, 32], name="text")
            heard = model_parallel.deep_lstm(fb.unstack(self.text), 32, 3, devices)
            with fb.device(devices[-1]):
                self.loss = fb.losses.mean_squared_error(self.text, fb.stack(heard))
            self.step = fb.train.GradientDescentOptimizer(0.5).minimize(self.loss)

    def losses(self, text: Any) -> list[float]:
        with fb.Session(self.graph, cpus=3) as sess:
            return [float(sess.run([self.loss, self.step], {self.text: text})[0]) for _ in range(3)]

    def plan(self) -> Any:
        with fb.Session(self.graph, cpus=3) as sess:
            return sess.explain([self.loss, self.step], {self.text: (5, 16, 32)})


@pytest.fixture(scope="module")
def alone() -> Layered:
    return Layered(CPUS[:1])


@pytest.fixture(scope="module")
def spread() -> Layered:
    return Layered(CPUS)


def test_layers_on_three_devices_learn_as_on_one(
    rng: np.random.Generator, alone: Layered, spread: Layered
) -> None:
    text = rng.normal(size=(5, 16, 32))
    losses = spread.losses(text)
    np.testing.assert_allclose(losses, alone.losses(text), rtol=1e-6)
    assert losses[0] > losses[1] > losses[2]


def test_layers_on_three_devices_end_earlier_and_only_words_cross(
    alone: Layered, spread: Layered
) -> None:
    plan = spread.plan()
    for operation, planned in plan.operations.items():
        if operation.name.startswith("layer"):
            assert short(planned.device) == f"cpu:{operation.name[len('layer')]}", operation.name
    # Of what is only waited for nothing crosses.
    words = 16 * 32 * 4
    crossing = {each.bytes for each in plan.transfers if each.bytes}
    assert crossing == {words}
    assert plan.seconds < 0.7 * alone.plan().seconds


class Classified:
    """Points of the plane, and on which side of a curve they lie."""

    def __init__(self, count: int) -> None:
        fb.set_random_seed(1)
        with fb.device("cpu:0"):
            hidden = fb.Variable(fb.random_normal([2, 16]), name="hidden")
            output = fb.Variable(fb.random_normal([16, 1], stddev=0.1), name="output")

        def loss(points: Any, sides: Any) -> Any:
            return fb.losses.sigmoid_cross_entropy(sides, fb.tanh(points @ hidden) @ output)

        self.variables = [hidden, output]
        self.points = fb.placeholder(fb.float32, [48, 2])
        self.sides = fb.placeholder(fb.float32, [48, 1])
        batch = [self.points, self.sides]
        self.whole = loss(*batch)
        self.losses = data_parallel.replicas(loss, batch, CPUS[:count])

    def batch(self, rng: np.random.Generator) -> dict[Any, Any]:
        points = rng.normal(size=(48, 2))
        return {self.points: points, self.sides: points[:, 1:] > np.sin(points[:, :1])}


def after(make: Any, model: Classified, batches: list[Any]) -> Any:
    """The variables after some steps."""
    step = make(fb.train.MomentumOptimizer(0.5, 0.9))
    with fb.Session(cpus=3) as sess:
        for batch in batches:
            sess.run(step, batch)
        return sess.run(model.variables)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_towers_are_one_large_batch(rng: np.random.Generator, count: int) -> None:
    model = Classified(count)
    batches = [model.batch(rng) for _ in range(5)]
    together = after(lambda o: data_parallel.synchronous(model.losses, o), model, batches)
    alone = after(lambda o: o.minimize(model.whole), model, batches)
    for one, other in zip(together, alone, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def test_each_tower_differentiates_on_its_own_device(rng: np.random.Generator) -> None:
    model = Classified(3)
    step = data_parallel.synchronous(model.losses, fb.train.GradientDescentOptimizer(0.5))
    with fb.Session(cpus=3) as sess:
        plan = sess.explain(step, model.batch(rng))
    products = [short(p.device) for o, p in plan.operations.items() if o.type == "MatMul"]
    # Two forwards; backwards one by each kernel, and one by the hidden layer.
    assert {device: products.count(device) for device in products} == dict.fromkeys(CPUS, 5)


def test_asynchronous_replicas_learn(rng: np.random.Generator) -> None:
    model = Classified(3)
    done = fb.Variable(0, trainable=False)
    steps = data_parallel.asynchronous(model.losses, fb.train.GradientDescentOptimizer(0.5))
    counted = [fb.group(step, fb.assign_add(done, 1)) for step in steps]
    held_out = model.batch(rng)
    feeds = [[model.batch(rng) for _ in range(30)] for _ in steps]
    with fb.Session(cpus=3) as sess:
        before = sess.run(model.whole, held_out)
        data_parallel.run_asynchronously(sess, counted, feeds)
        assert sess.run(done) == 90
        assert sess.run(model.whole, held_out) < 0.6 * before


def test_an_asynchronous_replica_s_error_is_raised(rng: np.random.Generator) -> None:
    model = Classified(2)
    steps = data_parallel.asynchronous(model.losses, fb.train.GradientDescentOptimizer(0.5))
    feeds = [[model.batch(rng)], [{}]]
    with fb.Session(cpus=3) as sess, pytest.raises(fb.errors.InvalidArgumentError):
        data_parallel.run_asynchronously(sess, steps, feeds)


def test_steps_at_once_keep_all_devices_busy(rng: np.random.Generator) -> None:
    stages = concurrent_steps.Stages(64, CPUS)
    x = rng.normal(size=(32, 64))
    with fb.Session(cpus=3) as sess:
        one, two, three, nine = (
            concurrent_steps.predicted_throughput(sess, stages, x, count) for count in (1, 2, 3, 9)
        )
    # The pipeline has to fill and to empty: in nine steps of three stages each works 9 of 11 times.
    assert one < two < three < nine
    assert nine > 2.2 * one


def test_steps_at_once_give_what_steps_give_one_by_one(rng: np.random.Generator) -> None:
    stages = concurrent_steps.Stages(8, CPUS)
    x = fb.placeholder(fb.float32, [4, 8])
    y = stages(x)
    feeds = [{x: rng.normal(size=(4, 8))} for _ in range(12)]
    with fb.Session(cpus=3) as sess:
        expected = [sess.run(y, each) for each in feeds]
        np.testing.assert_array_equal(concurrent_steps.run_at_once(sess, y, feeds, 3), expected)


def test_a_step_is_with_one_device_while_the_next_is_with_another() -> None:
    """Neither stage ends before two steps have met, one in each."""
    meeting = threading.Barrier(2, timeout=60)

    def meet(x: Any, is_late: Any) -> Any:
        if is_late:
            meeting.wait()
        return x

    x = fb.placeholder(fb.float32, [])
    is_first = fb.placeholder(fb.bool, [])
    with fb.device("cpu:0"):
        low = fb.py_func(meet, [x, fb.logical_not(is_first)], fb.float32)
    with fb.device("cpu:1"):
        high = fb.py_func(meet, [low, is_first], fb.float32)
    feeds = [{x: 1.0, is_first: True}, {x: 2.0, is_first: False}]
    with fb.Session(cpus=2) as sess:
        assert concurrent_steps.run_at_once(sess, high, feeds, 2) == [1.0, 2.0]
