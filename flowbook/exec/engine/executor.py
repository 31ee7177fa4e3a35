"""Drives a step: runs units as they become ready, and waits for asynchronous ones.

A step runs on the thread that called for it. Where nothing has to wait, units run in the order of
the plan, which costs half as much as finding out what is ready. Asynchronous kernels report through
a queue; waiting for it can be interrupted, ends at the deadline, and ends when the step is
cancelled.
"""

from __future__ import annotations

import heapq
import queue
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from flowbook.exec.engine.step import Step, Structure
from flowbook.exec.engine.units import AsyncKernel, Unit
from flowbook.graph.model.errors import CancelledError, DeadlineExceededError

# An interrupt that comes just before a thread goes to sleep is noticed when it wakes up.
LONGEST_WAIT = 0.25


class Program:
    """What all executions of one plan share.

    Args:
        units: what runs.
        values: how many values there are.
        kept: values that outlive their last use, being fetched.

    """

    def __init__(self, units: Sequence[Unit], values: int, kept: Sequence[int]) -> None:
        self.units = units
        self._values = values
        self._kept = kept

    @cached_property
    def structure(self) -> Structure:
        """Who waits for whom."""
        return Structure(self.units, self._values)

    @cached_property
    def uses(self) -> list[int]:
        """For each value how often it is needed before it can be freed."""
        uses = self.structure.uses.copy()
        for value in self._kept:
            uses[value] += 1
        return uses

    @cached_property
    def unused(self) -> dict[int, list[int]]:
        """For units with outputs that nothing needs those outputs."""
        return {
            index: unused
            for index, unit in enumerate(self.units)
            if (unused := [v for v in unit.outputs if not self.uses[v]])
        }

    @cached_property
    def last_used(self) -> list[list[int] | tuple[()]]:
        """For each unit the values that nothing needs after it, if units run in their order."""
        needed = [False] * self._values
        for value in self._kept:
            needed[value] = True
        found: list[list[int] | tuple[()]] = []
        for unit in reversed(self.units):
            last: list[int] | tuple[()] = ()
            for value in (*unit.inputs, *unit.outputs):
                if not needed[value]:
                    needed[value] = True
                    last = [*last, value]
            found.append(last)
        found.reverse()
        return found


class InOrder:
    """One step whose units run in their order, each after all that it needs.

    Args: as for `Execution`.
    """

    def __init__(self, program: Program, values: list[Any], deadline: float | None) -> None:
        self.values = values
        self._program = program
        self._deadline = deadline
        self.current_unit: Unit | None = None

    def advance(self) -> None:
        """Run all units.

        Raises:
            DeadlineExceededError: if the deadline passes first.
            BaseException: what a unit raised, `current_unit`.
        """
        values, deadline = self.values, self._deadline
        unit = None
        try:
            for unit, last_used in zip(self._program.units, self._program.last_used, strict=True):
                if deadline is not None and time.monotonic() > deadline:
                    raise _late(0)
                unit.run(values)
                for value in last_used:
                    values[value] = None
        except BaseException:
            self.current_unit = unit
            raise

    def given(self) -> list[Any]:
        """The values that the current unit was given."""
        return _given(self.current_unit, self.values)


