"""An interrupt at every call of Flowbook's own, one after the other: none is left to chance.

Python lets signals in where a function begins and where a call of a C function has ended, such as
that which releases a lock at the end of a `with` block; so do these.
"""

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from flowbook.graph.model.origin.site import is_internal


class Interrupt(BaseException):
    """Not mistaken for the interrupt of who runs the tests."""


def interrupted_at(number: int, function: Callable[[], Any]) -> Interrupt | None:
    """Call a function, stopped at the place of that number, from 1.

    Returns:
        What stopped it, with all that it was in; None if it did not come so far.
    """
    passed = 0
    stopped: Interrupt | None = None

    def pass_by(frame: FrameType, event: str, _: Any) -> None:
        nonlocal passed, stopped
        if event in ("call", "c_return") and is_internal(frame.f_code.co_filename):
            passed += 1
            if passed == number:
                sys.setprofile(None)
                stopped = Interrupt()
                raise stopped

    before = sys.getprofile()
    # What an earlier test left is not finalised in between: there Python swallows exceptions.
    gc.disable()
    sys.setprofile(pass_by)
    try:
        function()
    except Interrupt:
        pass
    finally:
        sys.setprofile(before)
        gc.enable()
    return stopped  # Which Python drops where a generator is closed, and says so.
