"""The fonts of live views are JupyterLab's, and as large as a person has made them there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.instruments.summaries.event import Histogram, Summary
from flowbook.exec.instruments.summaries.history import SummaryHistory
from tests.browser.lab import Lab
from tests.browser.test_summary_view import TWO_RUNS
from tests.browser.test_tensor_fetch import MODEL, SESSION
from tests.browser.view import exported, select_output
from tests.need import requires

pytestmark = [
    pytest.mark.browser,
    requires(program="chromium", module="playwright"),
]

# The families and sizes of what is written in a view, and of what it is in.
WRITTEN = """(view) => {
    const found = {};
    const walk = document.createTreeWalker(view, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
        const around = walk.currentNode.parentElement;
        if (!walk.currentNode.data.trim() || around.closest("style, svg")) continue;
        const { fontFamily, fontSize } = getComputedStyle(around);
        (found[fontFamily] ??= []).push(parseFloat(fontSize));
    }
    return found;
}"""
SET = """(chosen) => {
    for (const [name, value] of Object.entries(chosen))
        document.documentElement.style.setProperty(`--jp-${name}`, value);
}"""


# Has canvases note how large on the screen they write each text.
NOTE = """() => {
    const write = CanvasRenderingContext2D.prototype.fillText;
    window.written = {};
    CanvasRenderingContext2D.prototype.fillText = function (text, ...where) {
        const size = parseFloat(/([\\d.]+)px/.exec(this.font)[1]);
        window.written[text] = (size * this.getTransform().d) / devicePixelRatio;
        write.call(this, text, ...where);
    };
}"""


def test_fonts_and_their_sizes_follow_those_of_the_page(lab: Lab, page: Any) -> None:
    charts = TWO_RUNS + "fb.SummaryView(history)"
    lab.write("fonts", MODEL + SESSION + "fb.GraphView(sess)", charts)
    notebook = lab.open(page, "fonts")
    for cell in range(2):
        notebook.run(cell)
    graph = notebook.graph(0)
    select_output(graph, "h")
    summaries = notebook.cell(1).locator(".fb-summaries[data-drawn]")
    summaries.locator(".fb-card").first.wait_for()
    chosen = {"ui-font-family": "Words", "code-font-family": "Code"}
    small = chosen | {"ui-font-size1": "13px", "code-font-size": "13px"}
    large = chosen | {"ui-font-size1": "26px", "code-font-size": "26px"}
    page.evaluate(SET, small)
    before = [view.evaluate(WRITTEN) for view in (graph, summaries)]
    assert [sorted(written) for written in before] == [["Code", "Words"], ["Words"]]
    assert min(size for written in before for sizes in written.values() for size in sizes) > 10
    page.evaluate(SET, large)
    for view, written in zip((graph, summaries), before, strict=True):
        for family, sizes in view.evaluate(WRITTEN).items():
            assert sizes == pytest.approx([2 * size for size in written[family]], abs=0.1)
    page.evaluate(SET, dict.fromkeys(chosen | large, ""))


def test_names_in_the_picture_of_a_graph_grow_with_the_page_s_text(
    own_page: Any, tmp_path: Path
) -> None:
    own_page.add_init_script(f"({NOTE})()")
    fb.square(fb.placeholder(fb.float32, name="number"), name="square")
    exported(own_page, fb.get_default_graph(), tmp_path)
    as_large = "(size) => Math.abs(window.written.square / (1.15 * size) - 1) < 0.01"
    for size in (13, 19):
        own_page.evaluate(SET, {"ui-font-size1": f"{size}px"})
        own_page.wait_for_function(as_large, arg=size)


# Whether what is written on canvases since is all at most `most` pixels high, and some as `small`.
AS_SMALL = """([small, most]) => {
    const sizes = Object.values(window.written);
    const isSmall = (size) => Math.abs(size - small) < 0.01;
    return sizes.some(isSmall) && sizes.every((size) => size <= most);
}"""


def test_text_of_charts_and_timelines_follows_the_page_s(own_page: Any, tmp_path: Path) -> None:
    x = fb.placeholder(fb.float32, [1000], name="x")
    with fb.Session() as sess, sess.trace() as trace:
        sess.run(fb.exp(x, name="e"), {x: np.zeros(1000)})
    history = SummaryHistory()
    counts = Histogram(0.0, 2.0, 3.0, 4.0, 6.0, 2, (1.0, 2.0), (1.0, 2.0))
    for step in range(3):
        history.add([Summary("run", "loss", "scalar", step, 60.0 * step, 1.0 / (step + 1))])
        history.add([Summary("run", "weights", "histogram", step, 60.0 * step, counts)])
    own_page.add_init_script(f"({NOTE})()")
    for number, shown in enumerate((trace, history)):
        fb.export_html(shown, tmp_path / f"{number}.html")
        own_page.goto((tmp_path / f"{number}.html").as_uri())
        own_page.locator("[data-drawn]").wait_for()
        # A timeline's devices are named a little larger than their lanes.
        for small, most in ((11, 12), (22, 24), (11, 12)):
            own_page.evaluate("() => { window.written = {}; }")
            own_page.evaluate(SET, {"ui-font-size0": f"{small}px"})
            own_page.wait_for_function(AS_SMALL, arg=[small, most])
