"""The master of this process: prepares signatures, runs them, and keeps what they need.

It initialises variables before the first step that needs them. The programs that it keeps are
`kept_programs.py`. What it offers besides running, where operations run, what resources hold and
what goes on, are `placing.py`, `session_state.py` and `monitor.py`.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from flowbook.exec.devices.device import Device
from flowbook.exec.devices.local_devices import local_devices
from flowbook.exec.engine.engine import Engine
from flowbook.exec.engine.initialisation import Initialisation
from flowbook.exec.engine.parts.joint import Joint
from flowbook.exec.engine.runnable import Runnable
from flowbook.exec.engine.runner import Runner
from flowbook.exec.local.exhausted import holders
from flowbook.exec.local.failed import located
from flowbook.exec.local.kept_programs import Kept, Programs
from flowbook.exec.local.monitor import LocalMonitor
from flowbook.exec.local.partial_step import LocalPartialStep
from flowbook.exec.local.placing import Placing
from flowbook.exec.local.session_state import SessionState
from flowbook.exec.plan.failure import Failure, StepFailed
from flowbook.exec.plan.pipeline import Growing, Prepared
from flowbook.exec.plan.watching import Instrument
from flowbook.exec.queue_threads import Feeding
from flowbook.exec.resources.gate import OvertakenError
from flowbook.exec.resources.kinds import Closable
from flowbook.exec.resources.session_stores import SessionStores
from flowbook.exec.signature.signature import Signature
from flowbook.exec.stalled import Waits
from flowbook.graph.building.graph import Graph
from flowbook.graph.model.errors import (
    AbortedError,
    CancelledError,
    DeadlineExceededError,
    OpError,
    OutOfRangeError,
    ResourceExhaustedError,
)
from flowbook.graph.model.resource_key import ResourceKey
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import WRITES, Access
from flowbook.graph.rewrite.subgraph import CannotFollow

# What values in host memory are.
_OF_THE_HOST = (np.ndarray, np.generic, bytes)

# What ends a step whatever has become of what it uses.
_OF_WHAT_IT_WAITED_FOR = (CancelledError, DeadlineExceededError, OutOfRangeError)


class LocalMaster:
    """Runs a graph in this process; see `Master`.

    Attributes:
        graph: the graph.
        stores: variables and random states, with the seed of random operations without one.
        placer: where operations run.
        resources: what they hold.
        monitor: what goes on.
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
        devices = list(devices or local_devices())
        self._held = graph.values.held_by(self)
        host = next(device for device in devices if device.is_host)
        self.stores = SessionStores(secrets.randbits(63), self._note_value, host)
        self._engine = Engine(self.stores)
        self._programs = Programs()
        where = devices, self.stores, self._programs
        self.placer = Placing(graph, *where, soft_placement, lossy_transfer)
        self._retirements = graph.retirements
        self._renewals = graph.values.renewals
        self._initialisation = Initialisation(self, auto_initialize)
        self._feeding = Feeding(self)
        self.monitor = LocalMonitor(self._engine, self._feeding)
        how = self._initialisation, self._feeding, self._held, devices[0]
        self.resources = SessionState(graph, self.stores, *how)

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
                self._feeding.drop_retired()
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
            if key is None or key.container or self._feeding.of(operation):
                continue
            resource = self.stores.find(key)
            if isinstance(resource, Closable) and resource.is_closed:
                resource.start_over()

    # Preparing

    def prepare(self, signature: Signature, instruments: Sequence[Instrument] = ()) -> Prepared:
        """A signature made ready to run, its program rewritten by instruments.

        Raises:
            InvalidArgumentError: if a needed placeholder is not fed, or a device request cannot be
                met.
            FailedPreconditionError: if variables have to move for it, and a step that writes them
                asks for it.
        """
        found, away = self._prepared(signature, tuple(instruments))
        while away:
            self.placer.move(away)
            found, away = self._prepared(signature, tuple(instruments))
        return found

    def _prepared(
        self, signature: Signature, instruments: tuple[Instrument, ...]
    ) -> tuple[Prepared, Mapping[ResourceKey, Device]]:
        """A signature made ready to run, and what has to move to other devices before it can be."""
        key = signature, instruments
        programs = self._programs
        with programs.lock:
            found = programs.find(key)
            if found is not None:
                return found, {}
            bases = programs.bases_of(signature) if not instruments else ()
            growing, base = self._grown(signature, bases)
            found = _rewritten(growing.prepared, instruments)
            away = self.placer.settle(found)
            if away:
                return found, away
            begun = programs.kept[base.prepared] if base is not None else None
            try:
                kept = Kept(self._runner(found, begun.runner if begun is not None else None))
            except OpError:
                self.resources.check_owners(found.stateful)
                raise
            if base is not None and begun is not None:
                kept.seen = begun.epoch, len(base.prepared.stateful)
            programs.add(key, found, kept, None if instruments else growing, base)
            return found, {}

    def _grown(
        self, signature: Signature, bases: Iterable[Growing]
    ) -> tuple[Growing, Growing | None]:
        """A signature's program, and what it begins with."""
        for base in bases:
            with suppress(CannotFollow):
                return self.placer.grown(signature, base), base
        return self.placer.grown(signature, None), None

    def _runner(self, prepared: Prepared, begun: Runnable[Any] | None) -> Runnable[Any]:
        for operation in prepared.stateful:
            if operation.key is not None:
                self.resources.watch(operation, operation.key)
        devices, is_late = self.placer.devices, prepared.signature.is_late
        program = prepared.program
        if program.is_parted:
            overseers = [Waits(prepared, self._feeding, i) for i in range(len(program.parts))]
            return Joint(program, devices, self._engine, is_late, overseers)
        # What it grew from lies on one device too.
        assert begun is None or isinstance(begun, Runner)
        device = devices[program.parts[0].device]
        overseer = Waits(prepared, self._feeding)
        return Runner(program, device, self._engine, is_late, begun, overseer)

    # Running

    def run(
        self,
        prepared: Prepared,
        feeds: Sequence[Any],
        deadline: float | None = None,
        initializes: bool = True,
    ) -> Sequence[Any]:
        """Run one step; see `Master`.

        What went to another device meanwhile (`replace`), or lost its value (`reset`), may have
        failed a step. If nothing is left of what that has done, it runs once more.

        Raises:
            OpError: what an operation raised.
            AbortedError: if the step was failed so and may have done something.
        """
        while True:
            epoch = self.stores.epoch
            kept = self._programs.kept.get(prepared)
            if kept is None or kept.epoch != epoch:
                if initializes:
                    prepared, kept, epoch = self._initialized(prepared, feeds, deadline)
                else:
                    prepared, kept = self._current(prepared)
            error: OpError | None = None
            cause: BaseException | None = None
            try:
                found = kept.runner.run(feeds, deadline)
                if self.stores.epoch == epoch:
                    return found
                found = self.placer.fetched(found)
                # What containers put elsewhere may lie, or have lain, on devices of other sessions.
                moved = any(key.container for key in self._moved_since(epoch, prepared))
                if not moved or all(isinstance(value, _OF_THE_HOST) for value in found):
                    return found
            except OvertakenError as overtaken:
                error = overtaken
            except StepFailed as failed:
                error, cause = self.error_of(failed.failure, prepared, feeds), failed.__cause__
            # Outside of the handler: what is raised there keeps all that the step had.
            try:
                meanwhile = self._meanwhile(prepared, epoch, error, initializes)
                if meanwhile is None:
                    assert error is not None
                    raise error from cause
                # Initial values are computed once more: nobody else has given any meanwhile.
                if initializes and _may_be_left(prepared, error):
                    hint = "run it again, if what it has done may be done twice"
                    raise _overtaken(meanwhile, hint) from error
            finally:
                del error, cause  # They hold this frame.

    def _meanwhile(
        self, prepared: Prepared, epoch: int, error: OpError | None, initializes: bool = True
    ) -> str | None:
        """What has become of what a step uses since an epoch, if that may be why it failed."""
        if error is None or isinstance(error, OvertakenError):
            return "was put on another device"
        if isinstance(error, _OF_WHAT_IT_WAITED_FOR):
            return None
        if self._moved_since(epoch, prepared):
            return "was put on another device"
        if initializes and self._initialisation.may_be_outdated(error, epoch):
            return "lost its value"
        return None

    def _moved_since(self, epoch: int, prepared: Prepared) -> Collection[ResourceKey]:
        """What a prepared signature uses and was put on another device in a later epoch."""
        return self.stores.moved_since(epoch, [op.key for op in prepared.stateful])

    def run_initializers(
        self, signature: Signature, feeds: Sequence[Any], deadline: float | None
    ) -> None:
        """Run a step that initialises variables; it asks for no initialisation of its own."""
        prepared = self.prepare(signature)
        try:
            self.run(prepared, feeds, deadline, initializes=False)
        finally:
            if prepared.program.is_parted:
                # The initial values that are constants lie in the memory of devices meanwhile.
                with self._programs.lock:
                    self._programs.discard((signature, ()))

    def begin(self, prepared: Prepared) -> LocalPartialStep[Any]:
        """Begin a step that goes on as late feeds arrive; variables are initialised before."""
        prepared, kept, epoch = self._initialized(prepared, (), None)

        def error_of(failure: Failure) -> OpError:
            error = self.error_of(failure, prepared)
            meanwhile = self._meanwhile(prepared, epoch, error)
            return error if meanwhile is None else _overtaken(meanwhile, "begin it again")

        return LocalPartialStep(prepared, kept.runner, error_of)

    def error_of(self, failure: Failure, prepared: Prepared, feeds: Sequence[Any] = ()) -> OpError:
        """The error of a failed step; one that had no memory left lists who holds it."""
        error = located(failure, prepared)
        if isinstance(error, ResourceExhaustedError) and failure.node >= 0:
            error.details += holders(failure, prepared, feeds, self.stores, self.graph)
        return error

    def _current(self, prepared: Prepared) -> tuple[Prepared, Kept]:
        """A signature as it is prepared now, and what runs it: it may have been dropped."""
        if prepared.stateful and self.placer.is_misplaced(prepared):
            with self._programs.lock:
                self._programs.discard((prepared.signature, prepared.instruments))
        kept = self._programs.kept.get(prepared)
        while kept is None:
            prepared = self.prepare(prepared.signature, prepared.instruments)
            kept = self._programs.kept.get(prepared)
        return prepared, kept

    def _initialized(
        self, prepared: Prepared, feeds: Sequence[Any], deadline: float | None
    ) -> tuple[Prepared, Kept, int]:
        """A signature as it is prepared now, what runs it, and in which epoch it was seen to."""
        while True:
            # First: what is lost, or moves, from now on is of another epoch.
            epoch = self.stores.epoch
            prepared, kept = self._current(prepared)
            if kept.epoch == epoch:
                return prepared, kept, epoch
            seen = kept.seen[1] if kept.seen[0] == epoch else 0
            new = prepared.stateful[seen:]
            if new:
                fed = prepared.signature.feeds
                # Late feeds have no values yet.
                given = dict(zip(fed, feeds, strict=True)) if feeds else {}
                try:
                    self._initialisation.prepare_for(new, fed, given, deadline)
                except OpError as error:
                    if self._initialisation.may_be_outdated(error, epoch):
                        continue
                    raise
            kept.epoch = epoch
            # Once more: what initialises may have had variables move that the step uses.

    def _note_value(self, key: ResourceKey, has_value: bool) -> None:
        if has_value:
            self._held.add(key)
        else:
            self._held.discard(key)

    def close(self) -> None:
        """Cancel what waits, and free memory."""
        self._engine.executions.close()
        self._feeding.close()
        with self._programs.lock:
            self._programs.clear()
            self.stores.close()
            self.graph.values.let_go(self)


def _may_be_left(prepared: Prepared, error: OpError | None) -> bool:
    """Whether something may be left of what a step has done, that failed or came to its end."""
    touches = [op.op_def.touches for op in prepared.operations if op.op_def.touches is not None]
    if error is None:
        return any(touch.access is not Access.READ for touch in touches)
    if isinstance(error, OvertakenError):  # It has written nothing.
        return error.has_begun and any(not t.is_undone and t != WRITES for t in touches)
    return any(not touch.is_undone for touch in touches)


def _overtaken(meanwhile: str, hint: str) -> AbortedError:
    """The error of a step that failed of what has become of what it uses."""
    return AbortedError(f"what the step uses {meanwhile} while it was under way", hint=hint)


def _rewritten(prepared: Prepared, instruments: Sequence[Instrument]) -> Prepared:
    """A prepared signature with what instruments make of its program."""
    if not instruments:
        return prepared
    program = prepared.program
    for instrument in instruments:
        program = instrument.rewritten(program, any(prepared.signature.is_late))
    return replace(prepared, program=program, instruments=tuple(instruments))
