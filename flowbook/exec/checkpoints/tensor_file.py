"""Arrays by name in one file of the safetensors format, of any dtype that a variable can have.

    8 bytes       how long the header is, little-endian
    the header    JSON: for each name its dtype, its shape, and where its bytes begin and end
    the bytes     of all arrays, in row-major order, little-endian, without gaps

The format's own package reads what is written here. It is not used itself, as it wants each file
in memory as one string of bytes, twice when it writes; here arrays go to a stream as they lie in
memory, their digests are made on the way, and of what is read one array at a time is held.

What NumPy has no format's dtype for (complex128, bfloat16, what has 8 bits and fewer, strings) is
stored as bytes. Its dtype and shape then stand in the file's metadata, under its name.

What is read is not trusted: nothing is allocated that the file does not hold.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from flowbook.graph.model import dtypes
from flowbook.graph.model.dtypes import DType
from flowbook.graph.model.errors import DataLossError, InvalidArgumentError, UnimplementedError

Array = np.ndarray[Any, Any]

_CODES = {
    dtypes.bool: "BOOL",
    dtypes.uint8: "U8",
    dtypes.int8: "I8",
    dtypes.uint16: "U16",
    dtypes.int16: "I16",
    dtypes.uint32: "U32",
    dtypes.int32: "I32",
    dtypes.uint64: "U64",
    dtypes.int64: "I64",
    dtypes.float16: "F16",
    dtypes.float32: "F32",
    dtypes.float64: "F64",
    dtypes.complex64: "C64",
}
_DTYPES = {code: dtype for dtype, code in _CODES.items()}

_METADATA = "__metadata__"
_MAX_HEADER = 100_000_000  # That of the format's own package.
_MAX_RANK = 64  # NumPy's.
_ALIGNMENT = 8


class Stored(NamedTuple):
    """An array in a file.

    Attributes:
        dtype: of its elements.
        shape: its dimensions.
        begin: where its bytes begin, behind the header.
        size: how many they are.
    """

    dtype: DType
    shape: tuple[int, ...]
    begin: int
    size: int


# Writing


def write_arrays(file: BinaryIO, arrays: Mapping[str, Array]) -> dict[str, str]:
    """Write arrays to a stream; the digest of each one's bytes.

    Raises:
        InvalidArgumentError: if a name cannot be one.
        UnimplementedError: if an array's elements are not plain data.
    """
    # Those of the largest elements first, so that each array begins where its dtype wants it.
    order = sorted(arrays, key=lambda name: (-_alignment(arrays[name]), name))
    contents = {name: _content(arrays[name]) for name in order}
    header: dict[str, Any] = {}
    described: dict[str, str] = {}
    end = 0
    for name, parts in contents.items():
        if not isinstance(name, str) or not name or name == _METADATA:
            raise InvalidArgumentError(f"nothing can be stored under the name {name!r}")
        array = arrays[name]
        dtype, begin = dtypes.as_dtype(array.dtype), end
        end += sum(map(len, parts))
        code, shape = _CODES.get(dtype, "U8"), list(array.shape)
        if dtype not in _CODES:
            described[name] = json.dumps({"dtype": dtype.name, "shape": shape})
            shape = [end - begin]
        header[name] = {"dtype": code, "shape": shape, "data_offsets": [begin, end]}
    if described:
        header[_METADATA] = described
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    file.write(len(text).to_bytes(8, "little") + text)
    digests = {}
    for name, parts in contents.items():
        for part in parts:
            file.write(part)
        digests[name] = digest_of(parts)
    return digests


def digest_of(parts: Iterable[bytes | memoryview]) -> str:
    """What bytes are known by."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def _alignment(array: Array) -> int:
    return _ALIGNMENT if array.dtype.kind == "O" else min(array.dtype.itemsize, _ALIGNMENT)


def _content(array: Array) -> Sequence[bytes | memoryview]:
    """The bytes of an array; of strings their lengths, and then all of them."""
    if array.dtype.kind == "O":
        strings = array.ravel().tolist()
        if not all(type(item) is bytes for item in strings):
            raise UnimplementedError("only strings of bytes can be stored, not Python objects")
        return np.array([len(item) for item in strings], "<i8").tobytes(), b"".join(strings)
    # The array itself where it is what the file has, as it is on all but rare machines.
    ordered = np.asarray(array, array.dtype.newbyteorder("<"), order="C")
    return (ordered.reshape(-1).view(np.uint8).data,)


