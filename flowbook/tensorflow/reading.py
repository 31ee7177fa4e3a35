"""Graphs of TensorFlow as parts of a graph: `load`.

Each node becomes operations of Flowbook, the last of which has its name, by the tables of
`flowbook/tensorflow/operators`. They are built in a graph of their own, which is then imported:
what cannot be built leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, NamedTuple

from flowbook.graph.building.graph import Graph
from flowbook.graph.building.scopes import (
    colocate_with,
    control_dependencies,
    device,
    name_scope,
)
from flowbook.graph.model.errors import (
    InvalidArgumentError,
    NotFoundError,
    OpError,
    UnimplementedError,
)
from flowbook.graph.model.long_work import track
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.constants import constant, convert_to_tensor, identity, placeholder
from flowbook.graph.ops.queues.queue import Queue
from flowbook.graph.ops.queues.queue_runners import QueueRunner
from flowbook.graph.ops.state.variables import Variable, assign_op, read_variable, variable_op
from flowbook.graph.redefinition.definition_digest import definition_digest
from flowbook.tensorflow.elements import dtype_of, shape_of
from flowbook.tensorflow.functions.expanding import expanded
from flowbook.tensorflow.late_reads import Late, late_reads
from flowbook.tensorflow.messages_pb2 import MetaGraphDef
from flowbook.tensorflow.node import Node, Reference, Table, value_of
from flowbook.tensorflow.nodes import MERGES, NEXT, PLACEHOLDERS, VARIABLES, Nodes, Source
from flowbook.tensorflow.operators import BY_REFERENCE, OPERATORS
from flowbook.tensorflow.state import State, runners, states
from flowbook.tensorflow.tables import tables


class Learnt(Exception):
    """The shape of a loop's variable changes: the loop has to be built again, without it."""


class Handles(NamedTuple):
    """What is known before of what nodes have handles of.

    Attributes:
        share_arrays: whether arrays of tensors change in place.
        tables: by their nodes; of those that are not read, why not.
        paths: of the files that go with the graph, by the nodes that hold them.
    """

    share_arrays: bool
    tables: Mapping[str, Table | str]
    paths: Mapping[str, str]


class Built:
    """A graph that was built of nodes.

    Attributes:
        graph: the graph.
        values: what each node gives: tensors, References, Arrays of tensors, or nothing.
        operations: the operation that stands for each node, where there is one.
        states: what is known of each variable, by its node's name.
        placeholders: the nodes to feed.
        ends: the nodes whose values no other node takes.
    """

    def __init__(self) -> None:
        self.graph = Graph()
        self.values: dict[str, list[Any]] = {}
        self.operations: dict[str, Operation] = {}
        self.states: dict[str, State] = {}
        self.placeholders: list[str] = []
        self.ends: list[str] = []


def built(
    message: MetaGraphDef,
    outputs: Sequence[str] | None,
    given: Mapping[Source, Tensor],
    paths: Mapping[str, str],
    checkpoint: str | None,
    clear_devices: bool,
) -> Built:
    """Build a graph of nodes.

    Args:
        message: the graph and what goes with it.
        outputs: the names of the nodes that are wanted; None wants all.
        given: tensors of other graphs, in whose places are placeholders like them. Of their nodes
            nothing else is built, nor what only these need.
        paths: of the files that go with a saved model, by the nodes that hold them.
        checkpoint: the path of the checkpoint beside it, if there is one.
        clear_devices: whether devices that nodes ask for are left out.

    Raises:
        NotFoundError: if a wanted node is not there.
        UnimplementedError: if there are types of nodes without a translation.
        InvalidArgumentError: if it is no valid graph.
    """
    nodes = Nodes(expanded(message.graph_def))
    known, fill = states(message, nodes, paths), runners(message)
    names, cut = set(nodes.protos) - nodes.left_out(), {source.node for source in given}
    also = {name: state.before for name, state in known.items()}
    if outputs is not None:
        names = _wanted(nodes, known, fill, outputs, names, cut)
    nodes.check_known(names - cut, OPERATORS.keys() | BY_REFERENCE.keys() | VARIABLES)
    order = nodes.ordered(names, also, cut)
    shapes: dict[str, Shape] = {}
    late = late_reads(nodes, order)
    handles = Handles(nodes.share_arrays(names - cut), tables(nodes, paths, checkpoint), paths)
    while True:
        reader = _Reader(nodes, known, given, late, shapes, clear_devices, handles)
        try:
            return reader.read(order, fill)
        except Learnt:
            continue


