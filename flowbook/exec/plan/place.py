"""Which device each operation runs on, and why (white paper, sections 3.2.1 and 4.3).

Feasible are the devices that every request within a group of colocated operations admits and that
have a kernel. With one device this decides between it and an error; the choice among several by
simulated execution has its place in `_choose`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from flowbook.exec.devices.device import Device
from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.device_spec import DeviceSpec
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.registry import kernel_for, kinds_with_kernel
from flowbook.graph.rewrite.subgraph import Subgraph


@dataclass(frozen=True)
class Placement:
    """The device of every node.

    Attributes:
        default: the device of the nodes that nothing constrains.
        chosen: the devices of the others.
        reasons: why, for the others.
    """

    default: Device
    chosen: dict[Operation, Device] = field(default_factory=dict)
    reasons: dict[Operation, str] = field(default_factory=dict)

    def device_of(self, operation: Operation) -> Device:
        """The device that the operation runs on."""
        return self.chosen.get(operation, self.default)

    def reason(self, operation: Operation) -> str:
        """Why it runs there."""
        return self.reasons.get(
            operation, f"nothing constrains it, and {self.default.name} is the first device"
        )


def place(graph: Subgraph, devices: Sequence[Device], before: Placement | None = None) -> Placement:
    """Choose a device for every node.

    Args:
        graph: what runs. A request holds even for an operation that was computed before the run.
        devices: those that there are.
        before: the placement of what the graph was grown from; what is new asks for nothing.

    Raises:
        InvalidArgumentError: if a request, or the requests of colocated operations together,
            admit no device, naming what rules each out.
    """
    placement = before if before is not None else Placement(devices[0])
    if before is None:
        _place_constrained(graph.operations, devices, placement)
    served: set[tuple[OpDef[Any], str]] = set()
    for node in graph.new:
        op_def, kind = node.op_def, placement.device_of(node.operation).kind
        if (op_def, kind) not in served:
            if not op_def.is_handle and kernel_for(op_def, kind) is None:
                raise _without_kernel(node.operation, op_def, kind)
            served.add((op_def, kind))
    return placement


def _place_constrained(
    operations: Sequence[Operation], devices: Sequence[Device], placement: Placement
) -> None:
    constrained = [op for op in operations if op.device or op.colocation]
    for group in _colocated(constrained):
        requests = {op: DeviceSpec.parse(op.device) for op in group if op.device}
        feasible = [d for d in devices if all(r.admits(d.spec) for r in requests.values())]
        if not feasible:
            raise _infeasible(group, requests, devices)
        device = _choose(feasible)
        because = ", ".join(f"{op.name!r} asks for {op.device}" for op in requests)
        for op in group:
            placement.chosen[op] = device
            placement.reasons[op] = because or "colocated operations stay together"


def _choose(feasible: Sequence[Device]) -> Device:
    return feasible[0]


def _colocated(operations: Sequence[Operation]) -> list[list[Operation]]:
    """Groups that must share a device: union-find over the colocation requests."""
    parent: dict[Operation, Operation] = {op: op for op in operations}

    def find(op: Operation) -> Operation:
        parent.setdefault(op, op)
        while parent[op] is not op:
            parent[op] = parent[parent[op]]
            op = parent[op]
        return op

    for op in operations:
        for other in op.colocation:
            parent[find(op)] = find(other)
    groups: dict[Operation, list[Operation]] = {}
    for op in list(parent):
        groups.setdefault(find(op), []).append(op)
    return list(groups.values())


def _without_kernel(operation: Operation, op_def: OpDef[Any], kind: str) -> InvalidArgumentError:
    others = kinds_with_kernel(op_def)
    return InvalidArgumentError(
        f"it has no kernel for {kind!r}" + (f", only for {', '.join(others)}" if others else ""),
        operation,
        hint=f"fb.register_kernel one for {kind!r}, or run it elsewhere with fb.device"
        if others
        else f"give its OpDef a kernel, or fb.register_kernel one for {kind!r}",
    )


def _infeasible(
    group: Sequence[Operation], requests: dict[Operation, DeviceSpec], devices: Sequence[Device]
) -> InvalidArgumentError:
    asked = "; ".join(f"{op.name!r} asks for {op.device}" for op in requests)
    there = ", ".join(d.name for d in devices)
    together = "together these colocated operations admit" if len(group) > 1 else "this admits"
    return InvalidArgumentError(
        f"{asked}: {together} none of the devices that there are: {there}",
        next(iter(requests)),
        hint="fb.device(None) or another name; sess.list_devices() lists them",
    )
