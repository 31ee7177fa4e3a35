"""What a session's queues did while somebody watched: samples, a few a second, of the last minute.

Time in which nothing happens is left out: where no step of a training is under way and nobody takes
or waits for elements, as between two cells, the clock of the samples stands still.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from flowbook.exec.resources.queue import Reading
from flowbook.exec.session.input_pipeline import (
    NOTHING,
    InputPipeline,
    Look,
    RunnerState,
    Verdict,
    input_pipeline,
)
from flowbook.exec.session.session import Session
from flowbook.graph.model.operation import Operation
from flowbook.widgets.publisher import publisher

EVERY = 0.25  # Seconds from one sample to the next,
MOST = 240  # of which so many are kept.


class Sample(NamedTuple):
    """How queues had been used at a moment.

    Attributes:
        clock: when, in seconds in which something happened.
        readings: of each queue.
    """

    clock: float
    readings: Mapping[Operation, Reading]


class Shown(NamedTuple):
    """What a picture of queues is made of.

    Attributes:
        pipeline: what they did in the time of the samples.
        clocks: of the samples.
        readings: of each queue in the order of the pipeline's, for each sample. The last has the
            fill that the pipeline has: a queue may have been filled since by its runner.
        has_ended: whether the session is closed or gone.
    """

    pipeline: InputPipeline
    clocks: Sequence[float]
    readings: Sequence[Sequence[Reading]]
    has_ended: bool


class PipelineHistory:
    """Samples of what a session's queues do, from when it is made until the session ends.

    Args:
        session: is held weakly.

    Attributes:
        version: grows with everything that is seen to have changed.
        has_ended: whether the session is closed or gone.
    """

    def __init__(self, session: Session) -> None:
        self.version = 0
        self.has_ended = False
        self._session = weakref.ref(session)
        self._watch = session.watch()
        self._lock = threading.Lock()
        self._samples: deque[Sample] = deque(maxlen=MOST)
        self._clock = 0.0
        self._look = self._watch.look()
        # What had been done before is told of until the first minute is over.
        self._clock = max((r.seconds for r in self._look.readings.values()), default=0.0)
        self._samples.append(Sample(self._clock, self._look.readings))
        publisher.add(_Turns(self))

    def catch_up(self) -> None:
        """Look what there is now."""
        with self._lock:
            if self.has_ended:
                return
            session = self._session()
            before, look = self._look, self._watch.look()
            if session is None or session.closed:
                self.has_ended = True
                look = look._replace(runners=_stopped(before.runners, look.readings))
                del self._watch
            self._look = look
            if _is_active(before, look):
                self._add(before, look)
                self.version += 1
            elif self.has_ended or _state(before) != _state(look):
                self.version += 1

    def _add(self, before: Look, look: Look) -> None:
        """Add a sample of what was seen between two looks."""
        passed = look.moment - before.moment
        self._clock += passed
        last = self._samples[-1].readings
        readings = {}
        for queue, reading in look.readings.items():
            # Whoever has waited for room since before a pause has waited for as long as this.
            more = reading.waited_for_room - before.readings.get(queue, NOTHING).waited_for_room
            waited = last.get(queue, NOTHING).waited_for_room + min(more, passed)
            readings[queue] = reading._replace(waited_for_room=waited)
        self._samples.append(Sample(self._clock, readings))

    def sample(self) -> None:
        """Look what there is, if it is time to."""
        if time.monotonic() >= self._look.moment + EVERY:
            self.catch_up()

    def shown(self) -> Shown:
        """What there is to show."""
        with self._lock:
            look, samples = self._look, list(self._samples)
        queues = [place.operation for place in look.places]
        begin = samples[0] if len(samples) == MOST else Sample(0.0, {})
        waited = samples[-1].readings
        readings_now = {
            queue: reading._replace(waited_for_room=waited.get(queue, NOTHING).waited_for_room)
            for queue, reading in look.readings.items()
        }
        look = look._replace(readings=readings_now)
        pipeline = input_pipeline(look, begin.readings, samples[-1].clock - begin.clock)
        if self.has_ended and pipeline.verdict.state == "unused":
            pipeline.verdict = Verdict("unused", "No run has taken an element")  # Nor will one.
        readings = [[each.readings.get(queue, NOTHING) for each in samples] for queue in queues]
        for queue, of_queue in zip(queues, readings, strict=True):
            of_queue[-1] = of_queue[-1]._replace(fill=look.readings[queue].fill)
        return Shown(pipeline, [each.clock for each in samples], readings, self.has_ended)


class _Turns:
    """A history's turns at the publisher, while there is a history.

    Args:
        history: is held weakly.
    """

    def __init__(self, history: PipelineHistory) -> None:
        self._history = weakref.ref(history)

    def publish(self) -> None:
        """Have it look."""
        history = self._history()
        if history is None or history.has_ended:
            publisher.discard(self)
        else:
            history.sample()

    def fail(self, error: Exception) -> None:
        """Nothing more is seen; what was, is shown."""


def _is_active(before: Look, now: Look) -> bool:
    """Whether a training used its input, or may have, between two looks."""
    readings = before.readings
    return now.is_busy or any(
        reading.awaited_since is not None
        or reading.taken != readings.get(queue, NOTHING).taken
        or reading.seconds != readings.get(queue, NOTHING).seconds
        for queue, reading in now.readings.items()
    )


def _state(look: Look) -> tuple[object, ...]:
    """What is shown of a look beside what changes with each element that is taken."""
    shown = {queue: (each.fill, each.is_closed) for queue, each in look.readings.items()}
    waiting = {queue: [w.operation for w in found] for queue, found in look.waiting.items()}
    return look.places, shown, look.runners, waiting


def _stopped(
    runners: Mapping[Operation, Sequence[RunnerState]], readings: Mapping[Operation, Reading]
) -> dict[Operation, list[RunnerState]]:
    """Runners when their session has ended, which may have begun after they were looked at last."""
    return {
        queue: [
            replace(each, running=0, state="stopped")
            if each.state == "runs" or (each.state == "not started" and readings[queue].put)
            else each
            for each in states
        ]
        for queue, states in runners.items()
        if queue in readings
    }
