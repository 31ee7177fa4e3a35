"""The plan of a run, laid over the picture of its graph: devices, reasons, what crosses.

With a trace of the same run, what was predicted is held against what was measured.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from flowbook.exec.instruments.trace import Trace
from flowbook.exec.plan.explanation import Explanation, Load, Planned
from flowbook.exec.report import in_bytes, in_seconds
from flowbook.graph.model.counted import counted
from flowbook.graph.model.tensor import Tensor
from flowbook.widgets.graphs.overlay import Colouring, Group, Note, Overlay, short_names
from flowbook.widgets.graphs.trace_overlay import (
    Measured,
    measured,
    measured_transfers,
    step_seconds,
)


def plan_overlay(
    plan: Explanation, other: Explanation | None = None, trace: Trace | None = None
) -> Overlay:
    """What a plan tells of its operations.

    Args:
        plan: the plan.
        other: another one of the same graph: what runs elsewhere there is marked. Devices that both
            have are of one colour.
        trace: of the same run.
    """
    return _Plan(plan, other, trace).overlay()


class _Plan:
    """A plan, and what it is compared with."""

    def __init__(self, plan: Explanation, other: Explanation | None, trace: Trace | None) -> None:
        self._plan = plan
        self._other = other
        both = sorted({*plan.loads, *other.loads}) if other is not None else list(plan.loads)
        self._colour = {name: number for number, name in enumerate(both)}
        self._short = short_names(both)
        self._number = {name: number for number, name in enumerate(plan.loads)}
        self._measured = measured(trace) if trace is not None else {}
        self._step = None if trace is None else step_seconds(trace, self._ran())
        self._sent: dict[str, list[Note]] = defaultdict(list)
        moved = measured_transfers(trace) if trace is not None else {}
        for each in plan.transfers:
            took = in_seconds(each.end - each.begin)
            to = f"{each.value} to {self._short[each.destination]}"
            if (each.value, each.destination) in moved:
                took += f", measured {in_seconds(moved[each.value, each.destination])}"
            note = Note("sends", to, f"{in_bytes(each.bytes)} in {took}")
            self._sent[each.value.partition(":")[0]].append(note)

    def _ran(self) -> list[str]:
        return [operation.name for operation in self._plan.operations]

    def overlay(self) -> Overlay:
        plan, known = self._plan, self._measured
        seconds = {op.name: each.end - each.begin for op, each in plan.operations.items()}
        took = {name: known[name].seconds for name in seconds if name in known}
        places = {name: self._number[device] for name, device in devices_of(plan).items()}
        colourings = [
            Colouring("device", "", places, list(self._groups())),
            Colouring("time", "s", seconds),
            Colouring("memory", "B", {op.name: each.bytes for op, each in plan.operations.items()}),
        ]
        if took:
            against = {name: seconds[name] for name in took}
            colourings.append(Colouring("measured time", "s", took))
            colourings.append(Colouring("measured / predicted", "x", took, against=against))
        return Overlay(
            self._title(), colourings, places, self._crossings(), self._notes(), self._differing()
        )

    def _title(self) -> str:
        crossing = counted(len(self._plan.transfers), "transfer")
        parts = [f"{in_seconds(self._plan.seconds)} predicted"]
        if self._step is not None:
            parts.append(f"{in_seconds(self._step)} measured")
        moved = self._plan.transferred_bytes
        parts.append(f"{crossing} of {in_bytes(moved)}" if moved else "no transfers")
        return ", ".join(parts)

    def _groups(self) -> Iterator[Group]:
        for device, load in self._plan.loads.items():
            about = facts(load)
            if self._measured:
                took = in_seconds(busy(self._plan, self._measured)[device])
                about.insert(2, f"measured {took}")
            yield Group(self._short[device], self._colour[device], about)

    def _crossings(self) -> dict[tuple[str, int], int]:
        """By the tensors that go over, and those in whose place they do."""
        plan = self._plan
        same: dict[str, list[Tensor]] = defaultdict(list)
        for tensor, made in plan.in_place_of.items():
            same[made.name].append(tensor)
        found = {}
        for each in plan.transfers:
            for name in (each.value, *(tensor.name for tensor in same[each.value])):
                found[name, self._number[each.destination]] = each.bytes
        return found

    def _notes(self) -> dict[str, list[Note]]:
        plan, differing = self._plan, self._differing()
        notes = {
            op.name: list(self._told(op.name, each, differing.get(op.name, "")))
            for op, each in plan.operations.items()
        }
        for op, went in plan.went.items():
            notes.setdefault(op.name, [Note("in the run", went)])
        return notes

    def _told(self, name: str, each: Planned, elsewhere: str) -> Iterator[Note]:
        yield Note("runs on", self._short[each.device], why(each, name))
        ends = each.decision.ends if each.decision is not None else {}
        for device, end in ends.items():
            yield Note("would end", self._short[device], f"after {in_seconds(end)}")
        ruled_out = each.decision.ruled_out if each.decision is not None else {}
        for device, what in ruled_out.items():
            yield Note("ruled out", self._short[device], what)
        duration = in_seconds(each.end - each.begin)
        yield Note("predicted", duration, f"from {in_seconds(each.begin)} on")
        took = self._measured.get(name)
        if took is not None:
            yield Note("measured", in_seconds(took.seconds), f"on {self._name(took.device)}")
        yield from self._sent[name]
        if elsewhere:
            yield Note("in the other plan", elsewhere)

    def _name(self, device: str) -> str:
        return self._short.get(device, device)

    def _differing(self) -> dict[str, str]:
        if self._other is None:
            return {}
        there = devices_of(self._other)
        return {
            name: self._short[there[name]]
            for name, device in devices_of(self._plan).items()
            if there.get(name, device) != device
        }


def why(each: Planned, name: str = "") -> str:
    """Why an operation runs where it does, in short: of many requests its own, or the first."""
    if each.decision is None:
        return "nothing constrains it, and this is the first device"
    first, *others = sorted(
        each.decision.why.split(", "), key=lambda said: not said.startswith(f"{name!r} ")
    )
    return (
        f"{first}, and {len(others):,} more such reasons" if len(others) > 1 else each.decision.why
    )


def devices_of(plan: Explanation) -> dict[str, str]:
    """The device of each operation of a run, also of those in whose place another runs."""
    found = {op.name: each.device for op, each in plan.operations.items()}
    for tensor, made in plan.in_place_of.items():
        if made.op in plan.operations:
            found.setdefault(tensor.op.name, plan.operations[made.op].device)
    return found


def facts(load: Load) -> list[str]:
    """What a device has to do, in words."""
    return [
        counted(load.operations, "operation"),
        f"busy {in_seconds(load.busy)}",
        f"peak {in_bytes(load.peak_bytes)}",
    ]


def busy(plan: Explanation, known: Mapping[str, Measured]) -> dict[str, float]:
    """For how long what was measured of a plan's operations kept each device busy, in seconds."""
    found = dict.fromkeys(plan.loads, 0.0)
    for op in plan.operations:
        each = known.get(op.name)
        if each is not None and each.device in found:
            found[each.device] += each.seconds
    return found
