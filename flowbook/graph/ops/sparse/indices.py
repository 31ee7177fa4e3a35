"""Indices of sparse tensors in a run: whether they are right, where they point, their order.

Sizes of sparse tensors may lie beyond any memory, and their product beyond int64: what needs no
dense memory works for them too.
"""

from __future__ import annotations

import math
import operator
from functools import reduce
from typing import Any

import numpy as np

from flowbook.graph.definition.inference import constant_value, shape_from
from flowbook.graph.model.counted import counted
from flowbook.graph.model.errors import InvalidArgumentError, InvalidIndexError
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.numerics.bounds import are_within

_MOST = 2**63 - 1


def checked_dims(dense_shape: Any, what: str = "dense shape") -> tuple[int, ...]:
    """The dimensions that a dense shape holds; InvalidArgumentError if one is negative."""
    if dense_shape.ndim != 1:
        raise InvalidArgumentError(
            f"the {what} is a vector of ints, not of shape {list(dense_shape.shape)}"
        )
    dims = tuple(dense_shape.tolist())
    if any(d < 0 for d in dims):
        raise InvalidArgumentError(f"the {what} {list(dims)} has a negative dimension")
    return dims


def check_sparse(indices: Any, dims: tuple[int, ...], count: int | None = None) -> None:
    """See in a run that indices lie inside a dense shape.

    Args:
        indices: [n, r].
        dims: the r dimensions.
        count: the number of elements, where it is to be n.

    Raises:
        InvalidArgumentError: if they have another shape.
        InvalidIndexError: naming the first index that lies outside.
    """
    if indices.ndim != 2 or indices.shape[1] != len(dims):
        raise InvalidArgumentError(
            f"indices of shape {list(indices.shape)} do not go with the dense shape {list(dims)}, "
            f"which needs [n, {len(dims)}]"
        )
    if count is not None and count != len(indices):
        raise InvalidArgumentError(
            f"{counted(len(indices), 'index', 'indices')} cannot go with {counted(count, 'value')}"
        )
    columns = [(indices[:, axis], length) for axis, length in enumerate(dims)]
    if not all(are_within(column, length) for column, length in columns):
        wrong = [(column < 0) | (column >= length) for column, length in columns]
        first = int(reduce(operator.or_, wrong).argmax())
        raise InvalidIndexError(
            f"indices[{first}] is {indices[first].tolist()}, "
            f"which lies outside the dense shape {list(dims)}"
        )


def positions(xp: Any, indices: Any, dims: tuple[int, ...]) -> Any:
    """Where checked indices point in row-major order; their size must fit int64."""
    found = xp.zeros(len(indices), dtype=np.int64)
    step = 1
    for axis in reversed(range(len(dims))):
        # A step may be beyond int64 only where every index is zero, or there is none.
        if dims[axis] > 1:
            found += indices[:, axis] * np.int64(min(step, _MOST))
        step *= dims[axis]
    return found


def keys(xp: Any, indices: Any, dims: tuple[int, ...]) -> Any:
    """Int64 numbers, one per checked index, that are ordered and equal as the indices are."""
    if math.prod(max(d, 1) for d in dims) <= _MOST:
        return positions(xp, indices, dims)
    order = xp.lexsort(indices.T[::-1])
    ordered = indices[order]
    found = xp.zeros(len(indices), dtype=np.int64)
    found[order[1:]] = xp.cumsum((ordered[1:] != ordered[:-1]).any(axis=1))
    return found


def order_of(xp: Any, found: Any) -> Any:
    """The stable order of keys; they mostly are in order already, which is quick to see."""
    if (found[1:] >= found[:-1]).all():
        return xp.arange(len(found))
    return xp.argsort(found, kind="stable")


def check_shapes(indices: Tensor, dense_shape: Tensor, values: Tensor | None = None) -> Shape:
    """See at construction that indices, dense shape and values go together.

    Returns:
        What is known of the dense shape.
    """
    if indices.shape.rank not in (None, 2):
        raise InvalidArgumentError(f"'indices' has the shape [n, r], not {indices.shape}")
    if dense_shape.shape.rank not in (None, 1):
        raise InvalidArgumentError(f"'dense_shape' is a vector, not of shape {dense_shape.shape}")
    n, r = indices.shape.dims or (None, None)
    if values is not None:
        if values.shape.rank not in (None, 1):
            raise InvalidArgumentError(f"'values' is a vector, not of shape {values.shape}")
        (count,) = values.shape.dims or (None,)
        if n is not None and count is not None and n != count:
            raise InvalidArgumentError(
                f"{counted(n, 'index', 'indices')} cannot go with {counted(count, 'value')}"
            )
    known = constant_value(dense_shape)
    if known is not None:
        checked_dims(known)
    (rank,) = dense_shape.shape.dims or (None,)
    if r is not None and rank is not None and r != rank:
        raise InvalidArgumentError(
            f"each index has {counted(r, 'number')}, but the dense shape has "
            f"{counted(rank, 'dimension')}"
        )
    if r is not None and r > 64:
        raise InvalidArgumentError(f"no tensor has {counted(r, 'dimension')}")
    shape = shape_from(dense_shape)
    return shape if r is None else shape.with_rank(r)


def count_of(indices: Tensor) -> int | None:
    """How many indices there are, if that is known at construction."""
    return indices.shape.dims[0] if indices.shape.dims else None


def rank_of(indices: Tensor) -> int | None:
    """How many dimensions they have, if that is known at construction."""
    return indices.shape.dims[1] if indices.shape.dims else None
