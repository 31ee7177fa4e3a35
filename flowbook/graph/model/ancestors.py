"""What an operation depends on."""

from __future__ import annotations

from flowbook.graph.model.operation import Operation


def ancestors(operation: Operation, *, by_control: bool) -> set[Operation]:
    """An operation and all that it depends on: by data, and where asked for by control edges.

    What a loop's variable is in one iteration depends on what it was in the one before.
    """
    found = {operation}
    stack = [operation]
    while stack:
        op = stack.pop()
        before = () if op.closed_by is None else (op.closed_by,)
        waited = op.control_inputs if by_control else ()
        for other in (*(t.op for t in op.inputs), *before, *waited):
            if other not in found:
                found.add(other)
                stack.append(other)
    return found
