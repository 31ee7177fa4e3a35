"""From what a kernel raised to an error of Flowbook's own."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any

from flowbook.exec.plan.failure import StepFailed
from flowbook.graph.definition.inference import broadcast_inputs
from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.errors import (
    InternalError,
    InvalidArgumentError,
    OpError,
    OutOfRangeError,
    ResourceExhaustedError,
    UnimplementedError,
    UnknownError,
    users_frames,
)
from flowbook.graph.model.options import options
from flowbook.graph.model.shape import SCALAR, Shape, broadcast

_MAPPED: tuple[tuple[type[BaseException], type[OpError]], ...] = (
    (NotImplementedError, UnimplementedError),
    (MemoryError, ResourceExhaustedError),
    (StopIteration, OutOfRangeError),
    (ValueError, InvalidArgumentError),
    (TypeError, InvalidArgumentError),
)

# Flowbook's own kernels compute with what attributes and inputs say: numbers that are out of range
# there, as in a file that was written by hand. In a user's code these may mean anything.
_MAPPED_OF_OURS: tuple[tuple[type[BaseException], type[OpError]], ...] = (
    (ArithmeticError, InvalidArgumentError),
    (IndexError, InvalidArgumentError),
)


def as_op_error(error: Exception, is_users: bool) -> OpError:
    """The error of the code that Python's exception corresponds to.

    Args:
        error: what a kernel raised.
        is_users: whether code of a user's raised it.
    """
    otherwise = UnknownError if is_users else InternalError
    mapped = _MAPPED if is_users else (*_MAPPED, *_MAPPED_OF_OURS)
    kind = next((ours for python, ours in mapped if isinstance(error, python)), otherwise)
    return kind(f"{type(error).__name__}: {error}")


def unlike_shapes(definition: OpDef[Any], given: Iterable[Any]) -> OpError | None:
    """The error of shapes that an elementwise kernel was given and that do not go together.

    Args:
        definition: the type of the operation.
        given: what its kernel was given.
    """
    if definition.infer is not broadcast_inputs:
        return None
    shapes = [Shape(getattr(value, "shape", ())) for value in given if value is not None]
    try:
        reduce(broadcast, shapes, SCALAR)
    except OpError as error:
        # One that was never raised: it knows neither frames nor the failure, which hold the values.
        return InvalidArgumentError(error.message, hint=error.hint)
    return None


def cause_of(error: Exception) -> BaseException | None:
    """An error of Flowbook's own explains itself; others are shown as what caused it."""
    if isinstance(error, OpError | StepFailed):
        return error.__cause__
    if options.full_tracebacks:
        return error
    return error.with_traceback(users_frames(error.__traceback__))
