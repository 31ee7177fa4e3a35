"""Signs, neighbours and steps of numbers, and sinc, with NumPy's meaning."""

from __future__ import annotations

import math
from typing import Any

from flowbook.graph.definition.inference import broadcast_inputs, elementwise
from flowbook.graph.definition.op_def import NO_GRADIENT, OpDef
from flowbook.graph.model.dtypes import FLOATS, float32, float64
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.broadcasting import gradients_of_two
from flowbook.graph.ops.basis.constants import ones_like_op, zeros_like_op
from flowbook.graph.ops.math.comparison import less, where
from flowbook.graph.ops.math.elementwise import cos, function_of_one, square

__all__ = ["copysign", "heaviside", "nextafter", "sinc"]


def _copysign_gradient(op: Operation, dz: Tensor) -> Any:
    x, y = op.inputs
    same = copysign(ones_like_op(x), x) * copysign(ones_like_op(y), y)
    return gradients_of_two(op, dz * same, None)


copysign: OpDef = OpDef(
    "CopySign",
    "x1: T, x2: T -> z: T",
    T=FLOATS,
    infer=broadcast_inputs,
    expression="copysign(x1, x2)",
    grad=_copysign_gradient,
    cost=elementwise(),
    doc="""`x1` with the sign of `x2`, elementwise with broadcasting; zeros have signs, too.

    No gradient flows to `x2`.
    """,
    function="copysign",
)

nextafter = OpDef(
    "NextAfter",
    "x1: T, x2: T -> z: T",
    T=(float32, float64),
    infer=broadcast_inputs,
    expression="nextafter(x1, x2)",
    grad=lambda op, dz: gradients_of_two(op, dz, zeros_like_op(dz)),
    cost=elementwise(),
    doc="The next number after `x1` towards `x2` that the dtype holds, with broadcasting.",
    function="nextafter",
)

heaviside = OpDef(
    "Heaviside",
    "x1: T, x2: T -> z: T",
    T=FLOATS,
    infer=broadcast_inputs,
    expression="heaviside(x1, x2)",
    grad=NO_GRADIENT,
    cost=elementwise(),
    doc="0 where `x1` is negative, 1 where it is positive, and `x2` where it is 0.",
)

# Of sin(y) / y as a series in y ** 2.
_SERIES = [(-1) ** n / math.factorial(2 * n + 1) for n in range(10)]


def _sinc_gradient(op: Operation, dy: Tensor) -> Tensor:
    # Near 0 the quotient is a difference of nearly equal numbers; there the series is right.
    x, y = op.inputs[0], op.outputs[0]
    is_small = less(square(x), 0.04)
    one, zero = ones_like_op(x), zeros_like_op(x)
    inner = where(is_small, x, zero) * math.pi
    squared = square(inner)
    slope = zero
    for n in range(len(_SERIES) - 1, 0, -1):
        slope = slope * squared + 2 * n * _SERIES[n]
    outer = (cos(x * math.pi) - y) / where(is_small, one, x)
    return dy * where(is_small, slope * inner * math.pi, outer)


sinc = function_of_one(
    "Sinc",
    "sinc(x)",
    _sinc_gradient,
    "`sin(π x) / (π x)`, elementwise, and 1 at 0: NumPy's normalised sinc.",
    flops=14,
)
