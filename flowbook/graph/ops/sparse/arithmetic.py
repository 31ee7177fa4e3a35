"""Arithmetic of sparse tensors: sums, extremes, reductions, softmax.

Two sparse tensors meet in the union of their indices; their values are segments of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from flowbook.graph.building.scopes import name_scope
from flowbook.graph.definition.axes import all_in_range, as_axes
from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.inference import elementwise
from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.dtypes import FLOATS, NUMBERS, REALS
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.numerics.row_writes import write_rows
from flowbook.graph.ops.arrays.masking import boolean_mask
from flowbook.graph.ops.basis.broadcasting import reduce_sum as dense_reduce_sum
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.filling import ones_like
from flowbook.graph.ops.basis.indexing import strided_slice
from flowbook.graph.ops.basis.joining import concat_op, stack_op
from flowbook.graph.ops.basis.shaping import reshape_op, shape_op, squeeze_op
from flowbook.graph.ops.basis.sparse_tensor import SparseTensor, SparseTensorValue
from flowbook.graph.ops.math import arithmetic
from flowbook.graph.ops.math.comparison import equal, greater_equal, less, logical_or, where
from flowbook.graph.ops.math.complex import abs as abs_of
from flowbook.graph.ops.reduction.segments import combined, unsorted_segment_sum
from flowbook.graph.ops.sparse.axes import dims_beside
from flowbook.graph.ops.sparse.conversion import (
    broadcast_positions,
    sparse_pick,
    sparse_sum_into,
    sparse_take,
    summed_shape,
)
from flowbook.graph.ops.sparse.indices import (
    check_shapes,
    check_sparse,
    checked_dims,
    count_of,
    keys,
    positions,
    rank_of,
)
from flowbook.graph.ops.sparse.selecting import elements, sparse_kept

__all__ = ["add", "maximum", "minimum", "reduce_max", "reduce_sum", "softmax"]


def _flops_of_values(op: Operation) -> int:
    return op.inputs[2].shape.size or 0


# Unions


def _union_shapes(a: Tensor, a_shape: Tensor, b: Tensor, b_shape: Tensor) -> list[Shape]:
    known, other = check_shapes(a, a_shape), check_shapes(b, b_shape)
    if not known.is_compatible_with(other):
        raise InvalidArgumentError(
            f"sparse tensors of the dense shapes {known} and {other} do not go together",
            hint="they do not broadcast: fb.sparse.reshape and fb.sparse.reset_shape change shapes",
        )
    m, n = count_of(a), count_of(b)
    rank = rank_of(a) if rank_of(a) is not None else rank_of(b)
    return [Shape.of((None, rank)), Shape.of((None if m is None or n is None else m + n,))]


def _union(xp: Any, a: Any, a_shape: Any, b: Any, b_shape: Any) -> Any:
    dims = checked_dims(a_shape)
    if dims != checked_dims(b_shape):
        raise InvalidArgumentError(
            f"sparse tensors of the dense shapes {list(dims)} and {b_shape.tolist()} "
            "do not go together"
        )
    check_sparse(a, dims)
    check_sparse(b, dims)
    indices = xp.concatenate([a, b])
    _, first, segments = xp.unique(keys(xp, indices, dims), return_index=True, return_inverse=True)
    return indices[first], segments.astype(np.int64)


sparse_union: OpDef[tuple[Tensor, Tensor]] = OpDef(
    "SparseUnion",
    "a_indices: int64, a_shape: int64, b_indices: int64, b_shape: int64 "
    "-> indices: int64, segments: int64",
    infer=_union_shapes,
    kernel=_union,
    host_args=("a_shape", "b_shape"),
    only_moves=True,
    doc="The indices of two sparse tensors in row-major order, and which of them each element has.",
)


def _shape_of_both(a: SparseTensor, b: SparseTensor) -> Tensor:
    """The dense shape of two that have the same: the one of which more is known."""
    return a.dense_shape if a.shape.is_fully_defined else b.dense_shape


def _check_two(a: SparseTensor, b: SparseTensor) -> None:
    if a.dtype is not b.dtype:
        raise InvalidTypeError(
            f"a is {a.dtype.name}, but b is {b.dtype.name}: dtypes are never converted silently"
        )


def add(a: Any, b: Any, threshold: Any = None, name: str | None = None) -> Any:
    """The sum of two sparse tensors, or of a sparse and a dense one.

    Args:
        a: a SparseTensor of a number dtype, or a dense tensor.
        b: the same; one of them at least is sparse. They have one dense shape.
        threshold: elements that both have are left out where their sum is smaller in magnitude; a
            scalar. By default none is.
        name: the name scope.

    Returns:
        A SparseTensor in row-major order; a dense tensor if one of them is dense.

    Raises:
        InvalidArgumentError: if the shapes differ; in the run, where it is known only then.

    >>> import flowbook as fb
    >>> total = fb.sparse.add(fb.sparse.eye(2), fb.sparse.eye(2))
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.sparse.to_dense(total)).tolist())
    [[2.0, 0.0], [0.0, 2.0]]
    """
    kinds = (SparseTensor, SparseTensorValue)
    if not isinstance(a, kinds):
        a, b = b, a
    if not isinstance(b, kinds):
        x = SparseTensor.from_value(a)
        with x.graph.as_default():
            return sparse_dense_add(x.indices, x.dense_shape, x.values, b, name=name)
    x, y = SparseTensor.from_value(a), SparseTensor.from_value(b)
    with x.graph.as_default(), name_scope(name or "SparseAdd"):
        _check_two(x, y)
        indices, segments = sparse_union(x.indices, x.dense_shape, y.indices, y.dense_shape)
        count = strided_slice(shape_op(indices), 0)
        values = unsorted_segment_sum(concat_op([x.values, y.values], axis=0), segments, count)
        total = SparseTensor(indices, values, _shape_of_both(x, y))
        if threshold is None:
            return total
        magnitudes = abs_of(values)
        least = convert_to_tensor(threshold, magnitudes.dtype)
        counts = unsorted_segment_sum(ones_like(segments), segments, count)
        kept = logical_or(greater_equal(magnitudes, least), less(counts, np.int64(2)))
        return elements(total, sparse_kept(kept, values))


def _dense_sum_shape(indices: Tensor, dense_shape: Tensor, values: Tensor, dense: Tensor) -> Shape:
    known = check_shapes(indices, dense_shape, values)
    if not known.is_compatible_with(dense.shape):
        raise InvalidArgumentError(
            f"a sparse tensor of the dense shape {known} and a dense one of {dense.shape} "
            "do not go together: they do not broadcast"
        )
    return known.merge(dense.shape)


def _dense_sum(xp: Any, indices: Any, dense_shape: Any, values: Any, dense: Any) -> Any:
    dims = checked_dims(dense_shape)
    if dims != dense.shape:
        raise InvalidArgumentError(
            f"a sparse tensor of the dense shape {list(dims)} and a dense one of "
            f"{list(dense.shape)} do not go together"
        )
    check_sparse(indices, dims, len(values))
    result = xp.array(dense, order="C")
    write_rows(result.reshape(-1), xp, xp.add, positions(xp, indices, dims), values)
    return result


sparse_dense_add = OpDef(
    "SparseDenseAdd",
    "indices: int64, dense_shape: int64, values: T, dense: T -> output: T",
    T=NUMBERS,
    infer=_dense_sum_shape,
    kernel=_dense_sum,
    host_args=("dense_shape",),
    grad=lambda op, dy: (None, None, sparse_pick(op.inputs[0], op.inputs[1], dy), dy),
    cost=_flops_of_values,
)


def _elementwise(op_def: OpDef, a: Any, b: Any) -> SparseTensor:
    """A function of two elements; where only one has an element, the other's is zero."""
    x, y = SparseTensor.from_value(a), SparseTensor.from_value(b)
    _check_two(x, y)
    indices, segments = sparse_union(x.indices, x.dense_shape, y.indices, y.dense_shape)
    count = strided_slice(shape_op(indices), 0)
    own = strided_slice(shape_op(x.values), 0)
    left = unsorted_segment_sum(x.values, strided_slice(segments, np.s_[:own]), count)
    right = unsorted_segment_sum(y.values, strided_slice(segments, np.s_[own:]), count)
    values = op_def(left, right)
    return SparseTensor(indices, values, _shape_of_both(x, y))


