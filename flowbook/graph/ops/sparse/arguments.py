"""Arguments that are sparse tensors: whatever has their three parts."""

from __future__ import annotations

from typing import Any

from flowbook.graph.model.counted import counted
from flowbook.graph.model.dtypes import int64
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.constants import convert_to_tensor


def sparse_parts(name: str, value: Any, rank: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """The indices, values and dense shape of a sparse tensor, as tensors.

    Args:
        name: the argument's, for errors.
        value: a sparse tensor, or anything else with `indices`, `values` and `dense_shape`.
        rank: how many dimensions it has.

    Raises:
        InvalidTypeError: if it has no such parts.
        InvalidArgumentError: if their shapes do not go together.
    """
    if not all(hasattr(value, part) for part in ("indices", "values", "dense_shape")):
        raise InvalidTypeError(
            f"{name!r} is a sparse tensor, with indices, values and dense_shape, not {value!r:.80}"
        )
    indices = convert_to_tensor(value.indices, int64)
    values = convert_to_tensor(value.values)
    shape = convert_to_tensor(value.dense_shape, int64)
    wanted = values.shape.with_rank(1).concatenate((rank,))
    if not wanted.is_compatible_with(indices.shape) or not Shape.of((rank,)).is_compatible_with(
        shape.shape
    ):
        raise InvalidArgumentError(
            f"{name!r} has {counted(rank, 'dimension')}: indices {wanted}, values "
            f"{values.shape} and a dense shape of {counted(rank, 'number')}, not indices "
            f"{indices.shape} and a dense "
            f"shape {shape.shape}"
        )
    return indices, values, shape
