"""A GPU as a device, on a CuPy that needs none (`fake_cupy.py`)."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.devices import cuda, pinned, streams
from flowbook.exec.devices.gpu import Gpu
from flowbook.exec.devices.pinned import Pinned
from flowbook.exec.devices.streams import Streams
from tests.exec.devices.fake_cupy import UNIT, CUDARuntimeError, Event, FakeGpu, Race, fake_gpu

__all__ = ["fake_gpu"]


def product() -> tuple[fb.Tensor, fb.Tensor]:
    """A graph on a GPU: what it is fed with, and what it computes."""
    with fb.device("gpu:0"):
        x = fb.placeholder(fb.float32, [None, 3], name="x")
        y = fb.matmul(x, fb.constant(np.arange(6.0).reshape(3, 2), fb.float32), name="y")
    return x, y


ONES = np.ones((4, 3), np.float32)


# Whether there is one


@pytest.fixture
def nothing_known() -> Any:
    cuda.cupy.cache_clear()
    yield
    cuda.cupy.cache_clear()


def run_on_gpu(**options: Any) -> str:
    """The error of a session that has none."""
    _, y = product()
    with pytest.raises(fb.errors.InvalidArgumentError) as caught:
        fb.Session(**options).run(y, {"x:0": ONES})
    return str(caught.value)


@pytest.mark.parametrize("options", [{}, {"devices": ["gpu:0"]}])
def test_without_cupy_the_error_says_what_to_install(
    options: Any, monkeypatch: pytest.MonkeyPatch, nothing_known: None
) -> None:
    monkeypatch.setattr(cuda, "find_spec", lambda name: None)
    assert "CuPy, which is not installed: pip install 'cupy-cuda12x[ctk]'" in run_on_gpu(**options)


@pytest.mark.parametrize("options", [{}, {"devices": ["gpu:0"]}])
def test_without_a_gpu_the_error_says_what_cupy_says(
    options: Any, fake_gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    def count() -> int:
        raise CUDARuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")

    fake_gpu.module.cuda.runtime.getDeviceCount = count
    assert "CuPy finds no GPU: cudaErrorNoDevice: no CUDA" in run_on_gpu(**options)


def test_a_cupy_that_cannot_be_loaded_says_why(
    monkeypatch: pytest.MonkeyPatch, nothing_known: None
) -> None:
    monkeypatch.setattr(cuda, "find_spec", lambda name: SimpleNamespace())
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert "CuPy cannot be loaded: import of cupy halted" in run_on_gpu()


def test_a_session_without_the_gpu_that_there_is_says_how_to_have_it(fake_gpu: FakeGpu) -> None:
    assert "fb.Session(devices=['gpu:0']) computes on this machine's" in run_on_gpu()
    with pytest.raises(fb.errors.InvalidArgumentError, match="finds one GPU, numbered from 0"):
        fb.Session(devices=["gpu:1"])


def test_nothing_imports_cupy_before_a_gpu_is_named(tmp_path: Path) -> None:
    (tmp_path / "cupy.py").write_text("raise ImportError('it was imported')")
    program = """
import flowbook as fb
with fb.Session() as sess:
    print(sess.run(fb.constant(1) + 2), [device.kind for device in sess.list_devices()])
try:
    fb.Session(devices=["gpu:0"])
except ValueError as error:
    print("it was imported" in str(error))
