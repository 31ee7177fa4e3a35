"""What an operation depends on."""

from __future__ import annotations

from flowbook.graph.model.operation import Operation


def ancestors(operation: Operation, *, by_control: bool) -> set[Operation]:
    """An operation and all that it depends on: by data, and where asked for by control edges."""
    found = {operation}
    stack = [operation]
    while stack:
        op = stack.pop()
        for other in (*(t.op for t in op.inputs), *(op.control_inputs if by_control else ())):
            if other not in found:
                found.add(other)
                stack.append(other)
    return found
