"""A kind of device of a user's own: NumPy's arrays, and what goes in and out is counted."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowbook as fb
from flowbook.exec.devices import kinds
from flowbook.exec.devices.figures import ACCELERATOR, OVER_BUS
from flowbook.graph.model import registry
from tests.exec.held import held


class Counting(fb.Device):
    """Arrays of NumPy's; how many went in and out is counted."""

    def __init__(self, index: int) -> None:
        super().__init__(f"npu:{index}", np)
        self.owned = 0
        self.fetched = 0

    def own(self, array: Any) -> Any:
        self.owned += 1
        return np.array(array)

    def fetch(self, array: Any) -> Any:
        self.fetched += 1
        return np.array(array)

    def check(self, value: Any) -> bool:
        return isinstance(value, np.ndarray | np.generic)


pytestmark = pytest.mark.usefixtures("own_kinds_of_devices")


def made(**others: Any) -> list[Counting]:
    """Register the kind, and return its devices as they are made."""
    devices: list[Counting] = []

    def make(index: int) -> Counting:
        devices.append(Counting(index))
        return devices[-1]

    fb.register_device_kind("npu", make, **others)
    return devices


@pytest.fixture
def sess() -> Iterator[fb.Session]:
    fb.register_device_kind("npu", Counting)
    with fb.Session(devices=["npu:0"]) as sess:
        yield sess


def test_a_session_has_the_device_that_it_names_and_a_cpu() -> None:
    devices = made()
    with fb.Session(devices=["NPU:1"]) as sess, fb.Session(devices=["npu:1", "cpu:0"]):
        names = [device.name for device in sess.list_devices()]
    assert names == [f"/job:localhost/task:0/device:{each}" for each in ("npu:1", "cpu:0")]
    assert len(devices) == 1


def test_operations_go_there_and_values_cross_once() -> None:
    devices = made()
    x = fb.placeholder(fb.float32, [3])
    with fb.device("cpu:0"):
        a = fb.exp(x)
    with fb.device("npu:0"):
        b = fb.add_n([a * 2.0, a * 3.0], name="b")
    with fb.device("cpu:0"):
        c = fb.reduce_sum(b)
    with fb.Session(devices=["cpu:0", "npu:0"]) as sess:
        sess.run(c, {x: [0.0] * 3})
        (device,) = devices
        before = device.owned, device.fetched
        assert sess.run(c, {x: [0.0] * 3}) == 15.0
        assert (device.owned, device.fetched) == (before[0] + 1, before[1] + 1)
        plan = sess.explain(c, {x: (3,)})
    assert plan.device(b) == "/job:localhost/task:0/device:npu:0"
    assert [each.destination[-5:] for each in plan.transfers] == ["npu:0", "cpu:0"]


def test_a_variable_lives_there_until_the_session_is_closed() -> None:
    (size,) = shape = (1_000_000,)
    devices = made()
    with fb.device("npu:0"):
        w = fb.Variable(fb.zeros(shape), name="w")
        step = fb.assign_add(w, fb.ones(shape)).op
    tracemalloc.start()
    try:
        sess = fb.Session(devices=["npu:0"])
        sess.run(step)
        (device,) = devices
        fetched = device.fetched
        sess.run(step)
        assert device.fetched == fetched
        assert held(sess, w).device is device
        assert sess.run(w).sum() == 2 * size
        assert device.fetched == fetched + 1
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        sess.close()
        gc.collect()
        assert before - tracemalloc.get_traced_memory()[0] >= 4 * size
    finally:
        tracemalloc.stop()


def test_kernels_are_registered_for_it() -> None:
    made()
    op_def = fb.OpDef(
        "OnlyThere",
        "x: float32 -> y: float32",
        infer=lambda x: x.shape,
        kinds=("cpu",),
        kernel=lambda xp, x: x,
    )
    fb.register_kernel("OnlyThere", "npu")(lambda xp, x: x + xp.float32(1.0))
    x = fb.placeholder(fb.float32, [])
    with fb.device("npu:0"):
        y = op_def(x)
    with fb.Session(devices=["npu:0"]) as sess:
        assert sess.run(y, {x: 1.0}) == 2.0


