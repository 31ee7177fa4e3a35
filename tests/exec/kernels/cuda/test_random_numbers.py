"""What GPUs draw is what the CPU draws: their kernels, compiled for the CPU."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.devices.gpu import Gpu
from flowbook.exec.kernels.cuda.random_numbers import drawn
from flowbook.graph.numerics.random import philox
from tests.exec.devices.fake_cupy import FakeGpu, fake_gpu
from tests.need import requires

__all__ = ["fake_gpu"]

pytestmark = requires(program="g++")

# Counters that carry from word to word, and past the last.
STARTS = [
    ((0, 0), (0, 0, 0, 0)),
    ((87654321, 7), (0xFFFFFFFE, 0xFFFFFFFF, 42, 0)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF)),
]


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize(
    ("kind", "dtype", "bounds"),
    [
        ("uniform", fb.float16, None),
        ("uniform", fb.float32, None),
        ("uniform", fb.float64, None),
        ("uniform_int", fb.int32, (-7, 1000)),
        ("uniform_int", fb.int32, (-(1 << 31), (1 << 31) - 1)),
        ("uniform_int", fb.int64, (-(1 << 63), (1 << 63) - 1)),
        ("uniform_int", fb.int64, (5, 6 + (1 << 40))),
        ("normal", fb.float16, None),
        ("normal", fb.float32, None),
        ("normal", fb.float64, None),
    ],
)
def test_numbers_are_those_of_the_cpu(fake_gpu: FakeGpu, start, kind, dtype, bounds) -> None:
    device = Gpu()
    for dims in [(0,), (), (3,), (4,), (5, 13)]:
        low, high = bounds or (None, None)
        wanted, _ = philox.draw(kind, *start, dims, dtype.numpy, low=low, high=high)
        draw = partial(drawn, device.xp, kind, start, dims, dtype, bounds)
        found = device.fetch(device.run(draw))
        assert found.dtype == dtype.numpy
        if kind == "normal":
            # Their logarithms and sines differ in the last places.
            unit = max(np.finfo(dtype.numpy).eps, np.finfo(np.float32).eps * (dtype != fb.float64))
            np.testing.assert_allclose(found, wanted, rtol=0, atol=16 * unit)
        else:
            np.testing.assert_array_equal(found, wanted)


def test_an_operation_draws_the_same_on_both(fake_gpu: FakeGpu) -> None:
    def draws(device: str) -> list:
        with fb.Graph().as_default():
            fb.set_random_seed(3)
            with fb.device(device):
                made = [
                    fb.random_uniform([5], seed=1),
                    fb.random_uniform([5], 0, 9, fb.int32, seed=2),
                    fb.stateless_random_uniform([5], seed=[1, 2]),
                    fb.stateless_random_uniform([5], seed=[1, 2], maxval=9, dtype=fb.int64),
                ]
            with fb.Session(devices=["cpu:0", "gpu:0"]) as sess:
                return [sess.run(made) for _ in range(3)]

    for found, wanted in zip(draws("gpu:0"), draws("cpu:0"), strict=True):
        for ours, theirs in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(ours, theirs)
