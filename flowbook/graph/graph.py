"""The graph: operations by name, in the order of their construction.

Invariants: names are unique; an operation's inputs were built before it, so that the order of ids
is a topological order; the graph only grows, except that a notebook cell which runs again retires
what it does not build again (see `author.py`). Building is thread-safe: joining the graph happens
under its lock, and scopes belong to threads.
"""

from __future__ import annotations

import difflib
import itertools
import re
import threading
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from flowbook.graph import files, graph_file, serialize
from flowbook.graph import site as sites
from flowbook.graph.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    InvalidTypeError,
    NotFoundError,
)
from flowbook.graph.names import Names
from flowbook.graph.operation import Operation
from flowbook.graph.repetition import Repetition
from flowbook.graph.scope import Scope
from flowbook.graph.stale_operations import StaleOperations, stale_among
from flowbook.graph.summaries import summaries_among
from flowbook.graph.tensor import Tensor
from flowbook.graph.unnamed import UnnamedVariables
from flowbook.graph.updates import updates_among
from flowbook.graph.variable_values import VariableValues

if TYPE_CHECKING:
    from flowbook.graph.author import Author, Cell

_VALID_NAME = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*\Z")
_VALID_INNER_NAME = re.compile(r"[A-Za-z0-9._][A-Za-z0-9_.\\/>-]*\Z")
_NO_SCOPE = Scope()


# What TensorFlow 1 calls otherwise.
_ELSEWHERE = {
    "add_to_collection": "a list of your own; variables() and updates() are computed",
    "as_graph_def": "graph.to_bytes(), or graph.save(path)",
    "as_graph_element": "graph.get_tensor_by_name(name)",
    "control_dependencies": "fb.control_dependencies(operations)",
    "device": "fb.device(name)",
    "get_collection": "graph.variables() or graph.updates()",
    "get_operations": "graph.operations",
    "gradient_override_map": "fb.OpDef(..., grad=function)",
    "name_scope": "fb.name_scope(name)",
    "unique_name": "fb.name_scope(name), which makes its name unique",
    "trainable_variables": "graph.variables(trainable=True)",
}


class _ThreadState(threading.local):
    """What a graph keeps per building thread."""

    scope: Scope = _NO_SCOPE


