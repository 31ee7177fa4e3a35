"""Special functions, elementwise: of errors, gamma, beta, zeta and Bessel."""

from __future__ import annotations

import math
from typing import Any

from flowbook.graph.definition.batching import Batching
from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.inference import broadcast_inputs, elementwise, same_as_input
from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.dtypes import FLOATS
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.numerics.scipy_special import special_of
from flowbook.graph.ops.basis.broadcasting import gradients_of_two, reduce_sum, sum_to_shape
from flowbook.graph.ops.basis.constants import convert_to_tensor, ones_like_op
from flowbook.graph.ops.math.arithmetic import subtract
from flowbook.graph.ops.math.comparison import equal, where
from flowbook.graph.ops.math.complex import sign
from flowbook.graph.ops.math.elementwise import exp, square
from flowbook.graph.ops.math.no_nan import by_derivative, multiply_no_nan, xlog1py, xlogy

__all__ = [
    "bessel_i0",
    "bessel_i0e",
    "bessel_i1",
    "bessel_i1e",
    "betainc",
    "digamma",
    "erf",
    "erfc",
    "erfinv",
    "lbeta",
    "lgamma",
    "ndtri",
    "polygamma",
    "zeta",
]


def in_dtype(function: str) -> Any:
    """A kernel that calls a function of SciPy's."""

    def kernel(xp: Any, *arguments: Any) -> Any:
        result = getattr(special_of(xp), function)(*arguments)
        return xp.asarray(result).astype(arguments[0].dtype, copy=False)

    return kernel


def _function(
    type: str,
    function: Any,
    grad: Any,
    doc: str,
    name: str | None = None,
    *,
    keeps_zeros: bool = False,
) -> OpDef:
    return OpDef(
        type,
        "x: T -> y: T",
        T=FLOATS,
        infer=same_as_input,
        kernel=in_dtype(function) if isinstance(function, str) else function,
        grad=grad,
        keeps_zeros=keeps_zeros,
        batching=Batching.ELEMENTWISE,
        cost=elementwise(flops=30),
        doc=doc,
        function=name,
    )


# Functions of errors


def _density(x: Tensor) -> Tensor:
    return exp(-square(x)) * (2 / math.sqrt(math.pi))


erf = _function(
    "Erf",
    "erf",
    lambda op, dy: dy * _density(op.inputs[0]),
    "The error function: the integral of `2 / sqrt(π) * exp(-t ** 2)` from 0 to `x`.",
    keeps_zeros=True,
)

erfc = _function(
    "Erfc",
    "erfc",
    lambda op, dy: -dy * _density(op.inputs[0]),
    "`1 - erf(x)`, elementwise, accurate where that is small.",
)

erfinv = _function(
    "Erfinv",
    "erfinv",
    by_derivative(lambda op: exp(square(op.outputs[0])) * (math.sqrt(math.pi) / 2)),
    "The inverse of `erf`, elementwise: infinite at -1 and 1, NaN beyond.",
    keeps_zeros=True,
)

ndtri = _function(
    "Ndtri",
    "ndtri",
    by_derivative(lambda op: exp(square(op.outputs[0]) * 0.5) * math.sqrt(2 * math.pi)),
    "The quantile of the normal distribution: where it reaches the probability `x`.",
)


# Gamma and zeta


def _lgamma(xp: Any, x: Any) -> Any:
    # As in C; SciPy gives -inf at -inf.
    value = special_of(xp).gammaln(x)
    return xp.where(x == -xp.inf, xp.inf, value).astype(x.dtype, copy=False)


lgamma = _function(
    "Lgamma",
    _lgamma,
    by_derivative(lambda op: digamma(op.inputs[0])),
    "The logarithm of the absolute value of the gamma function, elementwise.",
)

digamma: OpDef = _function(
    "Digamma",
    "psi",
    by_derivative(lambda op: polygamma(1.0, op.inputs[0])),
    "The derivative of `lgamma`, elementwise.",
)


def _polygamma(xp: Any, a: Any, x: Any) -> Any:
    special = special_of(xp)
    a, x = xp.broadcast_arrays(a, x)
    wide_a, wide_x = a.astype("float64"), x.astype("float64")
    signed = xp.where(wide_a % 2 == 0, -1.0, 1.0)
    value = signed * special.gamma(wide_a + 1) * special.zeta(wide_a + 1, wide_x)
    value = xp.where(wide_a == 0, special.psi(wide_x), value)
    is_order = (wide_a >= 0) & (wide_a == xp.floor(wide_a))
    return xp.where(is_order, value, xp.nan).astype(x.dtype)


def _polygamma_gradient(op: Operation, dy: Tensor) -> Any:
    a, x = op.inputs
    return gradients_of_two(op, None, multiply_no_nan(polygamma(a + 1.0, x), dy))


