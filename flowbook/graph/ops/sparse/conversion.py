"""Between sparse and dense: `from_dense`, `to_dense`, and single elements of dense tensors.

These are operations on the three tensors of a sparse one. What only arranges elements anew computes
indices and the places of the values; `sparse_take` moves the values, and has their gradient.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.inference import shape_from
from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.dtypes import MOVABLE, NUMBERS, as_dtype, int64, string
from flowbook.graph.model.dtypes import bool as bool_
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import UNKNOWN, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.numerics.row_writes import write_rows
from flowbook.graph.ops.basis import constants
from flowbook.graph.ops.basis.broadcasting import sum_op
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.constants import constant, convert_to_tensor
from flowbook.graph.ops.basis.filling import fill, ones, zeros_like
from flowbook.graph.ops.basis.filling import range as range_
from flowbook.graph.ops.basis.indexing import strided_slice
from flowbook.graph.ops.basis.joining import concat_op, stack
from flowbook.graph.ops.basis.shaping import integers, reshape_op, shape_op
from flowbook.graph.ops.basis.sparse_tensor import SparseTensor
from flowbook.graph.ops.math.comparison import where
from flowbook.graph.ops.reduction.segments import combined, unsorted_segment_sum
from flowbook.graph.ops.sparse.indices import (
    check_shapes,
    check_sparse,
    checked_dims,
    count_of,
    keys,
    positions,
)

__all__ = ["eye", "from_dense", "placeholder", "to_dense", "to_indicator"]

# Values by their places


def _taken_shape(values: Tensor, places: Tensor) -> Shape:
    if places.shape.rank not in (None, 1):
        raise InvalidArgumentError(f"'places' is a vector, not of shape {places.shape}")
    if values.shape.rank == 0:
        raise InvalidArgumentError("a scalar has no elements to take")
    return places.shape.with_rank(1).concatenate(values.shape[1:] if values.shape else UNKNOWN)


def _take(xp: Any, values: Any, places: Any) -> Any:
    taken = xp.take(values, places, axis=0)
    return taken if values.dtype.kind != "O" else np.asarray(taken, dtype=object)


sparse_take = OpDef(
    "SparseTake",
    "values: T, places: int64 -> output: T",
    T=MOVABLE,
    infer=_taken_shape,
    kernel=_take,
    grad=lambda op, dy: (
        unsorted_segment_sum(dy, op.inputs[1], strided_slice(shape_op(op.inputs[0]), 0)),
        None,
    ),
    only_moves=True,
    doc="Elements by their places, which an operation found; unlike `gather`'s gradient, dense.",
)


# Single elements of a dense tensor


def _check_broadcasts(shape: tuple[int | None, ...], dims: tuple[int | None, ...]) -> None:
    """A dense tensor broadcasts to a sparse one's dense shape, and never the other way."""
    fits = len(shape) <= len(dims) and all(
        d == 1 or d == wanted or d is None or wanted is None
        for d, wanted in zip(reversed(shape), reversed(dims), strict=False)
    )
    if not fits:
        raise InvalidArgumentError(
            f"the dense shape {Shape.of(shape)} does not broadcast to that of the sparse tensor, "
            f"{Shape.of(dims)}"
        )


def broadcast_positions(
    xp: Any, indices: Any, dims: tuple[int, ...], shape: tuple[int, ...]
) -> Any:
    """Where a sparse tensor's indices point in a dense tensor that broadcasts to it."""
    check_sparse(indices, dims)
    _check_broadcasts(shape, dims)
    # A dimension of one has only the index zero, which `positions` leaves out.
    return positions(xp, indices[:, len(dims) - len(shape) :], shape)


def _picked_shape(indices: Tensor, dense_shape: Tensor, dense: Tensor) -> Shape:
    known = check_shapes(indices, dense_shape)
    if known.dims is not None and dense.shape.dims is not None:
        _check_broadcasts(dense.shape.dims, known.dims)
    return Shape.of((count_of(indices),))


