"""Summaries as they are shown where there is no notebook, and what is made ready for pages."""

from __future__ import annotations

import json
import math
import os
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowbook as fb
from flowbook.exec.instruments.summaries.curve import Point
from flowbook.exec.instruments.summaries.event import Histogram, Image, Summary
from flowbook.exec.instruments.summaries.history import SummaryHistory
from flowbook.widgets import front_end
from flowbook.widgets.summaries.payload import everything, frames
from flowbook.widgets.summaries.sources import Sources
from flowbook.widgets.summaries.splits import charts_of
from flowbook.widgets.summaries.svg import smoothed, summary_svg
from tests.need import requires
from tests.notebook_shell import Shell


def curve(tag: str, values: list[float], run: str = "a") -> list[Summary]:
    return [Summary(run, tag, "scalar", i, float(i), value) for i, value in enumerate(values)]


def history(*summaries: Summary) -> SummaryHistory:
    made = SummaryHistory()
    made.add(summaries)
    return made


def unpacked(frame: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    data = zlib.decompress(frame)
    length = int.from_bytes(data[:4], "little")
    header = json.loads(data[4 : 4 + length])
    start = -(-(4 + length) // 8) * 8
    columns = {
        name: np.frombuffer(data, kind, count, start + offset)
        for name, (kind, offset, count) in header["columns"].items()
    }
    return header, columns


def test_text_form() -> None:
    both = history(
        *curve("loss", [3, 1, 2]), *curve("loss", [1e-5], "b"), *curve("z/n", [math.nan])
    )
    both.add([Summary("a", "words", "text", 0, 0.0, ("hi",))])
    assert repr(fb.SummaryView(both)).splitlines() == [
        "2 runs, 3 tags",
        "  tag   run  step  last  least  greatest",
        "  loss  a       2     2      1         3",
        "  loss  b       0  1e-5   1e-5      1e-5",
        "  z/n   a       0   NaN    NaN       NaN",
        "  with 1 text",
    ]
    assert repr(fb.SummaryView(SummaryHistory())) == "No summaries yet"


def test_static_forms_are_deterministic_and_fetch_nothing() -> None:
    def forms() -> dict[str, Any]:
        made = history(*curve("loss", [1 / (i + 1) for i in range(5000)]), *curve("x", [1.0], "b"))
        return fb.SummaryView(made)._repr_mimebundle_()[0]

    first = forms()
    assert set(first) == {"text/plain", "image/svg+xml", "image/png"}
    assert first == forms()
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", first["image/svg+xml"])
    assert len(first["image/svg+xml"]) < 10_000  # However long a curve is.


def test_many_tags_are_counted() -> None:
    many = history(*(s for i in range(40) for s in curve(f"t{i}", [1.0])))
    view = fb.SummaryView(many)
    assert repr(view).endswith("\n  and 20 more")
    svg = view._repr_mimebundle_()[0]["image/svg+xml"]
    assert ">and 28 more<" in svg
    assert svg.index(">t2<") < svg.index(">t10<")


HOSTILE = "</script><img src=x onerror='alert(1)'>\x00\x1b[31m\u202e" * 3


@pytest.mark.parametrize("tag", [HOSTILE, "x" * 1_000_000, "\ud800", ""])
def test_hostile_names_and_values_are_text(tag: str) -> None:
    made = history(
        *curve(tag, [math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324], tag),
        Summary("b", tag + "!", "text", 0, 0.0, (HOSTILE * 10_000,)),
    )
    forms, _ = fb.SummaryView(made)._repr_mimebundle_()
    assert forms.pop("image/png").startswith(b"\x89PNG")
    for form in forms.values():
        assert len(form) < 20_000
        assert "\x00" not in form
        assert "<img" not in form or form is forms["text/plain"]
    [header, _] = unpacked(everything(Sources(made), [], 0))
    assert len(json.dumps(header)) < 100_000


@given(
    st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1, max_size=50),
    st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1, max_size=50),
)
def test_pictures_hold_whatever_values(a: list[float], b: list[float]) -> None:
    svg = summary_svg(Sources(history(*curve("x", a), *curve("x", b, "b"))).snapshot())
    for number in re.findall(r'[ML ]\s*([^ML" ]+)', " ".join(re.findall(r' d="([^"]+)"', svg))):
        assert math.isfinite(float(re.sub(r"[hH].*", "", number)))


