"""The derivative of the regularised incomplete gamma function by its order.

Where `x` is small beside the order, the power series of P(a, x) is differentiated term by term;
elsewhere the continued fraction of Q(a, x) = 1 - P(a, x), evaluated from its tail, is. Both need
more terms the larger the order; large orders, where P is smooth on the scale of `sqrt(a)`, take
differences.

Source: Abramowitz and Stegun, "Handbook of Mathematical Functions", 6.5.29 and 6.5.31.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.ops.scipy_special import special_of

_LARGE = 1e4
_MOST_TERMS = 3000
_FRACTIONS = 400


def derivative_by_order(xp: Any, a: Any, x: Any) -> Any:
    """The kernel: the derivative of P(a, x) by a, elementwise with broadcasting."""
    dtype = a.dtype
    a, x = xp.broadcast_arrays(a, x)
    a, x = a.astype(np.float64), x.astype(np.float64)
    is_defined = (a > 0) & (x >= 0)
    inner = is_defined & (x > 0) & xp.isfinite(x) & xp.isfinite(a)
    large = inner & (a > _LARGE)
    series = inner & ~large & ((x <= 1) | (x <= a))
    result = xp.where(is_defined, 0.0, xp.nan)
    for which, method in (
        (large, _by_differences),
        (series, _by_series),
        (inner & ~large & ~series, _by_fraction),
    ):
        if which.any():
            result[which] = method(xp, a[which], x[which])
    return result.astype(dtype)


def _by_series(xp: Any, a: Any, x: Any) -> Any:
    # P = exp(-x) x**a / gamma(a + 1) * (1 + x / (a + 1) + x**2 / ((a + 1) (a + 2)) + ...)
    special = special_of(xp)
    factor = xp.exp(a * xp.log(x) - x - special.gammaln(a + 1))
    term, slope = xp.ones_like(x), xp.zeros_like(x)
    total, total_slope = term.copy(), slope.copy()
    for n in range(1, _MOST_TERMS):
        ratio = x / (a + n)
        slope = (slope - term / (a + n)) * ratio
        term = term * ratio
        total += term
        total_slope += slope
        if not (xp.abs(slope) > 1e-17 * xp.abs(total_slope)).any():
            break
    return factor * (total_slope + total * (xp.log(x) - special.psi(a + 1)))


def _by_fraction(xp: Any, a: Any, x: Any) -> Any:
    # Q = exp(-x) x**a / gamma(a) / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / ...))
    special = special_of(xp)
    value, slope = x + (2 * _FRACTIONS + 1) - a, -xp.ones_like(x)
    for n in range(_FRACTIONS, 0, -1):
        tail = n / value
        slope = tail + tail * (n - a) * slope / value - 1.0
        value = x + (2 * n - 1) - a - tail * (n - a)
    q = xp.exp(a * xp.log(x) - x - special.gammaln(a)) / value
    return -q * (xp.log(x) - special.psi(a) - slope / value)


def _by_differences(xp: Any, a: Any, x: Any) -> Any:
    special = special_of(xp)
    step = 0.005 * xp.sqrt(a)

    def slope(function: Any) -> Any:
        near = function(a + step, x) - function(a - step, x)
        far = function(a + 2 * step, x) - function(a - 2 * step, x)
        return (8 * near - far) / (12 * step)

    # Of the two the smaller keeps its digits.
    return xp.where(x < a, slope(special.gammainc), -slope(special.gammaincc))
