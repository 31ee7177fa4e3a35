"""The operations on queues (white paper, section 4.6): `queues.py` has what users hold.

A queue is a resource. What puts elements in or takes them out waits there until it can, and holds
no thread meanwhile.
"""

from __future__ import annotations

from typing import Any

from flowbook.graph.definition.inference import constant_value, scalar
from flowbook.graph.definition.op_def import HOST, NO_GRADIENT, REQUIRED, OpDef
from flowbook.graph.model.counted import counted
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import (
    BUCKET_QUEUE,
    FIFO_QUEUE,
    PADDING_FIFO_QUEUE,
    PRIORITY_QUEUE,
    PUTS,
    RANDOM_SHUFFLE_QUEUE,
    SAVED_QUEUE,
    SOURCE_QUEUE,
    STACK,
    TAKES,
)
from flowbook.graph.ops.queues.waiting_ops import looking_op, owning_op, waiting_op

# What a queue's elements are made of.
_TYPED = {"dtypes": REQUIRED, "shapes": REQUIRED}


_QUEUE: dict[str, Any] = {**_TYPED, "capacity": -1, "names": ()}

fifo_queue_op = owning_op("FIFOQueue", FIFO_QUEUE, **_QUEUE)
# What producers fill with names or numbers: a training goes on with those that it had not taken.
saved_queue_op = owning_op("SavedQueue", SAVED_QUEUE, **_QUEUE)
padding_fifo_queue_op = owning_op("PaddingFIFOQueue", PADDING_FIFO_QUEUE, **_QUEUE)
priority_queue_op = owning_op("PriorityQueue", PRIORITY_QUEUE, **_QUEUE)
# Another source makes it another queue: nothing of the one before comes out of it.
source_queue_op = owning_op("SourceQueue", SOURCE_QUEUE, **_QUEUE, source=REQUIRED)
random_shuffle_queue_op = owning_op(
    "RandomShuffleQueue",
    RANDOM_SHUFFLE_QUEUE,
    **_QUEUE,
    min_after_dequeue=0,
    seed=None,
    graph_seed=None,
)
# The first component of an element is the number of its bucket; `sizes` are those of their batches.
bucket_queue_op = owning_op("BucketQueue", BUCKET_QUEUE, **_QUEUE, sizes=REQUIRED)
# The type of `fb.stack` is "Stack".
stack_queue_op = owning_op("StackQueue", STACK, **_QUEUE)


def _one_element(queue: Tensor, components: list[Tensor]) -> list[Shape]:
    _check(queue, components, is_batch=False)
    return []


def _rows(queue: Tensor, components: list[Tensor]) -> list[Shape]:
    _check(queue, components, is_batch=True)
    return []


def _check(queue: Tensor, components: list[Tensor], is_batch: bool) -> None:
    """Refuse what no element of the queue can be made of, where its handle tells."""
    attributes = queue.op.attributes
    dtypes, shapes = attributes.get("dtypes"), attributes.get("shapes")
    if dtypes is None or shapes is None:
        return
    if len(components) != len(dtypes):
        raise InvalidArgumentError(
            f"{counted(len(components), 'component')} cannot make an element of {queue.op.name!r}, "
            f"which has {len(dtypes)}"
        )
    for place, (tensor, dtype, shape) in enumerate(zip(components, dtypes, shapes, strict=True)):
        wanted = Shape([None]).concatenate(shape) if is_batch else shape
        if tensor.dtype is not dtype or not tensor.shape.is_compatible_with(wanted):
            raise InvalidArgumentError(
                f"component {place} is {tensor.dtype.name} {tensor.shape}, and "
                f"{queue.op.name!r} takes {dtype.name} {wanted}"
            )
    if is_batch:
        lengths = sorted({tensor.shape[0] for tensor in components if tensor.shape.rank} - {None})
        if len(lengths) > 1:
            raise InvalidArgumentError(
                f"the components have {' and '.join(map(str, lengths))} rows, and each element "
                "takes one of each"
            )


enqueue_op: OpDef[Operation] = waiting_op(
    "QueueEnqueue",
    "queue: resource, components: *components ->",
    infer=_one_element,
    kernel=lambda context, queue, *components: queue.enqueue(context, components),
    touches=PUTS,
)

