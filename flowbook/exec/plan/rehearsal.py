"""How the plan of a run is explained: placed as the run is, and gone through without being run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.rewrite.subgraph import Node, Subgraph
from flowbook.graph.transfer.shaping import shaped

_NOTHING = Settled()

# It is said when another placement would end so much earlier.
_WORTH_SAYING = 0.95


def explain(
    signature: Signature,
    shapes: Mapping[Tensor, Shape],
    devices: Sequence[Device],
    settled: Settled = _NOTHING,
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
        measured: what operations took in steps that were traced.
        is_here: whether the devices are those that the session has.
        lossy: see `pipeline.grow`.

    Raises:
        InvalidArgumentError: as `pipeline.grow`.
    """
    graph = reduced(signature)
    costs = Costs(shaped(graph.operations, shapes), measured)
    placement = place_with_homes(graph, devices, None, settled)
    explaining = _Explaining(signature, graph, devices, costs, lossy, is_here)
    plan = explaining.plan(placement)
    if len(devices) > 1:
        # What was put somewhere may be put elsewhere, and what lives somewhere moves there.
        other = place(graph, devices, None, settled.freed, costs)
        better = explaining.plan(other)
        if better.seconds < plan.seconds * _WORTH_SAYING:
            plan.better = better
    return plan


def explain_found(
    signature: Signature,
    shapes: Mapping[Tensor, Shape],
    devices: Sequence[Device],
    settled: Settled,
    measured: Measurements,
    search: Search,
    lossy: Lossy = False,
) -> list[tuple[str, Explanation]]:
    """The plans of a run as it is placed now, greedily, and as a search finds it; see `explain`."""
    graph = reduced(signature)
    costs = Costs(shaped(graph.operations, shapes), measured)
    now = place_with_homes(graph, devices, None, settled)
    placed = [("as it is", now)]
    if len(devices) > 1:
        place(graph, devices, None, settled.freed, costs, search)
        for number, found in enumerate(search.best):
            other = place(graph, devices, None, settled.freed, costs, partial(_given, found))
            placed.append((f"found {number}" if number else "greedy", other))
    explaining = _Explaining(signature, graph, devices, costs, lossy)
    return [(name, explaining.plan(placement)) for name, placement in placed]


def _given(assignment: Assignment, problem: Problem) -> Assignment:
    """What was found already."""
    return assignment


class _Explaining:
    """A run, explained for one placement or another.

    Args:
        signature: what is asked for.
        graph: what is left to run for it.
        devices: those that there are.
        costs: what is known of what operations cost.
        lossy: see `pipeline.grow`.
        is_here: whether the devices are those that the session has.
    """

    def __init__(
        self,
        signature: Signature,
        graph: Subgraph,
        devices: Sequence[Device],
        costs: Costs,
        lossy: Lossy,
        is_here: bool = True,
    ) -> None:
        self._signature = signature
        self._graph = graph
        self._devices = devices
        self._costs = costs
        self._is_lossy = lossy_values(graph, lossy)
        self._is_here = is_here
        self._index = {node: i for i, node in enumerate(graph.nodes)}

    def plan(self, placement: Placement) -> Explanation:
        """The plan of the run where it is placed so."""
        graph, costs = self._graph, self._costs
        on = [placement.device_of(node.operation) for node in graph.nodes]
        pairs = list(zip(graph.nodes, on, strict=True))
        outputs = [self._outputs(node, is_apart(device.name)) for node, device in pairs]
        course = self._course(placement, outputs)
        planned = {
            node.operation: Planned(
                device.name,
                course.begins[i],
                course.ends[i],
                sum(each.size for each in outputs[i]),
                placement.decisions.get(node.operation),
                costs.is_measured(node, device.kind),
            )
            for i, (node, device) in enumerate(pairs)
        }
        names = [device.name for device in self._devices]
        moved = [
            Moved(
                _named(graph, each.maker, each.port),
                names[each.source] if each.source >= 0 else "host",
                names[each.destination],
                each.size,
                each.begin,
                each.end,
            )
            for each in course.crossings
        ]
        return Explanation(
            self._signature,
            planned,
            self._loads(placement, course),
            moved,
            [graph.nodes[index].operation for index in course.critical],
            course.end,
            placement,
            graph.went,
            _in_place_of(graph),
            self._is_here,
        )

    def _course(self, placement: Placement, outputs: Sequence[Sequence[Output]]) -> Course:
        """How a step goes with some placement."""
        graph, devices, index = self._graph, self._devices, self._index
        transfer = transfer_among(devices)
        jobs = jobs_of(graph, [device.kind for device in devices], self._costs, self._is_lossy)
        number = {device.name: place for place, device in enumerate(devices)}
        placed = [number[placement.device_of(node.operation).name] for node in graph.nodes]
        makers = [(value, graph.producer.get(value)) for value in graph.fetches]
        kept = {(index[n], n.outputs.index(value)) for value, n in makers if n in index}
        # In the order in which devices take them.
        how = jobs, range(len(jobs)), placed, len(devices), transfer, outputs, kept
        ends = follow(*how).ends
        late = late_receives(jobs, placed, ends, transfer, waits_of(graph, devices))
        return follow(*how, {key: each.begin for key, each in late.items()})

    def _outputs(self, node: Node, is_apart: bool) -> list[Output]:
        """What a node gives, and what of it lies in other values' memory."""
        graph, op_def = self._graph, node.op_def
        operation = self._costs.shapes.of(node.operation)
        aliases = op_def.views
        if not (op_def.swaps and is_apart):
            # A stack holds what was pushed, and gives that back.
            aliases = {**aliases, **op_def.pushes, **op_def.pops}
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
                            shows = self._index[maker], maker.outputs.index(value)
            found.append(Output(size, shows, whole))
        return found

    def _loads(self, placement: Placement, course: Course) -> dict[str, Load]:
        """What each device has to do."""
        variables = dict.fromkeys([device.name for device in self._devices], 0)
        operations, swapped = dict.fromkeys(variables, 0), dict.fromkeys(variables, 0)
        for node in self._graph.nodes:
            name = placement.device_of(node.operation).name
            operations[name] += 1
            variables[name] += variable_bytes(node)
            if node.op_def.swaps and node.op_def.pushes:
                swapped[name] += self._costs.work(node).swapped * self._costs.trips(node)
        loads = {}
        for number, device in enumerate(self._devices):
            peak, held = course.peak(number)
            loads[device.name] = Load(
                operations[device.name],
                course.busy[number],
                variables[device.name],
                peak,
                sum(each.size for each in course.crossings if each.destination == number),
                [
                    (_named(self._graph, each.maker, each.port), each.size)
                    for each in held[:MOST_NAMED]
                ],
                swapped[device.name],
            )
        return loads


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


def _named(graph: Subgraph, maker: int, port: int) -> str:
    """The name of a value in the simulation."""
    if maker < 0:
        return graph.feeds[port].name
    operation = graph.nodes[maker].operation
    return operation.outputs[port].name if port >= 0 else operation.name
