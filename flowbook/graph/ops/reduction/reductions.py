"""Reductions over axes.

Invariant: a reduction has its input's dtype (but for indices), and over nothing gives its neutral
element: 0 for sums, 1 for products, the lowest value for maxima, NaN for means.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowbook.graph.definition.axes import axis_or_tensor, in_range, reduced
from flowbook.graph.definition.batching import Batching
from flowbook.graph.definition.op_def import NO_GRADIENT, OpDef
from flowbook.graph.model.dtypes import FLOATS, INDICES, NUMBERS, REALS, DType, as_dtype, int64
from flowbook.graph.model.dtypes import bool as bool_
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import UNKNOWN, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.numerics.sums import Axes, sum_over, wide_dtype
from flowbook.graph.ops.basis.broadcasting import (
    flops_of_input,
    reduce,
    reduction,
    spread,
    sum_op,
    with_reduced_axes,
)
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.conjugation import conjugate
from flowbook.graph.ops.basis.constants import zeros_like_op
from flowbook.graph.ops.basis.shaping import size_op
from flowbook.graph.ops.math.arithmetic import maximum
from flowbook.graph.ops.math.comparison import equal, where_op
from flowbook.graph.ops.math.elementwise import exp
from flowbook.graph.ops.math.no_nan import multiply_no_nan
from flowbook.graph.ops.reduction.products import product_of_others

__all__ = [
    "argmax",
    "argmin",
    "reduce_all",
    "reduce_any",
    "reduce_logsumexp",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
]


def _mean(xp: Any, x: Any, axis: Axes, keepdims: bool) -> Any:
    if x.dtype.kind != "f" and x.dtype.kind != "c":
        return _mean_of_integers(xp, x, axis, keepdims)
    total = sum_over(xp, x, axis, keepdims)
    count = x.size // total.size if total.size else 1
    return xp.divide(total, count, dtype=total.dtype).astype(x.dtype, copy=False)


def _mean_of_integers(xp: Any, x: Any, axis: Axes, keepdims: bool) -> Any:
    wide = np.uint64 if x.dtype.kind == "u" else np.int64
    total = xp.sum(x, axis=axis, dtype=wide, keepdims=keepdims)
    count = wide(max(x.size // total.size if total.size else 1, 1))
    return whole_quotient(xp, total, count).astype(x.dtype)


def whole_quotient(xp: Any, total: Any, count: Any) -> Any:
    """Integers divided by positive ones, towards zero: what means of integers are."""
    quotient = xp.floor_divide(total, count)
    if total.dtype.kind == "i":
        quotient = quotient + ((total < 0) & (quotient * count != total))
    return quotient


def count_of_each(op: Operation) -> Any:
    """How many elements each result of a reduction comes from: a number, or a scalar tensor."""
    x, y = op.inputs[0], op.outputs[0]
    if x.shape.size is not None and y.shape.size is not None:
        return max(x.shape.size // max(y.shape.size, 1), 1)
    return cast(size_op(x) // maximum(size_op(y), 1), x.dtype)


def _mean_gradient(op: Operation, dy: Tensor) -> Tensor | None:
    if op.inputs[0].dtype.is_integer:
        return None
    return spread(op, dy / count_of_each(op))


mean_op = reduction("Mean", _mean, _mean_gradient, NUMBERS, spreads_nonfinite=("input_tensor",))


@mean_op.front
def reduce_mean(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The mean over axes, of the input's dtype.

    Means of integers lose their fraction; cast before to keep it. Over nothing the mean is NaN, of
    integers 0. Arguments and errors as for `reduce_sum`.
    """
    return reduce(mean_op, input_tensor, axis, keepdims, name)


def _prod(xp: Any, x: Any, axis: Axes, keepdims: bool) -> Any:
    product = xp.prod(x, axis=axis, dtype=wide_dtype(x.dtype), keepdims=keepdims)
    return product.astype(x.dtype, copy=False)


