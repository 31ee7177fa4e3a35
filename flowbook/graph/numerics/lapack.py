"""What of LAPACK only SciPy reaches; SciPy is loaded when it is first needed."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from flowbook.graph.numerics.products import factorised

Array = np.ndarray[Any, Any]


@cache
def _scipy() -> Any:
    import scipy.linalg

    return scipy.linalg


def solved_triangular(matrix: Array, rhs: Array, lower: bool) -> Array:
    """Solve with triangular matrices [batch, n, n], whose diagonals have no zeros.

    Args:
        matrix: what lies in the other triangle is not read.
        rhs: [batch, n, m].
        lower: which triangle holds the matrix.
    """
    [solve] = _scipy().get_lapack_funcs(("trtrs",), (matrix, rhs))
    result = np.empty_like(rhs)
    for i in range(len(matrix)):
        # LAPACK reads by columns: what lies in rows is to it the transposed matrix.
        result[i], _ = factorised(solve, matrix[i].T, rhs[i], lower=not lower, trans=1)
    return result


def schur(matrix: Array) -> tuple[Array, Array]:
    """Complex Schur form of finite matrices [batch, n, n]: T and Z with A = Z T Z^H."""
    form = np.empty(matrix.shape, np.complex128)
    basis = np.empty_like(form)
    for i in range(len(matrix)):
        form[i], basis[i] = factorised(
            _scipy().schur, matrix[i], output="complex", check_finite=False
        )
    return form, basis


def lu_factors(matrix: Array) -> tuple[Array, Array]:
    """L and U of matrices [batch, n, n] in one, and for each row of P A which row of A it is."""
    [factorise] = _scipy().get_lapack_funcs(("getrf",), (matrix,))
    factors = np.empty_like(matrix)
    order = np.empty(matrix.shape[:-1], np.int64)
    # LAPACK prints that a matrix without elements is illegal.
    for i in range(len(matrix) if matrix.size else 0):
        factors[i], pivots, _ = factorised(factorise, matrix[i])
        rows = np.arange(matrix.shape[-1])
        for row, other in enumerate(pivots):
            rows[[row, other]] = rows[[other, row]]
        order[i] = rows
    return factors, order


def solved_tridiagonal(diagonals: Array, rhs: Array) -> Array:
    """Solve with the matrices of diagonals [batch, 3, n]: above, on and below the main one.

    Args:
        diagonals: each element in the row that it stands in.
        rhs: [batch, n, m].

    Raises:
        LinAlgError: if a matrix is singular.
    """
    result = np.empty_like(rhs)
    if not rhs.size:
        return result
    # SciPy wants each element in its column.
    banded = np.zeros_like(diagonals)
    banded[:, 0, 1:], banded[:, 2, :-1] = diagonals[:, 0, :-1], diagonals[:, 2, 1:]
    banded[:, 1] = diagonals[:, 1]
    for i in range(len(rhs)):
        # One element is divided by without a look at it.
        if rhs.shape[1] == 1 and not banded[i, 1, 0]:
            raise np.linalg.LinAlgError("singular matrix")
        result[i] = _scipy().solve_banded((1, 1), banded[i], rhs[i], check_finite=False)
    return result
