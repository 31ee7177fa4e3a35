"""Quotients and products that are 0, not NaN, where a factor of 0 meets what is not finite."""

from __future__ import annotations

from typing import Any

from flowbook.graph.definition.inference import broadcast_inputs, elementwise
from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.dtypes import INEXACT
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.broadcasting import gradients_of_two
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.conjugation import conjugate
from flowbook.graph.ops.basis.constants import convert_to_tensor, ones_like_op
from flowbook.graph.ops.math.comparison import not_equal

__all__ = ["div_no_nan", "multiply_no_nan", "reciprocal_no_nan", "xdivy", "xlog1py", "xlogy"]


def _div_gradient(op: Operation, dz: Tensor) -> Any:
    y = conjugate(op.inputs[1])
    dx = div_no_nan(dz, y)
    return gradients_of_two(op, dx, -dx * conjugate(op.outputs[0]))


div_no_nan: OpDef = OpDef(
    "DivNoNan",
    "x: T, y: T -> z: T",
    T=INEXACT,
    infer=broadcast_inputs,
    expression="where(equal(y, 0), 0, divide(x, where(equal(y, 0), 1, y)))",
    grad=_div_gradient,
    cost=elementwise(flops=4),
    doc="""The quotient `x / y`, and 0 where `y` is 0, elementwise with broadcasting.

    >>> import flowbook as fb
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.div_no_nan([3.0, 3.0], [2.0, 0.0])))
    [1.5 0. ]
    """,
)


def reciprocal_no_nan(x: Any, name: str | None = None) -> Tensor:
    """`1 / x`, and 0 where `x` is 0, elementwise; of a floating-point or complex dtype."""
    x = convert_to_tensor(x)
    return div_no_nan(ones_like_op(x), x, name=name)


def _product_gradient(op: Operation, dz: Tensor) -> Any:
    x, y = op.inputs
    return gradients_of_two(
        op, multiply_no_nan(dz, conjugate(y)), multiply_no_nan(conjugate(x), dz)
    )


multiply_no_nan: OpDef = OpDef(
    "MulNoNan",
    "x: T, y: T -> z: T",
    T=INEXACT,
    infer=broadcast_inputs,
    expression="multiply(where(equal(y, 0), 0, x), y)",
    grad=_product_gradient,
    cost=elementwise(flops=3),
    doc="`x * y`, and 0 where `y` is 0, whatever `x` is: elementwise with broadcasting.",
    function="multiply_no_nan",
)


def _counts(x: Tensor) -> Tensor:
    """1 where a factor is not 0, else 0."""
    return cast(not_equal(x, 0), x.dtype)


def _xlogy_gradient(op: Operation, dz: Tensor) -> Any:
    x, y = op.inputs
    return gradients_of_two(op, dz * conjugate(xlogy(_counts(x), y)), dz * conjugate(xdivy(x, y)))


xlogy: OpDef = OpDef(
    "Xlogy",
    "x: T, y: T -> z: T",
    T=INEXACT,
    infer=broadcast_inputs,
    expression="where(equal(x, 0), 0, multiply(x, log(where(equal(x, 0), 1, y))))",
    grad=_xlogy_gradient,
    cost=elementwise(flops=14),
    doc="""`x * log(y)`, and 0 where `x` is 0, whatever `y` is: elementwise with broadcasting.

    An entropy is `-reduce_sum(xlogy(p, p))`.
    """,
)


def _xlog1py_gradient(op: Operation, dz: Tensor) -> Any:
    x, y = op.inputs
    return gradients_of_two(
        op, dz * conjugate(xlog1py(_counts(x), y)), dz * conjugate(xdivy(x, y + 1.0))
    )


xlog1py: OpDef = OpDef(
    "Xlog1py",
    "x: T, y: T -> z: T",
    T=INEXACT,
    infer=broadcast_inputs,
    expression="where(equal(x, 0), 0, multiply(x, log1p(where(equal(x, 0), 1, y))))",
    grad=_xlog1py_gradient,
    cost=elementwise(flops=14),
    doc="""`x * log(1 + y)`, accurate for small `y`, and 0 where `x` is 0, whatever `y` is.

    Elementwise with broadcasting.
    """,
)


def _xdivy_gradient(op: Operation, dz: Tensor) -> Any:
    x, y = op.inputs
    return gradients_of_two(
        op, dz * conjugate(xdivy(_counts(x), y)), -dz * conjugate(xdivy(op.outputs[0], y))
    )


xdivy: OpDef = OpDef(
    "Xdivy",
    "x: T, y: T -> z: T",
    T=INEXACT,
    infer=broadcast_inputs,
    expression="where(equal(x, 0), 0, divide(x, where(equal(x, 0), 1, y)))",
    grad=_xdivy_gradient,
    cost=elementwise(flops=4),
    doc="`x / y`, and 0 where `x` is 0, whatever `y` is: elementwise with broadcasting.",
)
