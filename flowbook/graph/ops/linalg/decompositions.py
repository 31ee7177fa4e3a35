"""Triangular factors of matrices: Cholesky, QR and LU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flowbook.graph.definition.batching import Batching
from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.op_def import HOST, OpDef
from flowbook.graph.model.dtypes import INDICES, DType, as_dtype, int32
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError, UnimplementedError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import UNKNOWN, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.numerics import products
from flowbook.graph.numerics.lapack import lu_factors
from flowbook.graph.ops.basis.broadcasting import sum_op
from flowbook.graph.ops.basis.cast import cast_op
from flowbook.graph.ops.basis.constants import convert_to_tensor, ones_like_op, zeros_like_op
from flowbook.graph.ops.basis.filling import range as range_of
from flowbook.graph.ops.basis.joining import concat
from flowbook.graph.ops.basis.shaping import expand_dims_op, shape_op
from flowbook.graph.ops.linalg.diagonals import band_part_op, diag_op, diag_part_op, set_diag_op
from flowbook.graph.ops.linalg.matrices import (
    SOLVABLE,
    adjoint,
    check_matrix,
    check_square,
    cubic,
    real_dtype,
    real_part,
    sides,
    smaller,
    square_dims,
    square_shape,
)
from flowbook.graph.ops.linalg.matrix_products import matmul
from flowbook.graph.ops.linalg.solving import matrix_triangular_solve
from flowbook.graph.ops.math.arithmetic import multiply
from flowbook.graph.ops.math.comparison import equal
from flowbook.graph.ops.math.elementwise import log

__all__ = ["cholesky", "logdet", "lu", "lu_matrix_inverse", "lu_reconstruct", "lu_solve", "qr"]


def _lower(matrix: Tensor) -> Tensor:
    """The lower triangle."""
    return band_part_op(matrix, num_lower=-1, num_upper=0)


def _with_diagonal(matrix: Tensor, change: Any) -> Tensor:
    """Matrices with a function of their diagonals in place of these."""
    return set_diag_op(matrix, change(diag_part_op(matrix)))


def half_diagonal(matrix: Tensor) -> Tensor:
    """The lower triangle, its diagonal halved: together with its adjoint the Hermitian whole."""
    return _with_diagonal(_lower(matrix), lambda diagonal: diagonal * 0.5)


def _cholesky(xp: Any, input: Any) -> Any:
    check_square(input.shape)
    try:
        result = products.factorised(xp.linalg.cholesky, input)
        # Not every LAPACK tells of NaN and infinities.
        if not xp.isfinite(result).all():
            raise np.linalg.LinAlgError
        return result
    except np.linalg.LinAlgError:
        raise InvalidArgumentError(
            "Cholesky decomposition was not successful. A matrix is not positive definite.",
            hint="a small multiple of the identity added to it makes up for rounding",
        ) from None


def _cholesky_gradient(op: Operation, dl: Tensor) -> Tensor:
    """Murray 2016, "Differentiation of the Cholesky decomposition", equation 10."""
    l = op.outputs[0]  # noqa: E741
    middle = half_diagonal(matmul(l, dl, adjoint_a=True))
    left = matrix_triangular_solve(l, middle, adjoint=True)
    da = adjoint(matrix_triangular_solve(l, adjoint(left), adjoint=True))
    return (da + adjoint(da)) * 0.5


cholesky = OpDef(
    "Cholesky",
    "input: T -> output: T",
    T=SOLVABLE,
    infer=square_shape,
    kernel=_cholesky,
    kinds=HOST,
    grad=_cholesky_gradient,
    batching=Batching.LEADING,
    cost=cubic(1, 3),
    doc="""The lower triangular factor L of Hermitian positive definite matrices, `A = L L^H`.

    The input is [..., n, n], of a float of at least 32 bits or complex; only its lower triangle is
    read. The gradient is that for Hermitian changes of the input, and Hermitian itself. A matrix
    that is not positive definite, or not finite, is an InvalidArgumentError in the run.
    """,
)


def logdet(matrix: Any, name: str | None = None) -> Tensor:
    """The logarithm of the determinants of Hermitian positive definite matrices.

    Args:
        matrix: [..., n, n] of a float of at least 32 bits or complex.
        name: the last operation's name.

    Returns:
        [...] of the real dtype. For matrices of other kinds there is `log_matrix_determinant`.

    Raises:
        InvalidArgumentError: in the run, if a matrix is not positive definite.
    """
    diagonal = diag_part_op(cholesky(matrix))
    if diagonal.dtype.is_complex:
        diagonal = cast_op(diagonal, dtype=real_dtype(diagonal.dtype))
    return multiply(sum_op(log(diagonal), axis=(-1,)), 2, name=name)


# QR


def _qr_shapes(input: Tensor, full_matrices: bool) -> list[Shape]:
    dims = input.shape.dims
    check_matrix(dims)
    if dims is None:
        return [UNKNOWN, UNKNOWN]
    *batch, rows, columns = dims
    inner = rows if full_matrices else smaller(rows, columns)
    return [Shape.of((*batch, rows, inner)), Shape.of((*batch, inner, columns))]


def _qr(xp: Any, input: Any, full_matrices: bool) -> tuple[Any, Any]:
    check_matrix(input.shape)
    q, r = products.factorised(xp.linalg.qr, input, mode="complete" if full_matrices else "reduced")
    return q, r


def _qr_gradient(op: Operation, dq: Tensor, dr: Tensor, *, used: Sequence[bool]) -> Tensor:
    """The gradient through both factors.

    Source: Walter and Lehmann 2018, "Algorithmic differentiation of linear algebra functions"; for
    more columns than rows Roberts and Roberts 2020, "QR and LQ decomposition matrix
    backpropagation".
    """
    input, (q, r) = op.inputs[0], op.outputs
    excess = _excess_columns(input)
    if op.attributes["full_matrices"] and (excess is None or excess < 0):
        if used[0]:
            raise UnimplementedError(
                f"the gradient of all of Q is not defined for the shape {input.shape}",
                hint="full_matrices=False",
            )
        q, r = qr_op(input)
        dr = dr[..., : shape_op(r)[-2], :]
        dq = zeros_like_op(q)
    if excess is not None and excess <= 0:
        return _qr_gradient_of_square(q, r, dq, dr)
    # The first columns have Q and a square R as factors; the others are Q times the rest of R.
    inner = shape_op(r)[-2]
    first, rest = (..., slice(None, inner)), (..., slice(inner, None))
    dq = dq + matmul(input[rest], dr[rest], adjoint_b=True)
    left = _qr_gradient_of_square(q, r[first], dq, dr[first])
    return concat([left, matmul(q, dr[rest])], -1)


def _excess_columns(matrix: Tensor) -> int | None:
    """How many more columns than rows there are, as far as the shape tells."""
    rows, columns = matrix.shape.dims[-2:] if matrix.shape.dims else (None, None)
    return None if rows is None or columns is None else columns - rows


def _qr_gradient_of_square(q: Tensor, r: Tensor, dq: Tensor, dr: Tensor) -> Tensor:
    m = matmul(r, dr, adjoint_b=True) - matmul(dq, q, adjoint_a=True)
    strictly = _with_diagonal(_lower(m), zeros_like_op)
    hermitian = strictly + adjoint(strictly) + diag_op(real_part(diag_part_op(m)))
    whole = dq + matmul(q, hermitian)
    return adjoint(matrix_triangular_solve(r, adjoint(whole), lower=False))


def _qr_flops(op: Operation) -> int:
    """R by reflections, and as many to make Q of them."""
    count, long, short = sides(op.inputs[0].shape)
    dims = op.outputs[0].shape.dims
    rows, columns = (d or 0 for d in dims[-2:]) if dims else (0, 0)
    r = 2 * long * short**2 - 2 * short**3 // 3
    if columns == short:
        return count * (r + 2 * rows * short**2 - 2 * short**3 // 3)
    return count * (r + 4 * rows * short * (rows - short) + 4 * short**3 // 3)


qr_op: OpDef[tuple[Tensor, Tensor]] = OpDef(
    "Qr",
    "input: T -> q: T, r: T",
    T=SOLVABLE,
    attributes={"full_matrices": False},
    infer=_qr_shapes,
    kernel=_qr,
    grad=_qr_gradient,
    cost=_qr_flops,
)


@qr_op.front
def qr(input: Any, full_matrices: bool = False, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Factors `Q R` of matrices: Q has orthonormal columns and R is upper triangular.

    Args:
        input: [..., m, n] of a float of at least 32 bits or complex.
        full_matrices: whether Q is square; else it has min(m, n) columns.

    Returns:
        Q [..., m, k] and R [..., k, n]. The gradient needs the first k columns to be independent.
    """
    q, r = qr_op(input, full_matrices=bool(full_matrices), name=name)
    return q, r


