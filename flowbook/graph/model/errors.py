"""The errors that reach a person: what is wrong, where it was defined, and what to do.

The classes follow the canonical status codes. Where Python has an exception for the same thing,
the class derives from it too, so that `except ValueError` works as a user of Python expects.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from flowbook.graph.model.elsewhere import elsewhere
from flowbook.graph.model.options import options
from flowbook.graph.model.origin.called import described, tensor_called
from flowbook.graph.model.origin.site import is_internal, is_users

if TYPE_CHECKING:
    from types import FrameType, TracebackType

    from flowbook.graph.model.operation import Operation
    from flowbook.graph.model.origin.site import Site

Function = TypeVar("Function", bound=Callable[..., Any])

__all__ = [
    "AbortedError",
    "AlreadyExistsError",
    "CancelledError",
    "ConstantConditionWarning",
    "DataLossError",
    "DeadlineExceededError",
    "FailedPreconditionError",
    "GraphGrowthWarning",
    "InternalError",
    "InvalidArgumentError",
    "InvalidIndexError",
    "InvalidTypeError",
    "NotFoundError",
    "NotVectorizedWarning",
    "OpError",
    "OutOfRangeError",
    "ResourceExhaustedError",
    "StaleDefinitionError",
    "StaleDefinitionWarning",
    "UnauthenticatedError",
    "UnavailableError",
    "UnimplementedError",
    "UnknownError",
    "WaitingWarning",
]

HIDDEN_FRAMES = "(Flowbook's own frames are hidden; fb.options.full_tracebacks = True shows them)"


# What TensorFlow 1 calls otherwise.
_ELSEWHERE = {
    "error_code": "error.code",
    "node_def": "error.operation",
    "op": "error.operation",
}


@elsewhere(_ELSEWHERE)
class OpError(Exception):
    """An error of the graph or of a run.

    Attributes:
        code: the canonical code, such as "INVALID_ARGUMENT".
        message: what is wrong, in one sentence, without the details that `str()` adds.
        operation: the operation that failed, or None (it may not have come to be).
        hint: what to do, or None.
    """

    code: ClassVar[str] = "UNKNOWN"
    is_of_step: ClassVar[bool] = False  # about a whole step, not about one operation of it

    def __init__(
        self, message: str, operation: Operation | None = None, *, hint: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.operation = operation
        self.hint = hint
        self.details: list[str] = []
        if operation is not None:
            self._locate(described(operation), operation.site, operation.inputs)

    def at(self, what: str, site: Site, inputs: Iterable[Any] = ()) -> OpError:
        """Say of an error found while building which operation it is about; return the error."""
        if not self.details:
            self._locate(what, site, inputs)
        return self

    def about(self, operation: Operation, given: Iterable[str | None] = ()) -> OpError:
        """Say of an error found in a run which operation failed, and what its inputs were given."""
        if self.operation is None:
            self.operation = operation
            self._locate(described(operation), operation.site, operation.inputs, given)
        return self

    def _locate(
        self, what: str, site: Site, inputs: Iterable[Any], given: Iterable[str | None] = ()
    ) -> None:
        self.message = f"{what}: {self.message}"
        self.details.append(f"defined at {site}")
        described = [
            text if value is None else f"{text}, given {value}"
            for text, value in zip_longest(map(_describe_input, inputs), given)
            if text is not None
        ]
        if described:
            self.details.append("inputs: " + "; ".join(described))

    def __str__(self) -> str:
        lines = [self.message, *self.details]
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n  ".join(lines)


def _describe_input(tensor: Any) -> str:
    return f"{tensor_called(tensor)} {tensor.dtype.name} {tensor.shape} ({tensor.op.site.place})"


class InvalidArgumentError(OpError, ValueError):
    """An argument, an input or a shape does not fit the operation."""

    code = "INVALID_ARGUMENT"


class InvalidTypeError(InvalidArgumentError, TypeError):
    """A dtype or a Python type does not fit the operation."""


class InvalidIndexError(InvalidArgumentError, IndexError):
    """An index, an id or a label lies outside its range."""


class NotFoundError(OpError, KeyError):
    """What was asked for does not exist: a name, or the gradient of an operation."""

    code = "NOT_FOUND"


class AlreadyExistsError(OpError):
    """What was to be created exists already."""

    code = "ALREADY_EXISTS"


class OutOfRangeError(OpError, EOFError):
    """An input has come to its end."""

    code = "OUT_OF_RANGE"


class FailedPreconditionError(OpError, RuntimeError):
    """The state does not admit the operation, such as reading an uninitialised variable."""

    code = "FAILED_PRECONDITION"


class AbortedError(OpError):
    """The step was given up; running it again may succeed."""

    code = "ABORTED"


class CancelledError(OpError):
    """The step was cancelled, as by closing its session, or what it came for was closed."""

    code = "CANCELLED"


class DeadlineExceededError(OpError, TimeoutError):
    """The time that `timeout` allowed was over before the step was."""

    is_of_step = True
    code = "DEADLINE_EXCEEDED"


class UnavailableError(OpError):
    """A device or a worker cannot be reached."""

    code = "UNAVAILABLE"


class ResourceExhaustedError(OpError, MemoryError):
    """Memory or another resource is used up."""

    code = "RESOURCE_EXHAUSTED"


class UnimplementedError(OpError, NotImplementedError):
    """No kernel exists for this operation, dtype and device."""

    code = "UNIMPLEMENTED"


class UnknownError(OpError):
    """A user's function or kernel raised what no other code stands for."""


