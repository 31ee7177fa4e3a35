"""The static picture of a graph: its top-level name scopes as blocks, as SVG.

It is what a notebook shows without a kernel. It has its own background, so that it reads on light
and dark pages; it fetches nothing; equal graphs give equal text; names are text, whatever they
contain.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from flowbook.exec.report import in_bytes
from flowbook.graph.building.graph import Graph
from flowbook.graph.model.counted import counted
from flowbook.widgets import drawing
from flowbook.widgets.graphs.layers import LAYER_GAP, Layout, lay_out
from flowbook.widgets.graphs.looks import CROSSING, DIFFERS, Look, Looks, Row
from flowbook.widgets.graphs.overlay import Overlay
from flowbook.widgets.graphs.payload import Needed
from flowbook.widgets.graphs.scope_blocks import MAX_BLOCKS, Block, Blocks, Edge, collapse
from flowbook.widgets.palette import FAINT, INK, PAPER, RULE
from flowbook.widgets.shown_text import coordinate as _n
from flowbook.widgets.shown_text import shown_text

_MARGIN = 20.0
_HEADING = 30.0
_NAME, _DETAIL = 13.0, 11.0  # Font sizes.
_WIDEST = 900.0  # Shown in the column, the smallest text of a picture so wide is still legible.
_FEWER = (MAX_BLOCKS, 24, 14)  # Wider ones are drawn with fewer blocks.
_LONGEST = 44  # Longer names lose their middle; the tooltip has them whole.
_NARROW = frozenset("fijlrtI.,:;'|!()[]/ ")
_WIDE = frozenset("mwMWN@%…")

# Fill and outline of each kind of block.
_COLOURS = {
    "scope": ("#e8effb", "#5b7db8"),
    "loop": ("#f1eafb", "#8a63c4"),
    "branch": ("#f1eafb", "#8a63c4"),
    "call": ("#f1eafb", "#8a63c4"),
    "function": ("#f1eafb", "#8a63c4"),
    "variable": ("#fdf1d8", "#b98a2c"),
    "input": ("#e3f4e8", "#4c9a66"),
    "operation": ("#ffffff", "#8a94a3"),
    "several": ("#f0f1f4", "#8a94a3"),
}
_LINE, _MARK = "#8a94a3", "#1f6feb"
_ROW, _SWATCH = 20.0, 46.0  # Of the legend.
_INSET = 5.0  # Of the bar that says what of a block has which colour.
_SIGNS = {
    "loop": "\N{CLOCKWISE OPEN CIRCLE ARROW}",
    "branch": "\N{WHITE DIAMOND}",
    "call": "\N{LATIN SMALL LETTER F WITH HOOK}",
    "function": "\N{LATIN SMALL LETTER F WITH HOOK}",
}

Point = tuple[float, float]


class Picture(NamedTuple):
    """A graph drawn: what is in it, from 0, 0 on, and how large that is."""

    parts: Sequence[str]
    width: float
    height: float


def graph_svg(
    graph: Graph,
    needed: Needed | None = None,
    ran: Mapping[str, str] | None = None,
    overlay: Overlay | None = None,
) -> str:
    """Draw a graph, collapsed to its top-level name scopes, as an SVG document.

    Args:
        graph: the graph.
        needed: what stands out, everything else being faint; None if nothing does.
        ran: what is said of loops and branches, by their names.
        overlay: what is laid over it: colours, with a legend, and what crosses between devices.
    """
    heading = _heading(graph)
    return document([graph_picture(graph, needed, ran, overlay)], heading)


def graph_picture(
    graph: Graph,
    needed: Needed | None = None,
    ran: Mapping[str, str] | None = None,
    overlay: Overlay | None = None,
) -> Picture:
    """Draw a graph, as a part of a document; see `graph_svg`."""
    for max_blocks in _FEWER:
        collapsed = collapse(graph, max_blocks, needed, ran, overlay)
        sizes = [_size(block) for block in collapsed.blocks]
        weights = {
            ends: edge.tensors + 0.5 * (not edge.tensors) for ends, edge in collapsed.edges.items()
        }
        layout = lay_out(sizes, weights)
        if layout.width + 2 * _MARGIN <= _WIDEST:
            break
    heading = overlay.title if overlay is not None else _heading(graph)
    looks = Looks(overlay, collapsed.blocks)
    legend = looks.legend()
    width = max(layout.width, _text_width(heading, _DETAIL), _legend_width(legend))
    parts = [
        f'<text x="0" y="6" font-size="{_n(_DETAIL)}" fill="{FAINT}">{shown_text(heading)}</text>',
        f'<g transform="translate({_n((width - layout.width) / 2)} {_n(_HEADING)})">',
        *_draw_edges(collapsed, layout, sizes, overlay),
        _draw_rule(layout),
        *(
            _draw_block(block, centre, size, looks.look(block))
            for block, centre, size in zip(collapsed.blocks, layout.centres, sizes, strict=True)
        ),
        "</g>",
        *_draw_legend(legend, layout.height + _HEADING + 1.6 * _ROW),
    ]
    height = layout.height + _HEADING + (_ROW * (len(legend) + 1) if legend else 0)
    return Picture(list(filter(None, parts)), width, height)


def document(pictures: Sequence[Picture], label: str) -> str:
    """Pictures below each other as an SVG document, which has its own background."""
    width = max(picture.width for picture in pictures) + 2 * _MARGIN
    height = sum(picture.height + 2 * _MARGIN for picture in pictures)
    parts: list[str] = []
    top = 0.0
    for picture in pictures:
        if top:
            parts.append(f'<path d="M0 {_n(top)}h{_n(width)}" stroke="{RULE}"/>')
        parts.append(f'<g transform="translate({_n(_MARGIN)} {_n(top + _MARGIN)})">')
        parts += [*picture.parts, "</g>"]
        top += picture.height + 2 * _MARGIN
    return drawing.document(width, height, label, parts, None)


def _legend_width(rows: Sequence[Row]) -> float:
    if not rows:
        return 0.0
    labels = max(_text_width(row.label, _DETAIL) for row in rows)
    return _SWATCH + labels + 10 + max(_text_width(row.about, _DETAIL) for row in rows)


def _draw_legend(rows: Sequence[Row], top: float) -> Iterator[str]:
    """A swatch, a label and what is said of it, line by line."""
    labels = max((_text_width(row.label, _DETAIL) for row in rows), default=0.0)
    for number, row in enumerate(rows):
        y = top + number * _ROW
        if row.sign == "line":
            yield (
                f'<path d="M0 {_n(y + 1)}h{_n(_SWATCH - 10)}" stroke="{CROSSING}" '
                'stroke-width="2.4"/>'
            )
        elif row.sign:
            yield _draw_mark(row.sign, (_SWATCH - 10 + _mark_width(row.sign)) / 2, y - 6)
        wide = (_SWATCH - 10) / max(len(row.swatch), 1)
        for place, colour in enumerate(row.swatch):
            yield (
                f'<rect x="{_n(place * wide)}" y="{_n(y - 4)}" width="{_n(wide + 0.1)}" '
                f'height="10" rx="{2 if len(row.swatch) == 1 else 0}" fill="{colour}"/>'
            )
        yield (
            f'<text x="{_n(_SWATCH)}" y="{_n(y + 5)}" font-size="{_n(_DETAIL)}" '
            f'fill="{INK}">{shown_text(row.label)}</text>'
            f'<text x="{_n(_SWATCH + labels + 10)}" y="{_n(y + 5)}" font-size="{_n(_DETAIL)}" '
            f'fill="{FAINT}">{shown_text(row.about)}</text>'
        )


def _draw_rule(layout: Layout) -> str:
    """A line above what stands aside."""
    if layout.loose_top is None:
        return ""
    return (
        f'<path d="M0 {_n(layout.loose_top - LAYER_GAP / 2)}h{_n(layout.width)}" '
        f'stroke="{RULE}" stroke-dasharray="2 4"/>'
    )


def _heading(graph: Graph) -> str:
    parts = [counted(len(graph.operations), "operation")]
    if variables := graph.variables():
        parts.append(counted(len(variables), "variable"))
    return f"Graph: {', '.join(parts)}"


def _size(block: Block) -> Point:
    lines = [_text_width(_titled(block), _NAME), _text_width(_shortened(block.detail), _DETAIL)]
    return max(56.0, max(lines) + 24), 40.0 if block.detail else 28.0


def _draw_block(block: Block, centre: Point, size: Point, look: Look | None) -> str:
    (x, y), (width, height) = centre, size
    fill, outline = (look.fill, look.outline) if look is not None else _COLOURS[block.kind]
    left, top = x - width / 2, y - height / 2
    round_by = height / 2 if block.kind == "input" else 6.0
    shape = (
        f'width="{_n(width)}" height="{_n(height)}" rx="{_n(round_by)}" '
        f'fill="{fill}" stroke="{outline}"'
    )
    stacked = ""
    if block.kind in ("scope", "several", *_SIGNS):
        # A second sheet behind it: there is more inside.
        stacked = f'<rect x="{_n(left + 3)}" y="{_n(top + 3)}" {shape}/>'
    detail = (
        f'<text x="{_n(x)}" y="{_n(y + 13)}" font-size="{_n(_DETAIL)}" '
        f'fill="{FAINT if look is None else INK}" '
        f'text-anchor="middle">{shown_text(_shortened(block.detail))}</text>'
        if block.detail
        else ""
    )
    shares = "" if look is None else _draw_shares(look, left, top, width, height)
    marks, right = "", left + width + 4
    for mark in reversed(look.marks + block.marks if look is not None else block.marks):
        marks += _draw_mark(mark, right - 2, top - 8)
        right -= _mark_width(mark) + 2
    return (
        f"<g{_opacity(block)}><title>{shown_text(block.name[:500])}</title>{stacked}"
        f'<rect x="{_n(left)}" y="{_n(top)}" {shape}/>{shares}'
        f'<text x="{_n(x)}" y="{_n(y - 2 if block.detail else y + 4.5)}" '
        f'font-size="{_n(_NAME)}" fill="{INK}" '
        f'text-anchor="middle">{shown_text(_titled(block))}</text>{detail}{marks}</g>'
    )


def _mark_width(mark: str) -> float:
    return _text_width(mark, _DETAIL - 1) + 12


def _draw_mark(mark: str, right: float, top: float) -> str:
    """A mark on the border of a block: filled, or framed if it tells of differences."""
    wide = _mark_width(mark)
    differs = mark.startswith(DIFFERS)
    fill, ink = (PAPER, INK) if differs else (_MARK, "#ffffff")
    return (
        f'<rect x="{_n(right - wide)}" y="{_n(top)}" width="{_n(wide)}" height="15" rx="7.5" '
        f'fill="{fill}" stroke="{ink if differs else fill}"/>'
        f'<text x="{_n(right - wide / 2)}" y="{_n(top + 11)}" '
        f'font-size="{_n(_DETAIL - 1)}" fill="{ink}" text-anchor="middle">{mark}</text>'
    )


def _draw_shares(look: Look, left: float, top: float, width: float, height: float) -> str:
    """A bar at the bottom of a block: the share of each colour, side by side."""
    found, x, room = "", left + _INSET, width - 2 * _INSET
    for colour, part, dashes in look.shares:
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        found += (
            f'<path d="M{_n(x)} {_n(top + height - 3)}h{_n(part * room)}" stroke="{colour}" '
            f'stroke-width="3.5"{dashed}/>'
        )
        x += part * room
    return found


def _titled(block: Block) -> str:
    """A block's name, with a sign of what it is."""
    sign = _SIGNS.get(block.kind)
    return f"{sign} {_shortened(block.name)}" if sign else _shortened(block.name)


