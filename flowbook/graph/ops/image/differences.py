"""How images differ: from pixel to pixel, and one from another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flowbook.graph.definition.composed import composed
from flowbook.graph.model.convert import to_array
from flowbook.graph.model.dtypes import FLOATS, float32, int32, int64
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Arithmetic, Tensor
from flowbook.graph.ops.arrays.repeating import tile
from flowbook.graph.ops.basis.broadcasting import broadcast_dynamic_shape, broadcast_to, reduce_sum
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.constants import convert_to_tensor, identity
from flowbook.graph.ops.basis.joining import concat, stack
from flowbook.graph.ops.basis.padding import pad
from flowbook.graph.ops.basis.shaping import reshape
from flowbook.graph.ops.basis.shaping import shape as shape_of
from flowbook.graph.ops.checks.checking import ensure_shape
from flowbook.graph.ops.image.colours import convert_image_dtype, scalar_like
from flowbook.graph.ops.image.images import as_images
from flowbook.graph.ops.math.arithmetic import maximum, multiply
from flowbook.graph.ops.math.complex import abs as abs_of
from flowbook.graph.ops.math.elementwise import log, square
from flowbook.graph.ops.reduction.reductions import reduce_mean, reduce_prod
from flowbook.graph.ops.windows.depthwise import depthwise_conv2d
from flowbook.graph.ops.windows.pooling import avg_pool

__all__ = ["image_gradients", "psnr", "sobel_edges", "ssim", "ssim_multiscale", "total_variation"]


@composed
def total_variation(images: Any, name: str | None = None) -> Tensor:
    """How much neighbouring pixels differ: the sum of absolute differences.

    Args:
        images: one image or a batch of them, of any real number dtype.

    Returns:
        A scalar, or a vector with an element for each image of a batch; of the images' dtype, or
        int64 where that could not hold the sum.
    """
    images = as_images(images)
    if images.dtype.is_integer and images.dtype not in (int32, int64):
        images = cast(images, int64)
    down = abs_of(images[..., 1:, :, :] - images[..., :-1, :, :])
    right = abs_of(images[..., :, 1:, :] - images[..., :, :-1, :])
    axes = (-3, -2, -1)
    total: Tensor = reduce_sum(down, axes) + reduce_sum(right, axes)
    return identity(total, name=name)


@composed
def image_gradients(image: Any) -> tuple[Tensor, Tensor]:
    """What each pixel lacks to the one below it, and to the one on its right.

    Args:
        image: one image or a batch of them.

    Returns:
        The two differences, each of the images' shape; 0 in the last row, or column.
    """
    images = as_images(image)
    down = images[..., 1:, :, :] - images[..., :-1, :, :]
    right = images[..., :, 1:, :] - images[..., :, :-1, :]
    leading = [[0, 0]] * (len(images.shape) - 3)
    return (
        pad(down, [*leading, [0, 1], [0, 0], [0, 0]]),
        pad(right, [*leading, [0, 0], [0, 1], [0, 0]]),
    )


# The derivative along one axis, smoothed along the other.
_SOBEL = np.array([[-1, -2, -1], [0, 0, 0], [1, 2, 1]])


@composed
def sobel_edges(image: Any) -> Tensor:
    """Sobel's derivatives down and to the right, of each channel.

    Args:
        image: [batch, height, width, channels], of a floating-point dtype; at least 2 by 2.

    Returns:
        [batch, height, width, channels, 2]: the derivative down, and that to the right. Beyond its
        borders an image goes on mirrored.
    """
    images = convert_to_tensor(image)
    if images.dtype not in FLOATS or images.shape.rank != 4:
        raise InvalidTypeError(
            "images are [batch, height, width, channels] of a floating-point dtype, "
            f"not {images.dtype.name} {images.shape}"
        )
    both = np.stack([_SOBEL, _SOBEL.T], -1)[:, :, None, :].astype(images.dtype.numpy)
    channels = shape_of(images)[3]
    filters = tile(both, [1, 1, channels, 1])
    padded = pad(images, [[0, 0], [1, 1], [1, 1], [0, 0]], "REFLECT")
    edges = depthwise_conv2d(padded, filters, [1, 1, 1, 1], "VALID")
    return reshape(edges, concat([shape_of(images), [2]], 0))


def _compared(a: Any, b: Any, max_val: Any) -> tuple[Tensor, Tensor, Any]:
    """Two images and the range of their values, as float32 in [0, 1] if they were integers."""
    a = convert_to_tensor(a)
    b = convert_to_tensor(b, a.dtype)
    if not _compare(a.shape, b.shape):
        raise InvalidArgumentError(
            f"images of shapes {a.shape} and {b.shape} do not compare",
            hint="height, width and channels are equal; dimensions before broadcast",
        )
    if not isinstance(max_val, Arithmetic):
        scale = a.dtype.max if a.dtype.is_integer else 1
        peak: Any = to_array(max_val, float32) / np.float32(scale)
    else:
        peak = convert_image_dtype(scalar_like(max_val, a), float32)
    return convert_image_dtype(a, float32), convert_image_dtype(b, float32), peak


def _compare(a: Shape, b: Shape) -> bool:
    """Whether images of these shapes are as large, and as many or one to be compared with all."""
    if a.dims is None or b.dims is None:
        return True
    sides = zip(reversed(a.dims), reversed(b.dims), strict=False)
    return all(
        None in (m, n) or m == n or (i >= 3 and 1 in (m, n)) for i, (m, n) in enumerate(sides)
    )


@composed
def psnr(a: Any, b: Any, max_val: Any, name: str | None = None) -> Tensor:
    """The peak signal-to-noise ratio of images, in decibels; infinite where they are equal.

    Args:
        a: images [..., height, width, channels] of a real number dtype.
        b: others of the same dtype and size; the dimensions before broadcast.
        max_val: the range of their values, such as 255 or 1.0.

    Returns:
        float32, an element for each image.
    """
    a, b, peak = _compared(a, b, max_val)
    noise = a - b
    mean = reduce_mean(noise * noise, (-3, -2, -1))
    return multiply(log(peak * peak / mean), float(10 / np.log(10)), name=name)


@composed
def ssim(
    img1: Any,
    img2: Any,
    max_val: Any,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
    name: str | None = None,
) -> Tensor:
    """The structural similarity of images: 1 where they are equal.

    Args:
        img1: images [..., height, width, channels] of a real number dtype, no smaller than the
            window.
        img2: others of the same dtype and size; the dimensions before broadcast.
        max_val: the range of their values, such as 255 or 1.0.
        filter_size: the side of the window, in which pixels count by a Gaussian.
        filter_sigma: the standard deviation of that, in pixels.
        k1: steadies the ratio of means.
        k2: steadies the ratio of variances.

    Returns:
        float32, an element for each image: the mean over windows and channels.

    Raises:
        InvalidArgumentError: if the images do not compare or are too small.

    Source: Wang et al., "Image quality assessment: from error visibility to structural similarity",
    2004.
    """
    x, y, peak = _compared(img1, img2, max_val)
    _check_windows(x, filter_size)
    x, y, outer = _in_one_batch(x, y)
    each, _ = _similarities(x, y, peak, filter_size, filter_sigma, k1, k2)
    return reshape(reduce_mean(each, 1), cast(outer, int32), name=name)


def _in_one_batch(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Images with one dimension before their own, each with its other; and what was before."""
    whole = broadcast_dynamic_shape(shape_of(x), shape_of(y))
    outer = whole[:-3]
    single = concat([reshape(reduce_prod(outer), [1]), whole[-3:]], 0)
    x, y = (reshape(broadcast_to(v, whole), single) for v in (x, y))
    return ensure_shape(x, [None] * 4), ensure_shape(y, [None] * 4), outer


