"""Traces as they are shown: lanes, colours, the picture of a step, what a page gets."""

import itertools
import json
import re
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.instruments.trace_records import TracedCall, TracedStep
from flowbook.widgets import front_end, install
from flowbook.widgets.timelines.payload import source_of, timeline_payload
from flowbook.widgets.timelines.svg import label_of, timeline_svg
from flowbook.widgets.timelines.timeline import MOST_GROUPS, Timeline, timeline_of
from tests.notebook_shell import interactive_shell

DEVICE = "/job:localhost/task:0/device:cpu:"


def call(name: str, start: int, end: int, **others: Any) -> TracedCall:
    """A call on the first device's main thread that was ready when it began."""
    given = {
        "operation": name,
        "operations": (name,),
        "type": "Exp",
        "step": 0,
        "iteration": 0,
        "device": f"{DEVICE}0",
        "thread": "main",
        "ready": start,
        "start": start,
        "end": end,
        "bytes": 8,
        "live": 16,
        "waits": False,
        "key": "",
    }
    return TracedCall(**{**given, **others})


def timeline(*calls: TracedCall, steps: int = 1, length: int = 1000) -> Timeline:
    """What is drawn of these calls."""
    runs = [TracedStep(i, "main", i * length, (i + 1) * length) for i in range(steps)]
    ordered = tuple(sorted(calls, key=lambda each: each.start))
    return timeline_of(
        SimpleNamespace(calls=ordered, steps=runs, dropped=0, variables={"net/b": "h"})
    )  # type: ignore[arg-type]


def crossing() -> tuple[TracedCall, ...]:
    """What one device sends another, which waits for it."""
    sent = call("a:0/send", 100, 110, type="Send", key="k")
    taken = {"type": "Recv", "key": "k", "device": f"{DEVICE}1", "waits": True}
    return call("a", 0, 100), sent, call("a:0/recv", 10, 150, **taken)


