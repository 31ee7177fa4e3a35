"""The operations that make up a graph: how they join it, and leave it.

Invariants: names are unique; an operation's inputs were built before it, so that the order of ids
is a topological order, and that of the operations; they only become more, except that a notebook
cell which runs again retires what it does not build again, and one that is deleted retires what it
built (`cell_runs.py`). What enters a loop joins with all of the loop (`loops.py`). All of this
happens under the graph's lock.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from flowbook.graph.building.cell_runs import CellRuns
from flowbook.graph.building.known_shapes import KnownShapes
from flowbook.graph.building.loops import Loops
from flowbook.graph.building.names import Names, check_name
from flowbook.graph.building.places import Places
from flowbook.graph.model.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
)
from flowbook.graph.model.mark import Mark
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.origin import site as sites
from flowbook.graph.model.resource_key import key_of
from flowbook.graph.redefinition.repetition import Repetition
from flowbook.graph.redefinition.variable_values import VariableValues

if TYPE_CHECKING:
    from flowbook.graph.model.origin.author import Author, Cell
    from flowbook.graph.model.tensor import Tensor


class Members:
    """The operations of a graph, by name, and what is known of their coming and going.

    Attributes:
        version: grows with every change.
        retirements: how many operations redefinition has taken out.
        site: where the graph was made.
        finalized: whether nothing may join any more.
        lock: what every change holds.
        operations: those that are not retired, by name, in the order of their construction.
        variables: by the operations of their handles, in the order in which they became known.
        names: who has which.
        generations: how many operations of each name are retired.
        keeps: how often one was kept that an execution of a cell built again.
        latest_author: the execution that built last, if it has not ended.
        cells: what executions of cells mean.
        loops: those that are being built.
        values: who holds values of its variables, and which have been given up.
        unfilled: what owns queues of which a runner was retired.
        repetition: whether loops that also run make it grow.
        places: where in the control flow operations are.
        known_shapes: what `tensor.set_shape` said.
        template_calls: the scopes of further calls of templates, each with the first's.
        unfeedable: the tensors that runs may not feed.
    """

    def __init__(self) -> None:
        self.version = 0
        self.retirements = 0
        self.site = sites.capture()
        self.finalized = False
        self.lock = threading.RLock()
        self.operations: dict[str, Operation] = {}
        self.variables: dict[Operation, Any] = {}
        self.template_calls: dict[str, str] = {}
        self.unfeedable: weakref.WeakSet[Tensor] = weakref.WeakSet()
        self.values = VariableValues()
        self.unfilled: weakref.WeakSet[Operation] = weakref.WeakSet()
        self.repetition = Repetition()
        self.places = Places(self.lock)
        self.known_shapes = KnownShapes()
        self._suspects = self.repetition.suspects
        self.names = Names()
        self.cells = CellRuns(self)
        self.loops = Loops(self)
        self.latest_author: Author | None = None
        self._retired_by: weakref.WeakKeyDictionary[Operation, Cell] = weakref.WeakKeyDictionary()
        self._next_id = 0
        # Of what was built again and kept: the next id then, and how often anything had been kept.
        self._built_again: weakref.WeakKeyDictionary[Operation, tuple[int, float]] = (
            weakref.WeakKeyDictionary()
        )
        self.keeps = 0
        self.generations: dict[str, int] = {}
        self._consumers: dict[Tensor, list[Operation]] = {}
        self._consumers_version = (-1, -1)

    # Joining

    def join(self, operation: Operation, name: str, author: Author | None) -> Operation:
        """Let an operation join under a name that it has claimed.

        Returns:
            The operation; or the one that an earlier execution of the same notebook cell built, if
            it means the same.
        """
        if author is not None:
            if author is not self.latest_author:
                self.latest_author = author
                author.cell.graphs.add(self)
            previous = self.operations.get(name)
            if self.loops.takes(operation, previous):
                pass  # What becomes of it is seen when the loop is complete.
            elif previous is not None:
                if previous.is_same_as(operation):
                    self.keep(previous, operation)
                    return previous
                self.retire(previous, author.cell)
                if operation.op_def.owns is not None and previous.op_def is operation.op_def:
                    author.replaced.append((operation, previous))
        operation.name = name
        self._number(operation)
        if operation.closes is not None:
            operation.closes.closed_by = operation
        if operation.op_def.owns is not None:
            # Of which generation it will be when it is retired.
            operation.key = key_of(operation, name, self.generations.get(name, 0) + 1)
        self.version += 1  # An interrupt here leaves a version without a change.
        self.operations[name] = operation
        if operation.op_def.vouches:
            self.known_shapes.note(operation)
        if self._suspects:
            self.repetition.note(operation)
        return operation

    def _number(self, operation: Operation) -> None:
        """Give an operation its id, after those of the operations that it stands for."""
        if operation.op_def.stands_for is not None:
            self._next_id += operation.op_def.stands_for.count(operation)
        operation.id = self._next_id
        self._next_id += 1

    def generation(self, operation: Operation) -> int:
        """Which of the operations of its name one is, counted from 1."""
        name, _, generation = operation.name.partition("@")
        return int(generation) if operation.retired else self.generations.get(name, 0) + 1

    def keep(self, previous: Operation, operation: Operation) -> None:
        """Let an operation stand for one that means the same and was built again."""
        previous.site = operation.site
        if previous.op_def.vouches:
            self.known_shapes.note(previous)
        self._built_again[previous] = self._next_id, self.keeps
        self.keeps += 1
        op_def = previous.op_def
        if operation.site.author is not None and (op_def.owns or op_def.marks is Mark.RUNNER):
            operation.site.author.kept.append(previous)

    def take(self, name: str, author: Author | None) -> str:
        """Exactly `name`, which may be the name of a scope but not of an operation."""
        present = self.operations.get(name)
        if present is not None and not (
            author is not None and author.may_take(present.site.author)
        ):
            return self.names.claim(name, author)
        self.names.owners[name] = author
        return name

    def register_variable(self, variable: Any, is_named: bool = True) -> None:
        """Make a variable known by its handle's operation (`flowbook.graph.ops.state.variables`).

        Args:
            variable: the variable.
            is_named: whether its name was given; what that means says `unnamed.py`.
        """
        with self.lock:
            variable.op.variable = variable
            if not variable.op.retired:
                self.variables[variable.op] = variable
            author = variable.op.site.author
            if author is not None and not is_named:
                self.cells.note_unnamed(variable.op, author)

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
        check_name(plain)
        with self.lock:
            self.check_open()
            if name in self.operations:
                raise AlreadyExistsError(f"the graph has an operation {name!r} already")
            if retired:
                if not (at and generation.isascii() and generation.isdigit()):
                    raise InvalidArgumentError(f"{name!r} is not the name of a retired operation")
                self.places.put(operation)
                self.join_retired(operation, plain, int(generation))
                operation.name = name
                return
            self.places.put(operation)
            self.names.owners[name] = None
            self.join(operation, name, None)

    def join_retired(self, operation: Operation, plain: str, generation: int) -> None:
        """Let an operation join that only serves others which still refer to it."""
        self.generations[plain] = max(self.generations.get(plain, 0), generation)
        operation.name, operation.retired = f"{plain}@{generation}", True
        if operation.op_def.owns is not None:
            operation.key = key_of(operation, plain, generation)
        self._number(operation)
        self.retirements += 1

    @contextmanager
    def all_or_none(self) -> Iterator[None]:
        """In this block, what joins and the names it takes stay only if it ends without an error.

        Raises:
            FailedPreconditionError: if the graph is finalized.
        """
        with self.lock:
            self.check_open()
            operations, owners = self.operations.copy(), self.names.owners.copy()
            try:
                yield
            except BaseException:
                self.operations = operations
                self.names.put_back(owners)
                raise

    def scope_names(self) -> list[str]:
        """The names that scopes took and no operation has, sorted."""
        with self.lock:
            return sorted(self.names.owners.keys() - self.operations.keys())

    def reserve_names(self, names: Iterable[str]) -> None:
        """Take names, as those of a stored graph's scopes, so that what is new gets others."""
        with self.lock:
            for name in names:
                check_name(name)
                self.names.owners.setdefault(name, None)

    def operations_from(self, start: int) -> list[Operation]:
        """The operations whose ids are at least `start`, the latest first."""
        found: list[Operation] = []
        with self.lock:
            for operation in reversed(self.operations.values()):
                if operation.id < start:
                    break
                found.append(operation)
        return found

    def as_last_built(self) -> list[Operation]:
        """The operations in the order of the executions that built them last, or built them again.

        Within an execution it is the order of construction, whether it made or kept an operation.
        """
        with self.lock:
            again = self._built_again
            # What was kept came before what was next.
            return sorted(self.operations.values(), key=lambda op: again.get(op, (op.id, math.inf)))

    def check_open(self) -> None:
        """Refuse any change once the graph is finalized."""
        if self.finalized:
            raise FailedPreconditionError(
                f"the graph made at {self.site.place} is finalized and cannot be changed",
                hint="build all that runs need before graph.finalize()",
            )

    # Who takes what

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

    def forget_consumers(self) -> None:
        """Find anew who takes what: others do now."""
        self._consumers, self._consumers_version = {}, (-1, -1)

    # Leaving

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
            del self.operations[name]
            self.variables.pop(operation, None)
            self.let_go(operation)
            self.names.give_back(name, operation.site.author)
            # Consumers would keep it alive.
            self.forget_consumers()
            generation = self.generations[name] = self.generations.get(name, 0) + 1
            operation.name = f"{name}@{generation}"
            operation.retired = True
            if cell is not None:
                self._retired_by[operation] = cell
            if operation.op_def.marks is Mark.RUNNER:
                self.unfilled.add(operation.inputs[0].op)
            self.retirements += 1
            self.version += 1

    def bring_back(self, operation: Operation) -> None:
        """Undo `retire`, unless something else has taken the name; `sort` has to follow."""
        with self.lock:
            name = operation.name.rpartition("@")[0]
            if name in self.names.owners:
                return
            operation.name, operation.retired = name, False
            self.names.owners[name] = operation.site.author
            self.operations[name] = operation
            if operation.variable is not None:
                self.variables[operation] = operation.variable
            if operation.op_def.vouches:
                self.known_shapes.note(operation)
            self.retirements += 1
            self.version += 1

    def let_go(self, operation: Operation) -> None:
        """Have nothing that is built take the place of an operation's input any more."""
        if operation.op_def.vouches:
            self.known_shapes.take_back(operation)

    def sort(self) -> None:
        """Have the operations be in the order of their construction again."""
        self.operations = dict(sorted(self.operations.items(), key=lambda kv: kv[1].id))

    def has_built(self, author: Author, name: str) -> bool:
        """Whether an operation is here by a name, and from an execution of a cell."""
        operation = self.operations.get(name)
        return operation is not None and operation.site.author is author

    def retired_by(self, operation: Operation) -> Cell | None:
        """The notebook cell that redefined a retired operation, if it is known."""
        return self._retired_by.get(operation)

    def forget(self, operation: Operation) -> None:
        """Give up the value of a variable, given its handle's operation, in all sessions."""
        with self.lock:
            self.values.forget(operation)
            self.version += 1
