"""What a step does that others can tell of is done whole, as far as that can be.

A step that has begun to write what it computed from a batch either writes all of it, and the batch
has been used, or it writes nothing, and the batch goes back (`giving_back.py`). So from its first
write on an interrupt is put off, and the deadline not looked at, until the step has come to its
end, to an iteration of a loop, which may have any number, or to where it waits for somebody else.
A second one of the kind is not put off. So are the other signals by which programs are stopped, or
stop themselves after some time, where a handler of Python's hears them.

Python calls handlers of signals on the main thread alone: only steps there are interrupted.
"""

from __future__ import annotations

# What `signal` has of it makes enums of all numbers, and takes twenty times as long.
import _signal  # type: ignore[import-not-found]
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any, TypeVar

from flowbook.exec.resources.random_state import keep_draws

Result = TypeVar("Result")

_Handler = Callable[[int, FrameType | None], Any]
_NAMES = ("SIGINT", "SIGALRM", "SIGTERM", "SIGUSR1")  # Windows has not all of them.
_SIGNALS = [getattr(_signal, name) for name in _NAMES if hasattr(_signal, name)]


class Acting:
    """Whether a step is doing what should not be done by half.

    Attributes:
        is_under_way: see above.
    """

    def __init__(self) -> None:
        self.is_under_way = False
        self._put_off: list[int] = []
        self._handlers: dict[int, _Handler] = {}

    def around(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call a function that is the step; what interrupts it meanwhile may be put off."""
        # Where it has come to its end, it has drawn, whatever interrupts it from then on.
        return self._around(keep_draws, function, arguments)

    def whole(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call a function that is no step, nor to be done by half; what interrupts it waits."""
        self.is_under_way = True
        return self._around(bool, function, arguments)

    def _around(
        self,
        end: Callable[[], object],
        function: Callable[..., Result],
        arguments: Sequence[Any],
    ) -> Result:
        if threading.current_thread() is not threading.main_thread():
            return function(*arguments)
        handlers = {each: _signal.getsignal(each) for each in _SIGNALS}
        heard = self._handlers = {each: to for each, to in handlers.items() if callable(to)}
        try:
            _set(dict.fromkeys(heard, self._hear))
            found = function(*arguments)
            self.is_under_way = True
            end()
        finally:
            self.is_under_way = True  # Or else the handlers might stay.
            try:
                _set(heard)
            except BaseException:
                _set(heard)  # An interrupt leaves some; no harm in setting one twice.
                raise
            self.pause()
        return found

    def pause(self) -> None:
        """Let interrupts pass, that which was put off first."""
        self.is_under_way = False
        self.deliver()

    def deliver(self) -> None:
        """Let pass what was put off, if nothing is under way; only on the step's own thread."""
        if not self._put_off or self.is_under_way:
            return
        if threading.current_thread() is threading.main_thread():
            while self._put_off:
                number = self._put_off.pop(0)
                self._handlers[number](number, sys._getframe())

    def _hear(self, number: int, frame: FrameType | None) -> None:
        """Handle an interrupt."""
        if self.is_under_way and number not in self._put_off:
            self._put_off.append(number)
            return
        if number in self._put_off:
            self._put_off.remove(number)
        self._handlers[number](number, frame)


def _set(handlers: Mapping[int, _Handler]) -> None:
    """Have signals handled."""
    for number, handler in handlers.items():
        _signal.signal(number, handler)
