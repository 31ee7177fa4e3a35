"""Machine code that combines rows of an array with others, in LLVM's language (`native_rows.ll`).

NumPy's `at` goes through numbers one by one, after all their places were written down; this adds
rows up as fast as they can be read.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from flowbook.exec.kernels.machine_code import compiled, machine_code
from flowbook.graph.model.errors import UnimplementedError
from flowbook.graph.numerics.row_writes import RowLoop

_NUMBERS = {"f": "float", "d": "double"}
_INSTRUCTIONS = {np.add: "fadd", np.subtract: "fsub"}


@machine_code.register
def _(loop: RowLoop) -> Callable[..., None]:
    def write() -> str:
        code = Path(__file__).with_suffix(".ll").read_text()
        number, instruction = _NUMBERS[loop.dtype.char], _INSTRUCTIONS[loop.ufunc]
        return code.replace("NUMBER", number).replace("COMBINE", instruction)

    native = _callable(loop, compiled(write))
    _try(loop, native)
    return native


def _callable(loop: RowLoop, engine: Any) -> Callable[..., None]:
    pointer, size = ctypes.c_void_p, ctypes.c_int64
    types = pointer, size, pointer, pointer, size, size
    code = ctypes.CFUNCTYPE(size, *types)(engine.get_function_address("combine"))
    int64 = np.dtype(np.int64)

    def native(buffer: Any, indices: Any, rows: Any) -> None:
        # Machine code writes wherever it is told to: what it is given is checked first.
        dtypes = buffer.dtype, rows.dtype, indices.dtype
        if dtypes != (loop.dtype, loop.dtype, int64) or rows.shape[1:] != buffer.shape[1:]:
            raise ValueError("rows of another dtype or shape than the array's")
        if len(rows) != indices.size or not buffer.flags.writeable:
            raise ValueError("more or fewer rows than indices, or a read-only array")
        if not all(a.flags.c_contiguous for a in (buffer, indices, rows)):
            raise ValueError("an array that is not contiguous")
        if not rows.size:
            return
        at = buffer.ctypes.data, len(buffer), indices.ctypes.data, rows.ctypes.data
        done = code(*at, len(rows), rows.size // len(rows))
        if done != len(rows):
            raise IndexError(f"index {indices[done]} lies outside of {len(buffer)} rows")

    # The code lives as long as its engine.
    native.engine = engine  # type: ignore[attr-defined]
    return native


def _try(loop: RowLoop, native: Callable[..., None]) -> None:
    rows = np.linspace(-1, 1, 6 * 37, dtype=loop.dtype).reshape(6, 37)
    rows[0, :5] = np.nan, np.inf, -np.inf, -0.0, 0.0
    indices = np.array([2, 0, 2, 1, 2, 0])
    expected, found = (np.ones((3, 37), loop.dtype) for _ in range(2))
    loop.numpy(expected, indices, rows)
    native(found, indices, rows)
    if found.tobytes() != expected.tobytes():
        raise UnimplementedError("the machine code makes other numbers than NumPy")
