"""From a part of a program to what this process runs: kernels, their attributes and resources."""

from __future__ import annotations

import inspect
import itertools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from flowbook.exec.devices.cpu import Cpu
from flowbook.exec.devices.device import Device
from flowbook.exec.engine.recording import Place, timed, timed_until_report
from flowbook.exec.engine.units import AsyncKernel, Call, Handle, Kernel, Router, Unit
from flowbook.exec.plan.outline import arrives_dead
from flowbook.exec.plan.program import Feed, Part, PlanNode
from flowbook.exec.resources.kinds import Definition
from flowbook.exec.resources.store import Store
from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.definition.widened import is_narrow, widened
from flowbook.graph.model.dtypes import DType, as_dtype
from flowbook.graph.model.errors import NotFoundError
from flowbook.graph.model.registry import (
    Asked,
    Registered,
    kernel_for,
    kinds_with_kernel,
    op_keyed,
    registered_kernels,
)
from flowbook.graph.model.retag import Retag
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.touch import Access
from flowbook.graph.ops.communicate.transfer import fetch_op, receive_op
from flowbook.graph.rewrite.layered import Table, grown, since

_NO_ATTRIBUTES: dict[str, Any] = {}

_part_numbers = itertools.count()

# Where what a device brings into host memory lies.
_HOST = Cpu()


class Specs(NamedTuple):
    """What is known of values before the step.

    Attributes:
        feeds: what gives the first values.
        constants: the values that are known.
        givers: for each of the others the node that gives it.
        has_narrow: whether a value is of a dtype that is not always computed in.
    """

    feeds: Sequence[Feed]
    constants: Mapping[int, np.ndarray[Any, Any]]
    givers: Table[int, PlanNode]
    has_narrow: bool

    def of(self, value: int) -> tuple[DType, Shape]:
        """The dtype of a value, and what is known of its shape."""
        if value < len(self.feeds):
            feed = self.feeds[value]
            return feed.dtype, feed.shape
        constant = self.constants.get(value)
        if constant is not None:
            return as_dtype(constant.dtype), Shape.of(constant.shape)
        node = self.givers[value]
        port = node.outputs.index(value)
        return node.dtypes[port], node.shapes[port]


class Traits(NamedTuple):
    """What there is among the kernels of a part.

    Attributes:
        waits: whether one is asynchronous.
        is_routed: whether one says where values go, or what other parts send may be dead.
        has_users_kernels: whether one is a user's.
        draws: whether one draws random numbers.
        runs_users_code: whether the step's own thread runs a user's Python code, which may take any
            time.
        takes: whether one takes what is put back where a step is given up.
    """

    waits: bool = False
    is_routed: bool = False
    has_users_kernels: bool = False
    draws: bool = False
    runs_users_code: bool = False
    takes: bool = False

    def joined(self, other: Traits) -> Traits:
        """What there is among these kernels and others."""
        return self if other == self else Traits(*map(operator.or_, self, other))


class Bound(NamedTuple):
    """A part bound to this process.

    Attributes:
        units: one for each node.
        known: constants and handles, by value.
        constants: how many of these are constants.
        blank: a place for each value; those that are known are there.
        specs: what is known of all values.
        traits: what there is among its kernels.
        written: the containers in which a kernel writes variables.
    """

    units: list[Unit]
    known: Table[int, Any]
    constants: int
    blank: list[Any]
    specs: Specs
    traits: Traits
    written: frozenset[str]


NOTHING = Bound([], {}, 0, [], Specs((), {}, {}, False), Traits(), frozenset())


class _Found(NamedTuple):
    """What all nodes of one type share.

    Attributes:
        op_def: the type.
        traits: what its kernel brings among those of a part.
        function: its kernel, if it has one.
        attributes: those that the kernel takes.
        call: how that is called.
        has_special: whether another kernel may be for some of them.
        kind: of their units.
        plain: the kernel, where units differ in nothing but their nodes.
    """

    op_def: OpDef[Any]
    traits: Traits
    function: Callable[..., Any] | None
    attributes: list[str]
    call: Call
    has_special: bool
    kind: type[Kernel]
    plain: Callable[..., Any] | None


