"""Plans on the picture of their graph: what is seen and pressed, in a page and in JupyterLab."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import flowbook as fb
from tests.browser.lab import Lab
from tests.browser.view import press, redrawn, reveal, saved_svg, tree_items
from tests.need import requires

pytestmark = [
    pytest.mark.browser,
    requires(program="chromium", module="playwright"),
]

CELL = """
import flowbook as fb
x = fb.placeholder(fb.float32, [1000], name="x")
with fb.name_scope("first"), fb.device("cpu:0"):
    h = fb.exp(x, name="h")
with fb.name_scope("second"), fb.device("cpu:1"):
    y = fb.reduce_sum(h, name="y")
with fb.Session(cpus=2) as sess:
    plan = sess.explain(y, {x: (1000,)})
plan
"""


def card(view: Any) -> str:
    """The text of the card of what is selected."""
    text: str = view.locator(".fb-card").inner_text()
    return text


def test_two_plans_go_along_with_each_other(tmp_path: Path, page: Any) -> None:
    x = fb.placeholder(fb.float32, [2048, 2048], name="x")
    with fb.name_scope("first"), fb.device("cpu:0"):
        h = fb.exp(x, name="h")
    with fb.name_scope("second"):
        y = fb.reduce_sum(fb.matmul(h, h, name="p"), name="y")
    with fb.Session() as sess:
        here, there = (sess.explain(y, {x: (2048, 2048)}, each) for each in (None, ["gpu:0"]))
    fb.PlacementView(here, there).export_html(tmp_path / "plans.html")
    page.emulate_media(reduced_motion="reduce")  # Nothing glides: pictures change by presses alone.
    page.goto((tmp_path / "plans.html").as_uri())
    page.locator(".fb-graph[data-drawn]").nth(1).wait_for()
    first, second = (page.locator(".fb-graph").nth(i) for i in range(2))
    assert page.locator("svg[role=img]").count() == 0  # The static picture has gone.
    assert "cpu:0" in first.locator(".fb-key").inner_text()
    assert "gpu:0" in second.locator(".fb-key").inner_text()
    assert "elsewhere in the other plan" in second.locator(".fb-key").inner_text()
    heights = [each.bounding_box()["height"] for each in (first, second)]
    assert heights[0] == heights[1]

    # What is opened and selected in one is so in the other, each with its own reason.
    before = second.get_attribute("data-drawn")
    reveal(first, "second/p")
    redrawn(second, before)
    second.locator(".fb-card h3", has_text="second/p").wait_for()
    assert "in the other plan\ngpu:0" in card(first)
    assert "would end" in card(second)
    assert "runs on\ngpu:0" in card(second)
    assert any(item.startswith("p, MatMul, on gpu:0") for item in tree_items(second))
    press(second, "ArrowDown")
    first.locator(".fb-card h3", has_text="second/y").wait_for()

    # Colours are chosen for both, and one group alone stands out in both.
    first.get_by_label("Colours").select_option("time")
    assert second.get_by_label("Colours").evaluate("each => each.selectedOptions[0].text") == "time"
    assert any("time" in item for item in tree_items(second))
    second.get_by_label("Colours").select_option("device")
    first.get_by_role("button", name="Fit all into view").click()
    canvas = first.locator("canvas")
    seen = canvas.evaluate("each => each.toDataURL()")
    second.get_by_role("button", name="cpu:0").click()
    assert first.get_by_role("button", name="cpu:0").get_attribute("aria-pressed") == "true"
    page.wait_for_function(
        "([canvas, seen]) => canvas.toDataURL() !== seen", arg=[canvas.element_handle(), seen]
    )
    svg = saved_svg(second)
    assert "16.8 MB" in svg  # The transfer,
    assert ">gpu:0<" in svg  # the legend,
    assert "#d55e00" in svg  # and the colour of the second device of both plans.
    press(first, "Escape")
    second.locator(".fb-hint").wait_for()
    assert second.locator(".fb-card").is_hidden()


def test_a_plan_at_the_end_of_a_cell(lab: Lab, page: Any) -> None:
    lab.write("plan", CELL)
    notebook = lab.open(page, "plan")
    notebook.run(0)
    view = notebook.graph(0)
    assert "transfer" in view.locator(".fb-key strong").inner_text()
    assert "predicted, 1 transfer of" in notebook.shown(0)
    reveal(view, "second/y")
    assert "'second/y' asks for /device:cpu:1" in card(view)
    reveal(view, "first/h")
    assert "first/h:0 to cpu:1" in card(view)