class Graph:
    """A dataflow graph (white paper, section 2).

    >>> import flowbook as fb
    >>> with fb.Graph().as_default() as graph:
    ...     y = fb.constant(2.0, name="a") * 3
    >>> [op.name for op in graph.operations]
    ['a', 'Mul/y', 'Mul']

    Attributes:
        version: grows with every change.
        retirements: how many operations redefinition has taken out.
        seed: the graph's random seed, or None.
        site: where the graph was made.
        values: who holds values of its variables, and which have been given up.
        repetition: whether loops that also run make it grow.
    """

    def __init__(self) -> None:
        self.version = 0
        self.retirements = 0
        self.seed: int | None = None
        self.site = sites.capture()
        self.finalized = False
        self.lock = threading.RLock()
        self._thread = _ThreadState()
        self._operations: dict[str, Operation] = {}
        self._stateful: dict[Operation, None] = {}
        self._variables: dict[Operation, Any] = {}
        self.values = VariableValues()
        self.repetition = Repetition()
        self._names = Names()
        self._latest_author: Author | None = None
        self._retired_by: weakref.WeakKeyDictionary[Operation, Cell] = weakref.WeakKeyDictionary()
        self._given_up: weakref.WeakKeyDictionary[Cell, weakref.WeakSet[Operation]] = (
            weakref.WeakKeyDictionary()
        )
        self._unnamed: weakref.WeakKeyDictionary[Cell, UnnamedVariables] = (
            weakref.WeakKeyDictionary()
        )
        self._next_id = 0
        self._generations: dict[str, int] = {}
        self._consumers: dict[Tensor, list[Operation]] = {}
        self._consumers_version = (-1, -1)

    # Scopes

    @property
    def scope(self) -> Scope:
        """What holds for what this thread builds now."""
        return self._thread.scope

    @scope.setter
    def scope(self, scope: Scope) -> None:
        self._thread.scope = scope

    @contextmanager
    def as_default(self) -> Iterator[Graph]:
        """Make this the graph that the block's code builds in, on this thread."""
        stack = _defaults.stack
        depth = len(stack)
        try:  # An interrupt may come right before or after it is appended.
            stack.append(self)
            yield self
        finally:
            del stack[depth:]

    def enter_name(self, name: str) -> str:
        """Claim a name scope below the current one; a trailing "/" re-enters an existing one."""
        if not isinstance(name, str):
            raise InvalidTypeError(f"a name is a string, not {name!r}")
        if name.endswith("/"):
            _check_name(name)
            return name
        prefix = self.scope.prefix
        _check_name(name, prefix)
        with self.lock:
            self._check_open()
            return self._names.claim(prefix + name, sites.capture().author) + "/"

    # Building

    def add(
        self,
        operation: Operation,
        name: str | None,
        new_inputs: Sequence[tuple[int, Operation, str]] = (),
    ) -> Operation:
        """Let a built operation join the graph, under a unique name.

        Args:
            operation: complete but for its name, id and what its scope determines.
            name: the requested name, or None for the name of its type.
            new_inputs: constants made from Python values, as (position, operation, argument name),
                which join the graph before it as `name/argument`.

        Returns:
            The operation; or the one that an earlier execution of the same notebook cell built,
            if it means the same.
        """
        scope = self._thread.scope
        if name is None:
            name = operation.op_def.type
        else:
            _check_name(name, scope.prefix)
        author = operation.site.author
        with self.lock:
            self._check_open()
            exact = name.endswith("/")
            full = name[:-1] if exact else scope.prefix + name
            full = self._take(full, author) if exact else self._names.claim(full, author)
            if new_inputs:
                inputs = list(operation.inputs)
                for position, constant, argument in new_inputs:
                    claimed = self._names.claim(f"{full}/{argument}", author)
                    inputs[position] = self._join(constant, claimed, author).outputs[0]
                operation.inputs = tuple(inputs)
            if scope is not _NO_SCOPE:
                operation.control_inputs = scope.control_inputs
                operation.device = scope.device
                operation.colocation = scope.colocation
                operation.container = scope.container if operation.op_def.resource else ""
            return self._join(operation, full, author)

    def _join(self, operation: Operation, name: str, author: Author | None) -> Operation:
        if author is not None:
            if author is not self._latest_author:
                self._latest_author = author
                author.cell.graphs.add(self)
            previous = self._operations.get(name)
            if previous is not None:
                has_resource = operation.op_def.resource is not None
                if previous.is_same_as(operation):
                    previous.site = operation.site
                    if has_resource:
                        author.kept.append(previous)
                    return previous
                self.retire(previous, author.cell)
                if has_resource and previous.op_def is operation.op_def:
                    author.replaced.append((operation, previous))
        operation.name = name
        operation.id = self._next_id
        self._next_id += 1
        # An interrupt leaves at worst a version without a change, and an operation in `_stateful`
        # that is not in the graph.
        if operation.op_def.is_stateful:
            self._stateful[operation] = None
        self.version += 1
        self._operations[name] = operation
        if self.repetition.suspects:
            self.repetition.note(operation)
        return operation

    def retire(self, operation: Operation, cell: Cell | None = None) -> None:
        """Take an operation out of the graph; what still refers to it sees `name@generation`.

        Args:
            operation: one of this graph.
            cell: the notebook cell that redefined it, or builds it no longer.
        """
        with self.lock:
            if operation.retired:
                return
            name = operation.name
            del self._operations[name]
            self._stateful.pop(operation, None)
            self._variables.pop(operation, None)
            self._names.give_back(name, operation.site.author)
            # Consumers would keep it alive.
            self._consumers, self._consumers_version = {}, (-1, -1)
            generation = self._generations[name] = self._generations.get(name, 0) + 1
            operation.name = f"{name}@{generation}"
            operation.retired = True
            if cell is not None:
                self._retired_by[operation] = cell
            self.retirements += 1
            self.version += 1

    def end_execution(self, author: Author, completed: bool) -> None:
        """Do what the end of a notebook cell's execution means for this graph.

        Args:
            author: the execution.
            completed: whether it ended without an error. If so, what earlier executions of its
                cell built and this one did not is retired, and the names of scopes are freed.
        """
        with self.lock:
            if completed and author.cell.executions > 1 and not self.finalized:
                operations = self._operations.values()
                for operation in [o for o in operations if author.may_take(o.site.author)]:
                    if operation.op_def.resource == "variable":
                        author.dropped.append(operation)
                    self.retire(operation, author.cell)
                self._names.release(author, self._operations)
            unnamed = self._unnamed.get(author.cell)
            if unnamed is not None:
                self._give_up(unnamed.end(author, completed), author)
            self._names.forget_search(author)
            self.repetition.forget()
            if self._latest_author is author:
                self._latest_author = None

    def give_up(self, cell: Cell) -> list[Operation]:
        """Retire what a notebook cell built, which was deleted; return it.

        What still refers to it keeps it, with the values of its variables.
        """
        with self.lock:
            if self.finalized:
                return []
            operations = self._operations.values()
            found = [o for o in operations if o.site.author and o.site.author.cell is cell]
            self._given_up[cell] = weakref.WeakSet(found)
            for operation in found:
                self.retire(operation, cell)
            self._names.release_all(cell)
            self._unnamed.pop(cell, None)
            return found

    def take_back(self, cell: Cell) -> None:
        """Undo `give_up`, as far as anything still refers to the operations: the cell is back."""
        with self.lock:
            for operation in sorted(self._given_up.pop(cell, ()), key=lambda op: op.id):
                name = operation.name.rpartition("@")[0]
                if name in self._names.owners:
                    continue  # Another cell has taken it.
                operation.name, operation.retired = name, False
                self._names.owners[name] = operation.site.author
                self._operations[name] = operation
                if operation.op_def.is_stateful:
                    self._stateful[operation] = None
                if operation.variable is not None:
                    self._variables[operation] = operation.variable
                self.retirements += 1
                self.version += 1
            self._operations = dict(sorted(self._operations.items(), key=lambda kv: kv[1].id))
            self._stateful = dict.fromkeys(sorted(self._stateful, key=lambda op: op.id))

    def retired_by(self, operation: Operation) -> Cell | None:
        """The notebook cell that redefined a retired operation, if it is known."""
        return self._retired_by.get(operation)

    def stale(self) -> StaleOperations:
        """The operations that were built, directly or not, from something since redefined.

        Returns:
            A list, shown by the cells to re-run. Each item says what its operation was built from
            (`.reason`) and which cells to re-run for it (`.cells`).
        """
        return stale_among(self.operations) if self.retirements else StaleOperations()

    def forget(self, operation: Operation) -> None:
        """Give up the value of a variable, given its handle's operation, in all sessions."""
        with self.lock:
            self.values.forget(operation)
            self.version += 1

    def _give_up(self, operations: list[Operation], author: Author) -> None:
        for operation in operations:
            if self.values.has_value(operation):
                author.restarted.append(operation)
            self.forget(operation)

    def _take(self, name: str, author: Author | None) -> str:
        """Exactly `name`, which may be the name of a scope but not of an operation."""
        present = self._operations.get(name)
        if present is not None and not (
            author is not None and author.may_take(present.site.author)
        ):
            return self._names.claim(name, author)
        self._names.owners[name] = author
        return name

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

    def restore(self, operation: Operation, name: str, retired: bool = False) -> None:
        """Let an operation of a stored graph join under exactly its name.

        Args:
            operation: complete but for its name and id.
            name: its name; of a retired operation `name@generation`.
            retired: whether it only serves operations that still refer to it.

        Raises:
            AlreadyExistsError: if an operation of that name is there.
        """
        plain, at, generation = name.partition("@") if retired else (name, "", "")
        _check_name(plain)
        with self.lock:
            self._check_open()
            if name in self._operations:
                raise AlreadyExistsError(f"the graph has an operation {name!r} already")
            if retired:
                if not (at and generation.isascii() and generation.isdigit()):
                    raise InvalidArgumentError(f"{name!r} is not the name of a retired operation")
                self._join_retired(operation, plain, int(generation))
                operation.name = name
                return
            self._names.owners[name] = None
            self._join(operation, name, None)

    def adopt(
        self, name: str, operations: Sequence[tuple[str, Operation]], scopes: Iterable[str]
    ) -> str:
        """Let operations made for this graph join it under a scope, all or none of them.

        Where a notebook cell that runs again imports what it has, the present operations stay, and
        take the place of those given for them.

        Args:
            name: the scope, as for `enter_name`; "" is the current one.
            operations: with their names in the scope, each after what it refers to. That of a
                retired one is `name@generation`.
            scopes: names in the scope to take for scopes.

        Returns:
            The scope's prefix.

        Raises:
            AlreadyExistsError: if an operation of one of the names is there.
        """
        with self.lock:
            self._check_open()
            before = dict(self._operations), dict(self._stateful), dict(self._names.owners)
            try:
                prefix = self.enter_name(name) if name else self.scope.prefix
                named = [(prefix + inner, operation) for inner, operation in operations]
                self._check_names(named)
                self._join_all(named)
                self.reserve_scopes(prefix + inner for inner in scopes)
            except BaseException:
                self._operations, self._stateful, owners = before
                self._names.put_back(owners)
                raise
        return prefix

    def _check_names(self, named: Sequence[tuple[str, Operation]]) -> None:
        for name, operation in named:
            _check_name(name.partition("@")[0] if operation.retired else name)
            present = self._operations.get(name)
            author = operation.site.author
            if present is not None and not (
                author is not None and author.may_take(present.site.author)
            ):
                raise AlreadyExistsError(
                    f"the graph has an operation {name!r} already",
                    hint="import under a name of its own: name='import'",
                )

    def _join_all(self, named: Sequence[tuple[str, Operation]]) -> None:
        present: dict[Operation, Operation] = {}
        for name, operation in named:
            if present:
                operation.replace_inputs(present)
            if operation.retired:
                plain, _, generation = name.partition("@")
                latest = self._generations.get(plain, 0)
                self._join_retired(operation, plain, max(latest + 1, int(generation)))
                continue
            author = operation.site.author
            self._names.owners[name] = author
            joined = self._join(operation, name, author)
            if joined is not operation:
                present[operation] = joined

    def _join_retired(self, operation: Operation, plain: str, generation: int) -> None:
        self._generations[plain] = max(self._generations.get(plain, 0), generation)
        operation.name, operation.retired = f"{plain}@{generation}", True
        operation.id = self._next_id
        self._next_id += 1
        self.retirements += 1

    def scope_names(self) -> list[str]:
        """The names that scopes took and no operation has, sorted."""
        with self.lock:
            return sorted(self._names.owners.keys() - self._operations.keys())

    def reserve_scopes(self, names: Iterable[str]) -> None:
        """Take the names of a stored graph's scopes, so that new scopes get others."""
        with self.lock:
            for name in names:
                _check_name(name)
                self._names.owners.setdefault(name, None)

    def finalize(self) -> None:
        """Make every further change a FailedPreconditionError; running stays possible."""
        self.finalized = True

    def _check_open(self) -> None:
        if self.finalized:
            raise FailedPreconditionError(
                f"the graph made at {self.site.place} is finalized and cannot be changed",
                hint="build all that runs need before graph.finalize()",
            )

    # Looking up

    @property
    def operations(self) -> list[Operation]:
        """All operations, in the order of their construction."""
        with self.lock:
            return list(self._operations.values())

    def operations_from(self, start: int) -> list[Operation]:
        """The operations whose ids are at least `start`, the latest first."""
        with self.lock:
            latest = reversed(self._operations.values())
            return list(itertools.takewhile(lambda operation: operation.id >= start, latest))

    def stateful_operations(self) -> list[Operation]:
        """The operations with effects or resources, in the order of their construction."""
        with self.lock:
            operations = self._operations
            return [op for op in self._stateful if operations.get(op.name) is op]

    def register_variable(self, variable: Any, is_named: bool = True) -> None:
        """Make a variable known by its handle's operation (`flowbook.graph.ops.variables`).

        Args:
            variable: the variable.
            is_named: whether its name was given; what that means says `unnamed.py`.
        """
        with self.lock:
            variable.op.variable = variable
            if not variable.op.retired:
                self._variables[variable.op] = variable
            author = variable.op.site.author
            if author is not None and not is_named:
                unnamed = self._unnamed.setdefault(author.cell, UnnamedVariables())
                self._give_up(unnamed.note(variable.op, author), author)

    def variable_of(self, operation: Operation) -> Any:
        """The variable whose handle the operation produces, or None."""
        return operation.variable

    def variables(self, trainable: bool | None = None) -> list[Any]:
        """The variables, in the order of their construction.

        Args:
            trainable: only those whose `trainable` is this; None gives all.
        """
        with self.lock:
            found = sorted(self._variables.values(), key=lambda variable: variable.op.id)
        return [v for v in found if trainable is None or v.trainable == trainable]

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
            return updates_among(self._operations.values(), losses)

    def summaries(self) -> list[Operation]:
        """The operations that `fb.summary` built, in the order of their construction."""
        with self.lock:
            return summaries_among(self._operations.values())

    def variables_registered(self, start: int) -> list[Any]:
        """The variables from the given place on, in the order in which they became known.

        That is not always the order of construction: threads may build at the same time.
        """
        with self.lock:
            return list(itertools.islice(self._variables.values(), start, None))

    def has_operation(self, name: str) -> bool:
        """Whether there is an operation of that name."""
        return name in self._operations

    def get_operation_by_name(self, name: str) -> Operation:
        """The operation of that name; NotFoundError if there is none."""
        if not isinstance(name, str):
            raise InvalidTypeError(f"an operation is named by a string, not {name!r}")
        operation = self._operations.get(name)
        if operation is None:
            close = difflib.get_close_matches(name, self._operations, 3)
            raise NotFoundError(
                f"the graph has no operation {name!r}",
                hint=f"did you mean {' or '.join(map(repr, close))}?"
                if close
                else f"it has {len(self._operations)} operations: graph.operations",
            )
        return operation

    def get_tensor_by_name(self, name: str) -> Tensor:
        """The tensor `operation:port`; NotFoundError if there is none."""
        if not isinstance(name, str):
            raise InvalidTypeError(f"a tensor is named by a string, not {name!r}")
        operation_name, colon, port = name.rpartition(":")
        if not colon or not port.isascii() or not port.isdigit():
            raise InvalidArgumentError(
                f"{name!r} is not the name of a tensor, which is 'operation:port'",
                hint=f"did you mean {name + ':0'!r}?" if name in self._operations else None,
            )
        operation = self.get_operation_by_name(operation_name)
        if int(port) >= len(operation.outputs):
            raise NotFoundError(
                f"{name!r}: operation {operation_name!r} has {len(operation.outputs)} outputs"
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
        with self.lock:
            version = (self._next_id, self.retirements)
            if self._consumers_version != version:
                seen, retirements = self._consumers_version
                if retirements != self.retirements:
                    self._consumers, seen = {}, 0
                for operation in self.operations_from(seen):
                    for source in dict.fromkeys(operation.inputs):
                        self._consumers.setdefault(source, []).append(operation)
                self._consumers_version = version
            return sorted(self._consumers.get(tensor, ()), key=lambda operation: operation.id)

    def __getattr__(self, name: str) -> NoReturn:
        instead = _ELSEWHERE.get(name)
        raise AttributeError(f"Graph has no {name}" + (f": use {instead}" if instead else ""))

    def __repr__(self) -> str:
        return f"<Graph of {len(self._operations)} operations, made at {self.site.place}>"


def _check_name(name: str, prefix: str = "") -> None:
    """Refuse what cannot be a name after the prefix of a scope."""
    if not isinstance(name, str):
        raise InvalidTypeError(f"a name is a string, not {name!r}")
    is_inner = prefix and not name.endswith("/")
    if not (_VALID_INNER_NAME if is_inner else _VALID_NAME).match(name):
        raise InvalidArgumentError(
            f"{name!r} is not a valid name",
            hint="letters, digits and _ . - / > \\, beginning with a letter, a digit or a dot "
            "(inside a name scope also with _)",
        )


def mixed_graphs(owners: Sequence[tuple[str, Graph]]) -> InvalidArgumentError:
    """The error for operations of different graphs used together."""
    where = "; ".join(f"{name} is in the graph made at {g.site.place}" for name, g in owners)
    return InvalidArgumentError(
        f"these belong to different graphs: {where}",
        hint="build both in one graph: inside the same `with graph.as_default():`, and without "
        "fb.reset_default_graph() between them",
    )


class _Defaults(threading.local):
    """The graphs that this thread's `as_default` blocks entered."""

    def __init__(self) -> None:
        self.stack: list[Graph] = []


_defaults = _Defaults()
_global_graph: Graph | None = None
_global_lock = threading.Lock()


def get_default_graph() -> Graph:
    """The graph that code builds in: the innermost `as_default`, or else the process's own."""
    stack = _defaults.stack
    if stack:
        return stack[-1]
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
    if _defaults.stack:
        raise FailedPreconditionError("reset_default_graph() inside `with graph.as_default():`")
    global _global_graph
    with _global_lock:
        _global_graph = None
