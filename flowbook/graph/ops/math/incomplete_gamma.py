"""The incomplete gamma functions, and their derivatives of any order."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.definition.batching import Batching
from flowbook.graph.definition.inference import broadcast_inputs, elementwise
from flowbook.graph.definition.op_def import HOST, OpDef
from flowbook.graph.model.dtypes import FLOATS
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.numerics.gamma_orders import density_derivatives, order_derivative
from flowbook.graph.numerics.scipy_special import special_of
from flowbook.graph.ops.basis.broadcasting import gradients_of_two
from flowbook.graph.ops.basis.constants import ones_like_op, zeros_like_op
from flowbook.graph.ops.math.comparison import equal, where
from flowbook.graph.ops.math.elementwise import log
from flowbook.graph.ops.math.no_nan import multiply_no_nan
from flowbook.graph.ops.math.special import digamma, in_dtype, polygamma

__all__ = ["igamma", "igammac"]


def _power_density(xp: Any, a: Any, x: Any, below: int) -> Any:
    special = special_of(xp)
    found = xp.exp(special.xlogy(a - (1.0 + below), x) - x - special.gammaln(a))
    return found.astype(a.dtype, copy=False)


def _density_gradient(op: Operation, dy: Tensor) -> Any:
    # At x = 0 each factor but the power may be infinite: where the power is 0, so is all of it.
    (a, x), below, density = op.inputs, op.attributes["below"], op.outputs[0]
    by_a = multiply_no_nan(log(x) - digamma(a), density)
    steeper = gamma_density(a, x, below=below + 1)
    by_x = multiply_no_nan(steeper, a - (1.0 + below)) - density
    return gradients_of_two(op, multiply_no_nan(by_a, dy), multiply_no_nan(by_x, dy))


gamma_density: OpDef = OpDef(
    "GammaDensity",
    "a: T, x: T -> z: T",
    T=FLOATS,
    attributes={"below": 0},
    infer=broadcast_inputs,
    batching=Batching.ELEMENTWISE,
    kernel=_power_density,
    grad=_density_gradient,
    cost=elementwise(flops=60),
    doc="""The density of the gamma distribution of shape `a`, over `x ** below`.

    It is the derivative of `igamma` by `x`.
    """,
)


def _density_derivative(a: Tensor, x: Tensor, order: int) -> Any:
    """The density's derivative by `a`, over the density."""
    polygammas = [digamma(a), *[polygamma(float(n), a) for n in range(1, order)]]
    return density_derivatives(log(x), polygammas)[order]


def _gradient(signed: float) -> Any:
    def gradient(op: Operation, dy: Tensor) -> Any:
        a, x = op.inputs
        dy = dy * signed
        by_a, by_x = igamma_grad_a(a, x), gamma_density(a, x)
        return gradients_of_two(op, multiply_no_nan(by_a, dy), multiply_no_nan(by_x, dy))

    return gradient


def _gamma_ratio(type: str, function: str, signed: float, doc: str) -> OpDef:
    return OpDef(
        type,
        "a: T, x: T -> z: T",
        T=FLOATS,
        infer=broadcast_inputs,
        batching=Batching.ELEMENTWISE,
        kernel=in_dtype(function),
        grad=_gradient(signed),
        cost=elementwise(flops=200),
        doc=doc,
    )


igamma = _gamma_ratio(
    "Igamma",
    "gammainc",
    1.0,
    """The lower regularised incomplete gamma function P(a, x), elementwise with broadcasting.

    It is the integral of `t ** (a - 1) * exp(-t)` from 0 to `x`, divided by that to infinity: the
    gamma distribution function. NaN for negative `a` or `x`.
    """,
)

igammac = _gamma_ratio(
    "Igammac",
    "gammaincc",
    -1.0,
    "`1 - igamma(a, x)`, elementwise with broadcasting, accurate where that is small.",
)


# What a derivative takes grows with the square of its order; its values soon have no digit left.
_HIGHEST_ORDER = 20


def _derivative_shape(a: Tensor, x: Tensor, order: int) -> Shape:
    if not 1 <= order <= _HIGHEST_ORDER:
        raise InvalidArgumentError(
            f"derivatives by 'a' are of the orders 1 to {_HIGHEST_ORDER}, not {order}"
        )
    return broadcast_inputs(a, x)


def _grad_a(xp: Any, a: Any, x: Any, order: int) -> Any:
    dtype = a.dtype
    a, x = (v.astype(np.float64) for v in xp.broadcast_arrays(a, x))
    is_defined = (a > 0) & (x >= 0)
    found = xp.where(is_defined, 0.0, xp.nan)
    inner = is_defined & (x > 0) & xp.isfinite(x) & xp.isfinite(a)
    a, x = a[inner], x[inner]
    density = xp.exp((a - 1) * xp.log(x) - x - special_of(xp).gammaln(a))
    found[inner] = density * order_derivative(a, x, order)
    return found.astype(dtype)


def _grad_a_gradient(op: Operation, dy: Tensor) -> Any:
    (a, x), order = op.inputs, op.attributes["order"]
    by_a = igamma_grad_a(a, x, order=order + 1)
    by_x = multiply_no_nan(_density_derivative(a, x, order), gamma_density(a, x))
    return gradients_of_two(op, multiply_no_nan(by_a, dy), multiply_no_nan(by_x, dy))


igamma_grad_a: OpDef = OpDef(
    "IgammaGradA",
    "a: T, x: T -> z: T",
    T=FLOATS,
    attributes={"order": 1},
    infer=_derivative_shape,
    batching=Batching.ELEMENTWISE,
    kernel=_grad_a,
    kinds=HOST,
    grad=_grad_a_gradient,
    cost=elementwise(flops=2000),
    doc="The derivative of some order of `igamma` by `a`.",
)


def _relative_gradient(op: Operation, dy: Tensor) -> Any:
    (a, x), order = op.inputs, op.attributes["order"]
    ratio = op.outputs[0]
    # So small that it became 0, a sample does not move.
    is_zero = equal(x, 0)
    x = where(is_zero, ones_like_op(x), x)
    dy = where(is_zero, zeros_like_op(dy), dy)
    by_a = relative_grad_a(a, x, order=order + 1) - ratio * _density_derivative(a, x, 1)
    by_x = _density_derivative(a, x, order) - ratio * ((a - 1.0) / x - 1.0)
    return gradients_of_two(op, multiply_no_nan(by_a, dy), multiply_no_nan(by_x, dy))


relative_grad_a: OpDef = OpDef(
    "IgammaRelativeGradA",
    "a: T, x: T -> z: T",
    T=FLOATS,
    attributes={"order": 1},
    infer=_derivative_shape,
    kernel=lambda xp, a, x, order: order_derivative(a, x, order).astype(a.dtype),
    kinds=HOST,
    grad=_relative_gradient,
    cost=elementwise(flops=2000),
    doc="""The derivative of some order of `igamma` by `a`, over its derivative by `x`.

    The first is minus how fast variates of the gamma distribution move with its shape parameter.
    """,
)
