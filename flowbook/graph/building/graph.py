"""The graph: what people build in, look into and store.

Its operations, and what always holds of them, are its `Members` (`members.py`). Building is
thread-safe: joining happens under the graph's lock, and scopes belong to threads.
"""

from __future__ import annotations

import difflib
import itertools
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

from flowbook.graph.building import adoption
from flowbook.graph.building.blocks import Block, innermost
from flowbook.graph.building.members import Members
from flowbook.graph.building.names import check_name
from flowbook.graph.building.surroundings import Scope
from flowbook.graph.model.counted import counted
from flowbook.graph.model.elsewhere import elsewhere
from flowbook.graph.model.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    InvalidTypeError,
    NotFoundError,
    OpError,
    UnimplementedError,
)
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.origin import site as sites
from flowbook.graph.model.retag import Retag
from flowbook.graph.model.summaries import summaries_among
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import VARIABLE, Access
from flowbook.graph.model.updates import updates_among
from flowbook.graph.redefinition.stale_operations import StaleOperations, stale_among
from flowbook.graph.storing import files, graph_file, serialize

__all__ = ["Graph", "get_default_graph", "reset_default_graph"]

_NO_SCOPE = Scope()


# What TensorFlow 1 calls otherwise.
_ELSEWHERE = {
    "add_to_collection": "a list of your own; variables() and updates() are computed",
    "add_to_collections": "lists of your own; variables() and updates() are computed",
    "as_graph_def": "graph.to_bytes(), or graph.save(path)",
    "as_graph_element": "graph.get_tensor_by_name(name)",
    "collections": "graph.variables(trainable, scope) or graph.updates(of=loss)",
    "colocate_with": "fb.colocate_with(operation)",
    "container": "fb.container(name)",
    "control_dependencies": "fb.control_dependencies(operations)",
    "create_op": "fb.OpDef(...), and a call of it",
    "device": "fb.device(name)",
    "get_collection": "graph.variables(trainable, scope) or graph.updates(of=loss)",
    "get_collection_ref": "graph.variables(trainable, scope) or graph.updates(of=loss)",
    "get_operations": "graph.operations",
    "gradient_override_map": "fb.OpDef(..., grad=function)",
    "name_scope": "fb.name_scope(name)",
    "unique_name": "fb.name_scope(name), which makes its name unique",
    "trainable_variables": "graph.variables(trainable=True)",
}


@dataclass(slots=True)
class _Settled:
    """Tensors whose values a call has read, for the operations that it builds.

    The call is known by its frame, which is kept until something else is built: a line that runs
    again, in a loop say, makes another call, which may read other tensors or none.
    """

    call: FrameType
    tensors: tuple[Tensor, ...] = ()


class _ThreadState(threading.local):
    """What a graph keeps per building thread."""

    settled: _Settled | None = None


