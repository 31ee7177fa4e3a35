"""The operations that make up a graph: how they join it, leave it, and come back.

Invariants: names are unique; an operation's inputs were built before it, so that the order of ids
is a topological order, and that of the operations; they only become more, except that a notebook
cell which runs again retires what it does not build again, and one that is deleted retires what it
built (see `author.py`). All of this happens under the graph's lock.
"""

from __future__ import annotations

import itertools
import math
import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from flowbook.graph.building.known_shapes import KnownShapes
from flowbook.graph.building.names import Names, check_name
from flowbook.graph.building.places import Places
from flowbook.graph.model import site as sites
from flowbook.graph.model.context import (
    Frame,
    frame_of,
)
from flowbook.graph.model.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    OpError,
)
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.resource_key import key_of
from flowbook.graph.model.retag import Retag
from flowbook.graph.redefinition.rebuilt_loops import Pairs, RebuiltLoops, is_same, the_same
from flowbook.graph.redefinition.repetition import Repetition
from flowbook.graph.redefinition.unnamed import UnnamedVariables
from flowbook.graph.redefinition.variable_values import VariableValues

if TYPE_CHECKING:
    from flowbook.graph.building.flow import Flow
    from flowbook.graph.model.author import Author, Cell
    from flowbook.graph.model.tensor import Tensor


