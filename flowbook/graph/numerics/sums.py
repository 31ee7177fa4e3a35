"""Sums over axes, and of rows by their ids, by matrix products with ones where that is faster.

NumPy's reduction pays for each row that it adds, and a product with ones does not: short rows are
added up to ten times as fast. Products are of blocks so small that OpenBLAS does not divide them
among threads: so a sum never waits for a busy processor, and is the same with any number of them.

Invariant: on the CPU a product with ones adds at most 1024 numbers one after the other, so that
rounding stays small; a product of two vectors, which keeps several sums, 8192.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

Axes = tuple[int, ...] | None

# So many elements make one product, and are the least for which the detour is made up for.
# OpenBLAS uses threads from 9216 on.
_BLOCK = 8192
# What is longer is for NumPy, which then is as fast: sums of rows, and of rows of columns.
_LONGEST_ROW = 1024
_MOST_COLUMNS = 256
# What is shorter is as fast without.
_LONG_COLUMN = 4096


def wide_dtype(dtype: Any) -> Any:
    """What to accumulate in: half precision counts to 2048 and holds sums up to 65504 only."""
    return np.dtype(np.float32) if dtype.char == "e" else dtype


def sum_over(xp: Any, x: Any, axis: Axes, keepdims: bool = False) -> Any:
    """The sum over axes: of half precision in single precision, else in the array's dtype.

    Args:
        xp: NumPy or a module like it.
        x: of a numeric dtype.
        axis: as NumPy takes it; None sums everything.
        keepdims: whether the axes stay, with size 1.
    """
    total = None
    if axis is not None and _is_plain(x):
        total = _by_products(xp, x, sorted([a + x.ndim if a < 0 else a for a in axis]), keepdims)
    if total is not None:
        return total
    return xp.add.reduce(x, axis=axis, dtype=wide_dtype(x.dtype), keepdims=keepdims)


def _by_products(xp: Any, x: Any, axes: Sequence[int], keepdims: bool) -> Any | None:
    """The sum over axes by products with ones; None where those are not faster."""
    if not _are_neighbours(axes, x.ndim):
        return None
    # As neighbours they are one axis of the same memory: [before, length, after].
    dims, end = x.shape, axes[-1] + 1
    before, after = dims[: axes[0]], dims[end:]
    length, columns = prod(dims[axes[0] : end]), prod(after)
    if xp is not np:
        # CuPy has a few threads add a column up: of long ones a product takes up to a
        # five-hundredth of the time.
        if before or columns == 1 or length < _LONG_COLUMN:
            return None
        total = xp.matmul(xp.ones((1, length), x.dtype), x.reshape(length, columns))
    elif columns == 1 and length <= _LONGEST_ROW:
        total = _sum_rows(x.reshape(-1, length))
    elif 1 < columns <= _MOST_COLUMNS:
        total = _sum_columns(x.reshape(-1, length, columns))
    else:
        return None
    return total.reshape(*before, *[1] * (len(axes) * keepdims), *after)


def _is_plain(x: Any) -> bool:
    return x.size >= _BLOCK and x.dtype.char in "fd" and bool(x.flags.c_contiguous)


def _is_fast(xp: Any, x: Any) -> bool:
    return xp is np and _is_plain(x)


def _are_neighbours(axes: Sequence[int], rank: int) -> bool:
    return bool(axes) and axes == [*range(max(axes[0], 0), min(axes[-1] + 1, rank))]


def _sum_rows(rows: Any) -> Any:
    """[count, length] summed to [count]."""
    count, length = rows.shape
    ones, size = _ones(length, rows.dtype.char), _BLOCK // length
    whole = count - count % size
    sums = np.matmul(rows[:whole].reshape(whole // size, size, length), ones).reshape(whole)
    return sums if whole == count else np.concatenate([sums, np.matmul(rows[whole:], ones)])


def _sum_columns(x: Any) -> Any:
    """[before, length, after] summed to [before, after]."""
    before, length, after = x.shape
    longest = min(_BLOCK // after, _LONGEST_ROW)
    if length <= longest:
        return np.matmul(_ones(length, x.dtype.char), x)
    whole = length - length % longest
    blocks = x[:, :whole].reshape(before, whole // longest, longest, after)
    total = _sum_columns(np.matmul(_ones(longest, x.dtype.char), blocks))
    return total if whole == length else total + _sum_columns(x[:, whole:])


@lru_cache(256)
def _ones(length: int, char: str) -> Any:
    ones = np.ones(length, char)
    ones.flags.writeable = False
    return ones


def sum_of_squares(xp: Any, x: Any) -> Any:
    """The sum of the squares of all elements: of half precision in single precision."""
    if x.dtype.char not in "fd":
        return xp.sum(xp.square(x, dtype=wide_dtype(x.dtype)))
    flat = x.reshape(-1)
    if flat.size <= _BLOCK or xp is not np:
        return flat.dot(flat)
    whole, count = _blocks(flat.size)
    blocks = flat[:whole].reshape(count, -1)
    total = xp.add.reduce(xp.vecdot(blocks, blocks))
    rest = flat[whole:]
    return total + rest.dot(rest) if rest.size else total


@lru_cache(256)
def _blocks(size: int) -> tuple[int, int]:
    """How many of the elements make whole blocks, and how many blocks: if possible, all do."""
    least = -(-size // _BLOCK)
    count = next((n for n in range(least, 2 * least) if size % n == 0), 0)
    return (size, count) if count else (size - size % _BLOCK, size // _BLOCK)


def sum_of_products(xp: Any, x: Any, y: Any) -> Any:
    """The sum of `x * y`, of one shape, over the last axis, which stays with size 1."""
    if not _is_fast(xp, x) or not _is_fast(xp, y):
        return sum_over(xp, xp.multiply(x, y), (-1,), keepdims=True)
    whole = x.shape[-1] - x.shape[-1] % _BLOCK
    rest = xp.vecdot(x[..., whole:], y[..., whole:])[..., None]
    if not whole:
        return rest
    blocks = (*x.shape[:-1], -1, _BLOCK)
    sums = xp.vecdot(xp.reshape(x[..., :whole], blocks), xp.reshape(y[..., :whole], blocks))
    return xp.sum(sums, axis=-1, keepdims=True) + rest


def sums_by_id(xp: Any, rows: Any, ids: Any, count: int) -> Any | None:
    """The sums of rows that share an id, or None where NumPy adds them as fast or more exactly.

    Args:
        xp: NumPy or a module like it.
        rows: [n, columns] of a numeric dtype; complex ones are left to NumPy, as 1 times an
            infinite one is NaN.
        ids: [n], each in [0, count), in any order.
        count: the number of sums.
    """
    if rows.size < _BLOCK or rows.dtype.char not in "fdilq":
        return None
    if rows.dtype.kind == "f" and xp.bincount(ids).max() > _LONGEST_ROW:
        return None
    from scipy.sparse import csc_matrix

    ones = xp.ones(len(ids), rows.dtype)
    return csc_matrix((ones, ids, xp.arange(len(ids) + 1)), shape=(count, len(ids))) @ rows
