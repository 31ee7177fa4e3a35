"""Images decoded from the contents of files, and encoded for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.building.scopes import name_scope
from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.inference import scalar, uncounted
from flowbook.graph.definition.op_def import HOST, NO_GRADIENT, REQUIRED, OpDef
from flowbook.graph.model.dtypes import INDICES, DType, as_dtype, int32, string, uint8, uint16
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.numerics.formats import image_codecs
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.joining import concat
from flowbook.graph.ops.basis.padding import slice as slice_of
from flowbook.graph.ops.image.colours import convert_image_dtype
from flowbook.graph.ops.math.comparison import equal
from flowbook.graph.ops.text.strings import substr

__all__ = [
    "decode_and_crop_jpeg",
    "decode_bmp",
    "decode_gif",
    "decode_image",
    "decode_jpeg",
    "decode_png",
    "encode_jpeg",
    "encode_png",
    "extract_jpeg_shape",
    "is_jpeg",
]


def _decoded_shape(contents: Tensor, channels: int, **_: Any) -> Shape:
    _check_contents(contents)
    return Shape.of((None, None, channels or None))


def _check_contents(contents: Any) -> None:
    """The same for tensors as for arrays; bytes are a vector of them, or one string."""
    shape = Shape(contents.shape)
    rank = 1 if contents.dtype == uint8 else 0
    if shape.rank not in (None, rank):
        raise InvalidArgumentError(
            "the contents of one image are a string scalar, or a vector of bytes, not of shape "
            f"{shape}"
        )


def _decode(
    xp: Any, contents: Any, channels: int, dtype: DType, formats: tuple[str, ...], ratio: int
) -> Any:
    _check_contents(contents)
    data = contents.tobytes() if contents.dtype == np.uint8 else contents.item()
    return image_codecs.decode(data, channels, dtype.numpy, formats, ratio)


decode_op = OpDef(
    "DecodeImage",
    "contents: T -> image: dtype",
    T=(string, uint8),
    attributes={"channels": 0, "dtype": uint8, "formats": REQUIRED, "ratio": 1},
    infer=_decoded_shape,
    kernel=_decode,
    kinds=HOST,
    grad=NO_GRADIENT,
    # What lies in the file is not known; it is some hundred operations per byte.
    cost=uncounted,
)


def _decoded(
    what: str,
    contents: Any,
    channels: int | None,
    dtype: DType,
    formats: tuple[str, ...],
    admitted: tuple[int, ...],
    name: str | None,
    ratio: int = 1,
) -> Tensor:
    channels = channels or 0
    if channels not in admitted:
        raise InvalidArgumentError(
            f"channels are {', '.join(map(str, admitted))}, not {channels!r}",
            hint="0 takes as many as the image has",
        )
    return decode_op(
        contents, channels=channels, dtype=dtype, formats=formats, ratio=ratio, name=name or what
    )


def decode_png(
    contents: Any, channels: int = 0, dtype: Any = uint8, name: str | None = None
) -> Tensor:
    """The pixels of a PNG image.

    Args:
        contents: of a file, a string scalar, or uint8 [bytes].
        channels: 1 (grey), 2 (grey and opacity), 3 (red, green, blue), 4 (and opacity), or 0 for as
            many as the image has.
        dtype: uint8 or uint16.
        name: the operation's name.

    Returns:
        [height, width, channels]. Images of 16 bits lose the lower ones as uint8; those of 8 bits
        are multiplied by 257 as uint16.

    Raises:
        InvalidArgumentError: in the run, if the image is damaged or larger than Pillow admits.
    """
    wanted = as_dtype(dtype)
    if wanted not in (uint8, uint16):
        raise InvalidTypeError(f"PNG images are decoded as uint8 or uint16, not {wanted.name}")
    return _decoded("decode_png", contents, channels, wanted, ("PNG",), (0, 1, 2, 3, 4), name)


def decode_jpeg(
    contents: Any, channels: int = 0, ratio: int = 1, name: str | None = None
) -> Tensor:
    """The pixels of a JPEG image.

    Args:
        contents: of a file, a string scalar, or uint8 [bytes].
        channels: 1 (grey), 3 (red, green, blue), or 0 for as many as the image has.
        ratio: by how much to shrink it while decoding, which saves time: 1, 2, 4 or 8.
        name: the operation's name.

    Returns:
        uint8 [height, width, channels]. Decoders differ by rounding.

    Raises:
        InvalidArgumentError: in the run, if the image is damaged or larger than Pillow admits.
    """
    if ratio not in (1, 2, 4, 8):
        raise InvalidArgumentError(f"the ratio is 1, 2, 4 or 8, not {ratio!r}")
    return _decoded("decode_jpeg", contents, channels, uint8, ("JPEG",), (0, 1, 3), name, ratio)


def decode_image(
    contents: Any, channels: int | None = None, dtype: Any = uint8, name: str | None = None
) -> Tensor:
    """The pixels of a PNG, JPEG, GIF or BMP image, whichever it is.

    Args:
        contents: of a file, a string scalar, or uint8 [bytes].
        channels: 1 (grey), 3 (red, green, blue), 4 (and opacity), or 0 for as many as the image
            has.
        dtype: uint8 and uint16 as `decode_png` has them; others as by `convert_image_dtype`.
        name: the name scope.

    Returns:
        [height, width, channels]; of an animation the first frame.

    Raises:
        InvalidArgumentError: in the run, if the image is damaged or larger than Pillow admits.
    """
    formats = ("PNG", "JPEG", "GIF", "BMP")
    wanted = as_dtype(dtype)
    if wanted in (uint8, uint16):
        return _decoded("decode_image", contents, channels, wanted, formats, (0, 1, 3, 4), name)
    with name_scope(name or "decode_image") as scope:
        # All bits that the file has.
        image = _decoded("decode_image", contents, channels, uint16, formats, (0, 1, 3, 4), None)
        return convert_image_dtype(image, wanted, name=scope)


def decode_bmp(contents: Any, channels: int = 0, name: str | None = None) -> Tensor:
    """The pixels of a BMP image.

    Args:
        contents: of a file, a string scalar, or uint8 [bytes].
        channels: 1 (grey), 3 (red, green, blue), 4 (and opacity), or 0 for as many as the image
            has.
        name: the operation's name.

    Returns:
        uint8 [height, width, channels].

    Raises:
        InvalidArgumentError: in the run, if the image is damaged or larger than Pillow admits.
    """
    return _decoded("decode_bmp", contents, channels, uint8, ("BMP",), (0, 1, 3, 4), name)


def _frames_shape(contents: Tensor) -> Shape:
    _check_contents(contents)
    return Shape.of((None, None, None, 3))


def _frames(xp: Any, contents: Any) -> Any:
    _check_contents(contents)
    return image_codecs.decode_frames(contents.item())


decode_gif = OpDef(
    "DecodeGif",
    "contents: string -> frames: uint8",
    infer=_frames_shape,
    kernel=_frames,
    kinds=HOST,
    # As of one image, what lies in the file is not known.
    cost=uncounted,
    doc="""The pixels of all frames of a GIF animation.

    Args:
        contents: of a file, a string scalar.

    Returns:
        uint8 [frames, height, width, 3].

    Raises:
        InvalidArgumentError: in the run, if the image is damaged or larger than Pillow admits.
    """,
)


@composed
def is_jpeg(contents: Any, name: str | None = None) -> Tensor:
    """Whether the contents of a file, string scalars, begin as a JPEG image does."""
    return equal(substr(contents, 0, 3), b"\xff\xd8\xff", name=name)


def _three(contents: Tensor, **_: Any) -> Shape:
    _check_contents(contents)
    return Shape.of((3,))


def _jpeg_dims(xp: Any, contents: Any, output_type: DType) -> Any:
    _check_contents(contents)
    return np.array(image_codecs.jpeg_shape(contents.item()), output_type.numpy)


jpeg_shape_op = OpDef(
    "ExtractJpegShape",
    "contents: string -> image_shape: output_type",
    attributes={"output_type": int32},
    infer=_three,
    kernel=_jpeg_dims,
    kinds=HOST,
    grad=NO_GRADIENT,
    cost=uncounted,
)


@jpeg_shape_op.front
def extract_jpeg_shape(contents: Any, output_type: Any = int32, name: str | None = None) -> Tensor:
    """The shape of a JPEG image, [height, width, channels], without decoding it.

    Args:
        contents: of a file, a string scalar.
        output_type: int32 or int64.

    Raises:
        InvalidArgumentError: in the run, if it is no such image.
    """
    wanted = as_dtype(output_type)
    if wanted not in INDICES:
        raise InvalidTypeError(f"output_type is int32 or int64, not {wanted.name}")
    return jpeg_shape_op(contents, output_type=wanted, name=name)


@composed
def decode_and_crop_jpeg(
    contents: Any, crop_window: Any, channels: int = 0, ratio: int = 1, name: str | None = None
) -> Tensor:
    """A part of the pixels of a JPEG image.

    Args:
        contents: of a file, a string scalar.
        crop_window: int32 [4]: y and x of the first pixel, height and width.
        channels: as for `decode_jpeg`, and so is ratio.
        ratio: by how much to shrink the image before the part is taken.

    Returns:
        uint8 [height, width, channels].

    Raises:
        InvalidArgumentError: in the run, if the image is damaged.
        InvalidIndexError: there, if the part does not lie inside it.
    """
    window = convert_to_tensor(crop_window, int32)
    image = decode_jpeg(contents, channels, ratio)
    begin, size = concat([window[:2], [0]], 0), concat([window[2:], [-1]], 0)
    return slice_of(image, begin, size, name=name)


def _encoded_shape(image: Tensor, **_: Any) -> Shape:
    check_pixels(image.shape.dims)
    return scalar()


def check_pixels(dims: Any, channels: tuple[int, ...] = (1, 2, 3, 4)) -> None:
    """See that dimensions, as far as they are known, are those of one image.

    Raises:
        InvalidArgumentError: if they are not.
    """
    if dims is not None and (len(dims) != 3 or dims[2] not in (None, *channels)):
        raise InvalidArgumentError(
            f"an image is [height, width, {' or '.join(map(str, channels))} channels], not of "
            f"shape {list(dims)}"
        )
    if dims is not None and 0 in dims:
        raise InvalidArgumentError(f"an image has pixels, and this the shape {list(dims)}")


def string_scalar(data: bytes) -> Any:
    """Bytes as the value of a string scalar."""
    result = np.empty((), object)
    result[()] = data
    return result


def _encode_png(xp: Any, image: Any, compression: int) -> Any:
    check_pixels(image.shape)
    return string_scalar(image_codecs.encode_png(image, compression))


encode_png_op = OpDef(
    "EncodePng",
    "image: T -> contents: string",
    T=(uint8, uint16),
    attributes={"compression": -1},
    infer=_encoded_shape,
    kernel=_encode_png,
    kinds=HOST,
    cost=lambda op: 50 * (op.inputs[0].shape.size or 0),
)


@encode_png_op.front
def encode_png(image: Any, compression: int = -1, name: str | None = None) -> Tensor:
    """An image as the contents of a PNG file, a string scalar.

    Args:
        image: uint8 or uint16 [height, width, channels]: 1 (grey), 2 (grey and opacity), 3 (red,
            green, blue) or 4 (and opacity).
        compression: from 0 (none) to 9 (the smallest), -1 for the usual one.

    Raises:
        InvalidArgumentError: if the shape does not fit.
    """
    if compression not in range(-1, 10):
        raise InvalidArgumentError(f"compression is from -1 to 9, not {compression!r}")
    return encode_png_op(image, compression=compression, name=name)


def _encode_jpeg(
    xp: Any,
    image: Any,
    format: str,
    quality: int,
    progressive: bool,
    optimize_size: bool,
    chroma_downsampling: bool,
) -> Any:
    check_pixels(image.shape)
    _check_format(format, image.shape[2])
    how = quality, progressive, optimize_size, chroma_downsampling
    return string_scalar(image_codecs.encode_jpeg(image, *how))


def _jpeg_shape(image: Tensor, format: str, **_: Any) -> Shape:
    check_pixels(image.shape.dims)
    if image.shape.dims is not None and image.shape.dims[2] is not None:
        _check_format(format, image.shape.dims[2])
    return scalar()


# The numbers of channels that an image has by the format of its JPEG file.
_CHANNELS = {"": (1, 3), "grayscale": (1,), "rgb": (3,)}


def _check_format(format: str, channels: int) -> None:
    wanted = _CHANNELS[format]
    if channels not in wanted:
        raise InvalidArgumentError(
            f"a JPEG image{f' of format {format!r}' if format else ''} has "
            f"{' or '.join(map(str, wanted))} channels, not {channels}"
        )


encode_jpeg_op = OpDef(
    "EncodeJpeg",
    "image: uint8 -> contents: string",
    attributes={
        "format": "",
        "quality": 95,
        "progressive": False,
        "optimize_size": False,
        "chroma_downsampling": True,
    },
    choices={"format": tuple(_CHANNELS)},
    infer=_jpeg_shape,
    kernel=_encode_jpeg,
    kinds=HOST,
    cost=lambda op: 50 * (op.inputs[0].shape.size or 0),
)


@encode_jpeg_op.front
def encode_jpeg(
    image: Any,
    format: str = "",
    quality: int = 95,
    progressive: bool = False,
    optimize_size: bool = False,
    chroma_downsampling: bool = True,
    name: str | None = None,
) -> Tensor:
    """An image as the contents of a JPEG file, a string scalar.

    Args:
        image: uint8 [height, width, channels]: 1 (grey) or 3 (red, green, blue).
        format: "grayscale" or "rgb"; "" takes what the channels say.
        quality: from 0 to 100.
        progressive: have the file show coarsely first.
        optimize_size: make it smaller, in more time.
        chroma_downsampling: store colours with half the resolution.

    Raises:
        InvalidArgumentError: if the shape does not fit.
    """
    if quality not in range(101):
        raise InvalidArgumentError(f"quality is from 0 to 100, not {quality!r}")
    return encode_jpeg_op(
        image,
        format=format,
        quality=quality,
        progressive=bool(progressive),
        optimize_size=bool(optimize_size),
        chroma_downsampling=bool(chroma_downsampling),
        name=name,
    )
