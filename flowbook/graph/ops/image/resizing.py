"""Images in another size. Pixels lie where TensorFlow 1 has them; see `numerics/resampling.py`.

Resizing is linear, so its gradient is its adjoint, whose gradient is resizing again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.inference import constant_value, shape_from
from flowbook.graph.definition.op_def import REQUIRED, OpDef
from flowbook.graph.model.attributes import check_choice
from flowbook.graph.model.dtypes import FLOATS, INDICES, REALS, float32, int32
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.numerics.resampling import METHODS, resample, resample_adjoint
from flowbook.graph.ops.arrays.gathering import gather
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.constants import convert_to_tensor, identity
from flowbook.graph.ops.basis.filling import range as range_of
from flowbook.graph.ops.basis.shaping import (
    check_vector,
    dims_of,
    expand_dims,
    reshape,
    shape_argument,
    shape_of,
    squeeze,
)
from flowbook.graph.ops.basis.shaping import shape as shape_in_run
from flowbook.graph.ops.math.arithmetic import add, minimum
from flowbook.graph.ops.math.comparison import logical_and, where
from flowbook.graph.ops.math.elementwise import ceil, floor, round
from flowbook.graph.ops.nn.clipping import clip_by_value

__all__ = [
    "ResizeMethod",
    "crop_and_resize",
    "resize_area",
    "resize_bicubic",
    "resize_bilinear",
    "resize_images",
    "resize_nearest_neighbor",
]

_HOW = {"method": REQUIRED, "align_corners": False, "half_pixel_centers": False}


def _check_size(size: Any, old: Any) -> tuple[int, int]:
    height, width = dims_of(size)
    if height <= 0 or width <= 0:
        raise InvalidArgumentError(f"the new size is positive, not {height} x {width}")
    if 0 in old:
        raise InvalidArgumentError(f"images without pixels, {old[0]} x {old[1]}, have no new size")
    return height, width


def _resized(images: Tensor, size: Tensor, **how: Any) -> Shape:
    if how["align_corners"] and how["half_pixel_centers"]:
        raise InvalidArgumentError("either corners are aligned or pixels have half-pixel centres")
    if how["method"] != "nearest" and not images.dtype.is_floating:
        raise InvalidTypeError(f"{how['method']} pixels are floats, not {images.dtype.name}")
    if images.shape.rank not in (None, 4):
        raise InvalidArgumentError(
            f"images are [batch, height, width, channels], not of shape {images.shape}"
        )
    if not size.shape.is_compatible_with((2,)):
        raise InvalidArgumentError(f"a size is [height, width], not of shape {size.shape}")
    known = constant_value(size)
    if known is not None:
        _check_size(known, ())
    dims = images.shape.dims or (None,) * 4
    new = shape_from(size).dims or (None, None)
    return Shape.of((dims[0], *new, dims[3]))


def _resize(
    xp: Any, images: Any, size: Any, method: str, align_corners: bool, half_pixel_centers: bool
) -> Any:
    if images.ndim != 4:
        raise InvalidArgumentError(
            f"images are [batch, height, width, channels], not of shape {list(images.shape)}"
        )
    new = _check_size(size, images.shape[1:3])
    return resample(xp, images, new, method, align_corners, half_pixel_centers)


def _resize_gradient(op: Operation, dy: Tensor) -> Any:
    if not dy.dtype.is_floating:
        return None, None
    images = op.inputs[0]
    return resize_gradient_op(dy, shape_of(images), **op.attributes), None


# For each pixel, and along both axes: a weighted sum of two, or of four for cubic ones.
_FLOPS = {"nearest": 0, "bilinear": 6, "bicubic": 14, "area": 6}

resize_op: OpDef = OpDef(
    "Resize",
    "images: T, size: int32 -> resized: T",
    T=REALS,
    attributes=_HOW,
    choices={"method": METHODS},
    infer=_resized,
    kernel=_resize,
    host_args=("size",),
    grad=_resize_gradient,
    cost=lambda op: _FLOPS[op.attributes["method"]] * (op.outputs[0].shape.size or 0),
)


def _gradient_shape(dy: Tensor, shape: Tensor, **_: Any) -> Shape:
    check_vector("shape", shape)
    return shape_from(shape)


def _resize_adjoint(
    xp: Any, dy: Any, shape: Any, method: str, align_corners: bool, half_pixel_centers: bool
) -> Any:
    _, height, width, _ = dims_of(shape)
    return resample_adjoint(xp, dy, (height, width), method, align_corners, half_pixel_centers)


def _adjoint_gradient(op: Operation, dz: Tensor) -> Any:
    dy = op.inputs[0]
    if dy.shape.dims is not None and None not in dy.shape.dims[1:3]:
        size: Any = np.array(dy.shape.dims[1:3], np.int32)
    else:
        size = shape_in_run(dy)[1:3]
    return resize_op(dz, size, **op.attributes), None


resize_gradient_op = OpDef(
    "ResizeGrad",
    "dy: T, shape: I -> output: T",
    T=FLOATS,
    I=INDICES,
    attributes=_HOW,
    choices={"method": METHODS},
    infer=_gradient_shape,
    kernel=_resize_adjoint,
    host_args=("shape",),
    grad=_adjoint_gradient,
    cost=lambda op: _FLOPS[op.attributes["method"]] * (op.inputs[0].shape.size or 0),
)


def _as_size(size: Any) -> Tensor:
    """A size as an int32 vector."""
    tensor = convert_to_tensor(shape_argument(size), name="size")
    if tensor.shape.rank not in (None, 1):
        raise InvalidArgumentError(f"a size is [height, width], not of shape {tensor.shape}")
    return cast(tensor, int32) if tensor.dtype is not int32 else tensor


def _interpolated(
    method: str, images: Any, size: Any, align: bool, half: bool, name: str | None
) -> Tensor:
    images, size = convert_to_tensor(images), _as_size(size)
    if method != "nearest" and not images.dtype.is_floating:
        images = cast(images, float32)
    how = {"align_corners": bool(align), "half_pixel_centers": bool(half)}
    return resize_op(images, size, method=method, **how, name=name or f"resize_{method}")


def resize_nearest_neighbor(
    images: Any,
    size: Any,
    align_corners: bool = False,
    half_pixel_centers: bool = False,
    name: str | None = None,
) -> Tensor:
    """Resize images; each new pixel is an old one.

    Args:
        images: [batch, height, width, channels] of a real number dtype.
        size: the new [height, width], an int vector tensor or a sequence.
        align_corners: the centres of corner pixels stay where they are.
        half_pixel_centers: pixels are squares around their centres; by default they are points, as
            TensorFlow 1 has them, which moves images by part of a pixel.
        name: the operation's name.
    """
    return _interpolated("nearest", images, size, align_corners, half_pixel_centers, name)


def resize_bilinear(
    images: Any,
    size: Any,
    align_corners: bool = False,
    half_pixel_centers: bool = False,
    name: str | None = None,
) -> Tensor:
    """Resize images; new pixels are interpolated between the four nearest.

    Where images shrink to less than half, pixels are left out; `resize_area` averages all.

    Args:
        images: [batch, height, width, channels] of a real number dtype.
        size: the new [height, width], an int vector tensor or a sequence.
        align_corners: the centres of corner pixels stay where they are.
        half_pixel_centers: pixels are squares around their centres; by default they are points, as
            TensorFlow 1 has them, which moves images by part of a pixel.
        name: the operation's name.

    Returns:
        [batch, *size, channels]: floating-point images keep their dtype, others become float32.

    >>> import flowbook as fb
    >>> fb.image.resize_bilinear(fb.zeros([8, 32, 32, 3]), [64, 48]).shape
    Shape([8, 64, 48, 3])
    """
    return _interpolated("bilinear", images, size, align_corners, half_pixel_centers, name)


def resize_bicubic(
    images: Any,
    size: Any,
    align_corners: bool = False,
    half_pixel_centers: bool = False,
    name: str | None = None,
) -> Tensor:
    """Resize images; new pixels are interpolated between the sixteen nearest by cubic polynomials.

    Arguments and result as for `resize_bilinear`. Results may exceed the range of the pixels.

    Source: Keys, "Cubic convolution interpolation for digital image processing", 1981; with the
    parameter -0.5 for half-pixel centres and -0.75 otherwise, as TensorFlow has it.
    """
    return _interpolated("bicubic", images, size, align_corners, half_pixel_centers, name)


def resize_area(
    images: Any, size: Any, align_corners: bool = False, name: str | None = None
) -> Tensor:
    """Resize images; each new pixel is the mean of the area that it covers.

    Arguments and result as for `resize_bilinear`.
    """
    return _interpolated("area", images, size, align_corners, False, name)


class ResizeMethod:
    """How `resize_images` makes new pixels."""

    BILINEAR = 0
    NEAREST_NEIGHBOR = 1
    BICUBIC = 2
    AREA = 3


@composed
def resize_images(
    images: Any,
    size: Any,
    method: int = ResizeMethod.BILINEAR,
    align_corners: bool = False,
    preserve_aspect_ratio: bool = False,
    name: str | None = None,
) -> Tensor:
    """Resize one image or a batch of them.

    Args:
        images: [height, width, channels] or [batch, height, width, channels], of a real number
            dtype.
        size: the new [height, width], an int vector tensor or a sequence.
        method: a `ResizeMethod`.
        align_corners: the centres of corner pixels stay where they are.
        preserve_aspect_ratio: make images as large as fits into `size` without distortion.

    Returns:
        Images whose dtype is kept where it is floating-point, with the method NEAREST_NEIGHBOR, and
        where they are known to have that size already; it is float32 otherwise.

    Raises:
        InvalidArgumentError: if ranks or sizes do not fit.
    """
    if method not in (0, 1, 2, 3):
        raise InvalidArgumentError(f"{method!r} is no ResizeMethod")
    images = convert_to_tensor(images)
    rank = images.shape.rank
    if rank not in (3, 4):
        raise InvalidArgumentError(
            f"images have 3 or 4 dimensions, known at construction, not {images.shape}"
        )
    size = _as_size(size)
    if preserve_aspect_ratio:
        size = _fitting(images, size)
    wanted, dims = constant_value(size), images.shape.dims
    assert dims is not None
    if wanted is not None and tuple(wanted.tolist()) == dims[rank - 3 : rank - 1]:
        return identity(images, name=name)
    batch = expand_dims(images, 0) if rank == 3 else images
    last = None if rank == 3 else name
    resized = _interpolated(METHODS[method], batch, size, align_corners, False, last)
    return squeeze(resized, 0, name=name) if rank == 3 else resized


def _fitting(images: Tensor, size: Tensor) -> Tensor:
    """The largest size within `size` that has the images' proportions."""
    rank = images.shape.rank
    assert rank is not None
    known = images.shape.dims
    assert known is not None
    old = known[rank - 3 : rank - 1]
    wanted = constant_value(size)
    if wanted is not None and None not in old:
        sides = np.array(old, np.float64)
        scale = np.min(wanted / sides)
        return convert_to_tensor(np.rint(sides * scale).astype(np.int32))
    sides_now = cast(shape_in_run(images)[rank - 3 : rank - 1], "float64")
    ratios = cast(size, "float64") / sides_now
    return cast(round(sides_now * minimum(ratios[0], ratios[1])), int32)


