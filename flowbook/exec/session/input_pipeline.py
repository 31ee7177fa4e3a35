"""What a session's queues do: whether a training waits for its input, and what the input waits for.

Queues count what goes through them and for how long somebody has waited, on each side
(`flowbook/exec/resources/queue.py`). Everything here is computed from two such readings, and from
the graph, which says who fills a queue and who takes from it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from flowbook.exec.report import Report, Table, in_seconds, scaled
from flowbook.exec.resources.queue import Queue, Reading
from flowbook.graph.building.graph import Graph
from flowbook.graph.model.ancestors import ancestors
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.queue_runners import rounds_of, runners_of
from flowbook.graph.model.touch import resource_kind

if TYPE_CHECKING:
    from flowbook.exec.master import Monitor

NOTHING = Reading(0, 0, 0, 0.0, 0.0, 0.0, None, False)
_KEEPS_UP = 0.05  # A training that waits for less of the time does not wait for its input.
_MOSTLY = 0.5  # Who waits for more of the time is held up by what it waits for.


@dataclass(frozen=True)
class Waiting:
    """An operation that waits.

    Attributes:
        operation: its name.
        place: where it was defined.
        wish: what for, such as "waits for an element of queue 'q'".
        seconds: for how long.
        is_for_room: whether it would put something in, rather than take something out.
        is_runners: whether a runner runs it, rather than a run of one's own.
    """

    operation: str
    place: str
    wish: str
    seconds: float
    is_for_room: bool
    is_runners: bool

    def __str__(self) -> str:
        who = "a runner" if self.is_runners else "a run"
        what = "room" if self.is_for_room else "elements"
        return f"{who} waits for {what}: {self.operation!r}, {self.place}"


@dataclass(frozen=True)
class RunnerState:
    """What a queue's runner does.

    Attributes:
        name: its operation's name.
        threads: how many threads it has.
        running: how many of them have not come to their end.
        state: "runs", "not started", "ended", "stopped" or "failed".
        error: why it failed; empty if it did not.
    """

    name: str
    threads: int
    running: int
    state: str
    error: str = ""

    def __str__(self) -> str:
        if self.error:
            return f"failed: {self.error}"
        if self.state == "runs" and self.threads > 1:
            return f"{self.running} of {self.threads} threads run"
        return self.state


@dataclass(frozen=True)
class QueueUse:
    """How a queue is used.

    Attributes:
        name: the Python variable that it was assigned to, where its line tells, or its operation's.
        operation: its operation's name.
        kind: its operation's type.
        place: where it was defined.
        capacity: how many elements it holds at most; -1 if there is no limit, 0 if who takes one
            makes it.
        fill: how many it holds.
        put: how many were put in, in all.
        taken: how many were taken out, in all.
        seconds: the time that what follows is about; 0 if nobody has asked for an element.
        put_rate: how many were put in, a second.
        taken_rate: how many were taken out, a second.
        room_share: for which part of the time somebody waited to put something in.
        element_share: for which part of the time somebody waited to take something out.
        feeds_training: whether runs of one's own take from it, and not only other queues' runners.
        is_closed: whether it admits no more.
        runners: what fills it.
        waiting: what waits at it.
    """

    name: str
    operation: str
    kind: str
    place: str
    capacity: int
    fill: int
    put: int
    taken: int
    seconds: float
    put_rate: float
    taken_rate: float
    room_share: float
    element_share: float
    feeds_training: bool
    is_closed: bool
    runners: Sequence[RunnerState]
    waiting: Sequence[Waiting]


class Verdict(NamedTuple):
    """The answer to whether a training waits for its input.

    Attributes:
        state: "waits", "keeps up", "failed", "unused" or "empty".
        text: the answer.
        detail: what there is to say beside; may be empty.
    """

    state: str
    text: str
    detail: str = ""


class InputPipeline(Report):
    """What a session's queues do, from those that are filled first to those that a training uses.

    It prints as a table.

    Attributes:
        verdict: whether the training waits for its input, and why: `.state`, `.text`, `.detail`.
        queues: how each queue is used, as `QueueUse`.
    """

    def __init__(self, verdict: Verdict, queues: Sequence[QueueUse]) -> None:
        self.verdict = verdict
        self.queues = list(queues)

    @property
    def table(self) -> Table:
        """The queues, a row each."""
        headings = ["queue", "fill", "in /s", "out /s", "waits for room", "for elements", "runner"]
        rows = [
            [
                use.name,
                str(use.fill) if use.capacity < 0 else f"{use.fill} of {use.capacity}",
                scaled(use.put_rate).rstrip(),
                scaled(use.taken_rate).rstrip(),
                percent(use.room_share),
                percent(use.element_share),
                "; ".join(map(str, use.runners)) or ("none" if use.capacity else "not needed"),
            ]
            for use in self.queues
        ]
        notes = [self.verdict.detail] if self.verdict.detail else []
        return Table(self.verdict.text, headings, rows, notes, range(1, 6))


class QueuePlace(NamedTuple):
    """A queue in its graph.

    Attributes:
        operation: what owns it.
        name: what it is called.
        runners: what fills it.
        sources: the queues that its runners take from.
        feeds_training: whether something else than runners takes from it.
    """

    operation: Operation
    name: str
    runners: Sequence[Operation]
    sources: Sequence[Operation]
    feeds_training: bool


class Look(NamedTuple):
    """What is seen of a session's queues at a moment.

    Attributes:
        moment: when, on the clock of `time.monotonic`.
        places: the queues, each before those that are filled from it.
        readings: how each has been used.
        runners: what the runners of each do.
        waiting: what waits at each.
        is_busy: whether a step is under way that may take elements, and is no runner's.
    """

    moment: float
    places: Sequence[QueuePlace]
    readings: Mapping[Operation, Reading]
    runners: Mapping[Operation, Sequence[RunnerState]]
    waiting: Mapping[Operation, Sequence[Waiting]]
    is_busy: bool


class Watch:
    """Looks at the queues of a session.

    Args:
        graph: the session's graph.
        monitor: sees what goes on in it.
    """

    def __init__(self, graph: Graph, monitor: Monitor) -> None:
        self._graph = graph
        self._monitor = monitor
        self._version = -1
        self._places: Sequence[QueuePlace] = ()
        self._of_runners: frozenset[Operation] = frozenset()
        self._queues: dict[Operation, Queue] = {}

    def find(self) -> None:
        """Find the queues that there are, to look at them when the session has ended too."""
        if self._version != self._graph.version:
            self._version = self._graph.version
            self._places, self._of_runners = queue_places(self._graph)
            live = {place.operation for place in self._places}
            self._queues = {op: queue for op, queue in self._queues.items() if op in live}
        for place in self._places:
            key = place.operation.key
            found = self._monitor.find(key) if key is not None else None
            if isinstance(found, Queue):
                self._queues[place.operation] = found

    def look(self) -> Look:
        """What there is to see now."""
        self.find()
        moment = time.monotonic()
        monitor = self._monitor
        readings, runners = {}, {}
        waiting: dict[Operation, list[Waiting]] = {}
        for place in self._places:
            queue = place.operation
            known = self._queues.get(queue)
            readings[queue] = known.reading() if known is not None else NOTHING
            runners[queue] = [self._state(runner) for runner in place.runners]
            waiting[queue] = []
        for waiter in monitor.waiters():
            operation = waiter.operation
            each = Waiting(
                operation.name,
                operation.site.place,
                waiter.wish,
                max(0.0, moment - waiter.since),
                not _takes(operation),
                operation in self._of_runners,
            )
            for queue in waiter.queues:
                waiting.setdefault(queue, []).append(each)
        is_busy = monitor.under_way > monitor.feeding.running
        return Look(moment, self._places, readings, runners, waiting, is_busy)

    def _state(self, runner: Operation) -> RunnerState:
        threads = len(rounds_of(runner))
        feeder = self._monitor.feeding.feeder(runner)
        if feeder is None:
            return RunnerState(runner.name, threads, 0, "not started")
        if feeder.error is not None:
            return RunnerState(runner.name, threads, 0, "failed", feeder.error.message)
        state = "runs" if feeder.is_running else "stopped" if feeder.closed else "ended"
        return RunnerState(runner.name, threads, feeder.running, state)


def queue_places(graph: Graph) -> tuple[list[QueuePlace], frozenset[Operation]]:
    """The live queues of a graph, in the order of their construction, and what runners run."""
    queues = [op for op in graph.operations if _is_queue(op) and not op.retired]
    runners = {queue: runners_of(queue) for queue in queues}
    needed = {
        queue: {op for runner in found for turn in rounds_of(runner) for op in _needed(turn)}
        for queue, found in runners.items()
    }
    of_runners = frozenset(op for found in needed.values() for op in found)
    places = []
    for queue in queues:
        takers = _takers(queue)
        sources = [
            other for other in queues if other is not queue and needed[queue] & _takers(other)
        ]
        is_outlet = any(taker not in of_runners for taker in takers)
        name = queue_name(queue)
        places.append(QueuePlace(queue, name, runners[queue], sources, is_outlet))
    return places, of_runners


def _needed(operation: Operation) -> set[Operation]:
    return ancestors(operation, by_control=True)


def _takers(queue: Operation) -> set[Operation]:
    found = queue.outputs[0].consumers()
    return {op for op in found if _takes(op) and not op.retired}


def _takes(operation: Operation) -> bool:
    touch = operation.op_def.touches
    return touch is not None and touch.takes


def _is_queue(operation: Operation) -> bool:
    kind = operation.op_def.owns
    return kind is not None and resource_kind(kind).is_queue


def queue_name(queue: Operation) -> str:
    """What a queue is called: the variable that gets it or what comes of it, or its own name."""
    targets = queue.site.targets
    if len(targets) == 1:
        return targets[0]
    scope, _, last = queue.name.rpartition("/")
    return scope if scope and last.startswith("queue") else queue.name


def input_pipeline(
    look: Look,
    before: Mapping[Operation, Reading] | None = None,
    seconds: float | None = None,
) -> InputPipeline:
    """What the queues do.

    Args:
        look: what there is.
        before: how they had been used when the time began that is told of; None is from their
            beginning on.
        seconds: how long that was; None is for each from the first element that was asked for to
            the last.
    """
    uses = {place.operation: _use(place, look, before or {}, seconds) for place in look.places}
    return InputPipeline(_verdict(look, uses), list(uses.values()))


def _use(
    place: QueuePlace, look: Look, before: Mapping[Operation, Reading], seconds: float | None
) -> QueueUse:
    queue = place.operation
    now, then = look.readings[queue], before.get(queue, NOTHING)
    span = now.seconds if seconds is None else seconds
    if not now.taken and not now.seconds and now.awaited_since is None:
        span = 0.0  # Nobody has asked for anything.

    def per_second(amount: float) -> float:
        return amount / span if span > 0 else 0.0

    return QueueUse(
        name=place.name,
        operation=queue.name,
        kind=queue.type,
        place=queue.site.place,
        capacity=queue.attributes["capacity"],
        fill=now.fill,
        put=now.put,
        taken=now.taken,
        seconds=span,
        put_rate=per_second(now.put - then.put),
        taken_rate=per_second(now.taken - then.taken),
        room_share=min(1.0, per_second(now.waited_for_room - then.waited_for_room)),
        element_share=min(1.0, per_second(now.waited_for_elements - then.waited_for_elements)),
        feeds_training=place.feeds_training,
        is_closed=now.is_closed,
        runners=look.runners[queue],
        waiting=look.waiting.get(queue, ()),
    )


def _verdict(look: Look, uses: Mapping[Operation, QueueUse]) -> Verdict:
    if not uses:
        return Verdict("empty", "There are no queues yet", "What the graph gains appears here.")
    for use in uses.values():
        for runner in use.runners:
            if runner.error:
                return Verdict("failed", f"The runner of queue {use.name!r} failed: {runner.error}")
    outlets = [use for use in uses.values() if use.feeds_training and use.seconds]
    if not outlets:
        return Verdict(
            "unused", "No run has taken an element yet", "Queues are filled from the first run on."
        )
    worst = max(outlets, key=lambda use: use.element_share)
    share = percent(worst.element_share)
    end = "The input has come to its end." if worst.is_closed and not worst.fill else ""
    if worst.element_share < _KEEPS_UP:
        text = f"Input keeps up: training waits for it {share} of the time"
        return Verdict("keeps up", text, end or _slack(worst))
    place = next(each for each in look.places if uses[each.operation] is worst)
    reason = _reason(place, look, uses)
    return Verdict("waits", f"Training waits for input {share} of the time: {reason}", end)


def _slack(use: QueueUse) -> str:
    if use.room_share < _KEEPS_UP:
        return ""
    return f"What fills queue {use.name!r} waits for room {percent(use.room_share)} of the time."


def _reason(place: QueuePlace, look: Look, uses: Mapping[Operation, QueueUse]) -> str:
    """Why a training waits at a queue: what fills it is slow, or waits at another queue in turn."""
    places = {each.operation: each for each in look.places}
    reason, runner, none = (
        f"queue {place.name!r} runs empty",
        "; its runner",
        "; no runner fills it",
    )
    link = "as its runner"
    seen = {place.operation}
    while place.sources:
        source = max(place.sources, key=lambda each: uses[each].element_share)
        if uses[source].element_share < _MOSTLY or source in seen:
            break
        seen.add(source)
        place = places[source]
        reason += f", {link} waits for queue {place.name!r}"
        link, runner, none = "whose runner", ", whose runner", ", which no runner fills"
    use = uses[place.operation]
    if not use.capacity:
        each = in_seconds(use.element_share / use.taken_rate)
        return (
            f"each run makes its element of queue {place.name!r} itself, in {each}; `prefetch` has "
            "a thread make some ready"
        )
    if not use.runners:
        return reason + none
    made = use.put_rate * use.seconds
    if made < 1:
        return f"{reason}{runner} has given nothing meanwhile"
    waited = use.room_share + sum(uses[source].element_share for source in place.sources)
    each = in_seconds(max(0.0, 1 - waited) / use.put_rate)
    if sum(state.threads for state in use.runners) > 1:
        return f"{reason}{runner} gives an element every {each}"
    return f"{reason}{runner} takes {each} an element"


def percent(share: float) -> str:
    """A part of the time, such as "63 %"; what is not nothing is not said to be nothing."""
    if 0 < share < 0.005:
        return "<1 %"
    return f"{100 * share:.0f} %"