def bind(
    part: Part,
    feeds: Sequence[Feed],
    device: Device,
    store: Store,
    begun: Bound = NOTHING,
) -> Bound:
    """Find the kernels and resources of a part.

    Args:
        part: what runs.
        feeds: what it is fed with.
        device: where.
        store: what the device has of resources.
        begun: what its first nodes are bound to already.

    Raises:
        NotFoundError: if an operation type is not defined in this process, or has no kernel for
            this kind of device in it.
        InvalidArgumentError: if a named container holds another resource under a key.
        FailedPreconditionError: if it holds it in the memory of another device.
    """
    known = grown(begun.known)
    units = begun.units.copy()
    constants = part.constants
    kinds: set[np.dtype[Any]] = set()
    for value in since(constants, begun.constants):
        constant = constants[value]
        kinds.add(constant.dtype)
        stays = device.check(constant) or value in part.on_host
        known[value] = constant if stays else device.own(constant)
    nodes = part.nodes[len(units) :]
    specs = _specs(feeds, constants, kinds, nodes, begun.specs)
    timing = _Timing(part.nodes, device) if part.is_timed else None
    types: dict[str, _Found] = {}
    written: set[str] = set()
    for index, node in enumerate(nodes, len(units)):
        found = types.get(node.type)
        if found is None:
            found = types[node.type] = _find(op_keyed(node.type), device, timing is not None)
        if found.plain is not None and not specs.has_narrow:
            units.append(Kernel(index, node, found.plain, device, (), _NO_ATTRIBUTES, found.call))
        else:
            units.append(_unit(index, node, found, device, store, known, specs, timing))
        if node.key is not None and found.op_def.access is Access.WRITE:
            written.add(node.key.container)
    traits = begun.traits
    for found in types.values():
        traits = traits.joined(found.traits)
    if receive_op.key in types and any(map(arrives_dead, nodes)):
        traits = traits._replace(is_routed=True)
    blank = _blank(part, known, begun)
    containers = begun.written.union(written) if written else begun.written
    return Bound(units, known, len(constants), blank, specs, traits, containers)


def _blank(part: Part, known: Table[int, Any], begun: Bound) -> list[Any]:
    """A place for each value, with what is known in it."""
    blank = begun.blank + [None] * (part.values - len(begun.blank))
    for value in since(known, len(begun.known)):
        blank[value] = known[value]
    return blank


def _specs(
    feeds: Sequence[Feed],
    constants: Mapping[int, Any],
    kinds: Iterable[np.dtype[Any]],
    nodes: Sequence[PlanNode],
    begun: Specs,
) -> Specs:
    givers = grown(begun.givers)
    givers.update({value: node for node in nodes for value in node.outputs})
    dtypes = [feed.dtype for feed in feeds]
    dtypes += map(as_dtype, kinds)
    for node in nodes:
        dtypes += node.dtypes
    return Specs(feeds, constants, givers, begun.has_narrow or any(map(is_narrow, dtypes)))


def _unit(
    index: int,
    node: PlanNode,
    found: _Found,
    device: Device,
    store: Store,
    known: Table[int, Any],
    specs: Specs,
    timing: _Timing | None,
) -> Unit:
    op_def = found.op_def
    leading: tuple[Any, ...] = ()
    if op_def.owns is not None:
        assert node.key is not None
        leading = (store.of(node.key, Definition(op_def.owns, node.attributes)),)
    if found.function is None:
        if not op_def.is_handle:
            raise _without_kernel(node, op_def, device.kind)
        (known[node.outputs[0]],) = leading
        return Handle(node, *leading)
    function = found.function
    call = found.call
    if found.has_special or specs.has_narrow:
        given = [specs.of(v) for v in node.inputs]
        dtypes = [dtype for dtype, _ in given]
        if found.has_special:
            asked = Asked(dtypes, [shape for _, shape in given], node.attributes)
            function = kernel_for(op_def, device.kind, asked) or function
        function = widened(op_def, dtypes, node.dtypes, function)
    if function is not found.function:
        call = call._replace(expression=None)
    attributes = _NO_ATTRIBUTES
    if found.attributes:
        attributes = {name: node.attributes[name] for name in found.attributes}
    if timing is not None:
        function = timing.of(index, node, function, found.kind)
    is_for_host = op_def is fetch_op or (op_def is receive_op and attributes["on_host"])
    gives = _HOST if is_for_host else device
    unit = found.kind(index, node, function, gives, leading, attributes, call)
    if isinstance(unit, Router):
        unit.fires_on_any = op_def.fires_on_any
        unit.retag = op_def.retag
        unit.sees_dead = op_def.sees_dead
        unit.gives_dead = op_def.gives_dead
        is_entrance = op_def.retag is Retag.PUSH
        unit.enters = node.attributes["frame_name"] if is_entrance else ""
        unit.is_constant = is_entrance and node.attributes["is_constant"]
    return unit


