"""Rows that share a segment, combined, where the ids are sorted: segments lie one after another.

The number of segments is the last id plus one, so that the result's first dimension is known only
in the run. An empty segment between others gets zeros, but ones from `segment_prod`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowbook.graph.definition.inference import constant_value
from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.dtypes import INDICES, NUMBERS, REALS, DType
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import UNKNOWN, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.reduction.segments import (
    EXTREMES,
    combined,
    extreme_gradient,
    mean_gradient,
    prod_gradient,
    scaled,
    sum_gradient,
)

__all__ = ["segment_max", "segment_mean", "segment_min", "segment_prod", "segment_sum"]


def _segments_shape(data: Tensor, segment_ids: Tensor) -> Shape:
    if segment_ids.shape.rank not in (None, 1):
        raise InvalidArgumentError(f"'segment_ids' is a vector, not of shape {segment_ids.shape}")
    if data.shape.dims is None:
        return UNKNOWN
    if not data.shape.dims:
        raise InvalidArgumentError("a scalar has no rows")
    if not segment_ids.shape.is_compatible_with(data.shape[:1]):
        raise InvalidArgumentError(
            f"there are {segment_ids.shape[0]} segment ids for the {data.shape[0]} rows of "
            f"the shape {data.shape}"
        )
    known = constant_value(segment_ids)
    return Shape.of((None if known is None else _count(known), *data.shape.dims[1:]))


def _count(ids: Any) -> int:
    """The number of segments; checks that the ids are sorted."""
    if ids.ndim != 1:
        raise InvalidArgumentError(f"'segment_ids' is a vector, not of shape {list(ids.shape)}")
    if not ids.size:
        return 0
    if ids[0] < 0:
        raise InvalidArgumentError(f"a segment id is not negative: {ids[0]} (element [0])")
    falls = (ids[1:] < ids[:-1]).nonzero()[0]
    if falls.size:
        place = int(falls[0]) + 1
        raise InvalidArgumentError(
            f"segment ids are not sorted: {ids[place]} (element [{place}]) follows "
            f"{ids[place - 1]}",
            hint="fb.unsorted_segment_sum and its like take ids in any order",
        )
    return int(ids[-1]) + 1


def _checked(data: Any, segment_ids: Any) -> int:
    count = _count(segment_ids)
    if data.shape[:1] != segment_ids.shape:
        raise InvalidArgumentError(
            f"there are {segment_ids.size} segment ids for data of shape {list(data.shape)}"
        )
    return count


_ARGUMENTS = """

    Args:
        data: of shape [n, ...].
        segment_ids: [n], int32 or int64, sorted and not negative: which segment each row is in.

    Returns:
        A tensor of shape `[last id + 1, ...]`.

    Raises:
        InvalidArgumentError: if the ids are not sorted; in the run, where they are known only then.
"""


def _sorted(
    type: str, kernel: Callable[..., Any], grad: Any, T: tuple[DType, ...], doc: str
) -> OpDef:
    def checked(xp: Any, data: Any, segment_ids: Any) -> Any:
        return kernel(xp, data, segment_ids, _checked(data, segment_ids))

    return OpDef(
        type,
        "data: T, segment_ids: I -> output: T",
        T=T,
        I=INDICES,
        infer=_segments_shape,
        kernel=checked,
        grad=grad,
        cost=_rows,
        doc=doc,
    )


def _rows(op: Operation) -> int:
    return op.inputs[0].shape.size or 0


def _by(ufunc: str, initial: int) -> Callable[..., Any]:
    return lambda xp, data, ids, count: combined(xp, ufunc, data, ids, count, initial)


segment_sum = _sorted(
    "SegmentSum",
    _by("add", 0),
    sum_gradient,
    NUMBERS,
    "For each segment the sum of its rows: zero for empty segments."
    + _ARGUMENTS
    + """
    >>> import flowbook as fb
    >>> sums = fb.segment_sum([1.0, 2.0, 4.0], [0, 0, 2])
    >>> with fb.Session() as sess:
    ...     print(sess.run(sums))
    [3. 0. 4.]
    """,
)

segment_mean = _sorted(
    "SegmentMean",
    lambda xp, data, ids, count: scaled(xp, data, ids, count, 1.0),
    mean_gradient,
    NUMBERS,
    "For each segment the mean of its rows: zero for empty segments. Means of integers lose their "
    "fraction." + _ARGUMENTS,
)

segment_max = _sorted(
    "SegmentMax",
    _by("maximum", 0),
    extreme_gradient,
    REALS,
    "For each segment the maximum of its rows: zero for empty segments." + EXTREMES + _ARGUMENTS,
)

segment_min = _sorted(
    "SegmentMin",
    _by("minimum", 0),
    extreme_gradient,
    REALS,
    "For each segment the minimum of its rows: zero for empty segments." + EXTREMES + _ARGUMENTS,
)

segment_prod = _sorted(
    "SegmentProd",
    _by("multiply", 1),
    prod_gradient,
    NUMBERS,
    "For each segment the product of its rows: one for empty segments." + _ARGUMENTS,
)
