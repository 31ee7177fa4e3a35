"""What makes tensors from shapes and bounds."""

from __future__ import annotations

import numpy as np

from flowbook.graph import dtypes
from flowbook.graph.ops import (
    filling,
)
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
    ),
    Case("ZerosLike", filling.zeros_like, [SOME], lambda x: np.zeros(x.shape), empty=[NONE]),
    Case("OnesLike", filling.ones_like, [SOME], lambda x: np.ones(x.shape), empty=[NONE]),
    Case(
        "Range",
        filling.range_op,
        [f(1.0), f(9.0), f(3.0)],
        lambda a, b, c: np.arange(a, b, c),
        fixed=[0, 1, 2],
        empty=[f(3.0), f(1.0), f(1.0)],
    ),
    Case(
        "LinSpace",
        filling.linspace,
        [f(1.0), f(9.0), i(5)],
        lambda a, b, n: np.linspace(a, b, 5),
        [0, 1],
        fixed=[2],
    ),
    Case(
        "Eye",
        lambda n, m: filling.eye(n, m, dtypes.int64),
        [i(2), i(3)],
        lambda n, m: np.eye(int(n), int(m)),
        fixed=[0, 1],
        empty=[i(0), i(3)],
    ),
]
