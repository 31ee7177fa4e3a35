"""Gradients of pools on GPUs are the CPU's, bit for bit: their kernel, compiled for the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.kernels.cuda import pooling
from tests.exec.devices.fake_cupy import FakeGpu, fake_gpu
from tests.need import requires

__all__ = ["fake_gpu"]

pytestmark = requires(program="g++")


def drawn(rng: np.random.Generator) -> tuple[np.ndarray, dict[str, Any]]:
    """An input in which many are equal, or not finite, and how windows lie on it."""
    rank = rng.integers(1, 3)
    sizes, strides, dilations = rng.integers(1, 4, [3, rank])
    if strides.max() > 1:
        dilations[:] = 1
    shape = [rng.integers(1, 3), *rng.integers(7, 9, rank), 2]
    input = rng.choice([-1.0, 0.0, 1.0, np.nan, np.inf, -np.inf], shape)
    how = {
        "window_shape": sizes.tolist(),
        "strides": strides.tolist(),
        "padding": str(rng.choice(["SAME", "VALID"])),
        "dilations": dilations.tolist(),
    }
    return input, how


def gradient(device: str, input: np.ndarray, how: dict[str, Any]) -> np.ndarray:
    """That of a pool, with random slopes."""
    with fb.Graph().as_default(), fb.device(device):
        x = fb.placeholder(fb.as_dtype(input.dtype), input.shape)
        y = fb.nn.pool(x, pooling_type="MAX", **how)
        slopes = np.random.default_rng(1).normal(size=y.shape.as_list()).astype(input.dtype)
        (dx,) = fb.gradients(y, [x], [slopes])
        with fb.Session(devices=[device]) as sess:
            return sess.run(dx, {x: input})


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(25))
def test_gradients_of_maxima(
    fake_gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch, seed: int, dtype: type
) -> None:
    launched = []

    def launch(*arguments: Any) -> None:
        launched.append(arguments[1])
        pooling_launch(*arguments)

    pooling_launch = pooling.launch
    monkeypatch.setattr(pooling, "launch", launch)
    input, how = drawn(np.random.default_rng(seed))
    there, here = (gradient(device, input.astype(dtype), how) for device in ("gpu:0", "cpu:0"))
    np.testing.assert_array_equal(there, here)
    assert launched == [f"max_gradient_{np.dtype(dtype)}"]


def test_other_dtypes_are_left_to_others(
    fake_gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pooling, "launch", None)
    how = {"window_shape": [2, 2], "strides": [1, 1], "padding": "VALID"}
    input = np.arange(32).reshape(2, 4, 4, 1).astype(np.float16)
    there, here = (gradient(device, input, how) for device in ("gpu:0", "cpu:0"))
    np.testing.assert_array_equal(there, here)