# LU


def _lu_shapes(input: Tensor, output_idx_type: Any) -> list[Shape]:
    dims = square_dims(input)
    return [UNKNOWN] * 2 if dims is None else [Shape.of(dims), Shape.of(dims[:-1])]


def _lu(xp: Any, input: Any, output_idx_type: Any) -> tuple[Any, Any]:
    check_square(input.shape)
    n = input.shape[-1]
    flat = xp.reshape(input, (int(np.prod(input.shape[:-2])), n, n))
    factors, order = lu_factors(flat)
    if not np.diagonal(factors, 0, -2, -1).all() or np.isnan(factors).any():
        raise InvalidArgumentError("Input is not invertible.")
    order = order.astype(output_idx_type.numpy, copy=False)
    return factors.reshape(input.shape), order.reshape(input.shape[:-1])


def _permutation(order: Tensor, dtype: DType) -> Tensor:
    """The matrices P for which P A has the rows of A in an order."""
    count = shape_op(order, out_type=order.dtype)[-1]
    rows = range_of(count, dtype=order.dtype)
    return cast_op(equal(expand_dims_op(order, axis=(-1,)), rows), dtype=dtype)


def _lu_gradient(op: Operation, dlu: Tensor, _: Any) -> Tensor:
    """Giles 2008 extended to pivots: P A = L U with P fixed."""
    lu, order = op.outputs
    below = band_part_op(lu, num_lower=-1, num_upper=0)
    lower = _with_diagonal(below, ones_like_op)
    upper = band_part_op(lu, num_lower=0, num_upper=-1)
    dlower = _with_diagonal(_lower(dlu), zeros_like_op)
    dupper = band_part_op(dlu, num_lower=0, num_upper=-1)
    left = _with_diagonal(_lower(matmul(lower, dlower, adjoint_a=True)), zeros_like_op)
    right = band_part_op(matmul(dupper, upper, adjoint_b=True), num_lower=0, num_upper=-1)
    middle = matrix_triangular_solve(lower, left + right, adjoint=True)
    permuted = adjoint(matrix_triangular_solve(upper, adjoint(middle), lower=False))
    return matmul(_permutation(order, lu.dtype), permuted, transpose_a=True)


