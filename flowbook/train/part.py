"""The part of a variable that a gradient changes: the whole, or some rows.

An optimizer's formula is written once, elementwise, in terms of a part: reads and writes of the
whole are those of the variable, reads and writes of rows touch these rows only, so that they cost
by the number of rows, whatever the size of the variable.
"""

from __future__ import annotations

from typing import Any, Protocol

from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.arrays.gathering import gather
from flowbook.graph.ops.arrays.indexed_slices import IndexedSlices
from flowbook.graph.ops.state.variables import Variable
from flowbook.graph.ops.state.writing import (
    assign,
    assign_add,
    assign_sub,
    scatter_sub,
    scatter_update,
)
from flowbook.train.distinct_rows import distinct_rows


class Part(Protocol):
    """What of a variable, and of the slots beside it, a gradient changes.

    Attributes:
        gradient: the gradient of the part.
        changes: what was built that changes something.
    """

    gradient: Tensor
    changes: list[Any]

    def read(self, variable: Variable) -> Tensor:
        """The part of a variable, as it was before the step."""

    def assign(self, variable: Variable, value: Tensor) -> Tensor:
        """Give the part a new value, and return that."""

    def add(self, variable: Variable, change: Tensor) -> Tensor:
        """Add to the part, and return its new value."""

    def subtract(self, variable: Variable, change: Tensor) -> None:
        """Subtract from the part."""


class Whole:
    """All of a variable."""

    def __init__(self, gradient: Tensor) -> None:
        self.gradient = gradient
        self.changes: list[Any] = []

    def read(self, variable: Variable) -> Tensor:
        """The variable's value."""
        return variable.as_tensor(False)

    def assign(self, variable: Variable, value: Tensor) -> Tensor:
        """Give it a new value."""
        return self._changed(assign(variable, value))

    def add(self, variable: Variable, change: Tensor) -> Tensor:
        """Add to it, in place where nobody else reads it."""
        return self._changed(assign_add(variable, change))

    def subtract(self, variable: Variable, change: Tensor) -> None:
        """Subtract from it, in place where nobody else reads it."""
        self._changed(assign_sub(variable, change))

    def _changed(self, written: Tensor) -> Tensor:
        self.changes.append(written)
        return written


class Rows:
    """The rows of a variable that a sparse gradient names.

    Args:
        gradient: the gradient.
        is_distinct: whether rows that are named twice are summed first. Without it only
            `subtract` has a meaning.
    """

    def __init__(self, gradient: IndexedSlices, is_distinct: bool = True) -> None:
        if is_distinct:
            gradient = distinct_rows(gradient)
        self.gradient = gradient.values
        self.indices = gradient.indices
        self.changes: list[Any] = []
        self._read: dict[Variable, Tensor] = {}

    def read(self, variable: Variable) -> Tensor:
        """The rows' values."""
        if variable not in self._read:
            self._read[variable] = gather(variable, self.indices)
        return self._read[variable]

    def assign(self, variable: Variable, value: Tensor) -> Tensor:
        """Give the rows new values."""
        self.changes.append(scatter_update(variable, self.indices, value))
        return value

    def add(self, variable: Variable, change: Tensor) -> Tensor:
        """Add to the rows."""
        return self.assign(variable, self.read(variable) + change)

    def subtract(self, variable: Variable, change: Tensor) -> None:
        """Subtract from the rows."""
        self.changes.append(scatter_sub(variable, self.indices, change))
