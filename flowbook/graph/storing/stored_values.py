"""Attribute values as protobuf messages, and the table that holds each of their arrays once.

Invariant: a value that was read is the same as the one that was written (`attributes.same_value`),
or neither happens. What is not plain data, such as a function, is refused.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from flowbook.graph.model import dtypes
from flowbook.graph.model.dtypes import DType
from flowbook.graph.model.errors import (
    DataLossError,
    InvalidArgumentError,
    ResourceExhaustedError,
    UnimplementedError,
)
from flowbook.graph.model.shape import Shape
from flowbook.graph.storing.graph_pb2 import ArrayDef, ShapeDef, Tuple, Value

# Protobuf's own readers stop at a depth of 100 messages, and a tuple in a tuple takes two.
MAX_DEPTH = 32

# A protobuf message holds at most 2 GiB; what else a graph has needs little.
_MAX_ARRAY_BYTES = 2**31 - 2**26

_MAX_RANK = 64  # NumPy's.

# The dtypes that NumPy takes for bare bytes.
_OWN = [t.numpy for t in (dtypes.bfloat16, *dtypes.SMALL)]


class ValueWriter:
    """Writes attribute values; their arrays go to a table of their own."""

    def __init__(self) -> None:
        self.arrays: dict[bytes, ArrayDef] = {}
        self._size = 0

    def write(self, value: Any, message: Value, depth: int = 0) -> None:
        """Set the message to the value.

        Raises:
            UnimplementedError: if the value is not plain data.
            InvalidArgumentError: if tuples are nested too deeply.
            ResourceExhaustedError: if the arrays get too large for one message.
        """
        kind = type(value)
        if value is None:
            message.none = True
        elif kind is bool:
            message.boolean = value
        elif kind is int:
            if -(2**63) <= value < 2**63:
                message.integer = value
            else:
                length = value.bit_length() // 8 + 1
                message.big_integer = value.to_bytes(length, "little", signed=True)
        elif kind is float:
            message.real = value
        elif kind is complex:
            message.complex.real, message.complex.imaginary = value.real, value.imag
        elif kind is str:
            message.text = encodable(value)
        elif kind is bytes:
            message.data = value
        elif kind is DType:
            message.dtype = value.name
        elif kind is Shape:
            write_shape(value, message.shape)
        elif kind is np.ndarray:
            message.array = self.write_array(value)
        elif isinstance(value, np.generic):
            message.scalar = self.write_array(np.asarray(value))
        elif kind is tuple:
            self._write_tuple(value, message.tuple, depth)
        else:
            raise _not_plain(value)

    def _write_tuple(self, items: tuple[Any, ...], message: Tuple, depth: int) -> None:
        if depth == MAX_DEPTH:
            raise InvalidArgumentError(f"tuples are nested more than {MAX_DEPTH} deep")
        message.SetInParent()  # An empty tuple is a tuple too.
        for item in items:
            self.write(item, message.items.add(), depth + 1)

    def write_array(self, array: np.ndarray[Any, Any]) -> bytes:
        """Add an array to the table; its digest.

        Raises:
            UnimplementedError: if its elements are not plain data.
            ResourceExhaustedError: if the arrays get too large for one message.
        """
        if array.dtype.kind in "SU" or array.dtype.names is not None:
            raise _not_plain(array)
        if array.dtype.kind == "V" and array.dtype not in _OWN:
            raise _not_plain(array)
        content: list[bytes] | np.ndarray[Any, Any]
        if array.dtype.kind == "O":
            content = array.ravel().tolist()
            if not all(type(item) is bytes for item in content):
                raise _not_plain(array)
            size = sum(map(len, content))
        else:
            content, size = _little_endian(array), array.nbytes
        message = ArrayDef(dtype=dtypes.as_dtype(array.dtype).name, dims=array.shape)
        self._check_size(size)
        parts = (b"", content) if isinstance(content, list) else (as_bytes(content), ())
        digest = message.digest = _digest(message, *parts)
        if digest not in self.arrays:
            self._keep(message, content)
            self._size += size
        return digest

    def _check_size(self, size: int) -> None:
        if self._size + size > _MAX_ARRAY_BYTES:
            raise ResourceExhaustedError(
                f"with {size} bytes more, the graph's arrays take more than {_MAX_ARRAY_BYTES}",
                hint="graph.save(path) writes any size; or keep large values in variables, and "
                "load those from a file",
            )

    def _keep(self, message: ArrayDef, content: Any) -> None:
        if isinstance(content, list):
            message.strings.extend(content)
        else:
            message.data = content.tobytes()
        self.arrays[message.digest] = message


class ArrayCollector(ValueWriter):
    """Writes attribute values; the elements of their arrays stay where they are.

    Attributes:
        arrays: what each array is, by digest, without elements.
        values: its elements: a list of bytes, or an array in row-major order, little-endian.
    """

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[bytes, Any] = {}

    def _check_size(self, size: int) -> None:
        pass  # They need not fit one message.

    def _keep(self, message: ArrayDef, content: Any) -> None:
        self.arrays[message.digest] = message
        self.values[message.digest] = content


def _little_endian(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array itself where it can be, in row-major order."""
    ordered = np.asarray(array, array.dtype.newbyteorder("<"), order="C")
    return ordered.view(file_dtype(dtypes.as_dtype(array.dtype)))


