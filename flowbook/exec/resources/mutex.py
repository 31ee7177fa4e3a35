"""The resource behind `fb.Mutex`: one step at a time holds it, the others wait in a line.

A step that holds it lets go of it when it says so, and at its end in any case.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from flowbook.exec.resources.kinds import Birth, Definition, makes
from flowbook.exec.resources.waiting import Attempt, WaitingResource
from flowbook.graph.definition.async_context import AsyncContext
from flowbook.graph.model.errors import FailedPreconditionError
from flowbook.graph.model.touch import MUTEX


class Mutex(WaitingResource):
    """One step at a time holds it.

    Args:
        name: what errors call it.

    Attributes:
        holder: who holds it; None if nobody does.
    """

    is_initialized = False

    def __init__(self, name: str) -> None:
        super().__init__(lines=1)
        self.name = name
        self.holder: Attempt | None = None

    def acquire(self, call: AsyncContext) -> None:
        """Hold it when everybody has let go of it who came before."""
        attempt = _Acquire(call, self)
        call.on_end(partial(self._let_go, attempt))
        self._join(attempt, *self._lines)

    def release(self, holding: Attempt) -> tuple[()]:
        """Let go of it.

        Raises:
            FailedPreconditionError: if it has been let go of already.
        """
        if self.holder is not holding:
            raise FailedPreconditionError(f"mutex {self.name!r} has been released already")
        self._let_go(holding)
        return ()

    def _let_go(self, holding: Attempt) -> None:
        with self._lock:
            if self.holder is holding:
                self.holder = None
            self._serve()
        self._report()

    def adopt(self, definition: Definition) -> str | None:
        """Be what another operation owns, if that is a mutex; else what it is instead."""
        return None if definition.kind == MUTEX.name else f"a mutex, not a {definition.kind}"

    def forget(self) -> None:
        """Nothing is to be dropped: who holds it lets go of it by itself."""


class _Acquire(Attempt):
    """Holds the mutex; it is itself what is released."""

    __slots__ = ("_mutex",)

    def __init__(self, call: AsyncContext, mutex: Mutex) -> None:
        super().__init__(call)
        self._mutex = mutex

    def arrive(self) -> None:
        holder = self._mutex.holder
        if holder is not None and holder.call.step is self.call.step:
            # What lets go of it in the step has done so before: see `rewrite/order_state.py`.
            self.end(
                FailedPreconditionError(
                    f"it {self.wish()} by its own step, and would do so for ever",
                    hint="let go of it before: what `execute` builds holds it no longer than that "
                    "runs",
                )
            )

    def advance(self) -> bool:
        if self._mutex.holder is not None:
            return False
        self._mutex.holder = self
        return self.end()

    def undo(self) -> None:
        if self._mutex.holder is self:
            self._mutex.holder = None

    def outputs(self) -> tuple[Any, ...]:
        return (self,)

    def wish(self) -> str:
        return f"waits for mutex {self._mutex.name!r}, which is held"


@makes(MUTEX)
def _mutex(birth: Birth) -> Mutex:
    return Mutex(birth.key.name)
