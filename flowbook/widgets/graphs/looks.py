"""What the blocks of a static picture look like under an overlay, and the legend that says why.

`labextension/src/core/overlay.ts` does the same for the live one: a block has a share of each
colour that its operations have, or the sum of their amounts, darker the more there is.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from flowbook.graph.model.counted import counted
from flowbook.widgets.graphs.overlay import AMOUNTS, Colouring, Overlay
from flowbook.widgets.graphs.scope_blocks import Block
from flowbook.widgets.palette import LESS, LITTLE, MORE, MUCH, dash, mixed, told_apart

CROSSING = "#1c2430"  # Lines that lead to another device.
DIFFERS = "\N{NOT EQUAL TO}"  # On the border of what runs elsewhere in another plan.
_WHITE, _LINE = "#ffffff", "#8a94a3"
_TINT = 0.16  # How much of its colour a block of one device has.
_STEPS = 12  # Of a scale in the legend.
_FACTOR = 4.0  # As much more or less has the whole colour.


@dataclass(frozen=True)
class Look:
    """How a block is drawn.

    Attributes:
        fill: the colour of its ground.
        outline: of the line around it.
        shares: a colour, how large its part is, and the dashes that it has.
        marks: what stands on its border.
    """

    fill: str = _WHITE
    outline: str = _LINE
    shares: Sequence[tuple[str, float, str]] = ()
    marks: tuple[str, ...] = ()


class Row(NamedTuple):
    """A line of a legend.

    Attributes:
        swatch: colours, side by side.
        label: what they are.
        about: what is said of that.
        sign: what stands in place of colours: "line", or a mark.
    """

    swatch: Sequence[str]
    label: str
    about: str
    sign: str = ""


class Looks:
    """The looks of some blocks.

    Args:
        overlay: what is laid over them; None leaves blocks as they are.
        blocks: all of them.
    """

    def __init__(self, overlay: Overlay | None, blocks: Sequence[Block]) -> None:
        self._overlay = overlay
        self._colouring = overlay.colourings[0] if overlay is not None else None
        amounts = [self._amount(block) for block in blocks if self._colouring]
        self._most = max((each for each in amounts if each is not None), default=0.0)

    def look(self, block: Block) -> Look | None:
        """How a block is drawn; None is as without an overlay."""
        colouring, overlay = self._colouring, self._overlay
        if colouring is None or overlay is None:
            return None
        elsewhere = sum(op.name in overlay.differing for op in block.members)
        many = f" {elsewhere:,}" if len(block.members) > 1 else ""
        marks = (f"{DIFFERS}{many}",) if elsewhere else ()
        if not colouring.unit:
            return _grouped(colouring, block, marks)
        amount = self._amount(block)
        if amount is None:
            return Look(marks=marks)
        return Look(self._fill(colouring.unit, amount), marks=marks)

    def legend(self) -> list[Row]:
        """What the colours say, and the lines that cross between devices."""
        colouring, overlay = self._colouring, self._overlay
        if colouring is None or overlay is None:
            return []
        if colouring.unit:
            rows = [self._scale(colouring)]
        else:
            rows = [
                Row([told_apart(g.colour)], g.label, " · ".join(g.about)) for g in colouring.groups
            ]
        if overlay.crossings:
            rows.append(Row([], "to another device", "with the bytes that go over", "line"))
        if overlay.differing:
            many = counted(len(overlay.differing), "operation")
            rows.append(Row([], "elsewhere in the other plan", many, DIFFERS))
        return rows

    def _amount(self, block: Block) -> float | None:
        """The sum of what the operations of a block have; None if none has anything."""
        assert self._colouring is not None
        names = [op.name for op in block.members if op.name in self._colouring.values]
        if not names:
            return None
        total = sum(self._colouring.values[name] for name in names)
        if self._colouring.unit != "x":
            return total
        against = sum(self._colouring.against.get(name, 0.0) for name in names)
        return total / against if against else None

    def _fill(self, unit: str, amount: float) -> str:
        if unit == "x":
            part = math.log(max(amount, 1e-9)) / math.log(_FACTOR)
            return mixed(_WHITE, MORE if part > 0 else LESS, min(1.0, abs(part)))
        return mixed(LITTLE, MUCH, math.sqrt(amount / self._most) if self._most > 0 else 0.0)

    def _scale(self, colouring: Colouring) -> Row:
        unit = colouring.unit
        if unit == "x":
            steps = [_FACTOR ** (2 * i / (_STEPS - 1) - 1) for i in range(_STEPS)]
            ends = f"from ¼ × to {_FACTOR:g} ×"
        else:
            steps = [self._most * i / (_STEPS - 1) for i in range(_STEPS)]
            ends = f"from {AMOUNTS[unit](0)} to {AMOUNTS[unit](self._most)}"
        return Row([self._fill(unit, step) for step in steps], colouring.by, ends)


def _grouped(colouring: Colouring, block: Block, marks: tuple[str, ...]) -> Look:
    found = [int(colouring.values[o.name]) for o in block.members if o.name in colouring.values]
    if not found:
        return Look(marks=marks)
    counts = sorted(Counter(found).items())
    colours = [colouring.groups[number].colour for number, _ in counts]
    shares = [
        (told_apart(colour), count / len(found), dash(colour))
        for colour, (_, count) in zip(colours, counts, strict=True)
    ]
    if len(shares) > 1:
        return Look(shares=shares, marks=marks)
    strong = told_apart(colours[0])
    return Look(mixed(_WHITE, strong, _TINT), strong, shares, marks)
