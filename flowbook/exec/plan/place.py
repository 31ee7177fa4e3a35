"""Which device each operation runs on, and why (white paper, sections 3.2.1 and 4.3).

Feasible are the devices that every request within a group of inseparable operations admits, and
that have kernels for them. Among several the choice is made so that the step would end early
(`assignment.py`), by what the cost model expects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from flowbook.exec.devices.cuda import why_not
from flowbook.exec.devices.device import Device
from flowbook.exec.plan.assignment import Problem, assign
from flowbook.exec.plan.cost_model import link_between, seconds, size_of, work_of
from flowbook.exec.plan.room import Need
from flowbook.exec.plan.simulation import Job, Transfer
from flowbook.exec.plan.together import colocated, inseparable
from flowbook.exec.report import in_bytes, in_seconds
from flowbook.graph.definition.op_def import HOST, OpDef
from flowbook.graph.model.device_spec import DeviceSpec
from flowbook.graph.model.dtypes import DType
from flowbook.graph.model.errors import InvalidArgumentError, ResourceExhaustedError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.registry import dtype_not_held, kernel_for, kinds_with_kernel
from flowbook.graph.model.resource_key import ResourceKey
from flowbook.graph.model.shape import Shape
from flowbook.graph.rewrite.subgraph import Node, Subgraph
from flowbook.graph.transfer.shaping import Shaped

# Nothing is known of shapes but what the graph says.
_AS_BUILT = Shaped()

# An error lists so many of the operations that have to share a device.
_MOST_LISTED = 12


class Decision(NamedTuple):
    """Why an operation runs where it does.

    Attributes:
        because: what leaves no other device; empty if the simulation decided.
        ends: when it would have ended on each device, by name, in seconds from the step's
            beginning, or, where a graph grew by it, from when its inputs are made; empty where
            another operation, inseparable from it, was decided first.
        ruled_out: why a device was none to choose, by name.
        is_first: whether it ends first where it runs; if not, the whole step ends earlier so.
    """

    because: str = ""
    ends: Mapping[str, float] = {}
    ruled_out: Mapping[str, str] = {}
    is_first: bool = True

    @property
    def why(self) -> str:
        """What decided, in a few words."""
        if self.because or not self.ends:
            return self.because or "it can run nowhere else"
        return "it would end first there" if self.is_first else "the whole step ends earlier so"

    @property
    def text(self) -> str:
        """The decision in a sentence."""
        if self.because:
            return self.because
        found = self.why
        if self.ends:
            ends = "; ".join(f"{name} after {in_seconds(end)}" for name, end in self.ends.items())
            found += f": {ends}" if self.is_first else f", though it would end: {ends}"
        ruled = "; ".join(f"{name} {why}" for name, why in self.ruled_out.items())
        return f"{found} ({ruled})" if ruled else found


@dataclass(frozen=True)
class Placement:
    """The device of every node.

    Attributes:
        default: the device of the nodes that nothing constrains.
        chosen: the devices of the others.
        decisions: why, for the others.
    """

    default: Device
    chosen: dict[Operation, Device] = field(default_factory=dict)
    decisions: dict[Operation, Decision] = field(default_factory=dict)

    def device_of(self, operation: Operation) -> Device:
        """The device that the operation runs on."""
        return self.chosen.get(operation, self.default)

    def reason(self, operation: Operation) -> str:
        """Why it runs there."""
        decision = self.decisions.get(operation)
        if decision is not None:
            return decision.text
        return f"nothing constrains it, and {self.default.name} is the first device"


def place(
    graph: Subgraph,
    devices: Sequence[Device],
    before: Placement | None = None,
    homes: Mapping[ResourceKey, Device] | None = None,
    shapes: Shaped = _AS_BUILT,
    is_soft: bool = False,
) -> Placement:
    """Choose a device for every node.

    Args:
        graph: what runs. A request holds even for an operation that was computed before the run.
        devices: those that there are.
        before: the placement of what the graph was grown from, which stays; what is new asks for
            nothing, and is placed alone.
        homes: where resources live already.
        shapes: what is known of shapes besides what the graph says.
        is_soft: whether a request that cannot be met is no error: another device of the kind does,
            or else any.

    Raises:
        InvalidArgumentError: if a request, or the requests of inseparable operations together,
            admit no device, naming what rules each out.
        ResourceExhaustedError: if what has to be on a device does not fit into its memory.
    """
    if before is not None and len(devices) > 1:
        placement = _grown(graph, devices, before, homes or {}, shapes, is_soft)
    else:
        placement = before if before is not None else Placement(devices[0])
    if before is None:
        groups = _groups(graph, devices, homes or {}, is_soft)
        if len(devices) == 1:
            for group in groups:
                for op in group.operations:
                    placement.chosen[op] = devices[0]
                    placement.decisions[op] = Decision(group.because)
        else:
            _decide(graph, devices, groups, placement, shapes)
    served: set[tuple[OpDef[Any], str]] = set()
    for node in graph.new:
        op_def, kind = node.op_def, placement.device_of(node.operation).kind
        if (op_def, kind) not in served:
            if not op_def.is_handle and kernel_for(op_def, kind) is None:
                raise _without_kernel(node.operation, op_def, kind)
            served.add((op_def, kind))
        dtype = dtype_not_held(node.operation, kind)
        if dtype is not None:
            raise _not_held(node.operation, dtype, kind)
    return placement


class _Group(NamedTuple):
    """Inseparable operations.

    Attributes:
        operations: all of them.
        feasible: the numbers of the devices that they may run on.
        because: what leaves no other, in words; empty if nothing is asked.
        ruled_out: why the others do not do, by their names.
    """

    operations: Sequence[Operation]
    feasible: Sequence[int]
    because: str
    ruled_out: Mapping[str, str]


def _groups(
    graph: Subgraph,
    devices: Sequence[Device],
    homes: Mapping[ResourceKey, Device],
    is_soft: bool,
) -> list[_Group]:
    """What is inseparable, and where it may run; with one device only what asks for something."""
    able = _Able(devices)
    if len(devices) == 1:
        together, nodes = colocated(graph.operations), []
    else:
        together, nodes = inseparable(graph, homes), graph.new
    definitions = {node.operation: node.op_def for node in nodes}
    everywhere = _Group((), range(len(devices)), "", {})
    found = []
    for operations in together.groups():
        op_defs = [definitions[op] for op in operations if op in definitions]
        is_free = not any(op.device or op.key in homes for op in operations)
        if is_free and len(devices) > 1 and able.are_everywhere(operations, op_defs):
            found.append(everywhere._replace(operations=operations))
            continue
        found.append(_group(operations, devices, able, definitions, homes, is_soft))
    return found


class _Able:
    """Which devices have kernels for operation types."""

    def __init__(self, devices: Sequence[Device]) -> None:
        self._kinds = {device.kind for device in devices}
        self._found: dict[tuple[OpDef[Any], str], bool] = {}

    def has_kernel(self, op_def: OpDef[Any], kind: str) -> bool:
        """Whether a kind of device has a kernel of a type."""
        found = self._found.get((op_def, kind))
        if found is None:
            found = op_def.is_handle or kernel_for(op_def, kind) is not None
            self._found[op_def, kind] = found
        return found

    def are_everywhere(
        self, operations: Sequence[Operation], op_defs: Sequence[OpDef[Any]]
    ) -> bool:
        """Whether all devices can run operations, and have kernels of their types."""
        return all(
            all(self.has_kernel(op_def, kind) for op_def in op_defs)
            and not any(dtype_not_held(op, kind) for op in operations)
            for kind in self._kinds
        )

    def lack(self, operation: Operation, op_def: OpDef[Any], kind: str) -> str | None:
        """What a kind of device lacks to run an operation, in words; None if it can."""
        if not self.has_kernel(op_def, kind):
            return f"has no kernel for {operation.name!r}"
        dtype = dtype_not_held(operation, kind)
        return None if dtype is None else f"holds no {dtype.name}, which {operation.name!r} has"


def _group(
    operations: Sequence[Operation],
    devices: Sequence[Device],
    able: _Able,
    definitions: Mapping[Operation, OpDef[Any]],
    homes: Mapping[ResourceKey, Device],
    is_soft: bool,
) -> _Group:
    requests = {op: DeviceSpec.parse(op.device) for op in operations if op.device}
    own = [op for op in operations if op in definitions]
    because = ", ".join(f"{op.name!r} asks for {op.device}" for op in requests)
    admitted = _admitting(requests.values(), devices)
    if is_soft and not _able_to_run(own, devices, admitted, able, definitions)[0]:
        asked = because
        for fewer in ([replace(r, index=None) for r in requests.values()], ()):
            admitted = _admitting(fewer, devices)
            if _able_to_run(own, devices, admitted, able, definitions)[0]:
                break
        because = f"{asked}, which cannot be met" if asked else ""
    if not admitted:
        raise _infeasible(operations, requests, definitions, devices)
    if len(operations) > 1 and not because and len(devices) == 1:
        because = "colocated operations stay together"
    living = [op for op in operations if op.key is not None and op.key in homes]
    if living:
        home = devices.index(homes[living[0].key])  # type: ignore[index]
        if home in admitted:
            lives = f"{living[0].name!r} lives there"
            return _Group(operations, [home], f"{because}, and {lives}" if because else lives, {})
    feasible, ruled_out = _able_to_run(own, devices, admitted, able, definitions)
    if not feasible and len(operations) > 1:
        raise _without_common_kernels(operations, definitions, requests, ruled_out)
    # Of a single one it is said later that it has no kernel.
    return _Group(operations, feasible or admitted, because, ruled_out)


def _admitting(requests: Iterable[DeviceSpec], devices: Sequence[Device]) -> list[int]:
    """The devices that all requests admit."""
    asked = list(requests)
    return [i for i, d in enumerate(devices) if all(r.admits(d.spec) for r in asked)]


def _able_to_run(
    operations: Sequence[Operation],
    devices: Sequence[Device],
    admitted: Sequence[int],
    able: _Able,
    definitions: Mapping[Operation, OpDef[Any]],
) -> tuple[list[int], dict[str, str]]:
    """The devices that have kernels for all operations, and what the others lack, by name."""
    ruled_out: dict[str, str] = {}
    feasible = []
    for index in admitted:
        device = devices[index]
        lacks = (able.lack(op, definitions[op], device.kind) for op in operations)
        lack = next(filter(None, lacks), None)
        if lack is None:
            feasible.append(index)
        else:
            ruled_out[device.name] = lack
    return feasible, ruled_out


def _decide(
    graph: Subgraph,
    devices: Sequence[Device],
    groups: Sequence[_Group],
    placement: Placement,
    shapes: Shaped,
) -> None:
    """Choose a device for every group, and note why."""
    number_of = {op: i for i, group in enumerate(groups) for op in group.operations}
    group_of = [number_of[node.operation] for node in graph.nodes]
    feasible = [group.feasible for group in groups]
    kinds = [device.kind for device in devices]
    jobs = jobs_of(graph, kinds, shapes)
    limits = [device.memory_limit for device in devices]
    is_bounded = any(limit is not None for limit in limits)
    needs = _needs(graph, group_of, shapes) if is_bounded else {}
    needed = [needs.get(number, Need()) for number in range(len(groups))]
    transfer = transfer_among(devices)
    problem = Problem(jobs, group_of, feasible, kinds, transfer, limits, needed)
    found = assign(problem)
    overfull = problem.room.overfull(found.chosen)
    if overfull is not None:
        there = [n for n, device in enumerate(found.chosen) if device == overfull]
        raise _out_of_memory(devices[overfull], [(groups[n], needed[n]) for n in there])
    for number, group in enumerate(groups):
        device = devices[found.chosen[number]]
        told = {devices[each].name: end for each, end in found.ends.get(number, {}).items()}
        is_first = not told or told.get(device.name) == min(told.values())
        full = {
            devices[each].name: "has no memory left for it" for each in found.full.get(number, ())
        }
        ruled_out = {**group.ruled_out, **full} if full else group.ruled_out
        decision = Decision(group.because, told, ruled_out, is_first)
        for op in group.operations:
            placement.chosen[op] = device
            placement.decisions[op] = decision


def _grown(
    graph: Subgraph,
    devices: Sequence[Device],
    before: Placement,
    homes: Mapping[ResourceKey, Device],
    shapes: Shaped,
    is_soft: bool,
) -> Placement:
    """A placement and what is new, each group where it would end first once its inputs are made."""
    placement = Placement(before.default, before.chosen.copy(), before.decisions.copy())
    groups = {
        op: group for group in _groups(graph, devices, homes, is_soft) for op in group.operations
    }
    transfer = transfer_among(devices)
    number_of = {device.name: i for i, device in enumerate(devices)}

    def end_on(node: Node, device: int) -> float:
        arrivals = [0.0]
        for value in node.inputs:
            source = graph.producer.get(value)
            if source is not None and value not in graph.constants:
                operation = shapes.of(source.operation)
                port = source.outputs.index(value)
                size = size_of(operation.dtypes[port].size, operation.shapes[port])
                at = number_of[placement.device_of(source.operation).name]
                arrivals.append(transfer(size, at, device))
        work = work_of(node, shapes.of(node.operation))
        return max(arrivals) + seconds(work, devices[device].kind)

    for node in graph.new:
        if node.operation in placement.chosen:
            continue
        group = groups[node.operation]
        old = next((op for op in group.operations if op in before.chosen), None)
        if old is not None:
            device = before.chosen[old]
            decision = Decision(f"{old.name!r}, from which it cannot part, runs there")
        else:
            ends = {devices[i].name: end_on(node, i) for i in group.feasible}
            device = devices[number_of[min(ends, key=ends.__getitem__)]]
            decision = Decision(group.because, {} if group.because else ends, group.ruled_out)
        for op in group.operations:
            placement.chosen.setdefault(op, device)
            placement.decisions.setdefault(op, decision)
    return placement


def _needs(graph: Subgraph, group_of: Sequence[int], shapes: Shaped) -> dict[int, Need]:
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


def _out_of_memory(device: Device, there: Sequence[tuple[_Group, Need]]) -> ResourceExhaustedError:
    largest = sorted(there, key=lambda each: -sum(each[1]))
    stays, passes = sum(need.stays for _, need in there), max(need.passes for _, need in there)
    error = ResourceExhaustedError(
        f"{device.name} has {in_bytes(device.memory_limit or 0)}; what has to be there takes "
        f"{in_bytes(stays)} for variables and {in_bytes(passes)} for what one operation computes",
        largest[0][0].operations[0],
        hint="ask for other devices, or for none",
    )
    error.details += _bounded(
        [
            f"{group.operations[0].name!r} takes {in_bytes(sum(need))} "
            f"({group.operations[0].site.place})"
            for group, need in largest
            if sum(need)
        ]
    )
    return error


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


def jobs_of(graph: Subgraph, kinds: Sequence[str], shapes: Shaped) -> list[Job]:
    """The nodes of a graph, as the simulation sees them."""
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
            size = size_of(operation.dtypes[port].size, operation.shapes[port])
            taken.append((index[source], port, size))
        waited = tuple([index[other] for other in (*node.after, *node.behind)])
        on_kind = {kind: seconds(work, kind) for kind in dict.fromkeys(kinds)}
        times = tuple([on_kind[kind] for kind in kinds])
        jobs.append(Job(times, tuple(taken), waited, work.trips))
    return jobs


def _without_kernel(operation: Operation, op_def: OpDef[Any], kind: str) -> InvalidArgumentError:
    others = kinds_with_kernel(op_def)
    return InvalidArgumentError(
        f"it has no kernel for {kind!r}" + (f", only for {', '.join(others)}" if others else ""),
        operation,
        hint=f"fb.register_kernel one for {kind!r}, or run it elsewhere with fb.device"
        if others
        else f"give its OpDef a kernel, or fb.register_kernel one for {kind!r}",
    )


def _not_held(operation: Operation, dtype: DType, kind: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"arrays of a device of kind {kind!r} are never of {dtype.name}",
        operation,
        hint="run it elsewhere with fb.device, or fb.cast to a dtype that is held there",
    )


def _infeasible(
    group: Sequence[Operation],
    requests: Mapping[Operation, DeviceSpec],
    definitions: Mapping[Operation, OpDef[Any]],
    devices: Sequence[Device],
) -> InvalidArgumentError:
    asked = "; ".join(f"{op.name!r} asks for {op.device}" for op in requests)
    there = ", ".join(d.name for d in devices)
    together = "together these colocated operations admit" if len(group) > 1 else "this admits"
    error = InvalidArgumentError(
        f"{asked}: {together} none of the devices that there are: {there}",
        next(iter(requests)),
        hint="fb.device(None) or another name; sess.list_devices() lists them, and "
        f"fb.Session(soft_placement=True) takes another one{_of_gpus(requests, devices)}",
    )
    error.details += _constraints(group, definitions, requests)
    return error


def _of_gpus(requests: Mapping[Operation, DeviceSpec], devices: Sequence[Device]) -> str:
    """How to come by a GPU, where one is asked for and there is none."""
    asked = [spec.index or 0 for spec in requests.values() if spec.kind == "gpu"]
    if not asked or any(device.kind == "gpu" for device in devices):
        return ""
    here = f"fb.Session(devices=['gpu:{asked[0]}']) computes on this machine's"
    return f"; {why_not(asked[0]) or here}"


def _without_common_kernels(
    group: Sequence[Operation],
    definitions: Mapping[Operation, OpDef[Any]],
    requests: Mapping[Operation, DeviceSpec],
    ruled_out: Mapping[str, str],
) -> InvalidArgumentError:
    lacking = "; ".join(f"{name} {why}" for name, why in ruled_out.items())
    error = InvalidArgumentError(
        "no device that may run it has kernels for all operations that share one with it: "
        f"{lacking}",
        next(iter(requests), group[0]),
        hint="fb.register_kernel those that lack, or ask for another device",
    )
    error.details += _constraints(group, definitions, requests)
    return error


def _constraints(
    group: Sequence[Operation],
    definitions: Mapping[Operation, OpDef[Any]],
    requests: Mapping[Operation, DeviceSpec],
) -> list[str]:
    """For each of several operations what it asks for, and which kinds have a kernel of it."""
    if len(group) == 1:
        return []
    lines = []
    for op in group:
        asked = [f"asks for {op.device}"] if op in requests else []
        asked += [f"is colocated with {other.name!r}" for other in op.colocation]
        op_def = definitions.get(op, op.op_def)
        kinds = kinds_with_kernel(op_def)
        if not op_def.is_handle:
            asked.append(f"has kernels for {', '.join(kinds) or 'no kind of device'}")
        lines.append(f"{op.name!r} {', '.join(asked)} ({op.site.place})")
    return _bounded(lines)


def _bounded(lines: list[str]) -> list[str]:
    more = len(lines) - _MOST_LISTED
    return lines if more <= 0 else [*lines[:_MOST_LISTED], f"and {more:,} more operations"]
