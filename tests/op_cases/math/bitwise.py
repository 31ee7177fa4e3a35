"""Bits of integers."""

from __future__ import annotations

import numpy as np

from flowbook.graph.model import dtypes
from flowbook.graph.ops.math import bitwise
from tests.op_cases.case import NONE, Case, f

NUMBERS = f([[1.0, -5.0, 100.0], [0.0, 7.0, -1.0]])
PLACES = f([1.0, 3.0, 6.0])


def _wrapped(x: np.ndarray) -> np.ndarray:
    """What is left of whole numbers in 8 bits."""
    return (np.int64(x) + 128) % 256 - 128


CASES = [
    Case(
        "LeftShift",
        bitwise.left_shift,
        [NUMBERS, PLACES],
        lambda x, y: _wrapped(x * 2**y),
        empty=[NONE, PLACES],
        only=[dtypes.int8],
        note="narrow",
    ),
    Case(
        "LeftShift",
        bitwise.left_shift,
        [NUMBERS, PLACES],
        lambda x, y: x * 2**y,
        empty=[NONE, PLACES],
        only=[t for t in dtypes.INTS if t.size > 1],
        tensorflow=lambda tf, x, y: tf.bitwise.left_shift(x, y),
    ),
    Case(
        "RightShift",
        bitwise.right_shift,
        [NUMBERS, PLACES],
        lambda x, y: np.floor(x / 2**y),
        empty=[NONE, PLACES],
        tensorflow=lambda tf, x, y: tf.bitwise.right_shift(x, y),
    ),
    Case(
        "RightShift",
        bitwise.right_shift,
        [f([-8.0, 8.0, -8.0]), f([64.0, 64.0, -1.0])],
        lambda x, y: np.where(x < 0, -1, 0),
        only=[dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64],
        note="too-far",
    ),
    Case(
        "PopulationCount",
        bitwise.population_count,
        [np.abs(NUMBERS)],
        lambda x: np.vectorize(lambda v: bin(int(v)).count("1"), otypes=[int])(x),
        empty=[NONE],
        tensorflow=lambda tf, x: tf.raw_ops.PopulationCount(x=x),
    ),
    Case(
        "PopulationCount",
        bitwise.population_count,
        [f([-1.0, -128.0, -2.0])],
        lambda x: np.array([8, 1, 7]),
        only=[dtypes.int8],
        note="negative",
    ),
]
