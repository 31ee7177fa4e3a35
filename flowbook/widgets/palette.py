"""The colours that static pictures share, on their light paper.

`labextension/src/core/run_colours.ts` has the same, and those for dark themes.
"""

from __future__ import annotations

# What is drawn on, and with: texts and lines.
PAPER, INK, FAINT, RULE, WARNING = "#fbfcfd", "#1c2430", "#5d6878", "#d5dae1", "#c2410c"

# After Okabe and Ito: the colour-blind tell them apart. What is numbered beyond them has dashes.
TOLD_APART = ("#0072b2", "#d55e00", "#009e73", "#cc4d97", "#c98500", "#3fa0dc", "#4b4f58")
DASHES = ("", "7 4", "2 3")


def told_apart(number: int) -> str:
    """The colour of one of several things, by its number."""
    return TOLD_APART[number % len(TOLD_APART)]


def dash(number: int) -> str:
    """The dashes that tell it from those of the same colour; none for the first ones."""
    return DASHES[number // len(TOLD_APART) % len(DASHES)]


def curve_paint(run: int, place: int, is_alone: bool) -> tuple[str, str]:
    """The colour and the dashes of one of several curves that a run has in a chart.

    Those of a run alone have colours of their own; of several runs each has its colour, and dashes
    tell its curves apart.
    """
    if is_alone:
        return told_apart(run + place), dash(run + place)
    dashes = dash(run) if place == 0 else DASHES[1 + (place - 1) % (len(DASHES) - 1)]
    return told_apart(run), dashes


def mixed(first: str, second: str, part: float) -> str:
    """A colour between two: of the second so large a part."""
    pairs = zip(_channels(first), _channels(second), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * part):02x}" for a, b in pairs)


def _channels(colour: str) -> list[int]:
    return [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
