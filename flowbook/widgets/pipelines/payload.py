"""What a session's queues do as the browser gets it: all that is shown, anew each time.

A frame that is lost does no harm: the next one says it all. What it holds is bounded: so many
queues, and for each so many samples. `labextension/src/core/pipeline.ts` reads it; the layout of
the bytes is `packing.py`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flowbook.exec.resources.queue import Reading
from flowbook.exec.session.input_pipeline import QueueUse
from flowbook.widgets.packing import packed
from flowbook.widgets.pipelines.history import Shown
from flowbook.widgets.shown_text import bounded

FORMAT = 1

MOST_QUEUES = 24
_MOST_WAITING = 3  # Of what waits at one queue.


def pipeline_payload(shown: Shown, said: str = "") -> bytes:
    """Pack what is shown.

    Args:
        shown: what there is.
        said: what stands above it; may be empty.
    """
    pipeline = shown.pipeline
    readings = shown.readings[:MOST_QUEUES]
    header = {
        "format": FORMAT,
        "said": said,
        "verdict": [pipeline.verdict.state, *map(bounded, pipeline.verdict[1:])],
        "queues": [_queue(use) for use in pipeline.queues[:MOST_QUEUES]],
        "more": max(0, len(pipeline.queues) - MOST_QUEUES),
    }
    columns = {
        "clock": np.asarray(shown.clocks, np.float64),
        "fill": _column(readings, lambda reading: reading.fill),
        "put": _column(readings, lambda reading: reading.put),
        "taken": _column(readings, lambda reading: reading.taken),
    }
    return packed(header, columns)


def _queue(use: QueueUse) -> dict[str, Any]:
    return {
        "name": bounded(use.name),
        "operation": bounded(use.operation),
        "kind": use.kind,
        "place": bounded(use.place),
        "capacity": use.capacity,
        "fill": use.fill,
        "put": use.put,
        "taken": use.taken,
        "seconds": use.seconds,
        "putRate": use.put_rate,
        "takenRate": use.taken_rate,
        "roomShare": use.room_share,
        "elementShare": use.element_share,
        "feedsTraining": use.feeds_training,
        "isClosed": use.is_closed,
        "runners": [[bounded(each.name), each.state, bounded(str(each))] for each in use.runners],
        "waiting": [
            [bounded(str(each)), bounded(each.wish), each.seconds, each.is_runners]
            for each in use.waiting[:_MOST_WAITING]
        ],
        "moreWaiting": max(0, len(use.waiting) - _MOST_WAITING),
    }


def _column(
    readings: Sequence[Sequence[Reading]], value: Callable[[Reading], int]
) -> np.ndarray[Any, Any]:
    """A number of each sample, queue after queue."""
    return np.asarray([value(each) for of_queue in readings for each in of_queue], np.float64)
