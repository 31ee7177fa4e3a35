"""Numbers stored as small integers, with a scale and a zero."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.onnx.elements import dtype_of
from flowbook.onnx.reading import vocabulary as fb
from flowbook.onnx.reading.node import Node
from flowbook.onnx.reading.operators.arrays.casting import saturated
from flowbook.onnx.reading.operators.nn.convolution import convolved
from flowbook.onnx.reading.operators.types import Table


def _spread(node: Node, x: Any, parameter: Any) -> Any:
    """A scale or zero for each element along the node's axis, or for each block of elements."""
    rank = node.rank(x)
    width = node.rank(parameter)
    if width == 0 or parameter.shape == [1]:
        return fb.reshape(parameter, [])
    axis = node.along(x, 1)
    if width == 1:
        return fb.reshape(parameter, [-1 if i == axis else 1 for i in range(rank)])
    block = node.get("block_size", 0)
    if not block:
        raise node.refuse("a scale of several axes without blocks")
    size = node.size(x, axis)
    whole = fb.repeat(parameter, block, axis)
    return whole[(*[slice(None)] * axis, slice(0, size))]


def quantised(scaled: Any, zero: Any, dtype: Any) -> Any:
    """Numbers in units of their scale as integers: rounded, moved by the zero, kept in range.

    Or as small floats, where the zero is 0.
    """
    if dtype in fb.SMALL_FLOATS:
        return saturated(scaled, dtype)
    found = fb.round(scaled)
    if zero is not None:
        found = found + fb.cast(zero, found.dtype)
    low, high = (
        fb.constant(np.asarray(v).astype(found.dtype.numpy)) for v in (dtype.min, dtype.max)
    )
    return fb.cast(fb.clip_by_value(found, low, high), dtype)


def _quantize(node: Node, x: Any, scale: Any, zero: Any = None) -> Any:
    dtype = fb.uint8 if zero is None else zero.dtype
    if node.get("output_dtype", 0):
        dtype = dtype_of(node.get("output_dtype"))
    wide = fb.float32 if x.dtype is not fb.float64 else fb.float64
    scaled = fb.cast(x, wide) / _spread(node, x, fb.cast(scale, wide))
    if dtype in fb.SMALL_FLOATS and not node.get("saturate", 1):
        return fb.cast(scaled, dtype)
    return quantised(scaled, None if zero is None else _spread(node, x, zero), dtype)


def _dequantize(node: Node, x: Any, scale: Any, zero: Any = None) -> Any:
    dtype = scale.dtype
    if node.get("output_dtype", 0):
        dtype = dtype_of(node.get("output_dtype"))
    wide = fb.float64 if x.dtype.size > 2 else fb.float32
    found = fb.cast(x, wide)
    if zero is not None:
        found = found - fb.cast(_spread(node, x, zero), wide)
    return fb.cast(found * fb.cast(_spread(node, x, scale), wide), dtype)


def _column(node: Node, parameter: Any, rank: int, axis: int) -> Any:
    if parameter.shape.rank == 1 and parameter.shape != [1]:
        return fb.reshape(parameter, [-1 if i == axis else 1 for i in range(rank)])
    return (
        parameter
        if parameter.shape.rank and parameter.shape.rank > 1
        else (fb.reshape(parameter, []))
    )


def _multiplied(
    node: Node, a: Any, a_scale: Any, a_zero: Any, b: Any, b_scale: Any, b_zero: Any,
    y_scale: Any, y_zero: Any,
) -> Any:  # fmt: skip
    wide = fb.float64
    rows, columns = node.rank(a), node.rank(b)
    left = fb.cast(a, wide) - fb.cast(_column(node, a_zero, rows, rows - 2), wide)
    right = fb.cast(b, wide) - fb.cast(_column(node, b_zero, columns, columns - 1), wide)
    left = left * fb.cast(_column(node, a_scale, rows, rows - 2), wide)
    right = right * fb.cast(_column(node, b_scale, columns, columns - 1), wide)
    found = fb.matmul(left, right) / fb.cast(y_scale, wide)
    return quantised(found, y_zero, y_zero.dtype)


def _convolved(
    node: Node, x: Any, x_scale: Any, x_zero: Any, w: Any, w_scale: Any, w_zero: Any,
    y_scale: Any, y_zero: Any, bias: Any = None,
) -> Any:  # fmt: skip
    wide = fb.float64
    rank = node.rank(w)
    data = fb.cast(x, wide) - fb.cast(x_zero, wide)
    weights = fb.cast(w, wide) - fb.cast(_column(node, w_zero, rank, 0), wide)
    scale = fb.cast(x_scale, wide) * fb.cast(w_scale, wide)
    found = convolved(node, data, weights)
    if bias is not None:
        found = found + fb.reshape(fb.cast(bias, wide), [-1] + [1] * (rank - 2))
    found = found * _column(node, scale, rank, 1) / fb.cast(y_scale, wide)
    return quantised(found, y_zero, y_zero.dtype)


TABLE: Table = {
    "DequantizeLinear": _dequantize,
    "QLinearConv": _convolved,
    "QLinearMatMul": _multiplied,
    "QuantizeLinear": _quantize,
}
