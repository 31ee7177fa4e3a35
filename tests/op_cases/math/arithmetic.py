"""Arithmetic."""

from __future__ import annotations

import numpy as np

from flowbook.graph.model import dtypes
from flowbook.graph.ops.basis import conjugation
from flowbook.graph.ops.math import arithmetic, complex, division, no_nan, powers
from flowbook.graph.ops.nn import clipping
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

WAVES = SOME + 1j * OTHER
WAVE_ROW = np.array([0.5 - 1j, 2.0, -1.5 + 0.25j])

# Zeros meet everything that is not finite.
ZEROS = f([[0.0, 2.0, 0.0], [-1.0, 0.0, 3.0]])
ZEROS_AND_ODD = (f([0.0, 0.0, 0.0, 0.0, 1.0, -2.0, np.nan]), ODD)


def _sign(x: np.ndarray) -> np.ndarray:
    return np.where(x == 0, 0, x / np.where(x == 0, 1, np.abs(x)))


def _without(x: np.ndarray, y: np.ndarray, value: np.ndarray) -> np.ndarray:
    """0 where x is."""
    return np.where(np.broadcast_arrays(x, y)[0] == 0, 0, value)


CASES = [
    binary(arithmetic.add, np.add, tensorflow=lambda tf, x, y: tf.add(x, y)),
    binary(
        arithmetic.subtract,
        np.subtract,
        POSITIVE + 4,
        POSITIVE[:1],
        tensorflow=lambda tf, x, y: tf.subtract(x, y),
    ),
    binary(arithmetic.multiply, np.multiply, tensorflow=lambda tf, x, y: tf.multiply(x, y)),
    binary(arithmetic.multiply, np.multiply, SOME[:, :1], ROW, note="both-repeated"),
    binary(arithmetic.div_op, np.divide, tensorflow=lambda tf, x, y: tf.divide(x, y)),
    binary(
        arithmetic.floordiv,
        lambda x, y: np.floor(x / y),
        SOME * 3,
        f([2.0, -3.0, 1.0]),
        smooth=False,
        tensorflow=lambda tf, x, y: tf.math.floordiv(x, y),
    ),
    binary(
        arithmetic.mod,
        np.mod,
        f([[5.5, -7.25, 8.0], [-5.5, 7.25, 1.0]]),
        f([2.0, -3.0, 3.0]),
        tensorflow=lambda tf, x, y: tf.math.floormod(x, y),
    ),
    binary(
        division.truncatediv,
        lambda x, y: np.trunc(x / y),
        f([[7.0, -7.0, 8.0], [-7.5, 7.25, -8.0]]),
        f([2.0, -3.0, 3.0]),
        smooth=False,
        tensorflow=lambda tf, x, y: tf.truncatediv(x, y),
    ),
    binary(
        division.truncatemod,
        np.fmod,
        f([[5.5, -7.25, 8.0], [-5.5, 7.25, 1.0]]),
        f([2.0, -3.0, 3.0]),
        tensorflow=lambda tf, x, y: tf.truncatemod(x, y),
    ),
    binary(
        powers.pow,
        np.power,
        f([[0.5, 1.5, 2.0], [3.0, 1.0, 2.5]]),
        f([2.0, 3.0, 1.0]),
        tolerance=4,
        tensorflow=lambda tf, x, y: tf.pow(x, y),
    ),
    *(
        # Whole exponents of negative numbers too: the sign goes a way of its own.
        Case(
            "Pow",
            lambda x, n=power: powers.pow(x, n),
            [SOME],
            lambda x, n=power: x**n,
            [0],
            special=[ODD],
            only=dtypes.FLOATS,
            tolerance=4,
            tensorflow=lambda tf, x, n=power: tf.pow(x, x.dtype.type(n)),
            note=str(power),
        )
        for power in (3.0, 4.0, -3.0)
    ),
    binary(
        powers.pow,
        np.power,
        WAVES,
        WAVE_ROW,
        only=dtypes.COMPLEX,
        smooth=False,
        special=None,
        tolerance=8,
        note="complex",
        tensorflow=lambda tf, x, y: tf.pow(x, y),
    ),
    unary(arithmetic.negative, np.negative, tensorflow=lambda tf, x: tf.negative(x)),
    unary(complex.abs_op, np.abs, tensorflow=lambda tf, x: tf.abs(x)),
    # Numbers without neighbours of another sign; the gradient of real ones is zeros.
    unary(
        complex.sign,
        np.sign,
        twice=False,  # The first is zero everywhere.
        tensorflow=lambda tf, x: tf.sign(x),
    ),
    unary(
        complex.sign,
        _sign,
        np.append(WAVES, 0),
        only=dtypes.COMPLEX,
        smooth=False,
        special=None,
        note="complex",
        tensorflow=lambda tf, x: tf.sign(x),
    ),
    binary(arithmetic.maximum, np.maximum, tensorflow=lambda tf, x, y: tf.maximum(x, y)),
    binary(arithmetic.minimum, np.minimum, tensorflow=lambda tf, x, y: tf.minimum(x, y)),
    Case(
        "ClipByValue",
        clipping.clip_by_value,
        [SOME, f(-1.0), f([1.0, 0.5, 1.5])],
        lambda x, a, b: np.minimum(np.maximum(x, a), b),
        [0, 1, 2],
        empty=[NONE, f(-1.0), f(1.0)],
        special=[ODD, f(-0.5), f(0.5)],
        tensorflow=lambda tf, x, a, b: tf.clip_by_value(x, a, b),
    ),
    binary(
        arithmetic.squared_difference_op,
        lambda x, y: (x - y) ** 2,
        SOME + 4,
        POSITIVE[:1],
        tensorflow=lambda tf, x, y: tf.math.squared_difference(x, y),
    ),
    Case(
        "AddN",
        lambda *xs: arithmetic.add_n(list(xs)),
        [SOME, OTHER, POSITIVE],
        lambda *xs: sum(xs),
        [0, 1, 2],
        empty=[NONE, NONE, NONE],
        special=[ODD, ODD, ODD],
        tensorflow=lambda tf, *xs: tf.add_n(list(xs)),
    ),
    Case(
        "Conj",
        conjugation.conj,
        [WAVES],
        np.conj,
        empty=[NONE],
        tensorflow=lambda tf, x: tf.math.conj(x),
    ),
    binary(
        no_nan.div_no_nan,
        lambda x, y: np.where(y == 0, 0, np.divide(x, y, where=y != 0, out=np.zeros_like(x + y))),
        special=ZEROS_AND_ODD[::-1],
        tensorflow=lambda tf, x, y: tf.math.divide_no_nan(x, y),
    ),
    binary(
        no_nan.div_no_nan,
        lambda x, y: np.where(y == 0, 0, x / np.where(y == 0, 1, y)),
        SOME,
        ZEROS[0],
        note="by-zero",
        smooth=False,
        tensorflow=lambda tf, x, y: tf.math.divide_no_nan(x, y),
    ),
    binary(
        no_nan.multiply_no_nan,
        lambda x, y: np.where(np.broadcast_arrays(x, y)[1] == 0, 0, x * y),
        special=ZEROS_AND_ODD[::-1],
        tensorflow=lambda tf, x, y: tf.math.multiply_no_nan(x, y),
    ),
    binary(no_nan.xlogy, lambda x, y: x * np.log(y), OTHER, POSITIVE[1], special=None),
    binary(
        no_nan.xlogy,
        lambda x, y: _without(x, y, x * np.log(y)),
        ZEROS,
        POSITIVE[1],
        smooth=False,
        special=ZEROS_AND_ODD,
        note="with-zeros",
        tensorflow=lambda tf, x, y: tf.math.xlogy(x, y),
    ),
    binary(no_nan.xlog1py, lambda x, y: x * np.log1p(y), OTHER, POSITIVE[1], special=None),
    binary(
        no_nan.xlog1py,
        lambda x, y: _without(x, y, x * np.log1p(y)),
        ZEROS,
        POSITIVE[1],
        smooth=False,
        special=ZEROS_AND_ODD,
        note="with-zeros",
        tensorflow=lambda tf, x, y: tf.math.xlog1py(x, y),
    ),
    binary(no_nan.xdivy, lambda x, y: x / y, OTHER, ROW, special=None),
    binary(
        no_nan.xdivy,
        lambda x, y: _without(x, y, x / y),
        ZEROS,
        ROW,
        smooth=False,
        special=ZEROS_AND_ODD,
        note="with-zeros",
        tensorflow=lambda tf, x, y: tf.math.xdivy(x, y),
    ),
    binary(no_nan.gradient_over, lambda x, y: x / y, OTHER, ROW, special=None),
    binary(
        no_nan.gradient_over,
        lambda x, y: _without(x, y, x / y),
        ZEROS,
        ROW,
        special=ZEROS_AND_ODD,
        note="with-zeros",
    ),
]
