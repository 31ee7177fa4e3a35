"""Depthwise convolutions: every channel has filters of its own; data is [batch, ..., channels].

Filters are [..., channels, multiplier], and output channel `c * multiplier + m` is channel `c` by
its filter `m`. There is no product of matrices in it: kernels go over the places of the window.
"""

from __future__ import annotations

from typing import Any

from flowbook.graph.definition.composed import composed
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.windows.convolution import (
    Ints,
    attributes_of,
    conv2d,
    of_rank,
    window_flops,
    with_gradients,
)
from flowbook.graph.ops.windows.convolution_kernels import check_gradients, chunks, placed, wide
from flowbook.graph.ops.windows.layouts import layout_of
from flowbook.graph.ops.windows.windows import Padding, output_dims, taps

__all__ = ["depthwise_conv2d", "separable_conv2d"]


def _output(
    input: Shape, filters: Shape, strides: Ints, padding: Padding, dilations: Ints
) -> Shape:
    count = len(strides)
    data, weights = of_rank("the input", input, count), of_rank("'filters'", filters, count)
    channels, multiplier = weights[-2:]
    if data[-1] is not None and channels is not None and data[-1] != channels:
        raise InvalidArgumentError(
            f"the input's {data[-1]} channels are not the filters' {channels}: "
            f"{input} by {filters}",
            hint="filters are [..., channels, multiplier]",
        )
    channels = data[-1] if channels is None else channels
    last = None if channels is None or multiplier is None else channels * multiplier
    between = output_dims(Shape.of(data), weights[:-2], strides, dilations, padding, 1)
    return Shape.of((data[0], *between, last))


def _repeated(xp: Any, x: Any, multiplier: int) -> Any:
    """Each channel as often as it has filters, so that all goes elementwise."""
    return x if multiplier == 1 else xp.repeat(x, multiplier, axis=-1)


def _row(xp: Any, weights: Any, outputs: Any) -> Any:
    """A filter's weights for each window of a row: NumPy is slow at short inner loops."""
    return xp.broadcast_to(weights, (outputs[-1].stop - outputs[-1].start, *weights.shape)).copy()


def _forward(
    xp: Any, input: Any, filters: Any, strides: Ints, padding: Padding, dilations: Ints
) -> Any:
    windows = placed(input.shape, filters.shape, strides, padding, dilations)
    multiplier = filters.shape[-1]
    x = wide(input)
    w = wide(filters).reshape(*filters.shape[:-2], -1)
    result = xp.zeros((len(x), *(a.output for a in windows), w.shape[-1]), x.dtype)
    places = list(taps(windows))
    for n, images in chunks(len(x), x[:1].nbytes * multiplier) if result.size else ():
        source, target = _repeated(xp, x[n : n + images], multiplier), result[n : n + images]
        for place, outputs, sources in places:
            row = _row(xp, w[place], outputs)
            target[(slice(None), *outputs)] += source[(slice(None), *sources)] * row
    return result.astype(input.dtype, copy=False)


def _input_gradient(
    xp: Any,
    input_sizes: Any,
    filters: Any,
    out_backprop: Any,
    strides: Ints,
    padding: Padding,
    dilations: Ints,
) -> Any:
    dims = tuple(input_sizes.tolist())
    windows = placed(dims, filters.shape, strides, padding, dilations)
    channels, multiplier = filters.shape[-2:]
    check_gradients(out_backprop, dims[0], windows, channels * multiplier)
    dy = wide(out_backprop)
    w = wide(filters).reshape(*filters.shape[:-2], -1)
    result = xp.zeros(dims, dy.dtype)
    places = list(taps(windows))
    for n, images in chunks(dims[0], result[:1].nbytes * multiplier) if dy.size else ():
        source, target = dy[n : n + images], result[n : n + images]
        shape = (*target.shape[:-1], channels * multiplier)
        sums = target if multiplier == 1 else xp.zeros(shape, dy.dtype)
        for place, outputs, sources in places:
            row = _row(xp, w[place], outputs)
            sums[(slice(None), *sources)] += source[(slice(None), *outputs)] * row
        if multiplier != 1:
            xp.sum(sums.reshape(*target.shape, multiplier), axis=-1, out=target)
    return result.astype(out_backprop.dtype, copy=False)


