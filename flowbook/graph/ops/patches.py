"""Patches of images: what a window sees at each of its places, as the channels of one pixel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flowbook.graph.dtypes import INDICES, ZEROED
from flowbook.graph.errors import InvalidArgumentError
from flowbook.graph.op_def import REQUIRED, OpDef
from flowbook.graph.operation import Operation
from flowbook.graph.ops.inference import no_flops, shape_from
from flowbook.graph.ops.located import located
from flowbook.graph.ops.shaping import dims_of, integers, shape_of
from flowbook.graph.shape import Shape
from flowbook.graph.tensor import Tensor

Pair = tuple[int, int]


def _places(size: int, window: int, stride: int, rate: int, padding: str) -> tuple[int, int]:
    """How many places a window has along an axis, and how many zeros stand before its first."""
    reach = (window - 1) * rate + 1
    if padding == "VALID":
        return max(0, (size - reach) // stride + 1), 0
    count = -(-size // stride)
    return count, max(0, (count - 1) * stride + reach - size) // 2


def _patches_shape(images: Tensor, ksizes: Pair, strides: Pair, rates: Pair, padding: str) -> Shape:
    if images.shape.rank not in (None, 4):
        raise InvalidArgumentError(f"images have 4 dimensions, unlike the shape {images.shape}")
    n, *space, c = images.shape.with_rank(4).as_list()
    counts = [
        None if d is None else _places(d, k, s, r, padding)[0]
        for d, k, s, r in zip(space, ksizes, strides, rates, strict=True)
    ]
    return Shape.of((n, *counts, None if c is None else c * ksizes[0] * ksizes[1]))


def _windows(
    dims: Any, ksizes: Pair, strides: Pair, rates: Pair, padding: str
) -> tuple[Any, Any, Iterator[tuple[int, Any]]]:
    """The padded image's size, where the image lies in it, and each window element's view."""
    height, width = (
        _places(d, k, s, r, padding)
        for d, k, s, r in zip(dims, ksizes, strides, rates, strict=True)
    )
    counts, starts = (height[0], width[0]), (height[1], width[1])
    reaches = [
        max(start + d, (count - 1) * s + (k - 1) * r + 1)
        for start, d, count, k, s, r in zip(
            starts, dims, counts, ksizes, strides, rates, strict=True
        )
    ]
    inner = tuple(slice(start, start + d) for start, d in zip(starts, dims, strict=True))

    def views() -> Iterator[tuple[int, Any]]:
        for y in range(ksizes[0]):
            for x in range(ksizes[1]):
                key = tuple(
                    slice(at * r, at * r + (count - 1) * s + 1 if count else at * r, s)
                    for at, r, count, s in zip((y, x), rates, counts, strides, strict=True)
                )
                yield y * ksizes[1] + x, key

    return (counts, reaches), inner, views()


def _extract(xp: Any, images: Any, ksizes: Pair, strides: Pair, rates: Pair, padding: str) -> Any:
    if images.ndim != 4:
        raise InvalidArgumentError(f"images have 4 dimensions, unlike {list(images.shape)}")
    n, *space, c = images.shape
    (counts, reaches), inner, views = _windows(space, ksizes, strides, rates, padding)
    padded = xp.zeros((n, *reaches, c), dtype=images.dtype)
    padded[(slice(None), *inner)] = images
    result = xp.empty((n, *counts, ksizes[0] * ksizes[1], c), dtype=images.dtype)
    for place, key in views:
        result[..., place, :] = padded[(slice(None), *key)]
    return xp.reshape(result, (n, *counts, ksizes[0] * ksizes[1] * c))


def _patches_gradient(op: Operation, dy: Tensor) -> Tensor:
    return patches_gradient_op(dy, shape_of(op.inputs[0]), **op.attributes)  # type: ignore[no-any-return]


extract_patches_op = OpDef(
    "ExtractImagePatches",
    "images: T -> patches: T",
    T=ZEROED,
    attributes={"ksizes": REQUIRED, "strides": REQUIRED, "rates": REQUIRED, "padding": REQUIRED},
    infer=_patches_shape,
    kernel=_extract,
    grad=_patches_gradient,
    aliases={},
    cost=no_flops,
)


def _unextract(
    xp: Any, dy: Any, shape: Any, ksizes: Pair, strides: Pair, rates: Pair, padding: str
) -> Any:
    n, *space, c = dims_of(shape)
    (counts, reaches), inner, views = _windows(space, ksizes, strides, rates, padding)
    apart = xp.reshape(dy, (n, *counts, ksizes[0] * ksizes[1], c))
    padded = xp.zeros((n, *reaches, c), dtype=dy.dtype)
    for place, key in views:
        padded[(slice(None), *key)] += apart[..., place, :]
    return padded[(slice(None), *inner)]


patches_gradient_op = OpDef(
    "ExtractImagePatchesGrad",
    "dy: T, shape: I -> output: T",
    T=ZEROED,
    I=INDICES,
    attributes={"ksizes": REQUIRED, "strides": REQUIRED, "rates": REQUIRED, "padding": REQUIRED},
    infer=lambda dy, shape, **_: shape_from(shape),
    kernel=_unextract,
    grad=lambda op, dz: (extract_patches_op(dz, **op.attributes), None),
    aliases={},
    cost=lambda op: op.inputs[0].shape.size or 0,
)


def _of_space(name: str, given: Any) -> Pair:
    """The two numbers in the middle of the four of an image's axes."""
    found = tuple(integers(list(given)).tolist())
    if len(found) != 4 or (found[0], found[3]) != (1, 1) or min(found) < 1:
        raise InvalidArgumentError(f"{name!r} is [1, height, width, 1], not {list(found)}")
    return found[1], found[2]


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
        name: the operation's name.

    Returns:
        `[n, rows of places, columns of places, window's height * width * depth]`.

    Raises:
        InvalidArgumentError: if the sizes are not of this form, or the padding is neither.

    >>> import flowbook as fb
    >>> images = fb.zeros([8, 10, 10, 3])
    >>> fb.extract_image_patches(images, [1, 3, 3, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID").shape
    Shape([8, 4, 4, 27])
    """
    __tracebackhide__ = True
    with located("ExtractImagePatches"):
        pairs = {
            key: _of_space(key, given)
            for key, given in (("ksizes", ksizes), ("strides", strides), ("rates", rates))
        }
        if padding not in ("VALID", "SAME"):
            raise InvalidArgumentError(f"a padding is 'VALID' or 'SAME', not {padding!r}")
    result: Tensor = extract_patches_op(images, **pairs, padding=padding, name=name)
    return result
