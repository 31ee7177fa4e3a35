"""Sparse tensors cut into parts and put together.

Dense shapes are computed by ordinary operations where they can be, so that inference follows them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flowbook.graph.definition.axes import as_axis, in_range
from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.inference import constant_value
from flowbook.graph.definition.op_def import REQUIRED, OpDef
from flowbook.graph.model.counted import counted
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.indexing import strided_slice
from flowbook.graph.ops.basis.joining import concat_op, stack_op
from flowbook.graph.ops.basis.sparse_tensor import SparseTensor
from flowbook.graph.ops.math.arithmetic import maximum, minimum
from flowbook.graph.ops.sparse.arranging import in_order, int64_vector, known_rank, known_shape
from flowbook.graph.ops.sparse.conversion import sparse_take
from flowbook.graph.ops.sparse.indices import (
    check_shapes,
    check_sparse,
    checked_dims,
    count_of,
    rank_of,
)

__all__ = ["concat", "slice", "split"]


def _sliced_shapes(
    indices: Tensor, dense_shape: Tensor, start: Tensor, size: Tensor
) -> list[Shape]:
    check_shapes(indices, dense_shape)
    for name, vector in (("start", start), ("size", size)):
        if vector.shape.rank not in (None, 1):
            raise InvalidArgumentError(f"{name!r} is a vector, not of shape {vector.shape}")
        if not vector.shape.is_compatible_with(dense_shape.shape):
            raise InvalidArgumentError(
                f"{name!r} has {counted(vector.shape[0], 'number')} for "
                f"{dense_shape.shape[0]} dimensions"
            )
        known = constant_value(vector)
        if known is not None and known.size and known.min() < 0:
            raise InvalidArgumentError(f"{name!r} is not negative: {known.tolist()}")
    return [Shape.of((None,)), Shape.of((None, rank_of(indices)))]


def _slice(xp: Any, indices: Any, dense_shape: Any, start: Any, size: Any) -> Any:
    dims = checked_dims(dense_shape)
    check_sparse(indices, dims)
    for name, vector in (("start", start), ("size", size)):
        if vector.shape != dense_shape.shape:
            raise InvalidArgumentError(
                f"{name!r} has the shape {list(vector.shape)} for {counted(len(dims), 'dimension')}"
            )
        checked_dims(vector, name)
    kept = xp.ones(len(indices), dtype=bool)
    for axis in range(len(dims)):
        # The difference cannot overflow, as both are within [0, 2**63).
        offset = indices[:, axis] - start[axis]
        kept &= (offset >= 0) & (offset < size[axis])
    places = xp.flatnonzero(kept).astype(np.int64)
    return places, indices[places] - xp.asarray(start)


sparse_slice: OpDef[tuple[Tensor, Tensor]] = OpDef(
    "SparseSlice",
    "indices: int64, dense_shape: int64, start: int64, size: int64 "
    "-> places: int64, new_indices: int64",
    infer=_sliced_shapes,
    kernel=_slice,
    host_args=("dense_shape", "start", "size"),
    only_moves=True,
)


def _part(x: SparseTensor, start: Tensor, size: Tensor) -> SparseTensor:
    places, indices = sparse_slice(x.indices, x.dense_shape, start, size)
    rest = maximum(x.dense_shape - start, np.int64(0))
    return SparseTensor(indices, sparse_take(x.values, places), minimum(rest, size))


@composed("SparseSlice")
def slice(sp_input: Any, start: Any, size: Any, name: str | None = None) -> SparseTensor:
    """A rectangular part of a sparse tensor.

    Args:
        sp_input: a SparseTensor.
        start: where the part begins, one int per dimension, each at least 0.
        size: how much of each dimension it takes; what exceeds the tensor is left out.

    Returns:
        A SparseTensor whose indices count from `start`.

    >>> import flowbook as fb
    >>> fb.sparse.slice(fb.sparse.eye(4), start=[1, 0], size=[2, 9])
    <SparseTensor shape=[2, 4] dtype=float32>
    """
    x = SparseTensor.from_value(sp_input)
    bounds = int64_vector(start), int64_vector(size)
    return _part(x, *bounds)


@composed("SparseSplit")
def split(sp_input: Any, num_split: int, axis: int, name: str | None = None) -> list[SparseTensor]:
    """The parts of a sparse tensor along one dimension.

    Args:
        sp_input: a SparseTensor of known rank.
        num_split: how many parts. Where they do not come out even, the first are longer by one.
        axis: the dimension, negative ones from the last.

    Raises:
        InvalidArgumentError: if there are more parts than the dimension is long, where it is known.
    """
    x = SparseTensor.from_value(sp_input)
    rank = known_rank(x)
    at, count = in_range(as_axis(axis), rank), as_axis(num_split)
    length = x.shape[at]
    if count < 1 or (length is not None and count > length):
        what = "an unknown length" if length is None else f"length {length}"
        raise InvalidArgumentError(f"a dimension of {what} cannot be split into {count} parts")
    dim = strided_slice(x.dense_shape, at)
    return [
        _part(x, *_bounds(x, at, dim // np.int64(count), dim % np.int64(count), i))
        for i in range(count)
    ]


def _bounds(
    x: SparseTensor, axis: int, base: Tensor, longer: Tensor, part: int
) -> tuple[Tensor, Tensor]:
    """Where one part of a split begins, and its size."""
    start = base * np.int64(part) + minimum(longer, np.int64(part))
    end = base * np.int64(part + 1) + minimum(longer, np.int64(part + 1))
    rank = known_rank(x)
    zero = np.int64(0)
    starts = stack_op([start if i == axis else zero for i in range(rank)])
    sizes = stack_op(
        [end - start if i == axis else strided_slice(x.dense_shape, i) for i in range(rank)]
    )
    return starts, sizes


# Joining


def _concat_dims(
    shapes: Sequence[Sequence[int | None]], axis: int, expand: bool
) -> tuple[int | None, ...]:
    """The dense shape of what is put together; None where it is not known."""
    found: list[int | None] = []
    for i, dims in enumerate(zip(*shapes, strict=True)):
        known = [d for d in dims if d is not None]
        if i == axis:
            found.append(sum(known) if len(known) == len(dims) else None)
        elif expand:
            found.append(max(known) if len(known) == len(dims) else None)
        else:
            if len(set(known)) > 1:
                raise InvalidArgumentError(
                    f"sparse tensors put together along axis {axis} differ in dimension {i}: "
                    + ", ".join(str(d) for d in known),
                    hint="expand_nonconcat_dims=True takes the largest",
                )
            found.append(known[0] if known else None)
    return tuple(found)


def _joined_shapes(
    dense_shapes: Tensor, indices: list[Tensor], axis: int, expand_nonconcat_dims: bool
) -> list[Shape]:
    if dense_shapes.shape.rank not in (None, 2):
        raise InvalidArgumentError(f"'dense_shapes' is a matrix, not of {dense_shapes.shape}")
    known = constant_value(dense_shapes)
    if known is not None:
        rank = known.shape[1]
        _concat_dims(known.tolist(), in_range(axis, rank), expand_nonconcat_dims)
    ranks = Shape.of((None,))
    for each in indices:
        ranks = ranks.merge((rank_of(each),))
    if dense_shapes.shape.dims is not None:
        ranks = ranks.merge(dense_shapes.shape.dims[1:])
    counts = [count_of(each) for each in indices]
    total = None if None in counts else sum(c for c in counts if c is not None)
    return [Shape.of((total,)).concatenate(ranks), ranks]


def _joined(
    xp: Any, dense_shapes: Any, *indices: Any, axis: int, expand_nonconcat_dims: bool
) -> Any:
    shapes = [checked_dims(row) for row in dense_shapes]
    at = in_range(axis, dense_shapes.shape[1])
    if len(shapes) != len(indices):
        raise InvalidArgumentError(
            f"{counted(len(indices), 'index', 'indices')} cannot go with "
            f"{counted(len(shapes), 'shape')}"
        )
    for each, dims in zip(indices, shapes, strict=True):
        check_sparse(each, dims)
    found = _concat_dims(shapes, at, expand_nonconcat_dims)
    result = xp.concatenate(indices)
    begin = offset = 0
    for each, shape in zip(indices, shapes, strict=True):
        result[begin : begin + len(each), at] += offset
        begin, offset = begin + len(each), offset + shape[at]
    return result, xp.asarray(np.array(found, np.int64))


sparse_concat: OpDef[tuple[Tensor, Tensor]] = OpDef(
    "SparseConcat",
    "dense_shapes: int64, indices: N*int64 -> joined: int64, dense_shape: int64",
    attributes={"axis": REQUIRED, "expand_nonconcat_dims": False},
    infer=_joined_shapes,
    kernel=_joined,
    host_args=("dense_shapes",),
    only_moves=True,
)


@composed("SparseConcat")
def concat(
    axis: int,
    sp_inputs: Any,
    expand_nonconcat_dims: bool = False,
    name: str | None = None,
) -> SparseTensor:
    """Sparse tensors put together along one dimension, in row-major order.

    Args:
        axis: the dimension, negative ones from the last.
        sp_inputs: a list of SparseTensors of one dtype and rank.
        expand_nonconcat_dims: whether the other dimensions may differ; the largest then count.

    Raises:
        InvalidArgumentError: if other dimensions differ; in the run, where it is known only then.

    >>> import flowbook as fb
    >>> fb.sparse.concat(1, [fb.sparse.eye(2), fb.sparse.eye(2, 5)])
    <SparseTensor shape=[2, 7] dtype=float32>
    """
    if not isinstance(sp_inputs, list | tuple) or isinstance(sp_inputs, SparseTensor):
        raise InvalidTypeError(f"a list of sparse tensors is wanted, not {sp_inputs!r:.80}")
    if not sp_inputs:
        raise InvalidArgumentError("there is nothing to put together")
    parts = [SparseTensor.from_value(item) for item in sp_inputs]
    ranks = {p.shape.rank for p in parts} - {None}
    if len(ranks) > 1:
        raise InvalidArgumentError(f"the sparse tensors differ in rank: {sorted(ranks)}")  # type: ignore[type-var]
    at = as_axis(axis)
    known: tuple[int | None, ...] | None = None
    if ranks:
        at = in_range(at, ranks.pop())  # type: ignore[arg-type]
        if all(p.shape.dims is not None for p in parts):
            known = _concat_dims([p.shape.dims for p in parts], at, expand_nonconcat_dims)  # type: ignore[misc]
    indices, shape = sparse_concat(
        stack_op([p.dense_shape for p in parts]),
        [p.indices for p in parts],
        axis=at,
        expand_nonconcat_dims=bool(expand_nonconcat_dims),
    )
    values = concat_op([p.values for p in parts], axis=0)
    return in_order(indices, values, known_shape(shape, Shape.of(known)))
