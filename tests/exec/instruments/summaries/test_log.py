"""Log directories: read back by TensorBoard's own reader, and after every kind of accident."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.instruments.summaries import tensorboard
from flowbook.exec.instruments.summaries.event import Summary
from flowbook.exec.instruments.summaries.follow import opened
from flowbook.exec.instruments.summaries.history import SummaryHistory
from tests.need import requires

pytestmark = requires(module="tensorboard")


def scalars(run: str, count: int, start: int = 0) -> list[Summary]:
    return [Summary(run, "loss", "scalar", i, i / 8, i / 4) for i in range(start, start + count)]


def event_files(path: Path) -> list[Path]:
    return sorted(path.rglob("*.tfevents.*"))


def accumulated(path: Path) -> Any:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    limits = {"scalars": 0, "histograms": 0, "images": 0, "tensors": 0}
    found = EventAccumulator(str(path), size_guidance=limits)
    found.Reload()
    return found


def test_tensorboard_reads_back_all_of_it(tmp_path: Path) -> None:
    from flowbook.graph.numerics.formats.image_codecs import decode

    graph = fb.Graph()
    with graph.as_default():
        x = fb.placeholder(fb.float32, [None, 2], name="x")
        with fb.name_scope("layer"), fb.device("/cpu:0"):
            W = fb.Variable([[1.0], [2.0]], name="W")
        loss = fb.reduce_mean(fb.square(x @ W), name="mse")
        fb.summary.scalar("loss", loss)
        fb.summary.histogram("weights", W)
        pixels = fb.constant(np.arange(24, dtype=np.uint8).reshape(1, 2, 4, 3))
        fb.summary.image("picture", pixels, max_outputs=1)
        fb.summary.text("note", ["<b>bold</b>", b"\xff"])
        counter = fb.train.get_or_create_global_step()
        train = fb.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=counter)
    with fb.Session(graph=graph) as sess:
        kept = sess.summarize(to=tmp_path)
        losses = [sess.run([train, loss], {x: [[1.0, 0.5]]})[1] for _ in range(3)]
    [folder] = tmp_path.iterdir()
    assert folder.name == kept.run
    found = accumulated(folder)
    events = found.Scalars("loss")
    assert [e.step for e in events] == [0, 1, 2]
    np.testing.assert_array_equal([e.value for e in events], losses)
    assert [e.wall_time for e in events] == [p.wall_time for p in kept.history.points("loss")]
    first, kept_first = found.Histograms("weights")[0], kept.history.points("weights")[0].value
    histogram = first.histogram_value
    assert (histogram.min, histogram.max, histogram.num, histogram.sum) == (1.0, 2.0, 2.0, 3.0)
    assert tuple(histogram.bucket_limit) == kept_first.limits
    assert tuple(histogram.bucket) == kept_first.counts
    image = found.Images("picture/image")[0]
    assert (image.width, image.height) == (4, 2)
    decoded = decode(image.encoded_image_string, 3, np.dtype(np.uint8), ("PNG",))
    np.testing.assert_array_equal(decoded, np.arange(24).reshape(2, 4, 3))
    texts = list(found.Tensors("note")[0].tensor_proto.string_val)
    assert texts == [b"<b>bold</b>", "�".encode()]
    nodes = {node.name: node for node in found.Graph().node}
    assert set(nodes) == {op.name for op in graph.operations}
    assert list(nodes["MatMul"].input) == ["x", "layer/W/read"]
    assert nodes["MatMul"].op == "MatMul"
    assert "cpu" in nodes["layer/W"].device
    [shape] = nodes["x"].attr["_output_shapes"].list.shape
    assert [d.size for d in shape.dim] == [-1, 2]
    assert any(name.startswith("^") for node in nodes.values() for name in node.input)


def test_a_session_has_one_run_and_one_file_however_often_it_summarises(tmp_path: Path) -> None:
    v = fb.Variable(1.0)
    loss = fb.square(v)
    fb.summary.scalar("loss", loss)
    train = fb.train.GradientDescentOptimizer(0.1).minimize(loss)
    for _ in range(2):
        with fb.Session() as sess:
            sess.summarize(to=[tmp_path])
            sess.summarize(fetches=loss, series="test", to=[tmp_path])
            sess.run(train)
            sess.run(loss)
    assert len(list(tmp_path.iterdir())) == 2
    for file in event_files(tmp_path):
        assert set(accumulated(file.parent).Tags()["scalars"]) == {"loss", "test/loss"}
    assert len(event_files(tmp_path)) == 2


def test_what_was_flushed_is_there_before_the_log_is_closed(tmp_path: Path) -> None:
    log = fb.summary.LogDirectory(str(tmp_path), flush_seconds=1000)
    log.add(scalars("a", 3))
    log.flush()
    assert len(fb.summary.follow(tmp_path).history.points("loss")) == 3
    log.close()
    with pytest.raises(fb.errors.FailedPreconditionError, match="closed"):
        log.add(scalars("a", 1))


def test_it_is_flushed_from_time_to_time(tmp_path: Path) -> None:
    log = fb.summary.LogDirectory(str(tmp_path), flush_seconds=0.01)
    log.add(scalars("a", 3))
    follower = fb.summary.follow(tmp_path)
    end = time.monotonic() + 30
    while not follower.history.runs and time.monotonic() < end:
        follower.poll()
    assert len(follower.history.points("loss")) == 3
    log.close()


def test_a_forgotten_log_is_written(tmp_path: Path) -> None:
    log = fb.summary.LogDirectory(str(tmp_path), flush_seconds=1000)
    log.add(scalars("a", 3))
    del log
    assert len(fb.summary.follow(tmp_path).history.points("loss")) == 3


def test_threads_lose_nothing(tmp_path: Path) -> None:
    log = fb.summary.LogDirectory(str(tmp_path), flush_seconds=0.001)

    def add(start: int) -> None:
        for i in range(start, start + 100):
            log.add(scalars("a", 1, i))

    threads = [threading.Thread(target=add, args=(i * 100,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.close()
    points = fb.summary.follow(tmp_path).history.points("loss")
    assert sorted(p.step for p in points) == list(range(400))


WRITER = """
import sys, flowbook as fb
from flowbook.exec.instruments.summaries.event import Summary
from flowbook.exec.instruments.summaries.history import SummaryHistory
log = fb.summary.LogDirectory(sys.argv[1], flush_seconds=0.02)
step = 0
while True:
    log.add([Summary("a", "loss", "scalar", step, 0.0, float(step))])
    step += 1
    if step % 100 == 0:
        print(step, flush=True)
