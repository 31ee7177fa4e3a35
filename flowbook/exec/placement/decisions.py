"""What was decided for the operations of a run: the device of each, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from flowbook.exec.devices.device import Device
from flowbook.exec.placement.room import Need
from flowbook.exec.report import in_seconds
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.resource_key import ResourceKey
from flowbook.graph.rewrite.layered import Table, grown


class Settled(NamedTuple):
    """What holds already when something is placed.

    Attributes:
        homes: where resources live.
        moved: where operations were put, by `Session.replace`.
        is_soft: whether a request that cannot be met is no error: a device that variables ask for
            does, or another of the kind, or else any.
    """

    homes: Mapping[ResourceKey, Device] = {}
    moved: Mapping[Operation, Device] = {}
    is_soft: bool = False

    @property
    def freed(self) -> Settled:
        """What holds if whatever was put or lives somewhere may go elsewhere."""
        return Settled(is_soft=self.is_soft)


class Decision(NamedTuple):
    """Why an operation runs where it does.

    Attributes:
        because: what leaves no other device; empty if the simulation decided.
        ends: when it would have ended on each device, by name, in seconds from the step's
            beginning, or, where a graph grew by it, from when its inputs are made; empty where
            another operation, inseparable from it, was decided first.
        ruled_out: why a device was none to choose, by name.
        is_first: whether it ends first where it runs; if not, the whole step ends earlier so.
    """

    because: str = ""
    ends: Mapping[str, float] = {}
    ruled_out: Mapping[str, str] = {}
    is_first: bool = True

    @property
    def why(self) -> str:
        """What decided, in a few words."""
        if self.because or not self.ends:
            return self.because or "it can run nowhere else"
        return "it would end first there" if self.is_first else "the whole step ends earlier so"

    @property
    def text(self) -> str:
        """The decision in a sentence."""
        found = self.why
        if self.ends and not self.because:
            ends = "; ".join(f"{name} after {in_seconds(end)}" for name, end in self.ends.items())
            found += f": {ends}" if self.is_first else f", though it would end: {ends}"
        ruled = "; ".join(f"{name} {why}" for name, why in self.ruled_out.items())
        return f"{found} ({ruled})" if ruled else found


@dataclass(slots=True)
class Placement:
    """The device of every node.

    Attributes:
        default: the device of the nodes that nothing constrains.
        chosen: the devices of the others.
        decisions: why, for the others.
        taken: of each device the memory that was taken, if any is bounded.
    """

    default: Device
    chosen: Table[Operation, Device] = field(default_factory=dict)
    decisions: Table[Operation, Decision] = field(default_factory=dict)
    taken: Sequence[Need] = ()

    def grown(self) -> Placement:
        """One that begins with this one, and to which more can be added."""
        return Placement(self.default, grown(self.chosen), grown(self.decisions), self.taken)

    def put(self, operations: Iterable[Operation], device: Device, decision: Decision) -> None:
        """Have operations run on a device, those that run nowhere yet."""
        for operation in operations:
            self.chosen.setdefault(operation, device)
            self.decisions.setdefault(operation, decision)

    def device_of(self, operation: Operation) -> Device:
        """The device that the operation runs on."""
        return self.chosen.get(operation, self.default)

    def reason(self, operation: Operation) -> str:
        """Why it runs there."""
        decision = self.decisions.get(operation)
        if decision is not None:
            return decision.text
        return f"nothing constrains it, and {self.default.name} is the first device"
