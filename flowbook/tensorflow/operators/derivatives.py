"""What TensorFlow builds for gradients: graphs of training have it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowbook import nn
from flowbook.graph.model.errors import UnimplementedError
from flowbook.graph.ops.arrays.gathering import gather
from flowbook.graph.ops.basis.broadcasting import reduce_sum
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.constants import identity
from flowbook.graph.ops.basis.filling import ones, ones_like, zeros, zeros_like
from flowbook.graph.ops.basis.joining import concat, stack
from flowbook.graph.ops.basis.permuting import transpose
from flowbook.graph.ops.basis.shaping import expand_dims, reshape, shape, size
from flowbook.graph.ops.math.arithmetic import divide, maximum, minimum, multiply
from flowbook.graph.ops.math.comparison import equal, where
from flowbook.graph.ops.math.complex import abs
from flowbook.graph.ops.math.elementwise import rsqrt, sigmoid, square
from flowbook.graph.ops.nn.activations import leaky_relu_gradient
from flowbook.graph.ops.windows import depthwise
from flowbook.graph.ops.windows.morphology import dilation_gradient_op
from flowbook.graph.ops.windows.pooling import (
    avg_pool_gradient,
    max_pool_choice,
    max_pool_gradient,
)
from flowbook.graph.ops.windows.response_normalisation import normalize_responses_gradient_op
from flowbook.tensorflow.node import Node, Rule, Rules, named
from flowbook.tensorflow.operators.windows import layout, padding


def _of_output(derivative: Any) -> Rule:
    """The gradient of a function, whose derivative its output says."""
    return lambda n, y, dy: multiply(dy, derivative(y), name=n.scope)


def _softplus(n: Node, dy: Any, features: Any) -> Any:
    return multiply(dy, sigmoid(features), name=n.scope)


def _softsign(n: Node, dy: Any, features: Any) -> Any:
    return divide(dy, square(abs(features) + 1), name=n.scope)


def _elu(n: Node, dy: Any, outputs: Any) -> Any:
    return multiply(dy, minimum(outputs, zeros_like(outputs)) + 1, name=n.scope)


def _bias(n: Node, dy: Any) -> Any:
    rank = dy.shape.rank
    if layout(n) == "NCHW" and rank is not None:
        return reduce_sum(dy, [0, *range(2, rank)], name=n.scope)
    columns = shape(dy)[-1]
    return reduce_sum(reshape(dy, stack([-1, columns])), 0, name=n.scope)


def _broadcast_axes(n: Node, first: Any, second: Any) -> Any:
    """Over which axes gradients of what was broadcast are summed: those of one element."""
    rank = maximum(size(first), size(second))
    found = []
    for each in (first, second):
        before = ones(expand_dims(rank - size(each), 0), each.dtype)
        whole = concat([before, each], 0)
        places = where(equal(whole, ones_like(whole)))
        found.append(cast(reshape(places, [-1]), each.dtype))
    return found


def _max_pool(along: Any) -> Rule:
    def rule(n: Node, x: Any, y: Any, values: Any, *window: Any) -> Any:
        return _pooled(n, window, lambda how: along(*_last(n, x, y, values), **how))

    return rule


def _avg_pool(n: Node, shape: Any, dy: Any) -> Any:
    if _has_channels_first(n):
        shape = gather(shape, _order(n))
    return _pooled(n, (), lambda how: avg_pool_gradient(shape, *_last(n, dy), **how))


def _form(n: Node) -> str:
    return n.text("data_format", "NDHWC" if "3D" in n.type else "NHWC")


def _has_channels_first(n: Node) -> bool:
    return _form(n)[1] == "C"


def _order(n: Node) -> list[int]:
    """The dimensions in the order that has channels last."""
    form = _form(n)
    return [0, *range(2, len(form)), 1] if _has_channels_first(n) else [*range(len(form))]


def _last(n: Node, *tensors: Any) -> list[Any]:
    """Tensors with channels last."""
    return [transpose(t, _order(n)) if _has_channels_first(n) else t for t in tensors]


def _pooled(n: Node, window: Sequence[Any], build: Any) -> Any:
    """A pool's gradient, whose windows are those of what has channels last."""
    numbers = [_numbers(n, each) for each in window] or [n.ints("ksize"), n.ints("strides")]
    ksize, strides = (tuple(each[i] for i in _order(n)) for each in numbers)
    found = build(
        {
            "ksize": ksize,
            "strides": strides,
            "padding": padding(n),
            "dilations": (1,) * len(_form(n)),
        }
    )
    if _has_channels_first(n):
        return transpose(found, [0, len(_form(n)) - 1, *range(1, len(_form(n)) - 1)], name=n.scope)
    return identity(found, name=n.scope)


