"""Selecting along the last axis: the largest elements, or the one at a place of the order.

Of equal elements the first comes first, and NaN counts as larger than all numbers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from flowbook.graph.definition.batching import Batching
from flowbook.graph.definition.inference import constant_value
from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.dtypes import REALS
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import UNKNOWN, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.numerics.bounds import check_indices
from flowbook.graph.ops.arrays.ordering import comparisons, order_of, take_along_axis_gradient_op
from flowbook.graph.ops.basis.broadcasting import sum_op
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.shaping import expand_dims, shape_of
from flowbook.graph.ops.math.comparison import equal

__all__ = ["nth_element", "top_k"]


class TopK(NamedTuple):
    """The largest elements of each row, and where they stand."""

    values: Tensor
    indices: Tensor


def _top_shapes(input: Tensor, k: Tensor, **_: Any) -> list[Shape]:
    if k.shape.rank not in (None, 0):
        raise InvalidArgumentError(f"'k' is a scalar, not of shape {k.shape}")
    dims, known = input.shape.dims, constant_value(k)
    if dims is None:
        return [UNKNOWN, UNKNOWN]
    if not dims:
        raise InvalidArgumentError("a scalar has no elements to choose from")
    count = None if known is None else int(known)
    if count is not None:
        _check_k(count, dims[-1])
    return [Shape.of((*dims[:-1], count))] * 2


def _check_k(k: int, length: int | None) -> int:
    if k < 0 or (length is not None and k > length):
        raise InvalidArgumentError(f"k is {k}, but the last axis has {length} elements")
    return k


# From how many elements on, and for which part of them, it pays to select before sorting.
_LONG, _FEW = 256, 8


def _top_k(xp: Any, input: Any, k: Any) -> tuple[Any, Any]:
    if not input.ndim:
        raise InvalidArgumentError("a scalar has no elements to choose from")
    n = input.shape[-1]
    count = _check_k(int(k), n)
    if n >= _LONG and 0 < count * _FEW <= n and not _has_nan(xp, input):
        chosen = _largest(xp, input, count)
        kept = xp.take_along_axis(input, chosen, axis=-1)
        order = order_of(xp, kept, kept.ndim - 1, True)
        indices = xp.take_along_axis(chosen, order, axis=-1)
    else:
        indices = order_of(xp, input, input.ndim - 1, True)[..., :count]
    values = xp.take_along_axis(input, indices, axis=-1)
    return values, indices.astype(np.int32)


def _has_nan(xp: Any, input: Any) -> bool:
    return input.dtype.kind == "f" and bool(xp.isnan(input).any())


def _largest(xp: Any, input: Any, count: int) -> Any:
    """The indices of the largest elements of each row, in their order; the first among equals."""
    n = input.shape[-1]
    least = xp.partition(input, n - count, axis=-1)[..., n - count, None]
    # Mostly nothing else equals the least of them, and there is nothing to count.
    chosen = input >= least
    if int(chosen.sum()) == least.size * count:
        return _places(xp, chosen, count)
    above, ties = input > least, input == least
    wanted = count - above.sum(axis=-1, keepdims=True)
    return _places(xp, above | (ties & (ties.cumsum(axis=-1) <= wanted)), count)


def _places(xp: Any, chosen: Any, count: int) -> Any:
    places = xp.flatnonzero(chosen) % chosen.shape[-1]
    return xp.reshape(places, (*chosen.shape[:-1], count))


def _top_k_gradient(op: Operation, dvalues: Tensor | None, dindices: Any) -> Any:
    input = op.inputs[0]
    if dvalues is None:
        return None, None
    return (
        take_along_axis_gradient_op(dvalues, op.outputs[1], shape_of(input), axis=-1),
        None,
    )


top_k_op: OpDef[tuple[Tensor, Tensor]] = OpDef(
    "TopK",
    "input: T, k: int32 -> values: T, indices: int32",
    T=REALS,
    infer=_top_shapes,
    kernel=_top_k,
    host_args=("k",),
    grad=_top_k_gradient,
    batching=Batching.LEADING,
    cost=comparisons,
)


@top_k_op.front
def top_k(input: Any, k: Any = 1, sorted: bool = True, name: str | None = None) -> TopK:
    """The largest elements along the last axis, the largest first.

    Args:
        input: of a real dtype and at least one dimension. NaN counts as the largest.
        k: how many, an int32 scalar.
        sorted: whether they must come in order. They always do.

    Returns:
        `.values` of shape `input.shape[:-1] + [k]`, and their int32 `.indices`. Of equal elements
        the first come first.

    Raises:
        InvalidArgumentError: if the axis has fewer than k elements; in the run, where it is known
            only then.

    >>> import flowbook as fb
    >>> best = fb.nn.top_k([1.0, 4.0, 3.0], 2)
    >>> with fb.Session() as sess:
    ...     print(*sess.run(best))
    [4. 3.] [1 2]
    """
    values, indices = top_k_op(input, k, name=name)
    return TopK(values, indices)


def _nth_shape(input: Tensor, n: Tensor, reverse: bool) -> Shape:
    if n.shape.rank not in (None, 0):
        raise InvalidArgumentError(f"'n' is a scalar, not of shape {n.shape}")
    dims, known = input.shape.dims, constant_value(n)
    if dims is None:
        return UNKNOWN
    if not dims:
        raise InvalidArgumentError("a scalar has no elements to choose from")
    if known is not None and dims[-1] is not None:
        check_indices(known, dims[-1], "n")
    return Shape.of(dims[:-1])


def _nth_element(xp: Any, input: Any, n: Any, reverse: bool) -> Any:
    length = input.shape[-1]
    check_indices(n, length, "n")
    place = length - 1 - int(n) if reverse else int(n)
    return xp.partition(input, place, axis=-1)[..., place].copy()


def _nth_gradient(op: Operation, dy: Tensor) -> Any:
    # Elements that equal the n-th share its gradient, as for a maximum.
    input, output = op.inputs[0], op.outputs[0]
    is_chosen = cast(equal(input, expand_dims(output, -1)), input.dtype)
    share = is_chosen / sum_op(is_chosen, axis=(-1,), keepdims=True)
    return share * expand_dims(dy, -1), None


nth_element = OpDef(
    "NthElement",
    "input: T, n: int32 -> values: T",
    T=REALS,
    attributes={"reverse": False},
    infer=_nth_shape,
    kernel=_nth_element,
    host_args=("n",),
    grad=_nth_gradient,
    cost=comparisons,
    doc="""The element that would stand at place `n` of each row if it were sorted.

    Args:
        input: of a real dtype and at least one dimension. NaN counts as the largest.
        n: an int32 scalar in [0, length of the last axis).
        reverse: count from the largest instead of the smallest.

    Returns:
        A tensor of shape `input.shape[:-1]`.

    Raises:
        InvalidIndexError: if `n` lies outside; in the run, where it is known only then.
    """,
)
