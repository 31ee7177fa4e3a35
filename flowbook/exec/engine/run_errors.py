"""From what a kernel raised to an error of Flowbook's own."""

from __future__ import annotations

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


def cause_of(error: Exception) -> BaseException | None:
    """An error of Flowbook's own explains itself; others are shown as what caused it."""
    if isinstance(error, OpError):
        return error.__cause__
    if options.full_tracebacks:
        return error
    return error.with_traceback(users_frames(error.__traceback__))
