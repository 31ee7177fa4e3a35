"""Diagonals of matrices: taken out, put in, and what lies in a band about the main one.

Diagonal `k` lies `k` above the main one, below it if `k` is negative. A band is a pair `(low,
high)` of them; its diagonals lie in a matrix [high - low + 1, length], the highest first, each from
the left, padded on the right to the length of the longest.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.definition.axes import as_axis, settled
from flowbook.graph.definition.batching import Batching
from flowbook.graph.definition.op_def import REQUIRED, OpDef
from flowbook.graph.model.convert import to_array
from flowbook.graph.model.dtypes import ZEROED
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import UNKNOWN, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.broadcasting import sum_op
from flowbook.graph.ops.basis.constants import convert_to_tensor, zeros_like_op
from flowbook.graph.ops.linalg.matrices import check_matrix

__all__ = [
    "diag",
    "diag_part",
    "matrix_band_part",
    "matrix_diag",
    "matrix_diag_part",
    "matrix_set_diag",
    "trace",
]

Band = tuple[int, int]

# Where diagonals above the main one stand, and those below it.
_ALIGNMENTS = ("LEFT_LEFT", "LEFT_RIGHT", "RIGHT_LEFT", "RIGHT_RIGHT")


def _band(k: Any) -> Band:
    """A diagonal, or the lowest and the highest of several, as a pair."""
    k = settled(k, "'k'")
    if isinstance(k, np.ndarray):
        k = k.tolist()
    pair = tuple(as_axis(i, "'k'") for i in k) if isinstance(k, list | tuple) else ()
    low, high = pair if len(pair) == 2 else (pair or (as_axis(k, "'k'"),)) * 2
    if low > high:
        raise InvalidArgumentError(f"k is a pair (lowest, highest), not {(low, high)}")
    return low, high


def _length(rows: int, columns: int, k: int) -> int:
    """How many elements diagonal k has."""
    return max(min(rows + min(k, 0), columns - max(k, 0)), 0)


def _longest(rows: int, columns: int, band: Band) -> int:
    low, high = band
    if (rows or columns) and not -rows < low <= high < columns and not low == high == 0:
        raise InvalidArgumentError(
            f"the diagonals {low} to {high} do not all lie in a matrix [{rows}, {columns}]"
        )
    return max(min(rows + min(high, 0), columns - max(low, 0)), 0)


def _places(xp: Any, rows: int, columns: int, k: int) -> tuple[Any, Any, int]:
    """The rows and columns of diagonal k's elements, and how many they are."""
    count = _length(rows, columns, k)
    steps = xp.arange(count)
    return steps + max(-k, 0), steps + max(k, 0), count


def _part_dims(dims: Any, band: Band) -> tuple[int | None, ...]:
    """The shape of a band's diagonals."""
    rows, columns = dims[-2:]
    longest = None if None in (rows, columns) else _longest(rows, columns, band)
    count = () if band[0] == band[1] else (band[1] - band[0] + 1,)
    return (*dims[:-2], *count, longest)


def _begin(align: str, k: int, spare: int) -> int:
    """Where diagonal k begins in a row that has so many places more."""
    above, below = align.split("_")
    is_left = (k >= 0 and above == "LEFT") or (k <= 0 and below == "LEFT")
    return 0 if is_left else spare


def _padding(value: Any, like: Tensor) -> Any:
    """What fills up, as one of Python's numbers that fits a tensor's dtype."""
    found = to_array(value or like.dtype.type(0), like.dtype)
    if found.ndim:
        raise InvalidArgumentError(f"'padding_value' is a number, not of shape {list(found.shape)}")
    return found.item()


def _part_shape(input: Tensor, k: Band, padding_value: Any, align: str) -> Shape:
    dims = input.shape.dims
    check_matrix(dims)
    _padding(padding_value, input)
    return UNKNOWN if dims is None else Shape.of(_part_dims(dims, k))


def _part(xp: Any, input: Any, k: Band, padding_value: Any, align: str) -> Any:
    check_matrix(input.shape)
    dims = _part_dims(input.shape, k)
    low, high = k
    if low == high:
        return xp.diagonal(input, low, -2, -1)
    result = xp.full(dims, padding_value or 0, dtype=input.dtype)
    for row, diagonal in enumerate(range(high, low - 1, -1)):
        values = xp.diagonal(input, diagonal, -2, -1)
        begin = _begin(align, diagonal, dims[-1] - values.shape[-1])
        result[..., row, begin : begin + values.shape[-1]] = values
    return result


def _part_gradient(op: Operation, dy: Tensor) -> Tensor:
    zeros = zeros_like_op(op.inputs[0])
    return set_diag_op(zeros, dy, k=op.attributes["k"], align=op.attributes["align"])


