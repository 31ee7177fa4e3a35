"""Where the calls of a trace are drawn: in rows, in which no two of them overlap."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from flowbook.exec.instruments.trace_records import TracedCall


class Row(NamedTuple):
    """A row of a device.

    Attributes:
        device: by name.
        thread: whose calls are in it; empty of what is asynchronous and keeps no thread busy.
        number: which of the rows of that, from 0. Threads have a second one only where a call is
            made within another.
    """

    device: str
    thread: str
    number: int


def rows_of(calls: Sequence[TracedCall]) -> list[Row]:
    """The row of each call: the first of its device and thread that is free then.

    Args:
        calls: in the order in which they began.
    """
    free_from: dict[tuple[str, str], list[int]] = defaultdict(list)
    found = []
    for call in calls:
        lane = call.device, "" if call.waits else call.thread
        rows = free_from[lane]
        row = next((i for i, free in enumerate(rows) if free <= call.start), len(rows))
        rows[row : row + 1] = [call.end]
        found.append(Row(*lane, row))
    return found
