"""The parts of a partial run on several devices, which take turns on the caller's thread.

What a part receives may depend on feeds that are still to come. So none waits for another: each
runs what is ready, until nothing is in any of them. Only what comes from outside of the step, such
as an element of a queue, is waited for, and that only if something that is asked for is not there.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from flowbook.exec.engine.async_call import AsyncCall, Reports
from flowbook.exec.engine.runner import Runner
from flowbook.exec.plan.failure import StepFailed


class Turns:
    """The parts of one partial run.

    Args:
        runners: of the parts.
        ports: their doors to one another.

    Attributes:
        executions: of the parts.
    """

    def __init__(self, runners: Sequence[Runner], ports: Sequence[Any]) -> None:
        self._reports: Reports = queue.SimpleQueue()
        self._runners = runners
        pairs = zip(runners, ports, strict=True)
        self.executions = [runner.begin(port, self._reports) for runner, port in pairs]

    def advance(self, has_all: Callable[[], bool]) -> None:
        """Run what is ready, and wait for what is under way until there is all.

        Raises:
            StepFailed: which node of which part failed, and why; no part goes on.
        """
        try:
            while True:
                for number, execution in enumerate(self.executions):
                    self._in(number, execution.advance_ready)
                # What one has sent may be what another waits for.
                call = self._reported() or (None if has_all() else self._waited_for())
                if call is None:
                    break
                for number, execution in enumerate(self.executions):
                    self._in(number, partial(execution.take_report, call))
        except BaseException:
            self.close(is_complete=False)
            raise
        for runner, execution in zip(self._runners, self.executions, strict=True):
            runner.keep_tally_of(execution)

    def fetched(self, number: int, place: int) -> Any:
        """What a part has to return, by its place there; None if it is not there yet."""
        runner, execution = self._runners[number], self.executions[number]
        return self._in(number, partial(runner.fetched, execution, place))

    def _in(self, number: int, function: Callable[[], Any]) -> Any:
        """Call what runs kernels of a part."""
        try:
            return self._runners[number].fail_as_step(
                partial(self.executions[number].noting_failure, function)
            )
        except StepFailed as error:
            failed, cause = StepFailed(error.failure._replace(part=number)), error.__cause__
        try:
            raise failed from cause
        finally:
            del failed, cause  # They hold this frame.

    def _reported(self) -> AsyncCall | None:
        with suppress(queue.Empty):
            return self._reports.get_nowait()
        return None

    def _waited_for(self) -> AsyncCall | None:
        """What reports next of what comes from outside of the step; None if nothing is to come."""
        for number, execution in enumerate(self.executions):
            if execution.waits_outside():
                call: AsyncCall = self._in(number, execution.next_report)
                return call
        return None

    def close(self, is_complete: bool) -> None:
        """End; of a step that is not complete what was taken and not used is put back."""
        for execution in self.executions:
            execution.close(is_complete)
