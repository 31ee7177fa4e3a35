"""Which runs give summaries, and which summaries a run gives.

A summary joins a run that computes all of its inputs anyway: in the same step, never in a second
pass over data. By default only runs that make a step of a training give summaries; others give
them where they are named. What was declared and is not given is said, with how to get it.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from numbers import Integral, Real
from typing import Any

from flowbook.exec.instruments.summaries.event import Sink, Summary
from flowbook.exec.instruments.summaries.history import SummaryHistory
from flowbook.exec.instruments.summaries.log import LogDirectory
from flowbook.exec.instruments.summaries.readers import READERS
from flowbook.exec.plan.watching import Instrument, Tap
from flowbook.exec.signature.fetches import flatten
from flowbook.exec.signature.signature import Signature
from flowbook.graph.building.graph import Graph
from flowbook.graph.model.ancestors import taken_by
from flowbook.graph.model.context import Branch, frame_of
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.summaries import tag_of, trainings_among
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import VARIABLE, Access
from flowbook.graph.storing import files

_NAMED = 3  # Summaries that are named where others are only counted.


class Rule:
    """When which runs give summaries.

    Attributes:
        every: in each so many-th run.
        seconds: after so many seconds.
        fetches: what the runs fetch, by name, which what a cell defines anew takes over; None means
            those that train.
        compute: whether they compute what the runs do not.
        series: what comes before the tags.
        sinks: where the summaries go.
        left_out: the tags that did not join the runs prepared last, and what these do not compute.
        handle: what ends the rule; a cell holds it weakly.
    """

    def __init__(
        self,
        every: int | None,
        seconds: float | None,
        fetches: frozenset[str] | None,
        compute: bool,
        series: str,
        sinks: Sequence[Sink],
    ) -> None:
        self.every = every
        self.seconds = seconds
        self.fetches = fetches
        self.compute = compute
        self.series = series
        self.sinks = sinks
        self.left_out: dict[str, str] = {}
        self.handle: object = None


class Summarizer(Instrument):
    """The instrument that gives summaries; a session has one.

    Args:
        graph: whose summaries.

    Attributes:
        run: the run's id: one for each session, and for each time that its training was redefined.
        history: what was summarised, for showing it.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.run = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
        self.history = SummaryHistory()
        self._trained: set[Operation] = set()
        self._redefinitions = 0
        self._given: set[str] = set()
        self._left_out: dict[str, str] = {}
        self.rules: tuple[Rule, ...] = ()
        self._clocks: dict[tuple[Rule, Signature], _Clock] = {}
        self._training: _Clock | None = None  # That of the training whose summaries came last.
        self._logs: dict[str, LogDirectory] = {}
        self._lock = threading.Lock()

    def add(
        self,
        every: int | None,
        seconds: float | None,
        to: Any,
        fetches: Any,
        series: str | None,
        compute: bool,
    ) -> Rule:
        """Add a rule; see `Session.summarize`."""
        _check_positive("every", every, Integral)
        _check_positive("seconds", seconds, Real)
        if every is None and seconds is None:
            every = 1
        if (fetches is None) != (series is None):
            raise InvalidArgumentError(
                "runs that do not train give summaries under the name of a series",
                hint='sess.summarize(fetches=loss, series="test")',
            )
        wanted = None
        if fetches is not None:
            if not isinstance(series, str) or not series:
                raise InvalidTypeError(f"a series is named by a text, not {series!r:.80}")
            flat = flatten(self.graph, fetches)
            wanted = _names(flat.tensors, flat.targets)
        sinks = [self._sink(item) for item in (to if isinstance(to, list | tuple) else [to])]
        for sink in sinks:
            sink.add_graph(self.run, self.graph)
        prefix = series + "/" if series else ""
        rule = Rule(every, seconds, wanted, bool(compute), prefix, (self.history, *sinks))
        with self._lock:
            self.rules += (rule,)
        self.close_unused_logs()
        return rule

    def _sink(self, item: Any) -> Sink:
        if all(hasattr(item, name) for name in ("add", "add_graph", "flush", "close")):
            return item  # type: ignore[no-any-return]
        path = os.path.abspath(files.as_path(item))
        with self._lock:
            log = self._logs.get(path)
            if log is None:
                log = self._logs[path] = LogDirectory(path)
        return log

    def remove(self, rule: Rule) -> None:
        """Be rid of a rule; what its sinks have is flushed."""
        with self._lock:
            self.rules = tuple(r for r in self.rules if r is not rule)
        for sink in rule.sinks:
            sink.flush()

    def close(self) -> None:
        """Flush and close the logs; nothing is added to the history any more."""
        self.history.close()
        for rule in self.rules:
            for sink in rule.sinks:
                sink.flush()
        self._close_logs()

    def close_unused_logs(self) -> None:
        """Close the logs that no rule writes any more."""
        self._close_logs(without=[sink for rule in self.rules for sink in rule.sinks])

    def _close_logs(self, without: Sequence[Sink] = ()) -> None:
        with self._lock:
            closing = [log for log in self._logs.values() if log not in without]
            self._logs = {path: log for path, log in self._logs.items() if log in without}
        for log in closing:
            # It may have grown since the log was begun.
            log.add_graph(self.run, self.graph)
            log.close()

    def tap(self, signature: Signature, operations: Sequence[Operation]) -> Sequence[Tap]:
        """What the rules take from the runs of a signature."""
        if not self.rules:
            return []
        with self.graph.lock:
            trainings = trainings_among(self.graph.operations)
            summaries = self.graph.summaries()
        needed = set(operations)
        made = [op for op in trainings if op in needed]
        counters = [trainings[op] for op in made or trainings if trainings[op] is not None]
        asked = _names(signature.fetches, signature.targets)
        matching = [
            r for r in self.rules if (bool(made) if r.fetches is None else r.fetches == asked)
        ]
        if not matching:
            self._say(summaries)
            return []
        self._begin_run(made)
        fed = set(signature.feeds)
        counter = counters[-1] if counters else None
        if counter is not None and counter.handle in signature.feeds:
            counter = None
        taps = []
        for rule in matching:
            lacking = _uncomputable if rule.compute else _missing
            missing = {op: lacking(op, needed, fed) for op in summaries}
            joining = [op for op in summaries if missing[op] is None]
            # Its place in the series outlives what was prepared: the graph may grow.
            rule.left_out = {tag_of(op): what for op, what in missing.items() if what is not None}
            self._left_out |= rule.left_out
            self._given.update(map(tag_of, joining))
            clock = self._clock(rule, signature)
            if rule.fetches is None:
                self._training = clock
            if joining:
                step = None if rule.fetches is None else self._trained_steps
                taps.append(_SummaryTap(self.run, rule, clock, joining, counter, step))
        self._say(summaries)
        return taps

    def _trained_steps(self) -> int | None:
        """How many steps of the training have run; None if none gives summaries."""
        return None if self._training is None else self._training.runs

    def _begin_run(self, made: Sequence[Operation]) -> None:
        """Begin a run of its own where a training is another than before: they are two curves."""
        is_redefined = any(op.retired for op in self._trained) and not self._trained.issuperset(
            made
        )
        self._trained = {op for op in self._trained if not op.retired}.union(made)
        if not is_redefined:
            return
        self._redefinitions += 1
        first = self.run if self._redefinitions == 1 else self.run.rpartition("-")[0]
        self.run = f"{first}-{self._redefinitions + 1}"
        author = made[-1].site.author
        where = f" in {author.label}" if author is not None else ""
        self.history.name_run(self.run, f"redefined{where}")
        for sink in {id(sink): sink for rule in self.rules for sink in rule.sinks}.values():
            sink.add_graph(self.run, self.graph)

    def _say(self, summaries: Sequence[Operation]) -> None:
        """Say which of the graph's summaries no run has given, and what gives them."""
        tags = {tag_of(op) for op in summaries}
        lacking = {t: what for t, what in self._left_out.items() if t in tags - self._given}
        remarks = []
        if lacking:
            why = f"for want of {_some(dict.fromkeys(map(repr, lacking.values())))}"
            if not all(rule.compute for rule in self.rules):
                why = "sess.summarize(compute=True) computes what the feeds suffice for"
            remarks.append(f"{len(lacking):,} not computed by these runs: {_some(lacking)} ({why})")
        elif tags and not self._given:
            remarks.append(
                "no run so far is a step of a training; others give summaries where they are "
                'named: sess.summarize(fetches=loss, series="test")'
            )
        self.history.remark(remarks)

    def _clock(self, rule: Rule, signature: Signature) -> _Clock:
        with self._lock:
            # What a cell redefined does not run any more.
            self._clocks = {
                (other, known): clock
                for (other, known), clock in self._clocks.items()
                if other in self.rules
                and not any(t.op.retired for t in (*known.fetches, *known.feeds))
                and not any(op.retired for op in known.targets)
            }
            return self._clocks.setdefault((rule, signature), _Clock(rule.every, rule.seconds))


