"""What makes tensors from shapes and bounds."""

from __future__ import annotations

import numpy as np

from flowbook.graph.model import dtypes
from flowbook.graph.ops.basis import constants, filling
from tests.op_cases.case import (
    NONE,
    SOME,
    Case,
    f,
    i,
)

CASES = [
    Case(
        "Fill",
        filling.fill,
        [i([2, 3]), f(1.5)],
        np.full,
        [1],
        fixed=[0],
        empty=[i([0, 3]), f(1.5)],
        tensorflow=lambda tf, dims, value: tf.fill(dims, value),
    ),
    Case(
        "ZerosLike",
        constants.zeros_like_op,
        [SOME],
        lambda x: np.full(x.shape, b"" if x.dtype.kind == "O" else 0),
        empty=[NONE],
        tensorflow=lambda tf, x: tf.zeros_like(x),
    ),
    Case(
        "OnesLike",
        constants.ones_like_op,
        [SOME],
        lambda x: np.ones(x.shape),
        empty=[NONE],
        tensorflow=lambda tf, x: tf.ones_like(x),
    ),
    Case(
        "Range",
        filling.range_op,
        [f(1.0), f(9.0), f(3.0)],
        lambda a, b, c: np.arange(a, b, c),
        fixed=[0, 1, 2],
        empty=[f(3.0), f(1.0), f(1.0)],
        tensorflow=lambda tf, a, b, c: tf.range(a, b, c),
    ),
    Case(
        "LinSpace",
        filling.linspace,
        [f(1.0), f(9.0), i(5)],
        lambda a, b, n: np.linspace(a, b, 5),
        [0, 1],
        fixed=[2],
        tensorflow=lambda tf, a, b, n: tf.linspace(a, b, n),
    ),
    Case(
        "Eye",
        lambda n, m: filling.eye(n, m, dtype=dtypes.int64),
        [i(2), i(3)],
        lambda n, m: np.eye(int(n), int(m)),
        fixed=[0, 1],
        empty=[i(0), i(3)],
        tensorflow=lambda tf, n, m: tf.eye(n, m, dtype=tf.int64),
    ),
    Case(
        "BroadcastTo",
        lambda n, m: filling.eye(n, m, batch_shape=[2, 1], dtype=dtypes.int64),
        [i(2), i(3)],
        lambda n, m: np.broadcast_to(np.eye(2, 3), (2, 1, 2, 3)),
        fixed=[0, 1],
        tensorflow=lambda tf, n, m: tf.eye(int(n), int(m), [2, 1], tf.int64),
        only=[dtypes.int32],
        note="eye",
    ),
    Case(
        "BroadcastTo",
        lambda x, y: filling.meshgrid(filling.range(x), filling.range(y)),
        [i(2), i(3)],
        lambda x, y: tuple(np.meshgrid(np.arange(2), np.arange(3))),
        fixed=[0, 1],
        only=[dtypes.int32],
        tensorflow=lambda tf, x, y: tf.meshgrid(tf.range(x), tf.range(y)),
        note="meshgrid",
    ),
]
