"""What results of a loop depend on: its variables, what runs in it, what it takes from outside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from flowbook.graph.model.context import (
    Branch,
    Frame,
    chain,
    context_of,
    frame_of,
    is_everywhere,
)
from flowbook.graph.model.dtypes import resource, variant
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.retag import Retag
from flowbook.graph.model.tensor import Tensor


def is_differentiable(tensor: Tensor) -> bool:
    """Whether gradients flow through tensors of this dtype."""
    dtype = tensor.dtype
    return dtype.is_floating or dtype.is_complex or dtype is resource or dtype is variant


def is_entered(operation: Operation, frame: Frame) -> bool:
    """Whether an operation takes its input into a frame."""
    return operation.op_def.retag is Retag.PUSH and operation.context is frame


class Variable(NamedTuple):
    """A variable of a loop.

    Attributes:
        merge: gives its value in each iteration.
        inside: the tensors that are that value in the body.
        following: what it is in the next iteration.
        first: what it is at first, outside.
    """

    merge: Operation
    inside: tuple[Tensor, ...]
    following: Tensor
    first: Tensor


@dataclass
class Loop:
    """What some of a loop's results depend on.

    Attributes:
        frame: the loop.
        exits: the operations by which these results leave it.
        operations: what runs in it, in loops within it too.
        sources: the outside's tensor for each that stands for it in every iteration.
        merges: what merges the values of its variables.
        taken: the tensors of the outside that it depends on.
    """

    frame: Frame
    exits: list[Operation] = field(default_factory=list)
    operations: set[Operation] = field(default_factory=set)
    sources: dict[Tensor, Tensor] = field(default_factory=dict)
    merges: list[Operation] = field(default_factory=list)
    taken: list[Tensor] = field(default_factory=list)

    def add(self, left_by: Operation) -> list[Tensor]:
        """Add a result; return the tensors of the outside that it depends on."""
        self.exits.append(left_by)
        found = []
        stack = [t.op for t in left_by.inputs]
        while stack:
            op = stack.pop()
            if op in self.operations:
                continue
            self.operations.add(op)
            if is_everywhere(op):
                for tensor in op.outputs:
                    self.sources[tensor] = tensor
                    found.append(tensor)
            elif is_entered(op, self.frame):
                found.append(op.inputs[0])
                if op.attributes["is_constant"]:
                    self.sources[op.outputs[0]] = op.inputs[0]
            else:
                stack.extend(t.op for t in op.inputs)
                if op.closed_by is not None:
                    stack.append(op.closed_by)
                    if frame_of(op.context) is self.frame:
                        self.merges.append(op)
        self.taken += found
        return found

    @property
    def body(self) -> Branch:
        """What runs if there is another iteration: on the other side than what leaves the loop."""
        ended = {
            branch
            for left_by in self.exits
            for branch in chain(context_of(left_by.inputs[0]))
            if isinstance(branch, Branch) and branch.outer is self.frame
        }
        if len(ended) == 1:
            [branch] = ended
            return replace(branch, side=1 - branch.side)
        raise InvalidArgumentError(
            f"the loop {self.frame.name!r} has no one condition that says when it ends: it has no "
            "gradient",
            self.exits[0],
        )

    def variables(self) -> dict[Operation, Variable]:
        """Its variables, by what merges their values."""
        body = self.body
        inside: dict[Operation, list[Tensor]] = {merge: [merge.outputs[0]] for merge in self.merges}
        for op in self.operations:
            if op.op_def.gives_dead and op.inputs[0].op in inside:
                inside[op.inputs[0].op] += [t for t in op.outputs if context_of(t) == body]
        found = {}
        for merge in sorted(self.merges, key=lambda op: op.id):
            assert merge.closed_by is not None
            following, entered = merge.closed_by.inputs[0], merge.inputs[0].op
            found[merge] = Variable(merge, tuple(inside[merge]), following, entered.inputs[0])
        return found

    def dependence(self, variables: Mapping[Operation, Variable]) -> dict[Operation, set[Any]]:
        """For each variable those, and those sources, that it follows from in one iteration."""
        told: dict[Tensor, set[Any]] = {stands: {stands} for stands in self.sources}
        for merge, variable in variables.items():
            for tensor in variable.inside:
                told[tensor] = {merge}
        given = set(told)
        ordered = sorted(self.operations, key=lambda op: op.id)
        is_changed = True
        while is_changed:  # Loops within it go round.
            is_changed = False
            for op in ordered:
                taken = [*op.inputs, *(op.closed_by.outputs if op.closed_by is not None else ())]
                known = [told[t] for t in taken if t in told and is_differentiable(t)]
                found: set[Any] = set().union(*known)
                for tensor in op.outputs:
                    if tensor in given or not is_differentiable(tensor):
                        continue
                    if found - told.setdefault(tensor, set()):
                        told[tensor] |= found
                        is_changed = True
        return {m: set(told.get(v.following, ())) for m, v in variables.items()}
