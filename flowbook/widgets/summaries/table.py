"""The text form of summaries: where every curve of every run is now, and where it has been."""

from __future__ import annotations

import math

from flowbook.exec.report import Table
from flowbook.graph.model.counted import counted
from flowbook.widgets.shown_text import one_line
from flowbook.widgets.summaries.sources import Snapshot

_MOST = 20  # Rows.
_KINDS = {"histogram": "histogram", "image": "image", "text": "text"}


def summary_table(snapshot: Snapshot) -> Table:
    """A row for each tag and run: the last value and its step, the least and the greatest."""
    is_alone = len(snapshot.runs) < 2
    headings = ["tag", *([] if is_alone else ["run"]), "step", "last", "least", "greatest"]
    rows = []
    for tag, runs in snapshot.curves.items():
        for run, points in runs.items():
            numbers = [value for value in points.values if not math.isnan(value)] or [math.nan]
            name = [] if is_alone else [one_line(snapshot.runs[run].label)]
            values = [points.values[-1], min(numbers), max(numbers)]
            rows.append([one_line(tag), *name, f"{points.steps[-1]:,}", *map(number_text, values)])
    notes = []
    if len(rows) > _MOST:
        notes.append(f"  and {len(rows) - _MOST:,} more")
    if others := others_text(snapshot):
        notes.append(f"  {others}")
    notes += [f"  {remark}" for remark in snapshot.remarks]
    first = len(headings) - 4
    return Table(title(snapshot), headings, rows[:_MOST], notes, range(first, len(headings)))


def title(snapshot: Snapshot) -> str:
    """How much there is: "2 runs, 14 tags"."""
    tags = len(snapshot.curves) + snapshot.others.total()
    if not tags:
        return "No summaries yet"
    return f"{counted(len(snapshot.runs), 'run')}, {counted(tags, 'tag')}"


def others_text(snapshot: Snapshot) -> str:
    """What is no curve: "with 2 histograms and 1 image"; empty if there is nothing."""
    parts = [counted(snapshot.others[k], n) for k, n in _KINDS.items() if snapshot.others[k]]
    if not parts:
        return ""
    return f"with {' and '.join(filter(None, (', '.join(parts[:-1]), parts[-1])))}"


def number_text(value: float) -> str:
    """A number to four digits: "0.0312", "1.5e-7", "12,000", "NaN"."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    size = abs(value)
    if value and (size >= 1e6 or size < 1e-3):
        mantissa, _, exponent = f"{value:.3e}".partition("e")
        return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
    return f"{value:,.0f}" if size >= 1000 else f"{value:.4g}"
