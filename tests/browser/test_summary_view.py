"""The live view of summaries, in a real JupyterLab."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import flowbook as fb
from flowbook.exec.instruments.summaries.event import Image, Summary
from flowbook.graph.numerics.formats.image_codecs import encode_png
from tests.browser.lab import ROOT, Lab, Notebook
from tests.need import requires

pytestmark = [
    pytest.mark.browser,
    requires(program="chromium", module="playwright"),
]

HISTORY = """
import math, pathlib, time
import flowbook as fb, numpy as np
from flowbook.exec.instruments.summaries.event import Histogram, Image, Summary
from flowbook.graph.numerics.formats.image_codecs import encode_png
def put(history, run, tag, value, step, kind="scalar"):
    history.add([Summary(run, tag, kind, step, 1.7e9 + 60 * step, value)])
def wait_for(name):
    while not pathlib.Path(name).exists(): time.sleep(0.02)
history = fb.summary.SummaryHistory()
"""

TWO_RUNS = (
    HISTORY
    + """
for run, scale in (("small", 1.0), ("wide", 2.0)):
    for step in range(100):
        put(history, run, "train/loss", scale * (1 + (-1) ** step / 2), step)
    put(history, run, "rate", 1e-4 * scale, 0)
"""
)

TRAINING = """
import pathlib, time
import flowbook as fb
x = fb.placeholder(fb.float32, [], name="x")
W = fb.Variable(1.0, name="W")
loss = fb.square(W * x - 3.0)
train = fb.train.GradientDescentOptimizer(0.01).minimize(loss)
fb.summary.scalar("loss", loss)
"""


def shown(notebook: Notebook, cell: int) -> Any:
    """The charts in a cell's output, once they are drawn."""
    view = notebook.cell(cell).locator(".fb-summaries[data-drawn]")
    view.wait_for()
    return view


def opened(lab: Lab, page: Any, name: str, *cells: str) -> tuple[Notebook, Any]:
    """A notebook of which two cells have run, and the charts that the second shows."""
    lab.write(name, *cells)
    notebook = lab.open(page, name)
    notebook.run(0)
    notebook.run(1)
    return notebook, shown(notebook, 1)


def wait(view: Any, condition: str, *args: Any) -> None:
    """Wait until a condition of the view's element and of other arguments holds."""
    view.page.wait_for_function(
        f"([view, ...args]) => {{ {condition} }}", arg=[view.element_handle(), *args]
    )


def headline(view: Any) -> str:
    text: str = view.locator(".fb-headline").first.inner_text()
    return text


def has_grid(view: Any) -> None:
    """Wait until the lines of a chart's grid have the colour of the page's borders."""
    wait(
        view,
        """
        const canvas = view.querySelector(".uplot canvas");
        if (!canvas) return false;
        const one = new OffscreenCanvas(1, 1).getContext("2d");
        one.fillStyle = getComputedStyle(view).borderTopColor;
        one.fillRect(0, 0, 1, 1);
        const colours = (context, width, height) =>
            new Set(new Uint32Array(context.getImageData(0, 0, width, height).data.buffer));
        const [border] = colours(one, 1, 1);
        return colours(canvas.getContext("2d"), canvas.width, canvas.height).has(border);
        """,
    )


def chart(view: Any, number: int) -> Any:
    """One of the charts, which are drawn when they come into sight."""
    inside = view.locator(".u-over").nth(number)
    for element in (view.locator(".fb-status"), inside):
        element.scroll_into_view_if_needed()
    return inside


def read(view: Any, number: int, part: float) -> list[str]:
    """What the crosshair says at a part of a chart's width."""
    # What was pressed just now is drawn in the next frame.
    view.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
    inside = chart(view, number)
    box = inside.bounding_box()
    inside.hover(position={"x": box["width"] * part, "y": box["height"] / 2})
    tip = view.locator(".fb-tip:not([hidden])")
    tip.wait_for()
    return [text for text in tip.inner_text().replace("\t", "\n").split("\n") if text.strip()]


