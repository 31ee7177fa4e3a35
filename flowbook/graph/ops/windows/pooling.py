"""Pools: the maximum or the mean of windows that move over tensors [batch, ..., channels].

Windows are given for every axis, so that they may also lie along the channels. Padding counts for
nothing: it is never the maximum, and a mean is over the elements that exist. Of equal maxima the
first has the gradient.
"""

from __future__ import annotations

from math import prod
from typing import Any

from flowbook.graph.definition.inference import shape_from
from flowbook.graph.definition.op_def import REQUIRED, OpDef
from flowbook.graph.model.dtypes import FLOATS, INDICES, REALS
from flowbook.graph.model.errors import InvalidArgumentError, UnimplementedError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.constants import convert_to_tensor, zeros_like_op
from flowbook.graph.ops.basis.shaping import check_vector, shape_of
from flowbook.graph.ops.windows import pooling_kernels as kernels
from flowbook.graph.ops.windows.families import over_sequences_and_volumes
from flowbook.graph.ops.windows.layouts import Layout, layout_of
from flowbook.graph.ops.windows.windows import (
    Padding,
    inner_rank,
    numbers_of,
    output_dims,
    padding_of,
)

__all__ = [
    "avg_pool",
    "avg_pool1d",
    "avg_pool3d",
    "max_pool",
    "max_pool1d",
    "max_pool3d",
    "max_pool_with_argmax",
    "pool",
]

Ints = tuple[int, ...]


def _pooled(input: Shape, ksize: Ints, strides: Ints, padding: Padding, dilations: Ints) -> Shape:
    if input.rank not in (None, len(ksize)):
        raise InvalidArgumentError(
            f"windows {list(ksize)} are for {len(ksize)} dimensions, [batch, ..., channels], "
            f"not for the shape {input}"
        )
    if ksize[0] != 1 or strides[0] != 1:
        raise InvalidArgumentError(
            f"windows do not extend over the batch: ksize {list(ksize)}, strides {list(strides)}"
        )
    return Shape.of(output_dims(input, ksize, strides, dilations, padding))


def _shape(input: Tensor, **how: Any) -> Shape:
    return _pooled(input.shape, **how)


def _argmax_shapes(input: Tensor, include_batch_in_index: bool, **how: Any) -> list[Shape]:
    found = _pooled(input.shape, **how)
    return [found, found]


def _max_gradient(op: Operation, dy: Tensor, *_: Any) -> Tensor:
    how = {k: op.attributes[k] for k in _WINDOWS}
    return max_pool_gradient(op.inputs[0], op.outputs[0], dy, **how)


def _like_input(orig_input: Tensor, orig_output: Tensor, grad: Tensor, **how: Any) -> Shape:
    _pooled(orig_input.shape, **how).merge(orig_output.shape).merge(grad.shape)
    return orig_input.shape


def _like_output(orig_input: Tensor, orig_output: Tensor, values: Tensor, **how: Any) -> Shape:
    return _pooled(orig_input.shape.merge(values.shape), **how).merge(orig_output.shape)


def _flops(op: Operation) -> int:
    """One operation for each element of each window."""
    return (op.outputs[0].shape.size or 0) * int(prod(op.attributes["ksize"]))


def _flops_of_gradient(op: Operation) -> int:
    return 3 * (op.inputs[1].shape.size or 0) * int(prod(op.attributes["ksize"]))


_WINDOWS = {"ksize": REQUIRED, "strides": REQUIRED, "padding": REQUIRED, "dilations": REQUIRED}

max_pool_op = OpDef(
    "MaxPool",
    "input: T -> output: T",
    T=REALS,
    attributes=_WINDOWS,
    infer=_shape,
    kernel=kernels.max_pool,
    grad=_max_gradient,
    cost=_flops,
)

