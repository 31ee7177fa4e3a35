"""Variables get their initial values on first use, in a step of its own.

Before a step runs, the variables whose values it needs are initialised, each once, under its own
lock, those first that its initial value reads. Before an update changes a variable, those whose
initial value reads it are initialised too, so that they see the value from before.
"""

from __future__ import annotations

import itertools
import operator
import threading
import time
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from graphlib import TopologicalSorter
from typing import Any, Protocol

from flowbook.exec.engine.executable import Executable
from flowbook.exec.engine.executor import LONGEST_WAIT
from flowbook.exec.engine.instrument import Signature
from flowbook.exec.resources.container import Resources, forget
from flowbook.graph.building.graph import Graph
from flowbook.graph.definition.op_def import Effects
from flowbook.graph.model.errors import DeadlineExceededError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.state.variables import Variable

# An interrupt that comes just before a thread goes to sleep is noticed when it wakes up.
_take = operator.methodcaller("acquire", True, LONGEST_WAIT)
_release = operator.methodcaller("release")
_serial = operator.attrgetter("serial")


class Initialiser(Protocol):
    """Who runs initialising steps, and holds what they initialise."""

    graph: Graph
    resources: Resources

    def executable(self, signature: Signature) -> Executable:
        """What runs a signature."""

    def known_executables(self) -> Sequence[Executable]:
        """All executables that anyone may still run."""


class Initialisation:
    """Which variables need which, and whether they have their values.

    Args:
        master: what runs initialising steps.
        is_automatic: whether to initialise at all; if not, a read without a value is an error.
    """

    def __init__(self, master: Initialiser, is_automatic: bool) -> None:
        self._master = master
        self._is_automatic = is_automatic
        self._readers: dict[Operation, list[Operation]] = {}
        self._seen = 0
        self._retirements = master.graph.retirements
        self._forgets = master.graph.values.forgets
        self._epoch = 0
        self._lock = threading.Lock()
        master.resources.on_lost_values(self.start_over)

    def extend(self) -> None:
        """Take note of new variables whose initial values read others, and of values given up.

        Steps prepared before may update what a new variable's initial value reads.
        """
        graph = self._master.graph
        forgets = graph.values.forgets
        if forgets != self._forgets:
            for operation in graph.values.forgotten_since(self._forgets):
                resource = self._master.resources.find(operation)
                if resource is not None:
                    forget(resource)
            self._forgets = forgets
        if not self._is_automatic:
            return
        if graph.retirements != self._retirements:
            self._retirements = graph.retirements
            self._readers, self._seen = {}, 0
        new = graph.variables_registered(self._seen)
        readers = {variable.op: _handles_read(variable.op, ()) for variable in new}
        self._seen += len(new)
        for reader, handles in readers.items():
            for handle in handles:
                self._readers.setdefault(handle, []).append(reader)
        if any(readers.values()):
            self.start_over()

    def start_over(self) -> None:
        """Let every executable ask again, before its next run, what has to be initialised."""
        with self._lock:
            self._epoch += 1
            for executable in self._master.known_executables():
                executable.is_initialized = False

    def prepare_for(
        self, executable: Executable, given: Mapping[Tensor, Any], deadline: float | None
    ) -> None:
        """Initialise what a step needs; afterwards the executable says that nothing is left."""
        epoch = self._epoch
        uses = _uses(executable)
        for operation in uses:
            # A shared container may hold by now what does not fit.
            self._master.resources.of(operation.inputs[0].op)
        if self._is_automatic:
            self._initialize(self._needed(executable, uses), given, deadline)
        with self._lock:
            if epoch == self._epoch:
                executable.is_initialized = True

    def _needed(self, executable: Executable, uses: Sequence[Operation]) -> Iterable[Operation]:
        """The variables that must have values before the step, each by its handle's operation."""
        fed = set(executable.prepared.feeds)
        assigned = _assigned(uses)
        needed: dict[Operation, None] = {}
        for operation in uses:
            handle = operation.inputs[0]
            if not operation.op_def.needs_value or _is_fed_read(operation, fed):
                continue
            if handle in assigned and _follows_assignment(operation, assigned[handle], uses):
                continue
            needed[handle.op] = None
            if operation.op_def.effects is Effects.WRITES:
                needed.update(dict.fromkeys(self._readers.get(handle.op, ())))
        return needed

    def _initialize(
        self, handles: Iterable[Operation], given: Mapping[Tensor, Any], deadline: float | None
    ) -> None:
        resources = self._master.resources
        missing: dict[Operation, list[Operation]] = {}
        stack = list(handles)
        while stack:
            handle = stack.pop()
            if handle not in missing and not resources.of(handle).is_initialized:
                missing[handle] = _handles_read(handle, given)
                stack.extend(missing[handle])
        if not missing:
            return
        order = TopologicalSorter(
            {h: [r for r in read if r in missing] for h, read in missing.items()}
        )
        order.prepare()
        while order.is_active():
            level = order.get_ready()
            self._initialize_together(level, given, deadline)
            order.done(*level)

    def _initialize_together(
        self, handles: Sequence[Operation], given: Mapping[Tensor, Any], deadline: float | None
    ) -> None:
        """Initialise variables that do not read one another, unless another thread has done it."""
        of = self._master.resources.of
        # All threads, whatever their graphs, take the locks in the same order.
        locks = [r.initializing for r in sorted({of(h) for h in handles}, key=_serial)]
        held: list[bool] = []
        # Taking a lock and noting it, and giving all back, are single steps of C: an interrupt
        # comes before or after them.
        releases = map(_release, itertools.compress(locks, held))
        try:
            for place, lock in enumerate(locks):
                while len(held) == place:
                    if deadline is not None and time.monotonic() > deadline:
                        raise DeadlineExceededError(
                            "another step was initialising the same variables for all of the time "
                            "that the timeout allows"
                        )
                    held.extend(filter(None, map(_take, (lock,))))
            missing = [h for h in handles if not of(h).is_initialized]
            if missing:
                self._run_initializers([Variable.of(h) for h in missing], given, deadline)
        finally:
            deque(releases, maxlen=0)

    def _run_initializers(
        self, variables: list[Variable], given: Mapping[Tensor, Any], deadline: float | None
    ) -> None:
        targets = tuple([variable.initializer for variable in variables])
        executable = self._master.executable(Signature((), targets, tuple(given)))
        executable.run(list(given.values()), deadline)


