"""Inverses, determinants, systems of equations, and functions of matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

from flowbook.graph.model.dtypes import COMPLEX
from flowbook.graph.ops.linalg import least_squares, matrix_functions, solving
from flowbook.graph.ops.linalg.matrices import SOLVABLE
from tests.op_cases.case import Array, Case, f

SQUARE = f([[2.0, 1.0], [0.5, 3.0]])
SQUARES = np.stack([SQUARE, SQUARE.T * -2])
TURN = f([[1.0, 2.0], [0.5, -1.0]]) + 1j * f([[0.5, -1.0], [2.0, 0.25]])
TALL = f([[1.0, 2.0], [0.5, -1.0], [2.0, 0.25]])
ROWS = f([[1.0, 2.0, 0.5], [-1.0, 3.0, 2.0]])
LOWER = f([[2.0, 99.0, 99.0], [1.0, -1.5, 99.0], [0.5, 0.25, 3.0]])
NO_MATRICES = np.zeros((0, 2, 2))
NO_SIDES = np.zeros((2, 0, 0))
POSITIVE_SPECTRUM = f([[4.0, 1.0, 0.5], [0.5, 3.0, 1.0], [-0.5, 0.25, 2.0]])


def _case(
    type: str,
    build: Callable[..., Any],
    reference: Callable[..., Any],
    *inputs: Any,
    note: str = "",
    **options: Any,
) -> Case:
    is_complex = any(np.iscomplexobj(x) for x in inputs)
    return Case(
        type,
        build,
        inputs,
        reference,
        [] if is_complex else list(range(len(inputs))),
        only=options.pop("only", COMPLEX if is_complex else None),
        tolerance=options.pop("tolerance", 16),
        note=note,
        **options,
    )


def _triangle(x: Array, lower: bool, adjoint: bool) -> Array:
    found = np.tril(x) if lower else np.triu(x)
    return found.conj().swapaxes(-1, -2) if adjoint else found


def _triangular(lower: bool, adjoint: bool, matrix: Any, rhs: Any, note: str) -> Case:
    return _case(
        "MatrixTriangularSolve",
        lambda m, r: solving.matrix_triangular_solve(m, r, lower, adjoint),
        lambda m, r: np.linalg.solve(_triangle(m, lower, adjoint), r),
        matrix,
        rhs,
        note=note,
        empty=[NO_SIDES, np.zeros((2, 0, 3))],
        tensorflow=lambda tf, m, r: tf.linalg.triangular_solve(m, r, lower, adjoint),
    )


def _exponential(x: Array) -> Array:
    """Taylor's series of a small part, squared again, in a wider dtype."""
    wide = x.astype(np.clongdouble if np.iscomplexobj(x) else np.longdouble) / 2**20
    term = result = np.eye(len(x), dtype=wide.dtype)
    for k in range(1, 25):
        term = term @ wide / k
        result = result + term
    for _ in range(20):
        result = result @ result
    return result.astype(np.complex128 if np.iscomplexobj(x) else np.float64)


def _log_determinant(x: Array) -> tuple[Array, Array]:
    sign, logarithm = np.linalg.slogdet(x)
    return np.where(np.isnan(logarithm), np.nan, sign), logarithm


def _pseudo_inverse(x: Array) -> Array:
    return np.full(x.shape[::-1], np.nan) if np.isnan(x).any() else np.linalg.pinv(x)


