"""Traces: what is noted of runs, that these do what they do otherwise, and the file."""

from __future__ import annotations

import gc
import itertools
import json
import threading
import weakref
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowbook as fb
from flowbook.exec.engine.recording import Noted
from flowbook.exec.report import in_time
from tests.exec.engine.code.test_lowering import STATE, build, programs, starts
from tests.exec.engine.test_joint import DEVICES, assert_same, outcome, scatter
from tests.exec.random_graphs import examples

ONE_OR_MORE = st.one_of(st.just(["cpu:0"]), DEVICES)


@pytest.fixture
def x() -> fb.Tensor:
    return fb.placeholder(fb.float32, [None], name="x")


@pytest.fixture
def chain(x: fb.Tensor) -> fb.Tensor:
    """Three operations, one after the other."""
    with fb.name_scope("outer"), fb.name_scope("inner"):
        y = fb.exp(x, name="y")
    return fb.reduce_sum(fb.negative(y, name="z"), name="total")


FED = np.ones(4, np.float32)


def test_calls_are_in_order_and_within_their_steps(x: fb.Tensor, chain: fb.Tensor) -> None:
    with fb.Session() as sess, sess.trace() as trace:
        for _ in range(4):
            sess.run(chain, {x: FED})
    assert [step.number for step in trace.steps] == [0, 1, 2, 3]
    for step in trace.steps:
        calls = [call for call in trace.calls if call.step == step.number]
        assert [call.operation for call in calls] == ["outer/inner/y", "z", "total"]
        assert [call.operations for call in calls] == [("outer/inner/y",), ("z",), ("total",)]
        assert [call.type for call in calls] == ["Exp", "Neg", "Sum"]
        assert [call.bytes for call in calls] == [16, 16, 4]
        assert [call.iteration for call in calls] == [0, 0, 0]
        assert {call.thread for call in calls} == {threading.current_thread().name}
        assert {call.device for call in calls} == {device.name for device in sess.list_devices()}
        assert step.end is not None
        assert step.start <= calls[0].start
        assert calls[-1].end <= step.end
        for call, following in itertools.pairwise(calls):
            assert call.end == following.ready <= following.start <= following.end
    assert not any(call.waits or call.key for call in trace.calls)


def test_what_needs_a_handle_alone_is_ready_when_the_step_begins() -> None:
    v = fb.Variable(1.0, name="v")
    doubled = fb.assign(v, v * 2.0)
    with fb.Session() as sess:
        sess.run(v)
        with sess.trace() as trace:
            sess.run(doubled)
    read, product, written = trace.calls
    assert [call.type for call in trace.calls] == ["ReadVariable", "Mul", "Assign"]
    assert read.ready == trace.steps[0].start
    assert (product.ready, written.ready) == (read.end, product.end)


def test_nothing_is_noted_before_and_after_the_block(x: fb.Tensor, chain: fb.Tensor) -> None:
    with fb.Session() as sess:
        before = sess.run(chain, {x: FED})
        with sess.trace() as trace:
            assert sess.run(chain, {x: FED}) == before
        assert sess.run(chain, {x: FED}) == before
        assert sess._instruments.all == ()
    assert len(trace.steps) == 1
    assert len(trace.calls) == 3


def test_what_one_trace_has_prepared_the_next_one_finds(x: fb.Tensor, chain: fb.Tensor) -> None:
    with fb.Session() as sess:
        with sess.trace() as first:
            sess.run(chain, {x: FED})
        count = len(sess._master._programs.all)
        with sess.trace() as second:
            sess.run(chain, {x: FED})
        assert len(sess._master._programs.all) == count
    assert len(first.calls) == len(second.calls) == 3


def test_a_session_does_not_keep_what_was_traced(x: fb.Tensor, chain: fb.Tensor) -> None:
    with fb.Session() as sess:
        with sess.trace() as trace:
            sess.run(chain, {x: FED})
        kept = weakref.ref(trace)
        del trace
        gc.collect()
        assert kept() is None


