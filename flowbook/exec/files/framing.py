"""Records as TensorFlow's files have them: length, its checksum, data, their checksum.

The framing is here, and not tensorboard's own: its reader neither starts in the middle of a file
nor goes on behind a damaged record, and its checksums are computed byte by byte in Python, 0.1 s
for a megabyte. These come from google-crc32c, which the extras `tensorboard` and `data` bring.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from flowbook.exec.files.opening import SKIPPING, damaged, read_all
from flowbook.graph.model.errors import UnimplementedError

_LENGTH = struct.Struct("<Q")
_CHECKSUM = struct.Struct("<I")


class Framed(NamedTuple):
    """A record of a file.

    Attributes:
        offset: where it begins.
        data: what it holds.
        end: where the next one begins.
    """

    offset: int
    data: bytes
    end: int


def record(data: bytes) -> bytes:
    """Data as a record."""
    length = _LENGTH.pack(len(data))
    return b"".join((length, _checksum(length), data, _checksum(data)))


def masked_checksum(data: bytes) -> int:
    """The checksum as a record holds it: turned and moved, as data may hold checksums too.

    Raises:
        UnimplementedError: if what computes it is not installed.
    """
    try:
        import google_crc32c
    except ImportError:
        raise UnimplementedError(
            "its checksums are those of google-crc32c, which is not installed",
            hint="pip install google-crc32c",
        ) from None
    crc: int = google_crc32c.value(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def framed(file: BinaryIO, path: str, offset: int, skip_damaged: bool) -> Iterator[Framed]:
    """The records of a file, from where it stands on.

    Args:
        file: the file.
        path: what errors call it.
        offset: where it stands.
        skip_damaged: whether records with wrong checksums are left out.

    Raises:
        DataLossError: with the file and the offset, if a record is damaged, or its length, behind
            which nothing says where the next one begins.
    """
    while head := read_all(file, _LENGTH.size + _CHECKSUM.size):
        # Of a damaged length nothing is read: it may be of any size.
        if not _is_whole(head[: _LENGTH.size], head[_LENGTH.size :]):
            raise damaged(path, offset, "the length", hint=SKIPPING)
        (size,) = _LENGTH.unpack_from(head)
        data = read_all(file, size)
        end = offset + len(head) + size + _CHECKSUM.size
        if _is_whole(data, read_all(file, _CHECKSUM.size)):
            yield Framed(offset, data, end)
        elif not skip_damaged:
            raise damaged(path, offset, "the record", hint=SKIPPING)
        offset = end


def _is_whole(data: bytes, checksum: bytes) -> bool:
    return checksum == _checksum(data)


def _checksum(data: bytes) -> bytes:
    return _CHECKSUM.pack(masked_checksum(data))
