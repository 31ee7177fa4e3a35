"""Moving elements between space, depth and batch, in blocks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from flowbook.graph.definition.axes import as_axis
from flowbook.graph.definition.inference import constant_value
from flowbook.graph.definition.op_def import REQUIRED, OpDef
from flowbook.graph.model.counted import counted
from flowbook.graph.model.dtypes import INDICES, MOVABLE
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import UNKNOWN, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.shaping import check_vector

__all__ = [
    "batch_to_space",
    "batch_to_space_nd",
    "depth_to_space",
    "space_to_batch",
    "space_to_batch_nd",
    "space_to_depth",
]

_FORMATS = ("NHWC", "NCHW")


def _image_dims(input: Tensor) -> list[int | None]:
    if input.shape.rank not in (None, 4):
        raise InvalidArgumentError(f"images have 4 dimensions, unlike the shape {input.shape}")
    return input.shape.with_rank(4).as_list()


def _divided(size: int | None, by: int, what: str) -> int | None:
    if size is not None and size % by:
        raise InvalidArgumentError(f"the {what} {size} is not divisible by {by}")
    return None if size is None else size // by


def _times(size: int | None, by: int) -> int | None:
    return None if size is None else size * by


def _axes(data_format: str) -> tuple[int, int, int]:
    """Where height, width and depth stand."""
    return (1, 2, 3) if data_format == "NHWC" else (2, 3, 1)


def _deep_shape(input: Tensor, block_size: int, data_format: str) -> Shape:
    dims = _image_dims(input)
    height, width, depth = _axes(data_format)
    dims[height] = _divided(dims[height], block_size, "height")
    dims[width] = _divided(dims[width], block_size, "width")
    dims[depth] = _times(dims[depth], block_size**2)
    return Shape.of(tuple(dims))


def _flat_shape(input: Tensor, block_size: int, data_format: str) -> Shape:
    dims = _image_dims(input)
    height, width, depth = _axes(data_format)
    dims[height] = _times(dims[height], block_size)
    dims[width] = _times(dims[width], block_size)
    dims[depth] = _divided(dims[depth], block_size**2, "depth")
    return Shape.of(tuple(dims))


def _check_image(input: Any) -> None:
    if input.ndim != 4:
        raise InvalidArgumentError(f"images have 4 dimensions, unlike {list(input.shape)}")


def _space_to_depth(xp: Any, input: Any, block_size: int, data_format: str) -> Any:
    _check_image(input)
    b = block_size
    if data_format == "NCHW":
        n, c, h, w = input.shape
        h, w = _divided(h, b, "height"), _divided(w, b, "width")
        blocks = xp.reshape(input, (n, c, h, b, w, b)).transpose(0, 3, 5, 1, 2, 4)
        return xp.reshape(xp.ascontiguousarray(blocks), (n, b * b * c, h, w))
    n, h, w, c = input.shape
    h, w = _divided(h, b, "height"), _divided(w, b, "width")
    blocks = xp.reshape(input, (n, h, b, w, b, c)).transpose(0, 1, 3, 2, 4, 5)
    return xp.reshape(xp.ascontiguousarray(blocks), (n, h, w, b * b * c))


def _depth_to_space(xp: Any, input: Any, block_size: int, data_format: str) -> Any:
    _check_image(input)
    b = block_size
    if data_format == "NCHW":
        n, c, h, w = input.shape
        c = _divided(c, b * b, "depth")
        blocks = xp.reshape(input, (n, b, b, c, h, w)).transpose(0, 3, 4, 1, 5, 2)
        return xp.reshape(xp.ascontiguousarray(blocks), (n, c, h * b, w * b))
    n, h, w, c = input.shape
    c = _divided(c, b * b, "depth")
    blocks = xp.reshape(input, (n, h, w, b, b, c)).transpose(0, 1, 3, 2, 4, 5)
    return xp.reshape(xp.ascontiguousarray(blocks), (n, h * b, w * b, c))


space_to_depth_op: OpDef = OpDef(
    "SpaceToDepth",
    "input: T -> output: T",
    T=MOVABLE,
    attributes={"block_size": REQUIRED, "data_format": "NHWC"},
    choices={"data_format": _FORMATS},
    infer=_deep_shape,
    kernel=_space_to_depth,
    grad=lambda op, dy: depth_to_space_op(dy, **op.attributes),
    aliases={0: 0},
    only_moves=True,
)

depth_to_space_op: OpDef = OpDef(
    "DepthToSpace",
    "input: T -> output: T",
    T=MOVABLE,
    attributes={"block_size": REQUIRED, "data_format": "NHWC"},
    choices={"data_format": _FORMATS},
    infer=_flat_shape,
    kernel=_depth_to_space,
    grad=lambda op, dy: space_to_depth_op(dy, **op.attributes),
    aliases={0: 0},
    only_moves=True,
)


def _checked(op_def: OpDef, input: Any, block_size: Any, data_format: str, name: Any) -> Tensor:
    size = as_axis(block_size)
    if size < 1:
        raise InvalidArgumentError(f"a block is not of size {size}")
    return op_def(input, block_size=size, data_format=data_format, name=name)


@space_to_depth_op.front
def space_to_depth(
    input: Any, block_size: int, data_format: str = "NHWC", name: str | None = None
) -> Tensor:
    """Blocks of an image's pixels as the channels of one pixel.

    Args:
        input: images [n, height, width, depth], of any dtype.
        block_size: the height and width of a block, which divide those of the images.
        data_format: "NHWC", or "NCHW" where the channels stand before height and width.

    Returns:
        `[n, height / block_size, width / block_size, block_size ** 2 * depth]`.

    Raises:
        InvalidArgumentError: if the sizes do not divide; in the run, where they are known only
            then.
    """
    return _checked(space_to_depth_op, input, block_size, data_format, name)


@depth_to_space_op.front
def depth_to_space(
    input: Any, block_size: int, data_format: str = "NHWC", name: str | None = None
) -> Tensor:
    """Channels of a pixel as a block of pixels: the reverse of `space_to_depth`.

    Args:
        input: images [n, height, width, depth], the depth divisible by `block_size ** 2`.
        block_size: the height and width of a block.
        data_format: "NHWC", or "NCHW" where the channels stand before height and width.

    Raises:
        InvalidArgumentError: if the depth does not divide; in the run, where it is known only then.
    """
    return _checked(depth_to_space_op, input, block_size, data_format, name)


def _blocks(input: Tensor, block_shape: Tensor, margins: Tensor, what: str) -> Any:
    """What is known of blocks and margins at construction; None where not all of it is."""
    check_vector("block_shape", block_shape)
    count = block_shape.shape.with_rank(1).as_list()[0]
    if not margins.shape.is_compatible_with((count, 2)):
        raise InvalidArgumentError(
            f"{what} of shape {margins.shape} do not fit a block shape of {count} numbers: "
            "two for each"
        )
    rank = input.shape.rank
    if rank is not None and count is not None and rank <= count:
        raise InvalidArgumentError(
            f"a batch and {counted(count, 'axis', 'axes')} of blocks are more than the shape "
            f"{input.shape} has"
        )
    sizes, widths = constant_value(block_shape), constant_value(margins)
    if sizes is None or widths is None:
        return None
    return _check_blocks(sizes, widths, what)


def _check_blocks(sizes: Any, widths: Any, what: str) -> tuple[list[int], list[list[int]]]:
    if sizes.ndim != 1 or widths.shape != (sizes.size, 2):
        raise InvalidArgumentError(
            f"{what} of shape {list(widths.shape)} do not fit a block shape of shape "
            f"{list(sizes.shape)}"
        )
    if (sizes < 1).any() or (widths < 0).any():
        raise InvalidArgumentError(
            f"blocks are positive and {what} not negative: {sizes.tolist()}, {widths.tolist()}"
        )
    return sizes.tolist(), widths.tolist()


def _known_in_part(
    input: Tensor, block_shape: Tensor, batch: Callable[[int | None, int], int | None]
) -> Shape:
    """What is known without the margins: the batch, and the axes without blocks."""
    dims, count, sizes = input.shape.dims, block_shape.shape.size, constant_value(block_shape)
    if dims is None:
        return UNKNOWN
    if count is None:
        return Shape.of((None,) * len(dims))
    if sizes is not None and (sizes < 1).any():
        raise InvalidArgumentError(f"blocks are positive, unlike {sizes.tolist()}")
    first = None if sizes is None else batch(dims[0], math.prod(sizes.tolist()))
    return Shape.of((first, *(None,) * count, *dims[1 + count :]))


def _to_batch_shape(input: Tensor, block_shape: Tensor, paddings: Tensor) -> Shape:
    known = _blocks(input, block_shape, paddings, "paddings")
    if known is None or input.shape.dims is None:
        return _known_in_part(input, block_shape, _times)
    return Shape.of(_to_batch_dims(input.shape.dims, *known))


def _to_batch_dims(dims: Any, sizes: list[int], widths: list[list[int]]) -> Any:
    space = [
        _divided(None if d is None else d + sum(w), b, "padded size")
        for d, b, w in zip(dims[1:], sizes, widths, strict=False)
    ]
    return (_times(dims[0], math.prod(sizes)), *space, *dims[1 + len(sizes) :])


def _check_rank(input: Any, sizes: list[int]) -> None:
    if input.ndim <= len(sizes):
        raise InvalidArgumentError(
            f"a batch and {counted(len(sizes), 'axis', 'axes')} of blocks are more than the shape "
            f"{list(input.shape)} has"
        )


def _space_to_batch(xp: Any, input: Any, block_shape: Any, paddings: Any) -> Any:
    sizes, widths = _check_blocks(block_shape, paddings, "paddings")
    _check_rank(input, sizes)
    m, rest = len(sizes), input.shape[1 + len(sizes) :]
    dims = _to_batch_dims(input.shape, sizes, widths)
    if np.any(widths):
        blank = b"" if input.dtype.kind == "O" else 0
        whole = (len(input), *(d + sum(w) for d, w in zip(input.shape[1:], widths, strict=False)))
        padded = xp.full((*whole, *rest), blank, dtype=input.dtype)
        inner = (slice(w[0], w[0] + d) for d, w in zip(input.shape[1:], widths, strict=False))
        padded[(slice(None), *inner)] = input
        input = padded
    apart = [n for pair in zip(dims[1 : 1 + m], sizes, strict=True) for n in pair]
    parts = xp.reshape(input, (len(input), *apart, *rest))
    order = (
        *range(2, 2 * m + 1, 2),
        0,
        *range(1, 2 * m, 2),
        *range(2 * m + 1, 2 * m + 1 + len(rest)),
    )
    # Without blocks there is nothing to copy, and the input may come back.
    return xp.reshape(parts.transpose(order), dims)


def _from_batch_shape(input: Tensor, block_shape: Tensor, crops: Tensor) -> Shape:
    known = _blocks(input, block_shape, crops, "crops")
    if known is None or input.shape.dims is None:
        return _known_in_part(input, block_shape, lambda d, b: _divided(d, b, "batch"))
    return Shape.of(_from_batch_dims(input.shape.dims, *known))


def _from_batch_dims(dims: Any, sizes: list[int], widths: list[list[int]]) -> Any:
    space = []
    for d, b, w in zip(dims[1:], sizes, widths, strict=False):
        if d is not None and d * b < sum(w):
            raise InvalidArgumentError(f"crops {w} are more than the {d * b} elements there are")
        space.append(None if d is None else d * b - sum(w))
    batch = _divided(dims[0], math.prod(sizes), "batch")
    return (batch, *space, *dims[1 + len(sizes) :])


def _batch_to_space(xp: Any, input: Any, block_shape: Any, crops: Any) -> Any:
    sizes, widths = _check_blocks(block_shape, crops, "crops")
    _check_rank(input, sizes)
    m, rest = len(sizes), input.shape[1 + len(sizes) :]
    dims = _from_batch_dims(input.shape, sizes, widths)
    parts = xp.reshape(input, (*sizes, dims[0], *input.shape[1:]))
    order = [m]
    for axis in range(m):
        order += [m + 1 + axis, axis]
    order += range(2 * m + 1, 2 * m + 1 + len(rest))
    space = tuple(d * b for d, b in zip(input.shape[1:], sizes, strict=False))
    whole = xp.reshape(parts.transpose(order), (dims[0], *space, *rest))
    inner = (slice(w[0], d - w[1]) for d, w in zip(space, widths, strict=True))
    return whole[(slice(None), *inner)]


def _reversed_by(other: Any) -> Any:
    def gradient(op: Operation, dy: Tensor) -> Any:
        return other()(dy, *op.inputs[1:]), None, None

    return gradient


space_to_batch_nd: OpDef = OpDef(
    "SpaceToBatchND",
    "input: T, block_shape: I, paddings: J -> output: T",
    T=MOVABLE,
    I=INDICES,
    J=INDICES,
    infer=_to_batch_shape,
    kernel=_space_to_batch,
    host_args=("block_shape", "paddings"),
    grad=_reversed_by(lambda: batch_to_space_nd),
    aliases={0: 0},
    only_moves=True,
    function="space_to_batch_nd",
    doc="""Blocks of the axes after the first, padded with zeros, as parts of the batch.

    Args:
        input: [batch, ...], of any dtype.
        block_shape: int vector: for each of the first axes after the batch the size of a block.
        paddings: int [len(block_shape), 2]: how many zeros before and after, so that the blocks
            divide the axis.

    Returns:
        A tensor whose batch is `prod(block_shape)` times as large, and these axes as many times
        smaller.

    Raises:
        InvalidArgumentError: if the blocks do not divide; in the run, where it is known only then.
    """,
)

batch_to_space_nd: OpDef = OpDef(
    "BatchToSpaceND",
    "input: T, block_shape: I, crops: J -> output: T",
    T=MOVABLE,
    I=INDICES,
    J=INDICES,
    infer=_from_batch_shape,
    kernel=_batch_to_space,
    host_args=("block_shape", "crops"),
    grad=_reversed_by(lambda: space_to_batch_nd),
    aliases={0: 0},
    only_moves=True,
    function="batch_to_space_nd",
    doc="""Parts of the batch as blocks of the axes after it: reverses `space_to_batch_nd`.

    Args:
        input: [batch, ...], of any dtype, the batch divisible by `prod(block_shape)`.
        block_shape: int vector: for each of the first axes after the batch the size of a block.
        crops: int [len(block_shape), 2]: how many elements to drop at both ends.

    Raises:
        InvalidArgumentError: if the batch does not divide, or less is there than is dropped; in the
            run, where it is known only then.
    """,
)


def space_to_batch(input: Any, paddings: Any, block_size: int, name: str | None = None) -> Tensor:
    """Square blocks of images, padded with zeros, as parts of the batch.

    Args:
        input: [batch, height, width, channels], of any dtype.
        paddings: int [2, 2]: how many zeros before and after each side, so that the blocks divide
            it.
        block_size: the side of a block, an int from 1 on.
        name: the operation's name.

    Returns:
        A tensor whose batch is `block_size ** 2` times as large, and whose sides are as
        `space_to_batch_nd(input, [block_size, block_size], paddings)` gives them.

    Raises:
        InvalidArgumentError: if the blocks do not divide; in the run, where it is known only then.
    """
    return space_to_batch_nd(input, [block_size, block_size], paddings, name=name)


def batch_to_space(input: Any, crops: Any, block_size: int, name: str | None = None) -> Tensor:
    """Parts of the batch as square blocks of images: reverses `space_to_batch`.

    Args:
        input: [batch, height, width, channels], of any dtype, the batch divisible by
            `block_size ** 2`.
        crops: int [2, 2]: how many elements to drop at both ends of each side.
        block_size: the side of a block, an int from 1 on.
        name: the operation's name.

    Raises:
        InvalidArgumentError: if the batch does not divide, or less is there than is dropped; in the
            run, where it is known only then.
    """
    return batch_to_space_nd(input, [block_size, block_size], crops, name=name)
