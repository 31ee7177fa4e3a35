"""Arithmetic on numbers, elementwise, with NumPy's broadcasting.

Gradients of complex operands follow TensorFlow: the conjugate of the derivative, so that a step
against the gradient goes downhill.
"""

from __future__ import annotations

from typing import Any

from flowbook.graph.definition.inference import broadcast_inputs, elementwise, same_as_input
from flowbook.graph.definition.located import located
from flowbook.graph.definition.op_def import NO_GRADIENT, OpDef
from flowbook.graph.model.dtypes import (
    COMPLEX,
    INEXACT,
    NUMBERS,
    REALS,
    SMALL,
    DType,
    float32,
    float64,
)
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.registry import op_named
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.shape import broadcast as broadcast_shapes
from flowbook.graph.model.tensor import Arithmetic, Tensor
from flowbook.graph.numerics.element_choices import clipped
from flowbook.graph.ops.arrays.broadcasting import gradients_of_two, sum_to_shape
from flowbook.graph.ops.arrays.constants import convert_to_tensor, ones_like_op, zeros_like_op
from flowbook.graph.ops.sparse.indexed_slices import IndexedSlices
from flowbook.graph.ops.sparse.sparse_tensor import SparseTensor

conj_op: OpDef = OpDef(
    "Conj",
    "x: T -> y: T",
    T=COMPLEX,
    infer=same_as_input,
    expression="conjugate(x)",
    grad=lambda op, dy: conj_op(dy),
    cost=elementwise(),
)


@conj_op.front
def conj(x: Any, name: str | None = None) -> Tensor:
    """The complex conjugate, elementwise; real numbers are their own."""
    __tracebackhide__ = True
    with located("Conj"):
        x = numbers(x)
    result: Tensor = conj_op(x, name=name) if x.dtype.is_complex else x
    return result


def numbers(x: Any) -> Tensor:
    """A tensor of a numeric dtype.

    Raises:
        InvalidTypeError: if it is of another one.
    """
    x = convert_to_tensor(x)
    if not x.dtype.is_numeric:
        raise InvalidTypeError(
            f"{x.name} is {x.dtype.name} where numbers are wanted",
            hint="convert it: fb.cast(x, fb.float32)" if x.dtype in SMALL else None,
        )
    return x  # type: ignore[no-any-return]


def conjugate(x: Tensor) -> Tensor:
    """The conjugate of a complex tensor; a real one as it is."""
    return conj_op(x) if x.dtype.is_complex else x


add = OpDef(
    "Add",
    "x: T, y: T -> z: T",
    T=NUMBERS,
    infer=broadcast_inputs,
    expression="add(x, y)",
    grad=lambda op, dz: gradients_of_two(op, dz, dz),
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
    cost=elementwise(),
    doc="The product `x * y`, elementwise with broadcasting; both of one numeric dtype.",
    function="multiply",
)


def _div_gradient(op: Operation, dz: Tensor) -> Any:
    dx = dz / conjugate(op.inputs[1])
    return gradients_of_two(op, dx, -dx * conjugate(op.outputs[0]))


div_op = OpDef(
    "Div",
    "x: T, y: T -> z: T",
    T=INEXACT,
    infer=broadcast_inputs,
    expression="divide(x, y)",
    grad=_div_gradient,
    cost=elementwise(),
)