"""
    found = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": f"{tmp_path}:{Path(fb.__file__).parents[1]}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.splitlines() == ["3 ['cpu']", "True"]


# What goes over and back


def test_arrays_go_over_and_back(fake_gpu: FakeGpu) -> None:
    device = Gpu()
    whole = np.arange(24.0).reshape(2, 3, 4)
    for value in (whole, whole.T, whole[:, ::2], np.zeros((0, 2)), np.float32(3), np.array(True)):
        array = device.own(value)
        assert device.check(array)
        assert not device.check(value)
        found = device.fetch(array)
        np.testing.assert_array_equal(found, value)
        assert type(found) is type(value[()])
        # So does a view.
        np.testing.assert_array_equal(device.fetch(device.run(lambda a=array: a.T)), value.T)
    assert device.described()[:3] == ("/job:localhost/task:0/device:gpu:0", "gpu", 4 << 30)


def test_what_is_copied_over_may_change_at_once(fake_gpu: FakeGpu) -> None:
    device, value = Gpu(), np.arange(5)
    array = device.put(value)
    value[:] = 0
    np.testing.assert_array_equal(device.fetch(array), [0, 1, 2, 3, 4])


@pytest.mark.parametrize("value", [np.array(["text"]), np.ones(2, fb.bfloat16.numpy)])
def test_what_gpus_do_not_hold_is_refused(value: Any, fake_gpu: FakeGpu) -> None:
    with pytest.raises(fb.errors.InvalidTypeError, match=r"holds no (string|bfloat16)"):
        Gpu().own(value)


def test_one_wait_brings_all_that_is_fetched(fake_gpu: FakeGpu) -> None:
    x, y = product()
    with fb.device("gpu:0"):
        z = fb.reduce_sum(y, name="z")
    with fb.Session(devices=["gpu:0"]) as sess:
        for _ in range(4):  # First kernel by kernel, later as generated code.
            before = fake_gpu.waited
            found = sess.run([y, z, x, x], {x: ONES})
            assert fake_gpu.waited == before + 1
            np.testing.assert_array_equal(found[0], [[6, 9]] * 4)
            assert found[1] == 60
            assert type(found[1]) is np.float32
            np.testing.assert_array_equal(found[2], ONES)
            assert not np.shares_memory(found[2], found[3])


def test_streams_are_ordered_by_events_alone(fake_gpu: FakeGpu) -> None:
    x, y = product()
    with fb.Session(devices=["gpu:0"]) as sess:
        sess.run(y, {x: ONES})
        del fake_gpu.record[:]
        sess.run(y, {x: ONES})
    record = [what for what in fake_gpu.record if what[1] not in ("read", "write")]
    # The fed value goes over, and is waited for; what is made comes back when it is made. Then the
    # memory of what was fed waits for those that read it.
    there = [("upload", "upload"), ("upload", "record"), ("compute", "wait")]
    back = [("compute", "record"), ("download", "wait"), ("download", "download")]
    after = [("compute", "record"), ("upload", "wait")]
    rest = [what for what in record if what not in after]
    assert [*there, *back[1:], ("download", "record")] == rest
    assert fake_gpu.record.index(("upload", "upload")) < fake_gpu.record.index(("compute", "wait"))


@pytest.mark.parametrize("missing", ["upload", "made", "await", "release"])
def test_without_one_of_these_orders_something_would_go_wrong(
    missing: str, fake_gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stand-in notices: what the other tests say of it they say of the real thing."""
    x, y = product()
    sess = fb.Session(devices=["gpu:0"])
    sess.run(y, {x: ONES})
    compute, _, download = fake_gpu.streams
    if missing == "upload":
        monkeypatch.setattr(compute, "wait_event", lambda event: None)
    elif missing == "made":
        monkeypatch.setattr(download, "wait_event", lambda event: None)
    elif missing == "await":
        monkeypatch.setattr(Event, "synchronize", lambda self: None)
    else:
        monkeypatch.setattr(Streams, "release", lambda self: None)

    def run() -> None:
        for _ in range(3):
            sess.run(y.op, {x: ONES})  # Nothing is fetched: nobody waits.
            np.testing.assert_array_equal(sess.run(y, {x: ONES}), [[6, 9]] * 4)

    with pytest.raises((AssertionError, fb.errors.InternalError)) as caught:
        run()
    seen = caught.value if isinstance(caught.value, AssertionError) else caught.value.__cause__
    assert isinstance(seen, Race) == (missing != "await")
    monkeypatch.undo()


@pytest.mark.parametrize("largest", [pinned.LARGEST, 8])
def test_what_is_too_large_for_pinned_memory_is_copied_from_where_it_lies(
    largest: int, fake_gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pinned, "LARGEST", largest)
    x, y = product()
    with fb.Session(devices=["gpu:0"]) as sess:
        for size in (1, 4, 3, 4):
            found = sess.run(y, {x: ONES[:size]})
            np.testing.assert_array_equal(found, [[6, 9]] * size)
    assert bool(fake_gpu.pinned) == (largest > 8)


def test_pinned_memory_is_used_again_but_not_before_its_copy(fake_gpu: FakeGpu) -> None:
    blocks = Pinned(fake_gpu.module)
    first = blocks.take(1000)
    assert first is not None
    assert first.size == 1024
    event = SimpleNamespace(done=False)
    blocks.give_after(event, first)
    second = blocks.take(1000)
    assert second is not first
    event.done = True
    assert blocks.take(700) is first
    assert blocks.take(0) is None
    assert blocks.take(pinned.LARGEST + 1) is None
    # No more is kept than is useful.
    many = [blocks.take(pinned.LARGEST) for _ in range(5)]
    for block in many:
        blocks.give(block)
    again = [blocks.take(pinned.LARGEST) for _ in range(5)]
    assert sum(any(block is other for other in many) for block in again) == 4


