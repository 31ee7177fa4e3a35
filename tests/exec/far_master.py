"""A second, toy master, written to the protocols alone; mypy holds it against them.

It runs nothing of the graph itself. Programs, and what became of steps, go through bytes to a
runner that knows no operation, as they would go to another process. It offers what resources hold,
and neither a choice of where operations run nor sight of what goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import flowbook as fb
from flowbook.exec.checkpoints.snapshot import Snapshot
from flowbook.exec.devices.local_devices import local_devices
from flowbook.exec.engine.engine import Engine
from flowbook.exec.engine.initialisation import Initialisation
from flowbook.exec.engine.runner import Runner
from flowbook.exec.local.failed import located
from flowbook.exec.master import Master
from flowbook.exec.plan.codec import decode, decode_failure, encode, encode_failure
from flowbook.exec.plan.failure import StepFailed
from flowbook.exec.plan.pipeline import Prepared, prepare
from flowbook.exec.plan.watching import Instrument
from flowbook.exec.resources.kinds import Definition
from flowbook.exec.resources.session_stores import SessionStores
from flowbook.exec.signature.signature import Signature
from flowbook.graph.model.resource_key import ResourceKey


class FarMaster:
    """A master whose runners get bytes; it notes what it is asked for."""

    placer = None
    monitor = None

    def __init__(self, graph: fb.Graph, auto_initialize: bool) -> None:
        self.graph = graph
        self.drops = 0
        self.asked: list[str] = []
        self.sent = 0
        self.held = graph.values.held_by(self)
        self.stores = SessionStores(entropy=3, on_value=self._note_value)
        self.initialisation = Initialisation(self, auto_initialize)
        self.resources = FarResources(self)
        self._runners: dict[Prepared, Runner] = {}
        self._prepared: dict[Any, Prepared] = {}
        self._engine = Engine(self.stores)

    def _note_value(self, key: ResourceKey, has_value: bool) -> None:
        (self.held.add if has_value else self.held.discard)(key)

    def extend(self) -> None:
        self.asked.append("extend")
        self.initialisation.extend()

    def prepare(self, signature: Signature, instruments: Sequence[Instrument] = ()) -> Prepared:
        self.asked.append("prepare")
        key = signature, tuple(instruments)
        if key not in self._prepared:
            prepared = prepare(signature, local_devices())
            for instrument in instruments:
                program = instrument.rewritten(prepared.program, any(signature.is_late))
                prepared = replace(
                    prepared, program=program, instruments=(*prepared.instruments, instrument)
                )
            data = encode(prepared.program)
            self.sent += len(data)
            self._runners[prepared] = Runner(
                decode(data), local_devices()[0], self._engine, signature.is_late
            )
            self._prepared[key] = prepared
        return self._prepared[key]

    def run(
        self,
        prepared: Prepared,
        feeds: Sequence[Any],
        deadline: float | None = None,
        initializes: bool = True,
    ) -> Sequence[Any]:
        self.asked.append("run" if initializes else "look")
        if initializes:
            self._initialise(prepared, feeds, deadline)
        found: Sequence[Any] = self.step(prepared, lambda runner: runner.run(feeds, deadline))
        return found

    def run_initializers(
        self, signature: Signature, feeds: Sequence[Any], deadline: float | None
    ) -> None:
        self.asked.append("initialise")
        self.step(self.prepare(signature), lambda runner: runner.run(feeds, deadline))

    def begin(self, prepared: Prepared) -> FarStep:
        self.asked.append("begin")
        self._initialise(prepared, (), None)
        return FarStep(self, prepared, self._runners[prepared])

    def close(self) -> None:
        self.asked.append("close")
        self._engine.executions.close()
        self.stores.close()
        self.graph.values.let_go(self)

    def _initialise(self, prepared: Prepared, feeds: Sequence[Any], deadline: float | None) -> None:
        fed = prepared.signature.feeds
        given = dict(zip(fed, feeds, strict=True)) if feeds else {}
        self.initialisation.prepare_for(prepared.operations, fed, given, deadline)

    def step(self, prepared: Prepared, run: Callable[[Runner], Any]) -> Any:
        """Have a runner do something; what it fails with comes back as bytes."""
        try:
            return run(self._runners[prepared])
        except StepFailed as failed:
            data = encode_failure(failed.failure)
        raise located(decode_failure(data), prepared)


class FarResources:
    """What the resources of such a master hold."""

    def __init__(self, master: FarMaster) -> None:
        self._master = master

    def values(self) -> dict[ResourceKey, Any]:
        return {key: self._master.stores.find(key).read() for key in self._master.held}

    def take(self, values: Mapping[fb.Operation, Any]) -> None:
        for operation, value in values.items():
            assert operation.key is not None
            definition = Definition("variable", operation.attributes)
            self._master.stores.of(operation.key, definition).assign(value)

    def snapshot(self, variables: Sequence[fb.Variable], deadline: float | None) -> Snapshot:
        master = self._master
        master.asked.append("snapshot")
        master.initialisation.prepare_for([v.value.op for v in variables], (), {}, deadline)
        held = self.values()
        values = {v.op: held[v.op.key] for v in variables if v.op.key is not None}
        return Snapshot(values, dict.fromkeys(values, "/job:far/task:0/device:cpu:0"), 3, {})

    def put(self, snapshot: Snapshot, deadline: float | None) -> None:
        self._master.asked.append("put")
        self.take(snapshot.values)

    def reset(self) -> None:
        self._master.asked.append("reset")
        self._master.stores.reset()


class FarStep:
    """A partial step of such a master."""

    def __init__(self, master: FarMaster, prepared: Prepared, runner: Runner) -> None:
        self._master = master
        self._prepared = prepared
        self._runner = runner
        self._execution = runner.begin()

    def feed(self, place: int, value: Any) -> None:
        self._master.asked.append("feed")
        self._runner.feed(self._execution, place, value)

    def advance(self, places: Sequence[int], targets: Sequence[fb.Operation]) -> None:
        def has_all() -> bool:
            runner, execution = self._runner, self._execution
            return all(runner.is_there(execution, place) for place in places) and all(
                self.has_run(target) for target in targets
            )

        self._master.step(self._prepared, lambda runner: runner.advance(self._execution, has_all))

    def fetched(self, place: int) -> Any:
        return self._master.step(
            self._prepared, lambda runner: runner.fetched(self._execution, place)
        )

    def has_run(self, operation: fb.Operation) -> bool:
        return self._runner.has_run(self._execution, operation.id)

    def close(self, is_complete: bool) -> None:
        self._execution.close(is_complete)


class FarSession(fb.Session):
    """A session on such a master."""

    def _made_master(self, auto_initialize: bool, *_: Any) -> Master:
        return FarMaster(self.graph, auto_initialize)
