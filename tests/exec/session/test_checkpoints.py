"""Sessions that go on from a checkpoint, save by themselves, have names, and begin afresh."""

import gc
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.checkpoints import checkpoint as checkpoints
from flowbook.exec.checkpoints import saver as saving
from flowbook.exec.instruments import checkpointing

FailedPrecondition = fb.errors.FailedPreconditionError


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    yield
    for sess in fb.open_sessions():
        sess.close()
    fb.reset_container("shared")


class Model:
    """A model whose every step draws, counts and moves."""

    def __init__(self, seed: int | None = None) -> None:
        if seed is not None:
            fb.set_random_seed(seed)
        self.step = fb.train.get_or_create_global_step()
        x = fb.random_normal([8, 3], name="x")
        self.W = fb.Variable(fb.random_normal([3, 2]), name="W")
        hidden = fb.nn.dropout(fb.tanh(x @ self.W), rate=0.5)
        self.loss = fb.reduce_mean(fb.square(hidden - 1.0))
        optimizer = fb.train.AdamOptimizer(0.1)
        self.train = optimizer.minimize(self.loss, global_step=self.step)

    def run(self, sess: fb.Session, steps: int) -> list[float]:
        return [sess.run([self.loss, self.train])[0] for _ in range(steps)]


# Going on


@pytest.mark.parametrize("seed", [None, 5])
def test_a_training_that_goes_on_is_the_one_that_never_stopped(
    seed: int | None, tmp_path: Path
) -> None:
    model = Model(seed)
    with fb.Session() as sess:
        model.run(sess, 3)
        path = fb.train.Saver().save(sess, tmp_path / "model", model.step)
        wanted, state = model.run(sess, 4), sess.run(sess.graph.variables())
    with fb.Graph().as_default():
        again = Model(seed)
        with fb.Session(checkpoint=path) as sess:
            assert again.run(sess, 4) == wanted
            for mine, theirs in zip(sess.run(sess.graph.variables()), state, strict=True):
                assert mine.tobytes() == theirs.tobytes()
        # With restore it is the same, and whatever the session drew before does not matter.
        with fb.Session() as sess:
            again.run(sess, 2)
            fb.train.Saver().restore(sess, tmp_path)
            assert again.run(sess, 4) == wanted


@pytest.fixture
def threads() -> Iterator[None]:
    before = fb.options.intra_op_threads
    yield
    fb.options.intra_op_threads = before


@pytest.mark.usefixtures("threads")
def test_what_bits_depend_on_is_fixed_and_recorded(tmp_path: Path) -> None:
    fb.options.intra_op_threads = None
    v = fb.Variable(1.0, name="v")
    with fb.Session(deterministic=True) as sess:
        assert fb.options.intra_op_threads == 1
        fb.train.Saver().save(sess, tmp_path / "model")
    with fb.Session(checkpoint=tmp_path, deterministic=True) as sess:
        assert sess.run(v) == 1.0
    fb.options.intra_op_threads = 2
    other = "intra_op_threads was 1, and is 2"
    sess = fb.Session(checkpoint=tmp_path, deterministic=True)
    with pytest.raises(FailedPrecondition, match=other):
        sess.run(v)
    with fb.Session(deterministic=True) as sess:
        with pytest.raises(FailedPrecondition, match=other):
            fb.train.Saver().restore(sess, tmp_path)
        fb.train.Saver([v]).restore(sess, tmp_path)  # The values alone fit anywhere.
    with fb.Session(checkpoint=tmp_path) as sess:
        assert sess.run(v) == 1.0


def test_without_a_checkpoint_it_begins_at_the_beginning(tmp_path: Path) -> None:
    v = fb.Variable(1.0, name="v")
    with fb.Session(checkpoint=tmp_path / "none") as sess:
        assert sess.run(v) == 1.0
        assert not list(tmp_path.iterdir())


def saved(folder: Path, **values: Any) -> None:
    with fb.Graph().as_default(), fb.Session() as sess:
        for name, value in values.items():
            fb.Variable(value, name=name)
        fb.train.Saver().save(sess, folder / "model", 1)


