"""Rules for writing elementwise operations."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.model import dtypes
from flowbook.graph.model.errors import UnimplementedError
from flowbook.graph.model.operation import Operation
from flowbook.graph.ops.nn.gated_activations import CUBIC, LINEAR
from flowbook.onnx.alike import ALIKE
from flowbook.onnx.elements import NUMBERS
from flowbook.onnx.saving.rules.types import Rules, same
from flowbook.onnx.saving.writer import Writer


def number(w: Writer, op: Operation, value: float) -> str:
    """A stored number of the dtype of the operation's first input."""
    return w.constant(np.asarray(value), op.inputs[0].dtype)


def _logical(truths: str, bits: str) -> Any:
    def rule(w: Writer, op: Operation, *inputs: str) -> Any:
        return w.node(truths if op.inputs[0].dtype is dtypes.bool else bits, inputs)

    return rule


def _not_equal(w: Writer, op: Operation, x: str, y: str) -> Any:
    return w.node("Not", [w.node("Equal", [x, y])])


def _is_finite(w: Writer, op: Operation, x: str) -> Any:
    return w.node("Not", [w.node("Or", [w.node("IsInf", [x]), w.node("IsNaN", [x])])])


def _floor_div(w: Writer, op: Operation, x: str, y: str) -> Any:
    if op.inputs[0].dtype.is_floating:
        return w.node("Floor", [w.node("Div", [x, y])])
    return w.node("Div", [w.node("Sub", [x, w.node("Mod", [x, y])]), y])


def _mod(w: Writer, op: Operation, x: str, y: str) -> Any:
    if op.inputs[0].dtype.is_integer:
        return w.node("Mod", [x, y])
    # The remainder of truncation, moved by the divisor where its sign is not the divisor's.
    rest = w.node("Mod", [x, y], fmod=1)
    zero = number(w, op, 0)
    differs = w.node("Xor", [w.node("Less", [rest, zero]), w.node("Less", [y, zero])])
    moves = w.node("And", [differs, _not_equal(w, op, rest, zero)])
    return w.node("Where", [moves, w.node("Add", [rest, y]), rest])


def _truncated_div(w: Writer, op: Operation, x: str, y: str) -> Any:
    found = w.node("Div", [x, y])
    return found if op.inputs[0].dtype.is_integer else _trunc(w, op, found)


def _trunc(w: Writer, op: Operation, x: str) -> Any:
    return w.node("Mul", [w.node("Sign", [x]), w.node("Floor", [w.node("Abs", [x])])])


def _cast(w: Writer, op: Operation, x: str) -> Any:
    dtype = op.outputs[0].dtype
    if dtype not in NUMBERS or dtype.is_complex or op.inputs[0].dtype.is_complex:
        raise UnimplementedError(f"a cast to {dtype.name}")
    if dtype is dtypes.float8_e8m0fnu:
        raise UnimplementedError("a cast to float8_e8m0fnu, which takes no sign in ONNX")
    if dtype in dtypes.SMALL_FLOATS and dtype is not dtypes.float4_e2m1fn:
        return w.node("Cast", [x], to=NUMBERS[dtype], saturate=0)
    return w.node("Cast", [x], to=NUMBERS[dtype])


def _filled(value: int) -> Any:
    def rule(w: Writer, op: Operation, x: str) -> Any:
        scalar = w.constant(np.asarray(value), op.outputs[0].dtype)
        return w.node("Expand", [scalar, w.node("Shape", [x])])

    return rule


def _clip(w: Writer, op: Operation, x: str, low: str, high: str) -> Any:
    return w.node("Min", [w.node("Max", [x, low]), high])


def _scaled_log(base: float) -> Any:
    def rule(w: Writer, op: Operation, x: str) -> Any:
        return w.node("Mul", [w.node("Log", [x]), number(w, op, 1 / np.log(base))])

    return rule


def _div_no_nan(w: Writer, op: Operation, x: str, y: str) -> Any:
    zero, one = number(w, op, 0), number(w, op, 1)
    empty = w.node("Equal", [y, zero])
    found = w.node("Div", [x, w.node("Where", [empty, one, y])])
    return w.node("Where", [empty, zero, found])


def _squared(w: Writer, op: Operation, x: str) -> Any:
    return w.node("Mul", [x, x])


def _squared_difference(w: Writer, op: Operation, x: str, y: str) -> Any:
    return _squared(w, op, w.node("Sub", [x, y]))


