"""The gate that steps pass which write variables: closed, it holds them up between two steps.

While a gate is closed, the variables behind it are as whole steps have left them. Steps that write
none never come here: what waits on queues, and what feeds these, goes on.

A step first says that it is inside and then looks whether the gate is closed; who closes it first
does so and then looks who is inside: one of them sees the other. Both are held weakly: where an
interrupt prevents that a step comes out, or that the gate is opened, this ends with the frames that
held them.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar, copy_context
from typing import Any

from flowbook.graph.model.errors import DeadlineExceededError, FailedPreconditionError

# An interrupt that comes just before a thread goes to sleep is noticed when it wakes up.
_LONGEST_WAIT = 0.25

# The gates that the step has passed for which this code runs, on whatever thread.
_passed: ContextVar[tuple[Gate, ...]] = ContextVar("flowbook_gates", default=())


class Gate:
    """The gate of one container."""

    def __init__(self) -> None:
        self._inside: dict[int, weakref.ref[Passage]] = {}
        self._closer: weakref.ref[Passage] | None = None
        self._changed = threading.Condition()
        self._closing = threading.Lock()

    def enter(self, passage: Passage) -> None:
        """Go through, as soon as it is open.

        Raises:
            DeadlineExceededError: if the step's deadline passes first.
        """
        here = weakref.ref(passage)
        self._inside[id(passage)] = here
        while self._is_closed() and self not in _passed.get():
            self.leave(passage)
            with self._changed:
                while self._is_closed():
                    if _is_over(passage.deadline):
                        raise DeadlineExceededError(
                            "the variables were held still, to be saved or restored, for all of "
                            "the time that the timeout allows"
                        )
                    self._changed.wait(_LONGEST_WAIT)
            self._inside[id(passage)] = here

    def leave(self, passage: Passage) -> None:
        """Be outside again, or still."""
        self._inside.pop(id(passage), None)
        if self._closer is not None:
            with self._changed:
                self._changed.notify_all()

    @contextmanager
    def closed(self, deadline: float | None) -> Iterator[None]:
        """In the block nobody is inside.

        Raises:
            DeadlineExceededError: if the deadline passes before all have come out; it says who has
                not.
            FailedPreconditionError: if it is a step inside that asks for it.
        """
        if self in _passed.get():
            raise FailedPreconditionError(
                "variables are saved and restored between two steps, and this is inside of one "
                "that writes some",
                hint="do it after the run, or in a run that writes no variables",
            )
        with self._closing:
            closer = Passage((), str, deadline)
            try:
                self._closer = weakref.ref(closer)
                self._await_empty(deadline)
                yield
            finally:
                self._closer = None
                with self._changed:
                    self._changed.notify_all()

    def _is_closed(self) -> bool:
        return self._closer is not None and self._closer() is not None

    def _await_empty(self, deadline: float | None) -> None:
        with self._changed:
            while inside := [each for ref in list(self._inside.values()) if (each := ref())]:
                if _is_over(deadline):
                    blockers = "; ".join([passage.what() for passage in inside])
                    raise DeadlineExceededError(
                        "variables are saved and restored between two steps, and for all of the "
                        f"time that the timeout allows one was under way: {blockers}"
                    )
                del inside
                self._changed.wait(_LONGEST_WAIT)


def _is_over(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() > deadline


class Passage:
    """One step's way through the gates of what it writes.

    Args:
        gates: always in the same order.
        what: describes the step.
        deadline: when to give up waiting for them, on the clock of `time.monotonic`; None never.
    """

    __slots__ = ("__weakref__", "_gates", "deadline", "what")

    def __init__(
        self, gates: Sequence[Gate], what: Callable[[], str], deadline: float | None
    ) -> None:
        self._gates = gates
        self.what = what
        self.deadline = deadline

    def enter(self) -> None:
        """Go in; may be called again.

        Raises:
            DeadlineExceededError: if the deadline passes first.
        """
        for gate in self._gates:
            gate.enter(self)

    def leave(self) -> None:
        """Come out, however far in."""
        for gate in self._gates:
            gate.leave(self)

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function inside."""
        try:
            self.enter()
            return function(*arguments)
        finally:
            self.leave()

    def call_known(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function inside, and let pass what it runs in turn, as a Python function may."""
        return copy_context().run(self._call_known, function, arguments)

    def _call_known(self, function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
        try:
            self.enter()
            _passed.set((*_passed.get(), *self._gates))
            return function(*arguments)
        finally:
            self.leave()


@contextmanager
def all_closed(gates: Sequence[Gate], deadline: float | None) -> Iterator[None]:
    """In the block nobody is inside of any of the gates, which are always in the same order."""
    with ExitStack() as block:
        for gate in gates:
            block.enter_context(gate.closed(deadline))
        yield