@div_op.front
def divide(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The quotient `x / y`, elementwise with broadcasting: true division, as NumPy's.

    Args:
        x: of a numeric dtype.
        y: of the same dtype.
        name: the operation's name.

    Returns:
        A quotient of their dtype; for integers of float32 (8 and 16 bits) or float64.

    >>> import flowbook as fb
    >>> fb.divide(fb.constant([3, 4]), 2).dtype
    fb.float64
    """
    __tracebackhide__ = True
    given = _given_dtype(x, y)
    if given is None:
        x = convert_to_tensor(x)
        given = x.dtype
    if given.is_integer:
        cast = op_named("Cast").public
        wanted = quotient_dtype(given)
        x, y = (
            cast(v, wanted) if isinstance(v, Arithmetic) and v.dtype is given else v  # type: ignore[attr-defined]
            for v in (x, y)
        )
    result: Tensor = div_op(x, y, name=name)
    return result


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
    kernel=_floordiv,
    grad=NO_GRADIENT,
    aliases={},
    cost=elementwise(),
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
    kernel=_mod,
    grad=lambda op, dz: gradients_of_two(op, dz, -dz * floordiv(*op.inputs)),
    aliases={},
    cost=elementwise(),
    doc="""The remainder `x - (x // y) * y`, elementwise with broadcasting.

    It has the sign of `y`. Dividing an integer by zero is an InvalidArgumentError in the run.
    """,
)


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
    where, equal = op_named("Where"), op_named("Equal")
    if x.dtype.is_integer:
        return None, None
    # x ** (0 - 1) would be infinite at x = 0, where the derivative of x ** 0 is 0.
    lowered = where(equal(y, zeros_like_op(y)), zeros_like_op(y), y - 1)
    dx = dz * conjugate(y * pow(x, lowered))
    # The logarithm counts only where it exists.
    exists = op_named("NotEqual" if x.dtype.is_complex else "Greater")(x, zeros_like_op(x))
    logarithm = op_named("Log")(where(exists, x, ones_like_op(x)))
    return gradients_of_two(op, dx, dz * conjugate(op.outputs[0] * logarithm))


pow = OpDef(
    "Pow",
    "x: T, y: T -> z: T",
    T=NUMBERS,
    infer=broadcast_inputs,
    kernel=_pow,
    grad=_pow_gradient,
    aliases={},
    cost=elementwise(flops=20),
    doc="""The power `x ** y`, elementwise with broadcasting; both of one numeric dtype.

    A negative power of an integer is an InvalidArgumentError in the run. Where a real `x` is not
    positive, or a complex one is zero, the gradient with respect to `y` is zero.
    """,
    function="pow",
)

negative = OpDef(
    "Neg",
    "x: T -> y: T",
    T=NUMBERS,
    infer=same_as_input,
    expression="negative(x)",
    grad=lambda op, dy: -dy,
    cost=elementwise(),
    doc="`-x`, elementwise.",
    function="negative",
    keeps_zeros=True,
)

abs_op = OpDef(
    "Abs",
    "x: T -> y: T",
    T=REALS,
    infer=same_as_input,
    expression="absolute(x)",
    grad=lambda op, dy: dy * sign(op.inputs[0]),
    cost=elementwise(),
    function="abs",
    keeps_zeros=True,
)


@abs_op.front
def abs(x: Any, name: str | None = None) -> Tensor:
    """The absolute value, elementwise; of complex numbers their magnitude, a real number.

    The gradient at 0 is 0.

    >>> import flowbook as fb
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.abs(fb.constant([3 + 4j]))))
    [5.]
    """
    __tracebackhide__ = True
    with located("Abs"):
        x = x if isinstance(x, SparseTensor) else numbers(x)
    op_def = op_named("ComplexAbs").public if x.dtype.is_complex else abs_op
    result: Tensor = op_def(x, name=name)
    return result


def _sign_gradient(op: Operation, dy: Tensor) -> Tensor:
    x, y = op.inputs[0], op.outputs[0]
    if not x.dtype.is_complex:
        return zeros_like_op(dy)  # type: ignore[no-any-return]
    # On the unit circle only what goes around it counts.
    real, complex_ = op_named("Real").public, op_named("Complex").public
    along = real(dy * conjugate(y))
    around = dy - y * complex_(along, zeros_like_op(along))
    size = op_named("ComplexAbs").public(x)
    return op_named("DivNoNan")(around, complex_(size, zeros_like_op(size)))  # type: ignore[no-any-return]


sign: OpDef = OpDef(
    "Sign",
    "x: T -> y: T",
    T=NUMBERS,
    infer=same_as_input,
    expression="sign(x)",
    grad=_sign_gradient,
    cost=elementwise(),
    doc="""-1, 0 or 1 where `x` is negative, zero or positive; NaN stays.

    Of a complex number `x / abs(x)`, and 0 of 0. The gradient of real ones is zeros.
    """,
    keeps_zeros=True,
)


def _larger_gradient(is_x: str) -> Any:
    def gradient(op: Operation, dz: Tensor) -> Any:
        chosen = op_named(is_x)(*op.inputs)
        where, zero = op_named("Where"), zeros_like_op(dz)
        return gradients_of_two(op, where(chosen, dz, zero), where(chosen, zero, dz))

    return gradient


maximum = OpDef(
    "Maximum",
    "x: T, y: T -> z: T",
    T=REALS,
    infer=broadcast_inputs,
    expression="maximum(x, y)",
    grad=_larger_gradient("GreaterEqual"),
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
    grad=_larger_gradient("LessEqual"),
    cost=elementwise(),
    doc="""The smaller of `x` and `y`, elementwise with broadcasting; NaN where either is.

    Where both are equal, the gradient goes to `x`.
    """,
)


def _clip_gradient(op: Operation, dy: Tensor) -> Any:
    x, low, high = op.inputs
    less, where, zero = op_named("Less"), op_named("Where"), zeros_like_op(dy)
    is_low, is_high = less(x, low), less(high, op_named("Maximum")(x, low))
    inner = where(op_named("Or")(is_low, is_high), zero, dy)
    lower = where(is_high, zero, where(is_low, dy, zero))
    return (
        inner,
        sum_to_shape(lower, low, x, high),
        sum_to_shape(where(is_high, dy, zero), high, x, low),
    )


def _clipped(x: Tensor, low: Tensor, high: Tensor) -> Shape:
    whole = broadcast_shapes(x.shape, broadcast_shapes(low.shape, high.shape))
    if not whole.is_compatible_with(x.shape):
        raise InvalidArgumentError(
            f"the limits of shapes {low.shape} and {high.shape} do not broadcast to {x.shape}"
        )
    return x.shape


def _clip(xp: Any, x: Any, low: Any, high: Any) -> Any:
    result = clipped(xp, x, low, high)
    if result.shape != x.shape:
        raise InvalidArgumentError(
            f"the limits of shapes {list(low.shape)} and {list(high.shape)} do not broadcast to "
            f"{list(x.shape)}"
        )
    return result


clip_op = OpDef(
    "ClipByValue",
    "x: T, low: T, high: T -> y: T",
    T=REALS,
    infer=_clipped,
    kernel=_clip,
    grad=_clip_gradient,
    aliases={},
    cost=elementwise(flops=2),
)


@clip_op.front
def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any, name: str | None = None) -> Any:
    """Values outside two limits replaced by the limit: `minimum(maximum(t, min), max)`.

    Args:
        t: of a real dtype, or IndexedSlices, whose rows are clipped as they are.
        clip_value_min: the lower limit, of `t`'s dtype and a shape that broadcasts to `t`'s.
        clip_value_max: the upper limit, likewise.
        name: the operation's name.

    Returns:
        What `t` was: a tensor or IndexedSlices.
    """
    __tracebackhide__ = True
    if isinstance(t, IndexedSlices):
        rows = clip_op(t.values, clip_value_min, clip_value_max, name=name)
        return IndexedSlices(rows, t.indices, t.dense_shape)
    return clip_op(t, clip_value_min, clip_value_max, name=name)


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
    __tracebackhide__ = True
    given = _given_dtype(x, y)
    if given is None:
        x = convert_to_tensor(x)
        given = x.dtype
    if given.is_complex:
        difference = subtract(x, y)
        product: Tensor = multiply(difference, conj_op(difference), name=name)
        return product
    result: Tensor = squared_difference_op(x, y, name=name)
    return result


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
    aliases={},
    cost=lambda op: (len(op.inputs) - 1) * (op.outputs[0].shape.size or 0),
    doc="""The sum of a list of tensors of one dtype and shape. It does not broadcast.""",
    function="add_n",
)