max_pool_gradient: OpDef = OpDef(
    "MaxPoolGrad",
    "orig_input: T, orig_output: T, grad: T -> output: T",
    T=REALS,
    attributes=_WINDOWS,
    infer=_like_input,
    kernel=kernels.max_pool_gradient,
    # Where the maxima lie does not change with the values, but for jumps.
    grad=lambda op, dx: (
        zeros_like_op(op.inputs[0]),
        None,
        max_pool_choice(op.inputs[0], op.inputs[1], dx, **op.attributes),
    ),
    cost=_flops_of_gradient,
)

max_pool_choice: OpDef = OpDef(
    "MaxPoolGradGrad",
    "orig_input: T, orig_output: T, values: T -> output: T",
    T=REALS,
    attributes=_WINDOWS,
    infer=_like_output,
    kernel=kernels.max_pool_choice,
    grad=lambda op, dy: (
        None,
        None,
        max_pool_gradient(op.inputs[0], op.inputs[1], dy, **op.attributes),
    ),
    cost=_flops_of_gradient,
)

max_pool_with_argmax_op: OpDef[tuple[Tensor, Tensor]] = OpDef(
    "MaxPoolWithArgmax",
    "input: T -> output: T, argmax: int64",
    T=REALS,
    attributes={**_WINDOWS, "include_batch_in_index": False},
    infer=_argmax_shapes,
    kernel=kernels.max_pool_with_argmax,
    grad=_max_gradient,
    cost=lambda op: 4 * _flops(op),
)


def _avg_input_shape(orig_input_shape: Tensor, grad: Tensor, **how: Any) -> Shape:
    check_vector("orig_input_shape", orig_input_shape)
    found = shape_from(orig_input_shape).with_rank(len(how["ksize"]))
    _pooled(found, **how).merge(grad.shape)
    return found


avg_pool_op: OpDef = OpDef(
    "AvgPool",
    "input: T -> output: T",
    T=FLOATS,
    attributes=_WINDOWS,
    infer=_shape,
    kernel=kernels.avg_pool,
    grad=lambda op, dy: avg_pool_gradient(shape_of(op.inputs[0]), dy, **op.attributes),
    cost=_flops,
)

avg_pool_gradient: OpDef = OpDef(
    "AvgPoolGrad",
    "orig_input_shape: I, grad: T -> output: T",
    T=FLOATS,
    I=INDICES,
    attributes=_WINDOWS,
    infer=_avg_input_shape,
    kernel=kernels.avg_pool_gradient,
    host_args=("orig_input_shape",),
    grad=lambda op, dx: (None, avg_pool_op(dx, **op.attributes)),
    cost=lambda op: (op.inputs[1].shape.size or 0) * prod(op.attributes["ksize"]),
)


def _windows(
    layout: Layout, ksize: Any, strides: Any, padding: Any, dilations: Any = 1
) -> dict[str, Any]:
    """The attributes of a pool of data in a layout, from what a user gave."""
    sizes = numbers_of("ksize", layout.listed(ksize), layout.count)
    gaps = numbers_of("dilations", layout.listed(dilations), layout.count)
    found = padding_of(layout.listed(padding), layout.count)
    if not isinstance(found, str):
        for (before, after), size, gap in zip(found, sizes, gaps, strict=True):
            if max(before, after) > (size - 1) * gap:
                raise InvalidArgumentError(
                    f"with a padding of {before} + {after} windows of {size} hold nothing else"
                )
    return {
        "ksize": sizes,
        "strides": numbers_of("strides", layout.listed(strides), layout.count),
        "padding": found,
        "dilations": gaps,
    }


def _pool(op_def: OpDef, layout: Layout, input: Any, name: str | None, *how: Any) -> Tensor:
    def build(data: Any, name: str | None) -> Tensor:
        return op_def(data, **attributes, name=name)

    attributes = _windows(layout, *how)
    number = "" if layout.count == 2 else f"{layout.count}D"
    return layout.through(build, input, name or op_def.type + number)


