"""Errors of methods, and of functions that users were given, name the user's line.

Those of public functions do so by themselves: see `flowbook/graph/definition/public.py`.
"""

from __future__ import annotations

from types import TracebackType

from flowbook.graph.building.graph import get_default_graph
from flowbook.graph.model.errors import OpError
from flowbook.graph.model.origin import site as sites


class located:
    """In this block, errors say which operation was being built, and where.

    Args:
        what: the operation's type.
    """

    __slots__ = ("what",)

    def __init__(self, what: str) -> None:
        self.what = what

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, OpError):
            error.at(self.what, get_default_graph().scope.site or sites.capture())
