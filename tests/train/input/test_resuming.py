"""Pipelines that read files go on from checkpoints: what comes again, what is left out."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.checkpoints import checkpoint as checkpoints
from flowbook.graph.ops.random.orders import shuffle_op
from tests.graph.ops.queues.waiting import waiters


def written(folder: Path, files: int, lines: int) -> list[str]:
    """Files of so many lines each, no two of them alike."""
    paths = [folder / f"f{n}" for n in range(files)]
    for n, path in enumerate(paths):
        path.write_text("".join(f"{n * lines + i + 1}\n" for i in range(lines)))
    return [str(path) for path in paths]


class Training:
    """Reads a line in each step, and computes with it what depends on all lines and their order."""

    def __init__(self, names: list[str], num_epochs: int | None, shuffle: bool) -> None:
        queue = fb.train.string_input_producer(
            names, num_epochs=num_epochs, shuffle=shuffle, seed=3, capacity=2
        )
        self.key, line = fb.TextLineReader().read(queue)
        x = fb.Variable(0.0, name="x")
        noise = fb.random_uniform([], seed=5)
        self.step = fb.assign(x, 0.5 * x + fb.strings.to_number(line, fb.float32) + noise)

    def run(self, sess: fb.Session, steps: int) -> list[Any]:
        found = []
        for _ in range(steps):
            key, x = sess.run([self.key, self.step])
            found.append((key, float(x)))
        return found


@pytest.mark.parametrize(("num_epochs", "shuffle"), [(3, True), (None, True), (3, False)])
def test_a_training_that_reads_goes_on_as_if_it_had_never_stopped(
    tmp_path: Path, num_epochs: int | None, shuffle: bool
) -> None:
    names = written(tmp_path, 5, 3)
    training = Training(names, num_epochs, shuffle)
    with fb.Session() as sess:
        whole = training.run(sess, 45)
    assert len({key for key, _ in whole[:15]}) == 15
    for stop in (1, 3, 7, 14, 15, 16, 31, 44):
        saver = fb.train.Saver()
        with fb.Session() as sess:
            assert training.run(sess, stop) == whole[:stop]
            path = saver.save(sess, tmp_path / f"at-{stop}", timeout=60)
            # What is read now, and what waits at the queue meanwhile, is forgotten.
            training.run(sess, 1)
            saver.restore(sess, path, timeout=60)
            assert training.run(sess, 2 if stop < 43 else 1) == whole[stop : stop + 2]
        with fb.Session(checkpoint=path) as sess:
            assert training.run(sess, 45 - stop) == whole[stop:]
            if num_epochs is not None:
                with pytest.raises(fb.errors.OutOfRangeError):
                    training.run(sess, 1)


def test_saving_does_not_wait_for_who_waits_for_room(tmp_path: Path) -> None:
    number = fb.train.range_input_producer(100, 2, shuffle=False, capacity=4).dequeue()
    total = fb.Variable(0)
    step = fb.assign_add(total, number)
    saver = fb.train.Saver()
    with fb.Session() as sess:
        assert [int(sess.run(step)) for _ in range(3)] == [0, 1, 3]
        path = saver.save(sess, tmp_path / "it", timeout=60)
    with fb.Session(checkpoint=path) as sess:
        left = [int(v) for v in fb.train.until_end(sess, number)]
    assert left == [*range(3, 100), *range(100)]


def test_threads_that_read_ahead_double_nothing(tmp_path: Path) -> None:
    names = written(tmp_path, 6, 20)
    queue = fb.train.string_input_producer(names, 1, shuffle=False, capacity=2)
    lines = [(fb.TextLineReader().read(queue)[1],) for _ in range(2)]
    capacity, threads = 8, 2
    (batch,) = fb.train.batch_join(
        lines, 4, capacity=capacity, shapes=[[]], allow_smaller_final_batch=True
    )
    every = {b"%d" % n for n in range(1, 121)}
    for steps in (1, 5, 12):
        with fb.Session() as sess:
            before = [line for _ in range(steps) for line in sess.run(batch).tolist()]
            path = fb.train.Saver().save(sess, tmp_path / f"at-{steps}", timeout=60)
        with fb.Session(checkpoint=path) as sess:
            after = [line for found in fb.train.until_end(sess, batch) for line in found.tolist()]
        assert len({*before, *after}) == len(before) + len(after)
        lost = every - {*before} - {*after}
        assert len(lost) <= capacity + threads


def test_what_a_checkpoint_says_of_a_queue_is_not_trusted(tmp_path: Path) -> None:
    names = fb.train.string_input_producer(["a", "b", "c"], 1, shuffle=False, capacity=2)
    numbers = fb.train.range_input_producer(3, 1, shuffle=False, capacity=2)
    taken = [names.dequeue(), numbers.dequeue()]
    saver = fb.train.Saver()
    with fb.Session() as sess:
        assert sess.run(taken) == [b"a", 0]
        path = saver.save(sess, tmp_path / "it", timeout=60)
    index = Path(path) / checkpoints._INDEX
    content = json.loads(index.read_text())
    resources = content["state"]["resources"]
    assert resources[names.name]["state"] == ["Yg==", "Yw=="]
    for queue, states in (
        (names, ["Yg==", 7, [1], ["not base64!"], {"Yg==": 1}, None]),
        (numbers, ["AAA=", 7, [1], "not base64!", None]),
    ):
        kept = resources[queue.name]["state"]
        for bad in states:
            resources[queue.name]["state"] = bad
            index.write_text(json.dumps(content))
            with fb.Session() as sess, pytest.raises(fb.errors.DataLossError, match="that is none"):
                saver.restore(sess, path)
        resources[queue.name]["state"] = kept
    index.write_text(json.dumps(content))
    with fb.Session() as sess:
        saver.restore(sess, path)
        assert [*fb.train.until_end(sess, taken)] == [[b"b", 1], [b"c", 2]]


def test_a_restore_that_fails_drops_nothing_of_what_was_read_ahead(tmp_path: Path) -> None:
    names = fb.train.string_input_producer(written(tmp_path, 1, 9), 1, shuffle=False)
    queue = fb.FIFOQueue(8, fb.string, shapes=[[]])
    read = queue.enqueue(fb.TextLineReader().read(names)[1])
    taken, size = queue.dequeue(), queue.size()
    fb.train.QueueRunner(queue, [read])
    saver = fb.train.Saver()
    with fb.Session() as sess:
        path = saver.save(sess, tmp_path / "it", timeout=60)
        index = Path(path) / checkpoints._INDEX
        content = json.loads(index.read_text())
        content["state"]["resources"] = {names.name: {"kind": "saved_queue", "state": 7}}
        index.write_text(json.dumps(content))
        assert sess.run(taken) == b"1"
        while sess.run(size) < 8:
            pass
        with pytest.raises(fb.errors.DataLossError, match="that is none"):
            saver.restore(sess, path)
        assert [*fb.train.until_end(sess, taken)] == [b"%d" % n for n in range(2, 10)]


def test_a_restore_that_fails_drops_nothing_that_waits_for_room(tmp_path: Path) -> None:
    names = fb.train.string_input_producer(written(tmp_path, 1, 9), 1, shuffle=False)
    queue = fb.FIFOQueue(2, fb.string, shapes=[[]])
    fb.train.QueueRunner(queue, [queue.enqueue(fb.TextLineReader().read(names)[1])])
    taken = queue.dequeue()
    saver = fb.train.Saver()
    with fb.Session() as sess:
        path = saver.save(sess, tmp_path / "it", timeout=60)
        index = Path(path) / checkpoints._INDEX
        content = json.loads(index.read_text())
        content["state"]["resources"] = {names.name: {"kind": "saved_queue", "state": 7}}
        index.write_text(json.dumps(content))
        assert sess.run(taken) == b"1"
        for _ in range(2):
            while not waiters(sess, queue):
                pass
            with pytest.raises(fb.errors.DataLossError, match="that is none"):
                saver.restore(sess, path)
        assert [*fb.train.until_end(sess, taken)] == [b"%d" % n for n in range(2, 10)]
        assert sess.pipeline().queues[-1].capacity == 2


def test_a_restore_that_fails_drops_no_epoch_that_waits_for_room(tmp_path: Path) -> None:
    queue = fb.train.range_input_producer(4, 2, shuffle=False, capacity=4)
    taken = queue.dequeue()
    saver = fb.train.Saver()
    with fb.Session() as sess:
        assert sess.run(taken) == 0
        path = saver.save(sess, tmp_path / "it", timeout=60)
        index = Path(path) / checkpoints._INDEX
        content = json.loads(index.read_text())
        content["state"]["resources"][queue.name]["state"] = 7
        index.write_text(json.dumps(content))
        # The second epoch has been counted; of its rows there is room for one.
        while not waiters(sess, queue):
            pass
        with pytest.raises(fb.errors.DataLossError, match="that is none"):
            saver.restore(sess, path)
        assert [*fb.train.until_end(sess, taken)] == [1, 2, 3, 0, 1, 2, 3]


def test_an_order_is_saved_with_the_rows_that_are_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the two a checkpoint would have an order drawn that nobody ever saw."""
    drawn, saved = threading.Event(), threading.Event()
    kernel = shuffle_op.kernel

    def draw(xp: Any, state: Any, value: Any) -> Any:
        found = kernel(xp, state, value)
        drawn.set()
        assert saved.wait(60)
        return found

    monkeypatch.setattr(shuffle_op, "kernel", draw)
    number = fb.train.range_input_producer(4, seed=1).dequeue()
    variable = fb.Variable(0)
    saver = fb.train.Saver()
    with fb.Session() as sess:
        sess.run(variable)
        fb.train.start_queue_runners(sess)
        assert drawn.wait(60)
        with pytest.raises(fb.errors.DeadlineExceededError, match="one was under way"):
            saver.save(sess, tmp_path / "between", timeout=0.2)
        saved.set()
        assert sess.run(number) in range(4)
        saver.save(sess, tmp_path / "behind", timeout=60)


