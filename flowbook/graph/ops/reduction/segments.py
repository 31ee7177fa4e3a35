"""Rows that share a segment, combined: the segments in any order.

A row with a negative id belongs to no segment. An empty segment gets what combining nothing gives:
0 for sums and means, 1 for products, the lowest finite value for maxima, the highest for minima.
Segments whose ids are sorted lie in `sorted_segments.py` and share gradients with these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from ml_dtypes import finfo

from flowbook.graph.definition.inference import constant_value
from flowbook.graph.definition.op_def import REQUIRED, OpDef
from flowbook.graph.model.dtypes import INDICES, INEXACT, NUMBERS, REALS, DType
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import UNKNOWN, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.numerics.bounds import outside
from flowbook.graph.numerics.sums import sums_by_id, wide_dtype
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.conjugation import conjugate
from flowbook.graph.ops.basis.constants import ones_like_op, zeros_like_op
from flowbook.graph.ops.basis.indexing import strided_slice
from flowbook.graph.ops.basis.shaping import check_scalar_values, shape_op
from flowbook.graph.ops.math.comparison import equal, where
from flowbook.graph.ops.math.no_nan import multiply_no_nan
from flowbook.graph.ops.reduction.reductions import whole_quotient
from flowbook.graph.ops.reduction.segment_products import segment_product_of_others

__all__ = [
    "unsorted_segment_max",
    "unsorted_segment_mean",
    "unsorted_segment_min",
    "unsorted_segment_prod",
    "unsorted_segment_sqrt_n",
    "unsorted_segment_sum",
]

Array = np.ndarray[Any, Any]


def _segments_shape(data: Tensor, segment_ids: Tensor, num_segments: Tensor, **_: Any) -> Shape:
    if num_segments.shape.rank not in (None, 0):
        raise InvalidArgumentError(f"'num_segments' is a scalar, not of shape {num_segments.shape}")
    ids, rows = segment_ids.shape.dims, data.shape.dims
    if ids is None or rows is None:
        return UNKNOWN
    if not Shape.of(rows[: len(ids)]).is_compatible_with(segment_ids.shape):
        raise InvalidArgumentError(
            f"the shape {data.shape} of the data does not begin with the shape "
            f"{segment_ids.shape} of the segment ids"
        )
    known = constant_value(num_segments)
    if known is not None:
        _check_count(int(known))
    return Shape.of((None if known is None else int(known), *rows[len(ids) :]))


def _check_count(count: int) -> int:
    if count < 0:
        raise InvalidArgumentError(f"the number of segments is not negative: {count}")
    return count


def _kept(xp: Any, data: Any, segment_ids: Any, num_segments: Any) -> tuple[Any, Any, int]:
    """The rows that belong to a segment, their ids, and the number of segments."""
    if data.shape[: segment_ids.ndim] != segment_ids.shape:
        raise InvalidArgumentError(
            f"the shape {list(data.shape)} of the data does not begin with the shape "
            f"{list(segment_ids.shape)} of the segment ids"
        )
    check_scalar_values(num_segments=num_segments)
    count = _check_count(int(num_segments))
    ids = xp.reshape(segment_ids, (-1,))
    rows = xp.reshape(data, (ids.size, *data.shape[segment_ids.ndim :]))
    if ids.size:
        if ids.max() >= count:
            raise outside(segment_ids, segment_ids >= count, count, "segment id")
        if ids.min() < 0:
            kept = ids >= 0
            ids, rows = ids[kept], rows[kept]
    return rows, ids, count


def combined(xp: Any, ufunc: str, rows: Any, ids: Any, count: int, initial: Any) -> Any:
    """Rows combined by segment, `initial` for empty segments.

    Args:
        xp: NumPy or a module like it.
        ufunc: how two rows are combined, such as "add".
        rows: [n, ...].
        ids: [n], each in [0, count).
        count: the number of segments.
        initial: what an empty segment gets.
    """
    wide = wide_dtype(rows.dtype)
    if xp is not np and ids.size:
        found = _combined_in_turns(xp, ufunc, rows.astype(wide), ids, count, initial)
        return found.astype(rows.dtype, copy=False)
    is_flat = rows.size == ids.size
    if ufunc == "add" and ids.size and not is_flat:
        flat = xp.reshape(rows, (ids.size, -1)).astype(wide, copy=False)
        sums = sums_by_id(xp, flat, ids, count)
        if sums is not None:
            return xp.reshape(sums, (count, *rows.shape[1:])).astype(rows.dtype, copy=False)
    result = xp.full((count, *rows.shape[1:]), initial, dtype=wide)
    combine = getattr(xp, ufunc)
    if not ids.size:
        pass
    elif is_flat and ufunc == "add":
        xp.add.at(xp.reshape(result, (-1,)), ids, xp.reshape(rows, (-1,)))
    else:
        # In runs of equal ids: much faster than one row at a time.
        if (ids[1:] < ids[:-1]).any():
            order = order_by_id(xp, ids, count)
            ids, rows = ids[order], rows[order]
        starts = xp.concatenate([xp.zeros(1, int), xp.flatnonzero(ids[1:] != ids[:-1]) + 1])
        result[ids[starts]] = combine.reduceat(rows, starts, axis=0, dtype=wide)
    return result.astype(rows.dtype, copy=False)


def _combined_in_turns(xp: Any, ufunc: str, rows: Any, ids: Any, count: int, initial: Any) -> Any:
    """As `combined`, where many elements are computed at once, and nobody waits for their number.

    In the order of their ids, each row is combined with the one before it in its segment, then with
    the one two before, four before: in the end the last row of a segment has all of them. So the
    result is the same in every run, as that of atomic additions is not.
    """
    order = order_by_id(xp, ids, count)
    ids, rows = ids[order], rows[order]
    combine, distance = getattr(xp, ufunc), 1
    while distance < ids.size:
        nearer, further = rows[:-distance], rows[distance:]
        is_one = _beside(ids[distance:] == ids[:-distance], rows)
        rows[distance:] = xp.where(is_one, combine(nearer, further), further)
        distance *= 2
    ends = xp.searchsorted(ids, xp.arange(count, dtype=ids.dtype), side="right")
    last = xp.maximum(ends - 1, 0)
    is_there = _beside((ends > 0) & (ids[last] == xp.arange(count)), rows)
    return xp.where(is_there, rows[last], xp.full((), initial, dtype=rows.dtype))


def _beside(chosen: Any, rows: Any) -> Any:
    """Truth values of rows with an axis for each of the rows' own."""
    return chosen.reshape(-1, *[1] * (rows.ndim - 1))


