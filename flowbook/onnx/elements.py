"""ONNX's element types and Flowbook's dtypes, arrays and ONNX's tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.model import dtypes
from flowbook.graph.model.dtypes import DType
from flowbook.graph.model.errors import InvalidArgumentError, OpError, UnimplementedError
from flowbook.graph.model.shape import UNKNOWN, Shape
from flowbook.onnx.package import onnx

Array = np.ndarray[Any, Any]

# The numbers of `TensorProto.DataType`, which are part of the format.
NUMBERS: dict[DType, int] = {
    dtypes.float32: 1,
    dtypes.uint8: 2,
    dtypes.int8: 3,
    dtypes.uint16: 4,
    dtypes.int16: 5,
    dtypes.int32: 6,
    dtypes.int64: 7,
    dtypes.string: 8,
    dtypes.bool: 9,
    dtypes.float16: 10,
    dtypes.float64: 11,
    dtypes.uint32: 12,
    dtypes.uint64: 13,
    dtypes.complex64: 14,
    dtypes.complex128: 15,
    dtypes.bfloat16: 16,
    dtypes.float8_e4m3fn: 17,
    dtypes.float8_e4m3fnuz: 18,
    dtypes.float8_e5m2: 19,
    dtypes.float8_e5m2fnuz: 20,
    dtypes.uint4: 21,
    dtypes.int4: 22,
    dtypes.float4_e2m1fn: 23,
    dtypes.float8_e8m0fnu: 24,
    dtypes.uint2: 25,
    dtypes.int2: 26,
}
_DTYPES = {number: dtype for dtype, number in NUMBERS.items()}


def dtype_of(number: int) -> DType:
    """The dtype that a number of `TensorProto.DataType` stands for.

    Raises:
        UnimplementedError: if Flowbook has none.
    """
    found = _DTYPES.get(number)
    if found is None:
        names = onnx().TensorProto.DataType
        name = names.Name(number) if number in names.values() else str(number)
        raise UnimplementedError(f"there is no dtype for ONNX's element type {name}")
    return found


def declared_shape(info: Any) -> Shape:
    """The shape that a ValueInfoProto of a tensor declares; dimensions by name are open."""
    declared = info.type.tensor_type
    if not declared.HasField("shape"):
        return UNKNOWN
    return Shape([d.dim_value if d.HasField("dim_value") else None for d in declared.shape.dim])


def to_array(tensor: Any) -> Array:
    """The array that a TensorProto holds; strings as bytes.

    Raises:
        UnimplementedError: if Flowbook has no such dtype.
        InvalidArgumentError: if its data do not agree with its shape.
    """
    dtype = dtype_of(tensor.data_type)
    try:
        array = np.asarray(onnx("numpy_helper").to_array(tensor))
        if dtype is dtypes.string:
            flat = [s.encode() if isinstance(s, str) else bytes(s) for s in array.ravel()]
            array = np.empty(len(flat), object)
            array[:] = flat
            array = array.reshape(tuple(tensor.dims))
    except OpError:
        raise
    except Exception as error:
        raise InvalidArgumentError(f"the ONNX tensor {tensor.name!r} is damaged: {error}") from None
    if array.dtype != dtype.numpy:
        raise InvalidArgumentError(
            f"the ONNX tensor {tensor.name!r} holds {array.dtype}, not {dtype.name}"
        )
    return array


def to_tensor(array: Array, name: str) -> Any:
    """The TensorProto that holds an array."""
    if array.dtype == object:
        flat = [bytes(s) for s in array.ravel()]
        return onnx("helper").make_tensor(name, NUMBERS[dtypes.string], array.shape, flat)
    # A copy that lies row by row, also of a scalar.
    return onnx("numpy_helper").from_array(np.array(array, order="C"), name)
