"""Complex numbers and their real parts.

The gradient of a real loss by a complex tensor z = x + iy is dL/dx + i dL/dy, as in TensorFlow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowbook.graph.definition.inference import broadcast_inputs, elementwise, same_as_input
from flowbook.graph.definition.op_def import REQUIRED, OpDef
from flowbook.graph.model.dtypes import (
    COMPLEX,
    NUMBERS,
    REALS,
    DType,
    complex64,
    complex128,
    float32,
    float64,
)
from flowbook.graph.model.errors import InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Arithmetic, Tensor
from flowbook.graph.ops.basis.broadcasting import gradients_of_two
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.conjugation import conjugate
from flowbook.graph.ops.basis.constants import convert_to_tensor, numbers, zeros_like_op
from flowbook.graph.ops.basis.sparse_tensor import SparseTensor
from flowbook.graph.ops.math.comparison import less, where
from flowbook.graph.ops.math.no_nan import div_no_nan

__all__ = ["abs", "angle", "complex", "imag", "real", "sign"]

_REAL = {complex64: float32, complex128: float64}
_COMPLEX = {float32: complex64, float64: complex128}


def _complex(xp: Any, real: Any, imag: Any, Tout: DType) -> Any:
    joined = xp.empty(xp.broadcast_shapes(real.shape, imag.shape), Tout.numpy)
    joined.real, joined.imag = real, imag
    return joined


def _joined(real: Tensor, imag: Tensor, Tout: DType) -> Shape:
    _check_made(Tout, _COMPLEX[real.dtype])
    return broadcast_inputs(real, imag)


def _taken_apart(input: Tensor, Tout: DType) -> Shape:
    _check_made(Tout, _REAL[input.dtype])
    return input.shape


def _check_made(Tout: DType, made: DType) -> None:
    if Tout is not made:
        raise InvalidTypeError(f"what is made is {made.name}, not {Tout!r}")


complex_op = OpDef(
    "Complex",
    "real: T, imag: T -> out: Tout",
    T=(float32, float64),
    attributes={"Tout": REQUIRED},
    infer=_joined,
    kernel=_complex,
    grad=lambda op, dz: gradients_of_two(op, real_op.public(dz), imag_op.public(dz)),
    cost=elementwise(),
)


@complex_op.front
def complex(real: Any, imag: Any, name: str | None = None) -> Tensor:
    """Complex numbers from their real and imaginary parts, elementwise with broadcasting.

    Args:
        real: float32 or float64.
        imag: of the same dtype.

    Returns:
        complex64 or complex128.

    >>> import flowbook as fb
    >>> fb.complex([1.0, 2.0], [0.5, -1.0]).dtype
    fb.complex64
    """
    if not isinstance(real, Arithmetic):
        given = imag.dtype if isinstance(imag, Arithmetic) else None  # type: ignore[attr-defined]
        real = convert_to_tensor(real, given)
    dtype = real.dtype
    if dtype not in _COMPLEX:
        raise InvalidTypeError(
            f"parts of complex numbers are float32 or float64, not {dtype.name}",
            hint="fb.cast converts",
        )
    return complex_op(real, imag, Tout=_COMPLEX[dtype], name=name)


def _part(type: str, kernel: Callable[..., Any], grad: Any, aliases: Any, flops: int) -> OpDef:
    return OpDef(
        type,
        "input: T -> output: Tout",
        T=COMPLEX,
        attributes={"Tout": REQUIRED},
        infer=_taken_apart,
        kernel=kernel,
        grad=grad,
        aliases=aliases,
        keeps_zeros=True,
        only_moves=not flops,
        cost=elementwise(flops),
    )


def _as_complex(x: Tensor) -> Tensor:
    """Real numbers as complex ones."""
    return cast(x, _COMPLEX[x.dtype])


def _angle_gradient(op: Operation, dy: Tensor) -> Tensor:
    # i z / |z|^2, which is at right angles to z.
    z = op.inputs[0]
    turned: Tensor = complex_op(-imag(z), real(z), Tout=z.dtype)
    distance = _as_complex(complex_abs(z))
    return div_no_nan(div_no_nan(turned, distance), distance) * _as_complex(dy)


real_op: OpDef = _part("Real", lambda xp, x: x.real, lambda op, dy: _as_complex(dy), {0: 0}, 0)
imag_op: OpDef = _part(
    "Imag",
    lambda xp, x: x.imag,
    lambda op, dy: complex_op(zeros_like_op(dy), dy, Tout=op.inputs[0].dtype),
    {0: 0},
    0,
)
angle_op = _part("Angle", lambda xp, x: xp.angle(x), _angle_gradient, {}, 20)
complex_abs_op = _part(
    "ComplexAbs",
    lambda xp, x: xp.absolute(x),
    lambda op, dy: _as_complex(dy) * sign(op.inputs[0]),
    {},
    8,
)


def _of_parts(op_def: OpDef, x: Tensor, name: str | None) -> Tensor:
    return op_def(x, Tout=_REAL[x.dtype], name=name)


@complex_abs_op.front
def complex_abs(x: Any, name: str | None = None) -> Tensor:
    """The magnitude of complex numbers; `abs` builds it."""
    return _of_parts(complex_abs_op, x, name)


@real_op.front
def real(input: Any, name: str | None = None) -> Tensor:
    """The real part, elementwise; real numbers as they are."""
    input = numbers(input)
    return _of_parts(real_op, input, name) if input.dtype.is_complex else input


@imag_op.front
def imag(input: Any, name: str | None = None) -> Tensor:
    """The imaginary part, elementwise; 0 of real numbers."""
    input = numbers(input)
    if not input.dtype.is_complex:
        return zeros_like_op(input, name=name)
    return _of_parts(imag_op, input, name)


@angle_op.front
def angle(input: Any, name: str | None = None) -> Tensor:
    """The angle of complex numbers in radians, from -π to π, elementwise; of real ones 0 or π.

    The gradient at 0 is 0.

    >>> import flowbook as fb
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.angle(fb.constant([2 + 2j, -1j]))))
    [ 0.78539816 -1.57079633]
    """
    input = numbers(input)
    if not (input.dtype.is_complex or input.dtype.is_floating):
        raise InvalidTypeError(f"an integer ({input.dtype.name}) has no angle of its dtype")
    if input.dtype.is_complex:
        return _of_parts(angle_op, input, name)
    zeros = zeros_like_op(input)
    return where(less(input, zeros), zeros + np.pi, zeros, name=name)


abs_op = OpDef(
    "Abs",
    "x: T -> y: T",
    T=REALS,
    infer=same_as_input,
    expression="absolute(x)",
    grad=lambda op, dy: dy * sign(op.inputs[0]),
    spreads_nonfinite=("x",),
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
    x = x if isinstance(x, SparseTensor) else numbers(x)
    op_def = complex_abs if x.dtype.is_complex else abs_op
    return op_def(x, name=name)


def _sign_gradient(op: Operation, dy: Tensor) -> Tensor:
    x, y = op.inputs[0], op.outputs[0]
    if not x.dtype.is_complex:
        return zeros_like_op(dy)
    # On the unit circle only what goes around it counts.
    along = real(dy * conjugate(y))
    around = dy - y * complex(along, zeros_like_op(along))
    size = complex_abs(x)
    return div_no_nan(around, complex(size, zeros_like_op(size)))


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