class InternalError(OpError):
    """An invariant of Flowbook, or of a user's kernel, is broken."""

    code = "INTERNAL"


class DataLossError(OpError):
    """Stored or transferred data are damaged."""

    code = "DATA_LOSS"


class UnauthenticatedError(OpError):
    """The peer could not prove who it is."""

    code = "UNAUTHENTICATED"


class StaleDefinitionError(FailedPreconditionError):
    """A stale operation was run while `fb.options.stale` is "error"."""


class StaleDefinitionWarning(UserWarning):
    """A run used operations that were built from something since redefined by another cell."""


class ConstantConditionWarning(UserWarning):
    """A branch that never runs, because its predicate is a constant."""


class NotVectorizedWarning(UserWarning):
    """A loop over elements, where one operation for all of them was asked for."""


class GraphGrowthWarning(UserWarning):
    """A loop builds operations and runs them, so that the graph grows with each of its rounds."""


class WaitingWarning(UserWarning):
    """A run has waited for long: for what, and what would wake it."""


def without_internal_frames(error: BaseException) -> BaseException:
    """Drop Flowbook's own frames from an error about to leave the public API.

    An error says so in a note and names the switch that shows them. Frames hold the values of the
    step, so dropping them also gives back memory and variables' buffers.

    A user's frame that stays visible keeps those that it was called from: they are emptied.
    """
    if options.full_tracebacks:
        return error
    if isinstance(error, Exception) and HIDDEN_FRAMES not in getattr(error, "__notes__", ()):
        error.add_note(HIDDEN_FRAMES)
    for shown in _with_causes(error):
        shown.with_traceback(users_frames(shown.__traceback__))
        _empty_internal_frames(shown.__traceback__)
    return error


def hides_frames(function: Function) -> Function:
    """The same function of the public API, whose errors show no frames of Flowbook's own."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        try:
            return function(*args, **kwargs)
        except Exception as error:
            raise without_internal_frames(error) from error.__cause__

    return call  # type: ignore[return-value]


def _with_causes(error: BaseException) -> list[BaseException]:
    """An error, and all that it was raised from or in the handling of, told or not."""
    found = [error]
    for each in found:
        for behind in (each.__cause__, each.__context__):
            if behind is not None and all(behind is not other for other in found):
                found.append(behind)
    return found


def users_frames(traceback: TracebackType | None) -> TracebackType | None:
    """From a user's own code on: a py_func's frames stay visible, and those of what it called.

    What Flowbook's kernels called in other packages is left out: it holds what they were given.
    """
    while traceback is not None and not is_users(traceback.tb_frame.f_code.co_filename):
        traceback = traceback.tb_next
    return traceback


def _empty_internal_frames(traceback: TracebackType | None) -> None:
    """Have the frames of Flowbook's own behind those of a traceback hold nothing any more."""
    while traceback is not None:
        frame: FrameType | None = traceback.tb_frame
        # What still runs cannot be emptied, and has been called by what still runs.
        with suppress(RuntimeError):
            while frame is not None:
                if is_internal(frame.f_code.co_filename):
                    frame.clear()
                frame = frame.f_back
        traceback = traceback.tb_next
