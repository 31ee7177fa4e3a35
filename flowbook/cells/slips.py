"""Hints for slips that Python or NumPy refuse in their own words, which say nothing of graphs.

The error comes from the user's own line: what is meant is told by that line and the message. A name
that an object or a module of Flowbook's does not have is told by the names that it has. Python does
the same where it shows errors itself, and IPython does not. So no class needs a `__getattr__`, that
would make all attributes slow.
"""

from __future__ import annotations

import difflib
import inspect
import linecache
import os
import re
from types import ModuleType, TracebackType
from typing import NamedTuple

import numpy as np

from flowbook.graph.model.elsewhere import is_elsewhere

_NUMPY = os.path.dirname(np.__file__) + os.sep


class _Slip(NamedTuple):
    """One slip.

    Attributes:
        message: what the error's message has, as a regular expression.
        line: what the line has, as a regular expression.
        hint: what to write instead.
    """

    message: str
    line: str
    hint: str


_SLIPS = (
    _Slip(
        r"has no attribute 'value'",
        r"\bshape\b",
        "a dimension is an int, or None where it is known only in the run: write it without .value",
    ),
    _Slip(
        r"\bNoneType\b|got 'Shape\(None\)'",
        r"\bshape\b",
        "this shape, or a dimension of it, is None: it is known only in the run; fb.shape(x) is "
        "the shape as a tensor, and fb.zeros and its like take it",
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
    if not isinstance(error, TypeError | AttributeError) or traceback is None:
        return None
    while traceback.tb_next is not None and not _is_numpys(traceback.tb_next):
        traceback = traceback.tb_next
    line = linecache.getline(traceback.tb_frame.f_code.co_filename, traceback.tb_lineno)
    for slip in _SLIPS:
        if re.search(slip.message, str(error)) and re.search(slip.line, line):
            return f"hint: {slip.hint}"
    meant = _meant(error) if isinstance(error, AttributeError) else None
    return f"hint: {meant}" if meant is not None else None


def _meant(error: AttributeError) -> str | None:
    """What an object or a module of Flowbook's has that is called much like what is missing."""
    name, asked = error.name, error.obj
    kind = asked if isinstance(asked, type) else type(asked)
    modules = [each.__module__ for each in kind.__mro__]
    if isinstance(asked, ModuleType):
        modules = [asked.__name__]
    is_ours = any(module.partition(".")[0] == "flowbook" for module in modules)
    if name is None or name.startswith("_") or not is_ours:
        return None
    if not str(error).endswith(f"has no attribute {name!r}"):
        return None  # It says itself what to write.
    instead = {n: each.instead for n, each in inspect.getmembers_static(kind, is_elsewhere)}
    there = [n for n in dir(asked) if not n.startswith("_") and n not in instead]
    close = difflib.get_close_matches(name, there)
    if close:
        return f"did you mean {' or '.join(close)}?"
    other = difflib.get_close_matches(name, instead, 1)
    return f"use {instead[other[0]]}" if other else None


def _is_numpys(traceback: TracebackType) -> bool:
    return traceback.tb_frame.f_code.co_filename.startswith(_NUMPY)