def _pick(xp: Any, indices: Any, dense_shape: Any, dense: Any) -> Any:
    found = broadcast_positions(xp, indices, checked_dims(dense_shape), dense.shape)
    return xp.take(xp.reshape(dense, (-1,)), found)


def _pick_gradient(op: Operation, dy: Tensor) -> Any:
    indices, dense_shape, dense = op.inputs
    shape = shape_op(dense, out_type=int64)
    return None, None, sparse_sum_into(indices, dense_shape, dy, shape)


sparse_pick = OpDef(
    "SparsePick",
    "indices: int64, dense_shape: int64, dense: T -> values: T",
    T=MOVABLE,
    infer=_picked_shape,
    kernel=_pick,
    host_args=("dense_shape",),
    grad=_pick_gradient,
    only_moves=True,
    doc="The elements of a dense tensor, broadcast to the dense shape, at a sparse one's indices.",
)


def summed_shape(indices: Tensor, dense_shape: Tensor, values: Tensor, shape: Tensor) -> Shape:
    """The shape that an input holds, which broadcasts to a sparse tensor's."""
    known = check_shapes(indices, dense_shape, values)
    if shape.shape.rank not in (None, 1):
        raise InvalidArgumentError(f"a shape is a vector of ints, not of shape {shape.shape}")
    result = shape_from(shape)
    if known.dims is not None and result.dims is not None:
        _check_broadcasts(result.dims, known.dims)
    return result


def _sum_into(xp: Any, indices: Any, dense_shape: Any, values: Any, shape: Any) -> Any:
    dims, wanted = checked_dims(dense_shape), checked_dims(shape, "shape")
    found = broadcast_positions(xp, indices, dims, wanted)
    check_sparse(indices, dims, len(values))
    half = values.dtype.name in ("float16", "bfloat16")
    addends = values.astype(np.float32) if half else values
    sums = combined(xp, "add", addends, found, math.prod(wanted), 0)
    return sums.reshape(wanted).astype(values.dtype, copy=False)


sparse_sum_into = OpDef(
    "SparseSumInto",
    "indices: int64, dense_shape: int64, values: T, shape: int64 -> dense: T",
    T=NUMBERS,
    infer=summed_shape,
    kernel=_sum_into,
    host_args=("dense_shape", "shape"),
    grad=lambda op, dy: (None, None, sparse_pick(op.inputs[0], op.inputs[1], dy), None),
    cost=lambda op: op.inputs[2].shape.size or 0,
    doc="""A dense tensor of a shape that broadcasts to the sparse one's, with its elements' sums.

    The gradient of `SparsePick`; where a dimension of the shape is one, it sums along it.
    """,
)


# Dense tensors


def _dense_shape_of_output(
    indices: Tensor,
    dense_shape: Tensor,
    values: Tensor,
    default_value: Tensor,
    validate_indices: bool,
) -> Shape:
    if default_value.shape.rank not in (None, 0):
        raise InvalidArgumentError(f"'default_value' is a scalar, not of {default_value.shape}")
    return check_shapes(indices, dense_shape, values)


def _to_dense(
    xp: Any,
    indices: Any,
    dense_shape: Any,
    values: Any,
    default_value: Any,
    validate_indices: bool,
) -> Any:
    dims = checked_dims(dense_shape)
    check_sparse(indices, dims, len(values))
    if validate_indices:
        _check_order(xp, indices, keys(xp, indices, dims))
    result = xp.empty(dims, dtype=values.dtype)
    result[...] = default_value
    write_rows(result.reshape(-1), xp, None, positions(xp, indices, dims), values)
    return result


def _check_order(xp: Any, indices: Any, found: Any) -> None:
    wrong = xp.flatnonzero(found[1:] <= found[:-1])
    if not wrong.size:
        return
    at = int(wrong[0]) + 1
    repeats = found[at] == found[at - 1]
    raise InvalidArgumentError(
        f"indices[{at}] is {indices[at].tolist()}, which "
        + ("comes twice" if repeats else f"comes after {indices[at - 1].tolist()}"),
        hint="indices are wanted without repetition"
        if repeats
        else "fb.sparse.reorder brings indices into row-major order",
    )


