"""Dimensions of tensors where some are known and some are not."""

from __future__ import annotations

import math
from typing import Any

from flowbook.onnx.reading import vocabulary as fb
from flowbook.onnx.reading.node import Node


def sizes(node: Node, x: Any) -> list[Any]:
    """The dimensions of a tensor: ints where they are known, else int32 scalars of the run."""
    rank = node.rank(x)
    dims = x.shape.dims
    if None not in dims:
        return list(dims)
    shape = fb.shape(x)
    return [shape[i] if dims[i] is None else dims[i] for i in range(rank)]


def shape_vector(dims: Any, dtype: Any = None) -> Any:
    """A shape of ints and scalars as what operations take for a shape."""
    dtype = fb.int32 if dtype is None else dtype
    if all(isinstance(d, int) for d in dims):
        return fb.constant(list(dims), dtype) if dims else fb.zeros([0], dtype)
    return fb.stack([fb.cast(fb.convert_to_tensor(d), dtype) for d in dims])


def product(dims: Any) -> Any:
    """The product of dimensions."""
    found: Any = 1
    for d in dims:
        found = found * d
    return found


def non_negative(node: Node, indices: Any, size: Any) -> Any:
    """Indices that count from the end where they are negative, counted from the front."""
    known = node.known(indices)
    if known is not None and (known.size == 0 or known.min() >= 0):
        return indices
    if not indices.dtype.is_integer or indices.dtype not in fb.INDICES:
        indices = fb.cast(indices, fb.int64)
    size = fb.cast(fb.convert_to_tensor(size), indices.dtype)
    return fb.where(indices < fb.constant(0, indices.dtype), indices + size, indices)


def coordinates(node: Node, like: Any, axis: int, along: Any) -> Any:
    """For each element of a tensor its place, one of whose coordinates is given by another.

    Args:
        like: the tensor of rank r.
        axis: the axis whose coordinate is replaced.
        along: that coordinate, of the tensor's shape.

    Returns:
        [..., r], as gather_nd takes it.
    """
    dims = sizes(node, like)
    rank = len(dims)
    shape = shape_vector(dims)
    found = []
    for i, d in enumerate(dims):
        if i == axis:
            found.append(fb.cast(along, fb.int64))
            continue
        place = fb.reshape(fb.range(fb.cast(fb.convert_to_tensor(d), fb.int64)), _only(i, rank))
        found.append(fb.broadcast_to(place, shape))
    return fb.stack(found, axis=-1)


def _only(axis: int, rank: int) -> list[int]:
    return [-1 if i == axis else 1 for i in range(rank)]


def matrix_at(node: Node, x: Any, axis: int) -> Any:
    """The axes before one and those from it on, each as one."""
    dims = x.shape.dims
    if None not in dims:
        return fb.reshape(x, [math.prod(dims[:axis]), math.prod(dims[axis:])])
    known = dims[axis:]
    if None not in known:
        return fb.reshape(x, [-1 if axis else 1, math.prod(known)])
    shape = fb.shape(x)
    return fb.reshape(x, fb.stack([fb.reduce_prod(shape[:axis]), fb.reduce_prod(shape[axis:])]))
