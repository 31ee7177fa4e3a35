"""To mean 0 and variance 1 over axes, and then scaled and shifted, as one operation.

Batch, layer and group normalisation are this over different axes. Statistics take two passes, the
second of which also corrects the mean: so they are right where the mean is many times the standard
deviation, in single precision too. Half precision is computed in single precision.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.dtypes import FLOATS
from flowbook.graph.errors import InvalidArgumentError
from flowbook.graph.gradients import gradients
from flowbook.graph.op_def import REQUIRED, OpDef
from flowbook.graph.operation import Operation
from flowbook.graph.ops.arithmetic import squared_difference
from flowbook.graph.ops.axes import all_in_range, reduced
from flowbook.graph.ops.broadcasting import sum_to_shape
from flowbook.graph.ops.comparison import where
from flowbook.graph.ops.constants import stop_gradient
from flowbook.graph.ops.elementwise import cast, is_finite, rsqrt
from flowbook.graph.ops.filling import zeros_like_op
from flowbook.graph.ops.reductions import mean_op
from flowbook.graph.ops.shaping import size_op
from flowbook.graph.registry import op_named
from flowbook.graph.shape import Shape, broadcast
from flowbook.graph.tensor import Tensor

Axes = tuple[int, ...]


def centred_moments(x: Any, average: Any) -> tuple[Tensor, Tensor]:
    """The mean and the variance by operations, as accurate as the kernel's.

    Args:
        x: a tensor.
        average: gives a tensor's mean, of a shape that broadcasts against `x`.
    """
    rough = average(x)
    # The result does not depend on the centre, and so its gradient is none; of infinities the
    # difference would be NaN.
    centre = stop_gradient(where(is_finite(rough), rough, zeros_like_op(rough)))
    distances = x - centre
    rest = average(distances)
    return centre + rest, average(squared_difference(distances, rest))


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


def _mean(xp: Any, x: Any, axes: Axes, count: int) -> Any:
    total = xp.sum(x, axis=axes, keepdims=True, dtype=x.dtype)
    return xp.divide(total, x.dtype.type(count), out=total)


def _count(x: Any, axes: Axes) -> int:
    count = 1
    for axis in axes:
        count *= x.shape[axis]
    return count


def _distances(xp: Any, x: Any, centre: Any, axes: Axes, count: int) -> tuple[Any, Any]:
    """How far elements lie from their mean, and the mean, from a first estimate of it."""
    distances = xp.subtract(x, centre)
    rest = _mean(xp, distances, axes, count)
    distances -= rest
    return distances, centre + rest


def _normalize(
    xp: Any, x: Any, scale: Any, offset: Any, axes: Axes, epsilon: float
) -> tuple[Any, Any, Any]:
    gone = all_in_range(axes, x.ndim)
    data, count = _wide(x), _count(x, gone)
    _check_scale(Shape(scale.shape), Shape(offset.shape), Shape(x.shape))
    rough = _mean(xp, data, gone, count)
    rough[~xp.isfinite(rough)] = 0
    result, mean = _distances(xp, data, rough, gone, count)
    variance = _mean(xp, xp.square(result), gone, count)
    factor = scale / xp.sqrt(variance + variance.dtype.type(epsilon))
    result *= factor
    result += offset
    return tuple(a.astype(x.dtype, copy=False) for a in (result, mean, variance))


def _summed(xp: Any, array: Any, dims: Any) -> Any:
    """The sum over those axes along which `dims` was broadcast."""
    padded = (1,) * (array.ndim - len(dims)) + tuple(dims)
    axes = tuple(i for i, d in enumerate(padded) if d == 1 and array.shape[i] != 1)
    return xp.sum(array, axis=axes, keepdims=True, dtype=array.dtype).reshape(dims)


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
    aligned = (1,) * (x.ndim - scale.ndim) + scale.shape
    if all(aligned[axis] == 1 for axis in gone):
        # The sums that the input's gradient needs are steps to the scale's and the offset's.
        sums = xp.sum(slopes, axis=gone, keepdims=True, dtype=data.dtype)
        inner = xp.sum(products, axis=gone, keepdims=True, dtype=data.dtype)
        doffset, dscale = _summed(xp, sums, scale.shape), _summed(xp, inner, scale.shape)
        sums, inner = sums * scale, inner * scale
    else:
        doffset, dscale = _summed(xp, slopes, scale.shape), _summed(xp, products, scale.shape)
        products *= scale
        inner = xp.sum(products, axis=gone, keepdims=True, dtype=data.dtype)
        sums = xp.sum(slopes * scale, axis=gone, keepdims=True, dtype=data.dtype)
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
        return mean_op(t, axis=axes, keepdims=True)  # type: ignore[no-any-return]

    mean, variance = centred_moments(x, average)
    steepness = rsqrt(variance + op.attributes["epsilon"])
    distances = x - mean
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
    return cast(op_named("FloorDiv")(size_op(x), op_named("Maximum")(size_op(reduced), 1)), x.dtype)


normalize_op = OpDef(
    "Normalize",
    "x: T, scale: T, offset: T -> y: T, mean: T, variance: T",
    T=FLOATS,
    attributes={"axes": REQUIRED, "epsilon": REQUIRED},
    infer=_shapes,
    kernel=_normalize,
    grad=_gradient,
    aliases={},
    cost=lambda op: 8 * (op.inputs[0].shape.size or 0),
)

normalize_gradient_op = OpDef(
    "NormalizeGrad",
    "x: T, scale: T, mean: T, variance: T, dy: T, dmean: T, dvariance: T"
    " -> dx: T, dscale: T, doffset: T",
    T=FLOATS,
    attributes={"axes": REQUIRED, "epsilon": REQUIRED},
    infer=_gradient_shapes,
    kernel=_normalize_gradient,
    grad=_second_gradient,
    aliases={},
    cost=lambda op: 12 * (op.inputs[0].shape.size or 0),
)
