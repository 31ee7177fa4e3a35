"""Gradients of forward values that wait in host memory: the same bits, less memory taken."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import flowbook as fb
from flowbook.exec.devices.simulated import Simulated
from flowbook.graph.control_flow.stacks import (
    empty_stack,
    pop,
    pop_from_host,
    push,
    push_to_host,
)
from tests.graph.gradients.test_recomputing import LAYERS, ROWS, WIDTH, networks

SIZE = 500 * 64 * 4


def deep(layers: int) -> tuple[fb.Tensor, list[fb.Tensor], fb.Tensor]:
    """What is fed, what each layer gives, and the loss."""
    x = fb.placeholder(fb.float32, [500, 64], name="x")
    given = [x]
    for number in range(layers):
        w = fb.Variable(np.eye(64, dtype=np.float32) * 0.9, name=f"w{number}")
        given.append(fb.tanh(given[-1] @ w))
    return x, given[1:], fb.reduce_mean(fb.square(given[-1]))


@settings(max_examples=40, deadline=None)
@given(networks)
@pytest.mark.parametrize("device", ["cpu:0", "simulated:0"])
def test_the_gradients_are_the_same_bits(device: str, network: Any) -> None:
    with fb.Graph().as_default(), fb.device(device):
        x = fb.placeholder(fb.float32, [None, WIDTH])
        w = fb.Variable(np.linspace(-1, 1, WIDTH * WIDTH, dtype=np.float32).reshape(WIDTH, WIDTH))
        layers, swapped = [x], []
        for kind, other, is_swapped in network:
            h = LAYERS[kind](layers[-1], layers[other % len(layers)], w)
            layers.append(h)
            swapped += [h] if is_swapped else []
        loss = fb.reduce_sum(fb.square(layers[-1]))
        plain = fb.gradients(loss, [x, w])
        others = [
            fb.gradients(loss, [x, w], swap=swapped),
            fb.gradients(loss, [x, w], recompute=swapped[::2], swap=swapped),
        ]
        with fb.Session(devices=["cpu:0", "simulated:0"], soft_placement=True) as sess:
            for value in (0.3, -1.2):
                given = np.full((ROWS, WIDTH), value, np.float32)
                # One step: what is drawn is drawn once for all.
                asked = [g for g in zip(plain, *others, strict=True) if g[0] is not None]
                for one, *again in sess.run(asked, {x: given}):
                    for other in again:
                        np.testing.assert_array_equal(one, other)


def test_less_memory_is_told_and_taken() -> None:
    with fb.device("simulated:0"):
        x, layers, loss = deep(16)
        optimizer = fb.train.GradientDescentOptimizer(0.1)
        kept = layers[3:15:4]
        steps = {
            "plain": optimizer.minimize(loss),
            "swap": optimizer.minimize(loss, swap=layers[:-1]),
            "recompute": optimizer.minimize(loss, recompute=kept),
            "both": optimizer.minimize(loss, recompute=kept, swap=kept),
        }
    given = np.ones((500, 64), np.float32)
    peaks = {}
    for name, step in steps.items():
        device = Simulated()
        with fb.Session(devices=["cpu:0", device]) as sess:
            told = sess.explain(step, {x: given}).loads[device.name]
            for _ in range(3):
                sess.run(step, {x: given})
        swapped = {"swap": 15, "both": 3}.get(name, 0) * SIZE
        assert told.swapped_bytes == swapped
        # Weights of one step are there before those of the next ones are written.
        assert abs(device.peak - told.peak_bytes) < 0.01 * device.peak
        assert min(device.copied_out, device.copied_in) >= 3 * swapped
        peaks[name] = device.peak / SIZE
    assert peaks["plain"] > 20
    assert peaks["swap"] < 8.1
    assert peaks["both"] < peaks["recompute"] < 12.1


def test_the_plan_says_what_swapping_gives() -> None:
    x, layers, loss = deep(4)
    [slope] = fb.gradients(loss, x, swap=layers[:2])
    with fb.Session(cpus=1) as sess:
        told = str(sess.explain(slope, {x: (500, 64)}))
        assert f"{2 * SIZE / 1e3:.0f} kB of /job:localhost/task:0/device:cpu:0 wait" in told
        assert "nothing is gained by swapping" in told
    with fb.Graph().as_default(), fb.device("simulated:0"):
        x, layers, loss = deep(4)
        [slope] = fb.gradients(loss, x, swap=layers[:2])
        [plain] = fb.gradients(loss, x)
        with fb.Session(devices=["cpu:0", "simulated:0"]) as sess:
            plan = sess.explain(slope, {x: (500, 64)})
            assert "wait in host memory for their gradients" in str(plan)
            assert "nothing is gained" not in str(plan)
            # It goes there and comes back, which takes time.
            assert plan.seconds > sess.explain(plain, {x: (500, 64)}).seconds + 2 * SIZE / 1e10


@pytest.mark.parametrize(
    ("put", "take"), [(push, pop), (push_to_host, pop_from_host)], ids=["push", "push_to_host"]
)
def test_what_a_processors_stack_holds_lies_where_it_was(put: Any, take: Any) -> None:
    x = fb.placeholder(fb.float32, [500, 64])
    h = fb.exp(x)
    value, _ = take(put(empty_stack(), h), dtype=h.dtype, shape=h.shape)
    with fb.Session(cpus=1) as sess:
        for fetch in (fb.sin(value), h * value):
            [load] = sess.explain(fetch, {x: (500, 64)}).loads.values()
            assert load.peak_bytes == 2 * SIZE  # What it holds, and what is fetched.


def test_it_comes_back_when_the_first_gradient_needs_it() -> None:
    x, layers, loss = deep(6)
    fb.gradients(loss, x, swap=layers[2])
    made = [op for op in x.graph.operations if "_swapped/" in op.name]
    assert [op.type for op in made] == ["EmptyStack", "StackPushToHost", "StackPopFromHost"]
    [arrived] = made[-1].control_inputs
    assert "gradients/" in arrived.name


def test_gradients_of_such_gradients() -> None:
    x = fb.placeholder(fb.float64, [3], name="x")
    h = fb.sin(x)
    y = fb.reduce_sum(fb.exp(fb.sin(h) * h))
    [slope] = fb.gradients(y, x, swap=[h])
    [wanted] = fb.gradients(y, x)
    both = [fb.gradients(fb.reduce_sum(each), x)[0] for each in (slope, wanted)]
    with fb.Session() as sess:
        one, other = sess.run(both, {x: [0.1, 0.5, -2.0]})
    np.testing.assert_allclose(one, other, rtol=1e-12)


def test_what_is_in_a_loop_or_no_value_is_refused() -> None:
    x = fb.placeholder(fb.float32, [3], name="x")
    inside = []

    def body(i: fb.Tensor, v: fb.Tensor) -> Any:
        inside.append(fb.exp(v))
        return i + 1, inside[0]

    _, y = fb.while_loop(lambda i, v: i < 2, body, (0, x))
    with pytest.raises(fb.errors.InvalidArgumentError, match="lies in a loop") as caught:
        fb.gradients(y, x, swap=inside)
    assert "swap_memory=True" in str(caught.value)
    z = fb.cond(fb.reduce_sum(x) > 0, lambda: inside.append(fb.sin(x)) or inside[1] * 2, lambda: x)
    with pytest.raises(fb.errors.InvalidArgumentError, match="lies in a branch"):
        fb.gradients(z, x, swap=inside[1])
    with pytest.raises(fb.errors.InvalidArgumentError, match="is no value but a stack"):
        fb.gradients(y, x, swap=empty_stack())
    with fb.Graph().as_default():
        other = fb.constant(1.0)
    with pytest.raises(fb.errors.InvalidArgumentError, match="graph"):
        fb.gradients(y, x, swap=[other])


@pytest.mark.parametrize("option", ["swap", "recompute"])
@pytest.mark.parametrize("wrong", [3, "h:0", np.zeros(3)])
def test_what_is_no_tensor_is_not_taken_for_a_constant(option: str, wrong: Any) -> None:
    x = fb.placeholder(fb.float32, [3], name="x")
    y = fb.exp(fb.sin(x, name="h"))
    with pytest.raises(fb.errors.InvalidTypeError, match=f"{option} takes tensors"):
        fb.gradients(y, x, **{option: [wrong]})
