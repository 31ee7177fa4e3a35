"""Rows by their indices: gather, from tensors and straight from variables, and one-hot vectors.

An index is never wrapped or clipped: one that lies outside is an InvalidIndexError that names it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from flowbook.graph.definition.axes import as_axis, axis_or_tensor, in_range
from flowbook.graph.definition.batching import Batch, Batched, Batching, of_any
from flowbook.graph.definition.inference import constant_value, shape_from
from flowbook.graph.definition.op_def import NO_GRADIENT, REQUIRED, OpDef
from flowbook.graph.model.dtypes import INDICES, MOVABLE, NUMBERS, DType, as_dtype, float32, uint8
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import UNKNOWN, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import READS
from flowbook.graph.numerics.bounds import are_within, check_indices
from flowbook.graph.ops.arrays.indexed_slices import IndexedSlices
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.indexing import strided_slice
from flowbook.graph.ops.basis.joining import concat_op
from flowbook.graph.ops.basis.shaping import (
    check_scalar_values,
    dims_of,
    reshape_op,
    shape_of,
    shape_op,
    size_op,
)
from flowbook.graph.ops.reduction.segments import combined
from flowbook.graph.ops.state.variables import Variable, read_variable

__all__ = ["gather", "one_hot"]


def _gathered_shape(params: Tensor, indices: Tensor, axis: int, batch_dims: int) -> Shape:
    dims = params.shape.dims
    if dims is None:
        return UNKNOWN
    if not dims:
        raise InvalidArgumentError("a scalar has no rows to gather")
    i = in_range(axis, len(dims))
    known = constant_value(indices)
    count = dims[i]
    if known is not None and count is not None:
        check_indices(known, count)
    if not batch_dims:
        return Shape.of(dims[:i]).concatenate(indices.shape).concatenate(dims[i + 1 :])
    if i < batch_dims:
        raise InvalidArgumentError(f"axis {axis} is one of the {batch_dims} batch dimensions")
    if indices.shape.dims is None:
        return UNKNOWN
    batch = common_batch(dims, indices.shape.dims, batch_dims)
    return Shape.of((*batch, *dims[batch_dims:i], *indices.shape.dims[batch_dims:], *dims[i + 1 :]))


def common_batch(dims: Any, index_dims: Any, batch_dims: int) -> Any:
    """The batch dimensions that parameters and indices share.

    Raises:
        InvalidArgumentError: if they have not so many, or differ in them.
    """
    if min(len(dims), len(index_dims)) < batch_dims:
        raise InvalidArgumentError(
            f"{batch_dims} batch dimensions are more than the shapes {Shape(dims)} and "
            f"{Shape(index_dims)} have"
        )
    first, second = Shape.of(tuple(dims[:batch_dims])), Shape.of(tuple(index_dims[:batch_dims]))
    if not first.is_compatible_with(second):
        raise InvalidArgumentError(
            f"the shapes {Shape(dims)} and {Shape(index_dims)} differ in their batch dimensions"
        )
    return first.merge(second).dims


def _gather(xp: Any, params: Any, indices: Any, axis: int = 0, batch_dims: int = 0) -> Any:
    i = in_range(axis, params.ndim)
    check_indices(indices, params.shape[i])
    if batch_dims:
        taken = _gather_batches(xp, params, indices, i, batch_dims)
    else:
        # They were checked: to check again takes NumPy a third of the time, and "wrap" none. Other
        # modules wrap by themselves.
        taken = xp.take(params, indices, axis=i, **({"mode": "wrap"} if xp is np else {}))
    return taken if params.dtype.kind != "O" else np.asarray(taken, dtype=object)


def _gather_batches(xp: Any, params: Any, indices: Any, axis: int, batch_dims: int) -> Any:
    shape = params.shape
    common_batch(shape, indices.shape, batch_dims)
    if axis < batch_dims:
        raise InvalidArgumentError(f"axis {axis} is one of the {batch_dims} batch dimensions")
    counts, ids = _batched(xp, shape, indices, axis, batch_dims)
    batches, before, count, after = counts
    # Rows of all batches one after another, whatever stands between batch and rows moved behind.
    rows = xp.reshape(params, counts)
    rows = xp.reshape(xp.swapaxes(rows, 1, 2), (batches * count, before, after))
    taken = xp.take(rows, ids, axis=0)
    chosen = math.prod(indices.shape[batch_dims:])
    taken = xp.swapaxes(xp.reshape(taken, (batches, chosen, before, after)), 1, 2)
    return xp.reshape(taken, (*shape[:axis], *indices.shape[batch_dims:], *shape[axis + 1 :]))


def _batched(
    xp: Any, shape: tuple[int, ...], indices: Any, axis: int, batch_dims: int
) -> tuple[tuple[int, int, int, int], Any]:
    """Sizes of batch, what comes before the axis, the axis, what comes after; and flat indices."""
    sizes = (
        math.prod(shape[:batch_dims]),
        math.prod(shape[batch_dims:axis]),
        shape[axis],
        math.prod(shape[axis + 1 :]),
    )
    starts = xp.arange(sizes[0], dtype=np.int64) * sizes[2]
    starts = xp.reshape(starts, (*shape[:batch_dims], *(1,) * (indices.ndim - batch_dims)))
    return sizes, xp.reshape(indices + starts, (-1,))


def _gather_gradient(op: Operation, dy: Tensor) -> Any:
    params, indices = op.inputs
    axis, batch_dims = op.attributes["axis"], op.attributes["batch_dims"]
    if not isinstance(axis, Tensor) and axis == 0:
        return _rows(dy, indices, params.shape, shape_of(params)), None
    shape = shape_of(params)
    return gather_gradient_op(dy, indices, shape, axis=axis, batch_dims=batch_dims), None


def _rows(dy: Tensor, indices: Tensor, known: Shape, shape: Any) -> IndexedSlices:
    """Gradients of gathered rows, as one list of rows."""
    shape = convert_to_tensor(shape)
    if indices.shape.rank != 1:
        row = None if known.dims is None or None in known.dims[1:] else known.dims[1:]
        count: Any = indices.shape.size
        if row is not None and 0 not in row:
            flat: Any = [-1 if count is None else count, *row]
        else:
            # Rows without elements do not tell how many there are.
            count = reshape_op(size_op(indices), [1]) if count is None else np.array([count])
            width = strided_slice(shape, np.s_[1:])
            flat = concat_op([cast(count, shape.dtype), width], axis=0)
        dy, indices = reshape_op(dy, flat), reshape_op(indices, [-1])
    return IndexedSlices(dy, indices, shape)


def _gathered_for_all(batch: Batch, op: Operation, inputs: list[Batched]) -> Sequence[Tensor]:
    params, indices = inputs
    axis, batch_dims = op.attributes["axis"], op.attributes["batch_dims"]
    for_all = batch.shifted(axis)
    if not batch_dims and not indices.is_each:
        return batch.again(op, [params.tensor, indices.tensor], axis=for_all)
    is_first = not isinstance(axis, Tensor) and axis % params.rank == 0
    if not batch_dims and not params.is_each and is_first:
        return batch.again(op, [params.tensor, indices.tensor])
    both = [batch.spread(params), batch.spread(indices)]
    return batch.again(op, both, axis=for_all, batch_dims=batch_dims + 1)


gather_op = OpDef(
    "Gather",
    "params: T, indices: I -> output: T",
    T=MOVABLE,
    I=INDICES,
    attributes={"axis": 0, "batch_dims": 0},
    infer=_gathered_shape,
    kernel=_gather,
    grad=_gather_gradient,
    keeps_finite=True,
    computes_shapes=True,
    axis="axis",
    batching=Batching(_gathered_for_all, of_any, takes_tensors=True),
    only_moves=True,
)


def _gather_gradient_shape(dy: Tensor, indices: Tensor, shape: Tensor, **_: Any) -> Shape:
    return shape_from(shape)


def _scatter(xp: Any, dy: Any, indices: Any, shape: Any, axis: int, batch_dims: int) -> Any:
    dims = dims_of(shape)
    i = in_range(axis, len(dims))
    check_indices(indices, dims[i])
    (batches, before, count, after), ids = _batched(xp, dims, indices, i, batch_dims)
    chosen = math.prod(indices.shape[batch_dims:])
    rows = xp.swapaxes(xp.reshape(dy, (batches, before, chosen, after)), 1, 2)
    rows = xp.reshape(rows, (batches * chosen, before * after))
    total = combined(xp, "add", rows, ids, batches * count, 0)
    total = xp.swapaxes(xp.reshape(total, (batches, count, before, after)), 1, 2)
    return xp.reshape(total, dims)


gather_gradient_op = OpDef(
    "GatherGrad",
    "dy: T, indices: I, shape: S -> output: T",
    T=NUMBERS,
    I=INDICES,
    S=INDICES,
    attributes={"axis": REQUIRED, "batch_dims": 0},
    infer=_gather_gradient_shape,
    kernel=_scatter,
    host_args=("shape",),
    grad=lambda op, dz: (
        gather_op(
            dz,
            op.inputs[1],
            axis=op.attributes["axis"],
            batch_dims=op.attributes["batch_dims"],
        ),
        None,
        None,
    ),
    axis="axis",
    cost=lambda op: op.inputs[0].shape.size or 0,
)


def _variable_rows_shape(
    variable: Tensor, indices: Tensor, dtype: DType, shape: Shape, **_: Any
) -> Shape:
    if shape.dims is None:
        return UNKNOWN
    if not shape.dims:
        raise InvalidArgumentError("a scalar has no rows to gather")
    known = constant_value(indices)
    if known is not None and shape.dims[0] is not None:
        check_indices(known, shape.dims[0])
    return indices.shape.concatenate(shape.dims[1:])


def _variable_gather_gradient(op: Operation, dy: Tensor) -> Any:
    handle, indices = op.inputs
    typed = {"dtype": op.attributes["dtype"], "shape": op.attributes["shape"]}
    known: Shape = typed["shape"]
    if known.is_fully_defined:
        whole = convert_to_tensor(np.array(known.dims, dtype=np.int32))
    else:
        whole = shape_op(read_variable(handle, **typed))
    return _rows(dy, indices, known, whole), None


# Reads rows under the variable's lock and copies no table, however large it is.
def _gathers_rows(op: Operation, each: list[bool]) -> bool:
    return not op.attributes["axis"] and not op.attributes["batch_dims"]


variable_gather_op = OpDef(
    "VariableGather",
    "variable: resource, indices: I -> output: dtype",
    I=INDICES,
    # The axis and batch are `reads_as`'s, for runs that feed the variable.
    attributes={"dtype": REQUIRED, "shape": UNKNOWN, "axis": 0, "batch_dims": 0},
    infer=_variable_rows_shape,
    kernel=lambda xp, variable, indices: variable.gather(indices),
    grad=_variable_gather_gradient,
    touches=READS,
    reads_as=gather_op,
    batching=Batching(Batching.LEADING.build, _gathers_rows),
    only_moves=True,
)


@gather_op.front
def gather(
    params: Any,
    indices: Any,
    axis: Any = None,
    batch_dims: int = 0,
    name: str | None = None,
) -> Tensor:
    """Rows of a tensor, by their indices.

    From a variable it reads only these rows, whatever the size of the whole, and the variable's
    gradient is IndexedSlices.

    Args:
        params: a tensor of any dtype and at least one dimension, or a variable.
        indices: int32 or int64 of any shape, each in [0, n) where the axis has n elements.
        axis: which axis of `params` they count along, negative ones from the last: an int, or a
            tensor of one; by default the first after the batch.
        batch_dims: how many first dimensions of both are a batch, each with its own indices.

    Returns:
        A tensor of shape
        `params.shape[:axis] + indices.shape[batch_dims:] + params.shape[axis + 1:]`.

    Raises:
        InvalidIndexError: if an index lies outside; in the run, where it is known only then.
        InvalidArgumentError: if the batch dimensions differ, or include the axis.

    >>> import flowbook as fb
    >>> fb.gather(fb.zeros([10, 3]), [[1, 2], [3, 1]]).shape
    Shape([2, 2, 3])
    >>> fb.gather(fb.zeros([2, 10]), [[1, 2, 5], [3, 1, 0]], batch_dims=1).shape
    Shape([2, 3])
    """
    batch = as_batch(batch_dims, indices)
    axis = batch if axis is None else axis_or_tensor(axis)
    rank = getattr(getattr(params, "shape", None), "rank", None)
    if isinstance(axis, int) and rank is not None and -rank <= axis < 0:
        axis += rank
    result: Tensor
    is_first = not isinstance(axis, Tensor) and axis == 0
    if isinstance(params, Variable) and is_first and not batch:
        with params.graph.as_default():
            result = variable_gather_op(
                params.handle, indices, dtype=params.dtype, shape=params.shape, name=name
            )
    else:
        result = gather_op(params, indices, axis=axis, batch_dims=batch, name=name)
    return result


def as_batch(batch_dims: Any, indices: Any) -> int:
    """A number of batch dimensions, none for None; those below 0 count from the indices' rank."""
    batch = 0 if batch_dims is None else as_axis(batch_dims)
    if batch >= 0:
        return batch
    rank = convert_to_tensor(indices).shape.rank
    if rank is None or batch + rank < 0:
        raise InvalidArgumentError(
            f"batch_dims {batch} counts from the rank of the indices, which is "
            + ("not known before the run" if rank is None else f"{rank}")
        )
    return batch + rank


