"""Branches and loops while their inside is being built: what they take from outside, and how.

Whatever an operation inside takes from outside is taken in on the way: into a branch by a Switch,
into a loop by an Enter whose value is there in every iteration. An operation that takes nothing of
the inside waits for the pivot, which is alive exactly where it may run.

What acts (writes, draws, and what happens outside the graph) belongs to the branch or the loop: it
runs wherever that runs, whether or not a result depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from flowbook.graph.building.flow import Flow, Taken
from flowbook.graph.building.graph import Graph
from flowbook.graph.building.scopes import control_dependencies, within
from flowbook.graph.building.surroundings import Scope
from flowbook.graph.control_flow.routing import merge_op, switch_op, taken_into
from flowbook.graph.model.context import (
    Branch,
    Context,
    Frame,
    chain,
    context_of,
    frame_of,
    is_everywhere,
    is_within,
    joined,
)
from flowbook.graph.model.dtypes import MOVABLE
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import Access
from flowbook.graph.ops.basis.constants import constant, identity

# Whatever does one of these is run, whether or not a result depends on it.
ACTING = (Access.WRITE, Access.DRAW, Access.WAIT, Access.OUTSIDE)


class Inside:
    """The inside of a branch or a loop.

    Args:
        graph: where it is built.
        context: where that is.
        pivot: what is alive exactly where the inside runs.

    Attributes:
        acting: the operations in it, and in what lies in it, that act.
        stateful: those that touch a resource, or the world outside, in whatever way.
    """

    def __init__(self, graph: Graph, context: Context, pivot: Operation) -> None:
        self._graph = graph
        self._context = context
        self._place = context
        self._pivot = pivot
        self._around = graph.scope
        self._taken: dict[Tensor, Tensor] = {}
        self.acting: list[Operation] = []
        self.stateful: list[Operation] = []

    @property
    def place(self) -> Context:
        """Where what is built inside runs."""
        return self._place

    @property
    def outer(self) -> Flow | None:
        """The branch or loop around it, if that is being built too."""
        return self._around.flow

    @contextmanager
    def outside(self) -> Iterator[None]:
        """Build around it."""
        with within(self._graph, self._seen_from_outside):
            yield

    def _seen_from_outside(self, scope: Scope) -> Scope:
        return self._around._replace(prefix=scope.prefix, site=scope.site, extends=scope.extends)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Build inside, on this thread."""
        with within(self._graph, lambda scope: scope._replace(flow=self, control_inputs=())):
            yield

    def captured(self, tensor: Tensor) -> Tensor:
        """What stands inside for a tensor, which may be one from outside."""
        if is_everywhere(tensor.op):
            return tensor
        found = self._taken.get(tensor)
        if found is None:
            where = context_of(tensor)
            if is_within(where, self._context):
                return tensor
            outer = self._around.flow
            if outer is not None:
                tensor = outer.captured(tensor)
            found = self._taken[tensor] = self._taken_in(tensor)
        return found

    def _taken_in(self, tensor: Tensor) -> Tensor:
        raise NotImplementedError

    def is_outside(self, tensor: Tensor) -> bool:
        """Whether a tensor is there before what is built begins, and the same throughout."""
        return is_everywhere(tensor.op) or not is_within(context_of(tensor), self._context)

    def take(self, element: Tensor, taken: Taken) -> None:
        """Note of which tensor each iteration takes an element: a branch has none."""

    def taken(self, element: Tensor) -> Taken | None:
        """What a tensor is an element of; see `Flow`."""
        return None

    def enclose(self, operation: Operation) -> None:
        """See to it that an operation runs inside, before it joins the graph."""
        if operation.op_def.is_handle or operation.op_def.must_be_fed:
            operation.control_inputs = ()
            return
        operation.control_inputs = tuple(
            dict.fromkeys([self._waited(other) for other in operation.control_inputs])
        )
        if is_everywhere(operation):
            return
        # What touches a resource waits for what did so in the iteration before.
        is_stateful = operation.op_def.access is not None
        # What a call stands for may take nothing of the inside.
        is_call = operation.op_def.stands_for is not None
        if is_stateful or is_call or not is_within(joined(operation), self._place):
            waited = (*operation.control_inputs, self._pivot)
            operation.control_inputs = tuple(dict.fromkeys(waited))

    def joined(self, operation: Operation) -> None:
        """Note what has joined the graph inside."""
        access = operation.op_def.access
        if access is not None:
            self.note(operation, access in ACTING)

    def note(self, operation: Operation, is_acting: bool) -> None:
        """Note what ends when something inside has touched what it touches."""
        operation = self._come_out(operation)
        self.stateful.append(operation)
        if is_acting:
            self.acting.append(operation)

    def _come_out(self, operation: Operation) -> Operation:
        """What ends in the present place when an operation has, or its branch is not taken.

        Gradients are built in branches that are complete, by what they take alone.
        """
        while operation.context != self._place and is_within(operation.context, self._place):
            branch = operation.context
            assert isinstance(branch, Branch)
            # What is waited for where it was built may be in the branch.
            with self.entered():
                sides: tuple[Tensor, Tensor] = switch_op(branch.pred, branch.pred)
                with control_dependencies([operation]):
                    ended = identity(sides[branch.side])
                merged = [sides[0], ended] if branch.side else [ended, sides[1]]
                operation = merge_op(merged)[0].op
        return operation

    def keep(self, value: Tensor, first: Tensor, name: str, then: Callable[[Tensor], None]) -> None:
        """Take the value of the last iteration out of a loop; see `Flow`."""
        raise InvalidArgumentError(
            f"{name!r} is in a branch: an iteration that does not take it has no value",
            hint="give it from the branches, and take what fb.cond gives",
        )

    def _waited(self, operation: Operation) -> Operation:
        """What is waited for inside, where an operation from outside is."""
        if frame_of(operation.context) is frame_of(self._context):
            return operation
        return self.captured(self._signal(operation)).op

    def _signal(self, operation: Operation) -> Tensor:
        """A tensor that is there when an operation has ended."""
        with within(self._graph, lambda scope: self._around._replace(control_inputs=(operation,))):
            return constant(False, name="waited")


