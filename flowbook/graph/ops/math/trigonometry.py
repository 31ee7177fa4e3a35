"""Trigonometric and hyperbolic functions and their inverses, elementwise, of radians.

Complex arguments are allowed; branch cuts are NumPy's. `sin`, `cos` and `tanh` stand in
`elementwise`.
"""

from __future__ import annotations

from typing import Any

from flowbook.graph.definition.inference import broadcast_inputs, elementwise
from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.dtypes import FLOATS, INEXACT
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.broadcasting import gradients_of_two
from flowbook.graph.ops.basis.conjugation import conjugate
from flowbook.graph.ops.math.elementwise import function_of_one, reciprocal, sqrt, square
from flowbook.graph.ops.math.no_nan import by_derivative, div_no_nan, gradient_over
from flowbook.graph.ops.math.powers import hypot

__all__ = ["acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cosh", "sinh", "tan"]

tan = function_of_one(
    "Tan",
    "tan(x)",
    by_derivative(lambda op: square(conjugate(op.outputs[0])) + 1.0),
    "The tangent of radians.",
    T=INEXACT,
    keeps_zeros=True,
)


def _one_minus_square(op: Operation) -> Tensor:
    # As a product, because near 1 and -1 the square loses the digits that count.
    x = conjugate(op.inputs[0])
    return (1.0 - x) * (1.0 + x)


asin = function_of_one(
    "Asin",
    "arcsin(x)",
    lambda op, dy: gradient_over(dy, sqrt(_one_minus_square(op))),
    "The inverse sine in radians, from -π/2 to π/2; NaN for real `x` outside [-1, 1].",
    T=INEXACT,
    keeps_zeros=True,
)

acos = function_of_one(
    "Acos",
    "arccos(x)",
    lambda op, dy: gradient_over(-dy, sqrt(_one_minus_square(op))),
    "The inverse cosine in radians, from 0 to π; NaN for real `x` outside [-1, 1].",
    T=INEXACT,
)

atan = function_of_one(
    "Atan",
    "arctan(x)",
    lambda op, dy: dy * reciprocal(square(conjugate(op.inputs[0])) + 1.0),
    "The inverse tangent in radians, from -π/2 to π/2.",
    T=INEXACT,
    keeps_zeros=True,
)


def _atan2_gradient(op: Operation, dz: Tensor) -> Any:
    y, x = op.inputs
    # Divided twice, because the square of the distance overflows first.
    distance = hypot(x, y)
    share = div_no_nan(dz, distance)
    return gradients_of_two(op, share * div_no_nan(x, distance), -share * div_no_nan(y, distance))


atan2 = OpDef(
    "Atan2",
    "y: T, x: T -> angle: T",
    T=FLOATS,
    infer=broadcast_inputs,
    expression="arctan2(y, x)",
    grad=_atan2_gradient,
    cost=elementwise(flops=20),
    doc="""The angle of the points (`x`, `y`) in radians, from -π to π, with broadcasting.

    The gradient at the origin is 0.

    >>> import flowbook as fb
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.atan2([1.0, -1.0], [1.0, -1.0])).round(3))
    [ 0.785 -2.356]
    """,
)

sinh = function_of_one(
    "Sinh",
    "sinh(x)",
    by_derivative(lambda op: conjugate(cosh(op.inputs[0]))),
    "The hyperbolic sine, elementwise.",
    T=INEXACT,
    keeps_zeros=True,
)

cosh: OpDef = function_of_one(
    "Cosh",
    "cosh(x)",
    by_derivative(lambda op: conjugate(sinh(op.inputs[0]))),
    "The hyperbolic cosine, elementwise.",
    T=INEXACT,
)

# The derivatives of the inverses are taken at their results, where nothing overflows.
asinh = function_of_one(
    "Asinh",
    "arcsinh(x)",
    lambda op, dy: dy / conjugate(cosh(op.outputs[0])),
    "The inverse hyperbolic sine, elementwise.",
    T=INEXACT,
    keeps_zeros=True,
)

acosh = function_of_one(
    "Acosh",
    "arccosh(x)",
    lambda op, dy: gradient_over(dy, conjugate(sinh(op.outputs[0]))),
    "The inverse hyperbolic cosine, elementwise; NaN for real `x` below 1.",
    T=INEXACT,
)

atanh = function_of_one(
    "Atanh",
    "arctanh(x)",
    lambda op, dy: gradient_over(dy, _one_minus_square(op)),
    "The inverse hyperbolic tangent; infinite at -1 and 1, NaN for real `x` beyond.",
    T=INEXACT,
    keeps_zeros=True,
)
