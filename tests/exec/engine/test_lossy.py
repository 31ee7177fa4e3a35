"""Sessions that send half of the bits of float32 values from device to device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.devices.simulated import Simulated
from flowbook.exec.signature.signature import Signature

SIZE = 4 * 100


def chain(x: fb.Tensor) -> tuple[fb.Tensor, fb.Tensor]:
    """Two values that a CPU makes, and what an accelerator makes of them."""
    with fb.device("cpu:0"):
        a, b = fb.exp(x, name="a"), fb.negative(x, name="b")
    with fb.device("simulated:0"):
        y, z = -a, -b
    return y, z


def upper(values: Any) -> Any:
    """What the upper 16 bits say."""
    return (np.asarray(values, np.float32).view(np.uint32) & 0xFFFF0000).view(np.float32)


@pytest.mark.parametrize(
    ("lossy", "halved"), [(False, ""), (True, "ab"), (["a"], "a"), (["b:0", "not/there:0"], "b")]
)
def test_half_of_the_bits_cross_and_a_plan_says_so(lossy: Any, halved: str) -> None:
    x = fb.placeholder(fb.float32, [100], name="x")
    y, z = chain(x)
    device = Simulated()
    given = np.linspace(0.1, 3.0, 100, dtype=np.float32)
    with fb.Session(devices=["cpu:0", device], lossy_transfer=lossy) as sess:
        plan = sess.explain([y, z], {x: given})
        crossed = {each.value[0]: each.bytes for each in plan.transfers}
        assert crossed == {v: SIZE // 2 if v in halved else SIZE for v in "ab"}
        # A copy takes all bits again.
        assert plan.loads[device.name].value_bytes >= 3 * SIZE
        for _ in range(3):
            before = device.copied_in
            found = sess.run([y, z], {x: given})
            assert device.copied_in - before == sum(crossed.values())
            for value, name, exact in zip(found, "ab", (np.exp(given), -given), strict=True):
                np.testing.assert_array_equal(-value, upper(exact) if name in halved else exact)


def test_tensors_of_other_dtypes_and_orders_keep_all_bits() -> None:
    x = fb.placeholder(fb.float64, [3], name="x")
    n = fb.placeholder(fb.int32, [3], name="n")
    with fb.device("cpu:0"):
        a, b = fb.exp(x), n * 3
    with fb.device("cpu:1"), fb.control_dependencies([a]):
        y, z = a + 1.0, b + 1
    with fb.Session(cpus=2, lossy_transfer=True) as sess:
        found = sess.run([y, z], {x: [0.1, 0.2, 0.3], n: [1, 1 << 20, -5]})
    np.testing.assert_array_equal(found[0], np.exp([0.1, 0.2, 0.3]) + 1.0)
    assert found[1].tolist() == [4, (3 << 20) + 1, -14]


def test_a_value_is_cut_once_for_all_devices() -> None:
    x = fb.placeholder(fb.float32, [3], name="x")
    with fb.device("cpu:0"):
        a = fb.exp(x)
    ends = []
    for name in ("cpu:1", "cpu:2"):
        with fb.device(name):
            ends.append(-a)
    with fb.Session(cpus=3, lossy_transfer=True) as sess:
        program = sess._master.prepare(Signature(tuple(ends), (), (x,))).program
        types = [node.type for part in program.parts for node in part.nodes]
        assert [types.count(t) for t in ("TruncateTo16Bits", "Send", "FillTo32Bits")] == [1, 2, 2]


def test_what_is_wrong_to_ask() -> None:
    with pytest.raises(fb.errors.InvalidTypeError, match="lossy_transfer is a bool, or a list"):
        fb.Session(lossy_transfer="a")


def test_branches_and_loops_send_half_too() -> None:
    taken = fb.placeholder(fb.bool, [], name="taken")
    x = fb.placeholder(fb.float32, [2], name="x")

    def side(factor: float) -> Any:
        def build() -> fb.Tensor:
            with fb.device("cpu:1"):
                made = x * factor
            with fb.device("cpu:0"):
                return made + 0.0

        return build

    y = fb.cond(taken, side(3.0), side(5.0))

    def body(i: fb.Tensor, v: fb.Tensor) -> Any:
        with fb.device("cpu:1"):
            made = v * 1.1
        with fb.device("cpu:0"):
            return i + 1, made + 0.0

    _, z = fb.while_loop(lambda i, v: i < 3, body, (0, x))
    given = np.array([1.23456, 2.5], np.float32)
    with fb.Session(cpus=2, lossy_transfer=True) as sess:
        for _ in range(3):
            for is_taken, factor in ((True, 3.0), (False, 5.0)):
                found = sess.run(y, {taken: is_taken, x: given}, timeout=60)
                assert np.abs(found / (given * factor) - 1).max() < 2.0**-7
            found = sess.run(z, {x: given}, timeout=60)
            wanted = given * 1.1**3
            assert (found <= wanted).all()
            np.testing.assert_allclose(found, wanted, rtol=8 * 2.0**-7)


def test_a_training_converges_with_it() -> None:
    """A network of two layers, each on a device, learns a product."""
    draw = np.random.default_rng(0)
    inputs = draw.uniform(-1, 1, (256, 2)).astype(np.float32)
    wanted = (inputs[:, :1] * inputs[:, 1:]).astype(np.float32)
    x = fb.placeholder(fb.float32, [256, 2], name="x")
    with fb.device("cpu:1"):
        w = fb.Variable(draw.normal(size=(2, 32)).astype(np.float32), name="w")
        b = fb.Variable(draw.normal(size=32).astype(np.float32), name="b")
        hidden = fb.tanh(x @ w + b, name="hidden")
    with fb.device("cpu:0"):
        v = fb.Variable(draw.normal(size=(32, 1)).astype(np.float32) / 6, name="v")
        loss = fb.reduce_mean(fb.square(hidden @ v - wanted), name="loss")
        train = fb.train.AdamOptimizer(0.02).minimize(loss)
    ends = []
    for lossy in (False, True):
        with fb.Session(cpus=2, lossy_transfer=lossy) as sess:
            losses = [float(sess.run([loss, train], {x: inputs})[0]) for _ in range(200)]
            ends.append(losses[-1])
            crossed = {e.value: e.bytes for e in sess.explain(train, {x: inputs}).transfers}
            assert crossed["hidden:0"] == 256 * 32 * (2 if lossy else 4)
    assert losses[0] > 0.05
    assert max(ends) < 0.002
    # Other bits have come out: they did go over so.
    assert ends[0] != ends[1]
