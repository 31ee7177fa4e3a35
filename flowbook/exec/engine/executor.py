"""Drives a step: runs units as they become ready, and waits for asynchronous ones.

A step runs on the thread that called for it. What the state machine (`step.py`) says is ready runs,
the earliest in the plan first. Asynchronous kernels report through a queue; waiting for it can be
interrupted, ends at the deadline, and ends when the step is cancelled.
"""

from __future__ import annotations

import heapq
import math
import queue
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from flowbook.exec.engine.abandoned import LONGEST_WAIT, out_of_time, still_running
from flowbook.exec.engine.async_call import AsyncCall, Reports
from flowbook.exec.engine.atomic.giving_back import Account, is_putting
from flowbook.exec.engine.overseer import Overseer, Wait
from flowbook.exec.engine.step import Iteration, Ready, Step
from flowbook.exec.engine.structure import Structure
from flowbook.exec.engine.under_way import (
    Executions,
    Parts,
    Stuck,
    session_closed,
    works_for_another,
)
from flowbook.exec.engine.units import AsyncKernel
from flowbook.exec.interruptions import is_interruption
from flowbook.exec.plan.failure import UnitFailure
from flowbook.graph.model.errors import DeadlineExceededError
from flowbook.graph.model.options import options
from flowbook.graph.model.retag import DEAD
from flowbook.graph.ops.communicate.transfer import receive_op


