"""What a notebook shows when it is opened again: with its kernel, without it, without trust."""

import json
from typing import Any

import pytest

from tests.browser.lab import Lab
from tests.need import requires

pytestmark = [
    pytest.mark.browser,
    requires(program="chromium", module="playwright"),
]

CHARTS_FIRST = """import flowbook as fb
x = fb.placeholder(fb.float32, [], name="x")
W = fb.Variable(1.0, name="W")
loss = fb.square(W * x, name="loss")
fb.summary.scalar("loss", loss)
fb.summary.scalar("exp", fb.exp(W))
train = fb.train.GradientDescentOptimizer(0.01).minimize(loss)
sess = fb.Session()
sess.summarize()"""
TRAIN = "for _ in range(20): sess.run(train, {x: 1.0})"


def test_pictures_are_shown_where_there_is_no_live_view(lab: Lab, page: Any) -> None:
    path = lab.write("reopened", CHARTS_FIRST, TRAIN, "fb.GraphView(sess)", "sess.close()")
    notebook = lab.open(page, "reopened")
    for cell in range(3):
        notebook.run(cell)
    said = notebook.outputs(0).locator(".fb-said")
    said.get_by_text("1 not computed by these runs: exp").wait_for()
    # What is stored of the charts is what they were after the training.
    notebook.graph(2)
    assert notebook.outputs(0).locator(".fb-summaries[data-drawn]").count() == 1
    notebook.save()
    stored = json.loads(path.read_text())
    [charts] = stored["cells"][0]["outputs"]
    assert "1 run, 1 tag" in "".join(charts["data"]["image/svg+xml"])
    assert "loss    19" in "".join(charts["data"]["text/plain"])
    notebook.run(3)
    said.get_by_text("the session that this shows has ended; re-run cell [1]").wait_for()
    picture = notebook.outputs(2).locator(".fb-said")
    picture.get_by_text("the session that this shows has ended; re-run cell [3]").wait_for()
    # With its kernel it is live again.
    notebook = lab.load(page, "reopened")
    notebook.graph(2)
    # Without it there are the pictures.
    page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
    notebook = lab.load(page, "reopened")
    for cell in (0, 2):
        notebook.outputs(cell).locator("img[src^='data:image/svg']").wait_for()
    assert "not found" not in page.locator(".jp-Notebook").inner_text()
    # Nobody trusts what somebody else has changed.
    stored["cells"][1]["source"] = "# " + TRAIN
    (lab.notebooks / "untrusted.ipynb").write_text(json.dumps(stored))
    notebook = lab.open(page, "untrusted")
    for cell in (0, 2):
        picture = notebook.outputs(cell).locator("img[src^='data:image/png']")
        picture.wait_for()
        assert picture.bounding_box()["width"] > 100
