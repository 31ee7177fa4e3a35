"""The fonts of live views are JupyterLab's, and as large as a person has made them there."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.lab import Lab
from tests.browser.test_summary_view import TWO_RUNS
from tests.browser.test_tensor_fetch import MODEL, SESSION
from tests.browser.view import select_output
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
