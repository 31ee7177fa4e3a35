"""Convolution and pooling layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flowbook.graph.building.scopes import name_scope
from flowbook.graph.definition.descriptions import arguments_as
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.joining import stack
from flowbook.graph.ops.basis.shaping import shape as shape_of
from flowbook.graph.ops.windows import convolution, depthwise, pooling
from flowbook.graph.ops.windows.families import over_sequences_and_volumes
from flowbook.graph.ops.windows.layouts import layout_of
from flowbook.train.layers import initializers
from flowbook.train.layers.weights import (
    Activation,
    KernelAndBias,
    activated,
    channels_of,
    check_activation,
    layer_input,
    positive,
    weights,
)

__all__ = [
    "average_pooling1d",
    "average_pooling2d",
    "average_pooling3d",
    "conv1d",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "max_pooling1d",
    "max_pooling2d",
    "max_pooling3d",
    "separable_conv2d",
]


def each(name: str, value: Any, count: int) -> list[int]:
    """A size for each dimension of a window, from one number for all or from one each."""
    if isinstance(value, np.ndarray | Shape):
        value = list(value)
    if isinstance(value, Sequence):
        found = [positive(name, v) for v in value]
        if len(found) != count:
            raise InvalidArgumentError(f"{name} is one integer or {count}, not {value!r}")
        return found
    return [positive(name, value)] * count


def _convolved(
    what: str,
    data_format: str,
    inputs: Any,
    filters: int,
    kernel_size: Any,
    kernel_shape: Callable[[list[int], int, int], list[int]],
    apply: Callable[[Tensor, Any], Tensor],
    activation: Activation | None,
    made: KernelAndBias,
    name: str | None,
) -> Tensor:
    """What all convolution layers do around their convolution."""
    check_activation(activation)
    layout = layout_of(data_format)
    axis = layout.channels_axis
    inputs = layer_input(inputs, what, layout.count + 2, axis)
    filters = positive("filters", filters)
    size = each("kernel_size", kernel_size, layout.count)
    shape = kernel_shape(size, channels_of(inputs, axis), filters)
    with inputs.graph.as_default(), name_scope(name or what):
        result = apply(inputs, made.kernel(shape, inputs.dtype))
        return activated(made.with_bias(result, filters, data_format), activation)


def _in_capitals(padding: Any) -> Any:
    return padding.upper() if isinstance(padding, str) else padding


def conv2d(
    inputs: Any,
    filters: int,
    kernel_size: Any,
    strides: Any = 1,
    padding: Any = "VALID",
    dilations: Any = 1,
    activation: Activation | None = None,
    use_bias: bool = True,
    data_format: str = "NHWC",
    name: str | None = None,
    **variables: Any,
) -> Tensor:
    """A convolution over images: `activation(conv2d(inputs, kernel) + bias)`.

    Args:
        inputs: [batch, height, width, channels], of a floating-point dtype.
        filters: how many channels the result has.
        kernel_size: [height, width] of the window, or one int for all.
        strides: how far the window moves, likewise.
        padding: "valid" or "same", in capitals or not, or what `fb.nn.conv2d` takes.
        dilations: the distance of the window's places, likewise.
        activation: a function of a tensor.
        use_bias: whether there is a bias.
        data_format: "NHWC", or "NCHW" for the channels before [height, width].
        name: the name scope; by default "conv2d".
        variables: as for `dense`; `kernel` is [height, width, channels, filters].

    Returns:
        [batch, new height, new width, filters], or as `data_format` says.
    """

    def apply(x: Tensor, kernel: Any) -> Tensor:
        how = (padding, steps, rates, data_format, f"Conv{layout.count}D")
        return convolution.convolution(x, kernel, *how)

    layout, padding = layout_of(data_format), _in_capitals(padding)
    steps = each("strides", strides, layout.count)
    rates = each("dilations", dilations, layout.count)
    return _convolved(
        f"conv{layout.count}d",
        data_format,
        inputs,
        filters,
        kernel_size,
        lambda size, channels, filters: [*size, channels, filters],
        apply,
        activation,
        KernelAndBias(use_bias, **variables),
        name,
    )


conv1d, conv3d = over_sequences_and_volumes(conv2d)


@arguments_as(conv2d)
def conv2d_transpose(
    inputs: Any,
    filters: int,
    kernel_size: Any,
    strides: Any = 1,
    padding: str = "VALID",
    activation: Activation | None = None,
    use_bias: bool = True,
    data_format: str = "NHWC",
    name: str | None = None,
    **variables: Any,
) -> Tensor:
    """The transpose of a convolution: images grow by the strides.

    Args:
        strides: by how much images grow, likewise.
        padding: "valid" or "same", in capitals or not.
        name: the name scope; by default "conv2d_transpose".
        variables: as for `dense`; `kernel` is [height, width, filters, channels].

    Returns:
        [batch, new height, new width, filters], or as `data_format` says, where an image of height
        h becomes `h * stride` high with "SAME", and `h * stride + max(size - stride, 0)` with
        "VALID".
    """
    layout, padding = layout_of(data_format, 2), _in_capitals(padding)
    steps = each("strides", strides, 2)
    sizes = each("kernel_size", kernel_size, 2)
    if padding not in ("VALID", "SAME"):
        raise InvalidArgumentError(f"padding is VALID or SAME, not {padding!r}")
    extra = [max(k - s, 0) if padding == "VALID" else 0 for k, s in zip(sizes, steps, strict=True)]

    def apply(x: Tensor, kernel: Any) -> Tensor:
        known, found = x.shape.as_list(), shape_of(x)
        whole = [found[i] if d is None else d for i, d in enumerate(known)]
        first = 2 if layout.is_channels_first else 1
        for i, (step, more) in enumerate(zip(steps, extra, strict=True), first):
            whole[i] = whole[i] * step + more
        whole[layout.channels_axis] = filters
        output = stack(whole) if any(isinstance(d, Tensor) for d in whole) else whole
        return convolution.conv2d_transpose(x, kernel, output, steps, padding, data_format)

    return _convolved(
        "conv2d_transpose",
        data_format,
        inputs,
        filters,
        kernel_size,
        lambda size, channels, filters: [*size, filters, channels],
        apply,
        activation,
        KernelAndBias(use_bias, **variables),
        name,
    )


@arguments_as(conv2d)
def separable_conv2d(
    inputs: Any,
    filters: int,
    kernel_size: Any,
    strides: Any = 1,
    padding: Any = "VALID",
    dilations: Any = 1,
    depth_multiplier: int = 1,
    activation: Activation | None = None,
    use_bias: bool = True,
    depthwise_kernel: Any = None,
    data_format: str = "NHWC",
    name: str | None = None,
    **variables: Any,
) -> Tensor:
    """A convolution of each channel by itself, and then one of size 1 that mixes them.

    Args:
        padding: "valid" or "same", in capitals or not, or what `fb.nn.separable_conv2d` takes.
        depth_multiplier: how many channels each channel becomes in between.
        depthwise_kernel: [height, width, channels, depth_multiplier], to share a variable instead
            of making `name/depthwise_kernel`.
        name: the name scope; by default "separable_conv2d".
        variables: as for `dense`; `kernel` is that of size 1, [1, 1, channels * depth_multiplier,
            filters].

    Returns:
        [batch, new height, new width, filters], or as `data_format` says.

    Source: Chollet, "Xception: deep learning with depthwise separable convolutions", 2017.
    """
    layout, padding = layout_of(data_format, 2), _in_capitals(padding)
    multiplier = positive("depth_multiplier", depth_multiplier)
    sizes = each("kernel_size", kernel_size, 2)
    steps, rates = each("strides", strides, 2), each("dilations", dilations, 2)

    def apply(x: Tensor, kernel: Any) -> Tensor:
        shape = [*sizes, channels_of(x, layout.channels_axis), multiplier]
        initial = initializers.glorot_uniform()
        first = weights("depthwise_kernel", shape, x.dtype, initial, depthwise_kernel)
        return depthwise.separable_conv2d(x, first, kernel, steps, padding, rates, data_format)

    return _convolved(
        "separable_conv2d",
        data_format,
        inputs,
        filters,
        kernel_size,
        lambda size, channels, filters: [1, 1, channels * multiplier, filters],
        apply,
        activation,
        KernelAndBias(use_bias, **variables),
        name,
    )


def max_pooling2d(
    inputs: Any,
    pool_size: Any,
    strides: Any,
    padding: Any = "VALID",
    data_format: str = "NHWC",
    name: str | None = None,
) -> Tensor:
    """The largest value of each window of images.

    Args:
        inputs: [batch, height, width, channels].
        pool_size: [height, width] of the window, or one int for all.
        strides: how far the window moves, likewise.
        padding: "valid" or "same", in capitals or not.
        data_format: "NHWC", or "NCHW" for the channels before [height, width].
        name: the operation's name.
    """
    return _pooled("max", inputs, pool_size, strides, padding, data_format, name)


max_pooling1d, max_pooling3d = over_sequences_and_volumes(max_pooling2d)


@arguments_as(max_pooling2d)
def average_pooling2d(
    inputs: Any,
    pool_size: Any,
    strides: Any,
    padding: Any = "VALID",
    data_format: str = "NHWC",
    name: str | None = None,
) -> Tensor:
    """The mean of each window of images; what lies outside of them does not count.

    Args:
        inputs: [batch, height, width, channels], of a floating-point dtype.
        name: the operation's name.
    """
    return _pooled("average", inputs, pool_size, strides, padding, data_format, name)


average_pooling1d, average_pooling3d = over_sequences_and_volumes(average_pooling2d)


def _pooled(
    what: str,
    inputs: Any,
    pool_size: Any,
    strides: Any,
    padding: Any,
    data_format: str,
    name: str | None,
) -> Tensor:
    count = layout_of(data_format).count
    return pooling.pool(
        inputs,
        each("pool_size", pool_size, count),
        "MAX" if what == "max" else "AVG",
        _in_capitals(padding),
        strides=each("strides", strides, count),
        data_format=data_format,
        name=name or f"{what}_pooling{count}d",
    )
