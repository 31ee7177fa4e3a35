"""Convolutions of any number of dimensions; data is [batch, ..., channels], filters [..., in, out].

One operation type serves all numbers of dimensions, and its two gradients are types of their own.
The three are closed under differentiation: each is linear in both of its arrays, and the gradient
of any is one of the others. A transposed convolution is the gradient by the input.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from flowbook.graph.definition.inference import shape_from
from flowbook.graph.definition.op_def import REQUIRED, OpDef
from flowbook.graph.model.dtypes import FLOATS, INDICES
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.shaping import check_vector, shape_argument, shape_of
from flowbook.graph.ops.windows.convolution_kernels import convolve, filter_gradient, input_gradient
from flowbook.graph.ops.windows.families import over_sequences_and_volumes
from flowbook.graph.ops.windows.layouts import Layout, layout_of
from flowbook.graph.ops.windows.windows import (
    Padding,
    inner_numbers,
    inner_padding,
    inner_rank,
    output_dims,
)

__all__ = [
    "atrous_conv2d",
    "atrous_conv2d_transpose",
    "conv1d",
    "conv1d_transpose",
    "conv2d",
    "conv2d_backprop_filter",
    "conv2d_backprop_input",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
    "convolution",
]

Ints = tuple[int, ...]


def of_rank(what: str, shape: Shape, count: int) -> Any:
    """The dimensions of what a convolution over `count` dimensions takes.

    Raises:
        InvalidArgumentError: if they are known and not `count + 2`.
    """
    if shape.rank not in (None, count + 2):
        raise InvalidArgumentError(
            f"{what} of a convolution over {count} dimensions has {count + 2}, "
            f"not the shape {shape}",
            hint="data is [batch, ..., channels], filters are [..., channels in, channels out]",
        )
    return (None,) * (count + 2) if shape.dims is None else shape.dims


def _output(
    input: Shape, filters: Shape, strides: Ints, padding: Padding, dilations: Ints
) -> Shape:
    count = len(strides)
    data, weights = of_rank("the input", input, count), of_rank("'filters'", filters, count)
    if data[-1] is not None and weights[-2] is not None and data[-1] != weights[-2]:
        raise InvalidArgumentError(
            f"the input's {data[-1]} channels are not the filters' {weights[-2]}: "
            f"{input} by {filters}",
            hint="filters are [..., channels in, channels out]",
        )
    between = output_dims(Shape.of(data), weights[:-2], strides, dilations, padding, 1)
    return Shape.of((data[0], *between, weights[-1]))


def _agreeing(gradients: Tensor, output: Shape) -> Shape:
    """What gradients and the output that they belong to say together about its shape."""
    if not gradients.shape.is_compatible_with(output):
        raise InvalidArgumentError(
            f"'out_backprop' has the shape {gradients.shape}, but the convolution's output {output}"
        )
    return gradients.shape.merge(output)


def window_flops(output: Shape, filters: Shape) -> int:
    """Two operations, times a filter's elements, for each element of the output."""
    size = output.size
    if size is None or filters.dims is None or None in filters.dims[:-1]:
        return 0
    return 2 * size * prod(d for d in filters.dims[:-1] if d is not None)


