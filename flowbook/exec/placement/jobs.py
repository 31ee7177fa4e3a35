"""The nodes of a graph and the devices, as the simulation of a step sees them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from flowbook.exec.devices.device import Device
from flowbook.exec.placement.cost_model import link_between, seconds, size_of, work_of
from flowbook.exec.placement.room import Need
from flowbook.exec.placement.simulation import Job, Transfer
from flowbook.graph.definition.op_def import HOST
from flowbook.graph.model.dtypes import DType, float32
from flowbook.graph.model.shape import Shape
from flowbook.graph.rewrite.subgraph import Node, Subgraph
from flowbook.graph.transfer.shaping import Shaped


def jobs_of(
    graph: Subgraph,
    kinds: Sequence[str],
    shapes: Shaped,
    is_lossy: Callable[[int], bool] = lambda value: False,
) -> list[Job]:
    """The nodes of a graph, as the simulation sees them.

    Args:
        graph: the graph.
        kinds: those of the devices.
        shapes: what is known of shapes.
        is_lossy: whether half of the bits of a value are what crosses, if it is float32.
    """
    index = {node: i for i, node in enumerate(graph.nodes)}
    producer, constants = graph.producer, graph.constants
    jobs = []
    for node in graph.nodes:
        work = work_of(node, shapes.of(node.operation))
        taken = []
        for value in node.inputs:
            if value in constants:
                continue
            source = producer.get(value)
            if source is None:
                feed = graph.feeds[value]
                taken.append((-1, value, size_of(feed.dtype.size, shapes.feed(feed))))
                continue
            port = source.outputs.index(value)
            operation = shapes.of(source.operation)
            dtype = operation.dtypes[port]
            size = size_of(dtype.size, operation.shapes[port])
            crossing = size // 2 if dtype is float32 and is_lossy(value) else size
            taken.append((index[source], port, crossing))
        waited = tuple([index[other] for other in (*node.after, *node.behind)])
        on_kind = {kind: seconds(work, kind) for kind in dict.fromkeys(kinds)}
        times = tuple([on_kind[kind] for kind in kinds])
        jobs.append(Job(times, tuple(taken), waited, work.trips))
    return jobs


def transfer_among(devices: Sequence[Device]) -> Transfer:
    """What transfers between devices take."""
    links = [[_link(source, to) for to in devices] for source in devices]
    # Feeds are in host memory, which is the last.
    host = next((device for device in devices if device.kind in HOST), devices[0])
    links.append([(0.0, 0.0) if to.kind in HOST else _link(host, to) for to in devices])

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


def needs_of(graph: Subgraph, group_of: Sequence[int], shapes: Shaped) -> dict[int, Need]:
    """How much memory each group takes."""
    found: dict[int, Need] = {}
    for node, number in zip(graph.nodes, group_of, strict=True):
        need, passes = found.get(number, Need()), 0
        for value in node.inputs:
            if value in graph.constants:
                passes += graph.constants[value].nbytes
                continue
            source = graph.producer.get(value)
            # What is read of a variable lies in it.
            if source is not None and source.op_def.reads_as is None:
                operation = shapes.of(source.operation)
                port = source.outputs.index(value)
                passes += size_of(operation.dtypes[port].size, operation.shapes[port])
        if node.op_def.reads_as is None and not node.op_def.is_handle:
            operation = shapes.of(node.operation)
            passes += sum(map(_size, operation.dtypes, operation.shapes))
        stays = need.stays + variable_bytes(node)
        found[number] = Need(stays, max(need.passes, passes))
    return found


def _size(dtype: DType, shape: Shape) -> int:
    return size_of(dtype.size, shape)


def variable_bytes(node: Node) -> int:
    """The memory of the variable that a node owns; nothing if it owns none."""
    if node.op_def.owns != "variable":
        return 0
    return size_of(node.attributes["dtype"].size, node.attributes["shape"])
