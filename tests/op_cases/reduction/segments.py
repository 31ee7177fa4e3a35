"""Rows combined by segment."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from flowbook.graph.model import dtypes
from flowbook.graph.ops.reduction import segment_products, segments, sorted_segments
from tests.op_cases.case import (
    NONE,
    SOME,
    Array,
    Case,
    f,
    i,
)

ROWS = f([[1.0, -2.0], [3.0, 4.0], [-5.0, 6.0], [0.5, 8.0], [2.5, -1.0]])
IDS, ANY = i([0, 0, 0, 2, 2]), i([2, 0, -1, 2, 2])
# Fewer rows with a NaN or an infinity in a segment than without.
WILD = f([[np.nan, 1.0], [1.0, np.inf], [2.0, -np.inf], [-0.0, 0.0], [0.0, -0.0]])


def each(of: Callable[[Array], Any], empty: float, count: int | None = None) -> Any:
    """A reference: a function of each segment's rows, `empty` for those without."""

    def reference(x: Array, ids: Array, *_: Any) -> Array:
        n = count if count is not None else int(np.max(ids, initial=-1)) + 1
        dtype = x.dtype if x.dtype.kind == "c" else float
        found = np.full((n, *x.shape[np.ndim(ids) :]), empty, dtype)
        for k in range(n):
            if (np.asarray(ids) == k).any():
                found[k] = of(x[np.asarray(ids) == k])
        return found

    return reference


def _sorted(name: str, of: Callable[[Array], Any], empty: float = 0, **options: Any) -> Case:
    op = getattr(sorted_segments, name)
    return Case(
        op.type,
        op,
        [ROWS, IDS],
        each(of, empty),
        [0],
        empty=[np.zeros((0, 2)), i([])],
        by_value=True,
        tensorflow=lambda tf, x, k: getattr(tf.math, name)(x, k),
        **options,
    )


def _unsorted(
    type: str,
    name: str,
    of: Callable[[Array], Any],
    ids: Array = ANY,
    empty: float = 0,
    **options: Any,
) -> Case:
    return Case(
        type,
        getattr(segments, name),
        [ROWS, ids, i(3)],
        each(of, empty, 3),
        # The limits swallow every difference that a numeric gradient is made of.
        [0] if abs(empty) <= 1 else [],
        fixed=[2],
        tensorflow=lambda tf, x, k, n: getattr(tf.math, name)(x, k, n),
        **options,
    )


SORTED = [
    _sorted("segment_sum", lambda rows: rows.sum(0)),
    _sorted("segment_mean", lambda rows: rows.mean(0)),
    _sorted("segment_max", lambda rows: rows.max(0)),
    _sorted("segment_min", lambda rows: rows.min(0)),
    _sorted("segment_prod", lambda rows: rows.prod(0), 1, tolerance=4),
]

# Integers have other limits than floats: rows with empty segments are about floats.
LOWEST = float(np.finfo(np.float64).min)
FULL = i([2, 0, -1, 2, 1])

FACTORS = f([[0.0, 2.0], [3.0, 0.0], [1.5, 0.0], [7.0, 1.0], [2.0, -1.0], [0.0, 4.0]])
GROUPS = i([1, 0, 1, -1, 1, 1])
DIRECTIONS = [np.random.default_rng(k).normal(size=FACTORS.shape) for k in range(3)]


def _others(x: Array, ids: Array, *directions: Array) -> Array:
    """By the definition: each factor left out, each direction in the place of another factor."""
    found = np.zeros_like(x)
    for row, column in np.ndindex(x.shape):
        rest = [k for k in range(len(ids)) if ids[k] == ids[row] and k != row and ids[k] >= 0]
        if ids[row] < 0:
            continue
        for chosen in itertools.permutations(rest, len(directions)):
            factors = [d[k, column] for d, k in zip(directions, chosen, strict=True)]
            factors += [x[k, column] for k in rest if k not in chosen]
            found[row, column] += np.prod(factors)
    return found


