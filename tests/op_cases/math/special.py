"""Special functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.integrate
import scipy.stats

from flowbook.graph.model import dtypes
from flowbook.graph.ops.math import incomplete_gamma, special
from tests.op_cases.case import (
    NONE,
    ODD,
    POSITIVE,
    SOME,
    Case,
    binary,
    f,
    unary,
)

INSIDE = f([[0.5, 0.9, 0.25], [0.75, 0.0625, 0.375]])
ORDERS = f([2.0, 3.0, 5.0])
DOUBLE = [dtypes.float32, dtypes.float64]


def _integral(density: Any, end: float, start: float = 0.0) -> float:
    found, _ = scipy.integrate.quad(density, start, end, epsabs=1e-13, epsrel=1e-13, limit=500)
    return float(found)


def _each(function: Any) -> Any:
    """A reference of arrays from one of numbers."""
    return np.vectorize(function, otypes=[np.float64])


def _lgamma(x: float) -> float:
    if x == math.inf or x != x:
        return x
    return math.inf if x in (0.0, -1.0, -math.inf) else math.lgamma(x)


def _digamma(x: float) -> float:
    """By its recurrence upwards, and the asymptotic series."""
    total = 0.0
    while x < 20:
        total -= 1 / x
        x += 1
    even = 1 / 12 / x**2 - 1 / 120 / x**4 + 1 / 252 / x**6 - 1 / 240 / x**8
    return total + math.log(x) - 0.5 / x - even


def _zeta(x: float, q: float) -> float:
    """The first terms, and Euler and Maclaurin's estimate of the others."""
    end = q + 50
    terms = [(q + k) ** -x for k in range(50)]
    terms += [end ** (1 - x) / (x - 1), 0.5 * end**-x, x * end ** (-x - 1) / 12]
    terms += [-x * (x + 1) * (x + 2) * end ** (-x - 3) / 720]
    terms += [x * (x + 1) * (x + 2) * (x + 3) * (x + 4) * end ** (-x - 5) / 30240]
    return math.fsum(terms)


def _polygamma(a: float, x: float) -> float:
    if a == 0:
        return _digamma(x)
    return (-1) ** (int(a) + 1) * math.factorial(int(a)) * _zeta(a + 1, x)


def _igamma(a: float, x: float) -> float:
    # With t = s ** (1 / a), so that the integrand has no singularity.
    whole = math.gamma(a + 1)
    return _integral(lambda s: math.exp(-(s ** (1 / a))), x**a) / whole


def _igamma_slope(a: float, x: float) -> float:
    """The integral of the density's derivative, over the side where nothing cancels."""
    if a <= 0:
        return math.nan
    center = _digamma(a)

    def slope(t: float) -> float:
        density = math.exp((a - 1) * math.log(t) - t - math.lgamma(a))
        return density * (math.log(t) - center)

    if x > a:
        return -_integral(slope, x + 40 + 12 * math.sqrt(a), x)
    # With t = s ** (1 / a), as above.
    low = max(a - 12 * math.sqrt(a), 0.0) if a > 100 else 0.0
    return (
        _integral(lambda s: slope(s ** (1 / a)) * s ** (1 / a - 1) / a if s else 0.0, x**a)
        if a <= 100
        else _integral(slope, x, low)
    )


def _betainc(a: float, b: float, x: float) -> float:
    whole = math.gamma(a) * math.gamma(b) / math.gamma(a + b)
    return _integral(lambda s: (1 - s ** (1 / a)) ** (b - 1) / a, x**a) / whole


def _bessel(order: int, scaled: bool) -> Any:
    def value(x: float) -> float:
        def wave(t: float) -> float:
            return math.exp(x * math.cos(t) - (abs(x) if scaled else 0)) * math.cos(order * t)

        return _integral(wave, math.pi) / math.pi

    return _each(value)


def _bessel_cases() -> list[Case]:
    return [
        unary(
            op,
            _bessel(order, scaled),
            SOME,
            special=None,
            tolerance=4,
            tensorflow=lambda tf, x, name=name: getattr(tf.math, name)(x),
        )
        for op, name, order, scaled in (
            (special.bessel_i0, "bessel_i0", 0, False),
            (special.bessel_i0e, "bessel_i0e", 0, True),
            (special.bessel_i1, "bessel_i1", 1, False),
            (special.bessel_i1e, "bessel_i1e", 1, True),
        )
    ]


