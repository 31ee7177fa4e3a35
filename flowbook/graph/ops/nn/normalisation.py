"""Statistics over axes, and tensors made independent of them: moments and normalisations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from flowbook.graph.definition.axes import all_in_range, as_axes, axes_or_tensor
from flowbook.graph.definition.composed import composed
from flowbook.graph.model.convert import to_array
from flowbook.graph.model.dtypes import DType, float32, float64
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.tensor import Arithmetic, Tensor
from flowbook.graph.ops.basis.broadcasting import reduce_sum
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.constants import convert_to_tensor, stop_gradient
from flowbook.graph.ops.basis.filling import ones_like, zeros_like
from flowbook.graph.ops.basis.joining import stack
from flowbook.graph.ops.basis.shaping import reshape, shape_of, squeeze
from flowbook.graph.ops.math.arithmetic import maximum, multiply
from flowbook.graph.ops.math.comparison import equal, where
from flowbook.graph.ops.math.complex import abs as absolute
from flowbook.graph.ops.math.elementwise import is_finite, rsqrt, square
from flowbook.graph.ops.nn.clipping import clip_by_value
from flowbook.graph.ops.reduction.reductions import reduce_max, reduce_mean, reduce_prod
from flowbook.graph.ops.reduction.standardising import elements_per, moments_op, normalize_op
from flowbook.graph.ops.windows.layouts import layout_of
from flowbook.graph.ops.windows.response_normalisation import normalize_responses_op
from flowbook.graph.ops.windows.windows import whole

__all__ = [
    "batch_normalization",
    "fused_batch_norm",
    "group_normalization",
    "l2_normalize",
    "layer_normalization",
    "local_response_normalization",
    "moments",
    "normalize_moments",
    "sufficient_statistics",
    "weighted_moments",
    "zero_fraction",
]


def _floating(x: Any) -> Tensor:
    tensor: Tensor = convert_to_tensor(x)
    if not tensor.dtype.is_floating:
        raise InvalidTypeError(f"it takes floating-point tensors, not {tensor.dtype.name}")
    return tensor


def _number(value: Any) -> float:
    return float(to_array(value, float64))


def _as(tensor: Tensor, dtype: DType) -> Tensor:
    return tensor if tensor.dtype is dtype else cast(tensor, dtype)


def _without(tensor: Tensor, axes: Any, keepdims: bool) -> Tensor:
    """A statistic without the axes, of size 1, that it was taken over."""
    if keepdims:
        return tensor
    return reshape(tensor, []) if axes is None else squeeze(tensor, axes)


@composed
def moments(
    x: Any, axes: Any, keepdims: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """The mean and the variance over axes.

    Args:
        x: of a floating-point dtype; half precision is computed in single precision.
        axes: an int or a sequence of ints; None takes all.
        keepdims: keep the axes, with size 1.

    Returns:
        `(mean, variance)`; the variance is the mean squared distance from the mean. Both are
        accurate where the mean is many times the standard deviation, too.

    Raises:
        InvalidArgumentError: if there is no such axis, or one is named twice.
    """
    x = _floating(x)
    axes = axes_or_tensor(axes, x)
    mean, variance = (_without(t, axes, keepdims) for t in moments_op(x, axes=axes))
    return mean, variance


def _centred(x: Tensor, average: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
    """The mean and the variance, from what gives a tensor's mean."""
    rough = average(x)
    # The result does not depend on the centre, and so its gradient is none; of infinities the
    # difference would be NaN.
    mean = stop_gradient(where(is_finite(rough), rough, zeros_like(rough)))
    distances = x - mean
    for _ in range(2):
        rest = average(distances)
        mean, distances = mean + rest, distances - rest
    return mean, average(square(distances))


