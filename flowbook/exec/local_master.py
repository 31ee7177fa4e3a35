"""The master of this process: prepares signatures, runs them, and keeps what they need.

It initialises variables before the first step that needs them. The programs that it keeps, where
operations run, and what resources hold are `local/programs.py`, `placing.py` and
`session_state.py`.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from flowbook.exec.checkpoints.snapshot import Snapshot
from flowbook.exec.devices.device import Device, DeviceDescription
from flowbook.exec.devices.local import local_devices
from flowbook.exec.engine.code.tally import Ran
from flowbook.exec.engine.engine import Engine
from flowbook.exec.engine.initialisation import Initialisation
from flowbook.exec.engine.parts.joint import Joint
from flowbook.exec.engine.runner import Runner
from flowbook.exec.local.exhausted import holders
from flowbook.exec.local.failed import located
from flowbook.exec.local.partial_step import LocalPartialStep
from flowbook.exec.local.placing import Placing
from flowbook.exec.local.programs import Kept, Programs
from flowbook.exec.local.session_state import SessionState
from flowbook.exec.placement.measurements import Measured
from flowbook.exec.placement.search import Search
from flowbook.exec.plan.explanation import Explanation
from flowbook.exec.plan.failure import Failure, StepFailed
from flowbook.exec.plan.pipeline import Prepared
from flowbook.exec.plan.replacing import Replacement
from flowbook.exec.plan.watching import Instrument
from flowbook.exec.queue_threads import Feeding
from flowbook.exec.resources.kinds import Closable
from flowbook.exec.resources.store import Store
from flowbook.exec.signature.signature import Signature
from flowbook.exec.stalled import Waiter, Waits
from flowbook.graph.building.graph import Graph
from flowbook.graph.definition.op_def import HOST
from flowbook.graph.model.errors import AbortedError, OpError, ResourceExhaustedError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.resource_key import ResourceKey
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import Access
from flowbook.graph.ops.state.variables import Variable


class LocalMaster:
    """Runs a graph in this process; see `Master`.

    Attributes:
        graph: the graph.
        store: variables and random states, with the seed of random operations without one.
        feeding: what fills its queues.
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
        self._devices = list(devices or local_devices())
        self._held = graph.values.held_by(self)
        host = next(device for device in self._devices if device.kind in HOST)
        self.store = Store(secrets.randbits(63), self._note_value, host)
        self._engine = Engine(self.store)
        self._programs = Programs()
        where = self._devices, self.store, self._programs
        self._placing = Placing(graph, *where, soft_placement, lossy_transfer)
        self._retirements = graph.retirements
        self._renewals = graph.values.renewals
        self._initialisation = Initialisation(self, auto_initialize)
        self.feeding = Feeding(self)
        how = self.feeding, self._held, self._devices[0]
        self._state = SessionState(graph, self.store, *how)

    @property
    def drops(self) -> int:
        """How many programs were dropped."""
        return self._programs.drops

    def extend(self) -> None:
        """Take what the graph gained, and drop what it lost, since the last time."""
        with self._programs.lock:
            self._initialisation.extend()
            if self._retirements != self.graph.retirements:
                self._retirements = self.graph.retirements
                self.feeding.drop_retired()
                self._programs.drop_where(
                    lambda prepared: any(op.retired for op in prepared.operations)
                )
            self._open_renewed()

    def _open_renewed(self) -> None:
        """Have what operations have closed be open again, and empty, whose cell has run again."""
        values = self.graph.values
        if values.renewals == self._renewals:
            return
        renewed, self._renewals = values.renewed_since(self._renewals), values.renewals
        for operation in renewed:
            key = operation.key
            # What a named container holds, others use; what feeders fill, they begin again.
            if key is None or key.container or self.feeding.of(operation):
                continue
            resource = self.store.find(key)
            if isinstance(resource, Closable) and resource.is_closed:
                resource.start_over()

    # Preparing

    def prepare(self, signature: Signature, instruments: Sequence[Instrument] = ()) -> Prepared:
        """A signature made ready to run, its program rewritten by instruments.

        Raises:
            InvalidArgumentError: if a needed placeholder is not fed, or a device request cannot be
                met.
        """
        key = signature, tuple(instruments)
        programs = self._programs
        with programs.lock:
            found = programs.find(key)
            if found is None:
                base = None if instruments else programs.base_of(signature)
                growing = self._placing.grown(signature, base)
                found = _rewritten(growing.prepared, instruments)
                self._placing.settle(found)
                begun = programs.kept[base.prepared] if base is not None else None
                try:
                    kept = Kept(self._runner(found, begun.runner if begun is not None else None))
                except OpError:
                    self._state.check_owners(found.stateful)
                    raise
                if base is not None and begun is not None:
                    kept.seen = begun.epoch, len(base.prepared.stateful)
                programs.add(key, found, kept, None if instruments else growing)
            return found

    def _runner(self, prepared: Prepared, begun: Runner | Joint | None) -> Runner | Joint:
        for operation in prepared.stateful:
            if operation.key is not None:
                self._state.watch(operation, operation.key)
        devices, is_late = self._placing.devices, prepared.signature.is_late
        program, instruments = prepared.program, prepared.instruments
        overseers = [Waits(prepared, self.feeding, i) for i in range(len(program.parts))]
        if program.is_parted:
            return Joint(program, devices, self._engine, is_late, instruments, overseers)
        assert not isinstance(begun, Joint)  # What it grew from lies on one device too.
        device = devices[program.parts[0].device]
        return Runner(program, device, self._engine, is_late, instruments, begun, overseers[0])

    def keeps(self, prepared: Prepared) -> bool:
        """Whether what stands behind a prepared signature is still there."""
        return prepared in self._programs.kept

    # Placing

    def explain(
        self,
        signature: Signature,
        shapes: Mapping[Tensor, Shape],
        devices: Sequence[Device] | None = None,
    ) -> Explanation:
        """The plan of a signature for these devices, or others; nothing is run or kept."""
        return self._placing.explain(signature, shapes, devices)

    def search(
        self, signature: Signature, shapes: Mapping[Tensor, Shape], search: Search
    ) -> Sequence[tuple[str, Explanation]]:
        """The plan of a signature as it is placed now, and those that a search finds."""
        return self._placing.search(signature, shapes, search)

    def learn(self, measured: Iterable[tuple[Operation, str, Measured]]) -> None:
        """Predict from now on by what operations took on devices, which are given by name."""
        self._placing.learn(measured)

    @property
    def moved(self) -> Mapping[Operation, str]:
        """The devices, by name, of the operations that were put somewhere."""
        return self._placing.moved

    def replace(
        self, moves: Mapping[Operation, str | None], asked: Signature, deadline: float | None
    ) -> Replacement:
        """Have operations run on other devices, given by name, and what they touch live there."""
        return self._placing.replace(moves, asked, deadline)

    # Running

    def run(
        self, prepared: Prepared, feeds: Sequence[Any], deadline: float | None = None
    ) -> Sequence[Any]:
        """Run one step; variables that it needs are initialised before.

        What was put on another device meanwhile (`replace`) may have failed a step that read it. If
        it has done nothing but read, it runs once more.

        Raises:
            OpError: what an operation raised.
            AbortedError: if the step was failed so and may have done something.
        """
        moves = self._placing.moves
        kept = self._programs.kept.get(prepared)
        if kept is None or kept.epoch != self.store.epoch:
            prepared, kept = self._initialized(prepared, feeds, deadline)
        try:
            return kept.runner.run(feeds, deadline)
        except StepFailed as failed:
            error, cause = self.error_of(failed.failure, prepared, feeds), failed.__cause__
        # Outside of the handler: what is raised there keeps all that the step had.
        try:
            if self._placing.moves == moves:
                raise error from cause
            if all(op.op_def.access in (None, Access.READ) for op in prepared.operations):
                return self.run(prepared, feeds, deadline)
            raise AbortedError(
                "what the step uses was put on another device while it was under way",
                hint="run it again, if what it has done may be done twice",
            ) from error
        finally:
            del error, cause  # They hold this frame.

    def look(
        self, prepared: Prepared, feeds: Sequence[Any], deadline: float | None = None
    ) -> Sequence[Any]:
        """Run one step as `run` does, and initialise nothing."""
        prepared, kept = self._current(prepared)
        try:
            return kept.runner.run(feeds, deadline)
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
                with self._programs.lock:
                    self._programs.drop((signature, ()))

    def begin(self, prepared: Prepared) -> LocalPartialStep:
        """Begin a step that goes on as late feeds arrive; variables are initialised before."""
        prepared, kept = self._initialized(prepared, (), None)
        return LocalPartialStep(prepared, kept.runner, self.error_of)

    def error_of(self, failure: Failure, prepared: Prepared, feeds: Sequence[Any] = ()) -> OpError:
        """The error of a failed step; one that had no memory left lists who holds it."""
        error = located(failure, prepared)
        if isinstance(error, ResourceExhaustedError) and failure.node >= 0:
            error.details += holders(failure, prepared, feeds, self.store, self.graph)
        return error

    def _current(self, prepared: Prepared) -> tuple[Prepared, Kept]:
        """A signature as it is prepared now, and what runs it: it may have been dropped."""
        kept = self._programs.kept.get(prepared)
        while kept is None:
            prepared = self.prepare(prepared.signature, prepared.instruments)
            kept = self._programs.kept.get(prepared)
        return prepared, kept

    def _initialized(
        self, prepared: Prepared, feeds: Sequence[Any], deadline: float | None
    ) -> tuple[Prepared, Kept]:
        """A signature as it is prepared now, and what runs it; its variables were seen to."""
        prepared, kept = self._current(prepared)
        fed = prepared.signature.feeds
        # Late feeds have no values yet.
        given = dict(zip(fed, feeds, strict=True)) if feeds else {}
        # Other threads may have values lost meanwhile, of variables that were seen to already.
        while kept.epoch != self.store.epoch:
            epoch = self.store.epoch
            seen = kept.seen[1] if kept.seen[0] == epoch else 0
            self._initialisation.prepare_for(prepared.stateful[seen:], fed, given, deadline)
            kept.epoch = epoch
        return prepared, kept

    # Resources

    def values(self) -> Mapping[ResourceKey, Any]:
        """The values of the session's own variables now, by their keys; they stay as they are."""
        return self._state.values()

    def take(self, values: Mapping[Operation, Any]) -> None:
        """Give variables values, each named by its handle's operation."""
        self._state.take(values)

    def snapshot(self, variables: Sequence[Variable], deadline: float | None) -> Snapshot:
        """What variables hold between two steps, and what else a training goes on from."""
        self._initialisation.prepare_for([v.value.op for v in variables], (), {}, deadline)
        return self._state.snapshot(variables, deadline)

    def put(self, snapshot: Snapshot, deadline: float | None) -> None:
        """Give variables values, and the rest its state, between two steps."""
        self._state.put(snapshot, deadline)

    def reset(self) -> None:
        """Have all that is the session's own begin afresh."""
        self._state.reset()

    def find(self, key: ResourceKey) -> Any:
        """The resource of a key if it exists already, or None."""
        return self.store.find(key)

    def _note_value(self, key: ResourceKey, has_value: bool) -> None:
        if has_value:
            self._held.add(key)
        else:
            self._held.discard(key)

    # What there is

    def waiters(self) -> Sequence[Waiter]:
        """What waits now."""
        return self._engine.executions.waiters()

    @property
    def under_way(self) -> int:
        """How many of the steps that may wait are under way, those that fill queues among them."""
        return self._engine.executions.under_way

    def ran(self) -> Ran:
        """What loops and branches did in the last run that had them."""
        return self._engine.tallies.ran()

    def list_devices(self) -> list[DeviceDescription]:
        """The devices that operations run on."""
        return [device.described() for device in self._devices]

    def close(self) -> None:
        """Cancel what waits, and free memory."""
        self._engine.executions.close()
        self.feeding.close()
        with self._programs.lock:
            self._programs.clear()
            self.store.close()
            self.graph.values.let_go(self)


def _rewritten(prepared: Prepared, instruments: Sequence[Instrument]) -> Prepared:
    """A prepared signature with what instruments make of its program."""
    if not instruments:
        return prepared
    program = prepared.program
    for instrument in instruments:
        program = instrument.rewritten(program, any(prepared.signature.is_late))
    return replace(prepared, program=program, instruments=tuple(instruments))
