"""What ran when: the live view of a trace, in a page of its own and beside its graph's picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.browser.lab import Lab
from tests.browser.view import reveal
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
with fb.Session(cpus=2) as sess, sess.trace() as trace:
    for _ in range(3): sess.run(y, {x: [1.0] * 1000})
    plan = sess.explain(y, {x: (1000,)})
trace
"""


def selected(view: Any) -> str:
    """What is said of the call that is selected."""
    text: str = view.locator(".fb-call").inner_text()
    return text


def picture(view: Any) -> str:
    """The lanes as they are drawn, once they are."""
    drawn: str = view.locator(".fb-lanes").evaluate(
        """async (canvas) => {
            for (let i = 0; i < 2; i++) await new Promise(requestAnimationFrame);
            return canvas.toDataURL();
        }"""
    )
    return drawn


@pytest.mark.parametrize("dark", [False, True])
# One may take nearly all of the time.
@pytest.mark.parametrize("sizes", [(64, 64, 64), (20_000_000, 64, 64), (64, 20_000_000, 64)])
def test_keys_lead_from_all_steps_to_one_call(
    tmp_path: Path, page: Any, dark: bool, sizes: tuple[int, ...]
) -> None:
    x = fb.placeholder(fb.float32, [None], name="x")
    with fb.name_scope("net"):
        y = fb.reduce_sum(fb.exp(x, name="e"), name="total")
    with fb.Session() as sess, sess.trace() as trace:
        for size in sizes:
            sess.run(y, {x: np.zeros(size, np.float32)})
    fb.TimelineView(trace).export_html(tmp_path / "trace.html")
    page.emulate_media(color_scheme="dark" if dark else "light")
    page.goto((tmp_path / "trace.html").as_uri())
    view = page.locator(".fb-timeline[data-drawn]")
    view.wait_for()
    assert view.get_attribute("data-dark") == str(dark).lower()
    assert page.locator("svg[role=img]").count() == 0  # The static picture has gone.
    lanes = view.get_by_role("application")
    assert "3 steps, 6 calls of kernels" in lanes.get_attribute("aria-label")

    def shows(part: str) -> None:
        view.locator(".fb-bar output", has_text=part).wait_for()

    shows("all steps")
    whole = picture(view)

    lanes.focus()
    lanes.press("PageDown")
    lanes.press("PageDown")
    assert picture(view) != whole
    shows("step 1")
    lanes.press("ArrowRight")
    assert "net/e" in selected(view)
    assert "Exp · step 1" in selected(view)
    lanes.press("ArrowRight")
    assert "net/total" in selected(view)
    assert "gives\n4 B" in selected(view)
    assert "test_timeline_view.py, line " in selected(view)
    assert "y (net/total), Sum, step 1" in view.locator(".fb-hidden[role=status]").inner_text()
    before = picture(view)
    lanes.press("Enter")
    assert picture(view) != before
    lanes.press("f")
    shows("all steps")

    # A search goes from one of its calls to the next; what is not found is faint.
    lanes.press("/")
    page.keyboard.type("exp")
    assert view.locator(".fb-found").inner_text().startswith("3 calls, busy ")
    page.keyboard.press("Enter")
    assert "net/e Exp · step 2" in selected(view)
    page.keyboard.press("Enter")
    assert "Exp · step 0" in selected(view)
    page.keyboard.press("Escape")
    assert view.locator(".fb-hint").is_visible()
    # Of all steps calls may be so thin that each hides the other.
    lanes.press("f")
    shows("all steps")
    lanes.press("PageDown")
    view.locator(".fb-bar output", has_text="step ").wait_for()
    plain = picture(view)
    view.get_by_role("button", name="Exp").click()
    view.get_by_role("button", name="Exp", pressed=True).wait_for()
    assert picture(view) != plain
    view.get_by_label("Colours").select_option("device")
    assert view.locator(".fb-legend b").all_inner_texts() == ["cpu:0"]


def test_a_trace_a_plan_and_the_picture_of_their_graph_go_along(lab: Lab, page: Any) -> None:
    lab.write("trace", CELL, "fb.GraphView()", "fb.PlacementView(plan, plan)")
    notebook = lab.open(page, "trace")
    notebook.run(0)
    notebook.run(1)
    notebook.run(2)
    plans = notebook.cell(2).locator(".fb-graph[data-drawn]")
    plans.nth(1).wait_for()
    view = notebook.cell(0).locator(".fb-timeline[data-drawn]")
    view.wait_for()
    assert "3 steps, " in notebook.shown(0)  # The table.
    graph = notebook.graph(1)
    reveal(graph, "second/y")
    for plan in plans.all():
        plan.locator(".fb-card h3", has_text="second/y").wait_for()
    assert view.locator(".fb-found").inner_text().startswith("second/y: 3 calls, busy ")
    view.locator(".fb-lanes").press("ArrowRight")
    assert view.locator(".fb-call h4").inner_text().startswith("first/h")
    graph.locator(".fb-card h3", has_text="first/h").wait_for()
    assert view.locator(".fb-found").inner_text() == ""
    view.locator(".fb-lanes").press("Escape")
    graph.locator(".fb-card").wait_for(state="hidden")
    reveal(plans.nth(1), "first/h")
    graph.locator(".fb-card h3", has_text="first/h").wait_for()
    plans.nth(0).locator(".fb-card h3", has_text="first/h").wait_for()
    assert view.locator(".fb-found").inner_text().startswith("first/h: ")
