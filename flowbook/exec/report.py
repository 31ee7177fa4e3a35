"""What tools that look at graphs and runs return: values to work with, and a table to look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_PREFIXES = ("", "k", "M", "G", "T", "P", "E")


@dataclass(frozen=True)
class Table:
    """A table as text; how it looks is its viewer's to say.

    Attributes:
        title: one line that sums it up.
        headings: the columns.
        rows: a text for each column.
        notes: sentences that belong below.
        numeric: the columns, by index, that hold numbers.
    """

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()
    numeric: Sequence[int] = ()

    def __str__(self) -> str:
        lines = [list(self.headings), *map(list, self.rows)] if self.rows else []
        widths = (
            [max(len(line[i]) for line in lines) for i in range(len(self.headings))]
            if lines
            else []
        )
        text = [self.title]
        for line in lines:
            cells = [
                cell.rjust(width) if i in self.numeric else cell.ljust(width)
                for i, (cell, width) in enumerate(zip(line, widths, strict=True))
            ]
            text.append("  " + "  ".join(cells).rstrip())
        return "\n".join([*text, *self.notes])


class Report:
    """What one tool found out."""

    @property
    def table(self) -> Table:
        """The report as a table."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return str(self.table)


def in_bytes(count: int) -> str:
    """A number of bytes, such as "31.4 MB"."""
    return f"{scaled(count)}B"


def in_time(nanoseconds: int) -> str:
    """A duration to three digits, such as "31.4 us"."""
    if nanoseconds < 1000:
        return f"{nanoseconds} ns"
    count, unit = nanoseconds / 1000, "us"
    for larger in ("ms", "s"):
        if count >= 999.5:
            count, unit = count / 1000, larger
    return f"{count:.{_digits(count)}f} {unit}"


def scaled(count: float) -> str:
    """A number to three digits with a decimal prefix, such as "31.4 M"."""
    power = 0
    while abs(count) >= 999.5 and power < len(_PREFIXES) - 1:
        count, power = count / 1000, power + 1
    digits = _digits(count) if power else 0
    return f"{count:.{digits}f} {_PREFIXES[power]}"


def _digits(count: float) -> int:
    """How many digits after the point make three in all."""
    return 0 if count >= 99.95 else 1 if count >= 9.995 else 2


def in_seconds(seconds: float) -> str:
    """A time to three digits, such as "31.4 ms"."""
    return in_time(round(seconds * 1e9))
