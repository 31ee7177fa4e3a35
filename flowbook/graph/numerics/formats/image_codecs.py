"""Images in the encodings of files, from and to arrays: the one module that knows Pillow.

It is imported on first use. Of 16 bits per channel it reads grey images only; for the others see
`flowbook/graph/numerics/formats/png16.py`.
"""

from __future__ import annotations

import io
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.numerics.formats import png16

_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}

# `warnings.catch_warnings` changes what all threads share.
_opening = threading.Lock()


def decode(
    data: bytes, channels: int, dtype: np.dtype[Any], formats: tuple[str, ...], ratio: int = 1
) -> NDArray[Any]:
    """The pixels of an encoded image.

    Args:
        data: the contents of a file.
        channels: 1 (grey), 2 (grey and opacity), 3 (red, green, blue), 4 (and opacity), or 0 for as
            many as the image has.
        dtype: uint8, or uint16 of which 8 bits become the upper and the lower byte.
        formats: those admitted, such as ("PNG",).
        ratio: by how much to shrink a JPEG while decoding: 1, 2, 4 or 8.

    Returns:
        [height, width, channels]; of several frames the first.

    Raises:
        InvalidArgumentError: if it is no such image, damaged, or larger than Pillow admits.
    """
    with _telling(formats):
        if "PNG" in formats and png16.is_deep_colour(data):
            return _as_channels(_in_depth(png16.decode(data), dtype), channels)
        image = _opened(data, formats)
        if ratio > 1:
            # Pillow counts how often this fits; in whole pixels that is less for many sizes.
            image.draft(None, (image.width / ratio, image.height / ratio))
        if image.mode.startswith("I"):
            deep = np.asarray(image).astype(np.uint16)[:, :, None]
            return _as_channels(_in_depth(deep, dtype), channels)
        # The grey of a PNG's colours is libpng's, which Pillow rounds otherwise.
        greys = channels in (1, 2) and image.format == "PNG"
        through = greys and _mode(image, 0) in ("RGB", "RGBA")
        pixels = np.array(image.convert("RGBA" if through else _mode(image, channels)))
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    return _in_depth(_as_channels(pixels, channels) if through else pixels, dtype)


def decode_frames(data: bytes) -> NDArray[np.uint8]:
    """The pixels of all frames of a GIF animation: uint8 [frames, height, width, 3].

    Raises:
        InvalidArgumentError: if it is no such image, damaged, or larger than Pillow admits.
    """
    from PIL import Image, ImageSequence

    with _telling(("GIF",)):
        image = _opened(data, ("GIF",))
        frames: list[NDArray[np.uint8]] = []
        for frame in ImageSequence.Iterator(image):
            frames.append(np.array(frame.convert("RGB")))
            most = Image.MAX_IMAGE_PIXELS
            if most is not None and len(frames) * image.width * image.height > most:
                raise Image.DecompressionBombError
        return np.stack(frames)


def jpeg_shape(data: bytes) -> tuple[int, int, int]:
    """Height, width and number of channels of a JPEG image, of which no pixels are decoded.

    Raises:
        InvalidArgumentError: if it is no such image.
    """
    with _telling(("JPEG",)):
        image = _opened(data, ("JPEG",))
        return image.height, image.width, len(image.getbands())


def _opened(data: bytes, formats: tuple[str, ...]) -> Any:
    from PIL import Image

    with _opening, warnings.catch_warnings():
        # A warning of Pillow's; an image so large is refused here.
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        return Image.open(io.BytesIO(data), formats=[*formats])


@contextmanager
def _telling(formats: tuple[str, ...]) -> Iterator[None]:
    """Raise an InvalidArgumentError in place of Pillow's errors."""
    from PIL import Image, UnidentifiedImageError

    try:
        yield
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise InvalidArgumentError(
            f"the image has more than {Image.MAX_IMAGE_PIXELS} pixels",
            hint="if it is to be trusted, raise PIL.Image.MAX_IMAGE_PIXELS",
        ) from None
    except MemoryError:
        raise
    except Exception as error:
        # Pillow's decoders raise errors of many kinds for what they cannot read.
        # Pillow names the object that it read from, which says nothing.
        why = "" if isinstance(error, UnidentifiedImageError) else f": {error}"
        what = " or ".join(formats)
        raise InvalidArgumentError(f"this is no {what} image, or it is damaged{why}") from None


def _mode(image: Any, channels: int) -> str:
    if channels:
        return _MODES[channels]
    if image.mode in _MODES.values():
        return str(image.mode)
    if image.mode in ("1", "F"):
        return "L"
    transparent = image.mode == "PA" or "transparency" in image.info
    return "RGBA" if transparent and image.format == "PNG" else "RGB"


def _in_depth(pixels: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    if pixels.dtype == dtype:
        return pixels
    if dtype == np.uint8:
        return (pixels >> 8).astype(np.uint8)
    return pixels.astype(np.uint16) * np.uint16(257)


def _as_channels(pixels: NDArray[Any], channels: int) -> NDArray[Any]:
    """The pixels of a PNG with another number of channels."""
    have = pixels.shape[2]
    if channels in (0, have):
        return pixels
    greatest = np.iinfo(pixels.dtype).max
    if have in (2, 4):
        colours, opacity = pixels[:, :, :-1], pixels[:, :, -1:]
    else:
        colours, opacity = pixels, np.full_like(pixels[:, :, :1], greatest)
    if channels < 3 and colours.shape[2] == 3:
        if pixels.dtype == np.uint8:
            # As libpng has it: weights in parts of 2**15, and rounded down.
            grey = (colours @ np.array([9798, 19235, 3735])) >> 15
        else:
            grey = np.rint(colours @ np.array([0.299, 0.587, 0.114]))
        colours = grey.astype(pixels.dtype)[:, :, None]
    elif channels >= 3 and colours.shape[2] == 1:
        colours = np.repeat(colours, 3, axis=2)
    return np.concatenate([colours, opacity], 2) if channels in (2, 4) else colours


def encode_png(pixels: NDArray[Any], compression: int) -> bytes:
    """Pixels as a PNG file.

    Args:
        pixels: uint8 or uint16 [height, width, 1 to 4].
        compression: from 0 (none) to 9 (the smallest), -1 for zlib's default.
    """
    if pixels.dtype == np.uint16:
        return png16.encode(pixels, compression)
    options = {} if compression < 0 else {"compress_level": compression}
    return _saved(pixels, "PNG", options)


def encode_jpeg(
    pixels: NDArray[Any], quality: int, progressive: bool, optimize: bool, downsampling: bool
) -> bytes:
    """Pixels as a JPEG file.

    Args:
        pixels: uint8 [height, width, 1 or 3].
        quality: from 0 to 100.
        progressive: have the file show coarsely first.
        optimize: make it smaller, in more time.
        downsampling: store colours with half the resolution.
    """
    options = {
        "quality": quality,
        "progressive": progressive,
        "optimize": optimize,
        "subsampling": 2 if downsampling else 0,
    }
    return _saved(pixels, "JPEG", options)


def _saved(pixels: NDArray[Any], kind: str, options: dict[str, Any]) -> bytes:
    from PIL import Image

    plane = pixels[:, :, 0] if pixels.shape[2] == 1 else pixels
    buffer = io.BytesIO()
    try:
        image = Image.fromarray(np.ascontiguousarray(plane))
        image.save(buffer, kind, **options)
    except (OSError, ValueError, SystemError) as error:
        raise InvalidArgumentError(
            f"pixels of shape {list(pixels.shape)} do not become a {kind} image: {error}"
        ) from None
    return buffer.getvalue()