class BranchInside(Inside):
    """The inside of one of the two branches of a predicate."""

    def __init__(self, graph: Graph, branch: Branch, pivot: Operation) -> None:
        super().__init__(graph, branch, pivot)
        self._branch = branch

    def held(self, tensor: Tensor) -> Tensor:
        """A tensor that is alive only where the branch is taken."""
        if is_within(context_of(tensor), self._context):
            return tensor
        return self._taken_in(tensor)

    def _taken_in(self, tensor: Tensor) -> Tensor:
        pred = self._branch.pred
        where = chain(context_of(tensor))
        # What gradients take from there is dead here, as it should be.
        extends = self._graph.scope.extends
        if not extends and any(isinstance(c, Branch) and c.pred is pred for c in where):
            raise InvalidArgumentError(
                f"{tensor.name!r} is inside of the other branch of {pred.name!r}, which is not "
                "taken where this one is",
                hint="build it before the branches, or anew in this one",
            )
        with self.outside():
            sides: tuple[Tensor, Tensor] = switch_op(tensor, self._branch.pred)
        return sides[self._branch.side]


class Kept(NamedTuple):
    """A value that is taken out of a loop beside its variables; see `Flow.keep`."""

    value: Tensor
    first: Tensor
    name: str
    then: Callable[[Tensor], None]


class LoopInside(Inside):
    """The inside of a loop: its condition, and then its body, which another iteration runs.

    Attributes:
        frame: the loop.
        kept: what is taken out of it beside its variables.
    """

    def __init__(self, graph: Graph, frame: Frame, pivot: Operation) -> None:
        super().__init__(graph, frame, pivot)
        self.frame = frame
        self.kept: list[Kept] = []
        self._body: Branch | None = None
        self._elements: dict[Tensor, Taken] = {}
        self._touched = False

    def begin_body(self, branch: Branch, pivot: Operation) -> None:
        """Go on with the body: what runs where the condition has said so."""
        self._place = self._body = branch
        self._pivot = pivot
        self._touched = bool(self.stateful)
        self.stateful = []

    @property
    def has_touched(self) -> bool:
        """Whether anything in the loop touches something."""
        return self._touched or bool(self.stateful)

    def keep(self, value: Tensor, first: Tensor, name: str, then: Callable[[Tensor], None]) -> None:
        """Take the value of the last iteration out of the loop; see `Flow`."""
        if self._body is None:
            raise InvalidArgumentError(
                f"{name!r} is in the loop's condition, which is computed once more than its body",
                hint="take it in the body",
            )
        self.kept.append(Kept(value, first, name, then))

    def take(self, element: Tensor, taken: Taken) -> None:
        """Note of which tensor each iteration takes an element."""
        if self.is_outside(taken.whole):
            self._elements[element] = taken

    def taken(self, element: Tensor) -> Taken | None:
        """What a tensor is an element of; see `Flow`."""
        return None if self.frame.recompute else self._elements.get(element)

    def held(self, tensor: Tensor) -> Tensor:
        """A tensor that is there only where the body runs."""
        if is_within(context_of(tensor), self._place):
            return tensor
        if tensor.dtype in MOVABLE:
            return identity(tensor)
        assert self._body is not None
        sides: tuple[Tensor, Tensor] = switch_op(tensor, self._body.pred)
        return sides[self._body.side]

    def _taken_in(self, tensor: Tensor) -> Tensor:
        with self.outside():
            return taken_into(self.frame, tensor, is_constant=True)