lu_op: OpDef[tuple[Tensor, Tensor]] = OpDef(
    "Lu",
    "input: T -> lu: T, p: output_idx_type",
    T=SOLVABLE,
    attributes={"output_idx_type": int32},
    infer=_lu_shapes,
    kernel=_lu,
    kinds=HOST,
    grad=_lu_gradient,
    cost=cubic(2, 3),
)


@lu_op.front
def lu(input: Any, output_idx_type: Any = int32, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Factors `P A = L U` of square matrices: L has ones on its diagonal, U is upper triangular.

    Args:
        input: [..., n, n] of a float of at least 32 bits or complex.
        output_idx_type: int32 or int64.

    Returns:
        L below the diagonal and U on it and above, together [..., n, n]; and for each row of P A
        which row of A it is, [..., n] of `output_idx_type`.

    Raises:
        InvalidArgumentError: in the run, if a matrix is singular or holds NaN.
    """
    wanted = as_dtype(output_idx_type)
    if wanted not in INDICES:
        raise InvalidTypeError(f"output_idx_type is int32 or int64, not {wanted.name}")
    factors, order = lu_op(input, output_idx_type=wanted, name=name)
    return factors, order


@composed
def lu_solve(lower_upper: Any, perm: Any, rhs: Any, name: str | None = None) -> Tensor:
    """Solve systems of linear equations whose matrices have been factored by `lu`.

    Args:
        lower_upper: [..., n, n], the factors that `lu` gives.
        perm: int32 or int64 [..., n], the order of rows that it gives.
        rhs: [..., n, k] of the factors' dtype.

    Returns:
        [..., n, k], the x of `A x = rhs`.

    Raises:
        InvalidArgumentError: if the shapes do not fit; in the run, where they are known only then.

    >>> import flowbook as fb
    >>> factors = fb.lu([[0.0, 2.0], [4.0, 0.0]])
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.lu_solve(*factors, [[6.0], [8.0]])).tolist())
    [[2.0], [3.0]]
    """
    factors, order = convert_to_tensor(lower_upper), convert_to_tensor(perm)
    rhs = convert_to_tensor(rhs, factors.dtype)
    ordered = matmul(_permutation(order, factors.dtype), rhs)
    lower = _with_diagonal(_lower(factors), ones_like_op)
    middle = matrix_triangular_solve(lower, ordered)
    return matrix_triangular_solve(factors, middle, lower=False, name=name)


@composed
def lu_reconstruct(lower_upper: Any, perm: Any, name: str | None = None) -> Tensor:
    """The matrices that `lu` has factored.

    Args:
        lower_upper: [..., n, n], the factors that `lu` gives.
        perm: int32 or int64 [..., n], the order of rows that it gives.

    Returns:
        [..., n, n] of the factors' dtype.
    """
    factors, order = convert_to_tensor(lower_upper), convert_to_tensor(perm)
    lower = _with_diagonal(_lower(factors), ones_like_op)
    product = matmul(lower, band_part_op(factors, num_lower=0, num_upper=-1))
    ordered = _permutation(order, factors.dtype)
    return matmul(ordered, product, transpose_a=True, name=name)


@composed
def lu_matrix_inverse(lower_upper: Any, perm: Any, name: str | None = None) -> Tensor:
    """The inverses of matrices that `lu` has factored. Arguments as for `lu_reconstruct`."""
    factors, order = convert_to_tensor(lower_upper), convert_to_tensor(perm)
    one = _with_diagonal(zeros_like_op(factors), ones_like_op)
    return lu_solve(factors, order, one, name=name)
