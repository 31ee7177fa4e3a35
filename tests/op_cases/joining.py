"""Joining, splitting, growing."""

from __future__ import annotations

import numpy as np

from flowbook.graph.ops import (
    growing,
    joining,
)
from tests.op_cases.case import (
    NONE,
    OTHER,
    SOME,
    Case,
    f,
    i,
)

CASES = [
    Case(
        "Concat",
        lambda x, y: joining.concat([x, y], 1),
        [SOME, OTHER[:, :2]],
        lambda x, y: np.concatenate([x, y], 1),
        [0, 1],
        empty=[NONE, np.zeros((0, 2))],
    ),
    Case("Concat", lambda x: joining.concat([x], -1), [SOME], lambda x: x, [0], note="one"),
    Case(
        "ConcatGrad",
        lambda dy, s, t: joining.concat_gradient_op(dy, [s, t], axis=1, Tout=(dy.dtype,) * 2),
        [SOME, i([2, 1]), i([2, 2])],
        lambda dy, s, t: (dy[:, :1], dy[:, 1:]),
        [0],
        fixed=[1, 2],
        empty=[NONE, i([0, 1]), i([0, 2])],
        by_value=True,
    ),
    Case(
        "Split",
        lambda x: joining.split(x, [1, 2, 0], 1),
        [SOME],
        lambda x: (x[:, :1], x[:, 1:], x[:, 3:]),
        [0],
        empty=[NONE],
    ),
    Case(
        "Stack",
        lambda x, y: joining.stack([x, y], -1),
        [SOME, OTHER],
        lambda x, y: np.stack([x, y], -1),
        [0, 1],
        empty=[NONE, NONE],
    ),
    Case(
        "Stack",
        lambda x, y: joining.stack([x, y]),
        [f(1.0), f(2.0)],
        lambda x, y: np.stack([x, y]),
        [0, 1],
        note="scalars",
    ),
    Case(
        "Unstack",
        lambda x: joining.unstack(x, 3, 1),
        [SOME],
        lambda x: (x[:, 0], x[:, 1], x[:, 2]),
        [0],
        empty=[NONE],
    ),
    Case(
        "Tile",
        growing.tile,
        [SOME, i([2, 3])],
        np.tile,
        [0],
        fixed=[1],
        empty=[SOME, i([0, 2])],
    ),
    Case(
        "Pad",
        growing.pad,
        [SOME, i([[1, 0], [0, 2]]), f(7.0)],
        lambda x, p, v: np.vstack([np.full((1, 5), v), np.hstack([x, np.full((2, 2), v)])]),
        [0, 2],
        fixed=[1],
        empty=[np.zeros((1, 0)), i([[1, 0], [0, 5]]), f(7.0)],
    ),
]
