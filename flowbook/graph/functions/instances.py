"""Copies of a function's body, which calls are: in the graph, or in the place of a kept Call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from flowbook.graph.building.graph import Graph
from flowbook.graph.building.names import name_from
from flowbook.graph.control_flow.structure import leaves, packed_like
from flowbook.graph.functions.bodies import Argument, built
from flowbook.graph.functions.definition import (
    Definition,
    definition_of,
    is_current,
    is_parameter,
    reserved_by,
)
from flowbook.graph.gradients.custom import own_gradient_op
from flowbook.graph.model.context import Branch, Context, Frame, chain, frame_of, runs_in
from flowbook.graph.model.device_spec import DeviceSpec
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.origin import site as sites
from flowbook.graph.model.resource_key import key_of
from flowbook.graph.model.retag import Retag
from flowbook.graph.model.tensor import Tensor


class _Copying:
    """A copy that is being made.

    Args:
        definition: what is copied.
        given: what stands for tensors of the body: its parameters, at least.
        prefix: the name scope of the copies.
        site: where the call was written.
    """

    def __init__(
        self, definition: Definition, given: Mapping[Tensor, Tensor], prefix: str, site: sites.Site
    ) -> None:
        self.definition = definition
        self.tensors = dict(given)
        self.copies: dict[Operation, Operation] = {}
        self._prefix = prefix
        self._site = site
        self._own = frozenset(definition.operations)
        self._infers = any(t.shape != p.shape or t.op.op_def.is_constant for p, t in given.items())

    @property
    def results(self) -> list[Tensor]:
        """What stands for what the body gives."""
        return [self.tensor(t) for t in self.definition.function.inputs]

    def tensor(self, original: Tensor) -> Tensor:
        """What stands for a tensor of the body, or of the outside."""
        return self.tensors.get(original, original)

    def name(self, original: str) -> str:
        """The name of a copy."""
        own = self.definition.prefix
        return self._prefix + name_from(original.removeprefix(own))

    def copy(self, original: Operation) -> Operation:
        """A copy that has not joined the graph: complete but for what its surroundings say."""
        graph, op_def = original.graph, original.op_def
        inputs = tuple([self.tensor(t) for t in original.inputs])
        attributes = self._attributes(original)
        dtypes, shapes = original.dtypes, original.shapes
        if self._infers:
            dtypes, inferred = op_def.infer_outputs(graph, inputs, attributes)
            shapes = tuple([one.merge(two) for one, two in zip(shapes, inferred, strict=True)])
        site = original.site.called_at(self._site)
        made = Operation(graph, op_def, inputs, attributes, dtypes, shapes, site)
        made.settled_by = tuple([self.tensor(t) for t in original.settled_by])
        return made

    def _attributes(self, original: Operation) -> Mapping[str, Any]:
        attributes = original.attributes
        if original.op_def.retag is Retag.PUSH:
            named = self.name(attributes["frame_name"])
            return MappingProxyType({**attributes, "frame_name": named})
        if original.op_def.summary and attributes["tag"]:
            return MappingProxyType({**attributes, "tag": self.name(attributes["tag"])})
        if original.op_def is own_gradient_op:
            return MappingProxyType({**attributes, "grad": self._own_gradient(original)})
        return attributes

    def _own_gradient(self, original: Operation) -> Callable[..., list[Any]]:
        """The gradient function of a copy: the given one speaks of tensors of the body."""

        def call(*dys: Tensor) -> list[Any]:
            graph: Graph = original.graph
            if original.inner is None or not is_current(original.inner[0].function):
                found: list[Any] = []

                def body(given: list[Tensor]) -> list[Tensor]:
                    grads = original.attributes["grad"](*given)
                    found.extend(grads if isinstance(grads, list | tuple) else [grads])
                    return [leaf for leaf in leaves(found) if leaf is not None]

                arguments = [Argument(f"dy_{i}", t.dtype, t.shape) for i, t in enumerate(dys)]
                name = original.name.removeprefix("functions/")
                original.inner = built(graph, f"{name}_grad", arguments, body), found
            definition, structure = original.inner
            values = [*dys, *[self.tensor(t) for t in definition.captured]]
            flow = graph.scope.flow
            if flow is not None:
                values = [flow.captured(t) for t in values]
            given = dict(zip(definition.parameters, values, strict=True))
            rest = iter(inlined(definition, given, graph.scope.prefix))
            filled = [None if leaf is None else next(rest) for leaf in leaves(structure)]
            packed: list[Any] = packed_like(structure, filled)
            return packed

        return call

    def controls(self, original: Operation) -> tuple[Operation, ...]:
        """What a copy waits for, as far as the body says so."""
        waited = [self.copies.get(o, o) for o in original.control_inputs]
        return tuple([o for o in waited if o not in self._own])

    def joined(self, original: Operation, made: Operation) -> None:
        """Note the copy of an operation."""
        self.copies[original] = made
        for tensor, output in zip(original.outputs, made.outputs, strict=True):
            self.tensors[tensor] = output


def inlined(
    definition: Definition,
    given: Mapping[Tensor, Tensor],
    prefix: str,
    needed: Sequence[Tensor] | None = None,
) -> list[Tensor]:
    """Let a copy of a body join the graph, where the building code is.

    Args:
        definition: the body.
        given: what stands for its parameters, and for others of its tensors, which are not
            computed then.
        prefix: the name scope for it.
        needed: the tensors of the body that are wanted; by default all that it does.

    Returns:
        What stands for what the Function takes.
    """
    graph: Graph = definition.function.graph
    around = graph.scope
    copying = _Copying(definition, given, prefix, around.site or sites.capture())
    copied = wanted(definition, given, needed)
    frames: list[Frame] = []  # A graph holds none that nothing is in.
    last = {outermost: op for op in copied for outermost in _outermost(definition, op)}
    for original in copied:
        is_direct = definition.is_direct(original)
        flow = around.flow if is_direct else None
        entered = original.context
        if original.op_def.retag is Retag.PUSH and not _is_open(copying, original):
            assert isinstance(entered, Frame)
            place = around.flow.place if around.flow is not None else None
            outer = frame_of(entered.outer)
            if outer is not definition.frame:
                place = next(
                    copying.copies[o].context for o in copying.copies if o.context is outer
                )
            opened = entered.entered_from(place, copying.name(entered.name))
            # No loop that gradients of the copy build takes the name.
            graph.members.names.claim(opened.name, sites.capture().author)
            graph.members.loops.open(opened)
            frames.append(opened)
        made = copying.copy(original)
        if is_direct and not any(t.op in copying.copies for t in original.inputs):
            made.settled_by += definition.function.outputs
        scope = around._replace(
            prefix="",
            control_inputs=copying.controls(original)
            + (around.control_inputs if is_direct else ()),
            device=str(DeviceSpec.parse(around.device).merge(DeviceSpec.parse(original.device))),
            colocation=around.colocation
            + tuple([copying.copies.get(o, o) for o in original.colocation]),
            flow=flow,
            extends=True,
            closes=copying.copies[original.closes] if original.closes is not None else None,
        )
        copying.joined(original, graph.add(made, f"{copying.name(original.name)}/", scope=scope))
        for frame in [f for f, op in last.items() if op is original]:
            _complete(graph, copying, frame)
    graph.places.note_complete(copying.copies.values())
    if around.flow is not None and needed is None:
        _note(definition, copying)
    return copying.results


def wanted(
    definition: Definition, given: Mapping[Tensor, Tensor], needed: Sequence[Tensor] | None
) -> list[Operation]:
    """The operations to copy, in the order of construction."""
    own = set(definition.operations)
    stack = [
        t.op for t in (definition.function.inputs if needed is None else needed) if t not in given
    ]
    if needed is None:
        stack += definition.function.control_inputs
    found: set[Operation] = set()
    while stack:
        op = stack.pop()
        if op in found or op not in own or is_parameter(op):
            continue
        found.add(op)
        stack += [t.op for t in op.inputs if t not in given]
        stack += [o for o in op.control_inputs if not _is_given(o, given)]
        if op.closed_by is not None:
            stack.append(op.closed_by)
    return sorted(found, key=lambda op: op.id)


def _is_given(operation: Operation, given: Mapping[Tensor, Tensor]) -> bool:
    return bool(operation.outputs) and all(t in given for t in operation.outputs)


def _outermost(definition: Definition, operation: Operation) -> list[Frame]:
    """The outermost loop of a body that an operation is in or leaves, if there is one."""
    frames = [c for c in chain(runs_in(operation)) if isinstance(c, Frame)]
    frames += [c for c in chain(operation.context) if isinstance(c, Frame)]
    return list(dict.fromkeys(f for f in frames if frame_of(f.outer) is definition.frame))


def _is_open(copying: _Copying, entering: Operation) -> bool:
    """Whether the copy of a loop has been entered already."""
    return any(original.context is entering.context for original in copying.copies)


def _complete(graph: Graph, copying: _Copying, frame: Frame) -> None:
    """Note that a loop's copy is complete, which may be what is there already."""
    opened = next(
        made.context
        for original, made in copying.copies.items()
        if original.op_def.retag is Retag.PUSH and original.context is frame
    )
    assert isinstance(opened, Frame)
    before = graph.members.loops.complete(opened)
    if before:
        for original, made in list(copying.copies.items()):
            copying.joined(original, before.get(made, made))