# Memory and errors


def test_memory_is_freed_when_nobody_needs_it(fake_gpu: FakeGpu) -> None:
    x, y = product()
    device = Gpu()
    with fb.Session(devices=[device]) as sess:
        for _ in range(3):
            sess.run(y, {x: ONES})
        gc.collect()
        assert device.used == UNIT  # The constant.
        assert device.described().used == device.used < device.described().peak
    del sess
    gc.collect()
    assert device.used == 0


def test_what_does_not_fit_is_an_error_that_names_the_operation(fake_gpu: FakeGpu) -> None:
    fake_gpu.memory_limit = 10_000
    with fb.device("gpu:0"):
        x = fb.placeholder(fb.float32, [None])
        y = fb.exp(x, name="large") + 1.0
    with fb.Session(devices=["gpu:0"]) as sess:
        for size in (1, 1, 2000, 1):
            if size == 1:
                assert sess.run(y, {x: [0.0]}) == 2
                continue
            with pytest.raises(fb.errors.ResourceExhaustedError, match="Out of memory") as caught:
                sess.run(y, {x: np.zeros(size, np.float32)})
            assert caught.value.operation.name == "large"
            assert "test_gpu.py, line" in str(caught.value)


def test_so_is_what_is_fed_and_does_not_fit(fake_gpu: FakeGpu) -> None:
    fake_gpu.memory_limit = 10_000
    x, y = product()
    with fb.Session(devices=["gpu:0"]) as sess:
        for _ in range(2):
            with pytest.raises(fb.errors.ResourceExhaustedError, match="Out of memory") as caught:
                sess.run(y, {x: np.ones((10_000, 3), np.float32)})
            assert "what 'x:0' is fed with, [10000, 3]" in str(caught.value)
            np.testing.assert_array_equal(sess.run(y, {x: ONES}), [[6, 9]] * 4)


def test_a_failure_that_the_gpu_tells_of_later_says_so(fake_gpu: FakeGpu) -> None:
    """Of a GPU on which a kernel has failed nothing can be had until the process starts anew."""
    x, y = product()
    device = Gpu()
    there = [device.own(ONES)]
    with fb.Session(devices=[device]) as sess:
        sess.run(y, {x: ONES})
        fake_gpu.failure = "cudaErrorIllegalAddress: an illegal memory access"
        for ask in (
            lambda: sess.run(y, {x: ONES}),
            lambda: device.own(ONES),
            lambda: device.fetch(there[0]),
        ):
            with pytest.raises(fb.errors.InternalError, match="IllegalAddress") as caught:
                ask()
            assert "or one that ran before it" in str(caught.value)
            assert "CUDA_LAUNCH_BLOCKING=1" in str(caught.value)
    # What is let go says nothing: pytest makes an error of what `__del__` raises.
    there.clear()
    gc.collect()
    fake_gpu.failure = None


def test_where_the_system_pins_no_more_memory_copies_wait(fake_gpu: FakeGpu) -> None:
    x, y = product()
    fake_gpu.pinnable = 0
    with fb.Session(devices=["gpu:0"]) as sess:
        for _ in range(3):
            np.testing.assert_array_equal(sess.run(y, {x: ONES}), [[6, 9]] * 4)
    assert not fake_gpu.pinned


# What runs there


def test_loops_and_branches_run_there(fake_gpu: FakeGpu) -> None:
    with fb.device("gpu:0"):
        x = fb.placeholder(fb.float32, [3])
        total = fb.while_loop(lambda i, s: i < 5, lambda i, s: (i + 1, s + x), (0, x * 0.0))[1]
        y = fb.cond(fb.reduce_sum(x) > 0, lambda: total * 2.0, lambda: total)
    with fb.Session(devices=["gpu:0"]) as sess:
        for value in (1.0, -1.0, 2.0):
            found = sess.run(y, {x: [value] * 3})
            np.testing.assert_array_equal(found, [value * (10 if value > 0 else 5)] * 3)