def _uses(executable: Executable) -> list[Operation]:
    """The operations of a step that read or write variables."""
    kinds = (Effects.READS, Effects.WRITES)
    return [op for op in executable.operations if op.op_def.effects in kinds]


def _is_fed_read(operation: Operation, fed: Collection[Tensor]) -> bool:
    """Whether it reads a variable whose value the run is given."""
    return operation.op_def.reads_as is not None and operation.inputs[0] in fed


def _assigned(uses: Iterable[Operation]) -> dict[Tensor, int]:
    """For each handle that a plain Assign writes to the first such operation's id."""
    assigned: dict[Tensor, int] = {}
    for operation in uses:
        if operation.op_def.effects is Effects.WRITES and not operation.op_def.needs_value:
            handle = operation.inputs[0]
            assigned[handle] = min(operation.id, assigned.get(handle, operation.id))
    return assigned


def _follows_assignment(operation: Operation, assigned: int, uses: Iterable[Operation]) -> bool:
    """Whether it surely runs after the assignment, so that it does not need the value before."""
    if operation.op_def.effects is Effects.WRITES:
        return assigned < operation.id
    handle = operation.inputs[0]
    writes = {
        other
        for other in uses
        if other.op_def.effects is Effects.WRITES
        and other.inputs[0] is handle
        and other.id >= assigned
    }
    return any(other in writes for other in _ancestors([operation], ()))


def _handles_read(handle: Operation, given: Collection[Tensor]) -> list[Operation]:
    """The variables that a variable's initial value reads, in a run that is given some tensors."""
    initial = Variable.of(handle).initial_value
    if initial in given:
        return []
    return list(
        dict.fromkeys(
            operation.inputs[0].op
            for operation in _ancestors([initial.op], given)
            if operation.op_def.effects is Effects.READS
            and operation.op_def.needs_value
            and not _is_fed_read(operation, given)
        )
    )


def _ancestors(operations: Iterable[Operation], given: Collection[Tensor]) -> Iterable[Operation]:
    """The operations, and all that they need in a run that is given some tensors."""
    stack = list(operations)
    seen = set(stack)
    while stack:
        operation = stack.pop()
        yield operation
        needed = [t.op for t in operation.inputs if t not in given]
        for other in (*needed, *operation.control_inputs):
            if other not in seen:
                seen.add(other)
                stack.append(other)
