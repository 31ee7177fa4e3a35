"""Trigonometric and hyperbolic functions and their inverses; powers, roots and logarithms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flowbook.graph.model import dtypes
from flowbook.graph.ops.math import elementwise, numeric, powers, trigonometry
from tests.op_cases.case import (
    NONE,
    ODD,
    OTHER,
    POSITIVE,
    SOME,
    Case,
    binary,
    f,
    unary,
)
from tests.op_cases.math.elementwise import of_complex

INSIDE = f([[0.5, -0.875, 0.25], [0.75, -0.25, 0.0625]])
FAR = f([1e300, -1e300, 1e-300, 0.0])


def _both(op: Any, name: str, reference: Any, inputs: Any = SOME, numpy: Any = None) -> list[Case]:
    """A function of real numbers and of complex ones."""

    def tensorflow(tf: Any, x: Any) -> Any:
        return getattr(tf.math, name)(x)

    return [
        unary(op, reference, inputs, tensorflow=tensorflow, tolerance=2),
        of_complex(op, numpy or reference, tensorflow),
    ]


CASES = [
    *_both(elementwise.sin, "sin", np.sin),
    *_both(elementwise.cos, "cos", np.cos),
    *_both(trigonometry.tan, "tan", lambda x: np.sin(x) / np.cos(x), INSIDE),
    *_both(trigonometry.asin, "asin", np.arcsin, INSIDE),
    *_both(trigonometry.acos, "acos", np.arccos, INSIDE),
    *_both(trigonometry.atan, "atan", np.arctan),
    *_both(trigonometry.sinh, "sinh", lambda x: (np.exp(x) - np.exp(-x)) / 2),
    *_both(trigonometry.cosh, "cosh", lambda x: (np.exp(x) + np.exp(-x)) / 2),
    *_both(trigonometry.asinh, "asinh", np.arcsinh),
    *_both(trigonometry.acosh, "acosh", np.arccosh, POSITIVE + 1),
    *_both(trigonometry.atanh, "atanh", np.arctanh, INSIDE),
    binary(
        trigonometry.atan2,
        np.vectorize(math.atan2, otypes=[np.float64]),
        special=(ODD[[0, 1, 3, 5, 6]][:, None], f([0.5, -0.5])),
        tensorflow=lambda tf, y, x: tf.math.atan2(y, x),
    ),
    unary(powers.exp2, lambda x: 2.0**x),
    unary(powers.log2, lambda x: np.log(x) / np.log(2), POSITIVE),
    unary(powers.log10, lambda x: np.log(x) / np.log(10), POSITIVE),
    unary(powers.cbrt, lambda x: np.sign(x) * np.abs(x) ** (1 / 3)),
    binary(powers.hypot, np.vectorize(math.hypot, otypes=[np.float64])),
    Case(
        "Hypot",
        powers.hypot,
        [FAR, FAR],
        lambda x, y: np.sqrt(2) * np.abs(x),
        only=[dtypes.float64],
        note="far-out",
    ),
    binary(
        powers.logaddexp,
        lambda x, y: np.maximum(x, y) + np.log1p(np.exp(-np.abs(x - y))),
        special=(f([1e30, -1e30, 700.0, np.nan])[:, None], f([1e30, -1e30, 0.0])),
    ),
    Case(
        "LogAddExp",
        powers.logaddexp,
        [f([1.0, 2.0]), f([1.0, 2.0])],
        lambda x, y: x + np.log(2),
        [0, 1],
        note="equal",
    ),
    Case(
        "CopySign",
        numeric.copysign,
        [SOME, OTHER],
        lambda x, y: np.abs(x) * np.where(np.signbit(y), -1, 1),
        [0],
        empty=[NONE, NONE],
        special=[f([np.nan, np.inf, 0.0, -0.0, 2.0]), f([-1.0, -0.0, -0.0, 0.0, -np.inf])],
    ),
    Case(
        "NextAfter",
        numeric.nextafter,
        [SOME, OTHER],
        lambda x, y: np.nextafter(x, y),
        [0, 1],
        only=[dtypes.float64],
        twice=False,  # It is the identity, but for a last digit.
        tensorflow=lambda tf, x, y: tf.math.nextafter(tf.constant(x), tf.constant(y)),
    ),
    binary(
        numeric.heaviside,
        lambda x, y: np.where(np.isnan(x), x, np.where(x == 0, y, x > 0)),
        f([[0.0, -1.5, 2.0], [3.0, 0.0, 0.0]]),
        smooth=False,
    ),
    unary(
        numeric.sinc,
        lambda x: np.where(x == 0, 1, np.sin(np.pi * x) / np.where(x == 0, 1, np.pi * x)),
    ),
    unary(
        numeric.sinc,
        lambda x: np.where(x == 0, 1, 1 - (np.pi * x) ** 2 / 6 + (np.pi * x) ** 4 / 120),
        f([0.0, 1e-3, -0.003, 0.05]),
        special=None,
        only=[dtypes.float64],
        tolerance=1e10,
        note="near-0",
    ),
]
