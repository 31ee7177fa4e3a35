"""From the words of Philox to numbers: uniforms, normals, integers.

The maps are TensorFlow 1's. Integers and uniforms are exact, and normals of float64 are made of
operations that round alike, hence the same bit for bit everywhere. Normals of float32 go through
NumPy's log, sin and cos, and agree to a few units in the last place between machines.
Words are viewed as halves of 64-bit integers, so the code is for little-endian machines.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
from ml_dtypes import bfloat16
from numpy.typing import DTypeLike, NDArray

from flowbook.graph.numerics import elementary
from flowbook.graph.numerics.random.philox_blocks import Words

Kind: TypeAlias = Literal["bits", "uniform", "normal", "uniform_int"]

Convert: TypeAlias = Callable[[Words], NDArray[Any]]
"""Makes numbers of the words of whole blocks."""

# In place of smaller ones, whose logarithms would be too great.
_LEAST_UNIFORM = 1e-7


def uniform_float16(bits: Words) -> NDArray[np.float16]:
    """Return uniforms on [0, 1), multiples of 2**-10, from the low 10 bits of one word each.

    Args:
        bits: uint32 [n].

    Returns:
        float16 [n].
    """
    return _UNIT16.take(_checked(bits, 1) & np.uint32(0x3FF), mode="clip")


# Ten bits have 1024 values: looking them up is six times as fast as NumPy's float16 arithmetic.
_UNIT16 = np.arange(0x3C00, 0x4000, dtype=np.uint16).view(np.float16) - np.float16(1)


def uniform_bfloat16(bits: Words) -> NDArray[Any]:
    """Return uniforms on [0, 1), multiples of 2**-7, from the low 7 bits of one word each.

    Args:
        bits: uint32 [n].

    Returns:
        bfloat16 [n].
    """
    pattern = (_checked(bits, 1) & np.uint32(0x7F)) << np.uint32(16)
    pattern |= np.uint32(0x3F800000)
    return (pattern.view(np.float32) - np.float32(1)).astype(bfloat16)


def uniform_float32(bits: Words) -> NDArray[np.float32]:
    """Return uniforms on [0, 1), multiples of 2**-23, from the low 23 bits of one word each.

    Args:
        bits: uint32 [n].

    Returns:
        float32 [n].
    """
    # With the exponent of 1, the bits are a number in [1, 2).
    pattern = _checked(bits, 1) & np.uint32(0x7FFFFF)
    pattern |= np.uint32(0x3F800000)
    values = pattern.view(np.float32)
    values -= np.float32(1)
    return values


def uniform_float64(bits: Words) -> NDArray[np.float64]:
    """Return uniforms on [0, 1), multiples of 2**-52, from two words each.

    The low 20 bits of the first word lead the significand, the second word ends it.

    Args:
        bits: uint32 [2 * n].

    Returns:
        float64 [n].
    """
    pairs: NDArray[np.uint64] = _checked(bits, 2).view(np.uint64)
    pattern = pairs << np.uint64(32)
    pattern &= np.uint64((1 << 52) - 1)
    pattern |= np.uint64(1023 << 52)
    pattern |= pairs >> np.uint64(32)
    values = pattern.view(np.float64)
    values -= 1.0
    return values


def uniforms_of(x0: Any, x1: Any, x2: Any, x3: Any) -> list[Any]:
    """The two uniforms that `uniform_float64` makes of a block's words, on arrays or symbols.

    Args:
        x0, x1, x2, x3: words, in integers of 64 bits.
    """
    patterns = [(high & 0xFFFFF) << 32 | low for high, low in ((x0, x1), (x2, x3))]
    return [(pattern | 1023 << 52).view(np.float64) - 1.0 for pattern in patterns]


def normal_float16(bits: Words) -> NDArray[np.float16]:
    """Return `normal_float32` rounded to float16.

    Args:
        bits: uint32 [n], n even.

    Returns:
        float16 [n].
    """
    return normal_float32(bits).astype(np.float16)


def normal_bfloat16(bits: Words) -> NDArray[Any]:
    """Return `normal_float32` rounded to bfloat16.

    Args:
        bits: uint32 [n], n even.

    Returns:
        bfloat16 [n].
    """
    return normal_float32(bits).astype(bfloat16)


def normal_float32(bits: Words) -> NDArray[np.float32]:
    """Return normals of mean 0 and variance 1 by the Box-Muller transform, two from two words.

    From the uniforms u, v of two words come r sin(2 pi v) and r cos(2 pi v), in this order, with
    r = sqrt(-2 ln max(u, 1e-7)): none is further than 5.68 from 0.

    Args:
        bits: uint32 [n], n even.

    Returns:
        float32 [n].
    """
    uniforms = uniform_float32(_checked(bits, 2))
    # Contiguous copies: NumPy's log, sin and cos are vectorised for those only.
    radius: NDArray[np.float32] = np.maximum(uniforms[0::2], _LEAST_UNIFORM)
    np.log(radius, radius)
    radius *= -2
    np.sqrt(radius, radius)
    # Multiplied in float64 and then rounded, as in TensorFlow: near the multiples of pi a sine is
    # no better than its angle.
    angle: NDArray[np.float32] = np.empty_like(radius)
    np.multiply(uniforms[1::2], 2 * math.pi, angle, dtype=np.float64, casting="same_kind")
    np.multiply(np.sin(angle), radius, uniforms[0::2])
    np.multiply(np.cos(angle, angle), radius, uniforms[1::2])
    return uniforms


def normal_float64(bits: Words) -> NDArray[np.float64]:
    """Return normals as `normal_float32` does, in float64 throughout: two from four words.

    Args:
        bits: uint32 [2 * n], n even.

    Returns:
        float64 [n].
    """
    uniforms = uniform_float64(_checked(bits, 4))
    uniforms[0::2], uniforms[1::2] = box_muller(uniforms[0::2], uniforms[1::2])
    return uniforms


def box_muller(u: Any, v: Any) -> tuple[Any, Any]:
    """Two normals of two uniforms, as `normal_float64` makes them; on arrays or symbols.

    Args:
        u: float64 in [0, 1).
        v: float64 in [0, 1), a multiple of 2**-52.
    """
    radius = np.sqrt(elementary.log(np.maximum(u, _LEAST_UNIFORM)) * -2.0)
    return elementary.sine(v) * radius, elementary.cosine(v) * radius


def uniform_int(bits: Words, low: int, high: int, dtype: DTypeLike) -> NDArray[Any]:
    """Return integers `low + x % (high - low)`, x unsigned, as TensorFlow 1 does.

    Not quite uniform unless `high - low` divides 2**32 (2**64 for int64): each value stands for
    floor(2**32 / (high - low)) words, the lowest 2**32 % (high - low) of them for one more.

    Args:
        bits: uint32 [n] for int32, uint32 [2 * n] for int64 (the low word first).
        low: the least integer that can come.
        high: one more than the greatest; both bounds fit `dtype`, low < high.
        dtype: int32 or int64.

    Returns:
        int32 or int64 [n].
    """
    dtype = np.dtype(dtype)
    converter("uniform_int", dtype, low, high)
    # Unsigned throughout: high - low may not fit the signed dtype, and the sum wraps to it.
    words_each = words_per_element(dtype)
    whole: NDArray[Any] = _checked(bits, words_each).view(f"u{4 * words_each}")
    # x - x // span * span: NumPy divides by a scalar with SIMD, but has no such remainder.
    span = int(high) - int(low)
    values: NDArray[Any] = whole // span
    values *= span
    np.subtract(whole, values, values)
    values += int(low) % (1 << 8 * dtype.itemsize)
    return values.view(dtype)


def words_per_element(dtype: np.dtype[Any]) -> int:
    """How many words an element is made of."""
    return 2 if dtype.itemsize == 8 else 1


def _checked(bits: Words, group: int) -> Words:
    """Return the words as one piece of memory; `group` of them belong together."""
    if bits.dtype != np.uint32 or bits.ndim != 1 or bits.size % group:
        raise ValueError(
            f"bits must be uint32 [n], n a multiple of {group}, got {bits.dtype} {bits.shape}"
        )
    return np.ascontiguousarray(bits)


_CONVERTERS: dict[tuple[str, np.dtype[Any]], Convert] = {
    ("bits", np.dtype(np.uint32)): lambda bits: bits,
    ("uniform", np.dtype(bfloat16)): uniform_bfloat16,
    ("uniform", np.dtype(np.float16)): uniform_float16,
    ("uniform", np.dtype(np.float32)): uniform_float32,
    ("uniform", np.dtype(np.float64)): uniform_float64,
    ("normal", np.dtype(bfloat16)): normal_bfloat16,
    ("normal", np.dtype(np.float16)): normal_float16,
    ("normal", np.dtype(np.float32)): normal_float32,
    ("normal", np.dtype(np.float64)): normal_float64,
}


def converter(kind: Kind, dtype: np.dtype[Any], low: int | None, high: int | None) -> Convert:
    """What makes numbers of a kind and dtype, in the bounds where those are integers.

    Raises:
        ValueError: bounds that are missing, superfluous, out of the dtype's range or not in order.
        TypeError: there is no such kind of that dtype.
    """
    if kind == "uniform_int" and dtype in (np.int32, np.int64):
        limits = np.iinfo(dtype)
        if low is None or high is None or not limits.min <= low < high <= limits.max:
            raise ValueError(
                f"{dtype} bounds must satisfy {limits.min} <= low < high <= {limits.max}, "
                f"got low={low}, high={high}"
            )
        return partial(uniform_int, low=low, high=high, dtype=dtype)
    convert = _CONVERTERS.get((kind, dtype))
    if convert is None:
        known = ", ".join(f"{name} {made}" for name, made in _CONVERTERS)
        raise TypeError(
            f"cannot draw {kind!r} as {dtype}; there are {known}, uniform_int int32 and int64"
        )
    if low is not None or high is not None:
        raise ValueError(f"{kind} takes no bounds, got low={low}, high={high}")
    return convert