def test_sources_and_what_runs_are_called(tmp_path: Path) -> None:
    one, two = (
        history(*curve("x", [1.0], "id")),
        history(*curve("x", [1.0]), *curve("x", [1.0], "b")),
    )

    def labels(sources: Any) -> list[str]:
        found = Sources(sources)
        found.snapshot()
        return [run.label for run in found.runs]

    assert labels(one) == ["id"]
    assert labels({"first": one, "second": two}) == ["first", "second/a", "second/b"]
    assert labels([one, one]) == ["id", "id (2)"]
    x = fb.placeholder(fb.float32, [], name="x")
    fb.summary.scalar("s", x)
    y = x * 1.0
    with fb.Session() as sess:
        with pytest.raises(fb.errors.FailedPreconditionError, match="summarises nothing yet"):
            fb.SummaryView(sess)
        given = sess.summarize(fetches=y, series="test")
        sess.run(y, {x: 1.0})
        assert labels([sess, given]) == ["run 1", "run 2"]
    with pytest.raises(fb.errors.FailedPreconditionError, match="closed"):
        fb.SummaryView(sess)
    assert labels(given) == ["run 1"]  # What it gave stays.
    with pytest.raises(fb.errors.NotFoundError, match="no log directory"):
        fb.SummaryView(tmp_path / "none")
    with pytest.raises(fb.errors.InvalidTypeError, match="has no summaries"):
        fb.SummaryView(3)
    with pytest.raises(fb.errors.InvalidTypeError, match="named by a text"):
        fb.SummaryView({1: one})


@pytest.mark.parametrize("wrong", [{"x": "epoch"}, {"smoothing": 1.0}, {"smoothing": math.nan}])
def test_options_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(fb.errors.InvalidArgumentError):
        fb.SummaryView(SummaryHistory(), **wrong)


@requires(module="tensorboard")
def test_a_directory_is_read_on(tmp_path: Path) -> None:
    log = fb.summary.LogDirectory(tmp_path)
    log.add(curve("loss", [1.0], "run"))
    log.flush()
    sources = Sources(tmp_path)
    seen = sources.unseen()
    assert [news.tag for _, news in sources.news(seen)] == ["loss"]
    log.add([Summary("run", "loss", "scalar", 1, 1.0, 0.5)])
    log.close()
    sources.all[0].read()
    [(run, news)] = sources.news(seen)
    assert (sources.runs[run].label, list(news.columns.places)) == ("run", [0, 1])
    with open(next(tmp_path.rglob("*.tfevents.*")), "ab") as file:
        file.write(os.urandom(64))
    sources.all[0]._next_poll = 0.0
    sources.all[0].read()
    assert "is damaged" in sources.problems[0]  # Shown, and not warned of from a thread.


def test_frames_hold_every_kind() -> None:
    known = Histogram(0.0, 1.0, 3.0, 1.0, 1.0, 2, (0.5, 1.0), (1.0, 2.0))
    made = history(
        *curve("s", [1.0, 2.0]),
        Summary("a", "h", "histogram", 4, 5.0, known),
        Summary("a", "i", "image", 6, 7.0, Image(1, 2, 3, b"png")),
        Summary("b", "t", "text", 8, 9.0, ("one", "two")),
    )
    header, columns = unpacked(everything(Sources(made), [], 3))
    assert header["sequence"] == 3
    assert header["runs"] == [["a", "a"], ["b", "b"]]
    assert header["series"] == [
        [0, "s", "scalar", 0, -1, 2],
        [0, "h", "histogram", 0, 0, 1],
        [0, "i", "image", 0, 0, 1],
        [1, "t", "text", 0, 0, 1],
    ]
    assert header["texts"] == [["one", "two"]]
    assert columns["value"].tolist() == [1.0, 2.0]
    assert columns["limits"].tolist() == [0.5, 1.0]
    assert columns["lost"].tolist() == [2.0]
    assert columns["pixels"].tobytes() == b"png"
    assert [columns[f"{kind}Step"].tolist() for kind in ("histogram", "image", "text")] == [
        [4.0],
        [6.0],
        [8.0],
    ]


