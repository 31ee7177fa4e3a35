"""Products of sparse and dense matrices, and sums of rows by segments, which are such products.

SciPy does the work; this is the one module that loads it for sparse matrices, on first use.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from flowbook.graph.definition.inference import constant_value
from flowbook.graph.definition.op_def import REQUIRED, OpDef
from flowbook.graph.model.dtypes import FLOATS, INDICES, NUMBERS
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import UNKNOWN, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.numerics.bounds import check_indices
from flowbook.graph.ops.arrays.indexed_slices import IndexedSlices
from flowbook.graph.ops.basis.conjugation import conjugate
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.filling import range as range_
from flowbook.graph.ops.basis.indexing import strided_slice
from flowbook.graph.ops.basis.joining import concat_op
from flowbook.graph.ops.basis.permuting import transpose_op
from flowbook.graph.ops.basis.shaping import shape_of, shape_op
from flowbook.graph.ops.basis.sparse_tensor import SparseTensor
from flowbook.graph.ops.reduction.reductions import reduce_max
from flowbook.graph.ops.reduction.segments import combined
from flowbook.graph.ops.sparse.indices import check_shapes, check_sparse, checked_dims, count_of

__all__ = ["sparse_segment_mean", "sparse_segment_sqrt_n", "sparse_segment_sum"]

# How many elements of gathered rows exist at once.
_CHUNK = 1 << 18


def _times(
    xp: Any, rows: Any, columns: Any, values: Any, shape: tuple[int, int], dense: Any
) -> Any:
    """A matrix of elements times a dense one. What comes twice adds up."""
    if xp is not np:
        return combined(xp, "add", values[:, None] * dense[columns], rows, shape[0], 0)
    from scipy.sparse import csr_matrix

    if (rows[1:] < rows[:-1]).any():
        order = np.argsort(rows, kind="stable")
        rows, columns, values = rows[order], columns[order], values[order]
    ends = np.zeros(shape[0] + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=shape[0]), out=ends[1:])
    return csr_matrix((values, columns, ends), shape=shape) @ dense


def _working(array: Any) -> Any:
    """Half precision is summed in single precision, which SciPy knows."""
    return array.astype(np.float32) if array.dtype.name in ("float16", "bfloat16") else array


# Matrices


def _matrix_dims(shape: Shape, adjoint: bool, what: str) -> tuple[int | None, int | None]:
    if shape.dims is None:
        return None, None
    if len(shape.dims) != 2:
        raise InvalidArgumentError(f"{what} is a matrix, not of shape {shape}")
    return (shape.dims[1], shape.dims[0]) if adjoint else (shape.dims[0], shape.dims[1])


def _product_shape(
    indices: Tensor,
    dense_shape: Tensor,
    values: Tensor,
    b: Tensor,
    adjoint_a: bool,
    adjoint_b: bool,
) -> Shape:
    known = check_shapes(indices, dense_shape, values)
    n, k = _matrix_dims(known, adjoint_a, "the sparse tensor")
    other, m = _matrix_dims(b.shape, adjoint_b, "b")
    if None not in (k, other) and k != other:
        raise InvalidArgumentError(
            f"inner dimensions differ: {known}{' adjoint' * adjoint_a} x "
            f"{b.shape}{' adjoint' * adjoint_b}"
        )
    return Shape.of((n, m))


def _product(
    xp: Any,
    indices: Any,
    dense_shape: Any,
    values: Any,
    b: Any,
    adjoint_a: bool,
    adjoint_b: bool,
) -> Any:
    dims = checked_dims(dense_shape)
    if len(dims) != 2 or b.ndim != 2:
        raise InvalidArgumentError(
            f"matrices are wanted, not the shapes {list(dims)} and {list(b.shape)}"
        )
    check_sparse(indices, dims, len(values))
    right = xp.conj(b.T) if adjoint_b else b
    if dims[0 if adjoint_a else 1] != right.shape[0]:
        raise InvalidArgumentError(
            f"inner dimensions differ: {list(dims)}{' adjoint' * adjoint_a} x "
            f"{list(b.shape)}{' adjoint' * adjoint_b}"
        )
    rows, columns, left = indices[:, 0], indices[:, 1], _working(values)
    if adjoint_a:
        rows, columns, dims, left = columns, rows, dims[::-1], xp.conj(left)
    found = _times(xp, rows, columns, left, (dims[0], dims[1]), _working(right))
    return found.astype(values.dtype, copy=False)


def _adjoint(matrix: Tensor) -> Tensor:
    return conjugate(transpose_op(matrix, perm=(1, 0)))


def _product_gradient(op: Operation, dy: Tensor) -> Any:
    indices, dense_shape, values, b = op.inputs
    adjoint_a, adjoint_b = op.attributes["adjoint_a"], op.attributes["adjoint_b"]
    right = _adjoint(b) if adjoint_b else b
    rows, columns = (right, dy) if adjoint_a else (dy, right)
    dvalues = sparse_sampled_product(indices, dense_shape, rows, columns)
    db = sparse_product(indices, dense_shape, values, dy, adjoint_a=not adjoint_a)
    return None, None, dvalues, _adjoint(db) if adjoint_b else db


def _product_flops(op: Operation) -> int:
    columns = op.outputs[0].shape.dims and op.outputs[0].shape.dims[1]
    return 2 * (op.inputs[2].shape.size or 0) * (columns or 0)


sparse_product: OpDef = OpDef(
    "SparseDenseMatMul",
    "indices: int64, dense_shape: int64, values: T, b: T -> product: T",
    T=NUMBERS,
    attributes={"adjoint_a": False, "adjoint_b": False},
    infer=_product_shape,
    kernel=_product,
    host_args=("dense_shape",),
    grad=_product_gradient,
    cost=_product_flops,
)


def sparse_dense_matmul(
    sp_a: Any,
    b: Any,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    name: str | None = None,
) -> Tensor:
    """The matrix product of a sparse and a dense matrix, which is dense.

    Args:
        sp_a: a SparseTensor [n, k] of a number dtype, its elements in any order.
        b: [k, m] of the same dtype.
        adjoint_a: take `sp_a` as [k, n], transposed and conjugated.
        adjoint_b: take `b` as [m, k], transposed and conjugated.
        name: the operation's name.

    Returns:
        [n, m]. Gradients flow to `b` and to the values of `sp_a`.

    Raises:
        InvalidArgumentError: if the inner dimensions differ; in the run, where it is known only
            then.

    >>> import flowbook as fb
    >>> fb.sparse.sparse_dense_matmul(fb.sparse.eye(3), fb.zeros([3, 5])).shape
    Shape([3, 5])
    """
    a = SparseTensor.from_value(sp_a)
    with a.graph.as_default():
        return sparse_product(
            a.indices,
            a.dense_shape,
            a.values,
            b,
            adjoint_a=bool(adjoint_a),
            adjoint_b=bool(adjoint_b),
            name=name,
        )


def _sampled_shape(indices: Tensor, dense_shape: Tensor, a: Tensor, b: Tensor) -> Shape:
    known = check_shapes(indices, dense_shape)
    m, k = _matrix_dims(a.shape, False, "a")
    n, other = _matrix_dims(b.shape, False, "b")
    if (None not in (k, other) and k != other) or not known.is_compatible_with((m, n)):
        raise InvalidArgumentError(
            f"no elements of the dense shape {known} are products of rows of {a.shape} and of "
            f"{b.shape}"
        )
    return Shape.of((count_of(indices),))


def _sampled(xp: Any, indices: Any, dense_shape: Any, a: Any, b: Any) -> Any:
    dims = checked_dims(dense_shape)
    if a.ndim != 2 or b.ndim != 2 or dims != (len(a), len(b)) or a.shape[1] != b.shape[1]:
        raise InvalidArgumentError(
            f"no elements of the dense shape {list(dims)} are products of rows of "
            f"{list(a.shape)} and of {list(b.shape)}"
        )
    check_sparse(indices, dims)
    result = xp.zeros(len(indices), dtype=_working(a[:0]).dtype)
    step = max(1, _CHUNK // max(1, a.shape[1]))
    for begin in range(0, len(indices), step):
        part = indices[begin : begin + step]
        left, right = _working(a[part[:, 0]]), _working(b[part[:, 1]])
        result[begin : begin + step] = xp.einsum("ij,ij->i", left, xp.conj(right))
    return result.astype(a.dtype, copy=False)


def _sampled_gradient(op: Operation, dy: Tensor) -> Any:
    indices, dense_shape, a, b = op.inputs
    da = sparse_product(indices, dense_shape, dy, b)
    db = sparse_product(indices, dense_shape, dy, a, adjoint_a=True)
    return None, None, da, db


sparse_sampled_product: OpDef = OpDef(
    "SparseSampledMatMul",
    "indices: int64, dense_shape: int64, a: T, b: T -> values: T",
    T=NUMBERS,
    infer=_sampled_shape,
    kernel=_sampled,
    host_args=("dense_shape",),
    grad=_sampled_gradient,
    cost=lambda op: (
        2 * (op.outputs[0].shape.size or 0) * ((op.inputs[2].shape.dims or (0, 0))[1] or 0)
    ),
    doc="The elements at a sparse matrix's indices of `a` times the adjoint of `b`.",
)


# Rows by segments

_COMBINERS = ("sum", "mean", "sqrt_n")


def _segments_shape(
    data: Tensor, indices: Tensor, segment_ids: Tensor, num_segments: Tensor, combiner: str
) -> Shape:
    _check_segment_vectors(indices.shape, segment_ids.shape)
    if num_segments.shape.rank not in (None, 0):
        raise InvalidArgumentError(f"'num_segments' is a scalar, not of {num_segments.shape}")
    if data.shape.dims is None:
        return UNKNOWN
    if not data.shape.dims:
        raise InvalidArgumentError("a scalar has no rows")
    known = constant_value(num_segments)
    if known is not None and known < 0:
        raise InvalidArgumentError(f"the number of segments is not negative: {known}")
    return Shape.of((None if known is None else int(known), *data.shape.dims[1:]))


def _check_segment_vectors(indices: Shape, segment_ids: Shape) -> None:
    both = indices.is_compatible_with(segment_ids)
    if indices.rank not in (None, 1) or segment_ids.rank not in (None, 1) or not both:
        raise InvalidArgumentError(
            f"indices and segment ids are vectors of one length, not of the shapes {indices} and "
            f"{segment_ids}"
        )


def _check_segments(xp: Any, segment_ids: Any, count: int) -> None:
    falls = xp.flatnonzero(segment_ids[1:] < segment_ids[:-1])
    if falls.size:
        at = int(falls[0]) + 1
        raise InvalidArgumentError(
            f"segment ids are in order, but {segment_ids[at]} at {at} comes after "
            f"{segment_ids[at - 1]}",
            hint="in any order: fb.unsorted_segment_sum(fb.gather(data, indices), segment_ids, n)",
        )
    check_indices(segment_ids, count, "segment id")


def _weights(xp: Any, segment_ids: Any, count: int, combiner: str, dtype: Any) -> Any:
    """What each row counts in the combination of its segment."""
    if combiner == "sum":
        return xp.ones(len(segment_ids), dtype=dtype)
    sizes = xp.bincount(segment_ids, minlength=count)[segment_ids].astype(dtype)
    return 1 / (sizes if combiner == "mean" else xp.sqrt(sizes))


def _combined(
    xp: Any, data: Any, indices: Any, segment_ids: Any, num_segments: Any, combiner: str
) -> Any:
    _check_segment_vectors(Shape(indices.shape), Shape(segment_ids.shape))
    count = int(num_segments)
    if not data.ndim or count < 0:
        raise InvalidArgumentError(
            "a scalar has no rows" if count >= 0 else f"the number of segments is {count}"
        )
    check_indices(indices, len(data))
    _check_segments(xp, segment_ids, count)
    width = int(np.prod(data.shape[1:], dtype=np.int64))
    rows = _working(xp.reshape(data, (len(data), width)))
    weights = _weights(xp, segment_ids, count, combiner, rows.dtype)
    found = _times(xp, segment_ids, indices, weights, (count, len(data)), rows)
    return xp.reshape(found.astype(data.dtype, copy=False), (count, *data.shape[1:]))


def _combined_gradient(op: Operation, dy: Tensor) -> Any:
    data, indices, segment_ids, _ = op.inputs
    rows = sparse_segment_spread(dy, segment_ids, combiner=op.attributes["combiner"])
    shape = convert_to_tensor(shape_of(data))
    return IndexedSlices(rows, indices, shape), None, None, None


def _combining_flops(op: Operation) -> int:
    """A product and a sum for each element of the rows that are taken."""
    data, indices = op.inputs[0].shape, op.inputs[1].shape.size
    return 2 * (indices or 0) * prod(d or 0 for d in data.dims[1:]) if data.dims else 0


sparse_segment_op: OpDef = OpDef(
    "SparseSegmentCombine",
    "data: T, indices: I, segment_ids: S, num_segments: C -> output: T",
    T=NUMBERS,
    I=INDICES,
    S=INDICES,
    C=INDICES,
    attributes={"combiner": REQUIRED},
    choices={"combiner": _COMBINERS},
    infer=_segments_shape,
    kernel=_combined,
    host_args=("num_segments",),
    grad=_combined_gradient,
    cost=_combining_flops,
)


def _spread_shape(segments: Tensor, segment_ids: Tensor, combiner: str) -> Shape:
    if segments.shape.dims is None:
        return UNKNOWN
    return segment_ids.shape.with_rank(1).concatenate(segments.shape.dims[1:])


def _spread(xp: Any, segments: Any, segment_ids: Any, combiner: str) -> Any:
    _check_segments(xp, segment_ids, len(segments))
    rows = xp.take(segments, segment_ids, axis=0)
    if combiner == "sum":
        return rows
    weights = _weights(xp, segment_ids, len(segments), combiner, rows.dtype)
    return rows * weights.reshape((-1,) + (1,) * (rows.ndim - 1))


def _spread_gradient(op: Operation, dy: Tensor) -> Any:
    segments, segment_ids = op.inputs
    places = range_(strided_slice(shape_op(segment_ids), 0))
    count = strided_slice(shape_op(segments), 0)
    combiner = op.attributes["combiner"]
    return sparse_segment_op(dy, places, segment_ids, count, combiner=combiner), None


def _spreading_flops(op: Operation) -> int:
    """A product with each row's weight, which is 1 for sums."""
    return 0 if op.attributes["combiner"] == "sum" else op.outputs[0].shape.size or 0


