"""Which device each operation runs on, and why (white paper, sections 3.2.1 and 4.3).

Among the devices that are feasible (`constraints.py`) the choice is made so that the step would end
early (`assignment.py`), by what the cost model expects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flowbook.exec.devices.device import Device
from flowbook.exec.placement.assignment import Assignment, Problem, assign
from flowbook.exec.placement.constraints import Group, bounded, groups_of, not_held, without_kernel
from flowbook.exec.placement.cost_model import Costs
from flowbook.exec.placement.decisions import Decision, Placement, Settled
from flowbook.exec.placement.jobs import jobs_of, needs_of, transfer_among
from flowbook.exec.placement.room import Need, Room
from flowbook.exec.placement.simulation import Job
from flowbook.exec.report import in_bytes
from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.errors import ResourceExhaustedError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.registry import dtype_not_held, kernel_for
from flowbook.graph.rewrite.subgraph import CannotFollow, Node, Subgraph

# Nothing is known but what the graph says.
AS_BUILT = Costs()
NOTHING = Settled()


def place(
    graph: Subgraph,
    devices: Sequence[Device],
    before: Placement | None = None,
    settled: Settled = NOTHING,
    costs: Costs = AS_BUILT,
    assigning: Callable[[Problem], Assignment] = assign,
    jobs: Sequence[Job] = (),
) -> Placement:
    """Choose a device for every node.

    Args:
        graph: what runs. A request holds even for an operation that was computed before the run.
        devices: those that there are.
        before: the placement of what the graph was grown from, which stays.
        settled: what holds already.
        costs: what is known of what operations cost.
        assigning: what chooses among the devices that are feasible.
        jobs: the nodes by these costs, as `jobs_of` gives them, if somebody has asked already.

    Raises:
        InvalidArgumentError: if a request, or the requests of inseparable operations together,
            admit no device, naming what rules each out.
        ResourceExhaustedError: if what has to be on a device does not fit into its memory.
        CannotFollow: if what stays would have to be elsewhere.
    """
    placement = before.grown() if before is not None else Placement(devices[0])
    groups = groups_of(graph, devices, settled)
    if len(devices) == 1:
        for group in groups:
            placement.put(group.operations, devices[0], Decision(group.because))
    elif before is not None:
        _add(graph, devices, groups, placement, costs)
    else:
        jobs = jobs or jobs_of(graph, [device.kind for device in devices], costs)
        _decide(graph, devices, groups, placement, costs, assigning, jobs)
    served: set[tuple[OpDef[Any], str]] = set()
    for node in graph.new:
        op_def, kind = node.op_def, placement.device_of(node.operation).kind
        if (op_def, kind) not in served:
            if not op_def.is_handle and kernel_for(op_def, kind) is None:
                raise without_kernel(node.operation, op_def, kind)
            served.add((op_def, kind))
        dtype = dtype_not_held(node.operation, kind)
        if dtype is not None:
            raise not_held(node.operation, dtype, kind)
    return placement


def _decide(
    graph: Subgraph,
    devices: Sequence[Device],
    groups: Sequence[Group],
    placement: Placement,
    costs: Costs,
    assigning: Callable[[Problem], Assignment],
    jobs: Sequence[Job],
) -> None:
    """Choose a device for every group, and note why."""
    number_of = {op: i for i, group in enumerate(groups) for op in group.operations}
    group_of = [number_of[node.operation] for node in graph.nodes]
    feasible = [group.feasible for group in groups]
    kinds = [device.kind for device in devices]
    limits, needed = _limits_and_needs(graph, devices, groups, group_of, costs)
    transfer = transfer_among(devices)
    lasting = [n for n, group in enumerate(groups) if any(map(_has_resource, group.operations))]
    problem = Problem(jobs, group_of, feasible, kinds, transfer, limits, needed, lasting)
    found = assigning(problem)
    overfull = problem.room.overfull(found.chosen)
    if overfull is not None:
        there = [n for n, device in enumerate(found.chosen) if device == overfull]
        raise _out_of_memory(devices[overfull], [(groups[n], needed[n]) for n in there])
    room = problem.room
    room.take_all(found.chosen)
    placement.taken = room.taken
    for number, group in enumerate(groups):
        device = devices[found.chosen[number]]
        told = {devices[each].name: end for each, end in found.ends.get(number, {}).items()}
        is_first = not told or told.get(device.name) == min(told.values())
        ruled_out = _ruled_out(group, devices, found.full.get(number, ()))
        decision = Decision(group.because, told, ruled_out, is_first)
        placement.put(group.operations, device, decision)


def _ruled_out(group: Group, devices: Sequence[Device], full: Sequence[int]) -> Mapping[str, str]:
    """Why a group runs on no other device; some have no room for it."""
    if not full:
        return group.ruled_out
    return {**group.ruled_out, **{devices[i].name: "has no memory left for it" for i in full}}


def _limits_and_needs(
    graph: Subgraph,
    devices: Sequence[Device],
    groups: Sequence[Group],
    group_of: Sequence[int],
    costs: Costs,
) -> tuple[Sequence[int | None], Sequence[Need]]:
    """How much memory each device has, and how much each group needs where one is bounded."""
    limits = [device.memory_limit for device in devices]
    is_bounded = any(limit is not None for limit in limits)
    needs = needs_of(graph, group_of, costs) if is_bounded else {}
    return limits, [needs.get(number, Need()) for number in range(len(groups))]


def _add(
    graph: Subgraph,
    devices: Sequence[Device],
    groups: Sequence[Group],
    placement: Placement,
    costs: Costs,
) -> None:
    """Place what is new, each group where it would end first once its inputs are made."""
    group_of = {op: number for number, group in enumerate(groups) for op in group.operations}
    numbers = [group_of[node.operation] for node in graph.new]
    room = Room(*_limits_and_needs(graph, devices, groups, numbers, costs), placement.taken)
    transfer = transfer_among(devices)
    number_of = {device.name: i for i, device in enumerate(devices)}

    def end_on(node: Node, device: int) -> float:
        arrivals = [0.0]
        for value in node.inputs:
            source = graph.producer.get(value)
            if source is not None and value not in graph.constants:
                size = costs.size(source.operation.outputs[source.outputs.index(value)])
                at = number_of[placement.device_of(source.operation).name]
                arrivals.append(transfer(size, at, device))
        return max(arrivals) + costs.seconds(node, devices[device].kind)

    left = dict(enumerate(groups))
    for node, number in zip(graph.new, numbers, strict=True):
        group = left.pop(number, None)
        if group is None:
            continue  # It is where others are that it cannot part from.
        there = {placement.chosen[op]: op for op in group.operations if op in placement.chosen}
        if there:
            device, old = next(iter(there.items()))
            chosen = number_of[device.name]
            if len(there) > 1 or chosen not in group.feasible or not room.fits(number, chosen):
                raise CannotFollow
            decision = Decision(f"{old.name!r}, from which it cannot part, runs there")
        else:
            ends = {i: end_on(node, i) for i in group.feasible if room.fits(number, i)}
            if not ends:
                raise CannotFollow
            chosen = min(ends, key=ends.__getitem__)
            told = {devices[i].name: end for i, end in ends.items()} if not group.because else {}
            full = [i for i in group.feasible if i not in ends]
            decision = Decision(group.because, told, _ruled_out(group, devices, full))
        room.take(number, chosen)
        placement.put(group.operations, devices[chosen], decision)
    # What was computed before the run.
    for group in left.values():
        decision = Decision(group.because, {}, group.ruled_out)
        placement.put(group.operations, devices[group.feasible[0]], decision)
    placement.taken = room.taken


def _has_resource(operation: Operation) -> bool:
    return operation.op_def.is_handle


def _out_of_memory(device: Device, there: Sequence[tuple[Group, Need]]) -> ResourceExhaustedError:
    largest = sorted(there, key=lambda each: -sum(each[1]))
    stays, passes = sum(need.stays for _, need in there), max(need.passes for _, need in there)
    error = ResourceExhaustedError(
        f"{device.name} has {in_bytes(device.memory_limit or 0)}; what has to be there takes "
        f"{in_bytes(stays)} for variables and {in_bytes(passes)} for what one operation computes",
        largest[0][0].operations[0],
        hint="ask for other devices, or for none",
    )
    error.details += bounded(
        [
            f"{group.operations[0].name!r} takes {in_bytes(sum(need))} "
            f"({group.operations[0].site.place})"
            for group, need in largest
            if sum(need)
        ]
    )
    return error