def _of_each(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    def reference(x: Array) -> Array:
        flat = x.reshape(-1, *x.shape[-2:])
        return np.reshape([function(m) for m in flat], x.shape)

    return reference


CASES = [
    _case(
        "MatrixInverse",
        solving.matrix_inverse,
        np.linalg.inv,
        SQUARES,
        empty=[NO_MATRICES],
        tensorflow=lambda tf, x: tf.linalg.inv(x),
    ),
    _case(
        "MatrixInverse",
        lambda x: [solving.matrix_inverse(x, adjoint=True), solving.matrix_inverse(x)],
        lambda x: (np.linalg.inv(x).conj().T, np.linalg.inv(x)),
        TURN,
        note="adjoint",
        tensorflow=lambda tf, x: [tf.linalg.inv(x, adjoint=True), tf.linalg.inv(x)],
    ),
    _case(
        "MatrixInverse",
        solving.matrix_inverse,
        np.linalg.inv,
        np.zeros((2, 0, 0)),
        note="0x0",
        twice=False,  # There are no elements to differentiate by.
        tensorflow=lambda tf, x: tf.linalg.inv(x),
    ),
    _case(
        "MatrixDeterminant",
        solving.matrix_determinant,
        np.linalg.det,
        SQUARES,
        empty=[NO_SIDES],
        special=[f([[np.nan, 1.0], [1.0, 2.0]])],
        tensorflow=lambda tf, x: tf.linalg.det(x),
    ),
    _case(
        "LogMatrixDeterminant",
        solving.log_matrix_determinant,
        _log_determinant,
        SQUARES,
        empty=[NO_SIDES],
        special=[f([[0.0, np.nan], [1.0, 2.0]])],
        tensorflow=lambda tf, x: tf.linalg.slogdet(x),
    ),
    _case(
        "LogMatrixDeterminant",
        solving.log_matrix_determinant,
        lambda x: tuple(np.linalg.slogdet(x)),
        TURN,
        note="complex",
        tensorflow=lambda tf, x: tf.linalg.slogdet(x),
    ),
    Case(
        "LogMatrixDeterminant",
        solving.log_matrix_determinant,
        [f([[[0.0, 1e200], [1e200, 0.0]], [[1.0, 1.0], [1.0, 1.0]]])],
        lambda x: (np.array([-1.0, 0.0]), np.array([400 * np.log(10.0), -np.inf])),
        note="extreme",
        only=SOLVABLE[1:2],
        tensorflow=lambda tf, x: tf.linalg.slogdet(x),
    ),
    _case(
        "MatrixSolve",
        solving.matrix_solve,
        np.linalg.solve,
        SQUARES,
        np.stack([ROWS, ROWS * 2]),
        empty=[NO_SIDES, np.zeros((2, 0, 3))],
        tensorflow=lambda tf, m, r: tf.linalg.solve(m, r),
    ),
    _case(
        "MatrixSolve",
        lambda m, r: solving.matrix_solve(m, r, adjoint=True),
        lambda m, r: np.linalg.solve(m.conj().swapaxes(-1, -2), r),
        SQUARES,
        ROWS,
        note="broadcast",
    ),
    _case(
        "MatrixSolve",
        lambda m, r: solving.matrix_solve(m, r, adjoint=True),
        lambda m, r: np.linalg.solve(m.conj().T, r),
        TURN,
        ROWS + 0j,
        note="complex",
        tensorflow=lambda tf, m, r: tf.linalg.solve(m, r, adjoint=True),
    ),
    _triangular(True, False, LOWER, f([[1.0], [2.0], [3.0]]), "lower"),
    _triangular(False, False, LOWER, f([[1.0, 2.0], [2.0, 1.0], [3.0, 0.5]]), "upper"),
    _triangular(True, True, LOWER, f([[1.0], [2.0], [3.0]]), "adjoint"),
    _triangular(False, True, TURN, TURN + 1, "complex"),
    _triangular(True, True, np.stack([SQUARE] * 4), ROWS, "many"),
    _triangular(False, False, np.stack([SQUARE] * 4) * 2, np.stack([ROWS] * 4), "many-upper"),
    _case(
        "MatrixTriangularSolve",
        lambda m, r: [solving.cholesky_solve(m, r), solving.matrix_triangular_solve(m, r)],
        lambda m, r: (
            np.linalg.solve(np.tril(m) @ np.tril(m).T, r),
            np.linalg.solve(np.tril(m), r),
        ),
        LOWER,
        f([[1.0], [2.0], [3.0]]),
        note="cholesky_solve",
        tensorflow=lambda tf, m, r: [
            tf.linalg.cholesky_solve(m, r),
            tf.linalg.triangular_solve(m, r),
        ],
    ),
    *(
        _case(
            "MatrixPseudoInverse",
            least_squares.pinv,
            _pseudo_inverse,
            x,
            note=note,
            empty=[np.zeros((2, 0, 3))],
            special=[f([[np.nan, 1.0], [1.0, 2.0]])] if note == "tall" else None,
            tensorflow=None if np.iscomplexobj(x) else lambda tf, x: tf.linalg.pinv(x),
        )
        for note, x in (("tall", TALL), ("wide", ROWS), ("batch", SQUARES), ("complex", TURN))
    ),
    Case(
        "MatrixPseudoInverse",
        least_squares.pinv,
        [np.ones((3, 2))],
        np.linalg.pinv,
        tolerance=16,
        note="rank",
        tensorflow=lambda tf, x: tf.linalg.pinv(x),
    ),
    *(
        Case(
            "MatrixRank",
            least_squares.matrix_rank,
            [x],
            np.linalg.matrix_rank,
            note=note,
            empty=[np.zeros((2, 0, 3))],
            tensorflow=lambda tf, x: tf.linalg.matrix_rank(x),
        )
        for note, x in (
            ("tall", TALL),
            ("wide", ROWS),
            ("batch", SQUARES),
            ("one", np.ones((3, 2))),
        )
    ),
    Case(
        "MatrixRank",
        lambda x: least_squares.matrix_rank(x, tol=0.5),
        [np.diag([3.0, 0.4, 0.6])],
        lambda x: 2,
        note="limit",
    ),
    *(
        _case(
            "MatrixExponential",
            matrix_functions.matrix_exponential,
            _of_each(_exponential),
            x,
            note=note,
            tolerance=64,
            empty=[NO_SIDES],
            special=[f([[np.nan, 1.0], [1.0, 2.0]])] if note == "batch" else None,
            tensorflow=lambda tf, x: tf.linalg.expm(x),
        )
        for note, x in (
            ("batch", np.stack([SQUARE, SQUARE.T * -0.01, np.zeros((2, 2))])),
            ("complex", TURN),
        )
    ),
    Case(
        "MatrixExponential",
        matrix_functions.matrix_exponential,
        [np.stack([SQUARE * 8, -SQUARE * 8, f([[0.0, 1e-8], [0.0, 0.0]])])],
        _of_each(_exponential),
        tolerance=512,
        note="sizes",
        only=SOLVABLE[1:2],
        tensorflow=lambda tf, x: tf.linalg.expm(x),
    ),
    *(
        _case(
            "MatrixSquareRoot",
            matrix_functions.matrix_square_root,
            _of_each(scipy.linalg.sqrtm),
            x,
            note=note,
            tolerance=64,
            empty=[NO_SIDES],
            special=[f([[np.nan, 1.0], [1.0, 2.0]])] if note == "real" else None,
            tensorflow=lambda tf, x: tf.linalg.sqrtm(x),
        )
        for note, x in (
            ("real", POSITIVE_SPECTRUM),
            ("turning", f([[[0.0, -1.0], [1.0, 0.0]], [[2.0, -3.0], [1.0, 2.0]]])),
            ("complex", TURN),
        )
    ),
    Case(
        "MatrixSquareRoot",
        matrix_functions.matrix_square_root,
        [f([[[4.0, 4.0], [4.0, 4.0]], [[0.0, 0.0], [0.0, 9.0]]])],
        lambda x: np.array([[[2.0**0.5] * 2] * 2, [[0.0, 0.0], [0.0, 3.0]]]),
        tolerance=16,
        note="singular",
        only=SOLVABLE[1:2],
    ),
    Case(
        "MatrixSquareRoot",
        matrix_functions.matrix_square_root,
        [-SQUARE],
        lambda x: np.full((2, 2), np.nan),
        note="no-real-root",
        only=SOLVABLE[:2],
        tensorflow=lambda tf, x: tf.linalg.sqrtm(x),
    ),
    *(
        Case(
            "MatrixLogarithm",
            matrix_functions.matrix_logarithm,
            [x + 0j],
            _of_each(lambda x: scipy.linalg.logm(x.astype(np.complex128))),
            tolerance=64,
            empty=[NO_SIDES],
            note=note,
            tensorflow=lambda tf, x: tf.linalg.logm(x),
        )
        for note, x in (
            ("real", np.stack([POSITIVE_SPECTRUM, 100 * POSITIVE_SPECTRUM])),
            ("complex", TURN),
            ("small", np.eye(2) * 1e-3 + f([[0.0, 1e-9], [0.0, 0.0]])),
        )
    ),
]
