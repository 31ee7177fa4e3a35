"""Embeddings: rows of tables, by ids, one by one or combined over lists of ids.

A row is gathered straight from a variable, and its gradient is IndexedSlices: neither grows with
the table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowbook.graph.definition.composed import composed
from flowbook.graph.model.attributes import check_choice
from flowbook.graph.model.dtypes import INDICES, float32, int32
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.tensor import Arithmetic, Tensor
from flowbook.graph.ops.arrays.dynamic_partition import dynamic_partition, dynamic_stitch
from flowbook.graph.ops.arrays.gathering import gather
from flowbook.graph.ops.basis.broadcasting import reduce_sum
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.constants import convert_to_tensor, identity
from flowbook.graph.ops.basis.filling import ones_like
from flowbook.graph.ops.basis.filling import range as range_of
from flowbook.graph.ops.basis.indexing import strided_slice
from flowbook.graph.ops.basis.joining import concat, stack
from flowbook.graph.ops.basis.shaping import expand_dims_op, reshape, shape, shape_of, size
from flowbook.graph.ops.basis.shaping import rank as rank_of
from flowbook.graph.ops.basis.sparse_tensor import SparseTensor
from flowbook.graph.ops.math.arithmetic import maximum
from flowbook.graph.ops.math.comparison import (
    equal,
    greater,
    greater_equal,
    less,
    logical_and,
    where,
)
from flowbook.graph.ops.math.elementwise import sqrt, square
from flowbook.graph.ops.reduction.reductions import reduce_prod
from flowbook.graph.ops.reduction.segments import unsorted_segment_sum
from flowbook.graph.ops.sparse.arguments import sparse_parts
from flowbook.graph.ops.sparse.arranging import reshape as reshape_sparse
from flowbook.graph.ops.sparse.selecting import fill_empty_rows, retain

__all__ = ["embedding_lookup", "embedding_lookup_sparse", "safe_embedding_lookup_sparse"]


@composed
def embedding_lookup(
    params: Any,
    ids: Any,
    partition_strategy: str = "mod",
    max_norm: Any = None,
    name: str | None = None,
) -> Tensor:
    """Rows of a table, by their ids.

    Args:
        params: the table, a tensor or variable [rows, ...]; or a list of them, the shards that a
            table is divided into as evenly as possible.
        ids: int32 or int64 of any shape, each in [0, rows).
        partition_strategy: where the rows of a list lie: "mod", row i in shard i % n, or "div", the
            first rows in the first shard and so on.
        max_norm: scale rows of a larger Euclidean norm down to this one; None leaves all.

    Returns:
        A tensor of shape `ids.shape + params.shape[1:]`. The gradient of a variable is
        IndexedSlices.

    Raises:
        InvalidIndexError: in the run, if an id is no row.

    >>> import flowbook as fb
    >>> table = fb.Variable(fb.zeros([1000, 16]))
    >>> fb.nn.embedding_lookup(table, [3, 999]).shape
    Shape([2, 16])
    """
    check_choice("partition_strategy", partition_strategy, _PLACES)
    shards = params if isinstance(params, list | tuple) else [params]
    tables: list[Any] = [t if isinstance(t, Arithmetic) else convert_to_tensor(t) for t in shards]
    if not tables:
        raise InvalidArgumentError("an empty list of shards has no rows")
    ids = convert_to_tensor(ids)
    if ids.dtype not in INDICES:
        raise InvalidTypeError(f"ids are int32 or int64, not {ids.dtype.name}")
    if len(tables) == 1:
        rows = gather(tables[0], ids)
    else:
        rows = _from_shards(tables, ids, _PLACES[partition_strategy])
    return rows if max_norm is None else _clipped(rows, ids, tables[0].shape.rank, max_norm)


def _in_turn(ids: Tensor, tables: list[Any]) -> tuple[Tensor, Tensor]:
    """Shards and places there: neighbours lie in different shards."""
    count = len(tables)
    return ids % count, ids // count


def _in_blocks(ids: Tensor, tables: list[Any]) -> tuple[Tensor, Tensor]:
    """Shards and places there: neighbours lie together; the first shards may have one row more."""
    total = sum(_rows(table, ids) for table in tables)
    count, more = total // len(tables), total % len(tables)
    # Without a row for each shard nothing lies behind the first ones; the divisor must not be 0.
    least, most = maximum(count, 1), count + 1
    shard = maximum(ids // most, (ids - more) // least)
    return shard, where(less(shard, more), ids % most, (ids - more) % least)


def _rows(table: Any, ids: Tensor) -> Any:
    known = table.shape.dims[0] if table.shape.dims else None
    if known is not None:
        return convert_to_tensor(known, ids.dtype)
    return strided_slice(shape(table, out_type=ids.dtype), 0)


_PLACES = {"mod": _in_turn, "div": _in_blocks}


def _from_shards(tables: list[Any], ids: Tensor, place: Callable[..., Any]) -> Tensor:
    """Rows of a table that lies in parts: gathered from each, and put into the order of the ids."""
    flat = reshape(ids, [-1])
    shards, places = place(flat, tables)
    shards = cast(shards, int32)
    orders = dynamic_partition(range_of(0, size(flat)), shards, len(tables))
    parts = dynamic_partition(places, shards, len(tables))
    found = [gather(table, part) for table, part in zip(tables, parts, strict=True)]
    rows: Tensor = dynamic_stitch(orders, found)
    if ids.shape.rank == 1 and not ids.shape.is_fully_defined:
        return rows
    width: Any = strided_slice(shape(rows), np.s_[1:])
    known = tables[0].shape.dims
    if known is not None and None not in known[1:]:
        width = np.array(known[1:], np.int32)
    return reshape(rows, concat([shape_of(ids), width], 0))


def _clipped(rows: Tensor, ids: Tensor, rank: int | None, max_norm: Any) -> Tensor:
    """Rows of a table of that rank with norms of at most `max_norm`."""
    if rank is None:
        matrix = _clipped(_as_matrix(rows, ids), ids, 2, max_norm)
        return reshape(matrix, shape(rows))
    axes = tuple(range(1 - rank, 0))
    squares = reduce_sum(square(rows), axes, keepdims=True) if axes else square(rows)
    # The root's slope at 0 is infinite; a row of zeros is left as it is.
    is_zero = equal(squares, 0)
    norm = where(is_zero, 0.0, sqrt(where(is_zero, ones_like(squares), squares)))
    limit = convert_to_tensor(max_norm, rows.dtype)
    return rows * (limit / maximum(limit, norm))


def _as_matrix(rows: Tensor, ids: Tensor) -> Tensor:
    """Looked up rows of any rank as [ids, width]."""
    first = rank_of(ids) if ids.shape.rank is None else ids.shape.rank
    width = reduce_prod(strided_slice(shape(rows), slice(first, None)))
    return reshape(rows, [size(ids), width])


_COMBINED: dict[str, Callable[[Tensor], Tensor] | None] = {
    "sum": None,
    "mean": lambda weights: weights,
    "sqrtn": square,
}


@composed
def embedding_lookup_sparse(
    params: Any,
    sp_ids: Any,
    sp_weights: Any,
    partition_strategy: str = "mod",
    combiner: str = "mean",
    max_norm: Any = None,
    name: str | None = None,
) -> Tensor:
    """For each example the combined rows of a table that its ids name.

    Args:
        params: the table, as for `embedding_lookup`.
        sp_ids: a sparse tensor [examples, longest] of int32 or int64 ids: row by row those of an
            example.
        sp_weights: a sparse tensor of the same indices with the weight of each id; None weighs all
            alike.
        partition_strategy: as for `embedding_lookup`.
        combiner: "sum", "mean" (the weighted sum over the sum of weights) or "sqrtn" (over the root
            of the sum of squared weights).
        max_norm: as for `embedding_lookup`, before rows are combined.

    Returns:
        A tensor of shape `[examples] + params.shape[1:]` and the table's dtype, of half precision
        float32; zero for an example without ids, or whose weights cancel.

    Raises:
        InvalidIndexError: in the run, if an id is no row.
    """
    check_choice("combiner", combiner, _COMBINED)
    indices, ids, dense_shape = sparse_parts("sp_ids", sp_ids)
    if ids.dtype not in INDICES:
        raise InvalidTypeError(f"ids are int32 or int64, not {ids.dtype.name}")
    weights = None
    if sp_weights is not None:
        _, weights, _ = sparse_parts("sp_weights", sp_weights)
        if not weights.shape.is_compatible_with(ids.shape):
            raise InvalidArgumentError(
                f"{weights.shape} weights do not fit {ids.shape} ids: one for each"
            )
    rows = embedding_lookup(params, ids, partition_strategy, max_norm)
    if rows.dtype.size < 4:
        rows = cast(rows, float32)
    examples, count = strided_slice(indices, np.s_[:, 0]), strided_slice(dense_shape, 0)
    matrix = rows if rows.shape.rank is not None else _as_matrix(rows, ids)
    result = _combined(matrix, weights, examples, count, combiner)
    if matrix is not rows:
        row = strided_slice(shape(rows), np.s_[1:])
        result = reshape(result, concat([strided_slice(shape(result), np.s_[:1]), row], 0))
    return identity(result, name=name)


@composed
def safe_embedding_lookup_sparse(
    embedding_weights: Any,
    sparse_ids: Any,
    sparse_weights: Any = None,
    combiner: str = "mean",
    default_id: Any = None,
    name: str | None = None,
    partition_strategy: str = "div",
    max_norm: Any = None,
) -> Tensor:
    """`embedding_lookup_sparse` of ids as they come: of any rank, some invalid, some missing.

    Negative ids count as missing, and so do ids whose weight is not positive, but for the combiner
    "sum".

    Args:
        embedding_weights: the table, as for `embedding_lookup`.
        sparse_ids: a SparseTensor [..., longest] of int32 or int64 ids.
        sparse_weights: a SparseTensor of the same indices; None weighs all alike.
        combiner: as for `embedding_lookup_sparse`.
        default_id: the id of the row for an example without ids; None gives zeros.
        partition_strategy: as for `embedding_lookup`; here "div" is the default.
        max_norm: as for `embedding_lookup`.

    Returns:
        A tensor of shape `sparse_ids.shape[:-1] + params.shape[1:]`.

    Raises:
        InvalidIndexError: in the run, if an id exceeds the table.

    >>> import flowbook as fb
    >>> ids = fb.SparseTensor([[0, 0], [0, 1], [1, 0]], [2, 0, -1], [3, 2])
    >>> with fb.Session() as sess:
    ...     table = fb.constant([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    ...     print(sess.run(fb.nn.safe_embedding_lookup_sparse(table, ids)).tolist())
    [[2.0, 3.0], [0.0, 0.0], [0.0, 0.0]]
    """
    ids = SparseTensor.from_value(sparse_ids)
    weights = None if sparse_weights is None else SparseTensor.from_value(sparse_weights)
    whole, rank = ids.dense_shape, ids.shape.rank
    if rank != 2:
        examples = reduce_prod(strided_slice(whole, np.s_[:-1]))
        ids = reshape_sparse(ids, stack([examples, strided_slice(whole, -1)]))
    valid = greater_equal(ids.values, 0)
    if weights is not None:
        if combiner != "sum":
            valid = logical_and(valid, greater(weights.values, 0))
        weights = retain(SparseTensor(ids.indices, weights.values, ids.dense_shape), valid)
    ids = retain(ids, valid)
    if default_id is not None:
        ids = fill_empty_rows(ids, default_id).sp_ordered_output
        weights = None if weights is None else fill_empty_rows(weights, 1).sp_ordered_output
    last = name if rank == 2 else None
    rows = embedding_lookup_sparse(
        embedding_weights, ids, weights, partition_strategy, combiner, max_norm, last
    )
    if rank == 2:
        return rows
    before = cast(strided_slice(whole, np.s_[:-1]), int32)
    row = strided_slice(shape(rows), np.s_[1:])
    return reshape(rows, concat([before, row], 0), name=name)


def _combined(
    rows: Tensor, weights: Tensor | None, examples: Tensor, count: Tensor, combiner: str
) -> Tensor:
    """For each example its weighted rows, summed and divided by what the weights come to."""
    rank = rows.shape.rank or 1
    if weights is not None:
        weights = cast(weights, rows.dtype)
        rows = rows * _beside(weights, rank)
    total: Tensor = unsorted_segment_sum(rows, examples, count)
    measure = _COMBINED[combiner]
    if measure is None:
        return total
    given = ones_like(examples, rows.dtype) if weights is None else measure(weights)
    amount: Tensor = unsorted_segment_sum(given, examples, count)
    is_nothing = equal(amount, 0)
    amount = where(is_nothing, ones_like(amount), amount)
    amount = sqrt(amount) if combiner == "sqrtn" else amount
    return where(_beside(is_nothing, rank), 0.0, total / _beside(amount, rank))


def _beside(values: Tensor, rank: int) -> Tensor:
    """One value for each row, shaped to broadcast against rows of a tensor of this rank."""
    return expand_dims_op(values, axis=tuple(range(1, rank))) if rank > 1 else values
