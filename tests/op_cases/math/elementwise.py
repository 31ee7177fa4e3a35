"""Functions of one argument, and casts."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.model import dtypes
from flowbook.graph.model.dtypes import DType
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.math import casting, elementwise
from tests.op_cases.case import (
    NONE,
    ODD,
    OTHER,
    POSITIVE,
    SOME,
    Case,
    f,
    unary,
)

WAVES = SOME + 1j * OTHER


def of_complex(op: Any, reference: Any, tensorflow: Any, tolerance: float = 4) -> Case:
    """A function of complex numbers; its gradient is checked in test_complex.py."""
    return unary(
        op,
        reference,
        WAVES,
        only=dtypes.COMPLEX,
        smooth=False,
        special=None,
        tolerance=tolerance,
        note="complex",
        tensorflow=tensorflow,
    )


def _saturated(value: np.ndarray, dtype: DType) -> np.ndarray:
    limits = np.iinfo(dtype.numpy)
    whole = [
        0 if np.isnan(v) else limits.min if v < limits.min else min(int(min(v, 2e19)), limits.max)
        for v in value.ravel().tolist()
    ]
    return np.array(whole, dtype.numpy).reshape(value.shape)


BYTES = np.arange(16, dtype=np.uint8).reshape(2, 8)

CASES = [
    unary(elementwise.exp, np.exp, tensorflow=lambda tf, x: tf.exp(x)),
    unary(elementwise.log, np.log, POSITIVE, tensorflow=lambda tf, x: tf.math.log(x)),
    unary(elementwise.log1p, np.log1p, POSITIVE, tensorflow=lambda tf, x: tf.math.log1p(x)),
    unary(elementwise.expm1, np.expm1, tensorflow=lambda tf, x: tf.math.expm1(x)),
    unary(elementwise.sqrt, np.sqrt, POSITIVE, tensorflow=lambda tf, x: tf.sqrt(x)),
    unary(
        elementwise.rsqrt,
        lambda x: 1 / np.sqrt(x),
        POSITIVE,
        tensorflow=lambda tf, x: tf.math.rsqrt(x),
    ),
    unary(elementwise.square, np.square, tensorflow=lambda tf, x: tf.square(x)),
    unary(elementwise.reciprocal, lambda x: 1 / x, tensorflow=lambda tf, x: tf.math.reciprocal(x)),
    unary(elementwise.tanh, np.tanh, tensorflow=lambda tf, x: tf.tanh(x)),
    unary(
        elementwise.sigmoid,
        lambda x: 0.5 * (1 + np.tanh(x / 2)),
        tensorflow=lambda tf, x: tf.sigmoid(x),
    ),
    unary(
        elementwise.sigmoid,
        lambda x: np.exp(-np.logaddexp(0, -x)),
        f([-80.0, -20.0, 20.0, 1000.0, -1000.0]),
        only=[dtypes.float32, dtypes.float64],
        smooth=False,
        tolerance=40,
        note="far-out",
        tensorflow=lambda tf, x: tf.sigmoid(x),
    ),
    of_complex(elementwise.exp, np.exp, lambda tf, x: tf.exp(x)),
    of_complex(elementwise.log, np.log, lambda tf, x: tf.math.log(x)),
    of_complex(elementwise.log1p, lambda x: np.log(1 + x), lambda tf, x: tf.math.log1p(x)),
    of_complex(elementwise.expm1, lambda x: np.exp(x) - 1, lambda tf, x: tf.math.expm1(x)),
    of_complex(elementwise.sqrt, np.sqrt, lambda tf, x: tf.sqrt(x)),
    of_complex(elementwise.rsqrt, lambda x: x**-0.5, lambda tf, x: tf.math.rsqrt(x)),
    of_complex(elementwise.square, lambda x: x * x, lambda tf, x: tf.square(x)),
    of_complex(elementwise.reciprocal, lambda x: 1 / x, lambda tf, x: tf.math.reciprocal(x)),
    of_complex(elementwise.tanh, np.tanh, lambda tf, x: tf.tanh(x)),
    of_complex(
        elementwise.sigmoid, lambda x: 0.5 + 0.5 * np.tanh(x / 2), lambda tf, x: tf.sigmoid(x)
    ),
    unary(elementwise.floor, np.floor, smooth=False, tensorflow=lambda tf, x: tf.floor(x)),
    unary(elementwise.ceil, np.ceil, smooth=False, tensorflow=lambda tf, x: tf.math.ceil(x)),
    unary(elementwise.trunc, lambda x: np.sign(x) * np.floor(np.abs(x)), smooth=False),
    unary(
        elementwise.round_op,
        np.round,
        f([0.5, 1.5, 2.5, -0.5, -1.5, 0.3, -0.7]),
        smooth=False,
        tensorflow=lambda tf, x: tf.round(x),
    ),
    unary(
        elementwise.is_nan, np.isnan, ODD, smooth=False, tensorflow=lambda tf, x: tf.math.is_nan(x)
    ),
    unary(
        elementwise.is_inf, np.isinf, ODD, smooth=False, tensorflow=lambda tf, x: tf.math.is_inf(x)
    ),
    unary(
        elementwise.is_finite,
        np.isfinite,
        ODD,
        smooth=False,
        tensorflow=lambda tf, x: tf.math.is_finite(x),
    ),
    *(
        Case(
            "Cast",
            lambda x, dtype=dtype: cast(x, dtype, name="to"),
            [POSITIVE * 4],
            lambda x, dtype=dtype: (x if dtype.is_complex else np.real(x)).astype(dtype.numpy),
            [0] if dtype is dtypes.float64 else [],
            empty=[NONE],
            note=dtype.name,
            tensorflow=lambda tf, x, dtype=dtype: tf.cast(x, dtype.name),
        )
        for dtype in (*dtypes.NUMBERS, dtypes.bool)
        if dtype is not dtypes.bfloat16
    ),
    *(
        Case(
            "SaturateCast",
            lambda x, dtype=dtype: casting.saturate_cast(x, dtype),
            [f([[-300.0, -1.5, 0.0], [2.0, 127.5, 70000.0]])],
            lambda x, dtype=dtype: _saturated(x, dtype),
            empty=[NONE],
            special=[np.append(ODD, [2.0**31, 2.0**32, 2.0**63, 2.0**64, -1e30])],
            # In 16 bits the reference's inputs themselves would be infinite.
            only=[t for t in dtypes.REALS if t not in (dtypes.float16, dtypes.bfloat16)],
            note=dtype.name,
        )
        for dtype in dtypes.INTS
    ),
    Case(
        "SaturateCast",
        lambda x: casting.saturate_cast(x, dtypes.float16),
        [f([-300.0, 1e30, -7e4, 0.5])],
        lambda x: np.clip(x, -65504, 65504).astype(np.float16),
        empty=[NONE],
        special=[ODD],
        only=[dtypes.float32, dtypes.float64],
        note="float16",
        tensorflow=lambda tf, x: tf.saturate_cast(x, tf.float16),
    ),
    Case(
        "SaturateCast",
        lambda x: casting.saturate_cast(x, dtypes.float64),
        [POSITIVE],
        lambda x: x,
        [0],
        note="float64",
    ),
    Case(
        "Bitcast",
        lambda x: casting.bitcast(x, dtypes.uint8),
        [np.array([[1.5, -2.0, 3.0]])],
        lambda x: np.frombuffer(x.tobytes(), np.uint8).reshape(1, 3, 8),
        empty=[np.zeros((0, 3))],
        only=[dtypes.float64],
        note="smaller",
        tensorflow=lambda tf, x: tf.bitcast(x, tf.uint8),
    ),
    Case(
        "Bitcast",
        lambda x: casting.bitcast(x, dtypes.int32),
        [np.array([[1.5, -2.0, 3.0]], np.float32)],
        lambda x: np.frombuffer(np.float32(x).tobytes(), np.int32).reshape(1, 3),
        empty=[np.zeros((0, 3), np.float32)],
        only=[dtypes.float32],
        note="as-large",
        tensorflow=lambda tf, x: tf.bitcast(x, tf.int32),
    ),
    Case(
        "Bitcast",
        lambda x: casting.bitcast(x, dtypes.float64),
        [BYTES],
        lambda x: np.frombuffer(np.uint8(x).tobytes(), np.float64),
        empty=[BYTES[:0]],
        only=[dtypes.uint8],
        note="larger",
        tensorflow=lambda tf, x: tf.bitcast(x, tf.float64),
    ),
]