def test_what_is_much_comes_in_several_frames() -> None:
    sources = Sources(history(*(s for i in range(10) for s in curve(f"t{i}", [1.0] * 100))))
    news = sources.news(sources.unseen())
    parts = [unpacked(frame)[0] for frame in frames(1, sources.runs, [], news, 5_000)]
    assert len(parts) > 1
    assert [row[1] for part in parts for row in part["series"]] == [f"t{i}" for i in range(10)]
    assert {part["sequence"] for part in parts} == {1}


@pytest.fixture
def bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in for the front end, which these tests do without."""
    path = tmp_path / "flowbook.js"
    path.write_text("export const renderExportedSummaries = async () => 0;")
    monkeypatch.setattr(front_end, "BUNDLE", path)


@pytest.mark.usefixtures("bundle")
def test_exported_page_stands_alone(tmp_path: Path) -> None:
    view = fb.SummaryView(history(*curve(HOSTILE, [1.0, 2.0])), tags="</script>")
    view.export_html(tmp_path / "charts.html")
    page = (tmp_path / "charts.html").read_text()
    assert "<svg" in page  # Never blank, even where scripts do not run.
    assert page.count("</script>") == 2
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page)
    assert re.search(r'renderExportedSummaries\("[A-Za-z0-9+/=]+", place, \{"tags"', page)


@pytest.fixture
def live(bundle: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Makes live views whose turns the test takes itself, and which keep what they send."""
    import IPython

    from flowbook.widgets import live_view, published_view

    class Turns:
        def __init__(self) -> None:
            self.views: list[Any] = []

        def add(self, view: Any) -> None:
            view.sent = []
            view.send = lambda content, buffers: view.sent.extend(buffers)
            self.views.append(view)

        def discard(self, view: Any) -> None:
            self.views = [other for other in self.views if other is not view]

    turns = Turns()
    monkeypatch.setattr(IPython, "get_ipython", Shell)
    monkeypatch.setattr(live_view, "_shared", [])
    monkeypatch.setattr(published_view, "publisher", turns)

    def make(sources: Any) -> Any:
        assert front_end.LIVE_VIEW in fb.SummaryView(sources)._repr_mimebundle_()[0]
        return turns.views[-1]

    yield make
    for view in list(turns.views):
        view.close()
    assert turns.views == []