def _to_dense_gradient(op: Operation, dy: Tensor) -> Any:
    indices, dense_shape, values, _ = op.inputs
    absent = sparse_to_dense(
        indices,
        dense_shape,
        cast(zeros_like(values), bool_),
        constant(True),
        validate_indices=op.attributes["validate_indices"],
    )
    default_gradient = sum_op(where(absent, dy, zeros_like(dy)))
    return None, None, sparse_pick(indices, dense_shape, dy), default_gradient


sparse_to_dense: OpDef = OpDef(
    "SparseToDense",
    "indices: int64, dense_shape: int64, values: T, default_value: T -> dense: T",
    T=MOVABLE,
    attributes={"validate_indices": True},
    infer=_dense_shape_of_output,
    kernel=_to_dense,
    host_args=("dense_shape",),
    grad=_to_dense_gradient,
    only_moves=True,
)


def to_dense(
    sp_input: Any,
    default_value: Any = None,
    validate_indices: bool = True,
    name: str | None = None,
) -> Tensor:
    """The whole of a sparse tensor, as a dense one.

    Args:
        sp_input: a SparseTensor of any dtype.
        default_value: what stands where there is no element; by default 0, False or "".
        validate_indices: whether indices out of order or repeated are an error. If not, the last
            of repeated ones counts.
        name: the operation's name.

    Returns:
        A tensor of the sparse one's dtype and dense shape.

    Raises:
        InvalidArgumentError: in the run, if indices are repeated or not in row-major order.
        InvalidIndexError: in the run, if an index lies outside.

    >>> import flowbook as fb
    >>> x = fb.SparseTensor([[0, 1], [1, 0]], [5, 7], [2, 2])
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.sparse.to_dense(x, default_value=-1)).tolist())
    [[-1, 5], [7, -1]]
    """
    x = SparseTensor.from_value(sp_input)
    if default_value is None:
        default_value = b"" if x.dtype is string else np.zeros((), x.dtype.numpy)
    return sparse_to_dense(
        x.indices,
        x.dense_shape,
        x.values,
        default_value,
        validate_indices=bool(validate_indices),
        name=name,
    )


def _nonzero_shapes(dense: Tensor) -> list[Shape]:
    count = 0 if dense.shape.size == 0 else None
    return [Shape.of((count, dense.shape.rank)), Shape.of((count,))]


def _nonzero(xp: Any, dense: Any) -> Any:
    kept = dense != (b"" if dense.dtype.kind == "O" else 0)
    indices = xp.ascontiguousarray(xp.argwhere(kept).astype(np.int64))
    return indices, dense[kept]


def _nonzero_gradient(op: Operation, dindices: Any, dvalues: Tensor) -> Tensor:
    shape = shape_op(op.inputs[0], out_type=int64)
    return sparse_sum_into(op.outputs[0], shape, dvalues, shape)


dense_to_sparse: OpDef[tuple[Tensor, Tensor]] = OpDef(
    "DenseToSparse",
    "dense: T -> indices: int64, values: T",
    T=MOVABLE,
    infer=_nonzero_shapes,
    kernel=_nonzero,
    grad=_nonzero_gradient,
    only_moves=True,
)


def from_dense(tensor: Any, name: str | None = None) -> SparseTensor:
    """The elements of a dense tensor that are not zero, as a sparse one.

    Args:
        tensor: of any dtype and shape. NaN is not zero; an empty string and False are.
        name: the operation's name.

    >>> import flowbook as fb
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.sparse.from_dense([[0, 3], [4, 0]])).indices.tolist())
    [[0, 1], [1, 0]]
    """
    dense = convert_to_tensor(tensor)
    with dense.graph.as_default():
        if dense.shape.is_fully_defined:
            shape = constant(np.array(dense.shape.dims, np.int64))
        else:
            shape = shape_op(dense, out_type=int64)
    indices, values = dense_to_sparse(dense, name=name)
    return SparseTensor(indices, values, shape)


