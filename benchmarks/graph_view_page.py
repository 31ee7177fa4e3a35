"""What `python -m benchmarks.graph_view` found, as a section of `RESULTS.md`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "graph_view.json"

_MS = "{:,.0f} ms"
_MB = "{:,.2f} MB"

# Measured once, with the same browser on the same kind of machine, on TensorFlow 1's graphs of
# such networks, of 36,000 and 3,000 operations: from opening its page on the log.
_TENSORBOARD: dict[str, dict[str, float]] = {
    "36,000": {"first": 4_600, "block": 746, "expand_first": 789, "sent": 25.9e6, "heap": 95e6},
    "3,000": {"first": 1_900, "block": 598, "expand_first": 599, "heap": 26e6},
}

_ROWS: tuple[tuple[str, str, str, str], ...] = (
    ("first", "first picture, from the cell's start to the frame after it", _MS, "1,000 ms"),
    ("block", "longest task of the page's main thread meanwhile", _MS, "100 ms"),
    ("expand_first", "opening a scope of 200 operations, the first time", _MS, "100 ms"),
    ("expand", "opening it again", _MS, "100 ms"),
    ("expand_block", "longest task of the main thread meanwhile", _MS, "100 ms"),
    ("frame", "panning over it, a frame in the middle", "{:.1f} ms", "16.7 ms"),
    ("slowest_frame", "the slowest of twenty frames", "{:.1f} ms", "16.7 ms"),
    ("sent", "bytes sent for it", _MB, "–"),
    ("code", "the front end's code, sent once", _MB, "–"),
    ("heap", "JavaScript's heap, the page's own included", _MB, "–"),
)


def section() -> list[str]:
    """The lines of the section; none before anything was measured."""
    if not RESULTS.exists():
        return []
    found = json.loads(RESULTS.read_text(encoding="utf-8"))
    sizes = list(found)
    heads = [f"{who}, {size}" for size in sizes for who in ("Flowbook", "TensorBoard")]
    return [
        "",
        "## The graph, shown",
        "",
        "Training graphs like Inception's, in JupyterLab and in TensorBoard, with Chromium and "
        "software rendering. Medians; for tasks of the main thread the longest, of which browsers "
        "report none below 50 ms. TensorBoard's medians were measured once, on the same kind of "
        "machine.",
        "",
        f"| | {' | '.join(heads)} | Target |",
        f"| --- {'| --- ' * (len(heads) + 1)}|",
        *(_line(row, found, sizes) for row in _ROWS),
        "",
        *(
            f"- {size}: {found[size]['operations']:,} operations; {found[size]['load']:.1f} "
            "processes wanted the machine's processors on average."
            for size in sizes
        ),
    ]


def _line(row: tuple[str, str, str, str], found: dict[str, Any], sizes: list[str]) -> str:
    key, what, form, target = row
    cells = []
    for size in sizes:
        for values in (found[size], _TENSORBOARD.get(size, {})):
            scale = 1e6 if form is _MB else 1
            cells.append(_figure(key, values[key], form, scale) if key in values else "–")
    return f"| {what} | {' | '.join(cells)} | {target} |"


def _figure(key: str, value: float, form: str, scale: float) -> str:
    return "< 50 ms" if "block" in key and not value else form.format(value / scale)
