"""What a run has in the place of an operation: the operations of a function's body for its call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor

__all__ = ["Standing", "StandsFor"]


class Standing(Protocol):
    """What a run has in the place of an operation."""

    @property
    def operations(self) -> Sequence[Operation]:
        """What computes it, in the order of construction; their ids lie before its own."""

    @property
    def results(self) -> Sequence[Tensor]:
        """What stands for each of its outputs."""


class StandsFor(Protocol):
    """Tells what a run has in the place of an operation."""

    def __call__(self, operation: Operation) -> Standing:
        """What stands for an operation that has joined its graph."""

    def count(self, operation: Operation) -> int:
        """Of how many operations that is."""
