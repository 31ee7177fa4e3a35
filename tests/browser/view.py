"""What tests do with a live view that is shown, and what they read off it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import flowbook as fb
from flowbook.widgets.graphs.graph_view import GraphView


def exported(page: Any, graph: fb.Graph, folder: Path, **options: Any) -> Any:
    """The view of a graph in a page of its own, drawn."""
    GraphView(graph, **options).export_html(folder / "graph.html")
    page.goto((folder / "graph.html").as_uri())
    view = page.locator(".fb-graph[data-drawn]")
    view.wait_for()
    return view


def tree_items(view: Any) -> list[str]:
    """What the tree for keyboards lists."""
    return [item.strip() for item in view.locator("[role=treeitem]").all_inner_texts()]


def press(view: Any, *keys: str) -> None:
    """Press keys in the tree."""
    tree = view.locator("[role=tree]")
    tree.focus()
    for key in keys:
        tree.press(key)


def redrawn(view: Any, before: str | None) -> None:
    """Wait until the view has been laid out anew."""
    view.page.wait_for_function(
        "([view, before]) => view.dataset.drawn !== before", arg=[view.element_handle(), before]
    )


def reveal(view: Any, name: str) -> None:
    """Find an operation or scope by its name, and select it."""
    field = view.get_by_role("combobox", name="Search operations and scopes")
    field.fill(name)
    view.locator("[role=option]").first.wait_for()
    field.press("Enter")
    view.locator(".fb-card h3", has_text=name).wait_for()


def select_output(view: Any, operation: str) -> None:
    """Select the first output of an operation, from its card."""
    reveal(view, operation)
    view.locator(".fb-card").get_by_role("button", name=f"{operation}:0", exact=True).click()
    view.locator(".fb-card h3", has_text=f"{operation}:0").wait_for()


def over_edge(view: Any, words: str) -> tuple[float, float]:
    """Where in the page the pointer is over an edge whose words begin so."""
    found = view.locator("canvas").evaluate(
        """(canvas, words) => {
            const view = canvas.parentElement;
            const said = () => view.querySelector(".fb-tip:not([hidden])")?.textContent ?? "";
            const { left, top, width, height } = canvas.getBoundingClientRect();
            for (let x = left + 8; x < left + width - 8; x += 11)
                for (let y = top + 52; y < top + height - 8; y += 7) {
                    const at = { clientX: x, clientY: y };
                    canvas.dispatchEvent(new PointerEvent("pointermove", at));
                    if (said().startsWith(words)) return [x, y];
                }
        }""",
        words,
    )
    assert found is not None, f"no edge says {words!r}"
    return found[0], found[1]


def pixels(view: Any) -> int:
    """How many different colours the canvas has."""
    colours: int = view.locator("canvas").evaluate(
        """(canvas) => {
            const { width, height } = canvas;
            const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
            return new Set(new Uint32Array(data.buffer)).size;
        }"""
    )
    return colours


def saved_svg(view: Any) -> str:
    """The picture as the view saves it."""
    with view.page.expect_download() as download:
        view.get_by_role("button", name="Save the picture as SVG").click()
    return Path(download.value.path()).read_text(encoding="utf-8")