def _numbers(n: Node, given: Any) -> list[int]:
    return [int(i) for i in n.known(given, "the window")]


def _dilated(which: int) -> Rule:
    """The gradient of a dilation by its input, or by its filters."""

    def rule(n: Node, x: Any, filters: Any, dy: Any) -> Any:
        found = dilation_gradient_op(
            x,
            filters,
            dy,
            strides=tuple(n.ints("strides")[1:3]),
            dilations=tuple(n.ints("rates")[1:3]),
            padding=padding(n),
        )
        return found[which]

    return rule


def _batch_norm(n: Node, dy: Any, x: Any, scale: Any, mean: Any, variance: Any, *_: Any) -> Any:
    """The gradients of a batch's normalised values; of fixed moments, if it is no training."""
    form = layout(n)
    axes = [i for i, c in enumerate(form) if c != "C"]
    shape = [-1 if c == "C" else 1 for c in form]
    wide_dy, wide_x = cast(dy, scale.dtype), cast(x, scale.dtype)
    epsilon = n.number("epsilon", 1e-4)
    if n.flag("is_training", True):
        mean, variance = nn.moments(wide_x, axes)
    spread = rsqrt(variance + epsilon)
    centred = wide_x - reshape(mean, shape)
    unit = centred * reshape(spread, shape)
    doffset = reduce_sum(wide_dy, axes)
    dscale = reduce_sum(wide_dy * unit, axes)
    factor = reshape(scale * spread, shape)
    if n.flag("is_training", True):
        count = cast(size(wide_x) // size(scale), scale.dtype)
        mean_dy = reshape(doffset / count, shape)
        wide_dy = wide_dy - mean_dy - unit * reshape(dscale / count, shape)
    dx = cast(wide_dy * factor, x.dtype, name=n.scope)
    zero = zeros([0], scale.dtype)
    return [dx, dscale, doffset, zero, zero]


def _depthwise(function: Any) -> Rule:
    def rule(n: Node, first: Any, second: Any, dy: Any) -> Any:
        if layout(n) != "NHWC":
            raise UnimplementedError(f"{n} has channels first")
        given = padding(n)
        return function(
            first,
            second,
            dy,
            strides=tuple(n.ints("strides")[1:3]),
            padding=given if isinstance(given, str) else tuple(map(tuple, given[1:3])),
            dilations=tuple(n.ints("dilations", (1, 1, 1, 1))[1:3]),
            name=n.scope,
        )

    return rule


def _response_normalisation(n: Node, dy: Any, x: Any, y: Any) -> Any:
    return normalize_responses_gradient_op(
        x,
        dy,
        depth_radius=n.whole("depth_radius", 5),
        bias=n.number("bias", 1.0),
        alpha=n.number("alpha", 1.0),
        beta=n.number("beta", 0.5),
        name=n.scope,
    )


RULES: Rules = {
    **dict.fromkeys(("AvgPoolGrad", "AvgPool3DGrad"), _avg_pool),
    "BiasAddGrad": _bias,
    "BroadcastGradientArgs": _broadcast_axes,
    "DepthwiseConv2dNativeBackpropFilter": _depthwise(depthwise.filter_gradient_op),
    "DepthwiseConv2dNativeBackpropInput": _depthwise(depthwise.input_gradient_op),
    "Dilation2DBackpropFilter": _dilated(1),
    "Dilation2DBackpropInput": _dilated(0),
    "EluGrad": _elu,
    **dict.fromkeys(
        ("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3"), _batch_norm
    ),
    "InvGrad": _of_output(lambda y: -y * y),
    "LRNGrad": _response_normalisation,
    "LeakyReluGrad": named(leaky_relu_gradient, alpha=lambda n: n.number("alpha", 0.2)),
    **dict.fromkeys(
        ("MaxPoolGrad", "MaxPoolGradV2", "MaxPool3DGrad"), _max_pool(max_pool_gradient)
    ),
    **dict.fromkeys(
        ("MaxPoolGradGrad", "MaxPoolGradGradV2", "MaxPool3DGradGrad"), _max_pool(max_pool_choice)
    ),
    "ReciprocalGrad": _of_output(lambda y: -y * y),
    "RsqrtGrad": _of_output(lambda y: y * y * y * -0.5),
    "SigmoidGrad": _of_output(lambda y: y * (1 - y)),
    "SoftplusGrad": _softplus,
    "SoftsignGrad": _softsign,
    "SqrtGrad": _of_output(lambda y: 0.5 / y),
    "TanhGrad": _of_output(lambda y: 1 - y * y),
}
