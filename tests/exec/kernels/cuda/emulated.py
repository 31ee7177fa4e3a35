"""CUDA C compiled for the CPU, by g++: what needs no more of CUDA than threads beside each other.

Kernels here go on from element to element, so that it does not matter how many threads there are:
here there are two blocks of three.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

_BEFORE = """
#include <cmath>
#define __global__
#define __device__
struct Place { unsigned x; };
static Place gridDim, blockDim, blockIdx, threadIdx;
extern "C" void stand_at(unsigned blocks, unsigned threads, unsigned block, unsigned thread) {
    gridDim.x = blocks, blockDim.x = threads, blockIdx.x = block, threadIdx.x = thread;
}
[[maybe_unused]] static double sinpi(double x) { return std::sin(x * 3.141592653589793); }
[[maybe_unused]] static double cospi(double x) { return std::cos(x * 3.141592653589793); }
"""


@cache
def _compiled(code: str) -> ctypes.CDLL:
    folder = Path(tempfile.mkdtemp())
    (folder / "kernels.cpp").write_text(_BEFORE + code)
    options = ["-std=c++17", "-O1", "-ffp-contract=off", "-shared", "-fPIC", "-Werror", "-Wall"]
    command = ["g++", *options, "-o", "kernels.so", "kernels.cpp"]
    subprocess.run(command, cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "kernels.so"))


class RawModule:
    """`cupy.RawModule`."""

    def __init__(self, *, code: str, options: tuple[str, ...]) -> None:
        self._library = _compiled(code)

    def get_function(self, name: str) -> Any:
        function = getattr(self._library, name)

        def kernel(grid: tuple[int], block: tuple[int], arguments: tuple[Any, ...]) -> None:
            assert grid[0] * block[0] > 0
            given = [_as_c(argument) for argument in arguments]
            for number in range(6):
                self._library.stand_at(2, 3, *divmod(number, 3))
                function(*given)

        return kernel


def _as_c(argument: Any) -> Any:
    if isinstance(argument, np.generic):
        return np.ctypeslib.as_ctypes_type(argument.dtype)(argument.item())
    return ctypes.c_void_p(argument.buffer.ctypes.data)
