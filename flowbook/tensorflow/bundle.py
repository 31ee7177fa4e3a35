"""TensorFlow's V2 checkpoints: an index, and the elements of tensors in a file or several.

    model.index                     what there is: a table (`table.py`) of BundleEntryProtos by name
    model.data-00000-of-00002       elements, low bytes first, one tensor behind the other

A tensor that was saved in pieces, as a partitioned variable is, has an entry that lists them, and
one for each piece. What is read is not trusted: sizes are held against shapes and files before
anything is allocated, and elements against their checksums.
"""

from __future__ import annotations

import difflib
import math
import os
import re
from collections.abc import Iterable
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from google.protobuf.message import DecodeError

from flowbook.exec.checkpoints.folder import Folder, split
from flowbook.exec.files.framing import masked_checksum
from flowbook.exec.files.opening import read_all
from flowbook.graph.model.dtypes import DType, string
from flowbook.graph.model.errors import (
    DataLossError,
    InvalidArgumentError,
    NotFoundError,
    ResourceExhaustedError,
    UnimplementedError,
)
from flowbook.tensorflow.elements import dtype_of, from_bytes, shape_of
from flowbook.tensorflow.messages_pb2 import BundleEntryProto, BundleHeaderProto
from flowbook.tensorflow.table import broken, number, table

Array = np.ndarray[Any, Any]
Extents = tuple[tuple[int, int], ...]

_MAX_INDEX = 1 << 30
_MAX_SHARDS = 100_000
# A name, the shape of the whole, and where the piece is along each dimension.
_SLICE = re.compile(r"(?P<name>\S+) (?:\d+ )*(?P<extents>(?:-|\d+,\d+)(?::(?:-|\d+,\d+))*)\Z")


class Stored(NamedTuple):
    """What a checkpoint says of a tensor.

    Attributes:
        dtype: of its elements.
        shape: its dimensions.
    """

    dtype: DType
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.dtype.name} {list(self.shape)}"


