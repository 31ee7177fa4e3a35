"""The live view of a session's queues, in a real JupyterLab."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.session.session import Session
from tests.browser.lab import Lab, Notebook
from tests.need import requires

pytestmark = [
    pytest.mark.browser,
    requires(program="chromium", module="playwright"),
]

INPUT = """
import pathlib, time
import numpy as np, flowbook as fb
def read():
    for number in range(3):
        # The second one comes when it is asked for.
        while number == 1 and not pathlib.Path("put_enough").exists(): time.sleep(0.02)
        yield np.float32(number)
images = fb.train.from_generator(read)
sess = fb.Session()
"""

TRAINING = """
display(fb.PipelineView(sess))
for _ in range(3): sess.run(images)
"""


def shown(notebook: Notebook, cell: int) -> Any:
    """The view in a cell's output, once it is drawn."""
    view = notebook.cell(cell).locator(".fb-pipeline[data-drawn]")
    view.wait_for()
    return view


def test_it_says_while_a_cell_is_busy_what_a_training_waits_for(lab: Lab, page: Any) -> None:
    from playwright.sync_api import expect

    lab.write("pipeline", INPUT, TRAINING, "sess.close()")
    notebook = lab.open(page, "pipeline")
    notebook.run(0)
    notebook.start(1)
    try:
        view = shown(notebook, 1)
        answer = view.get_by_role("heading", level=3)
        answer.get_by_text("Training waits for input").wait_for()
        # Whether it takes long or has given nothing meanwhile: the first one came before, or not.
        assert "queue 'images' runs empty; its runner" in answer.inner_text()
        row = view.get_by_role("article", name="queue images")
        waits = row.locator(".fb-waitsNow")
        waits.wait_for()
        assert "now a run waits for elements: 'generator/element', cell [1], line 8" in (
            waits.inner_text()
        )
        assert row.locator(".fb-runner").inner_text() == "runner runs"
        share = row.get_by_role("meter", name="training waits")
        # At first it may have waited for less time than the first run took.
        expect(share).to_have_attribute("aria-valuenow", re.compile("^([5-9][0-9]|100)$"))
        assert notebook.cell(1).locator(".jp-InputPrompt").inner_text() == "[*]:"  # It runs still.
    finally:
        (lab.notebooks / "put_enough").touch()
    notebook.finish()
    row.locator(".fb-runner").get_by_text("runner ended").wait_for()
    chart = row.get_by_role("img", name="fill of queue images: 0 of 4, closed")
    chart.focus()
    chart.press("End")
    assert view.locator(".fb-tip").inner_text().split() == ["now", "elements", "0"]
    notebook.run(2)
    view.get_by_text("the session that this shows has ended; re-run cell [2]").wait_for()
    chart.press("End")
    assert view.locator(".fb-tip").inner_text().split() == ["end", "elements", "0"]
    stored = notebook.page.evaluate(
        """() => Object.keys(window.jupyterapp.shell.currentWidget.content.widgets[1]
            .model.sharedModel.outputs[0].data)"""
    )
    assert {"image/svg+xml", "image/png", "text/plain"} <= set(stored)


@pytest.mark.parametrize("dark", [False, True])
def test_a_page_of_its_own_works_without_a_kernel(page: Any, tmp_path: Any, dark: bool) -> None:
    x = fb.train.batches(np.arange(100.0), 10, prefetch=4, name="numbers")
    y = fb.train.batches(np.arange(4.0), 2, name="unused")
    assert x is not y
    with Session() as sess:
        view = fb.PipelineView(sess)
        total = sum(found.sum() for found in fb.train.until_end(sess, x))
        assert total == 4950
        view.export_html(tmp_path / "input.html")
    page.emulate_media(color_scheme="dark" if dark else "light")
    page.goto((tmp_path / "input.html").as_uri())
    root = page.locator(".fb-pipeline[data-drawn]")
    root.wait_for()
    assert root.get_attribute("data-dark") == str(dark).lower()
    used, unused = (root.get_by_role("article", name=f"queue {name}") for name in "xy")
    assert used.locator(".fb-runner").inner_text() == "runner ended"
    assert used.locator(".uplot").count() == 2
    # Its name may be cut where its parts end, and nowhere else.
    assert used.locator(".fb-line").first.evaluate("each => each.innerHTML") == "numbers/<wbr>queue"
    assert unused.get_by_text("no run has asked it for an element").is_visible()
    # No text is beside or below its place.
    cut = root.evaluate(
        """(root) => [...root.querySelectorAll("h3, h4, span, li, header, .fb-line")]
            .filter((each) => each.offsetParent && each.scrollWidth > each.clientWidth + 1
                && getComputedStyle(each).display !== "inline"
                && !each.classList.contains("fb-hidden"))
            .map((each) => each.textContent)"""
    )
    assert cut == []