diag_part_op = OpDef(
    "MatrixDiagPart",
    "input: T -> diagonal: T",
    T=ZEROED,
    attributes={"k": (0, 0), "padding_value": None, "align": "LEFT_LEFT"},
    choices={"align": _ALIGNMENTS},
    infer=_part_shape,
    kernel=_part,
    grad=_part_gradient,
    aliases={0: 0},
    batching=Batching.LEADING,
    only_moves=True,
)


@diag_part_op.front
def matrix_diag_part(
    input: Any,
    k: Any = 0,
    padding_value: Any = 0,
    align: str = "LEFT_LEFT",
    name: str | None = None,
) -> Tensor:
    """The diagonals of matrices.

    Args:
        input: [..., n, m] of any dtype but strings.
        k: which diagonal, an int; or the lowest and the highest of several.
        padding_value: what fills shorter diagonals up, a number of the input's dtype.
        align: where diagonals stand that are shorter than others, those above the main one and
            those below it: "LEFT_LEFT" begins all at the left, "RIGHT_LEFT" has those above end at
            the right, so that a column holds what is a row's in the matrix; "LEFT_RIGHT" has a
            column hold what is a column's; "RIGHT_RIGHT" ends all at the right.

    Returns:
        [..., length]; of several diagonals [..., count, length], the highest first.

    Raises:
        InvalidArgumentError: if a diagonal lies outside the matrix.

    >>> import flowbook as fb
    >>> fb.matrix_diag_part(fb.zeros([5, 2, 3]), k=1).shape
    Shape([5, 2])
    """
    input = convert_to_tensor(input)
    padding = _padding(padding_value, input)
    return diag_part_op(input, k=_band(k), padding_value=padding, align=align, name=name)


def _check_diagonals(dims: Any, band: Band) -> None:
    if dims is None:
        return
    low, high = band
    count = high - low + 1
    if len(dims) < 1 + (count > 1) or (count > 1 and dims[-2] not in (None, count)):
        raise InvalidArgumentError(
            f"the diagonals {low} to {high} are given as [..., {count}, length], "
            f"not in the shape {Shape(dims)}"
            if count > 1
            else "a diagonal has at least one dimension, but a scalar is given"
        )


def _sides(length: int, band: Band, num_rows: int, num_cols: int) -> tuple[int, int]:
    """The size of the matrix that holds diagonals: where it is not given, the smallest."""
    low, high = band
    least_rows, least_columns = length + max(-high, 0), length + max(low, 0)
    if num_rows == num_cols == -1:
        rows = columns = max(least_rows, least_columns)
    else:
        rows = least_rows if num_rows == -1 else num_rows
        columns = least_columns if num_cols == -1 else num_cols
    if _longest(rows, columns, band) != length:
        raise InvalidArgumentError(
            f"diagonals of {length} elements do not fit a matrix [{rows}, {columns}]"
        )
    return rows, columns


def _diag_shape(
    diagonal: Tensor, k: Band, num_rows: int, num_cols: int, padding_value: Any, align: str
) -> Shape:
    dims = diagonal.shape.dims
    _check_diagonals(dims, k)
    _padding(padding_value, diagonal)
    if dims is None:
        return UNKNOWN
    batch = dims[:-1] if k[0] == k[1] else dims[:-2]
    if dims[-1] is None:
        return Shape.of((*batch, None, None))
    return Shape.of((*batch, *_sides(dims[-1], k, num_rows, num_cols)))


def _diag(
    xp: Any,
    diagonal: Any,
    k: Band,
    num_rows: int,
    num_cols: int,
    padding_value: Any,
    align: str,
) -> Any:
    _check_diagonals(diagonal.shape, k)
    rows, columns = _sides(diagonal.shape[-1], k, num_rows, num_cols)
    batch = diagonal.shape[:-1] if k[0] == k[1] else diagonal.shape[:-2]
    result = xp.full((*batch, rows, columns), padding_value or 0, dtype=diagonal.dtype)
    return _written(xp, result, diagonal, k, align)


def _written(xp: Any, matrix: Any, diagonals: Any, band: Band, align: str) -> Any:
    """Diagonals written into a matrix that nobody else has."""
    low, high = band
    rows, columns = matrix.shape[-2:]
    for row, k in enumerate(range(high, low - 1, -1)):
        at_rows, at_columns, count = _places(xp, rows, columns, k)
        values = diagonals if low == high else diagonals[..., row, :]
        begin = _begin(align, k, values.shape[-1] - count)
        matrix[..., at_rows, at_columns] = values[..., begin : begin + count]
    return matrix


