"""Which device each operation runs on, and why (white paper, sections 3.2.1 and 4.3).

Feasible are the devices that every request within a group of colocated operations admits and that
have a kernel. With one device this decides between it and an error; the choice among several by
simulated execution has its place in `_choose`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from flowbook.exec.devices.device import Device
from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.device_spec import DeviceSpec
from flowbook.graph.model.dtypes import resource, variant
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.registry import kernel_for, kinds_with_kernel
from flowbook.graph.model.resource_key import ResourceKey
from flowbook.graph.model.retag import Retag
from flowbook.graph.rewrite.subgraph import Node, Subgraph


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


def place(
    graph: Subgraph,
    devices: Sequence[Device],
    before: Placement | None = None,
    homes: Mapping[ResourceKey, Device] | None = None,
) -> Placement:
    """Choose a device for every node.

    Args:
        graph: what runs. A request holds even for an operation that was computed before the run.
        devices: those that there are.
        before: the placement of what the graph was grown from; what is new asks for nothing.
        homes: where resources live already.

    Raises:
        InvalidArgumentError: if a request, or the requests of operations that stay together,
            admit no device, naming what rules each out.
    """
    placement = before if before is not None else Placement(devices[0])
    if before is None:
        _place_constrained(graph, devices, placement, homes or {})
    served: set[tuple[OpDef[Any], str]] = set()
    for node in graph.new:
        op_def, kind = node.op_def, placement.device_of(node.operation).kind
        if (op_def, kind) not in served:
            if not op_def.is_handle and kernel_for(op_def, kind) is None:
                raise _without_kernel(node.operation, op_def, kind)
            served.add((op_def, kind))
    return placement


def _place_constrained(
    graph: Subgraph,
    devices: Sequence[Device],
    placement: Placement,
    homes: Mapping[ResourceKey, Device],
) -> None:
    together = _Groups()
    for op in graph.operations:
        if op.device or op.colocation:
            together.join(op, *op.colocation)
    is_alone = len(devices) == 1
    nodes: dict[Operation, list[Node]] = {}
    if not is_alone:
        _join_inseparable(graph, together)
        for node in graph.nodes:
            together.join(node.operation)
            nodes.setdefault(node.operation, []).append(node)
    for group in together.groups():
        requests = {op: DeviceSpec.parse(op.device) for op in group if op.device}
        feasible = [d for d in devices if all(r.admits(d.spec) for r in requests.values())]
        if not feasible:
            raise _infeasible(group, requests, devices)
        keys = [op.key for op in group if op.key is not None and op.key in homes]
        home = homes[keys[0]] if keys else None
        if home is not None and home in feasible:
            device = home
        else:
            own = [node for op in group for node in nodes.get(op, ())]
            able = [d for d in feasible if all(_has_kernel(node, d) for node in own)]
            device = _choose(able or feasible)
        because = ", ".join(f"{op.name!r} asks for {op.device}" for op in requests)
        if not because and len(group) == 1 and device is placement.default:
            continue
        for op in group:
            placement.chosen[op] = device
            placement.reasons[op] = because or "colocated operations stay together"


def _has_kernel(node: Node, device: Device) -> bool:
    return node.op_def.is_handle or kernel_for(node.op_def, device.kind) is not None


def _choose(feasible: Sequence[Device]) -> Device:
    return feasible[0]


def _join_inseparable(graph: Subgraph, together: _Groups) -> None:
    """Join what only one device can run together.

    That is what touches one resource; what hands on handles, and what else is no array; and what
    takes one variable of a loop round.
    """
    producer = graph.producer
    for node in graph.nodes:
        if node.owner is not None:
            together.join(node.owner, node.operation)
        for value in node.inputs:
            source = producer.get(value)
            if source is None or value in graph.constants:
                continue
            port = source.outputs.index(value)
            if source.operation.dtypes[port] in (resource, variant) or _goes_round(source, node):
                together.join(source.operation, node.operation)
        if node.closes is not None:
            together.join(node.closes.operation, node.operation)


def _goes_round(source: Node, node: Node) -> bool:
    """Whether both take one variable of a loop on: what enters, its Merge, its Switch, its Exit."""
    if node.op_def.retag is Retag.POP:
        return True
    is_merge = node.op_def.fires_on_any
    return (is_merge and source.op_def.retag is Retag.PUSH) or (
        source.op_def.fires_on_any
        and node.op_def.gives_dead
        and source.outputs[0] == node.inputs[0]
    )


class _Groups:
    """Operations that must share a device: union-find."""

    def __init__(self) -> None:
        self._parent: dict[Operation, Operation] = {}

    def join(self, *operations: Operation) -> None:
        """Have operations share a device."""
        root = self._find(operations[0])
        for operation in operations[1:]:
            self._parent[root] = root = self._find(operation)

    def _find(self, op: Operation) -> Operation:
        parent = self._parent
        parent.setdefault(op, op)
        while parent[op] is not op:
            parent[op] = parent[parent[op]]
            op = parent[op]
        return op

    def groups(self) -> list[list[Operation]]:
        """The groups, each in the order in which its operations were joined."""
        found: dict[Operation, list[Operation]] = {}
        for op in list(self._parent):
            found.setdefault(self._find(op), []).append(op)
        return list(found.values())


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
