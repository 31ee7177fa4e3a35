"""Pools whose windows differ in size by one, so that images shrink by any factor.

Where the windows of an axis lie is a sequence of elements: each window goes from one to before the
next, or up to it, if they overlap.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.dtypes import FLOATS, REALS, float64, int64
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.broadcasting import reduce_sum
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.filling import range as range_of
from flowbook.graph.ops.basis.joining import concat
from flowbook.graph.ops.basis.shaping import expand_dims, reshape, shape_of, size
from flowbook.graph.ops.basis.shaping import shape as run_shape
from flowbook.graph.ops.checks.checking import ensure_shape
from flowbook.graph.ops.linalg.einsum import einsum
from flowbook.graph.ops.math.arithmetic import minimum
from flowbook.graph.ops.math.comparison import greater, greater_equal, less, logical_and
from flowbook.graph.ops.math.elementwise import ceil, floor
from flowbook.graph.ops.random.orders import random_permutation
from flowbook.graph.ops.random.random_numbers import random_uniform
from flowbook.graph.ops.reduction.scans import cumsum
from flowbook.graph.ops.reduction.segments import unsorted_segment_sum

__all__ = ["FractionalPool", "fractional_avg_pool", "fractional_max_pool"]


class FractionalPool(NamedTuple):
    """What a fractional pool gives.

    Attributes:
        output: [batch, new height, new width, channels].
        row_pooling_sequence: int64 [new height + 1], where the windows' rows begin, and the height.
        col_pooling_sequence: int64 [new width + 1], the same of columns.
    """

    output: Tensor
    row_pooling_sequence: Tensor
    col_pooling_sequence: Tensor


# Where windows lie


def _sequence(length: Any, count: Any, pseudo_random: bool, seed: int | None) -> Tensor:
    """Where `count` windows begin on `length` elements, and where the last one ends."""
    length, count = convert_to_tensor(length, int64), convert_to_tensor(count, int64)
    if pseudo_random:
        # Graham's a(i + u), with so small a u that no window is too long.
        each, last = length // count, cast(count - 1, float64)
        step = cast(length, float64) / cast(count, float64)
        limits = cast(each + 2, float64) / step - 1.0, cast(length + 1 - each, float64) / step
        offset = random_uniform([], dtype=float64, seed=seed) * minimum(limits[0], limits[1] - last)
        places = ceil(step * (cast(range_of(1, count), float64) + offset)) - 1.0
        inner = cast(places, int64)
    else:
        is_longer = less(random_permutation(count, int64, seed), length % count)
        sizes = length // count + cast(is_longer, int64)
        inner = cumsum(sizes)[:-1]
    return concat([[0], inner, expand_dims(length, 0)], 0)


# The maximum


def _check_places(axis: str, places: Any, length: int) -> None:
    if (
        places.ndim != 1
        or len(places) < 2
        or places[0] < 0
        or places[-1] > length
        or (np.diff(places) < 1).any()
    ):
        raise InvalidArgumentError(
            f"windows of {axis} begin one after the other within {length}, not at {places.tolist()}"
        )


def _check_images(shape: Any) -> None:
    if Shape(shape).rank not in (None, 4):
        raise InvalidArgumentError(
            f"images are [batch, height, width, channels], not of shape {Shape(shape)}"
        )


def _pooled_shapes(value: Tensor, rows: Tensor, columns: Tensor, overlapping: bool) -> list[Shape]:
    _check_images(value.shape)
    n, _, _, c = value.shape.with_rank(4).as_list()
    counts = [s.shape.with_rank(1).as_list()[0] for s in (rows, columns)]
    return [Shape.of((n, *(None if k is None else k - 1 for k in counts), c))] * 2


def _largest(
    xp: Any, values: Any, places: Any, axis: int, at: Any, overlapping: bool
) -> tuple[Any, Any]:
    """The first maxima along an axis, and what `at` has there."""
    starts, ends = places[:-1], places[1:] + overlapping
    found = []
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        part = (slice(None),) * axis + (slice(start, end),)
        best = xp.expand_dims(values[part].argmax(axis), axis)
        found.append([xp.take_along_axis(v[part], best, axis) for v in (values, at)])
    return tuple(xp.concatenate(parts, axis) for parts in zip(*found, strict=True))


def _max_pooled(xp: Any, value: Any, rows: Any, columns: Any, overlapping: bool) -> Any:
    _check_images(value.shape)
    _check_places("rows", rows, value.shape[1])
    _check_places("columns", columns, value.shape[2])
    at = xp.arange(value.size).reshape(value.shape)
    # Along rows first: of equal maxima the one in the first row counts.
    best, at = _largest(xp, value, columns, 2, at, overlapping)
    return _largest(xp, best, rows, 1, at, overlapping)


def _max_gradient(op: Operation, dy: Tensor, _: Any) -> tuple[Tensor, None, None]:
    dims, at = shape_of(op.inputs[0]), reshape(op.outputs[1], [-1])
    flat = unsorted_segment_sum(reshape(dy, [-1]), at, size(op.inputs[0], int64))
    return reshape(flat, dims), None, None


max_pool_op: OpDef[tuple[Tensor, Tensor]] = OpDef(
    "FractionalMaxPool",
    "value: T, rows: int64, columns: int64 -> output: T, argmax: int64",
    T=REALS,
    attributes={"overlapping": False},
    infer=_pooled_shapes,
    kernel=_max_pooled,
    host_args=("rows", "columns"),
    grad=_max_gradient,
    cost=lambda op: 2 * (op.inputs[0].shape.size or 0),
)


# The mean


def _mean_over(places: Tensor, length: Any, overlapping: bool, dtype: Any) -> Tensor:
    """The matrix that takes the means of an axis's windows."""
    element = range_of(convert_to_tensor(length, int64))
    start, end = expand_dims(places[:-1], 1), expand_dims(places[1:], 1)
    is_before = greater_equal(end, element) if overlapping else greater(end, element)
    inside = cast(logical_and(greater_equal(element, start), is_before), dtype)
    return inside / reduce_sum(inside, 1, keepdims=True)


