"""Scans along an axis: cumulative sums, products and sums of exponentials.

Their gradients are linear recurrences `s[k] = a[k] + b[k] * s[k-1]`, without divisions and without
overflow on the way; recurrences differentiate to recurrences, so that derivatives of any order
exist.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowbook.graph.definition.axes import axis_or_tensor, in_range
from flowbook.graph.definition.batching import Batching
from flowbook.graph.definition.inference import elementwise
from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.dtypes import FLOATS, INEXACT, NUMBERS, DType
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.numerics.sums import wide_dtype
from flowbook.graph.ops.basis.conjugation import conjugate
from flowbook.graph.ops.basis.constants import zeros_like_op
from flowbook.graph.ops.math.arithmetic import minimum
from flowbook.graph.ops.math.comparison import equal, where
from flowbook.graph.ops.math.elementwise import exp

__all__ = ["cumprod", "cumsum", "cumulative_logsumexp"]


def _same_shape(x: Tensor, *others: Tensor, axis: int, **_: Any) -> Shape:
    shape = x.shape
    for other in others:
        shape = shape.merge(other.shape)
    if shape.dims is not None:
        in_range(axis, len(shape.dims))
    return shape


def _along_last(xp: Any, x: Any, axis: int, reverse: bool) -> Any:
    """A view with the axis last, in the direction of the scan."""
    turned = xp.moveaxis(x, in_range(axis, x.ndim), -1)
    return turned[..., ::-1] if reverse else turned


def _accumulated(accumulate: Callable[..., Any], first: float) -> Callable[..., Any]:
    """A kernel; `first` is what an exclusive scan begins with."""

    def kernel(xp: Any, x: Any, axis: int, exclusive: bool, reverse: bool) -> Any:
        found = xp.empty(x.shape, x.dtype)
        rows, results = (_along_last(xp, a, axis, reverse) for a in (x, found))
        if exclusive:
            results[..., :1] = first
            rows, results = rows[..., :-1], results[..., 1:]
        results[...] = accumulate(xp, rows)
        return found

    return kernel


def _scan(
    type: str,
    kernel: Callable[..., Any],
    grad: Any,
    T: tuple[DType, ...],
    flops: int,
) -> OpDef:
    return OpDef(
        type,
        "x: T -> out: T",
        T=T,
        attributes={"axis": 0, "exclusive": False, "reverse": False},
        infer=_same_shape,
        kernel=kernel,
        grad=grad,
        axis="axis",
        batching=Batching.ALONG_AXIS,
        cost=elementwise(flops),
    )


def _shifted(xp: Any, x: Any, axis: int, reverse: bool) -> Any:
    found = xp.zeros(x.shape, x.dtype)
    rows, results = (_along_last(xp, a, axis, reverse) for a in (x, found))
    results[..., 1:] = rows[..., :-1]
    return found


shift_by_one: OpDef = OpDef(
    "ShiftByOne",
    "x: T -> y: T",
    T=INEXACT,
    attributes={"axis": 0, "reverse": False},
    infer=_same_shape,
    kernel=_shifted,
    grad=lambda op, dy: shift_by_one(
        dy, axis=op.attributes["axis"], reverse=not op.attributes["reverse"]
    ),
    axis="axis",
    cost=elementwise(),
    doc="Each element's predecessor along an axis, and 0 for the first.",
)


# From so many on, rows that go on together keep a step's work above the cost of its calls.
_MANY_ROWS = 64


def _recurrence(xp: Any, a: Any, b: Any, axis: int, reverse: bool, own: bool) -> Any:
    found = xp.empty(a.shape, a.dtype)
    sums, factors, results = (_along_last(xp, v, axis, reverse) for v in (a, b, found))
    if not own:
        factors = xp.concatenate([xp.zeros_like(factors[..., :1]), factors[..., :-1]], axis=-1)
    length = sums.shape[-1]
    if length and sums.size // length >= _MANY_ROWS:
        results[...] = sums
        for k in range(1, length):
            results[..., k] += factors[..., k] * results[..., k - 1]
        return found
    reach = 1
    while reach < length:  # Each round doubles how many elements a sum spans.
        more = sums[..., reach:] + factors[..., reach:] * sums[..., :-reach]
        sums = xp.concatenate([sums[..., :reach], more], axis=-1)
        reached = factors[..., reach:] * factors[..., :-reach]
        factors = xp.concatenate([xp.zeros_like(factors[..., :reach]), reached], axis=-1)
        reach *= 2
    results[...] = sums
    return found


def _recurrence_gradient(op: Operation, dy: Tensor) -> Any:
    axis, reverse, own = (op.attributes[n] for n in ("axis", "reverse", "own"))
    b, sums = conjugate(op.inputs[1]), conjugate(op.outputs[0])
    da = linear_recurrence(dy, b, axis=axis, reverse=not reverse, own=not own)
    if own:
        return da, da * shift_by_one(sums, axis=axis, reverse=reverse)
    return da, shift_by_one(da, axis=axis, reverse=not reverse) * sums


linear_recurrence: OpDef = OpDef(
    "LinearRecurrence",
    "a: T, b: T -> s: T",
    T=INEXACT,
    attributes={"axis": 0, "reverse": False, "own": True},
    infer=_same_shape,
    kernel=_recurrence,
    grad=_recurrence_gradient,
    axis="axis",
    cost=elementwise(flops=2),
    doc="""`s[k] = a[k] + b[k] * s[k-1]` along an axis, or with `b[k-1]` where not `own`.

    The factor that would meet no predecessor does not count.

    Source: Hillis and Steele, "Data parallel algorithms", 1986.
    """,
)


def _settings(op: Operation) -> tuple[int, bool, bool]:
    return tuple(op.attributes[n] for n in ("axis", "exclusive", "reverse"))


def _sum_gradient(op: Operation, dy: Tensor) -> Tensor:
    axis, exclusive, reverse = _settings(op)
    return cumsum_op(dy, axis=axis, exclusive=exclusive, reverse=not reverse)


def _product_gradient(op: Operation, dy: Tensor) -> Tensor | None:
    axis, exclusive, reverse = _settings(op)
    if op.inputs[0].dtype.is_integer:
        return None
    x = conjugate(op.inputs[0])
    before = cumprod_op(x, axis=axis, exclusive=True, reverse=reverse)
    after = linear_recurrence(dy, x, axis=axis, reverse=not reverse, own=exclusive)
    if exclusive:
        after = shift_by_one(after, axis=axis, reverse=not reverse)
    return before * after


def _logsumexp_gradient(op: Operation, dy: Tensor) -> Tensor:
    axis, exclusive, reverse = _settings(op)
    x, y = op.inputs[0], op.outputs[0]
    # Nothing is summed where y is -inf; a finite number there keeps the differences from NaN.
    y = where(equal(y, -np.inf), zeros_like_op(y), y)
    following = shift_by_one(y, axis=axis, reverse=not reverse)
    # Factors of at most 1, as the sums only grow.
    falls = exp(minimum(y - following, 0.0))
    total = linear_recurrence(dy, falls, axis=axis, reverse=not reverse, own=True)
    if exclusive:
        total = shift_by_one(total, axis=axis, reverse=not reverse)
        y = following
    return exp(x - y) * total


def _logsumexps(xp: Any, x: Any) -> Any:
    if xp is np:
        return xp.logaddexp.accumulate(x, axis=-1)
    reach, length = 1, x.shape[-1]
    while reach < length:  # Each round doubles how many elements a sum spans.
        more = xp.logaddexp(x[..., reach:], x[..., :-reach])
        x = xp.concatenate([x[..., :reach], more], axis=-1)
        reach *= 2
    return x


cumsum_op: OpDef = _scan(
    "Cumsum",
    _accumulated(lambda xp, x: xp.cumsum(x, axis=-1, dtype=wide_dtype(x.dtype)), 0),
    _sum_gradient,
    NUMBERS,
    1,
)
cumprod_op: OpDef = _scan(
    "Cumprod",
    _accumulated(lambda xp, x: xp.cumprod(x, axis=-1, dtype=wide_dtype(x.dtype)), 1),
    _product_gradient,
    NUMBERS,
    1,
)
cumulative_logsumexp_op: OpDef = _scan(
    "CumulativeLogsumexp",
    _accumulated(_logsumexps, -np.inf),
    _logsumexp_gradient,
    FLOATS,
    20,
)


@cumsum_op.front
def cumsum(
    x: Any,
    axis: Any = 0,
    exclusive: bool = False,
    reverse: bool = False,
    name: str | None = None,
) -> Tensor:
    """The sums of all elements up to each, along an axis.

    Args:
        x: of a numeric dtype and at least one dimension.
        axis: an int, negative ones counted from the last, or a tensor of one.
        exclusive: sum the elements before each, without itself: the first sum is 0.
        reverse: go from the end of the axis to its beginning.

    Returns:
        Sums, of the shape and dtype of `x`; integers wrap around.

    Raises:
        InvalidArgumentError: if there is no such axis.

    >>> import flowbook as fb
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.cumsum([1, 2, 4])))
    ...     print(sess.run(fb.cumsum([1, 2, 4], exclusive=True, reverse=True)))
    [1 3 7]
    [6 4 0]
    """
    return _scanned(cumsum_op, x, axis, exclusive, reverse, name)


@cumprod_op.front
def cumprod(
    x: Any,
    axis: Any = 0,
    exclusive: bool = False,
    reverse: bool = False,
    name: str | None = None,
) -> Tensor:
    """The products of all elements up to each, along an axis; exclusive ones begin with 1.

    Arguments and errors as for `cumsum`. The gradient is right where elements are 0, too.
    """
    return _scanned(cumprod_op, x, axis, exclusive, reverse, name)


@cumulative_logsumexp_op.front
def cumulative_logsumexp(
    x: Any,
    axis: Any = 0,
    exclusive: bool = False,
    reverse: bool = False,
    name: str | None = None,
) -> Tensor:
    """`log(cumsum(exp(x)))` without overflow, along an axis; exclusive ones begin with -inf.

    Arguments and errors as for `cumsum`; floating-point dtypes.
    """
    return _scanned(cumulative_logsumexp_op, x, axis, exclusive, reverse, name)


def _scanned(
    op_def: OpDef, x: Any, axis: Any, exclusive: bool, reverse: bool, name: str | None
) -> Tensor:
    axis = axis_or_tensor(axis)
    return op_def(x, axis=axis, exclusive=bool(exclusive), reverse=bool(reverse), name=name)