def test_what_joins_later_goes_on_too_and_what_is_new_begins(tmp_path: Path) -> None:
    saved(tmp_path, v=5.0, later=6.0)
    v = fb.Variable(1.0, name="v")
    sess = fb.Session(checkpoint=tmp_path)
    assert sess.run(fb.assign_add(v, 1.0)) == 6.0
    # It may be gone by now, in favour of a later one.
    checkpoints.remove_checkpoint(str(tmp_path / "model-1"))
    later, new = fb.Variable(1.0, name="later"), fb.Variable(2.0, name="new")
    assert sess.run([v, later, new]) == [6.0, 6.0, 2.0]


def test_an_initial_value_is_not_even_computed(tmp_path: Path) -> None:
    saved(tmp_path, v=5.0)
    v = fb.Variable(fb.py_func(lambda: 1 / 0, [], fb.float32), name="v", validate_shape=False)
    assert fb.Session(checkpoint=tmp_path).run(v) == 5.0


def test_a_checkpoint_that_does_not_fit_fails_each_run(tmp_path: Path) -> None:
    saved(tmp_path, v=[1.0, 2.0])
    v = fb.Variable(1.0, name="v")
    with fb.Session(checkpoint=tmp_path) as sess:
        for _ in range(2):
            with pytest.raises(fb.errors.InvalidArgumentError, match=r"float32 \[2\]"):
                sess.run(v)


# Saving by itself


def steps_in(folder: Path) -> list[int | None]:
    return [c.about.step for c in checkpoints.found_in(checkpoints.folder_at(folder))]


def test_every_so_many_steps_are_saved(tmp_path: Path) -> None:
    model = Model()
    with fb.Session() as sess, sess.checkpoint(tmp_path, every=3) as checkpoint:
        for _ in range(7):
            model.run(sess, 1)
            sess.run(model.loss)  # It trains nothing, and does not count.
            checkpoint.flush()
        assert steps_in(tmp_path) == [3, 6]
        assert checkpoint.latest == fb.train.latest_checkpoint(tmp_path)
        checkpoint.save(counter=model.step)
        checkpoint.flush()
        assert steps_in(tmp_path) == [3, 6, 7]
    model.run(sess := fb.Session(checkpoint=tmp_path), 1)
    assert sess.run(model.step) == 8


def test_without_a_counter_the_runs_are_counted_and_go_on(tmp_path: Path) -> None:
    v = fb.Variable([1.0], name="v")
    train = fb.train.GradientDescentOptimizer(0.1).minimize(fb.reduce_sum(v))
    for wanted in ([2], [2, 4]):
        with fb.Session(checkpoint=tmp_path) as sess, sess.checkpoint(tmp_path, every=2):
            for _ in range(3):
                sess.run(train)
        assert steps_in(tmp_path) == wanted


def test_a_training_that_was_written_by_hand_is_saved(tmp_path: Path) -> None:
    v, seen = fb.Variable([1.0], name="v"), fb.Variable(0, trainable=False, name="seen")
    train, count = fb.assign_sub(v, [0.25]), fb.assign_add(seen, 1)
    with fb.Session() as sess, sess.checkpoint(tmp_path, every=2):
        for fetches in (v.initializer, train, count, v, train, train):
            sess.run(fetches)
    assert steps_in(tmp_path) == [2]
    assert fb.Session(checkpoint=tmp_path).run([v, seen]) == [[0.5], 1]


def test_a_users_write_is_a_step_whatever_its_attributes_are_called(tmp_path: Path) -> None:
    halved_op = fb.OpDef(
        "HalvedInPlace",
        "variable: resource -> new_value: float32",
        attributes={"is_initializer": True},
        infer=lambda variable, **_: fb.Shape([1]),
        kernel=lambda xp, variable: variable.assign(variable.read() / 2),
        touches=fb.Touch(fb.Access.WRITE, 0),
    )
    v = fb.Variable([1.0], name="v")
    train = halved_op(v.handle)
    with fb.Session() as sess, sess.checkpoint(tmp_path, every=2):
        for _ in range(2):
            sess.run(train)
    assert steps_in(tmp_path) == [2]
    assert fb.Session(checkpoint=tmp_path).run(v) == [0.25]


