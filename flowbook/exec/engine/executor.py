"""Drives a step: runs units as they become ready, and waits for asynchronous ones.

A step runs on the thread that called for it. What the state machine (`step.py`) says is ready runs,
the earliest in the plan first. Asynchronous kernels report through a queue; waiting for it can be
interrupted, ends at the deadline, and ends when the step is cancelled.
"""

from __future__ import annotations

import heapq
import queue
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from flowbook.exec.engine.given_up import LONGEST_WAIT, out_of_time, still_running, stop, thread_of
from flowbook.exec.engine.step import Iteration, Ready, Step, Structure
from flowbook.exec.engine.units import AsyncKernel
from flowbook.exec.plan.failure import UnitFailure
from flowbook.graph.model.errors import CancelledError, DeadlineExceededError
from flowbook.graph.model.retag import DEAD


class Execution:
    """One step under way.

    Args:
        structure: what to run.
        values: a place for each value; feeds and constants are there already.
        deadline: when to give up, on the clock of `time.monotonic`; None never.
    """

    def __init__(self, structure: Structure, values: list[Any], deadline: float | None) -> None:
        self.deadline = deadline
        self._units = structure.units
        self._step = Step(structure, values)
        self._ready: list[Ready] = []
        self._add(self._step.begin())
        self._reports: queue.SimpleQueue[tuple[AsyncCall | None, Any, BaseException | None]] = (
            queue.SimpleQueue()
        )
        self._waiting: set[AsyncCall] = set()
        self._is_cancelled = False
        self._writing: frozenset[int] = frozenset()
        self._before_writing: Callable[[], None] = _nothing

    def before(self, units: frozenset[int], call: Callable[[], None]) -> None:
        """Have something called before each of some units runs."""
        self._writing, self._before_writing = units, call

    @property
    def values(self) -> list[Any]:
        """The values that are there, outside of inner frames."""
        return self._step.root.values  # type: ignore[no-any-return]

    @property
    def trips(self) -> Mapping[str, int]:
        """How often the body of each loop has run, by its frame's name."""
        return self._step.trips

    @property
    def sides(self) -> Mapping[int, int]:
        """For each unit that gives a value on one of two sides which one it was last."""
        return self._step.sides

    def advance(self) -> None:
        """Run until nothing is ready and nothing asynchronous is under way.

        Raises:
            DeadlineExceededError: if the deadline passes first.
            UnitFailure: if a unit or an asynchronous kernel failed; its cause is what it raised.
        """
        if self._is_cancelled:
            raise _closed()
        try:
            self._run_ready()
            while self._waiting:
                self._finish(*self._next_report())
                self._run_ready()
        except BaseException as error:
            running = self._running()
            if running and not isinstance(error, Exception):
                error.add_note(f"flowbook{still_running(running)}")
            self._abandon()
            raise

    def has_run(self, unit: int) -> bool:
        """Whether a unit has completed."""
        return self._step.has_run(unit)

    def feed(self, unit: int, value: Any) -> None:
        """Note that a late feed has arrived."""
        self._add(self._step.complete(unit, self._step.root, (value,)))

    def cancel(self) -> None:
        """Make the thread that advances this step fail where it waits or goes on."""
        self._is_cancelled = True
        self._reports.put((None, None, None))

    def _add(self, ready: Sequence[Ready]) -> None:
        for entry in ready:
            heapq.heappush(self._ready, entry)

    def _run_ready(self) -> None:
        ready, units, deadline, step = self._ready, self._units, self.deadline, self._step
        writing = self._writing
        pop, push = heapq.heappop, heapq.heappush
        tag = step.root
        try:
            while ready:
                index, tag = pop(ready)
                if deadline is not None and time.monotonic() > deadline:
                    raise self._late()
                if index in writing:
                    self._before_writing()
                unit = units[index]
                if unit.is_async:
                    assert isinstance(unit, AsyncKernel)
                    call = AsyncCall(index, tag, unit, self._reports)
                    self._waiting.add(call)
                    unit.start(tag.values, call)
                else:
                    for entry in step.complete(index, tag, unit.run(tag.values)):
                        push(ready, entry)
        except UnitFailure as failure:
            failure.loops += tag.loops
            raise

    def _next_report(self) -> tuple[AsyncCall | None, Any, BaseException | None]:
        deadline = self.deadline
        while True:
            left = LONGEST_WAIT if deadline is None else deadline - time.monotonic()
            with suppress(queue.Empty):
                return self._reports.get(timeout=max(0.0, min(left, LONGEST_WAIT)))
            # Not where that is handled: its frame would be kept with this error.
            if left <= 0:
                raise self._late()

    def _late(self) -> DeadlineExceededError:
        running = self._running()
        return out_of_time(running, len(self._waiting) - len(running))

    def _running(self) -> list[str]:
        """The names of the Python functions that this step waits for."""
        return [call.name for call in self._waiting if call.name]

    def _finish(self, call: AsyncCall | None, outputs: Any, error: BaseException | None) -> None:
        if call is None:
            raise _closed()
        call.join()
        try:
            if error is not None:
                raise error
            # What was sent dead keeps what waits for it from running.
            is_dead = isinstance(outputs, tuple) and len(outputs) == 1 and outputs[0] is DEAD
            if not is_dead:
                outputs = call.unit.checked_all(outputs)
        except BaseException as wrong:
            given = [call.tag.values[v] for v in call.unit.inputs]
            raise UnitFailure(call.unit.index, given, call.tag.loops) from wrong
        finally:
            del error  # It may hold this frame.
        if call in self._waiting:
            self._waiting.remove(call)
            self._add(self._step.complete(call.index, call.tag, outputs, is_dead))

    def _abandon(self) -> None:
        """Let the asynchronous calls under way know that nobody waits for them any more."""
        self._step.give_up()
        waiting, self._waiting = self._waiting, set()
        for call in waiting:
            call.cancel()


