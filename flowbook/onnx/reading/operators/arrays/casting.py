"""Conversions between dtypes, and constants."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.onnx.elements import dtype_of
from flowbook.onnx.package import onnx
from flowbook.onnx.reading import vocabulary as fb
from flowbook.onnx.reading.node import Node
from flowbook.onnx.reading.operators.types import Table


def converted(node: Node, x: Any, dtype: Any) -> Any:
    """A tensor in another dtype, as the node's attributes want it rounded and kept in range."""
    if dtype is x.dtype:
        return fb.identity(x)
    if dtype is fb.string:
        return fb.strings.as_string(x)
    if x.dtype is fb.string:
        x = fb.strings.to_number(x, fb.float64)
    if dtype is fb.float8_e8m0fnu:
        return _powers_of_two(node, x)
    if dtype in fb.SMALL_FLOATS and node.get("saturate", 1):
        return saturated(x, dtype)
    return fb.cast(x, dtype)


def saturated(x: Any, dtype: Any) -> Any:
    """Numbers as small floats; what lies beyond these, infinities too, as the largest of them."""
    if not x.dtype.is_floating:
        x = fb.cast(x, fb.float32)
    low, high = (np.asarray(v).astype(x.dtype.numpy) for v in (dtype.min, dtype.max))
    return fb.cast(fb.clip_by_value(x, fb.constant(low), fb.constant(high)), dtype)


def _powers_of_two(node: Node, x: Any) -> Any:
    """The exponents of numbers, whose sign is lost, moved up or down where they are no powers."""
    bits = fb.cast(fb.bitcast(fb.cast(x, fb.float32), fb.uint32), fb.int64)
    exponent = fb.bitwise_and(fb.right_shift(bits, np.int64(23)), np.int64(255))
    fraction = fb.bitwise_and(bits, np.int64(2**23 - 1))
    mode = node.get("round_mode", "up")
    if mode == "up":
        is_up = fraction > 0
    elif mode == "nearest":
        # Half way goes up, but not from the numbers that are smaller than all powers.
        half = 2**22
        is_up = fb.logical_or(
            fraction > half, fb.logical_and(fb.equal(fraction, half), exponent > 0)
        )
    elif mode == "down":
        is_up = fb.zeros_like(fraction, fb.bool)
    else:
        raise node.refuse(f"round_mode {mode!r}")
    # Beyond the largest power stands what is not a number.
    last = 253 if node.get("saturate", 1) else 254
    is_up = fb.logical_and(is_up, exponent <= last)
    found = fb.cast(exponent + fb.cast(is_up, fb.int64), fb.uint8)
    return fb.bitcast(found, fb.float8_e8m0fnu)


def _cast(node: Node, x: Any) -> Any:
    to = node.need("to")
    if isinstance(to, str):  # Before opset 6.
        to = onnx().TensorProto.DataType.Value(to)
    return converted(node, x, dtype_of(to))


def _bit_cast(node: Node, x: Any) -> Any:
    to = node.dtype("to")
    if x.dtype is fb.bool:
        x = fb.cast(x, fb.uint8)  # A truth is a byte, 0 or 1.
    if to is fb.bool:
        return fb.not_equal(fb.bitcast(x, fb.uint8), fb.constant(0, fb.uint8))
    return fb.bitcast(x, to)


def _constant(node: Node) -> Any:
    for name, dtype in (
        ("value_float", np.float32),
        ("value_floats", np.float32),
        ("value_int", np.int64),
        ("value_ints", np.int64),
    ):
        found = node.get(name)
        if found is not None:
            return fb.constant(np.array(found, dtype))
    for name in ("value_string", "value_strings"):
        found = node.get(name)
        if found is not None:
            return fb.constant(found, fb.string)
    if node.get("value") is None:
        raise node.refuse("a sparse constant")
    return fb.constant(node.get("value"))


def _constant_of_shape(node: Node, shape: Any) -> Any:
    value = node.get("value", np.zeros(1, np.float32)).reshape(())
    known = node.known(shape)
    return fb.fill(shape if known is None else known, fb.constant(value))


def _eye_like(node: Node, x: Any) -> Any:
    dtype = x.dtype if node.get("dtype") is None else node.dtype("dtype")
    shape = fb.shape(x)
    dims = x.shape.dims or (None, None)
    rows, columns = (shape[i] if d is None else d for i, d in enumerate(dims))
    k = fb.constant(node.get("k", 0))
    place = fb.expand_dims(fb.range(rows), 1) + k - fb.expand_dims(fb.range(columns), 0)
    return fb.cast(fb.equal(place, 0), dtype)


TABLE: Table = {
    "BitCast": _bit_cast,
    "Cast": _cast,
    "CastLike": lambda node, x, like: converted(node, x, like.dtype),
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "EyeLike": _eye_like,
}
