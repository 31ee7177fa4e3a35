"""The `with` blocks around code that builds: what holds on a thread while they run.

An interrupt may come anywhere, so nothing is put back when a block ends. A block holds while its
lock is held, and while the `with` statement that entered it keeps it alive. It begins with one
store and ends with one call of a C function, the release of its lock: neither can be done by half,
and no code of a block that was given up runs later.
"""

from __future__ import annotations

import threading
import weakref
from _thread import RLock
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from flowbook.graph.building.graph import Graph
    from flowbook.graph.building.surroundings import Scope

Named = TypeVar("Named")


class Block(RLock, Generic[Named]):  # type: ignore[misc]  # Final to typeshed, and not to CPython.
    """A block around code that builds, to be entered once by a `with` statement.

    Args:
        begin: called on entering with the block, whose attributes it may replace; what it returns
            is what `as` names.

    Attributes:
        graph: the graph that the block's code builds in, or None for the process's own.
        scopes: what holds for what is built in each of several graphs.
    """

    graph: Graph | None
    scopes: Mapping[Graph, Scope]

    def __init__(self, begin: Callable[[Block[Any]], Named]) -> None:
        self._begin = begin

    def __enter__(self) -> Named:  # type: ignore[override]
        self.acquire()
        around = innermost()
        self.graph, self.scopes = (None, {}) if around is None else (around.graph, around.scopes)
        named = self._begin(self)
        entered = (*_thread.entered, weakref.ref(self))
        # The last that happens: there is no call after it in which an interrupt could come.
        _thread.entered = entered
        return named

    def surround(self, graph: Graph, scope: Scope) -> None:
        """Have a scope hold for what is built in a graph."""
        self.scopes = {**self.scopes, graph: scope}


Entered = tuple[weakref.ref[Block[Any]], ...]


class _Thread(threading.local):
    """The blocks that a thread has entered, the innermost last; some may have ended."""

    entered: Entered = ()


_thread = _Thread()


def innermost() -> Block[Any] | None:
    """The innermost block that this thread is in."""
    entered = _thread.entered
    while entered:
        block = entered[-1]()
        if block is not None and block._is_owned():  # type: ignore[attr-defined]
            return block
        entered = _thread.entered = entered[:-1]
    return None


def entered() -> Entered:
    """The blocks that this thread is in, to return to."""
    innermost()
    return _thread.entered


def return_to(blocks: Entered) -> None:
    """Leave all blocks that this thread has entered since it was in those.

    For those whose `with` statement nobody can end any more, as of a generator that an interrupt
    made its caller forget.
    """
    _thread.entered = blocks
