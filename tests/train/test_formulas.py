"""A hundred steps of every optimizer, dense and sparse, equal its formula."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.train.formulas import Formula
from tests.train.settings import OPTIMIZERS, START

STEPS = 100
TOLERANCE = {fb.float32: 3e-4, fb.float64: 1e-11}
SCALE = np.array([1.0, 3.0, 0.5])

EACH = pytest.mark.parametrize("name", OPTIMIZERS)
DTYPES = pytest.mark.parametrize("dtype", TOLERANCE, ids=lambda dtype: dtype.name)


def made(name: str, **changes: Any) -> fb.train.Optimizer:
    kind, arguments, _ = OPTIMIZERS[name]
    return getattr(fb.train, kind)(**(arguments | changes))


def formula(name: str, start: Any) -> Formula:
    kind, arguments, _ = OPTIMIZERS[name]
    return Formula(start, kind, arguments)


@DTYPES
@EACH
def test_dense(name: str, dtype: fb.DType) -> None:
    start = START.astype(dtype.numpy)
    x = fb.Variable(start)
    target = fb.placeholder(dtype, START.shape)
    loss = fb.reduce_sum(fb.square(x - target) * SCALE.astype(dtype.numpy))
    train, expected = made(name).minimize(loss), formula(name, start)
    random = np.random.default_rng(0)
    with fb.Session() as sess:
        for _ in range(STEPS):
            wanted = random.normal(size=START.shape).astype(dtype.numpy)
            sess.run(train, {target: wanted})
            expected.dense(2 * SCALE * (expected.x - wanted))
            np.testing.assert_allclose(
                sess.run(x), expected.x, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype]
            )


@DTYPES
@EACH
def test_sparse(name: str, dtype: fb.DType) -> None:
    start = START.astype(dtype.numpy)
    x = fb.Variable(start)
    indices, target = fb.placeholder(fb.int32, [None]), fb.placeholder(dtype, [None, 3])
    loss = fb.reduce_sum(fb.square(fb.gather(x, indices) - target) * SCALE.astype(dtype.numpy))
    optimizer = made(name)
    pairs = optimizer.compute_gradients(loss)
    assert isinstance(pairs[0][0], fb.IndexedSlices)
    train, expected = optimizer.apply_gradients(pairs), formula(name, start)
    random = np.random.default_rng(0)
    with fb.Session() as sess:
        for _ in range(STEPS):
            rows = random.integers(0, len(START), 3)
            wanted = random.normal(size=(3, 3)).astype(dtype.numpy)
            sess.run(train, {indices: rows, target: wanted})
            expected.sparse(2 * SCALE * (expected.x[rows] - wanted), rows)
            np.testing.assert_allclose(
                sess.run(x), expected.x, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype]
            )


@EACH
def test_scalars_and_vectors(name: str) -> None:
    variables = [fb.Variable(np.array(2.0)), fb.Variable(np.array([1.0, -3.0]))]
    loss = fb.square(variables[0]) + fb.reduce_sum(fb.square(variables[1]))
    train = made(name).minimize(loss)
    expected = [formula(name, np.array(2.0)), formula(name, np.array([1.0, -3.0]))]
    with fb.Session() as sess:
        for _ in range(5):
            sess.run(train)
            for each in expected:
                each.dense(2 * each.x)
        for variable, each in zip(variables, expected, strict=True):
            np.testing.assert_allclose(sess.run(variable), each.x, rtol=1e-12, atol=1e-12)


@EACH
def test_hyperparameters_may_be_tensors(name: str) -> None:
    """Each that is not a choice made while building; a schedule is such a tensor."""
    kind, arguments, _ = OPTIMIZERS[name]
    fixed = ("l1_", "l2_", "initial_", "learning_rate_power", "clipping_", "epsilon1")
    if kind == "AdafactorOptimizer":
        fixed += ("beta1",)
    given, feeds = dict(arguments), {}
    for key, value in arguments.items():
        if isinstance(value, float) and not key.startswith(fixed):
            given[key] = fb.placeholder(fb.float64, [])
            feeds[given[key]] = value
    x = fb.Variable(START)
    gradient = fb.placeholder(fb.float64, START.shape)
    train = getattr(fb.train, kind)(**given).apply_gradients([(gradient, x)])
    expected = formula(name, START)
    random = np.random.default_rng(0)
    with fb.Session() as sess:
        for _ in range(5):
            g = random.normal(size=START.shape)
            sess.run(train, {gradient: g, **feeds})
            expected.dense(g)
            np.testing.assert_allclose(sess.run(x), expected.x, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("form", ["dense", "rows"])
@pytest.mark.parametrize("dtype", [fb.float16, fb.bfloat16], ids=lambda dtype: dtype.name)
@EACH
def test_small_floats(name: str, dtype: fb.DType, form: str) -> None:
    """The state may be coarse, but steps are finite and go downhill."""
    x = fb.Variable(np.array([[1.0, -2.0], [0.5, 3.0]]).astype(dtype.numpy))
    has_epsilon = name.startswith(("adam", "rms", "adadelta"))
    chosen = x if form == "dense" else fb.gather(x, [0, 1, 1])
    loss = fb.reduce_sum(fb.square(chosen))
    train = made(name, **({"epsilon": 1e-3} if has_epsilon else {})).minimize(loss)
    with fb.Session() as sess:
        before = sess.run(loss)
        for _ in range(20):
            sess.run(train)
        value = sess.run(x)
        assert value.dtype == dtype.numpy
        assert np.isfinite(value.astype(np.float32)).all()
        assert sess.run(loss) < before


@EACH
def test_no_rows(name: str) -> None:
    x = fb.Variable(START)
    indices = fb.placeholder(fb.int64, [None])
    train = made(name).minimize(fb.reduce_sum(fb.gather(x, indices)))
    with fb.Session() as sess:
        sess.run(train, {indices: []})
        assert np.isfinite(sess.run(x)).all()
        if name != "adamw":  # Its decay needs no gradient.
            np.testing.assert_array_equal(sess.run(x), START)