sparse_segment_spread: OpDef = OpDef(
    "SparseSegmentSpread",
    "segments: T, segment_ids: S -> rows: T",
    T=NUMBERS,
    S=INDICES,
    attributes={"combiner": REQUIRED},
    choices={"combiner": _COMBINERS},
    infer=_spread_shape,
    kernel=_spread,
    grad=_spread_gradient,
    cost=_spreading_flops,
    doc="For each row its segment, by the row's weight: the gradient of `SparseSegmentCombine`.",
)


def _by_segments(
    combiner: str, data: Any, indices: Any, segment_ids: Any, num_segments: Any, name: str | None
) -> Tensor:
    ids = convert_to_tensor(segment_ids)
    if combiner != "sum" and _dtype_of(data) not in FLOATS:
        raise InvalidArgumentError(f"means are of floating-point rows, not of {_dtype_of(data)}")
    with ids.graph.as_default():
        if num_segments is None:
            known = constant_value(ids)
            if known is not None:
                num_segments = np.int64(known.max() + 1 if known.size else 0)
            else:
                least = np.array([-1], ids.dtype.numpy)
                num_segments = reduce_max(concat_op([ids, least], axis=0)) + 1
        return sparse_segment_op(data, indices, ids, num_segments, combiner=combiner, name=name)


