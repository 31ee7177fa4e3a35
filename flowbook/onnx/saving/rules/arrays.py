"""Rules for writing arrays of tensors, and stacks, as tensors of their elements one upon the other.

ONNX has no value that an element can be written to; so an array is what its elements make up, and
zero where none was written yet. What Flowbook refuses, such as to write an element twice, a model
does not. An array that grows, as a gradient's does, gets as many more as are asked for. Of a stack
the last element is on top; in a stack of stacks all are as high as the highest, by zeros below what
is ever popped.

What begins empty, and of whose elements only the run knows the shape, begins with ones in the place
of that: the first elements tell it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.model import dtypes
from flowbook.graph.model.dtypes import DType
from flowbook.graph.model.errors import UnimplementedError
from flowbook.graph.model.operation import Operation
from flowbook.onnx.saving.course import whole_of
from flowbook.onnx.saving.rules.holding import Elements
from flowbook.onnx.saving.rules.types import Rules
from flowbook.onnx.saving.rules.uneven import UNEVEN
from flowbook.onnx.saving.writer import Writer


def _array(w: Writer, op: Operation, size: str) -> Any:
    elements = Elements.of(op.outputs[0])
    if elements.shape.is_fully_defined:
        return _zeros(w, elements.dtype, size, w.integers(elements.shape.dims or ()))
    known = w.values.of(op.inputs[0])
    if elements.grow and known is not None and not known:
        return _empty(w, op)
    begun = ("TensorArrayScatter", "TensorArraySplit", "TensorArrayWrite")
    if elements.grow or any(user.type not in begun for user in op.outputs[0].consumers()):
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
    elements = Elements.of(source)
    if source.op.type != "TensorArray" or elements.grow or elements.shape.is_fully_defined:
        return array
    return _zeros(w, op.inputs[2].dtype, w.node("Shape", [array]), dims)


def _write(w: Writer, op: Operation, array: str, index: str, value: str) -> Any:
    room = _room(w, op, array, w.node("Shape", [value]))
    row = w.node("Unsqueeze", [value, w.integers([0])])
    return _placed(w, op, room, w.reshape(w.long(index), [1]), row)


def _scatter(w: Writer, op: Operation, array: str, indices: str, value: str) -> Any:
    unstacked = whole_of(w.sums, op.outputs[0])
    if unstacked is not None and w.sums.size(unstacked[0], 0) == unstacked[1]:
        return w.node("Identity", [value])
    dims = w.node("Shape", [value], start=1)
    room = _room(w, op, array, dims)
    return _placed(w, op, room, w.long(indices), value)


def _placed(w: Writer, op: Operation, array: str, indices: str, rows: str) -> Any:
    elements = Elements.of(op.inputs[0])
    if elements.grow:
        array = _reaching(w, elements, array, indices, w.node("Shape", [rows], start=1))
    how = "add" if elements.add_up else None
    return w.node("ScatterND", [array, w.reshape(indices, [-1, 1]), rows], reduction=how)


def _rows(w: Writer, op: Operation, array: str, indices: str) -> Any:
    return w.node("Gather", [array, indices], axis=0)


def _size(w: Writer, op: Operation, array: str) -> Any:
    size = w.node("Gather", [w.node("Shape", [array]), w.integer(0)], axis=0)
    return w.cast(size, dtypes.int32)


# What begins empty, and grows


def _empty(w: Writer, op: Operation) -> str:
    elements = Elements.of(op.outputs[0])
    dims = [1 if dim is None else dim for dim in elements.dims]
    return w.constant(np.zeros([0, *dims], elements.dtype.numpy))


def _fitted(w: Writer, array: str, dims: str) -> str:
    """An array; if it is empty, one of elements of these dimensions.

    Where it is not, and has elements of other dimensions, the model fails when it runs: one of the
    nodes here, or the one that puts an element beside them.
    """
    wide = w.node("Expand", [array, w.node("Concat", [w.integers([1]), dims], axis=0)])
    found: str = w.node("Reshape", [array, w.node("Shape", [wide])], allowzero=1)
    return found


def _grown(w: Writer, elements: Elements, array: str, count: str, dims: str) -> str:
    """An array of at least so many elements; those that are new are zero."""
    fitted = array if elements.shape.is_fully_defined else _fitted(w, array, dims)
    missing = w.node("Sub", [count, w.node("Shape", [fitted], start=0, end=1)])
    added = _zeros(w, elements.dtype, w.node("Max", [missing, w.integers([0])]), dims)
    found: str = w.node("Concat", [fitted, added], axis=0)
    return found


def _reaching(w: Writer, elements: Elements, array: str, indices: str, dims: str) -> str:
    """An array that has elements at all of some indices."""
    given = w.node("Concat", [w.reshape(indices, [-1]), w.integers([-1])], axis=0)
    last = w.node("ReduceMax", [given, w.integers([0])], keepdims=1)
    return _grown(w, elements, array, w.node("Add", [last, w.integers([1])]), dims)


def _take(w: Writer, op: Operation, array: str, index: str, shape: str) -> Any:
    found = _reaching(w, Elements.of(op.inputs[0]), array, w.long(index), w.long(shape))
    return w.node("Gather", [found, index], axis=0)


def _take_rows(w: Writer, op: Operation, array: str, indices: str, shape: str) -> Any:
    dims = w.node("Slice", [w.long(shape), w.integers([1]), w.integers([_LAST])])
    found = _reaching(w, Elements.of(op.inputs[0]), array, w.long(indices), dims)
    return w.node("Gather", [found, indices], axis=0)


_LAST = np.iinfo(np.int64).max


def _sum(w: Writer, op: Operation, *arrays: str) -> Any:
    elements = Elements.of(op.outputs[0])
    if not elements.shape.is_fully_defined:
        raise UnimplementedError(
            f"the sum of arrays whose elements have the shape {elements.shape}"
        )
    dims = w.integers(elements.dims)
    size = w.node("Max", [w.node("Shape", [array], start=0, end=1) for array in arrays])
    return w.node("Sum", [_grown(w, elements, array, size, dims) for array in arrays])


# Pieces of one length, one behind the other


def _joined(w: Writer, op: Operation, array: str) -> Any:
    counts = w.node("Shape", [array], start=0, end=1)
    length = w.node("Shape", [array], start=1, end=2)
    rest = w.node("Shape", [array], start=2)
    dims = w.node("Concat", [w.node("Mul", [counts, length]), rest], axis=0)
    lengths = w.node("Expand", [w.cast(length, dtypes.int32), counts])
    return [w.node("Reshape", [array, dims], allowzero=1), lengths]


def _split(w: Writer, op: Operation, array: str, value: str, lengths: str) -> Any:
    pieces = w.node("Reshape", [value, _pieces(w, op, value, lengths)], allowzero=1)
    if op.inputs[0].op.type in ("EmptyStack", "TensorArray"):
        return pieces
    return w.node("Sum", [array, pieces])


def _take_pieces(w: Writer, op: Operation, array: str, lengths: str, shape: str) -> Any:
    zero = w.constant(np.zeros((), op.outputs[0].dtype.numpy))
    whole = _pieces(w, op, w.node("Expand", [zero, w.long(shape)]), lengths)
    dims = w.node("Slice", [whole, w.integers([1]), w.integers([_LAST])])
    count = w.node("Shape", [lengths])
    found = _grown(w, Elements.of(op.inputs[0]), array, count, dims)
    return w.node("Reshape", [found, w.long(shape)], allowzero=1)


def _pieces(w: Writer, op: Operation, value: str, lengths: str) -> str:
    """The dimensions of what a value makes up as pieces one upon the other."""
    count = w.node("Shape", [lengths])
    length = w.node("Div", [w.node("Shape", [value], start=0, end=1), count])
    found: str = w.node("Concat", [count, length, w.node("Shape", [value], start=1)], axis=0)
    return found


# Stacks


def _push(w: Writer, op: Operation, stack: str, value: str) -> Any:
    elements = Elements.of(op.inputs[0])
    if elements.depth:
        shapes = [w.node("Shape", [stack], start=1), w.node("Shape", [value])]
        highest = w.node("Max", shapes)
        stack, value = (
            _raised(w, each, w.node("Sub", [highest, shape]), kept, len(elements.dims))
            for each, shape, kept in zip((stack, value), shapes, (1, 0), strict=True)
        )
    elif not elements.shape.is_fully_defined:
        stack = _fitted(w, stack, w.node("Shape", [value]))
    return w.node("Concat", [stack, w.node("Unsqueeze", [value, w.integers([0])])], axis=0)


def _raised(w: Writer, stack: str, by: str, kept: int, rank: int) -> str:
    """A stack with zeros below: so many in each dimension but the first ones, which are kept."""
    widths = [w.integers([0] * kept), by, w.integers([0] * (kept + rank))]
    found: str = w.node("Pad", [stack, w.node("Concat", widths, axis=0)])
    return found


def _pop(w: Writer, op: Operation, stack: str) -> Any:
    rest = w.node("Slice", [stack, w.integers([0]), w.integers([-1]), w.integers([0])])
    return [w.node("Gather", [stack, w.integer(-1)], axis=0), rest]


def _by_elements(type: str) -> Any:
    """The rule for arrays of elements of one shape, or that for those of different shapes."""

    def rule(w: Writer, op: Operation, *inputs: str) -> Any:
        array = next(t for t in (*op.inputs, *op.outputs) if t.dtype is dtypes.variant)
        if not Elements.of(array).are_uneven:
            return _EVEN[type](w, op, *inputs)
        if type not in UNEVEN:
            raise UnimplementedError(f"{type} of an array whose elements differ in shape")
        return UNEVEN[type](w, op, *inputs)

    return rule


_EVEN: Rules = {
    "EmptyStack": _empty,
    "StackPop": _pop,
    "StackPopFromHost": _pop,
    "StackPush": _push,
    "StackPushToHost": _push,
    "TensorArray": _array,
    "TensorArrayAdd": _sum,
    "TensorArrayConcat": _joined,
    "TensorArrayGather": _rows,
    "TensorArrayRead": _rows,
    "TensorArrayScatter": _scatter,
    "TensorArraySize": _size,
    "TensorArraySplit": _split,
    "TensorArrayTake": _take,
    "TensorArrayTakePieces": _take_pieces,
    "TensorArrayTakeRows": _take_rows,
    "TensorArrayWrite": _write,
}

RULES: Rules = {type: _by_elements(type) for type in _EVEN}
