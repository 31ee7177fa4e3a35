"""Gradients that compute once more what is not kept: the same bits, less memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowbook as fb
from flowbook.exec.devices.simulated import Simulated

ROWS, WIDTH = 6, 4


def twice(h: fb.Tensor, w: fb.Tensor) -> Any:
    return fb.while_loop(lambda i, v: i < 2, lambda i, v: (i + 1, v * w[0]), (0, h))[1]


# What a layer makes of the one before and of an earlier one.
LAYERS: list[Any] = [
    lambda h, other, w: fb.tanh(h @ w),
    lambda h, other, w: fb.nn.relu(h) + other,
    lambda h, other, w: fb.exp(h * 0.1) * other,
    lambda h, other, w: fb.nn.dropout(h, rate=0.5, seed=3),
    lambda h, other, w: fb.add_n(fb.split(fb.concat([h, other], 1), 2, axis=1)),
    lambda h, other, w: fb.cond(fb.reduce_sum(h) > 0.0, lambda: fb.sin(h), lambda: h * 2.0),
    lambda h, other, w: twice(h, w),
    lambda h, other, w: fb.random_gamma([], fb.abs(h) + 0.5, seed=5),
]

networks = st.lists(
    st.tuples(st.integers(0, len(LAYERS) - 1), st.integers(0, 10), st.booleans()),
    min_size=1,
    max_size=8,
)


@settings(max_examples=40, deadline=None)
@given(networks)
def test_the_gradients_are_the_same_bits(network: Any) -> None:
    with fb.Graph().as_default():
        x = fb.placeholder(fb.float32, [ROWS, WIDTH])
        w = fb.Variable(np.linspace(-1, 1, WIDTH * WIDTH, dtype=np.float32).reshape(WIDTH, WIDTH))
        layers, kept = [x], []
        for kind, other, is_kept in network:
            h = LAYERS[kind](layers[-1], layers[other % len(layers)], w)
            layers.append(h)
            kept += [h] if is_kept else []
        loss = fb.reduce_sum(fb.square(layers[-1]))
        plain, again = fb.gradients(loss, [x, w]), fb.gradients(loss, [x, w], recompute=kept)
        with fb.Session() as sess:
            for value in (0.3, -1.2):
                given = np.full((ROWS, WIDTH), value, np.float32)
                # One step: what is drawn is drawn once for both.
                pairs = [p for p in zip(plain, again, strict=True) if p[0] is not None]
                for one, other in sess.run(pairs, {x: given}):
                    np.testing.assert_array_equal(one, other)


def deep(x: fb.Tensor, layers: int) -> list[fb.Tensor]:
    found = [x]
    for number in range(layers):
        w = fb.Variable(np.eye(64, dtype=np.float32) * 0.9, name=f"w{number}")
        found.append(fb.tanh(found[-1] @ w))
    return found


def test_less_memory_is_told_and_taken() -> None:
    x = fb.placeholder(fb.float32, [500, 64], name="x")
    size = 500 * 64 * 4
    with fb.device("simulated:0"):
        layers = deep(x, 16)
        loss = fb.reduce_mean(fb.square(layers[-1]))
        steps = [
            fb.train.GradientDescentOptimizer(0.1).minimize(loss, recompute=kept)
            for kept in (None, layers[4:16:4])
        ]
    told = [fb.forecast(step, {x: (500, 64)}) for step in steps]
    assert told[0].peak_bytes > 17 * size
    assert told[1].peak_bytes < 10 * size
    assert told[1].total.flops > told[0].total.flops
    given = np.ones((500, 64), np.float32)
    narrow = Simulated(memory_limit=14 * size + 16 * 64 * 64 * 4)
    with fb.Session(devices=[narrow]) as sess:
        for _ in range(3):
            sess.run(steps[1], {x: given})
        with pytest.raises(fb.errors.ResourceExhaustedError, match="is out of memory"):
            sess.run(steps[0], {x: given})


def test_it_is_computed_where_it_is_needed() -> None:
    x = fb.placeholder(fb.float32, [500, 64], name="x")
    layers = deep(x, 16)
    loss = fb.reduce_mean(fb.square(layers[-1]))
    peaks = []
    for kept in (None, layers[4:16:4]):
        [slope] = fb.gradients(loss, x, recompute=kept)
        with fb.Session() as sess, sess.trace() as trace:
            sess.run(slope, {x: np.ones((500, 64))})
            peaks += [share.peak for share in trace.by_device().shares.values()]
    assert peaks[1] < 0.6 * peaks[0]


def test_what_comes_after_all_that_is_kept_is_not_computed_again() -> None:
    x = fb.placeholder(fb.float32, [4, 64], name="x")
    layers = deep(x, 6)
    before = len(x.graph.operations)
    fb.gradients(fb.reduce_sum(layers[-1]), x, recompute=layers[3])
    again = [op for op in x.graph.operations[before:] if "_again/" in op.name]
    # Three layers of a product and a tanh.
    assert sorted(op.type for op in again) == ["MatMul"] * 3 + ["Tanh"] * 3


def test_what_draws_is_not_done_twice() -> None:
    x = fb.placeholder(fb.float32, [4], name="x")
    drawn = fb.random_gamma([], x * x + 0.5, seed=5)
    h = fb.tanh(fb.exp(drawn) * 0.1)
    [slope] = fb.gradients(fb.reduce_sum(h), x, recompute=[h])
    again = [op.type for op in x.graph.operations if "_again/" in op.name]
    assert "Exp" in again
    assert sum(op.op_def.owns == "random_state" for op in x.graph.operations) == 1
    assert slope is not None


def test_gradients_of_such_gradients() -> None:
    x = fb.placeholder(fb.float64, [3], name="x")
    h = fb.sin(x)
    y = fb.reduce_sum(fb.exp(fb.sin(h) * h))
    [slope] = fb.gradients(y, x, recompute=[h])
    [wanted] = fb.gradients(y, x)
    both = [fb.gradients(fb.reduce_sum(each), x)[0] for each in (slope, wanted)]
    with fb.Session() as sess:
        one, other = sess.run(both, {x: [0.1, 0.5, -2.0]})
    np.testing.assert_allclose(one, other, rtol=1e-12)


def test_what_is_kept_is_of_the_same_graph() -> None:
    x = fb.constant(1.0)
    with fb.Graph().as_default():
        other = fb.constant(1.0)
    with pytest.raises(fb.errors.InvalidArgumentError, match="graph"):
        fb.gradients(x * x, x, recompute=[other])
