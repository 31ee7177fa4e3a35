"""Reductions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from flowbook.graph.model import dtypes
from flowbook.graph.model.dtypes import INEXACT
from flowbook.graph.ops.basis import broadcasting
from flowbook.graph.ops.linalg import norms
from flowbook.graph.ops.reduction import products, reductions, statistics
from tests.op_cases.case import (
    NONE,
    POSITIVE,
    SOME,
    TRUTH,
    Array,
    Case,
    f,
)

AXES: Sequence[tuple[Any, bool]] = (
    (None, False),
    (0, False),
    (-1, True),
    ((0, 1), False),
    ((1, -2), True),
    ((), False),
    (None, True),
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
    tensorflow: str | None = None,
    axes: Sequence[tuple[Any, bool]] = AXES,
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
            tensorflow=_tensorflow(tensorflow, axis, keepdims),
            **options,
        )
        for axis, keepdims in axes
    ]


def _tensorflow(name: str | None, axis: Any, keepdims: bool) -> Any:
    if name is None:
        return None
    return lambda tf, x: getattr(tf.math, name)(x, axis, keepdims)


def _euclidean_norm(x: Array, axis: Any, keepdims: bool) -> Array:
    return np.sqrt(np.sum(x * x, axis=axis, keepdims=keepdims))


def _variance(x: Array, axis: Any, keepdims: bool) -> Array:
    mean = _mean(x, axis, True)
    return _mean((x - mean) ** 2, axis, keepdims)


def _mean(x: Array, axis: Any, keepdims: bool) -> Array:
    total = np.sum(x, axis=axis, keepdims=keepdims)
    return total / (x.size // max(total.size, 1))


def _logsumexp(x: Array, axis: Any, keepdims: bool) -> Array:
    return np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims))


def _others(x: Array, axis: Any) -> Array:
    rows = x.reshape(1, -1) if axis is None else np.moveaxis(x, axis[0], -1)
    found = np.stack([np.prod(np.delete(rows, k, 1), axis=1) for k in range(rows.shape[1])], 1)
    return found.reshape(x.shape) if axis is None else np.moveaxis(found, -1, axis[0])


def _along(x: Array, *directions: Array) -> Array:
    """The derivative of all products of the others, by its definition."""
    places = range(len(x))
    found = np.zeros_like(x)
    for chosen in itertools.permutations(places, len(directions) + 1):
        rest = [x[k] for k in places if k not in chosen]
        steps = [d[k] for d, k in zip(directions, chosen[1:], strict=True)]
        found[chosen[0]] += np.prod([*rest, *steps])
    return found


DIRECTIONS = [
    f([[1.0, 3.0, 2.0, -1.0], [0.5, 2.0, 1.0, 1.0]]),
    f([[2.0, -1.0, 0.5, 1.0], [1.0, 1.5, -2.0, 3.0]]),
    f([[0.5, 1.0, -1.0, 2.0], [-1.0, 0.5, 1.0, 1.0]]),
]
ODD_ROWS = f([[np.nan, np.inf, 1.0], [-np.inf, np.inf, 2.0], [-np.inf, -np.inf, -np.inf]])

CASES = [
    *reduction(
        broadcasting.reduce_sum, "Sum", np.sum, POSITIVE, special=ODD_ROWS, tensorflow="reduce_sum"
    ),
    *reduction(
        reductions.reduce_mean,
        "Mean",
        _mean,
        SOME,
        special=ODD_ROWS,
        only=INEXACT,
        tensorflow="reduce_mean",
    ),
    Case(
        "Mean",
        lambda x: reductions.reduce_mean(x, 1),
        [f([[1.0, 2.0, -5.0, -1.0], [100.0, 90.0, 80.0, 71.0]])],
        lambda x: np.trunc(np.mean(x, 1)),
        only=dtypes.INTS[:4],
        empty=[np.zeros((0, 4))],
        note="of-integers",
        tensorflow=lambda tf, x: tf.reduce_mean(x, 1),
    ),
    Case(
        "Mean",
        reductions.reduce_mean,
        [f([200.0, 250.0, 251.0])],
        lambda x: np.trunc(np.mean(x)),
        only=dtypes.INTS[4:],
        note="of-large-integers",
    ),
    *reduction(
        reductions.reduce_prod,
        "Prod",
        np.prod,
        POSITIVE,
        special=ODD_ROWS,
        tensorflow="reduce_prod",
    ),
    *reduction(
        norms.reduce_euclidean_norm,
        "EuclideanNorm",
        _euclidean_norm,
        POSITIVE,
        special=ODD_ROWS,
        tensorflow="reduce_euclidean_norm",
        tolerance=2,
    ),
    Case(
        "EuclideanNorm",
        lambda x: norms.reduce_euclidean_norm(x, 1),
        [f([[3e200, 4e200], [3e-200, -4e-200], [0.0, 0.0]])],
        lambda x: f([5e200, 5e-200, 0.0]),
        only=[dtypes.float64],
        note="far-out",
    ),
    *reduction(
        statistics.reduce_variance,
        "Variance",
        _variance,
        SOME,
        special=ODD_ROWS,
        tensorflow="reduce_variance",
        tolerance=4,
    ),
    Case(
        "Variance",
        lambda x: statistics.reduce_variance(x, 0),
        [f([1e9 + 1, 1e9 + 2, 1e9 + 3])],
        lambda x: f(2 / 3),
        only=[dtypes.float64],
        note="far-from-0",
    ),
    *reduction(
        statistics.reduce_std,
        "Deviation",
        lambda x, axis, keepdims: np.sqrt(_variance(x, axis, keepdims)),
        # Over no axes it is 0 everywhere, and has no slope there.
        SOME,
        special=ODD_ROWS,
        tensorflow="reduce_std",
        tolerance=4,
        axes=[a for a in AXES if a[0] != ()],
    ),
    *reduction(
        reductions.reduce_max,
        "Max",
        lambda x, axis, keepdims: np.max(x, axis=axis, keepdims=keepdims, initial=-np.inf),
        SOME,
        special=ODD_ROWS[:1],
        tensorflow="reduce_max",
    ),
    *reduction(
        reductions.reduce_min,
        "Min",
        lambda x, axis, keepdims: np.min(x, axis=axis, keepdims=keepdims, initial=np.inf),
        SOME,
        special=ODD_ROWS[:1],
        tensorflow="reduce_min",
    ),
    *reduction(
        reductions.reduce_any,
        "Any",
        np.any,
        TRUTH,
        smooth=False,
        empty=np.zeros((0, 3), bool),
        tensorflow="reduce_any",
    ),
    *reduction(
        reductions.reduce_all,
        "All",
        np.all,
        TRUTH,
        smooth=False,
        empty=np.zeros((0, 3), bool),
        tensorflow="reduce_all",
    ),
    *reduction(
        reductions.reduce_logsumexp,
        "LogSumExp",
        _logsumexp,
        SOME,
        special=ODD_ROWS,
        tolerance=4,
        tensorflow="reduce_logsumexp",
    ),
    Case(
        "Prod",
        lambda x: reductions.reduce_prod(x, 1),
        [f([[0.0, 2.0, 3.0], [0.0, 0.0, 3.0], [1.5, 2.0, -1.0]])],
        lambda x: np.prod(x, axis=1),
        [0],
        only=[dtypes.float32, dtypes.float64],
        note="with-zeros",
        tensorflow=lambda tf, x: tf.reduce_prod(x, 1),
    ),
    Case(
        "LogSumExp",
        lambda x: reductions.reduce_logsumexp(x, 1),
        [f([[1e30, 1e30, -1e30], [-1e30, -1e30, -1e30], [-np.inf, -np.inf, -np.inf]])],
        lambda x: f([1e30, -1e30, -np.inf]),
        only=[dtypes.float32, dtypes.float64],
        note="far-out",
        tensorflow=lambda tf, x: tf.reduce_logsumexp(x, 1),
    ),
    *(
        Case(
            "ProductOfOthers",
            lambda x, axis=axis: products.product_of_others(x, axis=axis),
            [f([[0.0, 2.0, 3.0], [0.0, 0.0, 3.0], [1.5, 2.0, -1.0]])],
            lambda x, axis=axis: _others(x, axis),
            [0],
            empty=[NONE] if axis else None,
            note=str(axis),
        )
        for axis in ((1,), (0,), None)
    ),
    *(
        Case(
            "ProductOfOthersGrad",
            lambda x, *ds: products.product_of_others_gradient(x, list(ds), axis=(1,)),
            [f([[0.0, 2.0, -1.0, 0.5], [1.5, 0.0, 0.0, 2.0]]), *DIRECTIONS[:count]],
            lambda x, *ds: np.stack([_along(row, *d) for row, *d in zip(x, *ds, strict=True)]),
            list(range(count + 1)),
            empty=[np.zeros((0, 4))] * (count + 1),
            tolerance=4,
            note=f"{count}-directions",
        )
        for count in (1, 2, 3)
    ),
    Case(
        "ArgMax",
        lambda x: reductions.argmax(x, 1),
        [f([[1.0, 5.0, 5.0], [7.0, 2.0, 3.0]])],
        lambda x: np.argmax(x, 1),
        empty=[NONE],
        tensorflow=lambda tf, x: tf.argmax(x, 1),
    ),
    Case(
        "ArgMin",
        lambda x: reductions.argmin(x, -1),
        [f([[4.0, 1.0, 1.0], [7.0, 2.0, 3.0]])],
        lambda x: np.argmin(x, 1),
        empty=[NONE],
        tensorflow=lambda tf, x: tf.argmin(x, -1),
    ),
    Case(
        "ArgMax",
        lambda x: reductions.argmax(x, output_type=dtypes.int32),
        [f([3.0, 9.0, 1.0])],
        np.argmax,
        note="vector",
        tensorflow=lambda tf, x: tf.argmax(x, output_type=tf.int32),
    ),
    *(
        Case(
            f"Arg{kind}",
            partial(getattr(reductions, f"arg{kind.lower()}"), axis=None),
            [f([[4.0, 9.0, 1.0], [7.0, 2.0, 3.0]])],
            partial(getattr(np, f"arg{kind.lower()}"), axis=0),
            note="axis-none",
            tensorflow=lambda tf, x, kind=kind: getattr(tf, f"arg{kind.lower()}")(x, axis=None),
        )
        for kind in ("Max", "Min")
    ),
]