polygamma: OpDef = OpDef(
    "Polygamma",
    "a: T, x: T -> z: T",
    T=FLOATS,
    infer=broadcast_inputs,
    batching=Batching.ELEMENTWISE,
    kernel=_polygamma,
    grad=_polygamma_gradient,
    cost=elementwise(flops=100),
    doc="""The derivative of order `a` of `digamma` at `x`, elementwise with broadcasting.

    NaN where `a` is no whole number from 0. No gradient flows to `a`.
    """,
)


def _zeta(xp: Any, x: Any, q: Any) -> Any:
    value = special_of(xp).zeta(x, q)
    # SciPy gives NaN where every term vanishes, and infinity for NaN at a pole.
    value = xp.where((x == xp.inf) & (q > 1), 0.0, value)
    return xp.where(xp.isnan(x) | xp.isnan(q), xp.nan, value).astype(x.dtype, copy=False)


def _zeta_gradient(op: Operation, dy: Tensor) -> Any:
    x, q = op.inputs
    return gradients_of_two(op, None, multiply_no_nan(x * zeta(x + 1.0, q), -dy))


zeta: OpDef = OpDef(
    "Zeta",
    "x: T, q: T -> z: T",
    T=FLOATS,
    infer=broadcast_inputs,
    batching=Batching.ELEMENTWISE,
    kernel=_zeta,
    grad=_zeta_gradient,
    cost=elementwise(flops=100),
    doc="""The Hurwitz zeta function, the sum of `(q + n) ** -x` over n from 0, with broadcasting.

    No gradient flows to `x`.
    """,
)


# Incomplete beta


def _betainc_gradient(op: Operation, dy: Tensor) -> Any:
    a, b, x = op.inputs
    log_beta = lgamma(a) + lgamma(b) - lgamma(a + b)
    density = exp(xlogy(a - 1.0, x) + xlog1py(b - 1.0, -x) - log_beta)
    return None, None, sum_to_shape(multiply_no_nan(density, dy), x, a, b)


betainc = OpDef(
    "Betainc",
    "a: T, b: T, x: T -> z: T",
    T=FLOATS,
    infer=broadcast_inputs,
    batching=Batching.ELEMENTWISE,
    kernel=in_dtype("betainc"),
    grad=_betainc_gradient,
    cost=elementwise(flops=300),
    doc="""The regularised incomplete beta function I_x(a, b), elementwise with broadcasting.

    It is the integral of `t ** (a - 1) * (1 - t) ** (b - 1)` from 0 to `x`, divided by that to 1:
    the beta distribution function. NaN for `x` outside [0, 1]. No gradient flows to `a` and `b`.
    """,
)


@composed
def lbeta(x: Any, name: str | None = None) -> Tensor:
    """The logarithm of the absolute value of the beta function, over the last dimension.

    Args:
        x: [..., n] of a floating-point dtype.

    Returns:
        `reduce_sum(lgamma(x), -1) - lgamma(reduce_sum(x, -1))`, of the shape [...]; -inf of
        nothing.
    """
    x = convert_to_tensor(x)
    whole = lgamma(reduce_sum(x, -1))
    return subtract(reduce_sum(lgamma(x), -1), whole, name=name)


# Modified Bessel functions of the first kind


def _i1_derivative(op: Operation) -> Tensor:
    x, y = op.inputs[0], op.outputs[0]
    return bessel_i0(x) - _over(y, x)


def _i1e_gradient(op: Operation, dy: Tensor) -> Tensor:
    x, y = op.inputs[0], op.outputs[0]
    return dy * (bessel_i0e(x) - y * sign(x) - _over(y, x))


def _over(y: Tensor, x: Tensor) -> Tensor:
    """`y / x`, which tends to 0.5 where `x` does to 0."""
    is_zero = equal(x, 0)
    one = ones_like_op(x)
    return where(is_zero, one * 0.5, y / where(is_zero, one, x))


bessel_i0: OpDef = _function(
    "BesselI0",
    "i0",
    by_derivative(lambda op: bessel_i1(op.inputs[0])),
    "The modified Bessel function of the first kind of order 0, elementwise.",
    "bessel_i0",
)

bessel_i0e: OpDef = _function(
    "BesselI0e",
    "i0e",
    lambda op, dy: dy * (bessel_i1e(op.inputs[0]) - op.outputs[0] * sign(op.inputs[0])),
    "`exp(-abs(x)) * bessel_i0(x)`, elementwise, without overflow.",
    "bessel_i0e",
)

bessel_i1: OpDef = _function(
    "BesselI1",
    "i1",
    by_derivative(_i1_derivative),
    "The modified Bessel function of the first kind of order 1, elementwise.",
    "bessel_i1",
    keeps_zeros=True,
)

bessel_i1e: OpDef = _function(
    "BesselI1e",
    "i1e",
    _i1e_gradient,
    "`exp(-abs(x)) * bessel_i1(x)`, elementwise, without overflow.",
    "bessel_i1e",
    keeps_zeros=True,
)