def _prod_gradient(op: Operation, dy: Tensor) -> Tensor | None:
    x = op.inputs[0]
    if x.dtype.is_integer:
        return None
    others = product_of_others(conjugate(x), axis=op.attributes["axis"])
    return multiply_no_nan(others, with_reduced_axes(op, dy))


prod_op = reduction("Prod", _prod, _prod_gradient, NUMBERS, computes_shapes=True)


@prod_op.front
def reduce_prod(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The product over axes. Arguments and errors as for `reduce_sum`."""
    return reduce(prod_op, input_tensor, axis, keepdims, name)


def _extreme(name: str, lowest: Callable[[Any], Any]) -> Callable[..., Any]:
    def kernel(xp: Any, x: Any, axis: Axes, keepdims: bool) -> Any:
        if x.size:
            return getattr(x, name)(axis, None, keepdims)
        return xp.full(x.any(axis=axis, keepdims=keepdims).shape, lowest(x.dtype), x.dtype)

    return kernel


def _least(dtype: Any) -> Any:
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def _greatest(dtype: Any) -> Any:
    return np.inf if dtype.kind == "f" else np.iinfo(dtype).max


def _extreme_gradient(op: Operation, dy: Tensor) -> Tensor | None:
    """Ties share the gradient equally: the mean of all ways to break them."""
    x, y = op.inputs[0], op.outputs[0]
    if x.dtype.is_integer:
        return None
    is_chosen = cast(equal(x, with_reduced_axes(op, y)), x.dtype)
    ties = sum_op(is_chosen, axis=op.attributes["axis"], keepdims=True)
    share: Tensor = is_chosen / ties
    return share * with_reduced_axes(op, dy)


max_op = reduction("Max", _extreme("max", _least), _extreme_gradient, REALS)
min_op = reduction("Min", _extreme("min", _greatest), _extreme_gradient, REALS)


@max_op.front
def reduce_max(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The maximum over axes; NaN where there is one, and the lowest value over nothing.

    Elements that share the maximum share its gradient equally. Arguments and errors as for
    `reduce_sum`; real dtypes.
    """
    return reduce(max_op, input_tensor, axis, keepdims, name)


@min_op.front
def reduce_min(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The minimum over axes; NaN where there is one, and the highest value over nothing.

    Elements that share the minimum share its gradient equally. Arguments and errors as for
    `reduce_sum`; real dtypes.
    """
    return reduce(min_op, input_tensor, axis, keepdims, name)


def _any(xp: Any, x: Any, axis: Axes, keepdims: bool) -> Any:
    return xp.any(x, axis=axis, keepdims=keepdims)


def _all(xp: Any, x: Any, axis: Axes, keepdims: bool) -> Any:
    return xp.all(x, axis=axis, keepdims=keepdims)


any_op = reduction("Any", _any, NO_GRADIENT, (bool_,))
all_op = reduction("All", _all, NO_GRADIENT, (bool_,))


@any_op.front
def reduce_any(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Whether any element of a bool tensor is true, over axes as for `reduce_sum`."""
    return reduce(any_op, input_tensor, axis, keepdims, name)


@all_op.front
def reduce_all(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Whether all elements of a bool tensor are true, over axes as for `reduce_sum`."""
    return reduce(all_op, input_tensor, axis, keepdims, name)


def _logsumexp(xp: Any, x: Any, axis: Axes, keepdims: bool) -> Any:
    if not x.size:
        return xp.log(sum_over(xp, x, axis, keepdims).astype(x.dtype, copy=False))
    largest = xp.max(x, axis=axis, keepdims=True)
    # An infinite maximum would give inf - inf.
    largest = xp.where(xp.isfinite(largest), largest, xp.zeros_like(largest))
    # Sums of half precision stay wide until the logarithm, which brings them into its range.
    powers = xp.exp(xp.subtract(x, largest, dtype=wide_dtype(x.dtype)))
    total = xp.log(sum_over(xp, powers, axis, keepdims=True)) + largest
    total = total.astype(x.dtype, copy=False)
    if keepdims:
        return total
    return xp.squeeze(total, axis)


def _logsumexp_gradient(op: Operation, dy: Tensor) -> Tensor:
    y = op.outputs[0]
    # Where everything is -inf, -inf - -inf would be NaN.
    is_nothing = equal(y, -np.inf)
    y = where_op(is_nothing, zeros_like_op(y), y)
    share = exp(op.inputs[0] - with_reduced_axes(op, y))
    return share * with_reduced_axes(op, dy)


# Each element is compared, subtracted from, exponentiated and added.
logsumexp_op = reduction("LogSumExp", _logsumexp, _logsumexp_gradient, FLOATS, flops=13)


@logsumexp_op.front
def reduce_logsumexp(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """`log(sum(exp(x)))` over axes, without overflow; -inf over nothing.

    The gradient where all are -inf is 0. Arguments and errors as for `reduce_sum`.
    """
    return reduce(logsumexp_op, input_tensor, axis, keepdims, name)


def _index_shape(input: Tensor, axis: int, output_type: DType) -> Shape:
    dims = input.shape.dims
    if dims is None:
        return UNKNOWN
    gone = in_range(axis, len(dims))
    if dims[gone] == 0:
        raise InvalidArgumentError(f"axis {axis} of the shape {input.shape} has no elements")
    return reduced(input.shape, (axis,), False)


def _index_of(name: str) -> Callable[..., Any]:
    def kernel(xp: Any, input: Any, axis: int, output_type: DType) -> Any:
        if not input.shape[in_range(axis, input.ndim)]:
            raise InvalidArgumentError(
                f"axis {axis} of the shape {list(input.shape)} has no elements"
            )
        return getattr(xp, name)(input, axis=axis).astype(output_type.numpy, copy=False)

    return kernel


def _index_reduction(type: str, ufunc: str) -> OpDef:
    return OpDef(
        type,
        "input: T -> output: output_type",
        T=(*REALS, bool_),
        attributes={"axis": 0, "output_type": int64},
        infer=_index_shape,
        kernel=_index_of(ufunc),
        grad=NO_GRADIENT,
        axis="axis",
        batching=Batching.ALONG_AXIS,
        cost=flops_of_input,
    )


argmax_op = _index_reduction("ArgMax", "argmax")
argmin_op = _index_reduction("ArgMin", "argmin")


@argmax_op.front
def argmax(
    input: Any, axis: Any = None, output_type: Any = int64, name: str | None = None
) -> Tensor:
    """Where the largest element along an axis is; the first of several, and the first NaN.

    Args:
        input: of a real dtype or bool, of at least one dimension.
        axis: an int, negative ones counted from the last, or a tensor of one; None is the first.
        output_type: int32 or int64.

    Returns:
        Indices, of the input's shape without the axis. A NaN is found before any number, as by
        NumPy and JAX; TensorFlow finds one or passes over it, by where it stands.

    Raises:
        InvalidArgumentError: if there is no such axis, or it has no elements.
    """
    return _find(argmax_op, input, axis, output_type, name)


@argmin_op.front
def argmin(
    input: Any, axis: Any = None, output_type: Any = int64, name: str | None = None
) -> Tensor:
    """Where the smallest element along an axis is; the first of several. As `argmax`."""
    return _find(argmin_op, input, axis, output_type, name)


def _find(op_def: OpDef, input: Any, axis: Any, output_type: Any, name: str | None) -> Tensor:
    axis = 0 if axis is None else axis_or_tensor(axis)
    output_type = as_dtype(output_type)
    if output_type not in INDICES:
        raise InvalidTypeError(f"indices are int32 or int64, not {output_type.name}")
    return op_def(input, axis=axis, output_type=output_type, name=name)