def test_after_so_many_seconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(checkpointing.time, "monotonic", lambda: now[0])
    model = Model()
    with fb.Session() as sess, sess.checkpoint(tmp_path, seconds=60) as checkpoint:
        for seconds in (0, 59, 2, 1):
            now[0] += seconds
            model.run(sess, 1)
            checkpoint.flush()
    assert steps_in(tmp_path) == [3]


def test_the_metric_is_that_of_the_step(tmp_path: Path) -> None:
    model = Model()
    saver = fb.train.Saver(max_to_keep=1, keep_best="lowest")
    losses = []
    with fb.Session() as sess:
        checkpoint = sess.checkpoint(tmp_path, every=1, saver=saver, metric=model.loss)
        for _ in range(6):
            losses += model.run(sess, 1)
            checkpoint.flush()
    found = checkpoints.found_in(checkpoints.folder_at(tmp_path))
    assert found[-1].about.metric == losses[-1]
    best = fb.train.best_checkpoint(tmp_path, "lowest")
    assert best is not None
    assert best.endswith(f"step-{losses.index(min(losses)) + 1}")


class _SlowSaver(fb.train.Saver):
    """A saver that writes when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = threading.Event()
        self.threads: list[threading.Thread] = []

    def write(self, *given: Any) -> str:
        self.threads.append(threading.current_thread())
        assert self.go_on.wait(60)
        return super().write(*given)


def test_it_is_written_behind_the_training(tmp_path: Path) -> None:
    model = Model()
    saver = _SlowSaver()
    with fb.Session() as sess, sess.checkpoint(tmp_path, every=1, saver=saver) as checkpoint:
        model.run(sess, 1)
        saved_value = sess.run(model.W)
        model.run(sess, 3)  # Nobody waits for what is being written, nor is more than one.
        assert len(saver.threads) <= 1
        saver.go_on.set()
        checkpoint.flush()
        (writer,) = set(saver.threads)
        assert writer is not threading.current_thread()
        assert not writer.daemon  # A script that ends waits for it.
        # Of those that were due meanwhile, the last one has been written since.
        assert steps_in(tmp_path) == [1, 4]
        path = tmp_path / "step-1"
        assert fb.train.load_variable(path, "W").tobytes() == saved_value.tobytes()
        assert fb.train.load_variable(path, "global_step") == 1
        assert fb.train.load_variable(tmp_path, "W").tobytes() == sess.run(model.W).tobytes()


def test_what_was_last_due_is_saved_by_the_end(tmp_path: Path) -> None:
    model = Model()
    saver = _SlowSaver()
    sess = fb.Session()
    sess.checkpoint(tmp_path, every=10, saver=saver)
    model.run(sess, 53)
    ending = threading.Thread(target=sess.close)
    ending.start()
    saver.go_on.set()
    ending.join()
    assert steps_in(tmp_path) == [10, 50]
    assert fb.train.load_variable(tmp_path, "global_step") == 50


def test_what_is_saved_by_hand_does_not_give_way(tmp_path: Path) -> None:
    model = Model()
    saver = _SlowSaver()
    saver.go_on.set()
    with fb.Session() as sess, sess.checkpoint(tmp_path, every=4, saver=saver) as checkpoint:
        model.run(sess, 5)
        checkpoint.save(counter=model.step)  # It is being written, and nothing before it.
        saver.go_on.clear()
        model.run(sess, 3)
        saver.go_on.set()
    assert steps_in(tmp_path) == [4, 5, 8]


def test_where_there_is_no_memory_the_run_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpointing, "free_memory", lambda: 0)
    model = Model()
    saver = _SlowSaver()
    saver.go_on.set()
    with fb.Session() as sess, sess.checkpoint(tmp_path, every=1, saver=saver):
        model.run(sess, 1)
        assert saver.threads == [threading.current_thread()]


def test_what_cannot_be_saved_is_an_error_of_the_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Model()
    with fb.Session() as sess:
        checkpoint = sess.checkpoint(tmp_path, every=1)
        model.run(sess, 1)
        checkpoint.flush()

        def full(*_: Any) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(saving, "write_checkpoint", full)
            model.run(sess, 1)
            assert checkpoint._writer is not None
            checkpoint._writer.join()
        with pytest.raises(OSError, match="No space left") as caught:
            model.run(sess, 1)
        assert any(str(tmp_path) in note for note in caught.value.__notes__)
        model.run(sess, 1)
        checkpoint.close()
        assert steps_in(tmp_path) == [1, 3]
        assert checkpoint.closed
        model.run(sess, 1)
        assert steps_in(tmp_path) == [1, 3]


def test_closing_tells_what_nobody_heard_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(saving, "write_checkpoint", full)
    model = Model()
    sess = fb.Session()
    sess.checkpoint(tmp_path, every=1)
    model.run(sess, 1)
    with pytest.raises(OSError, match="No space left"):
        sess.close()
    assert sess.closed
    with pytest.raises(FailedPrecondition, match="closed"):
        sess.run(model.loss)


def test_a_session_that_nobody_has_any_more_is_gone(tmp_path: Path) -> None:
    sess = fb.Session()
    sess.checkpoint(tmp_path, every=1)
    gone = weakref.ref(sess)
    del sess
    gc.collect()
    assert gone() is None


def test_an_input_goes_on_behind_what_had_been_taken(tmp_path: Path) -> None:
    batch = fb.train.batches(np.arange(12.0, dtype=np.float32), 2, epochs=3, shuffle=5)
    total = fb.Variable(0.0, name="total")
    numbers = fb.train.from_generator(lambda: iter(range(100)))
    steps = [fb.assign_add(total, fb.reduce_sum(batch)), numbers]
    saver = fb.train.Saver()
    with fb.Session() as sess:
        whole = [sess.run([*steps, batch]) for _ in range(18)]
    with fb.Session() as sess:
        for _ in range(7):
            sess.run(steps)
        saver.save(sess, tmp_path / "model")
        assert sess.run(steps[1]) == 7
        saver.restore(sess, tmp_path / "model")
        assert sess.run(steps[1]) == 7
    for _ in range(2):  # Also from where it has gone on.
        with fb.Session(checkpoint=tmp_path / "model") as sess:
            at = int(sess.run(numbers))
            saver.save(sess, tmp_path / "model")
    assert at == 8
    for checkpoint in (saver.restore, None):
        with fb.Session(checkpoint=None if checkpoint else tmp_path / "model") as sess:
            if checkpoint:
                checkpoint(sess, tmp_path / "model")
            found = [sess.run([*steps, batch]) for _ in range(11)]
        assert [f[2].tolist() for f in found] == [w[2].tolist() for w in whole[7:]]
        assert [int(f[1]) for f in found] == [*range(9, 20)]
        assert found[-1][0] == whole[-1][0]


def test_what_is_no_place_in_an_input_is_damage(tmp_path: Path) -> None:
    batch = fb.train.batches(np.arange(4.0), 2)
    with fb.Session() as sess:
        sess.run(batch)
        snapshot = sess.snapshot()
        ((name, state),) = snapshot.states.items()
        assert state.state == 1
        for wrong in (-1, "two"):
            with pytest.raises(fb.errors.DataLossError, match="a state of"):
                sess.put(snapshot._replace(states={name: state._replace(state=wrong)}))


@pytest.mark.parametrize(
    "wrong", [{"every": 0}, {"seconds": -1}, {"every": 1.5}, {"every": True}, {"seconds": "1"}]
)
def test_what_is_no_number(wrong: Any, tmp_path: Path) -> None:
    with fb.Session() as sess, pytest.raises(fb.errors.InvalidArgumentError):
        sess.checkpoint(tmp_path, **wrong)


# Names


def test_a_session_is_found_by_its_name() -> None:
    v = fb.Variable(1.0, name="v")
    sess = fb.Session(name="mnist")
    sess.run(fb.assign(v, 5.0))
    assert fb.Session(name="mnist") is sess
    assert fb.Session(fb.get_default_graph(), name="mnist").run(v) == 5.0
    assert fb.Session(name="other") is not sess
    assert fb.Session() is not sess
    assert sess.name == "mnist"
    # It lives though nobody refers to it.
    del sess
    gc.collect()
    assert fb.Session(name="mnist").run(v) == 5.0
    fb.Session(name="mnist").close()
    assert fb.Session(name="mnist").run(v) == 1.0


def test_a_name_belongs_to_one_graph() -> None:
    sess = fb.Session(name="mnist")
    with fb.Graph().as_default() as graph:
        for given in ([], [graph]):
            with pytest.raises(FailedPrecondition, match="'mnist' runs"):
                fb.Session(*given, name="mnist")
    assert fb.Session(name="mnist") is sess


@pytest.mark.parametrize("name", ["", 5, b"mnist"])
def test_what_is_no_name(name: Any) -> None:
    with pytest.raises(fb.errors.InvalidTypeError, match="named by a text"):
        fb.Session(name=name)


# Beginning afresh


def test_reset_drops_the_sessions_own() -> None:
    v = fb.Variable(1.0, name="v")
    with fb.container("shared"):
        shared = fb.Variable(1.0, name="w")
    fb.set_random_seed(1)
    draw = fb.random_uniform([2])
    add = [fb.assign_add(v, 1.0), fb.assign_add(shared, 1.0)]
    with fb.Session() as sess, fb.Session() as other:
        first = sess.run(draw)
        sess.run(add)
        other.run(v)
        sess.reset()
        assert sess.run([v, shared]) == [1.0, 2.0]
        assert sess.run(draw).tolist() == first.tolist()
        sess.run(add)
        sess.reset("shared")
        assert sess.run([v, shared]) == [2.0, 1.0]
        sess.run(add)
        sess.reset(["", "shared", "never heard of"])
        assert sess.run([v, shared]) == [1.0, 1.0]
        for wrong in (5, [5], {"a": 1}):
            with pytest.raises(fb.errors.InvalidTypeError, match="named by texts"):
                sess.reset(wrong)  # type: ignore[arg-type]


def test_reset_has_an_accumulator_count_steps_anew() -> None:
    gradients = fb.ConditionalAccumulator(fb.float32, shape=[])
    step = fb.Variable(np.int64(0))
    put = gradients.apply_grad(1.0, local_step=step)
    taken, later = gradients.take_grad(1), fb.assign_add(step, np.int64(1))
    with fb.Session() as sess:
        for _ in range(2):
            sess.run(put)
            assert sess.run(taken) == 1.0
            sess.run(later)
        sess.reset()
        sess.run(put)
        assert sess.run(gradients.num_accumulated()) == 1
        assert sess.run(taken) == 1.0


def test_reset_opens_what_was_closed() -> None:
    queue = fb.FIFOQueue(3, fb.int32, shapes=[[]])
    barrier = fb.Barrier([fb.int32], shapes=[[]])
    put, insert = queue.enqueue(1), barrier.insert_many(0, ["a"], [1])
    left = [queue.size(), queue.is_closed(), barrier.ready_size()]
    with fb.Session() as sess:
        for close in (queue.close(), barrier.close(cancel_pending_enqueues=True)):
            sess.run([put, insert])
            sess.run(close)
            sess.reset()
            assert sess.run(left) == [0, False, 0]
        sess.run([put, insert])
        assert sess.run(left) == [1, False, 1]


def test_what_counts_is_saved_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed = fb.Print(fb.constant(1.0), [fb.constant(2.0)], "said ", first_n=2)
    with fb.Session() as sess:
        sess.run(printed)
        fb.train.Saver().save(sess, tmp_path / "model")
    with fb.Session(checkpoint=tmp_path) as sess:
        for _ in range(3):
            sess.run(printed)
    assert capsys.readouterr().err.count("said") == 2


def test_values_of_a_snapshot_are_read_only() -> None:
    v = fb.Variable(np.zeros(3), name="v")
    with fb.Session() as sess:
        value = sess.snapshot([v]).values[v.op]
        with pytest.raises(ValueError, match="read-only"):
            value[0] = 1.0
