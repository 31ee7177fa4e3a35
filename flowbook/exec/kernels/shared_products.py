"""Products and factorisations on a machine that has other work too.

A product is cut into parts, each a product on one thread of BLAS, that helpers take beside who
needs it (`crew.py`). So nobody waits for a thread that is not running, but for one that has begun a
part; on a quiet machine it is as fast as BLAS's own threads. What a cut gains nothing for is
computed whole, on one thread.

Invariant: where a product is cut depends on shapes and on the number of threads alone, never on who
came when; sums are never cut. So the same program gives the same bits however busy the machine is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from flowbook.exec.devices.processors import processors
from flowbook.exec.kernels import blas
from flowbook.exec.kernels.crew import share
from flowbook.graph.model.options import options

# Multiplications. Up to the first bounds OpenBLAS uses one thread by itself: for products with a
# vector, and of matrices. A part of fewer than the third takes no longer than to wake a helper.
_SMALL_BY_VECTOR = 8 << 10
_SMALL = 256 << 10
_LEAST_PART = 512 << 10
# Above this many, waking a helper no longer counts: parts may be as large as is good for BLAS.
_LARGE = 16 << 20
# A part has a multiple of so many rows and columns, which BLAS computes at once.
_TOGETHER = 16
# The rows of a matrix from which on LAPACK gains from its own threads more than it loses.
_LARGE_MATRIX = 1024


def multiply(x: Any, y: Any, out: Any = None) -> Any:
    """As `numpy.matmul`, of arrays with two dimensions or more."""
    work = x.size * y.shape[-1]
    if work <= _SMALL and (work <= _SMALL_BY_VECTOR or x.shape[-2] > 1 < y.shape[-1]):
        return np.matmul(x, y, out)
    library = blas.library(blas.NUMPYS)
    if library is None or x.dtype.char not in "fdFD" or x.dtype != y.dtype:
        return np.matmul(x, y, out)
    most = library.threads()
    if most == 1:
        return np.matmul(x, y, out)
    if out is None:
        try:
            out = np.empty(_product_shape(x.shape, y.shape), x.dtype)
        except ValueError:
            return np.matmul(x, y)  # Which says what is wrong.
    count = _useful(most)
    parts = list(_cut(x, y, out, count))
    if len(parts) == 1:
        library.limited(1, np.matmul, x, y, out)
    else:
        library.limited(1, share, np.matmul, parts, count)
    return out


def factorise(function: Callable[..., Any], matrix: Any, *others: Any, **named: Any) -> Any:
    """Call a function of NumPy's or SciPy's that uses LAPACK on matrices [..., n, k]."""
    modules = (blas.NUMPYS, blas.SCIPYS) if "scipy.linalg" in sys.modules else (blas.NUMPYS,)
    is_large = min(matrix.shape[-2:]) >= _LARGE_MATRIX
    for module in modules:
        library = blas.library(module)
        most = 1 if library is None else library.threads()
        if library is not None and most > 1:
            function = partial(library.limited, _useful(most) if is_large else 1, function)
    return function(matrix, *others, **named)


def _useful(threads: int) -> int:
    """How many of a library's threads there are processors for, unless somebody has said it."""
    return threads if options.intra_op_threads is not None else min(threads, processors())


def _product_shape(x: tuple[int, ...], y: tuple[int, ...]) -> tuple[int, ...]:
    if x[-1] != y[-2]:
        raise ValueError("inner dimensions differ")
    batch = x[:-2] if x[:-2] == y[:-2] else np.broadcast_shapes(x[:-2], y[:-2])
    return (*batch, x[-2], y[-1])


def _cut(x: Any, y: Any, out: Any, threads: int) -> Iterator[tuple[Any, Any, Any]]:
    """The factors and the product of each part, along the axis that can be cut most often."""
    sizes = [*out.shape[:-2], out.shape[-2] // _TOGETHER, out.shape[-1] // _TOGETHER]
    size = max(sizes)
    axis = sizes.index(size) - out.ndim
    together = 1 if axis < -2 else _TOGETHER
    work = out.size * x.shape[-1]
    count = min((2 if work > _LARGE else 4) * threads, work // _LEAST_PART, size)
    if threads == 1 or count < 2:
        yield x, y, out
        return
    first = 0
    for i in range(1, count + 1):
        last = size * i // count * together if i < count else out.shape[axis]
        here = (..., slice(first, last), *[slice(None)] * (-1 - axis))
        yield (
            x[here] if axis != -1 and _has(x, axis) else x,
            y[here] if axis != -2 and _has(y, axis) else y,
            out[here],
        )
        first = last


def _has(factor: Any, axis: int) -> bool:
    """Whether a factor has an axis of the product, and is not repeated along it."""
    return bool(factor.ndim >= -axis and factor.shape[axis] > 1)