@elsewhere(_ELSEWHERE)
class Graph:
    """A dataflow graph (white paper, section 2).

    >>> import flowbook as fb
    >>> with fb.Graph().as_default() as graph:
    ...     y = fb.constant(2.0, name="a") * 3
    >>> [op.name for op in graph.operations]
    ['a', 'Mul/y', 'Mul']

    Attributes:
        members: its operations, and what is known of their coming and going.
        seed: the graph's random seed, or None.
        site, lock, values, places, known_shapes: see `Members`.
    """

    def __init__(self) -> None:
        members = self.members = Members()
        self.seed: int | None = None
        self.site, self.lock, self.values = members.site, members.lock, members.values
        self.places, self.known_shapes = members.places, members.known_shapes
        self._thread = _ThreadState()

    @property
    def version(self) -> int:
        """Grows with every change."""
        return self.members.version

    @property
    def retirements(self) -> int:
        """How many operations redefinition has taken out."""
        return self.members.retirements

    @property
    def finalized(self) -> bool:
        """Whether nothing may join any more."""
        return self.members.finalized

    # Scopes

    @property
    def scope(self) -> Scope:
        """What holds for what this thread builds now."""
        block = innermost()
        return _NO_SCOPE if block is None else block.scopes.get(self, _NO_SCOPE)

    def as_default(self) -> Block[Graph]:
        """Make this the graph that the block's code builds in, on this thread."""
        return Block(self._begin_default)

    def _begin_default(self, block: Block[Graph]) -> Graph:
        block.graph = self
        return self

    def enter_name(self, name: str) -> str:
        """Claim a name scope below the current one; a trailing "/" re-enters an existing one."""
        if not isinstance(name, str):
            raise InvalidTypeError(f"a name is a string, not {name!r}")
        if name.endswith("/"):
            check_name(name)
            return name
        prefix = self.scope.prefix
        check_name(name, prefix)
        with self.lock:
            self.members.check_open()
            return self.members.names.claim(prefix + name, sites.capture().author) + "/"

    # Building

    def add(
        self,
        operation: Operation,
        name: str | None,
        new_inputs: Sequence[tuple[int, Operation, str]] = (),
        scope: Scope | None = None,
    ) -> Operation:
        """Let a built operation join the graph, under a unique name.

        Args:
            operation: complete but for its name, id and what its scope determines.
            name: the requested name, or None for the name of its type.
            new_inputs: constants made from Python values, as (position, operation, argument name),
                which join the graph before it as `name/argument`.
            scope: what holds for it, where that is known already.

        Returns:
            The operation; or the one that an earlier execution of the same notebook cell built,
            if it means the same.
        """
        if scope is None:
            scope = self.scope
        op_def = operation.op_def
        if self.known_shapes:
            operation.inputs = self.known_shapes.checked(operation.inputs)
        is_exact = False
        if name is None:
            name = op_def.type
        else:
            check_name(name, scope.prefix)
            is_exact = name.endswith("/")
        if (settled := self._thread.settled) is not None:
            self._note_settled(settled, operation)
        author = operation.site.author
        if scope is not _NO_SCOPE:
            operation.control_inputs = scope.control_inputs
            operation.device = scope.device_of(operation) if scope.choosers else scope.device
            operation.colocation = scope.colocation
            operation.container = scope.container if op_def.owns else ""
            if op_def.retag is Retag.INCREMENT:
                operation.closes = scope.closes
            if scope.flow is not None:
                scope.flow.enclose(operation)
        touches = op_def.touches
        if touches is not None and touches.access is Access.WRITE and touches.argument is not None:
            # Whatever surrounds it, a write goes to where its variable lies.
            handle = operation.inputs[touches.argument].op
            operation.device, operation.colocation = handle.device, (handle,)
        members = self.members
        with self.lock:
            members.check_open()
            if self.places.is_routed or op_def.is_router:
                self._place_in(scope, operation)
            if is_exact:
                full = members.take(name[:-1], author)
            else:
                full = members.names.claim(scope.prefix + name, author)
            if new_inputs:
                inputs = list(operation.inputs)
                for position, constant, argument in new_inputs:
                    claimed = members.names.claim(f"{full}/{argument}", author)
                    inputs[position] = members.join(constant, claimed, author).outputs[0]
                operation.inputs = tuple(inputs)
            operation = members.join(operation, full, author)
        if scope.flow is not None:
            scope.flow.joined(operation)
        return operation

    def _place_in(self, scope: Scope, operation: Operation) -> None:
        """Find where in the control flow an operation is that is being built."""
        try:
            self.places.put(operation)
            if not scope.extends:
                self.places.refuse_complete(operation, scope.flow)
        except OpError as error:
            named = [tensor for tensor in operation.inputs if tensor.op.name]
            raise error.at(operation.type, operation.site, named) from None

    def settle(self, tensors: Sequence[Tensor]) -> None:
        """Remember that the call which runs has read tensors' values, for what it builds next."""
        call = sites.running_call()
        settled = self._thread.settled
        if settled is None or settled.call is not call:
            settled = self._thread.settled = _Settled(call)
        settled.tensors += tuple(tensors)

    def _note_settled(self, settled: _Settled, operation: Operation) -> None:
        if settled.call is not sites.running_call():
            self._thread.settled = None
        elif not operation.op_def.owns:  # Which is kept while its attributes stay the same.
            operation.settled_by += settled.tensors

    def stale(self) -> StaleOperations:
        """The operations that were built, directly or not, from something since redefined.

        Returns:
            A list, shown by the cells to re-run. Each item says what its operation was built from
            (`.reason`) and which cells to re-run for it (`.cells`).
        """
        return stale_among(self.operations) if self.retirements else StaleOperations()

    # Storing

    def to_bytes(self) -> bytes:
        """The graph as bytes, from which `Graph.from_bytes` makes it anew; equal for equal graphs.

        Raises:
            UnimplementedError: if an operation holds Python code, as `py_func` does.
            ResourceExhaustedError: if its constants are too large.

        >>> import flowbook as fb
        >>> with fb.Graph().as_default() as graph:
        ...     y = fb.constant(2.0, name="a") * 3
        >>> fb.Graph.from_bytes(graph.to_bytes()).get_tensor_by_name("Mul:0")
        <Tensor 'Mul:0' shape=[] dtype=float32>
        """
        with self.lock:
            return serialize.graph_to_bytes(self)

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview) -> Graph:
        """The graph that `to_bytes` wrote: it runs, trains and differentiates like the original.

        The new graph can be extended. Its operations' errors cite the lines that built the
        original's.

        Raises:
            DataLossError: if the data are damaged, or are not a graph.
            InvalidArgumentError: if operations do not fit the definitions of their types here.
            NotFoundError: if an operation's type is not defined here.
        """
        graph = cls()
        serialize.fill_from_bytes(graph, data)
        return graph

    def save(self, path: Any) -> None:
        """Write the graph to a file, which `Graph.load` and `fb.import_graph_def` read.

        The file is a zip: the graph's structure, and each constant once as a `.npy` file, of any
        size. Equal graphs give equal files. An existing file is replaced whole or not at all.

        Args:
            path: the file, such as "model.graph".

        Raises:
            UnimplementedError: if an operation holds Python code, as `py_func` does.
            OSError: if the file cannot be written.
        """
        with files.written_whole(files.as_path(path)) as file:
            graph_file.write_graph(self, file)

    @classmethod
    def load(cls, path: Any, *, max_bytes: int = graph_file.MAX_BYTES) -> Graph:
        """The graph that `save` wrote; it is as from `from_bytes`.

        Nothing in a file is executed, and nothing is taken on trust: a damaged or a malicious one
        gives an error.

        Args:
            path: the file.
            max_bytes: how much it may hold in all.

        Raises:
            NotFoundError: if there is no such file, or an operation's type is not defined here.
            DataLossError: if it is damaged, or is not a graph's file.
            ResourceExhaustedError: if it holds more than `max_bytes`.
            InvalidArgumentError: if operations do not fit the definitions of their types here.
        """
        graph = cls()
        with files.opened(files.as_path(path)) as file:
            graph_file.read_graph(graph, file, max_bytes)
        return graph

    def adopt(
        self, name: str, operations: Sequence[tuple[str, Operation]], scopes: Iterable[str]
    ) -> str:
        """Let operations made for this graph join it under a scope, all or none of them.

        Where a notebook cell that runs again imports what it has, the present operations stay, and
        take the place of those given for them.

        Args:
            name: the scope, as for `enter_name`; "" is the current one.
            operations: with their names in the scope, each after what it refers to. That of a
                retired one is `name@generation`. The loops that they enter are named in the scope
                likewise. Until an operation joins, its context is the one that it had in the graph
                which it was taken from.
            scopes: names in the scope to take for scopes.

        Returns:
            The scope's prefix.

        Raises:
            AlreadyExistsError: if an operation or a loop of one of the names is there.
            UnimplementedError: if loops, branches or variables are to join the inside of a loop or
                a branch.
        """
        flow = self.scope.flow
        if flow is not None:
            _check_inside([operation for _, operation in operations])
        members = self.members
        with members.all_or_none():
            prefix = self.enter_name(name) if name else self.scope.prefix
            for _, operation in operations:
                if operation.op_def.retag is Retag.PUSH:
                    operation.put_in_scope(prefix)
            adoption.adopt(members, [(prefix + inner, op) for inner, op in operations], flow)
            members.reserve_names(prefix + inner for inner in scopes)
        return prefix

    def prevent_feeding(self, tensor: Any) -> None:
        """Refuse feeds of a tensor or variable from now on, in stored and imported graphs too.

        Raises:
            InvalidTypeError: if it is neither.
        """
        self.members.unfeedable.add(self._fed_by(tensor))

    def is_feedable(self, tensor: Any) -> bool:
        """Whether runs may feed a tensor or variable."""
        return self._fed_by(tensor) not in self.members.unfeedable

    def _fed_by(self, item: Any) -> Tensor:
        tensor = getattr(item, "handle", item)
        if not isinstance(tensor, Tensor) or tensor.graph is not self:
            raise InvalidTypeError(f"{item!r:.80} is no tensor or variable of this graph")
        return tensor

    def finalize(self) -> None:
        """Make every further change a FailedPreconditionError; running stays possible."""
        self.members.finalized = True

    # Looking up

    @property
    def operations(self) -> list[Operation]:
        """All operations, in the order of their construction."""
        with self.lock:
            return list(self.members.operations.values())

    def stateful_operations(self) -> list[Operation]:
        """The operations with effects or resources, in the order of their construction."""
        return [operation for operation in self.operations if not operation.op_def.is_pure]

    def variable_of(self, operation: Operation) -> Any:
        """The variable whose handle the operation produces, or None."""
        return operation.variable

    def variables(self, trainable: bool | None = None, scope: str = "") -> list[Any]:
        """The variables, in the order of their construction.

        Args:
            trainable: only those whose `trainable` is this; None gives all.
            scope: only those in this name scope, as what one of two optimizers trains; "" gives
                all.

        >>> import flowbook as fb
        >>> with fb.Graph().as_default() as graph:
        ...     for name in ("generator", "discriminator"):
        ...         with fb.name_scope(name):
        ...             _ = fb.Variable(1.0, name="w"), fb.Variable(0, trainable=False, name="n")
        >>> [v.op.name for v in graph.variables(trainable=True, scope="generator")]
        ['generator/w']
        """
        prefix = f"{scope.rstrip('/')}/" if scope else ""
        with self.lock:
            found = sorted(self.members.variables.values(), key=lambda variable: variable.op.id)
        return [
            v
            for v in found
            if (trainable is None or v.trainable == trainable) and v.op.name.startswith(prefix)
        ]

    def updates(self, of: Any = None) -> list[Operation]:
        """The operations marked by `fb.mark_as_update`, in the order of their construction.

        Args:
            of: a loss, or several: only the updates that belong to it, which are those with an
                input that depends on an ancestor of the loss other than a read of a variable or a
                constant. None gives all.
        """
        items = of if isinstance(of, list | tuple) else [of]
        losses = None if of is None else [self.as_operation(item) for item in items]
        with self.lock:
            return updates_among(self.members.operations.values(), losses)

    def summaries(self) -> list[Operation]:
        """The operations that `fb.summary` built, in the order of their construction."""
        with self.lock:
            return summaries_among(self.members.operations.values())

    def variables_registered(self, start: int) -> list[Any]:
        """The variables from the given place on, in the order in which they became known.

        That is not always the order of construction: threads may build at the same time.
        """
        with self.lock:
            return list(itertools.islice(self.members.variables.values(), start, None))

    def has_operation(self, name: str) -> bool:
        """Whether there is an operation of that name."""
        return name in self.members.operations

    def get_operation_by_name(self, name: str) -> Operation:
        """The operation of that name; NotFoundError if there is none."""
        if not isinstance(name, str):
            raise InvalidTypeError(f"an operation is named by a string, not {name!r}")
        operation = self.members.operations.get(name) or self._in_call(name)
        if operation is None:
            close = difflib.get_close_matches(name, self.members.operations, 3)
            raise NotFoundError(
                f"the graph has no operation {name!r}",
                hint=f"did you mean {' or '.join(map(repr, close))}?"
                if close
                else f"it has {counted(len(self.members.operations), 'operation')}: "
                "graph.operations",
            )
        return operation

    def _in_call(self, name: str) -> Operation | None:
        """The operation of that name in what a call stands for, if there is one."""
        for end in range(len(name)):
            call = self.members.operations.get(name[:end]) if name[end] == "/" else None
            if call is not None and call.op_def.stands_for is not None:
                inside = call.op_def.stands_for(call).operations
                return next((op for op in inside if op.name == name), None)
        return None

    def get_tensor_by_name(self, name: str) -> Tensor:
        """The tensor `operation:port`; NotFoundError if there is none.

        By the name of a variable it is the handle, which stands for the variable.
        """
        if not isinstance(name, str):
            raise InvalidTypeError(f"a tensor is named by a string, not {name!r}")
        operation_name, colon, port = name.rpartition(":")
        if not colon or not port.isascii() or not port.isdigit():
            raise InvalidArgumentError(
                f"{name!r} is not the name of a tensor, which is 'operation:port'",
                hint=f"did you mean {name + ':0'!r}?" if name in self.members.operations else None,
            )
        operation = self.get_operation_by_name(operation_name)
        if int(port) >= len(operation.outputs):
            raise NotFoundError(
                f"{name!r}: operation {operation_name!r} has "
                f"{counted(len(operation.outputs), 'output')}"
            )
        return operation.outputs[int(port)]

    def as_operation(self, item: Any) -> Operation:
        """The operation that an operation, tensor, variable or name stands for, in this graph."""
        if isinstance(item, str):
            if ":" in item:
                return self.get_tensor_by_name(item).op
            return self.get_operation_by_name(item)
        operation = item if isinstance(item, Operation) else getattr(item, "op", None)
        if not isinstance(operation, Operation):
            raise InvalidTypeError(f"{item!r} is neither an operation nor a tensor of a graph")
        if operation.graph is not self:
            raise mixed_graphs([(operation.name, operation.graph), ("this code", self)])
        return operation

    def consumers(self, tensor: Tensor) -> list[Operation]:
        """The operations that take the tensor as an input, in the order of their construction."""
        return self.members.consumers(tensor)

    def __repr__(self) -> str:
        operations = counted(len(self.members.operations), "operation")
        return f"<Graph of {operations}, made at {self.site.place}>"


