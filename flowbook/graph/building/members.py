"""The operations that make up a graph: how they join it, leave it, and come back.

Invariants: names are unique; an operation's inputs were built before it, so that the order of ids
is a topological order, and that of the operations; they only become more, except that a notebook
cell which runs again retires what it does not build again, and one that is deleted retires what it
built (see `author.py`). All of this happens under the graph's lock.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from flowbook.graph.building.names import Names, check_name
from flowbook.graph.model import site as sites
from flowbook.graph.model.context import (
    FRAME_OPTIONS,
    Branch,
    Context,
    Frame,
    chain,
    context_of,
    frame_of,
    is_within,
    joined,
    runs_in,
)
from flowbook.graph.model.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    InvalidTypeError,
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
    """

    def __init__(self) -> None:
        self.version = 0
        self.retirements = 0
        self.site = sites.capture()
        self.finalized = False
        self.lock = threading.RLock()
        self._operations: dict[str, Operation] = {}
        self._variables: dict[Operation, Any] = {}
        self.values = VariableValues()
        self.repetition = Repetition()
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
        self._is_routed = False
        self._rebuilt = RebuiltLoops()
        self._complete: weakref.WeakSet[Frame | Operation] = weakref.WeakSet()
        self._frames: weakref.WeakValueDictionary[tuple[str, Frame | None], Frame] = (
            weakref.WeakValueDictionary()
        )
        self._generations: dict[str, int] = {}
        # What `Graph.consumers` found.
        self._consumers: dict[Tensor, list[Operation]] = {}
        self._consumers_version = (-1, -1)

    # Where in the control flow

    def open_frame(self, frame: Frame) -> None:
        """Note a new frame, which is entered by its name."""
        with self.lock:
            self._frames[frame.name, frame_of(frame.outer)] = frame
            self._rebuilt.begin(frame)

    def _place(self, operation: Operation) -> None:
        """Find where an operation is that is about to join.

        Raises:
            InvalidArgumentError: if what it takes is in different frames, or in opposite branches,
                or in a frame to which nothing can be added, or it leaves a frame that it is not in.
        """
        self._is_routed |= operation.op_def.is_router
        context, retag = joined(operation), operation.op_def.retag
        frame = frame_of(context)
        if retag is Retag.PUSH:
            name = operation.attributes["frame_name"]
            entered = self._frames.get((name, frame))
            if entered is None:
                said = operation.attributes
                options = {option: said[option] for option in FRAME_OPTIONS if option in said}
                entered = Frame(name, context, **options, is_function=not operation.inputs)
                self._frames[name, frame] = entered
            elif is_within(context, entered.outer):
                entered.outer = context
            operation.context = entered
            return
        if retag is not Retag.NONE and frame is None:
            raise InvalidArgumentError(
                "its input is in no loop",
                hint="fb.control_flow.enter takes a value into one",
            )
        if retag is Retag.POP:
            assert frame is not None
            operation.context = frame.outer
        elif retag is Retag.INCREMENT:
            _check_closes(operation, frame)
            operation.context = frame
        else:
            operation.context = context

    def complete(self, frame: Frame) -> Mapping[Operation, Operation]:
        """Note that nothing else may join a loop.

        Returns:
            What stands for its operations, where an earlier execution of the same cell has built
            the same loop; nothing where they stand for themselves.
        """
        with self.lock:
            self._complete.add(frame)
            pairs = self._rebuilt.end(frame)
            before = the_same(pairs)
            if before is None:
                self._replace_loop(pairs)
                return {}
            for operation, previous in before.items():
                self._operations[operation.name] = previous
                self._keep(previous, operation)
                if previous.op_def.retag is Retag.PUSH:
                    entered = frame_of(previous.context)
                    assert entered is not None
                    self._frames[entered.name, frame_of(entered.outer)] = entered
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
                if previous is not None:
                    self._operations[operation.name] = previous
                else:
                    self._operations.pop(operation.name, None)
                    self._names.give_back(operation.name, operation.site.author)
            self._consumers, self._consumers_version = {}, (-1, -1)

    def open_branches(self, pred: Tensor) -> None:
        """Note that the branches of a predicate are being built."""
        with self.lock:
            self._complete.discard(pred.op)

    def close_branches(self, pred: Tensor) -> None:
        """Note that nothing else may join the branches of a predicate."""
        with self.lock:
            self._complete.add(pred.op)

    def _refuse_complete(self, operation: Operation, flow: Flow | None) -> None:
        """Refuse an operation that would join a loop or a branch which is complete.

        Raises:
            InvalidArgumentError: naming what it takes from there.
        """
        for context in chain(runs_in(operation)):
            if self._is_closed(context, flow):
                source = next(
                    (t for t in operation.inputs if is_within(context_of(t), context)),
                    operation.control_inputs[-1] if operation.control_inputs else operation,
                )
                raise _inside(source, context)

    def refuse_inside(self, tensor: Tensor, flow: Flow | None) -> None:
        """Refuse a tensor of a loop or a branch which is complete.

        Args:
            tensor: the tensor.
            flow: what is being built, which may be in there.

        Raises:
            InvalidArgumentError: saying where it is.
        """
        for context in chain(context_of(tensor)):
            if self._is_closed(context, flow):
                raise _inside(tensor, context)

    def _is_closed(self, context: Context, flow: Flow | None) -> bool:
        """Whether nothing that is built now may join a loop or a branch."""
        key = context if isinstance(context, Frame) else context.pred.op
        return key in self._complete and (flow is None or not is_within(flow.place, context))

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
                self._place(operation)
                self._join_retired(operation, plain, int(generation))
                operation.name = name
                return
            self._place(operation)
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
                self._place(operation)
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
        self.note_complete(operation for _, operation in named if operation not in present)

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
                        self._frames.pop((each.attributes["frame_name"], None), None)
                return {}
        return {operation: before[operation] for operation in in_loops}

    def _join_retired(self, operation: Operation, plain: str, generation: int) -> None:
        self._generations[plain] = max(self._generations.get(plain, 0), generation)
        operation.name, operation.retired = f"{plain}@{generation}", True
        if operation.op_def.owns is not None:
            operation.key = key_of(operation, plain, generation)
        self._number(operation)
        self.retirements += 1

    def note_complete(self, operations: Iterable[Operation]) -> None:
        """Note that nothing else may join what operations leave or merge, loops and branches."""
        for operation in operations:
            if operation.op_def.retag is Retag.POP:
                frame = frame_of(runs_in(operation))
                assert frame is not None
                self._complete.add(frame)
            elif operation.op_def.fires_on_any and len(operation.inputs) > 1:
                inside = [context for t in operation.inputs for context in chain(context_of(t))]
                around = list(chain(operation.context))
                merged = [c for c in inside if isinstance(c, Branch) and c not in around]
                self._complete.update(branch.pred.op for branch in merged)

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


