"""Parts by vectors of indices, one index for each of the first axes: gathered, and scattered.

The last axis of the indices holds the vectors. Parts that are named twice add up in `scatter_nd`;
in `tensor_scatter_nd_update` the last wins, and it alone gets a gradient.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flowbook.graph.definition.inference import constant_value, shape_from
from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.counted import counted
from flowbook.graph.model.dtypes import INDICES, MOVABLE, NUMBERS, VALUES
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import UNKNOWN, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.numerics.bounds import check_vectors
from flowbook.graph.numerics.row_writes import write_rows
from flowbook.graph.ops.arrays.gathering import as_batch, common_batch
from flowbook.graph.ops.basis.constants import convert_to_tensor, zeros_like_op
from flowbook.graph.ops.basis.shaping import check_vector, dims_of, shape_argument, shape_of
from flowbook.graph.ops.math.arithmetic import add, subtract
from flowbook.graph.ops.reduction.segments import combined

__all__ = [
    "gather_nd",
    "scatter_nd",
    "tensor_scatter_nd_add",
    "tensor_scatter_nd_sub",
    "tensor_scatter_nd_update",
]


def parts_shape(whole: Shape, indices: Tensor, batch_dims: int = 0) -> Shape:
    """The shape of the parts that vectors of indices name.

    Raises:
        InvalidArgumentError: if the vectors are longer than the whole has axes.
    """
    if indices.shape.rank == 0:
        raise InvalidArgumentError("'indices' is a tensor of vectors, not a scalar")
    dims, vectors = whole.dims, indices.shape.dims
    if dims is None or vectors is None:
        return UNKNOWN
    if len(vectors) <= batch_dims:
        raise InvalidArgumentError(
            f"indices of shape {indices.shape} have no vectors within {batch_dims} batch dimensions"
        )
    batch = common_batch(dims, vectors, batch_dims)
    length = vectors[-1]
    if length is None:
        return UNKNOWN
    _check_length(length, batch_dims, whole)
    known = constant_value(indices)
    axes = dims[batch_dims : batch_dims + length]
    if known is not None and None not in axes:
        check_vectors(known, axes)  # type: ignore[arg-type]
    return Shape.of((*batch, *vectors[batch_dims:-1], *dims[batch_dims + length :]))


def _check_length(length: int, batch_dims: int, shape: Any) -> None:
    if batch_dims + length > len(shape):
        raise InvalidArgumentError(
            f"vectors of {length} indices"
            + (f" after {batch_dims} batch dimensions" if batch_dims else "")
            + f" are too long for the {counted(len(shape), 'dimension')} of {Shape(shape)}"
        )


def flat_places(
    xp: Any, indices: Any, shape: tuple[int, ...], batch_dims: int = 0
) -> tuple[Any, tuple[int, ...]]:
    """Where in a run the parts lie among all parts of their size, and the shape of one.

    Raises:
        InvalidIndexError: if one lies outside.
        InvalidArgumentError: if the indices do not fit the shape.
    """
    if not indices.ndim:
        raise InvalidArgumentError("'indices' is a tensor of vectors, not a scalar")
    length = indices.shape[-1]
    common_batch(shape, indices.shape[:-1], batch_dims)
    _check_length(length, batch_dims, shape)
    depth = batch_dims + length
    check_vectors(indices, shape[batch_dims:depth])
    places: Any = 0
    for axis in range(depth):
        if axis < batch_dims:
            along = xp.arange(shape[axis], dtype=np.int64)
            index = xp.reshape(along, (-1, *(1,) * (indices.ndim - 2 - axis)))
        else:
            index = indices[..., axis - batch_dims].astype(np.int64)
        places = places * shape[axis] + index if axis else index
    whole = xp.broadcast_to(xp.asarray(places, dtype=np.int64), indices.shape[:-1])
    return xp.reshape(whole, (-1,)), tuple(shape[depth:])


def _rows_of(xp: Any, whole: Any, part: tuple[int, ...]) -> Any:
    """All parts of a size, one after another."""
    return xp.reshape(whole, (math.prod(whole.shape[: whole.ndim - len(part)]), *part))


def _gather_nd(xp: Any, params: Any, indices: Any, batch_dims: int) -> Any:
    places, part = flat_places(xp, indices, params.shape, batch_dims)
    taken = xp.take(_rows_of(xp, params, part), places, axis=0)
    return xp.reshape(taken, (*indices.shape[:-1], *part))


gather_nd_op = OpDef(
    "GatherNd",
    "params: T, indices: I -> output: T",
    T=MOVABLE,
    I=INDICES,
    attributes={"batch_dims": 0},
    infer=lambda params, indices, batch_dims: parts_shape(params.shape, indices, batch_dims),
    kernel=_gather_nd,
    grad=lambda op, dy: (
        scatter_nd_op(
            op.inputs[1], dy, shape_of(op.inputs[0]), batch_dims=op.attributes["batch_dims"]
        ),
        None,
    ),
    only_moves=True,
)


@gather_nd_op.front
def gather_nd(params: Any, indices: Any, batch_dims: int = 0, name: str | None = None) -> Tensor:
    """Parts of a tensor, each named by a vector of indices into its first axes.

    Args:
        params: of any dtype.
        indices: int32 or int64 of shape [..., k]: vectors of k indices, one for each of the first
            k axes after the batch.
        batch_dims: how many first dimensions of both are a batch, each with its own indices.

    Returns:
        A tensor of shape `indices.shape[:-1] + params.shape[batch_dims + k:]`.

    Raises:
        InvalidIndexError: if an index lies outside; in the run, where it is known only then.
        InvalidArgumentError: if k is more than there are axes, or the batch dimensions differ.

    >>> import flowbook as fb
    >>> chosen = fb.gather_nd([[1, 2], [3, 4]], [[0, 0], [1, 0]])
    >>> with fb.Session() as sess:
    ...     print(sess.run(chosen))
    [1 3]
    """
    batch = as_batch(batch_dims, indices)
    return gather_nd_op(params, indices, batch_dims=batch, name=name)


def check_updates(updates: Shape, wanted: Shape, indices: Shape) -> None:
    """See at construction that updates are of the shape of the parts that they go to."""
    if not wanted.is_compatible_with(updates):
        raise InvalidArgumentError(
            f"updates of shape {updates} do not fit indices of shape {indices}, which need {wanted}"
        )


def _scattered_shape(indices: Tensor, updates: Tensor, shape: Tensor, batch_dims: int) -> Shape:
    check_vector("shape", shape)
    whole = shape_from(shape)
    check_updates(updates.shape, parts_shape(whole, indices, batch_dims), indices.shape)
    return whole


def placed_rows(
    xp: Any, indices: Any, updates: Any, dims: tuple[int, ...], batch_dims: int = 0
) -> tuple[Any, Any]:
    """Updates as rows, and where in a run they go."""
    places, part = flat_places(xp, indices, dims, batch_dims)
    wanted = (*indices.shape[:-1], *part)
    if updates.shape != wanted:
        raise InvalidArgumentError(
            f"updates of shape {list(updates.shape)} do not fit indices of shape "
            f"{list(indices.shape)} into {list(dims)}, which need {list(wanted)}"
        )
    return places, xp.reshape(updates, (places.size, *part))


def _scatter_nd(xp: Any, indices: Any, updates: Any, shape: Any, batch_dims: int) -> Any:
    dims = dims_of(shape)
    if any(d < 0 for d in dims):
        raise InvalidArgumentError(f"a dimension is not negative: {list(dims)}")
    places, rows = placed_rows(xp, indices, updates, dims, batch_dims)
    count = math.prod(dims[: len(dims) - rows.ndim + 1])
    zero = b"" if rows.dtype == object else 0
    return xp.reshape(combined(xp, "add", rows, places, count, zero), dims)


scatter_nd_op: OpDef = OpDef(
    "ScatterNd",
    "indices: I, updates: T, shape: S -> output: T",
    I=INDICES,
    T=VALUES,
    S=INDICES,
    attributes={"batch_dims": 0},
    infer=_scattered_shape,
    kernel=_scatter_nd,
    host_args=("shape",),
    grad=lambda op, dy: (
        None,
        gather_nd_op(dy, op.inputs[0], batch_dims=op.attributes["batch_dims"]),
        None,
    ),
    cost=lambda op: op.inputs[1].shape.size or 0,
)


@scatter_nd_op.front
def scatter_nd(indices: Any, updates: Any, shape: Any, name: str | None = None) -> Tensor:
    """A tensor of zeros with updates added to parts of it; parts named twice get both.

    Booleans start as False and are joined by or, strings start empty and are joined in order.

    Args:
        indices: int32 or int64 of shape [..., k]: vectors of k indices into the first k axes.
        updates: of any dtype and the shape `indices.shape[:-1] + shape[k:]`.
        shape: the result's shape, an int vector tensor or a sequence.

    Raises:
        InvalidIndexError: if an index lies outside; in the run, where it is known only then.
        InvalidArgumentError: if the updates do not fit.

    >>> import flowbook as fb
    >>> sums = fb.scatter_nd([[1], [3], [1]], [1.0, 2.0, 4.0], [4])
    >>> with fb.Session() as sess:
    ...     print(sess.run(sums))
    [0. 5. 0. 2.]
    """
    shape = shape_argument(shape)
    return scatter_nd_op(indices, updates, shape, name=name)


def _updated_shape(tensor: Tensor, indices: Tensor, updates: Tensor) -> Shape:
    check_updates(updates.shape, parts_shape(tensor.shape, indices), indices.shape)
    return tensor.shape


def _update(xp: Any, tensor: Any, indices: Any, updates: Any) -> Any:
    places, rows = placed_rows(xp, indices, updates, tensor.shape)
    result = xp.array(tensor, order="C")
    write_rows(_rows_of(xp, result, rows.shape[1:]), xp, None, places, rows)
    return result


def _update_gradient(op: Operation, dy: Tensor) -> Any:
    _, indices, updates = op.inputs
    kept = tensor_scatter_nd_update(dy, indices, zeros_like_op(updates))
    return kept, None, update_gradient_op(dy, indices)


tensor_scatter_nd_update = OpDef(
    "TensorScatterUpdate",
    "tensor: T, indices: I, updates: T -> output: T",
    T=MOVABLE,
    I=INDICES,
    infer=_updated_shape,
    kernel=_update,
    grad=_update_gradient,
    only_moves=True,
    function="tensor_scatter_nd_update",
    doc="""A tensor with parts of it replaced; of parts named twice the last wins.

    Args:
        tensor: of any dtype.
        indices: int32 or int64 of shape [..., k]: vectors of k indices into the first k axes.
        updates: of the tensor's dtype and the shape `indices.shape[:-1] + tensor.shape[k:]`.

    Raises:
        InvalidIndexError: if an index lies outside; in the run, where it is known only then.
        InvalidArgumentError: if the updates do not fit.
    """,
)


def _kept_updates(xp: Any, dy: Any, indices: Any) -> Any:
    places, part = flat_places(xp, indices, dy.shape)
    rows = xp.take(_rows_of(xp, dy, part), places, axis=0)
    overwritten = ~is_last(xp, places, math.prod(dy.shape[: dy.ndim - len(part)]))
    if overwritten.any():
        rows[overwritten] = 0
    return xp.reshape(rows, (*indices.shape[:-1], *part))


def is_last(xp: Any, places: Any, count: int) -> Any:
    """Whether each of the places, in [0, count), is not named again later."""
    own = xp.arange(places.size)
    last = xp.zeros(count, dtype=own.dtype)
    write_rows(last, xp, None, places, own)
    return last[places] == own


update_gradient_op = OpDef(
    "TensorScatterUpdateGrad",
    "dy: T, indices: I -> output: T",
    T=NUMBERS,
    I=INDICES,
    infer=lambda dy, indices: parts_shape(dy.shape, indices),
    kernel=_kept_updates,
    grad=lambda op, dz: (
        tensor_scatter_nd_update(zeros_like_op(op.inputs[0]), op.inputs[1], dz),
        None,
    ),
    only_moves=True,
)


def tensor_scatter_nd_add(
    tensor: Any, indices: Any, updates: Any, name: str | None = None
) -> Tensor:
    """A tensor with updates added to parts of it; parts named twice get both.

    Numbers only; arguments and errors as for `tensor_scatter_nd_update`.
    """
    tensor = convert_to_tensor(tensor)
    changes = scatter_nd_op(indices, convert_to_tensor(updates, tensor.dtype), shape_of(tensor))
    return add(tensor, changes, name=name)


def tensor_scatter_nd_sub(
    tensor: Any, indices: Any, updates: Any, name: str | None = None
) -> Tensor:
    """A tensor with updates subtracted from parts of it; parts named twice lose both.

    Numbers only; arguments and errors as for `tensor_scatter_nd_update`.
    """
    tensor = convert_to_tensor(tensor)
    changes = scatter_nd_op(indices, convert_to_tensor(updates, tensor.dtype), shape_of(tensor))
    return subtract(tensor, changes, name=name)
