"""What a session's resources hold, by the operations that own them.

A training is saved and put back between two steps: the gates of what is written are closed then.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from contextlib import ExitStack, suppress
from typing import Any

from flowbook.exec.checkpoints.snapshot import Snapshot, State
from flowbook.exec.devices.device import Device
from flowbook.exec.engine.initialisation import Initialisation
from flowbook.exec.queue_threads import Feeding
from flowbook.exec.resources.gate import Gate, all_closed
from flowbook.exec.resources.kinds import Definition, Lockable, Stateful
from flowbook.exec.resources.session_stores import SessionStores
from flowbook.exec.resources.waiting import moving
from flowbook.graph.building.graph import Graph
from flowbook.graph.model.errors import DataLossError, FailedPreconditionError, OpError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.resource_key import ResourceKey
from flowbook.graph.model.touch import VARIABLE
from flowbook.graph.ops.state.variables import Variable


class SessionState:
    """The state of one session; see `Resources`.

    Args:
        graph: the session's.
        stores: where its resources live.
        initialisation: gives its variables their initial values.
        feeding: what fills its queues.
        held: the keys of the variables that have values.
        first: the device where what was not placed will live.
    """

    def __init__(
        self,
        graph: Graph,
        stores: SessionStores,
        initialisation: Initialisation,
        feeding: Feeding,
        held: Set[ResourceKey],
        first: Device,
    ) -> None:
        self._graph = graph
        self._stores = stores
        self._initialisation = initialisation
        self._feeding = feeding
        self._held = held
        self._first = first
        self._owners: dict[ResourceKey, weakref.ref[Operation]] = {}

    def values(self) -> dict[ResourceKey, Any]:
        """The values of the session's own variables now, by their keys; they stay as they are."""
        found = {}
        for key in [each for each in list(self._held) if not each.container]:
            resource = self._stores.find(key)
            if resource is not None:
                with suppress(FailedPreconditionError):  # Another thread may drop it meanwhile.
                    found[key] = resource.fetch()
        return found

    def take(self, values: Mapping[Operation, Any]) -> None:
        """Give variables values, each named by its handle's operation."""
        for operation, value in values.items():
            self._variable(operation).put(value)

    def snapshot(self, variables: Sequence[Variable], deadline: float | None) -> Snapshot:
        """What variables hold between two steps, and what else a training goes on from."""
        owners = self._owners_by_key()
        gates = self._gates([v.op for v in variables])
        values: dict[Operation, Any] | None = None
        while values is None:
            epoch = self._stores.epoch
            self._initialisation.prepare_for([v.value.op for v in variables], (), {}, deadline)
            with all_closed(gates, deadline, "variables are saved"):
                if self._stores.may_have_lost_since(epoch):
                    continue
                # Views, each a lease: whoever writes meanwhile writes elsewhere.
                values = {v.op: self._variable(v.op).fetch() for v in variables}
                states = self._states(owners)
        devices = {op: self._home(op).name for op in values}
        return Snapshot(values, devices, self._stores.entropy, states)

    def _states(self, owners: Mapping[ResourceKey, Operation]) -> dict[str, State]:
        """The states of resources at one moment, by the names of what owns them."""
        found = {
            owner: resource
            for key, owner in owners.items()
            if isinstance(resource := self._stores.find(key), Stateful)
        }
        with ExitStack() as still:
            # In one order, as another session that shares some may do the same.
            for lock in sorted([r.lock for r in found.values() if isinstance(r, Lockable)], key=id):
                still.enter_context(lock)
            still.enter_context(moving)
            return {
                owner.name: State(owner.op_def.owns, resource.state())
                for owner, resource in found.items()
                if owner.op_def.owns
            }

    def _home(self, operation: Operation) -> Device:
        """Where what an operation owns lives, or will if nobody asks for anything else."""
        assert operation.key is not None
        return self._stores.homes.get(operation.key, self._first)

    def put(self, snapshot: Snapshot, deadline: float | None) -> None:
        """Give variables values, and the rest its state, between two steps."""
        owners = [
            self._graph.get_operation_by_name(name)
            for name in snapshot.states
            if self._graph.has_operation(name)  # Else the graph has become another one.
        ]
        if snapshot.entropy is not None:
            owners += [op for op in self._stateful() if op.name not in snapshot.states]
        # Outside of the gate: what fills queues may wait there.
        with (
            self._feeding.stopped(owners) as holding,
            all_closed(self._gates(snapshot.values), deadline, "variables are restored"),
        ):
            if snapshot.entropy is not None:
                self._stores.entropy = snapshot.entropy
            self._set_states(owners, snapshot.states, holding)
            self.take(snapshot.values)

    def _stateful(self) -> list[Operation]:
        """What owns those of the session's own resources that have begun and have a state."""
        return [
            op
            for key, op in self._owners_by_key().items()
            if not key.container and isinstance(self._stores.find(key), Stateful)
        ]

    def _set_states(
        self,
        owners: Sequence[Operation],
        states: Mapping[str, State],
        holding: Collection[Operation],
    ) -> None:
        """Have resources go on from states: all of them, or none if there is one that is none.

        Args:
            owners: what owns the resources.
            states: of the resources, by the names of these. What has none had not begun.
            holding: what owns the queues and streams with what was read ahead, which is dropped.
        """
        found: list[tuple[Stateful, Any]] = []
        for owner in owners:
            kind, key = owner.op_def.owns, owner.key
            if kind is None or key is None or states.get(owner.name, (kind,))[0] != kind:
                continue
            self.watch(owner, key)
            definition = Definition(kind, owner.attributes)
            # What is no state is found out before any resource has lost its own.
            trial: Stateful = self._stores.unused(key, definition)
            given = states.get(owner.name)
            if given is not None:
                try:
                    trial.set_state(given.state)
                except OpError:  # It says what is wrong, such as that it is another kind's.
                    raise
                except (TypeError, ValueError):
                    raise DataLossError(
                        f"the checkpoint has a state of {owner.name!r} that is none"
                    ) from None
            state = given.state if given else trial.state()
            found.append((self._stores.of(key, definition), state))
        self._start_over(holding)
        for resource, state in found:
            resource.set_state(state)

    def check_owners(self, operations: Iterable[Operation]) -> None:
        """Raise the error of the operation whose resource is something else, if there is one."""
        for operation in operations:
            kind, key = operation.op_def.owns, operation.key
            if kind is not None and key is not None:
                try:
                    self._stores.of(key, Definition(kind, operation.attributes))
                except OpError as error:
                    raise error.about(operation) from None

    def _start_over(self, holding: Iterable[Operation]) -> None:
        """Have queues and streams of the session's own begin with what there is first."""
        for owner in holding:
            key = owner.key
            if key is not None and not key.container and (found := self._stores.find(key)):
                found.start_over()

    def reset(self) -> None:
        """Have all that is the session's own begin afresh."""
        with (
            self._feeding.stopped(self._graph.stateful_operations()) as holding,
            all_closed(self._stores.gates([""]), None, "a session is reset"),
        ):
            self._start_over(holding)
            self._stores.reset()

    def _gates(self, variables: Iterable[Operation]) -> Sequence[Gate]:
        return self._stores.gates([v.key.container for v in variables if v.key is not None])

    def _owners_by_key(self) -> dict[ResourceKey, Operation]:
        """For each resource an operation that owns it: of several the one that was built first."""
        latest_first = reversed(self._graph.stateful_operations())
        return {op.key: op for op in latest_first if op.key is not None}

    def _variable(self, operation: Operation) -> Any:
        assert operation.key is not None
        self.watch(operation, operation.key)
        return self._stores.of(operation.key, Definition(VARIABLE.name, operation.attributes))

    def watch(self, operation: Operation, key: ResourceKey) -> None:
        """Drop what an operation alone owns when nothing refers to the operation any more."""
        if key not in self._owners and not key.is_shared:
            stores = weakref.ref(self._stores)

            def release(_: object) -> None:
                there = stores()
                if there is not None:
                    there.release(key)

            self._owners[key] = weakref.ref(operation, release)
