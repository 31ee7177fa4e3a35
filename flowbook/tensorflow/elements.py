"""TensorFlow's element types, shapes and tensors, and Flowbook's.

What a message says is not trusted: a tensor holds as many elements as its shape says, or it is
refused, and one that repeats its last element may not grow beyond `MOST_REPEATED` bytes.
"""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

from flowbook.graph.model import dtypes
from flowbook.graph.model.dtypes import DType
from flowbook.graph.model.errors import (
    InvalidArgumentError,
    ResourceExhaustedError,
    UnimplementedError,
)
from flowbook.graph.model.shape import Shape
from flowbook.tensorflow.messages_pb2 import DataType, TensorProto, TensorShapeProto

Array = np.ndarray[Any, Any]

NUMBERS: dict[DType, int] = {
    dtypes.float32: DataType.DT_FLOAT,
    dtypes.float64: DataType.DT_DOUBLE,
    dtypes.int32: DataType.DT_INT32,
    dtypes.uint8: DataType.DT_UINT8,
    dtypes.int16: DataType.DT_INT16,
    dtypes.int8: DataType.DT_INT8,
    dtypes.string: DataType.DT_STRING,
    dtypes.complex64: DataType.DT_COMPLEX64,
    dtypes.int64: DataType.DT_INT64,
    dtypes.bool: DataType.DT_BOOL,
    dtypes.bfloat16: DataType.DT_BFLOAT16,
    dtypes.uint16: DataType.DT_UINT16,
    dtypes.complex128: DataType.DT_COMPLEX128,
    dtypes.float16: DataType.DT_HALF,
    dtypes.uint32: DataType.DT_UINT32,
    dtypes.uint64: DataType.DT_UINT64,
    dtypes.float8_e5m2: DataType.DT_FLOAT8_E5M2,
    dtypes.float8_e4m3fn: DataType.DT_FLOAT8_E4M3FN,
    dtypes.float8_e4m3fnuz: DataType.DT_FLOAT8_E4M3FNUZ,
    dtypes.float8_e5m2fnuz: DataType.DT_FLOAT8_E5M2FNUZ,
}
_DTYPES = {number: dtype for dtype, number in NUMBERS.items()}
# References to variables have numbers of their own.
_REFERENCE = 100

# The fields for single elements; of complex numbers two make one.
_FIELDS = {
    dtypes.float32: "float_val",
    dtypes.float64: "double_val",
    dtypes.complex64: "scomplex_val",
    dtypes.complex128: "dcomplex_val",
    dtypes.int64: "int64_val",
    dtypes.bool: "bool_val",
    dtypes.uint32: "uint32_val",
    dtypes.uint64: "uint64_val",
    dtypes.float16: "half_val",
    dtypes.bfloat16: "half_val",
    dtypes.string: "string_val",
    **dict.fromkeys(
        (dtypes.int32, dtypes.uint8, dtypes.int16, dtypes.int8, dtypes.uint16), "int_val"
    ),
}

# A few bytes of a file can ask for a constant of any size.
MOST_REPEATED = 1 << 30


def dtype_of(number: int) -> DType:
    """The dtype that a number of DataType stands for; that of a reference to one, too.

    Raises:
        UnimplementedError: if Flowbook has none.
    """
    found = _DTYPES.get(number - _REFERENCE if number > _REFERENCE else number)
    if found is None:
        name = DataType.Name(number) if number in DataType.values() else str(number)
        raise UnimplementedError(f"there is no dtype for TensorFlow's {name}")
    return found


def shape_of(message: TensorShapeProto) -> Shape:
    """The shape that a message holds; sizes below 0 are unknown ones."""
    if message.unknown_rank:
        return Shape()
    return Shape([None if dim.size < 0 else dim.size for dim in message.dim])


def to_shape(shape: Shape) -> TensorShapeProto:
    """The message that holds a shape."""
    if shape.dims is None:
        return TensorShapeProto(unknown_rank=True)
    dims = [TensorShapeProto.Dim(size=-1 if d is None else d) for d in shape.dims]
    return TensorShapeProto(dim=dims)