def test_it_is_live_while_a_cell_is_busy(lab: Lab, own_page: Any) -> None:
    train = """
sess = fb.Session()
display(sess.summarize())
for step in range(20):
    sess.run(train, {x: 1.0})
pathlib.Path("trained").touch()
while not pathlib.Path("enough").exists(): time.sleep(0.02)
for step in range(20):
    sess.run(train, {x: 1.0})
while not pathlib.Path("seen").exists(): time.sleep(0.02)
"""
    lab.write("live", TRAINING, train)
    notebook = lab.open(own_page, "live")
    notebook.run(0)
    processor = own_page.context.new_cdp_session(own_page)
    processor.send("Emulation.setCPUThrottlingRate", {"rate": 15})
    notebook.start(1)
    try:
        view = shown(notebook, 1)
        # What a slow page was not there for reaches it too, though the kernel cannot be asked.
        wait(view, "return view.querySelector('.fb-headline')?.textContent !== ''")
        own_page.wait_for_function(
            "() => [...document.querySelectorAll('.fb-plot')].some("
            "(plot) => plot.getAttribute('aria-label')?.startsWith('loss: '))"
        )
        processor.send("Emulation.setCPUThrottlingRate", {"rate": 1})
        first = headline(view)
        (lab.notebooks / "enough").touch()
        wait(view, "return view.querySelector('.fb-headline').textContent !== args[0]", first)
        prompt = notebook.cell(1).locator(".jp-InputPrompt")
        assert prompt.inner_text() == "[*]:"  # It runs still.
    finally:
        (lab.notebooks / "enough").touch()
        (lab.notebooks / "seen").touch()
    notebook.finish()
    assert notebook.outputs(1).count() == 1  # A thread prints nothing.


def test_several_runs_are_overlaid_toggled_and_read(lab: Lab, page: Any) -> None:
    _, view = opened(lab, page, "runs", TWO_RUNS, "fb.SummaryView(history)")
    view.locator(".fb-prefix").nth(1).wait_for()  # What is drawn first may be empty.
    assert view.locator(".fb-prefix").all_inner_texts() == ["summaries", "train"]
    chips = view.locator(".fb-legend .fb-chip")
    assert chips.all_inner_texts() == ["small", "wide"]
    assert read(view, 1, 0.999) == ["step 99", "wide", "1", "small", "0.5"]
    before = view.get_attribute("data-drawn")
    chips.nth(1).click()
    wait(view, "return view.dataset.drawn !== args[0]", before)
    assert read(view, 1, 0.001) == ["step 0", "small", "1.5"]
    assert headline(view) == "1e-4"
    view.get_by_role("button", name="Show all").click()
    assert [chip.get_attribute("aria-pressed") for chip in chips.all()] == ["true", "true"]
    chips.nth(0).dblclick()
    assert [chip.get_attribute("aria-pressed") for chip in chips.all()][:2] == ["true", "false"]
    assert view.locator(".fb-status").inner_text() == "2 runs · 2 tags"


def test_smoothing_axes_and_log_scale(lab: Lab, page: Any) -> None:
    _, view = opened(lab, page, "look", TWO_RUNS, 'fb.SummaryView(history, tags="loss")')
    view.get_by_label("Smoothing", exact=True).fill("0.9")
    place, wide, smoothed, raw, *_ = read(view, 0, 0.999)
    assert (place, wide, raw) == ("step 99", "wide", "1")
    assert 1.9 < float(smoothed) < 2.0
    view.get_by_role("button", name="Relative").click()
    assert read(view, 0, 0.999)[0] == "1h 39m"
    view.get_by_role("button", name="Time", exact=True).click()
    assert "2023" in read(view, 0, 0.999)[0]
    view.get_by_role("button", name="Log scale").click()
    view.get_by_role("button", name="Step", exact=True).click()
    assert read(view, 0, 0.999)[0] == "step 99"
    assert view.locator(".fb-note:visible").count() == 0