def test_variables_stay_there_and_are_written_in_place(fake_gpu: FakeGpu, tmp_path: Path) -> None:
    device = Gpu()
    with fb.device("gpu:0"):
        x = fb.placeholder(fb.float32, [3])
        v = fb.Variable(np.zeros(3, np.float32), name="v")
        loss = fb.reduce_sum((v - x) ** 2)
        train = fb.train.GradientDescentOptimizer(0.25).minimize(loss)
    with fb.Session(devices=[device]) as sess:
        for turn in range(4):
            del fake_gpu.record[:]
            found = sess.run([train, loss], {x: [1, 2, 4]})[1]
            assert found == 21 / 4**turn
            copies = [what for what in fake_gpu.record if what[1] in ("upload", "download")]
            if turn:  # The fed vector goes over, the loss comes back.
                assert copies == [("upload", "upload"), ("download", "download")]
        buffer = id(sess._master.stores.find(v.op.key)._buffer)
        used = set()
        for _ in range(3):
            sess.run(train, {x: [1, 2, 4]})
            gc.collect()
            used.add((id(sess._master.stores.find(v.op.key)._buffer), device.used))
        assert [place for place, _ in used] == [buffer]
        # Values go in and out between steps, too.
        saver = fb.train.Saver()
        saved = saver.save(sess, tmp_path / "saved")
        before = sess.run(v)
        sess.run(v.initializer)
        assert not sess.run(v).any()
        saver.restore(sess, saved)
        np.testing.assert_array_equal(sess.run(v), before)


def test_a_users_kernel_runs_there(fake_gpu: FakeGpu) -> None:
    op = fb.OpDef(
        "DoubledThere",
        "x: float32 -> y: float32",
        infer=lambda x: x.shape,
        kernel=lambda xp, x: xp.add(x, x),
    )
    with fb.device("gpu:0"):
        x = fb.placeholder(fb.float32, [2])
        y = op(x)
    with fb.Session(devices=["gpu:0"]) as sess:
        for _ in range(3):
            np.testing.assert_array_equal(sess.run(y, {x: [1, 2]}), [2, 4])


def test_what_gpus_do_not_hold_runs_on_the_cpu(fake_gpu: FakeGpu) -> None:
    x = fb.placeholder(fb.float32, [2])
    narrow = fb.cast(x, fb.bfloat16, name="narrow")
    words = fb.placeholder(fb.string, [1])
    text = fb.reshape(words, [1, 1], name="text")
    with fb.Session(devices=["gpu:0"]) as sess:
        plan = sess.explain([narrow, text], {x: (2,), words: (1,)})
        assert plan.device(narrow).endswith("cpu:0")
        assert plan.device(text).endswith("cpu:0")
        assert "gpu:0 holds no bfloat16, which 'narrow' is about" in plan.reason(narrow)
        assert sess.run(text, {words: ["a"]}).tolist() == [[b"a"]]
    with fb.device("gpu:0"):
        wide = fb.cast(narrow, fb.float32, name="wide")
    with (
        fb.Session(devices=["gpu:0"]) as sess,
        pytest.raises(
            fb.errors.InvalidArgumentError, match="'gpu' are never of bfloat16"
        ) as caught,
    ):
        sess.run(wide, {x: [1, 2]})
    assert caught.value.operation is wide.op


# When kernels run


@pytest.mark.parametrize("longest", [0, 1 << 60])
def test_a_trace_tells_when_kernels_run_there(
    fake_gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch, longest: int
) -> None:
    monkeypatch.setattr(streams, "_LONGEST", longest)
    x, y = product()
    with fb.Session(devices=["gpu:0"]) as sess:
        sess.run(y.op, {x: ONES})
        with sess.trace() as trace:
            for _ in range(3):
                before = fake_gpu.waited
                sess.run(y.op, {x: ONES})
                # Though nothing is fetched, the step ends when the product has its two times.
                assert fake_gpu.waited >= before + 2
    there = [call for call in trace.calls if call.device.endswith("gpu:0")]
    assert [call.operation for call in there] == ["y"] * 3
    for call in there:
        step = trace.steps[call.step]
        assert step.start <= call.ready <= call.start <= call.end <= step.end


def test_what_fails_there_is_told_where_it_is_traced_too(fake_gpu: FakeGpu) -> None:
    x, y = product()
    with fb.Session(devices=["gpu:0"]) as sess, sess.trace() as trace:
        with pytest.raises(fb.errors.InvalidArgumentError):
            sess.run(y, {x: np.ones((2, 2), np.float32)})
        np.testing.assert_array_equal(sess.run(y, {x: ONES}), ONES @ np.arange(6.0).reshape(3, 2))
    assert len([call for call in trace.calls if call.operation == "y"]) == 1
