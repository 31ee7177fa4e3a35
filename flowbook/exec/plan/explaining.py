"""How the plan of a run is explained: placed as the run is, and gone through without being run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from flowbook.exec.devices.device import Device
from flowbook.exec.placement.cost_model import size_of
from flowbook.exec.placement.course import Course, Output, follow
from flowbook.exec.placement.decisions import Placement
from flowbook.exec.placement.homes import place_with_homes
from flowbook.exec.placement.jobs import jobs_of, transfer_among, variable_bytes
from flowbook.exec.placement.receiving import late_receives, waits_of
from flowbook.exec.placement.simulation import order_of, ranks
from flowbook.exec.plan.explanation import MOST_NAMED, Explanation, Load, Moved, Planned
from flowbook.exec.plan.pipeline import Lossy, lossy_values, reduced
from flowbook.exec.signature.signature import Signature
from flowbook.graph.model.resource_key import ResourceKey
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.rewrite.subgraph import Node, Subgraph
from flowbook.graph.transfer.shaping import Shaped, shaped


def explain(
    signature: Signature,
    shapes: Mapping[Tensor, Shape],
    devices: Sequence[Device],
    homes: Mapping[ResourceKey, Device],
    is_soft: bool = False,
    lossy: Lossy = False,
) -> Explanation:
    """The plan of a run, which is not run.

    Args:
        signature: what is asked for.
        shapes: the shapes of what is fed, checked.
        devices: the devices.
        homes: where resources live already.
        is_soft: see `place`.
        lossy: see `pipeline.grow`.

    Raises:
        InvalidArgumentError: as `pipeline.grow`.
    """
    graph = reduced(signature)
    known = shaped(graph.operations, shapes)
    nodes = graph.nodes
    index = {node: i for i, node in enumerate(nodes)}
    outputs = [_outputs(node, graph, index, known) for node in nodes]
    placement = place_with_homes(graph, devices, homes=homes, is_soft=is_soft)
    is_lossy = lossy_values(graph, lossy)
    course = _course(graph, devices, placement, known, outputs, is_lossy)
    by_shapes = course
    if len(devices) > 1:
        better = place_with_homes(graph, devices, None, homes, known, is_soft)
        by_shapes = _course(graph, devices, better, known, outputs, is_lossy)
    planned = {
        node.operation: Planned(
            placement.device_of(node.operation).name,
            course.begins[i],
            course.ends[i],
            sum(each.size for each in outputs[i]),
            placement.decisions.get(node.operation),
        )
        for i, node in enumerate(nodes)
    }
    return Explanation(
        signature,
        planned,
        _loads(graph, devices, placement, course),
        [
            Moved(
                _named(graph, each.maker, each.port),
                devices[each.source].name if each.source >= 0 else "host",
                devices[each.destination].name,
                each.size,
                each.begin,
                each.end,
            )
            for each in course.crossings
        ],
        [nodes[index].operation for index in course.critical],
        course.end,
        by_shapes.end,
        placement,
        graph.went,
        _in_place_of(graph),
    )


def _in_place_of(graph: Subgraph) -> dict[Tensor, Tensor]:
    """For what nothing is left of to run: what is made in its place."""
    there = set(graph.nodes)
    found = {p.outputs[0]: n.operation.outputs[0] for n in graph.nodes for p in n.joined}
    for tensor in graph.values:
        if graph.node_of.get(tensor.op) in there or tensor in found or tensor in graph.feeds:
            continue
        value = graph.value_of(tensor)
        maker = graph.producer.get(value)
        if value < len(graph.feeds):
            found[tensor] = graph.feeds[value]
        elif maker in there and value not in graph.constants:
            found[tensor] = maker.operation.outputs[maker.outputs.index(value)]
    return found


def _course(
    graph: Subgraph,
    devices: Sequence[Device],
    placement: Placement,
    shapes: Shaped,
    outputs: Sequence[Sequence[Output]],
    is_lossy: Callable[[int], bool],
) -> Course:
    """How a step goes with some placement."""
    transfer = transfer_among(devices)
    jobs = jobs_of(graph, [device.kind for device in devices], shapes, is_lossy)
    number = {device.name: index for index, device in enumerate(devices)}
    placed = [number[placement.device_of(node.operation).name] for node in graph.nodes]
    index = {node: i for i, node in enumerate(graph.nodes)}
    makers = [(value, graph.producer.get(value)) for value in graph.fetches]
    kept = {(index[n], n.outputs.index(value)) for value, n in makers if n in index}
    order = order_of(jobs, ranks(jobs, transfer))
    how = jobs, order, placed, len(devices), transfer, outputs, kept
    ends = follow(*how).ends
    late = late_receives(jobs, placed, ends, transfer, waits_of(graph, devices))
    return follow(*how, {key: each.begin for key, each in late.items()})


def _outputs(
    node: Node, graph: Subgraph, index: Mapping[Node, int], shapes: Shaped
) -> list[Output]:
    """What a node gives, and what of it lies in other values' memory."""
    operation, op_def = shapes.of(node.operation), node.op_def
    aliases = {} if op_def.computes else op_def.aliases or {}
    found = []
    for port, (dtype, shape) in enumerate(zip(operation.dtypes, operation.shapes, strict=True)):
        whole = size_of(dtype.size, shape)
        size, shows = 0, None
        # What is a handle, or is read of a variable, lies there.
        if not op_def.is_handle and op_def.reads_as is None:
            if port not in aliases:
                size = whole
            else:
                value = node.inputs[aliases[port]]
                maker = graph.producer.get(value)
                if value not in graph.constants:
                    shows = -1, value
                    if maker is not None:
                        shows = index[maker], maker.outputs.index(value)
        found.append(Output(size, shows, whole))
    return found


def _loads(
    graph: Subgraph, devices: Sequence[Device], placement: Placement, course: Course
) -> dict[str, Load]:
    variables = dict.fromkeys([device.name for device in devices], 0)
    operations = dict.fromkeys(variables, 0)
    for node in graph.nodes:
        name = placement.device_of(node.operation).name
        operations[name] += 1
        variables[name] += variable_bytes(node)
    loads = {}
    for number, device in enumerate(devices):
        peak, held = course.peak(number)
        loads[device.name] = Load(
            operations[device.name],
            course.busy[number],
            variables[device.name],
            peak,
            sum(each.size for each in course.crossings if each.destination == number),
            [(_named(graph, each.maker, each.port), each.size) for each in held[:MOST_NAMED]],
        )
    return loads


def _named(graph: Subgraph, maker: int, port: int) -> str:
    """The name of a value in the simulation."""
    if maker < 0:
        return graph.feeds[port].name
    operation = graph.nodes[maker].operation
    return operation.outputs[port].name if port >= 0 else operation.name
