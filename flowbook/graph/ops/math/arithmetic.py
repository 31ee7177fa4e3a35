"""Arithmetic on numbers, elementwise, with NumPy's broadcasting.

Gradients of complex operands follow TensorFlow: the conjugate of the derivative, so that a step
against the gradient goes downhill.
"""

from __future__ import annotations

from typing import Any

from flowbook.graph.definition.batching import JOINED, Batching
from flowbook.graph.definition.inference import broadcast_inputs, elementwise, same_as_input
from flowbook.graph.definition.op_def import NO_GRADIENT, OpDef
from flowbook.graph.model.dtypes import (
    INEXACT,
    NUMBERS,
    REALS,
    DType,
    float32,
    float64,
)
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Arithmetic, Tensor
from flowbook.graph.ops.basis.broadcasting import gradients_of_two
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.conjugation import conj_op, conjugate
from flowbook.graph.ops.basis.constants import convert_to_tensor, zeros_like_op
from flowbook.graph.ops.math.comparison import greater_equal, less_equal, where_op
from flowbook.graph.ops.math.no_nan import gradient_over, multiply_no_nan

__all__ = [
    "add",
    "add_n",
    "divide",
    "floordiv",
    "maximum",
    "minimum",
    "mod",
    "multiply",
    "negative",
    "squared_difference",
    "subtract",
]

add = OpDef(
    "Add",
    "x: T, y: T -> z: T",
    T=NUMBERS,
    infer=broadcast_inputs,
    expression="add(x, y)",
    grad=lambda op, dz: gradients_of_two(op, dz, dz),
    spreads_nonfinite=("x", "y"),
    computes_shapes=True,
    for_strings="fb.strings.join([x, y]) puts strings together",
    cost=elementwise(),
    doc="""The sum `x + y`, elementwise with broadcasting; both of one numeric dtype.

    Integers wrap around.
    """,
)

subtract = OpDef(
    "Sub",
    "x: T, y: T -> z: T",
    T=NUMBERS,
    infer=broadcast_inputs,
    expression="subtract(x, y)",
    grad=lambda op, dz: gradients_of_two(op, dz, -dz),
    spreads_nonfinite=("x", "y"),
    computes_shapes=True,
    cost=elementwise(),
    doc="The difference `x - y`, elementwise with broadcasting; both of one numeric dtype.",
    function="subtract",
)

multiply = OpDef(
    "Mul",
    "x: T, y: T -> z: T",
    T=NUMBERS,
    infer=broadcast_inputs,
    expression="multiply(x, y)",
    grad=lambda op, dz: gradients_of_two(
        op, dz * conjugate(op.inputs[1]), dz * conjugate(op.inputs[0])
    ),
    spreads_nonfinite=("x", "y"),
    computes_shapes=True,
    cost=elementwise(),
    doc="The product `x * y`, elementwise with broadcasting; both of one numeric dtype.",
    function="multiply",
)


def _div_gradient(op: Operation, dz: Tensor) -> Any:
    dx = gradient_over(dz, conjugate(op.inputs[1]))
    return gradients_of_two(op, dx, multiply_no_nan(conjugate(op.outputs[0]), -dx))


div_op = OpDef(
    "Div",
    "x: T, y: T -> z: T",
    T=INEXACT,
    infer=broadcast_inputs,
    expression="divide(x, y)",
    grad=_div_gradient,
    spreads_nonfinite=("x",),
    cost=elementwise(),
)