class Execution:
    """One step under way.

    Args:
        program: what to run.
        values: a place for each value; feeds and constants are there already.
        deadline: when to give up, on the clock of `time.monotonic`; None never.
    """

    def __init__(self, program: Program, values: list[Any], deadline: float | None) -> None:
        self.values = values
        self.deadline = deadline
        self._program = program
        self._step = Step(program.structure)
        self._uses = program.uses.copy()
        self._ready = list(program.structure.first)
        self._reports: queue.SimpleQueue[tuple[int, Any, BaseException | None]] = (
            queue.SimpleQueue()
        )
        self._waiting: dict[int, AsyncCall] = {}
        self._cancelled: BaseException | None = None
        self.current = -1

    def advance(self) -> None:
        """Run until nothing is ready and nothing asynchronous is under way.

        Raises:
            DeadlineExceededError: if the deadline passes first.
            BaseException: what a unit or an asynchronous kernel raised; `current` is its index.
        """
        if self._cancelled is not None:
            raise self._cancelled
        try:
            self._run_ready()
            while self._waiting:
                self._finish(*self._next_report())
                self._run_ready()
        except BaseException:
            self._abandon()
            raise

    def has_run(self, unit: int) -> bool:
        """Whether a unit has completed."""
        return self._step.is_complete(unit)

    @property
    def current_unit(self) -> Unit | None:
        """The unit that ran last, or None before the first."""
        return self._program.units[self.current] if self.current >= 0 else None

    def given(self) -> list[Any]:
        """The values that the current unit was given."""
        return _given(self.current_unit, self.values)

    def feed(self, unit: int) -> None:
        """Note that a late feed has arrived; its value is in its place."""
        for other in self._step.complete(unit):
            heapq.heappush(self._ready, other)

    def cancel(self, error: BaseException) -> None:
        """Make the thread that advances this step fail with `error` where it waits or goes on."""
        self._cancelled = error
        self._reports.put((-1, None, error))

    def _run_ready(self) -> None:
        ready, values, uses = self._ready, self.values, self._uses
        units, unused, deadline = self._program.units, self._program.unused, self.deadline
        heappop, heappush, complete = heapq.heappop, heapq.heappush, self._step.complete
        while ready:
            self.current = index = heappop(ready)
            if deadline is not None and time.monotonic() > deadline:
                raise self._late()
            unit = units[index]
            if unit.is_async:
                self._start(index, unit)
                continue
            unit.run(values)
            for value in unit.inputs:
                uses[value] -= 1
                if not uses[value]:
                    values[value] = None
            if index in unused:
                for value in unused[index]:
                    values[value] = None
            for other in complete(index):
                heappush(ready, other)

    def _start(self, index: int, unit: Unit) -> None:
        assert isinstance(unit, AsyncKernel)
        call = self._waiting[index] = AsyncCall(index, unit, self._reports)
        unit.start(self.values, call)

    def _next_report(self) -> tuple[int, Any, BaseException | None]:
        deadline = self.deadline
        while True:
            left = LONGEST_WAIT if deadline is None else deadline - time.monotonic()
            try:
                return self._reports.get(timeout=max(0.0, min(left, LONGEST_WAIT)))
            except queue.Empty:
                if left <= 0:
                    raise self._late() from None

    def _finish(self, index: int, outputs: Any, error: BaseException | None) -> None:
        self.current = index
        if error is not None:
            raise error
        call = self._waiting.pop(index, None)
        if call is None:
            return
        call.deliver(self.values, outputs)
        for value in call.unit.inputs:
            self._uses[value] -= 1
            if not self._uses[value]:
                self.values[value] = None
        for value in self._program.unused.get(index, ()):
            self.values[value] = None
        for other in self._step.complete(index):
            heapq.heappush(self._ready, other)

    def _abandon(self) -> None:
        """Let the asynchronous calls under way know that nobody waits for them any more."""
        waiting, self._waiting = self._waiting, {}
        for call in waiting.values():
            call.cancel()

    def _late(self) -> DeadlineExceededError:
        return _late(len(self._waiting))


def _given(unit: Unit | None, values: Sequence[Any]) -> list[Any]:
    return [values[v] for v in unit.inputs] if unit is not None else []


def _late(count: int) -> DeadlineExceededError:
    waiting = f"; {count} asynchronous operations had not completed" if count else ""
    return DeadlineExceededError(f"the step took longer than its timeout allows{waiting}")


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
            execution.cancel(_closed())


def _closed() -> CancelledError:
    return CancelledError("the session was closed")


class AsyncCall:
    """The context that an asynchronous kernel reports to (see `op_def.AsyncContext`).

    Attributes:
        unit: the kernel.
        xp: the device's array module.
    """

    def __init__(self, index: int, unit: AsyncKernel, reports: queue.SimpleQueue[Any]) -> None:
        self.unit = unit
        self.xp = unit.xp
        self._index = index
        self._reports = reports
        self._callbacks: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._is_over = self._is_cancelled = False

    def complete(self, outputs: tuple[Any, ...] = ()) -> None:
        """Report the outputs; may be called from any thread. Only the first report counts."""
        if self._end():
            self._reports.put((self._index, outputs, None))

    def fail(self, error: BaseException) -> None:
        """Report an error; may be called from any thread."""
        if self._end():
            self._reports.put((self._index, None, error))

    def on_cancel(self, callback: Callable[[], None]) -> None:
        """Have `callback` called if the step is given up before this call completes."""
        with self._lock:
            if not self._is_over:
                self._callbacks.append(callback)
                return
        if self._is_cancelled:
            callback()

    def deliver(self, values: list[Any], outputs: tuple[Any, ...]) -> None:
        """Put the outputs into their places, if they are what the definition declares."""
        for place, value in zip(self.unit.outputs, self.unit.checked_all(outputs), strict=True):
            values[place] = value

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
