"""A program that is ready to run in this process: the protocol.

A `Runner` satisfies it, and where a program has several parts, a `Joint` of their runners.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from flowbook.exec.engine.atomic.undivided import Undivided
from flowbook.exec.engine.runner import Stage


class Begun(Protocol):
    """A step that has begun, whose feeds arrive late."""

    def close(self, is_complete: bool) -> None:
        """End it; of one that is not complete what was taken and not used is put back."""


Step = TypeVar("Step", bound=Begun)


class Runnable(Protocol[Step]):
    """A program that is ready to run."""

    @property
    def whole(self) -> Undivided:
        """What its steps do as one."""

    @property
    def stage(self) -> Stage:
        """How far it has come."""

    def run(self, feeds: Sequence[Any], deadline: float | None = None) -> Sequence[Any]:
        """Run one step.

        Args:
            feeds: the fed values, in the order of the signature.
            deadline: when to give up, on the clock of `time.monotonic`, or None.

        Returns:
            The fetched values, which are the caller's own.

        Raises:
            StepFailed: which node of which part failed, and why.
        """

    def begin(self) -> Step:
        """Begin a step whose feeds arrive late; nothing has run yet."""

    def feed(self, step: Step, place: int, value: Any, /) -> None:
        """Give the late feed of that place in the signature its value."""

    def advance(self, step: Step, has_all: Callable[[], bool], /) -> None:
        """Run what is ready, and wait for what is under way until there is all; raises as `run`."""

    def is_there(self, step: Step, place: int, /) -> bool:
        """Whether a fetch has its value, or will have none in this step."""

    def fetched(self, step: Step, place: int, /) -> Any:
        """A fetched value, which is the caller's own; None if it is not there yet.

        Raises:
            StepFailed: if it is of a branch that was not taken, or too large to be copied.
        """

    def has_run(self, step: Step, operation: int, /) -> bool:
        """Whether an operation, by its id, has run, or nothing of it is left to run."""
