"""Python's own parser, on any thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_TRIES = 10


def undisturbed(
    parse: Callable[Parameters, Result], *args: Parameters.args, **kwargs: Parameters.kwargs
) -> Result:
    """What a function gives that makes syntax trees of Python's.

    Before 3.11.8 Python fails now and then where two threads make such trees at once (its issue
    106905). It says so by SystemError, and is asked again then.

    Args:
        parse: such as `ast.parse`; what it does may be done again.
        args: its arguments.
        kwargs: likewise.
    """
    for _ in range(_TRIES - 1):
        try:
            return parse(*args, **kwargs)
        except SystemError:
            continue
    return parse(*args, **kwargs)
