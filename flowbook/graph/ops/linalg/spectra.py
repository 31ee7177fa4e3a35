"""Singular values and eigenvalues of matrices, and their vectors.

Signs and phases of vectors are LAPACK's; gradients are right for what does not depend on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flowbook.graph.definition.op_def import REQUIRED, OpDef
from flowbook.graph.model.errors import (
    InvalidArgumentError,
    InvalidTypeError,
    UnimplementedError,
)
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import UNKNOWN, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.numerics import products
from flowbook.graph.ops.basis.cast import cast_op
from flowbook.graph.ops.basis.constants import convert_to_tensor, ones_like_op, zeros_like_op
from flowbook.graph.ops.basis.shaping import expand_dims_op
from flowbook.graph.ops.linalg.decompositions import half_diagonal
from flowbook.graph.ops.linalg.diagonals import diag_op, diag_part_op
from flowbook.graph.ops.linalg.matrices import (
    SOLVABLE,
    adjoint,
    check_matrix,
    check_square,
    cubic,
    imaginary_part,
    is_finite,
    real_dtype,
    real_part,
    singular_values_flops,
    singular_vectors_flops,
    smaller,
    square_dims,
)
from flowbook.graph.ops.linalg.matrix_products import matmul
from flowbook.graph.ops.math.comparison import equal, where
from flowbook.graph.ops.math.elementwise import reciprocal

__all__ = ["self_adjoint_eig", "self_adjoint_eigvals", "svd"]


def _svd_shapes(
    input: Tensor, compute_uv: bool, full_matrices: bool, real: Any, Tout: Any
) -> list[Shape]:
    if real is not real_dtype(input.dtype):
        raise InvalidTypeError(f"singular values of {input.dtype.name} are not {real!r}")
    dims = input.shape.dims
    check_matrix(dims)
    if dims is None:
        return [UNKNOWN] * (1 + len(Tout))
    *batch, rows, columns = dims
    inner = smaller(rows, columns)
    left, right = (rows, columns) if full_matrices else (inner, inner)
    shapes = [Shape.of((*batch, inner))]
    if compute_uv:
        shapes += [Shape.of((*batch, rows, left)), Shape.of((*batch, columns, right))]
    return shapes


def svd_kernel(xp: Any, input: Any, compute_uv: bool, full_matrices: bool) -> tuple[Any, ...]:
    """s, and with `compute_uv` U and V, of arrays."""
    check_matrix(input.shape)
    finite = is_finite(xp, input)
    if not finite.all():
        return _svd_of_finite(xp, input, finite, compute_uv, full_matrices)
    if not compute_uv:
        return (products.factorised(xp.linalg.svd, input, compute_uv=False),)
    u, s, vh = products.factorised(xp.linalg.svd, input, full_matrices=full_matrices)
    v = xp.swapaxes(vh, -1, -2)
    return s, u, (xp.conj(v) if input.dtype.kind == "c" else v)


def _svd_of_finite(
    xp: Any, input: Any, finite: Any, compute_uv: bool, full_matrices: bool
) -> tuple[Any, ...]:
    """NaN for the matrices of a batch that are not finite, on which LAPACK gives up."""
    found = svd_kernel(xp, xp.where(finite, input, 0), compute_uv, full_matrices)
    s = xp.where(finite[..., 0], found[0], np.nan).astype(found[0].dtype, copy=False)
    vectors = [xp.where(finite, x, np.nan).astype(x.dtype, copy=False) for x in found[1:]]
    return s, *vectors


def _inverse_or_zero(x: Tensor) -> Tensor:
    """`1 / x`, and 0 where x is."""
    is_there = equal(x, zeros_like_op(x))
    return where(is_there, zeros_like_op(x), reciprocal(where(is_there, ones_like_op(x), x)))


def _differences(x: Tensor) -> Tensor:
    """For each vector x the matrix of `x[j] - x[i]`."""
    return expand_dims_op(x, axis=(-2,)) - expand_dims_op(x, axis=(-1,))


def _svd_gradient(op: Operation, ds: Tensor, *duv: Tensor, used: Sequence[bool]) -> Tensor:
    """The gradient through all three factors.

    Source: Ionescu, Vantzos and Sminchisescu 2015, "Training deep networks with structured layers
    by matrix backpropagation"; for complex matrices Wan and Zhang 2019, arXiv:1909.02659.
    """
    input = op.inputs[0]
    du, dv = duv if any(used[1:]) else (None, None)
    if du is None:
        s, u, v = svd(input) if not duv or op.attributes["full_matrices"] else op.outputs
    else:
        s, u, v = op.outputs
        _check_svd_gradient(op)
    middle = diag_op(_as(ds, input))
    if du is None or dv is None:
        return matmul(matmul(u, middle), v, adjoint_b=True)
    s = _as(s, input)
    columns, rows = expand_dims_op(s, axis=(-2,)), expand_dims_op(s, axis=(-1,))
    # s[j]^2 - s[i]^2 as a product: squares of close values would lose the difference.
    gaps = _inverse_or_zero(_differences(s) * (columns + rows))
    of_u, of_v = matmul(u, du, adjoint_a=True), matmul(v, dv, adjoint_a=True)
    turn_u, turn_v = of_u - adjoint(of_u), of_v - adjoint(of_v)
    middle = middle + (turn_u * gaps) * columns + rows * (turn_v * gaps)
    inverse = _inverse_or_zero(columns)
    if input.dtype.is_complex:
        middle = middle + diag_op(diag_part_op(imaginary_part(of_u) * inverse))
    da = matmul(matmul(u, middle), v, adjoint_b=True)
    # What leaves the space that the vectors span.
    outside_u = (du - matmul(u, of_u)) * inverse
    outside_v = (dv - matmul(v, of_v)) * inverse
    return da + matmul(outside_u, v, adjoint_b=True) + matmul(u, outside_v, adjoint_b=True)


def _check_svd_gradient(op: Operation) -> None:
    dims = op.inputs[0].shape.dims
    is_square = dims is not None and dims[-1] is not None and dims[-1] == dims[-2]
    if op.attributes["full_matrices"] and not is_square:
        raise UnimplementedError(
            "the gradient of all singular vectors is not defined for the shape "
            f"{op.inputs[0].shape}",
            hint="full_matrices=False",
        )


def _as(x: Tensor, like: Tensor) -> Tensor:
    """A real tensor in the dtype of another one, which may be complex."""
    return x if x.dtype is like.dtype else cast_op(x, dtype=like.dtype)


def _svd_flops(op: Operation) -> int:
    count_flops = singular_vectors_flops if op.attributes["compute_uv"] else singular_values_flops
    return count_flops(op.inputs[0].shape)


svd_op: OpDef[tuple[Tensor, ...]] = OpDef(
    "Svd",
    "input: T -> s: real, vectors: *Tout",
    T=SOLVABLE,
    attributes={"compute_uv": True, "full_matrices": False, "real": REQUIRED, "Tout": REQUIRED},
    infer=_svd_shapes,
    kernel=svd_kernel,
    grad=_svd_gradient,
    cost=_svd_flops,
)


@svd_op.front
def svd(
    tensor: Any, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None
) -> Any:
    """Singular values and vectors of matrices, `A = U diag(s) V^H`.

    Args:
        tensor: [..., m, n] of a float of at least 32 bits or complex.
        full_matrices: whether U and V are square; else they have min(m, n) columns.
        compute_uv: whether to compute the vectors.

    Returns:
        s [..., min(m, n)], real and in descending order; with `compute_uv` the tuple (s, U, V). V
        is not transposed, as it is in NumPy. Where the input is not finite they are NaN. The
        gradient of the vectors exists where singular values differ.

    >>> import flowbook as fb
    >>> s, u, v = fb.svd(fb.zeros([5, 3]))
    >>> s.shape, u.shape, v.shape
    (Shape([3]), Shape([5, 3]), Shape([3, 3]))
    """
    tensor = _converted(tensor)
    found = svd_op(
        tensor,
        compute_uv=bool(compute_uv),
        full_matrices=bool(full_matrices),
        real=real_dtype(tensor.dtype),
        Tout=(tensor.dtype,) * (2 if compute_uv else 0),
        name=name,
    )
    s, vectors = found[0], found[1:]
    return (s, *vectors) if compute_uv else s


def _converted(value: Any) -> Tensor:
    """A tensor, where the output's dtype depends on the input's; Python's ints become floats."""
    if not isinstance(value, np.ndarray | np.generic) and not hasattr(value, "dtype"):
        found = np.asarray(value)
        if found.dtype.kind in "iu":
            return convert_to_tensor(found.astype(np.float32))
    return convert_to_tensor(value)