def _check_closes(operation: Operation, frame: Frame | None) -> None:
    """Refuse what takes a value to the next iteration, but to no Merge that could give it on.

    Raises:
        InvalidArgumentError: if it closes none of its loop, or one that is closed already.
        InvalidTypeError: if the dtypes differ.
    """
    merge = operation.closes
    if merge is None or not merge.op_def.fires_on_any or merge.context is not frame:
        raise InvalidArgumentError(
            "it closes no Merge of its loop",
            hint="fb.control_flow.next_iteration(data, merge)",
        )
    given, taken = operation.outputs[0], merge.outputs[0]
    if given.dtype is not taken.dtype:
        raise InvalidTypeError(
            f"it gives {given.dtype.name}, but {merge.name!r}, which it closes, {taken.dtype.name}"
        )
    if not given.shape.is_compatible_with(taken.shape):
        raise InvalidArgumentError(
            f"it gives the shape {given.shape}, but {merge.name!r}, which it closes, {taken.shape}"
        )
    other, author = merge.closed_by, operation.site.author
    if other is None or other.retired or operation.retired:
        return
    if author is None or not author.may_take(other.site.author):
        raise InvalidArgumentError(f"{merge.name!r} is closed by {other.name!r} already")


def _inside(source: Tensor | Operation, context: Context) -> InvalidArgumentError:
    """That something inside of a loop or a branch is used from outside."""
    if isinstance(context, Frame):
        where = f"inside of {context.described}, where it has a value for each {context.repeats}"
        instead = "one of the loop's variables: use what the loop returns"
        if context.is_function:
            instead = "one of the function's results: use what its calls give"
    else:
        where = f"inside of a branch of {context.pred.name!r}, which may not be taken"
        instead = "what the branch's function gives: use what cond returns"
    return InvalidArgumentError(
        f"{source.name!r} is {where}, and cannot be used outside of it",
        hint=f"make it {instead}",
    )
