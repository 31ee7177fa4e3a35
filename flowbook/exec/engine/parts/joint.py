"""The parts of one program, which run at once, each on its device (white paper, section 3.2.2).

The first runs on the thread that called for the step, each further one on a thread of its own; they
meet in the rendezvous of the step and nowhere else, but for the gates of what they write, which
they pass as one step. When one fails, the others are told through the rendezvous, and the step ends
with the error that was first.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from itertools import zip_longest
from typing import Any

import numpy as np

from flowbook.exec.devices.device import Device
from flowbook.exec.engine.abandoned import LONGEST_WAIT
from flowbook.exec.engine.atomic.giving_back import GivingBack, Uses, take, uses_of
from flowbook.exec.engine.atomic.undivided import Undivided
from flowbook.exec.engine.engine import Engine
from flowbook.exec.engine.overseer import Overseer
from flowbook.exec.engine.parts.rendezvous import Port, Rendezvous
from flowbook.exec.engine.parts.threads import begin
from flowbook.exec.engine.parts.turns import Turns
from flowbook.exec.engine.runner import Runner, Stage, check_end
from flowbook.exec.interruptions import is_interruption
from flowbook.exec.plan.failure import StepFailed
from flowbook.exec.plan.program import Program
from flowbook.exec.resources.gate import Passage, shares
from flowbook.graph.model.errors import ResourceExhaustedError

# A part's number, what it fetched, and why it failed.
_Ended = queue.SimpleQueue[tuple[int, Sequence[Any], BaseException | None]]


class Joint:
    """A program of several parts, ready to run on this process's devices; see `Runner`.

    Args:
        program: what runs.
        devices: the devices, by their names.
        engine: what it runs in.
        is_late: for each of the program's feeds whether it arrives after the step has begun; empty
            if none does.
        overseers: who is told of each part that waits.

    Attributes:
        whole: see `Runner`.
    """

    def __init__(
        self,
        program: Program,
        devices: Mapping[str, Device],
        engine: Engine,
        is_late: Sequence[bool] = (),
        overseers: Sequence[Overseer] = (),
    ) -> None:
        self._program = program
        self._devices = [devices[part.device] for part in program.parts]
        takes = take(program.parts)
        self._runners = [
            Runner(
                program._replace(parts=(part,)),
                device,
                engine,
                [is_late[place] for place in part.feeds[:-1]] if is_late else (),
                overseer=overseer,
                number=number,
                takes=takes,
            )
            for number, (part, device, overseer) in enumerate(
                zip_longest(program.parts, self._devices, overseers)
            )
        ]
        self._incarnations = {device.name: device.incarnation for device in self._devices}
        gates = engine.stores.gates(frozenset().union(*[r.written for r in self._runners]))
        draws = any(runner.whole.draws for runner in self._runners)
        what = partial(_described, self._devices)
        self.whole = Undivided(gates, draws, runs_users_code=True, what=what)
        self._writes = [bool(runner.written) for runner in self._runners]

    @property
    def stage(self) -> Stage:
        """How far it has come."""
        return self._runners[0].stage

    def run(self, feeds: Sequence[Any], deadline: float | None = None) -> Sequence[Any]:
        """Run one step; see `Runner.run`.

        Raises:
            StepFailed: which node of which part failed first, and why.
        """
        whole = self.whole
        passage = whole.passage(deadline)
        run = self._run, feeds, deadline, passage
        if whole.gates:
            return passage.around(whole.drawing, *run)
        return whole.drawing(*run)

    @cached_property
    def _uses(self) -> Uses | None:
        """Who uses what the steps take."""
        return uses_of(self._program.parts, [runner.units for runner in self._runners])

    def _rendezvous(self) -> Rendezvous:
        """That of one step."""
        giving = None if self._uses is None else GivingBack(self._uses)
        return Rendezvous(len(self._runners), self._incarnations, giving)

    def _run(self, feeds: Sequence[Any], deadline: float | None, passage: Passage) -> Sequence[Any]:
        rendezvous = self._rendezvous()
        run = self._run_parts, feeds, deadline, passage, rendezvous
        giving = rendezvous.giving
        return giving.during(*run) if giving is not None else run[0](*run[1:])

    def _run_parts(
        self,
        feeds: Sequence[Any],
        deadline: float | None,
        passage: Passage,
        rendezvous: Rendezvous,
    ) -> Sequence[Any]:
        ended: _Ended = queue.SimpleQueue()
        given = [
            [*self._fed(number, feeds), Port(rendezvous, self._devices[number], share)]
            for number, share in enumerate(shares(passage, self._writes))
        ]
        stops: list[Callable[[], None]] = []
        found: list[Sequence[Any]] = [()] * len(self._runners)
        try:
            for number, runner in enumerate(self._runners):
                if number:
                    fed = given[number]
                    stops.append(begin(_run_part, number, runner, fed, deadline, rendezvous, ended))
            _run_part(0, self._runners[0], given[0], deadline, rendezvous, ended)
            for _ in self._runners:
                number, found[number] = _next(ended, rendezvous.giving)
        except BaseException as interrupt:
            if rendezvous.giving is not None:
                rendezvous.giving.fail(gives_back=True)
            rendezvous.abort(interrupt)
            for stop in stops:
                stop()
            raise
        finally:
            del given
        # All parts have ended. The error holds the frames below, and they the rendezvous.
        failed, rendezvous.aborted = rendezvous.aborted, None
        if failed is None:
            check_end(deadline)
            return [found[part][place] for part, place in self._program.fetches]
        # Outside of a handler: what is raised there keeps all that the step had.
        try:
            raise failed
        finally:
            del failed, rendezvous

    # Partial runs

    def begin(self) -> Turns:
        """Begin a step whose feeds arrive late; nothing has run yet."""
        rendezvous = self._rendezvous()
        passages = shares(Passage((), partial(_described, self._devices), None), self._writes)
        devices = zip(self._devices, passages, strict=True)
        ports = [Port(rendezvous, device, passage) for device, passage in devices]
        return Turns(self._runners, ports)

    def feed(self, step: Turns, place: int, value: Any) -> None:
        """Give a late feed its value, on each device that takes it."""
        for number, part in enumerate(self._program.parts):
            if place in part.feeds:
                own = part.feeds.index(place)
                given = value if own in part.on_host else self._put(number, place, value)
                self._runners[number].feed(step.executions[number], own, given)

    def advance(self, step: Turns, has_all: Callable[[], bool]) -> None:
        """Run what is ready, and wait for what is under way until there is all; raises as `run`."""
        step.advance(has_all)

    def is_there(self, step: Turns, place: int) -> bool:
        """Whether a fetch has its value, or will have none in this step."""
        number, own = self._program.fetches[place]
        return self._runners[number].is_there(step.executions[number], own)

    def fetched(self, step: Turns, place: int) -> Any:
        """A fetched value, which is the caller's own; None if it is not there yet."""
        number, own = self._program.fetches[place]
        return step.fetched(number, own)

    def has_run(self, step: Turns, operation: int) -> bool:
        """Whether an operation, by its id, has run, or nothing of it is left to run."""
        pairs = zip(self._runners, step.executions, strict=True)
        return all(runner.has_run(execution, operation) for runner, execution in pairs)

    def _fed(self, number: int, feeds: Sequence[Any]) -> list[Any]:
        """What a part is fed with, besides the port."""
        part = self._program.parts[number]
        return [
            feeds[place] if value in part.on_host else self._put(number, place, feeds[place])
            for value, place in enumerate(part.feeds[:-1])
        ]

    def _put(self, number: int, place: int, value: Any) -> Any:
        """What is fed, on the device of a part."""
        try:
            return self._devices[number].put(value)
        except ResourceExhaustedError as error:
            name, shape = self._program.feeds[place].name, list(np.shape(value))
            error.details.append(f"on its way there: what {name!r} is fed with, {shape}")
            raise