def order_by_id(xp: Any, ids: Any, count: int) -> Any:
    """The order that sorts ids in [0, count); rows of one id keep theirs."""
    # Of 16 bits NumPy sorts by counting, much faster than by comparing.
    small = ids.astype(np.uint16) if count <= 1 << 16 else ids
    return xp.argsort(small, kind="stable")


def scaled(xp: Any, rows: Any, ids: Any, count: int, power: float) -> Any:
    """Sums of rows by segment, each divided by its number of rows to a power.

    Of integers it is the mean, which loses its fraction, whatever the power.
    """
    if rows.dtype.kind in "iu":
        wide = np.dtype(np.uint64 if rows.dtype.kind == "u" else np.int64)
        total = combined(xp, "add", rows.astype(wide), ids, count, 0)
        means = whole_quotient(xp, total, _sizes(xp, ids, total).astype(wide))
        return means.astype(rows.dtype)
    total = combined(xp, "add", rows, ids, count, 0)
    return (total / _divisors(xp, ids, total, power)).astype(rows.dtype, copy=False)


def _divisors(xp: Any, ids: Any, segments: Any, power: float) -> Any:
    """The numbers of rows to a power, shaped to divide the segments."""
    # Half precision divides in single, as sizes may be above what it holds.
    real = np.float64 if segments.dtype.itemsize > 4 else np.float32
    return _sizes(xp, ids, segments).astype(real) ** real(power)


def _sizes(xp: Any, ids: Any, segments: Any) -> Any:
    """The numbers of rows, at least 1, shaped to divide the segments."""
    sizes = xp.maximum(xp.bincount(ids, minlength=len(segments)), 1)
    return sizes.reshape((-1,) + (1,) * (segments.ndim - 1))


def _no_flops_but_rows(op: Operation) -> int:
    return op.inputs[0].shape.size or 0


def _count_of(op: Operation) -> Tensor:
    """The number of an operation's segments."""
    if len(op.inputs) > 2:
        return op.inputs[2]
    return strided_slice(shape_op(op.outputs[0]), 0)


