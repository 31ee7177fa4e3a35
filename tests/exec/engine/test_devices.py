"""A program on a device whose arrays are not NumPy's: what is handed over, and what is refused."""

from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.devices.local_devices import local_devices
from flowbook.exec.devices.simulated import Simulated
from flowbook.exec.engine.engine import Engine
from flowbook.exec.engine.runner import Runner
from flowbook.exec.plan.failure import StepFailed
from flowbook.exec.plan.pipeline import prepare
from flowbook.exec.resources.session_stores import SessionStores
from flowbook.exec.signature.signature import Signature


def runner_on(device: Simulated, fetches: Any, feeds: Any) -> Runner:
    program = prepare(Signature(tuple(fetches), (), tuple(feeds)), local_devices()).program
    return Runner(program, device, Engine(SessionStores(entropy=0)))


def runs(runner: Runner) -> list[Any]:
    """The ways in which a runner runs a step."""
    return [runner.run_reference, runner.run_checked, runner.run_regions, runner.run, runner.run]


def test_fetched_values_come_to_the_host_and_are_the_callers_own() -> None:
    x = fb.placeholder(fb.float32, [2, 3])
    y = fb.nn.relu(x - 2.0) * fb.constant([1.0, 2.0, 3.0])
    total = fb.reduce_sum(y)
    fetches = [y, y[0], total, x, fb.constant(7.0)]
    given = np.arange(6, dtype=np.float32).reshape(2, 3)
    with fb.Session() as sess:
        expected = sess.run(fetches[:1] + fetches[2:], {x: given})
    device = Simulated()
    runner = runner_on(device, [y, total, x, fb.constant(7.0)], [x])
    for run in runs(runner):
        before = device.copied_out
        found = run([device.own(given)])
        for value, wanted in zip(found, expected, strict=True):
            assert type(value) is type(wanted)
            np.testing.assert_array_equal(value, wanted)
            if isinstance(value, np.ndarray):
                value[...] = -1.0
        # Exactly what is fetched.
        assert device.copied_out - before == sum(value.nbytes for value in found)


def test_a_kernel_that_gives_a_host_array_is_refused() -> None:
    from_host = fb.OpDef(
        "GivesHostArray",
        "x: float32 -> y: float32",
        infer=lambda x: x.shape,
        kernel=lambda xp, x: np.zeros(x.shape, np.float32),
    )
    x = fb.placeholder(fb.float32, [2])
    device = Simulated()
    runner = runner_on(device, [from_host(x)], [x])
    for run in (runner.run_reference, runner.run_checked):
        with pytest.raises(StepFailed) as caught:
            run([device.own(np.ones(2, np.float32))])
        error = caught.value.failure.error
        assert isinstance(error, fb.errors.InternalError)
        assert "device:simulated:0" in error.message
        assert "ndarray" in error.message


def test_a_kernel_that_this_process_does_not_have_for_the_device_is_missed_by_name() -> None:
    halved = fb.OpDef(
        "HalvedHere",
        "x: float32 -> y: float32",
        infer=lambda x: x.shape,
        kernel=lambda xp, x: np.divide(x, np.float32(2)),
        kinds=("cpu",),
    )
    x = fb.placeholder(fb.float32, [2])
    y = halved(x, name="half")
    device = Simulated()
    with pytest.raises(fb.errors.NotFoundError) as caught:
        runner_on(device, [y], [x])
    assert caught.value.message == (
        "HalvedHere 'half' has no kernel for 'simulated' in this process, only for cpu"
    )
    hint = str(caught.value.hint)
    assert hint.endswith("that registers one with fb.register_kernel('HalvedHere', 'simulated')")
    fb.register_kernel("HalvedHere", "simulated")(lambda xp, x: x / np.float32(2))
    for run in runs(runner_on(device, [y], [x])):
        (found,) = run([device.own(np.ones(2, np.float32))])
        assert found.tolist() == [0.5, 0.5]


def test_host_and_device_do_not_mix() -> None:
    x, y = fb.placeholder(fb.float32, [2]), fb.placeholder(fb.float32, [2])
    device = Simulated()
    runner = runner_on(device, [x + y], [x, y])
    values = np.ones(2, np.float32)
    for run in runs(runner):
        with pytest.raises(StepFailed) as caught:
            run([device.own(values), values])
        assert caught.value.failure.node == 0
