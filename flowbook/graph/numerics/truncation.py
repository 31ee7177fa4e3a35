"""Float32 in 16 bits and back: the upper half of the bits, and zeros in the place of the lower.

What is left is a sign, 8 bits of exponent and 7 of mantissa: the largest and the smallest numbers
stay, of each the first two or three digits (white paper, section 5.5).
"""

from __future__ import annotations

from typing import Any

import numpy as np

# Beside a sign it is NaN in 16 bits, quietly.
_NAN = 0x7FC0
_SIGN = 0x8000


def truncated(xp: Any, x: Any) -> Any:
    """The upper 16 bits of float32 numbers, as uint16 of the same shape.

    They are rounded towards zero; infinities and NaN stay what they are.
    """
    bits = (xp.ascontiguousarray(x).view(np.uint32) >> 16).astype(np.uint16)
    # A NaN whose marks lie in the lower half would become an infinity.
    return xp.reshape(xp.where(xp.isnan(x), bits & _SIGN | _NAN, bits), x.shape)


def filled(xp: Any, bits: Any) -> Any:
    """The float32 numbers whose upper 16 bits are given; the others are zeros."""
    wide = xp.ascontiguousarray(bits).astype(np.uint32) << 16
    return xp.reshape(wide.view(np.float32), bits.shape)