def _nones(op: Operation) -> tuple[None, ...]:
    return (None,) * (len(op.inputs) - 1)


def sum_gradient(op: Operation, dy: Tensor) -> Any:
    """The gradient of sums: each row gets its segment's."""
    return unsorted_segment_take(dy, op.inputs[1]), *_nones(op)


def extreme_gradient(op: Operation, dy: Tensor) -> Any:
    """The gradient of maxima and minima; rows that share the extreme share the gradient."""
    data, ids = op.inputs[:2]
    is_chosen = equal(data, unsorted_segment_take(op.outputs[0], ids))
    ties = unsorted_segment_sum(cast(is_chosen, data.dtype), ids, _count_of(op))
    share = unsorted_segment_take(dy / where(ties > 0, ties, ones_like_op(ties)), ids)
    return where(is_chosen, share, zeros_like_op(share)), *_nones(op)


def prod_gradient(op: Operation, dy: Tensor) -> Any:
    """The gradient of products: the product of the segment's other rows."""
    data, ids = op.inputs[:2]
    others = segment_product_of_others(conjugate(data), ids, [])
    return multiply_no_nan(others, unsorted_segment_take(dy, ids)), *_nones(op)


_ARGUMENTS = """

    Args:
        data: its shape begins with that of `segment_ids`.
        segment_ids: int32 or int64 of any shape, in any order: which segment each row belongs to.
            Rows with a negative id belong to none.
        num_segments: an int scalar.

    Returns:
        A tensor of shape `[num_segments] + data.shape[segment_ids.rank:]`.

    Raises:
        InvalidIndexError: in the run, if an id is not below `num_segments`.
"""


def _unsorted(
    type: str,
    ufunc: str,
    initial: Callable[[Any], Any],
    grad: Any,
    T: tuple[DType, ...],
    doc: str,
    **facts: Any,
) -> OpDef:
    def kernel(xp: Any, data: Any, segment_ids: Any, num_segments: Any) -> Any:
        rows, ids, count = _kept(xp, data, segment_ids, num_segments)
        return combined(xp, ufunc, rows, ids, count, initial(data.dtype))

    return OpDef(
        type,
        "data: T, segment_ids: I, num_segments: S -> output: T",
        T=T,
        I=INDICES,
        S=INDICES,
        infer=_segments_shape,
        kernel=kernel,
        host_args=("num_segments",),
        grad=grad,
        cost=_no_flops_but_rows,
        doc=doc,
        **facts,
    )


# What the documentation of maxima and minima says of NaN.
EXTREMES = """

    NaN where one of the rows is, as in NumPy and JAX; in TensorFlow it depends on their order.
"""


def _limits(dtype: Any) -> Any:
    return np.iinfo(dtype) if dtype.kind in "iu" else finfo(dtype)  # type: ignore[no-untyped-call]


unsorted_segment_sum = _unsorted(
    "UnsortedSegmentSum",
    "add",
    lambda dtype: 0,
    sum_gradient,
    NUMBERS,
    "For each segment the sum of its rows: zero for empty segments."
    + _ARGUMENTS
    + """
    >>> import flowbook as fb
    >>> sums = fb.unsorted_segment_sum([1.0, 2.0, 4.0], [1, 0, 1], 3)
    >>> with fb.Session() as sess:
    ...     print(sess.run(sums))
    [2. 5. 0.]
    """,
)

unsorted_segment_prod = _unsorted(
    "UnsortedSegmentProd",
    "multiply",
    lambda dtype: 1,
    prod_gradient,
    NUMBERS,
    "For each segment the product of its rows: one for empty segments." + _ARGUMENTS,
)

unsorted_segment_max = _unsorted(
    "UnsortedSegmentMax",
    "maximum",
    lambda dtype: _limits(dtype).min,
    extreme_gradient,
    REALS,
    "For each segment the maximum of its rows: the lowest finite value for empty segments."
    + EXTREMES
    + _ARGUMENTS,
    computes=False,
)

unsorted_segment_min = _unsorted(
    "UnsortedSegmentMin",
    "minimum",
    lambda dtype: _limits(dtype).max,
    extreme_gradient,
    REALS,
    "For each segment the minimum of its rows: the highest finite value for empty segments."
    + EXTREMES
    + _ARGUMENTS,
    computes=False,
)