def _draw_edges(
    collapsed: Blocks, layout: Layout, sizes: list[Point], overlay: Overlay | None
) -> list[str]:
    lines, labels = [], []
    taken: list[tuple[float, float, float, float]] = []
    ends = _ports(layout, sizes)
    for edge, route in layout.routes.items():
        start, end = ends[edge]
        points = [start, *route[1:-1], end]
        flow = collapsed.edges[edge]
        lines.append(_draw_line(points, flow))
        label = _label(flow, overlay)
        if label:
            labels.append((label, points, flow))
    drawn = []
    labels.sort(key=lambda each: not each[2].crossings)  # They come first where room is short.
    for label, points, flow in labels:
        text = _draw_label(label, points, taken, is_strong=bool(flow.crossings))
        if text:
            drawn.append(f"<g{_opacity(flow)}>{text}</g>" if flow.is_faint else text)
    return lines + drawn


def _ports(layout: Layout, sizes: list[Point]) -> dict[tuple[int, int], tuple[Point, Point]]:
    """Where edges touch their boxes: spread over top and bottom, in the order of their way."""
    touching: dict[tuple[int, bool], list[tuple[float, tuple[int, int], bool]]] = {}
    for edge, route in layout.routes.items():
        downward = route[0][1] <= route[-1][1]
        touching.setdefault((edge[0], downward), []).append((route[1][0], edge, True))
        touching.setdefault((edge[1], not downward), []).append((route[-2][0], edge, False))
    found: dict[tuple[tuple[int, int], bool], Point] = {}
    for (box, at_bottom), entries in touching.items():
        (x, y), (width, height) = layout.centres[box], sizes[box]
        step = min(18.0, (width - 24) / len(entries))
        first = x - step * (len(entries) - 1) / 2
        for i, (_, edge, is_start) in enumerate(sorted(entries)):
            end = first + i * step, y + (height / 2 if at_bottom else -height / 2)
            found[edge, is_start] = end
    return {edge: (found[edge, True], found[edge, False]) for edge in layout.routes}