def _eigh_shapes(input: Tensor, compute_v: bool, Tout: Any) -> list[Shape]:
    dims = square_dims(input)
    if dims is None:
        return [UNKNOWN] * (1 + len(Tout))
    return [Shape.of(dims[:-1])] + [Shape.of(dims)] * len(Tout)


def _eigh(xp: Any, input: Any, compute_v: bool) -> tuple[Any, ...]:
    check_square(input.shape)
    try:
        if not is_finite(xp, input).all():
            raise np.linalg.LinAlgError
        if not compute_v:
            return (products.factorised(xp.linalg.eigvalsh, input).astype(input.dtype, copy=False),)
        e, v = products.factorised(xp.linalg.eigh, input)
        return e.astype(input.dtype, copy=False), v
    except np.linalg.LinAlgError:
        raise InvalidArgumentError(
            "Self-adjoint eigen decomposition was not successful. "
            "The input has NaN or infinities among its elements."
        ) from None


def _eigh_gradient(op: Operation, de: Tensor, *dvs: Tensor, used: Sequence[bool]) -> Tensor:
    """Giles 2008, section 3.1; of the lower triangle, which alone is read."""
    input = op.inputs[0]
    e, v = op.outputs if dvs else self_adjoint_eig(input)
    middle = diag_op(real_part(de))
    if any(used[1:]):
        gaps = _inverse_or_zero(_differences(e))
        middle = middle + matmul(v, dvs[0], adjoint_a=True) * gaps
    da = matmul(matmul(v, middle), v, adjoint_b=True)
    return half_diagonal(da + adjoint(da))


