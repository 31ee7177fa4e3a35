"""What a step does that others can tell of is done whole, as far as that can be.

A step that has begun to write what it computed from a batch either writes all of it, and the batch
has been used, or it writes nothing, and the batch goes back (`giving_back.py`). So from its first
write on an interrupt is put off, and the deadline not looked at, until the step has come to its
end, to an iteration of a loop, which may have any number, or to where it waits for somebody else.
A second interrupt is not put off.

Python calls handlers of signals on the main thread alone: only steps there are interrupted.
"""

from __future__ import annotations

import threading

# What `signal` has of them makes enums of all numbers, and takes twenty times as long.
from _signal import SIGINT, getsignal, signal  # type: ignore[import-not-found]
from collections.abc import Callable
from types import FrameType
from typing import Any

from flowbook.exec.resources.random_state import keep_draws

_Handler = Callable[[int, FrameType | None], Any]


class Acting:
    """Whether a step is doing what should not be done by half.

    Attributes:
        is_under_way: see above.
    """

    def __init__(self) -> None:
        self.is_under_way = False
        self._is_put_off = False
        self._handler: _Handler | None = None

    def around(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function that is the step; what interrupts it meanwhile may be put off."""
        handler = getsignal(SIGINT)
        if threading.current_thread() is not threading.main_thread() or not callable(handler):
            return function(*arguments)
        self._handler = handler
        try:
            signal(SIGINT, self._hear)
            found = function(*arguments)
            self.is_under_way = True
            keep_draws()  # It has come to its end, whatever interrupts it from now on.
        finally:
            self.is_under_way = True  # Or else the handler might stay.
            signal(SIGINT, handler)
            self.pause()
        return found

    def pause(self) -> None:
        """Let interrupts pass, that which was put off first."""
        self.is_under_way = False
        self.deliver()

    def deliver(self) -> None:
        """Let pass what was put off, if nothing is under way; only on the step's own thread."""
        if not self._is_put_off or self.is_under_way:
            return
        if threading.current_thread() is threading.main_thread():
            self._is_put_off = False
            assert self._handler is not None
            self._handler(SIGINT, None)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        """Handle an interrupt."""
        if self.is_under_way and not self._is_put_off:
            self._is_put_off = True
            return
        self._is_put_off = False
        assert self._handler is not None
        self._handler(number, frame)