diag_op = OpDef(
    "MatrixDiag",
    "diagonal: T -> output: T",
    T=ZEROED,
    attributes={
        **{"k": (0, 0), "num_rows": -1, "num_cols": -1},
        **{"padding_value": None, "align": "LEFT_LEFT"},
    },
    choices={"align": _ALIGNMENTS},
    infer=_diag_shape,
    kernel=_diag,
    grad=lambda op, dy: diag_part_op(dy, k=op.attributes["k"], align=op.attributes["align"]),
    batching=Batching.LEADING,
    only_moves=True,
)


@diag_op.front
def matrix_diag(
    diagonal: Any,
    k: Any = 0,
    num_rows: int = -1,
    num_cols: int = -1,
    padding_value: Any = 0,
    align: str = "LEFT_LEFT",
    name: str | None = None,
) -> Tensor:
    """Matrices with given diagonals.

    Args:
        diagonal: [..., length] of any dtype but strings; several as [..., count, length], the
            highest first.
        k: which diagonal, an int; or the lowest and the highest of several.
        num_rows: how many rows the matrices have; by default as few as hold the diagonals, and if
            `num_cols` is not given either, a square.
        num_cols: how many columns they have, likewise.
        padding_value: what stands outside the diagonals, a number of the diagonals' dtype.
        align: where diagonals stand that are shorter than others, as in `matrix_diag_part`.

    Returns:
        [..., rows, columns].

    Raises:
        InvalidArgumentError: if the diagonals do not fit a matrix of that size.

    >>> import flowbook as fb
    >>> fb.matrix_diag(fb.zeros([5, 3])).shape
    Shape([5, 3, 3])
    """
    diagonal = convert_to_tensor(diagonal)
    padding = _padding(padding_value, diagonal)
    sides = {"num_rows": as_axis(num_rows, "'num_rows'")}
    sides["num_cols"] = as_axis(num_cols, "'num_cols'")
    how = {"padding_value": padding, "align": align}
    return diag_op(diagonal, k=_band(k), **sides, **how, name=name)


def _set_shape(input: Tensor, diagonal: Tensor, k: Band, align: str) -> Shape:
    check_matrix(input.shape.dims)
    _check_diagonals(diagonal.shape.dims, k)
    if input.shape.dims is None:
        return UNKNOWN
    part = Shape.of(_part_dims(input.shape.dims, k))
    if not part.is_compatible_with(diagonal.shape):
        raise InvalidArgumentError(
            f"diagonals of shape {diagonal.shape} do not fit a matrix {input.shape}: {part}"
        )
    return input.shape


def _set(xp: Any, input: Any, diagonal: Any, k: Band, align: str) -> Any:
    check_matrix(input.shape)
    part = _part_dims(input.shape, k)
    if part != diagonal.shape:
        raise InvalidArgumentError(
            f"diagonals of shape {list(diagonal.shape)} do not fit a matrix "
            f"{list(input.shape)}: {list(part)}"
        )
    return _written(xp, xp.array(input), diagonal, k, align)


def _set_gradient(op: Operation, dy: Tensor) -> tuple[Tensor, Tensor]:
    which = {name: op.attributes[name] for name in ("k", "align")}
    replaced = zeros_like_op(op.inputs[1])
    return set_diag_op(dy, replaced, **which), diag_part_op(dy, **which)


set_diag_op: OpDef = OpDef(
    "MatrixSetDiag",
    "input: T, diagonal: T -> output: T",
    T=ZEROED,
    attributes={"k": (0, 0), "align": "LEFT_LEFT"},
    choices={"align": _ALIGNMENTS},
    infer=_set_shape,
    kernel=_set,
    grad=_set_gradient,
    only_moves=True,
)


@set_diag_op.front
def matrix_set_diag(
    input: Any, diagonal: Any, k: Any = 0, align: str = "LEFT_LEFT", name: str | None = None
) -> Tensor:
    """Matrices with some of their diagonals replaced.

    Args:
        input: [..., n, m] of any dtype but strings.
        diagonal: the new diagonals, in the shape that `matrix_diag_part` gives.
        k: which diagonal, an int; or the lowest and the highest of several.
        align: where diagonals stand that are shorter than others, as in `matrix_diag_part`.

    Raises:
        InvalidArgumentError: if the diagonals do not fit; in the run, where it is known only then.
    """
    return set_diag_op(input, diagonal, k=_band(k), align=align, name=name)


def _band_shape(input: Tensor, num_lower: int, num_upper: int) -> Shape:
    dims = input.shape.dims
    check_matrix(dims)
    if dims is not None:
        _check_band(dims, num_lower, num_upper)
    return input.shape


def _check_band(dims: Any, num_lower: int, num_upper: int) -> None:
    for name, number, side in (("num_lower", num_lower, -2), ("num_upper", num_upper, -1)):
        if dims[side] is not None and number > dims[side]:
            raise InvalidArgumentError(
                f"{name} is {number}, but the matrix has the shape {Shape(dims)}",
                hint="a negative number keeps all",
            )


