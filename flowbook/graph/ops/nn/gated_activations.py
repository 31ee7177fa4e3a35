"""Activations that are the input times a gate between 0 and 1: swish and GELU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from flowbook.graph.definition.batching import Batching
from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.inference import elementwise, same_as_input
from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.dtypes import FLOATS
from flowbook.graph.model.errors import InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Arithmetic, Tensor
from flowbook.graph.numerics.scipy_special import special_of
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.math.arithmetic import multiply
from flowbook.graph.ops.math.elementwise import exp, sigmoid, square
from flowbook.graph.ops.nn.clipping import clip_by_value

__all__ = ["gelu", "swish"]


def _normal_gradient(op: Operation, dy: Tensor) -> Tensor:
    return dy * exp(square(op.inputs[0]) * -0.5) * (1 / math.sqrt(2 * math.pi))


# Accurate in the lower tail too, where (1 + erf(x / sqrt(2))) / 2 has rounded to 0.
normal_distribution_op = OpDef(
    "NormalDistribution",
    "x: T -> probability: T",
    T=FLOATS,
    infer=same_as_input,
    kernel=lambda xp, x: xp.asarray(special_of(xp).ndtr(x)).astype(x.dtype, copy=False),
    grad=_normal_gradient,
    batching=Batching.ELEMENTWISE,
    cost=elementwise(flops=20),
)


def _features(what: str, features: Any) -> Tensor:
    tensor = convert_to_tensor(features)
    if not tensor.dtype.is_floating:
        raise InvalidTypeError(
            f"{what} takes floating-point features, not {tensor.dtype.name}",
            hint="fb.cast converts them",
        )
    return tensor


def _swish_gradient(op: Operation, dy: Tensor, dgate: Tensor, *, used: Sequence[bool]) -> Tensor:
    x, gate = op.inputs[0], op.outputs[1]
    slope = gate * (1.0 - gate)
    dx = dy * (gate + x * slope)
    return dx + dgate * slope if used[1] else dx


# The gate is an output for the gradient's sake, where it saves the exponential.
swish_op: OpDef[tuple[Tensor, Tensor]] = OpDef(
    "Swish",
    "features: T -> activations: T, gate: T",
    T=FLOATS,
    infer=lambda features: [features.shape] * 2,
    expression="divide(features, add(exp(negative(features)), 1)), "
    "reciprocal(add(exp(negative(features)), 1))",
    grad=_swish_gradient,
    cost=elementwise(flops=14),
)


@composed
def swish(features: Any, beta: Any = 1.0, name: str | None = None) -> Tensor:
    """`x * sigmoid(beta * x)`, elementwise; with a `beta` of 1 also known as SiLU.

    Args:
        features: of a floating-point dtype.
        beta: a number, or a tensor of the same dtype that broadcasts to the features.

    Source: Ramachandran et al., "Searching for Activation Functions", 2017.
    """
    x = _features("swish", features)
    if not isinstance(beta, Arithmetic) and beta == 1:
        return swish_op(x, name=name)[0]
    return multiply(x, sigmoid(x * beta), name=name)


# The gate of GELU's approximate form: of this polynomial in x, c x + d x ** 3, the sigmoid.
LINEAR = math.sqrt(8 / math.pi)
CUBIC = 0.044715 * LINEAR
# Beyond it the gate is 0 or 1 in every dtype, and cubes within it fit every dtype.
_SATURATED = 20.0

# exp(-c x - d x ** 3). NumPy's exp2 is faster, but in one process of five much slower.
_POWER = f"exp(multiply(add(multiply(square(features), {-CUBIC}), {-LINEAR}), features))"


def _gelu_tanh_gradient(
    op: Operation, dy: Tensor, dgate: Tensor, *, used: Sequence[bool]
) -> Tensor:
    gate = op.outputs[1]
    near = clip_by_value(op.inputs[0], -_SATURATED, _SATURATED)
    steepness = square(near) * (3 * CUBIC) + LINEAR
    dx = dy * gate * (near * steepness * (1.0 - gate) + 1.0)
    if not used[1]:
        return dx  # type: ignore[no-any-return]
    # In this order half precision does not overflow where the gate is 0 or 1.
    return dx + dgate * (steepness * (gate * (1.0 - gate)))  # type: ignore[no-any-return]


# `x` times its gate: `x * (1 + tanh(...)) / 2` without its cancellation for negative x.
gelu_tanh_op: OpDef[tuple[Tensor, Tensor]] = OpDef(
    "GeluTanh",
    "features: T -> activations: T, gate: T",
    T=FLOATS,
    infer=lambda features: [features.shape] * 2,
    expression=f"divide(features, add({_POWER}, 1)), reciprocal(add({_POWER}, 1))",
    grad=_gelu_tanh_gradient,
    cost=elementwise(flops=17),
)


@composed
def gelu(features: Any, approximate: bool = False, name: str | None = None) -> Tensor:
    """The Gaussian error linear unit: `x * P(X <= x)` for a standard normal X.

    Args:
        features: of a floating-point dtype.
        approximate: use `x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3))) / 2`, which is
            close, in place of the exact form.

    Source: Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016.

    >>> import flowbook as fb
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.nn.gelu([-1.0, 0.0, 1.0])).round(4))
    [-0.1587  0.      0.8413]
    """
    x = _features("gelu", features)
    if approximate:
        return gelu_tanh_op(x, name=name)[0]
    return multiply(x, normal_distribution_op(x), name=name)
