"""Derivatives by `a` of the incomplete gamma function P(a, x), the gamma distribution's function.

All are given over the density p(a, x), with which the tails vanish: of the first, this is minus
how fast a variate x moves with its shape parameter a, drawn by inverting P (Figurnov, Mohamed,
Mnih, "Implicit reparameterization gradients", 2018). What remains is the integral of the density's
derivative over the density at x, from 0 to x or, with the other sign, over the rest.

Where x is small beside a, or both are, P is a power series times p, and is differentiated term by
term (Abramowitz and Stegun, "Handbook of Mathematical Functions", 6.5.29).
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

_Doubles = NDArray[np.float64]

# Integrands have [samples, points]: so many samples at a time are 2 MB.
_CHUNK = 2048
_POINTS = 64
_MOST_TERMS = 400
# Up to here a power series takes few terms; above it the integrand is smooth enough to sample.
_SMALL = 20.0


def order_derivative(a: _Doubles, x: _Doubles, order: int) -> _Doubles:
    """The derivative of P by a over the density at x.

    Args:
        a: positive.
        x: not negative; of a shape that broadcasts with that of `a`.
        order: of the derivative, from 1.

    Returns:
        Float64 of the broadcast shape, accurate to some 1e-10 of the values around; 0 where `x` is
        0, NaN where it is infinite.
    """
    wide = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(x, np.float64))
    flat_a, flat_x = (v.reshape(-1) for v in wide)
    found = np.empty_like(flat_a)
    for start in range(0, flat_a.size, _CHUNK):
        part = slice(start, start + _CHUNK)
        found[part] = _derivative(flat_a[part], flat_x[part], order)
    return found.reshape(wide[0].shape)


def _derivative(a: _Doubles, x: _Doubles, order: int) -> _Doubles:
    found = np.full_like(a, np.nan)
    valid = (a > 0) & (x > 0) & np.isfinite(a) & np.isfinite(x)
    upper = valid & (x > a + 1)
    lower = valid & ~upper
    small = lower & (a <= _SMALL)
    large = lower & ~small
    for where, function in ((upper, _above), (small, _series), (large, _below)):
        if where.any():
            found[where] = function(a[where], x[where], order)
    found[(x == 0) & (a > 0)] = 0
    return found


def over_exponential(derivatives: list[Any]) -> list[Any]:
    """The derivatives of exp(g) over exp(g), from the zeroth on, given those of g from the first.

    Source: the recurrence of the complete Bell polynomials.
    """
    found: list[Any] = [1.0]
    for n in range(len(derivatives)):
        terms = [math.comb(n, i) * found[n - i] * derivatives[i] for i in range(n + 1)]
        found.append(sum(terms[1:], terms[0]))
    return found


def density_derivatives(log_x: Any, polygammas: list[Any]) -> list[Any]:
    """The derivatives of the density by a over the density, from the zeroth on.

    Args:
        log_x: the logarithm of x.
        polygammas: the derivatives at a of the gamma function's logarithm, from the first on.
    """
    return over_exponential([log_x - polygammas[0], *[-p for p in polygammas[1:]]])


def _polygammas(a: _Doubles, order: int) -> list[Any]:
    from scipy.special import digamma, polygamma

    return [digamma(a), *[polygamma(n, a) for n in range(1, order)]]


def _series(a: _Doubles, x: _Doubles, order: int) -> _Doubles:
    """By P / p = x / a + x**2 / (a (a + 1)) + ..., of which all terms are positive."""
    term = x / a
    # Of the logarithm of a term the derivatives are sums of 1 / a, 1 / (a + 1), ... to a power.
    slopes = np.array([_reciprocal(a, m) for m in range(1, order + 1)])
    sums = np.array([term * d for d in over_exponential([*slopes])])
    for n in range(1, _MOST_TERMS):
        term = term * (x / (a + n))
        slopes += [_reciprocal(a + n, m) for m in range(1, order + 1)]
        more = np.array([term * d for d in over_exponential([*slopes])])
        sums += more
        if (np.abs(more) <= 1e-17 * np.abs(sums)).all():
            break
    densities = density_derivatives(np.log(x), _polygammas(a, order))
    found: _Doubles = sum(
        math.comb(order, m) * densities[order - m] * sums[m] for m in range(order + 1)
    )
    return found


def _reciprocal(a: _Doubles, order: int) -> _Doubles:
    """The derivative of -log(a)."""
    found: _Doubles = (-1) ** order * math.factorial(order - 1) / a**order
    return found


def _below(a: _Doubles, x: _Doubles, order: int) -> _Doubles:
    """By quadrature from x down to where nothing is left of the density."""
    reach = np.minimum(x, 12 * np.sqrt(a) + 40)
    return _integral(a, x, -reach, order)


def _above(a: _Doubles, x: _Doubles, order: int) -> _Doubles:
    """By quadrature from x up to where nothing is left of the density."""
    return -_integral(a, x, 9 * np.sqrt(a) + 60, order)


def _integral(a: _Doubles, x: _Doubles, reach: _Doubles, order: int) -> _Doubles:
    """The integral of the density's derivative, over the density at x, as far from it as reach."""
    way, weight = _points()
    w = reach[:, None] * way
    a, x = a[:, None], x[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        # Differences of what hardly differs where a is large, taken before they are rounded. Only
        # a way as long as x itself ends where the logarithm of 0 would be.
        ratio = w / x
        density = np.exp((a - 1) * _log1p_less(ratio) + (a - 1 - x) * ratio)
        polygammas = [_digamma_less_log(a), *_polygammas(a, order)[1:]]
        score = density_derivatives(np.log1p((x - a + w) / a), polygammas)[order]
    found: _Doubles = np.abs(reach) * ((density * score) @ weight)
    return found


def _log1p_less(u: _Doubles) -> _Doubles:
    """log(1 + u) - u."""
    direct = np.log1p(u) - u
    is_small = np.abs(u) < 0.1
    power, found = np.where(is_small, u, 0.0), np.zeros_like(u)
    for n in range(17, 1, -1):
        found = (-1) ** (n + 1) / n + power * found
    return np.where(is_small, power * power * found, direct)


def _digamma_less_log(a: _Doubles) -> _Doubles:
    """digamma(a) - log(a), of which the asymptotic series has the digits (A&S 6.3.18)."""
    from scipy.special import digamma

    large = np.maximum(a, _SMALL)
    square = 1 / (large * large)
    series = 1 / 12 - square * (1 / 120 - square * (1 / 252 - square * (1 / 240 - square / 132)))
    return np.where(a < _SMALL, digamma(a) - np.log(a), -0.5 / large - square * series)


@cache
def _points() -> tuple[_Doubles, _Doubles]:
    """Gauss-Legendre points and weights on [0, 1], denser towards 0 where densities are."""
    points, weights = np.polynomial.legendre.leggauss(_POINTS)
    u = (points + 1) / 2
    return u * u, weights * u
