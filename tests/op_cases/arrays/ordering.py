"""Elements in another order, selected, found, or compared as sets."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.model import dtypes
from flowbook.graph.ops.arrays import ordering, positions, reversing, selecting, uniqueness
from flowbook.graph.ops.basis import permuting
from flowbook.graph.ops.text import edit_distance
from tests.op_cases.case import (
    CUBE,
    NONE,
    SOME,
    Case,
    f,
    i,
)

# Different also when they are rounded to unsigned integers.
MIXED = f([[3.0, 1.0, 2.0, 0.0], [7.0, 9.0, 4.0, 5.0]])
TIED = f([[2.0, 1.0, 2.0, 1.0], [3.0, 3.0, 3.0, 0.0]])
NAN = f([[2.0, np.nan, np.inf, -np.inf]])


def _best(x: Any, k: int) -> Any:
    """The k largest of each row, the first of equal ones first."""
    order = [
        sorted(range(len(r)), key=lambda j: (-r[j], j))[:k] for r in x.reshape(-1, x.shape[-1])
    ]
    places = np.array(order, int).reshape(*x.shape[:-1], k)
    return np.take_along_axis(x, places, -1), places


def _distinct_along(x: Any, axis: int) -> tuple[np.ndarray, ...]:
    parts = [part.tolist() for part in np.moveaxis(x, axis, 0)]
    kinds = [part for k, part in enumerate(parts) if part not in parts[:k]]
    rest = np.delete(np.array(x.shape), axis)
    y = np.moveaxis(np.reshape(np.array(kinds, object), (len(kinds), *rest)), 0, axis)
    idx = np.array([kinds.index(part) for part in parts], int)
    return y.astype(x.dtype), idx, np.bincount(idx, minlength=len(kinds))


def _distinct(x: Any) -> Any:
    found = list(dict.fromkeys(x.tolist()))
    idx = np.array([found.index(v) for v in x.tolist()], int)
    count = np.array([x.tolist().count(v) for v in found], int)
    return np.array(found, x.dtype), idx, count


def _without(x: Any, y: Any) -> Any:
    kept = [k for k, v in enumerate(x.tolist()) if v not in y.tolist()]
    return x[kept] if kept else x[:0], np.array(kept, int)


def _long(n: int) -> Any:
    return np.random.default_rng(0).permutation(2 * n).reshape(2, n) / 4


class _Sparse:
    def __init__(self, *parts: Any) -> None:
        self.indices, self.values, self.dense_shape = parts


def _edits(normalize: bool) -> Any:
    def build(a: Any, b: Any, c: Any, d: Any, e: Any, g: Any) -> Any:
        first, second = _Sparse(a, b, c), _Sparse(d, e, g)
        return edit_distance.edit_distance(first, second, normalize)

    return build


def _tensorflow_edits(normalize: bool) -> Any:
    return lambda tf, a, b, c, d, e, g: tf.edit_distance(
        tf.SparseTensor(a, b, c), tf.SparseTensor(d, e, g), normalize
    )


def _l(*values: Any) -> Any:
    return np.array(values, np.int64)


# kitten against sitting, nothing against one, one against nothing, nothing against nothing.
EDITS = [
    _l(*[[0, k] for k in range(6)], [2, 0]),
    f(11.0, 9.0, 20.0, 20.0, 5.0, 14.0, 1.0),
    _l(4, 6),
    _l(*[[0, k] for k in range(7)], [1, 0]),
    f(19.0, 9.0, 20.0, 20.0, 9.0, 14.0, 7.0, 1.0),
    _l(4, 7),
]

CASES = [
    Case(
        "Sort",
        ordering.sort,
        [MIXED],
        lambda x: np.sort(x),
        [0],
        empty=[NONE],
        special=[NAN],
    ),
    Case(
        "Sort",
        ordering.sort,
        [TIED],
        lambda x: np.sort(x),
        tensorflow=lambda tf, x: tf.sort(x),
        note="ties",
    ),
    Case(
        "Sort",
        lambda x: ordering.sort(x, 0, "DESCENDING"),
        [MIXED],
        lambda x: -np.sort(-x, 0),
        [0],
        tensorflow=lambda tf, x: tf.sort(x, 0, "DESCENDING"),
        note="descending",
    ),
    Case(
        "ArgSort",
        ordering.argsort,
        [TIED],
        lambda x: np.argsort(x, kind="stable"),
        empty=[NONE],
        special=[NAN],
    ),
    Case(
        "ArgSort",
        lambda x: ordering.argsort(x, 1, "DESCENDING"),
        [TIED],
        lambda x: np.argsort(-x, kind="stable"),
        tensorflow=lambda tf, x: tf.argsort(x, 1, "DESCENDING", stable=True),
        note="descending",
    ),
    Case(
        "TakeAlongAxis",
        lambda x, k: ordering.take_along_axis_op(x, k, axis=1),
        [SOME, i([[2, 0], [1, 0]])],
        lambda x, k: np.stack([row[np.asarray(j, int)] for row, j in zip(x, k, strict=True)]),
        [0],
        empty=[SOME, i([[], []])],
    ),
    Case(
        "TakeAlongAxisGrad",
        lambda dy, k, s: ordering.take_along_axis_gradient_op(dy, k, s, axis=1),
        [SOME[:, :2], i([[2, 0], [1, 0]]), i([2, 3])],
        lambda dy, k, s: np.array([[dy[0, 1], 0, dy[0, 0]], [dy[1, 1], dy[1, 0], 0]]),
        [0],
        fixed=[2],
        empty=[np.zeros((2, 0)), i([[], []]), i([2, 3])],
    ),
    Case(
        "TopK",
        selecting.top_k,
        [MIXED, i(3)],
        lambda x, k: _best(x, 3),
        [0],
        fixed=[1],
        empty=[np.zeros((2, 0)), i(0)],
        tensorflow=lambda tf, x, k: tf.nn.top_k(x, k),
    ),
    Case(
        "TopK",
        selecting.top_k,
        [TIED, i(3)],
        lambda x, k: _best(x, 3),
        fixed=[1],
        tensorflow=lambda tf, x, k: tf.nn.top_k(x, k),
        note="ties",
    ),
    Case(
        "TopK",
        selecting.top_k,
        [_long(300), i(4)],
        lambda x, k: _best(x, 4),
        fixed=[1],
        only=[dtypes.float32, dtypes.float64, dtypes.int64],
        tensorflow=lambda tf, x, k: tf.nn.top_k(x, k),
        note="long",
    ),
    Case(
        "TopK",
        selecting.top_k,
        [np.tile(TIED, (2, 80)), i(5)],
        lambda x, k: _best(x, 5),
        fixed=[1],
        tensorflow=lambda tf, x, k: tf.nn.top_k(x, k),
        note="long-ties",
    ),
    Case(
        "NthElement",
        selecting.nth_element,
        [MIXED, i(1)],
        lambda x, n: np.sort(x)[:, 1],
        [0],
        fixed=[1],
        empty=[np.zeros((0, 2)), i(1)],
        tensorflow=lambda tf, x, n: tf.raw_ops.NthElement(input=x, n=n),
    ),
    Case(
        "NthElement",
        selecting.nth_element,
        [MIXED[0], i(1)],
        lambda x, n: np.sort(x)[1],
        [0],
        fixed=[1],
        tensorflow=lambda tf, x, n: tf.raw_ops.NthElement(input=x, n=n),
        note="of-one-row",
    ),
    Case(
        "NthElement",
        lambda x, n: selecting.nth_element(x, n, reverse=True),
        [TIED, i(1)],
        lambda x, n: np.sort(x)[:, -2],
        fixed=[1],
        tensorflow=lambda tf, x, n: tf.raw_ops.NthElement(input=x, n=n, reverse=True),
        note="reverse",
    ),
    Case(
        "Unique",
        uniqueness.unique_with_counts,
        [f(7.0, 3.0, 7.0, 7.0, 5.0, 3.0)],
        _distinct,
        empty=[f(7.0)[None][:0]],
        by_value=True,
        tensorflow=lambda tf, x: tf.unique_with_counts(x),
    ),
    *(
        Case(
            "Unique",
            lambda x, axis=axis: uniqueness.unique_with_counts(x, axis=axis),
            [f([[1.0, 0.0, 1.0], [2.0, 0.0, 2.0], [1.0, 0.0, 1.0], [1.0, 3.0, 1.0]])],
            lambda x, axis=axis: _distinct_along(x, axis),
            empty=[np.zeros((0, 3) if axis == 0 else (3, 0))],
            by_value=True,
            tensorflow=lambda tf, x, axis=axis: tf.raw_ops.UniqueWithCountsV2(x=x, axis=[axis]),
            note=f"axis {axis}",
        )
        for axis in (0, 1)
    ),
    Case(
        "ListDiff",
        uniqueness.setdiff1d,
        [f(1.0, 2.0, 3.0, 2.0, 5.0), f(5.0, 1.0)],
        _without,
        empty=[np.zeros(0), f(1.0, 2.0)],
        by_value=True,
        tensorflow=lambda tf, x, y: tf.compat.v1.setdiff1d(x, y),
    ),
    Case(
        "SearchSorted",
        positions.searchsorted,
        [f([[1.0, 3.0, 3.0, 5.0], [0.0, 2.0, 4.0, 6.0]]), f([[3.0, 0.0], [7.0, 4.0]])],
        lambda s, v: (s[..., None, :] < v[..., None]).sum(-1),
        empty=[np.zeros((2, 0)), f([[3.0, 0.0], [7.0, 4.0]])],
        special=[f([-np.inf, 0.0, np.inf]), f([np.inf, -np.inf, -1.0])],
        tensorflow=lambda tf, s, v: tf.searchsorted(s, v),
    ),
    Case(
        "SearchSorted",
        lambda s, v: positions.searchsorted(s, v, "right", dtypes.int64),
        [f(1.0, 3.0, 3.0, 5.0), f(3.0, 0.0, 5.0)],
        lambda s, v: np.array([3, 0, 4]),
        tensorflow=lambda tf, s, v: tf.searchsorted(s, v, "right", tf.int64),
        note="right",
    ),
    Case(
        "SearchSorted",
        positions.searchsorted,
        [np.array(["a", "bb", "c"], object), np.array(["bb", "", "b"], object)],
        lambda s, v: np.array([1, 0, 1]),
        only=[dtypes.string],
        note="strings",
    ),
    Case(
        "InvertPermutation",
        permuting.invert_permutation,
        [i([2, 0, 3, 1])],
        lambda x: np.array([x.tolist().index(k) for k in range(x.size)], int),
        empty=[i([])],
        tensorflow=lambda tf, x: tf.math.invert_permutation(x),
    ),
    Case(
        "UnravelIndex",
        positions.unravel_index,
        [i([[7, 0], [11, 5]]), i([2, 3, 2])],
        lambda x, d: np.stack(np.unravel_index(np.asarray(x, int), np.asarray(d, int))),
        fixed=[1],
        empty=[i([]), i([2, 3])],
    ),
    Case(
        "UnravelIndex",
        positions.unravel_index,
        [i([7, 0, 11]), i([2, 3, 2])],
        lambda x, d: np.stack(np.unravel_index(np.asarray(x, int), np.asarray(d, int))),
        fixed=[1],
        tensorflow=lambda tf, x, d: tf.unravel_index(x, d),
        note="vector",
    ),
    Case(
        "Reverse",
        lambda x: reversing.reverse(x, [0, -1]),
        [CUBE],
        lambda x: x[::-1, :, ::-1],
        [0],
        empty=[np.zeros((0, 2, 2))],
        tensorflow=lambda tf, x: tf.reverse(x, [0, -1]),
    ),
    Case(
        "Reverse",
        lambda x: reversing.reverse(x, []),
        [f(2.0)],
        lambda x: x,
        [0],
        tensorflow=lambda tf, x: tf.reverse(x, np.zeros(0, np.int32)),
        note="scalar",
    ),
    Case(
        "ReverseSequence",
        lambda x, n: reversing.reverse_sequence(x, n, 2),
        [CUBE, i([3, 0])],
        lambda x, n: np.stack([x[0][:, [2, 1, 0, 3]], x[1]]),
        [0],
        empty=[np.zeros((0, 2, 2)), i([])],
        tensorflow=lambda tf, x, n: tf.reverse_sequence(x, n, 2, 0),
    ),
    Case(
        "ReverseSequence",
        lambda x, n: reversing.reverse_sequence(x, n, 0, 1),
        [CUBE, i([2, 0, 1])],
        lambda x, n: np.stack([x[::-1, 0], x[:, 1], x[:, 2]], 1),
        [0],
        tensorflow=lambda tf, x, n: tf.reverse_sequence(x, n, 0, 1),
        note="batch-behind",
    ),
    Case(
        "Roll",
        lambda x, n: reversing.roll(x, n, [0, 2, 0]),
        [CUBE, i([1, -3, 2])],
        lambda x, n: np.roll(np.roll(x, 3, 0), -3, 2),
        [0],
        fixed=[1],
        empty=[np.zeros((2, 0, 2)), i([1, -3, 2])],
        tensorflow=lambda tf, x, n: tf.roll(x, n, [0, 2, 0]),
    ),
    Case(
        "Roll",
        lambda x, n: reversing.roll(x, n, -1),
        [SOME, i(1)],
        lambda x, n: np.roll(x, 1, -1),
        [0],
        fixed=[1],
        tensorflow=lambda tf, x, n: tf.roll(x, n, -1),
        note="scalar",
    ),
    Case(
        "Roll",
        lambda x, n: reversing.roll(x, n, []),
        [np.array(2.5), np.zeros(0, np.int32)],
        lambda x, n: x,
        [0],
        fixed=[1],
        note="nothing",
    ),
    Case(
        "EditDistance",
        _edits(True),
        EDITS,
        lambda *_: np.array([3 / 7, 1.0, np.inf, 0.0], np.float32),
        fixed=[2, 5],
        only=[dtypes.int64, dtypes.float32, dtypes.string],
        tensorflow=_tensorflow_edits(True),
    ),
    Case(
        "EditDistance",
        _edits(False),
        EDITS,
        lambda *_: np.array([3.0, 1.0, 1.0, 0.0]),
        fixed=[2, 5],
        only=[dtypes.int64, dtypes.float32, dtypes.string],
        tensorflow=_tensorflow_edits(False),
        note="counts",
    ),
]
