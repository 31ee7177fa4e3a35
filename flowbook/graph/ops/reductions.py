"""Reductions over axes.

Invariant: a reduction has its input's dtype (but for indices), and over nothing gives its neutral
element: 0 for sums, 1 for products, the lowest value for maxima, NaN for means.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowbook.graph.dtypes import FLOATS, INEXACT, NUMBERS, REALS, DType
from flowbook.graph.dtypes import bool as bool_
from flowbook.graph.errors import InvalidArgumentError
from flowbook.graph.op_def import NO_GRADIENT, OpDef
from flowbook.graph.operation import Operation
from flowbook.graph.ops.axes import all_in_range, as_axes, as_axis, in_range, reduced
from flowbook.graph.ops.broadcasting import broadcast_to_op
from flowbook.graph.ops.elementwise import cast, exp
from flowbook.graph.ops.located import located
from flowbook.graph.ops.products import product_of_others
from flowbook.graph.ops.shaping import expand_dims_op, shape_of, size_op
from flowbook.graph.registry import op_named
from flowbook.graph.shape import UNKNOWN, Shape
from flowbook.graph.tensor import Tensor

Axes = tuple[int, ...] | None


def _reduced_shape(input_tensor: Tensor, axis: Axes, keepdims: bool) -> Shape:
    return reduced(input_tensor.shape, axis, keepdims)


def _flops_of_input(op: Operation) -> int:
    return op.inputs[0].shape.size or 0


def _reduction(
    type: str,
    kernel: Callable[..., Any],
    grad: Callable[..., Any],
    T: tuple[DType, ...],
) -> OpDef:
    def checked(xp: Any, x: Any, axis: Axes, keepdims: bool) -> Any:
        try:
            return kernel(xp, x, axis, keepdims)
        except ValueError:
            all_in_range(axis, x.ndim)
            raise

    return OpDef(
        type,
        "input_tensor: T -> output: T",
        T=T,
        attributes={"axis": None, "keepdims": False},
        infer=_reduced_shape,
        kernel=checked,
        grad=grad,
        # Over no axes at all NumPy may give back what it got.
        aliases={0: 0},
        cost=_flops_of_input,
    )


def _with_reduced_axes(op: Operation, tensor: Tensor) -> Tensor:
    """A reduction's result, or its gradient, shaped to broadcast against the input."""
    axis = op.attributes["axis"]
    if op.attributes["keepdims"] or axis is None:
        return tensor
    return expand_dims_op(tensor, axis=axis)  # type: ignore[no-any-return]


def _spread(op: Operation, tensor: Tensor) -> Tensor:
    """A reduction's result, or its gradient, repeated over the reduced axes."""
    whole = _with_reduced_axes(op, tensor)
    return broadcast_to_op(whole, shape_of(op.inputs[0]))  # type: ignore[no-any-return]


def _sum(xp: Any, x: Any, axis: Axes, keepdims: bool) -> Any:
    return xp.sum(x, axis=axis, dtype=x.dtype, keepdims=keepdims)


sum_op = _reduction("Sum", _sum, lambda op, dy: _spread(op, dy), NUMBERS)


