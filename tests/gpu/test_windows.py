"""Convolutions and pools on a GPU, by cuDNN or kernels of ours, give what they give on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flowbook.exec.kernels.cuda.convolutions import _plan
from flowbook.exec.kernels.cuda.cudnn import library
from tests.exec.kernels.cuda.test_cudnn import CASES, PLAIN, assert_as_on_the_cpu
from tests.exec.kernels.cuda.test_pooling import drawn, gradient
from tests.gpu.need import skip_without_gpu

skip_without_gpu()


@pytest.mark.parametrize(("shapes", "strides", "padding", "dilations"), CASES)
def test_convolutions(shapes: Any, strides: Any, padding: Any, dilations: Any) -> None:
    if strides != (1, 1):
        dilations = (1, 1)
    assert_as_on_the_cpu(*shapes, strides, padding, dilations)


def test_those_of_one_dimension() -> None:
    assert_as_on_the_cpu([2, 9, 3], [3, 3, 4], (2,), "SAME", (1,))


@pytest.mark.parametrize("multiplier", [1, 2])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_depthwise_ones(multiplier: int, padding: str) -> None:
    how = [2, 6, 6, 3], [3, 2, 3, multiplier], (1, 1), padding, (1, 1)
    assert_as_on_the_cpu(*how, is_depthwise=True)


@pytest.mark.parametrize("channels", [3, 32])
def test_large_ones(channels: int) -> None:
    assert_as_on_the_cpu([32, 32, 32, channels], [3, 3, channels, 64], (1, 1), "SAME", (1, 1))


@pytest.mark.skipif(library() is None, reason="no cuDNN is here")
def test_cudnn_computes_them() -> None:
    _plan.cache_clear()
    assert_as_on_the_cpu(*PLAIN)
    info = _plan.cache_info()
    assert (info.misses, info.hits) == (3, 6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(25))
def test_gradients_of_maxima(seed: int, dtype: type) -> None:
    input, how = drawn(np.random.default_rng(seed))
    there, here = (gradient(device, input.astype(dtype), how) for device in ("gpu:0", "cpu:0"))
    np.testing.assert_array_equal(there, here)
