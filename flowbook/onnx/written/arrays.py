"""Rules for writing arrays of tensors, as tensors of their elements one upon the other.

ONNX has no value that an element can be written to; so an array is what its elements make up, and
zero where none was written yet. What Flowbook refuses, such as to write an element twice, a model
does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from flowbook.graph.model import dtypes
from flowbook.graph.model.dtypes import DType
from flowbook.graph.model.errors import UnimplementedError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import UNKNOWN, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.onnx.writer import Writer
from flowbook.onnx.written.types import Rules


@dataclass(frozen=True)
class Elements:
    """What is known of an array's elements.

    Attributes:
        dtype: of each.
        shape: of each.
        add_up: whether what is written at one index adds up, as in a gradient.
    """

    dtype: DType
    shape: Shape
    add_up: bool

    @staticmethod
    def of(array: Tensor) -> Elements:
        """What all that is read from an array and written to it tells.

        Raises:
            UnimplementedError: if nothing tells the dtype, or the array is of another kind.
        """
        dtype, shape, adds_up = None, UNKNOWN, False
        for op in _users(array):
            match op.type:
                case "TensorArray":
                    _check(op)
                    adds_up |= op.attributes["adds_up"]
                    shape = shape.merge(op.attributes["element_shape"])
                case "TensorArrayRead" | "TensorArrayGather":
                    dtype = op.outputs[0].dtype
                    shape = shape.merge(op.attributes["element_shape"])
                case "TensorArrayWrite":
                    dtype = op.inputs[2].dtype
                    shape = shape.merge(op.inputs[2].shape)
                case "TensorArrayScatter":
                    dtype = op.inputs[2].dtype
                    shape = shape.merge(op.inputs[2].shape[1:])
        if dtype is None:
            raise UnimplementedError(f"the array {array.name!r}, into which nothing is written")
        return Elements(dtype, shape, adds_up)


def _users(array: Tensor) -> list[Operation]:
    """The operations on an array, on those of which it was made and those made of it."""
    seen: set[Operation] = set()
    stack = [array.op]
    while stack:
        op = stack.pop()
        if op in seen:
            continue
        seen.add(op)
        for tensor in (*op.inputs, *op.outputs):
            if tensor.dtype is dtypes.variant:
                stack += [tensor.op, *tensor.consumers()]
        if op.closed_by is not None:
            stack.append(op.closed_by)
    return sorted(seen, key=lambda op: op.id)


def _check(op: Operation) -> None:
    how = op.attributes
    name = how["tensor_array_name"]
    if how["dynamic_size"]:
        raise UnimplementedError(f"the array {name!r}, which grows")
    if not how["infer_shape"]:
        raise UnimplementedError(f"the array {name!r}, whose elements differ in shape")


def _array(w: Writer, op: Operation, size: str) -> Any:
    _check(op)
    elements = Elements.of(op.outputs[0])
    if elements.shape.is_fully_defined:
        return _zeros(w, elements.dtype, size, w.integers(elements.shape.dims or ()))
    begun = ("TensorArrayScatter", "TensorArrayWrite")
    if any(user.type not in begun for user in op.outputs[0].consumers()):
        raise UnimplementedError(
            f"the array {op.attributes['tensor_array_name']!r}, whose elements have the shape "
            f"{elements.shape}",
            hint="say it by element_shape=..., or give the placeholders a shape",
        )
    # It is as large as what is written first says.
    return _zeros(w, elements.dtype, size, w.integers(()))


def _zeros(w: Writer, dtype: DType, size: str, dims: str) -> str:
    shape = w.node("Concat", [w.reshape(w.long(size), [1]), dims], axis=0)
    zero = w.constant(np.zeros((), dtype.numpy) if dtype is not dtypes.string else _EMPTY)
    found: str = w.node("Expand", [zero, shape])
    return found


_EMPTY = np.array(b"", object)


def _room(w: Writer, op: Operation, array: str, dims: str) -> str:
    """The array with room for elements of some dimensions, if nothing was written to it before."""
    source = op.inputs[0]
    if source.op.type != "TensorArray" or Elements.of(source).shape.is_fully_defined:
        return array
    return _zeros(w, op.inputs[2].dtype, w.node("Shape", [array]), dims)


def _write(w: Writer, op: Operation, array: str, index: str, value: str) -> Any:
    room = _room(w, op, array, w.node("Shape", [value]))
    row = w.node("Unsqueeze", [value, w.integers([0])])
    return _placed(w, op, room, w.reshape(w.long(index), [1, 1]), row)


def _scatter(w: Writer, op: Operation, array: str, indices: str, value: str) -> Any:
    dims = w.node("Shape", [value], start=1)
    room = _room(w, op, array, dims)
    return _placed(w, op, room, w.reshape(w.long(indices), [-1, 1]), value)


def _placed(w: Writer, op: Operation, array: str, indices: str, rows: str) -> Any:
    how = "add" if Elements.of(op.inputs[0]).add_up else None
    return w.node("ScatterND", [array, indices, rows], reduction=how)


def _rows(w: Writer, op: Operation, array: str, indices: str) -> Any:
    return w.node("Gather", [array, indices], axis=0)


def _size(w: Writer, op: Operation, array: str) -> Any:
    size = w.node("Gather", [w.node("Shape", [array]), w.integer(0)], axis=0)
    return w.cast(size, dtypes.int32)


RULES: Rules = {
    "TensorArray": _array,
    "TensorArrayGather": _rows,
    "TensorArrayRead": _rows,
    "TensorArrayScatter": _scatter,
    "TensorArraySize": _size,
    "TensorArrayWrite": _write,
}
