"""Threads that help with products of matrices, and are at hand in microseconds.

What `crew.py` does for any function, a `NativeCrew` does for gemm of a BLAS library, in machine
code (`native_crew.ll`): nobody waits for Python's lock in it. As both call the same function of
BLAS for the same parts, they make the same bits.

A helper has a box, a word of memory in which it is told its work and tells how it stands; threads
share nothing else but the number of the part that is next. Who has a product offers it in the boxes
of helpers that are free, takes parts like them, and takes back what no helper has begun. A helper
that is at a part is waited for. Several threads may have products at once; a helper has one.

Who waits looks for half a millisecond, and then sleeps: on a quiet machine, where it takes a tenth
of one to be woken, the products of a step find their helpers awake. Meanwhile it offers the cpu
to others; if somebody takes it, the machine is busy, and it sleeps after microseconds from then on.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import os
import platform
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from threading import Lock, Thread
from typing import Any

import numpy as np

from flowbook.exec.kernels import blas
from flowbook.exec.kernels.blas import Blas
from flowbook.exec.kernels.machine_code import compiled, machine_code
from flowbook.graph.model.errors import UnimplementedError
from flowbook.graph.numerics.hot_loop import Hot, loops

# Helpers at most.
_MOST = 63
# A box is its first word; no two are in one line of the cache.
_Box = ctypes.c_int64 * 16

_BY_ROWS, _BY_COLUMNS = 111, 112
# How gemm is given a number of each dtype.
_AS_FLOAT, _AS_DOUBLE, _BY_ADDRESS = range(3)
_NUMBERS = {"f": _AS_FLOAT, "d": _AS_DOUBLE, "F": _BY_ADDRESS, "D": _BY_ADDRESS}
_ONE_AND_ZERO = {char: np.array([1, 0], char) for char in _NUMBERS}


class NativeCrew:
    """The helpers of this process.

    Args:
        engine: has the machine code.
        if_busy: on a busy machine so many times as many threads take part: each gets less of a
            processor there.
    """

    def __init__(self, engine: Any, if_busy: int = 2) -> None:
        self._engine = engine
        self._if_busy = if_busy
        self._boxes = (_Box * _MOST)()
        self._lock = Lock()
        self._size = 0
        pointer, size = ctypes.c_void_p, ctypes.c_int64
        self._help = ctypes.CFUNCTYPE(None, pointer)(engine.get_function_address("help"))
        self._share = ctypes.CFUNCTYPE(None, pointer, size, size, *[pointer] * 4)(
            engine.get_function_address("share")
        )
        # Helpers still look at them when Python takes itself apart at its end.
        for needed in (engine, self._boxes):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(needed))

    def without_helpers(self) -> NativeCrew:
        """The same machine code for a forked process, which has no helpers."""
        return NativeCrew(self._engine, self._if_busy)

    def multiply(self, plan: Plan, x: Any, y: Any, out: Any, threads: int) -> None:
        """Make a product, here and in helpers at the same time. An interrupt has to wait.

        Args:
            plan: of these arrays.
            x: the first factor,
            y: the second
            out: and the product, which BLAS gets on one thread.
            threads: how many may take part, this one included.
        """
        most = min(self._if_busy * threads, plan.count, _MOST + 1) - 1
        if self._size < most:
            self._grow(most)
        most = min(most, self._size)
        usual = min(threads - 1, most)
        addresses = (array.ctypes.data for array in (x, y, out))
        self._share(self._boxes, usual, most, ctypes.byref(plan), *addresses)

    def _grow(self, size: int) -> None:
        with self._lock:
            while self._size < size:
                name = f"flowbook native helper {self._size}"
                box = ctypes.byref(self._boxes[self._size])
                try:
                    Thread(target=self._help, args=(box,), name=name, daemon=True).start()
                except RuntimeError:
                    return  # There can be no more: who has the product does it.
                self._size += 1


# ---- what is to be done, as the machine code wants to know it


_Four = ctypes.c_int64 * 4


class _Part(ctypes.Structure):
    _fields_ = (("offsets", _Four), ("sizes", _Four))


class Plan(ctypes.Structure):
    """How gemm makes the parts of a product, wherever its arrays begin.

    Attributes:
        count: how many parts there are.
        has_squares: whether NumPy may take a matrix times its own transpose for what it is.
    """

    count: int
    has_squares: bool
    _fields_ = (
        ("gemm", ctypes.c_void_p),
        ("numbers", ctypes.c_int64),
        ("one", ctypes.c_void_p),
        ("zero", ctypes.c_void_p),
        ("x_order", ctypes.c_int32),
        ("y_order", ctypes.c_int32),
        ("apart", _Four),
        ("outer_steps", _Four),
        ("inner_steps", _Four),
        ("inner_size", ctypes.c_int64),
        ("count", ctypes.c_int64),
        ("parts", ctypes.POINTER(_Part)),
    )


def plan(
    library: Blas, x: Any, y: Any, out: Any, axis: int, borders: tuple[int, ...]
) -> Plan | None:
    """How gemm makes a product in parts.

    Args:
        library: has gemm.
        x: the first factor,
        y: the second
        out: and an array for the product, of its shape.
        axis: of the product, along which it is cut, counted from the last as -1.
        borders: where each part begins, and where the last one ends.

    Returns:
        None if NumPy makes one of the parts by another function, or copies what BLAS gets; and
        where there is no such machine code.
    """
    gemm = library.gemms.get(out.dtype.char)
    if gemm is None or not _IS_SUPPORTED:
        return None
    layout = (x.shape, x.strides, y.shape, y.strides)
    found = _planned(gemm, out.dtype.char, *layout, out.shape, axis, borders)
    if found is None or not (out.flags.carray and x.flags.aligned and y.flags.aligned):
        return None
    return None if found.has_squares and np.may_share_memory(x, y) else found


@lru_cache(1024)
def _planned(
    gemm: int,
    char: str,
    x_shape: tuple[int, ...],
    x_strides: tuple[int, ...],
    y_shape: tuple[int, ...],
    y_strides: tuple[int, ...],
    shape: tuple[int, ...],
    axis: int,
    borders: tuple[int, ...],
) -> Plan | None:
    """A plan for arrays that lie so, of which the product is contiguous."""
    one_and_zero = _ONE_AND_ZERO[char]
    each = one_and_zero.itemsize
    x_stored = _stored(x_shape, x_strides, each)
    y_stored = _stored(y_shape, y_strides, each)
    if len(shape) > 4 or x_stored is None or y_stored is None:
        return None
    steps = [
        [*_steps(x_shape, x_strides)[:3], 0],
        _steps(y_shape, y_strides),
        _steps(shape, [math.prod(shape[i + 1 :]) * each for i in range(len(shape))]),
    ]
    steps[1][-2] = 0  # Along the product's rows the second factor stays where it is.
    sizes = [1] * (4 - len(shape)) + list(shape)
    parts = []
    for first, last in itertools.pairwise(borders):
        sizes[axis] = last - first
        offsets = [first * step[axis] for step in steps]
        parts.append(_Part(_Four(*offsets), _Four(*sizes)))
    if min(x_shape[-1], *(min(part.sizes[2:]) for part in parts)) < 2:
        return None  # That is a product with a vector.
    made = Plan(count=len(parts), parts=(_Part * len(parts))(*parts))
    made.gemm, made.numbers, made.inner_size = gemm, _NUMBERS[char], x_shape[-1]
    made.one = one_and_zero.ctypes.data
    made.zero = made.one + each
    made.x_order, x_apart = x_stored
    made.y_order, y_apart = y_stored
    made.apart = _Four(x_apart, y_apart, shape[-1])
    made.outer_steps, made.inner_steps = (_Four(*(step[i] for step in steps)) for i in (0, 1))
    made.has_squares = x_strides[-2:] == y_strides[:-3:-1] and any(
        part.sizes[2] == part.sizes[3] for part in parts
    )
    return made


def _stored(shape: tuple[int, ...], strides: tuple[int, ...], each: int) -> tuple[int, int] | None:
    """Whether matrices are stored by rows or by columns, and how many numbers these are apart.

    None if BLAS cannot read them as they are.
    """
    for order, (length, step, apart) in {
        _BY_ROWS: (shape[-1], strides[-1], strides[-2]),
        _BY_COLUMNS: (shape[-2], strides[-2], strides[-1]),
    }.items():
        if step == each and apart % each == 0 and apart // each >= length:
            return order, apart // each
    return None


def _steps(shape: tuple[int, ...], strides: Sequence[int]) -> list[int]:
    """How many bytes one goes on by along each of four axes; 0 where an array has no second."""
    steps = [stride if size > 1 else 0 for size, stride in zip(shape, strides, strict=True)]
    return [0] * (4 - len(steps)) + steps


# ---- when it is compiled


class _Gemms(Hot):
    """Products in parts that gemm can make. Python's crew does, until the native one is there."""

    native: NativeCrew | None


