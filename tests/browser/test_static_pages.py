"""A page without a kernel is never blank: what programs make of notebooks, in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbconvert import HTMLExporter

from tests.browser.lab import ROOT

CELLS = (
    """
import flowbook as fb
x = fb.placeholder(fb.float32, [2], name="x")
W = fb.Variable([1.0, 2.0], name="W")
y = x * W
fb.get_default_graph()
""",
    "fb.GraphView(fetches=y)",
    "y",
    "y.op",
    "W",
    "sess = fb.Session()\nsess",
    "fb.get_default_graph().stale()",
    "fb.parameter_counts(y.graph)",
    "for i in (bar := fb.progress(range(3))):\n    bar.show(loss=i)",
    "sess.guard()",
)


@pytest.mark.browser
def test_a_notebook_that_a_program_ran_shows_everything(
    own_page: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in CELLS])
    NotebookClient(notebook, kernel_name="python3", extra_arguments=["--log-level=ERROR"]).execute()
    assert "widgets" not in notebook.metadata
    path = tmp_path / "page.html"
    path.write_text(HTMLExporter().from_notebook_node(notebook)[0])
    # Its template fetches MathJax and the like; there is no network.
    own_page.route("https://**", lambda route: route.abort())
    own_page.goto(path.as_uri())
    outputs = own_page.locator(".jp-OutputArea-output")
    heights = outputs.evaluate_all("all => all.map((each) => each.offsetHeight)")
    shown = outputs.evaluate_all(
        "all => all.map((each) => each.innerText.trim() || each.querySelector('svg, img')?.tagName)"
    )
    assert len(shown) == len(CELLS)
    assert all(shown), shown
    assert min(heights) > 10
    assert min(heights[:2]) > 100
    assert any(each.startswith("100%, 3/3 steps, loss=2 (") for each in shown)
