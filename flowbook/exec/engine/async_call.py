"""A call of an asynchronous kernel: what it reports, and who takes that."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from enum import Enum
from typing import Any, Protocol

from flowbook.exec.engine.abandoned import stop, thread_of
from flowbook.exec.engine.step import Iteration
from flowbook.exec.engine.units import AsyncKernel
from flowbook.exec.plan.failure import UnitFailure
from flowbook.graph.definition.async_context import Claim


class Giving(Protocol):
    """What a step has taken; see `giving_back.py`."""

    is_over: bool


class _State(Enum):
    """How far an asynchronous call has come."""

    STARTED = "has not reported"
    REPORTED = "has reported, and the step has not heard of it"
    TAKEN = "the step has what it gave"
    CANCELLED = "the step was given up"


class AsyncCall:
    """The context that an asynchronous kernel reports to (see `definition/async_context.py`).

    What it reports while the kernel is being called, the step takes without waiting for it.

    Attributes:
        index: the unit's number in what runs.
        tag: the iteration that it runs in.
        unit: the kernel.
        xp: the device's array module.
        wish: says what it waits for, if the kernel has set it.
        claim: what it is to the resource at which it waits, if the kernel has set that.
        since: when the step began to wait for it, on the clock of `time.monotonic`.
        name: that of the function that runs on a thread of its own; empty if none does.
        on_report: is called with the outputs when they are reported, if somebody wants to know.
        is_patient: that it waits.
        is_used: whether what it gave has been used.
    """

    is_patient = True
    __slots__ = ("__weakref__", "_callbacks", "_endings", "_found", "_giving", "_has_done", "_led",
                 "_lock", "_reports", "_state", "_thread", "claim", "index", "is_used", "name",
                 "on_report", "since", "tag", "unit", "wish", "xp")  # fmt: skip

    def __init__(
        self,
        index: int,
        tag: Iteration,
        unit: AsyncKernel,
        endings: list[Callable[[], None]],
        giving: Giving | None = None,
    ) -> None:
        self.index = index
        self.tag = tag
        self.unit = unit
        self.xp = unit.xp
        self.wish: Callable[[], str] | None = None
        self.claim: Claim | None = None
        self.is_used = False
        self.since = 0.0
        self.name = ""
        self.on_report: Callable[[Any], None] | None = None
        self._thread: threading.Thread | None = None
        self._reports: Reports | None = None
        self._found: tuple[Any, BaseException | None] = ((), None)
        self._callbacks: list[Callable[[], object]] = []
        self._led: tuple[AsyncCall, ...] = ()
        self._has_done = False
        self._giving = giving
        self._endings = endings
        self._lock = threading.Lock()
        self._state = _State.STARTED

    # For the kernel

    def complete(self, outputs: tuple[Any, ...] = ()) -> None:
        """Report the outputs; may be called from any thread. Only the first report counts."""
        self._report((outputs, None))

    def fail(self, error: BaseException) -> None:
        """Report an error; may be called from any thread."""
        self._report(((), error))

    def on_cancel(self, callback: Callable[[], object]) -> None:
        """Have `callback` called if the step is given up before it has what this call reports."""
        with self._lock:
            if self._state is not _State.CANCELLED:
                self._callbacks.append(callback)
                return
        callback()

    @property
    def step(self) -> object:
        """What all calls of its step on the device have in common, and no others."""
        return self._endings

    @property
    def is_settled(self) -> bool:
        """Whether what it gave has been used, or the step has come to its end."""
        giving = self._giving
        if giving is None or giving.is_over or self.is_used:
            return True
        return any(put.has_done for put in self._led)

    @property
    def has_done(self) -> bool:
        """Whether it has done something that cannot be undone."""
        claim = self.claim  # Once: whoever saves asks meanwhile.
        return self._has_done if claim is None else claim.is_done()

    def on_end(self, callback: Callable[[], None]) -> None:
        """Have `callback` called when the step has come to its end, whatever that is."""
        self._endings.append(callback)

    def call(self, function: Callable[[], tuple[Any, ...]], name: str) -> None:
        """Call a function on a thread of its own, and report its outputs."""
        self.name = name
        self._thread = thread = thread_of(f"flowbook {name}", _report, self, function)
        self.on_cancel(lambda: stop(thread))
        thread.start()

    def _report(self, found: tuple[Any, BaseException | None]) -> None:
        with self._lock:
            if self._state is not _State.STARTED:
                return
            if self.on_report is not None and found[1] is None:
                self.on_report(found[0])
            self._found = found
            self._state = _State.REPORTED
            # Under the lock: an interrupt where that is released finds the report made.
            if self._reports is not None:
                self._reports.put(self)

    # For the step

    def reports_to(self, reports: Reports) -> bool:
        """Whether it has still to report, which it will do there."""
        with self._lock:
            self._reports = reports
            waits = self._state is _State.STARTED
            if waits:
                self.since = time.monotonic()
            return waits

    @property
    def has_reported(self) -> bool:
        """Whether it has reported, and the step may not have heard of it."""
        return self._state is _State.REPORTED

    def take(self) -> tuple[Any, BaseException | None]:
        """What it has reported: outputs, or an error."""
        if self._thread is not None:
            self._thread.join()  # It keeps what its frames have.
        with self._lock:
            found, self._found = self._found, ((), None)
            self._state = _State.TAKEN
            return found

    def give_back(self) -> bool:
        """Put back what it gave, if that was kept possible; no harm in doing so twice.

        Returns:
            Whether it has done something that cannot be undone.
        """
        return [callback() for callback in self._callbacks].count(False) > 0

    def release(self) -> None:
        """Give nothing back from now on, and keep nothing of who would take it.

        Each refers to the other, and to what was taken: without this, that would be there until
        cycles are looked for.
        """
        self._has_done = self.has_done
        self.wish = self.claim = None
        self._callbacks.clear()

    def leads_to(self, put: AsyncCall) -> None:
        """Note that what it gave is used when another has put something somewhere."""
        self._led = (*self._led, put)

    def finish(self) -> None:
        """Have all be done of what has been done in part."""
        if self.claim is not None:
            self.claim.finish()

    def failure(self) -> UnitFailure:
        """That it failed, and on what."""
        given = [self.tag.values[v] for v in self.unit.inputs]
        return UnitFailure(self.unit.index, given, self.tag.loops)

    def cancel(self) -> bool:
        """Have nothing come of it; whether it has done something that cannot be undone."""
        with self._lock:
            # An interrupt may have come before the step noted what it has.
            if self._state is not _State.TAKEN:
                self._state = _State.CANCELLED
        return self.give_back()


# What has been reported; None if the step is cancelled.
Reports = queue.SimpleQueue[AsyncCall | None]


def _report(call: AsyncCall, function: Callable[[], tuple[Any, ...]]) -> None:
    """Call a function, and report what it gives or raises."""
    try:
        outputs = function()
    except BaseException as error:
        call.fail(error)
    else:
        call.complete(outputs)
