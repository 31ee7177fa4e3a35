"""How the plan of a run is explained: placed as the run is, and gone through without being run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from flowbook.exec.devices.device import Device
from flowbook.exec.placement.assignment import Assignment, Problem
from flowbook.exec.placement.cost_model import Costs, size_of
from flowbook.exec.placement.course import Course, Output, follow
from flowbook.exec.placement.decisions import Placement, Settled
from flowbook.exec.placement.homes import place_with_homes
from flowbook.exec.placement.jobs import jobs_of, transfer_among, variable_bytes
from flowbook.exec.placement.measurements import Measurements
from flowbook.exec.placement.place import place
from flowbook.exec.placement.receiving import late_receives, waits_of
from flowbook.exec.placement.search import Search
from flowbook.exec.plan.drafts import is_apart
from flowbook.exec.plan.explanation import MOST_NAMED, Explanation, Load, Moved, Planned
from flowbook.exec.plan.pipeline import Lossy, lossy_values, reduced
from flowbook.exec.signature.signature import Signature
from flowbook.graph.control_flow.stacks import pop, pop_from_host, push, push_to_host
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.rewrite.subgraph import Node, Subgraph
from flowbook.graph.transfer.shaping import Shaped, shaped

_NOTHING = Settled()

# Which output holds which input, of what stacks hold where it is, and what they hold on the host.
_HOLDING = {push: {0: 1}, pop: {0: 0}}
_SWAPPING = {push_to_host: {0: 1}, pop_from_host: {0: 0}}

# It is said when another placement would end so much earlier.
_WORTH_SAYING = 0.95


def explain(
    signature: Signature,
    shapes: Mapping[Tensor, Shape],
    devices: Sequence[Device],
    settled: Settled = _NOTHING,
    is_soft: bool = False,
    measured: Measurements | None = None,
    is_here: bool = True,
    lossy: Lossy = False,
) -> Explanation:
    """The plan of a run, which is not run.

    Args:
        signature: what is asked for.
        shapes: the shapes of what is fed, checked.
        devices: the devices.
        settled: what holds already of placement.
        is_soft: see `place`.
        measured: what operations took in steps that were traced.
        is_here: whether the devices are those that the session has.
        lossy: see `pipeline.grow`.

    Raises:
        InvalidArgumentError: as `pipeline.grow`.
    """
    graph = reduced(signature)
    costs = Costs(shaped(graph.operations, shapes), measured)
    placement = place_with_homes(graph, devices, None, settled, is_soft=is_soft)
    is_lossy = lossy_values(graph, lossy)
    plan = _explained(signature, graph, devices, placement, costs, is_here, is_lossy)
    if len(devices) > 1:
        # What was put somewhere may be put elsewhere, and what lives somewhere moves there.
        other = place(graph, devices, None, _NOTHING, costs, is_soft)
        better = _explained(signature, graph, devices, other, costs, is_here, is_lossy)
        if better.seconds < plan.seconds * _WORTH_SAYING:
            plan.better = better
    return plan


def explain_found(
    signature: Signature,
    shapes: Mapping[Tensor, Shape],
    devices: Sequence[Device],
    settled: Settled,
    is_soft: bool,
    measured: Measurements,
    search: Search,
    lossy: Lossy = False,
) -> list[tuple[str, Explanation]]:
    """The plans of a run as it is placed now, greedily, and as a search finds it; see `explain`."""
    graph = reduced(signature)
    costs = Costs(shaped(graph.operations, shapes), measured)
    now = place_with_homes(graph, devices, None, settled, is_soft=is_soft)
    placed = [("as it is", now)]
    if len(devices) > 1:
        place(graph, devices, None, _NOTHING, costs, is_soft, search)
        for number, found in enumerate(search.best):
            other = place(graph, devices, None, _NOTHING, costs, is_soft, partial(_given, found))
            placed.append((f"found {number}" if number else "greedy", other))
    is_lossy = lossy_values(graph, lossy)
    return [
        (name, _explained(signature, graph, devices, placement, costs, True, is_lossy))
        for name, placement in placed
    ]


def _given(assignment: Assignment, problem: Problem) -> Assignment:
    """What was found already."""
    return assignment


def _explained(
    signature: Signature,
    graph: Subgraph,
    devices: Sequence[Device],
    placement: Placement,
    costs: Costs,
    is_here: bool,
    is_lossy: Callable[[int], bool],
) -> Explanation:
    """The plan of a run that is placed in some way."""
    nodes = graph.nodes
    index = {node: i for i, node in enumerate(nodes)}
    outputs = [
        _outputs(
            node, graph, index, costs.shapes, is_apart(placement.device_of(node.operation).name)
        )
        for node in nodes
    ]
    course = _course(graph, devices, placement, costs, outputs, is_lossy)
    planned = {
        node.operation: Planned(
            placement.device_of(node.operation).name,
            course.begins[i],
            course.ends[i],
            sum(each.size for each in outputs[i]),
            placement.decisions.get(node.operation),
            costs.is_measured(node, placement.device_of(node.operation).kind),
        )
        for i, node in enumerate(nodes)
    }
    return Explanation(
        signature,
        planned,
        _loads(graph, devices, placement, costs, course),
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
        placement,
        graph.went,
        _in_place_of(graph),
        is_here,
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
    costs: Costs,
    outputs: Sequence[Sequence[Output]],
    is_lossy: Callable[[int], bool],
) -> Course:
    """How a step goes with some placement."""
    transfer = transfer_among(devices)
    jobs = jobs_of(graph, [device.kind for device in devices], costs, is_lossy)
    number = {device.name: index for index, device in enumerate(devices)}
    placed = [number[placement.device_of(node.operation).name] for node in graph.nodes]
    index = {node: i for i, node in enumerate(graph.nodes)}
    makers = [(value, graph.producer.get(value)) for value in graph.fetches]
    kept = {(index[n], n.outputs.index(value)) for value, n in makers if n in index}
    # In the order in which devices take them.
    how = jobs, range(len(jobs)), placed, len(devices), transfer, outputs, kept
    ends = follow(*how).ends
    late = late_receives(jobs, placed, ends, transfer, waits_of(graph, devices))
    return follow(*how, {key: each.begin for key, each in late.items()})


def _outputs(
    node: Node, graph: Subgraph, index: Mapping[Node, int], shapes: Shaped, is_apart: bool
) -> list[Output]:
    """What a node gives, and what of it lies in other values' memory."""
    operation, op_def = shapes.of(node.operation), node.op_def
    aliases = {} if op_def.computes else op_def.aliases or {}
    if op_def in _HOLDING or (op_def in _SWAPPING and not is_apart):
        # A stack holds what was pushed, and gives that back.
        aliases = _HOLDING.get(op_def) or _SWAPPING[op_def]
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
    graph: Subgraph,
    devices: Sequence[Device],
    placement: Placement,
    costs: Costs,
    course: Course,
) -> dict[str, Load]:
    variables = dict.fromkeys([device.name for device in devices], 0)
    operations, swapped = dict.fromkeys(variables, 0), dict.fromkeys(variables, 0)
    for node in graph.nodes:
        name = placement.device_of(node.operation).name
        operations[name] += 1
        variables[name] += variable_bytes(node)
        if node.op_def is push_to_host:
            swapped[name] += costs.work(node).swapped * costs.trips(node)
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
            swapped[device.name],
        )
    return loads


def _named(graph: Subgraph, maker: int, port: int) -> str:
    """The name of a value in the simulation."""
    if maker < 0:
        return graph.feeds[port].name
    operation = graph.nodes[maker].operation
    return operation.outputs[port].name if port >= 0 else operation.name
