"""From a part of a program to what this process runs: kernels, their attributes and resources."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from flowbook.exec.devices.device import Device
from flowbook.exec.engine.units import AsyncKernel, Call, Handle, Kernel, Router, Unit
from flowbook.exec.plan.program import Part, PlanNode
from flowbook.exec.resources.kinds import Definition
from flowbook.exec.resources.store import Store
from flowbook.graph.definition.op_def import OpDef, Retag
from flowbook.graph.definition.widened import widened
from flowbook.graph.model.dtypes import DType, as_dtype
from flowbook.graph.model.registry import Asked, kernel_for, op_keyed, registered_kernels
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.touch import Access

Spec = tuple[DType, Shape]


class Bound(NamedTuple):
    """A part bound to this process.

    Attributes:
        units: one for each node.
        known: constants and handles, by value.
        specs: the dtype and the known shape of all values.
        waits: whether a kernel is asynchronous.
        is_routed: whether a kernel says where values go.
        has_users_kernels: whether a kernel is a user's.
        draws: whether a kernel draws random numbers.
        runs_users_code: whether the step's own thread runs a user's Python code, which may take any
            time.
    """

    units: list[Unit]
    known: dict[int, Any]
    specs: dict[int, Spec]
    waits: bool
    is_routed: bool
    has_users_kernels: bool
    draws: bool
    runs_users_code: bool


class _Found(NamedTuple):
    """What all nodes of one type share."""

    op_def: OpDef[Any]
    function: Callable[..., Any] | None
    attributes: list[str]
    call: Call
    has_special: bool
    kind: type[Kernel]


def bind(
    part: Part,
    feeds: Sequence[Spec],
    device: Device,
    store: Store,
    begun: Bound | None = None,
) -> Bound:
    """Find the kernels and resources of a part.

    Args:
        part: what runs.
        feeds: the dtypes and shapes of what it is fed with.
        device: where.
        store: where its resources live.
        begun: what its first nodes are bound to already.

    Raises:
        NotFoundError: if an operation type is not defined in this process.
        InvalidArgumentError: if a named container holds another resource under a key.
    """
    known: dict[int, Any] = {} if begun is None else begun.known.copy()
    specs = dict(enumerate(feeds)) if begun is None else begun.specs.copy()
    units = [] if begun is None else begun.units.copy()
    for value, constant in part.constants.items():
        if value not in known:
            known[value] = constant if device.check(constant) else device.own(constant)
            specs[value] = as_dtype(constant.dtype), Shape.of(constant.shape)
    types: dict[str, _Found] = {}
    nodes = part.nodes[len(units) :]
    for node in nodes:
        specs.update(zip(node.outputs, zip(node.dtypes, node.shapes, strict=True), strict=False))
    for index, node in enumerate(nodes, len(units)):
        found = types.get(node.type)
        if found is None:
            found = types[node.type] = _find(op_keyed(node.type), device)
        units.append(_unit(index, node, found, device, store, known, specs))
    calls = [found for found in types.values() if found.function is not None]
    return Bound(
        units,
        known,
        specs,
        any(f.op_def.is_async for f in calls) or (begun is not None and begun.waits),
        any(f.op_def.is_router for f in calls) or (begun is not None and begun.is_routed),
        any(f.call.is_users for f in calls) or (begun is not None and begun.has_users_kernels),
        any(f.op_def.access is Access.DRAW for f in calls) or (begun is not None and begun.draws),
        any(not f.op_def.is_async and (f.op_def.runs_users_code or f.call.is_users) for f in calls)
        or (begun is not None and begun.runs_users_code),
    )


def _unit(
    index: int,
    node: PlanNode,
    found: _Found,
    device: Device,
    store: Store,
    known: dict[int, Any],
    specs: Mapping[int, Spec],
) -> Unit:
    op_def = found.op_def
    leading: tuple[Any, ...] = ()
    if op_def.owns is not None:
        assert node.key is not None
        leading = (store.of(node.key, Definition(op_def.owns, node.attributes)),)
    if found.function is None:
        (known[node.outputs[0]],) = leading
        return Handle(node, *leading)
    function = found.function
    call = found.call
    if found.has_special:
        taken = [specs[v] for v in node.inputs]
        asked = Asked([dtype for dtype, _ in taken], [shape for _, shape in taken], node.attributes)
        function = kernel_for(op_def, device.kind, asked) or function
    if op_def.computes:
        dtypes = [specs[v][0] for v in node.inputs]
        function = widened(op_def, dtypes, node.dtypes, function)
    if function is not found.function:
        call = call._replace(expression=None)
    attributes = {name: node.attributes[name] for name in found.attributes}
    unit = found.kind(index, node, function, device, leading, attributes, call)
    if isinstance(unit, Router):
        unit.fires_on_any = op_def.fires_on_any
        unit.retag = op_def.retag
        unit.sees_dead = op_def.sees_dead
        is_entrance = op_def.retag is Retag.PUSH
        unit.enters = node.attributes["frame_name"] if is_entrance else ""
        unit.is_constant = is_entrance and node.attributes["is_constant"]
    return unit


def _find(op_def: OpDef[Any], device: Device) -> _Found:
    registered = registered_kernels(op_def, device.kind)
    is_users = any(kernel.is_users for kernel in registered)
    function = kernel_for(op_def, device.kind)
    attributes = op_def.kernel_attributes(function) if function is not None else []
    kind: type[Kernel] = AsyncKernel if op_def.is_async else Kernel
    return _Found(
        op_def,
        function,
        attributes,
        Call(
            function is not None and _is_positional(function, attributes),
            op_def.expression if not is_users and op_def.is_inlined else None,
            len(op_def.outputs) == 1 and not op_def.outputs[0].is_list,
            is_users or not op_def.is_builtin,
            op_def.is_builtin,
        ),
        bool(registered) and not is_users,
        Router if op_def.is_router else kind,
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
