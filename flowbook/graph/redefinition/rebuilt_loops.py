"""Loops that a notebook cell builds again.

What an earlier execution built can be told to be the same operation by operation, as long as each
is built of others; but a loop goes round: what its variables are depends on what is built last. So
all of a loop is built anew, beside what it takes the names of, and compared when it is complete. If
it is the same throughout, the old one stays; otherwise the new one takes its place as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from flowbook.graph.model.attributes import same_attributes
from flowbook.graph.model.context import Context, Frame, chain, runs_in

if TYPE_CHECKING:
    from flowbook.graph.model.operation import Operation

# The operations of a loop, each with the one whose name it takes, if there is one.
Pairs = list[tuple["Operation", "Operation | None"]]


class RebuiltLoops:
    """The loops that are being built."""

    def __init__(self) -> None:
        self._pairs: dict[Frame, Pairs] = {}

    def begin(self, frame: Frame) -> None:
        """Note that a loop is being built; one within another one is a part of that."""
        if not any(isinstance(context, Frame) for context in chain(frame.outer)):
            self._pairs[frame] = []

    def takes(self, operation: Operation, previous: Operation | None) -> bool:
        """Whether an operation is part of such a loop, which then knows of it."""
        if not self._pairs:
            return False
        # A constant is everywhere, but may be what it is because of something inside.
        places: tuple[Context | None, ...] = (operation.context, runs_in(operation))
        places += tuple([tensor.op.context for tensor in operation.settled_by])
        for context in (each for place in places for each in chain(place)):
            if isinstance(context, Frame) and context in self._pairs:
                self._pairs[context].append((operation, previous))
                return True
        return False

    def end(self, frame: Frame) -> Pairs:
        """The operations of a loop that is built no longer."""
        return self._pairs.pop(frame, [])


def the_same(pairs: Pairs) -> Mapping[Operation, Operation] | None:
    """The old operations by the new ones, if a loop is what it was; else None."""
    before: dict[Operation, Operation] = {}
    for operation, previous in pairs:
        if previous is None or not is_same(operation, previous, before):
            return None
        before[operation] = previous
    return before


def is_same(new: Operation, old: Operation, before: Mapping[Operation, Operation]) -> bool:
    """Whether an operation means what one does that is there, if others stand for what it takes."""
    return (
        new.op_def is old.op_def
        and [(before.get(t.op, t.op), t.index) for t in new.inputs]
        == [(t.op, t.index) for t in old.inputs]
        and [before.get(o, o) for o in new.control_inputs] == [*old.control_inputs]
        and [before.get(o, o) for o in new.colocation] == [*old.colocation]
        and [before.get(t.op, t.op) for t in new.settled_by] == [t.op for t in old.settled_by]
        and (before.get(new.closes) if new.closes is not None else None) is old.closes
        and new.device == old.device
        and new.container == old.container
        and same_attributes(new.attributes, old.attributes)
    )