def _draw_line(points: list[Point], flow: Edge) -> str:
    path = [f"M{_n(points[0][0])} {_n(points[0][1])}"]
    for (x0, y0), (x1, y1) in pairwise(points):
        middle = (y0 + y1) / 2
        path.append(f"C{_n(x0)} {_n(middle)} {_n(x1)} {_n(middle)} {_n(x1)} {_n(y1)}")
    thickness = min(1.2 + 0.5 * math.log2(max(flow.tensors, 1)), 4.0)
    dashes = "" if flow.tensors else ' stroke-dasharray="4 4"'
    colour = CROSSING if flow.crossings else _LINE
    thickness = max(thickness, 2.4) if flow.crossings else thickness
    x, y = points[-1]
    size = 3.5 + thickness
    back = -size * 1.5 if points[-1][1] >= points[-2][1] else size * 1.5
    return (
        f'<path d="{"".join(path)}" fill="none" stroke="{colour}" '
        f'stroke-width="{_n(thickness)}"{dashes}{_opacity(flow)}/>'
        f'<path d="M{_n(x)} {_n(y)}l{_n(-size / 1.4)} {_n(back)}h{_n(size * 2 / 1.4)}z" '
        f'fill="{colour}"{_opacity(flow)}/>'
    )


def _opacity(part: Block | Edge) -> str:
    return ' opacity="0.35"' if part.is_faint else ""