@div_op.front
def divide(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The quotient `x / y`, elementwise with broadcasting: true division, as NumPy's.

    Args:
        x: of a numeric dtype.
        y: of the same dtype.

    Returns:
        A quotient of their dtype; for integers of float32 (8 and 16 bits) or float64.

    >>> import flowbook as fb
    >>> fb.divide(fb.constant([3, 4]), 2).dtype
    fb.float64
    """
    given = _given_dtype(x, y)
    if given is None:
        x = convert_to_tensor(x)
        given = x.dtype
    if given.is_integer:
        wanted = quotient_dtype(given)
        x, y = (
            cast(v, wanted) if isinstance(v, Arithmetic) and v.dtype is given else v  # type: ignore[attr-defined]
            for v in (x, y)
        )
    return div_op(x, y, name=name)


def _given_dtype(*values: Any) -> DType | None:
    """The dtype of the first tensor among values."""
    return next((v.dtype for v in values if isinstance(v, Arithmetic)), None)  # type: ignore[attr-defined]


def quotient_dtype(dtype: DType) -> DType:
    """The dtype of the true quotient of two integers."""
    return float32 if dtype.size <= 2 else float64


def refuse_zero(xp: Any, x: Any, y: Any) -> None:
    """Raise the error for a division of integers by zero, unless nothing is divided."""
    if y.dtype.kind == "f" or not (x.size and y.size):
        return
    # Of unsigned numbers none is below 0: looking for the least takes half as long as for a zero.
    if not y.view(f"u{y.dtype.itemsize}").min():
        raise InvalidArgumentError("an integer is divided by zero")


def _floordiv(xp: Any, x: Any, y: Any) -> Any:
    refuse_zero(xp, x, y)
    # As TensorFlow's, of what the division gives: NumPy's floor_divide makes NaN of infinities.
    return xp.floor(xp.divide(x, y)) if x.dtype.kind == "f" else xp.floor_divide(x, y)


floordiv = OpDef(
    "FloorDiv",
    "x: T, y: T -> z: T",
    T=REALS,
    infer=broadcast_inputs,
    batching=Batching.ELEMENTWISE,
    kernel=_floordiv,
    grad=NO_GRADIENT,
    computes_shapes=True,
    cost=elementwise(flops=2),
    doc="""The quotient `x // y` rounded down, elementwise with broadcasting.

    Dividing an integer by zero is an InvalidArgumentError in the run.
    """,
    function="floordiv",
)


def _mod(xp: Any, x: Any, y: Any) -> Any:
    refuse_zero(xp, x, y)
    return xp.remainder(x, y)


mod = OpDef(
    "Mod",
    "x: T, y: T -> z: T",
    T=REALS,
    infer=broadcast_inputs,
    batching=Batching.ELEMENTWISE,
    kernel=_mod,
    grad=lambda op, dz: gradients_of_two(op, dz, multiply_no_nan(floordiv(*op.inputs), -dz)),
    computes_shapes=True,
    cost=elementwise(flops=2),
    doc="""The remainder `x - (x // y) * y`, elementwise with broadcasting.

    It has the sign of `y`. Dividing an integer by zero is an InvalidArgumentError in the run.
    """,
)


negative = OpDef(
    "Neg",
    "x: T -> y: T",
    T=NUMBERS,
    infer=same_as_input,
    expression="negative(x)",
    grad=lambda op, dy: -dy,
    spreads_nonfinite=("x",),
    computes_shapes=True,
    cost=elementwise(),
    doc="`-x`, elementwise.",
    function="negative",
    keeps_zeros=True,
)


def _larger_gradient(is_x: OpDef) -> Any:
    def gradient(op: Operation, dz: Tensor) -> Any:
        chosen = is_x(*op.inputs)
        zero = zeros_like_op(dz)
        return gradients_of_two(op, where_op(chosen, dz, zero), where_op(chosen, zero, dz))

    return gradient


maximum = OpDef(
    "Maximum",
    "x: T, y: T -> z: T",
    T=REALS,
    infer=broadcast_inputs,
    expression="maximum(x, y)",
    grad=_larger_gradient(greater_equal),
    keeps_finite=True,
    computes_shapes=True,
    cost=elementwise(),
    doc="""The larger of `x` and `y`, elementwise with broadcasting; NaN where either is.

    Where both are equal, the gradient goes to `x`.
    """,
)

minimum = OpDef(
    "Minimum",
    "x: T, y: T -> z: T",
    T=REALS,
    infer=broadcast_inputs,
    expression="minimum(x, y)",
    grad=_larger_gradient(less_equal),
    keeps_finite=True,
    computes_shapes=True,
    cost=elementwise(),
    doc="""The smaller of `x` and `y`, elementwise with broadcasting; NaN where either is.

    Where both are equal, the gradient goes to `x`.
    """,
)


def _difference_gradient(op: Operation, dz: Tensor) -> Any:
    dx = dz * 2 * (op.inputs[0] - op.inputs[1])
    return gradients_of_two(op, dx, -dx)


squared_difference_op = OpDef(
    "SquaredDifference",
    "x: T, y: T -> z: T",
    T=REALS,
    infer=broadcast_inputs,
    expression="square(subtract(x, y))",
    grad=_difference_gradient,
    cost=elementwise(flops=2),
)


@squared_difference_op.front
def squared_difference(x: Any, y: Any, name: str | None = None) -> Tensor:
    """`(x - y) ** 2`, elementwise with broadcasting; both of one numeric dtype.

    Of complex numbers the square of their distance, in their own dtype.
    """
    given = _given_dtype(x, y)
    if given is None:
        x = convert_to_tensor(x)
        given = x.dtype
    if given.is_complex:
        difference = subtract(x, y)
        return multiply(difference, conj_op(difference), name=name)
    return squared_difference_op(x, y, name=name)


def _all_alike(inputs: list[Tensor]) -> Shape:
    shape = inputs[0].shape
    for tensor in inputs[1:]:
        shape = shape.merge(tensor.shape)
    return shape


def _add_n(xp: Any, first: Any, *others: Any) -> Any:
    total = first
    for other in others:
        if other.shape != first.shape:
            raise InvalidArgumentError(
                f"the shapes {list(first.shape)} and {list(other.shape)} differ",
                hint="add_n does not broadcast; x + y does",
            )
        # Only the first sum is new memory: the others may overwrite it.
        if total is first or not total.ndim:
            total = xp.add(total, other)
        else:
            xp.add(total, other, total)
    return total if others else first.copy()


add_n = OpDef(
    "AddN",
    "inputs: N*T -> sum: T",
    T=NUMBERS,
    infer=_all_alike,
    kernel=_add_n,
    grad=lambda op, dy: [dy] * len(op.inputs),
    spreads_nonfinite=("inputs",),
    batching=JOINED,
    cost=lambda op: (len(op.inputs) - 1) * (op.outputs[0].shape.size or 0),
    doc="""The sum of a list of tensors of one dtype and shape. It does not broadcast.""",
    function="add_n",
)