def _described(devices: Sequence[Device]) -> str:
    """A step, to whoever waits for it."""
    return f"a step on {', '.join(device.name for device in devices)}"


def _run_part(
    number: int,
    runner: Runner,
    fed: Sequence[Any],
    deadline: float | None,
    rendezvous: Rendezvous,
    ended: _Ended,
) -> None:
    """Run a part, and report what became of it."""
    found: Sequence[Any] = ()
    failed: BaseException | None = None
    try:
        found = runner.run_part(fed, deadline)
    except StepFailed as error:
        failed = StepFailed(error.failure._replace(part=number))
        failed.__cause__ = error.__cause__
        if rendezvous.giving is not None:
            rendezvous.giving.fail(gives_back=False)
    except BaseException as error:
        failed = error
    rendezvous.parts.end(number)
    if failed is not None:
        rendezvous.abort(failed)
    ended.put((number, found, failed))
    del failed  # It holds this frame.


def _next(ended: _Ended, giving: GivingBack | None) -> tuple[int, Sequence[Any]]:
    """The next part that has ended, and what it fetched; raises what is no error of the step."""
    while True:
        if giving is not None:
            giving.deliver()
        # An interrupt that comes just before a thread goes to sleep is noticed when it wakes up.
        with suppress(queue.Empty):
            number, values, error = ended.get(timeout=LONGEST_WAIT)
            break
    try:
        if error is not None and (not isinstance(error, Exception) or is_interruption(error)):
            raise error
        return number, values
    finally:
        del error  # It holds this frame.
