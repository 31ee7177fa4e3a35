"""Sorted tables of keys and values in a file: LevelDB's format, which indices of checkpoints have.

    data blocks | block about blocks | index block | footer of 48 bytes

A block is entries, each of which shares the beginning of its key with the one before, then the
places where whole keys stand, a byte for its compression, and a checksum. Nothing in the file is
trusted: every place and length is held against what there is, and every block against its checksum.

Source: LevelDB, doc/table_format.md.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from flowbook.exec.files.framing import masked_checksum
from flowbook.graph.model.errors import DataLossError, UnimplementedError

_FOOTER = 48
_MAGIC = 0xDB4775248B80FB57
_TRAILER = struct.Struct("<BI")
_WORD = struct.Struct("<I")
_PLAIN, _SNAPPY = 0, 1
_LONGEST_NUMBER = 10
# So many bytes come out of one at most: copies of 64 take three each.
_MOST_BY_BYTE = 22


class Place(NamedTuple):
    """Where a block is, without what follows it."""

    offset: int
    size: int


def broken(path: str, offset: int, what: str) -> DataLossError:
    """The error of something in a file that is not what it should be."""
    return DataLossError(f"{path}: {what} at byte {offset} is damaged, or cut off")


def number(data: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, low ones first, and where the next begins.

    Raises:
        IndexError: if the data end before it does, or it is too long.
    """
    found = 0
    for count in range(_LONGEST_NUMBER):
        byte = data[at + count]
        found |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            return found, at + count + 1
    raise IndexError("a number of more than ten bytes")


def table(data: bytes, path: str) -> dict[bytes, bytes]:
    """What a table's file holds.

    Args:
        data: the file's content.
        path: what errors call it.

    Raises:
        DataLossError: with the file and the offset, if it is damaged or no such table.
        UnimplementedError: if its blocks are compressed otherwise than by snappy, or pyarrow, which
            knows that, is not installed.
    """
    if len(data) < _FOOTER or int.from_bytes(data[-8:], "little") != _MAGIC:
        raise DataLossError(f"{path!r} is no index of a checkpoint: its last bytes say so")
    start = len(data) - _FOOTER
    try:
        _, at = _place(data, start)
        index, _ = _place(data, at)
        found: dict[bytes, bytes] = {}
        for _, value in _entries(_block(data, index, path)):
            place, _ = _place(value, 0)
            found.update(_entries(_block(data, place, path)))
    except (IndexError, struct.error):
        raise broken(path, start, "the table that ends") from None
    return found


def _place(data: bytes, at: int) -> tuple[Place, int]:
    offset, at = number(data, at)
    size, at = number(data, at)
    return Place(offset, size), at


def _block(data: bytes, place: Place, path: str) -> bytes:
    """A block's entries and the places of whole keys."""
    end = place.offset + place.size
    if end + _TRAILER.size > len(data) - _FOOTER:
        raise broken(path, place.offset, "the block")
    compression, checksum = _TRAILER.unpack_from(data, end)
    if masked_checksum(data[place.offset : end + 1]) != checksum:
        raise broken(path, place.offset, "the block")
    block = data[place.offset : end]
    if compression == _SNAPPY:
        found = _uncompressed(block, path)
        if found is None:
            raise broken(path, place.offset, "what the block was compressed to")
        return found
    if compression != _PLAIN:
        raise UnimplementedError(
            f"the blocks of {path!r} are compressed by method {compression}, and not by snappy"
        )
    return block


def _uncompressed(block: bytes, path: str) -> bytes | None:
    """What snappy compressed, which begins with its length; None if it did not make this."""
    try:
        import pyarrow
    except ImportError:
        raise UnimplementedError(
            f"the blocks of {path!r} are compressed by snappy, which pyarrow reads, and that is "
            "not installed",
            hint="pip install pyarrow",
        ) from None
    size, _ = number(block, 0)
    if size > _MOST_BY_BYTE * len(block):
        return None
    try:
        found: bytes = pyarrow.decompress(block, size, codec="snappy", asbytes=True)
    except (pyarrow.ArrowException, OSError):
        return None
    return found


def _entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The keys and values of a block."""
    (restarts,) = _WORD.unpack_from(block, len(block) - _WORD.size)
    end = len(block) - _WORD.size * (1 + restarts)
    if end < 0:
        raise IndexError("more places than there is room for")
    at, key = 0, b""
    while at < end:
        shared, at = number(block, at)
        own, at = number(block, at)
        length, at = number(block, at)
        if shared > len(key) or at + own + length > end:
            raise IndexError("an entry that goes beyond its block")
        key = key[:shared] + block[at : at + own]
        at += own
        yield key, block[at : at + length]
        at += length
