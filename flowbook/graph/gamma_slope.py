"""How a gamma variate moves with its shape parameter: what makes `random_gamma` differentiable.

Were it drawn by inverting the distribution function F, a variate x of shape a would move by
dx/da = -(dF/da) / (dF/dx) while its probability stays (Figurnov, Mohamed, Mnih, "Implicit
reparameterization gradients", 2018). With the density known, what remains is the integral of the
density times `log t - digamma(a)` from 0 to x, or over the rest with the other sign.
"""

from __future__ import annotations

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


def gamma_slope(alpha: _Doubles, sample: _Doubles) -> _Doubles:
    """How fast variates move with alpha.

    Args:
        alpha: positive shape parameters.
        sample: variates of scale 1, of the same shape.

    Returns:
        Float64 of that shape, accurate to some 1e-10 of its value; 0 where the sample is 0.
    """
    a, x = (np.asarray(v, np.float64).reshape(-1) for v in (alpha, sample))
    found = np.empty_like(a)
    for start in range(0, a.size, _CHUNK):
        part = slice(start, start + _CHUNK)
        found[part] = _slope(a[part], x[part])
    return found.reshape(np.shape(alpha))


def _slope(a: _Doubles, x: _Doubles) -> _Doubles:
    found = np.full_like(a, np.nan)
    valid = (a > 0) & (x > 0) & np.isfinite(a) & np.isfinite(x)
    upper = valid & (x > a + 1)
    lower = valid & ~upper
    small = lower & (a <= _SMALL)
    large = lower & ~small
    for where, function in ((upper, _above), (small, _series), (large, _below)):
        if where.any():
            found[where] = function(a[where], x[where])
    found[(x == 0) & (a > 0)] = 0
    return found


def _series(a: _Doubles, x: _Doubles) -> _Doubles:
    """By the power series of the incomplete gamma function; all of its terms are positive."""
    term = 1 / a
    harmonic = 1 / a
    total, slope = term.copy(), term * harmonic
    for n in range(1, _MOST_TERMS):
        term = term * (x / (a + n))
        harmonic = harmonic + 1 / (a + n)
        total += term
        slope += term * harmonic
        if (term * harmonic <= 1e-17 * slope).all():
            break
    found: _Doubles = x * (slope - (np.log(x) - _digamma(a)) * total)
    return found


def _below(a: _Doubles, x: _Doubles) -> _Doubles:
    """By quadrature from x down to where nothing is left of the density."""
    reach = np.minimum(x, 12 * np.sqrt(a) + 40)
    way, weight = _points()
    w = reach[:, None] * way
    with np.errstate(divide="ignore", invalid="ignore"):
        density = np.exp((a[:, None] - 1) * np.log1p(-w / x[:, None]) + w)
        # Only a way as long as x itself ends where the logarithm of 0 would be.
        score = np.log(x[:, None] - w) - _digamma(a)[:, None]
    found: _Doubles = -reach * ((density * score) @ weight)
    return found


def _above(a: _Doubles, x: _Doubles) -> _Doubles:
    """By quadrature from x up to where nothing is left of the density."""
    reach = 9 * np.sqrt(a) + 60
    way, weight = _points()
    w = reach[:, None] * way
    density = np.exp((a[:, None] - 1) * np.log1p(w / x[:, None]) - w)
    score = np.log(x[:, None] + w) - _digamma(a)[:, None]
    found: _Doubles = reach * ((density * score) @ weight)
    return found


@cache
def _points() -> tuple[_Doubles, _Doubles]:
    """Gauss-Legendre points and weights on [0, 1], denser towards 0 where densities are."""
    points, weights = np.polynomial.legendre.leggauss(_POINTS)
    u = (points + 1) / 2
    return u * u, weights * u


def _digamma(a: _Doubles) -> Any:
    from scipy.special import digamma

    return digamma(a)