@composed
def crop_and_resize(
    image: Any,
    boxes: Any,
    box_ind: Any,
    crop_size: Any,
    method: str = "bilinear",
    extrapolation_value: float = 0.0,
    name: str | None = None,
) -> Tensor:
    """Cut boxes out of images, and resize all to one size.

    Gradients flow to the images and, for "bilinear", to the boxes.

    Args:
        image: [batch, height, width, channels] of a real number dtype.
        boxes: float32 [boxes, 4], each [y1, x1, y2, x2] where 0 is the first row or column and 1
            the last. y1 > y2 flips the crop.
        box_ind: int32 [boxes], the image of the batch that each is cut from.
        crop_size: [height, width] of the crops, an int vector tensor or a sequence.
        method: "bilinear" or "nearest".
        extrapolation_value: what lies outside of images.

    Returns:
        float32 [boxes, *crop_size, channels].

    Raises:
        InvalidIndexError: in the run, if an element of `box_ind` is no image's.
    """
    check_choice("method", method, ("bilinear", "nearest"))
    image = convert_to_tensor(image)
    boxes, box_ind = convert_to_tensor(boxes, float32), convert_to_tensor(box_ind, int32)
    size = _as_size(crop_size)
    _check_boxes(image, boxes, box_ind)
    if image.dtype is not float32:
        image = cast(image, float32)
    whole = shape_in_run(image)
    height, width = whole[1], whole[2]
    ys, y_inside = _positions(boxes[:, 0], boxes[:, 2], size[0], height)
    xs, x_inside = _positions(boxes[:, 1], boxes[:, 3], size[1], width)
    rows = reshape(image, shape_argument([-1, _last_of(image)]))
    start = reshape(box_ind * (height * width), [-1, 1, 1])

    def pixels(y: Tensor, x: Tensor) -> Tensor:
        y = clip_by_value(cast(y, int32), 0, height - 1)
        x = clip_by_value(cast(x, int32), 0, width - 1)
        return gather(rows, start + expand_dims(y * width, 2) + expand_dims(x, 1))

    is_nearest = method == "nearest"
    found = pixels(_rounded(ys), _rounded(xs)) if is_nearest else _between(pixels, ys, xs)
    inside = logical_and(expand_dims(y_inside, 2), expand_dims(x_inside, 1))
    outside = np.float32(extrapolation_value)
    return where(expand_dims(inside, 3), found, outside, name=name)


