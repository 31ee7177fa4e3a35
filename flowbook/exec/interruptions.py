"""Errors that a signal's handler raised, as a `TimeoutError` of SIGALRM's.

Python calls handlers between any two instructions of the main thread. What one raises comes up in
the midst of a step as if something there had failed, and is no failure of that: like Ctrl-C it
stops the step, which puts back what it has taken, and goes on as it is to who runs it.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection
from types import FrameType

from flowbook.graph.model.origin.site import is_internal


def is_interruption(error: BaseException) -> bool:
    """Whether a signal's handler raised an error: it was given the frame that it interrupts."""
    passed: set[FrameType] = set()
    traceback = error.__traceback__
    while traceback is not None:
        frame = traceback.tb_frame
        if not is_internal(frame.f_code.co_filename) and _is_given_one(frame, passed):
            return True
        passed.add(frame)
        traceback = traceback.tb_next
    return False


def _is_given_one(frame: FrameType, frames: Collection[FrameType]) -> bool:
    """Whether one of some frames is an argument of a frame's function."""
    code = frame.f_code
    count = code.co_argcount + code.co_kwonlyargcount
    names = code.co_varnames[: count + bool(code.co_flags & inspect.CO_VARARGS)]
    if not names:
        return False
    found = frame.f_locals
    given = [found.get(name) for name in names]
    given += [each for value in given if isinstance(value, tuple) for each in value]
    if isinstance(found, dict):
        found.clear()  # A copy, which its frame keeps even when that is emptied.
    return any(isinstance(value, FrameType) and value in frames for value in given)