def test_an_error_leaves_what_was_traced_until_then(x: fb.Tensor) -> None:
    def fail(value: Any) -> Any:
        raise ValueError("no")

    failing = fb.py_func(fail, [fb.exp(x, name="y")], fb.float32)
    fed = FED.copy()
    kept = weakref.ref(fed)
    with fb.Session() as sess:
        with pytest.raises(fb.errors.OpError) as caught, sess.trace() as trace:
            sess.run(failing, {x: fed})
        assert sess._instruments.all == ()
    assert [call.operation for call in trace.calls] == ["y"]
    (step,) = trace.steps
    assert step.end is not None
    del fed
    assert caught.value.operation is failing.op
    assert kept() is None


def test_an_interrupt_leaves_what_was_traced_until_then(x: fb.Tensor) -> None:
    def interrupt(value: Any) -> Any:
        raise KeyboardInterrupt

    interrupted = fb.py_func(interrupt, [fb.exp(x, name="y")], fb.float32)
    with fb.Session() as sess:
        with pytest.raises(KeyboardInterrupt), sess.trace() as trace:
            sess.run(interrupted, {x: FED})
        assert [call.operation for call in trace.calls] == ["y"]
        assert len(sess.run(fb.exp(x), {x: FED})) == 4


def test_iterations_are_counted() -> None:
    i, total = fb.while_loop(
        lambda i, total: i < 5,
        lambda i, total: (i + 1, fb.add(total, i, name="sum")),
        [fb.constant(0), fb.constant(0)],
        name="loop",
    )
    with fb.Session() as sess, sess.trace() as trace:
        for _ in range(3):
            assert sess.run([i, total]) == [5, 10]
    for step in range(3):
        sums = [c for c in trace.calls if c.step == step and c.operation == "loop/sum"]
        assert [call.iteration for call in sums] == [0, 1, 2, 3, 4]
        assert all(call.ready <= call.start <= call.end for call in sums)


def test_only_the_branch_that_is_taken_is_noted(x: fb.Tensor) -> None:
    pred = fb.placeholder(fb.bool, [], name="pred")
    y = fb.cond(pred, lambda: fb.exp(x, name="taken"), lambda: fb.log(x, name="other"))
    with fb.Session() as sess, sess.trace() as trace:
        for chosen in (True, False, True):
            sess.run(y, {x: FED, pred: chosen})
    ran = [c.operation.rpartition("/")[2] for c in trace.calls if c.type in ("Exp", "Log")]
    assert ran == ["taken", "other", "taken"]


def test_there_is_room_for_so_many_calls(x: fb.Tensor, chain: fb.Tensor) -> None:
    with fb.Session() as sess, sess.trace(most_calls=4) as trace:
        for _ in range(4):
            sess.run(chain, {x: FED})
    assert len(trace.calls) == 4
    assert len(trace.steps) == 2
    assert trace.dropped == 2
    assert str(trace).endswith(
        "not kept, for want of room: 2 calls, and 2 steps with all of theirs"
    )


def test_what_a_call_needs_of_a_dropped_one_is_not_known(x: fb.Tensor, chain: fb.Tensor) -> None:
    with fb.Session() as sess, sess.trace() as trace:
        sess.run(chain, {x: FED})
        del trace._recorder._noted[: len(Noted._fields)]
    first, second = trace.calls
    assert first.operation == "z"
    assert first.delay == 0
    assert second.ready == first.end


def test_partial_runs_leave_nothing(x: fb.Tensor, chain: fb.Tensor) -> None:
    with fb.Session() as sess, sess.trace() as trace:
        run = sess.partial_run(chain, [x])
        assert run.run(chain, {x: FED}) == sess.run(chain, {x: FED})
    assert len(trace.steps) == 1
    assert len(trace.calls) == 3


def test_live_bytes_are_those_that_are_still_needed(x: fb.Tensor) -> None:
    first = fb.exp(x, name="first")
    second = fb.negative(first, name="second")
    view = fb.reshape(second, [2, 2], name="view")
    third = fb.exp(view, name="third")
    last = fb.add(third, fb.reshape(first, [2, 2], name="again"), name="last")
    total = fb.reduce_sum(last, name="total")
    with fb.Session() as sess, sess.trace() as trace:
        sess.run(total, {x: FED})
    # The first lives on in the view that is made of it again; the second dies with its view.
    live = {call.operation: call.live for call in trace.calls if call.operation != "again"}
    wanted = {"first": 16, "second": 32, "view": 32, "third": 48, "last": 48, "total": 20}
    assert live == wanted
    assert trace.by_device()[sess.list_devices()[0].name].peak == 48


