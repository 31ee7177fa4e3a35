"""The colours of television: YIQ and YUV, brightness apart from colour."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.definition.composed import composed
from flowbook.graph.model.dtypes import FLOATS
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.linalg.tensordot import tensordot

__all__ = ["rgb_to_yiq", "rgb_to_yuv", "yiq_to_rgb", "yuv_to_rgb"]

# What red, green and blue add to each; the first column is the brightness of both.
_YIQ = np.array(
    [
        [0.299, 0.59590059, 0.2115],
        [0.587, -0.27455667, -0.52273617],
        [0.114, -0.32134392, 0.31119955],
    ]
)
_YUV = np.array(
    [
        [0.299, -0.14714119, 0.61497538],
        [0.587, -0.28886916, -0.51496512],
        [0.114, 0.43601035, -0.10001026],
    ]
)


@composed
def rgb_to_yiq(images: Any) -> Tensor:
    """Images of red, green and blue as YIQ, the colours of American television.

    Args:
        images: [..., 3] of a floating-point dtype, in [0, 1].

    Returns:
        [..., 3] of that dtype: Y in [0, 1]; I, from -0.596 to 0.596; Q, from -0.523 to 0.523.

    Raises:
        InvalidArgumentError: if the images are not of such a shape or dtype.
    """
    return _mixed(images, _YIQ)


@composed
def yiq_to_rgb(images: Any) -> Tensor:
    """What `rgb_to_yiq` came from. Arguments likewise."""
    return _mixed(images, np.linalg.inv(_YIQ))


@composed
def rgb_to_yuv(images: Any) -> Tensor:
    """Images of red, green and blue as YUV, the colours of European television.

    Args:
        images: [..., 3] of a floating-point dtype, in [0, 1].

    Returns:
        [..., 3] of that dtype: Y in [0, 1]; U, from -0.436 to 0.436; V, from -0.615 to 0.615.

    Raises:
        InvalidArgumentError: if the images are not of such a shape or dtype.
    """
    return _mixed(images, _YUV)


@composed
def yuv_to_rgb(images: Any) -> Tensor:
    """What `rgb_to_yuv` came from. Arguments likewise."""
    return _mixed(images, np.linalg.inv(_YUV))


def _mixed(images: Any, matrix: Any) -> Tensor:
    images = convert_to_tensor(images)
    if images.dtype not in FLOATS:
        raise InvalidTypeError(
            f"images are of a floating-point dtype, not {images.dtype.name}",
            hint="fb.image.convert_image_dtype(images, fb.float32)",
        )
    if images.shape.dims is not None and (
        not images.shape.dims or images.shape.dims[-1] not in (3, None)
    ):
        raise InvalidArgumentError(f"images are [..., 3], not of shape {images.shape}")
    return tensordot(images, matrix.astype(images.dtype.numpy), 1)
