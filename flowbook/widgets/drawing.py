"""What static pictures are drawn on, and the texts in them."""

from __future__ import annotations

from collections.abc import Iterable

from flowbook.widgets.palette import PAPER, RULE
from flowbook.widgets.shown_text import coordinate as _n
from flowbook.widgets.shown_text import shown_text

COLUMN = 820.0  # What JupyterLab has room for: it shows pictures without fitting them.
_FONTS = "system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif"


def document(
    width: float, height: float, label: str, parts: Iterable[str], size: int | None = 11
) -> str:
    """Parts of a picture as an SVG document, which has its own background.

    Args:
        width: of the picture, which is made smaller where the column has no room for it.
        height: likewise.
        label: what a screen reader says of it.
        parts: SVG.
        size: of the font, where texts say nothing else; None if all say theirs.
    """
    shown = min(1.0, COLUMN / width)
    font = "" if size is None else f' font-size="{size}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_n(width * shown)}" '
            f'height="{_n(height * shown)}" viewBox="0 0 {_n(width)} {_n(height)}" '
            f'role="img" aria-label="{shown_text(label)}" style="max-width:100%;height:auto" '
            f'font-family="{_FONTS}"{font}>',
            f'<rect x="0.5" y="0.5" width="{_n(width - 1)}" height="{_n(height - 1)}" rx="8" '
            f'fill="{PAPER}" stroke="{RULE}"/>',
            *parts,
            "</svg>",
        ]
    )


def text_at(
    x: float,
    y: float,
    text: str,
    colour: str,
    weight: str = "",
    anchor: str = "",
    size: int = 0,
) -> str:
    """A text in a picture; of what is empty or 0 it has what is around it."""
    more = (
        (f' font-weight="{weight}"' if weight else "")
        + (f' text-anchor="{anchor}"' if anchor else "")
        + (f' font-size="{size}"' if size else "")
    )
    return f'<text x="{_n(x)}" y="{_n(y)}" fill="{colour}"{more}>{shown_text(text)}</text>'
