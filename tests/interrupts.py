"""An interrupt at every call of Flowbook's own, one after the other: none is left to chance.

Python lets signals in where a function begins and where a call of a C function has ended, such as
that which releases a lock at the end of a `with` block; so do these.
"""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from flowbook.graph.model.site import is_internal


class Interrupt(BaseException):
    """Not mistaken for the interrupt of who runs the tests."""


def interrupted_at(number: int, function: Callable[[], Any]) -> bool:
    """Call a function, stopped at the place of that number, from 1.

    Returns:
        Whether it came so far.
    """
    passed = 0

    def pass_by(frame: FrameType, event: str, _: Any) -> None:
        nonlocal passed
        if event in ("call", "c_return") and is_internal(frame.f_code.co_filename):
            passed += 1
            if passed == number:
                sys.setprofile(None)
                raise Interrupt

    before = sys.getprofile()
    sys.setprofile(pass_by)
    try:
        function()
    except Interrupt:
        return True
    finally:
        sys.setprofile(before)
    return False
