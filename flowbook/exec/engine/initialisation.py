"""Variables get their initial values on first use, in a step of its own.

Before a step runs, the variables whose values it needs are initialised, each once, those first that
its initial value reads. Before an update changes a variable, those whose initial value reads it are
initialised too, so that they see the value from before.

A step claims a variable before it initialises it: one compare-and-set where the variable lives. No
lock is held while initial values are computed. Whoever finds a variable claimed goes on with the
others, and waits last; so nobody waits while he holds what others wait for, except that a variable
whose initial value runs a user's Python code is claimed alone, as that may wait for anything.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextvars import copy_context
from graphlib import TopologicalSorter
from typing import Any, Protocol

from flowbook.exec.engine.abandoned import LONGEST_WAIT
from flowbook.exec.resources.kinds import Definition
from flowbook.exec.resources.session_stores import SessionStores
from flowbook.exec.resources.variable import own_claims
from flowbook.exec.signature.signature import Signature
from flowbook.graph.building.graph import Graph
from flowbook.graph.model.ancestors import closing, taken_by
from flowbook.graph.model.errors import (
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    OpError,
)
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.resource_key import ResourceKey, key_touched, touched_by
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import VARIABLE, Access, Touch
from flowbook.graph.ops.state.variables import Variable


class Initialiser(Protocol):
    """Who runs initialising steps, and holds what they initialise."""

    graph: Graph
    stores: SessionStores

    def run_initializers(
        self, signature: Signature, feeds: Sequence[Any], deadline: float | None
    ) -> None:
        """Run a step that initialises variables; it asks for no initialisation of its own."""


class Initialisation:
    """Which variables need which, and whether they have their values.

    Args:
        master: what runs initialising steps.
        is_automatic: whether to initialise at all; if not, a read without a value is an error.
    """

    def __init__(self, master: Initialiser, is_automatic: bool) -> None:
        self._master = master
        self._stores = master.stores
        self._is_automatic = is_automatic
        self._readers: dict[ResourceKey | None, list[Operation]] = {}
        self._seen = 0
        self._retirements = master.graph.retirements
        self._forgets = master.graph.values.forgets

    def extend(self) -> None:
        """Take note of new variables whose initial values read others, and of values given up.

        Steps prepared before may update what a new variable's initial value reads.
        """
        graph = self._master.graph
        forgets = graph.values.forgets
        if forgets != self._forgets:
            for operation in graph.values.forgotten_since(self._forgets):
                assert operation.key is not None
                self._stores.forget(operation.key)
            self._forgets = forgets
        if not self._is_automatic:
            return
        if graph.retirements != self._retirements:
            self._retirements = graph.retirements
            self._readers, self._seen = {}, 0
        if len(graph.members.variables) == self._seen:
            return
        new = graph.variables_registered(self._seen)
        readers = {variable.op: _known_to_read(variable.op) for variable in new}
        self._seen += len(new)
        for reader, read in readers.items():
            for other in read:
                self._readers.setdefault(other.key, []).append(reader)
        if any(readers.values()):
            self._stores.start_over()

    def prepare_for(
        self,
        operations: Sequence[Operation],
        fed: Collection[Tensor],
        given: Mapping[Tensor, Any],
        deadline: float | None,
    ) -> None:
        """Initialise what a step needs.

        Args:
            operations: those that the step needs and that own or touch something.
            fed: what it is fed with.
            given: the values of those feeds that are there; the initialising step sees them too.
            deadline: when to give up.
        """
        uses = list(_uses(operations))
        if not uses:
            return
        for _, variable in uses:
            # A shared container may hold by now what does not fit.
            self._resource(variable)
        if self._is_automatic:
            self._initialize(self._needed(uses, operations, fed), given, deadline)

    def may_be_outdated(self, error: OpError, epoch: int) -> bool:
        """Whether a step fails for want of a value that was there when this was asked.

        Args:
            error: what an operation failed with.
            epoch: that of the stores when this was asked.
        """
        return (
            self._is_automatic
            and isinstance(error, FailedPreconditionError)
            and error.operation is not None
            and any(_uses([error.operation]))
            and self._stores.may_have_lost_since(epoch)
        )

    def _resource(self, variable: Operation) -> Any:
        assert variable.key is not None
        return self._stores.of(variable.key, Definition(VARIABLE.name, variable.attributes))

    def _needed(
        self,
        uses: Sequence[tuple[Operation, Operation]],
        operations: Sequence[Operation],
        fed: Collection[Tensor],
    ) -> Iterable[Operation]:
        """The variables that must have values before the step, each by one that owns it."""
        assigned = _assigned(uses, operations)
        needed: dict[ResourceKey | None, Operation] = {}
        for operation, variable in uses:
            if not operation.op_def.needs_value or _is_fed_read(operation, variable, fed):
                continue
            key = variable.key
            if key in assigned and _follows_assignment(operation, key, assigned[key], uses):
                continue
            # The initial value is that of the newest definition.
            if key not in needed or needed[key].retired:
                needed[key] = variable
            if operation.op_def.access is Access.WRITE:
                for reader in self._readers.get(key, ()):
                    needed.setdefault(reader.key, reader)
        return needed.values()

    def _initialize(
        self, variables: Iterable[Operation], given: Mapping[Tensor, Any], deadline: float | None
    ) -> None:
        missing: dict[Operation, list[Operation]] = {}
        stack = list(variables)
        while stack:
            variable = stack.pop()
            if variable not in missing and not self._resource(variable).is_initialized:
                missing[variable] = _variables_read(variable, given)
                stack.extend(missing[variable])
        if not missing:
            return
        order = TopologicalSorter(
            {v: [r for r in read if r in missing] for v, read in missing.items()}
        )
        order.prepare()
        while order.is_active():
            level = order.get_ready()
            self._initialize_level(level, given, deadline)
            order.done(*level)

    def _initialize_level(
        self, variables: Sequence[Operation], given: Mapping[Tensor, Any], deadline: float | None
    ) -> None:
        """Initialise variables that do not read one another, or see that others have done it."""
        alone = [v for v in variables if _runs_users_code(v, given)]
        groups = [[v for v in variables if v not in alone], *[[v] for v in alone]]
        missing = [group for group in groups if group]
        while missing:
            for group in missing:
                self._initialize_claimed(group, given, deadline)
            missing = [
                left
                for group in missing
                if (left := [v for v in group if not self._resource(v).is_initialized])
            ]
            for variable in [v for group in missing for v in group]:
                self._wait_for(variable, deadline)

    def _initialize_claimed(
        self, variables: Sequence[Operation], given: Mapping[Tensor, Any], deadline: float | None
    ) -> None:
        """Initialise those variables that nobody else is initialising."""
        claim = threading.Event()
        try:
            claimed = [v for v in variables if self._resource(v).claim(claim)]
            if claimed:
                targets = tuple([Variable.of(variable).initializer for variable in claimed])
                signature = Signature((), targets, tuple(given))
                run = self._master.run_initializers
                copy_context().run(_holding, claim, run, signature, list(given.values()), deadline)
        finally:
            claim.set()

    def _wait_for(self, variable: Operation, deadline: float | None) -> None:
        """Wait until no other step is initialising a variable."""
        # An interrupt that comes just before a thread goes to sleep is noticed when it wakes up.
        while not self._resource(variable).wait_for_claim(LONGEST_WAIT):
            if deadline is not None and time.monotonic() > deadline:
                raise DeadlineExceededError(
                    "another step was initialising the same variables for all of the time "
                    "that the timeout allows"
                )


def _holding(claim: threading.Event, function: Callable[..., None], *arguments: Any) -> None:
    """Call a function that initialises what is claimed; in a context of its own."""
    own_claims.set((*own_claims.get(), claim))
    function(*arguments)


def _uses(operations: Iterable[Operation]) -> Iterator[tuple[Operation, Operation]]:
    """The operations that read or write variables, each with the variable's."""
    for operation in operations:
        if operation.op_def.access in (Access.READ, Access.WRITE):
            owner = touched_by(operation)
            if owner is not None and owner.op_def.owns == VARIABLE.name:
                yield operation, owner


