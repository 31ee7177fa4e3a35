"""Functions of square matrices: exponential, square root and logarithm.

Their gradients come from one identity (Mathias 1996, "A chain rule for matrix functions and
applications"): the function of [[A, E], [0, A]] has in its upper right block the derivative of the
function at A in the direction E. So a gradient has gradients itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.definition.op_def import HOST, OpDef
from flowbook.graph.model.dtypes import COMPLEX
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.numerics import products
from flowbook.graph.numerics.lapack import schur
from flowbook.graph.ops.basis.broadcasting import sum_op
from flowbook.graph.ops.basis.conjugation import conjugate
from flowbook.graph.ops.basis.constants import ones_like_op, stop_gradient, zeros_like_op
from flowbook.graph.ops.basis.joining import concat_op
from flowbook.graph.ops.basis.shaping import shape_op
from flowbook.graph.ops.linalg.matrices import (
    SOLVABLE,
    adjoint,
    check_square,
    cubic,
    is_finite,
    square_shape,
)
from flowbook.graph.ops.linalg.solving import solved_by_substitution
from flowbook.graph.ops.math.comparison import equal, where
from flowbook.graph.ops.math.elementwise import sqrt

__all__ = ["matrix_exponential", "matrix_logarithm", "matrix_square_root"]


def _gradient(op: Operation, dy: Tensor) -> Tensor:
    a = adjoint(op.inputs[0])
    # The derivative is linear in its direction; one much larger than A would take its digits.
    size = sqrt(sum_op(dy * conjugate(dy), axis=(-2, -1), keepdims=True))
    size = stop_gradient(where(equal(size, zeros_like_op(size)), ones_like_op(size), size))
    above = concat_op([a, dy / size], axis=-1)
    below = concat_op([zeros_like_op(a), a], axis=-1)
    whole = op.op_def(concat_op([above, below], axis=-2))
    n = shape_op(a)[-1]
    return whole[..., :n, n:] * size  # type: ignore[no-any-return]


# The coefficients of the Padé approximant of order 13, and the norm up to which it is exact to
# double precision (Higham 2005, "The scaling and squaring method for the matrix exponential
# revisited", table 2.3).
_PADE = (
    64764752532480000.0,
    32382376266240000.0,
    7771770303897600.0,
    1187353796428800.0,
    129060195264000.0,
    10559470521600.0,
    670442572800.0,
    33522128640.0,
    1323241920.0,
    40840800.0,
    960960.0,
    16380.0,
    182.0,
    1.0,
)
_PADE_NORM = 5.371920351148152


def _exponential(xp: Any, input: Any) -> Any:
    check_square(input.shape)
    if not input.size:
        return xp.array(input)
    finite = is_finite(xp, input)
    wide = input.astype(np.complex128 if input.dtype.kind == "c" else np.float64)
    wide = xp.where(finite, wide, 0)
    norm = xp.max(xp.sum(xp.abs(wide), axis=-2, keepdims=True), axis=-1, keepdims=True)
    halvings = xp.maximum(xp.ceil(xp.log2(norm / _PADE_NORM)), 0)
    a = wide * xp.exp2(-halvings)
    result = _pade_exponential(xp, a)
    for step in range(int(halvings.max())):
        result = xp.where(step < halvings, products.matmul(xp, result, result), result)
    return xp.where(finite, result, np.nan).astype(input.dtype)


def _pade_exponential(xp: Any, a: Any) -> Any:
    # By the first of them, so that the exponential of zero is the identity exactly.
    c = [coefficient / _PADE[0] for coefficient in _PADE]
    one = xp.eye(a.shape[-1], dtype=a.dtype)
    a2 = products.matmul(xp, a, a)
    a4 = products.matmul(xp, a2, a2)
    a6 = products.matmul(xp, a4, a2)
    high = products.matmul(xp, a6, c[13] * a6 + c[11] * a4 + c[9] * a2)
    odd = products.matmul(xp, a, high + c[7] * a6 + c[5] * a4 + c[3] * a2 + c[1] * one)
    high = products.matmul(xp, a6, c[12] * a6 + c[10] * a4 + c[8] * a2)
    even = high + c[6] * a6 + c[4] * a4 + c[2] * a2 + c[0] * one
    return products.factorised(xp.linalg.solve, even - odd, even + odd)


matrix_exponential = OpDef(
    "MatrixExponential",
    "input: T -> output: T",
    T=SOLVABLE,
    infer=square_shape,
    kernel=_exponential,
    grad=_gradient,
    cost=cubic(30),
    doc="""The exponential of square matrices, `I + A + A^2 / 2! + A^3 / 3! + ...`.

    The input is [..., n, n], of a float of at least 32 bits or complex. Computed by scaling and
    squaring (Higham 2005). NaN where a matrix is not finite.
    """,
)


def _schur_form(xp: Any, input: Any) -> tuple[Any, Any, Any]:
    """Schur forms of the finite matrices of a batch, [batch, n, n], and which these are."""
    check_square(input.shape)
    n = input.shape[-1]
    flat = xp.reshape(input, (int(np.prod(input.shape[:-2])), n, n))
    finite = is_finite(xp, flat)
    wide = flat.astype(np.complex128 if input.dtype.kind == "c" else np.float64)
    form, basis = schur(xp.where(finite, wide, 0))
    return form, basis, finite


def _triangular_root(xp: Any, form: Any) -> Any:
    """The square root of upper triangular matrices, column by column.

    Björck and Hammarling 1983, "A Schur method for the square root of a matrix".
    """
    n = form.shape[-1]
    root = xp.zeros_like(form)
    diagonal = xp.sqrt(xp.diagonal(form, 0, -2, -1))
    steps = xp.arange(n)
    root[..., steps, steps] = diagonal
    for j in range(1, n):
        block = xp.array(root[..., :j, :j])
        sums = diagonal[..., :j] + diagonal[..., j : j + 1]
        # Two zeros: the entry above is zero too where there is a root at all.
        block[..., steps[:j], steps[:j]] = xp.where(sums == 0, 1, sums)
        column = solved_by_substitution(xp, block, form[..., :j, j : j + 1], lower=False)
        root[..., :j, j : j + 1] = column
    return root


def _from_schur(xp: Any, basis: Any, triangle: Any) -> Any:
    return products.matmul(
        xp, products.matmul(xp, basis, triangle), xp.conj(xp.swapaxes(basis, -1, -2))
    )


def _square_root(xp: Any, input: Any) -> Any:
    form, basis, exists = _schur_form(xp, input)
    values = xp.diagonal(form, 0, -2, -1)
    if input.size:
        largest = xp.max(xp.abs(values), axis=-1, keepdims=True)
        tiny = np.finfo(np.float64).eps * input.shape[-1] * largest
        steps = xp.arange(input.shape[-1])
        values = xp.where(xp.abs(values) <= tiny, 0, values)
        form[..., steps, steps] = values
        if input.dtype.kind == "f":
            is_negative = (values.real < 0) & (xp.abs(values.imag) <= tiny)
            exists = exists & ~xp.any(is_negative, axis=-1)[..., None, None]
    result = _from_schur(xp, basis, _triangular_root(xp, form))
    if input.dtype.kind == "f":
        result = result.real
    return xp.where(exists, result, np.nan).astype(input.dtype).reshape(input.shape)


matrix_square_root = OpDef(
    "MatrixSquareRoot",
    "input: T -> output: T",
    T=SOLVABLE,
    infer=square_shape,
    kernel=_square_root,
    kinds=HOST,
    grad=_gradient,
    cost=cubic(25),
    doc="""The principal square root of square matrices: `root @ root` is the input.

    The input is [..., n, n], of a float of at least 32 bits or complex. Computed from the Schur
    form (Björck and Hammarling 1983). NaN where a matrix is not finite, or is real and has a
    negative eigenvalue: such a root is complex. The gradient exists where the matrix has an
    inverse.
    """,
)

# Up to this distance from the identity, seven points of Gauss's integrate the logarithm exactly to
# double precision (Higham 2008, "Functions of matrices", table 11.1).
_LOG_NORM = 0.264
_LOG_POINTS, _LOG_WEIGHTS = (
    (0.5 + 0.5 * np.polynomial.legendre.leggauss(7)[0]).tolist(),
    (0.5 * np.polynomial.legendre.leggauss(7)[1]).tolist(),
)
_MOST_ROOTS = 100


def _logarithm(xp: Any, input: Any) -> Any:
    form, basis, exists = _schur_form(xp, input)
    values = xp.array(xp.diagonal(form, 0, -2, -1))
    exists = exists & xp.all(values != 0, axis=-1)[..., None, None]
    one = xp.eye(input.shape[-1], dtype=form.dtype)
    root = xp.where(exists, form, one)
    doublings = 0
    while doublings < _MOST_ROOTS and _distance(xp, root - one) > _LOG_NORM:
        root = _triangular_root(xp, root)
        doublings += 1
    x = root - one
    triangle = xp.zeros_like(x)
    for point, weight in zip(_LOG_POINTS, _LOG_WEIGHTS, strict=True):
        triangle += weight * solved_by_substitution(xp, one + point * x, x, lower=False)
    triangle *= 2.0**doublings
    # Taking roots of the diagonal cost it digits.
    steps = xp.arange(input.shape[-1])
    triangle[..., steps, steps] = xp.log(values)
    result = xp.where(exists, _from_schur(xp, basis, triangle), np.nan)
    return result.astype(input.dtype).reshape(input.shape)


def _distance(xp: Any, matrix: Any) -> float:
    """The largest 1-norm in a batch."""
    if not matrix.size:
        return 0.0
    return float(xp.max(xp.sum(xp.abs(matrix), axis=-2)))


matrix_logarithm = OpDef(
    "MatrixLogarithm",
    "input: T -> output: T",
    T=COMPLEX,
    infer=square_shape,
    kernel=_logarithm,
    kinds=HOST,
    grad=_gradient,
    cost=cubic(50),
    doc="""The principal logarithm of square matrices: its exponential is the input.

    The input is [..., n, n] and complex, as the logarithm of a real matrix may be; `cast` makes it
    so. Computed by inverse scaling and squaring of the Schur form (Kenney and Laub 1989). NaN where
    a matrix is singular or not finite.
    """,
)
