"""Loops that are being built: their operations join their graph together, or leave it together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from flowbook.graph.model.context import Frame, frame_of
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.resource_key import key_of
from flowbook.graph.model.retag import Retag
from flowbook.graph.redefinition.rebuilt_loops import Pairs, RebuiltLoops, the_same

if TYPE_CHECKING:
    from flowbook.graph.building.members import Members


class Loops:
    """The loops of a graph that are not complete yet.

    Args:
        members: the graph's operations.
    """

    def __init__(self, members: Members) -> None:
        self._members = members
        self._rebuilt = RebuiltLoops()

    def takes(self, operation: Operation, previous: Operation | None) -> bool:
        """Whether what becomes of an operation is seen when its loop is complete.

        Args:
            operation: one that joins.
            previous: the one of its name from an earlier execution of the same cell.
        """
        return self._rebuilt.takes(operation, previous)

    def open(self, frame: Frame) -> None:
        """Note a new frame, which is entered by its name."""
        members = self._members
        with members.lock:
            members.places.open(frame)
            self._rebuilt.begin(frame)

    def complete(self, frame: Frame) -> Mapping[Operation, Operation]:
        """Note that nothing else may join a loop.

        Returns:
            What stands for its operations, where an earlier execution of the same cell has built
            the same loop; nothing where they stand for themselves.
        """
        members = self._members
        with members.lock:
            members.places.close(frame)
            pairs = self._rebuilt.end(frame)
            before = the_same(pairs)
            if before is None:
                self._replace_loop(pairs)
                return {}
            for operation, previous in before.items():
                members.operations[operation.name] = previous
                members.let_go(operation)
                members.keep(previous, operation)
                if previous.op_def.retag is Retag.PUSH:
                    entered = frame_of(previous.context)
                    assert entered is not None
                    members.places.open(entered)
            members.forget_consumers()
            return before

    def _replace_loop(self, pairs: Pairs) -> None:
        """Let a loop take the place of one that was built before."""
        members = self._members
        replaced = [(new, old) for new, old in pairs if old is not None and not old.retired]
        for operation, previous in replaced:
            name, author = operation.name, operation.site.author
            assert author is not None
            members.operations[name] = previous
            members.retire(previous, author.cell)
            members.names.owners[name] = author
            members.operations[name] = operation
            if operation.op_def.owns is not None:
                operation.key = key_of(operation, name, members.generations[name] + 1)
                if previous.op_def is operation.op_def:
                    author.replaced.append((operation, previous))
        if replaced:
            members.sort()

    def abandon(self, frame: Frame) -> None:
        """Let a loop go whose building has failed; what it took the names of has them again."""
        members = self._members
        with members.lock:
            for operation, previous in self._rebuilt.end(frame):
                members.let_go(operation)
                if previous is not None:
                    members.operations[operation.name] = previous
                else:
                    members.operations.pop(operation.name, None)
                    members.names.give_back(operation.name, operation.site.author)
            members.forget_consumers()
