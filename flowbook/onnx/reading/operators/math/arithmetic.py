"""Elementwise arithmetic, comparison, logic and bits."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from flowbook.graph.model.registry import op_named
from flowbook.graph.model.tensor import Tensor
from flowbook.onnx.alike import ALIKE
from flowbook.onnx.reading import vocabulary as fb
from flowbook.onnx.reading.node import Node
from flowbook.onnx.reading.operators.types import Table


def like(x: Any, value: float) -> Any:
    """A scalar of a tensor's dtype."""
    return fb.constant(np.asarray(value).astype(x.dtype.numpy))


def unary(function: Any) -> Any:
    """The translation of an operator of one input by a function of one."""
    return lambda node, x: function(x)


def aligned(node: Node, x: Any, y: Any) -> tuple[Any, Any]:
    """The operands; opsets before 7 say by an axis where the second one lies along the first."""
    if node.opset < 7 and node.get("broadcast", 0) and node.get("axis") is not None:
        rank, width = node.rank(x), node.rank(y)
        axis = node.axis(node.get("axis"), rank)
        trailing = rank - axis - width
        if trailing > 0:
            y = fb.reshape(y, fb.concat([fb.shape(y), [1] * trailing], 0))
    return x, y


def binary(function: Any) -> Any:
    """The translation of an operator of two inputs by a function of two."""
    return lambda node, x, y: function(*aligned(node, x, y))


def folded(function: Any) -> Any:
    """The translation of an operator of any number of inputs, by a function of two."""
    return lambda node, *inputs: reduce(function, inputs)


def _div(node: Node, x: Any, y: Any) -> Any:
    x, y = aligned(node, x, y)
    return fb.truncatediv(x, y) if x.dtype.is_integer else fb.divide(x, y)


def _pow(node: Node, x: Any, y: Any) -> Any:
    x, y = aligned(node, x, y)
    if x.dtype is y.dtype:
        if x.dtype.is_integer:
            # A negative power of an integer is a fraction, which is cut off.
            return fb.cast(fb.pow(fb.cast(x, fb.float64), fb.cast(y, fb.float64)), x.dtype)
        return fb.pow(x, y)
    wide = fb.float64 if fb.float64 in (x.dtype, y.dtype) or x.dtype.is_integer else fb.float32
    return fb.cast(fb.pow(fb.cast(x, wide), fb.cast(y, wide)), x.dtype)


def _mod(node: Node, x: Any, y: Any) -> Any:
    return fb.truncatemod(x, y) if node.get("fmod", 0) else fb.mod(x, y)


def _shift(node: Node, x: Any, y: Any) -> Any:
    shift = fb.left_shift if node.need("direction") == "LEFT" else fb.right_shift
    return shift(x, y)


def _mean(node: Node, *inputs: Any) -> Any:
    total = reduce(fb.add, inputs)
    return total / fb.constant(len(inputs), total.dtype)


def _clip(node: Node, x: Any, low: Any = None, high: Any = None) -> Any:
    if node.opset < 11:
        low, high = node.get("min"), node.get("max")
    if low is not None:
        x = fb.maximum(x, low)
    return x if high is None else fb.minimum(x, high)


def _is_inf(node: Node, x: Any) -> Any:
    up, down = node.get("detect_positive", 1), node.get("detect_negative", 1)
    found = fb.is_inf(x)
    if up and down:
        return found
    zero = fb.constant(0, x.dtype)
    if up:
        return fb.logical_and(found, x > zero)
    return fb.logical_and(found, x < zero) if down else fb.zeros_like(found)


def _prelu(node: Node, x: Any, slope: Any) -> Any:
    if node.opset < 7 and slope.shape.rank == 1 and node.rank(x) > 2:
        slope = fb.reshape(slope, [-1] + [1] * (node.rank(x) - 2))
    zero = fb.constant(0, x.dtype)
    return fb.where(x < zero, x * slope, x)


def _dropout(node: Node, x: Any, ratio: Any = None, training: Any = None) -> Any:
    is_training = False
    if node.opset >= 12 and training is not None:
        is_training = bool(node.number(2))
    elif node.opset < 7:
        is_training = not node.get("is_test", 0)
    if is_training:
        rate = node.get("ratio", 0.5) if node.opset < 12 else 0.5 if ratio is None else None
        rate = node.number(1) if rate is None else rate
        kept = fb.random_uniform(fb.shape(x), dtype=fb.float32) >= rate
        scaled = x / fb.constant(1 - rate, x.dtype)
        return fb.where(kept, scaled, fb.zeros_like(x)), kept
    mask_dtype = fb.bool if node.opset >= 10 else x.dtype
    return fb.identity(x), fb.ones_like(x, mask_dtype) if node.wants(1) else None


def _alike(type: str) -> Any:
    """The translation of an operator that is one operation, of one or two inputs."""
    op_def = op_named(type)
    return (unary if len(op_def.inputs) == 1 else binary)(op_def.public)


TABLE: Table = {
    **{operator: _alike(type) for operator, type in ALIKE.items()},
    "And": binary(fb.logical_and),
    "BitShift": _shift,
    "BitwiseAnd": binary(fb.bitwise_and),
    "BitwiseNot": unary(fb.invert),
    "BitwiseOr": binary(fb.bitwise_or),
    "BitwiseXor": binary(fb.bitwise_xor),
    "Clip": _clip,
    "Div": _div,
    "Dropout": _dropout,
    "Identity": lambda node, x: fb.identity(x) if isinstance(x, Tensor) else x,
    "IsInf": _is_inf,
    "Max": folded(fb.maximum),
    "Mean": _mean,
    "Min": folded(fb.minimum),
    "Mod": _mod,
    "Not": unary(fb.logical_not),
    "Or": binary(fb.logical_or),
    "PRelu": _prelu,
    "Pow": _pow,
    "Sum": folded(fb.add),
    "Where": lambda node, condition, x, y: fb.where(condition, x, y),
    "Xor": binary(fb.logical_xor),
}
