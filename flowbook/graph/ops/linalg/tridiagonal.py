"""Matrices that are zero but for three diagonals: solving with them, and products.

Such matrices are [..., 3, n]: what stands above the diagonal, on it and below it, each in the row
that it stands in. The last element above and the first below lie outside and are not read.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.op_def import HOST, OpDef
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import UNKNOWN, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.numerics.lapack import solved_tridiagonal
from flowbook.graph.ops.basis.broadcasting import reduce_sum
from flowbook.graph.ops.basis.conjugation import conj, conjugate
from flowbook.graph.ops.basis.constants import convert_to_tensor, zeros_like_op
from flowbook.graph.ops.basis.joining import concat, stack
from flowbook.graph.ops.basis.shaping import expand_dims, squeeze
from flowbook.graph.ops.linalg.diagonals import matrix_diag_part
from flowbook.graph.ops.linalg.matrices import SOLVABLE, matrix_transpose
from flowbook.graph.ops.math.arithmetic import add_n

__all__ = ["tridiagonal_matmul", "tridiagonal_solve"]


def _check(diagonals: Any, rhs: Any) -> Shape:
    """The same for tensors as for arrays; gives the result's shape."""
    bands, right = Shape(diagonals.shape), Shape(rhs.shape)
    if bands.dims is None or right.dims is None:
        return UNKNOWN
    if (
        len(bands.dims) < 2
        or len(right.dims) != len(bands.dims)
        or bands.dims[-2] not in (None, 3)
        or not Shape.of((*bands.dims[:-2], bands.dims[-1])).is_compatible_with(right.dims[:-1])
    ):
        raise InvalidArgumentError(
            f"diagonals are [..., 3, n] and the other side [..., n, k], not {bands} and {right}"
        )
    known = Shape.of((*bands.dims[:-2], bands.dims[-1])).merge(Shape.of(right.dims[:-1]))
    assert known.dims is not None
    return Shape.of((*known.dims, right.dims[-1]))


def _solve(xp: Any, diagonals: Any, rhs: Any) -> Any:
    _check(diagonals, rhs)
    n, k = rhs.shape[-2:]
    count = int(np.prod(rhs.shape[:-2]))
    try:
        found = solved_tridiagonal(diagonals.reshape(count, 3, n), rhs.reshape(count, n, k))
    except np.linalg.LinAlgError:
        raise InvalidArgumentError("Input is not invertible. A matrix is singular.") from None
    return found.reshape(rhs.shape)