class Bundle:
    """A V2 checkpoint that is there.

    A tensor is asked for by its name; a piece of one by the name and the place of the piece, as
    TensorFlow's savers write it: "weights 10 4 0,5:-" is rows 0 to 5 of what is [10, 4].

    Args:
        path: the prefix of its files' names, such as "run/model.ckpt-100", or one of the files.

    Attributes:
        path: the prefix.

    Raises:
        NotFoundError: if there is none.
        DataLossError: if its index is damaged.
        UnimplementedError: if it was written high bytes first, or its index is compressed
            otherwise than by snappy.
    """

    def __init__(self, path: Any) -> None:
        self._folder, name = split(path)
        self._name = re.sub(r"\.(index|meta|data-\d{5}-of-\d{5})\Z", "", name)
        self.path = os.fspath(path).removesuffix(name) + self._name
        index = f"{self._name}.index"
        content = _content(self._folder, index, self.path)
        self._messages = table(content, index)
        header = self._message(b"", BundleHeaderProto)
        if header.endianness:
            raise UnimplementedError(f"the checkpoint {self.path!r} was written high bytes first")
        self._shards = header.num_shards
        if not 0 < self._shards <= _MAX_SHARDS:
            raise DataLossError(f"{index!r} counts {self._shards} files of elements")
        self.entries: dict[str, Stored] = {}
        for key in self._messages:
            # A piece's key begins with a zero.
            if key and key[0]:
                message = self._message(key, BundleEntryProto)
                self.entries[_text(key, index)] = self._stored(message, index)

    def entry(self, name: str) -> Stored:
        """What it says of a tensor, or of a piece of one.

        Raises:
            NotFoundError: if it has none of that name; the nearest names are given.
            InvalidArgumentError: if a piece lies outside.
        """
        name, extents = self._asked(name)
        found = self.entries[name]
        return found if extents is None else found._replace(shape=tuple(n for _, n in extents))

    def has(self, name: str) -> bool:
        """Whether there is a tensor of that name, or the whole that a piece is of."""
        match = _SLICE.match(name)
        return name in self.entries or (match is not None and match["name"] in self.entries)

    def read(self, names: Iterable[str]) -> dict[str, Array]:
        """Some of its tensors.

        Raises:
            NotFoundError: if it does not have one, or one of its files is missing.
            DataLossError: if one is damaged, with the file and the offset.
        """
        found = {}
        for asked in names:
            name, extents = self._asked(asked)
            array = self._tensor(name)
            found[asked] = array if extents is None else array[_key(extents)].copy()
        return found

    def _asked(self, name: str) -> tuple[str, Extents | None]:
        """The name of a tensor, and the piece of it that is asked for."""
        match = None if name in self.entries else _SLICE.match(name)
        plain = match["name"] if match else name
        if plain not in self.entries:
            close = difflib.get_close_matches(plain, self.entries, 3)
            raise NotFoundError(
                f"the checkpoint {self.path!r} has no {plain!r}",
                hint=f"did you mean {' or '.join(map(repr, close))}?"
                if close
                else f"it has {len(self.entries)}: fb.tensorflow.list_variables({self.path!r})",
            )
        if match is None:
            return plain, None
        given = [e.split(",") for e in match["extents"].split(":")]
        pairs = [(0, -1) if e == ["-"] else (int(e[0]), int(e[1])) for e in given]
        return plain, _within(pairs, self.entries[plain].shape, name)

    def _tensor(self, name: str) -> Array:
        message = self._message(name.encode(), BundleEntryProto)
        if not message.slices:
            return self._elements(message)
        whole = self.entries[name]
        pieces = {}
        for piece in message.slices:
            pairs = [(e.start, e.length if e.HasField("length") else -1) for e in piece.extent]
            extents = _within(pairs, whole.shape, name)
            part = self._message(_piece_key(name, pairs), BundleEntryProto)
            if self._stored(part, name) != (whole.dtype, tuple(n for _, n in extents)):
                raise DataLossError(f"a piece of {name!r} in {self.path!r} has another shape")
            pieces[extents] = part
        size = math.prod(whole.shape)
        is_whole = sum(math.prod(n for _, n in extents) for extents in pieces) == size
        if not is_whole or size * whole.dtype.size > self._bytes():
            raise DataLossError(f"{self.path!r} does not hold all of {name!r}")
        # Where pieces overlap, others are missing.
        found = np.full(whole.shape, b"" if whole.dtype is string else 0, whole.dtype.numpy)
        for extents, part in pieces.items():
            found[_key(extents)] = self._elements(part)
        return found

    def _bytes(self) -> int:
        """How many bytes its files of elements have."""
        size = 0
        for shard in range(self._shards):
            with self._folder.opened(self._file(shard)) as file:
                size += file.seek(0, os.SEEK_END)
        return size

    def _file(self, shard: int) -> str:
        return f"{self._name}.data-{shard:05}-of-{self._shards:05}"

    def _elements(self, message: BundleEntryProto) -> Array:
        """The elements that an entry leads to."""
        file_name = self._file(message.shard_id)
        dtype, shape = self._stored(message, file_name)
        offset, size = message.offset, message.size
        with self._folder.opened(file_name) as file:
            end = file.seek(0, os.SEEK_END)
            is_possible = size == math.prod(shape) * dtype.size or dtype is string
            if not (0 <= message.shard_id < self._shards and is_possible and size >= 0):
                raise broken(f"{self._name}.index", 0, f"what leads to {offset} in {file_name!r},")
            if not 0 <= offset <= end - size:
                raise broken(file_name, offset, f"what should be {size} bytes long")
            content = _read_at(file, offset, size)
        if dtype is string:
            return _strings(content, shape, message.crc32c, file_name, offset)
        if masked_checksum(content) != message.crc32c:
            raise broken(file_name, offset, "the tensor")
        return from_bytes(content, dtype, shape)

    def _message(self, key: bytes, kind: Any) -> Any:
        """The message of a key in the index."""
        data = self._messages.get(key)
        try:
            if data is not None:
                return kind.FromString(data)
        except DecodeError:
            pass
        raise DataLossError(
            f"the index of {self.path!r} holds no {kind.DESCRIPTOR.name} for {key[:80]!r}"
        )

    def _stored(self, message: BundleEntryProto, where: str) -> Stored:
        dims = shape_of(message.shape).dims
        if dims is None or None in dims:
            raise DataLossError(f"{where!r} holds a tensor without a fixed shape")
        return Stored(dtype_of(message.dtype), dims)  # type: ignore[arg-type]


