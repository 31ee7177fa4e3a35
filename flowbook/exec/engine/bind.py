"""From a plan's names to what this process runs: kernels, their attributes and resources."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from flowbook.exec.devices.device import Device
from flowbook.exec.engine.units import AsyncKernel, Handle, Kernel, Unit
from flowbook.exec.plan.plan import Plan
from flowbook.exec.resources.container import Resources
from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.definition.widened import widened
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.registry import kernel_for, op_named, registered_kernel


class Bound(NamedTuple):
    """A plan bound to this process.

    Attributes:
        units: one for each node.
        known: constants and handles, by value.
    """

    units: list[Unit]
    known: dict[int, Any]


class _Found(NamedTuple):
    """What all nodes of one type share."""

    function: Callable[..., Any] | None
    attributes: list[str]
    is_positional: bool
    expression: Any
    is_single: bool
    is_users: bool
    kind: type[Kernel]


def bind(
    plan: Plan, operations: Sequence[Operation], device: Device, resources: Resources
) -> Bound:
    """Find the kernels and resources of a plan."""
    known: dict[int, Any] = dict(plan.constants)
    units: list[Unit] = []
    types: dict[OpDef, _Found] = {}
    for node, operation in zip(plan.nodes, operations, strict=True):
        op_def = operation.op_def if operation.op_def.type == node.type else op_named(node.type)
        found = types.get(op_def)
        if found is None:
            found = types[op_def] = _find(op_def, device)
        leading: tuple[Any, ...] = ()
        if op_def.resource is not None:
            leading = (resources.of(operation),)
        if found.function is None:
            (known[node.outputs[0]],) = leading
            units.append(Handle(node.inputs, node.outputs, node.after))
            continue
        function = widened(operation, found.function)
        units.append(
            found.kind(
                node[3:],
                operation,
                function,
                device.xp,
                leading,
                {name: node.attributes[name] for name in found.attributes}
                if found.attributes
                else _NONE,
                found.is_positional,
                found.expression if function is found.function else None,
                found.is_single,
                found.is_users,
            )
        )
    return Bound(units, known)


_NONE: dict[str, Any] = {}


def _find(op_def: OpDef, device: Device) -> _Found:
    special = registered_kernel(op_def, device.kind)
    function = kernel_for(op_def, device.kind)
    attributes = op_def.kernel_attributes(function) if function is not None else []
    return _Found(
        function,
        attributes,
        function is not None and _is_positional(function, attributes),
        op_def.expression if special is None and op_def.is_inlined else None,
        len(op_def.outputs) == 1 and not op_def.outputs[0].is_list,
        special is not None or not op_def.is_builtin,
        AsyncKernel if op_def.is_async else Kernel,
    )


def _is_positional(function: Callable[..., Any], attributes: list[str]) -> bool:
    """Whether a kernel's last parameters are exactly its attributes, in the definition's order."""
    if not attributes:
        return True
    parameters = list(inspect.signature(function).parameters.values())
    last = parameters[-len(attributes) :]
    return [p.name for p in last] == attributes and all(
        p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters
    )
