"""Reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowbook.graph import dtypes
from flowbook.graph.ops import (
    products,
    reductions,
)
from tests.op_cases.case import (
    NONE,
    POSITIVE,
    SOME,
    TRUTH,
    Array,
    Case,
    f,
)


def reduction(
    public: Callable[..., Any],
    type: str,
    reference: Callable[..., Any],
    inputs: Array,
    *,
    smooth: bool = True,
    empty: Array = NONE,
    special: Array | None = None,
    **options: Any,
) -> list[Case]:
    """A reduction over all axes, one, several, none, and with its axes kept."""
    return [
        Case(
            type,
            lambda x, axis=axis, keepdims=keepdims: public(x, axis, keepdims),
            [inputs],
            lambda x, axis=axis, keepdims=keepdims: reference(x, axis=axis, keepdims=keepdims),
            [0] if smooth else [],
            empty=[empty],
            special=None if special is None else [special],
            note=f"{axis}{'-kept' if keepdims else ''}",
            **options,
        )
        for axis, keepdims in (
            (None, False),
            (0, False),
            (-1, True),
            ((0, 1), False),
            ((1, -2), True),
            ((), False),
            (None, True),
        )
    ]


def _logsumexp(x: Array, axis: Any, keepdims: bool) -> Array:
    return np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims))


ODD_ROWS = f([[np.nan, np.inf, 1.0], [-np.inf, np.inf, 2.0], [-np.inf, -np.inf, -np.inf]])

CASES = [
    *reduction(reductions.reduce_sum, "Sum", np.sum, POSITIVE, special=ODD_ROWS),
    *reduction(
        reductions.reduce_mean,
        "Mean",
        lambda x, axis, keepdims: (
            np.sum(x, axis=axis, keepdims=keepdims)
            / (x.size // max(np.sum(x, axis=axis, keepdims=keepdims).size, 1))
        ),
        SOME,
        special=ODD_ROWS,
    ),
    *reduction(reductions.reduce_prod, "Prod", np.prod, POSITIVE, special=ODD_ROWS),
    *reduction(
        reductions.reduce_max,
        "Max",
        _no_elements := lambda x, axis, keepdims: np.max(
            x, axis=axis, keepdims=keepdims, initial=-np.inf
        ),
        SOME,
        special=ODD_ROWS[:1],
    ),
    *reduction(
        reductions.reduce_min,
        "Min",
        lambda x, axis, keepdims: np.min(x, axis=axis, keepdims=keepdims, initial=np.inf),
        SOME,
        special=ODD_ROWS[:1],
    ),
    *reduction(
        reductions.reduce_any, "Any", np.any, TRUTH, smooth=False, empty=np.zeros((0, 3), bool)
    ),
    *reduction(
        reductions.reduce_all, "All", np.all, TRUTH, smooth=False, empty=np.zeros((0, 3), bool)
    ),
    *reduction(
        reductions.reduce_logsumexp, "LogSumExp", _logsumexp, SOME, special=ODD_ROWS, tolerance=4
    ),
    Case(
        "Prod",
        lambda x: reductions.reduce_prod(x, 1),
        [f([[0.0, 2.0, 3.0], [0.0, 0.0, 3.0], [1.5, 2.0, -1.0]])],
        lambda x: np.prod(x, axis=1),
        [0],
        only=[dtypes.float32, dtypes.float64],
        note="with-zeros",
    ),
    Case(
        "ProductOfOthers",
        lambda x: products.product_of_others(x, axis=(1,)),
        [f([[0.0, 2.0, 3.0], [0.0, 0.0, 3.0], [1.5, 2.0, -1.0]])],
        lambda x: np.stack([np.prod(np.delete(x, k, 1), axis=1) for k in range(3)], 1),
        [0],
        twice=False,
        empty=[NONE],
    ),
    Case(
        "ProductOfOthersGrad",
        lambda x, dy: products.product_of_others_gradient(x, [dy], axis=(1,)),
        [f([[0.0, 2.0], [1.5, -1.0]]), f([[1.0, 3.0], [0.5, 2.0]])],
        lambda x, dy: dy[:, ::-1],
        empty=[np.zeros((0, 2)), np.zeros((0, 2))],
    ),
    Case(
        "ArgMax",
        lambda x: reductions.argmax(x, 1),
        [f([[1.0, 5.0, 5.0], [7.0, 2.0, 3.0]])],
        lambda x: np.argmax(x, 1),
        empty=[NONE],
    ),
    Case(
        "ArgMin",
        lambda x: reductions.argmin(x, -1),
        [f([[4.0, 1.0, 1.0], [7.0, 2.0, 3.0]])],
        lambda x: np.argmin(x, 1),
        empty=[NONE],
    ),
    Case("ArgMax", reductions.argmax, [f([3.0, 9.0, 1.0])], np.argmax, note="vector"),
]
