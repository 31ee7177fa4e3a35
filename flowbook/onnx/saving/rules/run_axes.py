"""Rules for writing operations along axes that only the run knows, where ONNX has them as an input.

They are of the types with an axis as an input; the rules stand here by the types with an attribute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from flowbook.graph.model import dtypes
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor
from flowbook.onnx.elements import NUMBERS
from flowbook.onnx.saving.rules.types import Rules
from flowbook.onnx.saving.writer import Writer


@dataclass(frozen=True)
class FixedAxes:
    """An operation with an axis as an input, as rules see those where it is an attribute."""

    type: str
    name: str
    inputs: Sequence[Tensor]
    outputs: Sequence[Tensor]
    attributes: Mapping[str, Any]


def _reduced(w: Writer, type: str, x: str, axes: str, keepdims: bool) -> str:
    found: str = w.node(type, [x, axes], keepdims=int(keepdims), noop_with_empty_axes=1)
    return found


def _reduction(type: str) -> Any:
    return lambda w, op, x, axes: _reduced(w, type, x, axes, op.attributes["keepdims"])


def _truths(type: str) -> Any:
    def rule(w: Writer, op: Operation, x: str, axes: str) -> Any:
        found = _reduced(w, type, w.cast(x, dtypes.int32), axes, op.attributes["keepdims"])
        return w.node("Cast", [found], to=NUMBERS[dtypes.bool])

    return rule


def _spread(w: Writer, x: str, axes: str, keepdims: bool) -> tuple[str, str]:
    """The mean with its dimensions, and the mean of the squares of what is apart from it."""
    mean = _reduced(w, "ReduceMean", x, axes, True)
    apart = w.node("Sub", [x, mean])
    return mean, _reduced(w, "ReduceMean", w.node("Mul", [apart, apart]), axes, keepdims)


def _variance(w: Writer, op: Operation, x: str, axes: str) -> Any:
    return _spread(w, x, axes, op.attributes["keepdims"])[1]


def _deviation(w: Writer, op: Operation, x: str, axes: str) -> Any:
    return w.node("Sqrt", [_variance(w, op, x, axes)])


def _moments(w: Writer, op: Operation, x: str, axes: str) -> Any:
    return list(_spread(w, x, axes, True))


def _cumsum(w: Writer, op: Operation, x: str, axes: str) -> Any:
    how = op.attributes
    ways = {"exclusive": int(how["exclusive"]), "reverse": int(how["reverse"])}
    return w.node("CumSum", [x, w.reshape(axes, [])], **ways)


def _reverse(w: Writer, op: Operation, x: str, axes: str) -> Any:
    count = w.node("Shape", [axes])
    back = w.node("Expand", [w.integer(-1), count])
    ends = w.node("Expand", [w.integer(-np.iinfo(np.int64).max), count])
    return w.node("Slice", [x, back, ends, axes, back])


RUN_AXES: Rules = {
    "All": _truths("ReduceMin"),
    "Any": _truths("ReduceMax"),
    "Cumsum": _cumsum,
    "Deviation": _deviation,
    "EuclideanNorm": _reduction("ReduceL2"),
    "ExpandDims": lambda w, op, x, axes: w.node("Unsqueeze", [x, axes]),
    "LogSumExp": _reduction("ReduceLogSumExp"),
    "Max": _reduction("ReduceMax"),
    "Mean": _reduction("ReduceMean"),
    "Min": _reduction("ReduceMin"),
    "Moments": _moments,
    "Prod": _reduction("ReduceProd"),
    "Reverse": _reverse,
    "Squeeze": lambda w, op, x, axes: w.node("Squeeze", [x, axes]),
    "Sum": _reduction("ReduceSum"),
    "Variance": _variance,
}