@composed
def weighted_moments(
    x: Any, axes: Any, frequency_weights: Any, keepdims: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """The mean and the variance over axes, where elements count as often as their weights say.

    Args:
        x: of a floating-point dtype; half precision is computed in single precision.
        axes: an int or a sequence of ints; None takes all.
        frequency_weights: not negative, of a number dtype, of a shape that broadcasts to `x`'s.
        keepdims: keep the axes, with size 1.

    Returns:
        `(mean, variance)`; NaN where all weights are 0.
    """
    x = _floating(x)
    axes = axes_or_tensor(axes, x)
    weights = convert_to_tensor(frequency_weights)
    data = _as(x, float32 if x.dtype.size == 2 else x.dtype)
    # Where weights are repeated along an axis, each repetition counts.
    weights = _as(weights, data.dtype) * ones_like(data)
    total = reduce_sum(weights, axes, keepdims=True)
    mean, variance = (
        _as(_without(t, axes, keepdims), x.dtype)
        for t in _centred(data, lambda t: reduce_sum(weights * t, axes, keepdims=True) / total)
    )
    return mean, variance


@composed
def sufficient_statistics(
    x: Any, axes: Any, shift: Any = None, keepdims: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """The sums from which `normalize_moments` makes mean and variance.

    Args:
        x: of a floating-point dtype.
        axes: an int or a sequence of ints; None takes all.
        shift: what is subtracted from `x` first, of a shape that broadcasts to the sums'. Something
            near the mean keeps the variance accurate; None is 0.
        keepdims: keep the axes, with size 1.

    Returns:
        `(count, sum, sum of squares, shift)`: the count is a scalar of `x`'s dtype.
    """
    x = _floating(x)
    axes = as_axes(axes, x)
    shift = None if shift is None else convert_to_tensor(shift, x.dtype)
    values = x if shift is None else x - shift
    total = reduce_sum(values, axes, keepdims=keepdims, name="sum")
    squares = reduce_sum(square(values), axes, keepdims=keepdims, name="squares")
    count = convert_to_tensor(_elements_along(x, axes), x.dtype, name="count")
    return count, total, squares, shift


def _elements_along(x: Tensor, axes: Any) -> Any:
    """How many elements there are along axes; it does not depend on there being others."""
    dims = x.shape.dims
    along = dims if dims is None or axes is None else [dims[i] for i in axes]
    along = [] if axes == () else along
    if along is not None and None not in along:
        return float(math.prod(along))
    sizes = shape_of(x)
    counted = sizes if axes is None else stack([sizes[i] for i in axes])
    return cast(reduce_prod(counted), x.dtype)


@composed
def normalize_moments(
    counts: Any, mean_ss: Any, variance_ss: Any, shift: Any, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """The mean and the variance from what `sufficient_statistics` gives.

    Args:
        counts: how many elements there are, a scalar.
        mean_ss: their sum.
        variance_ss: the sum of their squares.
        shift: what was subtracted from them first, or None.
    """
    divisor = 1.0 / convert_to_tensor(counts)
    shifted = mean_ss * divisor
    variance = variance_ss * divisor - square(shifted)
    return shifted if shift is None else shifted + shift, variance


@composed
def l2_normalize(
    x: Any, axis: Any = None, epsilon: float = 1e-12, name: str | None = None
) -> Tensor:
    """Divide by the length along axes, so that the result has length 1.

    Args:
        x: of a floating-point dtype.
        axis: an int or a sequence of ints; None takes all.
        epsilon: the least square of the length that is divided by, so that zeros stay zeros.

    Returns:
        `x / sqrt(max(sum(x ** 2), epsilon))`; squares neither overflow nor vanish.
    """
    x = _floating(x)
    axes = axes_or_tensor(axis, x)
    if not isinstance(epsilon, Arithmetic):
        epsilon = _number(epsilon)
        if epsilon < 0:
            raise InvalidArgumentError(f"epsilon is not negative: {epsilon}")
    # Any scale would give the same; this one keeps squares in range.
    largest = reduce_max(absolute(x), axes, keepdims=True)
    least = epsilon**0.5
    scale = stop_gradient(clip_by_value(largest, least, x.dtype.max))
    scaled = x / scale
    squares = reduce_sum(square(scaled), axes, keepdims=True)
    floor = square(least / scale)
    return multiply(scaled, rsqrt(maximum(squares, floor)), name=name)


@composed("batchnorm")
def batch_normalization(
    x: Any,
    mean: Any,
    variance: Any,
    offset: Any,
    scale: Any,
    variance_epsilon: float,
    name: str | None = None,
) -> Tensor:
    """`(x - mean) / sqrt(variance + variance_epsilon) * scale + offset`, all of them given.

    Args:
        x: of a floating-point dtype.
        mean: of a shape that broadcasts to `x`'s, as the next three; such as from `moments`.
        variance: likewise. A wider dtype than `x`'s, the same for all four, is what is computed in.
        offset: likewise, or None for 0.
        scale: likewise, or None for 1.
        variance_epsilon: a small number, so that a variance of 0 does no harm.

    Returns:
        A tensor of `x`'s shape and dtype.

    Source: Ioffe and Szegedy, "Batch Normalization", 2015.
    """
    x = convert_to_tensor(x)
    is_tensor = isinstance(variance, Arithmetic)
    variance = convert_to_tensor(variance, None if is_tensor else x.dtype)
    factor = rsqrt(variance + variance_epsilon)
    if scale is not None:
        factor = factor * scale
    # The mean first: beside a large one, the products would lose what differs.
    normal = (cast(x, variance.dtype) - mean) * factor
    return cast(normal if offset is None else normal + offset, x.dtype)


@composed
def fused_batch_norm(
    x: Any,
    scale: Any,
    offset: Any,
    mean: Any = None,
    variance: Any = None,
    epsilon: float = 0.001,
    data_format: str = "NHWC",
    is_training: bool = True,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalise each channel over the batch: to mean 0 and variance 1, then scaled and shifted.

    Args:
        x: [batch, ..., channels], of a floating-point dtype; of rank 4 where it is not known.
        scale: [channels], of the same dtype, or float32 where `x` is half precision.
        offset: likewise.
        mean: likewise, given if and only if not training.
        variance: likewise.
        epsilon: a small number that is added to the variance.
        data_format: "NHWC", or the like of channels last; or "NCW", "NCHW", "NCDHW" for
            [batch, channels, ...], with as many dimensions.
        is_training: whether to take the batch's own mean and variance.

    Returns:
        `(y, batch_mean, batch_variance)`: the result, and [channels] each the mean and the
        unbiased variance (over `n - 1`), from which running averages are made; what was given,
        where not training.

    Raises:
        InvalidArgumentError: if mean and variance are missing, or given in training.

    Source: Ioffe and Szegedy, "Batch Normalization", 2015.
    """
    layout = layout_of(data_format)
    x = _floating(x)
    is_half = x.dtype.size == 2
    scale = convert_to_tensor(scale, None if is_half else x.dtype)
    dtype = scale.dtype if is_half else x.dtype
    for given in (mean, variance):
        if is_training and given is not None:
            raise InvalidArgumentError(
                "in training mean and variance are the batch's own; they are not given",
                hint="pass is_training=False to use given ones",
            )
        if not is_training and given is None:
            raise InvalidArgumentError("mean and variance are needed where not training")
    data = layout.channels_last(_as(x, dtype))
    if not is_training:
        mean, variance = convert_to_tensor(mean, dtype), convert_to_tensor(variance, dtype)
        y = batch_normalization(data, mean, variance, offset, scale, epsilon)
        return layout.restored(_as(y, x.dtype)), mean, variance
    rank = 4 if x.shape.rank is None else x.shape.rank
    axes = tuple(range(rank - 1))
    y, mean, variance = normalize_op(data, scale, offset, axes=axes, epsilon=_number(epsilon))
    # Over one element only the variance is 0, not 0 / 0.
    count = convert_to_tensor(elements_per(data, mean), dtype)
    unbiased = squeeze(variance, axes) * (count / maximum(count - 1.0, 1.0))
    return layout.restored(_as(y, x.dtype)), squeeze(mean, axes), unbiased


def layer_normalization(
    x: Any,
    scale: Any = None,
    offset: Any = None,
    axis: Any = -1,
    epsilon: float = 1e-5,
    name: str | None = None,
) -> Tensor:
    """Normalise each example over its own features: to mean 0 and variance 1, scaled and shifted.

    Args:
        x: of a floating-point dtype.
        scale: of a shape that broadcasts to `x`'s, such as [features], or None for 1.
        offset: likewise, or None for 0.
        axis: the axes of the features, an int or a sequence of ints.
        epsilon: a small number that is added to the variance.
        name: the operation's name.

    Raises:
        InvalidArgumentError: if there is no such axis, or shapes do not broadcast.

    Source: Ba et al., "Layer Normalization", 2016.

    >>> import flowbook as fb
    >>> x = fb.constant([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]])
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.nn.layer_normalization(x)).round(2))
    [[-1.22  0.    1.22]
     [-1.22  0.    1.22]]
    """
    x = _floating(x)
    axes = as_axes(axis, x)
    if axes is None and x.shape.rank is not None:
        axes = all_in_range(None, x.shape.rank)
    if not axes:
        raise InvalidArgumentError(f"axis names one axis at least, not {axis!r}")
    scale, offset = _scale_and_offset(x, scale, offset)
    y: Tensor
    y, _, _ = normalize_op(
        x,
        scale,
        offset,
        axes=axes,
        epsilon=_number(epsilon),
        name=name or "layer_normalization",
    )
    return y


def _scale_and_offset(x: Tensor, scale: Any, offset: Any) -> tuple[Tensor, Tensor]:
    """Both as tensors of one shape; a missing one does nothing."""
    if scale is None and offset is None:
        return convert_to_tensor(1.0, x.dtype), convert_to_tensor(0.0, x.dtype)
    if scale is None:
        offset = convert_to_tensor(offset, x.dtype)
        return ones_like(offset), offset
    scale = convert_to_tensor(scale, x.dtype)
    return scale, zeros_like(scale) if offset is None else convert_to_tensor(offset, x.dtype)


@composed
def group_normalization(
    x: Any,
    groups: int,
    scale: Any = None,
    offset: Any = None,
    epsilon: float = 1e-5,
    name: str | None = None,
) -> Tensor:
    """Normalise each example over groups of its channels, and over all places.

    Args:
        x: [batch, ..., channels], of a floating-point dtype.
        groups: how many groups there are, an int that divides the channels. With one group for
            each channel it is instance normalisation.
        scale: [channels], or None for 1.
        offset: [channels], or None for 0.
        epsilon: a small number that is added to the variance.

    Raises:
        InvalidArgumentError: if the groups do not divide the channels.

    Source: Wu and He, "Group Normalization", 2018.
    """
    x = _floating(x)
    channels = None if not x.shape.dims else x.shape.dims[-1]
    if x.shape.rank in (0, 1):
        raise InvalidArgumentError(f"it takes [batch, ..., channels], not the shape {x.shape}")
    groups = whole("groups", groups)
    if groups < 1 or (channels or 0) % groups:
        raise InvalidArgumentError(
            f"groups is an int that divides the {channels} channels, not {groups!r}"
        )
    factors = [
        None if f is None else reshape(convert_to_tensor(f, x.dtype), [groups, -1])
        for f in (scale, offset)
    ]
    shape = convert_to_tensor(shape_of(x))
    places = reduce_prod(shape[1:-1])
    apart = stack([shape[0], places, groups, shape[-1] // groups])
    y, _, _ = normalize_op(
        reshape(x, apart),
        *_scale_and_offset(x, *factors),
        axes=(1, 3),
        epsilon=_number(epsilon),
    )
    return reshape(y, shape, name=name)


def local_response_normalization(
    input: Any,
    depth_radius: int = 5,
    bias: float = 1.0,
    alpha: float = 1.0,
    beta: float = 0.5,
    name: str | None = None,
) -> Tensor:
    """Divide each element by a power of the sum of squares of the channels around its own.

    Args:
        input: [batch, height, width, channels], of a floating-point dtype.
        depth_radius: how many channels on either side count, an int.
        bias: a number.
        alpha: a number.
        beta: a number.
        name: the name scope.

    Returns:
        `input / (bias + alpha * sums) ** beta`.

    Source: Krizhevsky et al., "ImageNet Classification", 2012.
    """
    input = _floating(input)
    depth_radius = whole("depth_radius", depth_radius)
    if depth_radius < 0:
        raise InvalidArgumentError(f"depth_radius is a count, not {depth_radius!r}")
    settings = {"bias": bias, "alpha": alpha, "beta": beta}
    return normalize_responses_op(
        input,
        depth_radius=depth_radius,
        **{key: float(value) for key, value in settings.items()},
        name=name or "local_response_normalization",
    )


@composed
def zero_fraction(value: Any, name: str | None = None) -> Tensor:
    """Which part of a tensor's elements is zero: a float32 scalar, NaN where there are none.

    Args:
        value: of a number dtype and any shape.
    """
    value = convert_to_tensor(value)
    zeros = cast(equal(value, zeros_like(value)), float32)
    return reduce_mean(zeros, name=name)
