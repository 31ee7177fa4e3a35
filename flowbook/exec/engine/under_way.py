"""The steps that are under way, and what of them waits.

What is listed together is cancelled together: the steps of a session when it is closed, the parts
of a step when one fails. Where all that is listed waits, nothing in it will ever go on by itself.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from flowbook.graph.model.errors import CancelledError


class UnderWay(Protocol):
    """What is asked of a step that may wait, or of a part of one.

    Attributes:
        is_over: whether nothing of it is left to run.
    """

    is_over: bool

    def cancel(self) -> None:
        """Make the thread that advances it fail where it waits or goes on."""

    def current_wait(self) -> int | None:
        """Which of its waits it is in, from 1 on; None if it has to wait no longer.

        Any thread may ask. Where the answer is the same twice, it waited in between.
        """

    def waiters(self) -> Sequence[Any]:
        """What waits in it, as its overseer names it."""


# Steps that wait, and in which of its waits each is.
Stuck = Mapping[UnderWay, int]


class Parts:
    """The parts of one step that are under way, and what of them may wait.

    Args:
        count: how many there are.
        executions: of those that may wait.
    """

    def __init__(self, count: int, executions: Iterable[UnderWay] = ()) -> None:
        self._left = set(range(count))
        self._executions = set(executions)
        self._is_cancelled = False

    def add(self, execution: UnderWay) -> None:
        """Have one more that may wait."""
        self._executions.add(execution)
        if self._is_cancelled:
            execution.cancel()

    def remove(self, execution: UnderWay) -> None:
        """Have one less that may wait."""
        self._executions.discard(execution)

    def end(self, number: int) -> None:
        """Note that a part has come to its end."""
        self._left.discard(number)

    def cancel(self) -> None:
        """Make all fail where they wait, those that are added later too."""
        self._is_cancelled = True
        for execution in list(self._executions):
            execution.cancel()

    def waiting(self) -> Stuck | None:
        """All of them, if they wait; where the answer is the same twice, they did in between."""
        found = {part: number for part in list(self._executions) if (number := part.current_wait())}
        return found if len(found) == len(self._left) else None


class Executions:
    """The steps of a session, or of a part of one, that may wait for something.

    Attributes:
        is_closed: whether none may begin any more, and those that do not wait end too, where a loop
            of theirs comes to its next iteration.
    """

    def __init__(self) -> None:
        self._steps: weakref.WeakSet[UnderWay] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._count = 0
        self.is_closed = False

    def add(self, execution: UnderWay) -> None:
        """Have a step cancelled when the session is closed, or what else this thread works for.

        Raises:
            CancelledError: if it has been closed.
        """
        self._add(execution)
        for more in _lists.get():
            more._add(execution)

    def _add(self, execution: UnderWay) -> None:
        with self._lock:
            if not self.is_closed:
                self._steps.add(execution)
                return
        raise session_closed()

    def begin(self) -> None:
        """Count one more step as under way.

        Raises:
            CancelledError: if the session has been closed.
        """
        with self._lock:
            if self.is_closed:
                raise session_closed()
            self._count += 1

    def end(self) -> None:
        """Count one step less."""
        with self._lock:
            self._count -= 1

    def has_only(self, parts: Collection[UnderWay]) -> bool:
        """Whether no other step is under way, those whose feeds arrive late among them."""
        with self._lock:
            others = [step for step in self._steps if step not in parts and not step.is_over]
            return self._count <= len(parts) and not others

    @property
    def under_way(self) -> int:
        """How many steps are under way."""
        return self._count

    def waiters(self) -> list[Any]:
        """What waits in them, as their overseers name it."""
        with self._lock:
            steps = [step for step in self._steps if not step.is_over]
        return [each for step in steps for each in step.waiters()]

    def close(self) -> None:
        """Cancel all steps, those that are added later too."""
        with self._lock:
            self.is_closed = True
            steps = list(self._steps)
        for execution in steps:
            execution.cancel()


# Where the steps that this code runs are listed, besides their sessions.
_lists: ContextVar[tuple[Executions, ...]] = ContextVar("flowbook_executions", default=())


@contextmanager
def also_listed_in(executions: Executions) -> Iterator[None]:
    """In this block, steps are cancelled when `executions` is closed. They may wait for ever.

    What the thread was started for, which may itself be listed somewhere, is of no matter.
    """
    token = _lists.set((executions,))
    try:
        yield
    finally:
        _lists.reset(token)


def works_for_another() -> bool:
    """Whether what this code runs is listed elsewhere too, and may wait for ever."""
    return bool(_lists.get())


def session_closed() -> CancelledError:
    """The error of a step whose session is closed."""
    return CancelledError("the session was closed")