def test_zoom_by_dragging_and_back_by_double_click(lab: Lab, page: Any) -> None:
    _, view = opened(lab, page, "zoom", TWO_RUNS, 'fb.SummaryView(history, tags="loss")')
    inside = chart(view, 0)
    box = inside.bounding_box()
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.25, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, y, steps=4)
    page.mouse.up()
    assert 20 < int(read(view, 0, 0.02)[0].removeprefix("step ")) < 30
    inside.dblclick()
    assert read(view, 0, 0.001)[0] == "step 0"
    plot = view.locator(".fb-plot")
    plot.focus()
    plot.press("End")
    plot.press("ArrowLeft")
    assert view.locator(".fb-tip").inner_text().startswith("step 98")
    assert "at step 98" in view.locator("[aria-live]").inner_text()


def test_what_is_no_number_is_marked_and_said(lab: Lab, page: Any) -> None:
    strange = """
for step, value in enumerate([1.0, math.nan, math.inf, -math.inf, 0.0, -2.0, 3.0]):
    put(history, "a", "x", value, step)
history
"""
    _, view = opened(lab, page, "strange", HISTORY, strange)
    note = view.locator(".fb-note")
    assert note.inner_text() == "1 NaN · 2 infinite"
    assert read(view, 0, 0.17) == ["step 1", "NaN"]
    view.get_by_role("button", name="Log scale").click()
    note.get_by_text("2 values of 0 or less: not on a logarithmic axis").wait_for()
    assert view.locator(".fb-legend").is_hidden()  # One run needs no name.


def test_images_and_texts_have_a_slider_over_the_steps(lab: Lab, page: Any) -> None:
    fill = """
for step in range(5):
    pixels = np.full((2, 3, 1), 50 * step, np.uint8)
    put(history, "a", "picture", Image(2, 3, 1, encode_png(pixels, -1)), step, "image")
    put(history, "a", "words", (f"said at {step}",), step, "text")
    counts = Histogram(0.0, 1.0, 3.0, 0.0, 0.0, 0, (0.5, 1.0), (1.0, 2.0))
    put(history, "a", "weights", counts, step, "histogram")
put(history, "a", "broken", Image(2, 3, 1, b"<svg onload='window.broken = 1'>"), 0, "image")
history
"""
    _, view = opened(lab, page, "slider", HISTORY, fill)
    image = view.get_by_alt_text("picture, step 4")
    image.wait_for()
    assert image.evaluate("(image) => image.decode().then(() => image.naturalWidth)") == 3
    view.get_by_label("step of picture").fill("1")
    view.get_by_alt_text("picture, step 1").wait_for()
    words = view.locator(".fb-texts pre")
    assert words.inner_text() == "said at 4"
    view.get_by_label("step of words").press("Home")
    assert words.inner_text() == "said at 0"
    ridges = view.get_by_role("img", name="weights: 5 histograms of values from 0 to 1")
    ridges.scroll_into_view_if_needed()
    ridges.hover(position={"x": 80, "y": 160})
    assert "step 4" in view.locator(".fb-tip:not([hidden])").inner_text()
    view.get_by_alt_text("no picture that this page can show").wait_for()
    assert page.evaluate("() => window.broken") is None


def test_a_cell_that_runs_again_closes_its_view(lab: Lab, page: Any) -> None:
    count = """
import threading
from flowbook.widgets.publisher import publisher
print(len(publisher._views), sum(t.name == "flowbook-publisher" for t in threading.enumerate()))
"""
    lab.write("again", TWO_RUNS, "fb.SummaryView(history)", count)
    notebook = lab.open(page, "again")
    notebook.run(0)
    for _ in range(3):
        notebook.run(1)
        shown(notebook, 1)
    assert page.locator(".fb-summaries").count() == 1
    notebook.run(2)
    assert page.locator(".jp-OutputArea-output pre").last.inner_text().strip() == "1 1"


WRITER = """
import pathlib, sys, time
import flowbook as fb
from flowbook.exec.instruments.summaries.event import Summary
folder = pathlib.Path(sys.argv[1])
log = fb.summary.LogDirectory(folder)
for step in range(2):
    log.add([Summary("elsewhere", "loss", "scalar", step, 1.7e9 + step, 8.0 - step)])
    log.flush()
    while step == 0 and not (folder / "go_on").exists(): time.sleep(0.02)
log.close()
"""


