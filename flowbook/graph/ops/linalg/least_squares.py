"""The pseudoinverse and the rank of matrices, and least squares."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import UNKNOWN, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.numerics import products
from flowbook.graph.ops.linalg.decompositions import cholesky
from flowbook.graph.ops.linalg.diagonals import diag_part_op, set_diag_op
from flowbook.graph.ops.linalg.matrices import (
    SOLVABLE,
    adjoint,
    check_matrix,
    matrix_transpose_op,
    sides,
    singular_values_flops,
    singular_vectors_flops,
)
from flowbook.graph.ops.linalg.matrix_products import both, matmul
from flowbook.graph.ops.linalg.solving import cholesky_solve
from flowbook.graph.ops.linalg.spectra import svd_kernel

__all__ = ["matrix_rank", "matrix_solve_ls", "pinv"]


def _pinv(xp: Any, a: Any, rcond: float | None) -> Any:
    check_matrix(a.shape)
    rows, columns = a.shape[-2:]
    s, u, v = svd_kernel(xp, a, True, False)
    if not s.size:
        return xp.zeros((*a.shape[:-2], columns, rows), dtype=a.dtype)
    if rcond is None:
        rcond = 10 * max(rows, columns) * float(np.finfo(s.dtype).eps)
    kept = s > rcond * xp.max(s, axis=-1, keepdims=True)
    inverse = xp.where(kept, 1 / xp.where(kept, s, 1), xp.where(xp.isnan(s), s, 0))
    adjoint_u = xp.conj(xp.swapaxes(u, -1, -2))
    return products.matmul(xp, v * inverse[..., None, :].astype(s.dtype), adjoint_u)


def _pinv_gradient(op: Operation, dy: Tensor) -> Tensor:
    """Golub and Pereyra 1973, "The differentiation of pseudo-inverses": for a rank that stays."""
    a, y = op.inputs[0], op.outputs[0]
    dyh, yh = adjoint(dy), adjoint(y)
    da = -matmul(matmul(yh, dy), yh)
    gram_left, gram_right = matmul(yh, y), matmul(y, yh)
    from_left = matmul(dyh, gram_right)
    da = da + from_left - matmul(matmul(a, y), from_left)
    from_right = matmul(gram_left, dyh)
    return da + from_right - matmul(from_right, matmul(y, a))


def _pinv_flops(op: Operation) -> int:
    """Singular vectors, and the product of those on both sides."""
    count, long, short = sides(op.inputs[0].shape)
    return singular_vectors_flops(op.inputs[0].shape) + 2 * count * long * short**2


pinv_op = OpDef(
    "MatrixPseudoInverse",
    "a: T -> output: T",
    T=SOLVABLE,
    attributes={"rcond": None},
    infer=lambda a, rcond: matrix_transpose_op.infer(a),  # type: ignore[misc]
    kernel=_pinv,
    grad=_pinv_gradient,
    cost=_pinv_flops,
)


@pinv_op.front
def pinv(a: Any, rcond: float | None = None, name: str | None = None) -> Tensor:
    """The Moore-Penrose pseudoinverse of matrices.

    Args:
        a: [..., m, n] of a float of at least 32 bits or complex.
        rcond: singular values up to `rcond` times the largest count as zero; by default
            `10 * max(m, n)` times the dtype's precision.

    Returns:
        [..., n, m]. Its gradient is that for changes which do not change the rank.
    """
    limit = None if rcond is None else float(rcond)
    return pinv_op(a, rcond=limit, name=name)


def _rank_shape(a: Tensor, tol: float | None) -> Shape:
    dims = a.shape.dims
    check_matrix(dims)
    return UNKNOWN if dims is None else Shape.of(dims[:-2])


def _rank(xp: Any, a: Any, tol: float | None) -> Any:
    (s,) = svd_kernel(xp, a, False, False)
    if tol is None:
        # The first is the largest.
        tol = s[..., :1] * (max(a.shape[-2:]) * np.finfo(s.dtype).eps)
    return xp.sum(s > tol, axis=-1, dtype=np.int32)


matrix_rank_op = OpDef(
    "MatrixRank",
    "a: T -> output: int32",
    T=SOLVABLE,
    attributes={"tol": None},
    infer=_rank_shape,
    kernel=_rank,
    cost=lambda op: singular_values_flops(op.inputs[0].shape),
)


@matrix_rank_op.front
def matrix_rank(a: Any, tol: float | None = None, name: str | None = None) -> Tensor:
    """How many singular values of matrices are not zero.

    Args:
        a: [..., m, n] of a float of at least 32 bits or complex.
        tol: up to what a singular value counts as zero; by default the largest times `max(m, n)`
            times the dtype's precision.

    Returns:
        int32 [...].
    """
    limit = None if tol is None else float(tol)
    return matrix_rank_op(a, tol=limit, name=name)


def matrix_solve_ls(
    matrix: Any,
    rhs: Any,
    l2_regularizer: float = 0.0,
    fast: bool = True,
    name: str | None = None,
) -> Tensor:
    """The least-squares solution of systems of linear equations.

    It minimises `|matrix @ x - rhs|^2 + l2_regularizer * |x|^2`; where many x do, it is the
    smallest of them.

    Args:
        matrix: [..., m, n] of a float of at least 32 bits or complex.
        rhs: [..., m, k] of the same dtype.
        l2_regularizer: a number, not negative; with `fast=False` it is 0.
        fast: solve the normal equations by a Cholesky factor, which wants a matrix of full rank
            and squares its condition number; else by singular values, for matrices of any rank.
            Where the shapes do not say before the run which of its sides is the longer, and there
            is no regularizer, singular values serve in both cases.
        name: the last operation's name.

    Returns:
        [..., n, k].

    Raises:
        InvalidArgumentError: if the shapes do not fit or the regularizer is negative; in the run,
            if `fast` is given a matrix without full rank.
    """
    weight = float(l2_regularizer)
    if not weight >= 0:
        raise InvalidArgumentError(f"l2_regularizer is not negative, but it is {weight}")
    if weight and not fast:
        raise InvalidArgumentError(
            f"with fast=False there is no l2_regularizer, but it is {weight}"
        )
    matrix, rhs = both(matrix, rhs)
    rows, columns = _sides(matrix, rhs)
    if fast and weight:
        is_tall: bool | None = None in (rows, columns) or rows >= columns  # type: ignore[operator]
    else:
        is_tall = None if None in (rows, columns) else rows >= columns  # type: ignore[operator]
    if not fast or is_tall is None:
        return matmul(pinv(matrix), rhs, name=name)
    gram = matmul(matrix, matrix, adjoint_a=is_tall, adjoint_b=not is_tall)
    if weight:
        gram = _with_diagonal(gram, weight)
    factor = cholesky(gram)
    if is_tall:
        return cholesky_solve(factor, matmul(matrix, rhs, adjoint_a=True), name=name)
    return matmul(matrix, cholesky_solve(factor, rhs), adjoint_a=True, name=name)


def _sides(matrix: Tensor, rhs: Tensor) -> tuple[int | None, int | None]:
    """How many rows and columns the matrices have, as far as shapes tell."""
    dims, given = matrix.shape.dims, rhs.shape.dims
    check_matrix(dims)
    check_matrix(given)
    rows, columns = dims[-2:] if dims else (None, None)
    if given and None not in (rows, given[-2]) and rows != given[-2]:
        raise InvalidArgumentError(
            f"a right-hand side of shape {rhs.shape} does not fit matrices {matrix.shape}"
        )
    return (given[-2] if rows is None and given else rows), columns


def _with_diagonal(matrix: Tensor, weight: float) -> Tensor:
    """Square matrices with a number added to their diagonals."""
    diagonal = diag_part_op(matrix)
    return set_diag_op(matrix, diagonal + weight)
