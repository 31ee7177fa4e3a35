"""Greyscale morphology: maxima and minima of windows whose elements are raised by a filter.

Padding counts for nothing. Of equal maxima the first has the gradient.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.op_def import REQUIRED, OpDef
from flowbook.graph.model.dtypes import FLOATS
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.arrays.reversing import reverse
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.math.arithmetic import negative
from flowbook.graph.ops.windows.windows import (
    PADDINGS,
    AxisWindows,
    Padding,
    inner_numbers,
    laid,
    output_dims,
    taps,
)

__all__ = ["dilation2d", "erosion2d"]

Ints = tuple[int, ...]

_HOW = {"strides": REQUIRED, "dilations": REQUIRED, "padding": REQUIRED}


def _dims(input: Any, filters: Any) -> tuple[Any, Any]:
    """The dimensions of both, of tensors as of arrays."""
    data, raised = Shape(input.shape), Shape(filters.shape)
    channels = data.dims[-1] if data.dims else None
    if not data.is_compatible_with((None,) * 4) or not raised.is_compatible_with(
        (None, None, channels)
    ):
        raise InvalidArgumentError(
            f"the input is [batch, height, width, channels] and filters are [height, width, "
            f"channels], not {data} and {raised}"
        )
    return data.dims or (None,) * 4, raised.dims or (None,) * 3


def _dilated(
    input: Tensor, filters: Tensor, strides: Ints, dilations: Ints, padding: Padding
) -> Shape:
    data, raised = _dims(input, filters)
    between = output_dims(Shape.of(data), raised[:2], strides, dilations, padding, 1)
    return Shape.of((data[0], *between, raised[2] if data[3] is None else data[3]))


def _windows(
    input: Any, filters: Any, strides: Ints, dilations: Ints, padding: Padding
) -> tuple[AxisWindows, ...]:
    data, raised = _dims(input, filters)
    return laid(data[1:3], raised[:2], strides, dilations, padding, 1)


def _dilation(
    xp: Any, input: Any, filters: Any, strides: Ints, dilations: Ints, padding: Padding
) -> Any:
    windows = _windows(input, filters, strides, dilations, padding)
    shape = (input.shape[0], *(w.output for w in windows), input.shape[3])
    result = xp.full(shape, -np.inf, input.dtype)
    for place, outputs, sources in taps(windows):
        found = result[:, *outputs]
        xp.maximum(found, input[:, *sources] + filters[place], out=found)
    return result


def _dilation_gradient(
    xp: Any, input: Any, filters: Any, dy: Any, strides: Ints, dilations: Ints, padding: Padding
) -> tuple[Any, Any]:
    # Anew, as an output that was rounded to bfloat16 would equal no element.
    best = _dilation(xp, input, filters, strides, dilations, padding)
    rest = dy.copy()
    d_input, d_filters = xp.zeros_like(input), xp.zeros_like(filters)
    for place, outputs, sources in taps(_windows(input, filters, strides, dilations, padding)):
        left = rest[:, *outputs]
        chosen = input[:, *sources] + filters[place] == best[:, *outputs]
        share = xp.where(chosen, left, 0)
        d_input[:, *sources] += share
        d_filters[place] = share.sum(axis=(0, 1, 2))
        left[chosen] = 0
    return d_input, d_filters


def _dilation_choice(
    xp: Any,
    input: Any,
    filters: Any,
    of_input: Any,
    of_filters: Any,
    strides: Ints,
    dilations: Ints,
    padding: Padding,
) -> Any:
    best = _dilation(xp, input, filters, strides, dilations, padding)
    is_open = xp.ones(best.shape, bool)
    result = xp.zeros_like(best)
    for place, outputs, sources in taps(_windows(input, filters, strides, dilations, padding)):
        left = is_open[:, *outputs]
        chosen = left & (input[:, *sources] + filters[place] == best[:, *outputs])
        result[:, *outputs] += xp.where(chosen, of_input[:, *sources] + of_filters[place], 0)
        left[chosen] = False
    return result


def _like_both(input: Tensor, filters: Tensor, dy: Tensor, **how: Any) -> list[Shape]:
    _dilated(input, filters, **how).merge(dy.shape)
    return [input.shape, filters.shape]


def _chosen(
    input: Tensor, filters: Tensor, of_input: Tensor, of_filters: Tensor, **how: Any
) -> Shape:
    input.shape.merge(of_input.shape)
    filters.shape.merge(of_filters.shape)
    return _dilated(input, filters, **how)


def _flops(op: Operation) -> int:
    """Two for each element of each window."""
    height, width, _ = op.inputs[1].shape.dims or (None, None, None)
    outputs = op.inputs[2] if op.op_def is dilation_gradient_op else op.outputs[0]
    return 2 * (outputs.shape.size or 0) * (height or 0) * (width or 0)


# Where the maxima lie does not change with the values, but for jumps: input and filters have no
# part in the derivatives of these two, each of which is the other's.
dilation_gradient_op: OpDef[tuple[Tensor, Tensor]] = OpDef(
    "Dilation2DGrad",
    "input: T, filters: T, dy: T -> d_input: T, d_filters: T",
    T=FLOATS,
    attributes=_HOW,
    choices={"padding": PADDINGS},
    infer=_like_both,
    kernel=_dilation_gradient,
    grad=lambda op, dx, dw: (
        None,
        None,
        dilation_choice_op(*op.inputs[:2], dx, dw, **op.attributes),
    ),
    cost=_flops,
)

dilation_choice_op: OpDef = OpDef(
    "Dilation2DGradGrad",
    "input: T, filters: T, of_input: T, of_filters: T -> output: T",
    T=FLOATS,
    attributes=_HOW,
    choices={"padding": PADDINGS},
    infer=_chosen,
    kernel=_dilation_choice,
    grad=lambda op, dy: (None, None, *dilation_gradient_op(*op.inputs[:2], dy, **op.attributes)),
    cost=_flops,
)

dilation_op = OpDef(
    "Dilation2D",
    "input: T, filters: T -> output: T",
    T=FLOATS,
    attributes=_HOW,
    choices={"padding": PADDINGS},
    infer=_dilated,
    kernel=_dilation,
    grad=lambda op, dy: dilation_gradient_op(*op.inputs, dy, **op.attributes),
    cost=_flops,
)


def _how(strides: Any, dilations: Any, padding: Any) -> dict[str, Any]:
    return {
        "strides": inner_numbers("strides", strides, 2),
        "dilations": inner_numbers("dilations", dilations, 2),
        "padding": padding,
    }


@dilation_op.front
def dilation2d(
    input: Any, filters: Any, strides: Any, dilations: Any, padding: Any, name: str | None = None
) -> Tensor:
    """The greyscale dilation of images: the maxima of windows raised by a filter.

    Args:
        input: [batch, height, width, channels], of a floating-point dtype.
        filters: [height, width, channels] of a window, of the same dtype; each element is added to
            the pixel below it.
        strides: how far the window moves: an int, 2 ints, or [1, ..., 1] with 4.
        dilations: the distance of a window's elements, likewise.
        padding: "SAME" or "VALID".

    Returns:
        [batch, out_height, out_width, channels].

    Raises:
        InvalidArgumentError: if shapes do not fit; in the run, where they are known only then.

    >>> import flowbook as fb
    >>> x = fb.reshape([0.0, 5.0, 1.0, 0.0], [1, 1, 4, 1])
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.nn.dilation2d(x, fb.zeros([1, 3, 1]), 1, 1, "SAME")).ravel())
    [5. 5. 5. 1.]
    """
    how = _how(strides, dilations, padding)
    return dilation_op(input, filters, **how, name=name)


@composed
def erosion2d(
    value: Any, kernel: Any, strides: Any, dilations: Any, padding: Any, name: str | None = None
) -> Tensor:
    """The greyscale erosion of images: the minima of windows lowered by a kernel.

    It is the dilation of the negative image, by the kernel turned around, and negative.

    Args:
        value: as `input` of `dilation2d`, and so are the following.
        kernel: as `filters`, subtracted.
        strides: how far the window moves.
        dilations: the distance of a window's elements.
        padding: "SAME" or "VALID".
    """
    turned = reverse(convert_to_tensor(kernel), [0, 1])
    dilated = dilation2d(negative(value), turned, strides, dilations, padding)
    return negative(dilated, name=name)