def with_gradients(
    type: str,
    output: Callable[..., Shape],
    kernels: tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]],
    flops: Callable[[Shape, Shape], int],
    is_depthwise: bool = False,
) -> tuple[OpDef, OpDef, OpDef]:
    """A convolution, its gradient by the input, and that by the filters.

    Args:
        type: the convolution's; those of the gradients are named after it.
        output: gives the output's shape for those of input and filters, and the attributes.
        kernels: one for each of the three.
        flops: what it takes for an output and filters of these shapes: as much as either gradient.
        is_depthwise: whether the filters' last dimension is not the output's.
    """

    def output_shape(input: Tensor, filters: Tensor, **how: Any) -> Shape:
        return output(input.shape, filters.shape, **how)

    def input_shape(
        input_sizes: Tensor, filters: Tensor, out_backprop: Tensor, **how: Any
    ) -> Shape:
        check_vector("input_sizes", input_sizes)
        count = len(how["strides"])
        weights = of_rank("'filters'", filters.shape, count)
        data = Shape.of(of_rank("the input", shape_from(input_sizes), count))
        found = _agreeing(out_backprop, output(data, filters.shape, **how))
        assert found.dims is not None
        return data.merge((found.dims[0], *(None,) * count, weights[-2]))

    def filter_shape(
        input: Tensor, filter_sizes: Tensor, out_backprop: Tensor, **how: Any
    ) -> Shape:
        check_vector("filter_sizes", filter_sizes)
        count = len(how["strides"])
        data = of_rank("the input", input.shape, count)
        weights = Shape.of(of_rank("'filters'", shape_from(filter_sizes), count))
        found = _agreeing(out_backprop, output(input.shape, weights, **how))
        assert found.dims is not None
        last = None if is_depthwise else found.dims[-1]
        return weights.merge((*(None,) * count, data[-1], last))

    def gradient(op: Operation, dy: Tensor) -> Any:
        input, filters = op.inputs
        how = op.attributes
        return (
            by_input(shape_of(input), filters, dy, **how),
            by_filters(input, shape_of(filters), dy, **how),
        )

    def gradient_by_input(op: Operation, dx: Tensor) -> Any:
        _, filters, dy = op.inputs
        how = op.attributes
        return None, by_filters(dx, shape_of(filters), dy, **how), forward(dx, filters, **how)

    def gradient_by_filters(op: Operation, dw: Tensor) -> Any:
        input, _, dy = op.inputs
        how = op.attributes
        return by_input(shape_of(input), dw, dy, **how), None, forward(input, dw, **how)

    attributes = {"strides": REQUIRED, "padding": REQUIRED, "dilations": REQUIRED}
    forward: OpDef = OpDef(
        type,
        "input: T, filters: T -> output: T",
        T=FLOATS,
        attributes=attributes,
        infer=output_shape,
        kernel=kernels[0],
        grad=gradient,
        cost=lambda op: flops(op.outputs[0].shape, op.inputs[1].shape),
    )
    by_input: OpDef = OpDef(
        f"{type}BackpropInput",
        "input_sizes: I, filters: T, out_backprop: T -> output: T",
        T=FLOATS,
        I=INDICES,
        attributes=attributes,
        infer=input_shape,
        kernel=kernels[1],
        host_args=("input_sizes",),
        grad=gradient_by_input,
        # Each output of the forward convolution spreads over a window of all input channels.
        cost=lambda op: flops(op.inputs[2].shape, op.inputs[1].shape),
    )
    by_filters: OpDef = OpDef(
        f"{type}BackpropFilter",
        "input: T, filter_sizes: I, out_backprop: T -> output: T",
        T=FLOATS,
        I=INDICES,
        attributes=attributes,
        infer=filter_shape,
        kernel=kernels[2],
        host_args=("filter_sizes",),
        grad=gradient_by_filters,
        cost=lambda op: flops(op.inputs[2].shape, op.outputs[0].shape),
    )
    return forward, by_input, by_filters


conv_op, input_gradient_op, filter_gradient_op = with_gradients(
    "Convolution", _output, (convolve, input_gradient, filter_gradient), window_flops
)


def attributes_of(layout: Layout, strides: Any, padding: Any, dilations: Any) -> dict[str, Any]:
    """The attributes of a convolution of data in a layout, from what a user gave."""
    gaps = 1 if dilations is None else dilations
    return {
        "strides": inner_numbers("strides", layout.listed(strides), layout.count),
        "padding": inner_padding(layout.listed(padding), layout.count),
        "dilations": inner_numbers("dilations", layout.listed(gaps), layout.count),
    }


def _convolve(layout: Layout, input: Any, filters: Any, name: str, *how: Any) -> Tensor:
    def build(data: Any, name: str | None) -> Tensor:
        return conv_op(data, filters, **attributes, name=name)

    attributes = attributes_of(layout, *how)
    return layout.through(build, input, name)


