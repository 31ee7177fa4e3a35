"""What an operation depends on, and which operations can run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from flowbook.graph.model.context import Frame, chain, runs_in
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor


def ancestors(operation: Operation, *, by_control: bool) -> set[Operation]:
    """An operation and all that it depends on: by data, and where asked for by control edges.

    What a loop's variable is in one iteration depends on what closes the loop.
    """
    found = {operation}
    stack = [operation]
    while stack:
        op = stack.pop()
        waited = op.control_inputs if by_control else ()
        for other in (*(t.op for t in taken_by(op)), *closing(op), *waited):
            if other not in found:
                found.add(other)
                stack.append(other)
    return found


def taken_by(operation: Operation) -> Sequence[Tensor]:
    """What an operation takes; of the call of a function, what stands for its results."""
    stands_for = operation.op_def.stands_for
    return operation.inputs if stands_for is None else stands_for(operation).results


def closing(operation: Operation) -> tuple[Operation, ...]:
    """Of what merges a loop variable's values, the operation that gives them from the second on."""
    return (operation.closed_by,) if operation.closed_by is not None else ()


def running(operations: Iterable[Operation]) -> Iterator[Operation]:
    """Those of a graph's operations that can run: none of bodies, and of calls what they are."""
    for operation in operations:
        stands_for = operation.op_def.stands_for
        if stands_for is not None:
            yield from running(stands_for(operation).operations)
        elif not _is_in_body(operation):
            yield operation


def _is_in_body(operation: Operation) -> bool:
    around = (*chain(operation.context), *chain(runs_in(operation)))
    return any(isinstance(context, Frame) and context.is_function for context in around)
