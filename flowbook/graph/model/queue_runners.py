"""What fills queues: the `QueueRunner`s of a graph, computed from the live operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flowbook.graph.model.mark import Mark

if TYPE_CHECKING:
    from flowbook.graph.model.operation import Operation


def runners_of(queue: Operation) -> list[Operation]:
    """The live runners of the queue whose handle an operation produces."""
    consumers = queue.outputs[0].consumers()
    return [op for op in consumers if op.op_def.marks is Mark.RUNNER and not op.retired]


def rounds_of(runner: Operation) -> list[Operation]:
    """What a runner's threads run again and again: one operation for each thread."""
    times = runner.attributes["threads"]
    return [
        operation
        for operation, count in zip(runner.control_inputs, times, strict=True)
        for _ in range(count)
    ]