@composed("SparseMaximum")
def maximum(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseTensor:
    """The larger of two sparse tensors' elements, zero where one of them has none.

    Args:
        sp_a: a SparseTensor of a real dtype.
        sp_b: one of the same dtype and dense shape.

    Returns:
        A SparseTensor with an element, maybe zero, wherever one of them has one.

    Raises:
        InvalidArgumentError: if the shapes differ; in the run, where it is known only then.
    """
    return _elementwise(arithmetic.maximum, sp_a, sp_b)


@composed("SparseMinimum")
def minimum(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseTensor:
    """The smaller of two sparse tensors' elements. Arguments, result, errors as `maximum`."""
    return _elementwise(arithmetic.minimum, sp_a, sp_b)


# Reductions


def _greatest_into(xp: Any, indices: Any, dense_shape: Any, values: Any, shape: Any) -> Any:
    dims, wanted = checked_dims(dense_shape), checked_dims(shape, "shape")
    found = broadcast_positions(xp, indices, dims, wanted)
    check_sparse(indices, dims, len(values))
    return combined(xp, "maximum", values, found, math.prod(wanted), 0).reshape(wanted)


def _greatest_gradient(op: Operation, dy: Tensor) -> Any:
    """Ties share the gradient equally, as with `reduce_max`."""
    indices, dense_shape, values, shape = op.inputs
    if values.dtype.is_integer:
        return None, None, None, None

    def of_group(dense: Tensor) -> Tensor:
        return sparse_pick(indices, dense_shape, dense)

    is_chosen = cast(equal(values, of_group(op.outputs[0])), values.dtype)
    ties = of_group(sparse_sum_into(indices, dense_shape, is_chosen, shape))
    return None, None, is_chosen / ties * of_group(dy), None


sparse_max_into = OpDef(
    "SparseMaxInto",
    "indices: int64, dense_shape: int64, values: T, shape: int64 -> dense: T",
    T=REALS,
    infer=summed_shape,
    kernel=_greatest_into,
    host_args=("dense_shape", "shape"),
    grad=_greatest_gradient,
    cost=_flops_of_values,
    doc="As `SparseSumInto`, with the greatest of the elements, and zero where there is none.",
)


def _reduce(
    reduce_into: Callable[..., Tensor], x: SparseTensor, axis: Any, keepdims: bool
) -> Tensor:
    axes, rank = as_axes(axis), x.shape.rank
    gone = axes if axes is None or rank is None else all_in_range(axes, rank)
    if gone is None:
        whole = reduce_into(x, np.zeros(0, np.int64))
        return reshape_op(whole, ones_like(x.dense_shape)) if keepdims else whole
    if not gone:
        return reduce_into(x, x.dense_shape)
    if rank is None:
        stays = dims_beside(x, gone)
        result = reduce_into(x, where(stays, x.dense_shape, np.int64(1)))
        return result if keepdims else reshape_op(result, boolean_mask(x.dense_shape, stays))
    dims = (np.int64(1) if i in gone else strided_slice(x.dense_shape, i) for i in range(rank))
    result = reduce_into(x, stack_op([*dims]))
    return result if keepdims else squeeze_op(result, axis=gone)


@composed("SparseReduceSum")
def reduce_sum(
    sp_input: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The sum of a sparse tensor over axes, as a dense tensor.

    Args:
        sp_input: a SparseTensor of a number dtype.
        axis: an int or a list of them, negative ones from the last; by default all.
        keepdims: whether reduced dimensions stay, as 1.

    >>> import flowbook as fb
    >>> x = fb.SparseTensor([[0, 1], [2, 0], [2, 1]], [5, 7, 1], [3, 2])
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.sparse.reduce_sum(x, axis=1)))
    [5 0 8]
    """
    x = SparseTensor.from_value(sp_input)

    def into(x: SparseTensor, shape: Any) -> Tensor:
        if isinstance(shape, np.ndarray):
            return dense_reduce_sum(x.values)
        return sparse_sum_into(x.indices, x.dense_shape, x.values, shape)

    return _reduce(into, x, axis, keepdims)


@composed("SparseReduceMax")
def reduce_max(
    sp_input: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The greatest element of a sparse tensor over axes, as a dense tensor.

    What is not there does not count as zero; where nothing is there, the result is zero. Elements
    that share the maximum share its gradient equally.

    Args:
        sp_input: a SparseTensor of a real dtype.
        axis: an int or a list of them, negative ones from the last; by default all.
        keepdims: whether reduced dimensions stay, as 1.
    """
    x = SparseTensor.from_value(sp_input)

    def into(x: SparseTensor, shape: Any) -> Tensor:
        return sparse_max_into(x.indices, x.dense_shape, x.values, shape)

    return _reduce(into, x, axis, keepdims)


# Softmax


def _row_segments_shape(indices: Tensor, dense_shape: Tensor) -> Shape:
    known = check_shapes(indices, dense_shape)
    if known.rank is not None and known.rank < 1:
        raise InvalidArgumentError("a scalar has no rows")
    return Shape.of((count_of(indices),))


def _row_segments(xp: Any, indices: Any, dense_shape: Any) -> Any:
    dims = checked_dims(dense_shape)
    if not dims:
        raise InvalidArgumentError("a scalar has no rows")
    check_sparse(indices, dims)
    found = keys(xp, indices[:, :-1], dims[:-1])
    _, segments = xp.unique(found, return_inverse=True)
    return segments.astype(np.int64)


sparse_row_segments = OpDef(
    "SparseRowSegments",
    "indices: int64, dense_shape: int64 -> segments: int64",
    infer=_row_segments_shape,
    kernel=_row_segments,
    host_args=("dense_shape",),
    only_moves=True,
    doc="Numbers, counted from 0 without gaps, of what differs in all but the last dimension.",
)


def _softmax_shape(values: Tensor, segments: Tensor) -> Shape:
    if values.shape.rank not in (None, 1) or not values.shape.is_compatible_with(segments.shape):
        raise InvalidArgumentError(
            f"values of shape {values.shape} do not go with segments of shape {segments.shape}"
        )
    return values.shape.merge(segments.shape)


def _softmax(xp: Any, values: Any, segments: Any) -> Any:
    if values.shape != segments.shape or values.ndim != 1:
        raise InvalidArgumentError(
            f"values of shape {list(values.shape)} do not go with segments of {segments.shape}"
        )
    if not len(values):
        return xp.zeros_like(values)
    if segments.min() < 0 or segments.max() >= len(values):
        raise InvalidArgumentError("segments are counted from 0 without gaps")
    exact = values.astype(np.float32) if values.dtype.itemsize < 4 else values
    greatest = combined(xp, "maximum", exact, segments, len(values), -np.inf)
    powers = xp.exp(exact - greatest[segments])
    sums = combined(xp, "add", powers.astype(np.float64), segments, len(values), 0)
    return (powers / sums.astype(exact.dtype)[segments]).astype(values.dtype)


def _softmax_gradient(op: Operation, dy: Tensor) -> Any:
    y, segments = op.outputs[0], op.inputs[1]
    count = strided_slice(shape_op(segments), 0)
    sums = unsorted_segment_sum(dy * y, segments, count)
    return y * (dy - sparse_take(sums, segments)), None


sparse_softmax_op = OpDef(
    "SparseSoftmax",
    "values: T, segments: int64 -> output: T",
    T=FLOATS,
    infer=_softmax_shape,
    kernel=_softmax,
    grad=_softmax_gradient,
    cost=elementwise(flops=14),
)


@composed("SparseSoftmax")
def softmax(sp_input: Any, name: str | None = None) -> SparseTensor:
    """Softmax over the last dimension of a sparse tensor's elements; what is not there has no part.

    Args:
        sp_input: a SparseTensor of a floating-point dtype, of at least two dimensions.

    Returns:
        A SparseTensor with the same indices, whose elements add up to 1 along the last dimension.
    """
    x = SparseTensor.from_value(sp_input)
    if x.shape.rank is not None and x.shape.rank < 2:
        raise InvalidArgumentError(f"at least two dimensions are wanted, not {x.shape}")
    segments = sparse_row_segments(x.indices, x.dense_shape)
    return SparseTensor(x.indices, sparse_softmax_op(x.values, segments), x.dense_shape)