def test_variables_and_iterations_take_no_more_and_more(x: fb.Tensor) -> None:
    w = fb.Variable(np.ones(4, np.float32), name="w")
    (_, total) = fb.while_loop(
        lambda i, total: i < 50, lambda i, total: (i + 1, total * w), [0, x + 0.5]
    )
    with fb.Session() as sess, sess.trace() as trace:
        for _ in range(3):
            sess.run(total, {x: FED})
    assert 16 <= trace.by_device()[sess.list_devices()[0].name].peak <= 100


@pytest.mark.parametrize("count", [0, -1, True, 2.0, "4"])
def test_room_is_a_positive_integer(count: Any) -> None:
    with (
        fb.Session() as sess,
        pytest.raises(fb.errors.InvalidArgumentError, match="most_calls is a positive integer"),
    ):
        sess.trace(most_calls=count)


def test_one_trace_at_a_time() -> None:
    with fb.Session() as sess:
        trace = sess.trace()
        with pytest.raises(fb.errors.FailedPreconditionError, match="is being traced already"):
            sess.trace()
        trace.remove()
        sess.trace().remove()


def test_what_waits_lasts_until_it_reports(x: fb.Tensor) -> None:
    begun, reported = threading.Event(), threading.Event()

    def slow(context: Any, value: Any) -> None:
        def report() -> None:
            begun.wait()
            context.complete((value,))
            reported.set()

        threading.Thread(target=report).start()

    slow_op = fb.OpDef(
        "TraceSlow",
        "x: float32 -> y: float32",
        infer=lambda x: x.shape,
        kernel=slow,
        is_async=True,
    )
    waits = slow_op(x, name="waits")
    begin = fb.py_func(lambda: begun.set() or np.float32(1), [], fb.float32, name="begin")
    with fb.Session() as sess, sess.trace() as trace:
        sess.run([fb.exp(waits, name="after"), begin], {x: FED})
    calls = {call.operation: call for call in trace.calls}
    assert calls["waits"].waits
    assert not calls["after"].waits
    assert calls["waits"].bytes == 16
    assert calls["waits"].thread == threading.current_thread().name
    assert calls["waits"].end <= calls["after"].ready
    shares = trace.by_operation()
    assert shares["waits"].busy == 0
    assert shares["waits"].waited == calls["waits"].duration


def two_devices(x: fb.Tensor) -> fb.Tensor:
    with fb.device("cpu:0"):
        y = fb.exp(x, name="y")
    with fb.device("cpu:1"):
        return fb.negative(y, name="z")


def test_transfers_lead_from_send_to_receive(x: fb.Tensor) -> None:
    z = two_devices(x)
    with fb.Session(cpus=2) as sess, sess.trace() as trace:
        for _ in range(3):
            sess.run(z, {x: FED})
    assert len(trace.transfers) == 3
    for number, (send, receive) in enumerate(trace.transfers):
        assert send.step == receive.step == number
        assert send.key == receive.key
        assert send.device.endswith("cpu:0")
        assert receive.device.endswith("cpu:1")
        assert send.start <= receive.end
        assert receive.bytes == 16
    lanes = {(call.device[-1], call.thread) for call in trace.calls}
    assert len(lanes) == 2
    assert len({thread for _, thread in lanes}) == 2


def test_transfers_of_a_loop(x: fb.Tensor) -> None:
    def body(i: Any, value: Any) -> Any:
        with fb.device("cpu:1"):
            return i + 1, fb.negative(value, name="there")

    with fb.device("cpu:0"):
        result = fb.while_loop(lambda i, value: i < 4, body, [0, x])
    with fb.Session(cpus=2) as sess, sess.trace() as trace:
        sess.run(result, {x: FED})
    assert trace.transfers
    for send, receive in trace.transfers:
        assert send.iteration == receive.iteration
        assert send.start <= receive.end
    sent = Counter(send.key for send, _ in trace.transfers)
    received = Counter(call.key for call in trace.calls if call.type == "Recv")
    assert sent == received