def _wanted(
    nodes: Nodes,
    known: Mapping[str, State],
    fill: Mapping[str, list[str]],
    outputs: Iterable[str],
    among: set[str],
    cut: set[str],
) -> set[str]:
    """The nodes that outputs need, with what initialises variables and fills queues among them."""
    found: set[str] = set()
    more = list(outputs)
    for name in more:
        if name in nodes.protos and name not in among:
            raise NotFoundError(
                f"the node {name!r} saves, restores or summarises, or waits for what does: "
                "it is not read"
            )
    while more:
        new = nodes.needed(more, cut) - found
        found |= new
        held = [known[name] for name in new if name in known]
        more = [n for s in held for n in (*s.before, s.initializer) if n and n not in found]
        more += [s.read for s in held if s.read and s.read not in found]
        more += [n for name in new for n in fill.get(name, ()) if n not in found]
    return found & among


class _Reader:
    """Builds a graph once."""

    def __init__(
        self,
        nodes: Nodes,
        known: Mapping[str, State],
        given: Mapping[Source, Tensor],
        late: Mapping[str, Mapping[Source, Late]],
        shapes: dict[str, Shape],
        clear_devices: bool,
        handles: Handles,
    ) -> None:
        self._nodes = nodes
        self._handles = handles
        self._late = late
        self._shapes = shapes
        self._clear_devices = clear_devices
        self._found = Built()
        self._found.states = dict(known)
        self._entered: dict[str, str] = {}
        self._given: dict[str, dict[int, Tensor]] = {}
        for source, tensor in given.items():
            self._given.setdefault(source.node, {})[source.port] = tensor

    def read(self, order: Sequence[str], fill: Mapping[str, list[str]]) -> Built:
        """Build the nodes, in this order, and the runners that fill queues."""
        found, nodes = self._found, self._nodes
        with found.graph.as_default():
            for name in track(order, "reading"):
                if name not in found.values:
                    self._read(name)
            for name, threads in fill.items():
                there = [found.operations[each] for each in threads if each in found.operations]
                if name in found.operations and there:
                    QueueRunner(Queue.of(found.operations[name]), there)
        fed = [n for n in order if nodes.protos[n].op in PLACEHOLDERS]
        found.placeholders = [n for n in fed if n not in self._handles.paths]
        taken = {s.node for each in order for s in nodes.taken[each].values}
        found.ends = [
            name
            for name in order
            if name not in taken
            and found.values[name]
            and isinstance(found.values[name][0], Tensor)
        ]
        return found

    def _read(self, name: str) -> None:
        proto = self._nodes.protos[name]
        try:
            with ExitStack() as stack:
                self._surround(name, stack)
                if name in self._given:
                    self._stand_for(name)
                elif name in self._handles.paths:
                    self._note(name, constant(self._handles.paths[name], name=f"{name}/"))
                elif proto.op in VARIABLES:
                    self._make_variable(name)
                else:
                    self._translate(name)
        except Learnt:
            raise
        except OpError as error:
            error.details.append(f"read from the {proto.op} node {name!r}")
            raise
        except Exception as error:
            raise InvalidArgumentError(
                f"the {proto.op} node {name!r} does not fit its operation: {error}"
            ) from error

    def _surround(self, name: str, stack: ExitStack) -> None:
        """Enter what a node is built in: its names, its device, what it waits for."""
        proto = self._nodes.protos[name]
        stack.enter_context(name_scope(f"{name}/"))
        beside = [
            self._found.operations[label.removeprefix("loc:@")]
            for label in Node(proto, [], "").texts("_class")
            if label.removeprefix("loc:@") in self._found.operations
        ]
        if proto.device and not self._clear_devices:
            stack.enter_context(device(proto.device))
        for other in beside:
            stack.enter_context(colocate_with(other))
        waited = [self._found.operations.get(n) for n in self._nodes.taken[name].waited]
        stack.enter_context(control_dependencies([op for op in waited if op is not None]))

    def _stand_for(self, name: str) -> None:
        """Placeholders for those values of a node that others stand for."""
        given = self._given[name]
        self._note(
            name,
            [
                placeholder(given[port].dtype, given[port].shape) if port in given else None
                for port in range(1 + max(given))
            ],
        )

    def _translate(self, name: str) -> None:
        proto = self._nodes.protos[name]
        sources = self._nodes.taken[name].values
        if proto.op in MERGES:
            sources = [s for s in sources if self._nodes.protos[s.node].op not in NEXT]
        late = self._late.get(name, {})
        inputs = [
            self._read_late(late[source]) if source in late else self._value(source)
            for source in sources
        ]
        node = Node(proto, inputs, f"{name}/")
        node.shares_arrays = self._handles.share_arrays
        node.table = self._handles.tables.get(name, "")
        if proto.op in BY_REFERENCE:
            self._route(name, node)
            result = BY_REFERENCE[proto.op](node, *node.inputs)
        else:
            result = OPERATORS[proto.op](node, *map(value_of, node.inputs))
        self._note(name, result)
        if proto.op in MERGES:
            self._entered[name] = sources[0].node

    def _route(self, name: str, node: Node) -> None:
        """Tell what leads into a loop, or back in it, what it needs to know of the loop."""
        if node.type in NEXT:
            merges = [c for c in self._nodes.consumers[name] if self._nodes.protos[c].op in MERGES]
            if len(merges) != 1:
                raise InvalidArgumentError(f"{node} leads to {len(merges)} Merges")
            node.closes = self._found.values[merges[0]][0]
            self._check_shape(merges[0], node)
        node.shape_of_loop = self._shapes.get(name)

    def _check_shape(self, merge: str, node: Node) -> None:
        """See that a loop's variable has the same shape in the next iteration as in the first."""
        first, following = self._found.values[merge][0], node.inputs[0]
        if isinstance(following, Tensor) and not first.shape.admits(following.shape):
            self._shapes[self._entered[merge]] = first.shape.generalise(following.shape)
            raise Learnt

    def _note(self, name: str, result: Any) -> None:
        """Remember what a node gives, and see that its operation has its name."""
        values = list(result) if isinstance(result, list | tuple) else [result]
        if isinstance(result, Operation):
            values = []
        first = next((v for v in values if isinstance(v, Tensor | Reference)), None)
        operation = result if isinstance(result, Operation) else None
        if isinstance(first, Reference):
            operation = (first.written if first.written is not None else first.handle).op
        elif isinstance(first, Tensor):
            graph = self._found.graph
            if first.op.name != name and not graph.has_operation(name) and first is values[0]:
                first = values[0] = identity(first, name=f"{name}/")
            operation = first.op
        self._found.values[name] = values
        if operation is not None:
            self._found.operations[name] = operation

    def _value(self, source: Source) -> Any:
        values = self._found.values[source.node]
        if source.port >= len(values):
            raise InvalidArgumentError(
                f"there is no {source.node}:{source.port}: the node gives {len(values)} values"
            )
        if values[source.port] is None:
            raise UnimplementedError(
                f"{source.node}:{source.port} is not read",
                hint="load(model, input_map={...}) says what stands for it",
            )
        return values[source.port]

    def _read_late(self, late: Late) -> Any:
        """A value that a variable has after writes."""
        held = self._value(late.variable)
        waited = [self._found.operations.get(each) for each in late.waited]
        with control_dependencies([op for op in waited if op is not None]):
            return value_of(held)

    def _make_variable(self, name: str) -> None:
        """A variable, with what initialises it and what reads it first."""
        proto, state = self._nodes.protos[name], self._found.states[name]
        dtype, shape = dtype_of(proto.attr["dtype"].type), shape_of(proto.attr["shape"].shape)
        if state.initial_value is None:
            # A value comes from a checkpoint, or from whoever feeds it.
            initial = placeholder(dtype, shape, name="initial_value")
        else:
            given = self._value(state.initial_value)
            initial = convert_to_tensor(value_of(given))
        shape = shape if shape.is_fully_defined else shape.merge(initial.shape)
        typed = {"dtype": dtype, "shape": shape}
        digest = definition_digest(initial)
        handle = variable_op(
            **typed, trainable=state.trainable, initial_digest=digest, name=f"{name}/"
        )
        label = f"{state.initializer}/" if state.initializer else "Assign"
        waited = self._nodes.taken[state.initializer].waited if state.initializer else []
        operations = [self._found.operations[n] for n in waited if n in self._found.operations]
        with control_dependencies(operations):
            new = assign_op(handle, initial, **typed, is_initializer=True, name=label)
        value = read_variable(handle, **typed, name=f"{state.read}/" if state.read else "read")
        reference = Reference(Variable.of(handle.op), handle, proto.op == "VarHandleOp")
        self._note(name, reference)
        if state.initializer:
            self._note(state.initializer, replace(reference, written=new))
        if state.read:
            self._note(state.read, value)
