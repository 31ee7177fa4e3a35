"""Rules for writing softmax and losses."""

from __future__ import annotations

from typing import Any

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
    return w.last("SoftmaxCrossEntropyWithLogits", [logits, labels], T=op.inputs[1].dtype)


def _sparse_cross_entropy(w: Writer, op: Operation, labels: str, logits: str) -> Any:
    given = {"T": op.inputs[1].dtype, "Tlabels": op.inputs[0].dtype}
    return w.last("SparseSoftmaxCrossEntropyWithLogits", [logits, labels], **given)


def _sigmoid_cross_entropy(w: Writer, op: Operation, labels: str, logits: str) -> Any:
    dtype = op.inputs[0].dtype
    above = w.node("Maximum", [logits, number(w, op, 0)], T=dtype)
    linear = w.node("Sub", [above, w.node("Mul", [logits, labels], T=dtype)], T=dtype)
    small = w.node("Neg", [w.node("Abs", [logits], T=dtype)], T=dtype)
    rest = w.node("Log1p", [w.node("Exp", [small], T=dtype)], T=dtype)
    return w.last("AddV2", [linear, rest], T=dtype)


def _in_top_k(w: Writer, op: Operation, predictions: str, targets: str, k: str) -> Any:
    kind = op.inputs[1].dtype
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
