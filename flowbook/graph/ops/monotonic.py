"""Whether the elements of a tensor, in their order in memory, only rise."""

from __future__ import annotations

from typing import Any

from flowbook.graph.ops.comparison import less, less_equal
from flowbook.graph.ops.constants import convert_to_tensor
from flowbook.graph.ops.located import located
from flowbook.graph.ops.reductions import reduce_all
from flowbook.graph.ops.shaping import reshape
from flowbook.graph.scopes import name_scope
from flowbook.graph.tensor import Tensor


def is_non_decreasing(x: Any, name: str | None = None) -> Tensor:
    """Whether no element is below the one before it: a bool scalar, true of fewer than two.

    Args:
        x: of a real dtype and any shape, read row by row.
        name: the name scope.
    """
    __tracebackhide__ = True
    return _ordered(x, less_equal, name or "is_non_decreasing")


def is_strictly_increasing(x: Any, name: str | None = None) -> Tensor:
    """Whether each element is above the one before it: a bool scalar, true of fewer than two.

    Args:
        x: of a real dtype and any shape, read row by row.
        name: the name scope.
    """
    __tracebackhide__ = True
    return _ordered(x, less, name or "is_strictly_increasing")


def _ordered(x: Any, comparison: Any, name: str) -> Tensor:
    with located(name):
        x = convert_to_tensor(x)
    with name_scope(name) as scope:
        row = reshape(x, [-1])
        result: Tensor = reduce_all(comparison(row[:-1], row[1:]), name=scope)
        return result