def _similarities(
    x: Tensor, y: Tensor, peak: Any, size: int, sigma: float, k1: float, k2: float
) -> tuple[Tensor, Tensor]:
    """For each image and channel the similarity, and that but for the luminance."""
    window = _gaussian(size, sigma)
    weights = tile(window[:, :, None, None], [1, 1, shape_of(x)[3], 1])

    def mean(values: Tensor) -> Tensor:
        return depthwise_conv2d(values, weights, [1, 1, 1, 1], "VALID")

    first, second = (square(peak * to_array(k, float32)) for k in (k1, k2))
    mean_x, mean_y = mean(x), mean(y)
    product, squares = mean_x * mean_y * 2.0, square(mean_x) + square(mean_y)
    luminance = (product + first) / (squares + first)
    covariance = mean(x * y) * 2.0 - product
    structure = (covariance + second) / (mean(square(x) + square(y)) - squares + second)
    return reduce_mean(luminance * structure, (1, 2)), reduce_mean(structure, (1, 2))


# Wang et al. fitted these to what people saw.
_POWERS = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)


@composed
def ssim_multiscale(
    img1: Any,
    img2: Any,
    max_val: Any,
    power_factors: Sequence[float] = _POWERS,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
    name: str | None = None,
) -> Tensor:
    """The structural similarity of images at several sizes: 1 where they are equal.

    Args:
        img1: as for `ssim`, and so are the following; at the smallest size still no smaller than
            the window.
        img2: others of the same dtype and size; the dimensions before broadcast.
        max_val: the range of their values.
        power_factors: how much each size counts, as a power, from the images' own on; each further
            one is half as large as that before it.
        filter_size: the side of the window.
        filter_sigma: the standard deviation of its Gaussian.
        k1: steadies the ratio of means.
        k2: steadies the ratio of variances.

    Returns:
        float32, an element for each image: the mean over channels of the product of powers. What
        is below 0 counts as 0.

    Raises:
        InvalidArgumentError: if the images do not compare or are too small.

    Source: Wang et al., "Multiscale structural similarity for image quality assessment", 2003.
    """
    x, y, peak = _compared(img1, img2, max_val)
    powers = [float(power) for power in power_factors]
    if not powers:
        raise InvalidArgumentError("there are no power_factors, and so no sizes to compare at")
    _check_windows(x, filter_size)
    x, y, outer = _in_one_batch(x, y)
    found = []
    for scale in range(len(powers)):
        if scale:
            x, y = _halved(x), _halved(y)
            _check_windows(x, filter_size)
        whole, structure = _similarities(x, y, peak, filter_size, filter_sigma, k1, k2)
        found.append(structure if scale < len(powers) - 1 else whole)
    scales = maximum(stack(found, -1), 0.0) ** to_array(powers, float32)
    each = reduce_mean(reduce_prod(scales, -1), 1)
    return reshape(each, cast(outer, int32), name=name)


def _halved(images: Tensor) -> Tensor:
    """Images of half the size: means of squares of pixels, the last row and column doubled."""
    odd = shape_of(images)[1:3] % 2
    padded = pad(images, [[0, 0], [0, odd[0]], [0, odd[1]], [0, 0]], "SYMMETRIC")
    return avg_pool(padded, 2, 2, "VALID")


def _check_windows(images: Tensor, side: int) -> None:
    dims = images.shape.dims
    if dims is None:
        return
    if len(dims) < 3:
        raise InvalidArgumentError(
            f"images are [..., height, width, channels], not of shape {images.shape}"
        )
    if any(d is not None and d < side for d in dims[-3:-1]):
        raise InvalidArgumentError(
            f"images of shape {images.shape} are smaller than the window of {side} by {side}",
            hint="a smaller filter_size",
        )


def _gaussian(size: int, sigma: float) -> Any:
    line = np.exp(-0.5 * ((np.arange(size) - (size - 1) / 2) / sigma) ** 2)
    window = np.outer(line, line)
    return (window / window.sum()).astype(np.float32)
