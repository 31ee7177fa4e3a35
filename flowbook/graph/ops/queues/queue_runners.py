"""Runners: what a graph says of who fills its queues.

A runner is an operation, which waits for what it has others run; so it is stored with the graph, is
redefined with its cell, and fetching it fills the queue by one round. Its threads are a session's:
`flowbook/exec/queue_threads.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from flowbook.graph.building.names import name_from
from flowbook.graph.building.scopes import control_dependencies, init_scope
from flowbook.graph.definition.op_def import HOST, NO_GRADIENT, REQUIRED, OpDef
from flowbook.graph.model.ancestors import ancestors
from flowbook.graph.model.elsewhere import elsewhere
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.mark import Mark
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.queue_runners import rounds_of
from flowbook.graph.model.resource_key import touched_by
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import READER, STREAM, resource_kind
from flowbook.graph.ops.queues.queue import Queue
from flowbook.graph.ops.state.writing import count_up_to_op

__all__ = ["QueueRunner"]


def _of_one_queue(queue: Tensor, threads: tuple[int, ...]) -> list[Shape]:
    """What a runner gives, which is nothing; see that its queue is known before a run."""
    owns = queue.op.op_def.owns
    if owns is None or not resource_kind(owns).is_queue:
        raise InvalidArgumentError(
            "a runner fills a queue that is known before the run: "
            f"{queue.op.name!r} ({queue.op.type}) makes none",
            hint="make a runner for each of the queues that it may be",
        )
    return []


queue_runner_op: OpDef[Operation] = OpDef(
    "QueueRunner",
    "queue: resource ->",
    attributes={"threads": REQUIRED},
    infer=_of_one_queue,
    kernel=lambda xp, queue: (),
    kinds=HOST,
    grad=NO_GRADIENT,
    only_moves=True,
    marks=Mark.RUNNER,
)


# What TensorFlow 1 calls otherwise.
_ELSEWHERE = {
    "cancel_op": "nothing: a queue is closed where its runner fails",
    "close_op": "nothing: a queue is closed when its runner has ended",
    "create_threads": "fb.train.start_queue_runners(sess, coord)",
    "exceptions_raised": "nothing: what waits at the queue fails with the error",
    "from_proto": "fb.Graph.load(path), which has the runners",
    "to_proto": "graph.save(path), which has the runners",
}


@queue_runner_op.front
@elsewhere(_ELSEWHERE)
class QueueRunner:
    """Has threads of each session fill a queue, from when something first waits at it.

    Each thread runs one operation again and again, until that has come to the end of its input
    (OutOfRangeError); when all have, the queue is closed. If one fails, the queue is closed too,
    and what waits at it fails with that error. The threads end with the session, and when the
    cell that made the runner runs again.

    Args:
        queue: the queue.
        enqueue_ops: what fills it: an operation for each thread, which may be the same.
        name: the operation's name.

    Attributes:
        op: the operation that stands for it in the graph, and is stored with it.

    Raises:
        InvalidTypeError: if something is no queue, or no operation.
        InvalidArgumentError: if there is nothing to run, or it is of another graph, or if each run
            chooses the queue, as of `Queue.from_list`.

    >>> import flowbook as fb
    >>> queue = fb.FIFOQueue(2, fb.int32, shapes=[[]])
    >>> count = fb.Variable(0)
    >>> runner = fb.train.QueueRunner(queue, [queue.enqueue(fb.count_up_to(count, 4))])
    >>> with fb.Session() as sess:
    ...     print(sess.run(queue.dequeue_many(4)))
    [0 1 2 3]
    """

    def __init__(
        self, queue: Queue, enqueue_ops: Sequence[Operation], name: str | None = None
    ) -> None:
        if not isinstance(queue, Queue):
            raise InvalidTypeError(f"a runner fills a queue, not {queue!r}")
        listed = list(enqueue_ops) if isinstance(enqueue_ops, list | tuple) else [enqueue_ops]
        for operation in listed:
            if not isinstance(operation, Operation):
                raise InvalidTypeError(f"a runner runs operations, not {operation!r}")
        if not listed:
            raise InvalidArgumentError("a runner runs at least one operation")
        each = list(dict.fromkeys(listed))
        plain = name_from(queue.op.name.rpartition("/")[2])
        with queue.graph.as_default(), init_scope(), control_dependencies(each):
            self.op: Operation = queue_runner_op(
                queue.handle,
                threads=tuple([listed.count(operation) for operation in each]),
                name=name if name is not None else f"{plain}_runner",
            )
        author = self.op.site.author
        if author is not None:
            author.together.append([self.op, *_held(self.op)])

    @property
    def name(self) -> str:
        """The name of its operation."""
        return self.op.name

    @property
    def queue(self) -> Queue:
        """The queue that it fills."""
        handle: Tensor = self.op.inputs[0]
        return Queue.of(handle.op)

    @property
    def enqueue_ops(self) -> list[Operation]:
        """What its threads run."""
        return rounds_of(self.op)

    def __repr__(self) -> str:
        return f"<QueueRunner {self.name!r} of {self.queue.name!r}>"


def _held(runner: Operation) -> list[Operation]:
    """What holds its input on the way through: queues, readers, iterables, counts of epochs."""
    needed = ancestors(runner, by_control=True)
    counts = {touched_by(op) for op in needed if op.op_def is count_up_to_op}
    found = [op for op in needed if op in counts or _holds_input(op)]
    # What a named container holds, others use.
    return [op for op in found if op.key is not None and not op.key.is_shared]


def _holds_input(operation: Operation) -> bool:
    owns = operation.op_def.owns
    return owns is not None and (resource_kind(owns).is_queue or owns in (READER.name, STREAM.name))