def _is_fed_read(operation: Operation, variable: Operation, fed: Collection[Tensor]) -> bool:
    """Whether it reads a variable whose value the run is given."""
    return operation.op_def.reads_as is not None and variable.outputs[0] in fed


def _assigned(
    uses: Iterable[tuple[Operation, Operation]], operations: Sequence[Operation]
) -> dict[ResourceKey | None, int]:
    """For each variable that a plain Assign surely writes first the first such operation's id.

    One in a branch, or in a loop, may never run. One behind what is taken from a queue may come
    after other writes, if the step itself puts something there.
    """
    assigned: dict[ResourceKey | None, int] = {}
    given = {key for touch, key in _met(operations) if touch.gives}
    for operation, variable in uses:
        op_def = operation.op_def
        if op_def.access is not Access.WRITE or op_def.needs_value or operation.context is not None:
            continue
        before = _met(_ancestors([operation], ())) if given else ()
        if not any(touch.takes and _may_be_among(key, given) for touch, key in before):
            key = variable.key
            assigned[key] = min(operation.id, assigned.get(key, operation.id))
    return assigned


def _met(operations: Iterable[Operation]) -> Iterator[tuple[Touch, ResourceKey | None]]:
    """What operations do to the resources at which they meet, with the keys of these.

    One of several, which the run chooses, has none.
    """
    for operation in operations:
        touch = operation.op_def.touches
        if touch is not None and touch.access is Access.WAIT:
            yield touch, key_touched(operation)


