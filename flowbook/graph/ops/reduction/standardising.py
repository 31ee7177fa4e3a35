"""Moments over axes; and to mean 0 and variance 1, then scaled and shifted, as one operation.

Batch, layer and group normalisation are this over different axes. Statistics take two passes, the
second of which also corrects the mean: so they are right where the mean is many times the standard
deviation, in single precision too. Half precision is computed in single precision.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from flowbook.graph.definition.axes import all_in_range, reduced
from flowbook.graph.definition.op_def import REQUIRED, OpDef
from flowbook.graph.gradients.backward import gradients
from flowbook.graph.model.dtypes import FLOATS
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import Shape, broadcast
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.numerics.sums import sum_of_products, sum_over
from flowbook.graph.ops.basis.broadcasting import sum_to_shape
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.shaping import size_op
from flowbook.graph.ops.math.arithmetic import maximum
from flowbook.graph.ops.math.elementwise import rsqrt
from flowbook.graph.ops.reduction.reductions import mean_op

Axes = tuple[int, ...]

# Sums longer than this are made of sums of blocks.
_LONG = 1024
_BLOCK = 128
# Of long axes one element in so many tells the mean, about.
_SAMPLED = 16


def _check_scale(scale: Shape, offset: Shape, x: Shape) -> None:
    try:
        fits = scale.rank is None or broadcast(scale, x).is_compatible_with(x)
    except InvalidArgumentError:
        fits = False
    if not fits:
        raise InvalidArgumentError(f"a scale of shape {scale} does not broadcast to {x}")
    if not scale.is_compatible_with(offset):
        raise InvalidArgumentError(f"scale and offset have the shapes {scale} and {offset}")


def _shapes(x: Tensor, scale: Tensor, offset: Tensor, axes: Axes, epsilon: float) -> list[Shape]:
    _check_scale(scale.shape, offset.shape, x.shape)
    statistics = reduced(x.shape, axes, True)
    return [x.shape, statistics, statistics]


def _wide(array: Any) -> Any:
    """In row-major order, half precision as single."""
    dtype = np.float32 if array.dtype == np.float16 else array.dtype
    return array.astype(dtype, "C", copy=False)


def _sum(xp: Any, x: Any, axes: Axes) -> Any:
    """The sum over axes, one after the other: short sums round less, and long rows add faster."""
    for axis in axes:
        if axis != x.ndim - 1 and x.shape[axis] > _LONG:
            x = xp.add.reduceat(x, xp.arange(0, x.shape[axis], _BLOCK), axis, x.dtype)
        x = sum_over(xp, x, (axis,), keepdims=True)
    return x


def _mean(xp: Any, x: Any, axes: Axes, count: int) -> Any:
    return xp.divide(_sum(xp, x, axes), x.dtype.type(count))


def _count(x: Any, axes: Axes) -> int:
    return prod(x.shape[axis] for axis in axes)


def _distances(xp: Any, x: Any, centre: Any, axes: Axes, count: int) -> tuple[Any, Any]:
    """How far elements lie from their mean, and the mean, from a first estimate of it."""
    distances = xp.subtract(x, centre)
    rest = _mean(xp, distances, axes, count)
    distances -= rest
    return distances, centre + rest


def _mean_of_squares(xp: Any, x: Any, axes: Axes, count: int) -> Any:
    if axes == (x.ndim - 1,):
        return xp.divide(sum_of_products(xp, x, x), x.dtype.type(count))
    return _mean(xp, xp.square(x), axes, count)


def _centre(xp: Any, data: Any, axes: Axes) -> Any:
    """The mean, about; 0 where it is infinite, since infinity less infinity is NaN."""
    rough = _mean(xp, data, axes, _count(data, axes))
    return xp.where(xp.isfinite(rough), rough, rough.dtype.type(0))


def _sample(data: Any, axes: Axes) -> Any:
    """Some of the elements over the axes, of which the mean is close enough to be subtracted."""
    if not axes or data.shape[axes[0]] < _LONG // 2:
        return data
    return data[(*(slice(None),) * axes[0], slice(None, None, _SAMPLED))]


def _statistics(xp: Any, data: Any, axes: Axes) -> tuple[Any, Any, Any]:
    """Distances from the mean, the mean, and the variance."""
    count = _count(data, axes)
    distances, mean = _distances(xp, data, _centre(xp, data, axes), axes, count)
    return distances, mean, _mean_of_squares(xp, distances, axes, count)


def moments_over(xp: Any, x: Any, axes: Axes | None) -> tuple[Any, Any]:
    """The mean and the variance over axes, which stay with size 1; of half precision in single."""
    gone, data = all_in_range(axes, x.ndim), _wide(x)
    count = _count(data, gone)
    centre = _centre(xp, _sample(data, gone), gone)
    distances = xp.subtract(data, centre)
    rest = _mean(xp, distances, gone, count)
    mean, variance = centre + rest, _mean_of_squares(xp, distances, gone, count)
    excess = xp.square(rest)
    if xp.all((4 * excess <= variance) & xp.isfinite(excess)):
        return mean, variance - excess
    # So far from the mean the difference loses digits, all of them where elements are equal.
    _, mean, variance = _statistics(xp, data, gone)
    return mean, variance


def _moments(xp: Any, x: Any, axes: Axes | None) -> tuple[Any, ...]:
    return tuple(a.astype(x.dtype, copy=False) for a in moments_over(xp, x, axes))


def _moments_shapes(x: Tensor, axes: Axes | None) -> list[Shape]:
    return [reduced(x.shape, axes, True)] * 2


def distances_from(x: Tensor, mean: Tensor, axes: Axes | None) -> Tensor:
    """How far elements lie from their mean, the rounding of which does not count."""
    distances = x - mean
    return distances - mean_op(distances, axis=axes, keepdims=True)


def _moments_gradient(op: Operation, dmean: Tensor, dvariance: Tensor) -> Tensor:
    x, mean = op.inputs[0], op.outputs[0]
    distances = distances_from(x, mean, op.attributes["axes"])
    return (dmean + 2.0 * distances * dvariance) / elements_per(x, mean)  # type: ignore[no-any-return]


moments_op: OpDef[tuple[Tensor, Tensor]] = OpDef(
    "Moments",
    "x: T -> mean: T, variance: T",
    T=FLOATS,
    attributes={"axes": REQUIRED},
    infer=_moments_shapes,
    kernel=_moments,
    grad=_moments_gradient,
    axes="axes",
    cost=lambda op: 6 * (op.inputs[0].shape.size or 0),
)


def _normalize(
    xp: Any, x: Any, scale: Any, offset: Any, axes: Axes, epsilon: float
) -> tuple[Any, Any, Any]:
    _check_scale(Shape(scale.shape), Shape(offset.shape), Shape(x.shape))
    gone, data = all_in_range(axes, x.ndim), _wide(x)
    result, mean, variance = _statistics(xp, data, gone)
    deviation = xp.sqrt(variance + variance.dtype.type(epsilon))
    if _is_shared(scale, x, gone):
        result *= scale / deviation
    else:
        # Their quotient would be as large as the result.
        result *= xp.reciprocal(deviation)
        result *= scale
    result += offset
    return tuple(a.astype(x.dtype, copy=False) for a in (result, mean, variance))


def _is_shared(scale: Any, x: Any, axes: Axes) -> bool:
    """Whether elements that share a mean share a scale too."""
    aligned = (1,) * (x.ndim - scale.ndim) + scale.shape
    return all(aligned[axis] == 1 for axis in axes)


def _summed(xp: Any, array: Any, dims: Any) -> Any:
    """The sum over those axes along which `dims` was broadcast."""
    padded = (1,) * (array.ndim - len(dims)) + tuple(dims)
    axes = tuple(i for i, d in enumerate(padded) if d == 1 and array.shape[i] != 1)
    return _sum(xp, array, axes).reshape(dims)


def _normalize_gradient(
    xp: Any,
    x: Any,
    scale: Any,
    mean: Any,
    variance: Any,
    dy: Any,
    dmean: Any,
    dvariance: Any,
    axes: Axes,
    epsilon: float,
) -> tuple[Any, Any, Any]:
    gone = all_in_range(axes, x.ndim)
    data, slopes, count = _wide(x), _wide(dy), _count(x, gone)
    deviation = xp.sqrt(_wide(variance) + data.dtype.type(epsilon))
    # The mean as an output is rounded, by more than the deviation where that is small beside it.
    normal, _ = _distances(xp, data, _wide(mean), gone, count)
    normal /= deviation
    products = slopes * normal
    if _is_shared(scale, x, gone):
        # The sums that the input's gradient needs are steps to the scale's and the offset's.
        sums = _sum(xp, slopes, gone)
        inner = _sum(xp, products, gone)
        doffset, dscale = _summed(xp, sums, scale.shape), _summed(xp, inner, scale.shape)
        sums, inner = sums * scale, inner * scale
    else:
        doffset, dscale = _summed(xp, slopes, scale.shape), _summed(xp, products, scale.shape)
        products *= scale
        inner = _sum(xp, products, gone)
        sums = _sum(xp, slopes * scale, gone)
    n = data.dtype.type(count)
    normal *= (2 * _wide(dvariance) * deviation - inner / deviation) / n
    normal += xp.multiply(slopes, scale / deviation, out=products)
    normal += (_wide(dmean) - sums / deviation) / n
    return tuple(a.astype(x.dtype, copy=False) for a in (normal, dscale, doffset))


def _gradient(op: Operation, dy: Tensor, dmean: Tensor, dvariance: Tensor) -> Any:
    x, scale, _ = op.inputs
    _, mean, variance = op.outputs
    return normalize_gradient_op(x, scale, mean, variance, dy, dmean, dvariance, **op.attributes)


def _gradient_shapes(
    x: Tensor, scale: Tensor, mean: Tensor, variance: Tensor, dy: Tensor, *_: Tensor, **__: Any
) -> list[Shape]:
    return [x.shape.merge(dy.shape), scale.shape, scale.shape]


def _second_gradient(op: Operation, *given: Tensor) -> Any:
    """The gradient of the first gradient written out as operations.

    In that the mean and the variance are functions of the input, and so not inputs of their own.
    """
    x, scale, _, _, dy, dmean, dvariance = op.inputs
    axes = op.attributes["axes"]

    def average(t: Tensor) -> Tensor:
        return mean_op(t, axis=axes, keepdims=True)

    mean, variance = moments_op(x, axes=axes)
    steepness = rsqrt(variance + op.attributes["epsilon"])
    distances = distances_from(x, mean, axes)
    normal = distances * steepness
    slopes = dy * scale
    count = elements_per(x, mean)
    written_out = [
        (slopes - average(slopes) - normal * average(slopes * normal)) * steepness
        + (dmean + 2.0 * distances * dvariance) / count,
        sum_to_shape(dy * normal, scale),
        sum_to_shape(dy, scale),
    ]
    inputs = [x, scale, dy, dmean, dvariance]
    dx, dscale, ddy, ddmean, ddvariance = gradients(written_out, inputs, list(given), inputs)
    return dx, dscale, None, None, ddy, ddmean, ddvariance


def elements_per(x: Tensor, reduced: Tensor) -> Any:
    """How many elements of a tensor each of a reduction of it is made of."""
    if x.shape.size is not None and reduced.shape.size is not None:
        return float(x.shape.size // max(reduced.shape.size, 1))
    return cast(size_op(x) // maximum(size_op(reduced), 1), x.dtype)


normalize_op: OpDef[tuple[Tensor, Tensor, Tensor]] = OpDef(
    "Normalize",
    "x: T, scale: T, offset: T -> y: T, mean: T, variance: T",
    T=FLOATS,
    attributes={"axes": REQUIRED, "epsilon": REQUIRED},
    infer=_shapes,
    kernel=_normalize,
    grad=_gradient,
    cost=lambda op: 8 * (op.inputs[0].shape.size or 0),
)

normalize_gradient_op: OpDef[tuple[Tensor, Tensor, Tensor]] = OpDef(
    "NormalizeGrad",
    "x: T, scale: T, mean: T, variance: T, dy: T, dmean: T, dvariance: T"
    " -> dx: T, dscale: T, doffset: T",
    T=FLOATS,
    attributes={"axes": REQUIRED, "epsilon": REQUIRED},
    infer=_gradient_shapes,
    kernel=_normalize_gradient,
    grad=_second_gradient,
    cost=lambda op: 12 * (op.inputs[0].shape.size or 0),
)