def _note(definition: Definition, copying: _Copying) -> None:
    """Tell the branch or loop around of what loops and branches of the body touch."""
    flow = definition.function.graph.scope.flow
    assert flow is not None
    for op in definition.function.control_inputs:
        if op in copying.copies and op.op_def.is_router:
            flow.note(copying.copies[op], is_acting=definition.acts)


class Instance(NamedTuple):
    """What a kept call stands for; see `op_def.Standing`."""

    operations: list[Operation]
    results: list[Tensor]


class _Instances:
    """Makes what kept calls stand for, when it is asked for; see `StandsFor`."""

    def count(self, operation: Operation) -> int:
        """How many operations a call stands for."""
        return definition_of(operation).size

    def __call__(self, operation: Operation) -> Instance:
        """What a call stands for."""
        if operation.inner is None:
            with operation.graph.lock:
                if operation.inner is None:
                    operation.inner = _made_for(operation)
        found: Instance = operation.inner
        return found


INSTANCES = _Instances()


def _made_for(call: Operation) -> Instance:
    definition = definition_of(call)
    graph: Graph = call.graph
    given = dict(zip(definition.parameters, call.inputs, strict=False))
    prefix = name_from(call.name) + "/"
    copying = _Copying(definition, given, prefix, call.site)
    places = _Places(definition, call, copying)
    following = call.id - definition.size
    for original in definition.operations:
        following += reserved_by(original)
        if is_parameter(original):
            following += 1
            continue
        made = copying.copy(original)
        made.name, made.id = copying.name(original.name), following
        following += 1
        made.control_inputs = copying.controls(original)
        if definition.is_direct(original):
            made.control_inputs = tuple(dict.fromkeys((*made.control_inputs, *call.control_inputs)))
        own = DeviceSpec.parse(original.device)
        made.device = str(DeviceSpec.parse(call.device).merge(own))
        # What the body asks for counts, and not what its call is beside.
        asks = bool(original.device or original.colocation)
        beside = tuple([copying.copies.get(o, o) for o in original.colocation])
        made.colocation = beside if asks else call.colocation
        made.container, made.retired = original.container, call.retired
        if original.closes is not None:
            made.closes = copying.copies[original.closes]
            made.closes.closed_by = made
        copying.joined(original, made)
        made.context = places.of(original.context)
        if original.op_def.owns is not None:
            made.key = key_of(made, made.name, graph.members.generation(call))
    return Instance(list(copying.copies.values()), copying.results)


class _Places:
    """Where in the control flow the operations of a kept call's copy are."""

    def __init__(self, definition: Definition, call: Operation, copying: _Copying) -> None:
        self._copying = copying
        self._places: dict[Context, Context | None] = {definition.frame: call.context}

    def of(self, context: Context | None) -> Context | None:
        """The place in the copy for one in the body."""
        if context is None:
            return None
        if context not in self._places:
            outer = self.of(context.outer)
            if isinstance(context, Frame):
                name = self._copying.name(context.name)
                self._places[context] = context.entered_from(outer, name)
            else:
                self._places[context] = Branch(
                    self._copying.tensor(context.pred), context.side, outer
                )
        return self._places[context]
