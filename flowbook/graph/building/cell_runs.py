"""What the executions of notebook cells mean for a graph that they build in."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from flowbook.graph.model.operation import Operation
from flowbook.graph.model.touch import VARIABLE, resource_kind
from flowbook.graph.redefinition.unnamed import UnnamedVariables

if TYPE_CHECKING:
    from flowbook.graph.building.members import Members
    from flowbook.graph.model.origin.author import Author, Cell


class CellRuns:
    """The cells that build in a graph.

    Args:
        members: the graph's operations.
    """

    def __init__(self, members: Members) -> None:
        self._members = members
        self._given_up: weakref.WeakKeyDictionary[Cell, weakref.WeakSet[Operation]] = (
            weakref.WeakKeyDictionary()
        )
        self._unnamed: weakref.WeakKeyDictionary[Cell, UnnamedVariables] = (
            weakref.WeakKeyDictionary()
        )

    def note_unnamed(self, variable: Operation, author: Author) -> None:
        """Note a variable without a name, given its handle's operation."""
        unnamed = self._unnamed.setdefault(author.cell, UnnamedVariables())
        self._restart(unnamed.note(variable, author), author)

    def begin(self, author: Author) -> None:
        """Do what the beginning of a notebook cell's execution means for this graph.

        What earlier executions of the cell said of shapes does not hold until it is said again.
        """
        members = self._members
        with members.lock:
            if members.known_shapes:
                for operation in members.operations.values():
                    if author.may_take(operation.site.author):
                        members.let_go(operation)

    def end(self, author: Author, completed: bool) -> None:
        """Do what the end of a notebook cell's execution means for this graph.

        Args:
            author: the execution.
            completed: whether it ended without an error. If so, what earlier executions of its
                cell built and this one did not is retired, and the names of scopes are freed.
        """
        members = self._members
        with members.lock:
            if completed and author.cell.executions > 1 and not members.finalized:
                operations = members.operations.values()
                for operation in [o for o in operations if author.may_take(o.site.author)]:
                    if operation.op_def.owns == VARIABLE.name:
                        author.dropped.append(operation)
                    members.retire(operation, author.cell)
                members.names.release(author, members.operations)
            self._renew_together(author)
            for operation in author.kept:
                if operation.op_def.owns is None:
                    continue
                kind = resource_kind(operation.op_def.owns)
                if kind.is_closable:
                    members.values.renew(operation)
                    members.version += 1
                if kind.comes_of_python:
                    members.forget(operation)
            unnamed = self._unnamed.get(author.cell)
            if unnamed is not None:
                self._restart(unnamed.end(author, completed), author)
            members.names.forget_search(author)
            members.repetition.forget()
            if members.latest_author is author:
                members.latest_author = None

    def give_up(self, cell: Cell) -> list[Operation]:
        """Retire what a notebook cell built, which was deleted; return it.

        What still refers to it keeps it, with the values of its variables.
        """
        members = self._members
        with members.lock:
            if members.finalized:
                return []
            operations = members.operations.values()
            found = [o for o in operations if o.site.author and o.site.author.cell is cell]
            # It may be reported as deleted once more before it is back.
            self._given_up.setdefault(cell, weakref.WeakSet()).update(found)
            for operation in found:
                members.retire(operation, cell)
            members.names.release_all(cell)
            self._unnamed.pop(cell, None)
            return found

    def take_back(self, cell: Cell) -> None:
        """Undo `give_up`, as far as anything still refers to the operations: the cell is back."""
        members = self._members
        with members.lock:
            for operation in sorted(self._given_up.pop(cell, ()), key=lambda op: op.id):
                members.bring_back(operation)
            members.sort()

    def _renew_together(self, author: Author) -> None:
        """Give up values that were kept while others that they belong with start afresh."""
        members = self._members
        groups = [
            [op for op in together if op.graph.members is members and op.site.author is author]
            for together in author.together
        ]
        kept = set(author.kept)
        # What is given up may belong with others in turn.
        while torn := [
            op for ops in groups if not kept.issuperset(ops) for op in ops if op in kept
        ]:
            kept.difference_update(torn)
            for operation in dict.fromkeys(torn):
                if members.values.has_value(operation):
                    author.renewed.append(operation)
                if operation.op_def.owns is not None:
                    members.forget(operation)

    def _restart(self, operations: list[Operation], author: Author) -> None:
        members = self._members
        for operation in operations:
            if members.values.has_value(operation):
                author.restarted.append(operation)
            members.forget(operation)
