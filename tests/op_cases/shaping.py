"""Shapes and their changes."""

from __future__ import annotations

import numpy as np

from flowbook.graph import dtypes
from flowbook.graph.ops import (
    broadcasting,
    shaping,
)
from tests.op_cases.case import (
    CUBE,
    NONE,
    SOME,
    Case,
    f,
    i,
)

CASES = [
    Case("Shape", shaping.shape, [SOME], lambda x: np.array(np.shape(x)), empty=[NONE]),
    Case(
        "Shape",
        lambda x: shaping.shape(x, dtypes.int64),
        [f(3.0)],
        lambda x: np.array([], np.int64),
        note="scalar",
    ),
    Case("Size", shaping.size, [SOME], np.size, empty=[NONE]),
    Case("Rank", shaping.rank, [SOME], np.ndim, empty=[NONE]),
    Case(
        "Reshape",
        shaping.reshape,
        [SOME, i([3, -1])],
        lambda x, shape: np.reshape(x, shape),
        [0],
        fixed=[1],
        empty=[NONE, i([3, -1])],
    ),
    Case(
        "Reshape",
        shaping.reshape,
        [f([3.0]), i([])],
        lambda x, s: np.reshape(x, ()),
        [0],
        fixed=[1],
        note="scalar",
    ),
    Case(
        "ExpandDims",
        lambda x: shaping.expand_dims(x, -2),
        [SOME],
        lambda x: np.expand_dims(x, -2),
        [0],
        empty=[NONE],
    ),
    Case(
        "ExpandDims",
        lambda x: shaping.expand_dims(x, (0, 2)),
        [f(2.0, 3.0)],
        lambda x: np.expand_dims(x, (0, 2)),
        [0],
        note="several",
    ),
    Case(
        "Squeeze", shaping.squeeze, [CUBE[:1, :, :1]], np.squeeze, [0], empty=[np.zeros((1, 0, 1))]
    ),
    Case(
        "Squeeze",
        lambda x: shaping.squeeze(x, -1),
        [CUBE[:1, :, :1]],
        lambda x: np.squeeze(x, -1),
        [0],
        note="axis",
    ),
    Case("Transpose", shaping.transpose, [CUBE], np.transpose, [0], empty=[np.zeros((2, 0))]),
    Case(
        "Transpose",
        lambda x: shaping.transpose(x, [1, -1, 0]),
        [CUBE],
        lambda x: np.transpose(x, [1, 2, 0]),
        [0],
        note="perm",
    ),
    Case(
        "BroadcastTo",
        broadcasting.broadcast_to,
        [SOME[:, :1], i([3, 2, 4])],
        np.broadcast_to,
        [0],
        fixed=[1],
        empty=[SOME[:, :1], i([0, 2, 4])],
    ),
    Case(
        "SumToShape",
        broadcasting.sum_to_shape_op,
        [CUBE % 5, i([3, 1])],
        lambda x, s: x.sum(axis=(0, 2))[:, None],
        [0],
        fixed=[1],
        empty=[np.zeros((0, 3, 4)), i([3, 1])],
    ),
]
