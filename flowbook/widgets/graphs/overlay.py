"""What is laid over the picture of a graph: colours, what crosses between devices, what is said.

A plan and a trace give one each (`plan_overlay.py`, `trace_overlay.py`), as plain values by the
names of operations; a picture gets them with the graph (`payload.py`). Names that the graph does
not have do not matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from flowbook.graph.model.errors import InvalidArgumentError


class Group(NamedTuple):
    """Operations that have one colour.

    Attributes:
        label: what they have in common, such as "cpu:0".
        colour: the number of the colour.
        about: what the legend says of them.
    """

    label: str
    colour: int
    about: Sequence[str] = ()


@dataclass(frozen=True)
class Colouring:
    """What the colours of a picture tell.

    Attributes:
        by: what it is called, such as "time".
        unit: of the amounts: "s", "B", or "x" of those that are held against others; empty for
            groups.
        values: for operations the number of the group, or the amount.
        groups: the groups; none for amounts.
        against: what the amounts of unit "x" are divided by.
    """

    by: str
    unit: str
    values: Mapping[str, float]
    groups: Sequence[Group] = ()
    against: Mapping[str, float] = field(default_factory=dict)


class Note(NamedTuple):
    """What is said of an operation: below a heading, a text, and what is fainter."""

    heading: str
    text: str
    detail: str = ""


@dataclass(frozen=True)
class Overlay:
    """What is laid over a picture.

    Attributes:
        title: what it is, in a line.
        colourings: what colours can tell; the first one is shown at first.
        places: the number of the device that each operation runs on.
        crossings: the bytes of each tensor that goes to another device, by its name and the number
            of that device.
        notes: what is said of operations.
        differing: for operations that run elsewhere in another plan, where.
    """

    title: str
    colourings: Sequence[Colouring]
    places: Mapping[str, int] = field(default_factory=dict)
    crossings: Mapping[tuple[str, int], int] = field(default_factory=dict)
    notes: Mapping[str, Sequence[Note]] = field(default_factory=dict)
    differing: Mapping[str, str] = field(default_factory=dict)

    def coloured_by(self, by: str | None) -> Overlay:
        """The same with another colouring shown at first; None changes nothing.

        Raises:
            InvalidArgumentError: if there is no such colouring.
        """
        if by is None:
            return self
        names = [each.by for each in self.colourings]
        if by not in names:
            raise InvalidArgumentError(f"colours tell of {', '.join(names)}, not of {by!r:.80}")
        first = self.colourings[names.index(by)]
        others = [each for each in self.colourings if each is not first]
        return replace(self, colourings=[first, *others])


def short_names(devices: Sequence[str]) -> dict[str, str]:
    """Devices by their full names as people call them: "cpu:0" where they are of one task."""
    tasks = {name.rpartition("/device:")[0] for name in devices}
    return {name: name.rpartition("/device:")[2] if len(tasks) < 2 else name for name in devices}
