"""Runs one row: opens its cases, compares their values, times them in turn (A B A B ...).

The result is a plain dictionary, as `results.json` keeps it; `benchmarks.report` shows it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from itertools import chain
from time import monotonic
from typing import Any

from benchmarks.agreement import disagreements
from benchmarks.case import Above, AtMost, Row
from benchmarks.machine import busy_processors
from benchmarks.remote import CaseUnavailableError, RemoteCase, open_case
from benchmarks.spread import Interval, paired_ratio, share_above, summarize

RowResult = dict[str, Any]
Say = Callable[[str], None]

_QUICK_ROUNDS = 3
_FEWEST_ROUNDS = 3
# A row stops after this many seconds of turns, but never with fewer rounds than the fewest.
_PATIENCE = 150.0


def run_row(row: Row, labels: list[str], *, quick: bool, say: Say) -> RowResult:
    """Measure `labels` of `row` and return what the table needs."""
    unavailable: dict[str, str] = {}
    others_before = busy_processors()
    with ExitStack() as stack:
        cases: dict[str, RemoteCase] = {}
        for label in labels:
            say(f"{row.name}: opening {label}")
            try:
                cases[label] = stack.enter_context(open_case(row, label, quick=quick))
            except CaseUnavailableError as error:
                unavailable[label] = _record_failure(label, error, say)
        values = {label: case.value for label, case in cases.items()}
        differing = disagreements(values, row.rtol, row.atol)
        for label, text in differing.items():
            say(f"{row.name}: VALUE of {label} {text}")
        say(f"{row.name}: timing {', '.join(cases)}")
        failed = _take_turns(cases, _QUICK_ROUNDS if quick else row.rounds)
        for label, failure in failed.items():
            unavailable[label] = _record_failure(label, failure, say)
            del cases[label]
        others_after = busy_processors()
        growth = {label: case.growth() for label, case in cases.items()}
    return {
        "title": row.title,
        "section": row.section,
        "unit": row.unit,
        "target": row.target.describe(row.unit),
        "notes": list(row.notes),
        "measurements": {
            name: summarize([s / row.divisor for s in seconds]).to_json()
            for label, case in cases.items()
            for name, seconds in (
                (label, [*chain(*case.samples)]),
                (f"{label} plain", [*chain(*case.beside)]),
            )
            if seconds
        },
        "unavailable": unavailable,
        "differing": differing,
        "growth": growth if row.shows_growth else {},
        "busy_processors": max(others_before or 0.0, others_after or 0.0),
        "versions": _versions(cases),
        **_verdict(row, cases, differing),
    }


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


def _verdict(row: Row, cases: dict[str, RemoteCase], differing: dict[str, str]) -> RowResult:
    """The ratio to the fastest peer and whether the target is met, where that can be said."""
    verdict: RowResult = {"ratio": None, "best_peer": None, "above": None, "met": None}
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


def _versions(cases: dict[str, RemoteCase]) -> dict[str, dict[str, str]]:
    """Versions by system; variants of a system share an interpreter."""
    return {label.split()[0]: case.versions for label, case in cases.items()}


def _record_failure(label: str, error: CaseUnavailableError, say: Say) -> str:
    """Show all of why a case cannot run; the table gets its first and last line."""
    lines = str(error).strip().splitlines()
    say(f"{label}: {error}")
    return lines[0].rstrip(":") if len(lines) == 1 else f"{lines[0]} {lines[-1]}"
