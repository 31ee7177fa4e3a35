"""Lists that hold tensors, as one tensor: `fb.reduce_max([a, b, 0.0])`, `fb.pad(x, [[0, n]])`.

Only what stands where a tensor is wanted is packed. Where a value is wanted, as in `fb.constant`,
such a list stays an error.
"""

from __future__ import annotations

from typing import Any

from flowbook.graph.model.convert import DEEPEST
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.registry import op_named
from flowbook.graph.model.tensor import Arithmetic


def tensors_in(value: Any, depth: int = DEEPEST) -> list[Any]:
    """The tensors and variables that stand in nested lists, in their order."""
    if isinstance(value, Arithmetic):
        return [value]
    if not depth or not isinstance(value, list | tuple):
        return []
    found: list[Any] = []
    for item in value:
        # Long lists hold numbers: what they cost decides.
        if type(item) is not float and type(item) is not int:
            found += tensors_in(item, depth - 1)
    return found


def packed(value: Any, depth: int = DEEPEST) -> Any:
    """A list that holds tensors, stacked; anything else as it is.

    Raises:
        InvalidTypeError: if what it holds differs in dtype; numbers take that of the tensors.
        InvalidArgumentError: if what it holds differs in shape, or it holds itself.
    """
    if isinstance(value, list | tuple) and tensors_in(value):
        if not depth:
            raise InvalidArgumentError(f"lists with tensors lie in each other {DEEPEST} deep")
        return op_named("Stack").public([packed(item, depth - 1) for item in value])
    return value
