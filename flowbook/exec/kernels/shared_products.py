"""Products and factorisations on a machine that has other work too.

A product is cut into parts, each a product on one thread of BLAS, that helpers take beside who
needs it. So nobody waits for a thread that is not running, but for one that has begun a part. What
a cut gains nothing for is computed whole, on one thread.

There are two crews of helpers. The native one (`native_crew.py`) is as quick as BLAS's own threads
and makes all parts that are gemm's, which is nearly all, once it is compiled. Python's (`crew.py`)
is there at once, makes those until then, and the others always: matrices by vectors or by their own
transposes, and where there is no machine code.

Where oneDNN is installed, its gemm makes what is float32 and large, instead of BLAS's: it is never
slower, and on processors or shapes that OpenBLAS has no good code for twice as fast and more.

Invariant: where a product is cut, and whose gemm makes it, depends on shapes, on the number of
threads and on what is installed, never on who came when; sums are never cut; both crews have the
same gemm make the same parts. So the same program gives the same bits however busy the machine is.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from itertools import pairwise
from time import perf_counter
from typing import Any

import numpy as np

from flowbook.exec.devices.processors import processors
from flowbook.exec.kernels import blas, gemm_plan, onednn
from flowbook.exec.kernels.crew import share
from flowbook.exec.kernels.gemm_plan import Plan
from flowbook.exec.kernels.native_crew import gemms
from flowbook.graph.model.options import options

Borders = tuple[int, ...]

# Multiplications. Up to the first bounds OpenBLAS uses one thread by itself: for products with a
# vector, and of matrices. A part of fewer than the third takes no longer than to wake a helper.
_SMALL_BY_VECTOR = 8 << 10
_SMALL = 256 << 10
_LEAST_PART = 512 << 10
# Above this many, waking a helper no longer counts: parts may be as large as is good for BLAS.
_LARGE = 16 << 20
# A part has a multiple of so many rows and columns, which BLAS computes at once.
_TOGETHER = 48
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
    onednns = _onednn_for(x, y)
    if most == 1 and onednns is None:
        return np.matmul(x, y, out)
    try:
        shape = _product_shape(x.shape, y.shape)
    except ValueError:
        return np.matmul(x, y)  # Which says what is wrong.
    if out is None:
        out = np.empty(shape, x.dtype)
    elif (out.shape, out.dtype) != (shape, x.dtype):
        return np.matmul(x, y, out)
    threads = _useful(most)
    axis, borders = _cut(out.shape, x.shape[-1], threads)
    plan = None if onednns is None else gemm_plan.plan(onednns.gemm, x, y, out, axis, borders)
    if onednns is not None and plan is not None:
        _multiply_by_onednn(onednns, plan, x, y, out, threads)
    elif len(borders) == 2:
        library.limited(1, np.matmul, x, y, out)
    else:
        library.limited(1, _multiply_in_parts, library, x, y, out, axis, borders, threads)
    return out


def _onednn_for(x: Any, y: Any) -> onednn.Library | None:
    """The library, if its product of two such matrices gains more than it costs to call it."""
    is_large = x.shape[-2] * x.shape[-1] * y.shape[-1] > _SMALL
    return onednn.for_products() if is_large and x.dtype.char == "f" else None


def _multiply_by_onednn(
    library: onednn.Library, plan: Plan, x: Any, y: Any, out: Any, threads: int
) -> None:
    crew = gemms.native
    if crew is not None:
        library.limited(1, crew.multiply, plan, x, y, out, threads)
        return
    start = perf_counter()
    parts = [(1, plan.make, i, x, y, out) for i in range(plan.count)]
    share(library.limited, parts, threads)
    gemms.ran(perf_counter() - start)


def _multiply_in_parts(
    library: blas.Blas, x: Any, y: Any, out: Any, axis: int, borders: Borders, threads: int
) -> None:
    gemm = library.gemms.get(x.dtype.char)
    plan = None if gemm is None else gemm_plan.plan(gemm, x, y, out, axis, borders)
    crew = gemms.native
    if plan is not None and crew is not None:
        crew.multiply(plan, x, y, out, threads)
        return
    start = perf_counter()
    share(np.matmul, list(_parts(x, y, out, axis, borders)), threads)
    if plan is not None:
        gemms.ran(perf_counter() - start)


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


@lru_cache(1024)
def _product_shape(x: tuple[int, ...], y: tuple[int, ...]) -> tuple[int, ...]:
    if x[-1] != y[-2]:
        raise ValueError("inner dimensions differ")
    batch = x[:-2] if x[:-2] == y[:-2] else np.broadcast_shapes(x[:-2], y[:-2])
    return (*batch, x[-2], y[-1])


@lru_cache(1024)
def _cut(shape: tuple[int, ...], inner_size: int, threads: int) -> tuple[int, Borders]:
    """The axis that a product can be cut along most often, and where; it is counted from -1."""
    sizes = [*shape[:-2], shape[-2] // _TOGETHER, shape[-1] // _TOGETHER]
    size = max(sizes)
    axis = sizes.index(size) - len(sizes)
    together = 1 if axis < -2 else _TOGETHER
    work = math.prod(shape) * inner_size
    count = min((2 if work > _LARGE else 4) * threads, work // _LEAST_PART, size)
    if threads == 1 or count < 2:
        return axis, (0, shape[axis])
    return axis, (*[size * i // count * together for i in range(count)], shape[axis])


def _parts(x: Any, y: Any, out: Any, axis: int, borders: Borders) -> Iterator[tuple[Any, Any, Any]]:
    """The factors and the product of each part."""
    for first, last in pairwise(borders):
        here = (..., slice(first, last), *[slice(None)] * (-1 - axis))
        yield (
            x[here] if axis != -1 and _has(x, axis) else x,
            y[here] if axis != -2 and _has(y, axis) else y,
            out[here],
        )


def _has(factor: Any, axis: int) -> bool:
    """Whether a factor has an axis of the product, and is not repeated along it."""
    return bool(factor.ndim >= -axis and factor.shape[axis] > 1)