def _dtype_of(data: Any) -> Any:
    return convert_to_tensor(data).dtype if not hasattr(data, "dtype") else data.dtype


def sparse_segment_sum(
    data: Any, indices: Any, segment_ids: Any, num_segments: Any = None, name: str | None = None
) -> Tensor:
    """For each segment the sum of some rows, which are not gathered first.

    Args:
        data: [n, ...] of a number dtype.
        indices: [k] int32 or int64, each in [0, n): which rows count.
        segment_ids: [k] int32 or int64, from 0 and in order: which segment each of them belongs to.
        num_segments: how many there are, an int scalar; by default the last id and 1.
        name: the operation's name.

    Returns:
        [num_segments, ...], zero for segments without rows. The gradient of `data` is
        IndexedSlices.

    Raises:
        InvalidIndexError: in the run, if an index or id lies outside.
        InvalidArgumentError: in the run, if ids are not in order.

    >>> import flowbook as fb
    >>> sums = fb.sparse_segment_sum([[1.0, 2.0], [4.0, 8.0]], [0, 1, 1], [0, 0, 2])
    >>> with fb.Session() as sess:
    ...     print(sess.run(sums).tolist())
    [[5.0, 10.0], [0.0, 0.0], [4.0, 8.0]]
    """
    return _by_segments("sum", data, indices, segment_ids, num_segments, name)


def sparse_segment_mean(
    data: Any, indices: Any, segment_ids: Any, num_segments: Any = None, name: str | None = None
) -> Tensor:
    """For each segment the mean of some rows. Arguments, result, errors as `sparse_segment_sum`."""
    return _by_segments("mean", data, indices, segment_ids, num_segments, name)


def sparse_segment_sqrt_n(
    data: Any, indices: Any, segment_ids: Any, num_segments: Any = None, name: str | None = None
) -> Tensor:
    """For each segment the sum of some rows over the square root of how many they are.

    Arguments, result, errors as `sparse_segment_sum`.
    """
    return _by_segments("sqrt_n", data, indices, segment_ids, num_segments, name)
