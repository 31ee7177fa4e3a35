"""Products of matrices and vectors, in the last two dimensions; those before them are a batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.definition.batching import Batching
from flowbook.graph.definition.inference import elementwise
from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.definition.packing import packed
from flowbook.graph.model.convert import to_array
from flowbook.graph.model.dtypes import NUMBERS, REALS
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import UNKNOWN, Shape
from flowbook.graph.model.shape import broadcast as broadcast_shapes
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.numerics import products
from flowbook.graph.ops.basis.broadcasting import sum_to_shape
from flowbook.graph.ops.basis.conjugation import conjugate
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.shaping import expand_dims_op, reshape_op, squeeze_op

__all__ = ["cross", "matmul", "matvec"]


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


# Of so few multiplications NumPy's `dot` takes a third of the time of its `matmul`, which does more
# before it calls the same function of BLAS.
_SMALL = 8 << 10


def _matmul(xp: Any, a: Any, b: Any, transpose_a: bool, transpose_b: bool) -> Any:
    if a.ndim < 2 or b.ndim < 2:
        raise InvalidArgumentError(
            f"a matrix has at least two dimensions, not {list(a.shape)} x {list(b.shape)}"
        )
    x = a.swapaxes(-1, -2) if transpose_a else a
    y = b.swapaxes(-1, -2) if transpose_b else b
    try:
        if x.ndim == 2 == y.ndim and x.size * y.shape[1] <= _SMALL and a.dtype.char != "e":
            return x.dot(y)
        if a.dtype.char == "e":
            # Half precision has no fast product, and sums of it lose digits.
            wide = products.matmul(xp, x.astype(np.float32), y.astype(np.float32))
            return wide.astype(a.dtype)
        if y.ndim == 2 < x.ndim and x.size and x.flags.c_contiguous:
            # One large product instead of one per matrix of the batch.
            flat = products.matmul(xp, x.reshape(-1, x.shape[-1]), y)
            return flat.reshape(*x.shape[:-1], y.shape[-1])
        return products.matmul(xp, x, y)
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
    shared = _gradient_of_shared(op, x, dc)
    if shared is not None:
        da = matmul_op(dc, y, False, not op.attributes["transpose_b"])
        return da, shared
    match op.attributes["transpose_a"], op.attributes["transpose_b"]:
        case False, False:
            da, db = matmul_op(dc, y, False, True), matmul_op(x, dc, True, False)
        case False, True:
            da, db = matmul_op(dc, y, False, False), matmul_op(dc, x, True, False)
        case True, False:
            da, db = matmul_op(y, dc, False, True), matmul_op(x, dc, False, False)
        case _:
            da, db = matmul_op(y, dc, True, True), matmul_op(dc, x, True, True)
    if a.shape.rank == b.shape.rank == 2:
        return da, db
    return sum_to_shape(da, a, b), sum_to_shape(db, b, a)


def _gradient_of_shared(op: Operation, x: Tensor, dc: Tensor) -> Tensor | None:
    """The gradient of one matrix for a whole batch, as one product; None where shapes hide it."""
    a, b = op.inputs
    known = a.shape.dims and dc.shape.dims and b.shape.rank == 2 and len(a.shape.dims) > 2
    if not known or op.attributes["transpose_a"]:
        return None
    widths = [t.shape.dims and t.shape.dims[-1] for t in (a, dc)]
    if not all(widths):
        return None
    rows, columns = (reshape_op(t, [-1, width]) for t, width in zip((x, dc), widths, strict=True))
    if op.attributes["transpose_b"]:
        rows, columns = columns, rows
    return matmul_op(rows, columns, True, False)


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
    spreads_nonfinite=("a", "b"),
    batching=Batching.ELEMENTWISE,
    cost=_product_flops,
)


@matmul_op.front
def matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    name: str | None = None,
) -> Tensor:
    """The matrix product.

    Args:
        a: [..., n, k] of a number dtype.
        b: [..., k, m] of the same dtype; dimensions before the last two broadcast.
        transpose_a: take `a` as [..., k, n] and transpose it first.
        transpose_b: take `b` as [..., m, k] and transpose it first.
        adjoint_a: take `a` as [..., k, n]; transpose and conjugate it first.
        adjoint_b: take `b` as [..., m, k]; transpose and conjugate it first.

    Returns:
        [..., n, m]. As with NumPy's `@`, a vector as `a` counts as a row and as `b` as a column,
        and its dimension is missing in the result.

    Raises:
        InvalidArgumentError: if the inner dimensions differ (in the run, where it is known only
            then), or one of them is both to be transposed and the adjoint.

    >>> import flowbook as fb
    >>> fb.matmul(fb.zeros([32, 784]), fb.zeros([784, 10])).shape
    Shape([32, 10])
    """
    a, b = packed(a), packed(b)
    if adjoint_a or adjoint_b:
        a, transpose_a = _conjugated("a", a, transpose_a, adjoint_a)
        b, transpose_b = _conjugated("b", b, transpose_b, adjoint_b)
    flags = {"transpose_a": bool(transpose_a), "transpose_b": bool(transpose_b)}
    ranks = [_rank(a), _rank(b)]
    result: Tensor
    if 1 not in ranks:
        result = matmul_op(a, b, **flags, name=name)
        return result
    if not isinstance(a, Tensor) or not isinstance(b, Tensor):
        a, b = both(a, b)
    for i, key in enumerate(flags):
        flags[key] = flags[key] and ranks[i] != 1
    row = expand_dims_op(a, axis=(0,)) if ranks[0] == 1 else a
    column = expand_dims_op(b, axis=(1,)) if ranks[1] == 1 else b
    gone = (-2,) * (ranks[0] == 1) + (-1,) * (ranks[1] == 1)
    product = matmul_op(row, column, **flags, name=name)
    result = squeeze_op(product, axis=gone)
    return result


def _conjugated(what: str, x: Any, transpose: bool, adjoint: bool) -> tuple[Any, bool]:
    """A factor, and whether it is to be transposed; the adjoint is conjugated here."""
    if transpose and adjoint:
        raise InvalidArgumentError(f"transpose_{what} and adjoint_{what} are both given")
    if not adjoint:
        return x, transpose
    if not hasattr(x, "as_tensor") and not isinstance(x, Tensor):
        return (np.conj(x) if np.iscomplexobj(x) else x), True
    return conjugate(convert_to_tensor(x)), True


def _rank(value: Any) -> int | None:
    if hasattr(value, "as_tensor") or isinstance(value, Tensor):
        rank: int | None = value.shape.rank
        return rank
    return value.ndim if isinstance(value, np.ndarray) else to_array(value).ndim


def both(a: Any, b: Any) -> tuple[Tensor, Tensor]:
    """Two factors as tensors; values take the dtype of a tensor beside them."""
    if hasattr(b, "dtype") and not isinstance(b, np.ndarray | np.generic):
        b = convert_to_tensor(b)
        return convert_to_tensor(a, b.dtype), b
    a = convert_to_tensor(a)
    return a, convert_to_tensor(b, a.dtype)


def matvec(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    adjoint_a: bool = False,
    name: str | None = None,
) -> Tensor:
    """The product of matrices and vectors.

    Args:
        a: [..., n, k] of a number dtype.
        b: [..., k] of the same dtype; dimensions before broadcast.
        transpose_a: take `a` as [..., k, n] and transpose it first.
        adjoint_a: take `a` as [..., k, n]; transpose and conjugate it first.
        name: the operation's name.

    Returns:
        [..., n].

    Raises:
        InvalidArgumentError: if the sizes differ; in the run, where it is known only then.
    """
    a, b = both(a, b)
    if b.shape.rank == 0:
        raise InvalidArgumentError("a vector has at least one dimension, but b is a scalar")
    column = expand_dims_op(b, axis=(-1,))
    product = matmul(a, column, transpose_a, False, adjoint_a, False, name=name)
    return squeeze_op(product, axis=(-1,))


def _cross_shape(a: Tensor, b: Tensor) -> Shape:
    shape = a.shape.merge(b.shape)
    if shape.rank == 0 or (shape.dims and shape.dims[-1] not in (None, 3)):
        raise InvalidArgumentError(f"vectors of three elements are wanted, not the shape {shape}")
    return shape


def _cross(xp: Any, a: Any, b: Any) -> Any:
    if a.shape != b.shape or a.ndim == 0 or a.shape[-1] != 3:
        raise InvalidArgumentError(
            "vectors of three elements and of one shape are wanted, not "
            f"{list(a.shape)} x {list(b.shape)}"
        )
    # In order: the elements after each of the three, and those after these.
    after, last = [1, 2, 0], [2, 0, 1]
    return a[..., after] * b[..., last] - a[..., last] * b[..., after]


cross: OpDef = OpDef(
    "Cross",
    "a: T, b: T -> product: T",
    T=REALS,
    infer=_cross_shape,
    kernel=_cross,
    grad=lambda op, dc: (cross(op.inputs[1], dc), cross(dc, op.inputs[0])),
    cost=elementwise(flops=3),
    doc="""The cross product of vectors [..., 3] of one real dtype and shape.

    It does not broadcast.
    """,
)