CASES = [
    unary(special.erf, _each(math.erf), special=None, tensorflow=lambda tf, x: tf.math.erf(x)),
    # TensorFlow's is NaN at infinity, on some machines.
    unary(special.erf, _each(math.erf), note="odd"),
    unary(special.erfc, _each(math.erfc), tensorflow=lambda tf, x: tf.math.erfc(x)),
    unary(
        special.erfc,
        _each(math.erfc),
        f([5.0, 10.0, 20.0, -20.0]),
        smooth=False,
        only=[dtypes.float64],
        note="far-out",
    ),
    unary(
        special.erfinv,
        lambda x: scipy.stats.norm.ppf((x + 1) / 2) / math.sqrt(2),
        INSIDE - 0.5,
        special=f([-1.0, 0.0, 1.0, np.nan, 2.0]),
        tolerance=4,
        tensorflow=lambda tf, x: tf.math.erfinv(x),
    ),
    unary(
        special.ndtri,
        lambda x: scipy.stats.norm.ppf(x),
        INSIDE,
        special=f([0.5, 0.0, 1.0, np.nan, 2.0]),
        tolerance=4,
        tensorflow=lambda tf, x: tf.math.ndtri(x),
    ),
    unary(
        special.lgamma,
        _each(_lgamma),
        POSITIVE + 1,
        special=ODD,
        tolerance=4,
        tensorflow=lambda tf, x: tf.math.lgamma(x),
    ),
    unary(
        special.digamma,
        _each(_digamma),
        POSITIVE,
        special=None,
        tolerance=4,
        tensorflow=lambda tf, x: tf.math.digamma(x),
    ),
    Case(
        "Polygamma",
        special.polygamma,
        [f([0.0, 1.0, 3.0]), POSITIVE + 1],
        _each(_polygamma),
        [1],
        empty=[ORDERS, NONE],
        tolerance=8,
        tensorflow=lambda tf, x, y: tf.math.polygamma(x, y),
    ),
    Case(
        "Polygamma",
        special.polygamma,
        [f([-1.0, 1.5, 2.0, 0.0]), f([1.0, 1.0, 0.5, 0.0])],
        lambda a, x: f([np.nan, np.nan, -16.828796644234319, -np.inf]),
        only=DOUBLE,
        note="no-order",
        tolerance=4,
    ),
    Case(
        "Zeta",
        special.zeta,
        [ORDERS, POSITIVE + 1],
        _each(_zeta),
        [1],
        empty=[ORDERS, NONE],
        tolerance=8,
        tensorflow=lambda tf, x, y: tf.math.zeta(x, y),
    ),
    binary(
        incomplete_gamma.igamma,
        _each(_igamma),
        POSITIVE,
        f([0.5, 2.5, 1.0]),
        special=None,
        tolerance=8,
        tensorflow=lambda tf, a, x: tf.math.igamma(a, x),
    ),
    binary(
        incomplete_gamma.igammac,
        lambda a, x: 1 - _each(_igamma)(a, x),
        POSITIVE,
        f([0.5, 2.5, 1.0]),
        special=None,
        tolerance=8,
        tensorflow=lambda tf, a, x: tf.math.igammac(a, x),
    ),
    Case(
        "IgammaGradA",
        incomplete_gamma.igamma_grad_a,
        [f([[0.5, 1.5, 2.0], [3.0, 5.0, 1.25]]), f([[0.25, 7.5, 2.0], [2.0, 6.0, 0.75]])],
        _each(_igamma_slope),
        [0, 1],
        empty=[NONE, NONE],
        only=DOUBLE,
        tolerance=1e3,
        tensorflow=lambda tf, a, x: tf.raw_ops.IgammaGradA(a=a, x=x),
    ),
    *(
        Case(
            "GammaDensity",
            lambda a, x, below=below: incomplete_gamma.gamma_density(a, x, below=below),
            [f([[0.5, 1.5, 2.0], [3.0, 5.0, 1.25]]), f([[0.25, 7.5, 2.0], [2.0, 6.0, 0.75]])],
            _each(lambda a, x, n=below: x ** (a - 1 - n) * math.exp(-x) / math.gamma(a)),
            [0, 1],
            empty=[NONE, NONE],
            tolerance=16,
            note=str(below),
        )
        for below in (0, 1)
    ),
    Case(
        "IgammaGradA",
        incomplete_gamma.igamma_grad_a,
        [f([20.0, 2e4, 2e4, 3e4, 0.1, 0.0, -1.0]), f([55.0, 2.02e4, 1.98e4, 3e4, 0.5, 1.0, 1.0])],
        _each(_igamma_slope),
        tolerance=1e7,
        only=[dtypes.float64],
        note="far-out",
    ),
    Case(
        "Betainc",
        special.betainc,
        [f([1.5, 3.0, 2.5]), f([2.0, 0.5, 4.0]), f([0.25, 0.5, 0.75])],
        _each(_betainc),
        [2],
        empty=[NONE, NONE, NONE],
        tolerance=16,
        tensorflow=lambda tf, a, b, x: tf.math.betainc(a, b, x),
    ),
    *_bessel_cases(),
    unary(
        special.bessel_i1,
        lambda x: x / 2 + x**3 / 16,
        f([0.0, 1e-3, -1e-3]),
        special=None,
        only=[dtypes.float64],
        note="near-0",
    ),
]