def _one_hot_shape(
    indices: Tensor, depth: Tensor, on_value: Tensor, off_value: Tensor, axis: int
) -> Shape:
    for name, tensor in (("depth", depth), ("on_value", on_value), ("off_value", off_value)):
        if tensor.shape.rank not in (None, 0):
            raise InvalidArgumentError(f"{name!r} is a scalar, not of shape {tensor.shape}")
    known = constant_value(depth)
    if known is not None and known < 0:
        raise InvalidArgumentError(f"the depth is not negative: {known}")
    dims = indices.shape.dims
    if dims is None:
        return UNKNOWN
    i = in_range(axis, len(dims) + 1)
    return Shape.of((*dims[:i], None if known is None else int(known), *dims[i:]))


def _one_hot(xp: Any, indices: Any, depth: Any, on_value: Any, off_value: Any, axis: int) -> Any:
    check_scalar_values(depth=depth, on_value=on_value, off_value=off_value)
    if depth < 0:
        raise InvalidArgumentError(f"the depth is not negative: {depth}")
    i = in_range(axis, indices.ndim + 1)
    if i == indices.ndim and on_value.dtype.kind != "O":
        return _one_hot_rows(xp, indices, int(depth), on_value, off_value)
    classes = xp.arange(int(depth)).reshape((-1,) + (1,) * (indices.ndim - i))
    return xp.where(xp.expand_dims(indices, i) == classes, on_value, off_value)


