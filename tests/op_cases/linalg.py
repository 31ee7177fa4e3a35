"""Matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.ops import (
    linalg,
)
from tests.op_cases.case import (
    CUBE,
    NONE,
    POSITIVE,
    Case,
    f,
)

SQUARE = f([[2.0, 1.0], [0.5, 3.0]])


def _matmul_case(transpose_a: bool, transpose_b: bool, **options: Any) -> Case:
    a, b = POSITIVE, POSITIVE.T[:, ::-1] * 2
    return Case(
        "MatMul",
        lambda x, y: linalg.matmul(x, y, transpose_a, transpose_b),
        [a.T if transpose_a else a, b.T if transpose_b else b],
        lambda x, y: np.matmul(x.T if transpose_a else x, y.T if transpose_b else y),
        [0, 1],
        tolerance=4,
        note=f"{transpose_a}-{transpose_b}",
        **options,
    )


CASES = [
    _matmul_case(False, False, empty=[NONE, np.zeros((3, 2))]),
    _matmul_case(True, False, empty=[NONE, np.zeros((0, 2))]),
    _matmul_case(False, True),
    _matmul_case(True, True),
    Case(
        "MatMul",
        linalg.matmul,
        [CUBE[:, None] % 3, np.ones((2, 4, 2))],
        lambda a, b: np.matmul(a, b),
        [0, 1],
        note="batches",
        tolerance=8,
    ),
    Case(
        "MatrixInverse",
        linalg.matrix_inverse,
        [np.stack([SQUARE, SQUARE.T * 2])],
        np.linalg.inv,
        [0],
        empty=[np.zeros((0, 2, 2))],
        tolerance=16,
    ),
    Case(
        "MatrixDeterminant",
        linalg.matrix_determinant,
        [np.stack([SQUARE, SQUARE.T * 2])],
        np.linalg.det,
        [0],
        empty=[np.zeros((0, 2, 2))],
        tolerance=16,
    ),
]