class Executions:
    """The steps of a session that may wait for something."""

    def __init__(self) -> None:
        self._steps: weakref.WeakSet[Execution] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._is_closed = False

    def add(self, execution: Execution) -> None:
        """Have a step cancelled when the session is closed.

        Raises:
            CancelledError: if it has been closed.
        """
        with self._lock:
            if not self._is_closed:
                self._steps.add(execution)
                return
        raise _closed()

    def close(self) -> None:
        """Cancel all steps, those that are added later too."""
        with self._lock:
            self._is_closed = True
            steps = list(self._steps)
        for execution in steps:
            execution.cancel()


def _nothing() -> None:
    pass


def _closed() -> CancelledError:
    return CancelledError("the session was closed")


class AsyncCall:
    """The context that an asynchronous kernel reports to (see `op_def.AsyncContext`).

    Attributes:
        index: the unit's number in what runs.
        tag: the iteration that it runs in.
        unit: the kernel.
        xp: the device's array module.
        name: that of the function that runs on a thread of its own; empty if none does.
        on_report: is called with the outputs when they are reported, if somebody wants to know.
    """

    def __init__(
        self, index: int, tag: Iteration, unit: AsyncKernel, reports: queue.SimpleQueue[Any]
    ) -> None:
        self.index = index
        self.tag = tag
        self.unit = unit
        self.xp = unit.xp
        self.name = ""
        self.on_report: Callable[[Any], None] | None = None
        self._thread: threading.Thread | None = None
        self._reports = reports
        self._callbacks: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._is_over = self._is_cancelled = False

    def complete(self, outputs: tuple[Any, ...] = ()) -> None:
        """Report the outputs; may be called from any thread. Only the first report counts."""
        if self._end():
            if self.on_report is not None:
                self.on_report(outputs)
            self._reports.put((self, outputs, None))

    def fail(self, error: BaseException) -> None:
        """Report an error; may be called from any thread."""
        if self._end():
            self._reports.put((self, None, error))

    def on_cancel(self, callback: Callable[[], None]) -> None:
        """Have `callback` called if the step is given up before this call completes."""
        with self._lock:
            if not self._is_over:
                self._callbacks.append(callback)
                return
        if self._is_cancelled:
            callback()

    def call(self, function: Callable[[], tuple[Any, ...]], name: str) -> None:
        """Call a function on a thread of its own, and report its outputs."""
        self.name = name
        self._thread = thread = thread_of(f"flowbook {name}", _report, self, function)
        self.on_cancel(lambda: stop(thread))
        thread.start()

    def join(self) -> None:
        """Wait until the thread has ended that has reported: it keeps what its frames have."""
        if self._thread is not None:
            self._thread.join()

    def cancel(self) -> None:
        """Call the callbacks, once."""
        if self._end(is_cancelled=True):
            for callback in self._callbacks:
                callback()

    def _end(self, is_cancelled: bool = False) -> bool:
        with self._lock:
            if self._is_over:
                return False
            self._is_over, self._is_cancelled = True, is_cancelled
            return True


def _report(call: AsyncCall, function: Callable[[], tuple[Any, ...]]) -> None:
    """Call a function, and report what it gives or raises."""
    try:
        outputs = function()
    except BaseException as error:
        call.fail(error)
    else:
        call.complete(outputs)
