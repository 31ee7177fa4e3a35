"""Whether the elements of a tensor, in their order in memory, only rise."""

from __future__ import annotations

from typing import Any

from flowbook.graph.definition.composed import composed
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.shaping import reshape
from flowbook.graph.ops.math.comparison import less, less_equal
from flowbook.graph.ops.reduction.reductions import reduce_all

__all__ = ["is_non_decreasing", "is_strictly_increasing"]


@composed
def is_non_decreasing(x: Any, name: str | None = None) -> Tensor:
    """Whether no element is below the one before it: a bool scalar, true of fewer than two.

    Args:
        x: of a real dtype and any shape, read row by row.
    """
    return _ordered(x, less_equal, name)


@composed
def is_strictly_increasing(x: Any, name: str | None = None) -> Tensor:
    """Whether each element is above the one before it: a bool scalar, true of fewer than two.

    Args:
        x: of a real dtype and any shape, read row by row.
    """
    return _ordered(x, less, name)


def _ordered(x: Any, comparison: Any, name: str | None) -> Tensor:
    x = convert_to_tensor(x)
    row = reshape(x, [-1])
    return reduce_all(comparison(row[:-1], row[1:]), name=name)
