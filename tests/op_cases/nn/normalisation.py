"""Moments and normalisations. Composed functions stand under the type of their last operation."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.model.dtypes import FLOATS, float32
from flowbook.graph.ops.basis.constants import zeros_like_op
from flowbook.graph.ops.nn import normalisation
from flowbook.graph.ops.reduction.standardising import (
    moments_op,
    normalize_gradient_op,
    normalize_op,
)
from flowbook.graph.ops.windows.response_normalisation import normalize_responses_gradient_op
from tests.op_cases.case import Array, Case, f

IMAGES = np.random.default_rng(1).uniform(-2, 2, (2, 3, 2, 4)).round(2)
ROWS = np.random.default_rng(2).uniform(-2, 2, (3, 4)).round(2)
POISONED = ROWS.copy()
POISONED[0, 0], POISONED[1, 1], POISONED[2, 2] = np.nan, np.inf, -np.inf
SCALE, OFFSET = f(0.5, -1.5, 2.0, 1.0), f(1.0, 0.0, -0.5, 3.0)
EPSILON = 0.01


def _normalized(x: Array, scale: Array, offset: Array, axes: Any) -> Any:
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return (x - mean) / np.sqrt(variance + EPSILON) * scale + offset, mean, variance


def _to_shape(total: Array, scale: Array) -> Array:
    aligned = (1,) * (total.ndim - scale.ndim) + scale.shape
    axes = tuple(k for k, d in enumerate(aligned) if d == 1)
    return total.sum(axes, keepdims=True).reshape(scale.shape)


def _gradient(x: Array, scale: Array, dy: Array, dmean: Array, dvar: Array, axes: Any) -> Any:
    """As the paper writes it, one step of the chain rule after the other."""
    distance = x - x.mean(axes, keepdims=True)
    spread = x.var(axes, keepdims=True) + EPSILON
    n = x.size // distance.mean(axes).size
    dnormal = dy * scale
    dvar = dvar + (dnormal * distance * -0.5 * spread**-1.5).sum(axes, keepdims=True)
    dmean = dmean - (dnormal / np.sqrt(spread)).sum(axes, keepdims=True)
    dx = dnormal / np.sqrt(spread) + dvar * 2 * distance / n + dmean / n
    return dx, _to_shape(dy * distance / np.sqrt(spread), scale), _to_shape(dy, scale)


def normalize_rows(note: str, x: Array, scale: Array, offset: Array, axes: Any) -> Any:
    how = {"axes": axes, "epsilon": EPSILON}

    def recorded(tf: Any, x: Array, scale: Array, offset: Array) -> Any:
        mean, variance = tf.nn.moments(x, axes, keepdims=True)
        y = tf.nn.batch_normalization(x, mean, variance, offset, scale, EPSILON)
        return y, mean, variance

    yield Case(
        "Normalize",
        lambda x, scale, offset: normalize_op(x, scale, offset, **how),
        [x, scale, offset],
        lambda x, scale, offset: _normalized(x, scale, offset, axes),
        [0, 1, 2],
        tolerance=16,
        tensorflow=recorded,
        note=note,
    )

    def gradient(x: Any, scale: Any, *steps: Any) -> Any:
        _, mean, variance = normalize_op(x, scale, zeros_like_op(scale), **how)
        return normalize_gradient_op(x, scale, mean, variance, *steps, **how)

    _, mean, variance = _normalized(x, scale, offset, axes)
    dy = np.random.default_rng(3).uniform(-1, 1, x.shape).round(2)
    yield Case(
        "NormalizeGrad",
        gradient,
        [x, scale, dy, mean.round(2), variance.round(2)],
        lambda *given: _gradient(*given, axes),
        [0, 1, 2, 3, 4],
        tolerance=32,
        note=note,
    )


def moments_row(note: str, x: Array, axes: Any, special: Any = None) -> Case:
    return Case(
        "Moments",
        lambda x: moments_op(x, axes=axes),
        [x],
        lambda x: (x.mean(axes, keepdims=True), x.var(axes, keepdims=True)),
        [0],
        special=special,
        tolerance=16,
        tensorflow=lambda tf, x: tf.nn.moments(
            x, axes if axes is not None else list(range(x.ndim)), keepdims=True
        ),
        note=note,
    )


def _fused(x: Array, scale: Array, offset: Array) -> Any:
    y, mean, variance = _normalized(x, scale, offset, (0, 1, 2))
    n = x.size // x.shape[-1]
    return y, mean.reshape(-1), variance.reshape(-1) * n / (n - 1)


def _grouped(x: Array, scale: Array, offset: Array) -> Any:
    apart = x.reshape(2, 6, 2, 2)
    return _normalized(apart, scale.reshape(2, 2), offset.reshape(2, 2), (1, 3))[0].reshape(x.shape)


def _scales(x: Array, radius: int) -> Array:
    return 2 + 0.5 * _around(x**2, radius)


def _around(x: Array, radius: int) -> Array:
    sums = np.zeros(x.shape)
    for c in range(x.shape[-1]):
        sums[..., c] = x[..., max(c - radius, 0) : c + radius + 1].sum(-1)
    return sums


def local_rows(note: str, x: Array, radius: int, beta: float = 0.75) -> Any:
    """Rows of local response normalisation and its gradient; large ones for their values only."""
    is_small = x.size < 1000
    how = {"depth_radius": radius, "bias": 2.0, "alpha": 0.5, "beta": beta}
    dy = np.random.default_rng(4).uniform(-1, 1, x.shape).round(2)

    def slopes(x: Array, dy: Array) -> Array:
        scales = _scales(x, radius)
        others = _around(dy * x * scales ** (-beta - 1), radius)
        return dy * scales**-beta - beta * x * others

    yield Case(
        "LRN",
        lambda x: normalisation.local_response_normalization(x, radius, 2, 0.5, beta),
        [x],
        lambda x: x / _scales(x, radius) ** beta,
        [0] if is_small else [],
        empty=[np.zeros((0, 3, 2, 4))],
        tolerance=8,
        note=note,
    )
    yield Case(
        "LRNGrad",
        lambda x, dy: normalize_responses_gradient_op(x, dy, **how),
        [x, dy],
        slopes,
        [0, 1] if is_small else [],
        empty=[np.zeros((2, 0, 2, 4)), np.zeros((2, 0, 2, 4))],
        tolerance=16,
        note=note,
    )


CASES = [
    moments_row("all", IMAGES, None),
    moments_row("some", IMAGES, (0, -2)),
    moments_row("none", IMAGES, ()),
    moments_row("special", ROWS, (0,), special=[POISONED]),
    *normalize_rows("batch", IMAGES, SCALE, OFFSET, (0, 1, 2)),
    *normalize_rows("layer", ROWS, SCALE, OFFSET, (-1,)),
    *normalize_rows("layer-of-images", IMAGES, SCALE, OFFSET, (1, 2, 3)),
    *normalize_rows("middle", IMAGES, f([[2.0], [0.5]]), f([[1.0], [3.0]]), (0, 2)),
    *normalize_rows("scalars", ROWS, np.array(2.0), np.array(1.0), (0, 1)),
    Case(
        "Normalize",
        lambda x, s, o: normalisation.layer_normalization(x, s, o, epsilon=EPSILON),
        [ROWS, SCALE, OFFSET],
        lambda *given: _normalized(*given, -1)[0],
        [0, 1, 2],
        empty=[ROWS[:0], SCALE, OFFSET],
        special=[POISONED, SCALE, OFFSET],
        tolerance=16,
        note="layer_normalization",
    ),
    Case(
        "Normalize",
        lambda x, s, o: normalisation.fused_batch_norm(x, s, o, epsilon=EPSILON),
        [IMAGES, SCALE, OFFSET],
        _fused,
        [0, 1, 2],
        only=[d for d in FLOATS if d.size > 2],
        tolerance=16,
        note="fused_batch_norm",
    ),
    Case(
        "Normalize",
        lambda x, s, o: normalisation.fused_batch_norm(x, s, o, epsilon=EPSILON),
        [IMAGES, SCALE, OFFSET],
        _fused,
        only=[float32],
        tolerance=16,
        tensorflow=lambda tf, x, s, o: tf.compat.v1.nn.fused_batch_norm(x, s, o, epsilon=EPSILON),
        note="fused_batch_norm-float32",
    ),
    Case(
        "Squeeze",
        lambda x: normalisation.moments(x, [0, 2]),
        [IMAGES],
        lambda x: (x.mean((0, 2)), x.var((0, 2))),
        [0],
        only=FLOATS,
        tolerance=16,
        tensorflow=lambda tf, x: tf.nn.moments(x, [0, 2]),
        note="moments",
    ),
    Case(
        "Reshape",
        lambda x: normalisation.moments(x, None),
        [ROWS],
        lambda x: (x.mean(), x.var()),
        [0],
        only=FLOATS,
        tolerance=16,
        note="moments-of-all",
    ),
    Case(
        "Mul",
        lambda x: normalisation.l2_normalize(x, 1),
        [ROWS],
        lambda x: x / np.sqrt(np.maximum((x * x).sum(1, keepdims=True), 1e-12)),
        [0],
        only=FLOATS,
        empty=[ROWS[:0]],
        special=[POISONED[[0, 1, 2, 0]]],
        tolerance=8,
        tensorflow=lambda tf, x: tf.nn.l2_normalize(x, 1),
        note="l2_normalize",
    ),
    Case(
        "Mul",
        lambda x: normalisation.l2_normalize(x, [0, 1], epsilon=100.0),
        [ROWS],
        lambda x: x / 10,
        [0],
        only=FLOATS,
        tolerance=8,
        tensorflow=lambda tf, x: tf.nn.l2_normalize(x, [0, 1], epsilon=100.0),
        note="l2_normalize-short",
    ),
    *local_rows("one", IMAGES, 1),
    *local_rows("more-than-there-are", IMAGES, 5),
    *local_rows("none", IMAGES, 0),
    Case(
        "LRN",
        lambda x: normalisation.local_response_normalization(x, 1, 2, 0.5, 0.75),
        [IMAGES],
        lambda x: x / _scales(x, 1) ** 0.75,
        only=[float32],
        tolerance=8,
        tensorflow=lambda tf, x: tf.nn.local_response_normalization(x, 1, 2, 0.5, 0.75),
        note="float32",
    ),
    *local_rows("other-power", IMAGES, 2, beta=0.6),
    *local_rows("root", IMAGES, 2, beta=0.5),
    *local_rows("parts", np.tile(IMAGES, [3, 20, 20, 4]), 3),
    Case(
        "Mean",
        normalisation.zero_fraction,
        [f([0.0, -0.0, 1.0, 3.0], [0.0, 2.0, 2.0, 2.0])],
        lambda x: np.float32((x == 0).sum() / np.float64(x.size)),
        only=[float32],
        empty=[ROWS[:0]],
        special=[f(np.nan, np.inf, 0.0, -np.inf)],
        tensorflow=lambda tf, x: tf.nn.zero_fraction(x),
        note="zero_fraction",
    ),
    Case(
        "Reshape",
        lambda x: normalisation.group_normalization(x, 2, SCALE, OFFSET, epsilon=EPSILON),
        [IMAGES],
        lambda x: _grouped(x, SCALE, OFFSET),
        [0],
        only=FLOATS,
        tolerance=16,
        note="group_normalization",
    ),
]
