"""Tensors made from a shape and a rule: filled with one value, or with a sequence of them."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from flowbook.graph.building.scopes import name_scope
from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.inference import (
    constant_value,
    elementwise,
    shape_from,
)
from flowbook.graph.definition.op_def import NO_GRADIENT, REQUIRED, OpDef
from flowbook.graph.model.attributes import check_choice
from flowbook.graph.model.dtypes import (
    FLOATS,
    INDICES,
    MOVABLE,
    REALS,
    DType,
    as_dtype,
    float32,
    string,
)
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Arithmetic, Tensor
from flowbook.graph.ops.basis.broadcasting import broadcast_to_op, sum_op
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.constants import (
    convert_to_tensor,
    ones_like_op,
    told_by_shape,
    zeros_like_op,
)
from flowbook.graph.ops.basis.joining import concat
from flowbook.graph.ops.basis.shaping import (
    check_scalar_values,
    check_vector,
    dims_of,
    reshape,
    shape_argument,
    shape_of,
    shape_op,
    size,
)
from flowbook.graph.ops.basis.shaping import shape as shape_as_tensor

__all__ = [
    "eye",
    "fill",
    "linspace",
    "meshgrid",
    "ones",
    "ones_like",
    "range",
    "zeros",
    "zeros_like",
]


def _filled_shape(dims: Tensor, value: Tensor) -> Shape:
    check_vector("dims", dims)
    _check_scalars(value=value)
    known = constant_value(dims)
    if known is not None:
        _check_dims(tuple(known.tolist()))
    return shape_from(dims)


def _check_dims(dims: tuple[int, ...]) -> tuple[int, ...]:
    if any(d < 0 for d in dims):
        raise InvalidArgumentError(f"a dimension is not negative: {list(dims)}")
    return dims


def _check_scalars(**tensors: Tensor) -> None:
    for name, tensor in tensors.items():
        if tensor.shape.rank not in (None, 0):
            raise InvalidArgumentError(f"{name!r} is a scalar, not of shape {tensor.shape}")


def _fill(xp: Any, dims: Any, value: Any) -> Any:
    check_scalar_values(value=value)
    return xp.full(_check_dims(dims_of(dims)), value, dtype=value.dtype)


fill_op = OpDef(
    "Fill",
    "dims: I, value: T -> output: T",
    I=INDICES,
    T=MOVABLE,
    infer=_filled_shape,
    kernel=_fill,
    host_args=("dims",),
    computes_shapes=True,
    grad=lambda op, dy: (None, sum_op(dy)),
    only_moves=True,
)


@fill_op.front
def fill(dims: Any, value: Any, name: str | None = None) -> Tensor:
    """A tensor of one value throughout.

    Args:
        dims: its shape, an int vector tensor or a sequence of ints and int scalar tensors.
        value: a scalar of any dtype, which the result has too.
    """
    dims = shape_argument(dims)
    return fill_op(dims, value, name=name)


# A constant of more elements is filled in the run, so that a graph stays small.
_MOST_KEPT = 1024


def _scalar(number: int, dtype: DType) -> np.ndarray[Any, Any]:
    blank = dtype is string and number == 0
    return np.full((), b"" if blank else number, dtype=dtype.numpy)


def _fill_with(number: int, shape: Any, dtype: Any, name: str | None) -> Tensor:
    shape = shape_argument(shape)
    return fill_op(shape, _scalar(number, as_dtype(dtype)), name=name)


def zeros(shape: Any, dtype: Any = float32, name: str | None = None) -> Tensor:
    """A tensor of zeros.

    Args:
        shape: an int vector tensor, or a sequence of ints and int scalar tensors.
        dtype: a number dtype or bool; of strings the empty one is zero.
        name: the operation's name.

    >>> import flowbook as fb
    >>> fb.zeros([2, 3])
    <Tensor 'zeros:0' shape=[2, 3] dtype=float32>
    """
    return _fill_with(0, shape, dtype, name or "zeros")


def ones(shape: Any, dtype: Any = float32, name: str | None = None) -> Tensor:
    """A tensor of ones. Arguments as for `zeros`."""
    return _fill_with(1, shape, dtype, name or "ones")


@zeros_like_op.front
def zeros_like(tensor: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """Zeros of a tensor's shape; where that is known before the run, the tensor is not needed.

    Args:
        tensor: of a number dtype, bool or string; of strings the empty one is zero.
        dtype: the result's dtype; by default the tensor's. It may be any that `zeros` takes.
    """
    return _like(zeros_like_op, 0, tensor, dtype, name)


@ones_like_op.front
def ones_like(tensor: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """Ones of a tensor's shape. Arguments as for `zeros_like`."""
    return _like(ones_like_op, 1, tensor, dtype, name)


