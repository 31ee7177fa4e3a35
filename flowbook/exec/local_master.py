"""The master of this process: prepares signatures, runs them, and keeps what they need.

It initialises variables before the first step that needs them.
"""

from __future__ import annotations

import secrets
import threading
import weakref
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from flowbook.exec.checkpoints.snapshot import Snapshot, State
from flowbook.exec.devices.device import Device, DeviceDescription
from flowbook.exec.devices.local import local_devices
from flowbook.exec.engine.code.tally import Ran, Tallies
from flowbook.exec.engine.executor import Executions
from flowbook.exec.engine.initialisation import Initialisation
from flowbook.exec.engine.joint import Joint
from flowbook.exec.engine.runner import Runner, Stage
from flowbook.exec.exhausted import holders
from flowbook.exec.feeding import Feeding
from flowbook.exec.placement.decisions import Placement, Settled
from flowbook.exec.placement.measurements import Measured, Measurements
from flowbook.exec.placement.search import Search
from flowbook.exec.plan.explaining import explain, explain_found
from flowbook.exec.plan.explanation import Explanation
from flowbook.exec.plan.failure import Failure, StepFailed
from flowbook.exec.plan.instrument import Instrument
from flowbook.exec.plan.pipeline import Growing, Lossy, Prepared, grow
from flowbook.exec.plan.replacing import MovedState, Replacement, settle
from flowbook.exec.resources.gate import Gate, all_closed
from flowbook.exec.resources.kinds import Definition, Stateful
from flowbook.exec.resources.random_state import Draws
from flowbook.exec.resources.store import Store, usable_on
from flowbook.exec.resources.variable import VariableResource
from flowbook.exec.signature.signature import Signature
from flowbook.exec.waits import Waiter, Waits
from flowbook.graph.building.graph import Graph
from flowbook.graph.definition.op_def import HOST
from flowbook.graph.model.errors import (
    DataLossError,
    FailedPreconditionError,
    InvalidArgumentError,
    OpError,
    ResourceExhaustedError,
)
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.resource_key import ResourceKey
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.state.variables import Variable

# Programs are kept while they have no more nodes than this together, the latest in any case. Those
# that ran only once go first, so that a graph which grows under a loop drops its past, and not what
# a training loop comes back to; beyond the second number everything goes.
KEPT_NODES = 100_000
KEPT_NODES_IN_USE = 1_000_000

# What a program costs besides its nodes, in nodes.
OVERHEAD = 20

# So many of the latest programs are kept for what a new signature may begin with.
MOST_BASES = 8


