"""The static picture of a graph: what a live view shows of it at first, as SVG.

It is what a notebook shows without a kernel. The live view's own code draws it
(`labextension/src/core/picture.ts`): both have the same boxes in the same places. It has its own
background, so that it reads on light and dark pages; it fetches nothing; equal graphs give equal
text; names are text, whatever they contain.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from flowbook.graph.building.graph import Graph
from flowbook.graph.model.counted import counted
from flowbook.widgets import drawing, javascript
from flowbook.widgets.graphs.overlay import Overlay
from flowbook.widgets.graphs.payload import Needed, graph_payload
from flowbook.widgets.palette import RULE
from flowbook.widgets.shown_text import coordinate as _n

_MARGIN = 20.0


class Picture(NamedTuple):
    """A graph drawn: what is in it, from 0, 0 on, and how large that is."""

    parts: str
    width: float
    height: float


def graph_svg(
    graph: Graph,
    needed: Needed | None = None,
    ran: Mapping[str, str] | None = None,
    overlay: Overlay | None = None,
) -> str:
    """Draw a graph as an SVG document.

    Args:
        graph: the graph.
        needed: what stands out, everything else being faint; None if nothing does.
        ran: what is said of loops and branches, by their names.
        overlay: what is laid over it: colours, with a legend, and what crosses between devices.

    Raises:
        FailedPreconditionError: if nothing is there to draw it, see `javascript.call`.
    """
    return document([graph_picture(graph, needed, ran, overlay)], _heading(graph))


def graph_picture(
    graph: Graph,
    needed: Needed | None = None,
    ran: Mapping[str, str] | None = None,
    overlay: Overlay | None = None,
) -> Picture:
    """Draw a graph, as a part of a document; see `graph_svg`."""
    payload = zlib.decompress(graph_payload(graph, needed, overlay))
    asked = {
        "heading": _heading(graph) if overlay is None else overlay.title,
        "ran": dict(ran or {}),
        "room": drawing.COLUMN - 2 * _MARGIN,
    }
    drawn = javascript.call("picture", base64.b64encode(payload).decode(), json.dumps(asked))
    return Picture(**json.loads(drawn))


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
        parts += [picture.parts, "</g>"]
        top += picture.height + 2 * _MARGIN
    return drawing.document(width, height, label, parts, None)


def _heading(graph: Graph) -> str:
    parts = [counted(len(graph.operations), "operation")]
    if variables := graph.variables():
        parts.append(counted(len(variables), "variable"))
    return f"Graph: {', '.join(parts)}"
