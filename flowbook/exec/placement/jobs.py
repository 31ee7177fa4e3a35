"""The nodes of a graph and the devices, as the simulation of a step sees them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from flowbook.exec.devices.device import Device
from flowbook.exec.devices.kinds import link_of
from flowbook.exec.placement.cost_model import Costs, link_between, size_of
from flowbook.exec.placement.room import Need
from flowbook.exec.placement.simulation import Job, Transfer
from flowbook.graph.model.dtypes import float32
from flowbook.graph.model.touch import VARIABLE, Access
from flowbook.graph.rewrite.subgraph import Node, Subgraph


def jobs_of(
    graph: Subgraph,
    kinds: Sequence[str],
    costs: Costs,
    is_lossy: Callable[[int], bool] = lambda value: False,
    begun: Sequence[Job] = (),
) -> list[Job]:
    """The nodes of a graph, as the simulation sees them.

    Args:
        graph: the graph.
        kinds: those of the devices.
        costs: what nodes cost.
        is_lossy: whether half of the bits of a value are what crosses, if it is float32.
        begun: those of the graph that this one was grown from, by the same costs.
    """
    index = {node: i for i, node in enumerate(graph.nodes)}
    producer, constants = graph.producer, graph.constants
    jobs = list(begun)
    for node in graph.nodes[len(begun) :]:
        taken = []
        for value in node.inputs:
            if value in constants:
                continue
            source = producer.get(value)
            if source is None:
                feed = graph.feeds[value]
                taken.append((-1, value, size_of(feed.dtype.size, costs.shapes.feed(feed))))
                continue
            port = source.outputs.index(value)
            made = source.operation.outputs[port]
            is_half = made.dtype is float32 and is_lossy(value)
            taken.append((index[source], port, costs.size(made) // (1 + is_half)))
        waited = tuple([index[other] for other in (*node.after, *node.behind)])
        on_kind = {kind: costs.seconds(node, kind) for kind in dict.fromkeys(kinds)}
        times = tuple([on_kind[kind] for kind in kinds])
        jobs.append(Job(times, tuple(taken), waited, costs.trips(node)))
    return jobs


def transfer_among(devices: Sequence[Device]) -> Transfer:
    """What transfers between devices take."""
    links = [[_link(source, to) for to in devices] for source in devices]
    # Feeds are in host memory, which is the last.
    host = next((device for device in devices if device.is_host), devices[0])
    links.append([(0.0, 0.0) if link_of(to.kind) is None else _link(host, to) for to in devices])

    def transfer(size: int, source: int, destination: int) -> float:
        latency, per_byte = links[source][destination]
        return latency + size * per_byte

    return transfer


def _link(source: Device, destination: Device) -> tuple[float, float]:
    """The seconds of the smallest transfer between two devices, and of each byte more."""
    if source is destination:
        return 0.0, 0.0
    link = link_between(source, destination)
    return link.latency, 1 / link.bytes


def needs_of(graph: Subgraph, group_of: Sequence[int], costs: Costs) -> dict[int, Need]:
    """How much memory each group of new nodes takes."""
    found: dict[int, Need] = {}
    for node, number in zip(graph.new, group_of, strict=True):
        need, passes = found.get(number, Need()), 0
        for value in dict.fromkeys(node.inputs):
            if value in graph.constants:
                passes += graph.constants[value].nbytes
                continue
            source = graph.producer.get(value)
            if source is None:
                feed = graph.feeds[value]
                passes += size_of(feed.dtype.size, costs.shapes.feed(feed))
            # What is read of a variable lies in it.
            elif source.op_def.reads_as is None:
                passes += costs.size(source.operation.outputs[source.outputs.index(value)])
        if not _lies_in_variable(node):
            passes += sum(map(costs.size, node.operation.outputs))
        stays = need.stays + variable_bytes(node)
        found[number] = Need(stays, max(need.passes, passes))
    return found


def _lies_in_variable(node: Node) -> bool:
    """Whether what a node gives is a handle, or takes no memory besides the variable's."""
    op_def = node.op_def
    is_assigned = op_def.access is Access.WRITE and not op_def.needs_value
    return op_def.is_handle or op_def.reads_as is not None or is_assigned


def variable_bytes(node: Node) -> int:
    """The memory of the variable that a node owns; nothing if it owns none."""
    if node.op_def.owns != VARIABLE.name:
        return 0
    return size_of(node.attributes["dtype"].size, node.attributes["shape"])
