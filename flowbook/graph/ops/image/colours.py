"""Colours of images: their dtypes, brightness and contrast, hue and saturation.

The last dimension holds channels: red, green, blue where there are three. Floating-point images are
in [0, 1], integer ones from 0 to the greatest value of their dtype.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from flowbook.graph.building.scopes import control_dependencies, name_scope
from flowbook.graph.definition.composed import composed
from flowbook.graph.model.convert import to_array
from flowbook.graph.model.dtypes import FLOATS, DType, as_dtype, bfloat16, float16, float32
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Arithmetic, Tensor
from flowbook.graph.ops.basis.broadcasting import reduce_sum
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.constants import convert_to_tensor, identity, no_op
from flowbook.graph.ops.basis.joining import concat, stack
from flowbook.graph.ops.basis.shaping import expand_dims, squeeze
from flowbook.graph.ops.basis.shaping import shape as shape_of
from flowbook.graph.ops.checks.assertions import assert_non_negative
from flowbook.graph.ops.image.images import as_images
from flowbook.graph.ops.math.arithmetic import divide, floordiv, maximum, multiply
from flowbook.graph.ops.math.comparison import equal, where
from flowbook.graph.ops.math.complex import abs as abs_of
from flowbook.graph.ops.math.elementwise import floor, sqrt
from flowbook.graph.ops.math.powers import pow
from flowbook.graph.ops.nn.clipping import clip_by_value
from flowbook.graph.ops.nn.normalisation import moments
from flowbook.graph.ops.random.random_numbers import random_uniform
from flowbook.graph.ops.reduction.reductions import reduce_max, reduce_mean, reduce_min, reduce_prod

__all__ = [
    "adjust_brightness",
    "adjust_contrast",
    "adjust_gamma",
    "adjust_hue",
    "adjust_saturation",
    "convert_image_dtype",
    "grayscale_to_rgb",
    "hsv_to_rgb",
    "per_image_standardization",
    "random_brightness",
    "random_contrast",
    "random_hue",
    "random_saturation",
    "rgb_to_grayscale",
    "rgb_to_hsv",
]


@composed("convert_image")
def convert_image_dtype(
    image: Any, dtype: Any, saturate: bool = False, name: str | None = None
) -> Tensor:
    """Images as another dtype, with their values scaled to its range.

    Args:
        image: of an integer dtype, or of a floating-point one in [0, 1].
        dtype: the wanted dtype, likewise.
        saturate: replace values beyond the range of an integer dtype by its limits; without it they
            wrap around.
    """
    image, wanted = convert_to_tensor(image), as_dtype(dtype)
    for used in (image.dtype, wanted):
        if not (used.is_integer or used.is_floating):
            raise InvalidTypeError(f"pixels are integers or floats, not {used.name}")
    given: DType = image.dtype
    if given is wanted:
        return identity(image, name=name)
    if given.is_integer and wanted.is_integer:
        return _rescaled(image, wanted, saturate, name)
    if wanted.is_floating:
        if given.is_floating:
            return cast(image, wanted, name=name)
        least = 1.0 / float(given.max)
        return multiply(cast(image, wanted), least, name=name)
    if given in (bfloat16, float16):
        # They have not as many numbers, and float16 ends at 65504.
        image = cast(image, float32)
    # Half a step more, so that 1 is not the only number that becomes the greatest.
    scaled = image * np.asarray(float(wanted.max) + 0.5, image.dtype.numpy)
    return _as_integers(scaled, wanted, saturate, name)


def _rescaled(image: Tensor, wanted: DType, saturate: bool, name: str | None) -> Tensor:
    steps, new_steps = int(image.dtype.max) + 1, int(wanted.max) + 1
    if steps > new_steps:
        fewer = floordiv(image, np.asarray(steps // new_steps, image.dtype.numpy))
        return _as_integers(fewer, wanted, saturate, name)
    wider = _as_integers(image, wanted, saturate, None)
    factor = np.asarray(new_steps // steps, wanted.numpy)
    return multiply(wider, factor, name=name)


def _as_integers(image: Tensor, wanted: DType, saturate: bool, scope: str | None) -> Tensor:
    if saturate:
        image = clip_by_value(image, *_limits(image.dtype, wanted))
    return cast(image, wanted, name=scope)


def _limits(given: DType, wanted: DType) -> tuple[Any, Any]:
    """The limits of an integer dtype as far as another one can hold them."""
    if given.is_integer:
        limits = max(int(given.min), int(wanted.min)), min(int(given.max), int(wanted.max))
        return tuple(np.asarray(limit, given.numpy) for limit in limits)  # type: ignore[return-value]
    greatest = np.asarray(wanted.max, given.numpy)
    if int(greatest) > int(wanted.max):
        # It was rounded up.
        greatest = np.nextafter(greatest, np.zeros((), given.numpy))
    return np.asarray(wanted.min, given.numpy), greatest


def _as_floats(image: Any) -> tuple[Tensor, DType]:
    """Images as floats in [0, 1], and the dtype that they had."""
    tensor = convert_to_tensor(image)
    given: DType = tensor.dtype
    if given in FLOATS:
        return tensor, given
    return convert_image_dtype(tensor, float32), given


def _back(image: Tensor, given: DType, name: str | None) -> Tensor:
    return convert_image_dtype(image, given, saturate=True, name=name)


def scalar_like(value: Any, like: Tensor) -> Any:
    """A scalar argument as the images' dtype."""
    if isinstance(value, Arithmetic):
        tensor = convert_to_tensor(value)
        return tensor if tensor.dtype is like.dtype else cast(tensor, like.dtype)
    return to_array(value, like.dtype)


