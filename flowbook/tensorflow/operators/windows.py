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


def _ints(name: str) -> Any:
    return lambda n: n.ints(name)


def _moving(function: Any, form: str = "NHWC", **attributes: Any) -> Rule:
    """The rule of what moves windows, in arrays of this form unless the node says another."""
    return named(
        function,
        strides=_ints("strides"),
        padding=padding,
        data_format=lambda n: n.text("data_format", form),
        **attributes,
    )


def _convolution(function: Any, form: str = "NHWC") -> Rule:
    return _moving(function, form, dilations=lambda n: n.ints("dilations", (1,) * len(form)))


def _pool(function: Any, form: str = "NHWC", **attributes: Any) -> Rule:
    return _moving(function, form, ksize=_ints("ksize"), **attributes)


def _inner(n: Node) -> list[int]:
    """The dilations along the height and the width."""
    places = [layout(n).index(c) for c in "HW"]
    given = n.ints("dilations", (1, 1, 1, 1))
    return [given[p] for p in places]


def _by_volumes(sizes: Any, filters: Any, dy: Any, **how: Any) -> Any:
    return nn.conv3d_transpose(dy, filters, sizes, **how)


def _max_pool_v2(n: Node, x: Any, ksize: Any, strides: Any) -> Any:
    sizes, steps = ([int(i) for i in n.known(t, "the window")] for t in (ksize, strides))
    return nn.max_pool(x, sizes, steps, padding(n), layout(n), name=n.scope)


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


_PATCHES = {
    "ksizes": _ints("ksizes"),
    "strides": _ints("strides"),
    "padding": lambda n: n.text("padding"),
}

RULES: Rules = {
    "AvgPool": _pool(nn.avg_pool),
    "AvgPool3D": _pool(nn.avg_pool3d, "NDHWC"),
    "BatchNormWithGlobalNormalization": _old_batch_norm,
    "Conv2D": _convolution(nn.conv2d),
    "Conv2DBackpropFilter": _convolution(nn.conv2d_backprop_filter),
    "Conv2DBackpropInput": _convolution(nn.conv2d_backprop_input),
    "Conv3DBackpropFilterV2": _convolution(nn.conv2d_backprop_filter, "NDHWC"),
    "Conv3DBackpropInputV2": _convolution(_by_volumes, "NDHWC"),
    "Conv3D": _convolution(nn.conv3d, "NDHWC"),
    "DepthwiseConv2dNative": _moving(nn.depthwise_conv2d, dilations=_inner),
    "Dilation2D": named(
        nn.dilation2d, strides=_ints("strides"), dilations=_ints("rates"), padding=padding
    ),
    "ExtractImagePatches": named(extract_image_patches, rates=_ints("rates"), **_PATCHES),
    "ExtractVolumePatches": named(extract_volume_patches, **_PATCHES),
    **dict.fromkeys(("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"), _batch_norm),
    "LRN": named(
        nn.local_response_normalization,
        depth_radius=lambda n: n.whole("depth_radius", 5),
        bias=lambda n: n.number("bias", 1.0),
        alpha=lambda n: n.number("alpha", 1.0),
        beta=lambda n: n.number("beta", 0.5),
    ),
    "MaxPool": _pool(nn.max_pool),
    "MaxPool3D": _pool(nn.max_pool3d, "NDHWC"),
    "MaxPoolV2": _max_pool_v2,
    "MaxPoolWithArgmax": _pool(
        nn.max_pool_with_argmax,
        include_batch_in_index=lambda n: n.flag("include_batch_in_index"),
    ),
}
