"""A trace as a file in the format of Chrome's trace events, which Perfetto opens.

Times are in microseconds from the first step's start. Slices of one lane must not overlap unless
one contains the other: what is asynchronous goes to lanes of its own, as many as it needs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

from flowbook.exec.instruments.trace_lanes import rows_of
from flowbook.exec.instruments.trace_records import TracedCall, TracedStep, Transfer

# The steps' process, before those of the devices. To Perfetto 0 is the kernel of the system.
_STEPS = 1


def write_trace(
    steps: Sequence[TracedStep],
    calls: Sequence[TracedCall],
    transfers: Sequence[Transfer],
    file: BinaryIO,
) -> None:
    """Write a trace to a stream, an event a line.

    Args:
        steps: the runs, in the order in which they began.
        calls: the calls of kernels, likewise.
        transfers: which of them exchanged a value.
        file: the stream.
    """
    separator = b'{"displayTimeUnit": "ns", "traceEvents": [\n'
    for event in _Writer(steps, calls).events(steps, calls, transfers):
        file.write(separator + json.dumps(event).encode())
        separator = b",\n"
    file.write(b"\n]}\n")


class _Writer:
    """Gives what a trace consists of, and keeps which lane it is in.

    Attributes:
        origin: the moment 0.
        devices: the numbers of their processes.
        lanes: the numbers of threads, within the process, by its number and their names.
    """

    def __init__(self, steps: Sequence[TracedStep], calls: Sequence[TracedCall]) -> None:
        self.origin = steps[0].start if steps else 0
        devices = sorted({call.device for call in calls})
        self.devices = {device: number for number, device in enumerate(devices, _STEPS + 1)}
        self.lanes: dict[tuple[int, str], int] = {}

    def events(
        self,
        steps: Sequence[TracedStep],
        calls: Sequence[TracedCall],
        transfers: Sequence[Transfer],
    ) -> Iterator[dict[str, Any]]:
        """All events; what names the lanes comes last."""
        last = max([c.end for c in calls] + [s.end or s.start for s in steps], default=0)
        for step in steps:
            end = step.end if step.end is not None else last
            lane = self._lane(_STEPS, step.thread)
            yield self._slice(f"step {step.number}", "step", lane, step.start, end)
        lanes: dict[TracedCall, tuple[int, int]] = {}
        for call, row in zip(calls, rows_of(calls), strict=True):
            name = row.thread or f"waiting {row.number + 1}"
            lane = lanes[call] = self._lane(self.devices[call.device], name)
            kind = "wait" if call.waits else "kernel"
            shown = {
                "type": call.type,
                "operations": list(call.operations),
                "step": call.step,
                "iteration": call.iteration,
                "delay_us": call.delay / 1000,
                "bytes": call.bytes,
                "live_bytes": call.live,
            }
            yield {**self._slice(call.operation, kind, lane, call.start, call.end), "args": shown}
        for number, (sent, received) in enumerate(transfers):
            flow = {"name": sent.key, "cat": "transfer", "id": number}
            yield {**flow, "ph": "s", **self._at(lanes[sent], sent.start)}
            # Within the slice that it leads to, and not before it was sent.
            arrival = max(sent.start, received.start)
            yield {**flow, "ph": "f", "bp": "e", **self._at(lanes[received], arrival)}
        yield from self._names()

    def _lane(self, process: int, name: str) -> tuple[int, int]:
        return process, self.lanes.setdefault((process, name), len(self.lanes) + 1)

    def _at(self, lane: tuple[int, int], time: int) -> dict[str, Any]:
        return {"pid": lane[0], "tid": lane[1], "ts": (time - self.origin) / 1000}

    def _slice(
        self, name: str, kind: str, lane: tuple[int, int], start: int, end: int
    ) -> dict[str, Any]:
        place = self._at(lane, start)
        return {"name": name, "cat": kind, "ph": "X", **place, "dur": (end - start) / 1000}

    def _names(self) -> Iterator[dict[str, Any]]:
        for name, number in [("steps", _STEPS), *self.devices.items()]:
            yield {"name": "process_name", "ph": "M", "pid": number, "args": {"name": name}}
        for (process, name), number in self.lanes.items():
            shown = {"pid": process, "tid": number, "args": {"name": name}}
            yield {"name": "thread_name", "ph": "M", **shown}
