"""The static picture of a session's queues, as SVG: the answer, and below it a row for each queue.

It is what a notebook shows without a kernel. It has its own background, so that it reads on light
and dark pages; it fetches nothing; equal measurements give equal text; names are text, whatever
they contain. It is laid out as the live view is (`pipeline_view.ts`).
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from flowbook.exec.report import in_seconds, scaled
from flowbook.exec.resources.queue import Reading
from flowbook.exec.session.input_pipeline import QueueUse, percent
from flowbook.widgets.drawing import COLUMN, document, text_at
from flowbook.widgets.palette import FAINT, INK, RULE, WARNING
from flowbook.widgets.pipelines.history import Shown
from flowbook.widgets.shown_text import coordinate as _n
from flowbook.widgets.shown_text import one_line

MOST_QUEUES = 8
# What the static forms say where a live one says which cell makes another session.
HAS_ENDED = "The session has ended."
_MARGIN = 20.0
_TEXT_LETTERS, _DETAIL_LETTERS = 100, 122
_PLACE_LETTERS = 30
_UNIT = re.compile(r"(?<=\d) (?=%|[num]?s )")
_LINE = 17.0
_ROW, _PLOT = 112.0, 58.0  # Heights: of a queue's row, of the inside of its charts.
_WAITING_LETTERS = 112
_PLOT_TOP = 26.0
# Where the columns begin, and how wide they are.
_FILL, _RATE, _SHARES = 214.0, 424.0, 634.0
_CHART, _BAR = 180.0, 166.0
_RATE_SAMPLES = 4  # Over so many samples rates are taken.
_IN, _OUT, _GOOD = "#0072b2", "#d55e00", "#009e73"
_MARKS = {"waits": _OUT, "keeps up": _GOOD, "failed": WARNING}

Point = tuple[float, float]


def pipeline_svg(shown: Shown) -> str:
    """Draw what there is to show as an SVG document."""
    verdict = shown.pipeline.verdict
    mark = _MARKS.get(verdict.state, FAINT)
    parts, y = [f'<circle cx="{_n(_MARGIN + 5)}" cy="24" r="5" fill="{mark}"/>'], 28.0
    for line in _wrapped(verdict.text)[:4]:
        parts.append(text_at(_MARGIN + 20, y, line, INK, weight="600", size=13))
        y += _LINE
    for line in textwrap.wrap(verdict.detail, _DETAIL_LETTERS):
        parts.append(text_at(_MARGIN + 20, y, line, FAINT))
        y += _LINE
    uses = shown.pipeline.queues
    for use, readings in zip(uses[:MOST_QUEUES], shown.readings, strict=False):
        parts.append(f'<path d="M{_n(_MARGIN)} {_n(y)}H{_n(COLUMN - _MARGIN)}" stroke="{RULE}"/>')
        inside = _row(use, shown, readings)
        parts.append(f'<g transform="translate(0 {_n(y)})">{inside}</g>')
        y += _ROW
        for waiting in use.waiting[:1]:
            text = one_line(f"now {waiting}", _WAITING_LETTERS)
            text = f"{text}, for {in_seconds(waiting.seconds)}"
            parts.append(text_at(_MARGIN, y, text, FAINT if waiting.is_runners else WARNING))
            y += _LINE
    if len(uses) > MOST_QUEUES:
        parts.append(text_at(_MARGIN, y, f"and {len(uses) - MOST_QUEUES:,} more queues", FAINT))
        y += _LINE
    if shown.has_ended:
        parts.append(text_at(_MARGIN, y, HAS_ENDED, FAINT))
        y += _LINE
    return document(COLUMN, y, f"Input pipeline: {verdict.text}", parts)


def _wrapped(text: str) -> list[str]:
    """The lines of a text, none of which ends between a number and its unit."""
    lines = textwrap.wrap(_UNIT.sub("\N{NO-BREAK SPACE}", text), _TEXT_LETTERS)
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]


def _row(use: QueueUse, shown: Shown, readings: Sequence[Reading]) -> str:
    return "".join(
        [
            _about(use),
            f'<g transform="translate({_n(_FILL)} 0)">{_fill(use, shown, readings)}</g>',
            f'<g transform="translate({_n(_RATE)} 0)">{_rates(use, shown, readings)}</g>',
            f'<g transform="translate({_n(_SHARES)} 0)">{_shares(use)}</g>',
        ]
    )


def _about(use: QueueUse) -> str:
    """What a queue is, and who fills it."""
    lines = [(use.name, INK, "600")]
    if use.operation != use.name:
        lines.append((use.operation, FAINT, ""))
    lines += [(line, FAINT, "") for line in textwrap.wrap(use.place, _PLACE_LETTERS)[:2]]
    for runner in use.runners[:2]:
        lines.append((f"runner {runner}", WARNING if runner.error else FAINT, ""))
    return "".join(
        f"{text_at(_MARGIN, 20 + 15.5 * place, one_line(text, 30), colour, weight)}"
        for place, (text, colour, weight) in enumerate(lines)
    )


def _fill(use: QueueUse, shown: Shown, readings: Sequence[Reading]) -> str:
    clocks = shown.clocks
    most = use.capacity if use.capacity > 0 else max([1, *(each.fill for each in readings)])
    room = f" of {use.capacity:,}" if use.capacity >= 0 else ""
    points = [(at, each.fill / most) for at, each in zip(clocks, readings, strict=True)]
    parts = [_heading("fill", f"{use.fill:,}{room}"), _frame(shown)]
    line = _line(points, clocks)
    if line:
        left, right = _x(clocks[0], clocks), _x(clocks[-1], clocks)
        base = _PLOT_TOP + _PLOT
        area = f"{line}L{_n(right)} {_n(base)}L{_n(left)} {_n(base)}Z"
        parts.append(f'<g opacity="0.18"><path d="{area}" fill="{_IN}" stroke="none"/></g>')
        parts.append(f'<path d="{line}" fill="none" stroke="{_IN}" stroke-width="1.5"/>')
    return "".join(parts)


def _rates(use: QueueUse, shown: Shown, readings: Sequence[Reading]) -> str:
    clocks = shown.clocks
    put = rates(clocks, [each.put for each in readings])
    taken = rates(clocks, [each.taken for each in readings])
    most = max([*put, *taken], default=0.0) or 1.0
    of_in, of_out = f"in {scaled(use.put_rate).strip()}", f"out {scaled(use.taken_rate).strip()}"
    parts = [
        text_at(0, 18, "a second", FAINT),
        text_at(_CHART - 7 * len(of_out) - 8, 18, of_in, _IN, "600", "end"),
        text_at(_CHART, 18, of_out, _OUT, "600", "end"),
        _frame(shown, f"top {scaled(most).strip()}"),
    ]
    for values, colour in ((put, _IN), (taken, _OUT)):
        line = _line([(a, v / most) for a, v in zip(clocks, values, strict=True)], clocks)
        if line:
            parts.append(f'<path d="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
    return "".join(parts)


def rates(clocks: Sequence[float], counts: Sequence[int]) -> list[float]:
    """How much a count grew in a second, around each sample; as in `pipeline.ts`."""
    found = []
    for place in range(len(counts)):
        before = max(0, place - _RATE_SAMPLES)
        seconds = clocks[place] - clocks[before]
        found.append((counts[place] - counts[before]) / seconds if seconds > 0 else 0.0)
    return found


def _shares(use: QueueUse) -> str:
    """For which part of the time either side waited, as bars."""
    parts = [text_at(0, 18, "part of the time", FAINT)]
    for place, (who, share, colour) in enumerate(waiting_sides(use)):
        y = 40.0 + 34 * place
        parts.append(text_at(0, y, who, INK))
        parts.append(text_at(_BAR, y, percent(share), INK, "600", "end"))
        parts.append(_bar(y + 6, _BAR, RULE))
        if share > 0:
            parts.append(_bar(y + 6, max(6.0, share * _BAR), colour))
    return "".join(parts)


def waiting_sides(use: QueueUse) -> list[tuple[str, float, str]]:
    """Who waits at a queue: a name, the part of the time, and the colour."""
    takes = "training waits" if use.feeds_training else "next runner waits"
    fills = "runner waits" if use.runners else "filling waits"
    return [(takes, use.element_share, _OUT), (fills, use.room_share, _IN)]


def _bar(y: float, width: float, colour: str) -> str:
    return f'<rect x="0" y="{_n(y)}" width="{_n(width)}" height="6" rx="3" fill="{colour}"/>'


def _heading(what: str, value: str) -> str:
    return text_at(0, 18, what, FAINT) + text_at(_CHART, 18, value, INK, "600", "end")


def _frame(shown: Shown, top: str = "") -> str:
    """The lines that a chart stands between, and how long ago its left end was."""
    clocks = shown.clocks
    end, since = ("end", "before") if shown.has_ended else ("now", "ago")
    lines = "".join(
        f'<path d="M0 {_n(y)}H{_n(_CHART)}" stroke="{RULE}"/>'
        for y in (_PLOT_TOP, _PLOT_TOP + _PLOT)
    )
    span = clocks[-1] - clocks[0] if clocks else 0.0
    base = _PLOT_TOP + _PLOT + 14
    ago = text_at(0, base, f"{in_seconds(span)} {since}", FAINT) if span > 0 else ""
    high = text_at(_CHART / 2, base, top, FAINT, anchor="middle") if top else ""
    return lines + ago + high + text_at(_CHART, base, end, FAINT, anchor="end")


def _x(clock: float, clocks: Sequence[float]) -> float:
    return _CHART * (clock - clocks[0]) / (clocks[-1] - clocks[0])


def _line(points: Sequence[Point], clocks: Sequence[float]) -> str:
    """A path through points whose heights are from 0 to 1; empty if they have no extent."""
    if len(points) < 2 or clocks[-1] <= clocks[0]:
        return ""
    base = _PLOT_TOP + _PLOT
    joined = "L".join(
        f"{_n(_x(at, clocks))} {_n(base - _PLOT * min(1.0, height))}" for at, height in points
    )
    return f"M{joined}"
