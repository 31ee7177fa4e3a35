"""Elementwise operations."""

from __future__ import annotations

from typing import Any

from flowbook import nn
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.math import (
    arithmetic,
    bitwise,
    casting,
    comparison,
    complex,
    division,
    elementwise,
)
from flowbook.tensorflow.node import Node, Rules, named


def _quotient(n: Node, x: Any, y: Any) -> Any:
    """Python 2's division: that of whole numbers goes towards zero."""
    divide = division.truncatediv if x.dtype.is_integer else arithmetic.divide
    return divide(x, y, name=n.scope)


RULES: Rules = {
    "AccumulateNV2": lambda n, *inputs: arithmetic.add_n(list(inputs), name=n.scope),
    "AddN": lambda n, *inputs: arithmetic.add_n(list(inputs), name=n.scope),
    "AddV2": named(arithmetic.add),
    "BiasAdd": named(nn.bias_add, data_format=lambda n: n.text("data_format", "NHWC")),
    "BiasAddV1": named(nn.bias_add),
    "Bitcast": named(casting.bitcast, type=lambda n: n.dtype("type")),
    "BitwiseAnd": named(bitwise.bitwise_and),
    "BitwiseOr": named(bitwise.bitwise_or),
    "BitwiseXor": named(bitwise.bitwise_xor),
    "Cast": named(cast, dtype=lambda n: n.dtype("DstT")),
    "ComplexAbs": named(complex.abs),
    "Div": _quotient,
    "FloorMod": named(arithmetic.mod),
    "Inv": named(elementwise.reciprocal),
    "Invert": named(bitwise.invert),
    "LeakyRelu": named(nn.leaky_relu, alpha=lambda n: n.number("alpha", 0.2)),
    "LogicalAnd": named(comparison.logical_and),
    "LogicalNot": named(comparison.logical_not),
    "LogicalOr": named(comparison.logical_or),
    "Mod": named(division.truncatemod),
    "RealDiv": named(arithmetic.divide),
    "Rint": named(elementwise.round),
    "Select": named(comparison.where),
    # Unlike in Select, a vector of conditions is one for each column, not row.
    "SelectV2": named(comparison.where_op),
}
