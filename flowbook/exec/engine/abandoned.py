"""Python functions of a step that somebody waits for no longer.

A function on the step's own thread ends with an interrupt, and no deadline can stop it. So it has
threads where the step has a deadline, or where functions may overlap: then the wait ends, and what
still runs is named, and asked to end as an interrupt would ask it.

What a thread runs is no closure: a kept error keeps the frames of functions that raised it, which
are emptied, and a function keeps what its closure has.
"""

from __future__ import annotations

import ctypes
import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import copy_context
from typing import Any, TypeVar

from flowbook.exec.plan.failure import late
from flowbook.graph.model.counted import counted
from flowbook.graph.model.errors import DeadlineExceededError

Result = TypeVar("Result")

# An interrupt that comes just before a thread goes to sleep is noticed when it wakes up.
LONGEST_WAIT = 0.25

# How long to wait for a thread to end that was told to, or that knows that its time is over.
GRACE = 0.05


_Ended = queue.SimpleQueue[tuple[Any, BaseException | None]]


class GivenUp(SystemExit):
    """What ends a thread whose step was given up; nobody hears of it."""


def thread_of(name: str, function: Callable[..., None], *arguments: Any) -> threading.Thread:
    """A thread that will call a function in the caller's context."""
    run = copy_context().run
    # The process does not wait for a function that does not end.
    return threading.Thread(target=run, args=(function, *arguments), name=name, daemon=True)


def stop(thread: threading.Thread) -> None:
    """Have a thread end at the next instruction of Python's that it comes to."""
    if not thread.is_alive():
        return  # Another thread may have its number by now.
    identifier = ctypes.c_ulong(thread.ident or 0)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(identifier, ctypes.py_object(GivenUp))
    # It has most likely come to one when this returns.
    thread.join(GRACE)


def out_of_time(running: Sequence[str], others: int = 0) -> DeadlineExceededError:
    """The error of a step whose deadline passes.

    Args:
        running: the names of the Python functions that still run.
        others: how many other operations have not completed.
    """
    what = counted(others, "asynchronous operation")
    waiting = f"; {what} had not completed" if others else ""
    return DeadlineExceededError(late().message + waiting + still_running(running))


def still_running(running: Sequence[str]) -> str:
    """What errors say of Python functions that still run; empty if none does."""
    return f"; still running: {', '.join(running)}" if running else ""


def call_until(
    deadline: float, names: Sequence[str], function: Callable[..., Result], *arguments: Any
) -> Result:
    """Call a function on a thread of its own; at the deadline nobody waits for it any longer.

    Args:
        deadline: when to give up, on the clock of `time.monotonic`.
        names: the names of the Python functions that it is in, which it keeps up to date.
        function: what is called with the arguments, in the caller's context.

    Raises:
        DeadlineExceededError: if the deadline passes first.
    """
    ended: _Ended = queue.SimpleQueue()
    thread = thread_of("flowbook step", _report, ended, function, arguments)
    try:
        thread.start()
        found: Result
        found, error = _wait(ended, deadline, names)
    except BaseException as stopped:
        if names and not isinstance(stopped, Exception):
            stopped.add_note(f"flowbook{still_running(names)}")
        stop(thread)
        raise
    thread.join()  # What still runs keeps what the error's frames have.
    try:
        if error is not None:
            raise error
        return found
    finally:
        del found, error  # The error may hold this frame.


def _report(ended: _Ended, function: Callable[..., Any], arguments: Sequence[Any]) -> None:
    try:
        found = function(*arguments)
    except BaseException as error:
        ended.put((None, error))
    else:
        ended.put((found, None))
    finally:
        del ended, function, arguments  # An error that nobody takes holds this frame.


def _wait(ended: _Ended, deadline: float, names: Sequence[str]) -> tuple[Any, BaseException | None]:
    while True:
        # What waits, and runs no function, ends by itself then, and says what it waited for.
        left = (deadline if names else deadline + GRACE) - time.monotonic()
        with suppress(queue.Empty):
            return ended.get(timeout=max(0.0, min(left, LONGEST_WAIT)))
        if left <= 0:
            raise out_of_time(names)
