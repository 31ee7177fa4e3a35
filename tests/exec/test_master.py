"""What a session needs of its master: another one, written to the protocols alone, serves it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.exec.far_master import FarSession


@pytest.fixture
def sess() -> Iterator[Any]:
    with FarSession() as session:
        yield session


class PlainSession(FarSession):
    """A session on such a master that offers nothing besides running steps."""

    def _made_master(self, *how: Any) -> Any:
        master: Any = super()._made_master(*how)
        master.resources = None
        return master


def asked(sess: Any) -> list[str]:
    """What the master was asked for since the last time."""
    found, sess._master.asked = sess._master.asked, []
    return found


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


def test_traces(sess: Any) -> None:
    x = fb.placeholder(fb.float32, [2], name="x")
    v = fb.Variable([0.0, 0.0], name="v")
    written = fb.assign(v, fb.log(x, name="logs"), name="written")
    sess.run(written, {x: [1.0, 1.0]})
    with sess.guard(), sess.trace() as trace:
        for _ in range(3):
            sess.run(written, {x: [1.0, 1.0]})
    calls = [(call.step, call.operation, call.bytes) for call in trace.calls]
    kernels = ("logs", 8), ("guard", 0), ("written", 8), ("guard", 0)
    assert calls == [(step, *each) for step in range(3) for each in kernels]


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


def test_a_master_may_run_steps_and_nothing_else() -> None:
    x = fb.placeholder(fb.float32, [], name="x")
    W = fb.Variable(2.0, name="W")
    y = fb.while_loop(lambda v: v < 10.0, lambda v: v * W, [x])[0]
    with PlainSession() as sess:
        with sess.trace() as trace:
            assert sess.run(y, {x: 1.0}) == 16.0
        assert "while/Mul" in {call.operation for call in trace.calls}
        step = sess.partial_run([y, W], [x])
        assert step.run(W) == 2.0
        assert step.run(y, {x: 3.0}) == 12.0
        assert sess.peek(y, {x: 5.0}) == 10.0
        assert sess.trips == {}
        assert not sess.has_values
    assert sess.trips == {}


def test_what_a_master_does_not_offer_is_said() -> None:
    asking: dict[str, list[Callable[[Any], Any]]] = {
        "choice of where operations run": [
            lambda sess: sess.list_devices(),
            lambda sess: sess.explain([]),
            lambda sess: sess.replace({}),
            lambda sess: sess.search_placement([]),
        ],
        "sight of what fills queues and waits": [
            lambda sess: sess.pipeline(),
            lambda sess: fb.train.start_queue_runners(sess),
        ],
        "access to what variables hold": [
            lambda sess: sess.snapshot(),
            lambda sess: sess.reset(),
            lambda sess: sess.put(training().snapshot()),
            lambda sess: sess.take_values(training()),
        ],
    }
    with PlainSession() as sess:
        for lack, asks in asking.items():
            for ask in asks:
                with pytest.raises(fb.errors.UnimplementedError, match=f"offers no {lack}"):
                    ask(sess)


def training() -> fb.Session:
    """A session with a variable that has a value."""
    sess = fb.Session()
    sess.run(fb.Variable(1.0))
    return sess
