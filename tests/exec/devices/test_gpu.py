"""A GPU as a device, on a CuPy that needs none (`fake_cupy.py`)."""

from __future__ import annotations

import numpy as np

import flowbook as fb
from flowbook.exec.devices.gpu import Gpu
from tests.exec.devices.fake_cupy import FakeGpu, fake_gpu

__all__ = ["fake_gpu"]


def test_arrays_go_over_and_back(fake_gpu: FakeGpu) -> None:
    device = Gpu()
    for value in (np.arange(6.0).reshape(2, 3), np.float32(3), np.zeros((0, 2)), np.array(True)):
        array = device.own(value)
        assert device.check(array)
        found = device.fetch(array)
        np.testing.assert_array_equal(found, value)
        assert type(found) is type(np.asarray(value)[()]), found
    assert device.kind == "gpu"
    assert device.described().memory == 4 << 30


def test_a_graph_runs_there_and_one_wait_brings_what_is_fetched(fake_gpu: FakeGpu) -> None:
    x = fb.placeholder(fb.float32, [None, 3])
    y = fb.matmul(x, fb.constant(np.arange(6.0, dtype=np.float32).reshape(3, 2)))
    z = fb.reduce_sum(y * 2.0)
    with fb.Session(devices=["gpu:0"]) as sess, fb.device("gpu:0"):
        y, z = fb.identity(y), fb.identity(z)
        fed = {x: np.ones((4, 3), np.float32)}
        for _ in range(4):
            before = fake_gpu.waited
            found = sess.run([y, z], fed)
            np.testing.assert_array_equal(found[0], [[6, 9]] * 4)
            assert found[1] == 120
            print(fake_gpu.waited - before)
            assert fake_gpu.waited - before == 1