def _one_hot_rows(xp: Any, indices: Any, depth: int, on_value: Any, off_value: Any) -> Any:
    """Along the last axis: all is "off" at first, and one element of each row set."""
    flat = xp.reshape(indices, (-1,))
    rows = xp.zeros((flat.size, depth), on_value.dtype)
    if off_value != 0:
        rows[...] = off_value
    if are_within(flat, depth):
        starts = xp.arange(0, rows.size, max(depth, 1))
        xp.reshape(rows, (-1,))[starts + flat] = on_value
    else:
        places = xp.flatnonzero((flat >= 0) & (flat < depth))
        rows[places, flat[places]] = on_value
    return xp.reshape(rows, (*indices.shape, depth))


one_hot_op = OpDef(
    "OneHot",
    "indices: I, depth: int32, on_value: T, off_value: T -> output: T",
    I=(uint8, *INDICES),
    T=MOVABLE,
    attributes={"axis": -1},
    infer=_one_hot_shape,
    kernel=_one_hot,
    host_args=("depth",),
    grad=NO_GRADIENT,
    batching=Batching.ALONG_AXIS,
    only_moves=True,
)


@one_hot_op.front
def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: int = -1,
    dtype: Any = None,
    name: str | None = None,
) -> Tensor:
    """Vectors that are "on" at one place each.

    Args:
        indices: uint8, int32 or int64 of any shape; one outside [0, depth) gives a vector all
            "off".
        depth: the length of the vectors, an int scalar.
        on_value: a scalar; by default 1.
        off_value: a scalar of the same dtype; by default 0.
        axis: where the vectors' axis stands in the result; by default last.
        dtype: the dtype of the result; by default that of the values, or float32.
    """
    axis = as_axis(axis)
    given = [v for v in (on_value, off_value) if v is not None]
    wanted = as_dtype(dtype) if dtype is not None else None
    if wanted is None:
        wanted = convert_to_tensor(given[0]).dtype if given else float32
    values = [
        convert_to_tensor(np.asarray(default, wanted.numpy) if v is None else v, wanted)
        for v, default in ((on_value, 1), (off_value, 0))
    ]
    return one_hot_op(indices, depth, *values, axis=axis, name=name)