@requires(module="tensorboard")
def test_it_follows_what_another_process_writes(lab: Lab, page: Any) -> None:
    logs = lab.notebooks / "logs"
    logs.mkdir()
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(logs)], cwd=ROOT)
    try:
        lab.write("followed", "import flowbook as fb\nfb.SummaryView('logs')")
        notebook = lab.open(page, "followed")
        notebook.run(0)
        view = shown(notebook, 0)
        wait(view, "return view.querySelector('.fb-headline')?.textContent === '8'")
        (logs / "go_on").touch()
        wait(view, "return view.querySelector('.fb-headline').textContent === '7'")
        assert writer.wait(60) == 0
    finally:
        writer.kill()
        writer.wait()


def test_nothing_yet_and_nothing_found(lab: Lab, page: Any) -> None:
    notebook, view = opened(
        lab, page, "empty", HISTORY, "history", 'put(history, "a", "x/y", 1.0, 0)'
    )
    assert "No summaries yet" in view.inner_text()
    notebook.run(2)
    view.locator(".u-over").wait_for()
    view.get_by_label("Filter tags").fill("(nothing")
    assert "No tag matches “(nothing”" in view.inner_text()
    view.get_by_label("Filter tags").fill("^X/")
    view.locator(".u-over").wait_for()
    head = view.locator(".fb-head")
    head.click()
    assert head.get_attribute("aria-expanded") == "false"
    assert view.locator(".u-over").count() == 0


def test_a_thousand_tags_make_no_thousand_charts(lab: Lab, page: Any) -> None:
    fill = """
history.add([Summary("a", f"group{i // 100}/tag{i}", "scalar", step, 1.7e9 + step, i * step)
             for step in range(100) for i in range(1000)])
history
"""
    _, view = opened(lab, page, "thousand", HISTORY, fill)
    view.locator(".u-over").first.wait_for()
    assert view.locator(".fb-status").inner_text() == "1 run · 1,000 tags"
    assert view.locator(".fb-head").count() == 10
    assert view.locator(".fb-card").count() == 48
    assert view.locator(".u-over").count() < 24
    view.get_by_role("button", name="Show 48 more of 52").click()
    assert view.locator(".fb-card").count() == 96
    view.get_by_label("Filter tags").fill("tag99\\d$")
    wait(view, "return view.querySelectorAll('.fb-card').length === 10")


def test_hostile_names_and_values_are_text(lab: Lab, page: Any) -> None:
    hostile = """
evil = "<img src=x onerror='window.broken = 1'>"
for run in (evil, evil * 10_000):
    for tag in (evil, evil + "/" + evil, "\\x00\\u202e\\ud800", evil * 20_000):
        for step, value in enumerate((1e308, -1e308, math.nan, 5e-324)):
            put(history, run, tag, value, step)
    put(history, run, "text", (evil, evil * 30_000), 0, "text")
fb.SummaryView({evil: history}, tags="")
"""
    _, view = opened(lab, page, "evil", HISTORY, hostile)
    view.locator(".u-over").first.wait_for()
    read(view, 0, 0.5)
    assert "<img src=x" in view.locator("h4").first.inner_text()
    assert page.evaluate("() => window.broken") is None
    assert view.locator("img").count() == 0


@pytest.mark.parametrize("dark", [False, True])
def test_it_takes_the_colours_of_the_page(lab: Lab, page: Any, dark: bool) -> None:
    lab.write(f"charts_{dark}", TWO_RUNS + "history")
    notebook = lab.open(page, f"charts_{dark}")
    with notebook.in_theme(dark):
        notebook.run(0)
        view = shown(notebook, 0)
        assert view.get_attribute("data-dark") == str(dark).lower()
        ink = view.evaluate("(view) => getComputedStyle(view).color.match(/\\d+/g).map(Number)")
        assert (sum(ink[:3]) > 3 * 128) is dark


