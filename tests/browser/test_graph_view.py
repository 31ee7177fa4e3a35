"""The live view of graphs, in a real JupyterLab."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import flowbook as fb
from tests.browser.lab import CHROMIUM, Lab
from tests.browser.view import exported, pixels, press, redrawn, reveal, saved_svg, tree_items
from tests.need import requires

pytestmark = [
    pytest.mark.browser,
    requires(program="chromium", module="playwright"),
]

LAYERS = """import flowbook as fb
x = fb.placeholder(fb.float32, [None, 8], name="x")
h = x
for i in range(3):
    h = fb.layers.dense(h, 8, activation=fb.nn.relu, name=f"layer_{i}")
y = fb.identity(h, name="y")
"""


def test_a_graph_is_shown_and_opens_by_keyboard(lab: Lab, page: Any) -> None:
    lab.write("keyboard", LAYERS + "fb.get_default_graph()")
    notebook = lab.open(page, "keyboard")
    notebook.run(0)
    view = notebook.graph(0)
    assert pixels(view) > 10
    assert tree_items(view)[1].startswith("layer_0, ")
    press(view, "ArrowDown", "ArrowDown")
    assert view.locator(".fb-card h3").inner_text() == "layer_0"
    before = view.get_attribute("data-drawn")
    press(view, "ArrowRight")
    redrawn(view, before)
    opened = view.locator("[role=treeitem][aria-expanded=true]")
    assert opened.count() == 1
    assert any(item.startswith("kernel, Variable") for item in tree_items(view))
    before = view.get_attribute("data-drawn")
    press(view, "ArrowLeft")
    redrawn(view, before)
    assert opened.count() == 0
    press(view, "Escape")
    assert view.locator(".fb-card").is_hidden()


def test_keys_in_a_view_are_not_the_notebooks(lab: Lab, page: Any) -> None:
    lab.write("keys", LAYERS + "fb.get_default_graph()", "kept = 1")
    notebook = lab.open(page, "keys")
    notebook.run(0)
    view = notebook.graph(0)
    notebook.select(0)
    for button in view.get_by_role("button", name="Zoom in"), view.locator("[role=tree]"):
        for key in ("b", "a", "d", "d", "x"):  # Insert, delete and cut cells, in command mode.
            button.press(key)
    assert page.locator(".jp-Notebook .jp-Cell").count() == 2


def test_search_reveals_and_the_card_tells(lab: Lab, page: Any) -> None:
    lab.write("search", LAYERS + "fb.get_default_graph()")
    notebook = lab.open(page, "search")
    notebook.run(0)
    view = notebook.graph(0)
    field = view.get_by_role("combobox")
    field.fill("layer_1 matmul")
    assert view.locator("[role=option]").first.inner_text().startswith("layer_1/MatMul")
    before = view.get_attribute("data-drawn")
    field.press("Enter")
    redrawn(view, before)
    card = view.locator(".fb-card")
    assert card.locator("h3").inner_text() == "layer_1/MatMul"
    told = card.inner_text()
    for text in ("layer_1/kernel/read:0", "float32 [8, 8] · 256 B", "transpose_b", "defined at"):
        assert text in told
    assert re.search(r"cell \[1\], line 5", told)
    assert 'h = fb.layers.dense(h, 8, activation=fb.nn.relu, name=f"layer_{i}")' in told
    # From there to a neighbour.
    card.get_by_role("button", name="layer_0/Relu:0").click()
    card.get_by_text("layer_0/Relu", exact=True).wait_for()
    before = view.get_attribute("data-drawn")
    view.get_by_role("button", name="Collapse all").click()
    redrawn(view, before)
    assert view.locator("[aria-expanded=true][role=treeitem]").count() == 0


def test_it_follows_the_graph_and_keeps_what_is_open(lab: Lab, page: Any) -> None:
    lab.write("follow", LAYERS + "fb.GraphView()", "z = fb.tanh(y, name='z')")
    notebook = lab.open(page, "follow")
    notebook.run(0)
    view = notebook.graph(0)
    before = view.get_attribute("data-drawn")
    press(view, "ArrowDown", "ArrowDown", "ArrowRight")
    redrawn(view, before)
    before = view.get_attribute("data-drawn")
    notebook.run(1)
    redrawn(view, before)
    assert tree_items(view)[-1] == "z, Tanh"
    assert view.locator("[role=treeitem][aria-expanded=true]").count() == 1


def test_a_graph_is_shown_as_of_its_cell_and_live_on_request(lab: Lab, page: Any) -> None:
    lab.write("as_of", LAYERS + "fb.get_default_graph()", "z = fb.tanh(y, name='z')")
    notebook = lab.open(page, "as_of")
    notebook.run(0)
    view = notebook.graph(0)
    button = view.get_by_role("button", name="Show the graph as it is now")
    assert button.is_hidden()
    then = tree_items(view)
    notebook.run(1)
    button.wait_for()
    assert tree_items(view) == then
    for items in ([*then, "z, Tanh"], then):
        before = view.get_attribute("data-drawn")
        button.click()
        redrawn(view, before)
        assert tree_items(view) == items


def test_stale_operations_are_marked(lab: Lab, page: Any) -> None:
    first, second = (
        "import flowbook as fb\na = fb.constant(1.0, name='a')",
        "b = fb.negative(a, name='b')",
    )
    path = lab.write("stale", first, second, "fb.GraphView()")
    notebook = lab.open(page, "stale")
    for cell in range(3):
        notebook.run(cell)
    view = notebook.graph(2)
    assert path.exists()
    page.evaluate(
        """() => window.jupyterapp.shell.currentWidget.content.widgets[0].model.sharedModel
            .setSource("import flowbook as fb\\na = fb.constant(2.0, name='a')")"""
    )
    before = view.get_attribute("data-drawn")
    notebook.run(0)
    redrawn(view, before)
    assert "1 stale" in view.locator(".fb-status").inner_text()
    assert sum(item.endswith(", stale") for item in tree_items(view)) == 1
    reveal(view, "b")
    warning = view.locator(".fb-card .fb-warning").inner_text()
    assert warning.startswith("stale: ")
    assert "re-run cell [2]" in warning
    assert 'stroke-dasharray="5 3"' in saved_svg(view)


def test_it_works_while_the_kernel_is_busy(lab: Lab, page: Any) -> None:
    busy = "import time, pathlib\nwhile not pathlib.Path('go_on').exists(): time.sleep(0.05)"
    lab.write("busy", LAYERS + "fb.get_default_graph()", busy)
    notebook = lab.open(page, "busy")
    notebook.run(0)
    view = notebook.graph(0)
    notebook.start(1)
    try:
        before = view.get_attribute("data-drawn")
        press(view, "ArrowDown", "ArrowDown", "ArrowRight")
        redrawn(view, before)
        assert view.locator("[role=treeitem][aria-expanded=true]").count() == 1
        view.get_by_role("combobox").fill("layer_2")
        assert view.locator("[role=option]").count() > 0
    finally:
        (lab.notebooks / "go_on").touch()
    notebook.finish()


def test_pointer_opens_selects_and_pans(lab: Lab, page: Any) -> None:
    lab.write("pointer", LAYERS + "fb.get_default_graph()")
    notebook = lab.open(page, "pointer")
    notebook.run(0)
    view = notebook.graph(0)
    canvas = view.locator("canvas")
    box = canvas.bounding_box()
    middle = {"x": box["width"] / 2, "y": box["height"] / 2}
    before = canvas.evaluate("(canvas) => canvas.toDataURL()")
    canvas.hover(position=middle)
    page.mouse.down()
    page.mouse.move(box["x"] + middle["x"] + 60, box["y"] + middle["y"] + 25, steps=4)
    page.mouse.up()
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
    assert canvas.evaluate("(canvas) => canvas.toDataURL()") != before
    assert view.locator(".fb-card").is_hidden()


def test_two_views_fetch_the_code_once(lab: Lab, page: Any) -> None:
    lab.write("twice", LAYERS + "fb.get_default_graph()", "fb.GraphView(fetches=y)")
    notebook = lab.open(page, "twice")
    page.evaluate("() => globalThis.__flowbook_runtimes?.clear()")
    notebook.run(0)
    notebook.run(1)
    notebook.graph(0)
    assert "needed" in notebook.graph(1).locator(".fb-status").inner_text()
    assert page.evaluate("() => globalThis.__flowbook_runtimes.size") == 1


@pytest.mark.parametrize("dark", [False, True])
def test_it_takes_the_colours_of_the_page(lab: Lab, page: Any, dark: bool) -> None:
    lab.write(f"theme_{dark}", LAYERS + "fb.get_default_graph()")
    notebook = lab.open(page, f"theme_{dark}")
    with notebook.in_theme(dark):
        notebook.run(0)
        view = notebook.graph(0)
        assert view.get_attribute("data-dark") == str(dark).lower()
        corner = view.locator("canvas").evaluate(
            "(at) => [...at.getContext('2d').getImageData(2, at.height - 90, 1, 1).data]"
        )
        assert (sum(corner[:3]) < 3 * 128) is dark


def test_saved_notebooks_hold_the_picture_and_no_state(lab: Lab, page: Any) -> None:
    path = lab.write("saved", LAYERS + "fb.get_default_graph()")
    notebook = lab.open(page, "saved")
    notebook.run(0)
    notebook.graph(0)
    notebook.save()
    stored = json.loads(path.read_text())
    assert "widgets" not in stored["metadata"]
    [output] = stored["cells"][0]["outputs"]
    assert "".join(output["data"]["image/svg+xml"]).startswith("<svg")


def test_exported_pages_work_without_a_kernel(tmp_path: Path, page: Any) -> None:
    with fb.Graph().as_default():
        x = fb.placeholder(fb.float32, [2], name="x")
        with fb.name_scope("scope"):
            fb.tanh(fb.identity(x))
        view = exported(page, fb.get_default_graph(), tmp_path)
    assert tree_items(view)[0].startswith("x, Placeholder")
    assert page.locator("body > #view > svg").count() == 0


def test_chromium_is_where_it_is_looked_for() -> None:
    assert Path(CHROMIUM).exists()


def test_a_large_graph_is_shown_closed(lab: Lab, page: Any) -> None:
    """How soon, `benchmarks/RESULTS.md` says."""
    build = """
import flowbook as fb
h = fb.placeholder(fb.float32, [4, 8], name="x")
for i in range(400):
    with fb.name_scope(f"block_{i}"):
        for j in range(20):
            h = fb.tanh(h + 1.0)
"""
    lab.write("large", build, "fb.get_default_graph()")
    notebook = lab.open(page, "large")
    notebook.run(0)
    for _ in range(2):  # The second one takes the place of the first.
        started = notebook.run(1)
        page.wait_for_function(
            "(started) => document.querySelector('.fb-graph[data-drawn]')?.dataset.drawn > started",
            arg=started,
        )
        view = notebook.graph(1)
        assert len(tree_items(view)) == 300  # The search finds the others.
        assert view.locator("[role=treeitem]").first.get_attribute("aria-setsize") == "401"
