"""Rows parted by a number that each has, and put together again by indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.definition.axes import as_axis
from flowbook.graph.definition.inference import constant_value
from flowbook.graph.definition.op_def import REQUIRED, OpDef
from flowbook.graph.model.counted import counted
from flowbook.graph.model.dtypes import MOVABLE, NUMBERS, DType, int32
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import UNKNOWN, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.numerics.bounds import check_indices, outside
from flowbook.graph.ops.arrays.indexing_nd import is_last
from flowbook.graph.ops.basis.constants import convert_to_tensor, zeros_like_op
from flowbook.graph.ops.basis.filling import range as range_
from flowbook.graph.ops.basis.shaping import reshape_op, shape_of, size_op
from flowbook.graph.ops.reduction.segments import order_by_id

__all__ = ["dynamic_partition", "dynamic_stitch"]


def _row_shape(data: Tensor, numbers: Tensor, what: str) -> Shape:
    """What is left of a shape that begins with that of a number for each row."""
    dims, rows = data.shape.dims, numbers.shape.dims
    if rows is None or dims is None:
        return UNKNOWN
    if not Shape.of(dims[: len(rows)]).is_compatible_with(numbers.shape):
        raise InvalidArgumentError(
            f"the shape {data.shape} of the data does not begin with the shape {numbers.shape} "
            f"of the {what}"
        )
    return Shape.of(dims[len(rows) :])


def _check_rows(data: Any, numbers: Any, what: str) -> None:
    if data.shape[: numbers.ndim] != numbers.shape:
        raise InvalidArgumentError(
            f"the shape {list(data.shape)} of the data does not begin with the shape "
            f"{list(numbers.shape)} of the {what}"
        )


def _partition_shapes(
    data: Tensor, partitions: Tensor, num_partitions: int, Tout: tuple[DType, ...]
) -> list[Shape]:
    row = _row_shape(data, partitions, "partitions")
    if num_partitions != len(Tout):
        raise InvalidArgumentError(f"{num_partitions} parts have {counted(len(Tout), 'dtype')}")
    known = constant_value(partitions)
    if known is None:
        return [Shape.of((None,)).concatenate(row)] * num_partitions
    check_indices(known, num_partitions, "partition")
    counts = np.bincount(known.ravel(), minlength=num_partitions).tolist()
    return [Shape.of((count,)).concatenate(row) for count in counts]


def _partition(xp: Any, data: Any, partitions: Any, num_partitions: int) -> tuple[Any, ...]:
    _check_rows(data, partitions, "partitions")
    check_indices(partitions, num_partitions, "partition")
    flat = xp.reshape(partitions, (-1,))
    rows = xp.reshape(data, (flat.size, *data.shape[partitions.ndim :]))
    order = order_by_id(xp, flat, num_partitions)
    ends = xp.cumsum(xp.bincount(flat, minlength=num_partitions)).tolist()
    return tuple(rows[order[start:end]] for start, end in zip([0, *ends[:-1]], ends, strict=True))


def _partition_gradient(op: Operation, *dys: Tensor | None) -> Any:
    data, partitions = op.inputs
    count = op.attributes["num_partitions"]
    places = reshape_op(range_(size_op(partitions)), shape_of(partitions))
    taken = dynamic_partition(places, partitions, count)
    parts = [
        zeros_like_op(output) if dy is None else dy
        for output, dy in zip(op.outputs, dys, strict=True)
    ]
    return reshape_op(dynamic_stitch(taken, parts), shape_of(data)), None


partition_op: OpDef[list[Tensor]] = OpDef(
    "DynamicPartition",
    "data: T, partitions: int32 -> outputs: *Tout",
    T=MOVABLE,
    attributes={"num_partitions": REQUIRED, "Tout": REQUIRED},
    infer=_partition_shapes,
    kernel=_partition,
    grad=_partition_gradient,
    only_moves=True,
)


@partition_op.front
def dynamic_partition(
    data: Any, partitions: Any, num_partitions: int, name: str | None = None
) -> list[Tensor]:
    """Rows parted by the number that each has.

    Args:
        data: of any dtype; its shape begins with that of `partitions`.
        partitions: int32 of any shape, each in [0, num_partitions).
        num_partitions: how many parts there are, an int.

    Returns:
        For each part its rows in their order, `[number of them] + data.shape[partitions.rank:]`.

    Raises:
        InvalidIndexError: if a number lies outside; in the run, where it is known only then.

    >>> import flowbook as fb
    >>> parts = fb.dynamic_partition([10, 20, 30], [1, 0, 1], 2)
    >>> with fb.Session() as sess:
    ...     print(*sess.run(parts))
    [20] [10 30]
    """
    data, count = convert_to_tensor(data), as_axis(num_partitions)
    if count < 1:
        raise InvalidArgumentError(f"there is at least one partition, not {count}")
    return partition_op(
        data, partitions, num_partitions=count, Tout=(data.dtype,) * count, name=name
    )


def _stitched_shape(
    indices: list[Tensor], data: list[Tensor], Tindices: tuple[DType, ...]
) -> Shape:
    if len(indices) != len(data):
        raise InvalidArgumentError(f"{len(indices)} lists of indices for {len(data)} of data")
    row = UNKNOWN
    for places, rows in zip(indices, data, strict=True):
        row = row.merge(_row_shape(rows, places, "indices"))
    known = [constant_value(t) for t in indices]
    count: int | None = None
    if not any(value is None for value in known):
        count = max((int(v.max()) + 1 for v in known if v is not None and v.size), default=0)
    return Shape.of((count,)).concatenate(row)


def _places(xp: Any, arrays: tuple[Any, ...]) -> tuple[Any, int]:
    """All indices in one vector, and how many rows they need."""
    for array in arrays:
        if array.size and array.min() < 0:
            raise outside(array, array < 0, 2**31 - 1, "index")
    flat = xp.concatenate([xp.reshape(a, (-1,)) for a in arrays])
    return flat, int(flat.max()) + 1 if flat.size else 0


def _stitch(xp: Any, *arrays: Any) -> Any:
    half = len(arrays) // 2
    indices, data = arrays[:half], arrays[half:]
    _, count = _places(xp, indices)
    row = data[0].shape[indices[0].ndim :]
    for places, rows in zip(indices, data, strict=True):
        _check_rows(rows, places, "indices")
        if rows.shape[places.ndim :] != row:
            raise InvalidArgumentError(
                f"rows of shape {list(rows.shape[places.ndim :])} and {list(row)} cannot be put "
                "into one tensor"
            )
    if data[0].dtype.kind == "O":
        result = xp.full((count, *row), b"", dtype=object)
    else:
        result = xp.zeros((count, *row), dtype=data[0].dtype)
    for places, rows in zip(indices, data, strict=True):
        result[places] = rows
    return result


def _stitch_gradient(op: Operation, dy: Tensor) -> Any:
    half = len(op.inputs) // 2
    indices, data = list(op.inputs[:half]), op.inputs[half:]
    return (None,) * half + tuple(
        stitch_gradient_op(dy, indices, Tout=tuple(t.dtype for t in data))
    )


stitch_op = OpDef(
    "DynamicStitch",
    "indices: *Tindices, data: N*T -> output: T",
    T=MOVABLE,
    attributes={"Tindices": REQUIRED},
    infer=_stitched_shape,
    kernel=_stitch,
    grad=_stitch_gradient,
    only_moves=True,
)


@stitch_op.front
def dynamic_stitch(indices: Any, data: Any, name: str | None = None) -> Tensor:
    """Rows put into one tensor by their indices: the reverse of `dynamic_partition`.

    Args:
        indices: a list of int32 tensors of any shapes: where each row goes.
        data: a list of as many tensors of one dtype; the shape of each begins with that of its
            indices, and what follows is the same for all.

    Returns:
        A tensor of shape `[largest index + 1, ...]`. Of rows with one index the last wins, and
        alone gets a gradient; those with none are zeros.

    Raises:
        InvalidIndexError: in the run, if an index is negative.
        InvalidArgumentError: if the shapes do not fit.

    >>> import flowbook as fb
    >>> whole = fb.dynamic_stitch([[0, 3], [2, 1]], [[1.0, 2.0], [3.0, 4.0]])
    >>> with fb.Session() as sess:
    ...     print(sess.run(whole))
    [1. 4. 3. 2.]
    """
    if not isinstance(indices, list | tuple) or not isinstance(data, list | tuple):
        raise InvalidTypeError("indices and data are lists of tensors")
    if not indices or len(indices) != len(data):
        raise InvalidArgumentError(f"{len(indices)} lists of indices for {len(data)} of data")
    places = [convert_to_tensor(i, int32) for i in indices]
    return stitch_op(places, list(data), Tindices=(int32,) * len(places), name=name)


def _unstitched_shapes(dy: Tensor, indices: list[Tensor], Tout: tuple[DType, ...]) -> list[Shape]:
    if dy.shape.dims is None:
        return [UNKNOWN] * len(indices)
    return [i.shape.concatenate(dy.shape.dims[1:]) for i in indices]


def _unstitch(xp: Any, dy: Any, *indices: Any) -> tuple[Any, ...]:
    flat, count = _places(xp, indices)
    last = is_last(xp, flat, count)
    rows = xp.take(dy, flat, axis=0)
    if not last.all():
        rows[~last] = 0
    ends = np.cumsum([i.size for i in indices]).tolist()
    return tuple(
        xp.reshape(rows[end - i.size : end], (*i.shape, *dy.shape[1:]))
        for i, end in zip(indices, ends, strict=True)
    )


stitch_gradient_op: OpDef[list[Tensor]] = OpDef(
    "DynamicStitchGrad",
    "dy: T, indices: N*int32 -> outputs: *Tout",
    T=NUMBERS,
    attributes={"Tout": REQUIRED},
    infer=_unstitched_shapes,
    kernel=_unstitch,
    grad=lambda op, *dzs: (
        dynamic_stitch(
            list(op.inputs[1:]),
            [
                zeros_like_op(output) if dz is None else dz
                for output, dz in zip(op.outputs, dzs, strict=True)
            ],
        ),
        *(None,) * (len(op.inputs) - 1),
    ),
    only_moves=True,
)
