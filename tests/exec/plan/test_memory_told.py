"""The memory that a plan tells is what simulated devices take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.devices.simulated import Simulated
from flowbook.exec.engine.recording import Recorder
from flowbook.exec.placement.course import Output, follow
from flowbook.exec.placement.simulation import Job


def mlp() -> tuple[fb.Tensor, fb.Tensor]:
    x = fb.placeholder(fb.float32, [200, 300])
    h = fb.layers.dense(x, 100, activation=fb.nn.relu)
    h = fb.layers.dense(h, 100, activation=fb.tanh)
    return x, fb.reduce_mean(fb.square(fb.layers.dense(h, 10)))


def lstm() -> tuple[fb.Tensor, fb.Tensor]:
    x = fb.placeholder(fb.float32, [20, 8, 50])
    cell = fb.layers.lstm_cell(50)
    outputs, _ = fb.nn.static_rnn(cell, fb.unstack(x, axis=1), dtype=fb.float32)
    return x, fb.reduce_mean(fb.square(fb.stack(outputs)))


def convolutions() -> tuple[fb.Tensor, fb.Tensor]:
    x = fb.placeholder(fb.float32, [16, 12, 12, 3])
    h = fb.layers.conv2d(x, 16, 3, activation=fb.nn.relu)
    h = fb.layers.conv2d(fb.nn.max_pool(h, 2, 2, "VALID"), 16, 3, activation=fb.nn.relu)
    return x, fb.reduce_mean(fb.square(fb.layers.dense(fb.layers.flatten(h), 10)))


@pytest.mark.parametrize("model", [mlp, lstm])
def test_a_training_step_takes_what_its_plan_tells(
    model: Callable[[], tuple[fb.Tensor, fb.Tensor]],
) -> None:
    with fb.device("simulated:0"):
        x, loss = model()
        step = fb.train.GradientDescentOptimizer(0.1).minimize(loss)
    given = np.ones(x.shape.as_list(), np.float32)
    device = Simulated()
    with fb.Session(devices=["cpu:0", device]) as sess:
        told = sess.explain(step, {x: given}).loads[device.name].peak_bytes
        for _ in range(3):
            device.peak = 0
            sess.run(step, {x: given})
            assert abs(told - device.peak) < 0.1 * device.peak


def test_what_kernels_take_meanwhile_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with fb.device("simulated:0"):
        x, loss = convolutions()
        step = fb.train.GradientDescentOptimizer(0.1).minimize(loss)
    given = np.ones(x.shape.as_list(), np.float32)
    device, ended = Simulated(), []
    add = Recorder.add

    def added(*call: Any) -> None:
        ended.append(device.used)
        add(*call)

    monkeypatch.setattr(Recorder, "add", added)
    with fb.Session(devices=["cpu:0", device]) as sess:
        told = sess.explain(step, {x: given}).loads[device.name].peak_bytes
        with sess.trace():
            for _ in range(3):
                sess.run(step, {x: given})
    assert abs(told - max(ended)) < 0.01 * told
    # Columns of the images that a product multiplies with the filters.
    assert device.peak > 1.1 * max(ended)


def test_parts_of_a_step_take_what_its_plan_tells() -> None:
    x = fb.placeholder(fb.float32, [400, 100])
    h = x
    for number in range(8):
        with fb.device(f"simulated:{number // 4}"):
            h = fb.layers.dense(h, 100, activation=fb.tanh)
    with fb.device("simulated:1"):
        loss = fb.reduce_mean(fb.square(h))
    slopes = fb.gradients(loss, x)
    given = np.ones([400, 100], np.float32)
    devices = [Simulated(0), Simulated(1)]
    with fb.Session(devices=["cpu:0", *devices]) as sess:
        plan = sess.explain(slopes, {x: given})
        for _ in range(3):
            for device in devices:
                device.peak = 0
            sess.run(slopes, {x: given})
            for device in devices:
                more = device.peak - plan.loads[device.name].peak_bytes
                # What a segment takes from another one is held until it ends.
                assert -0.01 * device.peak < more < 1.01 * 400 * 100 * 4


def test_what_is_fed_is_held_until_the_step_ends() -> None:
    jobs = [Job((1.0, 1.0), ((-1, 0, 100),), ()), Job((1.0, 1.0), ((0, 0, 10),), ())]
    outputs: Any = [[Output(10)], [Output(50)]]
    course = follow(jobs, range(2), [1, 1], 2, lambda size, *_: 0.1 * (_[0] != _[1]), outputs)
    assert course.peak(1)[0] == 160
