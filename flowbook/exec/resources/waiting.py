"""Resources at which operations wait, in lines that are served in the order of arrival.

What an operation wants is an `Attempt`. It joins a line, goes on as far as the resource allows when
it is the first in it, and tells its step when it has what it wanted. Nothing here holds a thread.

Invariant: an attempt whose step is given up before it has what came of it puts back what it has
taken. An interrupt, which may come after any call, gives up the step that it interrupts; leaving
the line then finishes what that had begun for others.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from functools import partial
from time import monotonic
from typing import Any

from flowbook.exec.interruptions import is_interruption
from flowbook.graph.definition.async_context import AsyncContext

# Held where it is decided who has an element that goes from one resource to another: whoever has it
# sees all that belong to a checkpoint with the one or the other. Who holds a resource's own lock
# may take it; not the other way round.
moving = threading.Lock()
os.register_at_fork(after_in_child=moving._at_fork_reinit)  # type: ignore[attr-defined]


class Attempt:
    """What one operation wants of a resource, until it has it.

    All methods but `finish`, `outputs` and `report` are called under the resource's lock.

    Attributes:
        call: whom it tells.
        is_over: whether it goes on no further.
        error: why it failed, if it did.
    """

    __slots__ = ("call", "error", "is_over")

    def __init__(self, call: AsyncContext) -> None:
        self.call = call
        self.is_over = False
        self.error: Exception | None = None

    def arrive(self) -> None:
        """Decide what depends on when it came, and not on when it is served."""

    def advance(self) -> bool:
        """Go on as far as the resource allows; whether that was any further."""
        raise NotImplementedError

    def undo(self) -> None:
        """Put back what it has taken."""

    def is_done(self) -> bool:
        """Whether it has done something that cannot be undone."""
        return False

    def finish(self) -> None:
        """Do the rest of what has been done in part, whatever room there is; not under the lock."""

    def outputs(self) -> tuple[Any, ...]:
        """What the operation gives."""
        return ()

    def wish(self) -> str:
        """What it waits for, as what is told of a step that waits says it."""
        raise NotImplementedError

    def end(self, error: Exception | None = None) -> bool:
        """Go on no further; gives True, as `advance` does."""
        self.error = error
        self.is_over = True
        return True

    def report(self) -> None:
        """Tell the step; only the first time counts."""
        error = self.error
        if error is None:
            try:
                self.call.complete(self.outputs())
                return
            except Exception as wrong:
                if is_interruption(wrong):
                    raise
                error = wrong
        self.call.fail(error)


class Line(OrderedDict[Attempt, None]):
    """Those who wait, in the order of arrival; and for how long somebody has.

    What it takes is a look at the clock for each that comes, and one more where a wait ends. Times
    are those of `time.monotonic`.

    Attributes:
        first: when somebody came for the first time; None if nobody has.
        last: when somebody came last, or the last wait ended.
        waited: for how many seconds somebody waited, in waits that have ended.
        since: when the wait began that has not ended; None if nobody waits.
    """

    __slots__ = ("first", "last", "since", "waited")

    def __init__(self) -> None:
        super().__init__()
        self.first: float | None = None
        self.last = 0.0
        self.waited = 0.0
        self.since: float | None = None

    def note_end(self) -> None:
        """A wait has ended."""
        assert self.since is not None
        self.last = monotonic()
        self.waited += self.last - self.since
        self.since = None


class WaitingResource:
    """A resource with lines of attempts.

    Args:
        lines: how many; the first is served first.
    """

    def __init__(self, lines: int) -> None:
        self._lock = threading.Lock()
        self._lines: tuple[Line, ...] = tuple(Line() for _ in range(lines))
        self._over: OrderedDict[Attempt, None] = OrderedDict()

    def _join(self, attempt: Attempt, line: Line) -> None:
        """Have an attempt served, at once if nobody is before it."""
        attempt.call.on_cancel(partial(self._leave, attempt))
        attempt.call.wish = attempt.wish
        attempt.call.claim = attempt
        with self._lock:
            # Without a call: whoever takes what is there pays for nothing else.
            line.last = monotonic()
            if line.first is None:
                line.first = line.last
            attempt.arrive()
            is_alone = not any(self._lines)
            while is_alone and not attempt.is_over and attempt.advance():
                pass
            if not attempt.is_over:
                line[attempt] = None
            elif not is_alone:
                self._over[attempt] = None
            if not is_alone:
                self._serve()
            if line and line.since is None:
                line.since = line.last
        if is_alone and attempt.is_over:
            attempt.report()
        self._report()

    def _leave(self, attempt: Attempt) -> bool:
        """Forget an attempt whose step was given up; whether nothing is left of it."""
        with self._lock:
            for line in self._lines:
                self._remove(attempt, line)
            attempt.undo()
            is_done = attempt.is_done()
            self._serve()
        self._report()
        return not is_done

    def _serve(self) -> None:
        """Let all go on until nobody gets any further."""
        # Whoever gets further may let somebody in an earlier line go on, who then goes first.
        goes_on = True
        while goes_on:
            goes_on = False
            for line in self._lines:
                if line and self._serve_first(line):
                    goes_on = True
                    break

    def _serve_first(self, line: Line) -> bool:
        """Let the first go on in a line that has one; whether it got any further."""
        first = next(iter(line))
        if not (first.is_over or first.advance()):
            return False
        if first.is_over:
            # In this order: an interrupt between the two loses nothing.
            self._over[first] = None
            self._remove(first, line)
        return True

    def _remove(self, attempt: Attempt, line: Line) -> None:
        """Have an attempt no longer in a line, if it is in that."""
        line.pop(attempt, None)
        if line.since is not None and not line:
            line.note_end()

    def _report(self) -> None:
        """Tell those who have what they wanted. Each may go on at once, and come back here."""
        over = self._over
        while over:
            try:
                attempt = next(iter(over))
            except (StopIteration, RuntimeError):  # Another thread tells them too.
                continue
            attempt.report()
            over.pop(attempt, None)