enqueue_many_op: OpDef[Operation] = waiting_op(
    "QueueEnqueueMany",
    "queue: resource, components: *components ->",
    infer=_rows,
    kernel=lambda context, queue, *components: queue.enqueue_many(context, components),
    touches=PUTS,
)


def _element_shapes(queue: Tensor, *, shapes: tuple[Shape, ...], **_: Any) -> list[Shape]:
    return list(shapes)


def _batch_shapes(queue: Tensor, n: Tensor, *, shapes: tuple[Shape, ...], **_: Any) -> list[Shape]:
    length = _checked_length(n)
    return [Shape([length]).concatenate(shape) for shape in shapes]


def _shapes_up_to(queue: Tensor, n: Tensor, *, shapes: tuple[Shape, ...], **_: Any) -> list[Shape]:
    _checked_length(n)
    return [Shape([None]).concatenate(shape) for shape in shapes]


def _checked_length(n: Tensor) -> int | None:
    if n.shape.rank not in (None, 0):
        raise InvalidArgumentError(f"the number of elements is a scalar, not of shape {n.shape}")
    known = constant_value(n)
    if known is not None and known < 0:
        raise InvalidArgumentError(f"a batch has no fewer than 0 elements, and not {known}")
    return None if known is None else int(known)


dequeue_op: OpDef[list[Tensor]] = waiting_op(
    "QueueDequeue",
    "queue: resource -> components: *dtypes",
    attributes=_TYPED,
    infer=_element_shapes,
    kernel=lambda context, queue: queue.dequeue(context),
    touches=TAKES,
)

dequeue_many_op: OpDef[list[Tensor]] = waiting_op(
    "QueueDequeueMany",
    "queue: resource, n: int32 -> components: *dtypes",
    attributes=_TYPED,
    infer=_batch_shapes,
    kernel=lambda context, queue, n: queue.dequeue_many(context, n, is_less_enough=False),
    host_args=("n",),
    touches=TAKES,
)

dequeue_up_to_op: OpDef[list[Tensor]] = waiting_op(
    "QueueDequeueUpTo",
    "queue: resource, n: int32 -> components: *dtypes",
    attributes=_TYPED,
    infer=_shapes_up_to,
    kernel=lambda context, queue, n: queue.dequeue_many(context, n, is_less_enough=True),
    host_args=("n",),
    touches=TAKES,
)


def _bucket_shapes(
    queue: Tensor, *, shapes: tuple[Shape, ...], length: int | None, **_: Any
) -> list[Shape]:
    return [Shape([length]).concatenate(shape) for shape in shapes]


dequeue_bucket_op: OpDef[list[Tensor]] = waiting_op(
    "QueueDequeueBucket",
    "queue: resource -> components: *dtypes",
    attributes={**_TYPED, "length": None, "is_less_enough": False},
    infer=_bucket_shapes,
    kernel=lambda context, queue, length, is_less_enough: queue.dequeue_bucket(
        context, is_less_enough
    ),
    touches=TAKES,
)

close_op: OpDef[Operation] = waiting_op(
    "QueueClose",
    "queue: resource ->",
    attributes={"cancel_pending_enqueues": False},
    kernel=lambda context, queue, cancel_pending_enqueues: queue.close(
        context, cancel_pending_enqueues
    ),
)

size_op: OpDef = looking_op(
    "QueueSize",
    "queue: resource -> size: int32",
    kernel=lambda xp, queue: queue.size(),
)

is_closed_op: OpDef = looking_op(
    "QueueIsClosed",
    "queue: resource -> is_closed: bool",
    kernel=lambda xp, queue: xp.bool_(queue.is_closed),
)

select_op = OpDef(
    "QueueSelect",
    "index: int32, queues: N*resource -> handle: resource",
    attributes={**_TYPED, "names": ()},
    infer=scalar,
    kernel=lambda xp, index, *queues: queues[_within(index, len(queues))],
    kinds=HOST,
    host_args=("index",),
    grad=NO_GRADIENT,
    aliases=None,
    only_moves=True,
)


def _within(index: Any, count: int) -> int:
    if not 0 <= index < count:
        raise InvalidArgumentError(f"there is no queue {index}: there are {count}, from 0 on")
    return int(index)