def test_what_it_does_not_hold_runs_elsewhere() -> None:
    made(dtypes=[fb.float32])
    x = fb.placeholder(fb.float64, [2])
    with fb.device("npu:0"):
        w = fb.Variable([1.0])
        wide = fb.exp(x)
    with fb.Session(devices=["npu:0"]) as sess:
        assert sess.run(w) == [1.0]
        with pytest.raises(fb.errors.InvalidArgumentError, match="float64"):
            sess.run(wide, {x: [0.0, 0.0]})
    with fb.Session(devices=["npu:0"], soft_placement=True) as sess:
        assert sess.explain(wide, {x: [0.0, 0.0]}).device(wide).endswith("cpu:0")


def test_placement_predicts_by_its_figures() -> None:
    x = fb.placeholder(fb.float32, [512, 512])
    with fb.device("npu:0"):
        y = fb.matmul(x, x)

    def predicted(**figures: Any) -> float:
        made(**figures)
        with fb.Session(devices=["npu:0"]) as sess:
            return float(sess.explain(y, {x: (512, 512)}).seconds)

    slow = predicted(flops=1e12, link_bandwidth=1e9, link_latency=1e-3)
    fast = predicted(flops=1e13, link_bandwidth=1e9, link_latency=1e-3)
    near = predicted(flops=1e13, link_bandwidth=1e10, link_latency=1e-3)
    within = predicted(flops=1e13, in_host_memory=True)
    assert slow - fast == pytest.approx(2 * 512**3 * (1e-12 - 1e-13))
    assert fast - near == pytest.approx(4 * 512**2 * (1e-9 - 1e-10))
    assert near - within == pytest.approx(1e-3 + 4 * 512**2 * 1e-10)


def test_by_default_its_figures_are_those_of_any_accelerator() -> None:
    assert (kinds.figures_of("npu"), kinds.link_of("npu")) == (ACCELERATOR, OVER_BUS)
    made()
    assert (kinds.figures_of("npu"), kinds.link_of("npu")) == (ACCELERATOR, OVER_BUS)


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.sampled_from(["cpu:0", "npu:0", "npu:1"]), min_size=4, max_size=4),
    st.booleans(),
)
def test_where_it_runs_changes_no_result(where: list[str], in_host_memory: bool) -> None:
    made(in_host_memory=in_host_memory)
    with fb.Graph().as_default():
        x = fb.placeholder(fb.float32, [None, 4])
        with fb.device(where[0]):
            w = fb.Variable(np.arange(12.0, dtype=np.float32).reshape(4, 3))
        with fb.device(where[1]):
            rows = fb.reshape(x @ w.value, [-1, 3])
        with fb.device(where[2]):
            total = fb.reduce_sum(rows, axis=fb.argmax(fb.shape(rows)[:1]) * 0)
        with fb.device(where[3]):
            y = fb.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * 2.0), [0, total])[1]
        with fb.Session(devices=["cpu:0", "npu:0", "npu:1"]) as sess:
            given = np.ones((2, 4), np.float32)
            expected = 8 * (given @ np.arange(12.0).reshape(4, 3)).sum(0)
            for _ in range(3):
                assert np.array_equal(sess.run(y, {x: given}), expected)


def test_registered_again_it_makes_other_devices_for_other_sessions() -> None:
    before = made()
    x = fb.placeholder(fb.float32, [])
    with fb.device("npu:0"):
        w = fb.Variable(1.0)
    with fb.Session(devices=["npu:0"]) as old:
        old.run(fb.assign_add(w, 1.0))
        after = made()
        with fb.Session(devices=["npu:0"]) as new:
            new.run(w + x, {x: 1.0})
            assert (len(before), len(after)) == (1, 1)
            count = before[0].fetched, after[0].fetched
            assert old.run(w * 2.0) == 4.0
            assert (before[0].fetched - count[0], after[0].fetched - count[1]) == (1, 0)


def test_what_a_container_holds_stays_on_the_earlier_device() -> None:
    made()
    with fb.container("registered again"), fb.device("npu:0"):
        w = fb.Variable(1.0, name="w")
    with fb.Session(devices=["npu:0"]) as old:
        old.run(w)
        made()
        with fb.Session(devices=["npu:0"]) as new:
            with pytest.raises(
                fb.errors.FailedPreconditionError, match="an earlier /job"
            ) as caught:
                new.run(w)
            assert caught.value.hint == "fb.reset_container('registered again') has it begin anew"
            fb.reset_container("registered again")
            assert new.run(w) == 1.0