def _bands(diagonals: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return diagonals[..., 0, :], diagonals[..., 1, :], diagonals[..., 2, :]


def _next(x: Tensor, axis: int) -> Tensor:
    """For each element along an axis, counted from the last, the one after it; 0 for the last."""
    rest = (slice(None),) * (-1 - axis)
    first = x[(..., slice(None, 1), *rest)]
    return concat([x[(..., slice(1, None), *rest)], zeros_like_op(first)], axis)


def _previous(x: Tensor, axis: int) -> Tensor:
    rest = (slice(None),) * (-1 - axis)
    first = x[(..., slice(None, 1), *rest)]
    return concat([zeros_like_op(first), x[(..., slice(None, -1), *rest)]], axis)


def _adjoint(diagonals: Tensor) -> Tensor:
    above, on, below = _bands(diagonals)
    return conjugate(stack([_next(below, -1), on, _previous(above, -1)], -2))


def _solve_gradient(op: Operation, dy: Tensor) -> tuple[Tensor, Tensor]:
    y = conjugate(op.outputs[0])
    d_rhs = solve_op(_adjoint(op.inputs[0]), dy)
    bands = [-reduce_sum(d_rhs * other, -1) for other in (_next(y, -2), y, _previous(y, -2))]
    return stack(bands, -2), d_rhs


solve_op: OpDef = OpDef(
    "TridiagonalSolve",
    "diagonals: T, rhs: T -> output: T",
    T=SOLVABLE,
    infer=_check,
    kernel=_solve,
    kinds=HOST,
    grad=_solve_gradient,
    cost=lambda op: 8 * (op.inputs[1].shape.size or 0),
)


def _compact(diagonals: Any, diagonals_format: str) -> Tensor:
    """The three diagonals of a matrix in one of the formats."""
    if diagonals_format == "compact":
        return convert_to_tensor(diagonals)
    if diagonals_format == "sequence":
        if not isinstance(diagonals, list | tuple) or len(diagonals) != 3:
            raise InvalidArgumentError(
                f"a sequence of three diagonals is wanted, not {diagonals!r}"
            )
        above, on, below = (convert_to_tensor(d) for d in diagonals)
        n = on.shape.dims[-1] if on.shape.dims else None
        if above.shape.dims and n is not None and above.shape.dims[-1] == n - 1:
            above, below = _fill(above, after=True), _fill(below, after=False)
        return stack([above, on, below], -2)
    if diagonals_format == "matrix":
        x = convert_to_tensor(diagonals)
        above, below = matrix_diag_part(x[..., :-1, 1:]), matrix_diag_part(x[..., 1:, :-1])
        return stack([_fill(above, after=True), matrix_diag_part(x), _fill(below, after=False)], -2)
    raise InvalidArgumentError(
        f'diagonals_format is "compact", "sequence" or "matrix", not {diagonals_format!r}'
    )


def _fill(band: Tensor, after: bool) -> Tensor:
    """A diagonal beside the main one with the element that lies outside."""
    zero = zeros_like_op(reduce_sum(band, -1, keepdims=True))
    return concat([band, zero] if after else [zero, band], -1)


@solve_op.front
@composed
def tridiagonal_solve(
    diagonals: Any,
    rhs: Any,
    diagonals_format: str = "compact",
    transpose_rhs: bool = False,
    conjugate_rhs: bool = False,
    name: str | None = None,
) -> Tensor:
    """Solve systems of linear equations whose matrices are zero but for three diagonals.

    Args:
        diagonals: the matrices, as `diagonals_format` says, of a float of at least 32 bits or
            complex.
        rhs: [..., n, k] of the same dtype, or [..., n] for one system of each matrix.
        diagonals_format: "compact" for [..., 3, n], what stands above the diagonal, on it and below
            it, each in the row that it stands in, so that the last above and the first below are
            not used; "sequence" for a list of these three, those beside the diagonal of n or n - 1
            elements; "matrix" for [..., n, n].
        transpose_rhs: `rhs` is [..., k, n].
        conjugate_rhs: take the conjugate of `rhs`.

    Returns:
        [..., n, k], or [..., n], the x of `A x = rhs`.

    Raises:
        InvalidArgumentError: if shapes do not fit; in the run, if a matrix is singular.

    >>> import flowbook as fb
    >>> bands = [[1.0, 1.0, 0.0], [2.0, 2.0, 2.0], [0.0, 1.0, 1.0]]
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.tridiagonal_solve(bands, [3.0, 4.0, 3.0])))
    [1. 1. 1.]
    """
    bands = _compact(diagonals, diagonals_format)
    right = convert_to_tensor(rhs, bands.dtype)
    is_vector = bands.shape.rank is not None and right.shape.rank == bands.shape.rank - 1
    if conjugate_rhs:
        right = conj(right)
    if is_vector:
        return squeeze(solve_op(bands, expand_dims(right, -1)), -1, name=name)
    if transpose_rhs:
        right = matrix_transpose(right)
    return solve_op(bands, right, name=name)


@composed
def tridiagonal_matmul(
    diagonals: Any, rhs: Any, diagonals_format: str = "compact", name: str | None = None
) -> Tensor:
    """Products of matrices that are zero but for three diagonals with others.

    Args:
        diagonals: as for `tridiagonal_solve`, and so is diagonals_format.
        rhs: [..., n, k] of the same dtype.
        diagonals_format: "compact", "sequence" or "matrix".

    Returns:
        [..., n, k].
    """
    bands = _compact(diagonals, diagonals_format)
    x = convert_to_tensor(rhs, bands.dtype)
    above, on, below = (expand_dims(band, -1) for band in _bands(bands))
    terms = [above * _next(x, -2), on * x, below * _previous(x, -2)]
    return add_n(terms, name=name)
