"""A trace: when each kernel of a session's runs was ready, began and ended, and where.

While a session is traced, its programs are bound to kernels that note when they run
(`engine/recording.py`). What they note is short; the records that a person reads are made of it
afterwards. A session that is not traced runs programs that know nothing of it.
"""

from __future__ import annotations

import threading
import weakref
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from time import perf_counter_ns as clock
from types import MappingProxyType
from typing import Any, NamedTuple

from flowbook.exec.engine.recording import Noted, Recorder, recording
from flowbook.exec.instruments.attached import Instruments
from flowbook.exec.instruments.live_bytes import live_bytes
from flowbook.exec.instruments.trace_file import write_trace
from flowbook.exec.instruments.trace_records import TracedCall, TracedStep, Transfer
from flowbook.exec.placement.measurements import Measured
from flowbook.exec.plan.program import Program
from flowbook.exec.plan.watching import Instrument, Run
from flowbook.exec.report import Report, Table, in_bytes, in_time
from flowbook.graph.building.graph import Graph
from flowbook.graph.model.counted import counted
from flowbook.graph.model.errors import FailedPreconditionError, InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.origin.called import beside, telling_variable
from flowbook.graph.model.origin.site import Site
from flowbook.graph.model.registry import op_keyed
from flowbook.graph.model.whole_numbers import as_whole
from flowbook.graph.ops.communicate.transfer import receive_op, send_op
from flowbook.graph.storing.files import as_path, written_whole

MOST_CALLS = 1_000_000

Learn = Callable[[Iterable[tuple[Operation, str, Measured]]], None]

# So many rows of a trace that is printed as a whole.
_MOST_ROWS = 20


class TimeShare(NamedTuple):
    """What some calls took together; times in nanoseconds.

    Attributes:
        name: what they have in common.
        calls: how many there are.
        busy: how long those ran that are not asynchronous.
        waited: how long the asynchronous ones were under way.
        delay: how long they were ready and did not run yet.
        bytes: the size of their outputs.
        peak: the most bytes that were there in one step, on one device, when one of them ended.
    """

    name: str
    calls: int
    busy: int
    waited: int
    delay: int
    bytes: int
    peak: int