class LocalMaster:
    """Runs a graph in this process.

    Attributes:
        graph: the graph.
        store: variables and random states, with the seed of random operations without one.
        feeding: what fills its queues.
        drops: how many programs were dropped.
    """

    def __init__(
        self,
        graph: Graph,
        auto_initialize: bool,
        devices: Sequence[Device] | None = None,
        soft_placement: bool = False,
        lossy_transfer: bool | Sequence[Tensor | str] = False,
    ) -> None:
        self.graph = graph
        self.drops = 0
        self._devices = list(devices or local_devices())
        self._is_soft = soft_placement
        self._lossy = lossy_transfer
        self._moved: weakref.WeakKeyDictionary[Operation, Device] = weakref.WeakKeyDictionary()
        self._measured = Measurements()
        self._held = graph.values.held_by(self)
        host = next(device for device in self._devices if device.kind in HOST)
        self.store = Store(secrets.randbits(63), self._note_value, host)
        self._lock = threading.RLock()
        self._prepared: dict[Any, Prepared] = {}
        self._runners: dict[Prepared, Runner | Joint] = {}
        self._growing: deque[Growing] = deque(maxlen=MOST_BASES)
        self._owners: dict[ResourceKey, weakref.ref[Operation]] = {}
        self._nodes = 0
        self._retirements = graph.retirements
        self._initialisation = Initialisation(self, auto_initialize)
        self._executions = Executions()
        self._tallies = Tallies()
        self.feeding = Feeding(self)

    def extend(self) -> None:
        """Take what the graph gained, and drop what it lost, since the last time."""
        with self._lock:
            self._initialisation.extend()
            if self._retirements != self.graph.retirements:
                self._retirements = self.graph.retirements
                self.feeding.drop_retired()
                for key, prepared in list(self._prepared.items()):
                    if any(op.retired for op in prepared.operations):
                        self._drop(key)

    # Preparing

    def prepare(self, signature: Signature, instruments: Sequence[Instrument] = ()) -> Prepared:
        """A signature made ready to run, its program rewritten by instruments.

        Raises:
            InvalidArgumentError: if a needed placeholder is not fed, or a device request cannot be
                met.
        """
        key = signature, tuple(instruments)
        with self._lock:
            found = self._prepared.get(key)
            if found is None:
                base = None if instruments else self._base_of(signature)
                how = base, self._settled, self._is_soft, self._lossy_tensors
                growing = grow(signature, self._devices, *how)
                found = growing.prepared
                if instruments:
                    found = _rewritten(found, instruments)
                else:
                    self._growing.append(growing)
                begun = self._runners.get(base.prepared) if base is not None else None
                if len(self._devices) > 1:
                    self._settle(found)
                runner = self._runners[found] = self._runner(found, begun)
                if base is not None and begun is not None:
                    runner.seen = begun.epoch, len(base.prepared.stateful)
                self._prepared[key] = found
                self._nodes += _size(found)
                self._make_room(key)
            return found

    def explain(
        self,
        signature: Signature,
        shapes: Mapping[Tensor, Shape],
        devices: Sequence[Device] | None = None,
    ) -> Explanation:
        """The plan of a signature for these devices, or others; nothing is run or kept."""
        is_soft, measured, lossy = self._is_soft, self._measured, self._lossy_tensors
        if devices is not None:
            return explain(signature, shapes, devices, Settled(), is_soft, measured, False, lossy)
        with self._lock:
            settled = self._settled
        how = settled, is_soft, measured, True, lossy
        return explain(signature, shapes, self._devices, *how)

    def search(
        self, signature: Signature, shapes: Mapping[Tensor, Shape], search: Search
    ) -> Sequence[tuple[str, Explanation]]:
        """The plan of a signature as it is placed now, and those that a search finds."""
        with self._lock:
            settled = self._settled
        known = self._is_soft, self._measured
        how = settled, *known, search, self._lossy_tensors
        return explain_found(signature, shapes, self._devices, *how)

    @property
    def _settled(self) -> Settled:
        """What holds already of placement."""
        return Settled(dict(self.store.homes), dict(self._moved))

    def learn(self, measured: Iterable[tuple[Operation, str, Measured]]) -> None:
        """Predict from now on by what operations took on devices, which are given by name."""
        kinds = {device.name: device.kind for device in self._devices}
        with self._lock:
            for operation, device, found in measured:
                self._measured.add(operation, kinds[device], found)

    @property
    def moved(self) -> Mapping[Operation, str]:
        """The devices, by name, of the operations that were put somewhere."""
        return {operation: device.name for operation, device in list(self._moved.items())}

    def replace(
        self, moves: Mapping[Operation, str | None], asked: Signature, deadline: float | None
    ) -> Replacement:
        """Have operations run on other devices, given by name, and what they touch live there."""
        devices = {device.name: device for device in self._devices}
        moved = {op: devices[name] for op, name in moves.items() if name is not None}
        with self._lock:
            signatures = [prepared.signature for prepared in self._prepared.values()]
            placed = [each for each in dict.fromkeys([asked, *signatures]) if not any(each.is_late)]
            before = self._settled
            kept = {op: device for op, device in before.moved.items() if op not in moves}
            settled = before._replace(moved={**kept, **moved})
            homes = settle(moved, placed, self._devices, settled, self._is_soft)
        # Not under the lock: the steps that are waited for may need it.
        gates = self.store.gates(["", *[key.container for key in homes]])
        with all_closed(gates, deadline), self._lock:
            lived = self._settled.homes
            gone = {key: home for key, home in homes.items() if lived.get(key, home) is not home}
            self._move(homes, {key: lived[key] for key in gone})
            state = [self._moved_state(key, lived[key], home) for key, home in gone.items()]
            self._moved.update(moved)
            for operation in moves.keys() - moved.keys():
                self._moved.pop(operation, None)
            elsewhere: dict[str, str] = {}
            dropped = 0
            for key, prepared in list(self._prepared.items()):
                if any(op in moves or op.key in gone for op in prepared.operations):
                    elsewhere |= _elsewhere(prepared.placement, moved)
                    self._drop(key)
                    dropped += 1
        return Replacement(elsewhere, state, dropped)

    def _move(
        self, homes: Mapping[ResourceKey, Device], before: Mapping[ResourceKey, Device]
    ) -> None:
        """Have resources live on other devices, all of them or none."""
        try:
            for key, home in homes.items():
                resource = self.store.find(key)
                if key.container and resource is not None and not usable_on(resource, home):
                    raise InvalidArgumentError(
                        f"{key.name!r} stays on {resource.device.name}: sessions share it in the "
                        f"container {key.container!r}",
                        hint="leave what uses it there too",
                    )
                self.store.settle(key, home)
        except BaseException:
            for key, home in before.items():
                self.store.settle(key, home)
            raise

    def _moved_state(self, key: ResourceKey, source: Device, destination: Device) -> MovedState:
        """What is told of a resource that lives elsewhere now."""
        resource, size = self.store.find(key), 0
        if isinstance(resource, VariableResource) and resource.is_initialized:
            size = resource.bytes
        return MovedState(key.name, source.name, destination.name, size)

    @property
    def _lossy_tensors(self) -> Lossy:
        """What may be sent with half of its bits; what is not built yet is not among it."""
        if isinstance(self._lossy, bool):
            return self._lossy
        graph = self.graph
        named = [each for each in self._lossy if not isinstance(each, str)]
        for name in [each for each in self._lossy if isinstance(each, str)]:
            operation, _, port = name.partition(":")
            if graph.has_operation(operation):
                named.append(graph.get_tensor_by_name(f"{operation}:{port or 0}"))
        return named

    def _runner(self, prepared: Prepared, begun: Runner | Joint | None = None) -> Runner | Joint:
        for operation in prepared.stateful:
            if operation.key is not None:
                self._watch(operation, operation.key)
        devices = {device.name: device for device in self._devices}
        program, instruments = prepared.program, prepared.instruments
        if program.is_parted:
            overseers = [Waits(prepared, self.feeding, i) for i in range(len(program.parts))]
            is_late = prepared.signature.is_late
            others = self._executions, instruments, self._tallies, overseers
            return Joint(program, devices, self.store, is_late, *others)
        assert not isinstance(begun, Joint)  # What it grew from lies on one device too.
        return Runner(
            program,
            devices[program.parts[0].device],
            self.store,
            prepared.signature.is_late,
            self._executions,
            instruments,
            begun,
            tallies=self._tallies,
            overseer=Waits(prepared, self.feeding),
        )

    def _settle(self, prepared: Prepared) -> None:
        """Have the resources that a prepared signature touches live where it was placed."""
        devices = {device.name: device for device in self._devices}
        for part in prepared.program.parts:
            for node in part.nodes:
                if node.key is not None:
                    self.store.settle(node.key, devices[part.device])

    def _base_of(self, signature: Signature) -> Growing | None:
        """Something prepared that a signature begins with; the latest is the likeliest."""
        return next((each for each in reversed(self._growing) if each.grows_into(signature)), None)

    def keeps(self, prepared: Prepared) -> bool:
        """Whether what stands behind a prepared signature is still there."""
        return prepared in self._runners

    def _make_room(self, latest: Any) -> None:
        if self._nodes <= KEPT_NODES:
            return
        for key, prepared in list(self._prepared.items()):
            ran_again = self._runners[prepared].stage is Stage.WRITTEN
            if key is not latest and (not ran_again or self._nodes > KEPT_NODES_IN_USE):
                self._drop(key)
            if self._nodes <= KEPT_NODES * 3 // 4:
                break  # Room for many more at once: dropping has a price per time.

    def _drop(self, key: Any) -> None:
        prepared = self._prepared.pop(key)
        del self._runners[prepared]
        kept = [each for each in self._growing if each.prepared is not prepared]
        self._growing = deque(kept, MOST_BASES)
        self._nodes -= _size(prepared)
        self.drops += 1

    # Running

    def run(
        self, prepared: Prepared, feeds: Sequence[Any], deadline: float | None = None
    ) -> Sequence[Any]:
        """Run one step; variables that it needs are initialised before."""
        runner = self._runners.get(prepared)
        if runner is None or runner.epoch != self.store.epoch:
            prepared, runner = self._initialized(prepared, feeds, deadline)
        try:
            return runner.run(feeds, deadline)
        except StepFailed as failed:
            error, cause = self.error_of(failed.failure, prepared, feeds), failed.__cause__
        # Outside of the handler: what is raised there keeps all that the step had.
        try:
            raise error from cause
        finally:
            del error, cause  # They hold this frame.

    def look(
        self, prepared: Prepared, feeds: Sequence[Any], deadline: float | None = None
    ) -> Sequence[Any]:
        """Run one step as `run` does, and initialise nothing."""
        prepared, runner = self._current(prepared)
        try:
            return runner.run(feeds, deadline)
        except StepFailed as failed:
            error, cause = self.error_of(failed.failure, prepared, feeds), failed.__cause__
        # Outside of the handler: what is raised there keeps all that the step had.
        try:
            raise error from cause
        finally:
            del error, cause  # They hold this frame.

    def run_initializers(
        self, signature: Signature, feeds: Sequence[Any], deadline: float | None
    ) -> None:
        """Run a step that initialises variables; it asks for no initialisation of its own."""
        prepared = self.prepare(signature)
        try:
            self.look(prepared, feeds, deadline)
        finally:
            if prepared.program.is_parted:
                # The initial values that are constants lie in the memory of devices meanwhile.
                with self._lock:
                    self._drop((signature, ()))

    def begin(self, prepared: Prepared) -> LocalPartialStep:
        """Begin a step that goes on as late feeds arrive; variables are initialised before."""
        prepared, runner = self._initialized(prepared, (), None)
        return LocalPartialStep(prepared, runner, self.error_of)

    def error_of(self, failure: Failure, prepared: Prepared, feeds: Sequence[Any] = ()) -> OpError:
        """The error of a failed step; one that had no memory left lists who holds it."""
        error = located(failure, prepared)
        if isinstance(error, ResourceExhaustedError) and failure.node >= 0:
            error.details += holders(failure, prepared, feeds, self.store, self.graph)
        return error

    def _current(self, prepared: Prepared) -> tuple[Prepared, Runner | Joint]:
        """A signature as it is prepared now, and what runs it: it may have been dropped."""
        runner = self._runners.get(prepared)
        while runner is None:
            prepared = self.prepare(prepared.signature, prepared.instruments)
            runner = self._runners.get(prepared)
        return prepared, runner

    def _initialized(
        self, prepared: Prepared, feeds: Sequence[Any], deadline: float | None
    ) -> tuple[Prepared, Runner | Joint]:
        """A signature as it is prepared now, and what runs it; its variables were seen to."""
        prepared, runner = self._current(prepared)
        fed = prepared.signature.feeds
        # Late feeds have no values yet.
        given = dict(zip(fed, feeds, strict=True)) if feeds else {}
        # Other threads may have values lost meanwhile, of variables that were seen to already.
        while runner.epoch != self.store.epoch:
            epoch = self.store.epoch
            seen = runner.seen[1] if runner.seen[0] == epoch else 0
            self._initialisation.prepare_for(prepared.stateful[seen:], fed, given, deadline)
            runner.epoch = epoch
        return prepared, runner

    # Resources

    def values(self) -> dict[ResourceKey, Any]:
        """The values of the session's own variables now, by their keys; they stay as they are."""
        found = {}
        for key in [each for each in list(self._held) if not each.container]:
            resource = self.store.find(key)
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
        self._initialisation.prepare_for([v.value.op for v in variables], (), {}, deadline)
        owners = self._owners_by_key()
        with all_closed(self._gates([v.op for v in variables]), deadline):
            # Views, each a lease: whoever writes meanwhile writes elsewhere.
            values = {v.op: self._variable(v.op).fetch() for v in variables}
            states = {
                owner.name: State(owner.op_def.owns, resource.state())
                for key, owner in owners.items()
                if isinstance(resource := self.store.find(key), Stateful) and owner.op_def.owns
            }
        devices = {op: self._home(op).name for op in values}
        return Snapshot(values, devices, self.store.entropy, states)

    def waiters(self) -> Sequence[Waiter]:
        """What waits now."""
        return self._executions.waiters()

    @property
    def under_way(self) -> int:
        """How many of the steps that may wait are under way, those that fill queues among them."""
        return self._executions.under_way

    def find(self, key: ResourceKey) -> Any:
        """The resource of a key if it exists already, or None."""
        return self.store.find(key)

    def _home(self, operation: Operation) -> Device:
        """Where what an operation owns lives, or will if nobody asks for anything else."""
        assert operation.key is not None
        return self.store.homes.get(operation.key, self._devices[0])

    def put(self, snapshot: Snapshot, deadline: float | None) -> None:
        """Give variables values, and the rest its state, between two steps."""
        owners = [
            self.graph.get_operation_by_name(name)
            for name in snapshot.states
            if self.graph.has_operation(name)  # Else the graph has become another one.
        ]
        if snapshot.entropy is not None:
            owners += [op for op in self._stateful() if op.name not in snapshot.states]
        # Outside of the gate: what fills queues may wait there.
        with (
            self.feeding.stopped(owners) as holding,
            all_closed(self._gates(snapshot.values), deadline),
        ):
            if snapshot.entropy is not None:
                self.store.entropy = snapshot.entropy
            self._set_states(owners, snapshot.states, holding)
            self.take(snapshot.values)

    def _stateful(self) -> list[Operation]:
        """What owns those of the session's own resources that have begun and have a state."""
        return [
            op
            for key, op in self._owners_by_key().items()
            if not key.container and isinstance(self.store.find(key), Stateful)
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
        found: list[tuple[str, Stateful, Any]] = []
        for owner in owners:
            kind, key = owner.op_def.owns, owner.key
            if kind is None or key is None or states.get(owner.name, (kind,))[0] != kind:
                continue
            self._watch(owner, key)
            definition = Definition(kind, owner.attributes)
            given = states.get(owner.name)
            state = given.state if given else self.store.first_state(key, definition)
            found.append((owner.name, self.store.of(key, definition), state))
        before = [(resource, resource.state()) for _, resource, _ in found]
        self._start_over(holding)
        for name, resource, state in found:
            try:
                resource.set_state(state)
            except (TypeError, ValueError):
                for other, held in before:
                    other.set_state(held)
                raise DataLossError(
                    f"the checkpoint has a state of {name!r} that is none"
                ) from None

    def _start_over(self, holding: Iterable[Operation]) -> None:
        """Have queues and streams of the session's own begin with what there is first."""
        for owner in holding:
            key = owner.key
            if key is not None and not key.container and (found := self.store.find(key)):
                found.start_over()

    def reset(self) -> None:
        """Have all that is the session's own begin afresh."""
        with (
            self.feeding.stopped(self.graph.stateful_operations()) as holding,
            all_closed(self.store.gates([""]), None),
        ):
            self._start_over(holding)
            self.store.reset()

    def _gates(self, variables: Iterable[Operation]) -> Sequence[Gate]:
        return self.store.gates([v.key.container for v in variables if v.key is not None])

    def _owners_by_key(self) -> dict[ResourceKey, Operation]:
        """For each resource an operation that owns it: of several the one that was built first."""
        latest_first = reversed(self.graph.stateful_operations())
        return {op.key: op for op in latest_first if op.key is not None}

    def _variable(self, operation: Operation) -> Any:
        assert operation.key is not None
        self._watch(operation, operation.key)
        return self.store.of(operation.key, Definition("variable", operation.attributes))

    def _watch(self, operation: Operation, key: ResourceKey) -> None:
        """Drop what an operation alone owns when nothing refers to the operation any more."""
        if key not in self._owners and not key.is_shared:
            store = weakref.ref(self.store)

            def release(_: object) -> None:
                there = store()
                if there is not None:
                    there.release(key)

            self._owners[key] = weakref.ref(operation, release)

    def _note_value(self, key: ResourceKey, has_value: bool) -> None:
        if has_value:
            self._held.add(key)
        else:
            self._held.discard(key)

    def ran(self) -> Ran:
        """What loops and branches did in the last run that had them."""
        return self._tallies.ran()

    def list_devices(self) -> list[DeviceDescription]:
        """The devices that operations run on."""
        return [device.described() for device in self._devices]

    def close(self) -> None:
        """Cancel what waits, and free memory."""
        self._executions.close()
        self.feeding.close()
        with self._lock:
            self._prepared.clear()
            self._runners.clear()
            self._growing.clear()
            self._nodes = 0
            self.store.close()
            self.graph.values.let_go(self)


class LocalPartialStep:
    """A step under way in this process whose feeds arrive one by one; see `PartialStep`."""

    def __init__(
        self,
        prepared: Prepared,
        runner: Runner | Joint,
        error_of: Callable[[Failure, Prepared], OpError],
    ) -> None:
        self._prepared = prepared
        self._error_of = error_of
        # A step of its kind is what all that it does takes.
        self._runner: Any = runner
        self._execution = runner.begin()
        self._draws = Draws()

    def feed(self, place: int, value: Any) -> None:
        """Give the feed of that place in the signature its value."""
        self._runner.feed(self._execution, place, value)

    def advance(self) -> None:
        """Run what is ready."""
        try:
            advance = self._draws.during, self._runner.advance, self._execution
            self._runner.passing(None, *advance)
        except StepFailed as failed:
            error, cause = self._error_of(failed.failure, self._prepared), failed.__cause__
        else:
            return
        try:
            raise error from cause
        finally:
            del error, cause  # They hold this frame.

    def fetched(self, place: int) -> Any:
        """The value of the fetch of that place; None if it is not there yet."""
        try:
            return self._runner.fetched(self._execution, place)
        except StepFailed as failed:
            error = self._error_of(failed.failure, self._prepared)
        try:
            raise error
        finally:
            del error

    def has_run(self, operation: Operation) -> bool:
        """Whether an operation has run, or nothing of it is left to run."""
        return bool(self._runner.has_run(self._execution, operation.id))

    def close(self) -> None:
        """Let go of all values."""
        self._execution.end()
        del self._execution


def _size(prepared: Prepared) -> int:
    """What keeping it costs, in nodes."""
    return sum(len(part.nodes) for part in prepared.program.parts) + OVERHEAD


def _elsewhere(placement: Placement, moved: Mapping[Operation, Device]) -> dict[str, str]:
    """The names of the devices of the operations that were placed on others, by theirs."""
    return {
        operation.name: device.name
        for operation, device in moved.items()
        if operation in placement.chosen and placement.chosen[operation] is not device
    }


def _rewritten(prepared: Prepared, instruments: Sequence[Instrument]) -> Prepared:
    """A prepared signature with what instruments make of its program."""
    program = prepared.program
    for instrument in instruments:
        program = instrument.rewritten(program, any(prepared.signature.is_late))
    return replace(prepared, program=program, instruments=tuple(instruments))


def located(failure: Failure, prepared: Prepared) -> OpError:
    """The error of a failed step, which names the operation, its line and what it was given."""
    error = failure.error
    if failure.node < 0 or error.is_of_step:
        return error
    part = prepared.program.parts[failure.part]
    node = part.nodes[failure.node]
    if not node.sources:
        return error
    operation = prepared.sources[node.sources[0]]
    given = [summary.text if summary is not None else None for summary in failure.inputs]
    error.about(operation, given)
    fed = set(range(len(part.feeds) - prepared.program.is_parted))
    for tensor, value, summary in zip(operation.inputs, node.inputs, failure.inputs, strict=False):
        if summary is not None and summary.note:
            was_fed = ", as it was fed" if value in fed else ""
            error.details.append(f"{tensor.name}{was_fed}: {summary.note}")
    if failure.loops:
        error.details.append(failure.where)
    error.details += failure.details
    return error
