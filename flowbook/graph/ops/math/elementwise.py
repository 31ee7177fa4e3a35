"""Functions of one argument, elementwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowbook.graph.definition.inference import elementwise, same_as_input
from flowbook.graph.definition.op_def import NO_GRADIENT, OpDef
from flowbook.graph.model.dtypes import (
    FLOATS,
    INEXACT,
    NUMBERS,
    DType,
)
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.conjugation import conjugate
from flowbook.graph.ops.basis.constants import convert_to_tensor, identity
from flowbook.graph.ops.basis.sparse_tensor import SparseTensor
from flowbook.graph.ops.math.no_nan import by_derivative, gradient_over, multiply_no_nan

__all__ = [
    "ceil",
    "cos",
    "exp",
    "expm1",
    "floor",
    "is_finite",
    "is_inf",
    "is_nan",
    "log",
    "log1p",
    "reciprocal",
    "round",
    "rsqrt",
    "sigmoid",
    "sin",
    "sqrt",
    "square",
    "tanh",
    "trunc",
]


def function_of_one(
    type: str,
    expression: str,
    grad: Callable[..., Any],
    doc: str,
    *,
    flops: int = 10,
    T: tuple[DType, ...] = FLOATS,
    output: str = "T",
    **facts: Any,
) -> OpDef:
    """A function of one argument, elementwise; `output` is the dtype of what it gives.

    The `facts` are further arguments of `OpDef`.
    """
    return OpDef(
        type,
        f"x: T -> y: {output}",
        T=T,
        infer=same_as_input,
        expression=expression,
        grad=grad,
        cost=elementwise(flops),
        doc=doc,
        **facts,
    )


exp = function_of_one(
    "Exp",
    "exp(x)",
    by_derivative(lambda op: conjugate(op.outputs[0])),
    "The exponential function, elementwise.",
    T=INEXACT,
)

log = function_of_one(
    "Log",
    "log(x)",
    lambda op, dy: gradient_over(dy, conjugate(op.inputs[0])),
    "The natural logarithm, elementwise: -inf at 0, NaN below.",
    T=INEXACT,
    spreads_nonfinite=("x",),
)

log1p = function_of_one(
    "Log1p",
    "log1p(x)",
    lambda op, dy: gradient_over(dy, conjugate(op.inputs[0]) + 1.0),
    "`log(1 + x)`, elementwise, accurate for small `x`.",
    T=INEXACT,
    keeps_zeros=True,
)

expm1 = function_of_one(
    "Expm1",
    "expm1(x)",
    by_derivative(lambda op: conjugate(op.outputs[0]) + 1.0),
    "`exp(x) - 1`, elementwise, accurate for small `x`.",
    T=INEXACT,
    keeps_zeros=True,
)

sqrt = function_of_one(
    "Sqrt",
    "sqrt(x)",
    lambda op, dy: gradient_over(dy * 0.5, conjugate(op.outputs[0])),
    "The square root, elementwise.",
    T=INEXACT,
    flops=4,
    keeps_zeros=True,
    spreads_nonfinite=("x",),
)


def _rsqrt_gradient(op: Operation, dy: Tensor) -> Tensor:
    y = conjugate(op.outputs[0])
    return multiply_no_nan(y * y * y, dy * -0.5)


rsqrt = function_of_one(
    "Rsqrt",
    "reciprocal(sqrt(x))",
    _rsqrt_gradient,
    "`1 / sqrt(x)`, elementwise.",
    T=INEXACT,
    flops=5,
)

square = function_of_one(
    "Square",
    "square(x)",
    lambda op, dy: dy * (conjugate(op.inputs[0]) * 2),
    "`x * x`, elementwise.",
    T=NUMBERS,
    flops=1,
    keeps_zeros=True,
    spreads_nonfinite=("x",),
)


def _reciprocal_gradient(op: Operation, dy: Tensor) -> Tensor:
    y = conjugate(op.outputs[0])
    return multiply_no_nan(y * y, -dy)


reciprocal = function_of_one(
    "Reciprocal",
    "reciprocal(x)",
    _reciprocal_gradient,
    "`1 / x`, elementwise.",
    T=INEXACT,
    flops=1,
)

sin = function_of_one(
    "Sin",
    "sin(x)",
    lambda op, dy: dy * conjugate(cos(op.inputs[0])),
    "The sine of radians.",
    T=INEXACT,
    keeps_zeros=True,
)

cos: OpDef = function_of_one(
    "Cos",
    "cos(x)",
    lambda op, dy: -dy * conjugate(sin(op.inputs[0])),
    "The cosine of radians.",
    T=INEXACT,
)

tanh = function_of_one(
    "Tanh",
    "tanh(x)",
    lambda op, dy: dy * (1.0 - square(conjugate(op.outputs[0]))),
    "The hyperbolic tangent, elementwise.",
    T=INEXACT,
    keeps_zeros=True,
    keeps_finite=True,
)


def _sigmoid_gradient(op: Operation, dy: Tensor) -> Tensor:
    y = conjugate(op.outputs[0])
    return dy * (y * (1.0 - y))


# Where exp(-x) overflows, its reciprocal is the right limit, 0.
sigmoid = function_of_one(
    "Sigmoid",
    "reciprocal(add(exp(negative(x)), 1))",
    _sigmoid_gradient,
    "`1 / (1 + exp(-x))`, elementwise.",
    T=INEXACT,
    flops=13,
    keeps_finite=True,
)

floor = function_of_one(
    "Floor",
    "floor(x)",
    NO_GRADIENT,
    "The largest whole number not above `x`.",
    flops=1,
    keeps_zeros=True,
)

ceil = function_of_one(
    "Ceil",
    "ceil(x)",
    NO_GRADIENT,
    "The smallest whole number not below `x`.",
    flops=1,
    keeps_zeros=True,
)

trunc = function_of_one(
    "Trunc",
    "trunc(x)",
    NO_GRADIENT,
    "The whole number next to `x` towards zero.",
    flops=1,
    keeps_zeros=True,
)

round_op = function_of_one("Round", "rint(x)", NO_GRADIENT, "", flops=1, keeps_zeros=True)


@round_op.front
def round(x: Any, name: str | None = None) -> Tensor:
    """The nearest whole number, elementwise; halves go to the even one. Of a real dtype.

    >>> import flowbook as fb
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.round([0.5, 1.5, -0.7])))
    [ 0.  2. -1.]
    """
    x = x if isinstance(x, SparseTensor) else convert_to_tensor(x)
    return identity(x, name=name) if x.dtype.is_integer else round_op(x, name=name)


is_nan = function_of_one(
    "IsNan", "isnan(x)", NO_GRADIENT, "Whether elements are NaN.", flops=1, output="bool"
)

is_inf = function_of_one(
    "IsInf",
    "isinf(x)",
    NO_GRADIENT,
    "Whether elements are infinite, of either sign.",
    flops=1,
    output="bool",
)

is_finite = function_of_one(
    "IsFinite",
    "isfinite(x)",
    NO_GRADIENT,
    "Whether elements are neither infinite nor NaN.",
    flops=1,
    output="bool",
)
