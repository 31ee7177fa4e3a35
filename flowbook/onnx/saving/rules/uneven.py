"""Rules for writing arrays whose elements differ in shape: they are ONNX's sequences.

What has not been written yet is an element without elements.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.model import dtypes
from flowbook.graph.model.errors import UnimplementedError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor
from flowbook.onnx.elements import NUMBERS
from flowbook.onnx.package import onnx
from flowbook.onnx.saving.course import begun, whole_of
from flowbook.onnx.saving.rules.holding import Elements
from flowbook.onnx.saving.rules.types import Rules
from flowbook.onnx.saving.writer import Writer
from flowbook.onnx.sums import ONE, ZERO


def _array(w: Writer, op: Operation, size: str) -> Any:
    dtype = Elements.of(op.outputs[0]).dtype
    if w.sums.of(op.inputs[0]) == ZERO:
        return w.node("SequenceEmpty", [], dtype=NUMBERS[dtype])
    if dtype is dtypes.string:
        raise UnimplementedError("an array of strings that differ in shape")
    dims = w.node("Concat", [w.reshape(w.long(size), [1]), w.integers([0])], axis=0)
    empty = w.node("Expand", [w.constant(np.zeros((), dtype.numpy)), dims])
    return w.node("SplitToSequence", [empty], axis=0)


def _write(w: Writer, op: Operation, array: str, index: str, value: str) -> Any:
    place = w.long(index)
    if not Elements.of(op.inputs[0]).grow:
        array = w.node("SequenceErase", [array, place])
    return w.node("SequenceInsert", [array, value, place])


def _scatter(w: Writer, op: Operation, array: str, indices: str, value: str) -> Any:
    if whole_of(w.sums, op.outputs[0]) is None:
        raise UnimplementedError("rows that are written here and there into an uneven array")
    return w.node("SplitToSequence", [value], axis=0, keepdims=0)


def _gather(w: Writer, op: Operation, array: str, indices: str) -> Any:
    source = op.inputs[1].op
    parts = [w.sums.of(t) for t in source.inputs] if source.type == "Range" else []
    _, size = begun(w.sums, op.inputs[0])
    if parts[::2] != [ZERO, ONE] or not (parts[1] == size or _is_size_of(op, source)):
        raise UnimplementedError("some elements of an array whose elements differ in shape")
    return w.node("ConcatFromSequence", [array], axis=0, new_axis=1)


def _is_size_of(op: Operation, indices: Operation) -> bool:
    limit = indices.inputs[1].op
    return limit.type == "TensorArraySize" and limit.inputs[0] is op.inputs[0]


def _split(w: Writer, op: Operation, array: str, value: str, lengths: str) -> Any:
    if op.inputs[0].op.type not in ("EmptyStack", "TensorArray"):
        raise UnimplementedError("pieces that are added to an array of others")
    return w.node("SplitToSequence", [value, lengths], axis=0)


def _concat(w: Writer, op: Operation, array: str) -> Any:
    info, helper = onnx("helper").make_tensor_value_info, onnx("helper")
    piece, length = w.fresh("piece"), w.fresh("length")
    body = helper.make_graph(
        [helper.make_node("Shape", [piece], [length], start=0, end=1)],
        w.fresh("lengths"),
        [info(piece, NUMBERS[op.outputs[0].dtype], None)],
        [info(length, NUMBERS[dtypes.int64], [1])],
    )
    lengths = w.node("ConcatFromSequence", [w.node("SequenceMap", [array], body=body)], axis=0)
    return [w.node("ConcatFromSequence", [array], axis=0), w.cast(lengths, dtypes.int32)]


def _take_pieces(w: Writer, op: Operation, array: str, lengths: str, shape: str) -> Any:
    split = op.inputs[0].op
    is_whole = split.type == "TensorArraySplit" and _cut_at(split.inputs[2]) is _cut_at(
        op.inputs[1]
    )
    if not is_whole:
        raise UnimplementedError("the gradient of pieces of which some may not be used")
    return w.node("ConcatFromSequence", [array], axis=0)


def _cut_at(lengths: Tensor) -> Tensor:
    """The lengths of what was cut in pieces, of what was joined of them."""
    while lengths.op.type == "TensorArrayConcat":
        split = lengths.op.inputs[0].op
        if split.type != "TensorArraySplit":
            break
        lengths = split.inputs[2]
    return lengths


def _size(w: Writer, op: Operation, array: str) -> Any:
    return w.cast(w.node("SequenceLength", [array]), dtypes.int32)


UNEVEN: Rules = {
    "EmptyStack": lambda w, op: w.node(
        "SequenceEmpty", [], dtype=NUMBERS[Elements.of(op.outputs[0]).dtype]
    ),
    "TensorArray": _array,
    "TensorArrayConcat": _concat,
    "TensorArrayGather": _gather,
    "TensorArrayRead": lambda w, op, array, index: w.node("SequenceAt", [array, w.long(index)]),
    "TensorArrayScatter": _scatter,
    "TensorArraySize": _size,
    "TensorArraySplit": _split,
    "TensorArrayTakePieces": _take_pieces,
    "TensorArrayWrite": _write,
}