def _eigh_flops(op: Operation) -> int:
    count_flops = cubic(9) if op.attributes["compute_v"] else cubic(4, 3)
    return count_flops(op)


eigh_op: OpDef[tuple[Tensor, ...]] = OpDef(
    "SelfAdjointEig",
    "input: T -> e: T, vectors: *Tout",
    T=SOLVABLE,
    attributes={"compute_v": True, "Tout": REQUIRED},
    infer=_eigh_shapes,
    kernel=_eigh,
    grad=_eigh_gradient,
    cost=_eigh_flops,
)


@eigh_op.front
def self_adjoint_eig(tensor: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Eigenvalues and eigenvectors of Hermitian matrices, `A = V diag(e) V^H`.

    Args:
        tensor: [..., n, n] of a float of at least 32 bits or complex; only the lower triangle is
            read, and has the whole gradient.

    Returns:
        e [..., n] of the input's dtype, in ascending order, and V [..., n, n], an eigenvector in
        each column. The gradient of the vectors exists where eigenvalues differ.

    Raises:
        InvalidArgumentError: in the run, if the input is not finite.
    """
    e, v = _eigh_of(tensor, True, name)
    return e, v


def self_adjoint_eigvals(tensor: Any, name: str | None = None) -> Tensor:
    """The eigenvalues of Hermitian matrices, as `self_adjoint_eig` gives them."""
    [e] = _eigh_of(tensor, False, name)
    return e


def _eigh_of(tensor: Any, compute_v: bool, name: str | None) -> list[Tensor]:
    tensor = _converted(tensor)
    found = eigh_op(
        tensor,
        compute_v=compute_v,
        Tout=(tensor.dtype,) * compute_v,
        name=name,
    )
    return [*found]
