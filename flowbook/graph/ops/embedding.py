"""Embeddings: rows of tables, by ids, one by one or combined over lists of ids.

A row is gathered straight from a variable, and its gradient is IndexedSlices: neither grows with
the table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowbook.graph.dtypes import INDICES
from flowbook.graph.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.ops.arithmetic import maximum
from flowbook.graph.ops.comparison import equal, where
from flowbook.graph.ops.constants import convert_to_tensor, identity
from flowbook.graph.ops.elementwise import cast, sqrt, square
from flowbook.graph.ops.filling import ones_like
from flowbook.graph.ops.gathering import gather
from flowbook.graph.ops.indexing import strided_slice
from flowbook.graph.ops.located import located
from flowbook.graph.ops.reductions import reduce_sum
from flowbook.graph.ops.segments import unsorted_segment_sum
from flowbook.graph.ops.shaping import expand_dims_op
from flowbook.graph.ops.sparse_arguments import sparse_parts
from flowbook.graph.scopes import name_scope
from flowbook.graph.tensor import Tensor


def embedding_lookup(
    params: Any,
    ids: Any,
    partition_strategy: str = "mod",
    max_norm: Any = None,
    name: str | None = None,
) -> Tensor:
    """Rows of a table, by their ids.

    Args:
        params: the table, a tensor or variable [rows, ...].
        ids: int32 or int64 of any shape, each in [0, rows).
        partition_strategy: "mod" or "div".
        max_norm: scale rows of a larger Euclidean norm down to this one; None leaves all.
        name: the name scope.

    Returns:
        A tensor of shape `ids.shape + params.shape[1:]`. The gradient of a variable is
        IndexedSlices.

    Raises:
        OutOfRangeError: in the run, if an id is no row.

    >>> import flowbook as fb
    >>> table = fb.Variable(fb.zeros([1000, 16]))
    >>> fb.nn.embedding_lookup(table, [3, 999]).shape
    Shape([2, 16])
    """
    __tracebackhide__ = True
    with located("embedding_lookup"):
        _check_strategy(partition_strategy)
        tables = list(params) if isinstance(params, list | tuple) else [params]
    with name_scope(name or "embedding_lookup"):
        rows = gather(tables[0], ids)
        return rows if max_norm is None else _clipped(rows, tables[0], max_norm)


def _check_strategy(strategy: Any) -> None:
    if strategy not in ("mod", "div"):
        raise InvalidArgumentError(f"partition_strategy is 'mod' or 'div', not {strategy!r}")


def _clipped(rows: Tensor, table: Any, max_norm: Any) -> Tensor:
    """Rows with norms of at most `max_norm`."""
    rank = table.shape.rank
    if rank is None:
        raise InvalidArgumentError("max_norm needs a table of known rank")
    axes = tuple(range(1 - rank, 0))
    squares = reduce_sum(square(rows), axes, keepdims=True) if axes else square(rows)
    # The root's slope at 0 is infinite; a row of zeros is left as it is.
    is_zero = equal(squares, 0)
    norm = where(is_zero, 0.0, sqrt(where(is_zero, ones_like(squares), squares)))
    limit = convert_to_tensor(max_norm, rows.dtype)
    return rows * (limit / maximum(limit, norm))  # type: ignore[no-any-return]


_COMBINED: dict[str, Callable[[Tensor], Tensor] | None] = {
    "sum": None,
    "mean": lambda weights: weights,
    "sqrtn": square,
}


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
        partition_strategy: "mod" or "div".
        combiner: "sum", "mean" (the weighted sum over the sum of weights) or "sqrtn" (over the root
            of the sum of squared weights).
        max_norm: as for `embedding_lookup`, before rows are combined.
        name: the name scope.

    Returns:
        A tensor of shape `[examples] + params.shape[1:]`; zero for an example without ids, or whose
        weights cancel.

    Raises:
        OutOfRangeError: in the run, if an id is no row.
    """
    __tracebackhide__ = True
    with located("embedding_lookup_sparse"):
        if combiner not in _COMBINED:
            raise InvalidArgumentError(f"combiner is 'sum', 'mean' or 'sqrtn', not {combiner!r}")
        indices, ids, shape = sparse_parts("sp_ids", sp_ids)
        if ids.dtype not in INDICES:
            raise InvalidTypeError(f"ids are int32 or int64, not {ids.dtype.name}")
        weights = None
        if sp_weights is not None:
            _, weights, _ = sparse_parts("sp_weights", sp_weights)
            if not weights.shape.is_compatible_with(ids.shape):
                raise InvalidArgumentError(
                    f"{weights.shape} weights do not fit {ids.shape} ids: one for each"
                )
    with name_scope(name or "embedding_lookup_sparse") as scope:
        rows = embedding_lookup(params, ids, partition_strategy, max_norm)
        examples, count = strided_slice(indices, np.s_[:, 0]), strided_slice(shape, 0)
        if weights is not None:
            weights = cast(weights, rows.dtype)
            rows = rows * _beside(weights, rows)
        total: Tensor = unsorted_segment_sum(rows, examples, count)
        measure = _COMBINED[combiner]
        if measure is None:
            return identity(total, name=scope)  # type: ignore[no-any-return]
        given = ones_like(ids, rows.dtype) if weights is None else measure(weights)
        amount: Tensor = unsorted_segment_sum(given, examples, count)
        is_nothing = equal(amount, 0)
        amount = where(is_nothing, ones_like(amount), amount)
        amount = sqrt(amount) if combiner == "sqrtn" else amount
        result = where(_beside(is_nothing, total), 0.0, total / _beside(amount, total))
        return identity(result, name=scope)  # type: ignore[no-any-return]


def _beside(values: Tensor, rows: Tensor) -> Tensor:
    """One value for each row, shaped to broadcast against the rows."""
    rank = rows.shape.rank
    if rank is None:
        raise InvalidArgumentError("combining rows needs a table of known rank")
    return expand_dims_op(values, axis=tuple(range(1, rank))) if rank > 1 else values