@max_pool_op.front
def max_pool(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    name: str | None = None,
) -> Tensor:
    """The maxima of windows that move over images.

    Args:
        input: [batch, height, width, channels], of a real dtype.
        ksize: a window's size: an int, one for each of [height, width], or one for each axis of
            the input, where it is 1 for the batch.
        strides: how far the window moves, likewise.
        padding: "VALID" places windows inside the image only; "SAME" so that there is one for each
            stride; or a pair [before, after] for each axis of the input. Padding is never the
            maximum.
        data_format: "NHWC", or "NCHW" for the channels before [height, width], in what is given
            for each axis too.

    Returns:
        [batch, new height, new width, channels], or as `data_format` says. Where a window holds
        NaN it is NaN, as in JAX; TensorFlow passes over it. Of equal maxima the first has the
        gradient.

    Raises:
        InvalidArgumentError: if a window does not fit; in the run, where that is known only then.

    >>> import flowbook as fb
    >>> images = fb.placeholder(fb.float32, [None, 28, 28, 32])
    >>> fb.nn.max_pool(images, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME").shape
    Shape([None, 14, 14, 32])
    """
    layout = layout_of(data_format)
    return _pool(max_pool_op, layout, input, name, ksize, strides, padding)


max_pool1d, max_pool3d = over_sequences_and_volumes(max_pool)


@avg_pool_op.front
def avg_pool(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    name: str | None = None,
) -> Tensor:
    """The means of windows that move over images, each over those of its elements that exist.

    Args:
        input: [batch, height, width, channels], of a floating-point dtype.
        ksize: a window's size, as for `max_pool`, and so are strides, padding and data_format.

    Returns:
        [batch, new height, new width, channels], or as `data_format` says.

    Raises:
        InvalidArgumentError: if a window does not fit; in the run, where that is known only then.
    """
    layout = layout_of(data_format)
    return _pool(avg_pool_op, layout, input, name, ksize, strides, padding)


avg_pool1d, avg_pool3d = over_sequences_and_volumes(avg_pool)


def pool(
    input: Any,
    window_shape: Any,
    pooling_type: str,
    padding: Any,
    dilations: Any = None,
    strides: Any = None,
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The maxima or means of windows over as many dimensions as lie between batch and channels.

    Args:
        input: [batch, ..., channels]; its rank, or the length of `window_shape`, must be known.
        window_shape: a window's size along each dimension between.
        pooling_type: "MAX" or "AVG".
        padding: "SAME", "VALID" or a pair for each axis.
        dilations: the distance of a window's elements, as for `window_shape`; 1 by default.
        strides: how far the window moves, as for `window_shape`; 1 by default.
        data_format: such as "NHWC", or "NCHW" for channels first; last by default.
        name: the operation's name.
    """
    kinds = {"MAX": max_pool_op, "AVG": avg_pool_op}
    input = convert_to_tensor(input)
    if pooling_type not in kinds:
        raise InvalidArgumentError(f'pooling_type is "MAX" or "AVG", not {pooling_type!r}')
    listed = isinstance(window_shape, list | tuple)
    count = len(window_shape) if listed else inner_rank(input)
    layout, moves = layout_of(data_format, count), 1 if strides is None else strides
    how = (window_shape, moves, padding, 1 if dilations is None else dilations)
    return _pool(kinds[pooling_type], layout, input, name, *how)


@max_pool_with_argmax_op.front
def max_pool_with_argmax(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    include_batch_in_index: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """The maxima of windows that move over images, and where in the image they lie.

    Args:
        input: [batch, height, width, channels], of a real dtype.
        ksize: as for `max_pool`, and so are strides and padding.
        data_format: "NHWC".
        include_batch_in_index: count the images before each too.

    Returns:
        `(output, argmax)`: `max_pool`'s output, and for each of its elements the int64 index of
        the first maximum, `(y * width + x) * channels + channel`.

    Raises:
        UnimplementedError: for data_format "NCHW".
    """
    layout = layout_of(data_format, 2)
    if layout.is_channels_first:
        raise UnimplementedError(
            "places are counted in data with its channels last",
            hint="transpose to it: fb.transpose(x, [0, 2, 3, 1])",
        )
    attributes = _windows(layout, ksize, strides, padding)
    output, argmax = max_pool_with_argmax_op(
        input, **attributes, include_batch_in_index=bool(include_batch_in_index), name=name
    )
    return output, argmax
