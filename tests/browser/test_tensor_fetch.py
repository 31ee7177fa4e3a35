"""Fetching the tensor of an edge, in a real JupyterLab: what the kernel answers, and when."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.browser.lab import Lab
from tests.browser.view import press, select_output
from tests.need import requires

pytestmark = [
    pytest.mark.browser,
    requires(program="chromium", module="playwright"),
]

MODEL = """import flowbook as fb, numpy as np
x = fb.placeholder(fb.float32, [None, 8, 8], name="x")
w = fb.Variable(fb.ones([8]), name="w")
h = fb.multiply(x, w, name="h")
total = fb.reduce_sum(h, name="total")
text = fb.constant(b"<img src=x onerror='window.broken = 1'>", name="text")
noise = fb.random_uniform([2], name="noise")
late = fb.assign_add(w, fb.ones([8]), name="late")
rows = fb.reshape(x, [3, 64], name="rows")
"""
SESSION = "sess = fb.Session()\n"
RUN = "sess.retain_feeds()\nsess.run(total, {x: np.arange(128.0).reshape(2, 8, 8)})\n"
BUSY = "import time, pathlib\nwhile not pathlib.Path('{}').exists(): time.sleep(0.05)"


# How many comms pages have opened to fetch values.
SESSION_OF_PAGE = "window.jupyterapp.shell.currentWidget.sessionContext.session"
CHANNELS = f"""[...{SESSION_OF_PAGE}.kernel._comms.values()]
    .filter((comm) => comm.targetName === "flowbook.fetch").length"""


def channels(page: Any) -> int:
    count: int = page.evaluate(f"() => {CHANNELS}")
    return count


def fetched(view: Any) -> str:
    """What the card says once a value, or why there is none, is there."""
    view.get_by_role("button", name="Fetch its value").click()
    view.locator(".fb-value, .fb-found .fb-warning").wait_for()
    told: str = view.locator(".fb-found").inner_text()
    return told


def test_values_are_shown_as_fits_them(lab: Lab, page: Any) -> None:
    lab.write("fetch", MODEL + SESSION + RUN + "fb.GraphView(sess)")
    notebook = lab.open(page, "fetch")
    notebook.run(0)
    view = notebook.graph(0)
    before = view.locator(".fb-status").inner_text()

    select_output(view, "h")
    told = fetched(view)
    assert "float32 [2, 8, 8] · 512 B" in told
    assert "fed as in its last run: x:0" in told
    assert view.locator(".fb-value img").count() == 2
    view.locator(".fb-value img").first.evaluate("(image) => image.decode()")
    assert view.locator(".fb-value svg path").count() == 40
    card = view.locator(".fb-card")
    # All of the card is seen, and when it goes, so does the room that was made for it.
    assert card.evaluate("(card) => card.scrollHeight <= card.clientHeight")
    high = view.bounding_box()["height"]
    statistics = view.locator(".fb-value dl > div").all_inner_texts()
    assert [each.split() for each in statistics[:2]] == [["min", "0"], ["max", "127"]]

    select_output(view, "total")
    assert "8128.0" in fetched(view)
    select_output(view, "text")
    assert "<img src=x onerror" in fetched(view)

    select_output(view, "noise")
    assert "later runs would draw others" in fetched(view)
    select_output(view, "late")
    assert "changes a variable" in fetched(view)
    select_output(view, "rows")
    told = fetched(view)
    assert "InvalidArgumentError" in told
    assert "'rows'" in told

    assert page.evaluate("() => window.broken") is None
    press(view, "Escape")
    card.wait_for(state="hidden")
    assert view.bounding_box()["height"] < high
    assert view.locator(".fb-status").inner_text() == before
    assert page.locator(".jp-OutputArea-output").count() == 1


def test_what_is_missing_is_said_and_can_be_made_good(lab: Lab, page: Any) -> None:
    lab.write("missing", MODEL + "fb.get_default_graph()", SESSION, RUN)
    notebook = lab.open(page, "missing")
    notebook.run(0)
    view = notebook.graph(0)
    select_output(view, "h")
    assert "no open session runs this graph" in fetched(view)
    notebook.run(1)
    assert "'w' has no value yet" in fetched(view)
    notebook.run(2)
    assert "by the session of cell [2], line 1" in fetched(view)


def test_a_value_comes_while_a_cell_runs(lab: Lab, page: Any) -> None:
    lab.write("beside", MODEL + SESSION + RUN + "fb.GraphView(sess)", BUSY.format("beside_go"))
    notebook = lab.open(page, "beside")
    notebook.run(0)
    view = notebook.graph(0)
    notebook.start(1)
    try:
        press(view, "Home", "ArrowRight", "ArrowRight")
        assert view.locator(".fb-card h3").inner_text() == "x:0"
        assert "float32 [2, 8, 8]" in fetched(view)
    finally:
        (lab.notebooks / "beside_go").touch()
    notebook.finish()
    assert notebook.outputs(1).count() == 0


def test_without_subshells_it_waits_and_can_be_cancelled(lab: Lab, own_page: Any) -> None:
    cells = (MODEL + SESSION + RUN + "fb.GraphView(sess)", BUSY.format("waiting_go"))
    lab.write("waiting", *cells)
    lab.set("kernels-settings", {"commsOverSubshells": "disabled"})
    try:
        notebook = lab.open(own_page, "waiting")
        notebook.run(0)
        view = notebook.graph(0)
        select_output(view, "h")
        notebook.start(1)
        view.get_by_role("button", name="Fetch its value").click()
        view.get_by_text("Waiting for the kernel").wait_for()
        view.get_by_role("button", name="Cancel").click()
        view.get_by_text("Cancelled.").wait_for()
        view.get_by_role("button", name="Fetch its value").click()
        view.get_by_text("Waiting for the kernel").wait_for()
        (lab.notebooks / "waiting_go").touch()
        notebook.finish()
        view.locator(".fb-value").wait_for()
    finally:
        (lab.notebooks / "waiting_go").touch()
        lab.set("kernels-settings", {})


def test_the_selection_stays_as_the_graph_grows(lab: Lab, page: Any) -> None:
    path = lab.write("grows", MODEL + SESSION + RUN + "fb.GraphView(sess)", "fb.tanh(h, name='z')")
    notebook = lab.open(page, "grows")
    notebook.run(0)
    view = notebook.graph(0)
    select_output(view, "h")
    assert "float32 [2, 8, 8]" in fetched(view)
    notebook.run(1)
    view.locator(".fb-card").get_by_role("button", name="z", exact=True).wait_for()
    assert view.locator(".fb-card h3").inner_text() == "h:0"
    assert "float32 [2, 8, 8]" in view.locator(".fb-value").inner_text()
    assert channels(page) == 1
    notebook.save()
    stored = json.loads(path.read_text())
    assert "8, 8" not in json.dumps(stored["metadata"])
    notebook.run(0)
    notebook.graph(0)
    page.wait_for_function(f"() => ({CHANNELS}) === 0")