CASES = [
    *SORTED,
    *(
        Case(
            "SegmentProductOfOthers",
            lambda x, ids, *ds: segment_products.segment_product_of_others(x, ids, list(ds)),
            [FACTORS, GROUPS, *DIRECTIONS[:count]],
            _others,
            [0, *range(2, 2 + count)],
            empty=[np.zeros((0, 2)), i([]), *[np.zeros((0, 2))] * count],
            tolerance=8,
            note=f"{count}-directions",
        )
        for count in range(4)
    ),
    _unsorted(
        "UnsortedSegmentProd", "unsorted_segment_prod", lambda r: r.prod(0), empty=1, tolerance=4
    ),
    Case(
        "UnsortedSegmentProd",
        segments.unsorted_segment_prod,
        [f(2.0, 0.0, 3.0, 0.0, 0.0, 5.0), i([0, 0, 0, 1, 1, 2]), i(3)],
        lambda x, k, n: np.array([0.0, 0.0, 5.0]),
        [0],
        fixed=[2],
        tensorflow=lambda tf, x, k, n: tf.math.unsorted_segment_prod(x, k, n),
        note="zeros",
    ),
    _unsorted(
        "UnsortedSegmentMax",
        "unsorted_segment_max",
        lambda r: r.max(0),
        FULL,
    ),
    _unsorted(
        "UnsortedSegmentMax",
        "unsorted_segment_max",
        lambda r: r.max(0),
        empty=LOWEST,
        only=[dtypes.float64],
        note="empty",
    ),
    _unsorted(
        "UnsortedSegmentMin",
        "unsorted_segment_min",
        lambda r: r.min(0),
        FULL,
    ),
    _unsorted(
        "UnsortedSegmentMin",
        "unsorted_segment_min",
        lambda r: r.min(0),
        empty=-LOWEST,
        only=[dtypes.float64],
        note="empty",
    ),
    _unsorted("UnsortedSegmentMean", "unsorted_segment_mean", lambda r: r.mean(0)),
    _unsorted(
        "UnsortedSegmentMean",
        "unsorted_segment_sqrt_n",
        lambda r: r.sum(0) / np.sqrt(len(r)),
        only=dtypes.INEXACT,
        note="sqrt",
    ),
    # TensorFlow loses a NaN, or not, by where it stands: here it stays.
    *(
        Case(
            f"UnsortedSegment{name}",
            getattr(segments, f"unsorted_segment_{name.lower()}"),
            [ROWS, ANY, i(3)],
            each(of, empty, 3),
            fixed=[2],
            special=[WILD, FULL, i(3)],
            only=[dtypes.float32, dtypes.float64],
            note="special",
        )
        for name, of, empty in (
            ("Sum", lambda r: r.sum(0), 0),
            ("Mean", lambda r: r.mean(0), 0),
            ("Prod", lambda r: r.prod(0), 1),
        )
    ),
    *(
        Case(
            f"UnsortedSegment{name}",
            getattr(segments, f"unsorted_segment_{name.lower()}"),
            [ROWS, FULL, i(3)],
            each(of, 0, 3),
            fixed=[2],
            special=[WILD, FULL, i(3)],
            only=[dtypes.float32, dtypes.float64],
            note="special",
        )
        for name, of in (("Max", lambda r: r.max(0)), ("Min", lambda r: r.min(0)))
    ),
    *(
        Case(
            f"Segment{name}",
            getattr(sorted_segments, f"segment_{name.lower()}"),
            [ROWS, IDS],
            each(of, 0),
            special=[WILD, IDS],
            by_value=True,
            only=[dtypes.float32, dtypes.float64],
            note="special",
        )
        for name, of in (
            ("Sum", lambda r: r.sum(0)),
            ("Mean", lambda r: r.mean(0)),
            ("Max", lambda r: r.max(0)),
            ("Min", lambda r: r.min(0)),
        )
    ),
    Case(
        "UnsortedSegmentMeanGrad",
        lambda dy, k: segments.segment_mean_gradient_op(dy, k, power=1.0),
        [SOME, i([1, -1, 0, 1])],
        lambda dy, k: np.stack([dy[1] / 2, 0 * dy[0], dy[0], dy[1] / 2]),
        [0],
        empty=[NONE, i([])],
    ),
]
