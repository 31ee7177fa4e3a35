"""A trace as the browser gets it: names and places once, and for each call numbers.

Calls are ordered by rows, and within these by when they began. `labextension/src/core/timeline.ts`
reads it; the layout of the bytes is `packing.py`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from flowbook.exec.instruments.trace_records import TracedCall
from flowbook.graph.model.origin.site import Site
from flowbook.widgets.packing import packed
from flowbook.widgets.shown_text import bounded
from flowbook.widgets.timelines.timeline import Timeline

FORMAT = 2

_MOST_NAMED = 12  # Of the operations that one kernel stands for.


def timeline_payload(timeline: Timeline, sites: Mapping[str, Site]) -> bytes:
    """Pack a timeline.

    Args:
        timeline: what is drawn.
        sites: where operations were defined, by their names.
    """
    order = sorted(range(len(timeline.calls)), key=timeline.rows.__getitem__)
    calls = [timeline.calls[place] for place in order]
    works: dict[tuple[str, ...], int] = {}
    work_of = [
        works.setdefault((call.operation, call.type, *call.operations), len(works))
        for call in calls
    ]
    header = {
        "format": FORMAT,
        "title": timeline.title,
        "remark": timeline.remark,
        "end": timeline.end - timeline.origin,
        "lanes": [[bounded(lane.device), bounded(lane.name), *lane[2:]] for lane in timeline.lanes],
        "works": [_work(*work, sites=sites, variables=timeline.variables) for work in works],
        "threads": [bounded(step.thread) for step in timeline.steps],
        "colourings": [
            [each.by, [[bounded(g.label), g.busy] for g in each.groups], each.has_others]
            for each in timeline.colourings
        ],
    }

    def column(value: Callable[[TracedCall], int], dtype: Any) -> np.ndarray[Any, Any]:
        return np.fromiter(map(value, calls), dtype, len(calls))

    new_place = np.argsort(np.asarray(order, np.int64)) if order else np.zeros(0, np.int64)
    arrows = np.asarray(timeline.arrows, np.int64).reshape(-1, 2)
    steps, origin = timeline.steps, timeline.origin
    columns = {
        "row": np.asarray([timeline.rows[place] for place in order], np.int32),
        "start": column(lambda call: call.start - origin, np.float64),
        "end": column(lambda call: call.end - origin, np.float64),
        "delay": column(lambda call: call.delay, np.float64),
        "work": np.asarray(work_of, np.int32),
        "step": column(lambda call: call.step, np.int32),
        "iteration": column(lambda call: call.iteration, np.int32),
        "bytes": column(lambda call: call.bytes, np.float64),
        "live": column(lambda call: call.live, np.float64),
        "sent": new_place[arrows[:, 0]].astype(np.int32),
        "received": new_place[arrows[:, 1]].astype(np.int32),
        "stepStart": np.asarray([step.start - origin for step in steps], np.float64),
        "stepEnd": np.asarray([(step.end or timeline.end) - origin for step in steps], np.float64),
    }
    for number, colouring in enumerate(timeline.colourings):
        columns[f"group{number}"] = np.asarray([colouring.of[place] for place in order], np.uint8)
    return packed(header, columns)


def _work(
    operation: str,
    kind: str,
    *operations: str,
    sites: Mapping[str, Site],
    variables: Mapping[str, str],
) -> list[Any]:
    """What some calls have in common.

    That is their name and type, where that was defined, what they stand for beside, the operation
    of the graph that they are of, and the variable that has its value.
    """
    source = source_of(operation, sites)
    others = [bounded(name) for name in operations[:_MOST_NAMED] if name != operation]
    if len(operations) > _MOST_NAMED:
        others.append(f"and {len(operations) - _MOST_NAMED:,} more")
    variable = variables.get(operation, "")
    place = bounded(sites[source].place) if source in sites else ""
    return [bounded(operation), bounded(kind), place, others, bounded(source), bounded(variable)]


def source_of(operation: str, sites: Mapping[str, Site]) -> str:
    """The operation that a call is of: what the compiler adds has that one's name first."""
    first = operation.partition(":")[0]
    parts = first.split("/")
    names = ("/".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((name for name in names if name in sites), first)