def test_steps_of_several_threads_are_apart(x: fb.Tensor, chain: fb.Tensor) -> None:
    together = threading.Barrier(2)
    meeting = fb.py_func(lambda: np.float32(together.wait()), [], fb.float32)
    with fb.Session() as sess, sess.trace() as trace:

        def run() -> None:
            sess.run([chain, meeting], {x: FED})

        other = threading.Thread(target=run, name="other")
        other.start()
        run()
        other.join()
    assert {step.thread for step in trace.steps} == {threading.current_thread().name, "other"}
    for step in trace.steps:
        calls = [call for call in trace.calls if call.step == step.number]
        assert len(calls) == 4
        assert {call.thread for call in calls} == {step.thread}


def test_where_the_time_went(x: fb.Tensor, chain: fb.Tensor) -> None:
    z = two_devices(x)
    with fb.Session(cpus=2) as sess, sess.trace() as trace:
        sess.run([chain, z], {x: FED})
        sess.run([chain, z], {x: FED})
    for shares in (trace.by_operation(), trace.by_scope(), trace.by_device()):
        found = shares.shares.values()
        assert sum(share.calls for share in found) == len(trace.calls)
        assert sum(share.delay for share in found) == sum(call.delay for call in trace.calls)
        busy = [share.busy for share in found]
        assert busy == sorted(busy, reverse=True)
        assert str(shares).splitlines()[0] == f"2 steps, {len(trace.calls)} calls of kernels"
    assert trace.by_operation()["total"].calls == 2
    assert trace.by_operation()["total"].bytes == 8
    assert set(trace.by_scope().shares) == {"", "outer"}
    assert set(trace.by_scope(2).shares) == {"", "outer/inner"}
    assert set(trace.by_device().shares) == {device.name for device in sess.list_devices()}
    with pytest.raises(fb.errors.InvalidArgumentError, match="depth is a number"):
        trace.by_scope(0)


def test_a_trace_of_nothing(tmp_path: Path) -> None:
    with fb.Session() as sess, sess.trace() as trace:
        pass
    assert str(trace) == "0 steps, 0 calls of kernels"
    trace.save(tmp_path / "empty.json")
    names = json.loads((tmp_path / "empty.json").read_text())["traceEvents"]
    assert [event["ph"] for event in names] == ["M"]


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (1000, "1.00 us"),
        (31_400, "31.4 us"),
        (999_600, "1.00 ms"),
        (2_500_000_000, "2.50 s"),
        (10**13, "10000 s"),
    ],
)
def test_times_as_text(nanoseconds: int, text: str) -> None:
    assert in_time(nanoseconds) == text


# The file


def saved(trace: Any, folder: Path) -> list[dict[str, Any]]:
    trace.save(folder / "trace.json")
    content = json.loads((folder / "trace.json").read_text())
    assert content.keys() == {"displayTimeUnit", "traceEvents"}
    return content["traceEvents"]  # type: ignore[no-any-return]


