"""Sparse tensors: operations on indices, values and dense shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.ops import sparse_conversion as conversion
from tests.op_cases.case import ODD, SOME, Array, Case, f


def n(*values: Any) -> Array:
    """Int64 values."""
    return np.array(values, dtype=np.int64)


# Of the dense shape [3, 4], in row-major order and not.
INDICES = n([0, 1], [0, 3], [2, 0], [2, 2])
TURNED = INDICES[[2, 0, 3, 1]]
REPEATED = INDICES[[2, 0, 2, 1]]
SHAPE = n(3, 4)
VALUES = f([0.5, -1.5, 2.0, 3.0])
WEIRD = f([np.nan, np.inf, -np.inf, -0.0])
NO_INDICES, NO_VALUES = np.zeros((0, 2), np.int64), f([])
DENSE = np.arange(12.0).reshape(3, 4) - 5.0


def dense_of(indices: Array, shape: Array, values: Array, default: Any = 0) -> Array:
    """Element by element: the last of repeated ones counts."""
    result = np.full(tuple(shape), default, dtype=np.asarray(values).dtype)
    for index, value in zip(indices.tolist(), values, strict=True):
        result[tuple(index)] = value
    return result


def picked(indices: Array, shape: Array, dense: Array) -> Array:
    whole = np.broadcast_to(dense, tuple(shape))
    return np.array([whole[tuple(i)] for i in indices.tolist()], dtype=dense.dtype)


def summed(indices: Array, dense_shape: Array, values: Array, shape: Array) -> Array:
    result = np.zeros(tuple(shape), dtype=values.dtype)
    skipped = len(dense_shape) - len(shape)
    for index, value in zip(indices.tolist(), values, strict=True):
        place = [i if d > 1 else 0 for i, d in zip(index[skipped:], shape, strict=True)]
        result[tuple(place)] += value
    return result


def nonzero(dense: Array) -> tuple[Array, Array]:
    empty = b"" if dense.dtype.kind == "O" else 0
    found = [p for p in np.ndindex(dense.shape) if dense[p] != empty]
    values = np.array([dense[p] for p in found], dtype=dense.dtype)
    return np.array(found, np.int64).reshape(len(found), dense.ndim), values


def sparse(tf: Any, indices: Any, shape: Any, values: Any) -> Any:
    return tf.SparseTensor(indices, values, shape)


CONVERSION = [
    Case(
        "SparseTake",
        conversion.sparse_take,
        [VALUES, n(3, 0, 0)],
        lambda v, p: v[p],
        [0],
        empty=[VALUES, n()],
        special=[WEIRD, n(1, 0, 3)],
        tensorflow=lambda tf, v, p: tf.gather(v, p),
    ),
    Case(
        "SparseTake",
        conversion.sparse_take,
        [SOME, n(1, 0, 1)],
        lambda v, p: v[p],
        [0],
        empty=[np.zeros((0, 3)), n()],
        note="rows",
    ),
    Case(
        "SparsePick",
        conversion.sparse_pick,
        [TURNED, SHAPE, DENSE],
        picked,
        [2],
        fixed=[1],
        empty=[NO_INDICES, SHAPE, DENSE],
        special=[INDICES, n(3, 4), np.resize(ODD, (3, 4))],
        tensorflow=lambda tf, i, s, d: tf.gather_nd(d, i),
    ),
    Case(
        "SparsePick",
        conversion.sparse_pick,
        [REPEATED, SHAPE, DENSE[:, 1:2]],
        picked,
        [2],
        fixed=[1],
        empty=[NO_INDICES, n(3, 0), np.zeros((3, 1))],
        note="broadcast column",
    ),
    Case("SparsePick", conversion.sparse_pick, [INDICES, SHAPE, DENSE[0]], picked, [2], note="row"),
    Case("SparsePick", conversion.sparse_pick, [INDICES, SHAPE, f(2.5)], picked, [2], note="one"),
    Case(
        "SparseSumInto",
        conversion.sparse_sum_into,
        [REPEATED, SHAPE, VALUES, SHAPE],
        summed,
        [2],
        fixed=[1, 3],
        empty=[NO_INDICES, SHAPE, NO_VALUES, SHAPE],
        special=[INDICES, SHAPE, WEIRD, SHAPE],
        tensorflow=lambda tf, i, s, v, t: tf.scatter_nd(i, v, t),
    ),
    Case(
        "SparseSumInto",
        conversion.sparse_sum_into,
        [TURNED, SHAPE, VALUES, n(3, 1)],
        summed,
        [2],
        fixed=[1, 3],
        empty=[NO_INDICES, n(0, 4), NO_VALUES, n(0, 1)],
        note="columns",
    ),
    Case(
        "SparseSumInto",
        conversion.sparse_sum_into,
        [TURNED, SHAPE, VALUES, n(4)],
        summed,
        [2],
        fixed=[1, 3],
        note="rows",
    ),
    Case(
        "SparseToDense",
        conversion.sparse_to_dense,
        [INDICES, SHAPE, VALUES, f(7.0)],
        dense_of,
        [2, 3],
        fixed=[1],
        empty=[NO_INDICES, n(3, 0), NO_VALUES, f(7.0)],
        special=[INDICES, SHAPE, WEIRD, f(np.nan)],
        tensorflow=lambda tf, i, s, v, d: tf.sparse.to_dense(sparse(tf, i, s, v), d),
    ),
    Case(
        "SparseToDense",
        lambda *args: conversion.sparse_to_dense(*args, validate_indices=False),
        [TURNED, SHAPE, VALUES, f(7.0)],
        dense_of,
        [2, 3],
        fixed=[1],
        note="any order",
        tensorflow=lambda tf, i, s, v, d: tf.sparse.to_dense(
            sparse(tf, i, s, v), d, validate_indices=False
        ),
    ),
    Case(
        "DenseToSparse",
        conversion.dense_to_sparse,
        [f([[0.0, 2.0, -1.0], [0.0, 0.0, 3.0]])],
        nonzero,
        empty=[np.zeros((0, 3))],
        special=[ODD],
        by_value=True,
        tensorflow=lambda tf, x: (tf.sparse.from_dense(x).indices, tf.sparse.from_dense(x).values),
    ),
    # Where an element is zero there is no gradient.
    Case(
        "DenseToSparse",
        conversion.dense_to_sparse,
        [SOME],
        nonzero,
        [0],
        note="full",
        by_value=True,
    ),
]

CASES = [*CONVERSION]
