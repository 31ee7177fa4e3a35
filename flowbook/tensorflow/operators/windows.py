"""What moves windows over images, and normalises them."""

from __future__ import annotations

from typing import Any

from flowbook import nn
from flowbook.graph.model.errors import UnimplementedError
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.windows.patches import extract_image_patches, extract_volume_patches
from flowbook.tensorflow.node import Node, Rule, Rules, named


def layout(n: Node) -> str:
    """Where the channels are."""
    return n.text("data_format", "NHWC")


def padding(n: Node) -> Any:
    """The padding: its name, or how much there is on each side of each dimension."""
    given = n.text("padding")
    if given != "EXPLICIT":
        return given
    sizes = n.ints("explicit_paddings")
    return [sizes[i : i + 2] for i in range(0, len(sizes), 2)]


def _convolution(function: Any, default: str) -> Rule:
    def rule(n: Node, x: Any, filters: Any) -> Any:
        form = n.text("data_format", default)
        ones = (1,) * len(form)
        return function(
            x,
            filters,
            n.ints("strides"),
            padding(n),
            data_format=form,
            dilations=n.ints("dilations", ones),
            name=n.scope,
        )

    return rule


def _depthwise(n: Node, x: Any, filters: Any) -> Any:
    return nn.depthwise_conv2d(
        x, filters, n.ints("strides"), padding(n), _inner(n), layout(n), name=n.scope
    )


def _inner(n: Node) -> list[int]:
    """The dilations along the height and the width."""
    places = [layout(n).index(c) for c in "HW"]
    given = n.ints("dilations", (1, 1, 1, 1))
    return [given[p] for p in places]


def _backward(function: Any, default: str = "NHWC") -> Rule:
    def rule(n: Node, first: Any, second: Any, dy: Any) -> Any:
        form = n.text("data_format", default)
        return function(
            first,
            second,
            dy,
            n.ints("strides"),
            padding(n),
            form,
            n.ints("dilations", (1,) * len(form)),
            name=n.scope,
        )

    return rule


def _by_volumes(sizes: Any, filters: Any, dy: Any, *how: Any, name: str) -> Any:
    strides, padding_, form, dilations = how
    return nn.conv3d_transpose(dy, filters, sizes, strides, padding_, form, dilations, name=name)


def _pool(function: Any, default: str = "NHWC") -> Rule:
    def rule(n: Node, x: Any) -> Any:
        form = n.text("data_format", default)
        return function(x, n.ints("ksize"), n.ints("strides"), padding(n), form, name=n.scope)

    return rule


def _max_pool_v2(n: Node, x: Any, ksize: Any, strides: Any) -> Any:
    sizes, steps = ([int(i) for i in n.known(t, "the window")] for t in (ksize, strides))
    return nn.max_pool(x, sizes, steps, padding(n), layout(n), name=n.scope)


def _pool_with_places(n: Node, x: Any) -> Any:
    return nn.max_pool_with_argmax(
        x,
        n.ints("ksize"),
        n.ints("strides"),
        padding(n),
        include_batch_in_index=n.flag("include_batch_in_index"),
        name=n.scope,
    )


def _batch_norm(n: Node, x: Any, scale: Any, offset: Any, mean: Any, variance: Any) -> Any:
    """The normalised values, the moving moments, and what gradients take: moments again."""
    form, epsilon = layout(n), n.number("epsilon", 1e-4)
    if not n.flag("is_training", True):
        y, *_ = nn.fused_batch_norm(
            x, scale, offset, mean, variance, epsilon, form, is_training=False, name=n.scope
        )
        return [y, mean, variance, mean, variance, mean]
    if (factor := n.number("exponential_avg_factor", 1.0)) != 1.0:
        raise UnimplementedError(f"{n} averages its moments by the factor {factor}")
    y, batch_mean, batch_variance = nn.fused_batch_norm(
        x, scale, offset, epsilon=epsilon, data_format=form, name=n.scope
    )
    axes = [i for i, c in enumerate(form) if c != "C"]
    _, spread = nn.moments(cast(x, scale.dtype), axes)
    return [y, batch_mean, batch_variance, batch_mean, spread, batch_mean]


def _old_batch_norm(n: Node, x: Any, mean: Any, variance: Any, beta: Any, gamma: Any) -> Any:
    scaled = n.flag("scale_after_normalization")
    return nn.batch_normalization(
        x,
        mean,
        variance,
        beta,
        gamma if scaled else None,
        n.number("variance_epsilon", 0.001),
        name=n.scope,
    )


def _response_normalisation(n: Node, x: Any) -> Any:
    return nn.local_response_normalization(
        x,
        n.whole("depth_radius", 5),
        n.number("bias", 1.0),
        n.number("alpha", 1.0),
        n.number("beta", 0.5),
        name=n.scope,
    )


def _dilation(n: Node, x: Any, filters: Any) -> Any:
    return nn.dilation2d(x, filters, n.ints("strides"), n.ints("rates"), padding(n), name=n.scope)


def _patches(n: Node, x: Any) -> Any:
    return extract_image_patches(
        x, n.ints("ksizes"), n.ints("strides"), n.ints("rates"), n.text("padding"), name=n.scope
    )


RULES: Rules = {
    "AvgPool": _pool(nn.avg_pool),
    "AvgPool3D": _pool(nn.avg_pool3d, "NDHWC"),
    "BatchNormWithGlobalNormalization": _old_batch_norm,
    "Conv2D": _convolution(nn.conv2d, "NHWC"),
    "Conv2DBackpropFilter": _backward(nn.conv2d_backprop_filter),
    "Conv2DBackpropInput": _backward(nn.conv2d_backprop_input),
    "Conv3DBackpropFilterV2": _backward(nn.conv2d_backprop_filter, "NDHWC"),
    "Conv3DBackpropInputV2": _backward(_by_volumes, "NDHWC"),
    "Conv3D": _convolution(nn.conv3d, "NDHWC"),
    "DepthwiseConv2dNative": _depthwise,
    "Dilation2D": _dilation,
    "ExtractImagePatches": _patches,
    "ExtractVolumePatches": named(
        extract_volume_patches,
        ksizes=lambda n: n.ints("ksizes"),
        strides=lambda n: n.ints("strides"),
        padding=lambda n: n.text("padding"),
    ),
    "FusedBatchNorm": _batch_norm,
    "FusedBatchNormV2": _batch_norm,
    "FusedBatchNormV3": _batch_norm,
    "LRN": _response_normalisation,
    "MaxPool": _pool(nn.max_pool),
    "MaxPool3D": _pool(nn.max_pool3d, "NDHWC"),
    "MaxPoolV2": _max_pool_v2,
    "MaxPoolWithArgmax": _pool_with_places,
}