def _between(pixels: Callable[[Tensor, Tensor], Tensor], ys: Tensor, xs: Tensor) -> Tensor:
    """What lies between four pixels each, by how near they are."""
    top, left, bottom, right = floor(ys), floor(xs), ceil(ys), ceil(xs)
    down = expand_dims(expand_dims(ys - top, 2), 3)
    along = expand_dims(expand_dims(xs - left, 1), 3)
    upper = pixels(top, left)
    upper = upper + (pixels(top, right) - upper) * along
    lower = pixels(bottom, left)
    lower = lower + (pixels(bottom, right) - lower) * along
    return upper + (lower - upper) * down


def _rounded(positions: Tensor) -> Tensor:
    """The nearest whole numbers; halves away from zero, and none of these is negative."""
    return floor(add(positions, 0.5))


def _check_boxes(image: Tensor, boxes: Tensor, box_ind: Tensor) -> None:
    if not image.shape.is_compatible_with((None,) * 4):
        raise InvalidArgumentError(
            f"images are [batch, height, width, channels], not of shape {image.shape}"
        )
    if not boxes.shape.is_compatible_with((None, 4)):
        raise InvalidArgumentError(f"boxes are [boxes, 4], not of shape {boxes.shape}")
    count = boxes.shape.dims[0] if boxes.shape.dims else None
    if not box_ind.shape.is_compatible_with((count,)):
        raise InvalidArgumentError(
            f"box_ind has an element for each box, so its shape is not {box_ind.shape}"
        )


def _last_of(image: Tensor) -> Any:
    known = image.shape.dims and image.shape.dims[3]
    return shape_in_run(image)[3] if known is None else known


def _positions(low: Tensor, high: Tensor, count: Tensor, size: Tensor) -> tuple[Tensor, Tensor]:
    """Where the crops' pixels lie along an axis, [boxes, count], and whether inside the image."""
    last = cast(size - 1, float32)
    steps = cast(range_of(count), float32)
    several = cast(count, float32) > 1.0
    # A single pixel lies in the middle.
    divisor = where(several, cast(count, float32) - 1.0, 1.0)
    way = where(several, steps / divisor, 0.5)
    low, high = expand_dims(low, 1), expand_dims(high, 1)
    at = low * last + way * ((high - low) * last)
    return at, logical_and(at >= 0.0, at <= last)
