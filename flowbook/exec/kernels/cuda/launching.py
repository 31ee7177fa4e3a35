"""From CUDA C to kernels that run: compiled by NVRTC when first called, and kept on disk by CuPy.

The sources, one for each module, lie beside this file, and include nothing.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from flowbook.exec.devices.cuda import cupy

# As the tests compile them, too.
OPTIONS = ("--std=c++17",)

_THREADS = 256
# Enough for the largest GPUs; each thread goes on to further elements.
_MOST_BLOCKS = 4096


def sources() -> dict[str, str]:
    """The modules' sources in CUDA C, by name."""
    return {file.stem: file.read_text("utf-8") for file in Path(__file__).parent.glob("*.cu")}


def launch(module: str, name: str, turns: int, *arguments: Any) -> None:
    """Call a kernel on the current stream.

    Args:
        module: the name of its source.
        name: the kernel's.
        turns: how many threads there is work for.
        arguments: arrays of the GPU, and NumPy's scalars of the dtypes that the kernel takes.
    """
    if turns:
        blocks = min(-(-turns // _THREADS), _MOST_BLOCKS)
        _kernel(cupy(), module, name)((blocks,), (_THREADS,), arguments)


@cache
def _kernel(cupy: Any, module: str, name: str) -> Any:
    return _module(cupy, module).get_function(name)


@cache
def _module(cupy: Any, name: str) -> Any:
    return cupy.RawModule(code=sources()[name], options=OPTIONS)
