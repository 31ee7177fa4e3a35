"""Elementwise functions of NumPy that have no vectorised loop, by others that have one.

Invariant: the bits are those of the function that is replaced. Each call takes a little longer, so
that this pays for large arrays.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

# Integers that hold the bits of an element, by its size.
_BITS = {size: np.dtype(f"i{size}") for size in (1, 2, 4, 8)}


def where(condition: Any, x: Any, y: Any, out: Any) -> Any:
    """`x` where the condition holds and `y` elsewhere.

    NumPy branches at each element, and takes ten times as long where the outcome is irregular.
    """
    bits = _BITS.get(out.dtype.itemsize)
    if bits is None or condition.dtype != bool or not condition.ndim:
        out[...] = np.where(condition, x, y)
        return out
    mask = np.negative(condition.view(np.int8)).astype(bits)
    first, second = (np.asarray(value, out.dtype).view(bits) for value in (x, y))
    if second.ndim == 0 and second == 0:
        chosen = np.bitwise_and(first, mask, out=out.view(bits))
    elif first.ndim == 0 and first == 0:
        chosen = np.bitwise_and(second, np.invert(mask, out=mask), out=out.view(bits))
    else:
        chosen = np.bitwise_and(np.bitwise_xor(first, second), mask)
        chosen = np.bitwise_xor(chosen, second, out=out.view(bits))
    return chosen.view(out.dtype)


def maximum(x: Any, y: Any, out: Any) -> Any:
    """The larger one; the loop for an array and a number is not vectorised."""
    return np.maximum(_repeated(x, out), _repeated(y, out), out=out)


def minimum(x: Any, y: Any, out: Any) -> Any:
    """The smaller one; the loop for an array and a number is not vectorised."""
    return np.minimum(_repeated(x, out), _repeated(y, out), out=out)


def reciprocal(x: Any, out: Any) -> Any:
    """`1 / x`, which is vectorised as a division; that of complex numbers rounds differently."""
    if out.dtype.kind == "c":
        return np.reciprocal(x, out=out)
    return np.divide(1, x, out=out)


def _repeated(value: Any, out: Any) -> Any:
    """A number as an array like `out`; an array as it is."""
    if type(value) is np.ndarray and value.ndim:
        return value
    return _array(np.asarray(value, out.dtype).tobytes(), out.dtype, out.size)


@lru_cache(maxsize=4)
def _array(number: bytes, dtype: Any, size: int) -> Any:
    array = np.full(size, np.frombuffer(number, dtype)[0])
    array.flags.writeable = False
    return array
