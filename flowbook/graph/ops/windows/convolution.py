"""Convolutions of any number of dimensions; data is [batch, ..., channels], filters [..., in, out].

One operation type serves all numbers of dimensions, and its two gradients are types of their own.
The three are closed under differentiation: each is linear in both of its arrays, and the gradient
of any is one of the others. A transposed convolution is the gradient by the input.
"""

from __future__ import annotations

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
from flowbook.graph.ops.windows.windows import (
    Padding,
    check_channels_last,
    inner_numbers,
    inner_padding,
    inner_rank,
    output_dims,
)

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


def _convolved(input: Tensor, filters: Tensor, **how: Any) -> Shape:
    return _output(input.shape, filters.shape, **how)


def agreeing(what: str, gradients: Tensor, output: Shape) -> Shape:
    """What gradients and the output that they belong to say together about its shape."""
    if not gradients.shape.is_compatible_with(output):
        raise InvalidArgumentError(
            f"{what} has the shape {gradients.shape}, but the convolution's output {output}"
        )
    return gradients.shape.merge(output)


def _input_shape(input_sizes: Tensor, filters: Tensor, out_backprop: Tensor, **how: Any) -> Shape:
    check_vector("input_sizes", input_sizes)
    count = len(how["strides"])
    weights = of_rank("'filters'", filters.shape, count)
    data = Shape.of(of_rank("the input", shape_from(input_sizes), count))
    output = agreeing("'out_backprop'", out_backprop, _output(data, filters.shape, **how))
    assert output.dims is not None
    return data.merge((output.dims[0], *(None,) * count, weights[-2]))


def _filter_shape(input: Tensor, filter_sizes: Tensor, out_backprop: Tensor, **how: Any) -> Shape:
    check_vector("filter_sizes", filter_sizes)
    count = len(how["strides"])
    data = of_rank("the input", input.shape, count)
    weights = Shape.of(of_rank("'filters'", shape_from(filter_sizes), count))
    output = agreeing("'out_backprop'", out_backprop, _output(input.shape, weights, **how))
    assert output.dims is not None
    return weights.merge((*(None,) * count, data[-1], output.dims[-1]))


def window_flops(output: Shape, filters: Shape) -> int:
    """Two operations, times a filter's elements, for each element of the output."""
    size = output.size
    if size is None or filters.dims is None or None in filters.dims[:-1]:
        return 0
    return 2 * size * prod(d for d in filters.dims[:-1] if d is not None)


def _gradient(op: Operation, dy: Tensor) -> Any:
    input, filters = op.inputs
    how = op.attributes
    return (
        input_gradient_op(shape_of(input), filters, dy, **how),
        filter_gradient_op(input, shape_of(filters), dy, **how),
    )


def _gradient_of_input_gradient(op: Operation, dx: Tensor) -> Any:
    _, filters, dy = op.inputs
    how = op.attributes
    return None, filter_gradient_op(dx, shape_of(filters), dy, **how), conv_op(dx, filters, **how)


def _gradient_of_filter_gradient(op: Operation, dw: Tensor) -> Any:
    input, _, dy = op.inputs
    how = op.attributes
    return input_gradient_op(shape_of(input), dw, dy, **how), None, conv_op(input, dw, **how)


_ATTRIBUTES = {"strides": REQUIRED, "padding": REQUIRED, "dilations": REQUIRED}

conv_op: OpDef = OpDef(
    "Convolution",
    "input: T, filters: T -> output: T",
    T=FLOATS,
    attributes=_ATTRIBUTES,
    infer=_convolved,
    kernel=convolve,
    grad=_gradient,
    aliases={},
    cost=lambda op: window_flops(op.outputs[0].shape, op.inputs[1].shape),
)

input_gradient_op: OpDef = OpDef(
    "ConvolutionBackpropInput",
    "input_sizes: I, filters: T, out_backprop: T -> output: T",
    T=FLOATS,
    I=INDICES,
    attributes=_ATTRIBUTES,
    infer=_input_shape,
    kernel=input_gradient,
    host_args=("input_sizes",),
    grad=_gradient_of_input_gradient,
    aliases={},
    # Each output of the forward convolution spreads over a window of all input channels.
    cost=lambda op: window_flops(op.inputs[2].shape, op.inputs[1].shape),
)

filter_gradient_op: OpDef = OpDef(
    "ConvolutionBackpropFilter",
    "input: T, filter_sizes: I, out_backprop: T -> output: T",
    T=FLOATS,
    I=INDICES,
    attributes=_ATTRIBUTES,
    infer=_filter_shape,
    kernel=filter_gradient,
    host_args=("filter_sizes",),
    grad=_gradient_of_filter_gradient,
    aliases={},
    cost=lambda op: window_flops(op.inputs[2].shape, op.outputs[0].shape),
)


def attributes_of(
    count: int, strides: Any, padding: Any, data_format: Any, dilations: Any
) -> dict[str, Any]:
    """The attributes of a convolution over `count` dimensions, from what a user gave."""
    check_channels_last(data_format, count)
    return {
        "strides": inner_numbers("strides", strides, count),
        "padding": inner_padding(padding, count),
        "dilations": inner_numbers("dilations", 1 if dilations is None else dilations, count),
    }


def _convolve(
    what: str, count: int, input: Any, filters: Any, name: str | None, *how: Any
) -> Tensor:
    attributes = attributes_of(count, *how)
    return conv_op(input, filters, **attributes, name=name or what)