def _check_inside(operations: Iterable[Operation]) -> None:
    for operation in operations:
        if operation.op_def.is_router or operation.op_def.owns == VARIABLE.name:
            what = "a variable" if operation.op_def.owns else "a loop or a branch"
            raise UnimplementedError(
                f"what has {what} in it cannot join the inside of a loop or a branch",
                hint="import it outside, before",
            )


def mixed_graphs(owners: Sequence[tuple[str, Graph]]) -> InvalidArgumentError:
    """The error for operations of different graphs used together."""
    where = "; ".join(f"{name} is in the graph made at {g.site.place}" for name, g in owners)
    return InvalidArgumentError(
        f"these belong to different graphs: {where}",
        hint="build both in one graph: inside the same `with graph.as_default():`, and without "
        "fb.reset_default_graph() between them",
    )


_global_graph: Graph | None = None
_global_lock = threading.Lock()


def get_default_graph() -> Graph:
    """The graph that code builds in: the innermost `as_default`, or else the process's own."""
    block = innermost()
    if block is not None and block.graph is not None:
        return block.graph
    global _global_graph
    if _global_graph is None:
        with _global_lock:
            if _global_graph is None:
                _global_graph = Graph()
    return _global_graph


def reset_default_graph() -> None:
    """Start the process's default graph afresh; what refers to the old one keeps it.

    Raises:
        FailedPreconditionError: inside a `with graph.as_default():` block.
    """
    block = innermost()
    if block is not None and block.graph is not None:
        raise FailedPreconditionError("reset_default_graph() inside `with graph.as_default():`")
    global _global_graph
    with _global_lock:
        _global_graph = None
