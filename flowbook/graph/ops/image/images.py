"""Parts of images, borders around them, mirrored and turned images.

Images are [height, width, channels] or [batch, height, width, channels]; a tensor of unknown rank
is one image. What is known of their shape is checked at construction, and the rest in the run.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.definition.axes import as_axis
from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.inference import constant_value
from flowbook.graph.model.dtypes import INDICES, float32
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.tensor import Arithmetic, Tensor
from flowbook.graph.ops.arrays.gathering import gather as gather_of
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.constants import convert_to_tensor, identity
from flowbook.graph.ops.basis.filling import meshgrid
from flowbook.graph.ops.basis.filling import range as range_of
from flowbook.graph.ops.basis.joining import concat, stack
from flowbook.graph.ops.basis.padding import pad
from flowbook.graph.ops.basis.padding import slice as slice_of
from flowbook.graph.ops.basis.permuting import transpose
from flowbook.graph.ops.basis.shaping import reshape, shape_argument
from flowbook.graph.ops.basis.shaping import shape as shape_of
from flowbook.graph.ops.checks.checking import ensure_shape
from flowbook.graph.ops.image.resizing import ResizeMethod, resize_images
from flowbook.graph.ops.math.arithmetic import maximum, minimum, mod
from flowbook.graph.ops.math.comparison import equal, greater_equal, less, not_equal, where
from flowbook.graph.ops.math.elementwise import floor
from flowbook.graph.ops.random.random_numbers import random_uniform

__all__ = [
    "central_crop",
    "crop_to_bounding_box",
    "flip_left_right",
    "flip_up_down",
    "pad_to_bounding_box",
    "random_flip_left_right",
    "random_flip_up_down",
    "resize_image_with_crop_or_pad",
    "resize_image_with_pad",
    "rot90",
    "transpose_image",
]


def as_images(image: Any) -> Tensor:
    """One image or a batch of them, as a tensor of known rank: one image where it is not known."""
    tensor = convert_to_tensor(image)
    if tensor.shape.rank is None:
        return ensure_shape(tensor, [None, None, None])
    if tensor.shape.rank not in (3, 4):
        raise InvalidArgumentError(
            "images are [height, width, channels] or [batch, height, width, channels], "
            f"not of shape {tensor.shape}"
        )
    return tensor


def _sides(image: Tensor) -> tuple[Any, Any]:
    """Height and width: ints where they are known."""
    dims = image.shape.dims
    assert dims is not None
    actual = shape_of(image) if None in dims[-3:-1] else None
    height, width = (
        actual[i] if dims[i] is None and actual is not None else dims[i]
        for i in (len(dims) - 3, len(dims) - 2)
    )
    return height, width


def _whole(what: str, number: Any) -> Any:
    """An argument as an int, or as the int32 tensor that it is."""
    if isinstance(number, Arithmetic):
        tensor = convert_to_tensor(number)
        if tensor.dtype not in INDICES or tensor.shape.rank not in (None, 0):
            raise InvalidTypeError(f"{what} is an int or an int scalar tensor, not {tensor!r}")
        known = constant_value(tensor)
        return cast(ensure_shape(tensor, []), "int32") if known is None else int(known)
    return as_axis(number)


def _most(a: Any, b: Any) -> Any:
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else maximum(a, b)


def _least(a: Any, b: Any) -> Any:
    return min(a, b) if isinstance(a, int) and isinstance(b, int) else minimum(a, b)


def _not_negative(**numbers: Any) -> None:
    for name, number in numbers.items():
        if isinstance(number, int) and number < 0:
            raise InvalidArgumentError(f"{name} is not negative: {number}")


def _cropped(
    image: Tensor, top: Any, left: Any, height: Any, width: Any, name: str | None
) -> Tensor:
    _not_negative(offset_height=top, offset_width=left, target_height=height, target_width=width)
    for start, size, side in zip((top, left), (height, width), _sides(image), strict=True):
        known = all(isinstance(n, int) for n in (start, size, side))
        if known and start + size > side:
            raise InvalidArgumentError(
                f"{size} pixels from the {start}th on exceed the image {image.shape}"
            )
    dims = [-1 if d is None else d for d in image.shape.as_list()]
    begin = shape_argument([*(0 for _ in dims[:-3]), top, left, 0])
    size = shape_argument([*dims[:-3], height, width, dims[-1]])
    if isinstance(size, np.ndarray):
        return slice_of(image, begin, size, name=name)
    return _reshaped(slice_of(image, begin, size), image, height, width, name)


def _reshaped(part: Tensor, image: Tensor, height: Any, width: Any, name: str | None) -> Tensor:
    """A part or a padded whole of an image, with all that is known of its shape."""
    dims = image.shape.as_list()
    wanted = [*dims[:-3], height, width, dims[-1]]
    actual = shape_of(image) if None in wanted else None
    given = [d if d is not None or actual is None else actual[i] for i, d in enumerate(wanted)]
    return reshape(part, shape_argument(given), name=name)


def _padded(
    image: Tensor, top: Any, left: Any, height: Any, width: Any, name: str | None
) -> Tensor:
    """With zeros around it; `height` and `width` are the results."""
    old = _sides(image)
    bottom, right = height - top - old[0], width - left - old[1]
    for before, after in ((top, bottom), (left, right)):
        if any(isinstance(n, int) and n < 0 for n in (before, after)):
            raise InvalidArgumentError(
                f"the image {image.shape} at {top}, {left} does not fit into {height} x {width}"
            )
    sides = [(0, 0)] * (image.shape.rank == 4) + [(top, bottom), (left, right), (0, 0)]
    flat = [n for pair in sides for n in pair]
    if all(isinstance(n, int) for n in flat):
        return pad(image, np.array(sides, np.int32), name=name)
    widths = stack([shape_argument(list(pair)) for pair in sides])
    return _reshaped(pad(image, widths), image, height, width, name)


@composed
def crop_to_bounding_box(
    image: Any,
    offset_height: Any,
    offset_width: Any,
    target_height: Any,
    target_width: Any,
    name: str | None = None,
) -> Tensor:
    """A part of images.

    Args:
        image: one image or a batch of them.
        offset_height: its first row, an int or an int scalar tensor, as the others.
        offset_width: its first column.
        target_height: the number of its rows.
        target_width: the number of its columns.

    Raises:
        InvalidArgumentError: if it exceeds the images; in the run, where it is known only then.
    """
    image = as_images(image)
    top, left = _whole("offset_height", offset_height), _whole("offset_width", offset_width)
    height, width = (
        _whole("target_height", target_height),
        _whole("target_width", target_width),
    )
    return _cropped(image, top, left, height, width, name)


@composed
def pad_to_bounding_box(
    image: Any,
    offset_height: Any,
    offset_width: Any,
    target_height: Any,
    target_width: Any,
    name: str | None = None,
) -> Tensor:
    """Images with zeros around them.

    Args:
        image: one image or a batch of them.
        offset_height: the number of rows of zeros above, an int or an int scalar tensor, as the
            others.
        offset_width: the number of columns of zeros on the left.
        target_height: the number of rows of the result.
        target_width: the number of columns of the result.

    Raises:
        InvalidArgumentError: if images do not fit; in the run, where it is known only then.
    """
    image = as_images(image)
    top, left = _whole("offset_height", offset_height), _whole("offset_width", offset_width)
    height, width = (
        _whole("target_height", target_height),
        _whole("target_width", target_width),
    )
    return _padded(image, top, left, height, width, name)


@composed
def resize_image_with_crop_or_pad(
    image: Any, target_height: Any, target_width: Any, name: str | None = None
) -> Tensor:
    """Images of a wanted size, by cutting off or by adding zeros on both sides evenly.

    Args:
        image: one image or a batch of them.
        target_height: the number of rows, an int or an int scalar tensor.
        target_width: the number of columns, likewise.
    """
    image = as_images(image)
    wanted = _whole("target_height", target_height), _whole("target_width", target_width)
    _not_negative(target_height=wanted[0], target_width=wanted[1])
    more = [new - old for new, old in zip(wanted, _sides(image), strict=True)]
    top, left = (_most(-n // 2, 0) for n in more)
    height, width = (_least(n, old) for n, old in zip(wanted, _sides(image), strict=True))
    part = _cropped(image, top, left, height, width, None)
    above, before = (_most(n // 2, 0) for n in more)
    return _padded(part, above, before, *wanted, name)


@composed
def resize_image_with_pad(
    image: Any,
    target_height: Any,
    target_width: Any,
    method: int = ResizeMethod.BILINEAR,
    align_corners: bool = False,
    name: str | None = None,
) -> Tensor:
    """Images of a wanted size in their own proportions: resized to fit, with zeros around.

    Args:
        image: one image or a batch of them.
        target_height: the number of rows, an int or an int scalar tensor, at least 1.
        target_width: the number of columns, likewise.
        method: a `ResizeMethod`.
        align_corners: as for `resize_images`.

    Returns:
        The images in the dtype that `resize_images` gives.

    >>> import flowbook as fb
    >>> fb.image.resize_image_with_pad(fb.zeros([8, 40, 60, 3]), 30, 30).shape
    Shape([8, 30, 30, 3])
    """
    image = as_images(image)
    wanted = _whole("target_height", target_height), _whole("target_width", target_width)
    for side in wanted:
        if isinstance(side, int) and side < 1:
            raise InvalidArgumentError(f"the new size is positive, not {wanted[0]} x {wanted[1]}")
    height, width, top, left = _fitting(*_sides(image), *wanted)
    fitted = resize_images(image, shape_argument([height, width]), method, align_corners)
    return _padded(fitted, top, left, *wanted, name)


def _fitting(*sides: Any) -> tuple[Any, Any, Any, Any]:
    """Of an image in a frame, from height and width of both: its size there, and where it begins.

    In float32 throughout, whose rounding decides in TensorFlow whether the last pixel is lost.
    """
    are_known = all(isinstance(side, int) for side in sides)
    height, width, rows, columns = (
        np.float32(side) if are_known else cast(side, float32) for side in sides
    )
    most: Any = max if are_known else maximum
    whole: Any = _floored if are_known else _floored_in_run
    ratio = most(width / columns, height / rows)
    fitted = height / ratio, width / ratio
    before = (rows - fitted[0]) / 2, (columns - fitted[1]) / 2
    new_height, new_width, top, left = (whole(number) for number in (*fitted, *before))
    return new_height, new_width, most(top, 0), most(left, 0)


def _floored(number: Any) -> int:
    return int(np.floor(number))


def _floored_in_run(number: Tensor) -> Tensor:
    return cast(floor(number), "int32")


@composed
def central_crop(image: Any, central_fraction: float, name: str | None = None) -> Tensor:
    """The middle of images.

    Args:
        image: one image or a batch of them.
        central_fraction: how much of the height and the width to keep, in (0, 1].
    """
    image = as_images(image)
    if isinstance(central_fraction, Arithmetic | str) or not 0 < central_fraction <= 1:
        raise InvalidArgumentError(
            f"central_fraction is a number above 0 and up to 1, not {central_fraction!r}"
        )
    if central_fraction == 1:
        return identity(image, name=name)
    height, width = _sides(image)
    top, left = (_margin(side, float(central_fraction)) for side in (height, width))
    return _cropped(image, top, left, height - 2 * top, width - 2 * left, name)


def _margin(side: Any, fraction: float) -> Any:
    if isinstance(side, int):
        return int((side - side * fraction) / 2)
    exact = cast(side, "float64")
    return cast((exact - exact * fraction) / 2.0, "int32")


@composed
def flip_left_right(image: Any) -> Tensor:
    """Images mirrored: the first column becomes the last."""
    return as_images(image)[..., ::-1, :]


@composed
def flip_up_down(image: Any) -> Tensor:
    """Images mirrored: the first row becomes the last."""
    return as_images(image)[..., ::-1, :, :]


def transpose_image(image: Any, name: str | None = None) -> Tensor:
    """Images with rows as columns."""
    image = as_images(image)
    order = [1, 0, 2] if image.shape.rank == 3 else [0, 2, 1, 3]
    return transpose(image, order, name=name or "transpose_image")


@composed
def rot90(image: Any, k: Any = 1, name: str | None = None) -> Tensor:
    """Images turned counter-clockwise by 90 degrees.

    Args:
        image: one image or a batch of them.
        k: how often, an int or an int scalar tensor.
    """
    image = as_images(image)
    k = _whole("k", k)
    if isinstance(k, Tensor):
        return gather_of(*_quarters(image, mod(k, 4)), axis=-2, name=name)
    turns = k % 4
    if turns == 1:
        turned = transpose_image(image)[..., ::-1, :, :]
    elif turns == 2:
        turned = image[..., ::-1, ::-1, :]
    elif turns == 3:
        turned = transpose_image(image)[..., ::-1, :]
    else:
        turned = image
    return identity(turned, name=name)


def _quarters(image: Tensor, turns: Tensor) -> tuple[Tensor, Tensor]:
    """An image's pixels in one row, and where among them those of the turned image are."""
    height, width = _sides(image)
    is_odd, is_half = equal(mod(turns, 2), 1), greater_equal(turns, 2)
    rows, columns = where(is_odd, width, height), where(is_odd, height, width)
    down, right = meshgrid(range_of(rows), range_of(columns), indexing="ij")
    row, column = where(is_odd, right, down), where(is_odd, down, right)
    row = where(is_half, height - 1 - row, row)
    column = where(not_equal(is_half, is_odd), width - 1 - column, column)
    dims = shape_of(image)
    pixels = reshape(image, concat([dims[:-3], [height * width], dims[-1:]], 0))
    return pixels, row * width + column


@composed
def random_flip_left_right(image: Any, seed: int | None = None) -> Tensor:
    """Images mirrored with probability 1/2, each of a batch for itself; see `flip_left_right`.

    Args:
        image: one image or a batch of them.
        seed: an int that makes the choices reproducible, see `set_random_seed`.
    """
    return _chosen(image, seed, flip_left_right)


@composed
def random_flip_up_down(image: Any, seed: int | None = None) -> Tensor:
    """Images mirrored with probability 1/2, each of a batch for itself; see `flip_up_down`.

    Args:
        image: one image or a batch of them.
        seed: an int that makes the choices reproducible, see `set_random_seed`.
    """
    return _chosen(image, seed, flip_up_down)


def _chosen(image: Any, seed: int | None, change: Any) -> Tensor:
    image = as_images(image)
    assert image.shape.dims is not None
    one = shape_argument([1, 1, 1])
    if image.shape.rank == 4:
        count = image.shape.dims[0]
        one = shape_argument([shape_of(image)[0] if count is None else count, 1, 1, 1])
    lot = less(random_uniform(one, dtype=float32, seed=seed), 0.5)
    return where(lot, change(image), image)
