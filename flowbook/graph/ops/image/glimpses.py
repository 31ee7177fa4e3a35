"""Glimpses: windows of images around places that tensors say, as models of attention take them."""

from __future__ import annotations

from typing import Any

from flowbook.graph.definition.composed import composed
from flowbook.graph.model.dtypes import FLOATS, float32, int32
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.arrays.indexing_nd import gather_nd
from flowbook.graph.ops.basis.broadcasting import broadcast_to
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.filling import range as range_of
from flowbook.graph.ops.basis.joining import concat, stack
from flowbook.graph.ops.basis.shaping import expand_dims, shape_of
from flowbook.graph.ops.math.comparison import greater_equal, less, logical_and, where
from flowbook.graph.ops.nn.clipping import clip_by_value
from flowbook.graph.ops.random.random_numbers import random_normal, random_uniform
from flowbook.graph.ops.reduction.reductions import reduce_max, reduce_mean, reduce_min
from flowbook.graph.ops.reduction.statistics import reduce_std

__all__ = ["extract_glimpse"]


@composed
def extract_glimpse(
    input: Any,
    size: Any,
    offsets: Any,
    centered: bool = True,
    normalized: bool = True,
    uniform_noise: bool = True,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """A window of each image of a batch, around a place of its own.

    Args:
        input: [batch, height, width, channels] of a floating-point dtype.
        size: int32 [2], height and width of the windows.
        offsets: float32 [batch, 2], y and x of the windows' centres.
        centered: whether 0 is the image's middle; else it is its first row or column.
        normalized: whether 1 is its last row or column, and -1 the first if it is centered; else
            offsets are in pixels, centered ones in halves of pixels.
        uniform_noise: what is seen outside of an image: uniform between its least and greatest
            value, or else normal with its mean and standard deviation.
        seed: decides, together with the graph's, what noise is drawn.

    Returns:
        [batch, size[0], size[1], channels].

    Raises:
        InvalidArgumentError: if the shapes do not fit.

    Source: Mnih et al., "Recurrent models of visual attention", 2014.

    >>> import numpy as np
    >>> import flowbook as fb
    >>> images = np.arange(9.0).reshape(1, 3, 3, 1)
    >>> seen = fb.image.extract_glimpse(images, [2, 2], [[1, 1]], centered=False, normalized=False)
    >>> with fb.Session() as sess:
    ...     print(sess.run(seen)[0, :, :, 0])
    [[0. 1.]
     [3. 4.]]
    """
    images, window = convert_to_tensor(input), convert_to_tensor(size, int32)
    places = convert_to_tensor(offsets, float32)
    if images.dtype not in FLOATS:
        raise InvalidTypeError(f"images are of a floating-point dtype, not {images.dtype.name}")
    for what, tensor, wanted in (
        ("images are [batch, height, width, channels]", images, (None,) * 4),
        ("a size is [2]", window, (2,)),
        ("offsets are [batch, 2]", places, (None, 2)),
    ):
        if not tensor.shape.is_compatible_with(wanted):
            raise InvalidArgumentError(f"{what}, not of shape {tensor.shape}")
    dims = convert_to_tensor(shape_of(images))
    space = cast(dims[1:3], float32)
    if normalized:
        places = places * space
    if centered:
        places = (places + space) / 2.0
    start = cast(places - cast(window, float32) / 2.0, int32)
    whole = concat([dims[:1], window], 0)
    # For each pixel of the windows its row and column in the image.
    rows = expand_dims(expand_dims(start[:, 0], 1) + range_of(window[0]), 2)
    columns = expand_dims(expand_dims(start[:, 1], 1) + range_of(window[1]), 1)
    at = [broadcast_to(along, whole) for along in (rows, columns)]
    own = broadcast_to(range_of(dims[0])[:, None, None], whole)
    row_is, column_is = (
        logical_and(greater_equal(place, 0), less(place, dims[1 + k])) for k, place in enumerate(at)
    )
    near = [clip_by_value(place, 0, dims[1 + k] - 1) for k, place in enumerate(at)]
    seen = gather_nd(images, stack([own, *near], -1))
    noise = _noise(images, concat([whole, dims[3:]], 0), uniform_noise, seed)
    return where(expand_dims(logical_and(row_is, column_is), -1), seen, noise, name=name)


def _noise(images: Tensor, shape: Tensor, uniform: bool, seed: int | None) -> Tensor:
    """Random pixels such as each image has."""
    axes = (1, 2, 3)
    if uniform:
        low, high = reduce_min(images, axes, True), reduce_max(images, axes, True)
        return low + (high - low) * random_uniform(shape, dtype=images.dtype, seed=seed)
    mean, spread = reduce_mean(images, axes, True), reduce_std(images, axes, True)
    return mean + spread * random_normal(shape, dtype=images.dtype, seed=seed)