def _mean(xp: Any, data: Any, segment_ids: Any, num_segments: Any, power: float) -> Any:
    rows, ids, count = _kept(xp, data, segment_ids, num_segments)
    return scaled(xp, rows, ids, count, power)


def mean_gradient(op: Operation, dy: Tensor) -> Any:
    """The gradient of sums that are divided by a power of their number of rows."""
    power = op.attributes.get("power", 1.0)
    return segment_mean_gradient_op(dy, op.inputs[1], power=power), *_nones(op)


def _means_shape(data: Tensor, segment_ids: Tensor, num_segments: Tensor, power: float) -> Shape:
    if power != 1 and data.dtype.is_integer:
        raise InvalidTypeError(
            f"a sum divided by a root is no whole number, but 'data' is {data.dtype}: "
            "fb.cast it to a floating-point dtype"
        )
    return _segments_shape(data, segment_ids, num_segments)


segment_mean_op = OpDef(
    "UnsortedSegmentMean",
    "data: T, segment_ids: I, num_segments: S -> output: T",
    T=NUMBERS,
    I=INDICES,
    S=INDICES,
    attributes={"power": 1.0},
    infer=_means_shape,
    kernel=_mean,
    host_args=("num_segments",),
    grad=mean_gradient,
    cost=_no_flops_but_rows,
)


@segment_mean_op.front
def unsorted_segment_mean(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """For each segment the mean of its rows: zero for empty segments.

    Means of integers lose their fraction. Arguments and errors as for `unsorted_segment_sum`.
    """
    return segment_mean_op(data, segment_ids, num_segments, name=name)


def unsorted_segment_sqrt_n(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """For each segment the sum of its rows divided by the square root of their number.

    Floating point and complex. Arguments and errors as for `unsorted_segment_sum`.
    """
    return segment_mean_op(data, segment_ids, num_segments, power=0.5, name=name)


def _taken_shape(segments: Tensor, segment_ids: Tensor, **_: Any) -> Shape:
    if segments.shape.dims is None:
        return UNKNOWN
    return segment_ids.shape.concatenate(segments.shape.dims[1:])


def _take(xp: Any, segments: Any, segment_ids: Any) -> Any:
    if not segment_ids.size:
        return xp.zeros((*segment_ids.shape, *segments.shape[1:]), dtype=segments.dtype)
    count = segments.shape[0]
    if segment_ids.max() >= count:
        raise outside(segment_ids, segment_ids >= count, count, "segment id")
    if segment_ids.min() >= 0:
        return xp.take(segments, segment_ids, axis=0)
    if not count:
        return xp.zeros((*segment_ids.shape, *segments.shape[1:]), dtype=segments.dtype)
    taken = xp.take(segments, xp.maximum(segment_ids, 0), axis=0)
    taken[segment_ids < 0] = 0
    return taken


unsorted_segment_take = OpDef(
    "UnsortedSegmentTake",
    "segments: T, segment_ids: I -> output: T",
    T=NUMBERS,
    I=INDICES,
    infer=_taken_shape,
    kernel=_take,
    grad=lambda op, dy: (
        unsorted_segment_sum(dy, op.inputs[1], strided_slice(shape_op(op.inputs[0]), 0)),
        None,
    ),
    only_moves=True,
    doc="The segment of each row, zeros for negative ids: the gradient of `unsorted_segment_sum`.",
)


def _take_mean(xp: Any, segments: Any, segment_ids: Any, power: float) -> Any:
    flat = xp.reshape(segment_ids, (-1,))
    if flat.size and flat.max() < len(segments):
        divisors = _divisors(xp, flat[flat >= 0], segments, power)
        segments = (segments / divisors).astype(segments.dtype, copy=False)
    return _take(xp, segments, segment_ids)


segment_mean_gradient_op = OpDef(
    "UnsortedSegmentMeanGrad",
    "dy: T, segment_ids: I -> output: T",
    T=INEXACT,
    I=INDICES,
    attributes={"power": REQUIRED},
    infer=_taken_shape,
    kernel=_take_mean,
    grad=lambda op, dz: (
        segment_mean_op(
            dz,
            op.inputs[1],
            strided_slice(shape_op(op.inputs[0]), 0),
            power=op.attributes["power"],
        ),
        None,
    ),
    cost=_no_flops_but_rows,
)