def test_a_view_made_outside_the_page_has_its_colours_inside(tmp_path: Path, page: Any) -> None:
    history = fb.summary.SummaryHistory()
    history.add([Summary("a", "loss", "scalar", i, float(i), 1 / (i + 1)) for i in range(50)])
    fb.SummaryView(history).export_html(tmp_path / "charts.html")
    written = (tmp_path / "charts.html").read_text(encoding="utf-8")
    # As JupyterLab does with cells that are far below when a notebook is opened.
    last = written.rindex("picture.remove();")
    outside = f"{written[:last]}document.body.append(place);{written[last:]}"
    outside = outside.replace("await renderExported", "place.remove();\nawait renderExported")
    (tmp_path / "outside.html").write_text(outside, encoding="utf-8")
    page.goto((tmp_path / "outside.html").as_uri())
    has_grid(page.locator(".fb-summaries[data-drawn]"))


def test_saved_notebooks_hold_pictures_and_no_state(lab: Lab, page: Any) -> None:
    path = lab.write("charts_saved", TWO_RUNS, "history")
    notebook = lab.open(page, "charts_saved")
    notebook.run(0)
    notebook.run(1)
    shown(notebook, 1)
    notebook.save()
    stored = json.loads(path.read_text())
    assert "widgets" not in stored["metadata"]
    [output] = stored["cells"][1]["outputs"]
    assert "".join(output["data"]["image/svg+xml"]).startswith("<svg")
    assert "2 runs, 2 tags" in "".join(output["data"]["text/plain"])


def test_exported_pages_work_without_a_kernel(tmp_path: Path, own_page: Any) -> None:
    import numpy as np

    history = fb.summary.SummaryHistory()
    picture = Image(2, 2, 1, encode_png(np.zeros((2, 2, 1), np.uint8), -1))
    history.add([Summary("a", "loss", "scalar", i, float(i), 1 / (i + 1)) for i in range(50)])
    history.add([Summary("a", "digit", "image", 0, 0.0, picture)])
    fb.SummaryView(history, smoothing=0.5).export_html(tmp_path / "charts.html")
    asked: list[str] = []
    own_page.on("request", lambda request: asked.append(request.url))
    own_page.goto((tmp_path / "charts.html").as_uri())
    view = own_page.locator(".fb-summaries[data-drawn]")
    view.locator(".u-over").wait_for()
    assert headline(view) == "" or headline(view) == "0.02"
    assert read(view, 0, 0.999)[0] == "step 49"
    assert own_page.locator("body > #view > svg").count() == 0
    view.get_by_alt_text("digit, step 0").wait_for()
    assert all(url.startswith(("file:", "blob:")) for url in asked)


def test_a_graph_on_the_same_page_changes_nothing(lab: Lab, page: Any) -> None:
    lab.write("beside", TWO_RUNS + "history", "fb.get_default_graph()")
    notebook = lab.open(page, "beside")
    notebook.run(0)
    view = shown(notebook, 0)
    view.locator(".uplot").nth(1).wait_for()  # The charts of both tags have come into sight.
    cards = "(view) => [...view.querySelectorAll('*')].map((e) => [e.offsetTop, e.offsetWidth])"
    before = view.evaluate(cards)
    notebook.run(1)
    notebook.graph(1)
    assert view.evaluate(cards) == before
    assert len(before) > 20


def test_logarithmic_axes_have_round_numbers(lab: Lab, page: Any) -> None:
    lab.write(
        "decades",
        HISTORY
        + "for i in range(60): put(history, 'r', 'loss', 10.0 ** (-i / 10), i)\n"
        + "fb.SummaryView(history, log=True)",
    )
    notebook = lab.open(page, "decades")
    # What the chart writes is drawn; so the drawing is listened to.
    page.evaluate(
        """() => {
            const canvas = CanvasRenderingContext2D.prototype;
            const write = canvas.fillText;
            window.written = [];
            window.heard = () => {
                canvas.fillText = write;
                return window.written;
            };
            canvas.fillText = function (text, ...rest) {
                window.written.push(text);
                return write.call(this, text, ...rest);
            };
        }"""
    )
    notebook.run(0)
    shown(notebook, 0)
    page.wait_for_function("() => window.written.includes('1e-4')")
    written = page.evaluate("() => window.heard()")
    assert {"1", "0.01", "1e-4"} <= set(written)
    assert not any("∞" in text for text in written)
