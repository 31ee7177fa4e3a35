"""Arithmetic."""

from __future__ import annotations

import numpy as np

from flowbook.graph.ops import (
    arithmetic,
)
from tests.op_cases.case import (
    NONE,
    ODD,
    OTHER,
    POSITIVE,
    ROW,
    SOME,
    Case,
    binary,
    f,
    unary,
)

CASES = [
    binary(arithmetic.add, np.add),
    binary(arithmetic.subtract, np.subtract, POSITIVE + 4, POSITIVE[:1]),
    binary(arithmetic.multiply, np.multiply),
    binary(arithmetic.multiply, np.multiply, SOME[:, :1], ROW, note="both-repeated"),
    binary(arithmetic.div_op, np.divide),
    binary(arithmetic.floordiv, np.floor_divide, SOME * 3, f([2.0, -3.0, 1.0]), smooth=False),
    binary(
        arithmetic.mod,
        np.mod,
        f([[5.5, -7.25, 8.0], [-5.5, 7.25, 1.0]]),
        f([2.0, -3.0, 3.0]),
    ),
    binary(
        arithmetic.pow,
        np.power,
        f([[0.5, 1.5, 2.0], [3.0, 1.0, 2.5]]),
        f([2.0, 3.0, 1.0]),
        tolerance=4,
    ),
    unary(arithmetic.negative, np.negative),
    unary(arithmetic.abs, np.abs),
    unary(arithmetic.sign, np.sign, smooth=False),
    binary(arithmetic.maximum, np.maximum),
    binary(arithmetic.minimum, np.minimum),
    Case(
        "ClipByValue",
        arithmetic.clip_by_value,
        [SOME, f(-1.0), f([1.0, 0.5, 1.5])],
        lambda x, a, b: np.minimum(np.maximum(x, a), b),
        [0, 1, 2],
        empty=[NONE, f(-1.0), f(1.0)],
        special=[ODD, f(-0.5), f(0.5)],
    ),
    binary(arithmetic.squared_difference, lambda x, y: (x - y) ** 2, SOME + 4, POSITIVE[:1]),
    Case(
        "AddN",
        lambda *xs: arithmetic.add_n(list(xs)),
        [SOME, OTHER, POSITIVE],
        lambda *xs: sum(xs),
        [0, 1, 2],
        empty=[NONE, NONE, NONE],
        special=[ODD, ODD, ODD],
    ),
    Case(
        "Conj",
        arithmetic.conj,
        [SOME + 1j * OTHER],
        np.conj,
        empty=[NONE],
    ),
]