@composed("SparseToIndicator")
def to_indicator(sp_input: Any, vocab_size: Any, name: str | None = None) -> Tensor:
    """Sets of numbers as vectors that say of each number whether it is in the set.

    Args:
        sp_input: a SparseTensor of int32 or int64, each in [0, vocab_size): the last dimension
            lists a set's members.
        vocab_size: an int, how many numbers there are.

    Returns:
        A bool tensor of shape `sp_input.shape[:-1] + [vocab_size]`.

    Raises:
        InvalidIndexError: in the run, if a number lies outside [0, vocab_size).
    """
    x = SparseTensor.from_value(sp_input)
    if not x.dtype.is_integer:
        raise InvalidTypeError(f"sets of integers are wanted, not of {x.dtype.name}")
    before = strided_slice(x.indices, np.s_[:, :-1])
    members = reshape_op(cast(x.values, int64), [-1, 1])
    indices = concat_op([before, members], axis=1)
    size = reshape_op(convert_to_tensor(vocab_size, int64), [1])
    shape = concat_op([strided_slice(x.dense_shape, np.s_[:-1]), size], axis=0)
    present = fill(shape_op(x.values), True)
    return sparse_to_dense(indices, shape, present, False, validate_indices=False)


# Made from nothing


@composed("SparseEye")
def eye(
    num_rows: Any, num_columns: Any = None, dtype: Any = "float32", name: str | None = None
) -> SparseTensor:
    """A sparse matrix with ones on its diagonal.

    Args:
        num_rows: how many rows, an int.
        num_columns: how many columns; by default as many.
        dtype: the dtype of the ones.
    """
    dims = [num_rows, num_rows if num_columns is None else num_columns]
    rows, columns = integers(dims).tolist()
    if rows < 0 or columns < 0:
        raise InvalidArgumentError(f"a dimension is not negative: [{rows}, {columns}]")
    diagonal = range_(np.int64(min(rows, columns)))
    indices = stack([diagonal, diagonal], axis=1)
    values = ones([min(rows, columns)], as_dtype(dtype))
    return SparseTensor(indices, values, np.array([rows, columns], np.int64))


@composed("SparsePlaceholder")
def placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> SparseTensor:
    """A sparse tensor whose value every run that needs it must feed.

    Args:
        dtype: the dtype of the elements.
        shape: the dense shape, as far as feeds must agree with it; None where a dimension, or
            all, may vary.
        name: the name scope of its three tensors.

    Raises:
        InvalidTypeError: if `dtype` is not a dtype.

    >>> import flowbook as fb
    >>> x = fb.sparse.placeholder(fb.float32, [None, 3])
    >>> total = fb.sparse.reduce_sum(x, axis=1)
    >>> with fb.Session() as sess:
    ...     print(sess.run(total, {x: ([[0, 2], [1, 1]], [5.0, 7.0], [2, 3])}))
    [5. 7.]
    """
    wanted = Shape(shape)
    indices = constants.placeholder(int64, [None, wanted.rank], name="indices")
    values = constants.placeholder(dtype, [None], name="values")
    return SparseTensor(indices, values, _shape_placeholder(wanted))


def _shape_placeholder(shape: Shape) -> Tensor:
    """The dense shape as a tensor of which inference sees what is known of it."""
    if shape.dims is None:
        return constants.placeholder(int64, [None], name="dense_shape")
    if shape.is_fully_defined:
        return constant(np.array(shape.dims, np.int64), name="dense_shape")
    if set(shape.dims) == {None}:
        return constants.placeholder(int64, [shape.rank], name="dense_shape")
    dims = [
        constants.placeholder(int64, [], name=f"dimension_{i}") if d is None else np.int64(d)
        for i, d in enumerate(shape.dims)
    ]
    return stack(dims, name="dense_shape")