def file_dtype(dtype: DType) -> np.dtype[Any]:
    """NumPy's dtype for elements in memory and in its files, which know none but NumPy's own."""
    if dtype is dtypes.bfloat16:
        return np.dtype(np.uint16)
    return np.dtype(np.uint8) if dtype in dtypes.SMALL else dtype.numpy


class StoredArray(NamedTuple):
    """An array as it was stored: what it is, and its elements."""

    described: ArrayDef
    data: bytes
    strings: Sequence[bytes]


def in_message(message: ArrayDef) -> StoredArray:
    """An array whose elements stand in the message itself."""
    return StoredArray(message, message.data, message.strings)


class ValueReader:
    """Reads attribute values, with the arrays of a table that is checked at once.

    Raises:
        DataLossError: if an array's bytes do not fit its digest, dtype or dimensions.
    """

    def __init__(self, arrays: Iterable[StoredArray]) -> None:
        self._arrays = {array.described.digest: _read_array(*array) for array in arrays}

    def read(self, message: Value, depth: int = 0) -> Any:
        """The value that a message holds; DataLossError if it holds none."""
        kind = message.WhichOneof("kind")
        match kind:
            case "none":
                return None
            case "boolean" | "integer" | "real" | "text" | "data":
                return getattr(message, kind)
            case "big_integer":
                return int.from_bytes(message.big_integer, "little", signed=True)
            case "complex":
                return complex(message.complex.real, message.complex.imaginary)
            case "dtype":
                return read_dtype(message.dtype)
            case "shape":
                return read_shape(message.shape)
            case "array":
                return self.array(message.array)
            case "scalar":
                array = self.array(message.scalar)
                if array.shape != () or array.dtype.kind == "O":
                    raise DataLossError(f"a scalar has the shape {list(array.shape)}")
                return array[()]
            case "tuple":
                if depth == MAX_DEPTH:
                    raise DataLossError(f"tuples are nested more than {MAX_DEPTH} deep")
                return tuple([self.read(item, depth + 1) for item in message.tuple.items])
        raise DataLossError("a value is missing, or of a kind that this version does not know")

    def array(self, digest: bytes) -> np.ndarray[Any, Any]:
        """The array of a digest; DataLossError if there is none."""
        try:
            return self._arrays[digest]
        except KeyError:
            raise DataLossError(f"the array {digest.hex()} is missing") from None


