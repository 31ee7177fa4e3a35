"""A trace as a picture has it: lanes of rows, the calls in them, and what their colours tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from flowbook.exec.instruments.trace import Trace, exchanges, scope_of
from flowbook.exec.instruments.trace_lanes import Row, rows_of
from flowbook.exec.instruments.trace_records import TracedCall, TracedStep
from flowbook.exec.report import in_time
from flowbook.graph.model.counted import counted
from flowbook.widgets.graphs.overlay import short_names

MOST_CALLS = 500_000  # In a picture; a page still draws as many without a halt.
MOST_GROUPS = 6  # That have a colour of their own.
_MOST_ROWS = 64  # Of one lane: of what waits, more may be under way at once than anyone looks at.


class Lane(NamedTuple):
    """Rows that belong together: those of a thread on a device, or of what waits there.

    Attributes:
        device: its name, as short as it can be.
        name: of the thread; "waiting" for what is asynchronous.
        waits: whether it is of what is asynchronous.
        rows: how many there are.
        busy: how long something was in them, in nanoseconds.
    """

    device: str
    name: str
    waits: bool
    rows: int
    busy: int


class Group(NamedTuple):
    """Calls that have one colour.

    Attributes:
        label: what they have in common.
        busy: how long they kept their threads busy, in nanoseconds.
    """

    label: str
    busy: int


@dataclass(frozen=True)
class Colouring:
    """What the colours of a timeline tell.

    Attributes:
        by: what it is called.
        groups: those with colours, the busiest first.
        of: for each call the number of its group.
        has_others: whether the last group stands for all that have no colour of their own.
    """

    by: str
    groups: Sequence[Group]
    of: Sequence[int]
    has_others: bool


@dataclass(frozen=True)
class Timeline:
    """What there is to draw.

    Attributes:
        title: it in a line.
        remark: what is not shown; mostly empty.
        origin: the moment from which times are counted, in nanoseconds.
        end: the last moment.
        lanes: from top to bottom.
        calls: those that are drawn, in the order in which they began.
        rows: for each the number of its row, through all lanes.
        arrows: which of them sent what another received, by their places.
        steps: the runs.
        colourings: what colours can tell; the first one is shown at first.
        variables: the Python variables of operations, by their names.
    """

    title: str
    remark: str
    origin: int
    end: int
    lanes: Sequence[Lane]
    calls: Sequence[TracedCall]
    rows: Sequence[int]
    arrows: Sequence[tuple[int, int]]
    steps: Sequence[TracedStep]
    colourings: Sequence[Colouring]
    variables: Mapping[str, str]

    def of_step(self, number: int) -> tuple[list[int], int, int]:
        """A step's calls by their places, and when it began and ended."""
        step = self.steps[number]
        places = [i for i, call in enumerate(self.calls) if call.step == number]
        return places, step.start, self.end if step.end is None else step.end


def timeline_of(trace: Trace, step: int | None = None) -> Timeline:
    """What a trace gives to draw.

    Args:
        trace: the trace.
        step: this step alone; None is all of them.
    """
    every = trace.calls if step is None else [c for c in trace.calls if c.step == step]
    steps = trace.steps
    calls, rows = _drawn(every[:MOST_CALLS])
    places = _places({row for row in rows if row is not None})
    ends = [each.end for each in calls] + [each.end or each.start for each in steps]
    short = short_names(sorted({call.device for call in calls}))
    return Timeline(
        _title(trace),
        _remark(trace, len(every) - len(calls)),
        steps[0].start if steps else 0,
        max(ends, default=0),
        _lanes(places, calls, rows, short),
        calls,
        [places[row] for row in rows],
        exchanges(calls),
        steps,
        [
            _colouring("operation type", calls, lambda call: call.type),
            _colouring("scope", calls, _scopes(calls)),
            _colouring("device", calls, lambda call: short[call.device]),
        ],
        trace.variables,
    )


def _drawn(calls: Sequence[TracedCall]) -> tuple[list[TracedCall], list[Row]]:
    """The calls that have a row which is drawn, and these."""
    pairs = zip(calls, rows_of(calls), strict=True)
    drawn = [(call, row) for call, row in pairs if row.number < _MOST_ROWS]
    return [call for call, _ in drawn], [row for _, row in drawn]


def _places(rows: set[Row]) -> dict[Row, int]:
    """The numbers of rows, from the top: by device, threads by name, then what waits."""
    ordered = sorted(rows, key=lambda row: (row.device, not row.thread, row.thread, row.number))
    return {row: place for place, row in enumerate(ordered)}


def _lanes(
    places: dict[Row, int], calls: Sequence[TracedCall], rows: Sequence[Row], short: dict[str, str]
) -> list[Lane]:
    busy: Counter[tuple[str, str]] = Counter()
    for call, row in zip(calls, rows, strict=True):
        if row.number == 0 or call.waits:  # What is made within another call is in that.
            busy[row.device, row.thread] += call.duration
    found: dict[tuple[str, str], int] = Counter((row.device, row.thread) for row in places)
    return [
        Lane(short[device], thread or "waiting", not thread, count, busy[device, thread])
        for (device, thread), count in found.items()
    ]


def _scopes(calls: Sequence[TracedCall]) -> Callable[[TracedCall], str]:
    """The scopes that tell calls apart: the outermost of which there is more than one."""
    for depth in (1, 2, 3):
        names = {scope_of(call, depth) for call in calls}
        if len(names - {""}) > 1:
            break
    return lambda call: scope_of(call, depth) or "no scope"


def _colouring(
    by: str, calls: Sequence[TracedCall], name_of: Callable[[TracedCall], str]
) -> Colouring:
    names = [name_of(call) for call in calls]
    busy: Counter[str] = Counter()
    for name, call in zip(names, calls, strict=True):
        busy[name] += 0 if call.waits else call.duration
    ranked = sorted(busy, key=lambda name: (-busy[name], name))
    # One more than have a colour is no reason to speak of others.
    own = ranked if len(ranked) <= MOST_GROUPS + 1 else ranked[:MOST_GROUPS]
    groups = [Group(name, busy[name]) for name in own]
    has_others = len(own) < len(ranked)
    if has_others:
        left = ranked[len(own) :]
        groups.append(Group(f"{len(left):,} others", sum(busy[name] for name in left)))
    number = {name: min(i, len(own)) for i, name in enumerate(ranked)}
    return Colouring(by, groups, [number[name] for name in names], has_others)


def _title(trace: Trace) -> str:
    steps = trace.steps
    ended = sorted(step.end - step.start for step in steps if step.end is not None)
    took = ""
    if ended:
        median = in_time(ended[len(ended) // 2])
        took = f", {median} in the median" if len(ended) > 1 else f", {median}"
    return f"{counted(len(steps), 'step')}, {counted(len(trace.calls), 'call')} of kernels{took}"


def _remark(trace: Trace, undrawn: int) -> str:
    said = []
    if undrawn:
        said.append(f"{counted(undrawn, 'call')} not drawn")
    if trace.dropped:
        said.append(f"{counted(trace.dropped, 'call')} not kept, for want of room")
    return "; ".join(said)