def unpacked(payload: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """The header of a payload, and its columns."""
    data = zlib.decompress(payload)
    length = int.from_bytes(data[:4], "little")
    header = json.loads(data[4 : 4 + length])
    start = -(-(4 + length) // 8) * 8
    return header, {
        name: np.frombuffer(data, kind, count, start + offset).tolist()
        for name, (kind, offset, count) in header["columns"].items()
    }


def texts(svg: str) -> list[str]:
    """What is written in a picture."""
    return [e.text or "" for e in ElementTree.fromstring(svg).iter() if e.tag.endswith("}text")]


def test_lanes_are_of_threads_and_of_what_waits() -> None:
    other = call("c", 0, 30, thread="helper")
    found = timeline(*crossing(), other, call("b", 20, 30, thread="helper"))
    assert [(lane.device, lane.name, lane.waits, lane.rows) for lane in found.lanes] == [
        ("cpu:0", "helper", False, 2),  # One call within another.
        ("cpu:0", "main", False, 1),
        ("cpu:1", "waiting", True, 1),
    ]
    assert [lane.busy for lane in found.lanes] == [30, 110, 140]
    assert sorted(zip([c.operation for c in found.calls], found.rows, strict=True)) == [
        ("a", 2), ("a:0/recv", 3), ("a:0/send", 2), ("b", 1), ("c", 0),
    ]  # fmt: skip
    [(sent, received)] = found.arrows
    assert [found.calls[i].operation for i in (sent, received)] == ["a:0/send", "a:0/recv"]


def test_no_row_has_two_calls_at_once() -> None:
    rng = np.random.default_rng(0)
    starts = rng.integers(0, 500, 60)
    waiting = [call("w", int(s), int(s) + 40, waits=True) for s in starts]
    found = timeline(*waiting)
    for row in set(found.rows):
        inside = [c for c, r in zip(found.calls, found.rows, strict=True) if r == row]
        assert all(a.end <= b.start for a, b in itertools.pairwise(inside))
    assert found.lanes[0].rows == len(set(found.rows)) > 1


def test_the_busiest_have_colours_and_all_others_one() -> None:
    calls = [call("a", 100 * i, 100 * i + 10 + i, type=f"T{i}") for i in range(MOST_GROUPS + 3)] + [
        call("w", 0, 900, type="Recv", waits=True)
    ]
    by_type, by_scope, by_device = timeline(*calls).colourings
    assert [group.label for group in by_type.groups] == [
        *(f"T{i}" for i in range(MOST_GROUPS + 2, 2, -1)), "4 others",
    ]  # fmt: skip
    assert by_type.groups[-1].busy == 10 + 11 + 12  # What waits is not busy.
    assert by_type.has_others
    assert [by_type.of[0], by_type.of[-1]] == [MOST_GROUPS, 0]
    assert [group.label for group in by_scope.groups] == ["no scope"]
    assert not by_scope.has_others
    assert [group.label for group in by_device.groups] == ["cpu:0"]


def test_scopes_are_those_that_tell_calls_apart() -> None:
    found = timeline(call("net/one/a", 0, 30), call("net/two/b", 40, 50))
    assert [group.label for group in found.colourings[1].groups] == ["net/one", "net/two"]


def test_the_picture_is_of_the_slowest_step() -> None:
    runs = [TracedStep(0, "main", 0, 100), TracedStep(1, "main", 100, 900)]
    calls = (call("first", 10, 90), call("net/second", 200, 800, step=1))
    shown = SimpleNamespace(calls=calls, steps=runs, dropped=0, variables={"net/b": "h"})
    svg = timeline_svg(timeline_of(shown))  # type: ignore[arg-type]
    written = texts(svg)
    assert written[0] == "Step 1 of 2: 800 ns, the slowest"
    assert "second" in written
    assert "first" not in written


def test_a_picture_has_some_hundred_shapes_at_most_and_is_always_the_same() -> None:
    calls = [call("a", i * 10, i * 10 + 3, thread=f"t{i % 40}") for i in range(8000)]
    svg = timeline_svg(timeline(*calls, length=80_000))
    assert 40 < svg.count("<rect") < 320
    assert svg == timeline_svg(timeline(*calls, length=80_000))


def test_what_crosses_has_an_arrow_and_the_tensors_name() -> None:
    svg = timeline_svg(timeline(*crossing(), length=160))
    assert svg.count("<circle") == 1
    assert {"send a:0", "recv a:0"} & set(texts(svg))
    assert label_of(call("net/b", 0, 1), {}) == "b"
    assert label_of(call("net/b", 0, 1), {"net/b": "h"}) == "h (b)"
    assert label_of(call("net/b/done/recv", 0, 1, type="Recv", key="k"), {}) == "recv b"


def test_names_are_text_whatever_they_contain() -> None:
    svg = timeline_svg(timeline(call("x<b>&", 0, 1000, type="<i>", thread='"\x07')))
    assert "x<b>&" in texts(svg)
    assert any(text.startswith("<i>") for text in texts(svg))
    assert '"\N{REPLACEMENT CHARACTER}' in texts(svg)


def test_a_page_gets_calls_by_rows_with_times_from_the_begin() -> None:
    early = call("b", 500, 600, ready=450, iteration=2, operations=("b", "fused"))
    found = timeline(*crossing(), early)
    site = fb.constant(1).op.site
    header, columns = unpacked(timeline_payload(found, {"a": site}))
    assert header["lanes"][0] == ["cpu:0", "main", False, 1, 210]
    assert header["works"] == [
        ["a", "Exp", site.place, [], "a", ""],
        ["a:0/send", "Send", site.place, [], "a", ""],
        ["b", "Exp", "", ["fused"], "b", ""],
        ["a:0/recv", "Recv", site.place, [], "a", ""],
    ]
    assert columns["row"] == [0, 0, 0, 1]
    assert columns["start"] == [0, 100, 500, 10]
    assert columns["end"] == [100, 110, 600, 150]
    assert columns["delay"] == [0, 0, 50, 0]
    assert columns["iteration"] == [0, 0, 2, 0]
    assert (columns["sent"], columns["received"]) == ([1], [3])
    assert columns["stepEnd"] == [1000]


def test_what_the_compiler_adds_is_of_an_operation() -> None:
    sites = {"net/a": fb.constant(1).op.site}
    assert source_of("net/a:0/recv", sites) == "net/a"
    assert source_of("net/a/done/send", sites) == "net/a"
    assert source_of("other/b/recv", sites) == "other/b/recv"


def traced() -> Any:
    """A trace of two runs."""
    x = fb.placeholder(fb.float32, [2], name="x")
    y = fb.reduce_sum(fb.exp(x, name="e"), name="total")
    with fb.Session() as sess, sess.trace() as trace:
        for _ in range(2):
            sess.run(y, {x: [0.0, 0.0]})
    return trace


def test_forms_are_a_picture_and_text() -> None:
    trace = traced()
    view = fb.TimelineView(trace)
    data, _ = view._repr_mimebundle_()
    assert set(data) == {"text/plain", "image/svg+xml", "image/png"}
    assert data["text/plain"] == "<TimelineView of 2 steps, 4 calls of kernels>"
    assert view._repr_mimebundle_()[0] == data
    assert not re.search(r"0x[0-9a-f]{6}", data["image/svg+xml"])
    assert trace.graph is fb.get_default_graph()
    assert set(trace.sites) >= {"e", "total"}
    with pytest.raises(TypeError, match=r"a trace is what sess\.trace gives"):
        fb.TimelineView(3)  # type: ignore[arg-type]


def test_a_trace_of_nothing_says_so() -> None:
    with fb.Session() as sess, sess.trace() as trace:
        pass
    assert trace.graph is None
    data, _ = fb.TimelineView(trace)._repr_mimebundle_()
    assert texts(data["image/svg+xml"]) == ["No call was traced."]
    header, columns = unpacked(timeline_payload(timeline_of(trace), trace.sites))
    assert header["works"] == columns["start"] == columns["sent"] == []


def test_a_trace_at_the_end_of_a_cell_is_tables_and_a_timeline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown: list[Any] = []
    monkeypatch.setattr(
        "IPython.display.publish_display_data", lambda data, metadata=None: shown.append(data)
    )
    with interactive_shell() as shell:
        install(shell)
        trace = traced()
        assert shell.display_formatter.format(trace) == ({}, {})
        with fb.Session() as sess, sess.trace() as nothing:
            pass
        assert shell.display_formatter.format(nothing) == ({}, {})
    tables, picture, of_nothing = shown
    assert tables["text/plain"] == str(trace.table)
    assert "2 steps, 4 calls of kernels" in tables["text/html"]
    assert "image/svg+xml" in picture
    assert set(of_nothing) == {"text/html", "text/plain"}


def test_a_page_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = tmp_path / "flowbook.js"
    bundle.write_text("export const renderExportedTimeline = async () => 0;")
    monkeypatch.setattr(front_end, "BUNDLE", bundle)
    fb.export_html(traced(), tmp_path / "trace.html")
    page = (tmp_path / "trace.html").read_text()
    assert "renderExportedTimeline" in page
    assert "<title>2 steps, 4 calls of kernels" in page