def _filter_gradient(
    xp: Any,
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Ints,
    padding: Padding,
    dilations: Ints,
) -> Any:
    dims = tuple(filter_sizes.tolist())
    windows = placed(input.shape, dims, strides, padding, dilations)
    channels, multiplier = dims[-2:]
    check_gradients(out_backprop, len(input), windows, channels * multiplier)
    x, dy = wide(input), wide(out_backprop)
    total = xp.zeros((*dims[:-2], channels * multiplier), x.dtype)
    places = list(taps(windows))
    for n, images in chunks(len(x), x[:1].nbytes * multiplier) if dy.size else ():
        source, part = _repeated(xp, x[n : n + images], multiplier), dy[n : n + images]
        for place, outputs, sources in places:
            terms = source[(slice(None), *sources)] * part[(slice(None), *outputs)]
            rows = terms.reshape(-1, terms.shape[-2] * terms.shape[-1])
            total[place] += xp.sum(xp.sum(rows, axis=0).reshape(terms.shape[-2:]), axis=0)
    return total.reshape(dims).astype(input.dtype, copy=False)


def _flops(output: Shape, filters: Shape) -> int:
    """Each element of the output sees one channel only."""
    return window_flops(output, Shape.of((*filters.dims[:-2], 1)) if filters.dims else filters)


depthwise_op, input_gradient_op, filter_gradient_op = with_gradients(
    "DepthwiseConvolution",
    _output,
    (_forward, _input_gradient, _filter_gradient),
    _flops,
    is_depthwise=True,
)


@depthwise_op.front
def depthwise_conv2d(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    dilations: Any = None,
    data_format: str = "NHWC",
    name: str | None = None,
) -> Tensor:
    """The convolution of every channel of images with filters of its own.

    Args:
        input: [batch, height, width, channels], of a floating-point dtype.
        filter: [height, width, channels, multiplier], of the same dtype.
        strides: as for `conv2d`, and so is padding.
        dilations: the distance of a window's elements: an int or [vertical, horizontal]; strides
            other than 1 go with it.
        data_format: as for `conv2d`.

    Returns:
        [batch, new height, new width, channels * multiplier]; channel `c * multiplier + m` is
        channel `c` by its filter `m`.

    Raises:
        InvalidArgumentError: as for `conv2d`.
    """

    def build(data: Any, name: str | None) -> Tensor:
        return depthwise_op(data, filter, **attributes, name=name)

    layout = layout_of(data_format)
    attributes = attributes_of(layout, strides, padding, dilations)
    return layout.through(build, input, name or "DepthwiseConv2D")


@composed
def separable_conv2d(
    input: Any,
    depthwise_filter: Any,
    pointwise_filter: Any,
    strides: Any,
    padding: Any,
    dilations: Any = None,
    data_format: str = "NHWC",
    name: str | None = None,
) -> Tensor:
    """A depthwise convolution, and then one of size 1 that mixes the channels.

    Args:
        input: [batch, height, width, channels], of a floating-point dtype.
        depthwise_filter: [height, width, channels, multiplier].
        pointwise_filter: [1, 1, channels * multiplier, channels out].
        strides: of the depthwise convolution, as for `conv2d`; and so are padding, dilations and
            data_format.

    Raises:
        InvalidArgumentError: if `pointwise_filter` is larger than 1 by 1, or as for `conv2d`.

    Source: Chollet, "Xception", 2017.
    """
    pointwise_filter = convert_to_tensor(pointwise_filter)
    if not pointwise_filter.shape.is_compatible_with((1, 1, None, None)):
        raise InvalidArgumentError(
            "'pointwise_filter' is [1, 1, channels in, channels out], "
            f"not of shape {pointwise_filter.shape}"
        )
    between = depthwise_conv2d(
        input, depthwise_filter, strides, padding, dilations, data_format, name="depthwise"
    )
    return conv2d(between, pointwise_filter, 1, "VALID", data_format, name=name)
