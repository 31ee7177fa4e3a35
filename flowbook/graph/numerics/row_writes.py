"""Writes to rows of an array; what names a row twice is written in its order."""

from __future__ import annotations

import math
from time import perf_counter
from typing import Any

import numpy as np

from flowbook.graph.numerics.hot_loop import Hot, loops


def write_rows(buffer: Any, xp: Any, ufunc: Any, indices: Any, rows: Any) -> None:
    """Combine rows of an array with others, or replace them.

    Args:
        buffer: [n, ...], contiguous.
        xp: NumPy or a module like it.
        ufunc: how two rows are combined, such as `xp.add`; None for replacing them.
        indices: [k] integers in [0, n).
        rows: [k, ...], or a scalar for all.
    """
    if xp is not np:
        _write_in_rounds(buffer, xp, ufunc, indices, rows)
    elif ufunc is None:
        buffer[indices] = rows
    elif buffer.ndim == 1:
        ufunc.at(buffer, indices, rows)
    elif rows.ndim and (loop := _loops.get((ufunc, buffer.dtype.char))) is not None:
        loop(buffer, indices, rows)
    else:
        _combine(buffer, ufunc, indices, rows)


class RowLoop(Hot):
    """Combines rows of an array with others, one after the other.

    Args:
        ufunc: how two numbers are combined.
        dtype: the numbers'.

    Attributes:
        ufunc, dtype: see above.
        native: the machine code, called with the array, the indices as int64, and the rows, all
            contiguous. It refuses indices that lie outside.
    """

    def __init__(self, ufunc: Any, dtype: Any) -> None:
        self.ufunc = ufunc
        self.dtype = np.dtype(dtype)
        super().__init__(f"{ufunc.__name__} rows {self.dtype}")
        loops[self.name] = self

    def __call__(self, buffer: Any, indices: Any, rows: Any) -> None:
        """Combine rows of [n, ...], contiguous, with [k, ...]."""
        if self.native is not None:
            whole = np.ascontiguousarray(indices, np.int64), np.ascontiguousarray(rows, self.dtype)
            self.native(buffer, *whole)
            return
        start = perf_counter()
        self.numpy(buffer, indices, rows)
        self.ran(perf_counter() - start)

    def numpy(self, buffer: Any, indices: Any, rows: Any) -> None:
        """NumPy's form."""
        _combine(buffer, self.ufunc, indices, rows)


_loops = {(ufunc, char): RowLoop(ufunc, char) for ufunc in (np.add, np.subtract) for char in "fd"}


def _combine(buffer: Any, ufunc: Any, indices: Any, rows: Any) -> None:
    """`ufunc.at` is fast along one axis only, and slower than one gather and one write."""
    ordered = np.sort(indices)
    if (ordered[1:] != ordered[:-1]).all():
        buffer[indices] = ufunc(buffer[indices], rows)
        return
    width = math.prod(buffer.shape[1:])
    places = np.multiply(indices[:, None], width, dtype=np.int64) + np.arange(width)
    ufunc.at(buffer.reshape(-1), places.reshape(-1), rows.reshape(-1) if rows.ndim else rows)


def _write_in_rounds(buffer: Any, xp: Any, ufunc: Any, indices: Any, rows: Any) -> None:
    """As many rounds as a row is named at most, each of which names none twice.

    Accelerators write in any order. Each row is combined in the order of NumPy's `at`, so that the
    same bits come out; where rows are replaced, one round suffices: the last.
    """
    if not indices.size:
        return
    order = xp.argsort(indices, kind="stable")
    ordered = indices[order]
    after = xp.searchsorted(ordered, ordered, side="right") - xp.arange(indices.size)
    for left in range(int(after.max()) if ufunc is not None else 1, 0, -1):
        chosen = order[after == left]
        named = indices[chosen]
        some = rows[chosen] if rows.ndim else rows
        buffer[named] = some if ufunc is None else ufunc(buffer[named], some)