# Public functions


def _places(
    value: Any, pooling_ratio: Any, pseudo_random: bool, seed: int | None
) -> tuple[Tensor, list[Any], list[Tensor]]:
    """Images, their height and width, and where windows lie along these."""
    value = convert_to_tensor(value)
    _check_images(value.shape)
    ratios = list(pooling_ratio) if isinstance(pooling_ratio, Sequence) else []
    if (
        len(ratios) != 4
        or (ratios[0], ratios[3]) != (1, 1)
        or not all(r >= 1 and math.isfinite(r) for r in ratios)
    ):
        raise InvalidArgumentError(
            f"pooling_ratio is [1.0, height, width, 1.0], from 1 on, not {pooling_ratio!r}"
        )
    dims = value.shape.with_rank(4).as_list()[1:3]
    in_run = run_shape(value, int64)
    lengths = [in_run[1 + k] if d is None else d for k, d in enumerate(dims)]
    sequences = []
    for length, known, ratio in zip(lengths, dims, ratios[1:3], strict=True):
        if known is not None:
            if known < ratio:
                raise InvalidArgumentError(f"{known} elements cannot shrink by {ratio}")
            count: Any = int(known / ratio)
        else:
            count = cast(floor(cast(length, float64) / float(ratio)), int64)
        found = _sequence(length, count, bool(pseudo_random), seed)
        sequences.append(found if known is None else ensure_shape(found, [count + 1]))
    return value, lengths, sequences


@composed
def fractional_max_pool(
    value: Any,
    pooling_ratio: Any,
    pseudo_random: bool = False,
    overlapping: bool = False,
    seed: int | None = None,
    name: str | None = None,
) -> FractionalPool:
    """The maxima of windows that lie at random, so that images shrink by any factor.

    Args:
        value: [batch, height, width, channels], of a real dtype.
        pooling_ratio: how much smaller images become: [1.0, height, width, 1.0], at least 1.
        pseudo_random: whether windows are as regular as the factor admits; else their sizes, of
            which there are two, are in a random order.
        overlapping: whether windows share the rows and columns where they meet.
        seed: decides, together with the graph's, where they lie.

    Returns:
        A FractionalPool: the output, and where the windows lie along height and width.

    Raises:
        InvalidArgumentError: if the factors are not of this form.

    Source: Graham, "Fractional max-pooling", 2014.

    >>> import flowbook as fb
    >>> images = fb.zeros([8, 36, 36, 3])
    >>> fb.nn.fractional_max_pool(images, [1.0, 1.44, 1.44, 1.0], seed=1).output.shape
    Shape([8, 25, 25, 3])
    """
    images, _, places = _places(value, pooling_ratio, pseudo_random, seed)
    output, _ = max_pool_op(images, *places, overlapping=bool(overlapping))
    return FractionalPool(output, *places)


@composed
def fractional_avg_pool(
    value: Any,
    pooling_ratio: Any,
    pseudo_random: bool = False,
    overlapping: bool = False,
    seed: int | None = None,
    name: str | None = None,
) -> FractionalPool:
    """The means of windows that lie at random. Arguments and result as of `fractional_max_pool`.

    `value` is of a floating-point dtype.
    """
    images, lengths, places = _places(value, pooling_ratio, pseudo_random, seed)
    if images.dtype not in FLOATS:
        raise InvalidArgumentError(f"means are of floating-point images, not {images.dtype.name}")
    by_row, by_column = (
        _mean_over(s, n, overlapping, images.dtype) for s, n in zip(places, lengths, strict=True)
    )
    return FractionalPool(einsum("pr,brwc,qw->bpqc", by_row, images, by_column), *places)
