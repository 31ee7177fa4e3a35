"""PNG files of 16 bits per channel, which Pillow has for grey images only.

Here, because the libraries that have them are too much or too little to depend on: imagecodecs is
26 MB of codecs of all formats, and pypng has had no release since 2022.

Source: "Portable Network Graphics (PNG) Specification", W3C, 2003.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
# The number of channels of each colour type; palettes have at most 8 bits.
_CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}
_TYPES = {count: type for type, count in _CHANNELS.items()}
# As many pixels as Pillow admits by default.
_MOST_PIXELS = 89_478_485


def is_deep_colour(data: bytes) -> bool:
    """Whether it is the beginning of a PNG file of 16 bits with more than one channel."""
    return data[:8] == _SIGNATURE and len(data) > 25 and data[24] == 16 and data[25] in (2, 4, 6)


def decode(data: bytes) -> NDArray[np.uint16]:
    """The pixels of a PNG file of 16 bits per channel: uint16 [height, width, channels].

    Raises:
        ValueError: if it is damaged, too large, or interlaced.
    """
    chunks = _chunks(data)
    kind, header = next(chunks)
    if kind != b"IHDR" or len(header) != 13:
        raise ValueError("it does not begin with a header")
    width, height, depth, colour, *_, interlace = struct.unpack(">IIBBBBB", header)
    if depth != 16 or colour not in _CHANNELS or interlace:
        raise ValueError("interlaced images of 16 bits per colour are not read")
    if width * height > _MOST_PIXELS:
        raise ValueError(f"it has more than {_MOST_PIXELS} pixels")
    channels = _CHANNELS[colour]
    row = width * channels * 2
    packed = b"".join(part for kind, part in chunks if kind == b"IDAT")
    unpacker = zlib.decompressobj()
    raw = unpacker.decompress(packed, (row + 1) * height)
    if len(raw) != (row + 1) * height:
        raise ValueError("it is truncated")
    lines = np.frombuffer(raw, np.uint8).reshape(height, row + 1)
    pixels = _unfiltered(lines[:, 0], lines[:, 1:], 2 * channels)
    return pixels.view(">u2").astype(np.uint16).reshape(height, width, channels)


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    place = len(_SIGNATURE)
    while place + 12 <= len(data):
        (length,) = struct.unpack_from(">I", data, place)
        end = place + 8 + length
        if end + 4 > len(data):
            break
        kind = data[place + 4 : place + 8]
        (checksum,) = struct.unpack_from(">I", data, end)
        if zlib.crc32(data[place + 4 : end]) != checksum:
            raise ValueError(f"the checksum of its chunk {kind!r} is wrong")
        yield kind, data[place + 8 : end]
        if kind == b"IEND":
            return
        place = end + 4
    raise ValueError("it is truncated")


def _unfiltered(filters: Any, lines: NDArray[np.uint8], step: int) -> NDArray[np.uint8]:
    """Rows as they were before each byte was replaced by its difference from a prediction."""
    result = np.empty_like(lines)
    above = np.zeros(lines.shape[1], np.uint8)
    for row, kind, line in zip(result, filters.tolist(), lines, strict=True):
        if kind == 0:
            row[:] = line
        elif kind == 1:
            row[:] = np.add.accumulate(line.reshape(-1, step), axis=0, dtype=np.uint8).ravel()
        elif kind == 2:
            np.add(line, above, out=row)
        elif kind in (3, 4):
            row[:] = _sequential(kind, line.tolist(), above.tolist(), step)
        else:
            raise ValueError(f"it has a row of the unknown filter {kind}")
        above = row
    return result


def _sequential(kind: int, line: list[int], above: list[int], step: int) -> list[int]:
    """A row predicted from its left neighbours: by their mean with those above, or by Paeth."""
    found = [0] * step
    corner = [0] * step + above
    for i, difference in enumerate(line):
        a, b, c = found[i], above[i], corner[i]
        if kind == 3:
            guess = (a + b) >> 1
        else:
            # The neighbour nearest to a + b - c; the first of them where two are as near.
            _, _, guess = min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))
        found.append((difference + guess) & 255)
    return found[step:]


def encode(pixels: NDArray[np.uint16], compression: int) -> bytes:
    """Pixels, uint16 [height, width, 1 to 4], as a PNG file."""
    height, width, channels = pixels.shape
    raw = pixels.astype(">u2").reshape(height, -1).view(np.uint8)
    # Differences from the row above are small, and so compress better.
    lines = np.empty((height, raw.shape[1] + 1), np.uint8)
    lines[:, 0] = 2
    lines[:, 1:] = raw
    lines[1:, 1:] -= raw[:-1]
    header = struct.pack(">IIBBBBB", width, height, 16, _TYPES[channels], 0, 0, 0)
    packed = zlib.compress(lines.tobytes(), compression)
    parts = ((b"IHDR", header), (b"IDAT", packed), (b"IEND", b""))
    return _SIGNATURE + b"".join(_chunk(kind, data) for kind, data in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
