"""A failure in a step, as plain data: which node failed, on what.

The engine knows neither names nor lines. It says the number of the node and describes what that was
given; whoever has the graph makes of it an error that names the operation and its line.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
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
        text: its shape, or its type.
        note: more about its elements, where that is what the failure is about.
    """

    text: str
    note: str = ""


def summary_of(value: Any) -> Summary | None:
    """The summary of a value; None if it is not there any more."""
    if value is None:
        return None
    shape = getattr(value, "shape", None)
    return Summary(f"{list(shape)}" if shape is not None else type(value).__name__)


class UnitFailure(Exception):
    """A unit failed; its cause is what it raised.

    Attributes:
        index: the number of the node.
        given: the values that it was given.
    """

    def __init__(self, index: int, given: list[Any]) -> None:
        super().__init__(f"node {index}")
        self.index = index
        self.given = given


class Failure(NamedTuple):
    """What became of a step that failed.

    Attributes:
        error: what is wrong.
        node: the number of the node that failed, or -1.
        inputs: what it was given.
        details: what else is to be told, a line each.
    """

    error: OpError
    node: int
    inputs: tuple[Summary | None, ...]
    details: tuple[str, ...] = ()


class StepFailed(Exception):
    """Raised by whoever runs a step, to whoever has the graph."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure.error))
        self.failure = failure


def failure_of(error: OpError, node: int, given: Iterable[Any]) -> Failure:
    """A failure that keeps nothing of what the node was given."""
    return Failure(error, node, tuple([summary_of(value) for value in given]))


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
