"""Rules for writing reductions, running sums, sorting and products."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.model import dtypes
from flowbook.graph.model.errors import UnimplementedError
from flowbook.graph.model.operation import Operation
from flowbook.graph.transfer.equations import tensordot_equation
from flowbook.graph.transfer.refusals import rank_of
from flowbook.onnx.elements import NUMBERS
from flowbook.onnx.saving.rules.elementwise import number
from flowbook.onnx.saving.rules.shaping import axes_of, counted
from flowbook.onnx.saving.rules.types import Rules, same
from flowbook.onnx.saving.writer import Writer


def reduced(w: Writer, type: str, x: str, axes: list[int] | None, keepdims: bool) -> str:
    """A reduction."""
    inputs = [x] if axes is None else [x, w.integers(axes)]
    if axes == []:
        found: str = w.node("Identity", [x])
    else:
        found = w.node(type, inputs, keepdims=int(keepdims))
    return found


def _reduction(type: str) -> Any:
    def rule(w: Writer, op: Operation, x: str) -> Any:
        axes = axes_of(op.attributes["axis"])
        return reduced(w, type, x, axes, op.attributes["keepdims"])

    return rule


def _truths(type: str) -> Any:
    def rule(w: Writer, op: Operation, x: str) -> Any:
        # Truths as bytes: ONNX reduces them only in its newest operator sets.
        small = w.node("Cast", [x], to=NUMBERS[dtypes.int32])
        axes = axes_of(op.attributes["axis"])
        found = reduced(w, type, small, axes, op.attributes["keepdims"])
        return w.node("Cast", [found], to=NUMBERS[dtypes.bool])

    return rule


def _spread(w: Writer, x: str, axes: list[int] | None) -> tuple[str, str, str]:
    """The mean along axes, the distances from it, and their squares."""
    mean = reduced(w, "ReduceMean", x, axes, True)
    apart = w.node("Sub", [x, mean])
    return mean, apart, w.node("Mul", [apart, apart])


def _variance(w: Writer, op: Operation, x: str) -> Any:
    axes = axes_of(op.attributes["axis"])
    _, _, squares = _spread(w, x, axes)
    return reduced(w, "ReduceMean", squares, axes, op.attributes["keepdims"])


def _deviation(w: Writer, op: Operation, x: str) -> Any:
    return w.node("Sqrt", [_variance(w, op, x)])


def _moments(w: Writer, op: Operation, x: str) -> Any:
    axes = axes_of(op.attributes["axes"])
    mean, _, squares = _spread(w, x, axes)
    return [mean, reduced(w, "ReduceMean", squares, axes, True)]


def _normalize(w: Writer, op: Operation, x: str, scale: str, offset: str) -> Any:
    axes = axes_of(op.attributes["axes"])
    mean, apart, squares = _spread(w, x, axes)
    variance = reduced(w, "ReduceMean", squares, axes, True)
    total = w.node("Add", [variance, number(w, op, op.attributes["epsilon"])])
    unit = w.node("Div", [apart, w.node("Sqrt", [total])])
    return [w.node("Add", [w.node("Mul", [unit, scale]), offset]), mean, variance]


def _argument(type: str) -> Any:
    def rule(w: Writer, op: Operation, x: str) -> Any:
        return counted(w, op, w.node(type, [x], axis=op.attributes["axis"], keepdims=0))

    return rule


def _cumsum(w: Writer, op: Operation, x: str) -> Any:
    how = op.attributes
    return w.node(
        "CumSum",
        [x, w.integer(how["axis"])],
        exclusive=int(how["exclusive"]),
        reverse=int(how["reverse"]),
    )


def _top_k(w: Writer, op: Operation, x: str, k: str) -> Any:
    count = w.reshape(w.long(k), [1])
    values, indices = w.node("TopK", [x, count], 2, axis=-1)
    return [values, w.node("Cast", [indices], to=NUMBERS[dtypes.int32])]


def _matmul(w: Writer, op: Operation, a: str, b: str) -> Any:
    left, right = op.inputs
    if op.attributes["transpose_a"]:
        a = _turned(w, a, rank_of(left))
    if op.attributes["transpose_b"]:
        b = _turned(w, b, rank_of(right))
    return w.node("MatMul", [a, b])


def _turned(w: Writer, x: str, rank: int) -> str:
    return w.transpose(x, [*range(rank - 2), rank - 1, rank - 2])


def _einsum(w: Writer, op: Operation, *inputs: str) -> Any:
    if op.attributes["sums_rest"]:
        raise UnimplementedError("an einsum that sums its rest")
    return w.node("Einsum", inputs, equation=op.attributes["equation"])


def _tensordot(w: Writer, op: Operation, a: str, b: str) -> Any:
    equation = tensordot_equation([rank_of(t) for t in op.inputs], op.attributes["axes"])
    return w.node("Einsum", [a, b], equation=equation)


def _half_square(w: Writer, op: Operation, x: str) -> Any:
    total = w.node("ReduceSumSquare", [x], keepdims=0)
    return w.node("Mul", [total, w.constant(np.asarray(0.5), op.inputs[0].dtype)])


RULES: Rules = {
    "All": _truths("ReduceMin"),
    "Any": _truths("ReduceMax"),
    "ArgMax": _argument("ArgMax"),
    "ArgMin": _argument("ArgMin"),
    "Cumsum": _cumsum,
    "Deviation": _deviation,
    "Einsum": _einsum,
    "EuclideanNorm": _reduction("ReduceL2"),
    "L2Loss": _half_square,
    "LogSoftmax": same("LogSoftmax", "axis"),
    "LogSumExp": _reduction("ReduceLogSumExp"),
    "MatMul": _matmul,
    "Max": _reduction("ReduceMax"),
    "Mean": _reduction("ReduceMean"),
    "Min": _reduction("ReduceMin"),
    "Moments": _moments,
    "Normalize": _normalize,
    "Prod": _reduction("ReduceProd"),
    "Softmax": same("Softmax", "axis"),
    "Sum": _reduction("ReduceSum"),
    "TensorDot": _tensordot,
    "TopK": _top_k,
    "Variance": _variance,
}
