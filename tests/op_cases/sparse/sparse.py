"""Sparse tensors: operations on indices, values and dense shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.model.dtypes import FLOATS
from flowbook.graph.ops.sparse import arithmetic as arithmetic
from flowbook.graph.ops.sparse import arranging as arranging
from flowbook.graph.ops.sparse import conversion as conversion
from flowbook.graph.ops.sparse import parts as parts
from flowbook.graph.ops.sparse import products as products
from flowbook.graph.ops.sparse import selecting as selecting
from tests.op_cases.case import CUBE, ODD, SOME, Array, Case, Scenario, f, i


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


# Arranging


def ordered(indices: Array, shape: Array) -> Array:
    rows = indices.tolist()
    return np.array(sorted(range(len(rows)), key=lambda k: (rows[k], k)), np.int64)


def reshaped(indices: Array, shape: Array, new: Array) -> tuple[Array, Array]:
    unknown = np.prod(shape) // np.prod([d for d in new if d >= 0])
    dims = np.array([unknown if d < 0 else d for d in new], np.int64)
    flat = np.ravel_multi_index(tuple(indices.T), tuple(shape))
    return np.stack(np.unravel_index(flat, tuple(dims)), axis=1).reshape(-1, len(dims)), dims


def sliced(indices: Array, shape: Array, start: Array, size: Array) -> tuple[Array, Array]:
    kept = [
        k
        for k, index in enumerate(indices.tolist())
        if all(b <= i < b + s for i, b, s in zip(index, start, size, strict=True))
    ]
    return np.array(kept, np.int64), (indices[kept] - start).reshape(-1, indices.shape[1])


def joined(shapes: Array, *indices: Array) -> tuple[Array, Array]:
    moved = [each + n(0, sum(shapes[:k, 1])) for k, each in enumerate(indices)]
    return np.concatenate(moved), np.array([max(shapes[:, 0]), sum(shapes[:, 1])])


HUGE = n(2**62, 2**62)

ARRANGING = [
    Case(
        "SparseOrder",
        arranging.sparse_order,
        [REPEATED, SHAPE],
        ordered,
        fixed=[1],
        empty=[NO_INDICES, n(0, 4)],
    ),
    Case("SparseOrder", arranging.sparse_order, [INDICES, SHAPE], ordered, note="in order"),
    # Their product is beyond int64.
    Case(
        "SparseOrder",
        arranging.sparse_order,
        [TURNED + 2**60, HUGE],
        ordered,
        note="huge",
    ),
    Case(
        "SparseReshape",
        arranging.sparse_reshape,
        [TURNED, SHAPE, n(2, -1)],
        reshaped,
        fixed=[1, 2],
        empty=[NO_INDICES, n(3, 0), n(0, 5)],
        tensorflow=lambda tf, i, s, t: [
            (result := tf.sparse.reshape(tf.SparseTensor(i, np.arange(len(i)), s), t)).indices,
            result.dense_shape,
        ],
    ),
    Case(
        "SparseReshape",
        arranging.sparse_reshape,
        [INDICES, SHAPE, n(2, 3, 2)],
        reshaped,
        fixed=[1, 2],
        note="rank",
    ),
    Case(
        "SparseSlice",
        parts.sparse_slice,
        [TURNED, SHAPE, n(0, 1), n(3, 2)],
        sliced,
        fixed=[1, 2, 3],
        by_value=True,
        tensorflow=lambda tf, i, s, b, z: [
            (part := tf.sparse.slice(tf.SparseTensor(i, np.arange(len(i)), s), b, z)).values,
            part.indices,
        ],
    ),
    Case(
        "SparseConcat",
        lambda s, a, b: parts.sparse_concat(s, [a, b], axis=-1),
        [np.stack([SHAPE, n(3, 5)]), TURNED, INDICES],
        joined,
        fixed=[0],
        empty=[np.stack([SHAPE, n(3, 0)]), NO_INDICES, NO_INDICES],
    ),
    Case(
        "SparseConcat",
        lambda s, a, b: parts.sparse_concat(s, [a, b], axis=1, expand_nonconcat_dims=True),
        [np.stack([SHAPE, n(4, 5)]), TURNED, INDICES],
        joined,
        fixed=[0],
        note="expanded",
    ),
]


# Selecting


def filled(indices: Array, shape: Array) -> tuple[Array, Array, Array]:
    is_empty = np.array([row not in indices[:, 0] for row in range(shape[0])], dtype=bool)
    found = [(index, k) for k, index in enumerate(indices.tolist())]
    added = [0] * (len(shape) - 1)
    found += [([row, *added], len(indices)) for row in np.flatnonzero(is_empty).tolist()]
    found.sort(key=lambda pair: pair[0][0])
    new = np.array([index for index, _ in found], np.int64).reshape(-1, len(shape))
    return new, np.array([k for _, k in found], np.int64), is_empty


SELECTING = [
    Case(
        "SparseKept",
        selecting.sparse_kept,
        [np.array([True, False, True, True]), VALUES],
        lambda kept, v: np.array([k for k, yes in enumerate(kept) if yes]),
        by_value=True,
    ),
    Case(
        "SparseMask",
        selecting.sparse_mask,
        [np.array([4, 0, 7, 4], np.int32), np.array([4, 5], np.int32)],
        lambda indices, out: np.array([k for k, i in enumerate(indices) if i not in out]),
        by_value=True,
    ),
    Case(
        "SparseFillEmptyRows",
        selecting.sparse_fill_empty_rows,
        [TURNED, n(4, 4)],
        filled,
        fixed=[1],
        by_value=True,
        tensorflow=lambda tf, i, s: [
            (result := tf.sparse.fill_empty_rows(tf.SparseTensor(i, np.arange(4), s), 4))[
                0
            ].indices,
            result[0].values,
            result[1],
        ],
    ),
    Case(
        "SparseBounds",
        selecting.sparse_bounds,
        [TURNED],
        lambda indices: np.array([max(column) + 1 for column in indices.T]),
        tensorflow=lambda tf, i: (
            tf.sparse.reset_shape(tf.SparseTensor(i, np.arange(4), [9, 9])).dense_shape
        ),
    ),
    Case(
        "SparseResetShape",
        selecting.sparse_reset_shape,
        [SHAPE, n(3, 9)],
        lambda old, new: new,
        empty=[n(), n()],
    ),
]


# Arithmetic


def united(a: Array, _: Array, b: Array, __: Array) -> tuple[Array, Array]:
    rows = [*map(tuple, a.tolist()), *map(tuple, b.tolist())]
    found = sorted(set(rows))
    return np.array(found, np.int64), np.array([found.index(row) for row in rows])


def greatest(indices: Array, dense_shape: Array, values: Array, shape: Array) -> Array:
    result = np.zeros(tuple(shape), dtype=values.dtype)
    seen = set()
    for index, value in zip(indices.tolist(), values, strict=True):
        place = tuple(i if d > 1 else 0 for i, d in zip(index, shape, strict=True))
        result[place] = value if place not in seen else np.maximum(result[place], value)
        seen.add(place)
    return result


def softmax(values: Array, segments: Array) -> Array:
    result = np.zeros(len(values))
    for segment in set(segments.tolist()):
        chosen = segments == segment
        with np.errstate(all="ignore"):
            powers = np.exp(values[chosen] - values[chosen].max())
            result[chosen] = powers / powers.sum()
    return result


ARITHMETIC = [
    Case(
        "SparseUnion",
        arithmetic.sparse_union,
        [TURNED, SHAPE, n([0, 3], [1, 1], [2, 3], [0, 3]), SHAPE],
        united,
        fixed=[1, 3],
        by_value=True,
    ),
    Case(
        "SparseDenseAdd",
        arithmetic.sparse_dense_add,
        [REPEATED, SHAPE, VALUES, DENSE],
        lambda i, s, v, d: d + summed(i, s, v, s),
        [2, 3],
        fixed=[1],
        empty=[NO_INDICES, n(0, 4), NO_VALUES, np.zeros((0, 4))],
        special=[INDICES, SHAPE, WEIRD, np.resize(ODD, (3, 4))],
        tensorflow=lambda tf, i, s, v, d: tf.sparse.add(sparse(tf, i, s, v), d),
    ),
    Case(
        "SparseMaxInto",
        arithmetic.sparse_max_into,
        [TURNED, SHAPE, VALUES, n(3, 1)],
        greatest,
        [2],
        fixed=[1, 3],
        twice=False,  # It is zero: the gradient is piecewise constant.
        empty=[NO_INDICES, SHAPE, NO_VALUES, n(3, 1)],
        tensorflow=lambda tf, i, s, v, t: tf.sparse.reduce_max(
            tf.sparse.reorder(sparse(tf, i, s, v)), 1, True
        ),
    ),
    # NaN is the greatest, as for `reduce_max`; TensorFlow's depends on where it stands.
    Case(
        "SparseMaxInto",
        arithmetic.sparse_max_into,
        [REPEATED, SHAPE, VALUES, n(1, 4)],
        greatest,
        fixed=[1, 3],
        special=[INDICES, SHAPE, WEIRD, n(3, 1)],
        note="nan",
    ),
    Case(
        "SparseRowSegments",
        arithmetic.sparse_row_segments,
        [TURNED, SHAPE],
        lambda i, s: np.array([sorted(set(i[:, 0].tolist())).index(row) for row in i[:, 0]]),
        empty=[NO_INDICES, SHAPE],
    ),
    Case(
        "SparseSoftmax",
        arithmetic.sparse_softmax_op,
        [VALUES, n(0, 1, 0, 0)],
        softmax,
        [0],
        empty=[NO_VALUES, n()],
        special=[f([np.nan, -np.inf, 700.0, 800.0]), n(0, 1, 2, 2)],
        tolerance=4,
    ),
    Case(
        "SparseSoftmax",
        arithmetic.sparse_softmax_op,
        [f([0.5, 1.0, 2.0, -3.0]), n(0, 0, 1, 1)],
        softmax,
        [0],
        note="in order",
        tolerance=4,
        tensorflow=lambda tf, v, s: (
            tf.sparse.softmax(sparse(tf, n([0, 0], [0, 1], [1, 0], [1, 1]), n(2, 2), v)).values
        ),
    ),
]


# Products


def matrix_of(indices: Array, shape: Array, values: Array) -> Array:
    return summed(indices, shape, values, shape)


def _product_case(adjoint_a: bool, adjoint_b: bool, **options: Any) -> Case:
    b = DENSE[:2] if adjoint_b else DENSE[:2].T
    if adjoint_a:
        b = b[..., :3] if adjoint_b else b[:3]

    def reference(i: Array, s: Array, v: Array, b: Array) -> Array:
        a = matrix_of(i, s, v)
        return (a.conj().T if adjoint_a else a) @ (b.conj().T if adjoint_b else b)

    return Case(
        "SparseDenseMatMul",
        lambda i, s, v, b: products.sparse_product(
            i, s, v, b, adjoint_a=adjoint_a, adjoint_b=adjoint_b
        ),
        [TURNED, SHAPE, VALUES, b],
        reference,
        [2, 3],
        fixed=[1],
        tolerance=16,
        note=f"{adjoint_a}-{adjoint_b}",
        tensorflow=lambda tf, i, s, v, b: tf.sparse.sparse_dense_matmul(
            sparse(tf, i, s, v), b, adjoint_a, adjoint_b
        ),
        **options,
    )


def combined(combiner: str) -> Any:
    scale = {"sum": lambda k: 1, "mean": lambda k: k, "sqrt_n": np.sqrt}[combiner]

    def reference(data: Array, indices: Array, ids: Array, count: Array) -> Array:
        result = np.zeros((int(count), *data.shape[1:]), dtype=data.dtype)
        for k in range(int(count)):
            rows = data[indices[ids == k]]
            if len(rows):
                result[k] = rows.sum(axis=0) / scale(len(rows))
        return result

    return reference


def spread(combiner: str) -> Any:
    scale = {"sum": lambda k: 1, "mean": lambda k: k, "sqrt_n": np.sqrt}[combiner]

    def reference(segments: Array, ids: Array) -> Array:
        rows = [segments[k] / scale(np.sum(ids == k)) for k in ids]
        return np.array(rows).reshape((len(ids), *segments.shape[1:]))

    return reference


def _segment_cases(combiner: str) -> list[Case]:
    floats = None if combiner == "sum" else FLOATS
    ids, rows = np.array([0, 0, 0, 2], np.int32), np.array([1, 0, 1, 2], np.int32)
    return [
        Case(
            "SparseSegmentCombine",
            lambda *args: products.sparse_segment_op(*args, combiner=combiner),
            [CUBE.reshape(4, 3, 2) % 7, rows, ids, np.array(4, np.int32)],
            combined(combiner),
            [0],
            fixed=[3],
            empty=[np.zeros((3, 0)), rows, ids, np.array(4, np.int32)],
            special=[np.array([[1.0, np.nan], [np.inf, 1.0], [np.nan, -np.inf]]), rows, ids, i(4)],
            only=floats,
            tolerance=8,
            note=combiner,
            tensorflow=lambda tf, data, indices, ids, count: getattr(
                tf.compat.v1, f"sparse_segment_{combiner}"
            )(data, indices, ids, num_segments=count),
        ),
        Case(
            "SparseSegmentSpread",
            lambda *args: products.sparse_segment_spread(*args, combiner=combiner),
            [SOME, np.array([0, 0, 0, 1], np.int32)],
            spread(combiner),
            [0],
            empty=[np.zeros((2, 0)), np.array([0, 1], np.int32)],
            only=floats,
            tolerance=4,
            note=combiner,
        ),
    ]


PRODUCTS = [
    _product_case(False, False, empty=[NO_INDICES, n(3, 0), NO_VALUES, np.zeros((0, 2))]),
    _product_case(True, False, empty=[NO_INDICES, n(3, 0), NO_VALUES, np.zeros((3, 2))]),
    _product_case(False, True, empty=[NO_INDICES, SHAPE, NO_VALUES, np.zeros((0, 4))]),
    _product_case(True, True),
    Case(
        "SparseDenseMatMul",
        products.sparse_product,
        [REPEATED, SHAPE, VALUES, DENSE.T],
        lambda i, s, v, b: matrix_of(i, s, v) @ b,
        [2, 3],
        fixed=[1],
        tolerance=16,
        note="repeated",
    ),
    Case(
        "SparseSampledMatMul",
        products.sparse_sampled_product,
        [REPEATED, SHAPE, DENSE, CUBE[0, :, :].repeat(2, 0)[:4] % 5],
        lambda i, s, a, b: np.array([a[r] @ b[c].conj() for r, c in i]),
        [2, 3],
        fixed=[1],
        empty=[NO_INDICES, n(2, 3), np.zeros((2, 0)), np.zeros((3, 0))],
        tolerance=8,
    ),
    *(case for combiner in ("sum", "mean", "sqrt_n") for case in _segment_cases(combiner)),
]

SCENARIOS = [
    Scenario(type, "tests/graph/ops/sparse/test_serialising.py")
    for type in ("SparseSerializeMany", "SparseDeserializeMany")
]

CASES = [*CONVERSION, *ARRANGING, *SELECTING, *ARITHMETIC, *PRODUCTS]
