"""A failure in a step, as plain data: which node failed, on what, in which iteration.

The engine knows neither names nor lines. It says the number of the node and describes what that was
given; whoever has the graph makes of it an error that names the operation and its line.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from flowbook.graph.model.errors import (
    DeadlineExceededError,
    InvalidArgumentError,
    InvalidTypeError,
    OpError,
)


class Summary(NamedTuple):
    """What one value was, when it cannot be kept.

    Attributes:
        text: its shape.
        note: more about its elements, where that is what the failure is about.
    """

    text: str
    note: str = ""


def summary_of(value: Any) -> Summary | None:
    """The summary of a value; None if it has no shape, as a queue, or is not there any more."""
    shape = getattr(value, "shape", None)
    return None if shape is None else Summary(f"{list(shape)}")


class LoopPlace(NamedTuple):
    """Where in a loop something happened.

    Attributes:
        frame: the name of the loop's frame in the program.
        iteration: which of its iterations, from 0.
    """

    frame: str
    iteration: int


class UnitFailure(Exception):
    """A unit failed; its cause is what it raised.

    Attributes:
        index: the number of the node.
        given: the values that it was given.
        loops: where in the loops around it, the innermost first; whoever runs them says so.
    """

    def __init__(self, index: int, given: list[Any], loops: tuple[LoopPlace, ...] = ()) -> None:
        super().__init__(f"node {index}")
        self.index = index
        self.given = given
        self.loops = loops


class Failure(NamedTuple):
    """What became of a step that failed.

    Attributes:
        error: what is wrong.
        node: the number of the node that failed, or -1.
        inputs: what it was given.
        details: what else is to be told, a line each.
        loops: where in the loops around the node, the innermost first.
        part: the number of the part that the node is of.
    """

    error: OpError
    node: int
    inputs: tuple[Summary | None, ...]
    details: tuple[str, ...] = ()
    loops: tuple[LoopPlace, ...] = ()
    part: int = 0

    @property
    def where(self) -> str:
        """In which iterations it happened; empty outside of all loops."""
        places = [
            f"iteration {place.iteration} of the loop {place.frame!r}" for place in self.loops
        ]
        return f"in {', in '.join(places)} (the first is 0)" if places else ""


class StepFailed(Exception):
    """Raised by whoever runs a step, to whoever has the graph."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure.error))
        self.failure = failure


def failure_of(error: OpError, unit: UnitFailure) -> Failure:
    """A failure that keeps nothing of what the node was given."""
    given = tuple([summary_of(value) for value in unit.given])
    return Failure(error, unit.index, given, loops=unit.loops)


def late() -> DeadlineExceededError:
    """The error of a step that runs when its deadline passes."""
    return DeadlineExceededError("the step took longer than its timeout allows")


def deadline_after(timeout: float | None) -> float | None:
    """The moment at which a timeout given in seconds is over.

    Raises:
        InvalidTypeError: if it is not a number.
        InvalidArgumentError: if it is negative.
    """
    if timeout is None:
        return None
    if not isinstance(timeout, int | float | np.number):
        raise InvalidTypeError(f"timeout is a number of seconds, not {timeout!r}")
    if not timeout >= 0:
        raise InvalidArgumentError(f"timeout is a number of seconds from 0 on, not {timeout}")
    return time.monotonic() + float(timeout)
