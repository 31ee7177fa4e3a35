"""Elementwise operations."""

from __future__ import annotations

from typing import Any

from flowbook import nn
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.conjugation import conj
from flowbook.graph.ops.math import (
    arithmetic,
    bitwise,
    casting,
    comparison,
    complex,
    division,
    elementwise,
    incomplete_gamma,
    no_nan,
    powers,
    special,
    trigonometry,
)
from flowbook.graph.ops.nn.clipping import clip_by_value
from flowbook.tensorflow.node import Node, Rules, named


def _quotient(n: Node, x: Any, y: Any) -> Any:
    """Python 2's division: that of whole numbers goes towards zero."""
    divide = division.truncatediv if x.dtype.is_integer else arithmetic.divide
    return divide(x, y, name=n.scope)


def _select(n: Node, condition: Any, x: Any, y: Any) -> Any:
    return comparison.where(condition, x, y, name=n.scope)


def _select_broadcast(n: Node, condition: Any, x: Any, y: Any) -> Any:
    """Unlike Select, a vector of conditions is one for each column, not row."""
    return comparison.where_op(condition, x, y, name=n.scope)


def _equality(function: Any) -> Any:
    return lambda n, x, y: function(x, y, name=n.scope)


RULES: Rules = {
    "Abs": named(complex.abs),
    "AccumulateNV2": lambda n, *inputs: arithmetic.add_n(list(inputs), name=n.scope),
    "Acos": named(trigonometry.acos),
    "Acosh": named(trigonometry.acosh),
    "Add": named(arithmetic.add),
    "AddN": lambda n, *inputs: arithmetic.add_n(list(inputs), name=n.scope),
    "AddV2": named(arithmetic.add),
    "Angle": named(complex.angle),
    "Asin": named(trigonometry.asin),
    "Asinh": named(trigonometry.asinh),
    "Atan": named(trigonometry.atan),
    "Atan2": named(trigonometry.atan2),
    "Atanh": named(trigonometry.atanh),
    "BesselI0": named(special.bessel_i0),
    "BesselI0e": named(special.bessel_i0e),
    "BesselI1": named(special.bessel_i1),
    "BesselI1e": named(special.bessel_i1e),
    "Betainc": named(special.betainc),
    "BiasAdd": named(nn.bias_add, data_format=lambda n: n.text("data_format", "NHWC")),
    "BiasAddV1": named(nn.bias_add),
    "Bitcast": named(casting.bitcast, type=lambda n: n.dtype("type")),
    "BitwiseAnd": named(bitwise.bitwise_and),
    "BitwiseOr": named(bitwise.bitwise_or),
    "BitwiseXor": named(bitwise.bitwise_xor),
    "Cast": named(cast, dtype=lambda n: n.dtype("DstT")),
    "Ceil": named(elementwise.ceil),
    "ClipByValue": named(clip_by_value),
    "Complex": named(complex.complex),
    "ComplexAbs": named(complex.abs),
    "Conj": named(conj),
    "Cos": named(elementwise.cos),
    "Cosh": named(trigonometry.cosh),
    "Digamma": named(special.digamma),
    "Div": _quotient,
    "DivNoNan": named(no_nan.div_no_nan),
    "Elu": named(nn.elu),
    "Equal": _equality(comparison.equal),
    "Erf": named(special.erf),
    "Erfc": named(special.erfc),
    "Erfinv": named(special.erfinv),
    "Exp": named(elementwise.exp),
    "Expm1": named(elementwise.expm1),
    "Floor": named(elementwise.floor),
    "FloorDiv": named(arithmetic.floordiv),
    "FloorMod": named(arithmetic.mod),
    "Greater": named(comparison.greater),
    "GreaterEqual": named(comparison.greater_equal),
    "Igamma": named(incomplete_gamma.igamma),
    "Igammac": named(incomplete_gamma.igammac),
    "Imag": named(complex.imag),
    "Inv": named(elementwise.reciprocal),
    "Invert": named(bitwise.invert),
    "IsFinite": named(elementwise.is_finite),
    "IsInf": named(elementwise.is_inf),
    "IsNan": named(elementwise.is_nan),
    "LeakyRelu": named(nn.leaky_relu, alpha=lambda n: n.number("alpha", 0.2)),
    "LeftShift": named(bitwise.left_shift),
    "Less": named(comparison.less),
    "LessEqual": named(comparison.less_equal),
    "Lgamma": named(special.lgamma),
    "Log": named(elementwise.log),
    "Log1p": named(elementwise.log1p),
    "LogicalAnd": named(comparison.logical_and),
    "LogicalNot": named(comparison.logical_not),
    "LogicalOr": named(comparison.logical_or),
    "Maximum": named(arithmetic.maximum),
    "Minimum": named(arithmetic.minimum),
    "Mod": named(division.truncatemod),
    "Mul": named(arithmetic.multiply),
    "MulNoNan": named(no_nan.multiply_no_nan),
    "Ndtri": named(special.ndtri),
    "Neg": named(arithmetic.negative),
    "NotEqual": _equality(comparison.not_equal),
    "Polygamma": named(special.polygamma),
    "PopulationCount": named(bitwise.population_count),
    "Pow": named(powers.pow),
    "Real": named(complex.real),
    "RealDiv": named(arithmetic.divide),
    "Reciprocal": named(elementwise.reciprocal),
    "Relu": named(nn.relu),
    "Relu6": named(nn.relu6),
    "RightShift": named(bitwise.right_shift),
    "Rint": named(elementwise.round),
    "Round": named(elementwise.round),
    "Rsqrt": named(elementwise.rsqrt),
    "Select": _select,
    "SelectV2": _select_broadcast,
    "Selu": named(nn.selu),
    "Sigmoid": named(elementwise.sigmoid),
    "Sign": named(complex.sign),
    "Sin": named(elementwise.sin),
    "Sinh": named(trigonometry.sinh),
    "Softplus": named(nn.softplus),
    "Softsign": named(nn.softsign),
    "Sqrt": named(elementwise.sqrt),
    "Square": named(elementwise.square),
    "SquaredDifference": named(arithmetic.squared_difference),
    "Sub": named(arithmetic.subtract),
    "Tan": named(trigonometry.tan),
    "Tanh": named(elementwise.tanh),
    "TruncateDiv": named(division.truncatediv),
    "TruncateMod": named(division.truncatemod),
    "Xdivy": named(no_nan.xdivy),
    "Xlog1py": named(no_nan.xlog1py),
    "Xlogy": named(no_nan.xlogy),
    "Zeta": named(special.zeta),
}
