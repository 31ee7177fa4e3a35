"""What a graph asks of the branch or loop whose inside is being built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from flowbook.graph.model.context import Context
    from flowbook.graph.model.operation import Operation
    from flowbook.graph.model.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Taken:
    """An element that each iteration of a loop takes of something from outside.

    Attributes:
        whole: [elements, ...], outside.
        instead: the element at the same place of another tensor from outside, inside.
    """

    whole: Tensor
    instead: Callable[[Tensor], Tensor]


class Flow(Protocol):
    """The branch or loop whose inside is being built; `flowbook.graph.control_flow` has them."""

    @property
    def place(self) -> Context:
        """Where what is built inside runs."""

    @property
    def outer(self) -> Flow | None:
        """The branch or loop around it, if that is being built too."""

    def captured(self, tensor: Tensor) -> Tensor:
        """What stands inside for a tensor, which may be one from outside."""

    def enclose(self, operation: Operation) -> None:
        """See to it that an operation runs inside, before it joins the graph."""

    def joined(self, operation: Operation) -> None:
        """Note what has joined the graph inside."""

    def outside(self) -> AbstractContextManager[None]:
        """Build around it."""

    def is_outside(self, tensor: Tensor) -> bool:
        """Whether a tensor is there before what is built begins, and the same throughout."""

    def take(self, element: Tensor, taken: Taken) -> None:
        """Note of which tensor each iteration of a loop takes an element."""

    def taken(self, element: Tensor) -> Taken | None:
        """What a tensor is an element of, of which each iteration takes one.

        So what is computed of an element alone can be computed of all at once, around the loop.
        None if it is no such element, or the loop is to keep as little as it can for gradients.
        """

    def keep(self, value: Tensor, first: Tensor, name: str, then: Callable[[Tensor], None]) -> None:
        """Take a value out of a loop: that of its last iteration, when the loop is complete.

        Args:
            value: it is there in each iteration.
            first: from outside; what is taken out if there is no iteration.
            name: what a person calls it.
            then: called around the loop with what it was at last.

        Raises:
            InvalidArgumentError: if the value is not there in each iteration.
        """

    def note(self, operation: Operation, is_acting: bool) -> None:
        """Note what ends when something inside has touched what it touches.

        Args:
            operation: what ends then.
            is_acting: whether that is run whether or not something depends on it.
        """
