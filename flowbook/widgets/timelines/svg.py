"""The static picture of a trace, as SVG: the slowest step, in the lanes of the live view.

It is what a notebook shows without a kernel. It has its own background, so that it reads on light
and dark pages; it fetches nothing; equal traces give equal text; names are text, whatever they
contain.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from flowbook.exec.instruments.trace_records import TracedCall, TracedStep
from flowbook.exec.report import in_time
from flowbook.exec.session.input_pipeline import percent
from flowbook.graph.model.origin.called import beside
from flowbook.widgets.drawing import COLUMN, document, text_at
from flowbook.widgets.palette import FAINT, INK, PAPER, RULE, mixed, told_apart
from flowbook.widgets.shown_text import coordinate as _n
from flowbook.widgets.shown_text import one_line
from flowbook.widgets.timelines.timeline import Lane, Timeline

_MARGIN = 16.0
_LEFT = 150.0  # Where time begins.
_PLOT = COLUMN - _LEFT - _MARGIN
_TOP = 74.0
# Heights: of a device's first row, of a lane's, of others.
_DEVICE, _LANE, _NEXT = 30.0, 24.0, 15.0
_BAR, _THIN = 18.0, 11.0  # Of the bars in them; what waits is thin in every row.
_LETTER = 6.2  # How wide one is, about.
_FEWEST_LETTERS = 12  # Of a name that is shortened: of fewer nothing can be read.
_LABEL_LETTERS = 20
_MOST_SHAPES, _MOST_ARROWS, _MOST_ROWS = 300, 40, 16
_LEAST = 2.0  # Pixels: narrower calls are drawn as one block.
_OTHERS = "#8a94a3"


class _Block(NamedTuple):
    """One call, or several that are too narrow to be drawn alone; in pixels."""

    left: float
    right: float
    group: int
    place: int | None


def timeline_svg(timeline: Timeline) -> str:
    """Draw the slowest step of a trace as an SVG document."""
    if not timeline.calls:
        said = text_at(_MARGIN, 38, "No call was traced.", FAINT)
        return document(COLUMN, 64.0, "Timeline", [said])
    number = _slowest(timeline)
    places, start, end = timeline.of_step(number)
    scale = _PLOT / max(1, end - start)
    tops = _tops(timeline.lanes)
    bottom = _lane_tops(timeline.lanes)[-1] + 8
    title = f"Step {number} of {len(timeline.steps):,}: {in_time(end - start)}"
    if len(timeline.steps) > 1:
        title += ", the slowest"
    parts = [
        text_at(_MARGIN, 26, title, INK, "600", size=13),
        text_at(_MARGIN, 44, timeline.title, FAINT),
        *_ruler(end - start, bottom),
        *_names(timeline.lanes),
        *_blocks(timeline, places, start, scale, tops),
        *_arrows(timeline, places, start, scale, tops),
        *_legend(timeline, bottom + 24),
    ]
    rows = math.ceil(len(timeline.colourings[0].groups) / 4)
    return document(COLUMN, bottom + 20 + 18 * rows, title, parts)


def _slowest(timeline: Timeline) -> int:
    def took(step: TracedStep) -> int:
        return (timeline.end if step.end is None else step.end) - step.start

    traced = {call.step for call in timeline.calls}
    return max(traced, key=lambda number: (took(timeline.steps[number]), -number))


def _lane_tops(lanes: Sequence[Lane]) -> list[float]:
    """Where each lane begins, and where the last one ends."""
    tops = [_TOP]
    for lane, before in zip(lanes, [None, *lanes], strict=False):
        rows = min(lane.rows, _MOST_ROWS) - 1
        tops.append(tops[-1] + _first_height(lane, before) + _NEXT * rows)
    return tops


def _first_height(lane: Lane, before: Lane | None) -> float:
    return _LANE if before is not None and before.device == lane.device else _DEVICE


def _tops(lanes: Sequence[Lane]) -> list[tuple[float, float] | None]:
    """For each row where its bars begin, and how high they are; None if it has no room."""
    found: list[tuple[float, float] | None] = []
    for lane, before, top in zip(lanes, [None, *lanes], _lane_tops(lanes), strict=False):
        first = _first_height(lane, before)
        for row in range(lane.rows):
            if row == 0:
                height = _THIN if lane.waits else _BAR
                found.append((top + (first - height) / 2, height))
            elif row < _MOST_ROWS:
                found.append((top + first + _NEXT * (row - 1), _THIN))
            else:
                found.append(None)
    return found


def _ruler(span: int, bottom: float) -> Iterator[str]:
    step = _round_step(span / 5)
    for i in range(int(span / step) + 1):
        x = _LEFT + _PLOT * i * step / span
        yield f'<path d="M{_n(x)} {_n(_TOP - 6)}L{_n(x)} {_n(bottom)}" stroke="{RULE}"/>'
        if x < COLUMN - _MARGIN - 24:
            yield text_at(x + 3, _TOP - 2, in_time(round(i * step)) if i else "0", FAINT, size=10)


def _round_step(rough: float) -> float:
    """1, 2 or 5 times a power of ten, not less than that."""
    power = 10.0 ** math.floor(math.log10(max(rough, 1.0)))
    return next(power * part for part in (1, 2, 5, 10) if power * part >= rough)


def _names(lanes: Sequence[Lane]) -> Iterator[str]:
    for lane, before, top in zip(lanes, [None, *lanes], _lane_tops(lanes), strict=False):
        name = one_line(lane.name, _LABEL_LETTERS)
        if before is not None and before.device == lane.device:
            yield text_at(_MARGIN, top + 15, name, FAINT, size=10)
        else:
            yield f'<path d="M{_n(_MARGIN)} {_n(top)}H{_n(COLUMN - _MARGIN)}" stroke="{RULE}"/>'
            yield text_at(_MARGIN, top + 13, one_line(lane.device, _LABEL_LETTERS), INK, "600")
            yield text_at(_MARGIN, top + 25, name, FAINT, size=10)


def _blocks(
    timeline: Timeline,
    places: Sequence[int],
    start: int,
    scale: float,
    tops: Sequence[tuple[float, float] | None],
) -> Iterator[str]:
    least = _LEAST
    found = _merged(timeline, places, start, scale, least)
    while sum(map(len, found.values())) > _MOST_SHAPES and least < _PLOT:
        least *= 2
        found = _merged(timeline, places, start, scale, least)
    last = len(timeline.colourings[0].groups) - 1
    for row, blocks in found.items():
        top = tops[row]
        if top is None:
            continue
        for block in blocks:
            colour = _colour_of(timeline, block.group, last)
            call = None if block.place is None else timeline.calls[block.place]
            waits = call is not None and call.waits
            fill = mixed(PAPER, colour, 0.25 if waits else 0.85)
            width = max(1.0, block.right - block.left - 0.5)
            yield (
                f'<rect x="{_n(block.left)}" y="{_n(top[0])}" width="{_n(width)}" '
                f'height="{_n(top[1])}" rx="{2 if width > 6 else 0}" fill="{fill}"/>'
            )
            letters = int((width - 8) / _LETTER)
            label = "" if call is None else label_of(call, timeline.variables)
            if label and letters >= min(len(label), _FEWEST_LETTERS):
                name = one_line(label, letters)
                ink = INK if waits or block.group == 4 else "#ffffff"
                y = top[0] + top[1] / 2 + 3.5
                yield text_at(block.left + 4, y, name, ink, size=10)


def _merged(
    timeline: Timeline, places: Sequence[int], start: int, scale: float, least: float
) -> dict[int, list[_Block]]:
    """The blocks of each row: neighbours that are narrower than `least` are one."""
    found: dict[int, list[_Block]] = defaultdict(list)
    of = timeline.colourings[0].of
    for place in places:
        call, blocks = timeline.calls[place], found[timeline.rows[place]]
        left, right = (_LEFT + (at - start) * scale for at in (call.start, call.end))
        before = blocks[-1] if blocks else None
        is_narrow = before is not None and before.right - before.left < 2 * least
        if before is not None and is_narrow and right - before.left < 2 * least:
            blocks[-1] = before._replace(right=right, place=None)
        elif before is not None and right - left < least and left - before.right < least / 2:
            # Joined to what it touches: so narrow, nobody sees where one ends.
            blocks[-1] = before._replace(right=max(right, before.right))
        else:
            blocks.append(_Block(left, right, of[place], place))
    return dict(sorted(found.items()))


def label_of(call: TracedCall, variables: Mapping[str, str]) -> str:
    """What a call is of: the last part of its name, beside the variable that has its value.

    Of what exchanges something it is what that does with what.
    """
    what, _, last = call.operation.rpartition("/")
    if not call.key:
        return beside(variables.get(call.operation, ""), last)
    # Of an operation that only has to have ended, its end crosses.
    return f"{last} {what.removesuffix('/done').rpartition('/')[2]}"


def _colour_of(timeline: Timeline, group: int, last: int) -> str:
    """The colour of a group on light paper; what stands for all others is grey."""
    is_others = group == last and timeline.colourings[0].has_others
    return _OTHERS if is_others else told_apart(group)


def _arrows(
    timeline: Timeline,
    places: Sequence[int],
    start: int,
    scale: float,
    tops: Sequence[tuple[float, float] | None],
) -> Iterator[str]:
    """Lines from what was sent to where it was received, the longest under way first."""
    inside = set(places)
    pairs = [pair for pair in timeline.arrows if pair[0] in inside and pair[1] in inside]
    pairs.sort(key=lambda pair: -timeline.calls[pair[0]].bytes)
    for sent, received in sorted(pairs[:_MOST_ARROWS]):
        from_row, to_row = tops[timeline.rows[sent]], tops[timeline.rows[received]]
        if from_row is None or to_row is None:
            continue
        x1 = _LEFT + (timeline.calls[sent].end - start) * scale
        x2 = _LEFT + (timeline.calls[received].end - start) * scale
        y1, y2 = from_row[0] + from_row[1] / 2, to_row[0] + to_row[1] / 2
        bend = max(10.0, abs(x2 - x1) / 2)
        yield (
            f'<path d="M{_n(x1)} {_n(y1)}C{_n(x1 + bend)} {_n(y1)} {_n(x2 - bend)} {_n(y2)} '
            f'{_n(x2)} {_n(y2)}" fill="none" stroke="{INK}" stroke-opacity="0.5" '
            'stroke-width="1.2"/>'
            f'<circle cx="{_n(x2)}" cy="{_n(y2)}" r="2.2" fill="{INK}"/>'
        )


def _legend(timeline: Timeline, y: float) -> Iterator[str]:
    groups = timeline.colourings[0].groups
    total = sum(group.busy for group in groups) or 1
    for i, group in enumerate(groups):
        x, line = _MARGIN + (COLUMN - 2 * _MARGIN) / 4 * (i % 4), y + 18 * (i // 4)
        colour = mixed(PAPER, _colour_of(timeline, i, len(groups) - 1), 0.85)
        place = f'x="{_n(x)}" y="{_n(line - 8)}"'
        yield f'<rect {place} width="10" height="10" rx="2" fill="{colour}"/>'
        said = f"{one_line(group.label, 18)} {percent(group.busy / total)}"
        yield text_at(x + 15, line + 1, said, FAINT)