class Members:
    """The operations of a graph, by name, and what is known of their coming and going.

    Attributes:
        version: grows with every change.
        retirements: how many operations redefinition has taken out.
        site: where the graph was made.
        finalized: whether nothing may join any more.
        lock: what every change holds.
        values: who holds values of its variables, and which have been given up.
        repetition: whether loops that also run make it grow.
        places: where in the control flow operations are.
        known_shapes: what `tensor.set_shape` said.
    """

    def __init__(self) -> None:
        self.version = 0
        self.retirements = 0
        self.site = sites.capture()
        self.finalized = False
        self.lock = threading.RLock()
        self._operations: dict[str, Operation] = {}
        self._variables: dict[Operation, Any] = {}
        # The scopes of further calls, each with the first's.
        self.template_calls: dict[str, str] = {}
        self.values = VariableValues()
        self.repetition = Repetition()
        self.places = Places(self.lock)
        self.known_shapes = KnownShapes()
        self._suspects = self.repetition.suspects
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
        # Of what was built again and kept: the next id then, and how often anything had been kept.
        self._built_again: weakref.WeakKeyDictionary[Operation, tuple[int, float]] = (
            weakref.WeakKeyDictionary()
        )
        self.keeps = 0
        self._rebuilt = RebuiltLoops()
        self._generations: dict[str, int] = {}
        # What `Graph.consumers` found.
        self._consumers: dict[Tensor, list[Operation]] = {}
        self._consumers_version = (-1, -1)

    # Loops, whose operations join together

    def open_frame(self, frame: Frame) -> None:
        """Note a new frame, which is entered by its name."""
        with self.lock:
            self.places.open(frame)
            self._rebuilt.begin(frame)

    def complete(self, frame: Frame) -> Mapping[Operation, Operation]:
        """Note that nothing else may join a loop.

        Returns:
            What stands for its operations, where an earlier execution of the same cell has built
            the same loop; nothing where they stand for themselves.
        """
        with self.lock:
            self.places.close(frame)
            pairs = self._rebuilt.end(frame)
            before = the_same(pairs)
            if before is None:
                self._replace_loop(pairs)
                return {}
            for operation, previous in before.items():
                self._operations[operation.name] = previous
                self._let_go(operation)
                self._keep(previous, operation)
                if previous.op_def.retag is Retag.PUSH:
                    entered = frame_of(previous.context)
                    assert entered is not None
                    self.places.open(entered)
            self._consumers, self._consumers_version = {}, (-1, -1)
            return before

    def _replace_loop(self, pairs: Pairs) -> None:
        """Let a loop take the place of one that was built before."""
        replaced = [(new, old) for new, old in pairs if old is not None and not old.retired]
        for operation, previous in replaced:
            name, author = operation.name, operation.site.author
            assert author is not None
            self._operations[name] = previous
            self.retire(previous, author.cell)
            self._names.owners[name] = author
            self._operations[name] = operation
            if operation.op_def.owns is not None:
                operation.key = key_of(operation, name, self._generations[name] + 1)
                if previous.op_def is operation.op_def:
                    author.replaced.append((operation, previous))
        if replaced:
            self._sort()

    def abandon(self, frame: Frame) -> None:
        """Let a loop go whose building has failed; what it took the names of has them again."""
        with self.lock:
            for operation, previous in self._rebuilt.end(frame):
                self._let_go(operation)
                if previous is not None:
                    self._operations[operation.name] = previous
                else:
                    self._operations.pop(operation.name, None)
                    self._names.give_back(operation.name, operation.site.author)
            self._consumers, self._consumers_version = {}, (-1, -1)

    # Joining

    def _join(self, operation: Operation, name: str, author: Author | None) -> Operation:
        if author is not None:
            if author is not self._latest_author:
                self._latest_author = author
                author.cell.graphs.add(self)
            previous = self._operations.get(name)
            if self._rebuilt.takes(operation, previous):
                pass  # What becomes of it is seen when the loop is complete.
            elif previous is not None:
                if previous.is_same_as(operation):
                    self._keep(previous, operation)
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
            operation.key = key_of(operation, name, self._generations.get(name, 0) + 1)
        self.version += 1  # An interrupt here leaves a version without a change.
        self._operations[name] = operation
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
        return int(generation) if operation.retired else self._generations.get(name, 0) + 1

    def _keep(self, previous: Operation, operation: Operation) -> None:
        """Let an operation stand for one that means the same and was built again."""
        previous.site = operation.site
        if previous.op_def.vouches:
            self.known_shapes.note(previous)
        self._built_again[previous] = self._next_id, self.keeps
        self.keeps += 1
        if previous.op_def.owns is not None and operation.site.author is not None:
            operation.site.author.kept.append(previous)

    def _take(self, name: str, author: Author | None) -> str:
        """Exactly `name`, which may be the name of a scope but not of an operation."""
        present = self._operations.get(name)
        if present is not None and not (
            author is not None and author.may_take(present.site.author)
        ):
            return self._names.claim(name, author)
        self._names.owners[name] = author
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
                self._variables[variable.op] = variable
            author = variable.op.site.author
            if author is not None and not is_named:
                unnamed = self._unnamed.setdefault(author.cell, UnnamedVariables())
                self._give_up(unnamed.note(variable.op, author), author)

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
            self._check_open()
            if name in self._operations:
                raise AlreadyExistsError(f"the graph has an operation {name!r} already")
            if retired:
                if not (at and generation.isascii() and generation.isdigit()):
                    raise InvalidArgumentError(f"{name!r} is not the name of a retired operation")
                self.places.put(operation)
                self._join_retired(operation, plain, int(generation))
                operation.name = name
                return
            self.places.put(operation)
            self._names.owners[name] = None
            self._join(operation, name, None)

    def _check_names(self, named: Sequence[tuple[str, Operation]]) -> None:
        self._check_loops([operation for _, operation in named])
        for name, operation in named:
            check_name(name.partition("@")[0] if operation.retired else name)
            present = self._operations.get(name)
            author = operation.site.author
            if present is not None and not (
                author is not None and author.may_take(present.site.author)
            ):
                raise AlreadyExistsError(
                    f"the graph has an operation {name!r} already",
                    hint="import under a name of its own: name='import'",
                )

    def _check_loops(self, operations: Sequence[Operation]) -> None:
        """Refuse to let loops join that others of their names would be joined with."""
        author = next((o.site.author for o in operations), None)
        entering = [o for o in operations if o.op_def.retag is Retag.PUSH]
        taken = {
            o.attributes["frame_name"]
            for o in (self._operations.values() if entering else ())
            if o.op_def.retag is Retag.PUSH
            and not (author is not None and author.may_take(o.site.author))
        }
        for operation in entering:
            if operation.attributes["frame_name"] in taken:
                raise AlreadyExistsError(
                    f"the graph has a loop {operation.attributes['frame_name']!r} already",
                    hint="import under a name of its own: name='import'",
                )

    def _join_all(self, named: Sequence[tuple[str, Operation]], flow: Flow | None) -> None:
        present = self._loops_kept(named)
        for name, operation in named:
            author = operation.site.author
            kept = present.get(operation)
            if kept is not None:
                self._names.owners[name] = author
                self._keep(kept, operation)
                continue
            if present:
                operation.replace_inputs(present)
            if flow is not None:
                operation.inputs = tuple([flow.captured(t) for t in operation.inputs])
                flow.enclose(operation)
            try:
                self.places.put(operation)
            except OpError as error:
                what = f"{operation.type} {name!r}"
                raise error.at(what, operation.site, operation.inputs) from None
            if operation.retired:
                plain, _, generation = name.partition("@")
                latest = self._generations.get(plain, 0)
                self._join_retired(operation, plain, max(latest + 1, int(generation)))
                continue
            self._names.owners[name] = author
            joined = self._join(operation, name, author)
            if joined is not operation:
                present[operation] = joined
            if flow is not None:
                flow.joined(joined)
        self.places.note_complete(operation for _, operation in named if operation not in present)

    def _loops_kept(self, named: Sequence[tuple[str, Operation]]) -> dict[Operation, Operation]:
        """The operations of loops that are there already, if all of the loops are, by the new ones.

        Otherwise new loops are opened by their names.
        """
        in_loops = {o for _, o in named if frame_of(o.context) or o.op_def.retag is Retag.POP}
        before: dict[Operation, Operation] = {}
        for name, operation in named if in_loops else ():
            previous = self._operations.get(name)
            if previous is not None and is_same(operation, previous, before):
                before[operation] = previous
            elif operation in in_loops:
                for each in in_loops:
                    if each.op_def.retag is Retag.PUSH:
                        self.places.forget(each.attributes["frame_name"])
                return {}
        return {operation: before[operation] for operation in in_loops}

    def _join_retired(self, operation: Operation, plain: str, generation: int) -> None:
        self._generations[plain] = max(self._generations.get(plain, 0), generation)
        operation.name, operation.retired = f"{plain}@{generation}", True
        if operation.op_def.owns is not None:
            operation.key = key_of(operation, plain, generation)
        self._number(operation)
        self.retirements += 1

    def scope_names(self) -> list[str]:
        """The names that scopes took and no operation has, sorted."""
        with self.lock:
            return sorted(self._names.owners.keys() - self._operations.keys())

    def reserve_names(self, names: Iterable[str]) -> None:
        """Take names, as those of a stored graph's scopes, so that what is new gets others."""
        with self.lock:
            for name in names:
                check_name(name)
                self._names.owners.setdefault(name, None)

    def operations_from(self, start: int) -> list[Operation]:
        """The operations whose ids are at least `start`, the latest first."""
        with self.lock:
            latest = reversed(self._operations.values())
            return list(itertools.takewhile(lambda operation: operation.id >= start, latest))

    def as_last_built(self) -> list[Operation]:
        """The operations in the order of the executions that built them last, or built them again.

        Within an execution it is the order of construction, whether it made or kept an operation.
        """
        with self.lock:
            again = self._built_again
            # What was kept came before what was next.
            return sorted(
                self._operations.values(), key=lambda op: again.get(op, (op.id, math.inf))
            )

    def _check_open(self) -> None:
        if self.finalized:
            raise FailedPreconditionError(
                f"the graph made at {self.site.place} is finalized and cannot be changed",
                hint="build all that runs need before graph.finalize()",
            )

    # Leaving, and coming back

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
            self._variables.pop(operation, None)
            self._let_go(operation)
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

    def _let_go(self, operation: Operation) -> None:
        """Have nothing that is built take the place of an operation's input any more."""
        if operation.op_def.vouches:
            self.known_shapes.take_back(operation)

    def begin_execution(self, author: Author) -> None:
        """Do what the beginning of a notebook cell's execution means for this graph.

        What earlier executions of the cell said of shapes does not hold until it is said again.
        """
        with self.lock:
            if self.known_shapes:
                for operation in self._operations.values():
                    if author.may_take(operation.site.author):
                        self._let_go(operation)

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
                    if operation.op_def.owns == "variable":
                        author.dropped.append(operation)
                    self.retire(operation, author.cell)
                self._names.release(author, self._operations)
            self._renew_together(author)
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
            # It may be reported as deleted once more before it is back.
            self._given_up.setdefault(cell, weakref.WeakSet()).update(found)
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
                if operation.variable is not None:
                    self._variables[operation] = operation.variable
                if operation.op_def.vouches:
                    self.known_shapes.note(operation)
                self.retirements += 1
                self.version += 1
            self._sort()

    def _sort(self) -> None:
        self._operations = dict(sorted(self._operations.items(), key=lambda kv: kv[1].id))

    def has_built(self, author: Author, name: str) -> bool:
        """Whether an operation is here by a name, and from an execution of a cell."""
        operation = self._operations.get(name)
        return operation is not None and operation.site.author is author

    def retired_by(self, operation: Operation) -> Cell | None:
        """The notebook cell that redefined a retired operation, if it is known."""
        return self._retired_by.get(operation)

    def forget(self, operation: Operation) -> None:
        """Give up the value of a variable, given its handle's operation, in all sessions."""
        with self.lock:
            self.values.forget(operation)
            self.version += 1

    def _renew_together(self, author: Author) -> None:
        """Give up values that were kept while others that they belong with start afresh."""
        kept = set(author.kept)
        for members in author.together:
            mine = [op for op in members if op.graph is self and op.site.author is author]
            if any(op not in kept for op in mine):
                for operation in kept.intersection(mine):
                    if self.values.has_value(operation):
                        author.renewed.append(operation)
                    self.forget(operation)

    def _give_up(self, operations: list[Operation], author: Author) -> None:
        for operation in operations:
            if self.values.has_value(operation):
                author.restarted.append(operation)
            self.forget(operation)