# Reading


class TensorFile:
    """The arrays of a file, which are read one by one.

    Args:
        file: a stream that can be read anywhere.
        name: what errors call it.

    Attributes:
        stored: what there is, by name.

    Raises:
        DataLossError: if it is no such file, or is damaged.
    """

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file = file
        self._name = name
        size = file.seek(0, 2)
        file.seek(0)
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(size - 8, _MAX_HEADER):
            raise self._damaged("its header is cut off")
        self._start = 8 + length
        try:
            header = json.loads(file.read(length), object_pairs_hook=_without_doubles)
        except (ValueError, RecursionError) as error:
            raise self._damaged(f"its header cannot be read: {error}") from None
        if not isinstance(header, dict):
            raise self._damaged("its header is no table")
        described = header.pop(_METADATA, {})
        found = {n: self._entry(n, e, described) for n, e in header.items()}
        end = 0
        for stored in sorted(found.values(), key=lambda stored: (stored.begin, stored.size)):
            if stored.begin != end:
                raise self._damaged("its arrays overlap, or leave gaps")
            end += stored.size
        if end != size - self._start:
            raise self._damaged(f"its arrays have {size - self._start} bytes, not {end}")
        self.stored = found

    def _entry(self, name: str, entry: Any, described: Any) -> Stored:
        try:
            dtype, shape = _DTYPES[entry["dtype"]], entry["shape"]
            begin, end = entry["data_offsets"]
            if isinstance(described, dict) and name in described:
                own = json.loads(described[name])
                dtype, shape = dtypes.BY_NAME[own["dtype"]], own["shape"]
            numbers = [*shape, begin, end - begin]
        except (KeyError, TypeError, ValueError, RecursionError):
            raise self._damaged(f"{name!r:.80} is described in a way that is not known") from None
        if not all(type(n) is int and n >= 0 for n in numbers) or len(shape) > _MAX_RANK:
            raise self._damaged(f"{name!r:.80} cannot have the shape and place {numbers!r:.80}")
        # Python's integers do not overflow: what does not fit its place is found here.
        least = math.prod(shape) * (dtype.size or 8)
        if least > end - begin or (dtype.size and least != end - begin):
            raise self._damaged(f"{name!r:.80} does not fit its {end - begin} bytes")
        return Stored(dtype, tuple(shape), begin, end - begin)

    def read(self, name: str, digest: str) -> Array:
        """An array.

        Raises:
            DataLossError: if its bytes have another digest, or are no values of its dtype.
        """
        stored = self.stored[name]
        content = np.empty(stored.size, np.uint8)
        self._file.seek(self._start + stored.begin)
        _fill(self._file, content.data)
        if digest_of([content.data]) != digest:
            raise self._damaged(f"the bytes of {name!r} are not those that were written")
        if stored.dtype is dtypes.string:
            return self._strings(name, stored, content)
        if stored.dtype is dtypes.bool and content.size and content.max() > 1:
            raise self._damaged(f"{name!r} has a bool that is neither 0 nor 1")
        there = content.view(stored.dtype.numpy.newbyteorder("<")).reshape(stored.shape)
        return np.asarray(there, stored.dtype.numpy)

    def _strings(self, name: str, stored: Stored, content: Array) -> Array:
        count = math.prod(stored.shape)
        lengths, text = content[: 8 * count].view("<i8"), content[8 * count :].tobytes()
        if count and (lengths.min() < 0 or lengths.max() > len(text)):
            raise self._damaged(f"{name!r} has a string of impossible length")
        ends = np.cumsum(lengths)
        if (int(ends[-1]) if count else 0) != len(text):
            raise self._damaged(f"{name!r} has strings that do not fit their lengths")
        array = np.empty(count, object)
        array[:] = [text[end - n : end] for n, end in zip(lengths, ends, strict=True)]
        return array.reshape(stored.shape)

    def _damaged(self, what: str) -> DataLossError:
        return DataLossError(f"{self._name} is damaged, or no file of tensors: {what}")


def _without_doubles(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name is in it twice")
    return found


def _fill(file: BinaryIO, content: memoryview) -> None:
    """Read as many bytes as there is room for; a stream may give fewer at a time."""
    place = 0
    while place < len(content):
        part = file.read(min(len(content) - place, 1 << 24))
        if not part:
            raise DataLossError("a file has become shorter while it was read")
        content[place : place + len(part)] = part
        place += len(part)
