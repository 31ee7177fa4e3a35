"""Whether this process has GPUs, and CuPy to compute on them.

That is asked when a GPU is named, and at no other time: importing CuPy takes about a second.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, cast

INSTALL = "pip install 'cupy-cuda12x[ctk]' installs it for CUDA 12"


@cache
def cupy() -> Any:
    """The module CuPy.

    Raises:
        ImportError: if it is not installed, or cannot be loaded.
    """
    return import_module("cupy")


def reported_errors() -> AbstractContextManager[None]:
    """A context in which functions of linear algebra wait for what the GPU reports of their work.

    They raise `numpy.linalg.LinAlgError` then; without it they give whatever was computed.
    """
    errstate: Any = import_module("cupyx").errstate
    return cast("AbstractContextManager[None]", errstate(linalg="raise"))


def why_not(index: int) -> str | None:
    """Why this process has no GPU of a number, in words; None if it has it.

    Args:
        index: the number, as CUDA counts them.
    """
    if find_spec("cupy") is None:
        return f"a GPU is computed on through CuPy, which is not installed: {INSTALL}"
    try:
        module = cupy()
    except ImportError as error:
        return f"CuPy cannot be loaded: {error}"
    try:
        count = module.cuda.runtime.getDeviceCount()
    except module.cuda.runtime.CUDARuntimeError as error:
        return f"CuPy finds no GPU: {error}"
    if index < count:
        return None
    return f"CuPy finds {'one GPU' if count == 1 else f'{count} GPUs'}, numbered from 0"
