"""Logarithm, sine and cosine in operators alone, so that every form of a loop makes the same bits.

NumPy's own differ in their last bits between machines, and from what machine code calls. These
consist of additions, products, a quotient and integer operations on the patterns of float64, all of
which are exact or correctly rounded everywhere. They take arrays of float64, and the symbols that
become machine code. Their polynomials interpolate at Chebyshev's nodes; what these leave is below
a hundredth of the last place.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

_EXPONENT = 52
_SIGNIFICAND = (1 << _EXPONENT) - 1
# The pattern of the square root of one half; significands are taken from there to twice as much.
_LEAST = 0x3FE6A09E667F3BCD
_ONE = 1023 << _EXPONENT
# With this pattern an integer below 2**52 is 2**52 more than itself.
_COUNTED = 1075 << _EXPONENT
# The first has 32 bits: its product with an exponent is exact.
_LN2 = (0.6931471803691238, 1.9082149292705877e-10)
_LOG = (
    0.666666666666667,
    0.39999999999899505,
    0.28571428625975487,
    0.2222221113479508,
    0.18182889125261723,
    0.15331721600556042,
    0.14616449685043406,
)
_SINE = (
    6.283185307179586,
    -41.341702240399755,
    81.60524927607362,
    -76.70585975282492,
    42.058693925428685,
    -15.0946416761179,
    3.8199280942271643,
    -0.7177337921413454,
    0.10089695501646812,
)


def log(x: Any) -> Any:
    """The natural logarithm, to one unit in the last place.

    Args:
        x: float64, positive, finite and not below 2**-1022. Of others the result is some number.
    """
    shifted = x.view(np.uint64) + (_ONE - _LEAST)
    exponent = (shifted >> _EXPONENT | _COUNTED).view(np.float64) - (2.0**52 + 1023)
    # x is 2**exponent * (1 + f).
    f = ((shifted & _SIGNIFICAND) + _LEAST).view(np.float64) - 1.0
    # log(1 + f) is 2 atanh(s), of which what f and its square say is taken out.
    s = f / (f + 2.0)
    z = s * s
    half = f * f * 0.5
    rest = s * (half + z * _polynomial(z, _LOG))
    return exponent * _LN2[0] - ((half - (rest + exponent * _LN2[1])) - f)


def log1p(x: Any) -> Any:
    """The natural logarithm of `1 + x`, to two units in the last place.

    Args:
        x: float64 above -1 and finite. Of others the result is some number.
    """
    whole = x + 1.0
    # What the sum has lost.
    return log(whole) + (x - (whole - 1.0)) / whole


def sine(turns: Any) -> Any:
    """The sine of an angle given as part of a full turn, to three units in the last place.

    Args:
        turns: float64 in [0, 1), a multiple of 2**-52: all up to the polynomial is exact then.
    """
    return np.copysign(_near(0.25 - np.absolute(_off(turns))), 0.5 - turns)


def cosine(turns: Any) -> Any:
    """The cosine of such an angle, to three units in the last place."""
    return _near(_off(turns))


def _off(turns: Any) -> Any:
    """How far an angle is off the quarter of a turn that is nearest, towards the half."""
    return np.absolute(turns - 0.5) - 0.25


def _near(turns: Any) -> Any:
    """The sine of at most a quarter of a turn to either side."""
    return turns * _polynomial(turns * turns, _SINE)


def _polynomial(x: Any, coefficients: tuple[float, ...]) -> Any:
    return reduce(lambda made, c: made * x + c, reversed(coefficients[:-1]), coefficients[-1])
