"""What a session needs of its master: another one, written to the protocol alone, serves it.

It runs nothing of the graph itself. Programs, and what became of steps, go through bytes to a
runner that knows no operation, as they would go to another process.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.checkpoints.snapshot import Snapshot
from flowbook.exec.devices.device import Device, DeviceDescription
from flowbook.exec.devices.local import local_devices
from flowbook.exec.engine.code.tally import Ran
from flowbook.exec.engine.engine import Engine
from flowbook.exec.engine.initialisation import Initialisation
from flowbook.exec.engine.runner import Runner
from flowbook.exec.local.failed import located
from flowbook.exec.local.partial_step import LocalPartialStep
from flowbook.exec.local_master import LocalMaster
from flowbook.exec.master import Master, PartialStep
from flowbook.exec.placement.measurements import Measured
from flowbook.exec.placement.search import Search
from flowbook.exec.plan.codec import decode, decode_failure, encode, encode_failure
from flowbook.exec.plan.explanation import Explanation
from flowbook.exec.plan.failure import StepFailed
from flowbook.exec.plan.pipeline import Prepared, prepare
from flowbook.exec.plan.rehearsal import explain
from flowbook.exec.plan.replacing import Replacement
from flowbook.exec.plan.watching import Instrument
from flowbook.exec.queue_threads import Feeding
from flowbook.exec.resources.kinds import Definition
from flowbook.exec.resources.store import Store
from flowbook.exec.signature.signature import Signature
from flowbook.exec.stalled import Waiter
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.resource_key import ResourceKey


class FarMaster:
    """A master whose runners get bytes; it notes what it is asked for."""

    def __init__(self, graph: fb.Graph, auto_initialize: bool) -> None:
        self.graph = graph
        self.drops = 0
        self.asked: list[str] = []
        self.sent = 0
        self.held = graph.values.held_by(self)
        self.store = Store(entropy=3, on_value=self._note_value)
        self._runners: dict[Prepared, Runner] = {}
        self._prepared: dict[Any, Prepared] = {}
        self._engine = Engine(self.store)
        self._initialisation = Initialisation(self, auto_initialize)
        self.feeding = Feeding(self)

    def _note_value(self, key: ResourceKey, has_value: bool) -> None:
        (self.held.add if has_value else self.held.discard)(key)

    def extend(self) -> None:
        self.asked.append("extend")
        self._initialisation.extend()

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
                decode(data),
                local_devices()[0],
                self._engine,
                signature.is_late,
                instruments,
            )
            self._prepared[key] = prepared
        return self._prepared[key]

    def keeps(self, prepared: Prepared) -> bool:
        return prepared in self._runners

    def run(
        self, prepared: Prepared, feeds: Sequence[Any], deadline: float | None = None
    ) -> Sequence[Any]:
        self.asked.append("run")
        self._initialise(prepared, feeds, deadline)
        return self._step(prepared, lambda runner: runner.run(feeds, deadline))

    def look(
        self, prepared: Prepared, feeds: Sequence[Any], deadline: float | None = None
    ) -> Sequence[Any]:
        self.asked.append("look")
        return self._step(prepared, lambda runner: runner.run(feeds, deadline))

    def run_initializers(
        self, signature: Signature, feeds: Sequence[Any], deadline: float | None
    ) -> None:
        self.asked.append("initialise")
        self._step(self.prepare(signature), lambda runner: runner.run(feeds, deadline))

    def explain(
        self,
        signature: Signature,
        shapes: Mapping[fb.Tensor, fb.Shape],
        devices: Sequence[Device] | None = None,
    ) -> Explanation:
        self.asked.append("explain")
        return explain(signature, shapes, devices or local_devices())

    def search(
        self, signature: Signature, shapes: Mapping[fb.Tensor, fb.Shape], search: Search
    ) -> Sequence[tuple[str, Explanation]]:
        self.asked.append("search")
        return [("as it is", self.explain(signature, shapes))]

    def learn(self, measured: Iterable[tuple[Operation, str, Measured]]) -> None:
        self.asked.append("learn")

    @property
    def moved(self) -> Mapping[Operation, str]:
        return {}

    def replace(
        self, moves: Mapping[Operation, str | None], asked: Signature, deadline: float | None
    ) -> Replacement:
        self.asked.append("replace")
        return Replacement({}, [], 0)  # It has one device.

    def begin(self, prepared: Prepared) -> FarStep:
        self.asked.append("begin")
        self._initialise(prepared, (), None)
        return FarStep(self, prepared, self._runners[prepared])

    def waiters(self) -> Sequence[Waiter]:
        return self._engine.executions.waiters()

    @property
    def under_way(self) -> int:
        return self._engine.executions.under_way

    def find(self, key: ResourceKey) -> Any:
        return self.store.find(key)

    def values(self) -> dict[ResourceKey, Any]:
        return {key: self.store.find(key).read() for key in self.held}

    def take(self, values: Mapping[Operation, Any]) -> None:
        for operation, value in values.items():
            definition = Definition("variable", operation.attributes)
            self.store.of(operation.key, definition).assign(value)

    def snapshot(self, variables: Sequence[fb.Variable], deadline: float | None) -> Snapshot:
        self.asked.append("snapshot")
        self._initialisation.prepare_for([v.value.op for v in variables], (), {}, deadline)
        values = {v.op: self.store.find(v.op.key).read() for v in variables}
        return Snapshot(values, dict.fromkeys(values, self.list_devices()[0].name), 3, {})

    def put(self, snapshot: Snapshot, deadline: float | None) -> None:
        self.asked.append("put")
        self.take(snapshot.values)

    def reset(self) -> None:
        self.asked.append("reset")
        self.store.reset()

    def list_devices(self) -> list[DeviceDescription]:
        return [DeviceDescription("/job:far/task:0/device:cpu:0", "cpu", None)]

    def ran(self) -> Ran:
        return self._engine.tallies.ran()

    def close(self) -> None:
        self.asked.append("close")
        self._engine.executions.close()
        self.feeding.close()
        self.store.close()
        self.graph.values.let_go(self)

    def _initialise(self, prepared: Prepared, feeds: Sequence[Any], deadline: Any) -> None:
        fed = prepared.signature.feeds
        given = dict(zip(fed, feeds, strict=True)) if feeds else {}
        self._initialisation.prepare_for(prepared.operations, fed, given, deadline)

    def _step(self, prepared: Prepared, run: Callable[[Runner], Any]) -> Any:
        try:
            return run(self._runners[prepared])
        except StepFailed as failed:
            data = encode_failure(failed.failure)
        raise located(decode_failure(data), prepared)


class FarStep:
    """A partial step of such a master."""

    def __init__(self, master: FarMaster, prepared: Prepared, runner: Runner) -> None:
        self._master = master
        self._prepared = prepared
        self._execution = runner.begin()

    def feed(self, place: int, value: Any) -> None:
        self._master.asked.append("feed")
        self._execution.feed(self._runner.late_units[place], value)

    @property
    def _runner(self) -> Runner:
        return self._master._runners[self._prepared]

    def advance(self, places: Sequence[int], targets: Sequence[fb.Operation]) -> None:
        def has_all() -> bool:
            runner, execution = self._runner, self._execution
            return all(runner.is_there(execution, place) for place in places) and all(
                self.has_run(target) for target in targets
            )

        self._master._step(self._prepared, lambda runner: runner.advance(self._execution, has_all))

    def fetched(self, place: int) -> Any:
        return self._master._step(
            self._prepared, lambda runner: runner.fetched(self._execution, place)
        )

    def has_run(self, operation: fb.Operation) -> bool:
        nodes = self._prepared.program.parts[0].nodes
        return all(
            self._execution.has_run(index)
            for index, node in enumerate(nodes)
            if node.sources[:1] == (operation.id,)
        )

    def close(self, is_complete: bool) -> None:
        self._execution.close(is_complete)


class FarSession(fb.Session):
    """A session on such a master."""

    def _made_master(self, auto_initialize: bool, *_: Any) -> Master:
        return FarMaster(self.graph, auto_initialize)


@pytest.fixture
def sess() -> Iterator[Any]:
    with FarSession() as session:
        yield session


def asked(sess: Any) -> list[str]:
    """What the master was asked for since the last time."""
    found, sess._master.asked = sess._master.asked, []
    return found


@pytest.mark.parametrize(
    ("protocol", "kinds"),
    [(Master, (LocalMaster, FarMaster)), (PartialStep, (LocalPartialStep, FarStep))],
)
def test_masters_have_what_the_protocol_says(protocol: type, kinds: Any) -> None:
    wanted = {n: f for n, f in vars(protocol).items() if inspect.isfunction(f) and n[0] != "_"}
    assert len(wanted) >= 5
    for kind in kinds:
        for name, function in wanted.items():
            mine = inspect.signature(getattr(kind, name)).parameters
            for parameter, declared in inspect.signature(function).parameters.items():
                assert mine[parameter].replace(annotation="") == declared.replace(annotation="")
            assert list(mine) == list(inspect.signature(function).parameters)
    for master in (FarMaster(fb.Graph(), True), LocalMaster(fb.Graph(), True)):
        assert {*Master.__annotations__} <= {*vars(master)}


def test_checkpoints_are_a_masters_own_values(sess: Any, tmp_path: Path) -> None:
    W = fb.Variable([1.0, 2.0], name="W")
    add = fb.assign_add(W, [1.0, 1.0])
    path = fb.train.Saver().save(sess, tmp_path / "model")
    sess.run(add)
    assert fb.train.Saver().restore(sess, path) == ["W"]
    assert sess.run(W).tolist() == [1.0, 2.0]
    assert [name for name in asked(sess) if name in ("snapshot", "put")] == ["snapshot", "put"]
    assert len([*(tmp_path / "model").glob("far-0-cpu-0.*.safetensors")]) == 1


def test_values_go_from_master_to_master(sess: Any) -> None:
    W = fb.Variable([1.0, 2.0], name="W")
    sess.run(fb.assign_add(W, [1.0, 1.0]))
    with fb.Session() as here:
        assert here.take_values(sess) == ["W"]
        here.run(fb.assign_add(W, [1.0, 1.0]))
        assert sess.take_values(here) == ["W"]
    assert sess.run(W).tolist() == [3.0, 4.0]


def test_runs(sess: Any) -> None:
    x = fb.placeholder(fb.float32, [2], name="x")
    W = fb.Variable([1.0, 2.0], name="W")
    train = fb.assign_add(W, x)
    for turn in range(4):
        found = sess.run([train, W], {x: [1.0, 1.0]})
        np.testing.assert_array_equal(found, [[2.0 + turn, 3.0 + turn], [1.0 + turn, 2.0 + turn]])
    assert asked(sess) == ["extend", "prepare", "run", "initialise", "prepare", *["run"] * 3]
    assert sess._master.sent > 0
    assert sess.list_devices()[0].name == "/job:far/task:0/device:cpu:0"
    assert sess.graph.values.has_value(W.op)
    sess.close()
    assert asked(sess) == ["close"]
    assert not sess.graph.values.has_value(W.op)


def test_errors_name_the_operation(sess: Any) -> None:
    x = fb.placeholder(fb.int32, [], name="x")
    picked = fb.gather([1, 2, 3], x, name="picked")
    for _ in range(3):
        assert sess.run(picked, {x: 1}) == 2
        with pytest.raises(fb.errors.InvalidIndexError, match="Gather 'picked'") as caught:
            sess.run(picked, {x: 7})
        assert caught.value.operation is picked.op
    with pytest.raises(fb.errors.DeadlineExceededError):
        sess.run(picked, {x: 1}, timeout=0.0)


def test_partial_runs(sess: Any) -> None:
    x, y = (fb.placeholder(fb.float32, [], name=name) for name in "xy")
    W = fb.Variable(5.0)
    first = x + W
    second = first * y
    written = fb.assign(W, second)
    for _ in range(2):
        step = sess.partial_run([first, second, written.op], [x, y])
        start = sess.run(W)
        assert step.run(first, {x: 1.0}) == 1.0 + start
        assert step.run([second, written.op], {y: 2.0}) == [2 * (1.0 + start), None]
        assert sess.run(W) == 2 * (1.0 + start)
    assert asked(sess).count("begin") == 2
    failing = fb.gather([1, 2], fb.cast(x, fb.int32), name="picked")
    step = sess.partial_run(failing, [x])
    with pytest.raises(fb.errors.InvalidIndexError, match="'picked'"):
        step.run(failing, {x: 9.0})


def test_peeks(sess: Any) -> None:
    x = fb.placeholder(fb.float32, [])
    W = fb.Variable(2.0, name="W")
    y = W * x
    with pytest.raises(fb.errors.FailedPreconditionError, match="'W'"):
        sess.peek(W)
    with sess.retain_feeds():
        sess.run(y, {x: 3.0})
        asked(sess)
        assert sess.peek(y) == 6.0
        assert asked(sess) == ["prepare", "look"]
    assert sess.peek(W) == 2.0


def test_summaries(sess: Any) -> None:
    x = fb.placeholder(fb.float32, [])
    W = fb.Variable(1.0)
    loss = fb.square(W - x)
    fb.summary.scalar("loss", loss)
    train = fb.train.GradientDescentOptimizer(0.25).minimize(loss)
    kept = sess.summarize(every=2)
    for _ in range(4):
        sess.run(train, {x: 3.0})
    assert [(p.step, p.value) for p in kept.history.points("loss")] == [(0, 4.0), (2, 0.25)]
    assert asked(sess).count("run") == 4


def test_guards(sess: Any) -> None:
    x = fb.placeholder(fb.float32, [2], name="x")
    v = fb.Variable([0.0, 0.0], name="v")
    written = fb.assign(v, fb.log(x, name="logs"))
    with sess.guard():
        for _ in range(3):
            sess.run(written, {x: [1.0, 1.0]})
            with pytest.raises(fb.errors.InvalidArgumentError) as caught:
                sess.run(written, {x: [1.0, -1.0]})
            assert caught.value.operation.name == "logs"
            assert "x:0, as it was fed: -1 to 1, mean 0" in str(caught.value)
            assert "the step changed no variable" in str(caught.value)
        step = sess.partial_run(written, [x])
        with pytest.raises(fb.errors.InvalidArgumentError, match="'logs'"):
            step.run(written, {x: [1.0, -1.0]})
    assert np.isnan(sess.run(written, {x: [1.0, -1.0]})[1])


def test_what_it_runs_is_what_the_local_one_runs(sess: Any) -> None:
    fb.set_random_seed(4)
    x = fb.placeholder(fb.float32, [None, 4])
    W = fb.Variable(fb.random_normal([4, 3]))
    loss = fb.reduce_mean(fb.square(fb.nn.dropout(fb.tanh(x @ W), rate=0.5)))
    train = fb.train.AdamOptimizer(0.1).minimize(loss)
    data = np.linspace(-1, 1, 20, dtype=np.float32).reshape(5, 4)
    with fb.Session() as other:
        for _ in range(4):
            found, expected = (s.run([loss, train, W], {x: data}) for s in (sess, other))
            assert found[0].tobytes() == expected[0].tobytes()
            assert found[2].tobytes() == expected[2].tobytes()
