"""Quotients and products that are 0, not NaN, where a factor of 0 meets what is not finite.

So are gradients: where nothing depends on a result, nothing does on what it was computed from,
however steep the function is there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

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
    return gradients_of_two(op, dx, multiply_no_nan(conjugate(op.outputs[0]), -dx))


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


def _without_nan(xp: Any, z: Any, zero: Any) -> Any:
    """A result, and 0 where it is NaN because another array is 0."""
    if xp is np and not z.ndim:
        # As in a loop over numbers, where a call of NumPy's takes ten times as long.
        return zero[()] if z != z and zero == 0 else z
    is_lost = xp.isnan(z)
    # NaNs are rare: to look for them takes a third of what choosing between two arrays does.
    # Other devices would have to be waited for.
    if xp is np and not is_lost.any():
        return z
    return xp.where(is_lost & (zero == 0), zero, z)


multiply_no_nan: OpDef = OpDef(
    "MulNoNan",
    "x: T, y: T -> z: T",
    T=INEXACT,
    infer=broadcast_inputs,
    kernel=lambda xp, x, y: _without_nan(xp, x * y, y),
    expression="where(logical_and(equal(y, 0), isnan(multiply(x, y))), y, multiply(x, y))",
    grad=_product_gradient,
    cost=elementwise(flops=5),
    doc="`x * y`, and 0 where `y` is 0, whatever `x` is: elementwise with broadcasting.",
    function="multiply_no_nan",
)


def by_derivative(derivative: Callable[[Operation], Tensor]) -> Callable[..., Tensor]:
    """The gradient function of an elementwise function whose derivative may be infinite."""
    return lambda op, dy: multiply_no_nan(derivative(op), dy)


def _share_gradient(op: Operation, dz: Tensor) -> Any:
    by_dy = gradient_over(dz, conjugate(op.inputs[1]))
    return gradients_of_two(op, by_dy, multiply_no_nan(conjugate(op.outputs[0]), -by_dy))


gradient_over: OpDef = OpDef(
    "GradientOver",
    "dy: T, x: T -> dx: T",
    T=INEXACT,
    infer=broadcast_inputs,
    kernel=lambda xp, dy, x: _without_nan(xp, dy / x, dy),
    expression="where(logical_and(equal(dy, 0), isnan(divide(dy, x))), dy, divide(dy, x))",
    grad=_share_gradient,
    cost=elementwise(flops=5),
    doc="""`dy / x`, and 0 where `dy` is 0, elementwise with broadcasting.

    It is linear in `dy`, as gradients are: what is 0 there still has a derivative, unlike in
    `xdivy`.
    """,
)


def _counts(x: Tensor) -> Tensor:
    """1 where a factor is not 0, else 0."""
    return cast(not_equal(x, 0), x.dtype)


def _gradients(op: Operation, by_x: Tensor, by_y: Tensor, dz: Tensor) -> Any:
    return gradients_of_two(
        op, multiply_no_nan(conjugate(by_x), dz), multiply_no_nan(conjugate(by_y), dz)
    )


def _xlogy_gradient(op: Operation, dz: Tensor) -> Any:
    x, y = op.inputs
    return _gradients(op, xlogy(_counts(x), y), xdivy(x, y), dz)


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
    return _gradients(op, xlog1py(_counts(x), y), xdivy(x, y + 1.0), dz)


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
    return _gradients(op, xdivy(_counts(x), y), -xdivy(op.outputs[0], y), dz)


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
