"""Parts by vectors of indices and by conditions, and parts put together."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.model import dtypes
from flowbook.graph.ops.arrays import dynamic_partition, indexing_nd, masking
from flowbook.graph.ops.math import comparison
from tests.op_cases.case import (
    CUBE,
    NONE,
    SOME,
    TRUTH,
    Case,
    Scenario,
    f,
    i,
)

PLACES = i([[0, 2], [1, 0], [0, 2]])
NINE = np.arange(9.0).reshape(3, 3) % 4


def _scattered(k: Any, x: Any, s: Any) -> Any:
    found = np.full(tuple(s), b"" if x.dtype == object else 0, x.dtype)
    np.add.at(found, tuple(np.moveaxis(np.asarray(k), -1, 0)), x)
    return found


def _updated(x: Any, k: Any, u: Any) -> Any:
    found = np.array(x)
    for place, row in zip(np.asarray(k).tolist(), u, strict=True):
        found[tuple(place)] = row
    return found


CASES = [
    Case(
        "GatherNd",
        indexing_nd.gather_nd,
        [CUBE, PLACES],
        lambda x, k: x[k[:, 0], k[:, 1]],
        [0],
        empty=[CUBE, np.zeros((0, 2), np.int32)],
        tensorflow=lambda tf, x, k: tf.gather_nd(x, k),
    ),
    Case(
        "GatherNd",
        indexing_nd.gather_nd,
        [SOME, i([[[1, 2]], [[0, 0]]])],
        lambda x, k: np.array([[x[1, 2]], [x[0, 0]]]),
        [0],
        tensorflow=lambda tf, x, k: tf.gather_nd(x, k),
        note="elements",
    ),
    Case(
        "GatherNd",
        lambda x, k: indexing_nd.gather_nd(x, k, batch_dims=1),
        [CUBE, i([[[2], [0]], [[1], [1]]])],
        lambda x, k: np.stack([x[0, [2, 0]], x[1, [1, 1]]]),
        [0],
        tensorflow=lambda tf, x, k: tf.gather_nd(x, k, batch_dims=1),
        note="batch",
    ),
    Case(
        "GatherNd",
        indexing_nd.gather_nd,
        [SOME, np.zeros((2, 0), np.int32)],
        lambda x, k: np.stack([x, x]),
        [0],
        tensorflow=lambda tf, x, k: tf.gather_nd(x, k),
        note="whole",
    ),
    Case(
        "ScatterNd",
        indexing_nd.scatter_nd,
        [PLACES, f([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), i([2, 3, 2])],
        _scattered,
        [1],
        fixed=[2],
        empty=[np.zeros((0, 2), np.int32), np.zeros((0, 2)), i([2, 3, 2])],
        tensorflow=lambda tf, k, x, s: tf.scatter_nd(k, x, s),
    ),
    Case(
        "ScatterNd",
        lambda k, x, s: indexing_nd.scatter_nd_op(k, x, s, batch_dims=1),
        [i([[[2], [0]], [[1], [1]]]), SOME[:, :2], i([2, 3])],
        lambda k, x, s: np.stack([_scattered(*row, s[1:]) for row in zip(k, x, strict=True)]),
        [1],
        fixed=[2],
        note="batch",
    ),
    Case(
        "Add",
        lambda u: indexing_nd.tensor_scatter_nd_add(u[:2] * 0.5, PLACES, u[2]),
        [NINE],
        lambda u: u[:2] * 0.5 + _scattered(PLACES, u[2], (2, 3)),
        [0],
        only=[dtypes.float64],
        tensorflow=lambda tf, u: tf.tensor_scatter_nd_add(u[:2] * 0.5, PLACES, u[2]),
        note="tensor-scatter-nd",
    ),
    Case(
        "Sub",
        lambda u: indexing_nd.tensor_scatter_nd_sub(u[:2] * 0.5, PLACES, u[2]),
        [NINE],
        lambda u: u[:2] * 0.5 - _scattered(PLACES, u[2], (2, 3)),
        [0],
        only=[dtypes.float64],
        tensorflow=lambda tf, u: tf.tensor_scatter_nd_sub(u[:2] * 0.5, PLACES, u[2]),
        note="tensor-scatter-nd",
    ),
    Case(
        "TensorScatterUpdate",
        indexing_nd.tensor_scatter_nd_update,
        [SOME, PLACES, f(7.0, 8.0, 9.0)],
        _updated,
        [0, 2],
        empty=[SOME, np.zeros((0, 2), np.int32), np.zeros(0)],
        tensorflow=lambda tf, x, k, u: tf.tensor_scatter_nd_update(x, k, u),
    ),
    Case(
        "TensorScatterUpdate",
        indexing_nd.tensor_scatter_nd_update,
        [CUBE, i([[1], [0]]), CUBE[:, ::-1] + 1],
        lambda x, k, u: u[::-1],
        [0, 2],
        tensorflow=lambda tf, x, k, u: tf.tensor_scatter_nd_update(x, k, u),
        note="rows",
    ),
    Case(
        "TensorScatterUpdateGrad",
        indexing_nd.update_gradient_op,
        [SOME, PLACES],
        lambda dy, k: np.array([0.0, dy[1, 0], dy[0, 2]], dy.dtype)[: len(k)],
        [0],
        empty=[SOME, np.zeros((0, 2), np.int32)],
    ),
    Case(
        "TrueIndices",
        comparison.where,
        [SOME * TRUTH],
        lambda x: np.argwhere(x),
        empty=[NONE],
        special=[f(np.nan, 0.0, -0.0, np.inf)],
        by_value=True,
        tensorflow=lambda tf, x: tf.where(x),
    ),
    Case(
        "BooleanMask",
        masking.boolean_mask,
        [CUBE, TRUTH],
        lambda x, m: x[np.asarray(m, bool)],
        [0],
        empty=[np.zeros((0, 3, 2)), np.zeros((0, 3), bool)],
        by_value=True,
        tensorflow=lambda tf, x, m: tf.boolean_mask(x, m),
    ),
    Case(
        "BooleanMask",
        lambda x, m: masking.boolean_mask(x, m, axis=1),
        [CUBE, TRUTH[0]],
        lambda x, m: x[:, [0, 2]],
        [0],
        by_value=True,
        tensorflow=lambda tf, x, m: tf.boolean_mask(x, m, axis=1),
        note="axis",
    ),
    Case(
        "BooleanMaskGrad",
        lambda dy, m, s: masking.boolean_mask_gradient_op(dy, m, s, axis=1),
        [SOME[:, :2], TRUTH[0], i([2, 3])],
        lambda dy, m, s: np.stack([dy[:, 0], 0 * dy[:, 0], dy[:, 1]], 1),
        [0],
        fixed=[2],
        empty=[np.zeros((0, 2)), TRUTH[0], i([0, 3])],
    ),
    Case(
        "DynamicPartition",
        lambda x, k: dynamic_partition.dynamic_partition(x, k, 3),
        [SOME, i([2, 0])],
        lambda x, k: (x[1:], x[:0], x[:1]),
        [0],
        empty=[NONE, i([])],
        by_value=True,
        tensorflow=lambda tf, x, k: tf.dynamic_partition(x, k, 3),
    ),
    Case(
        "DynamicPartition",
        lambda x, k: dynamic_partition.dynamic_partition(x, k, 2),
        [CUBE, i([[1, 0, 1], [0, 0, 1]])],
        lambda x, k: (
            np.stack([x[0, 1], x[1, 0], x[1, 1]]),
            np.stack([x[0, 0], x[0, 2], x[1, 2]]),
        ),
        [0],
        by_value=True,
        tensorflow=lambda tf, x, k: tf.dynamic_partition(x, k, 2),
        note="matrix",
    ),
    Case(
        "DynamicStitch",
        lambda k, x, y: dynamic_partition.dynamic_stitch([k, [[3], [0]]], [x, y]),
        [i([0, 1, 2]), np.concatenate([SOME, SOME[:1] + 1]), SOME[:, None] - 7],
        lambda k, x, y: np.stack([y[1, 0], x[1], x[2], y[0, 0]]),
        [1, 2],
        by_value=True,
        tensorflow=lambda tf, k, x, y: tf.dynamic_stitch([k, [[3], [0]]], [x, y]),
    ),
    Case(
        "DynamicStitchGrad",
        lambda dy, k: dynamic_partition.stitch_gradient_op(dy, [k, [0]], Tout=(dy.dtype,) * 2),
        [SOME, i([0, 1])],
        lambda dy, k: (np.stack([0 * dy[0], dy[1]]), dy[:1]),
        [0],
    ),
    Case(
        "Less",
        lambda n, m: masking.sequence_mask(n, m),
        [i([[1, 3], [0, 2]]), i(4)],
        lambda n, m: np.arange(4) < np.asarray(n)[..., None],
        fixed=[1],
        only=[dtypes.int32],
        tensorflow=lambda tf, n, m: tf.sequence_mask(n, m),
        note="sequence-mask",
    ),
]

SCENARIOS = [
    Scenario(type, "tests/graph/ops/arrays/test_scattering.py")
    for type in (
        "ScatterMul",
        "ScatterDiv",
        "ScatterMax",
        "ScatterMin",
        "ScatterNdAdd",
        "ScatterNdSub",
        "ScatterNdUpdate",
        "StridedSliceAssign",
    )
]
