"""What the operations on matrices share, and transposition.

A matrix is the last two dimensions of a tensor; those before them are a batch. What factorises or
solves takes floats of at least 32 bits and complex numbers: half precision has no LAPACK.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from flowbook.graph.definition.batching import Batching
from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.dtypes import MOVABLE, complex64, complex128, float32, float64
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import UNKNOWN, Dims, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.conjugation import conjugate

__all__ = ["adjoint", "matrix_transpose"]

SOLVABLE = (float32, float64, complex64, complex128)


def check_matrix(shape: Any) -> None:
    """See that a tuple of dimensions, None where one is unknown, is that of matrices.

    Raises:
        InvalidArgumentError: if they are fewer than two.
    """
    if shape is not None and len(shape) < 2:
        raise InvalidArgumentError(
            f"a matrix has at least two dimensions, not the shape {Shape(shape)}"
        )


def check_square(shape: Any) -> None:
    """See that a tuple of dimensions, None where one is unknown, is that of square matrices.

    Raises:
        InvalidArgumentError: if it is not.
    """
    if shape is None:
        return
    if len(shape) < 2 or (None not in shape[-2:] and shape[-1] != shape[-2]):
        raise InvalidArgumentError(f"a square matrix is wanted, not the shape {Shape(shape)}")


def smaller(rows: int | None, columns: int | None) -> int | None:
    """The smaller side of a matrix, as far as it is known."""
    if rows is None or columns is None:
        return 0 if 0 in (rows, columns) else None
    return min(rows, columns)


def square_dims(tensor: Tensor) -> Dims | None:
    """The dimensions of square matrices: one side that is known tells the other."""
    dims = tensor.shape.dims
    check_square(dims)
    if dims is None:
        return None
    side = dims[-1] if dims[-2] is None else dims[-2]
    return (*dims[:-2], side, side)


def square_shape(input: Tensor, **_: Any) -> Shape:
    """The shape of a function of square matrices that gives matrices of the same size."""
    return Shape.of(square_dims(input))


def batch_shape(input: Tensor, **_: Any) -> Shape:
    """The shape of a function of square matrices that gives one number for each."""
    dims = square_dims(input)
    return UNKNOWN if dims is None else Shape.of(dims[:-2])


def sides(shape: Shape) -> tuple[int, int, int]:
    """How many matrices there are, and their longer and shorter side; zeros if not all is known."""
    if shape.size is None or shape.dims is None:
        return 0, 0, 0
    *batch, rows, columns = [d or 0 for d in shape.dims]
    return prod(batch), max(rows, columns), min(rows, columns)


def cubic(numerator: int, denominator: int = 1) -> Callable[[Operation], int]:
    """A cost of so many times the cube of a square matrix's side."""

    def cost(op: Operation) -> int:
        count, _, side = sides(op.inputs[0].shape)
        return numerator * count * side**3 // denominator

    return cost


def singular_values_flops(shape: Shape) -> int:
    """What the singular values of matrices take (Golub and Reinsch)."""
    count, long, short = sides(shape)
    return count * (4 * long * short**2 - 4 * short**3 // 3)


def singular_vectors_flops(shape: Shape) -> int:
    """What singular values and vectors on both sides take, as many as values (them again)."""
    count, long, short = sides(shape)
    return count * (14 * long * short**2 + 8 * short**3)


def is_finite(xp: Any, matrix: Any) -> Any:
    """For each matrix of a batch whether all of it is finite, shaped to broadcast against it."""
    return xp.all(xp.isfinite(matrix), axis=(-2, -1), keepdims=True)


def refuse_nan(xp: Any, result: Any, message: str, *inputs: Any) -> None:
    """Raise an error for NaN in a result that an input brought there.

    LAPACK tells of zeros where it divides, but NaN passes its tests.
    """
    if xp.isnan(result).any() and any(xp.isnan(x).any() for x in inputs):
        raise InvalidArgumentError(f"{message} It has NaN among its elements.")


def _transposed_shape(a: Tensor) -> Shape:
    dims = a.shape.dims
    check_matrix(dims)
    return UNKNOWN if dims is None else Shape.of((*dims[:-2], dims[-1], dims[-2]))


def _transpose(xp: Any, a: Any) -> Any:
    check_matrix(a.shape)
    return xp.swapaxes(a, -1, -2)


matrix_transpose_op: OpDef = OpDef(
    "MatrixTranspose",
    "a: T -> output: T",
    T=MOVABLE,
    infer=_transposed_shape,
    kernel=_transpose,
    grad=lambda op, dy: matrix_transpose_op(dy),
    aliases={0: 0},
    batching=Batching.LEADING,
    only_moves=True,
)


@matrix_transpose_op.front
def matrix_transpose(a: Any, conjugate: bool = False, name: str | None = None) -> Tensor:
    """The last two dimensions exchanged.

    Args:
        a: [..., n, m] of any dtype.
        conjugate: also conjugate complex elements.

    Returns:
        [..., m, n].

    >>> import flowbook as fb
    >>> fb.matrix_transpose(fb.zeros([5, 2, 3])).shape
    Shape([5, 3, 2])
    """
    result = matrix_transpose_op(a, name=name)
    return _conjugate(result) if conjugate else result


_conjugate = conjugate


def adjoint(matrix: Any, name: str | None = None) -> Tensor:
    """The conjugate transpose of matrices [..., n, m]: [..., m, n]."""
    return matrix_transpose(matrix, conjugate=True, name=name)


def real_part(x: Tensor) -> Tensor:
    """A tensor without its imaginary part, in its own dtype."""
    return (x + conjugate(x)) * 0.5 if x.dtype.is_complex else x


def imaginary_part(x: Tensor) -> Tensor:
    """What `real_part` leaves of a complex tensor: the imaginary part times i."""
    return (x - conjugate(x)) * 0.5


def real_dtype(dtype: Any) -> Any:
    """The dtype of a number's absolute value."""
    return {complex64: float32, complex128: float64}.get(dtype, dtype)