def _content(folder: Folder, name: str, path: str) -> bytes:
    try:
        with folder.opened(name) as file:
            content = file.read(_MAX_INDEX + 1)
    except (NotFoundError, NotADirectoryError):
        raise NotFoundError(
            f"there is no checkpoint {path!r}: no file {name!r}",
            hint="it is named by what its files' names begin with, as in 'run/model.ckpt-100'",
        ) from None
    if len(content) > _MAX_INDEX:
        raise ResourceExhaustedError(f"{name!r} is larger than {_MAX_INDEX} bytes")
    return content


def _read_at(file: BinaryIO, offset: int, size: int) -> bytes:
    file.seek(offset)
    return read_all(file, size)


def _text(key: bytes, index: str) -> str:
    try:
        return key.decode()
    except UnicodeDecodeError:
        raise DataLossError(f"{index!r} holds the name {key[:80]!r}, which is no text") from None


def _strings(
    content: bytes, shape: tuple[int, ...], checksum: int, file_name: str, offset: int
) -> Array:
    """Strings: their lengths, a checksum of these, and what they are one behind the other."""
    count, at, lengths = math.prod(shape), 0, []
    error = broken(file_name, offset, "the tensor of strings")
    if count > len(content):  # Each has a length, of a byte at least.
        raise error
    try:
        for _ in range(count):
            length, at = number(content, at)
            lengths.append(length)
    except IndexError:
        raise error from None
    sizes = b"".join(n.to_bytes(4 if n < 1 << 32 else 8, "little") for n in lengths)
    if at + 4 + sum(lengths) != len(content) or masked_checksum(sizes + content[at:]) != checksum:
        raise error
    found = np.empty(count, object)
    at += 4
    for i, length in enumerate(lengths):
        found[i] = content[at : at + length]
        at += length
    return found.reshape(shape)


def _within(pairs: list[tuple[int, int]], shape: tuple[int, ...], name: str) -> Extents:
    """The start and the length of a piece along each dimension; a length of -1 is all of it."""
    found = tuple((s, d if n < 0 else n) for (s, n), d in zip(pairs, shape, strict=False))
    if len(pairs) != len(shape) or any(
        s < 0 or n < 0 or s + n > d for (s, n), d in zip(found, shape, strict=True)
    ):
        raise InvalidArgumentError(f"the piece {name!r} lies outside of the shape {list(shape)}")
    return found


def _key(extents: Extents) -> tuple[slice, ...]:
    return tuple(slice(start, start + length) for start, length in extents)


# The keys of pieces are written so that bytes sort as numbers and names do.


def _piece_key(name: str, pairs: list[tuple[int, int]]) -> bytes:
    # Of the two bytes that are escaped UTF-8 has but one.
    escaped = name.encode().replace(b"\0", b"\0\xff")
    numbers = b"".join(_signed(n) for pair in pairs for n in pair)
    return b"\0" + escaped + b"\0\1" + _unsigned(len(pairs)) + numbers


def _unsigned(value: int) -> bytes:
    size = (value.bit_length() + 7) // 8
    return bytes([size]) + value.to_bytes(size, "big")


def _signed(value: int) -> bytes:
    """As many leading ones (zeros, of what is below 0) as there are bytes, then the number."""
    size = (~value if value < 0 else value).bit_length() // 7 + 1
    ones = ((1 << size) - 1) << (8 * size - size)
    return ((value & ((1 << 8 * size) - 1)) ^ ones).to_bytes(size, "big")