def write_shape(shape: Shape, message: ShapeDef) -> None:
    """Set the message to the shape."""
    message.SetInParent()  # An unknown shape is a shape too.
    if shape.dims is not None:
        if any(d is not None and d >= 2**63 for d in shape.dims):
            raise InvalidArgumentError(f"no tensor has the shape {shape}")
        message.has_rank = True
        message.dims.extend(-1 if d is None else d for d in shape.dims)


def read_shape(message: ShapeDef) -> Shape:
    """The shape that a message holds; DataLossError if it is none."""
    if not message.has_rank:
        if message.dims:
            raise DataLossError("a shape of unknown rank has dimensions")
        return Shape.of(None)
    if any(d < -1 for d in message.dims):
        raise DataLossError(f"a shape has a negative dimension: {list(message.dims)}")
    return Shape.of(tuple([None if d == -1 else d for d in message.dims]))


def read_dtype(name: str) -> DType:
    """The dtype of that name; DataLossError if there is none."""
    try:
        return dtypes.BY_NAME[name]
    except KeyError:
        raise DataLossError(f"{name!r} is not a dtype") from None


def _read_array(message: ArrayDef, data: bytes, strings: Sequence[bytes]) -> np.ndarray[Any, Any]:
    dtype, dims = read_dtype(message.dtype), tuple(message.dims)
    what = f"the array {message.digest.hex()}, {dtype.name} {list(dims[:_MAX_RANK])}"
    if message.digest != _digest(message, data, strings):
        raise DataLossError(f"{what}, is damaged: its bytes have another digest")
    if dtype is dtypes.resource:
        raise DataLossError(f"{what}: a resource is not a value")
    if len(dims) > _MAX_RANK:
        raise DataLossError(f"{what}, has {len(dims)} dimensions")
    # Python's integers do not overflow: nothing is allocated before the bytes are there.
    given, wanted = (
        (len(strings), math.prod(dims))
        if dtype is dtypes.string
        else (len(data), math.prod(dims) * dtype.size)
    )
    if given != wanted:
        raise DataLossError(f"{what}, should have {wanted} bytes or strings, and has {given}")
    try:
        array = np.empty(dims, dtype.numpy)
    except ValueError as error:
        raise DataLossError(f"{what}: {error}") from None
    if dtype is dtypes.string:
        array.reshape(-1)[:] = np.fromiter(strings, object, given)
    elif given:
        stored = np.frombuffer(data, dtype.numpy.newbyteorder("<"))
        if dtype is dtypes.bool and stored.view(np.uint8).max() > 1:
            raise DataLossError(f"{what}: a bool is neither 0 nor 1")
        array.reshape(-1)[:] = stored
    array.flags.writeable = False
    return array


def digest_of_array(message: ArrayDef) -> bytes:
    """What an array is known by in a stored graph."""
    return _digest(message, message.data, message.strings)


def _digest(message: ArrayDef, data: bytes | memoryview, strings: Iterable[bytes]) -> bytes:
    digest = hashlib.blake2b(f"{message.dtype} {list(message.dims)} ".encode(), digest_size=16)
    digest.update(data)
    for item in strings:
        digest.update(f"{len(item)} ".encode())
        digest.update(item)
    return digest.digest()


def as_bytes(array: np.ndarray[Any, Any]) -> memoryview:
    """The memory of an array in row-major order."""
    return array.reshape(-1).view(np.uint8).data


def encodable(text: str) -> str:
    """The text, if UTF-8 can hold it; else an InvalidArgumentError."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidArgumentError(f"{text!r} is not valid Unicode") from None
    return text


def _not_plain(value: Any) -> UnimplementedError:
    what = f"a {type(value).__name__}"
    if callable(value):
        what = f"Python code ({getattr(value, '__qualname__', type(value).__name__)})"
    return UnimplementedError(
        f"{what} cannot be stored: a stored graph holds plain data",
        hint="keep in Python what builds this operation, and store a graph without it",
    )
