"""Optimizers, schedules and moving averages give what TensorFlow's do, by its recorded values."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.record_tensorflow import RECORDED
from tests.record_training import STEPS
from tests.train.settings import (
    AVERAGES,
    BOUNDARIES,
    COUNTS,
    OPTIMIZERS,
    SCHEDULES,
    START,
    VALUES,
    dense_gradients,
    sparse_gradients,
)

with np.load(RECORDED / "training.npz") as file:
    RECORDING = dict(file)

TOLERANCE = {"float32": 2e-6, "float64": 1e-12}


def agree(found: Any, recorded: Any, dtype: str = "float32") -> None:
    tolerance = TOLERANCE[dtype]
    np.testing.assert_allclose(found, recorded, rtol=tolerance, atol=tolerance)


def rounded(name: str, value: Any) -> Any:
    is_kept = name == "initial_accumulator_value" or not isinstance(value, float)
    return value if is_kept else float(np.float32(value))


@pytest.mark.parametrize("key", [k for k in RECORDING if k.partition("/")[0] in OPTIMIZERS])
def test_optimizer(key: str) -> None:
    name, form, dtype = key.split("/")
    kind, arguments, _ = OPTIMIZERS[name]
    # TensorFlow keeps hyperparameters in float32, whatever the variable's dtype, and Adam's powers.
    defaults = inspect.signature(getattr(fb.train, kind)).parameters.values()
    arguments = {p.name: p.default for p in defaults if isinstance(p.default, float)} | arguments
    arguments = {k: rounded(k, v) for k, v in arguments.items()}
    precision = "float32" if kind == "AdamOptimizer" else dtype
    x = fb.Variable(START.astype(dtype))
    gradient = fb.placeholder(dtype, [None, START.shape[1]])
    indices = fb.placeholder(fb.int32, [None])
    optimizer = getattr(fb.train, kind)(**arguments)
    with fb.Session() as sess:
        if form == "sparse":
            slices = fb.IndexedSlices(gradient, indices, fb.constant(list(START.shape)))
            train = optimizer.apply_gradients([(slices, x)])
            feeds = [{gradient: g, indices: i} for g, i in sparse_gradients(STEPS)]
        else:
            train = optimizer.apply_gradients([(gradient, x)])
            feeds = [{gradient: g} for g in dense_gradients(STEPS)]
        for fed, recorded in zip(feeds, RECORDING[key], strict=True):
            sess.run(train, fed)
            agree(sess.run(x), recorded, precision)


def check_schedule(make: Any, key: str) -> None:
    step = fb.placeholder(fb.int64, [])
    rate = make(step)
    assert rate.dtype is fb.float32
    assert rate.shape == fb.Shape([])
    with fb.Session() as sess:
        agree([sess.run(rate, {step: count}) for count in COUNTS], RECORDING[key])


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedule(name: str) -> None:
    kind, arguments = SCHEDULES[name]
    check_schedule(lambda step: getattr(fb.train, kind)(0.3, step, **arguments), f"schedule/{name}")


def test_piecewise_constant() -> None:
    check_schedule(
        lambda step: fb.train.piecewise_constant(step, BOUNDARIES, VALUES), "schedule/piecewise"
    )


@pytest.mark.parametrize("name", AVERAGES)
def test_moving_averages(name: str) -> None:
    decay, is_counted, is_corrected = AVERAGES[name]
    fed = fb.placeholder(fb.float32, START.shape)
    x = fb.Variable(START.astype(np.float32))
    step = fb.Variable(0, trainable=False)
    moved = fb.assign(x, fed)
    average = fb.train.ExponentialMovingAverage(decay, step if is_counted else None, is_corrected)
    tensor = fed * 2.0
    with fb.control_dependencies([moved]):
        move = average.apply([x, tensor])
    with fb.control_dependencies([move]):
        counted = fb.assign_add(step, 1)
    with fb.Session() as sess:
        for value, recorded in zip(
            dense_gradients(STEPS), RECORDING[f"average/{name}"], strict=True
        ):
            sess.run([move, counted], {fed: value})
            agree(sess.run([average.average(x), average.average(tensor)]), recorded)
