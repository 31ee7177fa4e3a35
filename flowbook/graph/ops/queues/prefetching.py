"""Elements of Python iterables, which a thread makes ready, or the step that takes them makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flowbook.graph.building.scopes import init_scope, name_scope
from flowbook.graph.definition.inference import uncounted
from flowbook.graph.definition.op_def import HOST, NO_GRADIENT, REQUIRED, OpDef
from flowbook.graph.model.dtypes import DType
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import OUTSIDE, STREAM
from flowbook.graph.ops.queues.queue import Queue
from flowbook.graph.ops.queues.queue_ops import dequeue_op, source_queue_op
from flowbook.graph.ops.queues.queue_runners import QueueRunner

next_element_op: OpDef[list[Tensor]] = OpDef(
    "NextElement",
    "-> components: *dtypes",
    attributes={"source": REQUIRED, "dtypes": REQUIRED, "shapes": REQUIRED},
    infer=lambda shapes, **_: list(shapes),
    kernel=lambda xp, stream: stream.next(),
    kinds=HOST,
    grad=NO_GRADIENT,
    touches=OUTSIDE,
    owns=STREAM.name,
    runs_users_code=True,
    cost=uncounted,
)


def prefetched(
    source: Callable[[], Any],
    dtypes: Sequence[DType],
    shapes: Sequence[Shape],
    prefetch: int,
    name: str,
) -> list[Tensor]:
    """The components of the next element, which every run takes that needs one of them.

    Args:
        source: makes for each session an iterable of elements, each a tuple of arrays; if nothing
            is made ready, one that gives them by their numbers, from 0 on: `source()[number]`.
        dtypes: the dtype of each component.
        shapes: what is known of the shape of each.
        prefetch: how many elements a thread makes ready at most; 0: who takes one makes it.
        name: the name of the scope of the operations.
    """
    typed = {"dtypes": tuple(dtypes), "shapes": tuple(shapes)}
    with name_scope(name):
        with init_scope():
            handle = source_queue_op(source=source, capacity=prefetch, **typed, name="queue")
            if prefetch:
                queue = Queue.of(handle.op)
                element = next_element_op(source=source, **typed, name="next")
                QueueRunner(queue, [queue.enqueue(element)])
        return dequeue_op(handle, **typed, name="element")
