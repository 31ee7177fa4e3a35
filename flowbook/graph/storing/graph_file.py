"""A graph as a zip: `graph.pb`, and each constant once, as a file named by its digest.

    graph.pb                      a GraphDef (graph.proto) whose arrays have no elements
    constants/<digest>.npy        the elements of an array, as NumPy's `load` reads them
    constants/<digest>.strings    those of an array of strings, as an ArrayDef

Equal graphs give equal bytes: entries are stored as they are, under one fixed time, in the order
in which the graph refers to them. What is read is not trusted. Each entry's size is known from
`graph.pb` before it is read, so that nothing is read that the file does not hold; and what
decompresses is limited in size, and in proportion to the file.
"""

from __future__ import annotations

import math
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, BinaryIO

from google.protobuf.message import DecodeError

from flowbook.graph.model.dtypes import string
from flowbook.graph.model.errors import DataLossError, ResourceExhaustedError
from flowbook.graph.storing import serialize
from flowbook.graph.storing.graph_pb2 import ArrayDef, GraphDef
from flowbook.graph.storing.stored_values import (
    ArrayCollector,
    StoredArray,
    as_bytes,
    file_dtype,
    read_dtype,
)

if TYPE_CHECKING:
    from flowbook.graph.building.graph import Graph
    from flowbook.graph.model.operation import Operation

# What a file may hold in all, by default.
MAX_BYTES = 2**34

_GRAPH = "graph.pb"
_CONSTANT = re.compile(r"constants/([0-9a-f]{32})\.(npy|strings)\Z")
_MAX_ENTRIES = 1_000_000

# Other tools may have compressed a file; what they make is seldom smaller by more.
_FREE_BYTES, _MAX_RATIO = 2**20, 100

# DOS time begins here.
_TIME = (1980, 1, 1, 0, 0, 0)


def is_graph_file(data: bytes | bytearray | memoryview) -> bool:
    """Whether bytes begin as a graph's file does, rather than as `Graph.to_bytes` writes."""
    return bytes(data[:4]) in (b"PK\x03\x04", b"PK\x05\x06")


# Writing


def write_graph(graph: Graph, file: BinaryIO, roots: Iterable[Operation] | None = None) -> None:
    """Write a graph to a stream, or what some operations refer to; raises as `Graph.to_bytes`."""
    arrays = ArrayCollector()
    with graph.lock:
        message = serialize.as_message(graph, arrays, roots)
    content = serialize.encoded(message)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        _write(archive, _GRAPH, [content])
        for digest, described in arrays.arrays.items():
            value = arrays.values[digest]
            if isinstance(value, list):
                stored = ArrayDef(strings=value).SerializeToString(deterministic=True)
                _write(archive, _name(described), [stored])
            else:
                _write(archive, _name(described), [_header(described), as_bytes(value)])


def _write(archive: zipfile.ZipFile, name: str, parts: Sequence[bytes | memoryview]) -> None:
    info = zipfile.ZipInfo(name, _TIME)
    info.create_system = 3  # Unix, wherever it is written: the bytes are the same.
    info.external_attr = (stat.S_IFREG | 0o644) << 16
    info.file_size = sum(len(part) for part in parts)
    with archive.open(info, "w") as entry:
        for part in parts:
            entry.write(part)


def _name(described: ArrayDef) -> str:
    kind = "strings" if described.dtype == string.name else "npy"
    return f"constants/{described.digest.hex()}.{kind}"


def _header(described: ArrayDef) -> bytes:
    """What stands before the elements in NumPy's file format, version 1.0.

    It is fixed by dtype and dimensions, so that readers compare it and parse nothing.
    """
    dtype = read_dtype(described.dtype)
    kind = file_dtype(dtype)
    dims = ", ".join(map(str, described.dims)) + ("," if len(described.dims) == 1 else "")
    text = (
        f"{{'descr': {kind.newbyteorder('<').str!r}, 'fortran_order': False, 'shape': ({dims}), }}"
    )
    length = -(-(10 + len(text) + 1) // 64) * 64 - 10
    return (
        b"\x93NUMPY\x01\x00" + struct.pack("<H", length) + text.ljust(length - 1).encode() + b"\n"
    )


# Reading

# What Python's reader of zip files raises for those that are none.
_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    ValueError,
    KeyError,
    IndexError,
)


