"""Seeing that a function can be called as it will be, before it is."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from flowbook.graph.model.errors import InvalidTypeError


def require_callable_with(
    function: Callable[..., Any], arguments: Sequence[Any], why_not: str, hint: str
) -> None:
    """Refuse a function that does not take these arguments.

    Raises:
        InvalidTypeError: that says why not, with what Python says, and a hint.
    """
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError as error:
        raise InvalidTypeError(f"{why_not}: {error}", hint=hint) from None
    except ValueError:
        pass  # A builtin that does not tell.