class TimeShares(Report):
    """Where the time of a trace went, those that took most of it first.

    Args:
        of: what the names are, such as "operation".
        shares: by name.
        title: one line that sums the trace up.
        notes: what belongs below the table.
        variables: what stands beside names in the table.
    """

    def __init__(
        self,
        of: str,
        shares: Mapping[str, TimeShare],
        title: str,
        notes: Sequence[str] = (),
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.of = of
        self.shares = shares
        self._variables = variables
        self._title = title
        self._notes = notes

    def __getitem__(self, name: str) -> TimeShare:
        return self.shares[name]

    @property
    def table(self) -> Table:
        """A row for each name."""
        return self.first(len(self.shares))

    def first(self, count: int) -> Table:
        """The table of those that took most of the time."""
        rows = [
            (beside(self._variables.get(s.name, ""), s.name),
             f"{s.calls:,}", in_time(s.busy), f"{s.busy / total:.0%}",
             in_time(s.waited), in_time(s.delay), in_bytes(s.bytes), in_bytes(s.peak))
            for total in [sum(s.busy for s in self.shares.values()) or 1]
            for s in list(self.shares.values())[:count]
        ]  # fmt: skip
        left = len(self.shares) - len(rows)
        more = [f"and {left:,} more"] if left else []
        headings = (self.of, "calls", "busy", "share", "waited", "delay", "bytes", "peak")
        return Table(self._title, headings, rows, [*more, *self._notes], range(1, len(headings)))


class Timing(Instrument):
    """Has programs note when their kernels run; it is the same for all traces."""

    rewrites = True

    def rewritten(self, program: Program, has_late_feeds: bool) -> Program:
        """The program, timed."""
        return program._replace(parts=tuple([p._replace(is_timed=True) for p in program.parts]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timing)

    def __hash__(self) -> int:
        return hash(Timing)


class Trace(Instrument, Report):
    """The instrument behind `Session.trace`; as a context manager it ends with the block.

    What was traced stays when it has ended, also if the block ended with an error.

    Args:
        instruments: those of the session.
        learn: a method that is told what operations took when it ends; it is held weakly.
        most_calls: so many calls of kernels are kept; the rest is counted.
    """

    def __init__(self, instruments: Instruments, learn: Learn, most_calls: int) -> None:
        self._instruments = instruments
        self._learn = weakref.WeakMethod(learn)
        self._operations: weakref.WeakValueDictionary[int, Operation] = (
            weakref.WeakValueDictionary()
        )
        self._timing = Timing()
        self._recorder = Recorder(most_calls)
        self._lock = threading.Lock()
        self._steps: list[TracedStep] = []
        self._steps_dropped = 0
        self._names: dict[int, str] = {}
        self._sites: dict[str, Site] = {}
        self._graph: weakref.ref[Graph] | None = None
        self._threads: dict[int, str] = {}
        self._calls: list[TracedCall] = []

    # As an instrument

    def around(self, operations: Mapping[int, Operation], run: Run) -> Run:
        """Runs whose kernels' calls are taken down."""
        for number, op in operations.items():
            self._names[number] = op.name
            self._operations[number] = op
            self._sites[op.name] = op.site
            self._graph = weakref.ref(op.graph)

        def traced(prepared: Any, feeds: Sequence[Any], deadline: float | None) -> Sequence[Any]:
            number = self._begin()
            if number is None:
                return run(prepared, feeds, deadline)
            token = recording.set((self._recorder, number))
            try:
                found = run(prepared, feeds, deadline)
                self._recorder.settle()
                return found
            finally:
                recording.reset(token)
                self._steps[number] = self._steps[number]._replace(end=clock())

        return traced

    def _begin(self) -> int | None:
        """Begin a step; None if there is no room for it."""
        thread = threading.current_thread()
        with self._lock:
            if (
                len(self._recorder) >= self._recorder.most
                or len(self._steps) >= self._recorder.most
            ):
                self._steps_dropped += 1
                return None
            assert thread.ident is not None
            self._threads[thread.ident] = thread.name
            self._steps.append(TracedStep(len(self._steps), thread.name, clock(), None))
            return len(self._steps) - 1

    def begin(self, present: tuple[Instrument, ...]) -> tuple[Instrument, ...]:
        """The instruments of the session with this trace.

        Raises:
            FailedPreconditionError: if it is traced already.
        """
        if any(isinstance(each, Trace) for each in present):
            raise FailedPreconditionError(
                "the session is being traced already", hint="end that trace with its remove()"
            )
        return (*present, self._timing, self)

    def remove(self) -> None:
        """Trace no more runs; what was traced stays, and plans are made by it from now on."""
        self._instruments.remove(self._timing)
        self._instruments.remove(self)
        learn = self._learn()
        if learn is not None:
            learn(self._measured())

    def _measured(self) -> Iterator[tuple[Operation, str, Measured]]:
        """What each operation took on each device."""
        calls: dict[tuple[int, str], list[Noted]] = defaultdict(list)
        for call in self._recorder.calls():
            node = call.place.node
            if node.sources and not op_keyed(node.type).is_async:
                calls[node.sources[0], call.place.device].append(call)
        for (number, device), found in calls.items():
            operation = self._operations.get(number)
            if operation is not None:
                fastest = min(found, key=lambda call: call.end - call.start)
                trips = round(len(found) / len({call.step for call in found}))
                seconds = (fastest.end - fastest.start) * 1e-9
                yield operation, device, Measured(seconds, fastest.size, trips)

    def __enter__(self) -> Trace:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    # What was traced

    @property
    def steps(self) -> Sequence[TracedStep]:
        """The runs, in the order in which they began."""
        return tuple(self._steps)

    @property
    def dropped(self) -> int:
        """How many calls of kernels were not kept, as there was no room for them."""
        return self._recorder.dropped

    @property
    def calls(self) -> Sequence[TracedCall]:
        """The calls of kernels that have ended, in the order in which they began."""
        if len(self._recorder) != len(self._calls):
            self._calls = self._described(self._recorder.calls())
        return tuple(self._calls)

    @property
    def transfers(self) -> Sequence[Transfer]:
        """The values that went from one device to another and have arrived.

        Of several under one key, as in a loop, the first sent is the first received.
        """
        calls = self.calls
        return [Transfer(calls[sent], calls[received]) for sent, received in exchanges(calls)]

    @property
    def graph(self) -> Graph | None:
        """The graph whose operations were traced; None if none was, or if it is no more."""
        return None if self._graph is None else self._graph()

    @property
    def sites(self) -> Mapping[str, Site]:
        """Where the operations were defined, by their names."""
        return self._sites

    @property
    def variables(self) -> Mapping[str, str]:
        """The Python variables that operations' values have, by the names of the operations.

        Only those that say what the names do not.
        """
        operations = () if self.graph is None else self.graph.operations
        found = {op.name: telling_variable(op) for op in operations if op.name in self._sites}
        return {name: variable for name, variable in found.items() if variable}

    def _described(self, noted: Sequence[Noted]) -> list[TracedCall]:
        ended: dict[tuple[int, int, int], int] = {}
        ran: Counter[tuple[int, int, int]] = Counter()
        threads = self._thread_names(noted)
        found = []
        noted = sorted(noted, key=lambda call: call.start)
        for each, live in zip(noted, live_bytes(noted), strict=True):
            place, key = each.place, (each.step, each.place.part, each.place.number)
            needs = [ended.get((each.step, place.part, number)) for number in place.needs]
            found.append(self._call(each, live, ran[key], self._ready(each, needs), threads))
            ended[key] = each.end
            ran[key] += 1
        return found

    def _ready(self, call: Noted, needs: Sequence[int | None]) -> int:
        """When the last that a call needs had ended."""
        ready = self._steps[call.step].start
        for end in needs:
            if end is None:
                return call.start
            ready = max(ready, end)
        return min(ready, call.start)

    def _call(
        self, call: Noted, live: int, iteration: int, ready: int, threads: Mapping[int, str]
    ) -> TracedCall:
        node = call.place.node
        return TracedCall(
            node.name,
            tuple([self._names.get(source, node.name) for source in node.sources]),
            node.type,
            call.step,
            iteration,
            call.place.device,
            threads.get(call.thread, "thread"),
            ready,
            call.start,
            call.end,
            call.size,
            live,
            op_keyed(node.type).is_async,
            node.attributes["key"] if node.type in (send_op.key, receive_op.key) else "",
        )

    def _thread_names(self, noted: Iterable[Noted]) -> dict[int, str]:
        """The names of threads by their numbers, no two of them equal."""
        found: dict[int, str] = {}
        used: Counter[str] = Counter()
        alive = {each.ident: each.name for each in threading.enumerate()}
        for call in noted:
            if call.thread not in found:
                name = self._threads.get(call.thread) or alive.get(call.thread, "ended thread")
                used[name] += 1
                found[call.thread] = name if used[name] == 1 else f"{name} {used[name]}"
        return found

    # Tables and files

    def by_operation(self) -> TimeShares:
        """Where the time went, by operation; what stands for several counts under the first."""
        return self._shares("operation", lambda call: call.operation, self.variables)

    def by_scope(self, depth: int = 1) -> TimeShares:
        """Where the time went, by name scope; what is in none has an empty name.

        Args:
            depth: how many levels of scopes are told apart.
        """
        if (as_whole(depth) or 0) < 1:
            raise InvalidArgumentError(f"depth is a number of levels from 1 on, not {depth!r}")
        return self._shares("scope", lambda call: scope_of(call, depth))

    def by_device(self) -> TimeShares:
        """Where the time went, by device."""
        return self._shares("device", lambda call: call.device)

    def _shares(
        self,
        of: str,
        name_of: Callable[[TracedCall], str],
        variables: Mapping[str, str] | None = None,
    ) -> TimeShares:
        groups: dict[str, list[TracedCall]] = defaultdict(list)
        for call in self.calls:
            groups[name_of(call)].append(call)
        shares = [_share(name, calls) for name, calls in groups.items()]
        shares.sort(key=lambda share: (-share.busy, -share.waited, share.name))
        return TimeShares(
            of, {s.name: s for s in shares}, self._title(), self._notes(), variables or {}
        )

    def _title(self) -> str:
        calls = len(self.calls)
        return f"{counted(len(self._steps), 'step')}, {counted(calls, 'call')} of kernels"

    def _notes(self) -> list[str]:
        notes = []
        if self._recorder.dropped or self._steps_dropped:
            notes.append(
                f"not kept, for want of room: {counted(self._recorder.dropped, 'call')}, and "
                f"{counted(self._steps_dropped, 'step')} with all of theirs"
            )
        return notes

    @property
    def table(self) -> Table:
        """The operations that took most of the time."""
        return self.by_operation().first(_MOST_ROWS)

    def save(self, path: Any) -> None:
        """Write the trace as a file that Perfetto and chrome://tracing open.

        The format is that of Chrome's trace events: each device is a process, with a lane for each
        thread; steps have a process of their own; arrows lead from what was sent to where it was
        received.

        Args:
            path: the file's name, such as "trace.json".
        """
        with written_whole(as_path(path)) as file:
            write_trace(self.steps, self.calls, self.transfers, file)


def exchanges(calls: Sequence[TracedCall]) -> list[tuple[int, int]]:
    """Which calls sent a value that another one received, each by its place among all."""
    sent: dict[tuple[int, str], list[int]] = defaultdict(list)
    for place, call in enumerate(calls):
        if call.type == send_op.key:
            sent[call.step, call.key].append(place)
    return [
        (sent[call.step, call.key][call.iteration], place)
        for place, call in enumerate(calls)
        if call.type == receive_op.key and call.iteration < len(sent[call.step, call.key])
    ]


def scope_of(call: TracedCall, depth: int) -> str:
    """The name scope of a call, of so many levels at most; empty if it is in none."""
    # What exchanges a tensor has its name first.
    return "/".join(call.operation.partition(":")[0].split("/")[:-1][:depth])


def _share(name: str, calls: Sequence[TracedCall]) -> TimeShare:
    return TimeShare(
        name,
        len(calls),
        sum(call.duration for call in calls if not call.waits),
        sum(call.duration for call in calls if call.waits),
        sum(call.delay for call in calls),
        sum(call.bytes for call in calls),
        max(call.live for call in calls),
    )


def trace(instruments: Instruments, learn: Learn, most_calls: int) -> Trace:
    """Trace a session; see `Session.trace`."""
    if (as_whole(most_calls) or 0) < 1:
        raise InvalidArgumentError(f"most_calls is a positive integer, not {most_calls!r}")
    made = Trace(instruments, learn, most_calls)
    instruments.exchange(made.begin)
    return made