def read_graph(graph: Graph, file: BinaryIO, max_bytes: int = MAX_BYTES) -> None:
    """Build a stored graph's operations in an empty graph.

    Args:
        graph: the graph.
        file: a stream that can be read anywhere.
        max_bytes: how much it may hold.

    Raises:
        DataLossError: if it is damaged, or is not a graph's file.
        ResourceExhaustedError: if it holds more than `max_bytes`.
        OpError: as `Graph.from_bytes`.
    """
    try:
        archive = zipfile.ZipFile(file)
    except _DAMAGED as error:
        raise DataLossError(
            f"this is not a graph's file: {error}",
            hint="what `to_bytes` gave is read by fb.Graph.from_bytes(data)",
        ) from None
    with archive:
        entries = _checked(archive, _size(file), max_bytes)
        if _GRAPH not in entries:
            raise DataLossError(f"this is not a graph's file: there is no {_GRAPH} in it")
        structure = entries.pop(_GRAPH)
        [content] = _read(archive, structure, structure.file_size)
        message = serialize.parse(content)
        serialize.fill(graph, message, _arrays(archive, entries, message))


def _size(file: BinaryIO) -> int:
    return file.seek(0, 2)


def _checked(archive: zipfile.ZipFile, size: int, max_bytes: int) -> dict[str, zipfile.ZipInfo]:
    """The entries by name, each of which may be read."""
    listed = archive.infolist()
    if len(listed) > _MAX_ENTRIES:
        raise DataLossError(f"a graph's file does not have {len(listed)} entries")
    entries: dict[str, zipfile.ZipInfo] = {}
    for info in listed:
        _check_entry(info)
        if info.filename in entries:
            raise DataLossError(f"{info.filename} is in the file twice")
        entries[info.filename] = info
    declared = sum(info.file_size for info in listed)
    if declared > max_bytes:
        raise ResourceExhaustedError(
            f"the file says that it holds {declared} bytes, where {max_bytes} are allowed",
            hint="max_bytes=... allows more",
        )
    if sum(info.compress_size for info in listed) > size:
        raise DataLossError("the file is cut off, or its entries overlap")
    if declared > _FREE_BYTES + _MAX_RATIO * size:
        raise DataLossError(
            f"the file says that its {size} bytes hold {declared}, which is more than belief"
        )
    return entries


def _check_entry(info: zipfile.ZipInfo) -> None:
    name = info.filename
    if name != _GRAPH and not _CONSTANT.match(name):
        raise DataLossError(f"{name!r:.80} is no part of a graph's file")
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        raise DataLossError(f"{name} is a link or something else that is not a plain file")
    if info.flag_bits & 0x1:
        raise DataLossError(f"{name} is encrypted")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise DataLossError(f"{name} is compressed in a way that is not known here")


def _read(archive: zipfile.ZipFile, info: zipfile.ZipInfo, *sizes: int) -> list[bytes]:
    """The content of an entry, in parts of the given sizes, which are all that it has."""
    try:
        with archive.open(info) as entry:
            parts = [entry.read(size) for size in sizes]
            rest = entry.read(1)  # Reading to the end also compares the checksum.
    except _DAMAGED as error:
        raise DataLossError(f"{info.filename} is damaged: {error}") from None
    if rest or [len(part) for part in parts] != list(sizes):
        raise DataLossError(f"{info.filename} has not the {sum(sizes)} bytes that it should")
    return parts


def _arrays(
    archive: zipfile.ZipFile, entries: dict[str, zipfile.ZipInfo], message: GraphDef
) -> Iterator[StoredArray]:
    """The arrays with their elements, one at a time."""
    for described in message.arrays:
        if described.data or described.strings:
            raise DataLossError(f"the array {described.digest.hex()} stands in {_GRAPH} itself")
        name = _name(described)
        info = entries.pop(name, None)
        if info is None:
            raise DataLossError(f"{name} is missing, or is two arrays")
        yield _array(described, archive, info)
    if entries:
        raise DataLossError(f"{min(entries)} is in the file, but the graph does not refer to it")


def _array(described: ArrayDef, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> StoredArray:
    dtype, dims = read_dtype(described.dtype), list(described.dims)
    if dtype is string:
        [content] = _read(archive, info, info.file_size)
        try:
            return StoredArray(described, b"", ArrayDef.FromString(content).strings)
        except (DecodeError, RecursionError) as error:
            raise DataLossError(f"{info.filename} is damaged: {error}") from None
    if len(dims) > 64:  # NumPy's limit.
        raise DataLossError(f"{info.filename} has {len(dims)} dimensions")
    header, size = _header(described), math.prod(dims) * dtype.size
    if info.file_size != len(header) + size:
        raise DataLossError(
            f"{info.filename} has {info.file_size} bytes, where {len(header) + size} are "
            f"{dtype.name} {dims}"
        )
    found, data = _read(archive, info, len(header), size)
    if found != header:
        raise DataLossError(f"{info.filename} is not {dtype.name} {dims}")
    return StoredArray(described, data, ())