def _like(op_def: OpDef, number: int, input: Any, dtype: Any, name: str | None) -> Tensor:
    tensor = convert_to_tensor(input)
    wanted = tensor.dtype if dtype is None else as_dtype(dtype)
    count = tensor.shape.size if wanted in op_def.type_variables["T"] else None
    if count is not None and count <= _MOST_KEPT:
        alike = np.full(shape_of(tensor), _scalar(number, wanted))
        return told_by_shape(alike, wanted, tensor, name or op_def.type)
    if wanted is not tensor.dtype or count is not None:
        with name_scope(name or op_def.type) as scope:
            return fill_op(shape_as_tensor(tensor), _scalar(number, wanted), name=scope)
    return op_def(tensor, name=name)


def _length(start: Any, limit: Any, delta: Any) -> int:
    """How many elements a range has."""
    if not delta:
        raise InvalidArgumentError("a range needs a step other than 0")
    if start.dtype.kind in "iu":
        return len(builtins.range(start.item(), limit.item(), delta.item()))
    # In their own dtype, where 0.3 / 0.1 is 3: the limit is not one of the numbers.
    with np.errstate(all="ignore"):
        count = float((limit - start) / delta)
    if not math.isfinite(count):
        raise InvalidArgumentError(f"a range from {start} to {limit} by {delta} has no end")
    return max(math.ceil(count), 0)


def _range_shape(start: Tensor, limit: Tensor, delta: Tensor) -> Shape:
    _check_scalars(start=start, limit=limit, delta=delta)
    known = [constant_value(t) for t in (start, limit, delta)]
    if any(value is None for value in known):
        return Shape.of((None,))
    return Shape.of((_length(*known),))


def _range(xp: Any, start: Any, limit: Any, delta: Any) -> Any:
    check_scalar_values(start=start, limit=limit, delta=delta)
    n = _length(start, limit, delta)
    dtype = start.dtype
    # Counted in the wide dtype: half precision has no whole numbers beyond 2048.
    wide = np.float64 if dtype.kind == "f" else dtype.type
    steps = xp.arange(n, dtype=np.int64).astype(wide)
    return (steps * wide(delta) + wide(start)).astype(dtype, copy=False)


range_op = OpDef(
    "Range",
    "start: T, limit: T, delta: T -> output: T",
    T=REALS,
    infer=_range_shape,
    kernel=_range,
    host_args=("start", "limit", "delta"),
    grad=NO_GRADIENT,
    computes_shapes=True,
    cost=elementwise(),
)


@range_op.front
def range(
    start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str | None = None
) -> Tensor:
    """The numbers from `start` up to but not including `limit`, in steps of `delta`.

    Args:
        start: a real scalar; with no `limit` given, the limit, and the range starts at 0.
        limit: a real scalar of the same dtype.
        delta: a real scalar of the same dtype, not 0.
        dtype: the dtype, which tensors among them are cast to; by default theirs, or what Python's
            numbers together need: int32 or float32.

    Raises:
        InvalidArgumentError: if `delta` is 0; in the run, where it is known only then.

    >>> import flowbook as fb
    >>> fb.range(10, 0, -3).shape
    Shape([4])
    """
    if limit is None:
        start, limit = 0, start
    values = [start, limit, delta]
    wanted = _common_dtype(values) if dtype is None else as_dtype(dtype)
    values = [convert_to_tensor(v, wanted) if _is_value(v) else v for v in values]
    if dtype is not None:
        values = [cast(v, wanted) for v in values]
    return range_op(*values, name=name)


def _is_value(value: Any) -> bool:
    return not isinstance(value, Arithmetic)


def _common_dtype(values: list[Any]) -> DType:
    for value in values:
        if isinstance(value, Arithmetic):
            return value.dtype  # type: ignore[attr-defined, no-any-return]
    if any(isinstance(value, np.generic | np.ndarray) for value in values):
        return as_dtype(np.result_type(*values))
    return as_dtype(float if any(isinstance(value, float) for value in values) else int)


def _linspace_shape(start: Tensor, stop: Tensor, num: Tensor) -> Shape:
    _check_scalars(start=start, stop=stop, num=num)
    known = constant_value(num)
    if known is None:
        return Shape.of((None,))
    return Shape.of((_check_count(known),))


def _check_count(num: Any) -> int:
    if num < 1:
        raise InvalidArgumentError(f"linspace needs at least one point, not {num}")
    return int(num)


def _linspace(xp: Any, start: Any, stop: Any, num: Any) -> Any:
    check_scalar_values(start=start, stop=stop, num=num)
    return xp.linspace(start, stop, _check_count(num), dtype=start.dtype)


