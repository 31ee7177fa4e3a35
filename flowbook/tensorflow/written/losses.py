"""Rules for writing softmax and losses."""

from __future__ import annotations

from typing import Any

from flowbook.graph.model import dtypes
from flowbook.graph.model.errors import UnimplementedError
from flowbook.graph.model.operation import Operation
from flowbook.tensorflow.writer import Writer
from flowbook.tensorflow.written.elementwise import number
from flowbook.tensorflow.written.reductions import reduced
from flowbook.tensorflow.written.types import Rules


def _softmax(w: Writer, op: Operation, x: str) -> Any:
    dtype, axis = op.inputs[0].dtype, op.attributes["axis"]
    if _is_last(op, axis):
        return w.last("Softmax", [x], T=dtype)
    axes = w.integers([axis])
    parts = w.node("Exp", [_less_largest(w, op, x, axes)], T=dtype)
    return w.last("RealDiv", [parts, reduced(w, op, "Sum", parts, axes, True)], T=dtype)


def _log_softmax(w: Writer, op: Operation, x: str) -> Any:
    dtype, axis = op.inputs[0].dtype, op.attributes["axis"]
    if _is_last(op, axis):
        return w.last("LogSoftmax", [x], T=dtype)
    axes = w.integers([axis])
    shifted = _less_largest(w, op, x, axes)
    total = reduced(w, op, "Sum", w.node("Exp", [shifted], T=dtype), axes, True)
    return w.last("Sub", [shifted, w.node("Log", [total], T=dtype)], T=dtype)


def _is_last(op: Operation, axis: int) -> bool:
    rank = op.inputs[0].shape.rank
    return axis == -1 or (rank is not None and axis == rank - 1)


def _less_largest(w: Writer, op: Operation, x: str, axes: str) -> str:
    top = reduced(w, op, "Max", x, axes, True)
    return w.node("Sub", [x, top], T=op.inputs[0].dtype)


def _cross_entropy(w: Writer, op: Operation, labels: str, logits: str) -> Any:
    dtype = op.inputs[1].dtype
    loss = w.node("SoftmaxCrossEntropyWithLogits", [logits, labels], T=dtype)
    # TensorFlow's own derivative is that for labels whose sum is 1.
    total = reduced(w, op, "Sum", labels, w.integers([-1]), True)
    scaled = w.node("Mul", [w.node("Softmax", [logits], T=dtype), total], T=dtype)
    return w.several([loss, w.node("Sub", [scaled, labels], T=dtype)])


def _sparse_cross_entropy(w: Writer, op: Operation, labels: str, logits: str) -> Any:
    given = {"T": op.inputs[1].dtype, "Tlabels": op.inputs[0].dtype}
    type = "SparseSoftmaxCrossEntropyWithLogits"
    if op.inputs[1].shape.rank == 2:
        return w.last(type, [logits, labels], **given)
    classes = op.inputs[1].shape.dims
    if classes is None or classes[-1] is None:
        raise UnimplementedError("a loss of many rows of an unknown number of classes")
    # TensorFlow takes one batch of rows.
    rows = w.node("Reshape", [logits, w.integers([-1, classes[-1]])], T=given["T"])
    flat = w.node("Reshape", [labels, w.integers([-1])], T=given["Tlabels"])
    found = w.node(type, [rows, flat], **given)
    pairs = ((labels, given["Tlabels"]), (logits, given["T"]))
    dims = [w.node("Shape", [x], T=dtype) for x, dtype in pairs]
    parts = zip((found, f"{found}:1"), dims, strict=True)
    return w.several([w.node("Reshape", [x, d], T=given["T"]) for x, d in parts])


def _sigmoid_cross_entropy(w: Writer, op: Operation, labels: str, logits: str) -> Any:
    dtype = op.inputs[0].dtype
    above = w.node("Maximum", [logits, number(w, op, 0)], T=dtype)
    linear = w.node("Sub", [above, w.node("Mul", [logits, labels], T=dtype)], T=dtype)
    small = w.node("Neg", [w.node("Abs", [logits], T=dtype)], T=dtype)
    rest = w.node("Log1p", [w.node("Exp", [small], T=dtype)], T=dtype)
    return w.last("AddV2", [linear, rest], T=dtype)


def _in_top_k(w: Writer, op: Operation, predictions: str, targets: str, k: str) -> Any:
    kind, dtype = op.inputs[1].dtype, op.inputs[0].dtype
    if dtype is not dtypes.float32:
        predictions = w.node("Cast", [predictions], SrcT=dtype, DstT=dtypes.float32)
    if op.inputs[2].dtype is not kind:
        k = w.node("Cast", [k], SrcT=op.inputs[2].dtype, DstT=kind)
    return w.last("InTopKV2", [predictions, targets, k], T=kind)


RULES: Rules = {
    "InTopK": _in_top_k,
    "LogSoftmax": _log_softmax,
    "SigmoidCrossEntropyWithLogits": _sigmoid_cross_entropy,
    "Softmax": _softmax,
    "SoftmaxCrossEntropyWithLogits": _cross_entropy,
    "SparseSoftmaxCrossEntropyWithLogits": _sparse_cross_entropy,
}
