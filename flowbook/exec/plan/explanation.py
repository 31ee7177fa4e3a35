"""The plan of a run without the run: where, why, how long, how much memory, what crosses.

Everything is computed in the virtual time of `simulation.py`, by the figures of the cost model; so
it can be told of devices too that are not here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from flowbook.exec.devices.device import Device
from flowbook.exec.plan.cost_model import size_of
from flowbook.exec.plan.course import Course, Output, follow
from flowbook.exec.plan.pipeline import reduced
from flowbook.exec.plan.place import (
    Decision,
    Placement,
    jobs_of,
    place,
    transfer_among,
    variable_bytes,
)
from flowbook.exec.plan.simulation import order_of, ranks
from flowbook.exec.report import Report, Table, in_bytes, in_seconds
from flowbook.exec.signature.signature import Signature
from flowbook.graph.building.graph import Graph
from flowbook.graph.model.called import called
from flowbook.graph.model.errors import NotFoundError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.resource_key import ResourceKey
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.rewrite.subgraph import Node, Subgraph
from flowbook.graph.transfer.shaping import Shaped, shaped

# So many operations of a critical path are named.
_MOST_NAMED = 8

# It is said when placing by the shapes given would end so much earlier.
_WORTH_SAYING = 0.95


class Planned(NamedTuple):
    """An operation of the plan.

    Attributes:
        device: the name of the device that it runs on.
        begin: when it begins, in seconds from the step's beginning.
        end: when it ends.
        bytes: of the values that it makes; what lies in another's memory is not counted.
        decision: why it runs there; None if nothing constrains it.
    """

    device: str
    begin: float
    end: float
    bytes: int
    decision: Decision | None


class Load(NamedTuple):
    """What a device has to do in a step.

    Attributes:
        operations: how many run there.
        busy: how many seconds it computes.
        variable_bytes: of the variables that live there and are part of the run.
        value_bytes: of the other values, at most at once; of a loop those of one iteration count.
        received_bytes: of what it receives from the host's memory and other devices.
        largest: the values that take most where `value_bytes` do, with their bytes.
    """

    operations: int
    busy: float
    variable_bytes: int
    value_bytes: int
    received_bytes: int
    largest: Sequence[tuple[str, int]]

    @property
    def peak_bytes(self) -> int:
        """The most memory that variables and values take together."""
        return self.variable_bytes + self.value_bytes


class Moved(NamedTuple):
    """A transfer.

    Attributes:
        value: the name of the tensor; of an operation, if it is only waited for.
        source: the name of the device that it comes from; "host" is the caller's memory.
        destination: the name of the device that it goes to.
        bytes: how many bytes go over.
        begin: when it sets out, in seconds from the step's beginning.
        end: when it is there.
    """

    value: str
    source: str
    destination: str
    bytes: int
    begin: float
    end: float


class Explanation(Report):
    """The plan of a run.

    Attributes:
        asked: the signature of the run.
        operations: each operation that runs, and where, when and why.
        loads: what each device has to do, by its name.
        transfers: what goes from one device to another.
        critical_path: the operations that one after the other decide when the step ends.
        seconds: how long the step is predicted to take.
        seconds_by_shapes: how long it would take if operations were placed by the shapes that were
            given here, and not by those that the graph tells.
        went: what became of operations of which nothing is left to run.
        in_place_of: for tensors of operations of which nothing is left to run, those that are made
            or fed in their place.
    """

    def __init__(
        self,
        asked: Signature,
        operations: Mapping[Operation, Planned],
        loads: Mapping[str, Load],
        transfers: Sequence[Moved],
        critical_path: Sequence[Operation],
        seconds: float,
        seconds_by_shapes: float,
        placement: Placement,
        went: Mapping[Operation, str],
        in_place_of: Mapping[Tensor, Tensor],
    ) -> None:
        self.asked = asked
        self.operations = operations
        self.loads = loads
        self.transfers = transfers
        self.critical_path = critical_path
        self.seconds = seconds
        self.seconds_by_shapes = seconds_by_shapes
        self._placement = placement
        self.went = went
        self.in_place_of = in_place_of

    @property
    def fetched(self) -> Sequence[Tensor | Operation]:
        """What the run is asked for."""
        return (*self.asked.fetches, *self.asked.targets)

    @property
    def fed(self) -> Sequence[Tensor]:
        """What it is given."""
        return self.asked.feeds

    @property
    def graph(self) -> Graph | None:
        """The graph of what is asked for; None if that is nothing."""
        return next((_operation(each).graph for each in self.fetched), None)

    def device(self, operation: Operation | Tensor) -> str:
        """The name of the device that an operation runs on.

        Raises:
            NotFoundError: if it is no part of the run, or nothing of it is left to run.
        """
        return self._planned(operation).device

    def reason(self, operation: Operation | Tensor) -> str:
        """Why an operation runs where it does, in a sentence.

        Raises:
            NotFoundError: if it is no part of the run, or nothing of it is left to run.
        """
        self._planned(operation)
        return self._placement.reason(_operation(operation))

    def _planned(self, operation: Operation | Tensor) -> Planned:
        wanted = _operation(operation)
        found = self.operations.get(wanted)
        if found is None:
            went = self.went.get(wanted)
            why = f"nothing of it is left to run: {went}" if went else "it does not run here"
            raise NotFoundError(why, wanted)
        return found

    @property
    def transferred_bytes(self) -> int:
        """The bytes of all transfers."""
        return sum(each.bytes for each in self.transfers)

    @property
    def table(self) -> Table:
        """A row for each device."""
        rows = [
            (
                name,
                f"{load.operations:,}",
                in_seconds(load.busy),
                in_bytes(load.peak_bytes),
                in_bytes(load.received_bytes),
            )
            for name, load in self.loads.items()
        ]
        return Table(
            f"{in_seconds(self.seconds)} predicted, {len(self.transfers):,} transfers of "
            f"{in_bytes(self.transferred_bytes)}",
            ("device", "operations", "busy", "memory at most", "received"),
            rows,
            self._notes(),
            (1, 2, 3, 4),
        )

    def _notes(self) -> list[str]:
        names = [called(operation) for operation in self.critical_path]
        notes = []
        if names:
            half = _MOST_NAMED // 2
            left_out = len(names) - _MOST_NAMED
            if left_out > 0:
                names = [*names[:half], f"{left_out:,} more", *names[-half:]]
            notes.append(f"The step ends when this is done: {', '.join(names)}.")
        if self.seconds_by_shapes < self.seconds * _WORTH_SAYING:
            end = in_seconds(self.seconds_by_shapes)
            notes.append(
                f"Placed by the shapes given here it would take {end}: give placeholders their "
                "shapes in the graph."
            )
        return notes


def explain(
    signature: Signature,
    shapes: Mapping[Tensor, Shape],
    devices: Sequence[Device],
    homes: Mapping[ResourceKey, Device],
    is_soft: bool = False,
) -> Explanation:
    """The plan of a run, which is not run.

    Args:
        signature: what is asked for.
        shapes: the shapes of what is fed, checked.
        devices: the devices.
        homes: where resources live already.
        is_soft: see `place`.

    Raises:
        InvalidArgumentError: as `pipeline.grow`.
    """
    graph = reduced(signature)
    known = shaped(graph.operations, shapes)
    nodes = graph.nodes
    index = {node: i for i, node in enumerate(nodes)}
    outputs = [_outputs(node, graph, index, known) for node in nodes]
    placement = place(graph, devices, homes=homes, is_soft=is_soft)
    course = _course(graph, devices, placement, known, outputs)
    by_shapes = course
    if len(devices) > 1:
        better = place(graph, devices, None, homes, known, is_soft)
        by_shapes = _course(graph, devices, better, known, outputs)
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
) -> Course:
    """How a step goes with some placement."""
    transfer = transfer_among(devices)
    jobs = jobs_of(graph, [device.kind for device in devices], shapes)
    number = {device.name: index for index, device in enumerate(devices)}
    placed = [number[placement.device_of(node.operation).name] for node in graph.nodes]
    index = {node: i for i, node in enumerate(graph.nodes)}
    makers = [(value, graph.producer.get(value)) for value in graph.fetches]
    kept = {(index[n], n.outputs.index(value)) for value, n in makers if n in index}
    order = order_of(jobs, ranks(jobs, transfer))
    return follow(jobs, order, placed, len(devices), transfer, outputs, kept)


def _outputs(
    node: Node, graph: Subgraph, index: Mapping[Node, int], shapes: Shaped
) -> list[Output]:
    """What a node gives, and what of it lies in other values' memory."""
    operation, op_def = shapes.of(node.operation), node.op_def
    aliases = {} if op_def.computes else op_def.aliases or {}
    found = []
    for port, (dtype, shape) in enumerate(zip(operation.dtypes, operation.shapes, strict=True)):
        if op_def.is_handle or op_def.reads_as is not None:
            found.append(Output(0))  # It lies in a variable.
        elif port not in aliases:
            found.append(Output(size_of(dtype.size, shape)))
        else:
            value = node.inputs[aliases[port]]
            maker = graph.producer.get(value)
            if value in graph.constants:
                found.append(Output(0))
            elif maker is None:
                found.append(Output(0, (-1, value)))
            else:
                found.append(Output(0, (index[maker], maker.outputs.index(value))))
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
            [(_named(graph, each.maker, each.port), each.size) for each in held[:_MOST_NAMED]],
        )
    return loads


def _named(graph: Subgraph, maker: int, port: int) -> str:
    """The name of a value in the simulation."""
    if maker < 0:
        return graph.feeds[port].name
    operation = graph.nodes[maker].operation
    return operation.outputs[port].name if port >= 0 else operation.name


def _operation(of: Operation | Tensor) -> Operation:
    return of.op if isinstance(of, Tensor) else of
