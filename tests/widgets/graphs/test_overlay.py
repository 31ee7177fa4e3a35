"""What plans and traces lay over the picture of a graph."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.instruments.trace_records import TracedCall, TracedStep, Transfer
from flowbook.widgets.graphs.overlay import Colouring, Group, Note, Overlay, short_names
from flowbook.widgets.graphs.payload import graph_payload
from flowbook.widgets.graphs.plan_overlay import plan_overlay
from flowbook.widgets.graphs.svg import graph_svg
from flowbook.widgets.graphs.trace_overlay import (
    Measured,
    measured,
    measured_transfers,
    step_seconds,
    trace_overlay,
)
from tests.widgets.graphs.drawn_graph import Box, boxes
from tests.widgets.graphs.test_graph_payload import Read

CPU = "/job:localhost/task:0/device:cpu:"


def on_two_devices() -> tuple[fb.Tensor, fb.Tensor]:
    """In a scope: an exponential on one device, and its sum, asked for twice, on another."""
    x = fb.placeholder(fb.float32, [1000], name="x")
    with fb.name_scope("scope"):
        with fb.device("cpu:0"):
            h = fb.exp(x, name="h")
            fb.exp(x, name="same")
        with fb.device("cpu:1"):
            same = fb.get_default_graph().get_tensor_by_name("scope/same:0")
            y = fb.add(fb.reduce_sum(h, name="a"), fb.reduce_max(same, name="b"), name="y")
    return x, y


def planned(devices: Any = None) -> fb.PlacementView:
    x, y = on_two_devices()
    with fb.Session(cpus=2) as sess:
        return sess.explain(y, {x: (1000,)}, devices)


def traced(*calls: Any, steps: int = 3) -> Any:
    """What stands in for a trace: calls as name, step, device, nanoseconds, bytes, waits."""
    made = [
        TracedCall(n, (n,), "Exp", step, 0, device, "t", 0, 0, took, size, 0, waits, "")
        for n, step, device, took, size, waits in calls
    ]
    return SimpleNamespace(
        calls=made,
        transfers=[],
        steps=[TracedStep(i, "t", 0, 1000 * (i + 1)) for i in range(steps)],
    )


def test_devices_are_groups_with_what_they_have_to_do() -> None:
    overlay = plan_overlay(planned())
    device = overlay.colourings[0]
    assert device.by == "device"
    assert [group.label for group in device.groups] == ["cpu:0", "cpu:1"]
    assert device.groups[1].about[0] == "3 operations"
    # What another is made in place of runs where that runs.
    assert device.values["scope/same"] == device.values["scope/h"] == 0
    assert device.values["scope/y"] == 1
    assert "x" not in device.values


def test_a_value_that_stands_for_two_crosses_on_the_lines_of_both() -> None:
    overlay = plan_overlay(planned())
    assert overlay.crossings == {("scope/h:0", 1): 4000, ("scope/same:0", 1): 4000}


def test_notes_tell_the_reason_the_candidates_and_what_is_sent() -> None:
    x = fb.placeholder(fb.float32, [1000], name="x")
    b = fb.random_shuffle(fb.fill([2], 1.0), name="b")
    y = fb.exp(x, name="y") + fb.reduce_sum(b)
    with fb.Session() as sess:
        plan = sess.explain(y, {x: (1000,)}, ["gpu:0", "gpu:1"])
    notes = plan_overlay(plan).notes
    [runs_on, *others] = notes["b"]
    assert (runs_on.heading, runs_on.text) == ("runs on", "cpu:0")
    ruled_out = [(note.text, note.detail) for note in others if note.heading == "ruled out"]
    assert ruled_out == [(f"gpu:{i}", "has no kernel for 'b'") for i in range(2)]
    ends = [note.text for note in notes["y"] if note.heading == "would end"]
    assert ends == ["gpu:0", "gpu:1", "cpu:0"]
    forced = plan_overlay(planned()).notes["scope/h"]
    assert forced[0] == Note("runs on", "cpu:0", "'scope/h' asks for /device:cpu:0")
    assert [note.text for note in forced if note.heading == "sends"] == ["scope/h:0 to cpu:1"]


def test_two_plans_share_colours_and_mark_what_runs_elsewhere() -> None:
    x = fb.placeholder(fb.float32, [1000], name="x")
    with fb.device("cpu:0"):
        stays = fb.exp(x, name="stays")
    y = fb.add(stays, 1.0, name="y")
    with fb.Session() as sess:
        here = sess.explain(y, {x: (1000,)})
        there = sess.explain(y, {x: (1000,)}, ["gpu:0"])
    one, two = plan_overlay(here, there), plan_overlay(there, here)
    assert (
        set(one.differing)
        == set(two.differing)
        == {name for name in ("stays", "y") if here.device(_op(name)) != there.device(_op(name))}
    )
    colours = [{g.label: g.colour for g in each.colourings[0].groups} for each in (one, two)]
    assert colours[0].items() <= colours[1].items()
    assert len(set(colours[1].values())) == len(colours[1])


def test_of_many_requests_an_operations_own_comes_first() -> None:
    with fb.device("cpu:1"):
        v = fb.Variable(np.zeros(2, np.float32), name="v")
        changes = [fb.assign(v, [float(i), 0.0], name=f"set{i}") for i in range(3)]
    with fb.Session(cpus=2) as sess:
        notes = plan_overlay(sess.explain(changes)).notes
    asks = notes["set1"][0].detail
    assert asks.startswith("'set1' asks for /device:cpu:1, and ")
    assert asks.endswith(" more such reasons")


def test_transfers_are_measured_too() -> None:
    x, y = on_two_devices()
    with fb.Session(cpus=2) as sess:
        plan = sess.explain(y, {x: (1000,)})
        with sess.trace() as trace:
            sess.run(y, {x: np.zeros(1000)})
    [key] = measured_transfers(trace)
    assert key == ("scope/h:0", CPU + "1")
    [sends] = [n for n in plan_overlay(plan, trace=trace).notes["scope/h"] if n.heading == "sends"]
    assert ", measured " in sends.detail


def test_who_waits_for_a_value_does_not_count() -> None:
    def call(kind: str, start: int, end: int) -> TracedCall:
        return TracedCall(f"v:0/{kind}", (), "", 0, 0, "d", "t", 0, start, end, 0, 0, False, "v")

    pairs = [
        Transfer(call("send", 100, 130), call("recv", 20, 150)),  # It waited,
        Transfer(call("send", 100, 130), call("recv", 500, 520)),  # or the value did.
        Transfer(call("send", 100, 130), call("recv", 110, 125)),
    ]
    for pair, took in zip(pairs, (50, 50, 30), strict=True):
        trace: Any = SimpleNamespace(transfers=[pair])
        assert measured_transfers(trace) == {("v:0", "d"): pytest.approx(took * 1e-9)}


def _op(name: str) -> Any:
    return fb.get_default_graph().get_operation_by_name(name)


def test_what_was_measured_is_the_median_of_the_steps() -> None:
    trace = traced(
        ("a", 0, "d0", 900, 8, False),
        ("a", 1, "d0", 100, 8, False),
        ("a", 1, "d0", 500, 8, False),
        ("a", 2, "d0", 400, 8, False),
        ("b", 2, "d1", 700, 0, True),
    )
    assert measured(trace) == {"a": Measured("d0", 4, pytest.approx(600e-9), 8)}
    assert step_seconds(trace) == pytest.approx(2000e-9)
    assert step_seconds(trace, ["b"]) == pytest.approx(3000e-9)
    assert step_seconds(trace, ["c"]) is None


def test_what_was_predicted_is_held_against_what_was_measured() -> None:
    plan = planned()
    trace = traced(("scope/h", 0, CPU + "0", 5000, 4000, False), steps=1)
    overlay = plan_overlay(plan, trace=trace)
    assert [each.by for each in overlay.colourings][3:] == ["measured time", "measured / predicted"]
    ratio = overlay.colourings[-1]
    assert ratio.values == {"scope/h": pytest.approx(5e-6)}
    assert ratio.against == {"scope/h": plan.operations[_op("scope/h")].end}
    assert "measured 5.00 us" in overlay.colourings[0].groups[0].about
    assert "1.00 us measured" in overlay.title
    assert Note("measured", "5.00 us", "on cpu:0") in overlay.notes["scope/h"]


def test_a_trace_tells_of_time_memory_and_device() -> None:
    x, y = on_two_devices()
    with fb.Session(cpus=2) as sess, sess.trace() as trace:
        for _ in range(2):
            sess.run(y, {x: np.zeros(1000)})
    overlay = trace_overlay(trace)
    time, memory, device = overlay.colourings
    assert [time.by, memory.by, device.by] == ["time", "memory", "device"]
    assert memory.values["scope/h"] == 4000
    assert time.values["scope/h"] > 0
    assert [group.label for group in device.groups] == ["cpu:0", "cpu:1"]
    assert Note("ran on", "cpu:0", "2 calls") in overlay.notes["scope/h"]
    assert overlay.coloured_by("device").colourings[0] is device
    assert overlay.coloured_by(None) is overlay
    with pytest.raises(ValueError, match="time, memory, device, not of 'colour'"):
        overlay.coloured_by("colour")


def test_names_of_devices_are_short_where_they_are_of_one_task() -> None:
    assert short_names([CPU + "0"]) == {CPU + "0": "cpu:0"}
    elsewhere = "/job:worker/task:1/device:cpu:0"
    assert short_names([CPU + "0", elsewhere])[elsewhere] == elsewhere


def test_pages_get_it_with_the_graph() -> None:
    overlay = plan_overlay(planned())
    read = Read(graph_payload(fb.get_default_graph(), overlay=overlay))
    names = read.names()
    assert read.header["overlay"]["colourings"][0]["groups"][0]["label"] == "cpu:0"
    assert read.columns["colour0"][names.index("x")] == -1
    assert read.columns["runsOn"][names.index("scope/y")] == 1
    assert read.columns["crossTo"].tolist() == [1, 1]
    assert read.columns["crossBytes"].tolist() == [4000, 4000]
    start = read.columns["noteStart"][names.index("scope/h")]
    assert read.texts("noteHeading")[start] == "runs on"
    assert read.texts("noteText")[start] == "cpu:0"
    assert "overlay" not in Read(graph_payload(fb.get_default_graph())).header


def blocks_of(overlay: Overlay) -> dict[str, Box]:
    return boxes(graph_svg(fb.get_default_graph(), overlay=overlay))


def groups(**values: int) -> Overlay:
    names = [Group(f"cpu:{i}", i, (f"fact {i}",)) for i in range(2)]
    named = {name.replace("_", "/"): value for name, value in values.items()}
    return Overlay("title", [Colouring("device", "", named, names)])


def test_a_block_has_a_share_of_each_colour() -> None:
    on_two_devices()
    looks = blocks_of(groups(scope_h=0, scope_a=1, scope_b=1, scope_y=1))
    (one, little), (other, much) = looks["scope"].bar
    assert (one, other) == ("#0072b2", "#d55e00")
    assert much == pytest.approx(3 * little, rel=0.01)
    assert looks["x"].bar == []
    whole = blocks_of(groups(scope_h=1))["scope"]
    assert (whole.outline, whole.fill) == ("#d55e00", "#f8e5d6")


def test_a_scale_reaches_from_nothing_to_the_most() -> None:
    on_two_devices()
    times = Colouring("time", "s", {"scope/h": 1.0, "scope/a": 2.0, "x": 0.0})
    looks = blocks_of(Overlay("title", [times]))
    assert looks["scope"].fill == "#f4a35a"
    assert looks["x"].fill == "#f4f5f8"
    ratio = Colouring("m", "x", {"scope/h": 4.0, "x": 1.0}, against={"scope/h": 1.0, "x": 1.0})
    looks = blocks_of(Overlay("title", [ratio]))
    assert looks["scope"].fill == "#f4a35a"
    assert looks["x"].fill == "#ffffff"


def test_the_picture_has_colours_bytes_and_a_legend() -> None:
    x = fb.placeholder(fb.float32, [1000], name="x")
    with fb.device("cpu:0"):
        h = fb.exp(x, name="h")
    with fb.device("cpu:1"):
        y = fb.tanh(h, name="y")
    with fb.Session(cpus=2) as sess:
        svg = graph_svg(x.graph, overlay=plan_overlay(sess.explain(y, {x: (1000,)})))
    for text in (">4.0 kB<", ">cpu:0<", ">to another device<", "1 operation · busy"):
        assert text in svg
    assert 'stroke="#0072b2"' in svg
    assert " id=" not in svg
    marked = Overlay("title", groups().colourings, differing={"h": "cpu:1"})
    assert ">\N{NOT EQUAL TO}<" in graph_svg(x.graph, overlay=marked)