def to_array(message: TensorProto) -> Array:
    """The array that a TensorProto holds; strings as bytes.

    Raises:
        UnimplementedError: if Flowbook has no such dtype.
        InvalidArgumentError: if its data do not agree with its shape.
        ResourceExhaustedError: if a few elements stand for more than `MOST_REPEATED` bytes.
    """
    dtype = dtype_of(message.dtype)
    dims = shape_of(message.tensor_shape).dims
    if dims is None or None in dims:
        raise InvalidArgumentError("a stored tensor has no fixed shape")
    shape: tuple[int, ...] = dims  # type: ignore[assignment]
    size = math.prod(shape)
    if message.tensor_content and dtype is not dtypes.string:
        return from_bytes(message.tensor_content, dtype, shape)
    found = _listed(message, dtype)
    if len(found) == size:
        return found.reshape(shape)
    if len(found) > size or (not len(found) and dtype not in _FIELDS):
        raise InvalidArgumentError(
            f"a stored tensor of shape {list(shape)} holds {len(found)} elements"
        )
    if size * max(dtype.size, 8) > MOST_REPEATED:
        raise ResourceExhaustedError(
            f"a stored tensor repeats an element to the shape {list(shape)}, "
            f"more than {MOST_REPEATED} bytes"
        )
    if not len(found):
        found = np.array([b""], object) if dtype is dtypes.string else np.zeros(1, dtype.numpy)
    rest = np.repeat(found[-1:], size - len(found))
    return np.concatenate([found, rest])[:size].reshape(shape)


def from_bytes(content: bytes, dtype: DType, shape: tuple[int, ...]) -> Array:
    """The array of a shape whose elements, low byte first, are these bytes.

    Raises:
        InvalidArgumentError: if there are not as many.
    """
    if len(content) != math.prod(shape) * dtype.size:
        raise InvalidArgumentError(
            f"{len(content)} bytes are not {dtype.name} of shape {list(shape)}"
        )
    if dtype is dtypes.bool:
        truths: Array = np.frombuffer(content, np.uint8) != 0
        return truths.reshape(shape)
    stored = np.frombuffer(content, dtype.numpy.newbyteorder("<"))
    found: Array = stored.astype(dtype.numpy)
    return found.reshape(shape)


def _listed(message: TensorProto, dtype: DType) -> Array:
    """The elements that a message lists one by one."""
    if dtype not in _FIELDS:
        return np.frombuffer(message.float8_val, dtype.numpy)
    values = getattr(message, _FIELDS[dtype])
    if dtype is dtypes.string:
        found = np.empty(len(values), object)
        found[:] = list(values)
        return found
    if dtype in (dtypes.float16, dtypes.bfloat16):
        kind = np.float16 if dtype is dtypes.float16 else ml_dtypes.bfloat16
        return (np.array(values, np.int64) & 0xFFFF).astype(np.uint16).view(kind)
    if dtype.is_complex:
        part = np.float32 if dtype is dtypes.complex64 else np.float64
        return np.array(values[: len(values) // 2 * 2], part).view(dtype.numpy)
    return np.array(values, np.int64 if dtype.is_integer and dtype.size < 4 else None).astype(
        dtype.numpy
    )


def to_tensor(array: Array) -> TensorProto:
    """The TensorProto that holds an array.

    Raises:
        UnimplementedError: if TensorFlow has no such dtype.
    """
    dtype = dtypes.as_dtype(array.dtype)
    message = TensorProto(dtype=number_of(dtype), tensor_shape=to_shape(Shape(array.shape)))
    if dtype is dtypes.string:
        message.string_val.extend(bytes(s) for s in array.ravel())
    elif array.size:
        message.tensor_content = array.astype(array.dtype.newbyteorder("<")).tobytes()
    return message


def number_of(dtype: DType) -> Any:
    """The number of DataType that stands for a dtype.

    Raises:
        UnimplementedError: if there is none.
    """
    if dtype not in NUMBERS:
        raise UnimplementedError(f"TensorFlow has nothing for the dtype {dtype.name}")
    return NUMBERS[dtype]