def adjust_brightness(image: Any, delta: Any) -> Tensor:
    """Images with `delta` added to every channel.

    Args:
        image: of any real number dtype.
        delta: a scalar, of the scale on which images are in [0, 1].

    Returns:
        Images of the same dtype. Integer ones stay within their range.
    """
    with name_scope("adjust_brightness") as scope:
        floats, given = _as_floats(image)
        return _back(floats + scalar_like(delta, floats), given, scope)


def adjust_contrast(images: Any, contrast_factor: Any) -> Tensor:
    """Images whose pixels are that factor times as far from the mean of their channel.

    Args:
        images: one image or a batch of them, of any real number dtype.
        contrast_factor: a scalar.

    Returns:
        Images of the same dtype. Integer ones stay within their range.
    """
    with name_scope("adjust_contrast") as scope:
        floats, given = _as_floats(as_images(images))
        factor = scalar_like(contrast_factor, floats)
        if Shape(factor.shape).rank:
            raise InvalidArgumentError(f"the factor is a scalar, not of shape {factor.shape}")
        means = reduce_mean(floats, (-3, -2), keepdims=True)
        return _back((floats - means) * factor + means, given, scope)


def adjust_gamma(image: Any, gamma: Any = 1, gain: Any = 1) -> Tensor:
    """`gain * image ** gamma`: darker images for a gamma above 1, lighter ones below.

    Args:
        image: of any real number dtype.
        gamma: a scalar, not negative.
        gain: a scalar.

    Returns:
        Images of the same dtype. Integer ones stay within their range.

    Raises:
        InvalidArgumentError: if gamma is negative; in the run, where it is known only then.
    """
    with name_scope("adjust_gamma") as scope:
        floats, given = _as_floats(image)
        checks = [assert_non_negative(gamma, message="gamma is not negative")]
        with control_dependencies([c for c in checks if c.op_def is not no_op]):
            power = pow(floats, scalar_like(gamma, floats))
        return _back(power * scalar_like(gain, floats), given, scope)


