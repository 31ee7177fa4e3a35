"""Takes the pictures of the README: a notebook's live views in a real JupyterLab.

    python -m tests.browser.screenshots

Every view is taken in both themes, and stored as `docs/<name>-<theme>.png`. Look at them before
they are committed.
"""

import io
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from PIL import Image

from tests.browser.lab import ROOT, Lab, Notebook, browser
from tests.browser.view import reveal, select_output

NOTEBOOK = ROOT / "notebooks" / "see_the_graph.ipynb"
THEMES = {"light": False, "dark": True}


def _opened(view: Any) -> None:
    """Open the first block and its first layer, and select what the layer computes."""
    reveal(view, "block_0/first/MatMul")


def _fetched(view: Any) -> None:
    """Select an edge, and fetch its value."""
    select_output(view, "block_1/sum")
    view.locator(".fb-card").get_by_role("button", name="Fetch", exact=False).first.click()
    view.locator(".fb-value").wait_for()


@dataclass(frozen=True)
class Shot:
    """One picture.

    Attributes:
        source: what stands in the source of the cell whose output is taken.
        view: the CSS selector of the live view in it.
        prepare: what is done to the view before.
    """

    source: str
    view: str
    prepare: Callable[[Any], None] = lambda view: None


SHOTS = {
    "graph": Shot("minimize(loss", ".fb-graph[data-drawn]", _opened),
    "edge": Shot("sess.retain_feeds()", ".fb-graph[data-drawn]", _fetched),
    "summaries": Shot("fb.SummaryView({", ".fb-summaries[data-drawn]"),
}


def main() -> int:
    """Take all pictures; return the exit status."""
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    with tempfile.TemporaryDirectory() as folder, browser() as chromium:
        lab = Lab(Path(folder))
        try:
            for theme, dark in THEMES.items():
                lab.use_theme(dark)
                context = chromium.new_context(
                    viewport={"width": 1200, "height": 1000}, device_scale_factor=2
                )
                # Under a name of its own it has a kernel of its own.
                shutil.copy(NOTEBOOK, Path(lab.notebooks) / f"{theme}.ipynb")
                _take(lab.open(context.new_page(), theme), cells, theme)
                context.close()
        finally:
            lab.close()
    return 0


def _take(notebook: Notebook, cells: list[Any], theme: str) -> None:
    for index, cell in enumerate(cells):
        if cell.cell_type != "code":
            continue
        notebook.run(index)
        for name, shot in SHOTS.items():
            if shot.source in cell.source:
                view = notebook.cell(index).locator(shot.view)
                view.wait_for()
                shot.prepare(view)
                path = ROOT / "docs" / f"{name}-{theme}.png"
                taken = Image.open(io.BytesIO(view.screenshot())).convert("RGB")
                # A palette is enough for what is drawn, and a third of the size.
                taken.quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
                print(path.relative_to(ROOT))


if __name__ == "__main__":
    sys.exit(main())
