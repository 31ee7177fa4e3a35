"""Cumulative sums, products and sums of exponentials."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.model import dtypes
from flowbook.graph.ops.reduction import scans
from tests.op_cases.case import CUBE, NONE, Array, Case, f

VALUES = f([[0.5, -1.5, 2.0, 1.0], [3.0, -0.25, 0.0, 0.75], [1.0, 2.0, -2.0, 0.5]])
SETTINGS = [
    (axis, exclusive, reverse)
    for axis in (0, -1)
    for exclusive in (False, True)
    for reverse in (False, True)
]


def _scan(x: Array, axis: int, exclusive: bool, reverse: bool, reduce: Any) -> Array:
    """Each result from all that belongs to it."""
    rows = np.moveaxis(x, axis, 0)
    length = len(rows)
    found = []
    for k in range(length):
        first, last = (k + exclusive, length) if reverse else (0, k + 1 - exclusive)
        found.append(reduce(rows[first:last]))
    return np.moveaxis(np.array(found).reshape(rows.shape), 0, axis)


def _logsumexp(rows: Array) -> Array:
    return np.log(np.sum(np.exp(rows), 0))


def scanned(
    type: str, public: Any, name: str, reduce: Any, special: Array | None, **options: Any
) -> list[Case]:
    return [
        Case(
            type,
            lambda x, s=setting: public(x, *s),
            [VALUES],
            lambda x, s=setting: _scan(x, *s, reduce),
            # What begins with -inf has no finite sum; test_scans.py differentiates it.
            [] if type == "CumulativeLogsumexp" and setting[1] else [0],
            empty=[NONE],
            special=None if special is None else [special],
            note=f"{setting[0]}{'-exclusive' * setting[1]}{'-reverse' * setting[2]}",
            tensorflow=lambda tf, x, s=setting: getattr(tf.math, name)(x, *s),
            **options,
        )
        for setting in SETTINGS
    ]


def recurrence(a: Array, b: Array, reverse: bool, own: bool) -> Array:
    """Along the last axis, one after the other."""
    length = a.shape[-1]
    found = np.zeros(np.broadcast_shapes(a.shape, b.shape))
    order = range(length - 1, -1, -1) if reverse else range(length)
    before = None
    for k in order:
        found[..., k] = a[..., k]
        if before is not None:
            found[..., k] += b[..., k if own else before] * found[..., before]
        before = k
    return found


ODD_SCAN = f([[np.inf, 1.0, 0.0, 2.0], [1.0, np.nan, -np.inf, 1.0]])

CASES = [
    *scanned("Cumsum", scans.cumsum, "cumsum", lambda rows: rows.sum(0), ODD_SCAN),
    *scanned("Cumprod", scans.cumprod, "cumprod", lambda rows: rows.prod(0), None),
    *scanned(
        "CumulativeLogsumexp",
        scans.cumulative_logsumexp,
        "cumulative_logsumexp",
        _logsumexp,
        None,
        tolerance=4,
    ),
    Case(
        "CumulativeLogsumexp",
        scans.cumulative_logsumexp,
        [f([-np.inf, -np.inf, -1e30, 1e30, 1e30, 0.0])],
        lambda x: f([-np.inf, -np.inf, -1e30, 1e30, 1e30, 1e30]),
        only=[dtypes.float32, dtypes.float64],
        note="far-out",
    ),
    Case(
        "CumulativeLogsumexp",
        scans.cumulative_logsumexp,
        [f([700.0, -700.0, 705.0, 0.0, 705.0])],
        lambda x: np.array([np.logaddexp.reduce(x[: k + 1]) for k in range(5)]),
        [0],
        only=[dtypes.float64],
        note="steep",
    ),
    *(
        Case(
            "LinearRecurrence",
            lambda a, b, o=own, r=reverse: scans.linear_recurrence(a, b, axis=1, reverse=r, own=o),
            [VALUES[:2], VALUES[1:]],
            lambda a, b, o=own, r=reverse: recurrence(a, b, r, o),
            [0, 1],
            empty=[NONE, NONE],
            only=[dtypes.float16, dtypes.float32, dtypes.float64],
            tolerance=4,
            note=f"{'own' if own else 'before'}{'-reverse' * reverse}",
        )
        for own in (True, False)
        for reverse in (True, False)
    ),
    *(
        Case(
            "LinearRecurrence",
            lambda a, b, o=own: scans.linear_recurrence(a, b, axis=1, reverse=o, own=o),
            [np.linspace(-2, 2, 320).reshape(80, 4), np.linspace(0.5, 1.5, 320).reshape(80, 4)],
            lambda a, b, o=own: recurrence(a, b, o, o),
            only=[dtypes.float32, dtypes.float64],
            note=f"many-rows-{own}",
        )
        for own in (True, False)
    ),
    *(
        Case(
            "ShiftByOne",
            lambda x, r=reverse: scans.shift_by_one(x, axis=1, reverse=r),
            [CUBE],
            lambda x, r=reverse: np.stack(
                [x[:, 1], x[:, 2], 0 * x[:, 0]] if r else [0 * x[:, 0], x[:, 0], x[:, 1]], 1
            ),
            [0],
            empty=[np.zeros((0, 3, 2))],
            note="reverse" if reverse else "",
        )
        for reverse in (True, False)
    ),
]