@pytest.mark.parametrize("container", ["", "shared readers"])
def test_what_several_operations_share_goes_on_too(tmp_path: Path, container: str) -> None:
    def build() -> tuple[fb.Graph, list[Any]]:
        graph = fb.Graph()
        with graph.as_default(), fb.container(container):
            queue = fb.train.string_input_producer(names, 1, shuffle=False, shared_name="names")
            readers = [fb.TextLineReader(shared_name="lines") for _ in range(2)]
            fb.Variable(0, name="something")
            return graph, [reader.read(queue)[1] for reader in readers]

    names = written(tmp_path, 2, 4)
    graph, [first, second] = build()
    with fb.Session(graph=graph) as sess:
        assert [sess.run(first), sess.run(second), sess.run(first)] == [b"1", b"2", b"3"]
        with graph.as_default():
            path = fb.train.Saver().save(sess, tmp_path / "it", timeout=60)
        assert sess.run(second) == b"4"
    fb.reset_container(container)
    graph, [first, second] = build()
    with fb.Session(graph=graph, checkpoint=path) as sess:
        assert [*fb.train.until_end(sess, second)] == [b"%d" % n for n in range(4, 9)]
    fb.reset_container(container)


@pytest.mark.parametrize("epochs", [2, None])
@pytest.mark.parametrize("after", [0, 1, 7])
@pytest.mark.parametrize("prefetch", [0, 4])
def test_a_session_that_has_gone_on_goes_back_to_a_checkpoint(
    tmp_path: Path, epochs: int | None, after: int, prefetch: int
) -> None:
    batch = fb.train.batches(np.arange(24.0), 3, epochs=epochs, shuffle=1, prefetch=prefetch)
    x = fb.Variable(np.zeros(3), name="x")
    step = fb.assign(x, 0.5 * x + batch + fb.random_uniform([3], seed=2, dtype=fb.float64))
    saver = fb.train.Saver()
    with fb.Session() as sess:
        whole = [sess.run(step).tolist() for _ in range(16)]
    for stop in (0, 5, 9):
        with fb.Session() as sess:
            assert [sess.run(step).tolist() for _ in range(stop)] == whole[:stop]
            path = saver.save(sess, tmp_path / "it", timeout=60)
            assert [sess.run(step).tolist() for _ in range(after)] == whole[stop : stop + after]
            saver.restore(sess, path, timeout=60)
            assert [sess.run(step).tolist() for _ in range(16 - stop)] == whole[stop:]
            # Also from behind its end, where the queue has been closed.
            if epochs is not None:
                with pytest.raises(fb.errors.OutOfRangeError):
                    sess.run(step)
            saver.restore(sess, path, timeout=60)
            assert [sess.run(step).tolist() for _ in range(16 - stop)] == whole[stop:]