def _without_kernel(node: PlanNode, op_def: OpDef[Any], kind: str) -> NotFoundError:
    """The error of a node whose kernel is registered where the program was made, and not here."""
    others = kinds_with_kernel(op_def)
    return NotFoundError(
        f"{op_def.type} {node.name!r} has no kernel for {kind!r} in this process"
        + (f", only for {', '.join(others)}" if others else ""),
        hint="first import the module, or run the cell, that registers one with "
        f"fb.register_kernel({op_def.type!r}, {kind!r})",
    )


class _Timing:
    """Has it noted when the kernels of a part run (`recording.py`).

    Args:
        nodes: those of the part.
        device: where they run.
    """

    def __init__(self, nodes: Sequence[PlanNode], device: Device) -> None:
        self._part = next(_part_numbers)
        self._device = device
        # Handles are known before the step: no kernel gives them.
        self._kernels = {i for i, node in enumerate(nodes) if not op_keyed(node.type).is_handle}
        self._producer = {v: i for i in self._kernels for v in nodes[i].outputs}

    def of(
        self, index: int, node: PlanNode, function: Callable[..., Any], kind: type[Kernel]
    ) -> Callable[..., Any]:
        """A kernel's function that notes when it runs.

        Args:
            index: the number of the node.
            node: what it computes.
            function: the kernel's.
            kind: of the unit that calls it.
        """
        needs = [self._producer[v] for v in node.inputs if v in self._producer]
        waited = [i for i in node.after if i in self._kernels]
        before = tuple(dict.fromkeys([*needs, *waited]))
        # What routes may give a dead value.
        size = None if kind is Router else _size(node)
        place = Place(self._device.name, self._part, index, node, before, size)
        if kind.is_async:
            return timed_until_report(function, place)
        return timed(function, place, self._device.moment)


def _size(node: PlanNode) -> int | None:
    """How many bytes a node's outputs have; None if that is not known."""
    size = 0
    for dtype, shape in zip(node.dtypes, node.shapes, strict=True):
        if shape.size is None or not dtype.size:
            return None
        size += shape.size * dtype.size
    return size


def _find(op_def: OpDef[Any], device: Device, is_timed: bool) -> _Found:
    kind = device.kind
    how = kernel_for(op_def, kind), registered_kernels(op_def, kind), is_timed
    found: _Found | None = op_def.worked_out.get(how)
    if found is None:
        found = op_def.worked_out[how] = _found(op_def, *how)
    return found


def _found(
    op_def: OpDef[Any],
    function: Callable[..., Any] | None,
    registered: Sequence[Registered],
    is_timed: bool,
) -> _Found:
    is_users = any(kernel.is_users for kernel in registered)
    attributes = op_def.kernel_attributes(function) if function is not None else []
    has_special = bool(registered) and not is_users
    kind: type[Kernel] = AsyncKernel if op_def.is_async else Kernel
    kind = Router if op_def.is_router else kind
    is_plain = kind is Kernel and op_def is not fetch_op and op_def.owns is None and not is_timed
    # What is timed is called as a function.
    is_written_out = op_def.is_inlined and not is_users and not is_timed
    call = Call(
        function is not None and _is_positional(function, attributes),
        op_def.expression if is_written_out else None,
        op_def.is_single,
        is_users or not op_def.is_builtin,
        op_def.is_builtin,
        # What was sent is no fault of who says of which dtype it is.
        op_def.is_builtin
        and op_def is not receive_op
        and any(out.token in op_def.attributes for out in op_def.outputs),
        op_def.is_identity,
    )
    return _Found(
        op_def,
        _traits(op_def, call.is_users) if function is not None else Traits(),
        function,
        attributes,
        call,
        has_special,
        kind,
        function if is_plain and not attributes and not has_special else None,
    )


def _traits(op_def: OpDef[Any], is_users: bool) -> Traits:
    return Traits(
        waits=op_def.is_async,
        is_routed=op_def.routes,
        has_users_kernels=is_users,
        draws=op_def.access is Access.DRAW,
        runs_users_code=not op_def.is_async and (op_def.runs_users_code or is_users),
        takes=op_def.touches is not None and op_def.touches.takes,
    )


def _is_positional(function: Callable[..., Any], attributes: Sequence[str]) -> bool:
    """Whether a kernel's last parameters are exactly its attributes, in the definition's order."""
    if not attributes:
        return True
    parameters = list(inspect.signature(function).parameters.values())
    last = parameters[-len(attributes) :]
    return [p.name for p in last] == attributes and all(
        p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters
    )
