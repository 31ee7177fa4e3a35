"""Images as they look after having been a JPEG file: what augments photographs."""

from __future__ import annotations

from typing import Any

from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.inference import constant_value, scalar
from flowbook.graph.definition.op_def import HOST, OpDef
from flowbook.graph.model.dtypes import int32, uint8
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.numerics.formats import image_codecs
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.checks.checking import ensure_shape
from flowbook.graph.ops.image.colours import convert_image_dtype
from flowbook.graph.ops.image.files import check_pixels, decode_jpeg, string_scalar
from flowbook.graph.ops.random.random_numbers import random_uniform

__all__ = ["adjust_jpeg_quality", "random_jpeg_quality"]


def _check(dims: Any, quality: Any) -> None:
    check_pixels(dims, (1, 3))
    if quality is not None and (quality.ndim or not 0 <= quality <= 100):
        raise InvalidArgumentError(f"a quality is a number from 0 to 100, not {quality}")


def _encoded_shape(image: Tensor, quality: Tensor) -> Shape:
    _check(image.shape.dims, constant_value(quality))
    return scalar()


def _encoded(xp: Any, image: Any, quality: Any) -> Any:
    _check(image.shape, quality)
    return string_scalar(image_codecs.encode_jpeg(image, int(quality), False, False, True))


encode_op = OpDef(
    "EncodeJpegVariableQuality",
    "image: uint8, quality: int32 -> contents: string",
    infer=_encoded_shape,
    kernel=_encoded,
    kinds=HOST,
    host_args=("quality",),
    cost=lambda op: 50 * (op.inputs[0].shape.size or 0),
)


@composed
def adjust_jpeg_quality(image: Any, jpeg_quality: Any, name: str | None = None) -> Tensor:
    """An image with what JPEG loses of it. No gradient flows through it.

    Args:
        image: [height, width, channels] with 1 or 3 channels, of a dtype that `convert_image_dtype`
            takes.
        jpeg_quality: from 0 to 100, an int or an int32 scalar tensor.

    Returns:
        The image's shape and dtype.

    Raises:
        InvalidArgumentError: if the shape or the quality does not fit; in the run, where they are
            known only then.
    """
    image = convert_to_tensor(image)
    pixels = convert_image_dtype(image, uint8, saturate=True)
    contents = encode_op(pixels, convert_to_tensor(jpeg_quality, int32))
    channels = image.shape.dims[2] if image.shape.rank == 3 else None
    decoded = decode_jpeg(contents, channels or 0)
    found = convert_image_dtype(decoded, image.dtype, saturate=True)
    return ensure_shape(found, image.shape, name=name)


@composed
def random_jpeg_quality(
    image: Any,
    min_jpeg_quality: int,
    max_jpeg_quality: int,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """An image with what JPEG loses of it at a random quality.

    Args:
        image: as for `adjust_jpeg_quality`.
        min_jpeg_quality: from 0 on, an int; may be drawn.
        max_jpeg_quality: up to 100, larger; is not drawn.
        seed: decides, together with the graph's, what is drawn.

    Raises:
        InvalidArgumentError: if these are not qualities in order.
    """
    if not 0 <= min_jpeg_quality < max_jpeg_quality <= 100:
        raise InvalidArgumentError(
            f"qualities are from 0 to 100, the second larger than the first, not "
            f"{min_jpeg_quality} and {max_jpeg_quality}"
        )
    quality = random_uniform([], min_jpeg_quality, max_jpeg_quality, int32, seed)
    return adjust_jpeg_quality(image, quality, name=name)