@sum_op.front
def reduce_sum(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The sum over axes.

    Args:
        input_tensor: of a numeric dtype and any shape.
        axis: an int or a sequence of ints, negative ones counted from the last; None sums
            everything.
        keepdims: keep the axes, with size 1.
        name: the operation's name.

    Returns:
        Sums of the input's dtype; integers wrap around.

    Raises:
        InvalidArgumentError: if there is no such axis, or one is named twice.

    >>> import flowbook as fb
    >>> fb.reduce_sum(fb.zeros([2, 3, 4]), [0, -1]).shape
    Shape([3])
    """
    __tracebackhide__ = True
    return _reduce(sum_op, input_tensor, axis, keepdims, name)


def _reduce(op_def: OpDef, x: Any, axis: Any, keepdims: bool, name: str | None) -> Tensor:
    __tracebackhide__ = True
    with located(op_def.type):
        axes = as_axes(axis, x)
    result: Tensor = op_def(x, axis=axes, keepdims=bool(keepdims), name=name)
    return result


def _mean(xp: Any, x: Any, axis: Axes, keepdims: bool) -> Any:
    # Half precision cannot count beyond 2048, nor hold sums above 65504.
    wide = np.float32 if x.dtype == np.float16 else x.dtype
    total = xp.sum(x, axis=axis, dtype=wide, keepdims=keepdims)
    count = x.size // total.size if total.size else 1
    return xp.divide(total, count, dtype=wide).astype(x.dtype, copy=False)


def _mean_gradient(op: Operation, dy: Tensor) -> Tensor:
    x, y = op.inputs[0], op.outputs[0]
    if x.shape.size is not None and y.shape.size is not None:
        return _spread(op, dy / max(x.shape.size // max(y.shape.size, 1), 1))
    count = op_named("FloorDiv")(size_op(x), op_named("Maximum")(size_op(y), 1))
    return _spread(op, dy / cast(count, x.dtype))


mean_op = _reduction("Mean", _mean, _mean_gradient, INEXACT)


@mean_op.front
def reduce_mean(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The mean over axes; NaN over nothing. Floating point and complex only.

    Arguments and errors as for `reduce_sum`.
    """
    __tracebackhide__ = True
    return _reduce(mean_op, input_tensor, axis, keepdims, name)


def _prod(xp: Any, x: Any, axis: Axes, keepdims: bool) -> Any:
    return xp.prod(x, axis=axis, dtype=x.dtype, keepdims=keepdims)


def _prod_gradient(op: Operation, dy: Tensor) -> Tensor | None:
    x = op.inputs[0]
    if x.dtype.is_integer:
        return None
    others = product_of_others(x, axis=op.attributes["axis"])
    return _with_reduced_axes(op, dy) * others  # type: ignore[no-any-return]


prod_op = _reduction("Prod", _prod, _prod_gradient, REALS)


@prod_op.front
def reduce_prod(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The product over axes, of a real dtype. Arguments and errors as for `reduce_sum`."""
    __tracebackhide__ = True
    return _reduce(prod_op, input_tensor, axis, keepdims, name)


def _extreme(name: str, lowest: Callable[[Any], Any]) -> Callable[..., Any]:
    def kernel(xp: Any, x: Any, axis: Axes, keepdims: bool) -> Any:
        if x.size:
            return getattr(xp, name)(x, axis=axis, keepdims=keepdims)
        initial = lowest(x.dtype)
        return getattr(xp, name)(x, axis=axis, keepdims=keepdims, initial=initial)

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
    is_chosen = cast(op_named("Equal")(x, _with_reduced_axes(op, y)), x.dtype)
    ties = sum_op(is_chosen, axis=op.attributes["axis"], keepdims=True)
    share: Tensor = is_chosen / ties
    return share * _with_reduced_axes(op, dy)


max_op = _reduction("Max", _extreme("max", _least), _extreme_gradient, REALS)
min_op = _reduction("Min", _extreme("min", _greatest), _extreme_gradient, REALS)


@max_op.front
def reduce_max(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The maximum over axes; NaN where there is one, and the lowest value over nothing.

    Elements that share the maximum share its gradient equally. Arguments and errors as for
    `reduce_sum`; real dtypes.
    """
    __tracebackhide__ = True
    return _reduce(max_op, input_tensor, axis, keepdims, name)


@min_op.front
def reduce_min(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The minimum over axes; NaN where there is one, and the highest value over nothing.

    Elements that share the minimum share its gradient equally. Arguments and errors as for
    `reduce_sum`; real dtypes.
    """
    __tracebackhide__ = True
    return _reduce(min_op, input_tensor, axis, keepdims, name)


def _any(xp: Any, x: Any, axis: Axes, keepdims: bool) -> Any:
    return xp.any(x, axis=axis, keepdims=keepdims)


def _all(xp: Any, x: Any, axis: Axes, keepdims: bool) -> Any:
    return xp.all(x, axis=axis, keepdims=keepdims)


any_op = _reduction("Any", _any, NO_GRADIENT, (bool_,))
all_op = _reduction("All", _all, NO_GRADIENT, (bool_,))


@any_op.front
def reduce_any(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Whether any element of a bool tensor is true, over axes as for `reduce_sum`."""
    __tracebackhide__ = True
    return _reduce(any_op, input_tensor, axis, keepdims, name)


@all_op.front
def reduce_all(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Whether all elements of a bool tensor are true, over axes as for `reduce_sum`."""
    __tracebackhide__ = True
    return _reduce(all_op, input_tensor, axis, keepdims, name)


def _logsumexp(xp: Any, x: Any, axis: Axes, keepdims: bool) -> Any:
    if not x.size:
        return xp.log(_sum(xp, x, axis, keepdims))
    largest = xp.max(x, axis=axis, keepdims=True)
    # An infinite maximum would give inf - inf.
    largest = xp.where(xp.isfinite(largest), largest, xp.zeros_like(largest))
    total = xp.log(_sum(xp, xp.exp(xp.subtract(x, largest)), axis, True)) + largest
    if keepdims:
        return total
    return xp.squeeze(total, axis)


def _logsumexp_gradient(op: Operation, dy: Tensor) -> Tensor:
    share = exp(op.inputs[0] - _with_reduced_axes(op, op.outputs[0]))
    return share * _with_reduced_axes(op, dy)  # type: ignore[no-any-return]


logsumexp_op = _reduction("LogSumExp", _logsumexp, _logsumexp_gradient, FLOATS)


@logsumexp_op.front
def reduce_logsumexp(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """`log(sum(exp(x)))` over axes, without overflow. Arguments and errors as for `reduce_sum`."""
    __tracebackhide__ = True
    return _reduce(logsumexp_op, input_tensor, axis, keepdims, name)


def _index_shape(input: Tensor, axis: int) -> Shape:
    dims = input.shape.dims
    if dims is None:
        return UNKNOWN
    gone = in_range(axis, len(dims))
    if dims[gone] == 0:
        raise InvalidArgumentError(f"axis {axis} of the shape {input.shape} has no elements")
    return reduced(input.shape, (axis,), False)


def _index_of(name: str) -> Callable[..., Any]:
    def kernel(xp: Any, input: Any, axis: int) -> Any:
        if not input.shape[in_range(axis, input.ndim)]:
            raise InvalidArgumentError(
                f"axis {axis} of the shape {list(input.shape)} has no elements"
            )
        return getattr(xp, name)(input, axis=axis).astype(np.int64, copy=False)

    return kernel


def _index_reduction(type: str, ufunc: str) -> OpDef:
    return OpDef(
        type,
        "input: T -> output: int64",
        T=(*REALS, bool_),
        attributes={"axis": 0},
        infer=_index_shape,
        kernel=_index_of(ufunc),
        grad=NO_GRADIENT,
        aliases={},
        cost=_flops_of_input,
    )


argmax_op = _index_reduction("ArgMax", "argmax")
argmin_op = _index_reduction("ArgMin", "argmin")


@argmax_op.front
def argmax(input: Any, axis: int = 0, name: str | None = None) -> Tensor:
    """Where the largest element along an axis is; the first of several.

    Args:
        input: of a real dtype or bool, of at least one dimension.
        axis: an int, negative ones counted from the last.
        name: the operation's name.

    Returns:
        int64 indices, of the input's shape without the axis.

    Raises:
        InvalidArgumentError: if there is no such axis, or it has no elements.
    """
    __tracebackhide__ = True
    return _find(argmax_op, input, axis, name)


@argmin_op.front
def argmin(input: Any, axis: int = 0, name: str | None = None) -> Tensor:
    """Where the smallest element along an axis is; the first of several. As `argmax`."""
    __tracebackhide__ = True
    return _find(argmin_op, input, axis, name)


def _find(op_def: OpDef, input: Any, axis: Any, name: str | None) -> Tensor:
    __tracebackhide__ = True
    with located(op_def.type):
        axis = as_axis(axis)
    result: Tensor = op_def(input, axis=axis, name=name)
    return result
