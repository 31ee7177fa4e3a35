"""Queues: elements that some operations put in and others take out, in steps of their own.

They let parts of a graph run asynchronously from one another: input is read and prepared while
the model trains on what has been prepared before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowbook.graph.model.dtypes import DType, int64
from flowbook.graph.model.elsewhere import elsewhere
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.shape import SCALAR, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.queues.queue import Queue, elements_of, made_by, shapes_of
from flowbook.graph.ops.queues.queue_ops import (
    bucket_queue_op,
    dequeue_bucket_op,
    fifo_queue_op,
    padding_fifo_queue_op,
    priority_queue_op,
    random_shuffle_queue_op,
    saved_queue_op,
    source_queue_op,
    stack_queue_op,
)
from flowbook.graph.ops.random.random_numbers import seeds

__all__ = ["FIFOQueue", "PaddingFIFOQueue", "PriorityQueue", "RandomShuffleQueue", "Stack"]


@made_by(fifo_queue_op, source_queue_op)
@fifo_queue_op.front
class FIFOQueue(Queue):
    """A queue whose elements leave it in the order in which they came.

    Args:
        capacity: how many elements it holds at most; -1 for any number.
        dtypes: the dtype of each component of an element, or that of the only one.
        shapes: the shape of each component; without, each element may have another, and batches
            cannot be taken out.
        names: a name for each component; elements are then dicts.
        shared_name: a name under which several operations share one queue: those of one session,
            or, in a named container (`fb.container`), of all sessions of the process.
        name: the operation's name.

    Raises:
        InvalidArgumentError: if dtypes, shapes and names do not fit each other.

    Source: white paper, section 4.6.

    >>> import flowbook as fb
    >>> queue = fb.FIFOQueue(10, fb.float32, shapes=[[]])
    >>> put, taken = queue.enqueue_many([1.0, 2.0, 3.0]), queue.dequeue()
    >>> with fb.Session() as sess:
    ...     sess.run(put)
    ...     print(sess.run(taken), sess.run(taken), sess.run(queue.size()))
    1.0 2.0 1
    """

    def __init__(
        self,
        capacity: int,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        name: str | None = None,
    ) -> None:
        attributes = elements_of(dtypes, shapes, names, capacity, shared_name)
        self._make(fifo_queue_op, name, **attributes)


@made_by(saved_queue_op)
class SavedQueue(FIFOQueue):
    """A `FIFOQueue` of scalars that belong to a checkpoint, with those that wait to be put in.

    Args:
        capacity: as for `FIFOQueue`.
        dtype: that of the scalars.
        shared_name: as for `FIFOQueue`.
        name: the operation's name.
    """

    def __init__(
        self, capacity: int, dtype: DType, shared_name: str | None = None, name: str | None = None
    ) -> None:
        attributes = elements_of(dtype, [SCALAR], None, capacity, shared_name)
        self._make(saved_queue_op, name, **attributes)


@made_by(padding_fifo_queue_op)
@padding_fifo_queue_op.front
class PaddingFIFOQueue(Queue):
    """A `FIFOQueue` whose elements may differ in some dimensions, and are filled up in batches.

    Where a dimension in `shapes` is None, a batch is as long as the longest of its elements; the
    others are filled up with zeros, strings with empty ones. Arguments and errors are as those of
    `FIFOQueue`; shapes have to be given, at least of how many dimensions they are.

    >>> import flowbook as fb
    >>> queue = fb.PaddingFIFOQueue(10, fb.int32, shapes=[[None]])
    >>> puts = [queue.enqueue([1, 2, 3]), queue.enqueue([4])]
    >>> with fb.Session() as sess:
    ...     for put in puts:
    ...         sess.run(put)
    ...     print(sess.run(queue.dequeue_many(2)))
    [[1 2 3]
     [4 0 0]]
    """

    _pads = True

    def __init__(
        self,
        capacity: int,
        dtypes: Any,
        shapes: Any,
        names: Any = None,
        shared_name: str | None = None,
        name: str | None = None,
    ) -> None:
        attributes = elements_of(dtypes, shapes, names, capacity, shared_name)
        if any(shape.rank is None for shape in attributes["shapes"]):
            raise InvalidArgumentError(
                "the number of each component's dimensions has to be known",
                hint="shapes=[[None, 3]] leaves one dimension open",
            )
        self._make(padding_fifo_queue_op, name, **attributes)


@made_by(random_shuffle_queue_op)
@random_shuffle_queue_op.front
class RandomShuffleQueue(Queue):
    """A queue whose elements leave it in a random order.

    Args:
        capacity: how many elements it holds at most; -1 for any number.
        min_after_dequeue: how many elements stay in it, until it is closed, so that there is always
            a choice of them.
        dtypes: as for `FIFOQueue`.
        shapes: as for `FIFOQueue`.
        names: as for `FIFOQueue`.
        seed: an int that makes the order reproducible, see `set_random_seed`.
        shared_name: as for `FIFOQueue`.
        name: the operation's name.

    Raises:
        InvalidArgumentError: if dtypes, shapes and names do not fit each other, or no element
            could ever leave.
    """

    def __init__(
        self,
        capacity: int,
        min_after_dequeue: int,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        seed: int | None = None,
        shared_name: str | None = None,
        name: str | None = None,
    ) -> None:
        attributes = elements_of(dtypes, shapes, names, capacity, shared_name)
        if min_after_dequeue < 0 or 0 < capacity <= min_after_dequeue:
            raise InvalidArgumentError(
                f"min_after_dequeue is from 0 on and less than the capacity {capacity}, "
                f"not {min_after_dequeue}"
            )
        attributes |= {"min_after_dequeue": int(min_after_dequeue), **seeds(seed)}
        self._make(random_shuffle_queue_op, name, **attributes)


@made_by(priority_queue_op)
@priority_queue_op.front
class PriorityQueue(Queue):
    """A queue whose elements leave it by their priorities, the least first.

    The first component of each element is its priority, an int64 scalar, which `types` and `shapes`
    leave out; of elements with one priority the one that came first leaves first.

    Args:
        capacity: how many elements it holds at most; -1 for any number.
        types: the dtype of each other component.
        shapes: as for `FIFOQueue`, of each other component.
        names: as for `FIFOQueue`, the priority's among them.
        shared_name: as for `FIFOQueue`.
        name: the operation's name.

    Raises:
        InvalidArgumentError: if types, shapes and names do not fit each other.

    >>> import flowbook as fb
    >>> queue = fb.PriorityQueue(10, fb.string, shapes=[[]])
    >>> put = queue.enqueue_many([[3, 1, 2], ["c", "a", "b"]])
    >>> with fb.Session() as sess:
    ...     sess.run(put)
    ...     print(*sess.run(queue.dequeue()))
    1 b'a'
    """

    def __init__(
        self,
        capacity: int,
        types: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        name: str | None = None,
    ) -> None:
        others = list(types) if isinstance(types, list | tuple) else [types]
        found = [SCALAR, *shapes_of(shapes, len(others))] if others else [SCALAR]
        attributes = elements_of([int64, *others], found, names, capacity, shared_name)
        self._make(priority_queue_op, name, **attributes)


@made_by(bucket_queue_op)
@bucket_queue_op.front
class BucketQueue(Queue):
    """A queue whose elements are in buckets, and leave it in batches of one bucket.

    Args:
        capacity: how many elements it holds at most. Where it is full, a batch can be taken out.
        sizes: for each bucket how many elements make a batch.
        dtypes: the dtype of each component of an element; the first, an int32 scalar, is the number
            of its bucket.
        shapes: their shapes; where a dimension is None, batches are filled up with zeros.
        shared_name: as for `FIFOQueue`.
        name: the operation's name.
    """

    _pads = True

    def __init__(
        self,
        capacity: int,
        sizes: Sequence[int],
        dtypes: Sequence[DType],
        shapes: Sequence[Shape],
        shared_name: str | None = None,
        name: str | None = None,
    ) -> None:
        attributes = elements_of(dtypes, shapes, None, capacity, shared_name)
        self._make(bucket_queue_op, name, **attributes, sizes=tuple(sizes))

    def dequeue_bucket(self, is_less_enough: bool) -> list[Tensor]:
        """Take out a batch of the bucket that first has one.

        Args:
            is_less_enough: whether those are enough that are left in a bucket when the queue is
                closed.

        Raises:
            InvalidArgumentError: if nothing is known of the elements' shapes.
            OutOfRangeError: in the run, if the queue is closed, and too few are left.
        """
        self._check_batches()
        sizes = set(self.op.attributes["sizes"])
        with self.graph.as_default():
            return dequeue_bucket_op(
                self.handle,
                dtypes=self.dtypes,
                shapes=self.shapes,
                length=sizes.pop() if len(sizes) == 1 and not is_less_enough else None,
                is_less_enough=is_less_enough,
                name=self._named(None, "dequeue_bucket"),
            )


@made_by(stack_queue_op)
@elsewhere({"push": "stack.enqueue(value)", "pop": "stack.dequeue()"})
@stack_queue_op.front
class Stack(Queue):
    """A queue whose latest element leaves first.

    Who would take something off an empty stack waits, as at any queue, until something is put on it
    or it is closed. Arguments and errors are as those of `FIFOQueue`.

    >>> import flowbook as fb
    >>> stack = fb.Stack(10, fb.int32, shapes=[[]])
    >>> put, taken = stack.enqueue_many([1, 2, 3]), stack.dequeue()
    >>> with fb.Session() as sess:
    ...     sess.run(put)
    ...     print(sess.run(taken), sess.run(taken), sess.run(stack.size()))
    3 2 1
    """

    def __init__(
        self,
        capacity: int,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        name: str | None = None,
    ) -> None:
        attributes = elements_of(dtypes, shapes, names, capacity, shared_name)
        self._make(stack_queue_op, name or "stack", **attributes)
