"""What is inseparable, and on which devices it may run (white paper, section 4.3).

Feasible are the devices that every request within a group of inseparable operations admits, and
that have kernels for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from flowbook.exec.devices.cuda import why_not
from flowbook.exec.devices.device import Device
from flowbook.exec.devices.kinds import kind_named
from flowbook.exec.placement.decisions import Settled
from flowbook.exec.placement.together import colocated, inseparable
from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.counted import counted
from flowbook.graph.model.device_spec import DeviceSpec
from flowbook.graph.model.dtypes import DType
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.registry import dtype_not_held, kernel_for, kinds_with_kernel, known_kinds
from flowbook.graph.model.resource_key import ResourceKey
from flowbook.graph.rewrite.subgraph import Subgraph

# An error lists so many of the operations that have to share a device.
_MOST_LISTED = 12


class Group(NamedTuple):
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


def groups_of(
    graph: Subgraph,
    devices: Sequence[Device],
    settled: Settled,
) -> list[Group]:
    """What is inseparable, and where it may run; with one device only what asks for something."""
    if len(devices) > 1:
        groups, nodes = inseparable(graph, settled.homes).groups(), graph.new
    elif graph.asking:
        groups, nodes = colocated(graph.asking).groups(), []
    else:
        return []
    able = _Able(devices)
    definitions = {node.operation: node.op_def for node in nodes}
    everywhere = Group((), range(len(devices)), "", {})
    found = []
    for operations in groups:
        own = [(op, definitions[op]) for op in operations if op in definitions]
        is_free = not any(
            op.device or op.key in settled.homes or op in settled.moved for op in operations
        )
        if is_free and len(devices) > 1 and all(able.is_everywhere(*each) for each in own):
            found.append(everywhere._replace(operations=operations))
            continue
        found.append(_group(operations, devices, able, definitions, settled))
    return found


class _Able:
    """What kinds of devices can run operations."""

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

    def is_everywhere(self, operation: Operation, op_def: OpDef[Any]) -> bool:
        """Whether all devices can run an operation."""
        return not any(self.lack(operation, op_def, kind) for kind in self._kinds)

    def lack(self, operation: Operation, op_def: OpDef[Any], kind: str) -> str:
        """What a kind of device lacks to run an operation; nothing if it can."""
        if not self.has_kernel(op_def, kind):
            return f"has no kernel for {operation.name!r}"
        dtype = dtype_not_held(operation, kind)
        return f"holds no {dtype.name}, which {operation.name!r} is about" if dtype else ""


def _group(
    operations: Sequence[Operation],
    devices: Sequence[Device],
    able: _Able,
    definitions: Mapping[Operation, OpDef[Any]],
    settled: Settled,
) -> Group:
    requests = {op: DeviceSpec.parse(op.device) for op in operations if op.device}
    own = [op for op in operations if op in definitions]
    because = ", ".join(f"{op.name!r} asks for {op.device}" for op in requests)
    admitted = _admitting(requests.values(), devices)
    if settled.is_soft and not _able_to_run(own, devices, admitted, able, definitions)[0]:
        asked = because
        # First those of what has state: another step may put that where it asks to be.
        owners = [requests[op] for op in requests if op.key is not None]
        kinds = [replace(r, index=None) for r in requests.values()]
        for fewer in (owners or kinds, kinds, ()):
            admitted = _admitting(fewer, devices)
            if _able_to_run(own, devices, admitted, able, definitions)[0]:
                break
        because = f"{asked}, which cannot be met" if asked else ""
    if not admitted:
        raise _infeasible(operations, requests, definitions, devices)
    if len(operations) > 1 and not because and len(devices) == 1:
        because = "colocated operations stay together"
    feasible, ruled_out = _able_to_run(own, devices, admitted, able, definitions)
    for device, why, able_there in _settled(operations, settled, admitted, feasible):
        if device in devices and (home := devices.index(device)) in able_there:
            because = f"{because}, and {why}" if because else why
            return Group(operations, [home], because, ruled_out)
    if not feasible and len(operations) > 1:
        raise _without_common_kernels(operations, definitions, requests, ruled_out)
    # Of a single one it is said later that it has no kernel.
    return Group(operations, feasible or admitted, because, ruled_out)


def _settled(
    operations: Sequence[Operation],
    settled: Settled,
    admitted: Sequence[int],
    feasible: Sequence[int],
) -> Iterator[tuple[Device, str, Sequence[int]]]:
    """Where operations have to be by what holds already, why, and if it is one of which devices."""
    for op in operations:
        if op.key is not None and op.key in settled.homes:
            yield settled.homes[op.key], f"{op.name!r} lives there", admitted
    for op in operations:
        if op in settled.moved:
            yield settled.moved[op], f"sess.replace put {op.name!r} there", feasible


def carried(
    graph: Subgraph, moved: Mapping[Operation, Device], homes: Mapping[ResourceKey, Device]
) -> dict[ResourceKey, Device]:
    """Where resources go with the operations, and other resources, that they cannot part from."""
    found = {}
    for operations in inseparable(graph, homes).groups():
        keys = [op.key for op in operations if op.key is not None]
        by_operations = [moved[op] for op in operations if op in moved]
        by_keys = [homes[key] for key in keys if key in homes]
        for device in (*by_operations, *by_keys)[:1]:
            found.update(dict.fromkeys(keys, device))
    return found


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
    """The devices that can run all operations, and what the others lack, by name."""
    ruled_out: dict[str, str] = {}
    feasible = []
    for index in admitted:
        device = devices[index]
        lacks = (able.lack(op, definitions[op], device.kind) for op in operations)
        lack = next(filter(None, lacks), "")
        if lack:
            ruled_out[device.name] = lack
        else:
            feasible.append(index)
    return feasible, ruled_out


def without_kernel(operation: Operation, op_def: OpDef[Any], kind: str) -> InvalidArgumentError:
    """The error of an operation for whose device there is no kernel."""
    others = kinds_with_kernel(op_def)
    return InvalidArgumentError(
        f"it has no kernel for {kind!r}" + (f", only for {', '.join(others)}" if others else ""),
        operation,
        hint=f"fb.register_kernel one for {kind!r}, or run it elsewhere with fb.device"
        if others
        else f"give its OpDef a kernel, or fb.register_kernel one for {kind!r}",
    )


def not_held(operation: Operation, dtype: DType, kind: str) -> InvalidArgumentError:
    """The error of an operation on whose device no array can be of a dtype that it is about."""
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
        f"fb.Session(soft_placement=True) takes another one{_of_kinds(requests, devices)}",
    )
    error.details += _constraints(group, definitions, requests)
    return error


def _of_kinds(requests: Mapping[Operation, DeviceSpec], devices: Sequence[Device]) -> str:
    """How to come by a device of a kind that is asked for, where there is none of it."""
    there = {device.kind for device in devices}
    for spec in requests.values():
        if spec.kind is not None and spec.kind not in there:
            return f"; {_of_kind(spec.kind, spec.index or 0)}"
    return ""


def _of_kind(kind: str, index: int) -> str:
    """How to come by a device of a kind."""
    if kind_named(kind) is None:
        return known_kinds(kind)
    missing = why_not(index) if kind == "gpu" else None
    return missing or f"fb.Session(devices=['{kind}:{index}']) computes on this machine's"


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
    return bounded(lines)


def bounded(lines: list[str]) -> list[str]:
    """The first lines, and how many more there are."""
    more = len(lines) - _MOST_LISTED
    return lines if more <= 0 else [*lines[:_MOST_LISTED], f"and {counted(more, 'more operation')}"]