@pytest.mark.parametrize(
    ("arguments", "others", "error", "text"),
    [
        (("cpu", Counting), {}, fb.errors.AlreadyExistsError, "'cpu' is one of Flowbook's own"),
        (("gpu", Counting), {}, fb.errors.AlreadyExistsError, "'gpu' is one of Flowbook's own"),
        ((3, Counting), {}, fb.errors.InvalidTypeError, "named by a string, not 3"),
        (("", Counting), {}, fb.errors.InvalidArgumentError, "'' is no name"),
        (("my kind", Counting), {}, fb.errors.InvalidArgumentError, "'my kind' is no name"),
        (("npu:0", Counting), {}, fb.errors.InvalidArgumentError, "'npu:0' is no name"),
        (("NPU", Counting), {}, fb.errors.InvalidArgumentError, "a word in lower case"),
        (("task", Counting), {}, fb.errors.InvalidArgumentError, "'task' is no name"),
        (("npu", 3), {}, fb.errors.InvalidTypeError, "make gives the device of a number"),
        (("npu", fb.Device), {}, fb.errors.InvalidArgumentError, "define check, fetch, own"),
        (("npu", Counting), {"flops": 0}, fb.errors.InvalidArgumentError, "flops is a positive"),
        (("npu", Counting), {"flops": True}, fb.errors.InvalidTypeError, "flops is a number"),
        (
            ("npu", Counting),
            {"link_latency": float("nan")},
            fb.errors.InvalidArgumentError,
            "link_latency is a positive",
        ),
        (
            ("npu", Counting),
            {"link_bandwidth": "much"},
            fb.errors.InvalidTypeError,
            "link_bandwidth is a number",
        ),
        (("npu", Counting), {"dtypes": ["much"]}, fb.errors.OpError, "much"),
    ],
)
def test_what_is_no_kind_is_refused_and_changes_nothing(
    arguments: Any, others: Any, error: type[fb.errors.OpError], text: str
) -> None:
    before = kinds._kinds.copy(), registry._device_kinds.copy()
    with pytest.raises(error) as caught:
        fb.register_device_kind(*arguments, **others)
    assert text in str(caught.value)
    assert (kinds._kinds, registry._device_kinds) == before


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda index: "npu", "gave 'npu' for number 1"),
        (lambda index: Counting(0), "gave /job:localhost/task:0/device:npu:0 for number 1"),
        (lambda index: object.__new__(Counting), "gave one without a name for number 1"),
    ],
)
def test_what_makes_no_such_device_is_told_when_one_is_named(make: Any, text: str) -> None:
    fb.register_device_kind("npu", make)
    with pytest.raises(fb.errors.OpError) as caught:
        fb.Session(devices=["npu:1"])
    assert text in str(caught.value)
    made()
    fb.Session(devices=["npu:1"]).close()


def test_errors_name_the_kinds_that_there_are(sess: fb.Session) -> None:
    with pytest.raises(fb.errors.InvalidArgumentError, match="no device 'mpu:0'") as caught:
        fb.Session(devices=["mpu:0"])
    hint = "did you mean npu or gpu or cpu? known kinds are cpu, gpu, npu, simulated"
    assert caught.value.hint == hint
    with pytest.raises(fb.errors.NotFoundError) as unknown:
        fb.register_kernel("MatMul", "mpu")
    assert unknown.value.hint == hint
    with fb.device("mpu:0"):
        nowhere = fb.exp(1.0)
    with pytest.raises(fb.errors.InvalidArgumentError) as unmet:
        sess.run(nowhere)
    assert unmet.value.hint.endswith(hint)
    with fb.device("npu:2"):
        there = fb.exp(1.0)
    with fb.Session() as cpu, pytest.raises(fb.errors.InvalidArgumentError) as elsewhere:
        cpu.run(there)
    assert elsewhere.value.hint.endswith("fb.Session(devices=['npu:2']) computes on this machine's")