"""


def test_a_killed_writer_loses_no_more_than_what_was_not_flushed(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        assert writer.stdout is not None
        history = fb.summary.SummaryHistory(points=1_000_000)
        writer.stdout.readline()
        follower = fb.summary.follow(tmp_path, history)
        end = time.monotonic() + 60
        while "a" not in history.runs and time.monotonic() < end:
            follower.poll()
        follower.poll()
        seen = len(history.points("loss"))
        assert seen
    finally:
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
        writer.stdout.close()  # type: ignore[union-attr]
    follower.poll()
    steps = [p.step for p in history.points("loss")]
    # Whole and without gaps up to the last flush, and nothing that was seen is gone.
    assert steps == list(range(len(steps)))
    assert len(steps) >= seen


@pytest.mark.parametrize("cut", [1, 5, 11, 17, 30])
def test_a_cut_file_is_read_up_to_its_damage_with_a_warning(tmp_path: Path, cut: int) -> None:
    log = fb.summary.LogDirectory(str(tmp_path))
    for i in range(10):
        log.add(scalars("a", 1, i))
    log.close()
    [file] = event_files(tmp_path)
    content = file.read_bytes()
    file.write_bytes(content[:-cut])
    follower = fb.summary.follow(tmp_path)
    steps = [p.step for p in follower.history.points("loss")]
    assert steps == list(range(len(steps)))
    assert len(steps) in (8, 9)
    with pytest.warns(UserWarning, match="ends in the middle of a record"):
        assert follower.poll(final=True) == 0
    # Said once; and another run of the same log is none the worse.
    follower.poll(final=True)
    other = fb.summary.LogDirectory(str(tmp_path))
    other.add(scalars("b", 4))
    other.close()
    assert follower.poll() == 4


def test_an_unfinished_record_is_waited_for(tmp_path: Path) -> None:
    log = fb.summary.LogDirectory(str(tmp_path))
    log.add(scalars("a", 1))
    log.add(scalars("a", 1, 1))
    log.close()
    [file] = event_files(tmp_path)
    content = file.read_bytes()
    file.write_bytes(content[:-3])
    follower = fb.summary.follow(tmp_path)
    assert len(follower.history.points("loss")) == 1
    file.write_bytes(content)
    assert follower.poll() == 1
    assert follower.poll() == 0


def test_a_log_read_in_slices_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from flowbook.exec.instruments.summaries import follow

    log = fb.summary.LogDirectory(str(tmp_path))
    for i in range(50):
        log.add(scalars("a", 1, i))
        log.add([Summary("b", "words", "text", i, 0.0, ("x" * 20 * i,))])
    log.close()
    whole = fb.summary.follow(tmp_path)
    monkeypatch.setattr(follow, "_SLICE", 64)  # Less than most records.
    sliced = fb.summary.follow(tmp_path)
    for tag in ("loss", "words"):
        assert sliced.history.points(tag) == whole.history.points(tag)
    # Without any time nothing is read, and nothing is lost.
    follower = follow.opened(tmp_path, SummaryHistory())
    assert follower.read(seconds=0.0) == 0
    assert follower.read() == 100


def test_a_wrong_byte_costs_its_record(tmp_path: Path) -> None:
    log = fb.summary.LogDirectory(str(tmp_path))
    for i in range(10):
        log.add(scalars("a", 1, i))
    log.close()
    [file] = event_files(tmp_path)
    content = bytearray(file.read_bytes())
    content[-5] ^= 1
    file.write_bytes(content)
    with pytest.warns(UserWarning, match="1 records are skipped"):
        follower = fb.summary.follow(tmp_path)
    assert [p.step for p in follower.history.points("loss")] == list(range(9))


def test_what_is_no_log_is_skipped_with_a_warning(tmp_path: Path) -> None:
    (tmp_path / "a.tfevents.1").write_bytes(b"<html>" * 1000)
    with pytest.warns(UserWarning, match="length of a record is damaged"):
        follower = fb.summary.follow(tmp_path)
    assert follower.history.runs == []


def test_a_disk_that_fails_does_not_fail_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flowbook.exec.instruments.summaries import log as logs

    written = os.write

    def full(descriptor: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    log = fb.summary.LogDirectory(str(tmp_path), flush_seconds=1000)
    log.add(scalars("a", 2))
    monkeypatch.setattr(logs.os, "write", full)
    with pytest.warns(UserWarning, match="No space left"):
        log.flush()
    log.add(scalars("a", 1, 2))
    log.flush()
    monkeypatch.setattr(logs.os, "write", written)
    log.close()
    assert len(fb.summary.follow(tmp_path).history.points("loss")) == 3


def test_hostile_values_break_nothing(tmp_path: Path) -> None:
    tags = ["<script>alert(1)</script>", "a\nb", "../../x", "日本 \ud800", "y" * 1_000_000]
    log = fb.summary.LogDirectory(str(tmp_path))
    for tag in tags:
        log.add([Summary("a", tag, "scalar", 0, 0.0, float("nan"))])
        log.add([Summary("a", "text", "text", 0, 0.0, (tag,))])
    log.add([Summary("a", "huge", "scalar", 2**62, 0.0, 1e308)])
    log.close()
    history = fb.summary.follow(tmp_path).history
    assert {"<script>alert(1)</script>", "a\nb", "../../x", "y" * 1_000_000} <= set(history.tags())
    assert np.isnan(history.points("../../x")[0].value)
    assert history.points("huge")[0] == (2**62, 0.0, np.inf)
    assert history.points("text")[-1].value == ("y" * 1_000_000,)


def test_reading_gives_the_garbage_collector_nothing_to_do(tmp_path: Path) -> None:
    # It stops every thread, and looks at more the more there is.
    tags, steps = 500, 60
    log = fb.summary.LogDirectory(tmp_path)
    for step in range(steps):
        log.add([Summary("a", f"x{i}", "scalar", step, 0.0, 1.0) for i in range(tags)])
    log.close()
    follower = opened(tmp_path, SummaryHistory(points=50))
    collections: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            collections.append(info["generation"])

    gc.collect()
    before = len(gc.get_objects())
    gc.callbacks.append(note)
    try:
        assert follower.read() == tags * steps
    finally:
        gc.callbacks.remove(note)
    assert len(gc.get_objects()) - before < 15 * tags  # What a series is; no point of it.
    assert len(collections) < 15 * tags / gc.get_threshold()[0]


def test_there_has_to_be_a_directory(tmp_path: Path) -> None:
    with pytest.raises(fb.errors.NotFoundError, match="no log directory"):
        fb.summary.follow(tmp_path / "none")


def test_without_the_package_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tensorboard.protocol.cache_clear()
    monkeypatch.setitem(sys.modules, "tensorboard.compat.proto", None)
    with (
        fb.Session() as sess,
        pytest.raises(fb.errors.UnimplementedError, match="pip install tensorboard"),
    ):
        sess.summarize(to=tmp_path)


def test_a_scalar_that_claims_to_be_four_tebibytes() -> None:
    """A tensor of one number may say that it repeats it."""
    messages = tensorboard.protocol()
    event = messages.event.Event()
    for dims, number in (([2**20, 2**20], 1.0), ([], 2.0), ([1], 3.0)):
        value = event.summary.value.add(tag="loss")
        value.metadata.plugin_data.plugin_name = "scalars"
        value.tensor.dtype = messages.types.DT_FLOAT
        value.tensor.float_val.append(number)
        for size in dims:
            value.tensor.tensor_shape.dim.add(size=size)
    found = tensorboard.read_summaries(event.SerializeToString(), "run")
    assert [summary.value for summary in found] == [2.0, 3.0]
    value = messages.event.Event()
    wrong = value.summary.value.add(tag="loss")
    wrong.metadata.plugin_data.plugin_name = "scalars"
    wrong.tensor.dtype = 99
    with pytest.raises(ValueError, match="a scalar is no number"):
        list(tensorboard.read_summaries(value.SerializeToString(), "run"))


def test_who_reads_in_the_same_process_misses_nothing(tmp_path: Path) -> None:
    log = fb.summary.LogDirectory(str(tmp_path), flush_seconds=1e6)
    log.add([Summary("a", "x", "scalar", 0, 0.0, 1.0)])
    link = tmp_path.parent / "link"
    link.symlink_to(tmp_path)
    followed = fb.summary.follow(link)
    assert [p.value for p in followed.history.points("x")] == [1.0]
    log.add([Summary("a", "x", "scalar", 1, 0.0, 2.0)])
    assert fb.summary.follow(tmp_path / "a").history.points("x")[-1].value == 2.0
    log.close()
