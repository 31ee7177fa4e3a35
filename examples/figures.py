"""The pictures that examples draw of what they have learnt, in one look.

`python -m examples.gan gan.svg` trains an example and draws its figure. `python -m
examples.figures` draws those of the documentation anew, in `examples/pictures`; with names, of
these examples alone.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import flowbook as fb

PICTURES = Path(__file__).parent / "pictures"
# The first is for what is learnt, the second for what it is held against.
COLOURS = ("#1f6feb", "#d2691e", "#2e8b57", "#8a5cd1", "#808080")
_LOOK = {
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 9,
    "savefig.bbox": "tight",
    "svg.fonttype": "none",
    "svg.hashsalt": "flowbook",  # The same picture is the same file.
}


def run(main: Callable[..., Any]) -> None:
    """Run an example's `main`; it draws its figure where the command line says."""
    main(figure=sys.argv[1] if len(sys.argv) > 1 else None)


@contextmanager
def axes(
    path: str | Path | None, x: str = "", y: str = "", size: tuple[float, float] = (5, 2.6)
) -> Iterator[Any]:
    """Matplotlib's axes to draw on; the picture is saved at the end, unless the path is None.

    Args:
        path: the file; its suffix says of which kind.
        x: what the horizontal axis shows.
        y: what the vertical axis shows.
        size: width and height, in inches.
    """
    # Who runs a model without drawing needs no Matplotlib.
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({**_LOOK, "axes.prop_cycle": mpl.cycler(color=COLOURS)}):
        figure = Figure(size)
        drawn = figure.add_subplot(xlabel=x, ylabel=y)
        yield drawn
        if drawn.get_legend_handles_labels()[0]:
            drawn.legend(frameon=False)
        if path is not None:
            figure.savefig(path, metadata={"Date": None})


def curves(
    path: str | Path | None,
    y: str,
    steps: int,
    values: dict[str, Any],
    by_chance: float | None = None,
) -> None:
    """Draw values over so many steps of a training, each curve's at equal distances."""
    with axes(path, "step", y) as drawn:
        for name, each in values.items():
            drawn.plot(np.linspace(0, steps, len(each)), each, label=name)
        if by_chance is not None:
            drawn.axhline(by_chance, color=COLOURS[-1], linestyle="--", label="without learning")
        drawn.set_ylim(bottom=0)


def rows(path: str | Path | None, images: dict[str, Any]) -> None:
    """Draw rows of images [count, height, width], each below what it is called."""
    lines = [
        np.concatenate(list(np.pad(row, [(0, 0), (1, 1), (1, 1)])), 1) for row in images.values()
    ]
    height = len(lines[0])
    gap = np.zeros([height // 2, lines[0].shape[1]])
    with axes(path, size=(6, 0.9 * len(lines))) as drawn:
        drawn.imshow(np.concatenate([part for line in lines for part in (gap, line)]), "Greys")
        for number, caption in enumerate(images):
            at = number * (height + len(gap)) + len(gap) - 1
            drawn.text(0, at, caption, verticalalignment="bottom")
        drawn.axis("off")


def readings(path: str | Path | None, images: Any, found: Any, right: Any) -> None:
    """Draw images [count, height, width] with what was read, wrong ones in another colour."""
    wide, height, width = 10, *images.shape[1:3]
    with axes(path, size=(5, 0.62 * len(images) / wide)) as drawn:
        for number, image in enumerate(images):
            left, top = number % wide * 1.5 * width, number // wide * 1.2 * height
            drawn.imshow(image, "Greys", extent=(left, left + width, top + height, top))
            colour = COLOURS[0 if found[number] == right[number] else 1]
            drawn.text(left + 1.1 * width, top + 0.7 * height, str(found[number]), color=colour)
        drawn.set(xlim=(0, 1.5 * wide * width), ylim=(top + 1.2 * height, 0))
        drawn.axis("off")


def lanes(path: str | Path | None, plan: Any, colour_of: Callable[[str], int | None]) -> None:
    """Draw when each device of a plan is busy.

    Args:
        path: the file.
        plan: what `sess.explain` gave.
        colour_of: of an operation's name the number of its colour; None leaves it out.
    """
    devices = sorted({each.device for each in plan.operations.values()})
    with axes(path, "microseconds", size=(6, 0.5 + 0.4 * len(devices))) as drawn:
        for operation, each in plan.operations.items():
            colour = colour_of(operation.name)
            if colour is not None:
                span = (1e6 * each.begin, 1e6 * (each.end - each.begin))
                place = devices.index(each.device)
                drawn.broken_barh([span], (place - 0.4, 0.8), color=COLOURS[colour % len(COLOURS)])
        drawn.set_yticks(range(len(devices)), [name.rpartition("device:")[2] for name in devices])
        drawn.invert_yaxis()


def main(names: list[str]) -> None:
    """Draw the figures of some examples, or of all that have one."""
    PICTURES.mkdir(exist_ok=True)
    for path in sorted(Path(__file__).parent.glob("*.py")):
        module = importlib.import_module(f"examples.{path.stem}")
        has_one = "figure" in inspect.signature(getattr(module, "main", main)).parameters
        if has_one and (not names or path.stem in names):
            print(path.stem, flush=True)
            fb.reset_default_graph()
            module.main(figure=PICTURES / f"{path.stem}.svg")


if __name__ == "__main__":
    main(sys.argv[1:])