def conv1d(
    input: Any,
    filters: Any,
    stride: Any,
    padding: Any,
    data_format: str = "NWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """The convolution of sequences: see `conv2d`, with one dimension in place of two.

    Args:
        input: [batch, width, channels in], of a floating-point dtype.
        filters: [width, channels in, channels out], of the same dtype.
        stride: how far the window moves, an int.
        padding: "SAME", "VALID" or [[0, 0], [before, after], [0, 0]].
        data_format: "NWC".
        dilations: the distance of a window's elements, an int; 1 by default.
        name: the operation's name.

    Returns:
        [batch, new width, channels out].
    """
    return _convolve("Conv1D", 1, input, filters, name, stride, padding, data_format, dilations)


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
        strides: how far the window moves: an int, [vertical, horizontal], or a number for each
            axis, [1, vertical, horizontal, 1].
        padding: "VALID" places windows inside the image only; "SAME" pads with zeros so that there
            is a window for each stride, the odd one below and to the right; or numbers of zeros,
            [[0, 0], [top, bottom], [left, right], [0, 0]].
        data_format: "NHWC".
        dilations: the distance of a window's elements, as for `strides`; 1 by default.
        name: the operation's name.

    Returns:
        [batch, new height, new width, channels out].

    Raises:
        InvalidArgumentError: if channels differ, or a window does not fit; in the run, where that
            is known only then.
        UnimplementedError: for data_format "NCHW".

    >>> import flowbook as fb
    >>> images = fb.placeholder(fb.float32, [None, 28, 28, 1])
    >>> fb.nn.conv2d(images, fb.zeros([5, 5, 1, 32]), 2, "SAME").shape
    Shape([None, 14, 14, 32])
    """
    return _convolve("Conv2D", 2, input, filters, name, strides, padding, data_format, dilations)


def conv3d(
    input: Any,
    filters: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NDHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """The convolution of volumes: see `conv2d`, with three dimensions in place of two.

    Args:
        input: [batch, depth, height, width, channels in], of a floating-point dtype.
        filters: [depth, height, width, channels in, channels out], of the same dtype.
        strides: how far the window moves: an int, 3 ints, or [1, ..., 1] with 5.
        padding: "SAME", "VALID" or a pair for each of the 5 axes.
        data_format: "NDHWC".
        dilations: the distance of a window's elements, as for `strides`; 1 by default.
        name: the operation's name.
    """
    return _convolve("Conv3D", 3, input, filters, name, strides, padding, data_format, dilations)


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
        data_format: channels last, such as "NHWC".
        name: the operation's name.

    Raises:
        InvalidArgumentError: if the rank of both is unknown, or as for `conv2d`.
    """
    data, weights = convert_to_tensor(input), convert_to_tensor(filters)
    count = inner_rank(data, weights)
    how = (1 if strides is None else strides, padding, data_format, dilations)
    return _convolve("Convolution", count, data, weights, name, *how)


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
    return _convolve("AtrousConv2D", 2, value, filters, name, 1, padding, "NHWC", rate)


def _transposed(
    what: str,
    count: int,
    input: Any,
    filters: Any,
    output_shape: Any,
    name: str | None,
    *how: Any,
) -> Tensor:
    attributes = attributes_of(count, *how)
    sizes = shape_argument(output_shape)
    return input_gradient_op(sizes, filters, input, **attributes, name=name or what)


def conv1d_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any = "SAME",
    data_format: str = "NWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """The transpose of `conv1d`: see `conv2d_transpose`, with one dimension in place of two."""
    how = (strides, padding, data_format, dilations)
    return _transposed("Conv1DTranspose", 1, input, filters, output_shape, name, *how)


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
        output_shape: [batch, new height, new width, channels out]: ints, or an int vector tensor.
            The convolution with these strides must lead from it to the input's shape.
        strides: how many times larger the output is, as for `conv2d`.
        padding: as for `conv2d`.
        data_format: "NHWC".
        dilations: as for `conv2d`.
        name: the operation's name.

    Raises:
        InvalidArgumentError: if the shapes do not belong together.

    Source: Zeiler et al., "Deconvolutional Networks", 2010.
    """
    how = (strides, padding, data_format, dilations)
    return _transposed("Conv2DTranspose", 2, input, filters, output_shape, name, *how)


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
    how = (1, padding, "NHWC", rate)
    return _transposed("AtrousConv2DTranspose", 2, value, filters, output_shape, name, *how)


def conv3d_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any = "SAME",
    data_format: str = "NDHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """The transpose of `conv3d`: see `conv2d_transpose`, with three dimensions in place of two."""
    how = (strides, padding, data_format, dilations)
    return _transposed("Conv3DTranspose", 3, input, filters, output_shape, name, *how)


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
    what = "Conv2DBackpropInput"
    return _transposed(what, 2, out_backprop, filters, input_sizes, name, *how)


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
        input: [batch, height, width, channels in].
        filter_sizes: the filters' shape, ints or an int vector tensor.
        out_backprop: the gradient by the output, of the output's shape.
        strides: as for `conv2d`, and so are padding, data_format and dilations.
        name: the operation's name.

    Returns:
        Of the shape `filter_sizes`.
    """
    attributes = attributes_of(2, strides, padding, data_format, dilations)
    sizes = shape_argument(filter_sizes)
    return filter_gradient_op(
        input, sizes, out_backprop, **attributes, name=name or "Conv2DBackpropFilter"
    )