@composed
def rgb_to_grayscale(images: Any, name: str | None = None) -> Tensor:
    """Images of one channel, from the weights that the eye gives to red, green and blue.

    Args:
        images: [..., 3] of any real number dtype.

    Returns:
        [..., 1] of the same dtype.
    """
    floats, given = _as_floats(images)
    _check_rgb(floats)
    weights = np.array([0.2989, 0.5870, 0.1140], floats.dtype.numpy)
    return _back(reduce_sum(floats * weights, -1, keepdims=True), given, name)


@composed
def grayscale_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """Images of three equal channels, [..., 3], from images of one, [..., 1]."""
    images = convert_to_tensor(images)
    dims = images.shape.dims
    if dims is not None and (len(dims) < 2 or dims[-1] not in (None, 1)):
        raise InvalidArgumentError(
            f"grayscale images are [..., height, width, 1], not of the shape {images.shape}"
        )
    if dims is None or dims[-1] is None:
        images = expand_dims(squeeze(images, -1), -1)
    return concat([images] * 3, -1, name=name)


def _check_rgb(images: Tensor) -> None:
    if images.shape.rank == 0 or (images.shape.dims and images.shape.dims[-1] not in (None, 3)):
        raise InvalidArgumentError(
            f"images have three channels in the last dimension, not the shape {images.shape}"
        )


def _floating(images: Any) -> Tensor:
    tensor = convert_to_tensor(images)
    if not tensor.dtype.is_floating:
        raise InvalidTypeError(
            f"hues are floats, and the images {tensor.dtype.name}",
            hint="fb.image.convert_image_dtype(images, fb.float32)",
        )
    _check_rgb(tensor)
    return tensor


@composed
def rgb_to_hsv(images: Any, name: str | None = None) -> Tensor:
    """Hue, saturation and value of colours.

    Args:
        images: [..., 3] of a floating-point dtype, in [0, 1].

    Returns:
        [..., 3] of the same dtype: the hue in [0, 1) where 0 is red, 1/3 green and 2/3 blue; the
        saturation and the value in [0, 1]. Grey has the hue 0.
    """
    images = _floating(images)
    red, green, blue = (images[..., i] for i in range(3))
    value, least = reduce_max(images, -1), reduce_min(images, -1)
    spread = value - least
    # Where a divisor is 0 what is divided by 1 is not taken, nor is its gradient.
    saturation = where(value > 0.0, spread / where(value > 0.0, value, 1.0), 0.0)
    sixth = 1.0 / (6.0 * where(spread > 0.0, spread, 1.0))
    of_red, of_green = (green - blue) * sixth, (blue - red) * sixth + 2.0 / 6.0
    of_blue = (red - green) * sixth + 4.0 / 6.0
    hue = where(equal(value, red), of_red, where(equal(value, green), of_green, of_blue))
    hue = where(spread > 0.0, hue, 0.0)
    hue = where(hue < 0.0, hue + 1.0, hue)
    return stack([hue, saturation, value], -1, name=name)


@composed
def hsv_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """Red, green and blue of colours given by hue, saturation and value.

    Args:
        images: [..., 3] of a floating-point dtype; hues are in [0, 1].
    """
    images = _floating(images)
    hue, saturation, value = (images[..., i] for i in range(3))
    around = hue * 6.0
    full = [
        clip_by_value(abs_of(around - 3.0) - 1.0, 0.0, 1.0),
        clip_by_value(2.0 - abs_of(around - 2.0), 0.0, 1.0),
        clip_by_value(2.0 - abs_of(around - 4.0), 0.0, 1.0),
    ]
    grey = 1.0 - saturation
    return stack([(grey + saturation * c) * value for c in full], -1, name=name)


@composed
def adjust_hue(image: Any, delta: Any, name: str | None = None) -> Tensor:
    """Images with their hues turned.

    Args:
        image: [..., 3] of any real number dtype.
        delta: how far, a scalar in [-1, 1]; 1 is a full turn.

    Returns:
        Images of the same dtype.
    """
    floats, given = _as_floats(image)
    hsv = rgb_to_hsv(floats)
    hue = hsv[..., :1] + scalar_like(delta, floats)
    turned = concat([hue - floor(hue), hsv[..., 1:]], -1)
    return _back(hsv_to_rgb(turned), given, name)


