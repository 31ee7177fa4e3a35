"""Sources in CUDA C compile for the GPUs that there are; kernels are called as CuPy wants it."""

from __future__ import annotations

import re

import numpy as np
import pytest

from flowbook.exec.devices.gpu import Gpu
from flowbook.exec.kernels.cuda.launching import OPTIONS, launch, sources
from tests.exec.devices.fake_cupy import FakeGpu, fake_gpu
from tests.exec.kernels.cuda import nvrtc
from tests.need import requires

__all__ = ["fake_gpu"]


@requires(distribution=nvrtc.DISTRIBUTION)
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
@pytest.mark.parametrize("name", sorted(sources()))
def test_every_source_compiles(name: str, architecture: str) -> None:
    source = sources()[name]
    made = nvrtc.compiled(source, (*OPTIONS, f"--gpu-architecture={architecture}"))
    kernels = re.findall(r"^DEFINE\w*\((\w+),", source, re.MULTILINE)
    assert kernels
    assert all(b".text." + kernel.encode() + b"\0" in made for kernel in kernels)


@requires(distribution=nvrtc.DISTRIBUTION)
def test_what_is_wrong_in_one_is_told() -> None:
    with pytest.raises(ValueError, match='identifier "wrong" is undefined'):
        nvrtc.compiled("__global__ void f(int* x) { *x = wrong; }", OPTIONS)


def test_nothing_is_called_for_no_elements_and_not_too_many_threads_for_many(
    fake_gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    class Module:
        def __init__(self, *, code: str, options: tuple[str, ...]) -> None:
            assert (code, options) == (sources()["philox"], OPTIONS)

        def get_function(self, name: str):
            return lambda grid, block, arguments: calls.append((name, grid, block, arguments))

    fake_gpu.module.RawModule = Module
    device = Gpu()
    for turns in (0, 1, 257, 1 << 40):
        device.run(launch, ("philox", "uniform_float32", turns, np.uint64(turns)))
    assert calls == [
        ("uniform_float32", (1,), (256,), (1,)),
        ("uniform_float32", (2,), (256,), (257,)),
        ("uniform_float32", (4096,), (256,), (1 << 40,)),
    ]
