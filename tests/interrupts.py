"""An interrupt at every call of Flowbook's own, one after the other: none is left to chance.

Python lets signals in where a function begins and where a call of a C function has ended, such as
that which releases a lock at the end of a `with` block; so do these.
"""

import gc
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from flowbook.graph.model.origin.site import is_internal


class Interrupt(BaseException):
    """Not mistaken for the interrupt of who runs the tests."""


def signalled_at(
    number: int, function: Callable[[], Any], sent: signal.Signals, error: type[BaseException]
) -> bool:
    """Call a function, in which the process gets a signal at the place of that number, from 1.

    Args:
        number: that of the place.
        function: the function.
        sent: the signal.
        error: what its handler raises.

    Returns:
        Whether that interrupted it. If it did not, it may not have come so far.
    """

    def handle(*_: object) -> None:
        raise error

    before = signal.signal(sent, handle)
    try:
        with _calling_at(number, lambda: signal.raise_signal(sent)):
            function()
    except error:
        return True
    finally:
        assert signal.signal(sent, before) is handle
    return False


def interrupted_at(number: int, function: Callable[[], Any]) -> Interrupt | None:
    """Call a function, stopped at the place of that number, from 1.

    Returns:
        What stopped it, with all that it was in; None if it did not come so far.
    """
    stopped: Interrupt | None = None

    def stop() -> None:
        nonlocal stopped
        stopped = Interrupt()
        raise stopped

    handlers = _handlers()
    try:
        with _calling_at(number, stop):
            function()
    except Interrupt:
        pass
    assert _handlers() == handlers  # A step's own would put off what comes later.
    return stopped  # Which Python drops where a generator is closed, and says so.


@contextmanager
def _calling_at(number: int, at_place: Callable[[], None]) -> Iterator[None]:
    """In the block something is called at the place of that number, from 1."""
    passed = 0

    def pass_by(frame: FrameType, event: str, _: Any) -> None:
        nonlocal passed
        if event in ("call", "c_return") and is_internal(frame.f_code.co_filename):
            passed += 1
            if passed == number:
                sys.setprofile(None)
                at_place()

    before = sys.getprofile()
    # What an earlier test left is not finalised in between: there Python swallows exceptions.
    gc.disable()
    sys.setprofile(pass_by)
    try:
        yield
    finally:
        sys.setprofile(before)
        gc.enable()


def _handlers() -> list[Any]:
    return [signal.getsignal(each) for each in signal.valid_signals()]
