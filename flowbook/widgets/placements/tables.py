"""What plans of a run say, as tables: devices, reasons, what differs, what was measured."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from flowbook.exec.instruments.trace import Trace
from flowbook.exec.plan.explanation import Explanation, Planned
from flowbook.exec.report import Table, in_seconds
from flowbook.graph.model.counted import counted
from flowbook.graph.model.origin.called import called
from flowbook.widgets.graphs.overlay import short_names
from flowbook.widgets.graphs.plan_overlay import busy, devices_of, why
from flowbook.widgets.graphs.trace_overlay import measured, step_seconds
from flowbook.widgets.shown_text import shown_text
from flowbook.widgets.tables import table_html

_MOST = 20  # Rows of one table,
_MOST_NAMED = 3  # and operations named in one.


def tables_html(plans: Sequence[Explanation], trace: Trace | None) -> str:
    """The tables as HTML; what is long is folded up."""
    parts = [table_html(plan.table) for plan in plans]
    if len(plans) > 1:
        parts.append(table_html(differences(*plans)))
    folded = [against_trace(plans[0], trace)] if trace is not None else []
    folded += [reasons(plan) for plan in plans]
    for table in filter(lambda each: each.rows, folded):
        summary = f"<summary>{shown_text(table.title)}</summary>"
        parts.append(f"<details>{summary}{table_html(table, '')}</details>")
    return "\n".join(parts)


def tables_text(plans: Sequence[Explanation], trace: Trace | None) -> str:
    """The tables as text, without the reasons: these are many."""
    tables = [plan.table for plan in plans]
    if len(plans) > 1:
        tables.append(differences(*plans))
    if trace is not None:
        tables.append(against_trace(plans[0], trace))
    return "\n\n".join(map(str, tables))


def reasons(plan: Explanation) -> Table:
    """Why operations run where they do: those of one reason together, most time first."""
    names = short_names(list(plan.loads))
    groups: dict[tuple[str, str, str], list[tuple[str, Planned]]] = defaultdict(list)
    for op, each in plan.operations.items():
        ruled_out = {} if each.decision is None else each.decision.ruled_out
        ruled = "; ".join(f"{names[device]} {what}" for device, what in ruled_out.items())
        groups[names[each.device], why(each), ruled].append((called(op), each))
    rows = [
        (device, reason, ruled, _named([name for name, _ in found]), in_seconds(_seconds(found)))
        for (device, reason, ruled), found in sorted(
            groups.items(), key=lambda item: (-_seconds(item[1]), item[0])
        )
    ]
    left = len(rows) - _MOST
    return Table(
        f"Why operations run where they do in {in_seconds(plan.seconds)}",
        ("device", "why", "ruled out", "operations", "predicted"),
        rows[:_MOST],
        [f"and {counted(left, 'more reason')}"] if left > 0 else [],
        (4,),
    )


def _seconds(found: Sequence[tuple[str, Planned]]) -> float:
    return sum(each.end - each.begin for _, each in found)


def _named(names: Sequence[str]) -> str:
    left = len(names) - _MOST_NAMED
    more = f" and {left:,} more" if left > 0 else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def differences(plan: Explanation, other: Explanation) -> Table:
    """What runs elsewhere in another plan."""
    names = short_names([*plan.loads, *other.loads])
    here, there = devices_of(plan), devices_of(other)
    shown = {op.name: called(op) for op in plan.operations}
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name, device in here.items():
        if there.get(name, device) != device:
            groups[names[device], names[there[name]]].append(shown.get(name, name))
    rows = [(*ends, f"{len(found):,}", _named(found)) for ends, found in sorted(groups.items())]
    faster = plan.seconds / other.seconds if other.seconds else 1.0
    elsewhere = sum(map(len, groups.values()))
    return Table(
        f"{counted(elsewhere, 'operation')} elsewhere in the other plan, which is predicted to "
        f"take {in_seconds(other.seconds)} in place of {in_seconds(plan.seconds)} "
        f"({faster:.2f} × as fast)",
        ("here", "there", "operations", "which"),
        rows[:_MOST],
        [f"and {len(rows) - _MOST:,} more"] if len(rows) > _MOST else [],
        (2,),
    )


def against_trace(plan: Explanation, trace: Trace) -> Table:
    """What was predicted, against what was measured: the step, each device, the longest."""
    known = measured(trace)
    names = short_names(list(plan.loads))
    step = step_seconds(trace, [op.name for op in plan.operations])
    rows = [] if step is None else [_compared("step", plan.seconds, step)]
    for device, seconds in busy(plan, known).items():
        rows.append(_compared(f"busy {names[device]}", plan.loads[device].busy, seconds))
    both = [(op, e.end - e.begin) for op, e in plan.operations.items() if op.name in known]
    both.sort(key=lambda each: (-each[1], each[0].name))
    rows += [_compared(called(op), seconds, known[op.name].seconds) for op, seconds in both[:_MOST]]
    missing = counted(len(plan.operations) - len(both), "operation")
    return Table(
        "Predicted against measured, the medians of "
        f"{counted(len(trace.steps), 'step')}; the longest operations",
        ("", "predicted", "measured", "measured / predicted"),
        rows,
        [f"Of {missing} of the plan the trace has nothing."] if missing[0] != "0" else [],
        (1, 2, 3),
    )


def _compared(what: str, predicted: float, found: float) -> tuple[str, str, str, str]:
    ratio = f"{found / predicted:.2f}" if predicted else ""
    return what, in_seconds(predicted), in_seconds(found), ratio
