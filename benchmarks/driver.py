"""Runs one row: opens its cases, compares their values, times them in turn (A B A B ...).

The result is a plain dictionary, as `results.json` keeps it; `benchmarks.report` shows it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain
from time import monotonic
from typing import Any

import numpy as np

from benchmarks.agreement import disagreements
from benchmarks.busy import busy_processes
from benchmarks.case import Above, AtMost, Near, Row
from benchmarks.machine import busy_processors
from benchmarks.remote import CaseUnavailableError, RemoteCase, open_case
from benchmarks.spread import Interval, paired_ratio, share_above, summarize

RowResult = dict[str, Any]
Say = Callable[[str], None]

_QUICK_ROUNDS = 3
_FEWEST_ROUNDS = 3
# A row stops after this many seconds of turns, but never with fewer rounds than the fewest.
_PATIENCE = 150.0


@dataclass
class _Measured:
    """One case in all of its processes: the samples of each round, and what else is told of it."""

    samples: list[list[float]] = field(default_factory=list)
    beside: list[list[float]] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    growth: int | None = None
    predicted: float | None = None

    def add(self, case: RemoteCase) -> None:
        """Take over what one process measured."""
        self.samples += case.samples
        self.beside += case.beside
        self.versions = case.versions
        self.predicted = case.predicted
        self.growth = case.growth()


@dataclass
class _Found:
    """Of a row's labels: what was measured, why one was not, and how its value differs."""

    measured: dict[str, _Measured] = field(default_factory=dict)
    unavailable: dict[str, str] = field(default_factory=dict)
    differing: dict[str, str] = field(default_factory=dict)


def run_row(row: Row, labels: list[str], *, quick: bool, say: Say) -> RowResult:
    """Measure `labels` of `row` and return what the table needs."""
    found = _Found()
    others_before = busy_processors()
    rounds = _QUICK_ROUNDS if quick else row.rounds
    for rounds_of_these in map(len, np.array_split(np.arange(rounds), row.processes)):
        wanted = [label for label in labels if label not in found.unavailable]
        _open_and_measure(row, wanted, rounds_of_these, found, quick=quick, say=say)
    measured = {k: m for k, m in found.measured.items() if k not in found.unavailable}
    others_after = busy_processors()
    return {
        "title": row.title,
        "section": row.section,
        "unit": row.unit,
        "target": row.target.describe(row.unit),
        "notes": list(row.notes),
        "measurements": {
            name: summarize([s / row.divisor for s in seconds]).to_json()
            for label, one in measured.items()
            for name, seconds in (
                (label, [*chain(*one.samples)]),
                (f"{label} plain", [*chain(*one.beside)]),
            )
            if seconds
        },
        "unavailable": found.unavailable,
        "differing": found.differing,
        "growth": {k: m.growth for k, m in measured.items()} if row.shows_growth else {},
        "busy_processors": max(others_before or 0.0, others_after or 0.0),
        # By system; variants of a system share an interpreter.
        "versions": {label.split()[0]: one.versions for label, one in measured.items()},
        **_verdict(row, measured, found.differing),
    }


def _open_and_measure(
    row: Row, labels: list[str], rounds: int, found: _Found, *, quick: bool, say: Say
) -> None:
    """Give each label a process, compare their values, and let them take their turns."""
    with ExitStack() as stack:
        cases: dict[str, RemoteCase] = {}
        for label in labels:
            say(f"{row.name}: opening {label}")
            try:
                cases[label] = stack.enter_context(open_case(row, label, quick=quick))
            except CaseUnavailableError as error:
                found.unavailable[label] = _record_failure(label, error, say)
        values = {label: case.value for label, case in cases.items()}
        differing = disagreements(values, row.rtol, row.atol)
        for label, text in differing.items():
            say(f"{row.name}: VALUE of {label} {text}")
        found.differing |= differing
        say(f"{row.name}: timing {', '.join(cases)}")
        with busy_processes(row.busy):
            failures = _take_turns(cases, rounds)
        for label, failure in failures.items():
            found.unavailable[label] = _record_failure(label, failure, say)
            del cases[label]
        for label, case in cases.items():
            found.measured.setdefault(label, _Measured()).add(case)


def _take_turns(cases: dict[str, RemoteCase], rounds: int) -> dict[str, CaseUnavailableError]:
    """Warm the cases up and sample each once per round; return those that failed, and how."""
    failed: dict[str, CaseUnavailableError] = {}

    def everyone(request: Callable[[RemoteCase], None]) -> None:
        for label, case in cases.items():
            if label not in failed:
                try:
                    request(case)
                except CaseUnavailableError as error:
                    failed[label] = error

    everyone(RemoteCase.warm_up)
    start = monotonic()
    for done in range(rounds):
        if done < _FEWEST_ROUNDS or monotonic() - start < _PATIENCE:
            everyone(RemoteCase.sample)
    return failed


def _verdict(row: Row, cases: dict[str, _Measured], differing: dict[str, str]) -> RowResult:
    """The ratio to the fastest peer and whether the target is met, where that can be said."""
    verdict: RowResult = {
        "ratio": None,
        "best_peer": None,
        "above": None,
        "predicted": None,
        "met": None,
    }
    if "flowbook" not in cases or differing:
        return verdict
    ours = cases["flowbook"]
    our_time = summarize(list(chain(*ours.samples))).median / row.divisor
    peers = {
        label: summarize(list(chain(*case.samples))).median
        for label, case in cases.items()
        if not label.startswith("flowbook") and label not in row.not_compared
    }
    if peers:
        best = min(peers, key=lambda label: peers[label])
        ratio = paired_ratio(ours.samples, cases[best].samples)
        verdict.update(ratio=ratio.to_json(), best_peer=best)
    if isinstance(row.target, Above):
        above = share_above(ours.samples, ours.beside)
        verdict.update(above=above.to_json(), met=_decided(above, row.target.share))
    elif isinstance(row.target, Near):
        # What else runs on the machine only makes steps slower, and no prediction knows of it.
        predicted = (ours.predicted or 0.0) / min(chain(*ours.samples))
        verdict.update(predicted=predicted, met=abs(predicted - 1) <= row.target.share)
    elif isinstance(row.target, AtMost):
        verdict["met"] = our_time <= row.target.seconds
    elif row.target.of in cases:
        against = paired_ratio(ours.samples, cases[row.target.of].samples)
        verdict["met"] = against.median <= row.target.factor
    return verdict


def _decided(found: Interval, bound: float) -> bool | None:
    """Whether it is below the bound; None if the interval holds it."""
    if found.low <= bound < found.high:
        return None
    return found.high <= bound


def _record_failure(label: str, error: CaseUnavailableError, say: Say) -> str:
    """Show all of why a case cannot run; the table gets its first and last line."""
    lines = str(error).strip().splitlines()
    say(f"{label}: {error}")
    return lines[0].rstrip(":") if len(lines) == 1 else f"{lines[0]} {lines[-1]}"
