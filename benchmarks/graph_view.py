"""How soon a large graph is seen, and how smoothly it moves, in JupyterLab with Chromium.

    python -m benchmarks.graph_view

The graphs are training graphs like Inception's, of 36,000 and of 3,000 operations, with a scope of
200 operations side by side. Times are from the page's own clock, on a Lab that has shown a graph
before: from the press of Run to the frame after the first picture; from a key to the frame that
shows an opened scope; and the frames of a pan of two seconds. Medians.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
from pathlib import Path
from typing import Any

import flowbook as fb
from benchmarks.graph_view_page import RESULTS
from flowbook.widgets.front_end import BUNDLE
from flowbook.widgets.graphs.payload import graph_payload
from flowbook.widgets.graphs.svg import graph_svg
from tests.browser.lab import Lab, browser

ROUNDS = 7


def inception(modules: int) -> fb.Graph:
    """A network of so many modules of four branches, its gradients and Adam's updates."""
    with fb.Graph().as_default() as graph:
        h = fb.placeholder(fb.float32, [None, 32, 32, 3], name="images")
        labels = fb.placeholder(fb.int32, [None], name="labels")
        h = fb.layers.conv2d(h, 16, 3, padding="SAME", name="stem")
        for i in range(modules):
            with fb.name_scope(f"mixed_{i}"):
                h = fb.concat([_branch(h, sizes) for sizes in ([1], [1, 3], [1, 5], [3])], 3)
        with fb.name_scope("flat"):
            fb.group(*[fb.tanh(h, name=f"tanh_{i}") for i in range(199)])
        with fb.name_scope("loss"):
            logits = fb.layers.dense(fb.reduce_mean(h, [1, 2]), 10, name="logits")
            loss = fb.reduce_mean(
                fb.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
            )
        fb.train.AdamOptimizer(1e-3).minimize(loss)
    return graph


def _branch(h: fb.Tensor, sizes: list[int]) -> fb.Tensor:
    with fb.name_scope(f"branch_{sizes[-1]}x{sizes[-1]}"):
        for i, size in enumerate(sizes):
            with fb.name_scope(f"conv_{i}"):
                h = fb.layers.conv2d(h, 8, size, padding="SAME", use_bias=False, name="conv")
                h = fb.nn.relu(fb.layers.batch_normalization(h, training=True, name="norm"))
    return h


_WATCH = """
() => {
    window.longest = 0;
    window.watching?.disconnect();
    window.watching = new PerformanceObserver((list) => {
        for (const task of list.getEntries()) {
            window.longest = Math.max(window.longest, task.duration);
        }
    });
    window.watching.observe({ entryTypes: ["longtask"] });
}
"""

# Holds the main thread for 120 ms, to see that it is noticed.
_BLOCK = """
() => {
    setTimeout(() => {
        const end = performance.now() + 120;
        while (performance.now() < end);
    });
}
"""

# Runs a cell, and gives the milliseconds until the frame after its picture is there.
_FIRST = """
async (cell) => {
    const notebook = window.jupyterapp.shell.currentWidget.content;
    notebook.activeCellIndex = cell;
    notebook.deselectAll();
    const output = notebook.widgets[cell].node;
    const old = output.querySelector(".fb-graph");
    const start = performance.now();
    void window.jupyterapp.commands.execute("notebook:run-cell");
    const frame = () => new Promise((done) => requestAnimationFrame(done));
    for (;;) {
        await frame();
        const view = output.querySelector(".fb-graph[data-drawn]");
        if (view && view !== old) {
            await frame();
            return performance.now() - start;
        }
    }
}
"""

# Presses a key on a view, and gives the milliseconds until the frame after it is drawn anew.
_KEY = """
async ([view, key]) => {
    const before = view.dataset.drawn;
    const frame = () => new Promise((done) => requestAnimationFrame(done));
    await frame();
    const start = performance.now();
    view.querySelector("[role=tree]").dispatchEvent(
        new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
    while (view.dataset.drawn === before) await frame();
    await frame();
    return performance.now() - start;
}
"""

