"""Functions of one argument, and casts."""

from __future__ import annotations

import numpy as np

from flowbook.graph import dtypes
from flowbook.graph.ops import (
    elementwise,
)
from tests.op_cases.case import (
    NONE,
    ODD,
    POSITIVE,
    Case,
    f,
    unary,
)

CASES = [
    unary(elementwise.exp, np.exp),
    unary(elementwise.log, np.log, POSITIVE),
    unary(elementwise.log1p, np.log1p, POSITIVE),
    unary(elementwise.expm1, np.expm1),
    unary(elementwise.sqrt, np.sqrt, POSITIVE),
    unary(elementwise.rsqrt, lambda x: 1 / np.sqrt(x), POSITIVE),
    unary(elementwise.square, np.square),
    unary(elementwise.reciprocal, lambda x: 1 / x),
    unary(elementwise.sin, np.sin),
    unary(elementwise.cos, np.cos),
    unary(elementwise.tanh, np.tanh),
    unary(elementwise.sigmoid, lambda x: 0.5 * (1 + np.tanh(x / 2))),
    unary(
        elementwise.sigmoid,
        lambda x: np.exp(-np.logaddexp(0, -x)),
        f([-80.0, -20.0, 20.0, 1000.0, -1000.0]),
        only=[dtypes.float32, dtypes.float64],
        smooth=False,
        tolerance=40,
        note="far-out",
    ),
    unary(elementwise.floor, np.floor, smooth=False),
    unary(elementwise.ceil, np.ceil, smooth=False),
    unary(elementwise.round, np.round, f([0.5, 1.5, 2.5, -0.5, -1.5, 0.3, -0.7]), smooth=False),
    unary(elementwise.is_nan, np.isnan, ODD, smooth=False),
    unary(elementwise.is_inf, np.isinf, ODD, smooth=False),
    unary(elementwise.is_finite, np.isfinite, ODD, smooth=False),
    *(
        Case(
            "Cast",
            lambda x, dtype=dtype: elementwise.cast(x, dtype),
            [POSITIVE * 4],
            lambda x, dtype=dtype: (x if dtype.is_complex else np.real(x)).astype(dtype.numpy),
            [0] if dtype is dtypes.float64 else [],
            empty=[NONE],
            note=dtype.name,
        )
        for dtype in (*dtypes.NUMBERS, dtypes.bool)
    ),
]
