"""Rules for writing elementwise operations."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.model import dtypes
from flowbook.graph.model.operation import Operation
from flowbook.tensorflow.alike import ALIKE
from flowbook.tensorflow.writer import Writer
from flowbook.tensorflow.written.types import OUTPUT, Rules, same


def number(w: Writer, op: Operation, value: float) -> str:
    """A scalar of the dtype of the first input."""
    return w.constant(np.asarray(value), op.inputs[0].dtype)


def _logical(type: str, bitwise: str) -> Any:
    def rule(w: Writer, op: Operation, *inputs: str) -> Any:
        if op.inputs[0].dtype is dtypes.bool:
            return w.last(type, inputs)
        return w.last(bitwise, inputs, T=op.inputs[0].dtype)

    return rule


def _xor(w: Writer, op: Operation, x: str, y: str) -> Any:
    dtype = op.inputs[0].dtype
    is_bool = dtype is dtypes.bool
    return w.last("NotEqual" if is_bool else "BitwiseXor", [x, y], T=dtype)


def _clip(w: Writer, op: Operation, x: str, low: str, high: str) -> Any:
    dtype = op.inputs[0].dtype
    return w.last("Maximum", [w.node("Minimum", [x, high], T=dtype), low], T=dtype)


def _swish(w: Writer, op: Operation, x: str) -> Any:
    dtype = op.inputs[0].dtype
    gate = w.node("Sigmoid", [x], T=dtype)
    return w.several([w.node("Mul", [x, gate], T=dtype), gate])


def _scaled_log(base: float) -> Any:
    def rule(w: Writer, op: Operation, x: str) -> Any:
        dtype = op.inputs[0].dtype
        scale = number(w, op, 1 / np.log(base))
        return w.last("Mul", [w.node("Log", [x], T=dtype), scale], T=dtype)

    return rule


def _power_of_two(w: Writer, op: Operation, x: str) -> Any:
    return w.last("Pow", [number(w, op, 2), x], T=op.inputs[0].dtype)


def _trunc(w: Writer, op: Operation, x: str) -> Any:
    dtype = op.inputs[0].dtype
    down = w.node("Floor", [w.node("Abs", [x], T=dtype)], T=dtype)
    return w.last("Mul", [w.node("Sign", [x], T=dtype), down], T=dtype)


RULES: Rules = {
    **{
        type: same(type)
        for type in (
            *ALIKE,
            "BiasAdd", "Identity",
        )
    },
    "Add": same("AddV2"),
    "AddN": lambda w, op, *xs: w.last("AddN", xs, N=len(xs), T=op.inputs[0].dtype),
    "And": _logical("LogicalAnd", "BitwiseAnd"),
    "Angle": same("Angle", dtypes={"T": 0, "Tout": OUTPUT}),
    "Bitcast": same("Bitcast", dtypes={"T": 0, "type": OUTPUT}),
    "Cast": same("Cast", dtypes={"SrcT": 0, "DstT": OUTPUT}),
    "CheckNumerics": same("CheckNumerics", "message"),
    "ClipByValue": _clip,
    "Complex": same("Complex", dtypes={"T": 0, "Tout": OUTPUT}),
    "ComplexAbs": same("ComplexAbs", dtypes={"T": 0, "Tout": OUTPUT}),
    "Div": same("RealDiv"),
    "EnsureShape": same("EnsureShape", "shape"),
    "Exp2": _power_of_two,
    "GradientOver": same("Xdivy"),
    "Imag": same("Imag", dtypes={"T": 0, "Tout": OUTPUT}),
    "LeakyRelu": same("LeakyRelu", "alpha"),
    "LeakyReluGrad": same("LeakyReluGrad", "alpha"),
    "Log10": _scaled_log(10),
    "Log2": _scaled_log(2),
    "Mod": same("FloorMod"),
    "Not": _logical("LogicalNot", "Invert"),
    "Or": _logical("LogicalOr", "BitwiseOr"),
    "PreventGradient": same("PreventGradient", "message"),
    "Real": same("Real", dtypes={"T": 0, "Tout": OUTPUT}),
    "SetShape": same("EnsureShape", "shape"),
    "Swish": _swish,
    "TrueIndices": same("Where"),
    "Trunc": _trunc,
    "Where": same("SelectV2", dtypes={"T": 1}),
    "Xor": _xor,
}  # fmt: skip
