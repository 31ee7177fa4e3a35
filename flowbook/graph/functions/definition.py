"""What a function's body consists of, read from the graph's structure."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from flowbook.graph.model.context import Frame, frame_of, is_within, runs_in
from flowbook.graph.model.dtypes import resource, variant
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.origin import site as sites
from flowbook.graph.model.retag import Retag
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import VARIABLE, Access


class Definition:
    """A function's body.

    Args:
        function: the Function operation, which takes what the body gives.

    Attributes:
        function: the same.
        frame: where the body lies.
        operations: all of it, in the order of construction.
        size: how many ids a copy needs, with those of the calls in it.
        derived: the functions that give its gradients, by the results that these are of.
    """

    def __init__(self, function: Operation) -> None:
        frame = frame_of(runs_in(function))
        assert frame is not None
        self.function = function
        self.frame: Frame = frame
        self.operations = sorted(self._found(), key=lambda op: op.id)
        self.derived: dict[tuple[int, ...], Any] = {}
        self.size = sum(1 + reserved_by(op) for op in self.operations)

    def _found(self) -> set[Operation]:
        found: set[Operation] = set()
        stack = [self.function]
        while stack:
            op = stack.pop()
            taken = [t.op for t in op.inputs] + [*op.control_inputs]
            if op.closed_by is not None:
                taken.append(op.closed_by)
            for other in taken:
                if other not in found and is_within(other.context, self.frame):
                    found.add(other)
                    stack.append(other)
        return found

    @property
    def name(self) -> str:
        """The name of its Function."""
        return self.function.name

    @property
    def prefix(self) -> str:
        """The name scope that its operations are in."""
        return self.frame.name + "/"

    @cached_property
    def parameters(self) -> list[Tensor]:
        """What calls give: their arguments, and then what stands for tensors of the outside."""
        found = [op for op in self.operations if is_parameter(op) and op.attributes["label"]]
        return [op.outputs[0] for op in found if not op.settled_by] + [
            op.outputs[0] for op in found if op.settled_by
        ]

    @property
    def labels(self) -> list[str]:
        """The names of its arguments, such as "x" or "options['rate']"."""
        own = [p.op for p in self.parameters if not p.op.settled_by]
        return [op.attributes["label"] for op in own]

    @cached_property
    def captured(self) -> list[Tensor]:
        """The tensors of the outside that it uses, in the order of their parameters."""
        return [p.op.settled_by[0] for p in self.parameters if p.op.settled_by]

    @cached_property
    def variables(self) -> list[Tensor]:
        """The handles of the variables that it reads or writes."""
        taken = [t for op in self.operations for t in op.inputs]
        own = [t for t in taken if t.dtype is resource and t.op.op_def.owns == VARIABLE.name]
        return list(dict.fromkeys(own))

    @property
    def results(self) -> list[Tensor]:
        """What the function gives."""
        return list(self.function.inputs[: self.function.attributes["results"]])

    @property
    def happened(self) -> list[Tensor]:
        """What its operations gave that act: its gradient may not have them act once more."""
        return list(self.function.inputs[self.function.attributes["results"] :])

    @cached_property
    def is_stateful(self) -> bool:
        """Whether anything in it touches a resource, or the world outside."""
        return any(op.op_def.access is not None for op in self.operations)

    @cached_property
    def acts(self) -> bool:
        """Whether anything in it acts, so that its calls run whether or not a result is used."""
        accesses = {op.op_def.access for op in self.operations}
        return bool(accesses - {None, Access.READ})

    def is_direct(self, operation: Operation) -> bool:
        """Whether an operation runs in the body itself, and in no loop or branch of it."""
        return runs_in(operation) is self.frame


def definition_of(operation: Operation) -> Definition:
    """The body of a Function, or of what a Call calls."""
    if operation.op_def.retag is not Retag.POP:
        operation = next(t.op for t in operation.settled_by if t.dtype is variant)
    if operation.inner is None:
        operation.inner = Definition(operation)
    found: Definition = operation.inner
    return found


def is_current(operation: Operation) -> bool:
    """Whether an operation is in its graph, and stays there when the running cell ends."""
    author = sites.capture().author
    takes_over = author is not None and author.may_take(operation.site.author)
    return not operation.retired and not takes_over


def is_parameter(operation: Operation) -> bool:
    """Whether an operation gives what calls are given: it takes nothing into its frame."""
    return operation.op_def.retag is Retag.PUSH and not operation.inputs


def reserved_by(operation: Operation) -> int:
    """How many ids an operation reserves for what it stands for."""
    return definition_of(operation).size if operation.op_def.stands_for is not None else 0
