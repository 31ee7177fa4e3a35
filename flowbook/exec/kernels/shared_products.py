"""Products and factorisations on a machine that has other work too.

A product is cut into parts, each a product on one thread of BLAS, that helpers take beside who
needs it. So nobody waits for a thread that is not running, but for one that has begun a part. What
a cut gains nothing for is computed whole, on one thread.

There are two crews of helpers. The native one (`native_crew.py`) is as quick as BLAS's own threads
and makes all parts that are gemm's, which is nearly all, once it is compiled. Python's (`crew.py`)
is there at once, makes those until then, and the others always: matrices by vectors or by their own
transposes, and where there is no machine code. Its helpers take long to call, and until then come
to large products alone.

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
from typing import Any, NamedTuple

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
# A part has a multiple of so many rows or columns, as BLAS computes some at once,
_ROWS, _COLUMNS = 8, 16
# and not many fewer than these.
_LEAST = 48
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
    threads = _useful(most)
    layout = x.dtype.char, x.shape, x.strides, y.shape, y.strides
    way = _way(library, _onednn_for(x, y), threads, *layout)
    if way is None or (most == 1 and way.onednns is None):
        return np.matmul(x, y, out)
    if out is None:
        out = np.empty(way.shape, x.dtype)
    elif (out.shape, out.dtype) != (way.shape, x.dtype):
        return np.matmul(x, y, out)
    plan = way.plan if way.plan is not None and way.plan.fits(x, y, out) else None
    if way.onednns is not None and plan is not None:
        _multiply_by_onednn(way.onednns, plan, x, y, out, threads)
    elif len(way.borders) == 2:
        library.limited(1, np.matmul, x, y, out)
    else:
        library.limited(1, _multiply_in_parts, plan, x, y, out, way.axis, way.borders, threads)
    return out


def _onednn_for(x: Any, y: Any) -> onednn.Library | None:
    """The library, if its product of two such matrices gains more than it costs to call it."""
    is_large = x.shape[-2] * x.shape[-1] * y.shape[-1] > _SMALL
    return onednn.for_products() if is_large and x.dtype.char == "f" else None


class _Way(NamedTuple):
    """How a product is made of arrays that lie in one way.

    Attributes:
        shape: the product's.
        axis: the one that it is cut along, counted from -1.
        borders: where each part begins, and where the last one ends.
        plan: how gemm makes the parts of arrays that fit it; None if NumPy makes them.
        onednns: the library whose gemm that is, if it is not BLAS's.
    """

    shape: tuple[int, ...]
    axis: int
    borders: Borders
    plan: Plan | None
    onednns: onednn.Library | None


@lru_cache(1024)
def _way(
    blass: blas.Blas,
    onednns: onednn.Library | None,
    threads: int,
    char: str,
    x_shape: tuple[int, ...],
    x_strides: tuple[int, ...],
    y_shape: tuple[int, ...],
    y_strides: tuple[int, ...],
) -> _Way | None:
    """None if the factors do not fit each other, of which NumPy says what is wrong."""
    try:
        shape = _product_shape(x_shape, y_shape)
    except ValueError:
        return None
    axis, borders = _cut(shape, x_shape[-1], threads)
    gemm = blass.gemms.get(char) if onednns is None else onednns.gemm
    if gemm is None:
        return _Way(shape, axis, borders, None, None)
    layout = x_shape, x_strides, y_shape, y_strides
    plan = gemm_plan.planned(gemm, *layout, shape, axis, borders)
    return _Way(shape, axis, borders, plan, onednns)


def _multiply_by_onednn(
    library: onednn.Library, plan: Plan, x: Any, y: Any, out: Any, threads: int
) -> None:
    crew = gemms.native
    if crew is not None:
        library.limited(1, crew.multiply, plan, x, y, out, threads)
        return
    start = perf_counter()
    numbers = range(plan.count)
    together = [[i] for i in numbers] if _is_for_helpers(x, out) else [numbers]
    parts = [(1, plan.make, some, x, y, out) for some in together]
    share(library.limited, parts, threads)
    gemms.ran(perf_counter() - start)


def _multiply_in_parts(
    plan: Plan | None, x: Any, y: Any, out: Any, axis: int, borders: Borders, threads: int
) -> None:
    crew = gemms.native
    if plan is not None and crew is not None:
        crew.multiply(plan, x, y, out, threads)
        return
    start = perf_counter()
    if plan is not None and not _is_for_helpers(x, out):
        threads = 1
    share(np.matmul, list(_parts(x, y, out, axis, borders)), threads)
    if plan is not None:
        gemms.ran(perf_counter() - start)


def _is_for_helpers(x: Any, out: Any) -> bool:
    """Whether Python's helpers save more of a product of matrices than it takes to call them."""
    return bool(out.size * x.shape[-1] > _LARGE)


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


def _cut(shape: tuple[int, ...], inner_size: int, threads: int) -> tuple[int, Borders]:
    """The axis that a product can be cut along most often, and where; it is counted from -1."""
    sizes = [*shape[:-2], shape[-2] // _LEAST, shape[-1] // _LEAST]
    size = max(sizes)
    axis = sizes.index(size) - len(sizes)
    together = {-1: _COLUMNS, -2: _ROWS}.get(axis, 1)
    work = math.prod(shape) * inner_size
    length = shape[axis]
    count = min((2 if work > _LARGE else 4) * threads, work // _LEAST_PART, size)
    if threads == 1 or count < 2:
        return axis, (0, length)
    each = length / (count * together)
    return axis, (*[round(each * i) * together for i in range(count)], length)


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
