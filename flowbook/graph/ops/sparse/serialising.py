"""Sparse tensors as strings, in which form they go through queues and into files."""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import Any

import numpy as np

from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.op_def import HOST, NO_GRADIENT, REQUIRED, OpDef
from flowbook.graph.model.dtypes import MOVABLE, DType, as_dtype, string
from flowbook.graph.model.errors import DataLossError, InvalidArgumentError
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.sparse_tensor import SparseTensor
from flowbook.graph.ops.sparse.arranging import known_rank

__all__ = ["deserialize_many", "serialize_many"]

# The dtype, the rank and the number of elements. Behind it come the shape, the indices and the
# elements; of strings first the length of each.
_HEAD = struct.Struct("<16sqq")


def _number_of_rows(indices: Tensor, values: Tensor, dense_shape: Tensor) -> Shape:
    return Shape([None])


def _serialize(xp: Any, indices: Any, values: Any, dense_shape: Any) -> Any:
    # The elements of each row, in whatever order the rows stand.
    order = np.argsort(indices[:, 0], kind="stable")
    ends = np.searchsorted(indices[order, 0], np.arange(dense_shape[0] + 1))
    found = np.empty(dense_shape[0], object)
    for row in range(len(found)):
        places = order[ends[row] : ends[row + 1]]
        found[row] = _packed(dense_shape[1:], indices[places, 1:], values[places])
    return found


def _packed(dims: Any, indices: Any, values: Any) -> bytes:
    if values.dtype == object:
        name, lengths = "string", np.array([len(value) for value in values], np.int64)
        content = lengths.tobytes() + b"".join(values)
    else:
        name, content = values.dtype.name, values.tobytes()
    head = _HEAD.pack(name.encode(), len(dims), len(values))
    return b"".join([head, dims.tobytes(), indices.tobytes(), content])


serialize_op = OpDef(
    "SparseSerializeMany",
    "indices: int64, values: T, dense_shape: int64 -> serialized: string",
    T=MOVABLE,
    infer=_number_of_rows,
    kernel=_serialize,
    kinds=HOST,
    only_moves=True,
)


def _unpacked(data: Any, dtype: DType, rank: int) -> tuple[Any, Any, Any]:
    """The shape, the indices and the values of one row."""
    if not isinstance(data, bytes) or len(data) < _HEAD.size:
        raise DataLossError(f"{data!r:.60} is no serialized sparse tensor")
    name, found_rank, count = _HEAD.unpack_from(data)
    name = name.rstrip(b"\0").decode(errors="replace")
    if (name, found_rank) != (dtype.name, rank):
        raise InvalidArgumentError(
            f"{dtype.name} of rank {rank} is wanted, and what was serialized is {name} of rank "
            f"{found_rank}"
        )
    # As many numbers as are told, and no other bytes behind them.
    of_lengths = count if dtype is string else 0
    numbers = rank + count * rank + of_lengths
    begin = _HEAD.size + 8 * numbers
    if count < 0 or len(data) < begin:
        raise DataLossError("a serialized sparse tensor is cut off")
    told = np.frombuffer(data, np.int64, numbers, _HEAD.size)
    dims, indices = told[:rank], told[rank : rank + count * rank].reshape(count, rank)
    sizes = told[numbers - of_lengths :] if of_lengths else [np.dtype(dtype.numpy).itemsize] * count
    ends = [begin, *(begin + np.cumsum(sizes, dtype=np.int64)).tolist()]
    if len(data) != ends[-1]:
        raise DataLossError("a serialized sparse tensor is of another length than it tells")
    if dtype is not string:
        return dims, indices, np.frombuffer(data, dtype.numpy, count, begin)
    values: Any = np.empty(count, object)
    for place, (start, end) in enumerate(pairwise(ends)):
        values[place] = data[start:end]
    return dims, indices, values


def _deserialize(xp: Any, serialized: Any, dtype: DType, rank: int) -> tuple[Any, Any, Any]:
    rows = [_unpacked(data, dtype, rank) for data in serialized]
    indices: Any = np.empty((sum(len(values) for _, _, values in rows), rank + 1), np.int64)
    begin = 0
    for number, (_, places, _) in enumerate(rows):
        part = indices[begin : begin + len(places)]
        part[:, 0], part[:, 1:] = number, places
        begin += len(places)
    largest = np.max([np.zeros(rank, np.int64), *[dims for dims, _, _ in rows]], axis=0)
    values = np.concatenate([np.empty(0, dtype.numpy), *[values for _, _, values in rows]])
    return indices, values, np.concatenate([[np.int64(len(rows))], largest])


def _deserialized_shapes(serialized: Tensor, rank: int, **_: Any) -> list[Shape]:
    if serialized.shape.rank not in (None, 1):
        raise InvalidArgumentError(f"a vector of strings is wanted, not {serialized.shape}")
    return [Shape([None, rank + 1]), Shape([None]), Shape([rank + 1])]


deserialize_op: OpDef[tuple[Tensor, Tensor, Tensor]] = OpDef(
    "SparseDeserializeMany",
    "serialized: string -> indices: int64, values: dtype, dense_shape: int64",
    attributes={"dtype": REQUIRED, "rank": REQUIRED},
    infer=_deserialized_shapes,
    kernel=_deserialize,
    kinds=HOST,
    grad=NO_GRADIENT,
    only_moves=True,
)


def serialize_many(sp_input: Any, name: str | None = None) -> Tensor:
    """Each row of a sparse tensor as a string.

    Args:
        sp_input: a SparseTensor of known rank, at least 1.
        name: the operation's name.

    Returns:
        A vector of strings, one for each place of the first dimension.

    >>> import flowbook as fb
    >>> x = fb.SparseTensor([[0, 1], [1, 0]], [5, 6], [2, 3])
    >>> rows = fb.sparse.serialize_many(x)
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.sparse.to_dense(fb.sparse.deserialize_many(rows, fb.int32, 1))))
    [[0 5 0]
     [6 0 0]]
    """
    x = SparseTensor.from_value(sp_input)
    if known_rank(x) == 0:
        raise InvalidArgumentError("a sparse tensor of rank 0 has no rows")
    with x.graph.as_default():
        return serialize_op(x.indices, x.values, x.dense_shape, name=name)


@composed("DeserializeMany")
def deserialize_many(
    serialized_sparse: Any, dtype: Any, rank: int, name: str | None = None
) -> SparseTensor:
    """Sparse tensors out of strings, as one, which is as large in each dimension as the largest.

    Args:
        serialized_sparse: a vector of strings, as `serialize_many` makes them.
        dtype: that of the values.
        rank: that of each of the tensors; the result has one dimension more, before the others.

    Raises:
        InvalidArgumentError: in the run, if something of another dtype or rank was serialized.
        DataLossError: in the run, if a string is damaged.
    """
    strings = convert_to_tensor(serialized_sparse, string)
    return SparseTensor(*deserialize_op(strings, dtype=as_dtype(dtype), rank=int(rank)))