class Execution:
    """One step under way.

    Args:
        structure: what to run.
        values: a place for each value; feeds and constants are there already.
        deadline: when to give up, on the clock of `time.monotonic`; None never.
        overseer: who is told if it waits.
        executions: where it is listed when it does.
        parts: the parts of the step that are under way, if it is one of several.
        reports: where asynchronous kernels report to, if other parts share it.
        account: of what it takes and uses, if it takes something.

    Attributes:
        deadline: see above.
        values: those that are there, outside of inner frames.
        is_over: whether nothing of it is left to run.
    """

    def __init__(
        self,
        structure: Structure,
        values: list[Any],
        deadline: float | None,
        overseer: Overseer | None = None,
        executions: Executions | None = None,
        parts: Parts | None = None,
        reports: Reports | None = None,
        account: Account | None = None,
    ) -> None:
        self.deadline = deadline
        self.values = values
        self.is_over = False
        self._overseer = overseer
        self._executions = executions
        self._parts = parts
        self._units = structure.units
        self._reports: Reports = reports if reports is not None else queue.SimpleQueue()
        self._waiting: set[AsyncCall] = set()
        # Those that had reported when their kernels returned.
        self._done: deque[AsyncCall] = deque()
        # Those of which the overseer has not heard.
        self._untold: list[AsyncCall] = []
        self._endings: list[Callable[[], None]] = []
        self.account = account
        # Whether what it waited for does not come.
        self._is_refused = False
        self._is_cancelled = False
        self._is_waiting = False
        self._waits_begun = 0
        self._writing: frozenset[int] = frozenset()
        self._written: set[int] = set()
        self._before_writing: Callable[[], None] = _nothing
        self._when_written: Callable[[], None] = _nothing
        self._step = Step(structure, values)
        self._ready: list[Ready] = []
        self._add(self._step.begin())

    def around(
        self, units: frozenset[int], before: Callable[[], None], when_done: Callable[[], None]
    ) -> None:
        """Have something called around some units.

        Args:
            units: which.
            before: called before each of them runs.
            when_done: called where the step waits, if all of them have run and none will again.
        """
        self._writing, self._before_writing, self._when_written = units, before, when_done

    @property
    def trips(self) -> Mapping[str, int]:
        """How often the body of each loop has run, by its frame's name."""
        return self._step.trips

    @property
    def sides(self) -> Mapping[int, int]:
        """For each unit that gives a value on one of two sides which one it was last."""
        return self._step.sides

    @property
    def has_waited(self) -> bool:
        """Whether its thread had to wait."""
        return self._waits_begun > 0

    def run(self) -> None:
        """Run it all.

        Raises:
            DeadlineExceededError: if the deadline passes first.
            CancelledError: if the session is closed, where it has to wait.
            UnitFailure: if a unit or an asynchronous kernel failed; its cause is what it raised.
        """
        executions = self._executions
        if executions is not None:
            executions.begin()
        try:
            if self._parts is not None:
                self._parts.add(self)
            self.advance()
            self.end()
        except BaseException:
            self.end()
            raise
        finally:
            if self._parts is not None:
                self._parts.remove(self)
            if executions is not None:
                executions.end()

    def end(self) -> None:
        """Let go of what it holds until its end."""
        self.is_over = True
        try:
            self._call_endings()
        except BaseException:
            self._call_endings()  # An interrupt leaves some; no harm in calling one twice.
            raise

    def _call_endings(self) -> None:
        endings = self._endings
        while endings:
            endings[-1]()
            endings.pop()

    def advance(self, has_all: Callable[[], bool] | None = None) -> None:
        """Run until nothing is ready and nothing asynchronous is under way; raises as `run`.

        Args:
            has_all: whether there is all that is asked for now: then nothing is waited for, and
                what is under way goes on. By default everything is asked for.
        """
        if self._is_cancelled:
            raise session_closed()
        try:
            self._run_ready()
            while self._waiting and (has_all is None or self._has_reports() or not has_all()):
                self._finish(self._done.popleft() if self._done else self._next_report())
                self._run_ready()
        except BaseException as error:
            try:
                if not isinstance(error, Exception) or is_interruption(error):
                    self._say_what_waits(error)
                self._give_up(error)
            except BaseException:
                self._give_up(error)  # An interrupt leaves some; no harm in doing so twice.
                raise
            raise

    def _has_reports(self) -> bool:
        return bool(self._done) or not self._reports.empty()

    def advance_ready(self) -> None:
        """Run what is ready, and wait for nothing; raises as `run`."""
        if self._is_cancelled:
            raise session_closed()
        self._run_ready()
        while self._done:
            self._finish(self._done.popleft())
            self._run_ready()

    def waits_outside(self) -> bool:
        """Whether asynchronous kernels are under way that wait for no other part of the step."""
        return not all(map(_is_receiving, self._waiting))

    def next_report(self) -> AsyncCall:
        """Wait for what reports next in this part, or in one that shares its reports."""
        call = self._next_report()
        if call is None:
            raise session_closed()
        return call

    def take_report(self, call: AsyncCall) -> None:
        """Take what a call has reported, if it is of this part; raises as `run`."""
        if call in self._waiting:
            self._finish(call)

    def has_run(self, unit: int) -> bool:
        """Whether a unit has completed."""
        return self._step.has_run(unit)

    def feed(self, unit: int, value: Any) -> None:
        """Note that a late feed has arrived."""
        self._add(self._step.complete(unit, self._step.root, (value,)))

    def cancel(self) -> None:
        """Make the thread that advances this step fail where it waits or goes on."""
        self._is_cancelled = True
        self._reports.put(None)

    def _add(self, ready: Sequence[Ready]) -> None:
        for entry in ready:
            heapq.heappush(self._ready, entry)

    def _run_ready(self) -> None:
        ready, units, deadline, step = self._ready, self._units, self.deadline, self._step
        writing, account, executions = self._writing, self.account, self._executions
        pop, push = heapq.heappop, heapq.heappush
        tag = latest = step.root
        try:
            while ready:
                index, tag = pop(ready)
                if tag is not latest:
                    if self._is_cancelled or (executions is not None and executions.is_closed):
                        raise session_closed()
                    if account is not None:
                        account.giving.pause()
                    latest = tag
                if deadline is not None and self._is_late(deadline):
                    raise self._late()
                if index in writing:
                    self._before_writing()
                    if tag is step.root:  # In a loop there may be another iteration.
                        self._written.add(index)
                unit = units[index]
                if unit.is_async:
                    assert isinstance(unit, AsyncKernel)
                    call = self._begin(index, tag, unit)
                    unit.start(tag.values, call)
                    waits = call.reports_to(self._reports)
                    (self._untold if waits else self._done).append(call)
                else:
                    if account is None:
                        outputs = unit.run(tag.values)
                    else:
                        outputs = account.run(index, tag, unit, tag.values)
                    for entry in step.complete(index, tag, outputs):
                        push(ready, entry)
        except UnitFailure as failure:
            failure.loops += tag.loops
            raise

    def _begin(self, index: int, tag: Iteration, unit: AsyncKernel) -> AsyncCall:
        """The call of an asynchronous kernel that is about to be started."""
        account = self.account
        giving = None if account is None else account.giving
        call = AsyncCall(index, tag, unit, self._endings, giving)
        self._waiting.add(call)
        if account is not None:
            if is_putting(unit):
                account.lead(call)
            else:
                account.use(index, tag)
        return call

    def _next_report(self) -> AsyncCall | None:
        with suppress(queue.Empty):
            return self._reports.get_nowait()
        giving = None if self.account is None else self.account.giving
        if self._written == self._writing:
            self._when_written()
        deadline, report_at = self.deadline, math.inf
        if self._executions is not None:
            self._executions.add(self)
        if self._overseer is not None:
            untold, self._untold = self._untold, []
            self._overseer.begin([c.unit.index for c in untold if c.wish is not None])
            if options.report_waits is not None and not works_for_another():
                report_at = time.monotonic() + options.report_waits
        if deadline is not None and self._parts is not None and not self.waits_outside():
            # Other parts notice that the time is over too, and know what the step waits for.
            deadline = None
        has_told, stuck = False, None
        self._waits_begun += 1
        self._is_waiting = True
        try:
            while True:
                # What comes from another part of the step is not waited for in vain.
                if giving is not None and self.waits_outside():
                    giving.pause()
                now = time.monotonic()
                left = LONGEST_WAIT
                if deadline is not None and not (giving is not None and giving.is_under_way):
                    left = deadline - now
                wait = max(0.0, min(left, report_at - now, LONGEST_WAIT))
                with suppress(queue.Empty):
                    return self._reports.get(timeout=wait)
                # Not where that is handled: its frame would be kept with this error.
                if left <= 0:
                    raise self._late()
                if time.monotonic() >= report_at:
                    # What else is under way may come to wait later, or to its end.
                    report_at = time.monotonic() + LONGEST_WAIT
                    stuck = self._report_waits(stuck, has_told)
                    has_told = True
        finally:
            self._is_waiting = False

    def _report_waits(self, known: Stuck | None, has_told: bool) -> Stuck | None:
        """Fail if nothing will ever wake what waits, or else have the overseer hear of it once.

        Args:
            known: where it has been seen that something may.
            has_told: whether the overseer has heard.

        Returns:
            Where it has been seen now that something may.
        """
        overseer, waits = self._overseer, self._waits()
        if overseer is None or not waits:
            return None
        stuck = self._stuck()
        if stuck is not None and stuck != known:
            others = [waiter for part in stuck if part is not self for waiter in part.waiters()]
            found = overseer.endless(waits, others) if stuck == self._stuck() else None
            if found is not None:
                node, error = found
                call = next(call for call in self._waiting if call.unit.index == node)
                self._is_refused = True
                raise call.failure() from error
        if not has_told:
            overseer.long(waits)
        return stuck

    def _stuck(self) -> Stuck | None:
        """The parts of this step, if all of them wait and no other step is under way.

        Where the answer is the same twice, it was so in between.
        """
        parts = self._parts if self._parts is not None else Parts(1, [self])
        stuck, executions = parts.waiting(), self._executions
        is_alone = stuck is not None and executions is not None and executions.has_only(stuck)
        return stuck if is_alone else None

    def current_wait(self) -> int | None:
        """Which of its waits it is in, from 1 on; None if it has to wait no longer.

        Any thread may ask. Where the answer is the same twice, it waited in between.
        """
        number = self._waits_begun
        if not self._is_waiting or any(call.has_reported for call in list(self._waiting)):
            return None
        return number

    def _say_what_waits(self, error: BaseException) -> None:
        """Add to what stops the step what it was waiting for."""
        running, waits = self._running(), self._waits()
        if running:
            error.add_note(f"flowbook{still_running(running)}")
        if waits and self._overseer is not None:
            error.add_note(f"flowbook: this run waited: {self._overseer.described(waits)}")

    def _waits(self) -> list[Wait]:
        """What waits, and for what, as far as it says so. Any thread may ask."""
        calls = sorted(self._waiting, key=lambda call: call.unit.index)
        return [
            Wait(call.unit.index, wish(), call.since)
            for call in calls
            if (wish := call.wish) is not None
        ]

    def waiters(self) -> Sequence[Any]:
        """What waits in it, as its overseer names it."""
        return self._overseer.waiters(self._waits()) if self._overseer is not None else ()

    def _is_late(self, deadline: float) -> bool:
        """Whether the deadline has passed, and what the step does may be left at that."""
        is_acting = self.account is not None and self.account.giving.is_under_way
        return not is_acting and time.monotonic() > deadline

    def _late(self) -> DeadlineExceededError:
        running, waits = self._running(), self._waits()
        received = sum(map(_is_receiving, self._waiting))
        others = len(self._waiting) - len(running) - len(waits) - received
        error = out_of_time(running, others)
        if waits and self._overseer is not None:
            error.details.append(self._overseer.described(waits))
        return error

    def _running(self) -> list[str]:
        """The names of the Python functions that this step waits for."""
        return [call.name for call in self._waiting if call.name]

    def _finish(self, call: AsyncCall | None) -> None:
        if call is None:
            raise session_closed()
        outputs = self._taken(call)
        if call in self._waiting:
            self._waiting.remove(call)
            # What was sent dead keeps what waits for it from running.
            is_dead = _is_dead(outputs)
            self._add(self._step.complete(call.index, call.tag, outputs, is_dead))

    def _taken(self, call: AsyncCall) -> Sequence[Any]:
        """What a call that has reported gave.

        Raises:
            UnitFailure: if it failed, or gave what its definition does not say.
        """
        account = self.account
        if account is not None:
            account.take(call)
        outputs, error = call.take()
        if error is not None:
            self._is_refused = call.unit.asks
            if account is not None and call.give_back():
                account.finish(call)
            call.release()
            raise call.failure() from error
        if account is not None:
            account.use(call.index, call.tag)
        if account is None or not call.unit.takes:
            call.release()
        try:
            return outputs if _is_dead(outputs) else call.unit.checked_all(outputs)
        except Exception as wrong:
            if is_interruption(wrong):
                raise
            self._waiting.discard(call)
            raise call.failure() from wrong

    def fail(self, error: BaseException) -> None:
        """Note that the step fails, if it does so here first, and whether it puts back anything."""
        if self.account is not None:
            # What is written as code notices by itself that the time is over.
            is_late = isinstance(error.__cause__, DeadlineExceededError)
            is_computing = isinstance(error, UnitFailure) and not self._is_refused and not is_late
            self.account.giving.fail(gives_back=not is_computing)

    def noting_failure(self, function: Callable[[], Any]) -> Any:
        """Call a function that runs something of it, and note it if the step fails there."""
        try:
            return function()
        except BaseException as error:
            self.fail(error)
            raise

    def close(self, is_complete: bool) -> None:
        """End a step whose feeds arrive late.

        Args:
            is_complete: whether all that was wanted has been had; if not, what was taken and not
                used is put back.
        """
        giving = None if self.account is None else self.account.giving
        if is_complete:
            if self._waiting:  # What nobody asked for.
                self.abandon()
            self.end()
            if giving is not None:
                giving.settle()
            return
        self.abandon()
        if giving is not None:
            giving.end()

    def _give_up(self, error: BaseException) -> None:
        self.fail(error)
        self.abandon()

    def abandon(self) -> None:
        """End, and let the asynchronous calls under way know that nobody waits for them."""
        self._step.give_up()
        waiting = self._waiting
        for call in list(waiting):
            if call.cancel() and self.account is not None:
                self.account.finish(call)
            call.release()
            waiting.discard(call)
        self.end()


def _nothing() -> None:
    pass


def _is_receiving(call: AsyncCall) -> bool:
    """Whether it waits for another part of the step."""
    return call.unit.node.type == receive_op.key


def _is_dead(outputs: Any) -> bool:
    """Whether what was reported is that there will be no value."""
    return isinstance(outputs, tuple) and len(outputs) == 1 and outputs[0] is DEAD
