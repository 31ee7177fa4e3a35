"""What an operation depends on."""

from __future__ import annotations

from flowbook.graph.model.operation import Operation


def ancestors(operation: Operation, *, by_control: bool) -> set[Operation]:
    """An operation and all that it depends on: by data, and where asked for by control edges.

    What a loop's variable is in one iteration depends on what closes the loop.
    """
    found = {operation}
    stack = [operation]
    while stack:
        op = stack.pop()
        waited = op.control_inputs if by_control else ()
        for other in (*(t.op for t in op.inputs), *closing(op), *waited):
            if other not in found:
                found.add(other)
                stack.append(other)
    return found


def closing(operation: Operation) -> tuple[Operation, ...]:
    """Of what merges a loop variable's values, the operation that gives them from the second on."""
    return (operation.closed_by,) if operation.closed_by is not None else ()
