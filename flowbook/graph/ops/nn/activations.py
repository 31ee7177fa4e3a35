"""Activations of neural networks. `tanh` and `sigmoid` stand with the elementwise functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowbook.graph.definition.axes import as_axis, in_range
from flowbook.graph.definition.batching import Batching
from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.inference import elementwise, same_as_input
from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.convert import to_array
from flowbook.graph.model.dtypes import FLOATS, NUMBERS, REALS, float32, float64
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.numerics.element_choices import clipped, leaky, rectified
from flowbook.graph.numerics.sums import sum_over
from flowbook.graph.ops.basis.broadcasting import sum_op
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.constants import convert_to_tensor, zeros_like_op
from flowbook.graph.ops.basis.joining import concat
from flowbook.graph.ops.basis.shaping import reshape_op, shape_op
from flowbook.graph.ops.math.arithmetic import minimum, negative
from flowbook.graph.ops.math.comparison import greater_equal, where
from flowbook.graph.ops.math.complex import abs_op
from flowbook.graph.ops.math.elementwise import exp, sigmoid, square
from flowbook.graph.ops.windows.layouts import layout_of

__all__ = [
    "bias_add",
    "crelu",
    "elu",
    "leaky_relu",
    "log_softmax",
    "relu",
    "relu6",
    "selu",
    "softmax",
    "softplus",
    "softsign",
]

relu_gradient: OpDef = OpDef(
    "ReluGrad",
    "gradients: T, activations: T -> backprops: T",
    T=REALS,
    infer=same_as_input,
    expression="multiply(gradients, greater(activations, 0))",
    # What the slope changes by is 0, which is something else than not to depend on it.
    grad=lambda op, dy: (relu_gradient(dy, op.inputs[1]), zeros_like_op(op.inputs[1])),
    spreads_nonfinite=("gradients",),
    cost=elementwise(flops=2),
)

relu = OpDef(
    "Relu",
    "features: T -> activations: T",
    T=REALS,
    infer=same_as_input,
    kernel=rectified,
    expression="maximum(features, 0)",
    # From the output, so that the input's memory is free by then.
    grad=lambda op, dy: relu_gradient(dy, op.outputs[0]),
    keeps_finite=True,
    cost=elementwise(),
    doc="The rectified linear unit, `max(x, 0)` (Nair and Hinton 2010); the gradient at 0 is 0.",
)


relu6_gradient: OpDef = OpDef(
    "Relu6Grad",
    "gradients: T, activations: T -> backprops: T",
    T=REALS,
    infer=same_as_input,
    expression="where(logical_and(greater(activations, 0), less(activations, 6)), gradients, 0)",
    grad=lambda op, dy: (relu6_gradient(dy, op.inputs[1]), zeros_like_op(op.inputs[1])),
    cost=elementwise(flops=4),
)

relu6 = OpDef(
    "Relu6",
    "features: T -> activations: T",
    T=REALS,
    infer=same_as_input,
    kernel=lambda xp, features: clipped(xp, features, 0, 6),
    expression="minimum(maximum(features, 0), 6)",
    grad=lambda op, dy: relu6_gradient(dy, op.outputs[0]),
    cost=elementwise(flops=2),
    doc="`min(max(x, 0), 6)`.",
)


def _elu_gradient(op: Operation, dy: Tensor) -> Tensor:
    # exp(min(x, 0)) is 1 for positive x, as the derivative is.
    x = op.inputs[0]
    return dy * exp(minimum(x, zeros_like_op(x)))


elu = OpDef(
    "Elu",
    "features: T -> activations: T",
    T=FLOATS,
    infer=same_as_input,
    # exp(x) - 1 is nowhere below x, and 0 where the minimum is.
    expression="maximum(features, expm1(minimum(features, 0)))",
    grad=_elu_gradient,
    cost=elementwise(flops=12),
    doc="The exponential linear unit: `x` if positive, else `exp(x) - 1` (Clevert et al. 2015).",
)


leaky_relu_gradient: OpDef = OpDef(
    "LeakyReluGrad",
    "gradients: T, features: T -> backprops: T",
    T=FLOATS,
    attributes={"alpha": 0.2},
    infer=same_as_input,
    expression="where(greater(features, 0), gradients, multiply(gradients, alpha))",
    grad=lambda op, dy: (
        leaky_relu_gradient(dy, op.inputs[1], alpha=op.attributes["alpha"]),
        zeros_like_op(op.inputs[1]),
    ),
    cost=elementwise(flops=3),
)

leaky_relu_op = OpDef(
    "LeakyRelu",
    "features: T -> activations: T",
    T=FLOATS,
    attributes={"alpha": 0.2},
    infer=same_as_input,
    kernel=leaky,
    expression="where(greater(features, 0), features, multiply(features, alpha))",
    grad=lambda op, dy: leaky_relu_gradient(dy, op.inputs[0], alpha=op.attributes["alpha"]),
    cost=elementwise(flops=3),
)


@leaky_relu_op.front
def leaky_relu(features: Any, alpha: float = 0.2, name: str | None = None) -> Tensor:
    """`x` if positive, else `alpha * x` (Maas et al. 2013).

    Args:
        features: of a floating-point dtype; integers are made float32 first.
        alpha: the slope for negative values, a number.
    """
    features = convert_to_tensor(features)
    if features.dtype.is_integer:
        features = cast(features, float32)
    slope = float(to_array(alpha, float64))
    return leaky_relu_op(features, alpha=slope, name=name)


softplus = OpDef(
    "Softplus",
    "features: T -> activations: T",
    T=FLOATS,
    infer=same_as_input,
    # Several times faster than logaddexp, which has no vectorised loop.
    expression="add(maximum(features, 0), log1p(exp(negative(absolute(features)))))",
    grad=lambda op, dy: dy * sigmoid(op.inputs[0]),
    cost=elementwise(flops=24),
    doc="`log(1 + exp(x))`, elementwise, without overflow.",
)


@composed
def log_sigmoid(x: Any, name: str | None = None) -> Tensor:
    """`log(sigmoid(x))`, elementwise, accurate where the sigmoid is close to 0 or to 1.

    Args:
        x: of a floating-point dtype.
    """
    x = convert_to_tensor(x)
    return negative(softplus(-x), name=name)


# The fixed point of mean 0 and variance 1 (Klambauer et al. 2017, equation 14).
_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772, 1.0507009873554805
_SELU_LIMIT = _SELU_ALPHA * _SELU_SCALE


def _selu_gradient(op: Operation, dy: Tensor) -> Tensor:
    x = op.inputs[0]
    below = exp(minimum(x, zeros_like_op(x))) * _SELU_LIMIT
    # At 0 the slope is that of the right side, as in TensorFlow.
    return where(greater_equal(x, 0), dy * _SELU_SCALE, dy * below)


selu = OpDef(
    "Selu",
    "features: T -> activations: T",
    T=FLOATS,
    infer=same_as_input,
    expression=f"add(multiply(maximum(features, 0), {_SELU_SCALE}), "
    f"multiply(expm1(minimum(features, 0)), {_SELU_LIMIT}))",
    grad=_selu_gradient,
    cost=elementwise(flops=15),
    doc="""The scaled exponential linear unit, which keeps mean 0 and variance 1 across layers.

    `1.0507 * x` if positive, else `1.7581 * (exp(x) - 1)` (Klambauer et al. 2017).
    """,
)


def _softsign_gradient(op: Operation, dy: Tensor) -> Tensor:
    return dy / square(abs_op(op.inputs[0]) + 1.0)


softsign = OpDef(
    "Softsign",
    "features: T -> activations: T",
    T=FLOATS,
    infer=same_as_input,
    expression="divide(features, add(absolute(features), 1))",
    grad=_softsign_gradient,
    cost=elementwise(flops=3),
    doc="`x / (1 + abs(x))`, elementwise: between -1 and 1, and slower to get there than tanh.",
)


@composed
def crelu(features: Any, name: str | None = None, axis: int = -1) -> Tensor:
    """The positive and the negative part of each feature, one after the other along an axis.

    Args:
        features: of a real dtype and at least one dimension.
        axis: the axis that becomes twice as long.

    Raises:
        InvalidArgumentError: if there is no such axis.

    Source: Shang et al., "Concatenated Rectified Linear Units", 2016.
    """
    features = convert_to_tensor(features)
    return relu(concat([features, -features], axis), name=name)


def _shape_with_axis(logits: Tensor, axis: int) -> Shape:
    if logits.shape.dims is not None:
        in_range(axis, len(logits.shape.dims))
    return logits.shape


def less_largest(xp: Any, logits: Any, axis: int) -> Any:
    """Logits less the largest along an axis, so that their exponentials do not overflow."""
    i = in_range(axis, logits.ndim)
    return xp.subtract(logits, logits.max(i, None, True))


def exponentials(xp: Any, shifted: Any, axis: int, out: Any = None) -> tuple[Any, Any]:
    """The exponentials of shifted logits, in `out` if it is given, and their sum along an axis."""
    raised = xp.exp(shifted, out=out)
    total = sum_over(xp, raised, (in_range(axis, shifted.ndim),), keepdims=True)
    return raised, total.astype(shifted.dtype, copy=False)


def _softmax(xp: Any, logits: Any, axis: int) -> Any:
    if not logits.size:
        return logits.copy()
    shifted = less_largest(xp, logits, axis)
    raised, total = exponentials(xp, shifted, axis, out=shifted)
    return xp.divide(raised, total, raised)


def _log_softmax(xp: Any, logits: Any, axis: int) -> Any:
    if not logits.size:
        return logits.copy()
    shifted = less_largest(xp, logits, axis)
    _, total = exponentials(xp, shifted, axis)
    return xp.subtract(shifted, xp.log(total), shifted)


def _sum_along(op: Operation, tensor: Tensor) -> Tensor:
    return sum_op(tensor, axis=(op.attributes["axis"],), keepdims=True)


def _softmax_gradient(op: Operation, dy: Tensor) -> Tensor:
    y = op.outputs[0]
    return (dy - _sum_along(op, dy * y)) * y


def _log_softmax_gradient(op: Operation, dy: Tensor) -> Tensor:
    return dy - exp(op.outputs[0]) * _sum_along(op, dy)


def _normalised(
    type: str, kernel: Callable[..., Any], grad: Callable[..., Any], **facts: Any
) -> OpDef:
    return OpDef(
        type,
        "logits: T -> output: T",
        T=FLOATS,
        attributes={"axis": -1},
        infer=_shape_with_axis,
        kernel=kernel,
        grad=grad,
        batching=Batching.ALONG_AXIS,
        cost=elementwise(flops=14),
        **facts,
    )


softmax_op = _normalised("Softmax", _softmax, _softmax_gradient, keeps_finite=True)
log_softmax_op = _normalised("LogSoftmax", _log_softmax, _log_softmax_gradient)


@softmax_op.front
def softmax(logits: Any, axis: int = -1, name: str | None = None) -> Tensor:
    """`exp(x) / sum(exp(x))` along an axis, without overflow: probabilities that add up to 1.

    Args:
        logits: of a floating-point dtype and at least one dimension.
        axis: an int, negative ones counted from the last.

    Raises:
        InvalidArgumentError: if there is no such axis.
    """
    return _normalise(softmax_op, logits, axis, name)


@log_softmax_op.front
def log_softmax(logits: Any, axis: int = -1, name: str | None = None) -> Tensor:
    """The logarithm of `softmax(logits)`, accurate where that is small. Arguments as there."""
    return _normalise(log_softmax_op, logits, axis, name)


def _normalise(op_def: OpDef, logits: Any, axis: Any, name: str | None) -> Tensor:
    axis = as_axis(axis)
    return op_def(logits, axis=axis, name=name)


def _biased_shape(value: Tensor, bias: Tensor) -> Shape:
    if bias.shape.rank not in (None, 1) or value.shape.rank == 0:
        raise InvalidArgumentError(
            f"the bias is a vector and the value has an axis for it; they have the shapes "
            f"{bias.shape} and {value.shape}"
        )
    if value.shape.dims is None or bias.shape.dims is None:
        return value.shape
    if not bias.shape.is_compatible_with(value.shape[-1:]):
        raise InvalidArgumentError(
            f"a bias of shape {bias.shape} does not fit the last dimension of {value.shape}"
        )
    return value.shape.merge(Shape.of((*value.shape.dims[:-1], bias.shape.dims[0])))


def _bias_add(xp: Any, value: Any, bias: Any) -> Any:
    if not value.ndim or bias.shape != value.shape[-1:]:
        raise InvalidArgumentError(
            f"a bias of shape {list(bias.shape)} does not fit the last dimension of "
            f"{list(value.shape)}"
        )
    return xp.add(value, bias)


def _bias_gradient(op: Operation, dy: Tensor) -> Any:
    rank = dy.shape.rank
    if rank is not None:
        return dy, sum_op(dy, axis=tuple(range(rank - 1)))
    rows = reshape_op(dy, concat([[-1], shape_op(op.inputs[1])], 0))
    return dy, sum_op(rows, axis=(0,))


bias_add_op = OpDef(
    "BiasAdd",
    "value: T, bias: T -> output: T",
    T=NUMBERS,
    infer=_biased_shape,
    kernel=_bias_add,
    grad=_bias_gradient,
    spreads_nonfinite=("value", "bias"),
    batching=Batching.LEADING,
    cost=elementwise(),
)


@bias_add_op.front
def bias_add(
    value: Any, bias: Any, data_format: str | None = "NHWC", name: str | None = None
) -> Tensor:
    """Add a vector along the last dimension.

    Args:
        value: [..., n] of a number dtype.
        bias: [n] of the same dtype.
        data_format: channels last, such as "NHWC", whatever the number of dimensions; or "NCW",
            "NCHW", "NCDHW" for [batch, n, ...], with as many.

    Raises:
        InvalidArgumentError: if the sizes differ; in the run, where they are known only then.
    """

    def build(value: Any, name: str | None) -> Tensor:
        return bias_add_op(value, bias, name=name)

    return layout_of(data_format or "NHWC").through(build, value, name or "BiasAdd")