def _linspace_gradient(op: Operation, dy: Tensor) -> Any:
    _, _, num = op.inputs
    zero, one = (np.zeros((), dy.dtype.numpy), np.ones((), dy.dtype.numpy))
    weights = linspace(zero, one, num)
    return sum_op(dy * (1 - weights)), sum_op(dy * weights), None


linspace = OpDef(
    "LinSpace",
    "start: T, stop: T, num: I -> output: T",
    T=FLOATS,
    I=INDICES,
    infer=_linspace_shape,
    kernel=_linspace,
    host_args=("num",),
    grad=_linspace_gradient,
    cost=elementwise(),
    doc="""Evenly spaced numbers, both ends included.

    Args:
        start: a floating-point scalar, the first.
        stop: a scalar of the same dtype, the last.
        num: how many, an int scalar of at least 1.
    """,
    function="linspace",
)


def _eye_shape(num_rows: Tensor, num_columns: Tensor, dtype: DType) -> Shape:
    _check_scalars(num_rows=num_rows, num_columns=num_columns)
    known = [constant_value(num_rows), constant_value(num_columns)]
    dims = tuple(None if value is None else int(value) for value in known)
    _check_dims(tuple(d for d in dims if d is not None))
    return Shape.of(dims)


def _eye(xp: Any, num_rows: Any, num_columns: Any, dtype: DType) -> Any:
    check_scalar_values(num_rows=num_rows, num_columns=num_columns)
    rows, columns = _check_dims((int(num_rows), int(num_columns)))
    return xp.eye(rows, columns, dtype=dtype.numpy)


eye_op = OpDef(
    "Eye",
    "num_rows: I, num_columns: I -> output: dtype",
    I=INDICES,
    attributes={"dtype": REQUIRED},
    infer=_eye_shape,
    kernel=_eye,
    host_args=("num_rows", "num_columns"),
    grad=NO_GRADIENT,
    only_moves=True,
)


@eye_op.front
def eye(
    num_rows: Any,
    num_columns: Any = None,
    batch_shape: Any = None,
    dtype: Any = float32,
    name: str | None = None,
) -> Tensor:
    """A matrix with ones on its diagonal and zeros elsewhere, or a batch of them.

    Args:
        num_rows: an int scalar.
        num_columns: an int scalar; by default as many as rows.
        batch_shape: the shape of a batch of equal matrices, an int vector tensor or a sequence.
        dtype: a number dtype or bool.

    >>> import flowbook as fb
    >>> fb.eye(2, batch_shape=[5]).shape
    Shape([5, 2, 2])
    """
    wanted = as_dtype(dtype)
    batch = None if batch_shape is None else shape_argument(batch_shape)
    columns = num_rows if num_columns is None else num_columns
    result: Tensor
    if batch is None:
        result = eye_op(num_rows, columns, dtype=wanted, name=name)
        return result
    one = eye_op(num_rows, columns, dtype=wanted)
    batch = convert_to_tensor(batch)
    matrix = shape_op(one, out_type=batch.dtype)
    result = broadcast_to_op(one, concat([batch, matrix], 0), name=name)
    return result


@composed
def meshgrid(*args: Any, indexing: str = "xy", name: str | None = None) -> list[Tensor]:
    """The coordinates of a grid's points, from those along each axis.

    Args:
        args: for each axis a vector; others count as vectors of their elements.
        indexing: "xy" for a grid whose first two axes are swapped, as in pictures; "ij" for one
            whose axes are in the order of the arguments.

    Returns:
        For each argument a tensor of the grid's shape.

    Raises:
        InvalidArgumentError: if `indexing` is neither.

    >>> import flowbook as fb
    >>> x, y = fb.meshgrid([1, 2, 3], [10, 20])
    >>> with fb.Session() as sess:
    ...     print(sess.run(x + y))
    [[11 12 13]
     [21 22 23]]
    """
    check_choice("indexing", indexing, ("xy", "ij"))
    order = list(builtins.range(len(args)))
    if indexing == "xy" and len(args) > 1:
        order[:2] = 1, 0
    vectors = [reshape(arg, [-1]) for arg in args]
    shape = shape_argument([_count(vectors[i]) for i in order])
    along = [[-1 if j == i else 1 for j in order] for i in builtins.range(len(args))]
    return [
        broadcast_to_op(reshape(vector, dims), shape)
        for vector, dims in zip(vectors, along, strict=True)
    ]


def _count(vector: Tensor) -> Any:
    """The number of a vector's elements, as an int where it is known."""
    return size(vector) if vector.shape.size is None else vector.shape.size
