"""A plan made ready to run here: first by the reference executor, then as generated code.

The first run of a signature goes kernel by kernel, so that nobody waits for a compiler and every
kernel's result is checked. From the second run on (the third of what began a longer signature)
regions run as generated Python; a plan that is one region is one call.

Users' kernels run unchecked from then on, like all others, as a check costs more than the dispatch.
But what they do stays inside the step: they get feeds as read-only views, and what is fetched is
what its definition declares.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from flowbook.exec.devices.device import Device
from flowbook.exec.engine.bind import bind
from flowbook.exec.engine.executor import Execution, Executions, InOrder, Program
from flowbook.exec.engine.generate import FINISHED, Generated, Region
from flowbook.exec.engine.quiet import quietly
from flowbook.exec.engine.regions import find_regions
from flowbook.exec.engine.run_errors import as_op_error, cause_of
from flowbook.exec.engine.units import Kernel, LateFeed, Unit
from flowbook.exec.plan.pipeline import Prepared
from flowbook.exec.resources.container import Resources
from flowbook.graph.definition.inference import constant_value
from flowbook.graph.model.dtypes import INDICES
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError, OpError
from flowbook.graph.model.operation import Operation


class Executable:
    """A prepared signature on this process's device.

    Args:
        prepared: the plan and where its nodes came from.
        device: where it runs.
        resources: where its resources live.
        is_late: for each feed whether it arrives after the step has begun.
        executions: where steps that may wait are listed.

    Attributes:
        prepared: the plan and where its nodes came from.
        is_initialized: whether the variables that it needs are known to have values.
        size: how many nodes it has.
        ran_again: whether it ran more than once.
        is_stale: whether it used old definitions when it was last asked for (see `check_stale`).
        is_spared: whether no code is written for its second run, which may be the last.
        is_dropped: whether the master keeps it no longer.
        late_units: for each late feed, by its place, the index of its unit.
    """

    def __init__(
        self,
        prepared: Prepared,
        device: Device,
        resources: Resources,
        is_late: Sequence[bool] = (),
        executions: Executions | None = None,
    ) -> None:
        plan = prepared.plan
        self.prepared = prepared
        self.is_initialized = False
        self.size = len(plan.nodes)
        self._plan = plan
        self._xp = device.xp
        self._executions = executions
        self._units, self._known = bind(plan, prepared.operations, device, resources)
        late = [place for place, arrives_late in enumerate(is_late) if arrives_late]
        self.late_units = {place: self.size + i for i, place in enumerate(late)}
        self._units += [LateFeed((), (place,), ()) for place in late]
        self._waits = any(unit.waits for unit in self._units)
        self._has_users_kernels = any(
            isinstance(unit, Kernel) and unit.is_users for unit in self._units
        )
        # Shapes may have been inferred from a constant that is fed now: nothing is sure of them.
        self._is_wary = any(
            tensor.dtype in INDICES and constant_value(tensor) is not None
            for tensor in prepared.feeds
        )
        self.is_dropped = False
        self.is_spared = False
        self.is_stale = False
        self.ran_again = False
        self._has_run = False
        self._step: Generated | None = None

    @property
    def units(self) -> Sequence[Unit]:
        """What runs: one unit for each of the plan's nodes, then those of late feeds."""
        return self._units

    @property
    def operations(self) -> tuple[Operation, ...]:
        """The operations that the signature needs, before rewriting."""
        return self.prepared.pruned

    # Running

    def run(self, feeds: Sequence[Any], deadline: float | None = None) -> Sequence[Any]:
        """Run one step.

        Args:
            feeds: the fed values, in the order of the signature.
            deadline: when to give up, on the clock of `time.monotonic`, or None.

        Returns:
            The fetched values, which are the caller's own.

        Raises:
            OpError: what an operation raised, naming it.
            DeadlineExceededError: if the deadline passes.
        """
        step = self._step
        if step is None or deadline is not None:
            return self._run_otherwise(feeds, deadline)
        return self._call(step, feeds)

    def _call(self, step: Generated, feeds: Sequence[Any], *deadline: float) -> Sequence[Any]:
        """Run the whole step as generated code."""
        try:
            if self._has_users_kernels:
                found = quietly(step.function, (*deadline, *map(_read_only, feeds)))
                self._check_fetched(found)
                return found  # type: ignore[no-any-return]
            return quietly(step.function, (*deadline, *feeds))  # type: ignore[no-any-return]
        except Exception as error:
            raise self._explained(error, step) from cause_of(error)

    def _run_otherwise(self, feeds: Sequence[Any], deadline: float | None) -> Sequence[Any]:
        if not self._has_run:
            results = self.run_reference(feeds, deadline)
            # Only what passed the reference executor's checks runs without them from now on.
            self._has_run = True
            return results
        if self.is_spared and not self.ran_again:
            self.ran_again = True
            return self.run_reference(feeds, deadline)
        self.ran_again = True
        if self._waits:
            return self.run_regions(feeds, deadline)
        if deadline is None:
            self._step = self._generate(with_deadline=False)
            return self.run(feeds)
        return self._call(self._timed_step, feeds, deadline)

    def run_reference(self, feeds: Sequence[Any], deadline: float | None = None) -> list[Any]:
        """Run one step kernel by kernel."""
        return self._run_program(self.reference, feeds, deadline)

    def run_regions(self, feeds: Sequence[Any], deadline: float | None = None) -> list[Any]:
        """Run one step region by region, with asynchronous kernels between them."""
        program = self.regions if deadline is None else self._timed_regions
        return self._run_program(program, feeds, deadline)

    def _run_program(
        self, program: Program, feeds: Sequence[Any], deadline: float | None
    ) -> list[Any]:
        execution: Execution | InOrder
        if self._waits:
            execution = self.start(program, feeds, deadline)
            if self._executions is not None:
                self._executions.add(execution)
        else:
            execution = InOrder(program, self._values(feeds, deadline), deadline)
        self.advance(execution)
        plan = self._plan
        found = [
            FINISHED[ownership](execution.values[value])
            for value, ownership in zip(plan.fetches, plan.ownership, strict=True)
        ]
        if self._has_users_kernels:
            self._check_fetched(found)
        return found

    def _check_fetched(self, found: Sequence[Any]) -> None:
        """Hold fetched values against what the operations that produced them declare."""
        for value, result in zip(self._plan.fetches, found, strict=True):
            kernel = self._producers.get(value)
            if kernel is not None and not isinstance(result, bytes):
                try:
                    kernel.check_value(value, result)
                except OpError as error:
                    raise error.about(kernel.operation) from None

    @cached_property
    def _producers(self) -> dict[int, Kernel]:
        return {v: k for k in self._units if isinstance(k, Kernel) for v in k.outputs}

    def start(
        self, program: Program, feeds: Sequence[Any], deadline: float | None = None
    ) -> Execution:
        """Begin a step; nothing has run yet."""
        return Execution(program, self._values(feeds, deadline), deadline)

    def _values(self, feeds: Sequence[Any], deadline: float | None) -> list[Any]:
        """A place for each value; those that are known before the step are there."""
        values: list[Any] = [None] * self._plan.values
        values.append(deadline)
        values[: len(feeds)] = map(_read_only, feeds) if self._has_users_kernels else feeds
        for value, known in self._known.items():
            values[value] = known
        return values

    def advance(self, execution: Execution | InOrder) -> None:
        """Run what is ready; an error names the operation that it came from."""
        try:
            quietly(execution.advance)
        except Exception as error:
            raise self._explained(error, execution) from cause_of(error)

    # Programs

    @cached_property
    def reference(self) -> Program:
        """The plan, kernel by kernel."""
        return Program(self._units, self._plan.values, self._plan.fetches)

    @cached_property
    def regions(self) -> Program:
        """The plan as generated regions, and what waits between them."""
        return self._in_regions(with_deadline=False)

    @cached_property
    def _timed_regions(self) -> Program:
        return self._in_regions(with_deadline=True)

    def _in_regions(self, with_deadline: bool) -> Program:
        units = self._units
        order = [*self.late_units.values(), *range(self.size)]
        groups = find_regions(units, order)
        waiting = [i for i in order if units[i].waits]
        unit_of = {member: g for g, members in enumerate(groups) for member in members}
        unit_of |= {member: len(groups) + i for i, member in enumerate(waiting)}
        made: list[Unit] = [
            self._region(members, tuple(_after(units, members, unit_of) - {g}), with_deadline)
            for g, members in enumerate(groups)
        ]
        for index in waiting:
            unit = units[index]
            made.append(_moved(unit, tuple(_after(units, [index], unit_of))))
        return Program(made, self._plan.values, self._plan.fetches)

    def _region(
        self, members: Sequence[int], after: tuple[int, ...], with_deadline: bool
    ) -> Region:
        units, known = self._units, self._known
        inside = {v for i in members for v in units[i].outputs}
        inputs = {v for i in members for v in units[i].inputs if v not in known} - inside
        others = set(range(len(units))).difference(members)
        needed = {v for i in others for v in units[i].inputs} | set(self._plan.fetches)
        outputs = sorted(v for v in needed & inside if v not in known)
        generated = Generated(
            units,
            known,
            members,
            sorted(inputs),
            outputs,
            ["{}"] * len(outputs),
            self._xp,
            with_deadline,
            self._is_wary,
        )
        deadline = self._plan.values if with_deadline else None
        return Region(generated.inputs, generated.outputs, after, generated, deadline)

    @cached_property
    def _timed_step(self) -> Generated:
        return self._generate(with_deadline=True)

    def _generate(self, with_deadline: bool) -> Generated:
        """The whole plan as one function from the feeds to the fetches."""
        plan = self._plan
        finish = []
        for value, ownership in zip(plan.fetches, plan.ownership, strict=True):
            known = self._known.get(value)
            if isinstance(known, np.ndarray) and not known.ndim and not known.dtype.hasobject:
                self._known[value] = known[()]  # NumPy's scalars cannot change: no copy.
                finish.append("{}")
            else:
                finish.append(FINISHED[ownership].__name__ + "({})")
        return Generated(
            self._units,
            self._known,
            range(self.size),
            range(plan.feeds),
            plan.fetches,
            finish,
            self._xp,
            with_deadline,
            self._is_wary,
        )

    # Errors

    def _explained(self, error: Exception, ran: Generated | Execution | InOrder) -> OpError:
        """The error as one that names the operation, its site and what it was given."""
        result = error if isinstance(error, OpError) else as_op_error(error)
        if isinstance(ran, Execution | InOrder):
            unit = ran.current_unit
            if isinstance(unit, Region):
                return self._explained(error, unit.generated)
            values = ran.given()
        else:
            index, values = ran.find_failure(error.__traceback__)
            unit = self._units[index] if index >= 0 else None
        if isinstance(unit, Kernel) and not result.is_of_step:
            result.about(unit.operation, values)
        return result


def _read_only(value: Any) -> Any:
    """A fed array that a user's kernel cannot write to."""
    if not isinstance(value, np.ndarray):
        return value
    view = value.view()
    view.flags.writeable = False
    return view


def _after(units: Sequence[Unit], members: Sequence[int], unit_of: dict[int, int]) -> set[int]:
    return {unit_of[other] for index in members for other in units[index].after}


def _moved(unit: Unit, after: tuple[int, ...]) -> Unit:
    """The unit, with what it waits for numbered anew."""
    moved = copy.copy(unit)
    moved.after = after
    return moved


def deadline_after(timeout: float | None) -> float | None:
    """The moment at which a timeout given in seconds is over.

    Raises:
        InvalidTypeError: if it is not a number.
        InvalidArgumentError: if it is negative.
    """
    if timeout is None:
        return None
    if not isinstance(timeout, int | float | np.number):
        raise InvalidTypeError(f"timeout is a number of seconds, not {timeout!r}")
    if not timeout >= 0:
        raise InvalidArgumentError(f"timeout is a number of seconds from 0 on, not {timeout}")
    return time.monotonic() + float(timeout)
