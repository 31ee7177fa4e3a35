"""Variance and standard deviation over axes, from sums of squares of distances from the mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowbook.graph.definition.axes import all_in_range
from flowbook.graph.model.dtypes import FLOATS
from flowbook.graph.model.errors import InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.numerics.sums import Axes
from flowbook.graph.ops.basis.broadcasting import reduce, reduction, with_reduced_axes
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.math.arithmetic import add
from flowbook.graph.ops.math.complex import imag, real
from flowbook.graph.ops.math.elementwise import sqrt
from flowbook.graph.ops.math.no_nan import div_no_nan
from flowbook.graph.ops.reduction.reductions import count_of_each, mean_op
from flowbook.graph.ops.reduction.standardising import distances_from, moments_over

__all__ = ["reduce_std", "reduce_variance"]


def _variance(xp: Any, x: Any, axis: Axes, keepdims: bool) -> Any:
    _, variance = moments_over(xp, x, axis)
    return variance if keepdims else xp.squeeze(variance, all_in_range(axis, x.ndim))


def _deviation(xp: Any, x: Any, axis: Axes, keepdims: bool) -> Any:
    return xp.sqrt(_variance(xp, x, axis, keepdims))


def _in_dtype(kernel: Callable[..., Any]) -> Callable[..., Any]:
    def rounded(xp: Any, x: Any, axis: Axes, keepdims: bool) -> Any:
        if not x.size:
            total = xp.sum(x, axis=axis, keepdims=keepdims)
            return xp.full(total.shape, np.nan, x.dtype)
        return kernel(xp, x, axis, keepdims).astype(x.dtype, copy=False)

    return rounded


def _distances(op: Operation) -> Tensor:
    x, axis = op.inputs[0], op.attributes["axis"]
    return distances_from(x, mean_op(x, axis=axis, keepdims=True), axis)


def _variance_gradient(op: Operation, dy: Tensor) -> Tensor:
    return with_reduced_axes(op, dy * 2.0 / count_of_each(op)) * _distances(op)


def _deviation_gradient(op: Operation, dy: Tensor) -> Tensor:
    share = div_no_nan(dy / count_of_each(op), op.outputs[0])
    return with_reduced_axes(op, share) * _distances(op)


variance_op = reduction("Variance", _in_dtype(_variance), _variance_gradient, FLOATS, flops=4)
deviation_op = reduction("Deviation", _in_dtype(_deviation), _deviation_gradient, FLOATS, flops=4)


def _real_or_complex(input_tensor: Any, what: str) -> Tensor:
    x = convert_to_tensor(input_tensor)
    if not (x.dtype.is_floating or x.dtype.is_complex):
        raise InvalidTypeError(
            f"{what} is of floating-point or complex tensors, not {x.dtype.name}",
            hint="fb.cast(x, fb.float32) converts",
        )
    return x


@variance_op.front
def reduce_variance(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The mean squared distance from the mean, over axes; NaN over nothing.

    Divided by the number of elements, not by one less. Of complex tensors it is real, by the
    squares of distances in the plane. Arguments and errors as for `reduce_sum`.
    """
    x = _real_or_complex(input_tensor, "a variance")
    if not x.dtype.is_complex:
        return reduce(variance_op, x, axis, keepdims, name)
    parts = real(x), imag(x)
    return add(*(reduce(variance_op, p, axis, keepdims, None) for p in parts), name=name)


@deviation_op.front
def reduce_std(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The standard deviation, `sqrt(reduce_variance(...))`, over axes; NaN over nothing.

    The gradient where all are equal is 0. Arguments and errors as for `reduce_variance`.
    """
    x = _real_or_complex(input_tensor, "a standard deviation")
    if not x.dtype.is_complex:
        return reduce(deviation_op, x, axis, keepdims, name)
    return sqrt(reduce_variance(x, axis, keepdims), name=name)
