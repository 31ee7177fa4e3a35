"""Convolution and pooling layers: the last dimension holds the channels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flowbook.graph.building.scopes import name_scope
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.joining import stack
from flowbook.graph.ops.basis.shaping import shape as shape_of
from flowbook.graph.ops.windows import convolution, depthwise, pooling
from flowbook.train.layers import initializers
from flowbook.train.layers.weights import (
    Activation,
    KernelAndBias,
    activated,
    check_activation,
    last,
    layer_input,
    positive,
    weights,
)


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
    count: int,
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
    inputs = layer_input(inputs, what, count + 2)
    filters = positive("filters", filters)
    shape = kernel_shape(each("kernel_size", kernel_size, count), last(inputs), filters)
    with inputs.graph.as_default(), name_scope(name or what):
        result = apply(inputs, made.kernel(shape, inputs.dtype))
        return activated(made.with_bias(result, filters), activation)  # type: ignore[no-any-return]


def _plain(size: list[int], channels: int, filters: int) -> list[int]:
    return [*size, channels, filters]


def _reversed(size: list[int], channels: int, filters: int) -> list[int]:
    return [*size, filters, channels]


def _in_capitals(padding: Any) -> Any:
    return padding.upper() if isinstance(padding, str) else padding


def conv1d(
    inputs: Any,
    filters: int,
    kernel_size: Any,
    strides: Any = 1,
    padding: Any = "VALID",
    dilations: Any = 1,
    activation: Activation | None = None,
    use_bias: bool = True,
    name: str | None = None,
    **variables: Any,
) -> Tensor:
    """A convolution over sequences [batch, steps, channels]; arguments as for `conv2d`."""
    padding = _in_capitals(padding)
    [stride], [dilation] = each("strides", strides, 1), each("dilations", dilations, 1)
    return _convolved(
        "conv1d",
        1,
        inputs,
        filters,
        kernel_size,
        _plain,
        lambda x, kernel: convolution.conv1d(x, kernel, stride, padding, dilations=dilation),
        activation,
        KernelAndBias(use_bias, **variables),
        name,
    )


def conv2d(
    inputs: Any,
    filters: int,
    kernel_size: Any,
    strides: Any = 1,
    padding: Any = "VALID",
    dilations: Any = 1,
    activation: Activation | None = None,
    use_bias: bool = True,
    name: str | None = None,
    **variables: Any,
) -> Tensor:
    """A convolution over images: `activation(conv2d(inputs, kernel) + bias)`.

    Args:
        inputs: [batch, height, width, channels], of a floating-point dtype.
        filters: how many channels the result has.
        kernel_size: the height and width of the window, one int for both or two.
        strides: how far the window moves, likewise.
        padding: "valid" or "same", in capitals or not, or what `fb.nn.conv2d` takes.
        dilations: the distance of the window's places, likewise.
        activation: a function of a tensor.
        use_bias: whether there is a bias.
        name: the name scope; by default "conv2d".
        variables: as for `dense`; `kernel` is [height, width, channels, filters].

    Returns:
        [batch, out_height, out_width, filters].
    """
    padding = _in_capitals(padding)
    how: dict[str, Any] = {
        "strides": each("strides", strides, 2),
        "dilations": each("dilations", dilations, 2),
    }
    return _convolved(
        "conv2d",
        2,
        inputs,
        filters,
        kernel_size,
        _plain,
        lambda x, kernel: convolution.conv2d(x, kernel, padding=padding, **how),
        activation,
        KernelAndBias(use_bias, **variables),
        name,
    )


def conv3d(
    inputs: Any,
    filters: int,
    kernel_size: Any,
    strides: Any = 1,
    padding: Any = "VALID",
    dilations: Any = 1,
    activation: Activation | None = None,
    use_bias: bool = True,
    name: str | None = None,
    **variables: Any,
) -> Tensor:
    """A convolution over volumes [batch, depth, height, width, channels].

    Arguments as for `conv2d`, with three dimensions in place of two.
    """
    padding = _in_capitals(padding)
    how: dict[str, Any] = {
        "strides": each("strides", strides, 3),
        "dilations": each("dilations", dilations, 3),
    }
    return _convolved(
        "conv3d",
        3,
        inputs,
        filters,
        kernel_size,
        _plain,
        lambda x, kernel: convolution.conv3d(x, kernel, padding=padding, **how),
        activation,
        KernelAndBias(use_bias, **variables),
        name,
    )


def conv2d_transpose(
    inputs: Any,
    filters: int,
    kernel_size: Any,
    strides: Any = 1,
    padding: str = "VALID",
    activation: Activation | None = None,
    use_bias: bool = True,
    name: str | None = None,
    **variables: Any,
) -> Tensor:
    """The transpose of a convolution: images grow by the strides.

    Args:
        inputs: [batch, height, width, channels], of a floating-point dtype.
        filters: how many channels the result has.
        kernel_size: the height and width of the window, one int for both or two.
        strides: by how much images grow, likewise.
        padding: "valid" or "same", in capitals or not.
        activation: a function of a tensor.
        use_bias: whether there is a bias.
        name: the name scope; by default "conv2d_transpose".
        variables: as for `dense`; `kernel` is [height, width, filters, channels].

    Returns:
        [batch, out_height, out_width, filters], where an image of height h becomes `h * stride`
        high with "SAME", and `h * stride + max(size - stride, 0)` with "VALID".
    """
    padding = _in_capitals(padding)
    steps = each("strides", strides, 2)
    sizes = each("kernel_size", kernel_size, 2)
    if padding not in ("VALID", "SAME"):
        raise InvalidArgumentError(f"padding is VALID or SAME, not {padding!r}")
    extra = [max(k - s, 0) if padding == "VALID" else 0 for k, s in zip(sizes, steps, strict=True)]

    def apply(x: Tensor, kernel: Any) -> Tensor:
        known, found = x.shape.dims, shape_of(x)
        assert known is not None
        dims = [found[i] if d is None else d for i, d in enumerate(known[:3])]
        grown = [d * s + e for d, s, e in zip(dims[1:], steps, extra, strict=True)]
        whole = [dims[0], *grown, filters]
        output = stack(whole) if any(isinstance(d, Tensor) for d in whole) else whole
        return convolution.conv2d_transpose(x, kernel, output, steps, padding)

    return _convolved(
        "conv2d_transpose",
        2,
        inputs,
        filters,
        kernel_size,
        _reversed,
        apply,
        activation,
        KernelAndBias(use_bias, **variables),
        name,
    )


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
    name: str | None = None,
    **variables: Any,
) -> Tensor:
    """A convolution of each channel by itself, and then one of size 1 that mixes them.

    Args:
        inputs: [batch, height, width, channels], of a floating-point dtype.
        filters: how many channels the result has.
        kernel_size: the height and width of the window, one int for both or two.
        strides: how far the window moves, likewise.
        padding: "valid" or "same", in capitals or not, or what `fb.nn.separable_conv2d` takes.
        dilations: the distance of the window's places, likewise.
        depth_multiplier: how many channels each channel becomes in between.
        activation: a function of a tensor.
        use_bias: whether there is a bias.
        depthwise_kernel: [height, width, channels, depth_multiplier], to share a variable instead
            of making `name/depthwise_kernel`.
        name: the name scope; by default "separable_conv2d".
        variables: as for `dense`; `kernel` is that of size 1, [1, 1, channels * depth_multiplier,
            filters].

    Returns:
        [batch, out_height, out_width, filters].

    Source: Chollet, "Xception: deep learning with depthwise separable convolutions", 2017.
    """
    padding = _in_capitals(padding)
    multiplier = positive("depth_multiplier", depth_multiplier)
    steps = [1, *each("strides", strides, 2), 1]
    rates = each("dilations", dilations, 2)

    def apply(x: Tensor, kernel: Any) -> Tensor:
        shape = [*each("kernel_size", kernel_size, 2), last(x), multiplier]
        first = weights(
            "depthwise_kernel", shape, x.dtype, initializers.glorot_uniform(), depthwise_kernel
        )
        return depthwise.separable_conv2d(x, first, kernel, steps, padding, rates)

    return _convolved(
        "separable_conv2d",
        2,
        inputs,
        filters,
        kernel_size,
        lambda size, channels, filters: [1, 1, channels * multiplier, filters],
        apply,
        activation,
        KernelAndBias(use_bias, **variables),
        name,
    )


def max_pooling1d(
    inputs: Any, pool_size: Any, strides: Any, padding: Any = "VALID", name: str | None = None
) -> Tensor:
    """The largest value of each window of sequences [batch, steps, channels]."""
    padding = _in_capitals(padding)
    size, step = each("pool_size", pool_size, 1), each("strides", strides, 1)
    return pooling.max_pool1d(inputs, size, step, padding, name=name or "max_pooling1d")


def max_pooling2d(
    inputs: Any, pool_size: Any, strides: Any, padding: Any = "VALID", name: str | None = None
) -> Tensor:
    """The largest value of each window of images.

    Args:
        inputs: [batch, height, width, channels].
        pool_size: the height and width of the window, one int for both or two.
        strides: how far the window moves, likewise.
        padding: "valid" or "same", in capitals or not.
        name: the operation's name.
    """
    padding = _in_capitals(padding)
    size, step = each("pool_size", pool_size, 2), each("strides", strides, 2)
    return pooling.max_pool(inputs, size, step, padding, name=name or "max_pooling2d")


def max_pooling3d(
    inputs: Any, pool_size: Any, strides: Any, padding: Any = "VALID", name: str | None = None
) -> Tensor:
    """The largest value of each window of volumes [batch, depth, height, width, channels].

    Arguments as for `max_pooling2d`, with three dimensions in place of two.
    """
    padding = _in_capitals(padding)
    size, step = each("pool_size", pool_size, 3), each("strides", strides, 3)
    return pooling.max_pool3d(inputs, size, step, padding, name=name or "max_pooling3d")


def average_pooling1d(
    inputs: Any, pool_size: Any, strides: Any, padding: Any = "VALID", name: str | None = None
) -> Tensor:
    """The mean of each window of sequences [batch, steps, channels]."""
    padding = _in_capitals(padding)
    size, step = each("pool_size", pool_size, 1), each("strides", strides, 1)
    return pooling.avg_pool1d(inputs, size, step, padding, name=name or "average_pooling1d")


def average_pooling2d(
    inputs: Any, pool_size: Any, strides: Any, padding: Any = "VALID", name: str | None = None
) -> Tensor:
    """The mean of each window of images; what lies outside of them does not count.

    Args:
        inputs: [batch, height, width, channels], of a floating-point dtype.
        pool_size: the height and width of the window, one int for both or two.
        strides: how far the window moves, likewise.
        padding: "valid" or "same", in capitals or not.
        name: the operation's name.
    """
    padding = _in_capitals(padding)
    size, step = each("pool_size", pool_size, 2), each("strides", strides, 2)
    return pooling.avg_pool(inputs, size, step, padding, name=name or "average_pooling2d")


def average_pooling3d(
    inputs: Any, pool_size: Any, strides: Any, padding: Any = "VALID", name: str | None = None
) -> Tensor:
    """The mean of each window of volumes [batch, depth, height, width, channels].

    Arguments as for `average_pooling2d`, with three dimensions in place of two.
    """
    padding = _in_capitals(padding)
    size, step = each("pool_size", pool_size, 3), each("strides", strides, 3)
    return pooling.avg_pool3d(inputs, size, step, padding, name=name or "average_pooling3d")
