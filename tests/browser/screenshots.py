"""Takes the pictures of the README: notebooks' live views in a real JupyterLab.

    python -m tests.browser.screenshots [NAME ...]

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
import numpy as np
from PIL import Image

from tests.browser.lab import ROOT, Lab, Notebook, browser
from tests.browser.view import reveal, select_output

NOTEBOOKS = ROOT / "notebooks"
THEMES = {"light": False, "dark": True}
WIDTH, HEIGHT = 1340, 2400  # Of the page: nothing that is taken has to be scrolled to.
MOST_BYTES = 150_000  # Of a picture: the README shows them all.


def _fetched(view: Any) -> None:
    """Select an edge, and fetch its value."""
    select_output(view, "block_1/sum")
    view.locator(".fb-card").get_by_role("button", name="Fetch", exact=False).first.click()
    view.locator(".fb-value").wait_for()


def _busiest(view: Any) -> None:
    """Select a branch, which says why it runs where it does."""
    reveal(view, "branch0/scores/MatMul")


def _last_step(view: Any) -> None:
    """Show the last step."""
    lanes = view.get_by_role("application")
    lanes.focus()
    for _ in range(3):
        lanes.press("PageDown")
    lanes.blur()


@dataclass(frozen=True)
class Shot:
    """One picture.

    Attributes:
        notebook: the notebook's name.
        cell: the id of the cell whose output is taken.
        view: the CSS selector of the live view in it; None takes the cells from this one to `to`.
        prepare: what is done to the view before.
        to: the id of the last cell that is taken.
        most: so many pixels of its height are taken.
    """

    notebook: str
    cell: str
    view: str | None = None
    prepare: Callable[[Any], None] = lambda view: None
    to: str = ""
    most: int = 900


GRAPH = ".fb-graph[data-drawn]"
SHOTS = {
    "welcome": Shot("welcome", "session", to="train"),
    "edge": Shot("see_the_graph", "see-10", GRAPH, _fetched, most=630),
    "placement": Shot("devices", "explain", ".fb-placements", _busiest),
    "timeline": Shot("devices", "timeline", ".fb-timeline[data-drawn]", _last_step),
}


def main() -> int:
    """Take the pictures that are named, or all; return the exit status."""
    wanted = {name: SHOTS[name] for name in sys.argv[1:] or SHOTS}
    with tempfile.TemporaryDirectory() as folder, browser() as chromium:
        lab = Lab(Path(folder))
        try:
            for theme, dark in THEMES.items():
                lab.use_theme(dark)
                for name in dict.fromkeys(shot.notebook for shot in wanted.values()):
                    context = chromium.new_context(
                        viewport={"width": WIDTH, "height": HEIGHT}, device_scale_factor=1.5
                    )
                    # Under a name of its own it has a kernel of its own.
                    copied = f"{name}_{theme}"
                    shutil.copy(
                        NOTEBOOKS / f"{name}.ipynb", Path(lab.notebooks) / f"{copied}.ipynb"
                    )
                    here = {shot: each for shot, each in wanted.items() if each.notebook == name}
                    _take(lab.open(context.new_page(), copied), here, theme)
                    context.close()
        finally:
            lab.close()
    return 0


def _take(notebook: Notebook, shots: dict[str, Shot], theme: str) -> None:
    """Run a notebook, and take pictures of it on the way."""
    name = next(iter(shots.values())).notebook
    cells = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4).cells
    place = {cell.id: i for i, cell in enumerate(cells)}
    for index, cell in enumerate(cells):
        if cell.cell_type != "code":
            continue
        notebook.run(index)
        for taken, shot in shots.items():
            if cell.id != (shot.to or shot.cell):
                continue
            if shot.view is None:
                _store(taken, theme, _of_cells(notebook, place[shot.cell], index))
            else:
                view = notebook.cell(index).locator(shot.view)
                view.wait_for()
                shot.prepare(view)
                notebook.page.wait_for_timeout(500)  # What glides there has come to rest.
                box = view.bounding_box()
                clip = {**box, "height": min(box["height"], shot.most)}
                _store(taken, theme, notebook.page.screenshot(clip=clip))


def _of_cells(notebook: Notebook, first: int, last: int) -> bytes:
    """The cells from one to another, as they stand in the page."""
    notebook.page.wait_for_timeout(1500)  # The last curves are drawn.
    notebook.select(last)
    boxes = [notebook.cell(i).bounding_box() for i in (first, last)]
    top, bottom = boxes[0]["y"], boxes[1]["y"] + boxes[1]["height"]
    clip = {"x": boxes[0]["x"], "y": top, "width": boxes[0]["width"], "height": bottom - top}
    picture: bytes = notebook.page.screenshot(clip=clip)
    return picture


def _store(name: str, theme: str, picture: bytes) -> None:
    path = ROOT / "docs" / f"{name}-{theme}.png"
    taken = Image.open(io.BytesIO(picture)).convert("RGB")
    _with_palette(taken).save(path, optimize=True)
    size = path.stat().st_size
    print(f"{path.relative_to(ROOT)}: {size / 1000:.0f} kB{', too large' * (size > MOST_BYTES)}")


def _with_palette(picture: Image.Image) -> Image.Image:
    """The picture in 256 colours: enough for what is drawn, and a third of the size.

    The commonest stay as they are, those of grounds and of legends among them; those between, as of
    the edges of letters, become the nearest.
    """
    colours, place, counts = np.unique(
        np.asarray(picture).reshape(-1, 3), axis=0, return_inverse=True, return_counts=True
    )
    order = np.argsort(-counts)
    common, rest = colours[order[:128]], colours[order[128:]]
    if len(rest):
        between = Image.fromarray(rest[None]).quantize(128, Image.Quantize.MAXCOVERAGE)
        common = np.concatenate([common, np.reshape(between.getpalette(), (-1, 3))[:128]])
    distances = np.square(colours[:, None].astype(int) - common[None]).sum(-1)
    drawn = distances.argmin(1).astype(np.uint8)[place]
    made = Image.fromarray(drawn.reshape(picture.height, picture.width), "P")
    made.putpalette(common.astype(np.uint8).tobytes())
    return made


if __name__ == "__main__":
    sys.exit(main())