@pytest.mark.parametrize("prefetch", [0, 2])
def test_a_session_that_is_reset_begins_with_the_first_batch(prefetch: int) -> None:
    batch = fb.train.batches(np.arange(4), 2, prefetch=prefetch)
    with fb.Session() as sess:
        for _ in range(3):
            assert [found.tolist() for found in fb.train.until_end(sess, batch)] == [[0, 1], [2, 3]]
            sess.reset()


def test_what_threads_had_read_ahead_does_not_come_again_after_a_restore(tmp_path: Path) -> None:
    names = written(tmp_path, 6, 20)
    queue = fb.train.string_input_producer(names, 1, shuffle=False, capacity=2)
    line = fb.TextLineReader().read(queue)[1]
    batch = fb.train.batch(line, 4, capacity=8, allow_smaller_final_batch=True)
    last = fb.train.batch(batch, 2, capacity=4, enqueue_many=True, allow_smaller_final_batch=True)
    saver = fb.train.Saver()
    with fb.Session() as sess:
        before = [line for _ in range(3) for line in sess.run(last).tolist()]
        path = saver.save(sess, tmp_path / "it", timeout=60)
        for _ in range(2):
            saver.restore(sess, path, timeout=60)
            after = [line for found in fb.train.until_end(sess, last) for line in found.tolist()]
            assert len({*before, *after}) == len(before) + len(after)
            # Those that were in queues, or under way, when it was saved are left out.
            assert len(before) + len(after) >= 120 - 8 - 4 - 4 - 2
            assert after[-1] == b"120"


def test_an_iterator_that_gives_everything_once_cannot_go_back(tmp_path: Path) -> None:
    number = fb.train.from_generator(iter(range(10)))
    fb.Variable(0)
    saver = fb.train.Saver()
    with fb.Session() as sess:
        assert sess.run(number) == 0
        saver.restore(sess, saver.save(sess, tmp_path / "it"))
        with pytest.raises(fb.errors.FailedPreconditionError, match="before the restore"):
            sess.run(number, timeout=60)


def test_a_session_that_is_reset_reads_from_the_beginning(tmp_path: Path) -> None:
    names = written(tmp_path, 2, 3)
    queue = fb.train.string_input_producer(names, 1, shuffle=False)
    line = fb.train.batch(fb.TextLineReader().read(queue)[1], 1)
    number = fb.train.from_generator(range(4))
    with fb.Session() as sess:
        for _ in range(3):
            assert [int(found[0]) for found in fb.train.until_end(sess, line)] == [*range(1, 7)]
            assert [int(found) for found in fb.train.until_end(sess, number)] == [*range(4)]
            sess.reset()
        assert sess.run(line).tolist() == [b"1"]
        sess.reset()
        assert sess.run(line).tolist() == [b"1"]