def conv2d(
    input: Any,
    filters: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """The convolution of images with filters: for each place the products with a window, summed.

    As everywhere in neural networks the filters are not turned round, so that it is a correlation.

    Args:
        input: [batch, height, width, channels in], of a floating-point dtype.
        filters: [height, width, channels in, channels out], of the same dtype.
        strides: how far the window moves: an int, one for each of [height, width], or one for each
            axis of the input, where it is 1 for batch and channels.
        padding: "VALID" places windows inside the image only; "SAME" pads with zeros so that there
            is a window for each stride, the odd one after; or numbers of zeros, a pair
            [before, after] for each axis of the input, where it is [0, 0] for batch and channels.
        data_format: "NHWC", or "NCHW" for the channels before [height, width], in what is given
            for each axis too.
        dilations: the distance of a window's elements, as for `strides`; 1 by default.
        name: the operation's name.

    Returns:
        [batch, new height, new width, channels out], or as `data_format` says.

    Raises:
        InvalidArgumentError: if channels differ, or a window does not fit; in the run, where that
            is known only then.

    >>> import flowbook as fb
    >>> images = fb.placeholder(fb.float32, [None, 28, 28, 1])
    >>> fb.nn.conv2d(images, fb.zeros([5, 5, 1, 32]), 2, "SAME").shape
    Shape([None, 14, 14, 32])
    """
    layout = layout_of(data_format)
    name = name or f"Conv{layout.count}D"
    return _convolve(layout, input, filters, name, strides, padding, dilations)


conv1d, conv3d = over_sequences_and_volumes(conv2d)


@conv_op.front
def convolution(
    input: Any,
    filters: Any,
    padding: Any,
    strides: Any = None,
    dilations: Any = None,
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The convolution over as many dimensions as the filters say: see `conv2d`.

    Args:
        input: [batch, ..., channels in], of a floating-point dtype.
        filters: [..., channels in, channels out], of the same dtype.
        padding: "SAME", "VALID" or a pair for each axis.
        strides: how far the window moves: an int, or one for each dimension between; 1 by default.
        dilations: the distance of a window's elements, likewise.
        data_format: such as "NHWC", or "NCHW" for channels first; last by default.

    Raises:
        InvalidArgumentError: if the rank of both is unknown, or as for `conv2d`.
    """
    data, weights = convert_to_tensor(input), convert_to_tensor(filters)
    layout = layout_of(data_format, inner_rank(data, weights))
    moves = 1 if strides is None else strides
    return _convolve(layout, data, weights, name or "Convolution", moves, padding, dilations)


def atrous_conv2d(
    value: Any, filters: Any, rate: int, padding: Any, name: str | None = None
) -> Tensor:
    """The convolution of images with windows whose elements are `rate` apart: see `conv2d`.

    Args:
        value: [batch, height, width, channels in].
        filters: [height, width, channels in, channels out].
        rate: the distance of a window's elements, an int.
        padding: as for `conv2d`.
        name: the operation's name.
    """
    return conv2d(value, filters, 1, padding, dilations=rate, name=name or "AtrousConv2D")


def conv2d_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any = "SAME",
    data_format: str = "NHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """The transpose of `conv2d`, which enlarges images by learnt filters.

    Args:
        input: [batch, height, width, channels in], of a floating-point dtype.
        filters: [height, width, channels out, channels in]: those of the convolution that leads
            from the output back to the input.
        output_shape: [batch, new height, new width, channels out], or as `data_format` says: ints,
            or an int vector tensor. The convolution with these strides must lead from it to the
            input's shape.
        strides: how many times larger the output is, as for `conv2d`.
        padding: as for `conv2d`, and so are data_format and dilations.
        name: the operation's name.

    Raises:
        InvalidArgumentError: if the shapes do not belong together.

    Source: Zeiler et al., "Deconvolutional Networks", 2010.
    """

    def build(data: Any, name: str | None) -> Tensor:
        return input_gradient_op(sizes, filters, data, **attributes, name=name)

    layout = layout_of(data_format)
    attributes = attributes_of(layout, strides, padding, dilations)
    sizes = layout.sizes(output_shape)
    return layout.through(build, input, name or f"Conv{layout.count}DTranspose")


conv1d_transpose, conv3d_transpose = over_sequences_and_volumes(conv2d_transpose)


def atrous_conv2d_transpose(
    value: Any,
    filters: Any,
    output_shape: Any,
    rate: int,
    padding: Any,
    name: str | None = None,
) -> Tensor:
    """The transpose of `atrous_conv2d`: `conv2d_transpose` with windows of distant elements.

    Args:
        value: [batch, height, width, channels in].
        filters: [height, width, channels out, channels in].
        output_shape: as for `conv2d_transpose`.
        rate: the distance of a window's elements, an int.
        padding: as for `conv2d`.
        name: the operation's name.
    """
    name = name or "AtrousConv2DTranspose"
    return conv2d_transpose(value, filters, output_shape, 1, padding, dilations=rate, name=name)


def conv2d_backprop_input(
    input_sizes: Any,
    filters: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """The gradient of `conv2d` by its input.

    Args:
        input_sizes: the input's shape, ints or an int vector tensor.
        filters: [height, width, channels in, channels out].
        out_backprop: the gradient by the output, of the output's shape.
        strides: as for `conv2d`, and so are padding, data_format and dilations.
        name: the operation's name.

    Returns:
        Of the shape `input_sizes`.
    """
    how = (strides, padding, data_format, dilations)
    name = name or "Conv2DBackpropInput"
    return conv2d_transpose(out_backprop, filters, input_sizes, *how, name=name)


def conv2d_backprop_filter(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """The gradient of `conv2d` by its filters.

    Args:
        input: [batch, height, width, channels in], or as `data_format` says.
        filter_sizes: the filters' shape, ints or an int vector tensor.
        out_backprop: the gradient by the output, of the output's shape.
        strides: as for `conv2d`, and so are padding, data_format and dilations.
        name: the operation's name.

    Returns:
        Of the shape `filter_sizes`.
    """
    layout = layout_of(data_format)
    return filter_gradient_op(
        layout.channels_last(input),
        shape_argument(filter_sizes),
        layout.channels_last(out_backprop),
        **attributes_of(layout, strides, padding, dilations),
        name=name or "Conv2DBackpropFilter",
    )
