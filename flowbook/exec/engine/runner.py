"""The life of one program in this process: it runs, is checked, is written as code, runs fast.

The first run goes kernel by kernel, so that nobody waits for a compiler and every kernel's result
is checked. From the second run on what needs no waiting runs as generated Python; a short program
that never waits is one call. A program that another one has grown into lends it what is checked
and written already (`segment.py`). What this module keeps, nobody else writes to.

Users' kernels run unchecked from then on, like all others, as a check costs more than the dispatch.
But what they do stays inside the step: they get feeds as read-only views, and what is fetched is
what its definition declares. What is seen to be wrong is told of the user's kernel of which it
comes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from enum import IntEnum
from functools import cached_property, partial
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

import numpy as np

from flowbook.exec.devices.device import Device
from flowbook.exec.engine.abandoned import call_until
from flowbook.exec.engine.async_call import Reports
from flowbook.exec.engine.atomic.at_once import MustWait, asking_first, taking_back
from flowbook.exec.engine.atomic.giving_back import Account, GivingBack, Use, Uses, uses_of
from flowbook.exec.engine.atomic.undivided import FREE, Undivided
from flowbook.exec.engine.bind import NOTHING, Bound, bind
from flowbook.exec.engine.code.finishing import FINISHER_OF, finisher
from flowbook.exec.engine.code.generate import Generated, whole_step
from flowbook.exec.engine.code.lowering import lowered
from flowbook.exec.engine.code.setting import Setting
from flowbook.exec.engine.code.statements import Mark
from flowbook.exec.engine.code.tally import Tally, run_number
from flowbook.exec.engine.diagnosis import diagnosed
from flowbook.exec.engine.engine import Engine
from flowbook.exec.engine.executor import Execution
from flowbook.exec.engine.grouping import Grouping
from flowbook.exec.engine.overseer import Overseer
from flowbook.exec.engine.run_errors import as_op_error, cause_of, unlike_shapes
from flowbook.exec.engine.segment import Region, Segment
from flowbook.exec.engine.structure import Frame, Structure
from flowbook.exec.engine.units import Kernel, LateFeed, Unit
from flowbook.exec.interruptions import is_interruption
from flowbook.exec.plan.failure import Failure, StepFailed, UnitFailure, failure_of, late
from flowbook.exec.plan.program import Part, Program
from flowbook.exec.resources.gate import Passage
from flowbook.exec.resources.random_state import keep_draws
from flowbook.graph.model.dtypes import string
from flowbook.graph.model.errors import (
    DeadlineExceededError,
    InternalError,
    InvalidArgumentError,
    OpError,
)
from flowbook.graph.model.registry import op_keyed
from flowbook.graph.model.retag import DEAD
from flowbook.graph.ops.outside.python_functions import running
from flowbook.graph.rewrite.layered import grown

Result = TypeVar("Result")

# What a step is called by, of many operations.
_NAMED = 3

# How many seconds a step takes longer that may wait, even if it need not: a try that fails is paid
# for by those that are not made behind it.
_TO_WAIT = 20e-6


_REPLACES_CONSTANT = attrgetter("replaces_constant")


class Stage(IntEnum):
    """How far a program has come: it has not run, has run checked, runs as generated code."""

    NEW, CHECKED, WRITTEN = range(3)


# Held while one comes to a later stage, which it does twice in its life.
_reaching = threading.Lock()


class Asking(NamedTuple):
    """A step as code that begins with what may have to wait.

    Attributes:
        step: the code.
        acts: whether it does something of which others can tell beside giving and taking.
    """

    step: Generated
    acts: bool


class Runner:
    """One part of a program, ready to run on a device of this process.

    Args:
        program: what runs; its one part, or one of them.
        device: where.
        engine: what it runs in.
        is_late: for each feed whether it arrives after the step has begun; empty if none does.
        begun: the runner of a program that this one begins with, node by node.
        overseer: who is told of steps that wait.
        number: that of the part in its program.
        takes: whether another part takes what may be used in this one.

    Attributes:
        stage: how far it has come.
        late_units: for each late feed, by its place, the number of its unit.
        whole: what its steps do as one, where it is not a part of one.
    """

    # What a runner begins with lies here until it has more: many run once, and are made quickly.
    stage = Stage.NEW
    # All units, of a program that never waits; see `_segment`.
    _made: Segment | None = None
    # The whole program as one function.
    _step: Generated | None = None
    # The same where what may have to wait need not; None if it may be anywhere in the step.
    _asking: Asking | None = None
    # How many of the next steps do not try whether they have to wait: what comes before that
    # would be done twice.
    _untried = 0
    _first_tally: Tally | None = None

    def __init__(
        self,
        program: Program,
        device: Device,
        engine: Engine,
        is_late: Sequence[bool] = (),
        begun: Runner | None = None,
        overseer: Overseer | None = None,
        number: int = 0,
        takes: bool = False,
    ) -> None:
        (part,) = program.parts
        self._program = program
        self._part = part
        self._device = device
        self._executions = engine.executions
        self._overseer = overseer
        fed = [program.feeds[place] for place in part.feeds]
        begun_with = begun._bound if begun else NOTHING
        bound: Bound = bind(part, fed, device, engine.stores.on(device), begun_with)
        self._bound: Bound = bound
        traits = bound.traits
        self._units: list[Unit] = bound.units
        self.late_units: dict[int, int] = {}
        if is_late:
            self._await_feeds(is_late)
        self._waits = traits.waits or bool(self.late_units)
        self._is_routed = traits.is_routed
        port = len(program.feeds) - 1 if program.is_parted else None
        self._port = part.feeds.index(port) if port in part.feeds else None
        # Whether nothing of a step waits, branches or meets others: it needs no state machine.
        self._is_straight = not self._waits and not self._is_routed and self._port is None
        self._has_users_kernels = traits.has_users_kernels
        self._on_device = device.run
        # What generated code gives is the caller's.
        self._gives_as_it_is = not self._has_users_kernels and not device.fetches_together
        self.whole = FREE
        if bound.written or traits.draws:
            gates = engine.stores.gates(bound.written)
            what = partial(_described, part, bound.units)
            self.whole = Undivided(gates, traits.draws, traits.runs_users_code, what)
        self._begun = begun if not self._waits and not self._is_routed else None
        # Shapes may have been inferred from a constant that is fed now: nothing is sure of them.
        is_wary = any(map(_REPLACES_CONSTANT, program.feeds))
        shared = engine.tallies, engine.executions
        self._setting = Setting(bound.known, bound.specs, device, is_wary, *shared)
        self._number = number
        self._takes = takes or traits.takes

    def _await_feeds(self, is_late: Sequence[bool]) -> None:
        """Have some feeds arrive by units of their own."""
        late = [place for place, arrives_late in enumerate(is_late) if arrives_late]
        nodes = len(self._units)
        self.late_units = {place: nodes + i for i, place in enumerate(late)}
        self._units = [*self._units, *[LateFeed((), (place,), ()) for place in late]]

    # Running

    def run(self, feeds: Sequence[Any], deadline: float | None = None) -> Sequence[Any]:
        """Run one step.

        Args:
            feeds: the fed values, in the order of the signature.
            deadline: when to give up, on the clock of `time.monotonic`, or None.

        Returns:
            The fetched values, which are the caller's own.

        Raises:
            StepFailed: which node failed, and why.
        """
        step, whole = self._step, self.whole
        if step is not None and deadline is None and whole is FREE:
            return self._call(step, feeds)
        if self._asking is not None and deadline is None:
            if self._untried <= 0:
                start = time.perf_counter()
                with suppress(MustWait):
                    return whole.inside(None, self._run_asking, feeds)
                # So many steps take together what was in vain, at most, by not trying.
                self._untried = int((time.perf_counter() - start) / _TO_WAIT)
            else:
                self._untried -= 1
        # What may wait passes the gates later, when it comes to its first write.
        if whole.gates and not self._waits:
            return whole.inside(deadline, whole.drawing, self._run_whole, feeds, deadline)
        if whole.draws:
            return whole.drawing(self._run_whole, feeds, deadline)
        return self._run_whole(feeds, deadline)

    def _run_asking(self, feeds: Sequence[Any]) -> Sequence[Any]:
        """Run a step whose wishes come first; raises MustWait where one is not there."""
        assert self._asking is not None
        step, acts = self._asking
        return taking_back(acts, self.whole.drawing, self._call, step, feeds)

    @property
    def written(self) -> frozenset[str]:
        """The containers in which it writes variables."""
        return self._bound.written

    def run_part(self, feeds: Sequence[Any], deadline: float | None) -> Sequence[Any]:
        """As `run`, of one part of a step, which passes the gates with the others."""
        passage = self._passage(feeds, deadline)
        try:
            if self.whole.gates and not self._waits:
                passage.enter()
            return self._run_whole(feeds, deadline)
        finally:
            passage.leave()

    def _run_whole(self, feeds: Sequence[Any], deadline: float | None) -> Sequence[Any]:
        """As `run`, of a step whose draws somebody else takes back if it fails."""
        step = self._step
        if step is not None and deadline is None:
            return self._call(step, feeds)
        if deadline is not None and self._bound.traits.runs_users_code:
            found = self._run_until(feeds, deadline)
        else:
            found = self._run_otherwise(feeds, deadline)
        if self._port is None and not self._waits:
            check_end(deadline)
        return found

    def _run_until(self, feeds: Sequence[Any], deadline: float) -> Sequence[Any]:
        """Run a step whose kernels may take any time."""
        names: list[str] = []
        try:
            return call_until(deadline, names, self._run_named, names, feeds, deadline)
        except DeadlineExceededError as error:
            failed = StepFailed(Failure(error, -1, ()))
        raise failed

    def _run_named(self, names: list[str], feeds: Sequence[Any], deadline: float) -> Sequence[Any]:
        """Run a step, with the names of the Python functions that it is in kept in a list."""
        running.set(names)
        return self._run_otherwise(feeds, deadline)

    def _call(self, step: Generated, feeds: Sequence[Any], *deadline: float) -> Sequence[Any]:
        """Run the whole step as generated code."""
        try:
            if self._gives_as_it_is:
                return self._on_device(step.function, (*deadline, *feeds))
            given = map(_read_only, feeds) if self._has_users_kernels else feeds
            found: Sequence[Any] = self._on_device(step.function, (*deadline, *given))
            if self._has_users_kernels:
                self._check_fetched(found)
            return self._device.fetch_all(found) if self._device.fetches_together else found
        except MustWait:
            raise
        except Exception as error:
            if is_interruption(error):
                raise
            failed, cause = self._failed(step.failure(error) or error), cause_of(error)
        # Outside of the handler: what is raised there keeps all that the step had.
        try:
            raise failed from cause
        finally:
            del failed, cause  # They hold this frame.

    def _run_otherwise(self, feeds: Sequence[Any], deadline: float | None) -> Sequence[Any]:
        if self.stage is Stage.NEW:
            results = self.run_checked(feeds, deadline)
            # Only what has passed the checks runs without them from now on.
            self._reach(Stage.CHECKED)
            return results
        if self.stage is Stage.CHECKED:
            self.write()
        if self._waits or self._lowered is None or len(self._segment.stretches) > 1:
            return self.run_regions(feeds, deadline)
        if deadline is None:
            self._step = self._generate(self._setting, with_deadline=False)
            return self._call(self._step, feeds)
        return self._call(self._timed_step, feeds, deadline)

    def write(self) -> None:
        """Have it run as generated code from now on, unchecked, as it does from its second run."""
        if self._waits:
            self._asking = self._generate_asking()
        self._reach(Stage.WRITTEN)

    def _reach(self, stage: Stage) -> None:
        """Come to a stage, unless another thread has brought it further meanwhile."""
        with _reaching:
            self.stage = max(self.stage, stage)

    def run_reference(self, feeds: Sequence[Any], deadline: float | None = None) -> Sequence[Any]:
        """Run one step by the state machine, kernel by kernel: what a program means."""
        return self._execute(self._reference, feeds, deadline)

    def run_checked(self, feeds: Sequence[Any], deadline: float | None = None) -> Sequence[Any]:
        """Run one step kernel by kernel, those that wait for nothing one after the other.

        Loops and branches are written as code at once, with the same checks: a loop may run a
        million times in its first step.
        """
        if self._is_routed and not self._waits and self._lowered is not None:
            wary = self._setting._replace(is_wary=True)
            step = self._generate(wary, with_deadline=deadline is not None)
            self._first_tally = step.tally  # The code itself may go.
            timed = () if deadline is None else (deadline,)
            return self._call(step, feeds, *timed)
        if self._is_straight:
            return self._run_straight(self._segment, feeds, deadline)
        return self._execute(self._segments, feeds, deadline)

    def run_regions(self, feeds: Sequence[Any], deadline: float | None = None) -> Sequence[Any]:
        """Run one step region by region, with asynchronous kernels between them."""
        if self._is_straight:
            return self._run_straight(self._region, feeds, deadline)
        return self._execute(self._regions, feeds, deadline)

    def _run_straight(
        self, unit: Unit, feeds: Sequence[Any], deadline: float | None
    ) -> Sequence[Any]:
        """Run a step that is one unit, which gives what is fetched."""
        values = self._values(feeds, deadline)
        return self._given(self.fail_as_step(unit.run, values))

    def _execute(
        self, structure: Structure, feeds: Sequence[Any], deadline: float | None
    ) -> Sequence[Any]:
        values = self._values(feeds, deadline)
        executions = self._executions if self._waits or self._is_routed else None
        parts = feeds[self._port].rendezvous.parts if self._port is not None else None
        account = self._account(structure, feeds)
        how = deadline, self._overseer, executions, parts
        execution = Execution(structure, values, *how, account=account)
        run = execution, structure, feeds, deadline
        if self._port is not None or not self._waits:
            self._run_to_end(*run)  # Whoever called it looks at the time.
        elif account is None:
            self._run_in_time(*run)
        else:
            account.giving.during(self._run_in_time, *run)
        if execution.has_waited:
            self._untried = max(1, self._untried)
        self._keep_tally(structure, execution)
        return self._given([execution.values[value] for value in self._part.fetches])

    def _given(self, values: Sequence[Any]) -> Sequence[Any]:
        """What a step returns, of the values that are fetched."""
        found = [self._finished(value, place) for place, value in enumerate(values)]
        if self._has_users_kernels:
            self._check_fetched(found)
        return self._brought(found)

    def _run_in_time(
        self,
        execution: Execution,
        structure: Structure,
        feeds: Sequence[Any],
        deadline: float | None,
    ) -> None:
        """As `_run_to_end`; a step that is late puts back what it has taken to be fetched."""
        self._run_to_end(execution, structure, feeds, deadline)
        check_end(deadline)

    def _run_to_end(
        self,
        execution: Execution,
        structure: Structure,
        feeds: Sequence[Any],
        deadline: float | None,
    ) -> None:
        if not self._waits or not self.whole.gates:
            self.fail_as_step(execution.run)
            return
        passage = self._passage(feeds, deadline)
        try:
            execution.around(structure.writing, passage.enter, passage.leave)
            passage.around(self.fail_as_step, execution.run)
        finally:
            passage.leave()

    def _account(self, structure: Structure, feeds: Sequence[Any]) -> Account | None:
        """The account of what a step takes and uses; None if it takes nothing."""
        if not self._waits:
            return None
        if self._port is not None:
            giving = feeds[self._port].rendezvous.giving
        else:
            giving = None if self._uses is None else GivingBack(self._uses)
        if giving is None:
            return None
        if structure not in self._uses_of:
            self._uses_of[structure] = giving.uses.of_units(self._number, structure.units)
        return Account(giving, self._number, self._uses_of[structure])

    @cached_property
    def _uses_of(self) -> dict[Structure, Mapping[int, Sequence[Use]]]:
        """The same by the numbers of units, for each structure that has run."""
        return {}

    @cached_property
    def _uses(self) -> Uses | None:
        """Who uses what the steps take, where they are of this part alone."""
        return uses_of([self._part], [self.units])

    @property
    def units(self) -> Sequence[Unit]:
        """The units of the part's nodes, by their numbers."""
        return self._bound.units

    def _passage(self, feeds: Sequence[Any], deadline: float | None) -> Passage:
        """The step's way through the gates, or this part's share in it."""
        if self._port is None:
            return self.whole.passage(deadline)
        return feeds[self._port].passage  # type: ignore[no-any-return]

    def _keep_tally(self, structure: Structure, execution: Execution) -> None:
        """Keep what those loops and branches did that are no code."""
        if not self._is_routed or (not structure.switches and len(structure.frames) == 1):
            return
        tally = self._tallies.get(structure)
        if tally is None:
            loops = [name for name in structure.frames if name]
            routers = [structure.units[index] for index in structure.switches]
            branches = [unit.node.sources for unit in routers if isinstance(unit, Kernel)]
            tally = self._tallies[structure] = self._setting.tallies.new(loops, branches)
        did = [execution.trips[name] for name in tally.loops]
        sides = [execution.sides.get(index) for index in structure.switches]
        tally.latest[0] = (next(run_number), *did, *sides)

    @cached_property
    def _tallies(self) -> dict[Structure, Tally]:
        """What loops and branches that are no code did, for each structure that has run."""
        return {}

    def begin(self, port: Any = None, reports: Reports | None = None) -> Execution:
        """Begin a step whose feeds arrive late; nothing has run yet.

        Args:
            port: of one part of a step, its door to the others.
            reports: where the asynchronous kernels of all parts report to.
        """
        feeds = [None] * len(self._part.feeds)
        if self._port is not None:
            feeds[self._port] = port
        how = self._values(feeds, None), None, self._overseer, self._executions
        account = self._account(self._reference, feeds)
        execution = Execution(self._reference, *how, reports=reports, account=account)
        self._executions.add(execution)
        return execution

    def feed(self, execution: Execution, place: int, value: Any) -> None:
        """Give a late feed its value."""
        execution.feed(self.late_units[place], value)

    def advance(self, execution: Execution, has_all: Callable[[], bool]) -> None:
        """Run what is ready, and wait for what is under way until there is all.

        Raises:
            StepFailed: which node failed, and why.
        """
        self.fail_as_step(execution.advance, has_all)
        self.keep_tally_of(execution)

    def keep_tally_of(self, execution: Execution) -> None:
        """Keep what loops and branches have done so far in a step whose feeds arrive late."""
        self._keep_tally(self._reference, execution)

    def has_run(self, execution: Execution, operation: int) -> bool:
        """Whether an operation, by its id, has run, or nothing of it is left to run."""
        return all(
            execution.has_run(index)
            for index, node in enumerate(self._part.nodes)
            if node.sources[:1] == (operation,)
        )

    def fail_as_step(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call what runs kernels; what they raise fails the step."""
        try:
            return self._on_device(function, arguments)
        except Exception as error:
            if is_interruption(error):
                raise
            failed, cause = self._failed(error), cause_of(_behind(error))
        try:
            raise failed from cause
        finally:
            del failed, cause  # They hold this frame.

    def is_there(self, execution: Execution, place: int) -> bool:
        """Whether a fetch has its value, or will have none in this step."""
        return execution.values[self._part.fetches[place]] is not None

    def fetched(self, execution: Execution, place: int) -> Any:
        """A fetched value, which is the caller's own; None if it is not there yet.

        Raises:
            StepFailed: if it is of a branch that was not taken, or too large to be copied.
        """
        value = execution.values[self._part.fetches[place]]
        found = self._brought([self._finished(value, place)])[0]
        if found is not None and execution.account is not None:
            execution.account.show(self._producer(place))
        return found

    def _brought(self, found: list[Any]) -> Sequence[Any]:
        """Fetched values in host memory, of a device that fetches them together."""
        if not self._device.fetches_together:
            return found
        return self.fail_as_step(self._device.fetch_all, found)

    def _finished(self, value: Any, place: int) -> Any:
        if value is DEAD:
            error = InvalidArgumentError(
                "it has no value in this step: it belongs to a branch that was not taken",
                hint="fetch what comes after the merge of the branches",
            )
            raise StepFailed(Failure(error, self._producer(place), ()))
        try:
            return finisher(self._device, self._part.ownership[place])(value)
        except MemoryError as error:
            exhausted = as_op_error(error, is_users=False)
        raise StepFailed(Failure(exhausted, self._producer(place), ()))

    def _producer(self, place: int) -> int:
        value = self._part.fetches[place]
        return next((i for i, u in enumerate(self._bound.units) if value in u.outputs), -1)

    def _check_fetched(self, found: Sequence[Any]) -> None:
        """Hold fetched values against what the operations that produced them declare."""
        failed = self._misled(self._part.fetches, found)
        if failed is not None:
            raise failed

    def _misled(self, values: Sequence[int], found: Sequence[Any]) -> StepFailed | None:
        """The failure of a user's kernel that gave something else than it declares, if one did.

        Flowbook's own kernels are right where they are given what they should be: what they give
        wrongly is told of the user's kernel that it comes of.

        Args:
            values: the numbers of values.
            found: what they are.
        """
        for value, result in zip(values, found, strict=False):
            kernel = self._producers.get(value)
            if kernel is None or result is DEAD:
                continue
            dtype = kernel.node.dtypes[kernel.outputs.index(value)]
            if isinstance(result, bytes) and dtype is string:
                continue
            try:
                kernel.check_value(value, result)
            except OpError as error:
                suspects = [kernel] if kernel.call.is_users else self._users_kernels_before(kernel)
                if len(suspects) != 1:
                    names = ", ".join([repr(suspect.node.name) for suspect in suspects])
                    error.hint = f"it comes of what kernels of users gave: {names}"
                elif suspects[0] is not kernel:
                    kernel, name = suspects[0], kernel.node.name
                    error = InternalError(
                        "its kernel gave something else than its definition says, as is seen by "
                        f"what came of it: {name!r}, of which {error.message}"
                    )
                return StepFailed(Failure(error, kernel.index, ()))
        return None

    def _users_kernels_before(self, kernel: Kernel) -> list[Kernel]:
        """The users' kernels of whose values those of a kernel come, and who may have been wrong.

        What asynchronous ones report is looked at in each run.
        """
        found, seen, stack = [], {kernel.index}, [kernel]
        while stack:
            for value in stack.pop().inputs:
                before = self._producers.get(value)
                if before is not None and before.index not in seen:
                    seen.add(before.index)
                    stack.append(before)
                    if before.call.is_users and not before.is_async:
                        found.append(before)
        return found

    @cached_property
    def _producers(self) -> dict[int, Kernel]:
        return {v: k for k in self._units if isinstance(k, Kernel) for v in k.outputs}

    def _values(self, feeds: Sequence[Any], deadline: float | None) -> list[Any]:
        """A place for each value; those that are known before the step are there."""
        values = [*self._bound.blank, deadline]
        values[: len(feeds)] = map(_read_only, feeds) if self._has_users_kernels else feeds
        return values

    # What runs

    @cached_property
    def _reference(self) -> Structure:
        """The program, kernel by kernel."""
        frames, start = [], 0
        for block in self._part.block.walk():
            stop = start + len(block.nodes)
            frames.append(Frame(block.frame, block.parallel_iterations, range(start, stop)))
            start = stop
        known, fetches = self._bound.known, self._part.fetches
        return Structure(self._units, known, fetches, frames, self._port)

    @cached_property
    def _segments(self) -> Structure:
        """The program as segments that wait for nothing, and what waits between them."""
        if self._waits:
            return self._grouping.structure(self._setting._replace(is_wary=True), is_first=True)
        if self._is_routed:
            return self._reference
        return self._alone(self._segment)

    @cached_property
    def _grouping(self) -> Grouping:
        late = list(self.late_units.values())
        return Grouping(self._units, self._part, late, self._is_routed, self._port, self._takes)

    @property
    def _lowered(self) -> Sequence[Unit] | None:
        """What runs as code where nothing waits; None if it cannot be written as such."""
        return self._lowered_frames if self._is_routed else self._bound.units

    @cached_property
    def _lowered_frames(self) -> Sequence[Unit] | None:
        """The same of a program with loops or branches."""
        if any(self._port in unit.inputs for unit in self._units[len(self._part.block.nodes) :]):
            return None  # What crosses in a loop says in which iteration.
        return lowered(self._bound.units, self._part.block, self._part.fetches, self._setting)

    @property
    def _segment(self) -> Segment:
        """All units, of a program that never waits."""
        if self._made is None:  # A cached property would take a lock.
            self._made = self._make_segment()
        return self._made

    def _make_segment(self) -> Segment:
        begun = self._begun._segment if self._begun is not None else None
        self._begun = None  # What it began with may go.
        fetches, deadline = self._part.fetches, self._part.values
        units = self._lowered
        assert units is not None
        return Segment(units, (), fetches, (), deadline, self._setting, begun)

    @cached_property
    def _region(self) -> Region:
        """All units, of a program that never waits, as generated code."""
        return Region(self._segment)

    @cached_property
    def _regions(self) -> Structure:
        """The program as generated code, and what waits between it."""
        if self._waits:
            return self._grouping.structure(self._setting, is_first=False)
        if self._lowered is None:
            return self._reference
        return self._alone(self._region)

    def _alone(self, unit: Unit) -> Structure:
        """The program as a single unit, which waits for nothing."""
        return Structure([unit], self._bound.known, self._part.fetches)

    @cached_property
    def _timed_step(self) -> Generated:
        return self._generate(self._setting, with_deadline=True)

    def _generate_asking(self) -> Asking | None:
        """The whole program as code that begins with what may have to wait, if that can be."""
        if self._is_routed or self._port is not None or self._part.is_timed:
            return None
        before = {*range(len(self._part.feeds)), *self._bound.known}
        units = asking_first(self._units, before)
        if units is None:
            return None
        step = self._written(units, self._setting, with_deadline=False)
        return Asking(step, any(isinstance(unit, Mark) for unit in units))

    def _generate(self, setting: Setting, with_deadline: bool) -> Generated:
        """The whole program as one function from the feeds to the fetches."""
        assert self._lowered is not None
        return self._written(self._lowered, setting, with_deadline)

    def _written(self, units: Sequence[Unit], setting: Setting, with_deadline: bool) -> Generated:
        """All units as one function from the feeds to the fetches."""
        part, known = self._part, grown(self._bound.known)
        finish = []
        for value, ownership in zip(part.fetches, part.ownership, strict=True):
            constant = known.get(value)
            if type(constant) is np.ndarray and not constant.ndim and constant.dtype != object:
                known[value] = constant[()]  # NumPy's scalars cannot change: no copy.
                finish.append("{}")
            else:
                finish.append(FINISHER_OF[ownership] + "({})")
        feeds = len(part.feeds)
        setting = setting._replace(known=known)
        return whole_step(units, feeds, part.fetches, finish, setting, with_deadline)

    # Errors

    def _failed(self, error: Exception) -> StepFailed:
        """What became of the step: which node, and what it was given."""
        if isinstance(error, StepFailed):
            return error
        if not isinstance(error, UnitFailure):
            return StepFailed(Failure(_as_op_error(error, is_users=False), -1, ()))
        unit = self._units[error.index]
        if self._has_users_kernels and isinstance(unit, Kernel):
            misled = self._misled(unit.inputs, error.given)
            if misled is not None:
                return misled
        asked = self._program, self._units, error.index, error.given
        behind = self._on_device(diagnosed, asked)
        if behind is not None:
            return StepFailed(behind._replace(loops=error.loops))
        assert isinstance(unit, Kernel)
        definition = op_keyed(unit.node.type)
        is_users = unit.call.is_users or definition.runs_users_code
        refused = None if is_users else unlike_shapes(definition, error.given)
        raised = refused or _as_op_error(_behind(error), is_users)
        return StepFailed(failure_of(raised, error))


def check_end(deadline: float | None) -> None:
    """Fail a step that has come to its end too late: no kernel can be stopped, nor the last."""
    if deadline is not None and time.monotonic() > deadline:
        keep_draws()  # All has been done.
        raise StepFailed(Failure(late(), -1, ()))


def _described(part: Part, units: Sequence[Unit]) -> str:
    """A step, to whoever waits for it."""
    nodes = part.nodes
    named = [nodes[index].name for index in part.targets]
    named = named or [node.name for node, unit in zip(nodes, units, strict=True) if unit.writes]
    return f"the step that runs {', '.join(map(repr, named[:_NAMED]))}"


def _behind(error: Exception) -> Exception:
    """What a unit raised."""
    cause = error.__cause__ if isinstance(error, UnitFailure) else None
    return cause if isinstance(cause, Exception) else error


def _as_op_error(error: Exception, is_users: bool) -> OpError:
    return error if isinstance(error, OpError) else as_op_error(error, is_users)


def _read_only(value: Any) -> Any:
    """A fed array that a user's kernel cannot write to."""
    if not isinstance(value, np.ndarray):
        return value
    view = value.view()
    view.flags.writeable = False
    return view
