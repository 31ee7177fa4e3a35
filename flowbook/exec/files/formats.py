"""The records of files, format by format, from the beginning or from any place.

A format is a function of a file's path, a place and options that gives one record after another.
Each says from which place the next one is read; the place before the first is empty. So whoever
reads can stop anywhere, and go on in another process. A file is open while its records are asked
for, and closed with the iterator.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from flowbook.exec.files.framing import framed
from flowbook.exec.files.opening import SKIPPING, damaged, opened, read_all, skip
from flowbook.graph.model.errors import DataLossError, NotFoundError
from flowbook.graph.numerics.formats import array_files as arrays

Place = tuple[int, ...]

# The key of a record, which is the name of the file and a number, and what it holds.
Pair = tuple[bytes, bytes]

# A record, and the place from which the next one is read. There may be millions: plain tuples.
Record = tuple[Pair, Place]


class Format(NamedTuple):
    """How files are read.

    Attributes:
        records: gives those of a path from a place on, with options as keywords.
        length_of_place: of how many numbers a place is made.
    """

    records: Callable[..., Iterator[Record]]
    length_of_place: int


def names(path: str, place: Place) -> Iterator[Record]:
    """The name of the file, which is not opened."""
    if not place:
        yield (os.fsencode(path), os.fsencode(path)), (1,)


def whole_files(path: str, place: Place) -> Iterator[Record]:
    """All that is in a file, as one record."""
    if not place:
        with opened(path) as file:
            content = file.read()
        yield (os.fsencode(path), content), (1,)


def text_lines(
    path: str, place: Place, skip_header_lines: int, compression: str
) -> Iterator[Record]:
    """The lines of a file without what ends them; keys have their numbers, the first is 1."""
    offset, number = place or (0, 0)
    key = _keys(path)
    with opened(path, compression) as file:
        skip(file, offset)
        for line in file:
            offset += len(line)
            number += 1
            if number > skip_header_lines:
                text = line.removesuffix(b"\n").removesuffix(b"\r")
                yield (key % number, text), (offset, number)


def fixed_length_records(
    path: str,
    place: Place,
    record_bytes: int,
    header_bytes: int,
    footer_bytes: int,
    hop_bytes: int,
    compression: str,
    skip_damaged: bool,
) -> Iterator[Record]:
    """Records of so many bytes; keys have their numbers, the first is 0.

    Each begins `hop_bytes` behind the one before, or where that ends if this is 0. Then nothing may
    be left between the last one and the footer.
    """
    (number,) = place or (0,)
    key = _keys(path)
    hop = hop_bytes or record_bytes
    needed = record_bytes + footer_bytes
    with opened(path, compression) as file:
        is_whole = len(read_all(file, header_bytes)) == header_bytes
        skip(file, number * hop)
        held = read_all(file, needed)
        while len(held) == needed:
            yield (key % number, held[:record_bytes]), (number + 1,)
            number += 1
            held = held[hop:]
            skip(file, max(0, hop - needed))
            held += read_all(file, needed - len(held))
        is_whole &= bool(hop_bytes) or len(held) == footer_bytes
        if not (is_whole or skip_damaged):
            raise damaged(path, header_bytes + number * hop, "the record", hint=SKIPPING)


def tf_records(path: str, place: Place, compression: str, skip_damaged: bool) -> Iterator[Record]:
    """Records with checksums; keys have the offsets where they begin.

    With `skip_damaged` those with wrong checksums are left out, and what follows a damaged length,
    or what is compressed and cannot be read.
    """
    (offset,) = place or (0,)
    key = _keys(path)
    try:
        with opened(path, compression, SKIPPING) as file:
            skip(file, offset)
            for found in framed(file, path, offset, skip_damaged):
                yield (key % found.offset, found.data), (found.end,)
    except DataLossError:
        if not skip_damaged:
            raise


def npz_members(path: str, place: Place, skip_damaged: bool) -> Iterator[Record]:
    """The arrays of a .npz file, each as a .npy file; keys have their names."""
    (start,) = place or (0,)
    with opened(path) as file, _naming(path):
        for number, name, content in arrays.npz_members(file, start, skip_damaged):
            yield (os.fsencode(f"{path}:{name}"), content), (number + 1,)


def parquet_row_groups(
    path: str, place: Place, columns: tuple[str, ...], skip_damaged: bool
) -> Iterator[Record]:
    """The row groups of a Parquet file, each as such a file; keys have their numbers from 0 on."""
    (start,) = place or (0,)
    key = _keys(path)
    with opened(path) as file, _naming(path):
        for number, content in arrays.parquet_row_groups(file, columns, start, skip_damaged):
            yield (key % number, content), (number + 1,)


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """Have what is wrong with the contents of a file name that."""
    try:
        yield
    except (DataLossError, NotFoundError) as error:
        raise type(error)(f"{path}: {error.message}", hint=error.hint) from None


def _keys(path: str) -> bytes:
    """What a number makes a record's key of."""
    return os.fsencode(path).replace(b"%", b"%%") + b":%d"


# By the names that operations call them.
FORMATS = {
    "names": Format(names, 1),
    "whole_files": Format(whole_files, 1),
    "text_lines": Format(text_lines, 2),
    "fixed_length_records": Format(fixed_length_records, 1),
    "tf_records": Format(tf_records, 1),
    "npz_members": Format(npz_members, 1),
    "parquet_row_groups": Format(parquet_row_groups, 1),
}