class _Clock:
    """When the runs of a signature are due."""

    def __init__(self, every: int | None, seconds: float | None) -> None:
        self.runs = 0
        self._every = every
        self._seconds = seconds
        self._latest = -float("inf")
        self._lock = threading.Lock()

    def begin(self) -> int | None:
        """The number of the run that begins, if it is due."""
        with self._lock:
            number = self.runs
            self.runs = number + 1
            now = time.monotonic() if self._seconds is not None else 0.0
            if (self._every is not None and number % self._every == 0) or (
                self._seconds is not None and now - self._latest >= self._seconds
            ):
                self._latest = now
                return number
            return None


class _SummaryTap:
    """What one rule takes from the runs of one signature."""

    def __init__(
        self,
        run: str,
        rule: Rule,
        clock: _Clock,
        operations: Sequence[Operation],
        counter: Any,
        trained: Callable[[], int | None] | None,
    ) -> None:
        self.tensors: Sequence[Tensor] = [t for op in operations for t in op.outputs]
        # The value from before the step: how many updates the parameters have seen.
        if counter is not None:
            self.tensors = [*self.tensors, counter.value]
        self._run = run
        self._rule = rule
        self._clock = clock
        self._operations = [(op, rule.series + tag_of(op)) for op in operations]
        self._has_counter = counter is not None
        self._trained = trained

    def begin(self) -> Callable[[Sequence[Any]], None] | None:
        """What takes the values of the run, if it is due."""
        number = self._clock.begin()
        if number is None:
            return None
        # Beside the curves of a training stand those of other runs, at the steps that it has made.
        trained = None if self._trained is None else self._trained()
        return partial(self._take, number if trained is None else trained)

    def _take(self, number: int, values: Sequence[Any]) -> None:
        now = time.time()
        step = int(values[-1]) if self._has_counter else number
        found: list[Summary] = []
        rest = iter(values)
        for operation, tag in self._operations:
            outputs = [next(rest) for _ in operation.outputs]
            assert operation.op_def.summary is not None
            read = READERS[operation.op_def.summary]
            for name, kind, value in read(operation, tag, *outputs):
                found.append(Summary(self._run, name, kind, step, now, value))
        for sink in self._rule.sinks:
            sink.add(found)