def _relu6(w: Writer, op: Operation, x: str) -> Any:
    return w.node("Min", [w.node("Max", [x, number(w, op, 0)]), number(w, op, 6)])


def _normal_distribution(w: Writer, op: Operation, x: str) -> Any:
    scaled = w.node("Mul", [x, number(w, op, np.sqrt(0.5))])
    total = w.node("Add", [w.node("Erf", [scaled]), number(w, op, 1)])
    return w.node("Mul", [total, number(w, op, 0.5)])


def _gelu_tanh(w: Writer, op: Operation, x: str) -> Any:
    cubic = w.node("Mul", [w.node("Mul", [x, x]), number(w, op, CUBIC)])
    slope = w.node("Add", [cubic, number(w, op, LINEAR)])
    power = w.node("Exp", [w.node("Neg", [w.node("Mul", [slope, x])])])
    gate = w.node("Reciprocal", [w.node("Add", [power, number(w, op, 1)])])
    return [w.node("Mul", [x, gate]), gate]


def _swish(w: Writer, op: Operation, x: str) -> Any:
    gate = w.node("Sigmoid", [x])
    return [w.node("Mul", [x, gate]), gate]


def _sigmoid_loss(w: Writer, op: Operation, labels: str, logits: str) -> Any:
    positive = w.node("Max", [logits, number(w, op, 0)])
    tail = w.node("Softplus", [w.node("Neg", [w.node("Abs", [logits])])])
    product = w.node("Mul", [logits, labels])
    return w.node("Add", [w.node("Sub", [positive, product]), tail])


def _multiply_no_nan(w: Writer, op: Operation, x: str, y: str) -> Any:
    product = w.node("Mul", [x, y])
    undone = w.node("And", [w.node("Equal", [y, number(w, op, 0)]), w.node("IsNaN", [product])])
    return w.node("Where", [undone, y, product])


def _shift(direction: str) -> Any:
    def rule(w: Writer, op: Operation, x: str, y: str) -> Any:
        if not op.inputs[0].dtype.name.startswith("u"):
            raise UnimplementedError("a shift of signed integers")
        return w.node("BitShift", [x, y], direction=direction)

    return rule


RULES: Rules = {
    **{type: same(operator) for operator, type in ALIKE.items()},
    **{type: same(type) for type in ("Div", "Elu", "Identity", "Pow", "Where")},
    "AddN": same("Sum"),
    "And": _logical("And", "BitwiseAnd"),
    "BiasAdd": same("Add"),
    "Cast": _cast,
    "CheckNumerics": same("Identity"),
    "ClipByValue": _clip,
    "DivNoNan": _div_no_nan,
    "EnsureShape": same("Identity"),
    "Exp2": lambda w, op, x: w.node("Pow", [number(w, op, 2), x]),
    "FloorDiv": _floor_div,
    "GeluTanh": _gelu_tanh,
    "IsFinite": _is_finite,
    "IsInf": same("IsInf"),
    "LeakyRelu": same("LeakyRelu", "alpha"),
    "LeftShift": _shift("LEFT"),
    "Log10": _scaled_log(10),
    "Log1p": lambda w, op, x: w.node("Log", [w.node("Add", [x, number(w, op, 1)])]),
    "Log2": _scaled_log(2),
    "Maximum": same("Max"),
    "Minimum": same("Min"),
    "Mod": _mod,
    "MulNoNan": _multiply_no_nan,
    "NormalDistribution": _normal_distribution,
    "Not": _logical("Not", "BitwiseNot"),
    "NotEqual": _not_equal,
    "OnesLike": _filled(1),
    "Or": _logical("Or", "BitwiseOr"),
    "PreventGradient": same("Identity"),
    "Relu6": _relu6,
    "RightShift": _shift("RIGHT"),
    "Rsqrt": lambda w, op, x: w.node("Reciprocal", [w.node("Sqrt", [x])]),
    "Selu": same("Selu"),
    "SetShape": same("Identity"),
    "SigmoidCrossEntropyWithLogits": _sigmoid_loss,
    "Square": _squared,
    "SquaredDifference": _squared_difference,
    "StopGradient": same("Identity"),
    "Swish": _swish,
    "Trunc": _trunc,
    "TruncateDiv": _truncated_div,
    "TruncateMod": same("Mod", fmod=1),
    "Xor": _logical("Xor", "BitwiseXor"),
    "ZerosLike": _filled(0),
}  # fmt: skip
