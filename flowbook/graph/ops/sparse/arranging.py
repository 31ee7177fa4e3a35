"""Sparse tensors arranged anew: the same elements at other indices.

Dense shapes are computed by ordinary operations where they can be, so that inference follows them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flowbook.graph.definition.axes import all_in_range, as_axes, as_axis, in_range
from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.inference import constant_value
from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.counted import counted
from flowbook.graph.model.dtypes import int64
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.arrays.gathering import gather_op
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.constants import constant, convert_to_tensor
from flowbook.graph.ops.basis.filling import fill
from flowbook.graph.ops.basis.indexing import strided_slice
from flowbook.graph.ops.basis.joining import concat_op, stack_op
from flowbook.graph.ops.basis.shaping import shape_argument, shape_op
from flowbook.graph.ops.basis.sparse_tensor import SparseTensor
from flowbook.graph.ops.sparse.conversion import sparse_take
from flowbook.graph.ops.sparse.indices import (
    check_shapes,
    check_sparse,
    checked_dims,
    count_of,
    keys,
    order_of,
    positions,
)

__all__ = ["expand_dims", "reorder", "reshape", "transpose"]


def _place_count(indices: Tensor, dense_shape: Tensor, **_: Any) -> Shape:
    check_shapes(indices, dense_shape)
    return Shape.of((count_of(indices),))


def int64_vector(values: Any) -> Tensor:
    """A shape argument as an int64 vector."""
    tensor = convert_to_tensor(shape_argument(values))
    if tensor.op.op_def.is_constant:
        return constant(tensor.op.attributes["value"].astype(np.int64))
    return tensor if tensor.dtype is int64 else cast(tensor, int64)


def known_shape(dense_shape: Tensor, shape: Shape) -> Tensor:
    """The dense shape of the run, of which inference sees what is known."""
    if shape.is_fully_defined:
        return constant(np.array(shape.dims, np.int64))
    if shape.dims is None or set(shape.dims) == {None}:
        return dense_shape
    parts = [
        strided_slice(dense_shape, i) if d is None else np.int64(d)
        for i, d in enumerate(shape.dims)
    ]
    return stack_op(parts)


# Order


def _order(xp: Any, indices: Any, dense_shape: Any) -> Any:
    dims = checked_dims(dense_shape)
    check_sparse(indices, dims)
    return order_of(xp, keys(xp, indices, dims))


sparse_order = OpDef(
    "SparseOrder",
    "indices: int64, dense_shape: int64 -> places: int64",
    infer=_place_count,
    kernel=_order,
    host_args=("dense_shape",),
    only_moves=True,
    doc="The places of indices in row-major order; of equal ones, in their own order.",
)


def in_order(indices: Tensor, values: Tensor, dense_shape: Tensor) -> SparseTensor:
    """A sparse tensor with its elements in row-major order."""
    places = sparse_order(indices, dense_shape)
    return SparseTensor(gather_op(indices, places), sparse_take(values, places), dense_shape)


@composed("SparseReorder")
def reorder(sp_input: Any, name: str | None = None) -> SparseTensor:
    """The same sparse tensor with its elements in row-major order of their indices.

    Args:
        sp_input: a SparseTensor; repeated indices stay, in the order in which they come.

    Raises:
        InvalidIndexError: in the run, if an index lies outside the dense shape.

    >>> import flowbook as fb
    >>> x = fb.SparseTensor([[1, 0], [0, 2]], ["b", "a"], [2, 3])
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.sparse.reorder(x)).values.tolist())
    [b'a', b'b']
    """
    x = SparseTensor.from_value(sp_input)
    return in_order(x.indices, x.values, x.dense_shape)


@composed("SparseTranspose")
def transpose(sp_input: Any, perm: Any = None, name: str | None = None) -> SparseTensor:
    """A sparse tensor with its dimensions permuted, its elements in row-major order.

    Args:
        sp_input: a SparseTensor.
        perm: for each dimension of the result which one of the input it is, a list of ints; by
            default the reverse.

    Raises:
        InvalidArgumentError: if `perm` is not a permutation.
    """
    x = SparseTensor.from_value(sp_input)
    order = as_axes(perm)
    rank = x.shape.rank
    if order is not None:
        if rank is not None and len(order) != rank:
            raise InvalidArgumentError(
                f"perm {list(order)} does not permute {counted(rank, 'dimension')}"
            )
        order = all_in_range(order, len(order))
    if order is None:
        indices = strided_slice(x.indices, np.s_[:, ::-1])
        shape = strided_slice(x.dense_shape, np.s_[::-1])
    else:
        indices = gather_op(x.indices, np.array(order), axis=1)
        shape = gather_op(x.dense_shape, np.array(order))
    return in_order(indices, x.values, shape)


# Shapes


def _new_dims(dims: tuple[int, ...], new_shape: tuple[int, ...]) -> tuple[int, ...]:
    """The dimensions of the new shape, the one that is -1 found."""
    unknown = [i for i, d in enumerate(new_shape) if d == -1]
    if len(unknown) > 1 or any(d < -1 for d in new_shape):
        raise InvalidArgumentError(
            f"the new shape {list(new_shape)} has "
            + ("more than one -1" if len(unknown) > 1 else "a negative dimension")
        )
    size, given = math.prod(dims), math.prod(d for d in new_shape if d != -1)
    found = list(new_shape)
    if unknown:
        found[unknown[0]] = size // given if given else 0
    if math.prod(found) != size:
        raise InvalidArgumentError(
            f"{size} elements of the dense shape {list(dims)} do not fit {list(new_shape)}"
        )
    return tuple(found)


def _reshaped_shapes(indices: Tensor, dense_shape: Tensor, new_shape: Tensor) -> list[Shape]:
    known = check_shapes(indices, dense_shape)
    if new_shape.shape.rank not in (None, 1):
        raise InvalidArgumentError(f"'new_shape' is a vector, not of shape {new_shape.shape}")
    wanted = constant_value(new_shape)
    if known.is_fully_defined and wanted is not None:
        _new_dims(known.dims, tuple(wanted.tolist()))  # type: ignore[arg-type]
    (rank,) = new_shape.shape.dims or (None,)
    return [Shape.of((count_of(indices), rank)), Shape.of((rank,))]


def _reshape(xp: Any, indices: Any, dense_shape: Any, new_shape: Any) -> Any:
    dims = checked_dims(dense_shape)
    check_sparse(indices, dims)
    found = _new_dims(dims, tuple(new_shape.tolist()))
    result = xp.empty((len(indices), len(found)), dtype=np.int64)
    if math.prod(dims) > 2**63 - 1:
        raise InvalidArgumentError(
            f"the dense shape {list(dims)} has too many elements to be given another shape"
        )
    rest = positions(xp, indices, dims)
    for axis in reversed(range(len(found))):
        if found[axis]:
            rest, result[:, axis] = xp.divmod(rest, np.int64(found[axis]))
    return result, xp.asarray(np.array(found, np.int64))


sparse_reshape: OpDef[tuple[Tensor, Tensor]] = OpDef(
    "SparseReshape",
    "indices: int64, dense_shape: int64, new_shape: int64 "
    "-> new_indices: int64, new_dense_shape: int64",
    infer=_reshaped_shapes,
    kernel=_reshape,
    host_args=("dense_shape", "new_shape"),
    only_moves=True,
)


@composed("SparseReshape")
def reshape(sp_input: Any, shape: Any, name: str | None = None) -> SparseTensor:
    """A sparse tensor with the same elements, counted in row-major order, in another shape.

    Args:
        sp_input: a SparseTensor.
        shape: the new dense shape, a list of ints or an int vector; one of them may be -1.

    Raises:
        InvalidArgumentError: if the shapes differ in size; in the run, where it is known only then.

    >>> import flowbook as fb
    >>> fb.sparse.reshape(fb.sparse.eye(4), [2, -1])
    <SparseTensor shape=[2, 8] dtype=float32>
    """
    x = SparseTensor.from_value(sp_input)
    wanted = int64_vector(shape)
    indices, new_shape = sparse_reshape(x.indices, x.dense_shape, wanted)
    value = constant_value(wanted)
    if value is not None:
        known: tuple[int | None, ...] = tuple(None if d < 0 else d for d in value.tolist())
        if x.shape.is_fully_defined:
            known = _new_dims(x.shape.dims, tuple(value.tolist()))  # type: ignore[arg-type]
        new_shape = known_shape(new_shape, Shape.of(known))
    return SparseTensor(indices, x.values, new_shape)


@composed("SparseExpandDims")
def expand_dims(sp_input: Any, axis: int = -1, name: str | None = None) -> SparseTensor:
    """A sparse tensor with a dimension of 1 inserted.

    Args:
        sp_input: a SparseTensor of known rank.
        axis: where the new dimension stands in the result, negative ones from its end.
    """
    x = SparseTensor.from_value(sp_input)
    at = in_range(as_axis(axis), known_rank(x) + 1)
    count = strided_slice(shape_op(x.indices), np.s_[:1])
    column = fill(concat_op([count, [1]], axis=0), np.int64(0))
    before, after = (strided_slice(x.indices, np.s_[:, s]) for s in (np.s_[:at], np.s_[at:]))
    head, tail = (strided_slice(x.dense_shape, s) for s in (np.s_[:at], np.s_[at:]))
    return SparseTensor(
        concat_op([before, column, after], axis=1),
        x.values,
        concat_op([head, np.ones(1, np.int64), tail], axis=0),
    )


def known_rank(x: SparseTensor) -> int:
    """The rank of a sparse tensor; InvalidArgumentError if only the run knows it."""
    rank = x.shape.rank
    if rank is None:
        raise InvalidArgumentError(
            f"this needs a sparse tensor of known rank, not {x!r}",
            hint="give fb.sparse.placeholder a shape, such as [None, None]",
        )
    return rank
