"""Where the resources of a step are to live, those that live nowhere yet.

A resource stays where it is placed first, and steps that come later have to go there. So its device
is chosen over all that uses it in the graph, not over the step that happens to be the first, such
as the one that initialises it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from flowbook.exec.devices.device import Device
from flowbook.exec.placement.decisions import Placement, Settled
from flowbook.exec.placement.place import NOTHING, place
from flowbook.exec.placement.simulation import Job
from flowbook.graph.building.graph import Graph
from flowbook.graph.model.device_spec import DeviceSpec
from flowbook.graph.model.errors import OpError, ResourceExhaustedError
from flowbook.graph.model.operation import Operation
from flowbook.graph.rewrite.prune import prune
from flowbook.graph.rewrite.subgraph import Subgraph


def place_with_homes(
    graph: Subgraph,
    devices: Sequence[Device],
    before: Placement | None = None,
    settled: Settled = NOTHING,
    jobs: Sequence[Job] = (),
) -> Placement:
    """Choose a device for every node, and first for what the nodes touch; see `place`."""
    chosen = _chosen(graph, devices, settled) if len(devices) > 1 else None
    if chosen is None:
        return place(graph, devices, before, settled, jobs=jobs)
    homes = settled.homes
    new = {op.key: device for op, device in chosen.chosen.items() if op.key and op.op_def.is_handle}
    at_home = settled._replace(homes={**new, **homes})
    try:
        placement = place(graph, devices, before, at_home, jobs=jobs)
    except ResourceExhaustedError:
        # Where they were best for all that uses them, what lives there already leaves no room.
        return place(graph, devices, before, settled, jobs=jobs)
    for node in graph.new:
        # Not that it lives there, which was decided just now.
        owner = node.owner
        if owner is not None and owner.key in new and owner.key not in homes:
            placement.decisions[node.operation] = chosen.decisions[owner]
    return placement


def _chosen(
    graph: Subgraph,
    devices: Sequence[Device],
    settled: Settled,
) -> Placement | None:
    """Where all that uses the new resources of a step would run; None if there are none."""
    touched = {node.owner: None for node in graph.new if node.owner is not None}
    new = [op for op in touched if op.op_def.is_handle and op.key not in settled.homes]
    undecided = [op for op in new if not _is_decided(op, devices)]
    users = _users(undecided)
    # Where the step is all that uses them, placing it decides.
    if not users.issubset(graph.node_of):
        # What cannot be placed, or is wrong otherwise, fails the steps that need it, and no others.
        with suppress(OpError):
            return place(_whole(users), devices, None, settled)
    return None


def _is_decided(operation: Operation, devices: Sequence[Device]) -> bool:
    """Whether what an operation asks for leaves one device at most."""
    request = DeviceSpec.parse(operation.device) if operation.device else None
    return request is not None and sum(request.admits(device.spec) for device in devices) <= 1


def _users(owners: Sequence[Operation]) -> set[Operation]:
    """All that is computed from resources, but what only gives them their first values."""
    seen: set[Operation] = set()
    stack = list(owners)
    while stack:
        operation = stack.pop()
        for output in operation.outputs:
            new = [op for op in operation.graph.consumers(output) if op not in seen]
            used = [op for op in new if not op.op_def.initializes(op)]
            seen.update(used)
            stack += used
    return seen


def _whole(users: set[Operation]) -> Subgraph:
    """Operations of one graph, with all that they need."""
    graph: Graph = next(iter(users)).graph
    targets = [op for op in graph.operations if op in users and op.context is None]
    fed = [op.outputs[0] for op in graph.operations if op.op_def.must_be_fed]
    return prune([], targets, [tensor for tensor in fed if tensor.op.context is None])
