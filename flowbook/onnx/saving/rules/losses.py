"""Rules for writing losses of classes, which give the gradient to the logits beside the loss."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.model.operation import Operation
from flowbook.onnx.elements import NUMBERS
from flowbook.onnx.saving.rules.types import Rules
from flowbook.onnx.saving.writer import Writer


def _summed(w: Writer, x: str, keepdims: bool) -> Any:
    return w.node("ReduceSum", [x, w.integers([-1])], keepdims=int(keepdims))


def _of_probabilities(w: Writer, op: Operation, labels: str, logits: str) -> Any:
    log = w.node("LogSoftmax", [logits], axis=-1)
    zero = w.constant(np.zeros(()), op.inputs[0].dtype)
    # A label of 0 asks nothing, of a logit of -inf either.
    asked = w.node("Where", [w.node("Equal", [labels, zero]), zero, log])
    loss = w.node("Neg", [_summed(w, w.node("Mul", [labels, asked]), False)])
    shares = w.node("Softmax", [logits], axis=-1)
    whole = w.node("Mul", [shares, _summed(w, labels, True)])
    return [loss, w.node("Sub", [whole, labels])]


def _of_classes(w: Writer, op: Operation, labels: str, logits: str) -> Any:
    count = w.reshape(w.node("Shape", [logits], start=-1), [])
    classes = w.node("Range", [w.integer(0), count, w.integer(1)])
    is_label = w.node("Equal", [w.node("Unsqueeze", [w.long(labels), w.integers([-1])]), classes])
    zero = w.constant(np.zeros(()), op.inputs[1].dtype)
    log = w.node("LogSoftmax", [logits], axis=-1)
    loss = w.node("Neg", [_summed(w, w.node("Where", [is_label, log, zero]), False)])
    one = w.node("Cast", [is_label], to=NUMBERS[op.inputs[1].dtype])
    return [loss, w.node("Sub", [w.node("Softmax", [logits], axis=-1), one])]


RULES: Rules = {
    "SoftmaxCrossEntropyWithLogits": _of_probabilities,
    "SparseSoftmaxCrossEntropyWithLogits": _of_classes,
}
