"""When a device receives what another one sends: as late as it can be (white paper, section 5.2).

What is received early only occupies memory until it is used. So where that is not the host's, a
Recv waits for something that the device takes before the first that needs the value: the last that
is over early enough for the value to come in time. As all comes after what it waits for, in the one
order in which all devices take what they do, nothing waits for itself.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from flowbook.exec.devices.device import Device
from flowbook.exec.devices.kinds import link_of
from flowbook.exec.placement.decisions import Placement
from flowbook.exec.placement.jobs import transfer_among
from flowbook.exec.placement.simulation import Job, Simulation, Transfer
from flowbook.graph.model.context import Frame, chain, runs_in
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.retag import Retag
from flowbook.graph.rewrite.subgraph import Node, Subgraph

# What takes less is not worth a wait.
LEAST_BYTES = 1 << 16

# Who makes a value, which of its outputs it is, and the device that receives it.
Key = tuple[int, int, int]


class Waits(NamedTuple):
    """What may be delayed, and by what.

    Attributes:
        is_apart: for each device whether its memory is not the host's.
        is_once: for each job whether it runs once, in no loop.
        may_delay: the jobs that others may wait for.
    """

    is_apart: Sequence[bool]
    is_once: Sequence[bool]
    may_delay: Sequence[int]


class Late(NamedTuple):
    """A value that is received late.

    Attributes:
        after: the job that its receiver waits for.
        begin: when that has ended.
    """

    after: int
    begin: float


def late_receives(
    jobs: Sequence[Job],
    placed: Sequence[int],
    ends: Sequence[float],
    transfer: Transfer,
    waits: Waits,
) -> dict[Key, Late]:
    """What is to be received later than it could be.

    Args:
        jobs: what runs, in the order in which devices take it.
        placed: the device of each.
        ends: when each ends, in a step in which nothing is received late.
        transfer: what transfers take.
        waits: what may be delayed, and by what.
    """
    # When each value is needed, how large it is, and which job takes it first.
    first: dict[Key, tuple[float, int, int]] = {}
    for index, job in enumerate(jobs):
        device = placed[index]
        if waits.is_apart[device]:
            begin = ends[index] - job.seconds[device]
            for maker, port, size in job.taken:
                if maker >= 0 and placed[maker] != device and size >= LEAST_BYTES:
                    is_once = waits.is_once[index] and waits.is_once[maker]
                    key, wanted = (maker, port, device), begin if is_once else 0.0
                    before, _, taker = first.get(key, (wanted, size, index))
                    first[key] = min(wanted, before), size, taker
    ended: dict[int, list[tuple[float, int]]] = {}
    if first:
        for index in waits.may_delay:
            ended.setdefault(placed[index], []).append((ends[index], index))
        for each in ended.values():
            each.sort()
    found: dict[Key, Late] = {}
    for key, (wanted, size, taker) in first.items():
        maker, _, device = key
        latest = wanted - transfer(size, placed[maker], device)
        over = ended.get(device, [])
        for place in range(bisect_right(over, (latest, len(jobs))) - 1, -1, -1):
            end, index = over[place]
            if end <= ends[maker]:
                break
            if index < taker:
                found[key] = Late(index, end)
                break
    return found


def waits_of(graph: Subgraph, devices: Sequence[Device]) -> Waits:
    """What may be delayed in a graph, and by what.

    Nothing is delayed by what may have to wait itself, or may do anything: what it waits for may
    come after what is delayed. So may what a loop waits for that goes round, and nothing is delayed
    by what it leads to. What is in a loop is received in each iteration, for which nothing outside
    waits.
    """
    is_once = [not _is_in_loop(node.operation) for node in graph.nodes]
    is_sure: dict[Node, bool] = {}
    for node in graph.nodes:
        made = [v for v in node.inputs if v in graph.producer and v not in graph.constants]
        before = (*[graph.producer[v] for v in made], *node.after, *node.behind)
        may_wait = node.op_def.is_async or node.op_def.retag is Retag.POP
        is_sure[node] = not may_wait and all(is_sure[other] for other in before)
    may_delay = [
        index
        for index, node in enumerate(graph.nodes)
        if is_once[index] and is_sure[node] and node.op_def.is_pure and not node.op_def.is_router
    ]
    return Waits([link_of(device.kind) is not None for device in devices], is_once, may_delay)


def delays_in(
    graph: Subgraph, devices: Sequence[Device], placement: Placement, jobs: Sequence[Job]
) -> dict[tuple[int, str], Node]:
    """For values and the devices that receive them late the nodes that these wait for.

    Args:
        graph: what runs, in the order in which devices take it.
        devices: those that there are.
        placement: where each node runs.
        jobs: the nodes, as the simulation sees them.
    """
    if all(link_of(device.kind) is None for device in devices):
        return {}
    number = {device.name: index for index, device in enumerate(devices)}
    placed = [number[placement.device_of(node.operation).name] for node in graph.nodes]
    if len(set(placed)) == 1:
        return {}
    transfer = transfer_among(devices)
    simulation = Simulation(jobs, len(devices), transfer)
    for index, device in enumerate(placed):
        simulation.run_on(index, device)
    waits = waits_of(graph, devices)
    late = late_receives(jobs, placed, simulation.ends, transfer, waits)
    return {
        (graph.nodes[maker].outputs[port], devices[device].name): graph.nodes[each.after]
        for (maker, port, device), each in late.items()
    }


def _is_in_loop(operation: Operation) -> bool:
    return any(isinstance(each, Frame) for each in chain(runs_in(operation)))
