"""Pages of everything that a notebook shows."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.widgets.graphs import graph_view as view

HOSTILE = "<script>alert('x')</script>&\"\x00\x1b[31m"


class Reader(HTMLParser):
    """The text of a page, and its tags."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text, self.tags = "", set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def build() -> dict[str, Any]:
    with fb.Graph().as_default() as graph:
        x = fb.placeholder(fb.float32, [None, 2], name="x")
        W = fb.Variable(np.zeros((2, 3), np.float32), name="W")
        y = fb.matmul(x, W, name="y")
        session = fb.Session(graph=graph)
        session.guard()
        with pytest.raises(fb.errors.InvalidArgumentError) as caught:
            session.run(y, {x: [[1.0, float("nan")]]})
        bar = fb.progress(range(2), disable=True, description="training")
        return {
            "Tensor x:0": x,
            "Variable W": W,
            "Operation y": y.op,
            "open": session,
            "nothing is stale": graph.stale(),
            "6 parameters": fb.parameter_counts(graph),
            "it gave 3 NaN": caught.value,
            "training: 0%, 0/2 steps": bar,
        }


def test_everything_shown_has_a_page(tmp_path: Path) -> None:
    for text, shown in build().items():
        path = tmp_path / "page.html"
        fb.export_html(shown, path)
        page = path.read_text()
        reader = Reader(page)
        assert text in reader.text
        assert not {"script", "link", "img", "iframe"} & reader.tags
        assert "http" not in page.partition("<title>")[2]


def test_pages_are_deterministic(tmp_path: Path) -> None:
    first, second = build(), build()
    for name in first:
        for folder, made in (("a", first), ("b", second)):
            fb.export_html(made[name], tmp_path / folder)
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes(), name


def test_live_views_bring_their_own_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    monkeypatch.setattr(
        view.GraphView, "export_html", lambda shown, path: written.append((shown.graph, path))
    )
    graph = fb.Graph()
    fb.export_html(graph, "a.html")
    fb.export_html(fb.GraphView(graph), "b.html")
    assert written == [(graph, "a.html"), (graph, "b.html")]
    monkeypatch.setattr(fb.SummaryView, "export_html", lambda view, path: written.append(path))
    fb.export_html(fb.summary.SummaryHistory(), "c.html")
    assert written[-1] == "c.html"


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    x = fb.placeholder(fb.float32, [1], name="x")
    x.op.name = HOSTILE * 20_000
    for shown in (
        x,
        fb.errors.InternalError(HOSTILE + "\nb"),
        fb.progress([1], description=HOSTILE, disable=True),
    ):
        fb.export_html(shown, tmp_path / "page.html")
        page = (tmp_path / "page.html").read_text()
        assert "<script" not in page
        assert "\x00" not in page
        assert "\x1b" not in page
        assert len(page) < 20_000


@pytest.mark.parametrize("shown", [None, 3, "graph", [], fb.Tensor, ValueError("x")])
def test_what_is_not_shown_has_no_page(shown: Any, tmp_path: Path) -> None:
    with pytest.raises(fb.errors.InvalidTypeError, match="nothing that Flowbook shows"):
        fb.export_html(shown, tmp_path / "page.html")
    assert not list(tmp_path.iterdir())
