"""Inverses, determinants and systems of linear equations.

Gradients are those of Giles 2008, "An extended collection of matrix derivative results for forward
and reverse mode automatic differentiation".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from flowbook.graph.definition.batching import Batching
from flowbook.graph.definition.op_def import HOST, OpDef
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import UNKNOWN, Shape
from flowbook.graph.model.shape import broadcast as broadcast_shapes
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.numerics import products
from flowbook.graph.numerics.lapack import solved_triangular
from flowbook.graph.ops.basis.broadcasting import sum_to_shape
from flowbook.graph.ops.basis.conjugation import conjugate
from flowbook.graph.ops.basis.shaping import expand_dims_op
from flowbook.graph.ops.linalg.diagonals import band_part_op
from flowbook.graph.ops.linalg.matrices import (
    SOLVABLE,
    adjoint,
    batch_shape,
    check_matrix,
    check_square,
    cubic,
    imaginary_part,
    real_part,
    refuse_nan,
    sides,
    square_dims,
    square_shape,
)
from flowbook.graph.ops.linalg.matrix_products import matmul

__all__ = [
    "cholesky_solve",
    "log_matrix_determinant",
    "matrix_determinant",
    "matrix_inverse",
    "matrix_solve",
    "matrix_triangular_solve",
]

_SINGULAR = "Input is not invertible."
_adjoint = adjoint


def _inverse(xp: Any, input: Any) -> Any:
    check_square(input.shape)
    try:
        result = products.factorised(xp.linalg.inv, input)
    except np.linalg.LinAlgError:
        raise InvalidArgumentError(f"{_SINGULAR} A matrix is singular.") from None
    refuse_nan(xp, result, _SINGULAR, input)
    return result


def _inverse_gradient(op: Operation, dy: Tensor) -> Tensor:
    y = op.outputs[0]
    return -matmul(matmul(y, dy, adjoint_a=True), y, adjoint_b=True)


inverse_op = OpDef(
    "MatrixInverse",
    "input: T -> output: T",
    T=SOLVABLE,
    infer=square_shape,
    kernel=_inverse,
    kinds=HOST,
    grad=_inverse_gradient,
    batching=Batching.LEADING,
    cost=cubic(2),
)


@inverse_op.front
def matrix_inverse(input: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """The inverse of square matrices. To solve equations, `matrix_solve` is faster and closer.

    Args:
        input: [..., n, n] of a float of at least 32 bits or complex.
        adjoint: give the inverse of the conjugate transpose.

    Raises:
        InvalidArgumentError: in the run, if a matrix is singular or holds NaN.
    """
    result = inverse_op(input, name=name)
    return _adjoint(result) if adjoint else result


def _determinant(xp: Any, input: Any) -> Any:
    check_square(input.shape)
    return _with_nan(xp, products.factorised(xp.linalg.det, input), input)


def _with_nan(xp: Any, found: Any, input: Any) -> Any:
    """NaN for matrices that hold one: LAPACK takes some of them to be singular."""
    has_nan = xp.isnan(input).any(axis=(-2, -1))
    return xp.where(has_nan, xp.asarray(math.nan, found.dtype), found) if has_nan.any() else found


def _scaled_inverse(scale: Tensor, matrix: Tensor) -> Tensor:
    """The adjoint of the inverses of matrices, each times one number."""
    return expand_dims_op(scale, axis=(-2, -1)) * matrix_inverse(matrix, adjoint=True)


matrix_determinant = OpDef(
    "MatrixDeterminant",
    "input: T -> output: T",
    T=SOLVABLE,
    infer=batch_shape,
    kernel=_determinant,
    grad=lambda op, dy: _scaled_inverse(dy * conjugate(op.outputs[0]), op.inputs[0]),
    batching=Batching.LEADING,
    cost=cubic(2, 3),
    doc="""The determinants [...] of square matrices [..., n, n], of at least 32 bits.

    The gradient exists where the matrix has an inverse. Where the determinant is too large or too
    small for its dtype, `log_matrix_determinant` still tells it.
    """,
)


def _log_determinant(xp: Any, input: Any) -> tuple[Any, Any]:
    check_square(input.shape)
    sign, logarithm = products.factorised(xp.linalg.slogdet, input)
    logarithm = _with_nan(xp, logarithm, input)
    sign = xp.where(xp.isnan(logarithm), logarithm, sign).astype(input.dtype, copy=False)
    return sign, logarithm.astype(input.dtype, copy=False)


def _log_determinant_gradient(
    op: Operation, dsign: Tensor, dlog: Tensor, *, used: Sequence[bool]
) -> Tensor:
    # With t = tr(A^-1 dA), the logarithm moves by the real part of t and a complex sign turns by
    # its imaginary part; a real sign does not move.
    scale = real_part(dlog)
    if dsign.dtype.is_complex and used[0]:
        scale = scale + imaginary_part(conjugate(op.outputs[0]) * dsign)
    return _scaled_inverse(scale, op.inputs[0])


log_matrix_determinant: OpDef[tuple[Tensor, Tensor]] = OpDef(
    "LogMatrixDeterminant",
    "input: T -> sign: T, log_abs_determinant: T",
    T=SOLVABLE,
    infer=lambda input: [batch_shape(input)] * 2,
    kernel=_log_determinant,
    grad=_log_determinant_gradient,
    cost=cubic(2, 3),
    doc="""The sign and the logarithm of the absolute value of determinants: two tensors [...].

    The input is [..., n, n], a float of at least 32 bits or complex, as both outputs are. The sign
    of a singular matrix is 0 and the logarithm -inf. `sign * exp(log)` is the determinant.
    """,
)


def _solution_shape(matrix: Tensor, rhs: Tensor, **_: Any) -> Shape:
    square = square_dims(matrix)
    check_matrix(rhs.shape.dims)
    if square is None or rhs.shape.dims is None:
        return UNKNOWN
    rows = rhs.shape.dims[-2]
    if None not in (rows, square[-1]) and rows != square[-1]:
        raise InvalidArgumentError(
            f"a right-hand side of shape {rhs.shape} does not fit matrices {matrix.shape}: "
            f"{rows} rows against {square[-1]}",
            hint="a vector is a matrix of one column: fb.expand_dims(rhs, -1)"
            if rhs.shape.dims[-1] == square[-1]
            else None,
        )
    batch = broadcast_shapes(Shape.of(square[:-2]), Shape.of(rhs.shape.dims[:-2]))
    return batch.concatenate((square[-1] if rows is None else rows, rhs.shape.dims[-1]))


def _check_system(matrix: Any, rhs: Any) -> None:
    check_square(matrix.shape)
    check_matrix(rhs.shape)
    try:
        np.broadcast_shapes(matrix.shape[:-2], rhs.shape[:-2])
        fits = matrix.shape[-1] == rhs.shape[-2]
    except ValueError:
        fits = False
    if not fits:
        raise InvalidArgumentError(
            f"a right-hand side of shape {list(rhs.shape)} does not fit matrices "
            f"{list(matrix.shape)}"
        )


def _solution_gradient(op: Operation, dy: Tensor) -> tuple[Tensor, Tensor]:
    matrix, rhs = op.inputs
    attributes = {**op.attributes, "adjoint": not op.attributes["adjoint"]}
    drhs = op.op_def(matrix, dy, **attributes)
    x = op.outputs[0]
    if op.attributes["adjoint"]:
        dmatrix = -matmul(x, drhs, adjoint_b=True)
    else:
        dmatrix = -matmul(drhs, x, adjoint_b=True)
    if "lower" in attributes:
        dmatrix = _triangle(dmatrix, attributes["lower"])
    return sum_to_shape(dmatrix, matrix, rhs), sum_to_shape(drhs, rhs, matrix)


def _triangle(matrix: Tensor, lower: bool) -> Tensor:
    numbers = (-1, 0) if lower else (0, -1)
    return band_part_op(matrix, num_lower=numbers[0], num_upper=numbers[1])


def _substitution_flops(op: Operation) -> int:
    """A product of half a matrix with the solution."""
    _, _, side = sides(op.inputs[0].shape)
    return side * (op.outputs[0].shape.size or 0)


def _solution_flops(op: Operation) -> int:
    """An LU decomposition, and substitution with both of its factors."""
    return cubic(2, 3)(op) + 2 * _substitution_flops(op)


def _turned(xp: Any, matrix: Any, is_adjoint: bool) -> Any:
    if not is_adjoint:
        return matrix
    turned = xp.swapaxes(matrix, -1, -2)
    return xp.conj(turned) if matrix.dtype.kind == "c" else turned


def _solve(xp: Any, matrix: Any, rhs: Any, adjoint: bool) -> Any:
    _check_system(matrix, rhs)
    turned = _turned(xp, matrix, adjoint)
    if xp is not np:  # Only NumPy's broadcasts.
        batch = np.broadcast_shapes(matrix.shape[:-2], rhs.shape[:-2])
        turned = xp.broadcast_to(turned, (*batch, *turned.shape[-2:]))
        rhs = xp.broadcast_to(rhs, (*batch, *rhs.shape[-2:]))
    try:
        result = products.factorised(xp.linalg.solve, turned, rhs)
    except np.linalg.LinAlgError:
        raise InvalidArgumentError(f"{_SINGULAR} A matrix is singular.") from None
    refuse_nan(xp, result, _SINGULAR, matrix)
    return result


matrix_solve = OpDef(
    "MatrixSolve",
    "matrix: T, rhs: T -> output: T",
    T=SOLVABLE,
    attributes={"adjoint": False},
    infer=_solution_shape,
    kernel=_solve,
    kinds=HOST,
    grad=_solution_gradient,
    cost=_solution_flops,
    doc="""The solution of systems of linear equations, `matrix @ x = rhs`.

    Args:
        matrix: [..., n, n] of a float of at least 32 bits or complex.
        rhs: [..., n, m] of the same dtype, a column for each right-hand side; dimensions before
            the last two broadcast.
        adjoint: solve with the conjugate transpose of `matrix`.

    Returns:
        [..., n, m].

    Raises:
        InvalidArgumentError: if the shapes do not fit; in the run, if a matrix is singular or
            holds NaN.

    >>> import flowbook as fb
    >>> x = fb.matrix_solve([[2.0, 0.0], [0.0, 4.0]], [[2.0], [2.0]])
    >>> with fb.Session() as sess:
    ...     print(sess.run(x).ravel())
    [1.  0.5]
    """,
)


def _solve_triangular(xp: Any, matrix: Any, rhs: Any, lower: bool, adjoint: bool) -> Any:
    _check_system(matrix, rhs)
    if not xp.diagonal(matrix, 0, -2, -1).all():
        raise InvalidArgumentError(f"{_SINGULAR} There is a zero on a diagonal.")
    return solved_by_substitution(xp, _turned(xp, matrix, adjoint), rhs, lower != adjoint)


def solved_by_substitution(xp: Any, matrix: Any, rhs: Any, lower: bool) -> Any:
    """The solution of triangular systems without zeros on their diagonals."""
    batch = np.broadcast_shapes(matrix.shape[:-2], rhs.shape[:-2])
    n, count = matrix.shape[-1], int(np.prod(batch))
    rhs = xp.broadcast_to(rhs, (*batch, *rhs.shape[-2:]))
    if xp is np and count <= n:
        whole = np.broadcast_to(matrix, (*batch, n, n)).reshape(count, n, n)
        return solved_triangular(whole, rhs.reshape(count, *rhs.shape[-2:]), lower).reshape(
            rhs.shape
        )
    # For many small matrices: each row of all of them at once.
    result = xp.empty(rhs.shape, dtype=rhs.dtype)
    for i in range(n) if lower else range(n - 1, -1, -1):
        known = slice(0, i) if lower else slice(i + 1, n)
        row = products.matmul(xp, matrix[..., i : i + 1, known], result[..., known, :])
        result[..., i : i + 1, :] = (rhs[..., i : i + 1, :] - row) / matrix[..., i : i + 1, i, None]
    return result


matrix_triangular_solve = OpDef(
    "MatrixTriangularSolve",
    "matrix: T, rhs: T -> output: T",
    T=SOLVABLE,
    attributes={"lower": True, "adjoint": False},
    infer=_solution_shape,
    kernel=_solve_triangular,
    grad=_solution_gradient,
    cost=_substitution_flops,
    doc="""The solution of triangular systems of linear equations, by substitution.

    Args:
        matrix: [..., n, n] of a float of at least 32 bits or complex; what lies in the other
            triangle is not read.
        rhs: [..., n, m] of the same dtype; dimensions before the last two broadcast.
        lower: whether the matrix is the lower triangle or the upper one.
        adjoint: solve with the conjugate transpose of that triangle.

    Returns:
        [..., n, m].

    Raises:
        InvalidArgumentError: if the shapes do not fit; in the run, if there is a zero on a
            diagonal.
    """,
)


def cholesky_solve(chol: Any, rhs: Any, name: str | None = None) -> Tensor:
    """The solution of `A @ x = rhs` where the Cholesky factor of `A` is known.

    Args:
        chol: [..., n, n], what `cholesky` gives for `A`.
        rhs: [..., n, m] of the same dtype.
        name: the last operation's name.

    Returns:
        [..., n, m].
    """
    half = matrix_triangular_solve(chol, rhs)
    return matrix_triangular_solve(chol, half, adjoint=True, name=name)
