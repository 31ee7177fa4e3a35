"""Powers, roots and logarithms beside `exp`, `log` and `sqrt`, with NumPy's meaning."""

from __future__ import annotations

import math
from typing import Any

from flowbook.graph.definition.batching import Batching
from flowbook.graph.definition.inference import broadcast_inputs, elementwise
from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.dtypes import FLOATS, NUMBERS
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.broadcasting import gradients_of_two
from flowbook.graph.ops.basis.conjugation import conjugate
from flowbook.graph.ops.basis.constants import ones_like_op, zeros_like_op
from flowbook.graph.ops.math.comparison import equal, greater, not_equal, where_op
from flowbook.graph.ops.math.elementwise import function_of_one, is_inf, log, sigmoid, square
from flowbook.graph.ops.math.no_nan import by_derivative, div_no_nan, gradient_over, multiply_no_nan

__all__ = ["cbrt", "exp2", "hypot", "log10", "log2", "logaddexp", "pow"]


def _pow(xp: Any, x: Any, y: Any) -> Any:
    if y.dtype.kind == "i" and x.size and xp.any(y < 0):
        raise InvalidArgumentError(
            "an integer is raised to a negative power", hint="cast both to a floating-point dtype"
        )
    if x.dtype.kind == "f" and y.size == 1 and float(y.item()).is_integer():
        # Negative numbers take NumPy tens of times as long, except for its own few exponents.
        power = float(y.item())
        if not -2 <= power <= 2:
            size = xp.power(xp.abs(x), y)
            return xp.copysign(size, x) if power % 2 else size
    return xp.power(x, y)


def _pow_gradient(op: Operation, dz: Tensor) -> Any:
    x, y = op.inputs
    if x.dtype.is_integer:
        return None, None
    # x ** (0 - 1) would be infinite at x = 0, where the derivative of x ** 0 is 0.
    lowered = where_op(equal(y, zeros_like_op(y)), zeros_like_op(y), y - 1)
    dx = multiply_no_nan(conjugate(y * pow(x, lowered)), dz)
    # The logarithm counts only where it exists, whatever the power is elsewhere.
    exists = (not_equal if x.dtype.is_complex else greater)(x, zeros_like_op(x))
    logarithm = log(where_op(exists, x, ones_like_op(x)))
    by_y = multiply_no_nan(op.outputs[0], logarithm)
    return gradients_of_two(op, dx, multiply_no_nan(conjugate(by_y), dz))


pow = OpDef(
    "Pow",
    "x: T, y: T -> z: T",
    T=NUMBERS,
    infer=broadcast_inputs,
    batching=Batching.ELEMENTWISE,
    kernel=_pow,
    grad=_pow_gradient,
    cost=elementwise(flops=20),
    doc="""The power `x ** y`, elementwise with broadcasting; both of one numeric dtype.

    A negative power of an integer is an InvalidArgumentError in the run. Where a real `x` is not
    positive, or a complex one is zero, the gradient with respect to `y` is zero.
    """,
    function="pow",
)

exp2 = function_of_one(
    "Exp2",
    "exp2(x)",
    by_derivative(lambda op: op.outputs[0] * math.log(2)),
    "`2 ** x`, elementwise.",
)

log2 = function_of_one(
    "Log2",
    "log2(x)",
    lambda op, dy: gradient_over(dy, op.inputs[0] * math.log(2)),
    "The logarithm to the base 2, elementwise: -inf at 0, NaN below.",
)

log10 = function_of_one(
    "Log10",
    "log10(x)",
    lambda op, dy: gradient_over(dy, op.inputs[0] * math.log(10)),
    "The logarithm to the base 10, elementwise: -inf at 0, NaN below.",
)

cbrt = function_of_one(
    "Cbrt",
    "cbrt(x)",
    lambda op, dy: gradient_over(dy, square(op.outputs[0]) * 3.0),
    "The cube root, elementwise; of negative `x` too.",
    keeps_zeros=True,
)


def _hypot_gradient(op: Operation, dz: Tensor) -> Any:
    x, y = op.inputs
    z = op.outputs[0]
    return gradients_of_two(op, dz * div_no_nan(x, z), dz * div_no_nan(y, z))


hypot = OpDef(
    "Hypot",
    "x1: T, x2: T -> z: T",
    T=FLOATS,
    infer=broadcast_inputs,
    expression="hypot(x1, x2)",
    grad=_hypot_gradient,
    cost=elementwise(flops=8),
    doc="""`sqrt(x1 ** 2 + x2 ** 2)`, elementwise with broadcasting, without overflow.

    The gradient where both are 0 is 0.
    """,
)


def _logaddexp_gradient(op: Operation, dz: Tensor) -> Any:
    x, y = op.inputs
    difference = x - y
    # Equal infinities share it, whose difference would be NaN.
    is_lost = equal(x, y) & is_inf(x)
    share = sigmoid(where_op(is_lost, zeros_like_op(difference), difference))
    return gradients_of_two(op, dz * share, dz * (1.0 - share))


logaddexp = OpDef(
    "LogAddExp",
    "x1: T, x2: T -> z: T",
    T=FLOATS,
    infer=broadcast_inputs,
    expression="logaddexp(x1, x2)",
    grad=_logaddexp_gradient,
    cost=elementwise(flops=24),
    doc="`log(exp(x1) + exp(x2))`, elementwise with broadcasting, without overflow.",
    function="logaddexp",
)
