"""What arrays hold, as all that is read from them and written to them tells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flowbook.graph.model import dtypes
from flowbook.graph.model.dtypes import DType
from flowbook.graph.model.errors import UnimplementedError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import UNKNOWN, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.onnx.elements import NUMBERS
from flowbook.onnx.package import onnx


@dataclass(frozen=True)
class Elements:
    """What is known of an array's elements.

    Attributes:
        dtype: of each.
        shape: of each.
        add_up: whether what is written at one index adds up, as in a gradient.
        grow: whether more of them come to be when they are written or asked for.
        are_uneven: whether they differ in shape; `shape` tells nothing then.
        depth: of a stack of stacks, how many of the first dimensions of each are those of stacks;
            None if it is no stack.
    """

    dtype: DType
    shape: Shape
    add_up: bool
    grow: bool
    are_uneven: bool
    depth: int | None

    @staticmethod
    def of(array: Tensor) -> Elements:
        """What all that is read from an array and written to it tells.

        Raises:
            UnimplementedError: if nothing tells the dtype, or the array is of another kind.
        """
        dtype, adds_up, grows, depth = None, False, False, None
        shapes = []
        users = _users(array)
        for op in users:
            match op.type:
                case "EmptyStack":
                    adds_up = grows = True
                case type if type in _STACKING:
                    dtype, held, depth = _pushed(_held(op))
                    shapes.append(held)
                case "TensorArray":
                    adds_up |= op.attributes["adds_up"]
                    grows |= op.attributes["dynamic_size"]
                    shapes.append(op.attributes["element_shape"])
                case "TensorArrayRead" | "TensorArrayGather":
                    dtype = op.outputs[0].dtype
                    shapes.append(op.attributes["element_shape"])
                case "TensorArrayConcat":
                    dtype = op.outputs[0].dtype
                    shapes.append(op.attributes["element_shape"])
                case "TensorArraySplit":
                    dtype = op.inputs[1].dtype
                case "TensorArrayTake":
                    dtype = op.outputs[0].dtype
                    shapes.append(op.outputs[0].shape)
                case "TensorArrayTakeRows":
                    dtype = op.outputs[0].dtype
                    shapes.append(op.outputs[0].shape[1:])
                case "TensorArrayTakePieces":
                    dtype = op.outputs[0].dtype
                case "TensorArrayWrite":
                    dtype = op.inputs[2].dtype
                    shapes.append(op.inputs[2].shape)
                case "TensorArrayScatter":
                    dtype = op.inputs[2].dtype
                    shapes.append(op.inputs[2].shape[1:])
        if dtype is None:
            raise UnimplementedError(f"the array {array.name!r}, into which nothing is written")
        are_uneven, shape = _are_uneven(users), UNKNOWN
        for each in () if are_uneven else shapes:
            shape = shape.merge(each)
        return Elements(dtype, shape, adds_up, grows, are_uneven, depth)

    @property
    def dims(self) -> tuple[int | None, ...]:
        """The dimensions of each.

        Raises:
            UnimplementedError: if not even their number is known.
        """
        if self.shape.dims is None:
            raise UnimplementedError("an array of elements whose rank only the run knows")
        return self.shape.dims


def _held(op: Operation) -> Tensor:
    """What an operation puts on a stack, or takes from it."""
    return op.inputs[1] if len(op.inputs) == 2 else op.outputs[0]


def _pushed(value: Tensor) -> tuple[DType, Shape, int]:
    """What a stack of such values has as its elements: the dtype, the shape and the depth."""
    if value.dtype is not dtypes.variant:
        return value.dtype, value.shape, 0
    inner = Elements.of(value)
    if inner.depth is None or None in inner.dims[inner.depth :]:
        raise UnimplementedError("a stack of arrays, or of stacks whose elements have open shapes")
    return inner.dtype, Shape.of((None, *inner.dims)), inner.depth + 1


def _users(array: Tensor) -> list[Operation]:
    """The operations on an array, on those of which it was made and those made of it."""
    found: set[Operation] = set()
    seen: set[Tensor] = set()
    stack = [array]
    while stack:
        tensor = stack.pop()
        if tensor in seen:
            continue
        seen.add(tensor)
        for op in (tensor.op, *tensor.consumers()):
            same = _same_array(op)
            if tensor in same:
                found.add(op)
                stack += same
    return sorted(found, key=lambda op: op.id)


def _same_array(op: Operation) -> list[Tensor]:
    """What an operation takes and gives that is an array before and after it; not what it holds."""
    tensors = [*op.inputs, *op.outputs]
    if op.type in _STACKING:
        tensors.remove(_held(op))
    if op.closed_by is not None:
        tensors += op.closed_by.inputs
    return [tensor for tensor in tensors if tensor.dtype is dtypes.variant]


_STACKING = frozenset(("StackPop", "StackPopFromHost", "StackPush", "StackPushToHost"))


def _are_uneven(users: Sequence[Operation]) -> bool:
    """Whether elements differ in shape, of the array that operations use.

    Those of an array are of one shape in every run, unless it admits different ones; those of its
    gradient are as its own.
    """
    made = [op for op in users if op.type == "TensorArray"]
    if made:
        return not all(op.attributes["infer_shape"] for op in made)
    lengths = [op.inputs[2] for op in users if op.type == "TensorArraySplit"]
    lengths += [op.inputs[1] for op in users if op.type == "TensorArrayTakePieces"]
    return any(_differ(each) for each in lengths)


def _differ(lengths: Tensor) -> bool:
    """Whether pieces may be of different lengths."""
    if lengths.op.type == "TensorArrayConcat":
        return Elements.of(lengths.op.inputs[0]).are_uneven
    if lengths.op.op_def.is_constant:
        return len(set(lengths.op.attributes["value"].tolist())) > 1
    pieces = [op.inputs[0] for op in lengths.consumers() if op.type == "TensorArraySplit"]
    arrays = [array for array in pieces if array.op.type == "TensorArray"]
    return not arrays or any(Elements.of(array).are_uneven for array in arrays)


def type_of(tensor: Tensor) -> Any:
    """The TypeProto of what stands for a tensor; dimensions may not be known."""
    helper = onnx("helper")
    if tensor.dtype is dtypes.variant:
        elements = Elements.of(tensor)
        number = NUMBERS[elements.dtype]
        if elements.are_uneven:
            return helper.make_sequence_type_proto(helper.make_tensor_type_proto(number, None))
        dims = elements.shape.dims
        return helper.make_tensor_type_proto(number, None if dims is None else (None, *dims))
    if tensor.dtype not in NUMBERS:
        raise UnimplementedError(f"{tensor.name!r} is of the dtype {tensor.dtype.name}")
    return helper.make_tensor_type_proto(NUMBERS[tensor.dtype], tensor.shape.dims)