def assert_well_formed(events: list[dict[str, Any]]) -> None:
    """What the format wants: fields, named lanes, slices that nest, both ends of each arrow."""
    needed = {"X": {"name", "cat", "ts", "dur", "pid", "tid"}, "M": {"name", "pid", "args"},
              "s": {"name", "cat", "id", "ts", "pid", "tid"},
              "f": {"name", "cat", "id", "ts", "pid", "tid", "bp"}}  # fmt: skip
    for event in events:
        assert needed[event["ph"]] <= event.keys()
    processes = {e["pid"] for e in events if e["name"] == "process_name"}
    assert min(processes) > 0
    threads = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    slices = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            assert event["pid"] in processes
            assert event["dur"] >= 0
            assert event["ts"] >= 0
            slices[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    assert slices.keys() <= threads
    for lane in slices.values():
        open_until: list[float] = []
        for start, end in sorted(lane, key=lambda each: (each[0], -each[1])):
            while open_until and open_until[-1] <= start:
                open_until.pop()
            assert not open_until or end <= open_until[-1]
            open_until.append(end)
    arrows = [{e["id"]: e for e in events if e["ph"] == phase} for phase in "sf"]
    assert arrows[0].keys() == arrows[1].keys()
    for number, start in arrows[0].items():
        end = arrows[1][number]
        assert start["name"] == end["name"]
        assert start["ts"] <= end["ts"]
        for each in (start, end):
            lane = slices[each["pid"], each["tid"]]
            assert any(begin <= each["ts"] <= until for begin, until in lane)


def test_a_file_says_what_the_trace_does(x: fb.Tensor, tmp_path: Path) -> None:
    z = two_devices(x)
    with fb.Session(cpus=2) as sess, sess.trace() as trace:
        sess.run(z, {x: FED})
        sess.run(z, {x: FED})
    events = saved(trace, tmp_path)
    assert_well_formed(events)
    kinds = Counter(event.get("cat") for event in events)
    assert kinds == {"step": 2, "kernel": 6, "wait": 2, "transfer": 4, None: kinds[None]}
    names = {e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert names == {"steps", *[device.name for device in sess.list_devices()]}
    origin = trace.steps[0].start
    for call, event in zip(
        trace.calls, [e for e in events if e.get("cat") in ("kernel", "wait")], strict=True
    ):
        assert event["name"] == call.operation
        assert event["ts"] == (call.start - origin) / 1000
        assert event["dur"] == call.duration / 1000
        assert event["args"]["bytes"] == call.bytes
        assert event["args"]["type"] == call.type


def test_a_file_is_written_while_a_step_is_under_way(x: fb.Tensor, tmp_path: Path) -> None:
    traces: list[Any] = []

    def save() -> Any:
        assert_well_formed(saved(traces[0], tmp_path))
        assert traces[0].steps[0].end is None
        return np.float32(1)

    y = fb.py_func(save, [], fb.float32)
    with fb.Session() as sess, sess.trace() as trace:
        traces.append(trace)
        assert sess.run(y) == 1


# Traced runs do what they do otherwise


def assert_agree(
    one: fb.Session, traced: fb.Session, trace: Any, steps: list[Any], folder: Path
) -> None:
    traced._master.stores.entropy = one._master.stores.entropy
    for fetches, feeds in steps:
        assert_same(outcome(traced, fetches, feeds), outcome(one, fetches, feeds))
    assert_same(*(list(sess._master.resources.values().values()) for sess in (traced, one)))
    for call in trace.calls:
        step = trace.steps[call.step]
        assert step.start <= call.ready <= call.start <= call.end
    assert_well_formed(saved(trace, folder))


@settings(max_examples=60, deadline=None)
@given(examples(), ONE_OR_MORE, st.integers(0, 1000))
def test_random_graphs(
    tmp_path_factory: pytest.TempPathFactory, example: Any, devices: list[str], seed: int
) -> None:
    with (
        pytest.MonkeyPatch.context() as patch,
        fb.Session(example.graph) as one,
    ):
        scatter(patch, seed)
        with fb.Session(example.graph, devices=devices) as traced, traced.trace() as trace:
            assert_agree(one, traced, trace, example.steps * 3, tmp_path_factory.mktemp("trace"))


@settings(max_examples=60, deadline=None)
@given(programs(), starts, ONE_OR_MORE, st.integers(0, 1000))
def test_loops_and_branches(
    tmp_path_factory: pytest.TempPathFactory,
    program: Any,
    start: list[int],
    devices: list[str],
    seed: int,
) -> None:
    with pytest.MonkeyPatch.context() as patch, fb.Graph().as_default() as graph:
        scatter(patch, seed)
        feeds = [fb.placeholder(fb.int32, []) for _ in range(STATE)]
        ends: list[Any] = []
        values = build(program, feeds, fb.Variable(1, name="variable"), ends)
        steps = [([*values, *ends], dict(zip(feeds, start, strict=True)))] * 3
        with (
            fb.Session(graph) as one,
            fb.Session(graph, devices=devices) as traced,
            traced.trace() as trace,
        ):
            assert_agree(one, traced, trace, steps, tmp_path_factory.mktemp("trace"))