def _label(flow: Edge, overlay: Overlay | None) -> str:
    if overlay is not None and flow.crossings:
        return in_bytes(sum(overlay.crossings[each] for each in flow.crossings))
    if flow.tensors > 1:
        return f"{flow.tensors} tensors"
    return "" if flow.shape in ("", "[]") else flow.shape


def _draw_label(
    label: str,
    points: list[Point],
    taken: list[tuple[float, float, float, float]],
    is_strong: bool,
) -> str:
    """The label in the middle of the edge's first stretch, unless another is there already."""
    (x0, y0), (x1, y1) = points[0], points[1]
    x, y = (x0 + x1) / 2, (y0 + y1) / 2
    half = _text_width(label, _DETAIL - 1) / 2 + 3
    box = (x - half, y - 7, x + half, y + 7)
    if any(box[0] < b[2] and b[0] < box[2] and box[1] < b[3] and b[1] < box[3] for b in taken):
        return ""
    taken.append(box)
    look = f'fill="{CROSSING}" font-weight="600"' if is_strong else f'fill="{FAINT}"'
    return (
        f'<rect x="{_n(box[0])}" y="{_n(box[1])}" width="{_n(2 * half)}" height="14" '
        f'fill="{PAPER}"/><text x="{_n(x)}" y="{_n(y + 3.5)}" font-size="{_n(_DETAIL - 1)}" '
        f'{look} text-anchor="middle">{shown_text(label)}</text>'
    )


def _shortened(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    half = _LONGEST // 2 - 1
    return f"{text[:half]}…{text[-half:]}"


def _text_width(text: str, size: float) -> float:
    """About how wide a text is: there is no font to measure by."""
    units = sum(
        0.34 if c in _NARROW else 0.92 if c in _WIDE else 0.7 if c.isupper() else 0.59 for c in text
    )
    return units * size