def _band_part(xp: Any, input: Any, num_lower: int, num_upper: int) -> Any:
    check_matrix(input.shape)
    _check_band(input.shape, num_lower, num_upper)
    rows, columns = input.shape[-2:]
    above = xp.arange(columns) - xp.arange(rows)[:, None]
    kept = xp.ones((rows, columns), dtype="bool")
    if num_lower >= 0:
        kept &= above >= -num_lower
    if num_upper >= 0:
        kept &= above <= num_upper
    return xp.where(kept, input, xp.zeros((), dtype=input.dtype))


band_part_op: OpDef = OpDef(
    "MatrixBandPart",
    "input: T -> band: T",
    T=ZEROED,
    attributes={"num_lower": REQUIRED, "num_upper": REQUIRED},
    infer=_band_shape,
    kernel=_band_part,
    grad=lambda op, dy: band_part_op(dy, **op.attributes),
    only_moves=True,
)


@band_part_op.front
def matrix_band_part(input: Any, num_lower: Any, num_upper: Any, name: str | None = None) -> Tensor:
    """Matrices with zeros outside a band about the main diagonal.

    Args:
        input: [..., n, m] of any dtype but strings.
        num_lower: how many diagonals below the main one to keep, an int; negative keeps all.
        num_upper: how many above it, likewise. So `(-1, 0)` is the lower triangle and `(0, -1)`
            the upper one.

    Raises:
        InvalidArgumentError: if there are not so many.
    """
    numbers = {"num_lower": as_axis(num_lower, "'num_lower'")}
    numbers["num_upper"] = as_axis(num_upper, "'num_upper'")
    return band_part_op(input, **numbers, name=name)


def trace(x: Any, name: str | None = None) -> Tensor:
    """The sums of the main diagonals of matrices [..., n, m] of a number dtype: [...]."""
    x = convert_to_tensor(x)
    return sum_op(diag_part_op(x), axis=(-1,), name=name)


# Diagonals of tensors, whose dimensions all appear twice.


def _tensor_diag_shape(diagonal: Tensor) -> Shape:
    if diagonal.shape.rank == 0:
        raise InvalidArgumentError("a diagonal has at least one dimension, but a scalar is given")
    return diagonal.shape.concatenate(diagonal.shape)


def _tensor_diag(xp: Any, diagonal: Any) -> Any:
    if not diagonal.ndim:
        raise InvalidArgumentError("a diagonal has at least one dimension, but a scalar is given")
    flat = xp.zeros(diagonal.size * diagonal.size, dtype=diagonal.dtype)
    flat[:: diagonal.size + 1] = xp.reshape(diagonal, -1)
    return xp.reshape(flat, diagonal.shape * 2)


diag: OpDef = OpDef(
    "Diag",
    "diagonal: T -> output: T",
    T=ZEROED,
    infer=_tensor_diag_shape,
    kernel=_tensor_diag,
    grad=lambda op, dy: diag_part(dy),
    only_moves=True,
    doc="""A tensor [*s, *s] with a tensor [*s] on its diagonal and zeros elsewhere.

    Of a vector it is the diagonal matrix. For a batch of them there is `matrix_diag`.
    """,
)


def _check_doubled(dims: Any) -> int:
    """How many dimensions the diagonal of a tensor has."""
    half = len(dims) // 2
    pairs = zip(dims[:half], dims[half:], strict=False)
    if not half or len(dims) % 2 or any(None not in p and p[0] != p[1] for p in pairs):
        raise InvalidArgumentError(
            f"the second half of the dimensions repeats the first, but not in {Shape(dims)}"
        )
    return half


def _tensor_diag_part_shape(input: Tensor) -> Shape:
    dims = input.shape.dims
    if dims is None:
        return UNKNOWN
    half = _check_doubled(dims)
    return Shape.of(dims[:half]).merge(Shape.of(dims[half:]))


def _tensor_diag_part(xp: Any, input: Any) -> Any:
    dims = input.shape[: _check_doubled(input.shape)]
    size = 1
    for d in dims:
        size *= d
    return xp.reshape(xp.reshape(input, size * size)[:: size + 1], dims)


diag_part: OpDef = OpDef(
    "DiagPart",
    "input: T -> diagonal: T",
    T=ZEROED,
    infer=_tensor_diag_part_shape,
    kernel=_tensor_diag_part,
    grad=lambda op, dy: diag(dy),
    aliases={0: 0},
    only_moves=True,
    doc="""The diagonal [*s] of a tensor [*s, *s].

    For a batch of matrices there is `matrix_diag_part`.
    """,
)