def _may_be_among(key: ResourceKey | None, keys: Collection[ResourceKey | None]) -> bool:
    return key is None or key in keys or None in keys


def _follows_assignment(
    operation: Operation,
    key: ResourceKey | None,
    assigned: int,
    uses: Iterable[tuple[Operation, Operation]],
) -> bool:
    """Whether it surely runs after the assignment, so that it does not need the value before."""
    if operation.op_def.access is Access.WRITE:
        return assigned < operation.id
    writes = {
        other
        for other, written in uses
        if other.op_def.access is Access.WRITE and written.key == key and other.id >= assigned
    }
    # What an iteration takes from the one before, the first one does not.
    return any(other in writes for other in _ancestors([operation], (), goes_round=False))


def _variables_read(variable: Operation, given: Collection[Tensor]) -> list[Operation]:
    """The variables that a variable's initial value reads, in a run that is given some tensors."""
    initial = Variable.of(variable).initial_value
    if initial in given:
        return []
    return list(
        dict.fromkeys(
            owner
            for operation, owner in _uses(_ancestors([initial.op], given))
            if operation.op_def.access is Access.READ
            and operation.op_def.needs_value
            and not _is_fed_read(operation, owner, given)
        )
    )


def _known_to_read(variable: Operation) -> list[Operation]:
    """The variables that a variable's initial value reads; none where nobody can say which."""
    try:
        return _variables_read(variable, ())
    except InvalidArgumentError:
        return []  # It fails the runs that need it, and no others.


def _runs_users_code(variable: Operation, given: Collection[Tensor]) -> bool:
    """Whether a variable's initial value runs a user's Python code."""
    initial = Variable.of(variable).initial_value
    return initial not in given and any(
        operation.op_def.runs_users_code for operation in _ancestors([initial.op], given)
    )


def _ancestors(
    operations: Iterable[Operation], given: Collection[Tensor], goes_round: bool = True
) -> Iterable[Operation]:
    """The operations, and all that they need in a run that is given some tensors.

    Args:
        operations: where to begin.
        given: the tensors.
        goes_round: whether what an iteration of a loop needs of the one before belongs to it.
    """
    stack = list(operations)
    seen = set(stack)
    while stack:
        operation = stack.pop()
        yield operation
        needed = [t.op for t in taken_by(operation) if t not in given]
        before = closing(operation) if goes_round else ()
        for other in (*needed, *before, *operation.control_inputs):
            if other not in seen:
                seen.add(other)
                stack.append(other)