@composed
def adjust_saturation(image: Any, saturation_factor: Any, name: str | None = None) -> Tensor:
    """Images with their saturation multiplied, and kept within [0, 1].

    Args:
        image: [..., 3] of any real number dtype.
        saturation_factor: a scalar; 0 makes images grey.

    Returns:
        Images of the same dtype.
    """
    floats, given = _as_floats(image)
    hsv = rgb_to_hsv(floats)
    saturation = clip_by_value(hsv[..., 1:2] * scalar_like(saturation_factor, floats), 0.0, 1.0)
    changed = concat([hsv[..., :1], saturation, hsv[..., 2:]], -1)
    return _back(hsv_to_rgb(changed), given, name)


def _between(low: Any, high: Any, seed: int | None, order: bool = True) -> Tensor:
    if order and not (0 <= low < high):
        raise InvalidArgumentError(f"limits are 0 <= lower < upper, not {low} and {high}")
    return random_uniform([], low, high, seed=seed)


def _check_delta(max_delta: Any, most: float) -> None:
    if not isinstance(max_delta, Real) or not 0 <= float(max_delta) <= most:
        raise InvalidArgumentError(f"max_delta is from 0 to {most}, not {max_delta}")


@composed
def random_brightness(image: Any, max_delta: float, seed: int | None = None) -> Tensor:
    """Images as by `adjust_brightness`, by a number uniform in [-max_delta, max_delta).

    Args:
        image: of any real number dtype.
        max_delta: a number, not negative.
        seed: an int that makes the numbers reproducible, see `set_random_seed`.
    """
    _check_delta(max_delta, float("inf"))
    return adjust_brightness(image, random_uniform([], -max_delta, max_delta, seed=seed))


@composed
def random_contrast(image: Any, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """Images as by `adjust_contrast`, by a factor uniform in [lower, upper).

    Args:
        image: one image or a batch of them, of any real number dtype.
        lower: a number, not negative.
        upper: a number above `lower`.
        seed: an int that makes the numbers reproducible, see `set_random_seed`.
    """
    return adjust_contrast(image, _between(lower, upper, seed))


@composed
def random_saturation(image: Any, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """Images as by `adjust_saturation`, by a factor uniform in [lower, upper).

    Args:
        image: [..., 3] of any real number dtype.
        lower: a number, not negative.
        upper: a number above `lower`.
        seed: an int that makes the numbers reproducible, see `set_random_seed`.
    """
    return adjust_saturation(image, _between(lower, upper, seed))


@composed
def random_hue(image: Any, max_delta: float, seed: int | None = None) -> Tensor:
    """Images as by `adjust_hue`, by a turn uniform in [-max_delta, max_delta).

    Args:
        image: [..., 3] of any real number dtype.
        max_delta: a number in [0, 0.5].
        seed: an int that makes the numbers reproducible, see `set_random_seed`.
    """
    _check_delta(max_delta, 0.5)
    return adjust_hue(image, random_uniform([], -max_delta, max_delta, seed=seed))


@composed
def per_image_standardization(image: Any, name: str | None = None) -> Tensor:
    """Images with mean 0 and variance 1, each for itself.

    Args:
        image: one image or a batch of them, of any real number dtype.

    Returns:
        Images of that dtype if it is floating-point, else float32. The standard deviation that they
        are divided by is at least `1 / sqrt(pixels)`, so that uniform images become 0.
    """
    image = as_images(image)
    if not image.dtype.is_floating:
        image = cast(image, float32)
    mean, variance = moments(image, (-3, -2, -1), keepdims=True)
    least = 1.0 / sqrt(cast(reduce_prod(shape_of(image)[-3:]), image.dtype))
    return divide(image - mean, maximum(sqrt(variance), least), name=name)
