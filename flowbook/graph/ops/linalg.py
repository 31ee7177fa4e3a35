"""Linear algebra on the last two dimensions; those before them are a batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.dtypes import NUMBERS, complex64, complex128, float32, float64
from flowbook.graph.errors import InvalidArgumentError
from flowbook.graph.op_def import OpDef
from flowbook.graph.operation import Operation
from flowbook.graph.ops.arithmetic import conjugate
from flowbook.graph.ops.broadcasting import sum_to_shape
from flowbook.graph.ops.constants import convert_to_tensor
from flowbook.graph.ops.inference import same_as_input
from flowbook.graph.ops.shaping import expand_dims_op, squeeze_op, transpose_op
from flowbook.graph.shape import UNKNOWN, Shape
from flowbook.graph.shape import broadcast as broadcast_shapes
from flowbook.graph.tensor import Tensor


def _product_shape(a: Tensor, b: Tensor, transpose_a: bool, transpose_b: bool) -> Shape:
    for x in (a, b):
        if x.shape.rank in (0, 1):
            raise InvalidArgumentError(
                f"a matrix has at least two dimensions, not the shape {x.shape}"
            )
    if a.shape.dims is None or b.shape.dims is None:
        return UNKNOWN
    rows, inner = _matrix(a.shape.dims, transpose_a)
    other, columns = _matrix(b.shape.dims, transpose_b)
    if inner is not None and other is not None and inner != other:
        raise InvalidArgumentError(
            f"inner dimensions differ: {_described(a.shape, transpose_a)} x "
            f"{_described(b.shape, transpose_b)}",
            hint=_what_fits(a.shape.dims, b.shape.dims, transpose_a, transpose_b),
        )
    batch = broadcast_shapes(Shape.of(a.shape.dims[:-2]), Shape.of(b.shape.dims[:-2]))
    return batch.concatenate((rows, columns))


def _matrix(dims: Any, transposed: bool) -> Any:
    return dims[:-3:-1] if transposed else dims[-2:]


def _described(shape: Shape, transposed: bool) -> str:
    return f"transposed {shape}" if transposed else str(shape)


def _what_fits(a: Any, b: Any, transpose_a: bool, transpose_b: bool) -> str | None:
    """Which transposition, or exchange, would make the inner dimensions agree."""
    inner, other = _matrix(a, transpose_a)[1], _matrix(b, transpose_b)[0]
    if inner == _matrix(b, not transpose_b)[0]:
        return f"pass transpose_b={not transpose_b}"
    if _matrix(b, transpose_b)[1] == _matrix(a, transpose_a)[0]:
        return "exchange the two: matmul(b, a) fits"
    if _matrix(a, not transpose_a)[1] == other:
        return f"pass transpose_a={not transpose_a}"
    if _matrix(a, not transpose_a)[1] == _matrix(b, not transpose_b)[0]:
        return f"pass transpose_a={not transpose_a} and transpose_b={not transpose_b}"
    return None


def _matmul(xp: Any, a: Any, b: Any, transpose_a: bool, transpose_b: bool) -> Any:
    if a.ndim < 2 or b.ndim < 2:
        raise InvalidArgumentError(
            f"a matrix has at least two dimensions, not {list(a.shape)} x {list(b.shape)}"
        )
    x = a.swapaxes(-1, -2) if transpose_a else a
    y = b.swapaxes(-1, -2) if transpose_b else b
    try:
        return xp.matmul(x, y)
    except ValueError:
        if x.shape[-1] == y.shape[-2]:
            raise InvalidArgumentError(
                f"batch dimensions do not broadcast: {list(a.shape)} x {list(b.shape)}"
            ) from None
        raise InvalidArgumentError(
            f"inner dimensions differ: {_described(Shape(a.shape), transpose_a)} x "
            f"{_described(Shape(b.shape), transpose_b)}",
            hint=_what_fits(a.shape, b.shape, transpose_a, transpose_b),
        ) from None


def _product_gradient(op: Operation, dc: Tensor) -> Any:
    a, b = op.inputs
    x, y = conjugate(a), conjugate(b)
    match op.attributes["transpose_a"], op.attributes["transpose_b"]:
        case False, False:
            da, db = matmul_op(dc, y, False, True), matmul_op(x, dc, True, False)
        case False, True:
            da, db = matmul_op(dc, y, False, False), matmul_op(dc, x, True, False)
        case True, False:
            da, db = matmul_op(y, dc, False, True), matmul_op(x, dc, False, False)
        case _:
            da, db = matmul_op(y, dc, True, True), matmul_op(dc, x, True, True)
    return sum_to_shape(da, a, b), sum_to_shape(db, b, a)


def _product_flops(op: Operation) -> int:
    a, output = op.inputs[0].shape, op.outputs[0].shape
    if output.size is None or a.dims is None:
        return 0
    return 2 * output.size * (_matrix(a.dims, op.attributes["transpose_a"])[1] or 0)


matmul_op = OpDef(
    "MatMul",
    "a: T, b: T -> product: T",
    T=NUMBERS,
    attributes={"transpose_a": False, "transpose_b": False},
    infer=_product_shape,
    kernel=_matmul,
    grad=_product_gradient,
    aliases={},
    cost=_product_flops,
)


@matmul_op.front
def matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    name: str | None = None,
) -> Tensor:
    """The matrix product.

    Args:
        a: [..., n, k] of a number dtype.
        b: [..., k, m] of the same dtype; dimensions before the last two broadcast.
        transpose_a: take `a` as [..., k, n] and transpose it first.
        transpose_b: take `b` as [..., m, k] and transpose it first.
        name: the operation's name.

    Returns:
        [..., n, m]. As with NumPy's `@`, a vector as `a` counts as a row and as `b` as a column,
        and its dimension is missing in the result.

    Raises:
        InvalidArgumentError: if the inner dimensions differ; in the run, where it is known only
            then.

    >>> import flowbook as fb
    >>> fb.matmul(fb.zeros([32, 784]), fb.zeros([784, 10])).shape
    Shape([32, 10])
    """
    __tracebackhide__ = True
    flags = {"transpose_a": bool(transpose_a), "transpose_b": bool(transpose_b)}
    ranks = [_rank(a), _rank(b)]
    result: Tensor
    if 1 not in ranks:
        result = matmul_op(a, b, **flags, name=name)
        return result
    if not isinstance(a, Tensor) or not isinstance(b, Tensor):
        a, b = _both(a, b)
    for i, key in enumerate(flags):
        flags[key] = flags[key] and ranks[i] != 1
    row = expand_dims_op(a, axis=(0,)) if ranks[0] == 1 else a
    column = expand_dims_op(b, axis=(1,)) if ranks[1] == 1 else b
    gone = (-2,) * (ranks[0] == 1) + (-1,) * (ranks[1] == 1)
    product = matmul_op(row, column, **flags, name=name)
    result = squeeze_op(product, axis=gone)
    return result


def _rank(value: Any) -> int | None:
    if hasattr(value, "as_tensor") or isinstance(value, Tensor):
        rank: int | None = value.shape.rank
        return rank
    return np.ndim(value)


def _both(a: Any, b: Any) -> tuple[Tensor, Tensor]:
    """Both as tensors; values take the dtype of a tensor beside them."""
    if hasattr(b, "dtype") and not isinstance(b, np.ndarray | np.generic):
        b = convert_to_tensor(b)
        return convert_to_tensor(a, b.dtype), b
    a = convert_to_tensor(a)
    return a, convert_to_tensor(b, a.dtype)


_SOLVABLE = (float32, float64, complex64, complex128)


def _check_square(shape: Any, rank: int | None) -> None:
    if rank is None:
        return
    if rank < 2 or (None not in shape[-2:] and shape[-1] != shape[-2]):
        raise InvalidArgumentError(f"a square matrix is wanted, not the shape {list(shape)}")


def _inverse_shape(input: Tensor) -> Shape:
    _check_square(input.shape.dims, input.shape.rank)
    return same_as_input(input)


def _inverse(xp: Any, input: Any) -> Any:
    _check_square(input.shape, input.ndim)
    try:
        return xp.linalg.inv(input)
    except np.linalg.LinAlgError:
        raise InvalidArgumentError("the matrix is singular: it has no inverse") from None


def _inverse_gradient(op: Operation, dy: Tensor) -> Tensor:
    y = conjugate(op.outputs[0])
    return -matmul_op(matmul_op(y, dy, True, False), y, False, True)  # type: ignore[no-any-return]


def _cubic(op: Operation) -> int:
    shape = op.inputs[0].shape
    return 2 * (shape.size or 0) * ((shape.dims and shape.dims[-1]) or 0)


matrix_inverse = OpDef(
    "MatrixInverse",
    "input: T -> output: T",
    T=_SOLVABLE,
    infer=_inverse_shape,
    kernel=_inverse,
    grad=_inverse_gradient,
    aliases={},
    cost=_cubic,
    doc="""The inverse of square matrices [..., n, n], of at least 32 bits.

    A singular matrix is an InvalidArgumentError in the run.
    """,
)


def _determinant_shape(input: Tensor) -> Shape:
    _check_square(input.shape.dims, input.shape.rank)
    return UNKNOWN if input.shape.dims is None else Shape.of(input.shape.dims[:-2])


def _determinant(xp: Any, input: Any) -> Any:
    _check_square(input.shape, input.ndim)
    return xp.linalg.det(input)


def _determinant_gradient(op: Operation, dy: Tensor) -> Tensor:
    inverse = conjugate(matrix_inverse(op.inputs[0]))
    scale = expand_dims_op(dy * conjugate(op.outputs[0]), axis=(-2, -1))
    return scale * _swapped(inverse)  # type: ignore[no-any-return]


def _swapped(matrix: Tensor) -> Tensor:
    """Each matrix of a batch transposed."""
    rank = matrix.shape.rank
    if rank is None:
        raise InvalidArgumentError("this gradient needs an input of known rank")
    return transpose_op(matrix, perm=(*range(rank - 2), rank - 1, rank - 2))  # type: ignore[no-any-return]


matrix_determinant = OpDef(
    "MatrixDeterminant",
    "input: T -> output: T",
    T=_SOLVABLE,
    infer=_determinant_shape,
    kernel=_determinant,
    grad=_determinant_gradient,
    aliases={},
    cost=_cubic,
    doc="""The determinants [...] of square matrices [..., n, n], of at least 32 bits.

    The gradient exists where the matrix has an inverse.
    """,
)
