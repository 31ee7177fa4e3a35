"""A trace, laid over the picture of its graph: where operations ran, how long, what they gave."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from flowbook.exec.instruments.trace import Trace
from flowbook.exec.report import in_bytes, in_seconds
from flowbook.graph.model.counted import counted
from flowbook.widgets.graphs.overlay import Colouring, Group, Note, Overlay, short_names


@dataclass(frozen=True)
class Measured:
    """What one operation did in the steps that ran it; of several steps the median.

    Attributes:
        device: where it ran last, by name.
        calls: how often it was called in all.
        seconds: how long it kept its device busy in a step.
        bytes: of what it gave in a step.
    """

    device: str
    calls: int
    seconds: float
    bytes: int


def measured(trace: Trace) -> dict[str, Measured]:
    """What each operation did, by its name; what only waited is left out."""
    seconds: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    sizes: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    calls: dict[str, int] = defaultdict(int)
    devices: dict[str, str] = {}
    for call in trace.calls:
        if call.operations and not call.waits:
            name = call.operation
            seconds[name][call.step] += call.duration * 1e-9
            sizes[name][call.step] += call.bytes
            calls[name] += 1
            devices[name] = call.device
    return {
        name: Measured(
            device,
            calls[name],
            median(seconds[name].values()),
            round(median(sizes[name].values())),
        )
        for name, device in devices.items()
    }


def measured_transfers(trace: Trace) -> dict[tuple[str, str], float]:
    """How long values went, by their names and the devices that they went to, in seconds.

    Both ends count: handing a value over, and taking it from then on; who waits for who hands over
    does not. Of several steps, and of several iterations of a loop, it is the median.
    """
    found: dict[tuple[str, str], list[int]] = defaultdict(list)
    for sent, received in trace.transfers:
        value = sent.operation.rpartition("/")[0]  # What sends has its name, and "/send".
        taken = received.end - max(received.start, sent.end)
        found[value, received.device].append(sent.duration + max(taken, 0))
    return {key: median(each) * 1e-9 for key, each in found.items()}


def step_seconds(trace: Trace, names: Iterable[str] | None = None) -> float | None:
    """How long a step took, the median; None if none has ended.

    Args:
        trace: the trace.
        names: count only the steps that called an operation of these.
    """
    wanted = None if names is None else set(names)
    steps = {call.step for call in trace.calls if wanted is None or call.operation in wanted}
    ended = [s.end - s.start for s in trace.steps if s.number in steps and s.end is not None]
    return median(ended) * 1e-9 if ended else None


def trace_overlay(trace: Trace) -> Overlay:
    """What a trace tells of its operations."""
    found = measured(trace)
    devices = sorted({each.device for each in found.values()})
    names = short_names(devices)
    places = {name: devices.index(each.device) for name, each in found.items()}
    groups = []
    for number, device in enumerate(devices):
        there = [each for each in found.values() if each.device == device]
        busy = in_seconds(sum(each.seconds for each in there))
        about = (counted(len(there), "operation"), f"busy {busy}")
        groups.append(Group(names[device], number, about))
    step = step_seconds(trace)
    took = "" if step is None else f", {in_seconds(step)} in the median"
    return Overlay(
        f"{counted(len(trace.steps), 'step')}{took}",
        [
            Colouring("time", "s", {name: each.seconds for name, each in found.items()}),
            Colouring("memory", "B", {name: each.bytes for name, each in found.items()}),
            Colouring("device", "", places, groups),
        ],
        places,
        notes={name: _notes(each, names[each.device]) for name, each in found.items()},
    )


def _notes(each: Measured, device: str) -> list[Note]:
    return [
        Note("ran on", device, counted(each.calls, "call")),
        Note("in a step", in_seconds(each.seconds), f"gives {in_bytes(each.bytes)}"),
    ]
