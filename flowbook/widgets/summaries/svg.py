"""The static picture of summaries: the curves of each tag as a small chart, as SVG.

It is what a notebook shows without a kernel. It has its own background, so that it reads on light
and dark pages; it fetches nothing; equal summaries give equal text; names are text, whatever they
contain.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence

from flowbook.exec.instruments.summaries.curve import Point, thinned
from flowbook.widgets.drawing import COLUMN, document, text_at
from flowbook.widgets.palette import FAINT, INK, RULE, WARNING, curve_paint
from flowbook.widgets.shown_text import coordinate as _n
from flowbook.widgets.shown_text import one_line, shown_text
from flowbook.widgets.summaries.sources import Snapshot
from flowbook.widgets.summaries.splits import charts_of
from flowbook.widgets.summaries.table import number_text, others_text, title

_MARGIN, _GAP = 20.0, 20.0
_COLUMNS = 3
_MOST = 12  # Charts,
_MOST_RUNS = 12  # and runs that are named.
_TITLE, _CHART, _BASE = (
    22.0,
    96.0,
    18.0,
)  # Heights: of a chart's title, of its inside, of its steps.
_AXIS = 46.0  # How wide the numbers of the vertical axis are.
_LINE_LETTERS, _LINE_HEIGHT = 120, 15.0  # Of what is said below.
_POINTS = 160  # Of one curve.
_LARGEST = 1e300  # What is beyond is drawn there: differences of such numbers overflow.

Paint = tuple[str, str]  # A colour, and dashes.
Curves = list[tuple[Paint, list[Point]]]
Range = tuple[float, float]


def summary_svg(snapshot: Snapshot, smoothing: float = 0.0, log: bool = False) -> str:
    """Draw the curves of the first tags as an SVG document.

    Args:
        snapshot: what there is.
        smoothing: how much curves are smoothed, from 0 to less than 1.
        log: whether the vertical axes are logarithmic.
    """
    charts = charts_of(snapshot.curves)
    shown = list(charts)[:_MOST]
    columns = min(_COLUMNS, max(len(shown), 1))
    each = (COLUMN - 2 * _MARGIN - (columns - 1) * _GAP) / columns
    is_alone = len(snapshot.runs) < 2
    legend, top = _legend(snapshot)
    parts = []
    for i, name in enumerate(shown):
        x = _MARGIN + (i % columns) * (each + _GAP)
        y = top + (i // columns) * (_TITLE + _CHART + _BASE + _GAP)
        curves: Curves = []
        splits: list[tuple[str, Paint]] = []
        for place, (tag, split) in enumerate(charts[name]):
            for run, kept in snapshot.curves[tag].items():
                paint = curve_paint(run, place, is_alone)
                curves.append((paint, smoothed(kept.points(), smoothing)))
            if len(charts[name]) > 1:
                colour, dashes = curve_paint(0, place, is_alone)
                splits.append((split or name, (colour if is_alone else FAINT, dashes)))
        inside = _chart(name, curves, each, log, splits)
        parts.append(f'<g transform="translate({_n(x)} {_n(y)})">{inside}</g>')
    rows = -(-len(shown) // columns)
    height = top + rows * (_TITLE + _CHART + _BASE + _GAP)
    more = len(charts) - len(shown)
    rest = [f"and {more:,} more" if more else "", others_text(snapshot)]
    if any(rest):
        parts.append(text_at(_MARGIN, height + 2, ", ".join(filter(None, rest)), FAINT))
        height += _GAP
    for remark in snapshot.remarks:
        for line in textwrap.wrap(remark, _LINE_LETTERS):
            parts.append(text_at(_MARGIN, height + 2, line, WARNING))
            height += _LINE_HEIGHT
    heading = title(snapshot)
    head = text_at(_MARGIN, _MARGIN + 6, heading, FAINT)
    return document(COLUMN, height, f"Summaries: {heading}", [head, *legend, *parts])


def _legend(snapshot: Snapshot) -> tuple[list[str], float]:
    """The names of the runs, if there are several, and where the charts begin below."""
    top = _MARGIN + 22
    if len(snapshot.runs) < 2:
        return [], top
    parts = []
    x, y = _MARGIN, top + 6
    for run, (_, label) in enumerate(snapshot.runs[:_MOST_RUNS]):
        shown = one_line(label, 28)
        width = 22 + 6.6 * len(shown) + 16
        if x > _MARGIN and x + width > COLUMN - _MARGIN:
            x, y = _MARGIN, y + 18
        stroke = _stroke(curve_paint(run, 0, is_alone=False))
        parts.append(f'<path d="M{_n(x)} {_n(y - 4)}h14" {stroke} stroke-width="3"/>')
        parts.append(text_at(x + 20, y, shown, INK))
        x += width
    if len(snapshot.runs) > _MOST_RUNS:
        parts.append(text_at(x, y, f"and {len(snapshot.runs) - _MOST_RUNS:,} more", FAINT))
    return parts, y + 16


def smoothed(points: list[Point], weight: float) -> list[Point]:
    """Points smoothed as in the live view (`smoothing.ts`); what is not finite stays as it is."""
    if not weight:
        return points
    found, average, rest = [], 0.0, 1.0  # How much of the average its beginning, zero, still is.
    for point in points:
        if math.isfinite(point.value):
            average = average * weight + (1 - weight) * point.value
            rest *= weight
            found.append(point._replace(value=average / (1 - rest)))
        else:
            found.append(point)
    return found


def _logarithms(curves: Curves) -> Curves:
    return [
        (
            paint,
            [p._replace(value=math.log10(p.value) if p.value > 0 else math.nan) for p in points],
        )
        for paint, points in curves
    ]


def _chart(
    tag: str, curves: Curves, width: float, log: bool, splits: Sequence[tuple[str, Paint]]
) -> str:
    left, bottom = _AXIS, _TITLE + _CHART
    steps = [point.step for _, points in curves for point in points]
    curves = _logarithms(curves) if log else curves
    values = [_bounded(p.value) for _, points in curves for p in points if math.isfinite(p.value)]
    lost = sum(not math.isfinite(p.value) for _, points in curves for p in points)
    first, last = min(steps), max(steps)
    low, high = _padded(min(values, default=0.0), max(values, default=1.0))

    def x(step: float) -> float:
        return left + (width - left) * ((step - first) / (last - first) if last > first else 0.5)

    def y(value: float) -> float:
        return bottom - _CHART * (_bounded(value) - low) / (high - low)

    name = one_line(tag, 26 if lost else 34)
    parts = [f"<title>{shown_text(tag[:500])}</title>", text_at(0, 12, name, INK, "600")]
    if lost:
        note = f"{lost:,} not {'positive' if log else 'finite'}"
        parts.append(text_at(width, 12, note, WARNING, anchor="end"))
    parts += _splits(splits, 8 + 7.2 * len(name))
    for value in _ticks(low, high, log):
        at = y(value)
        parts.append(f'<path d="M{_n(left)} {_n(at)}H{_n(width)}" stroke="{RULE}"/>')
        text = number_text(10.0**value if log else value)
        parts.append(text_at(left - 6, at + 4, text, FAINT, anchor="end"))
    if last == first:
        middle = (left + width) / 2
        parts.append(text_at(middle, bottom + 14, f"{first:,}", FAINT, anchor="middle"))
    else:
        parts.append(text_at(left, bottom + 14, f"{first:,}", FAINT))
        parts.append(text_at(width, bottom + 14, f"{last:,}", FAINT, anchor="end"))
    for paint, points in curves:
        ordered = sorted(thinned(points, _POINTS), key=lambda point: point.step)
        lines, dots = _lines([(x(p.step), y(p.value)) for p in ordered])
        if lines:
            parts.append(
                f'<path d="{lines}" {_stroke(paint)} stroke-width="1.5" stroke-linejoin="round"/>'
            )
        parts += [f'<circle cx="{a}" cy="{b}" r="2" fill="{paint[0]}"/>' for a, b in dots]
    return "".join(parts)


def _splits(splits: Sequence[tuple[str, Paint]], x: float) -> Iterator[str]:
    """A legend of the parts of the data, behind the title."""
    for split, paint in splits:
        yield f'<path d="M{_n(x)} 8h14" {_stroke(paint)} stroke-width="3"/>'
        yield text_at(x + 18, 12, one_line(split, 14), FAINT)
        x += 30 + 6.2 * min(len(split), 14)


def _lines(points: Iterable[tuple[float, float]]) -> tuple[str, list[tuple[str, str]]]:
    """A path through points, broken where one is no number; and points that stand alone."""
    pieces: list[list[tuple[str, str]]] = [[]]
    for x, y in points:
        if math.isfinite(y):
            pieces[-1].append((_n(x), _n(y)))
        else:
            pieces.append([])
    lines = "".join(f"M{'L'.join(f'{x} {y}' for x, y in piece)}" for piece in pieces if piece[1:])
    return lines, [piece[0] for piece in pieces if len(piece) == 1]


def _bounded(value: float) -> float:
    return value if not math.isfinite(value) else min(max(value, -_LARGEST), _LARGEST)


def _padded(low: float, high: float) -> Range:
    if high - low < 1 / _LARGEST:
        room = abs(low) * 0.1 or 1.0
        return low - room, high + room
    room = (high - low) * 0.06
    return low - room, high + room


def _ticks(low: float, high: float, log: bool) -> list[float]:
    """Two to four round numbers within a range; of logarithms those of round numbers."""
    if log:
        low, high = max(low, -300.0), min(high, 300.0)
        for parts in ((1,), (1, 2, 5)):
            powers = range(math.floor(low), math.ceil(high) + 1)
            found = [t for k in powers for p in parts if low <= (t := k + math.log10(p)) <= high]
            if len(found) >= 2:
                return found[:: -(-len(found) // 4)]
        return [math.log10(value) for value in _ticks(10.0**low, 10.0**high, log=False)]
    span = (high - low) / 2
    power = 10.0 ** math.floor(math.log10(span))
    for part in (0.5, 1.0, 2.0, 5.0, 10.0):
        step = part * power
        if 2 * span / step <= 4:
            first = math.ceil(low / step)
            return [n * step + 0.0 for n in range(first, math.floor(high / step) + 1)]
    return [low, high]


def _stroke(paint: Paint) -> str:
    colour, dashes = paint
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'fill="none" stroke="{colour}"{dashed}'