# Drags the picture for two seconds; gives the milliseconds between frames.
_PAN = """
async (view) => {
    const canvas = view.querySelector("canvas");
    const send = (type, x, y) => canvas.dispatchEvent(
        new PointerEvent(type, { clientX: x, clientY: y, pointerId: 1, button: 0, bubbles: true }));
    const { left, top, width, height } = canvas.getBoundingClientRect();
    canvas.setPointerCapture = () => {};
    const gaps = [];
    let last = 0;
    send("pointerdown", left + width / 2, top + height / 2);
    const start = performance.now();
    while (performance.now() - start < 2000) {
        const now = await new Promise((done) => requestAnimationFrame(done));
        if (last) gaps.push(now - last);
        last = now;
        const turn = (now - start) / 200;
        const [dx, dy] = [150 * Math.sin(turn), 60 * Math.cos(turn)];
        send("pointermove", left + width / 2 + dx, top + height / 2 + dy);
    }
    send("pointerup", left + width / 2, top + height / 2);
    return gaps;
}
"""

_CELLS = (
    "import flowbook as fb\nfb.constant(1.0, name='a')\nfb.get_default_graph()",
    "from benchmarks.graph_view import inception\ngraph = inception({modules})\n"
    "len(graph.operations)",
    "graph",
)


def measure(lab: Lab, chromium: Any, modules: int) -> dict[str, Any]:
    """The figures for one graph."""
    name = f"inception_{modules}"
    lab.write(name, *(cell.format(modules=modules) for cell in _CELLS))
    page = chromium.new_page(viewport={"width": 1280, "height": 900})
    notebook = lab.open(page, name)
    for cell in (0, 1):
        notebook.run(cell)
    notebook.graph(0)
    first, blocks, opened = [], [], []
    for _ in range(ROUNDS):
        page.evaluate(_WATCH)
        first.append(page.evaluate(_FIRST, 2))
        page.evaluate("() => window.running")
        page.wait_for_timeout(1000)  # Let what follows the picture come, too.
        blocks.append(page.evaluate("() => window.longest"))
    view = notebook.graph(2)
    handle = view.element_handle()
    view.get_by_role("combobox").fill("flat")
    view.get_by_role("combobox").press("Enter")
    view.locator(".fb-card h3", has_text="flat").wait_for()
    page.evaluate(_WATCH)
    # The layout is remembered: only the first time is it made.
    fresh = page.evaluate(_KEY, [handle, "ArrowRight"])
    page.evaluate(_KEY, [handle, "ArrowLeft"])
    for _ in range(ROUNDS):
        opened.append(page.evaluate(_KEY, [handle, "ArrowRight"]))
        page.evaluate(_KEY, [handle, "ArrowLeft"])
    page.wait_for_timeout(200)
    expanding = page.evaluate("() => window.longest")
    page.evaluate(_BLOCK)
    page.wait_for_timeout(200)
    assert page.evaluate("() => window.longest") >= 120, "long tasks are not seen"
    page.evaluate(_KEY, [handle, "ArrowRight"])
    view.get_by_role("button", name="Fit all").click()
    page.wait_for_timeout(500)
    gaps = page.evaluate(_PAN, handle)
    heap = page.evaluate("() => performance.memory.usedJSHeapSize")
    page.close()
    graph = inception(modules)
    return {
        "operations": len(graph.operations),
        "first": statistics.median(first),
        "all_first": first,
        "block": max(blocks),
        "expand_first": fresh,
        "expand": statistics.median(opened),
        "expand_block": expanding,
        "frame": statistics.median(gaps),
        "slowest_frame": statistics.quantiles(gaps, n=20)[-1],
        "heap": heap,
        "sent": len(graph_payload(graph)) + len(graph_svg(graph)),
        "code": len(BUNDLE.read_bytes()),
        "load": os.getloadavg()[0],
    }


def main() -> None:
    """Measure both graphs and store what was found."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        lab = Lab(Path(folder))
        try:
            with browser() as chromium:
                for label, modules in (("36,000", 40), ("3,000", 3)):
                    found[label] = measure(lab, chromium, modules)
                    print(label, json.dumps(found[label], indent=1))
        finally:
            lab.close()
    RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
