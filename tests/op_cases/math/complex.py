"""Complex numbers and their parts; tests/graph/ops/math/test_complex.py checks their gradients."""

from __future__ import annotations

import numpy as np

from flowbook.graph.model import dtypes
from flowbook.graph.ops.math import complex
from tests.op_cases.case import NONE, OTHER, ROW, SOME, Case

WAVES = np.append(SOME + 1j * OTHER, [[0, -2, 1e-3j]], 0)

CASES = [
    Case(
        "Complex",
        complex.complex,
        [SOME, ROW],
        lambda x, y: x + 1j * y,
        empty=[NONE, ROW],
        tensorflow=lambda tf, x, y: tf.complex(x, np.broadcast_to(y, x.shape)),
    ),
    Case(
        "Real",
        complex.real,
        [WAVES],
        np.real,
        empty=[NONE],
        tensorflow=lambda tf, x: tf.math.real(x),
    ),
    Case(
        "Imag",
        complex.imag,
        [WAVES],
        np.imag,
        empty=[NONE],
        tensorflow=lambda tf, x: tf.math.imag(x),
    ),
    Case(
        "Angle",
        complex.angle,
        [WAVES],
        lambda x: np.arctan2(x.imag, x.real),
        empty=[NONE],
        tensorflow=lambda tf, x: tf.math.angle(x),
    ),
    Case(
        "ComplexAbs",
        complex.abs,
        [np.append(WAVES, [[3e200 + 4e200j, 0, 1]], 0)],
        lambda x: np.hypot(x.real, x.imag),
        empty=[NONE],
        only=[dtypes.complex128],
        note="huge",
        tensorflow=lambda tf, x: tf.abs(x),
    ),
    Case(
        "ComplexAbs",
        complex.abs,
        [WAVES],
        lambda x: np.hypot(x.real, x.imag),
        empty=[NONE],
    ),
]
