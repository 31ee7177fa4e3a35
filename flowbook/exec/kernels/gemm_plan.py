"""How gemm of a BLAS library makes a product of matrices in parts.

Whoever makes a part, Python here or the machine code of `native_crew.py`, calls the same function
with the same arguments, and so makes the same bits.
"""

from __future__ import annotations

import ctypes
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

_BY_ROWS, _BY_COLUMNS = range(2)


class Gemm(NamedTuple):
    """A function that multiplies matrices on one thread.

    Attributes:
        address: where it is.
        char: of the dtype of all three matrices.
        is_onednns: whether it is oneDNN's, not BLAS's.
    """

    address: int
    char: str
    is_onednns: bool = False


class _Convention(NamedTuple):
    """How a kind of gemm is called.

    Attributes:
        code: what the machine code knows it by.
        number: the type of a number: it multiplies the product by one, and what was there by zero.
        leading: what comes before all else.
        orders: how it is told that a factor is stored by rows, and by columns.
        status: the type of what it returns.
    """

    code: int
    number: type[Any]
    leading: tuple[int, ...] = (101,)  # The product is stored by rows.
    orders: tuple[int, int] = (111, 112)
    status: type[Any] | None = None

    def type(self) -> type[Any]:
        """Of the function."""
        matrix = (ctypes.c_void_p, ctypes.c_int64)
        telling = [ctypes.c_int] * (len(self.leading) + 2)
        numbers = (self.number, *matrix, *matrix, self.number, *matrix)
        return ctypes.CFUNCTYPE(self.status, *telling, *[ctypes.c_int64] * 3, *numbers)


_BLASS = {
    "f": _Convention(0, ctypes.c_float),
    "d": _Convention(1, ctypes.c_double),
    "F": _Convention(2, ctypes.c_void_p),
    "D": _Convention(2, ctypes.c_void_p),
}
_ONEDNNS = _Convention(3, ctypes.c_float, (), (ord("N"), ord("T")), ctypes.c_int)
_ONE_AND_ZERO = {char: np.array([1, 0], char) for char in _BLASS}

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
    # What machine code reads in the fields, for Python, which takes long to read them.
    _multiply: Callable[[int, int, int, int, int], int | None]
    _steps: list[list[int]]
    _parts: list[tuple[list[int], list[int]]]
    _fields_ = (
        ("gemm", ctypes.c_void_p),
        ("convention", ctypes.c_int64),
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

    def fits(self, x: Any, y: Any, out: Any) -> bool:
        """Whether it is right for arrays that lie as planned, wherever they begin."""
        if not (out.flags.carray and x.flags.aligned and y.flags.aligned):
            return False
        return not (self.has_squares and np.may_share_memory(x, y))

    def make(self, parts: Iterable[int], x: Any, y: Any, out: Any) -> None:
        """Make some of the parts, on this thread, without Python's lock.

        Args:
            parts: which, by their numbers.
            x: the first factor,
            y: the second
            out: and the product.

        Raises:
            MemoryError: if gemm has not enough.
        """
        x_at, y_at, out_at = x.ctypes.data, y.ctypes.data, out.ctypes.data
        (x_outer, x_inner), (y_outer, y_inner), (out_outer, out_inner) = self._steps
        for i in parts:
            (x_offset, y_offset, out_offset), (outer, inner, rows, columns) = self._parts[i]
            for j, k in itertools.product(range(outer), range(inner)):
                x_here = x_at + x_offset + j * x_outer + k * x_inner
                y_here = y_at + y_offset + j * y_outer + k * y_inner
                out_here = out_at + out_offset + j * out_outer + k * out_inner
                check(self._multiply(rows, columns, x_here, y_here, out_here))

    def _for_python(self, convention: _Convention, one_and_zero: Any) -> Callable[..., int | None]:
        call: Callable[..., int | None] = convention.type()(self.gemm)
        orders = *convention.leading, self.x_order, self.y_order
        inner_size = self.inner_size
        x_apart, y_apart, out_apart, _ = self.apart
        by_address = convention.number is ctypes.c_void_p
        one, zero = (self.one, self.zero) if by_address else one_and_zero.tolist()

        def multiply(rows: int, columns: int, x_at: int, y_at: int, out_at: int) -> int | None:
            factors = x_at, x_apart, y_at, y_apart
            return call(*orders, rows, columns, inner_size, one, *factors, zero, out_at, out_apart)

        return multiply


def check(status: int | None) -> None:
    """Raise what a gemm tells by its status.

    Raises:
        MemoryError: if there is one other than 0. What was given is right, so it means that.
    """
    if status:
        raise MemoryError(f"a product of matrices ended with oneDNN's status {status}")


def plan(gemm: Gemm, x: Any, y: Any, out: Any, axis: int, borders: tuple[int, ...]) -> Plan | None:
    """How gemm makes a product in parts.

    Args:
        gemm: which.
        x: the first factor,
        y: the second
        out: and an array for the product, of its shape.
        axis: of the product, along which it is cut, counted from the last as -1.
        borders: where each part begins, and where the last one ends.

    Returns:
        None if NumPy makes one of the parts by another function, or copies what BLAS gets.
    """
    layout = (x.shape, x.strides, y.shape, y.strides)
    found = planned(gemm, *layout, out.shape, axis, borders)
    return found if found is not None and found.fits(x, y, out) else None


def planned(
    gemm: Gemm,
    x_shape: tuple[int, ...],
    x_strides: tuple[int, ...],
    y_shape: tuple[int, ...],
    y_strides: tuple[int, ...],
    shape: tuple[int, ...],
    axis: int,
    borders: tuple[int, ...],
) -> Plan | None:
    """As `plan`, for arrays that lie so, of which the product is contiguous, and that fit it."""
    convention = _ONEDNNS if gemm.is_onednns else _BLASS[gemm.char]
    one_and_zero = _ONE_AND_ZERO[gemm.char]
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
        parts.append(([first * step[axis] for step in steps], sizes.copy()))
    if min(x_shape[-1], *(min(part_sizes[2:]) for _, part_sizes in parts)) < 2:
        return None  # That is a product with a vector.
    fields = [_Part(_Four(*offsets), _Four(*part_sizes)) for offsets, part_sizes in parts]
    made = Plan(count=len(parts), parts=(_Part * len(parts))(*fields))
    made._parts = parts
    made._steps = [step[:2] for step in steps]
    made.gemm, made.convention, made.inner_size = gemm.address, convention.code, x_shape[-1]
    made.one = one_and_zero.ctypes.data
    made.zero = made.one + each
    x_order, x_apart = x_stored
    y_order, y_apart = y_stored
    made.x_order, made.y_order = convention.orders[x_order], convention.orders[y_order]
    made.apart = _Four(x_apart, y_apart, shape[-1])
    made._multiply = made._for_python(convention, one_and_zero)
    made.outer_steps, made.inner_steps = (_Four(*(step[i] for step in steps)) for i in (0, 1))
    made.has_squares = x_strides[-2:] == y_strides[:-3:-1] and any(
        part_sizes[2] == part_sizes[3] for _, part_sizes in parts
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