def _names(tensors: Iterable[Tensor], targets: Iterable[Operation]) -> frozenset[str]:
    return frozenset((*(t.name for t in tensors), *(op.name for op in targets)))


def _missing(operation: Operation, needed: set[Operation], fed: set[Tensor]) -> str | None:
    """What it takes that a run of some operations, given some tensors, does not have; None if all.

    What only moves or names data is not missing, nor is the value of a variable that the run uses.
    What is inside of a loop has no single value, and what is in a branch may have none.
    """
    if operation.context is not None:
        place = operation.context
        frame = frame_of(place)
        if frame is not None:
            outside = f"what is outside of the loop {frame.name!r}"
            is_scalar = operation.op_def.summary == "scalar"
            return f"{outside}: last=True shows its last iteration" if is_scalar else outside
        assert isinstance(place, Branch)
        return f"what is outside of the branches of {place.pred.name!r}"
    stack, seen = [operation], {operation}
    while stack:
        op = stack.pop()
        for control in op.control_inputs:
            if control not in needed:
                return control.name
        sources = [tensor.op for tensor in op.inputs if tensor not in fed]
        if op.closed_by is not None:
            # What leaves a loop comes from its last iteration.
            sources.append(op.closed_by)
        for source in sources:
            if source in needed or source in seen:
                continue
            definition = source.op_def
            moves = definition.is_pure and definition.only_moves
            reads = definition.access is Access.READ and len(source.inputs) == 1
            if (not moves and not reads) or definition.must_be_fed:
                return source.name
            seen.add(source)
            stack.append(source)
    return None


def _some(names: Iterable[str]) -> str:
    """The first names of many."""
    listed = list(names)
    return ", ".join(listed[:_NAMED]) + (", ..." if len(listed) > _NAMED else "")


def _uncomputable(operation: Operation, needed: set[Operation], fed: set[Tensor]) -> str | None:
    """What a summary takes that nobody may compute for it beside a run; None if there is no such.

    That is a placeholder without a feed, and whatever does more than read.
    """
    seen: set[Operation] = set()
    stack = [operation]
    while stack:
        op = stack.pop()
        taken = [t.op for t in taken_by(op) if t not in fed]
        for source in (*taken, *op.control_inputs):
            if source in needed or source in seen:
                continue
            seen.add(source)
            definition = source.op_def
            is_free = definition.is_pure or definition.owns == VARIABLE.name
            if definition.must_be_fed or not (is_free or definition.access is Access.READ):
                return source.name
            stack.append(source)
    return None


def _check_positive(name: str, value: Any, kinds: Any) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, kinds):
        raise InvalidTypeError(f"{name} is a number, not {value!r:.80}")
    if not value > 0:
        raise InvalidArgumentError(f"{name} is greater than 0, not {value}")
