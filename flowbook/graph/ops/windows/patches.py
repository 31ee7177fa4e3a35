"""Patches of images and volumes: what a window sees at each place, as the channels of one pixel."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from flowbook.graph.definition.inference import shape_from
from flowbook.graph.definition.op_def import REQUIRED, OpDef
from flowbook.graph.model.dtypes import INDICES, ZEROED
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.shaping import dims_of, shape_of
from flowbook.graph.ops.windows.windows import PADDINGS, inner_numbers, laid, output_dims, taps

__all__ = ["extract_image_patches", "extract_volume_patches"]

Ints = tuple[int, ...]

_HOW = {"ksizes": REQUIRED, "strides": REQUIRED, "rates": REQUIRED, "padding": REQUIRED}


def _check_rank(shape: Any, ksizes: Ints) -> None:
    if Shape(shape).rank not in (None, len(ksizes) + 2):
        what = "images" if len(ksizes) == 2 else "volumes"
        raise InvalidArgumentError(
            f"{what} have {len(ksizes) + 2} dimensions, unlike the shape {Shape(shape)}"
        )


def _patches_shape(images: Tensor, ksizes: Ints, strides: Ints, rates: Ints, padding: str) -> Shape:
    _check_rank(images.shape, ksizes)
    n, *_, c = images.shape.with_rank(len(ksizes) + 2).as_list()
    counts = output_dims(images.shape, ksizes, strides, rates, padding, 1)
    return Shape.of((n, *counts[: len(ksizes)], None if c is None else c * prod(ksizes)))


def _extract(xp: Any, images: Any, ksizes: Ints, strides: Ints, rates: Ints, padding: str) -> Any:
    _check_rank(images.shape, ksizes)
    n, *space, c = images.shape
    windows = laid(space, ksizes, strides, rates, padding, 1)
    counts = [w.output for w in windows]
    result = xp.zeros((n, *counts, prod(ksizes), c), dtype=images.dtype)
    for place, outputs, sources in taps(windows):
        result[:, *outputs, np.ravel_multi_index(place, ksizes)] = images[:, *sources]
    return xp.reshape(result, (n, *counts, prod(ksizes) * c))


def _patches_gradient(op: Operation, dy: Tensor) -> Tensor:
    return patches_gradient_op(dy, shape_of(op.inputs[0]), **op.attributes)


extract_patches_op = OpDef(
    "ExtractImagePatches",
    "images: T -> patches: T",
    T=ZEROED,
    attributes=_HOW,
    choices={"padding": PADDINGS},
    infer=_patches_shape,
    kernel=_extract,
    grad=_patches_gradient,
    only_moves=True,
)


def _unextract(
    xp: Any, dy: Any, shape: Any, ksizes: Ints, strides: Ints, rates: Ints, padding: str
) -> Any:
    n, *space, c = dims = dims_of(shape)
    _check_rank(dims, ksizes)
    windows = laid(space, ksizes, strides, rates, padding, 1)
    apart = xp.reshape(dy, (n, *(w.output for w in windows), prod(ksizes), c))
    result = xp.zeros(dims, dtype=dy.dtype)
    for place, outputs, sources in taps(windows):
        result[:, *sources] += apart[:, *outputs, np.ravel_multi_index(place, ksizes)]
    return result


patches_gradient_op = OpDef(
    "ExtractImagePatchesGrad",
    "dy: T, shape: I -> output: T",
    T=ZEROED,
    I=INDICES,
    attributes=_HOW,
    choices={"padding": PADDINGS},
    infer=lambda dy, shape, **_: shape_from(shape),
    kernel=_unextract,
    host_args=("shape",),
    grad=lambda op, dz: (extract_patches_op(dz, **op.attributes), None),
    cost=lambda op: op.inputs[0].shape.size or 0,
)


def _patches(
    what: str,
    count: int,
    images: Any,
    ksizes: Any,
    strides: Any,
    rates: Any,
    padding: Any,
    name: Any,
) -> Tensor:
    how = {
        "ksizes": inner_numbers("'ksizes'", ksizes, count),
        "strides": inner_numbers("'strides'", strides, count),
        "rates": inner_numbers("'rates'", rates, count),
        "padding": padding,
    }
    return extract_patches_op(images, **how, name=name or what)


@extract_patches_op.front
def extract_image_patches(
    images: Any, ksizes: Any, strides: Any, rates: Any, padding: str, name: str | None = None
) -> Tensor:
    """What a window sees at each of its places on images.

    Args:
        images: [n, height, width, depth], of a number dtype.
        ksizes: the window's size: [1, height, width, 1].
        strides: how far one place is from the next, in pixels: [1, height, width, 1].
        rates: how far the pixels that a window sees are apart: [1, height, width, 1].
        padding: "VALID" where the window stays within the image, "SAME" where zeros around it give
            a place for every stride.

    Returns:
        `[n, rows of places, columns of places, window's height * width * depth]`.

    Raises:
        InvalidArgumentError: if the sizes are not of this form, or the padding is neither.

    >>> import flowbook as fb
    >>> images = fb.zeros([8, 10, 10, 3])
    >>> fb.extract_image_patches(images, [1, 3, 3, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID").shape
    Shape([8, 4, 4, 27])
    """
    how = ksizes, strides, rates, padding
    return _patches("ExtractImagePatches", 2, images, *how, name)


def extract_volume_patches(
    input: Any, ksizes: Any, strides: Any, padding: str, name: str | None = None
) -> Tensor:
    """What a window sees at each of its places in volumes.

    Args:
        input: [n, depth, height, width, channels], of a number dtype.
        ksizes: the window's size: [1, depth, height, width, 1].
        strides: how far one place is from the next: [1, depth, height, width, 1].
        padding: as for `extract_image_patches`.
        name: the operation's name.

    Returns:
        `[n, places along each dimension, window's depth * height * width * channels]`.

    Raises:
        InvalidArgumentError: if the sizes are not of this form, or the padding is neither.
    """
    return _patches("ExtractVolumePatches", 3, input, ksizes, strides, 1, padding, name)
