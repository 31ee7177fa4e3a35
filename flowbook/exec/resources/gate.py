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
from typing import Any, TypeVar

from flowbook.graph.model.errors import (
    AbortedError,
    DeadlineExceededError,
    FailedPreconditionError,
)

Result = TypeVar("Result")

# An interrupt that comes just before a thread goes to sleep is noticed when it wakes up.
_LONGEST_WAIT = 0.25

# The ways through gates of the steps for which this code runs, on whatever thread.
_steps: ContextVar[tuple[Passage, ...]] = ContextVar("flowbook_gates", default=())


class OvertakenError(AbortedError):
    """A step has gone in after what it would have written was put elsewhere; it writes nothing.

    Attributes:
        has_begun: whether it may have done something else before.
    """

    has_begun = True


class Gate:
    """The gate of one container."""

    def __init__(self) -> None:
        self._inside: dict[int, weakref.ref[Passage]] = {}
        self._closer: weakref.ref[Passage] | None = None
        self._changed = threading.Condition()

    def enter(self, passage: Passage) -> None:
        """Go through, as soon as it is open, or a step inside of which this one runs is through.

        Raises:
            DeadlineExceededError: if the step's deadline passes first.
        """
        here = weakref.ref(passage)
        self._inside[id(passage)] = here
        while self._is_closed_to(passage):
            self.leave(passage)
            with self._changed:
                while self._is_closed_to(passage):
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
    def closed(self, deadline: float | None, doing: str) -> Iterator[None]:
        """In the block nobody is inside.

        Args:
            deadline: when to give up, on the clock of `time.monotonic`; None never.
            doing: what the block does, such as "variables are saved".

        Raises:
            DeadlineExceededError: if the deadline passes before all have come out, and nobody else
                has it closed; it says who has not.
            FailedPreconditionError: if it is a step inside that asks for it.
        """
        self._check_outside(doing)
        closer = Passage((), str, deadline)
        here = weakref.ref(closer)
        try:
            self._await_open(deadline, doing, here)
            self._await_empty(deadline, doing)
            yield
        finally:
            if self._closer is here:
                self._closer = None
            with self._changed:
                self._changed.notify_all()

    def _await_open(self, deadline: float | None, doing: str, closer: weakref.ref[Passage]) -> None:
        """Wait until nobody has it closed, and close it."""
        with self._changed:
            while self._is_closed():
                if _is_over(deadline):
                    raise DeadlineExceededError(
                        f"{doing} between two steps, and for all of the time that the timeout "
                        "allows somebody else held the variables still"
                    )
                self._changed.wait(_LONGEST_WAIT)
            self._closer = closer

    def _is_closed(self) -> bool:
        closer = self._closer
        return closer is not None and closer() is not None

    def _is_closed_to(self, passage: Passage) -> bool:
        """Whether a passage has to wait."""
        return self._is_closed() and not self._has_inside(passage)

    def _has_inside(self, besides: Passage | None = None) -> bool:
        """Whether another step is inside that this code runs for."""
        found = [self._inside.get(id(step)) for step in _steps.get() if step is not besides]
        return any(ref is not None and ref() is not None for ref in found)

    def _check_outside(self, doing: str) -> None:
        if self._has_inside():
            raise FailedPreconditionError(
                f"{doing} between two steps, and this is inside of one that writes variables",
                hint="do it after the run, or in a run that writes no variables",
            )

    def _await_empty(self, deadline: float | None, doing: str) -> None:
        with self._changed:
            while inside := [each for ref in list(self._inside.values()) if (each := ref())]:
                self._check_outside(doing)  # Another part of its step may have gone in meanwhile.
                if _is_over(deadline):
                    blockers = "; ".join([passage.what() for passage in inside])
                    raise DeadlineExceededError(
                        f"{doing} between two steps, and for all of the time that the timeout "
                        f"allows one was under way: {blockers}"
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
        is_overtaken: whether what was prepared for the step holds no longer; asked inside.

    Attributes:
        is_inside: whether it is through them all, and has not come out.
    """

    __slots__ = ("__weakref__", "_gates", "_is_overtaken", "deadline", "is_inside", "what")

    def __init__(
        self,
        gates: Sequence[Gate],
        what: Callable[[], str],
        deadline: float | None,
        is_overtaken: Callable[[], bool] = bool,
    ) -> None:
        self._gates = gates
        self._is_overtaken = is_overtaken
        self.what = what
        self.deadline = deadline
        self.is_inside = False

    def enter(self, has_begun: bool = True) -> None:
        """Go in; may be called again, and then waits for nobody.

        Args:
            has_begun: whether the step has been doing something before.

        Raises:
            DeadlineExceededError: if the deadline passes first.
            OvertakenError: if what was prepared for the step holds no longer.
        """
        if not self.is_inside:
            for gate in self._gates:
                gate.enter(self)
            if self._is_overtaken():
                error = OvertakenError("what the step writes was put elsewhere before it did so")
                error.has_begun = has_begun
                raise error
            self.is_inside = True

    def leave(self) -> None:
        """Come out, however far in."""
        self.is_inside = False
        for gate in self._gates:
            gate.leave(self)

    def call(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call a function inside, with which the step begins."""
        try:
            self.enter(has_begun=False)
            return function(*arguments)
        finally:
            self.leave()

    def call_known(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call a function inside, and let pass what it runs in turn, as a Python function may."""
        found: Result = self.around(self.call, function, *arguments)
        return found

    def around(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call a function that may go in, and let pass from then on what it runs in turn."""
        return copy_context().run(self._around, function, arguments)

    def _around(self, function: Callable[..., Result], arguments: Sequence[Any]) -> Result:
        _steps.set((*_steps.get(), self))
        return function(*arguments)


class Share(Passage):
    """A part's share in the passage of its step, whose parts run at once.

    The step is inside from when the first of them goes in until all that write have come out.

    Args:
        whole: the step's passage.
        number: that of the part.
        writing: the numbers of the parts that have still to write; all parts have the same set.
        entering: held by the part that goes in; all have the same.
    """

    __slots__ = ("_entering", "_number", "_whole", "_writing")

    def __init__(
        self, whole: Passage, number: int, writing: set[int], entering: threading.Lock
    ) -> None:
        super().__init__((), whole.what, whole.deadline)
        self._whole = whole
        self._number = number
        self._writing = writing
        self._entering = entering

    def enter(self, has_begun: bool = True) -> None:
        """Go in, unless another part has."""
        while not self._whole.is_inside:
            if self._entering.acquire(timeout=_LONGEST_WAIT):
                try:
                    self._whole.enter(has_begun)
                finally:
                    self._entering.release()

    def leave(self) -> None:
        """Come out for good, the step too if no other part has still to write."""
        self._writing.discard(self._number)
        if not self._writing:
            self._whole.leave()


def shares(whole: Passage, writes: Sequence[bool]) -> list[Share]:
    """A share in a passage for each part of a step, of which is known whether it writes."""
    writing = {number for number, does in enumerate(writes) if does}
    entering = threading.Lock()
    return [Share(whole, number, writing, entering) for number in range(len(writes))]


@contextmanager
def all_closed(gates: Sequence[Gate], deadline: float | None, doing: str) -> Iterator[None]:
    """In the block nobody is inside of any of the gates, which are always in the same order."""
    with ExitStack() as block:
        for gate in gates:
            block.enter_context(gate.closed(deadline, doing))
        yield
