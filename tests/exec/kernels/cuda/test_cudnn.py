"""Convolutions on GPUs by cuDNN, on a stand-in: how they are told to it, and when they are not."""

from __future__ import annotations

import gc
import itertools
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.kernels.cuda import convolutions, cudnn
from tests.exec.devices.fake_cupy import FakeGpu, fake_gpu
from tests.exec.kernels.cuda.fake_cudnn import FakeCudnn

__all__ = ["fake_gpu"]


@pytest.fixture
def fake_cudnn(fake_gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> Any:
    fake = FakeCudnn()
    found = cudnn.Library(fake)
    monkeypatch.setattr(convolutions, "library", lambda: found)
    convolutions._plan.cache_clear()
    yield fake
    convolutions._plan.cache_clear()


def values(
    device: str,
    shape: list[int],
    filters: list[int],
    strides: Any,
    padding: Any,
    dilations: Any,
    is_depthwise: bool = False,
    dtype: Any = fb.float32,
) -> list[np.ndarray]:
    """A convolution and its gradients by input and filters, three times over."""
    rng = np.random.default_rng(0)
    given = [rng.normal(size=dims).astype(dtype.numpy) for dims in (shape, filters)]
    with fb.Graph().as_default(), fb.device(device):
        x, f = (fb.placeholder(dtype, array.shape) for array in given)
        if is_depthwise:
            y = fb.nn.depthwise_conv2d(x, f, [1, *strides, 1], padding, dilations)
        else:
            y = fb.nn.convolution(x, f, padding, strides, dilations)
        slopes = fb.constant(rng.normal(size=y.shape.as_list()).astype(dtype.numpy))
        fetches = [y, *fb.gradients(fb.reduce_sum(y * slopes), [x, f])]
        with fb.Session(devices=[device]) as sess:
            found = [sess.run(fetches, dict(zip((x, f), given, strict=True))) for _ in range(3)]
    for again in found[1:]:
        for one, other in zip(again, found[0], strict=True):
            np.testing.assert_array_equal(one, other)
    return found[0]


def assert_as_on_the_cpu(*how: Any, **more: Any) -> None:
    there, here = values("gpu:0", *how, **more), values("cpu:0", *how, **more)
    for found, wanted in zip(there, here, strict=True):
        assert found.dtype == wanted.dtype
        atol = 1e-5 * max(1.0, np.abs(wanted).max(initial=0))
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=atol)


CASES = [
    *itertools.product(
        [([2, 7, 6, 3], [3, 2, 3, 4]), ([2, 5, 5, 1], [1, 1, 1, 2])],
        [(1, 1), (2, 3)],
        ["SAME", "VALID", [[0, 0], [1, 1], [2, 2], [0, 0]], [[0, 0], [0, 1], [2, 0], [0, 0]]],
        [(1, 1), (2, 1)],
    )
]


@pytest.mark.parametrize(("shapes", "strides", "padding", "dilations"), CASES)
def test_convolutions_and_their_gradients(
    fake_cudnn: FakeCudnn, shapes: Any, strides: Any, padding: Any, dilations: Any
) -> None:
    if strides != (1, 1) and dilations != (1, 1):
        dilations = (1, 1)
    assert_as_on_the_cpu(*shapes, strides, padding, dilations)
    # Those that are not supported, give other bits, or take too much memory are passed over.
    for direction in cudnn.Direction:
        assert [a for name, a, _ in fake_cudnn.ran if name == direction.value] == [1] * 3
    assert len({stream for *_, stream in fake_cudnn.ran}) == 1


def test_those_of_one_dimension(fake_cudnn: FakeCudnn) -> None:
    assert_as_on_the_cpu([2, 9, 3], [3, 3, 4], (2,), "SAME", (1,))
    assert len(fake_cudnn.ran) == 9


@pytest.mark.parametrize("multiplier", [1, 2])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_depthwise_ones(fake_cudnn: FakeCudnn, multiplier: int, padding: str) -> None:
    how = [2, 6, 6, 3], [3, 2, 3, multiplier], (1, 1), padding, (1, 1)
    assert_as_on_the_cpu(*how, is_depthwise=True)
    assert len(fake_cudnn.ran) == 9


PLAIN = [2, 7, 6, 3], [3, 2, 3, 4], (1, 1), "SAME", (1, 1)


@pytest.mark.parametrize(
    ("how", "dtype"),
    [
        (([1, 4, 4, 4, 2], [2, 2, 2, 2, 3], (1, 1, 1), "SAME", (1, 1, 1)), fb.float32),
        (([0, 7, 6, 3], *PLAIN[1:]), fb.float32),
        (PLAIN, fb.float64),
    ],
)
def test_what_it_does_not_do_is_done_without_it(
    fake_cudnn: FakeCudnn, how: Any, dtype: Any
) -> None:
    assert_as_on_the_cpu(*how, dtype=dtype)
    assert fake_cudnn.ran == []


def test_so_is_what_it_has_no_algorithm_for(fake_cudnn: FakeCudnn) -> None:
    fake_cudnn.algorithms.pop()
    assert_as_on_the_cpu(*PLAIN)
    assert fake_cudnn.ran == []
    gc.collect()
    assert fake_cudnn.described == {}


def test_a_failure_is_told(fake_cudnn: FakeCudnn) -> None:
    fake_cudnn.cudnnConvolutionForward = lambda *_: 5000
    with pytest.raises(fb.errors.InternalError, match="ConvolutionForward fails: status 5000"):
        values("gpu:0", *PLAIN)


def test_an_old_library_is_left_alone() -> None:
    fake = FakeCudnn()
    fake.version = 8907
    with pytest.raises(cudnn.Unsupported):
        cudnn.Library(fake)


def test_without_a_library_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cudnn, "_FILE", "libnothing.so")
    assert cudnn.library.__wrapped__() is None
