"""Hints for slips that Python or NumPy refuse in their own words, which say nothing of graphs.

The error comes from the user's own line: what is meant is told by that line and the message.
"""

from __future__ import annotations

import linecache
import re
from types import TracebackType
from typing import NamedTuple


class _Slip(NamedTuple):
    """One slip.

    Attributes:
        message: a part of the error's message.
        line: what the line has, as a regular expression.
        hint: what to write instead.
    """

    message: str
    line: str
    hint: str


_SLIPS = (
    _Slip(
        "'NoneType' object cannot be interpreted as an integer",
        r"\.shape\b",
        "a dimension of this shape is None: it is known only in the run; fb.shape(x) is the shape "
        "as a tensor, and fb.zeros and its like take it",
    ),
    _Slip(
        "'bool' object is not callable",
        r"\.is_fully_defined\s*\(",
        "shape.is_fully_defined is a property: write it without ()",
    ),
)


def hint_for(error: BaseException, traceback: TracebackType | None) -> str | None:
    """What helps with an error that a user's line raised; None if nothing is known of it.

    Args:
        error: the error.
        traceback: where it came from.
    """
    if not isinstance(error, TypeError) or traceback is None:
        return None
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    line = linecache.getline(traceback.tb_frame.f_code.co_filename, traceback.tb_lineno)
    for slip in _SLIPS:
        if slip.message in str(error) and re.search(slip.line, line):
            return f"hint: {slip.hint}"
    return None
