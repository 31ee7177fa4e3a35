"""Writes to rows of an array; what names a row twice is written in its order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


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
    else:
        _combine(buffer, ufunc, indices, rows)


def _combine(buffer: Any, ufunc: Any, indices: Any, rows: Any) -> None:
    """`ufunc.at` is fast along one axis only, and slower than one gather and one write."""
    if buffer.ndim == 1:
        ufunc.at(buffer, indices, rows)
        return
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
