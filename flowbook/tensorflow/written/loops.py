"""Rules for writing arrays of tensors: an array here is a flow there, beside a handle."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flowbook.graph.model import dtypes
from flowbook.graph.model.dtypes import DType
from flowbook.graph.model.errors import UnimplementedError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor
from flowbook.tensorflow.writer import Writer
from flowbook.tensorflow.written.types import Rules

_READS = ("TensorArrayConcat", "TensorArrayGather", "TensorArrayRead")
_WRITES = {"TensorArrayScatter": 2, "TensorArraySplit": 1, "TensorArrayWrite": 2}
_PASSING = {*_WRITES, "Enter", "Exit", "Identity", "Merge", "NextIteration", "Switch"}


def _origin(tensor: Tensor) -> Operation:
    """The operation that made the array that others wrote to."""
    op = tensor.op
    while op.type in _PASSING:
        op = op.inputs[0].op
    if op.type != "TensorArray":
        raise UnimplementedError(f"an array of tensors that {op.type} {op.name!r} gives")
    return op


def _element_dtype(op: Operation, consumers: Iterable[Operation]) -> DType:
    """The dtype of an array's elements, which what reads or writes it has."""
    for each in consumers:
        if each.type in (*_READS, *_WRITES) and _origin(each.inputs[0]) is op:
            if each.type in _READS:
                return each.attributes["dtype"]  # type: ignore[no-any-return]
            return each.inputs[_WRITES[each.type]].dtype
    return dtypes.float32


def _made(w: Writer, op: Operation, size: str) -> Any:
    how = op.attributes
    w.last(
        "TensorArrayV3",
        [size],
        dtype=_element_dtype(op, w.nodes),
        element_shape=how["element_shape"],
        dynamic_size=how["dynamic_size"],
        clear_after_read=how["clear_after_read"],
        identical_element_shapes=how["infer_shape"],
        tensor_array_name=how["tensor_array_name"],
    )
    return f"{w.nodes[op]}:1"


def _handle(w: Writer, op: Operation) -> str:
    origin = _origin(op.inputs[0])
    return w.brought(w.nodes[origin], dtypes.resource, origin)


def _read(type: str) -> Any:
    def rule(w: Writer, op: Operation, flow: str, *inputs: str) -> Any:
        how = op.attributes
        given = {"dtype": how["dtype"]}
        if type == "TensorArrayGatherV3":
            given["element_shape"] = how["element_shape"]
        return w.last(type, [_handle(w, op), *inputs, flow], **given)

    return rule


def _concat(w: Writer, op: Operation, flow: str) -> Any:
    value = w.node("TensorArrayConcatV3", [_handle(w, op), flow], dtype=op.attributes["dtype"])
    lengths = w.node("Cast", [f"{value}:1"], SrcT=dtypes.int64, DstT=dtypes.int32)
    return w.several([value, lengths])


def _write(type: str) -> Any:
    def rule(w: Writer, op: Operation, flow: str, *inputs: str) -> Any:
        dtype = op.inputs[_WRITES[op.type]].dtype
        return w.last(type, [_handle(w, op), *inputs, flow], T=dtype)

    return rule


def _split(w: Writer, op: Operation, flow: str, value: str, lengths: str) -> Any:
    lengths = w.node("Cast", [lengths], SrcT=dtypes.int32, DstT=dtypes.int64)
    inputs = [_handle(w, op), value, lengths, flow]
    return w.last("TensorArraySplitV3", inputs, T=op.inputs[1].dtype)


RULES: Rules = {
    "TensorArray": _made,
    "TensorArrayConcat": _concat,
    "TensorArrayGather": _read("TensorArrayGatherV3"),
    "TensorArrayRead": _read("TensorArrayReadV3"),
    "TensorArrayScatter": _write("TensorArrayScatterV3"),
    "TensorArraySize": lambda w, op, flow: w.last("TensorArraySizeV3", [_handle(w, op), flow]),
    "TensorArraySplit": _split,
    "TensorArrayWrite": _write("TensorArrayWriteV3"),
}
