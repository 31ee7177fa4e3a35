"""Tridiagonal matrices, against whole ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.ops.linalg import decompositions, tridiagonal
from flowbook.graph.ops.linalg.matrices import SOLVABLE
from tests.op_cases.case import Array, Case

RANDOM = np.random.default_rng(8)
BANDS = RANDOM.integers(-8, 8, (2, 3, 4)) / 8 + np.array([0, 4, 0])[:, None]
RHS = RANDOM.integers(-8, 8, (2, 4, 2)) / 8
TURN = (0.5 - 1.5j) * BANDS + 1j
SQUARE = np.array([[0.0, 2.0, 1.0], [4.0, 1.0, 0.5], [1.0, 1.0, 3.0]])


def _whole(bands: Array) -> Array:
    n = bands.shape[-1]
    result = np.zeros((*bands.shape[:-2], n, n), bands.dtype)
    rows = np.arange(n)
    result[..., rows, rows] = bands[..., 1, :]
    result[..., rows[:-1], rows[1:]] = bands[..., 0, :-1]
    result[..., rows[1:], rows[:-1]] = bands[..., 2, 1:]
    return result


def _solved(bands: Array, rhs: Array) -> Array:
    return np.linalg.solve(_whole(bands), rhs)


def _solving(note: str, bands: Array, rhs: Array, reference: Any = _solved, **how: Any) -> Case:
    is_complex = np.iscomplexobj(bands)
    return Case(
        "TridiagonalSolve",
        lambda b, r: tridiagonal.tridiagonal_solve(b, r, **how),
        [bands, rhs],
        reference,
        [] if is_complex else [0, 1],
        only=SOLVABLE[2:] if is_complex else SOLVABLE[:2],
        empty=[bands[:0], rhs[:0]],
        tolerance=64,
        tensorflow=lambda tf, b, r: tf.linalg.tridiagonal_solve(
            tf.constant(b), tf.constant(r), **how
        ),
        note=note,
    )


CASES = [
    _solving("real", BANDS, RHS),
    _solving("one", BANDS[..., :1], RHS[:, :1]),
    _solving("complex", TURN, RHS * (1 + 1j)),
    _solving(
        "transposed",
        TURN,
        RHS.swapaxes(1, 2) * (1 + 1j),
        lambda b, r: _solved(b, r.swapaxes(1, 2).conj()),
        transpose_rhs=True,
        conjugate_rhs=True,
    ),
    Case(
        "TridiagonalSolve",
        lambda m, r: tridiagonal.tridiagonal_solve(m, r, "matrix"),
        [_whole(BANDS), RHS],
        np.linalg.solve,
        # Numeric gradients see no element outside of the bands.
        [1],
        only=SOLVABLE[:2],
        tolerance=64,
        note="matrix",
        tensorflow=lambda tf, m, r: tf.linalg.tridiagonal_solve(
            tf.constant(m), tf.constant(r), "matrix"
        ),
    ),
    Case(
        "AddN",
        tridiagonal.tridiagonal_matmul,
        [BANDS, RHS],
        lambda b, r: _whole(b) @ r,
        [0, 1],
        only=SOLVABLE[:2],
        tensorflow=lambda tf, b, r: tf.linalg.tridiagonal_matmul(tf.constant(b), tf.constant(r)),
        note="tridiagonal",
    ),
    Case(
        "MatMul",
        lambda x: decompositions.lu_reconstruct(*decompositions.lu(x)),
        [SQUARE],
        lambda x: x,
        [0],
        only=SOLVABLE,
        tolerance=64,
        note="lu_reconstruct",
        tensorflow=lambda tf, x: tf.linalg.lu_reconstruct(*tf.linalg.lu(x)),
    ),
    Case(
        "MatrixTriangularSolve",
        lambda x: decompositions.lu_matrix_inverse(*decompositions.lu(x)),
        [SQUARE],
        np.linalg.inv,
        [0],
        only=SOLVABLE[:2],
        tolerance=64,
        note="lu_matrix_inverse",
        tensorflow=lambda tf, x: tf.linalg.lu_matrix_inverse(*tf.linalg.lu(x)),
    ),
]