def test_a_live_view_sends_what_is_new(live: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from flowbook.widgets.summaries import live as live_summaries

    clock = [100.0]
    monkeypatch.setattr(live_summaries.time, "monotonic", lambda: clock[0])
    kept = history(*curve("x", [1.0, 2.0]))
    view = live(kept)

    def turn() -> list[Any]:
        view.sent.clear()
        view.publish()
        return [row[3:] for frame in view.sent for row in unpacked(frame)[0]["series"]]

    assert turn() == [[0, -1, 2]]
    assert turn() == []
    kept.add([Summary("a", "x", "scalar", 2, 2.0, 3.0)])
    assert turn() == [[1, -1, 2]]
    assert turn() == []  # It is too soon to send all of it again.
    # As a whole, ever more rarely, in case that a page was not listening yet.
    for pause in (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0):
        clock[0] += 0.9 * pause
        assert turn() == []
        clock[0] += 0.2 * pause
        assert turn() == [[0, -1, 3]]
    clock[0] += 100.0
    assert turn() == []
    # A page that has seen it all is content; one that has not is sent everything.
    view._hear(view, {"sequence": view._sequence}, [])
    assert turn() == []
    view._hear(view, {"sequence": 1}, [])
    assert turn() == [[0, -1, 3]]
    view._hear(view, "nonsense", [])
    assert turn() == []


def test_a_page_that_is_opened_later_begins_with_what_there_is(live: Any) -> None:
    kept = history(*curve("x", [1.0]))
    view = live(kept)
    kept.add(curve("y", [2.0]))
    state = view.get_state()
    assert [row[1] for row in unpacked(state["payload"])[0]["series"]] == ["x", "y"]
    assert state["renderer"] == "renderSummaries"


def test_a_closed_view_sends_nothing(live: Any) -> None:
    kept = history(*curve("x", [1.0]))
    view = live(kept)
    view.close()
    assert view.closed
    view.publish()
    assert view.sent == []


def test_what_was_live_says_that_its_session_has_ended(live: Any) -> None:
    def said(view: Any) -> list[str]:
        return unpacked(view.payload_now())[0]["said"]

    kept, other = history(*curve("x", [1.0])), history(*curve("x", [1.0]))
    view = live([kept, other])
    other.remark(["2 not computed"])
    kept.close()
    assert said(view) == ["2 not computed"]
    other.close()
    assert said(view) == ["2 not computed", "the session that this shows has ended"]
    # What had ended before is shown for what it was.
    assert said(live(kept)) == []


def texts(svg: str) -> set[str]:
    return set(re.findall(r"<text[^>]*>([^<]*)</text>", svg))


def test_static_curves_are_smoothed_and_logarithmic_as_asked() -> None:
    values = [10.0**-i for i in range(5)] + [0.0, 1e308, 5e-324]
    shown = history(*curve("x", values))
    found = texts(fb.SummaryView(shown, log=True)._repr_mimebundle_()[0]["image/svg+xml"])
    assert "1 not positive" in found
    shown = history(*curve("x", values[:5]))
    found = texts(fb.SummaryView(shown, log=True)._repr_mimebundle_()[0]["image/svg+xml"])
    assert {"1", "0.01", "1e-4"} <= found
    assert smoothed([Point(0, 0.0, 2.0)] * 9, 0.9)[-1].value == pytest.approx(2.0)
    half = [p.value for p in smoothed([Point(0, 0.0, v) for v in (1.0, math.nan, 3.0)], 0.5)]
    assert half[0] == 1.0
    assert math.isnan(half[1])
    assert half[2] == pytest.approx((0.25 * 1.0 + 0.5 * 3.0) / 0.75)


def test_parts_of_the_data_share_a_chart() -> None:
    """And a tag that has no such sibling is what it is called."""
    shown = history(
        *curve("train/loss", [3.0, 1.0]),
        *curve("val/loss", [30.0, 10.0]),
        *curve("val/accuracy", [0.5]),
        *curve("layer/loss", [7.0]),
    )
    assert charts_of(["Held out/loss", "val/loss", "loss", "val/accuracy", "x/loss"]) == {
        "loss": [("loss", ""), ("val/loss", "val"), ("Held out/loss", "Held out")],
        "val/accuracy": [("val/accuracy", "")],
        "x/loss": [("x/loss", "")],
    }
    svg = summary_svg(Sources(shown).snapshot())
    assert set(re.findall(r"<title>(.*?)</title>", svg)) == {"loss", "val/accuracy", "layer/loss"}
    assert {"train", "val"} <= texts(svg)
    # One axis holds both, in colours of their own.
    [chart] = [part for part in svg.split("<g ") if "<title>loss<" in part]
    assert {"0", "20"} <= texts(chart) or {"10", "20", "30"} <= texts(chart)
    assert len(set(re.findall(r'fill="none" stroke="(#\w+)"', chart))) == 2