gemms = _Gemms("products of matrices in parts")
"""Has the native crew when that has turned out to be worth compiling."""

# Where the machine code is known to run.
_IS_SUPPORTED = (sys.platform, platform.machine()) == ("linux", "x86_64")
if _IS_SUPPORTED:
    loops[gemms.name] = gemms


@machine_code.register
def _(products: _Gemms) -> NativeCrew:
    crew = NativeCrew(compiled(Path(__file__).with_suffix(".ll").read_text))
    library = blas.library(blas.NUMPYS)
    if library is not None:
        library.limited(1, _try, crew, library)
    return crew


def _try(crew: NativeCrew, library: Blas) -> None:
    for char in library.gemms:
        x, y = (
            np.linspace(0, 1, 48 * 32).astype(char).reshape(shape) for shape in ((32, 48), (48, 32))
        )
        expected, found = np.zeros((2, 32, 32), char)
        for rows in (slice(16), slice(16, 32)):
            np.matmul(x[rows], y, expected[rows])
        planned = plan(library, x, y, found, -2, (0, 16, 32))
        if planned is not None:
            crew.multiply(planned, x, y, found, 1)
        if found.tobytes() != expected.tobytes():
            raise UnimplementedError("the machine code makes other numbers than NumPy")


def _forget_helpers() -> None:
    if gemms.native is not None:
        gemms.native = gemms.native.without_helpers()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_helpers)
