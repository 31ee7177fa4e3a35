"""Batches of what steps make one by one: a queue between who makes elements and who trains.

A runner has its threads make elements and put them into a queue; what is given back takes a batch
of them in every run. TensorFlow 1's arguments are meant as they are there, in its order, so that
each function has a signature of its own; what is said of an argument stands once, with the first
that takes it, and what they do in `_batched`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.descriptions import arguments_as
from flowbook.graph.ops.queues.queue import Queue
from flowbook.graph.ops.queues.queues import FIFOQueue, PaddingFIFOQueue, RandomShuffleQueue
from flowbook.train.input.elements import Elements

__all__ = [
    "batch",
    "batch_join",
    "maybe_batch",
    "maybe_batch_join",
    "maybe_shuffle_batch",
    "maybe_shuffle_batch_join",
    "shuffle_batch",
    "shuffle_batch_join",
]


@composed
def batch(
    tensors: Any,
    batch_size: Any,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Batches of elements that threads make beforehand.

    Args:
        tensors: an element: a tensor, or a list or dict of tensors, dense ones or sparse ones.
        batch_size: how many elements make a batch; an integer, or an int32 scalar.
        num_threads: how many threads make elements. With one their order is kept.
        capacity: how many elements wait at most.
        enqueue_many: whether each row of the tensors is an element, rather than the whole.
        shapes: the shape of each tensor of an element, where the graph does not know it.
        dynamic_pad: whether elements may differ in dimensions that are not known; those of a batch
            are filled up with zeros, strings with empty ones.
        allow_smaller_final_batch: whether those that are left at the end make a smaller batch; by
            default they are left out.
        shared_name: of the queue, see `FIFOQueue`.

    Returns:
        Tensors as `tensors` has them, with one dimension more before the others. Of sparse ones
        each dimension is as large as in the largest of the elements.

    Raises:
        InvalidArgumentError: if the shape of an element is not known.
        InvalidTypeError: if something is no tensor.

    >>> import flowbook as fb
    >>> [number] = fb.train.slice_input_producer([[5, 6, 7]], num_epochs=1, shuffle=False)
    >>> squares = fb.train.batch(number * number, 2, allow_smaller_final_batch=True)
    >>> with fb.Session() as sess:
    ...     print(*fb.train.until_end(sess, squares))
    [25 36] [49]
    """
    return _batched(locals())


@arguments_as(batch)
@composed
def maybe_batch(
    tensors: Any,
    keep_input: Any,
    batch_size: Any,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """As `batch`, of those elements alone that are to be kept.

    Args:
        keep_input: whether to keep an element: a bool scalar, or with `enqueue_many` a vector too.
    """
    return _batched(locals())


@arguments_as(batch)
@composed
def batch_join(
    tensors_list: Sequence[Any],
    batch_size: Any,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """As `batch`, of elements from several places, such as readers; each has a thread.

    Args:
        tensors_list: of each place an element, all of the same dtypes and arranged alike.
    """
    return _batched(locals())


@arguments_as(batch)
@composed
def shuffle_batch(
    tensors: Any,
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    num_threads: int = 1,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """As `batch`, in a random order: any of the elements that wait goes next.

    Args:
        capacity: how many elements wait at most.
        min_after_dequeue: how many of them stay behind, so that there is always a choice.
        seed: of the order, see `set_random_seed`.
    """
    return _batched(locals())


@arguments_as(batch_join, shuffle_batch)
@composed
def shuffle_batch_join(
    tensors_list: Sequence[Any],
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """As `batch_join`, in a random order."""
    return _batched(locals())


@arguments_as(batch_join)
@composed
def maybe_batch_join(
    tensors_list: Sequence[Any],
    keep_input: Sequence[Any],
    batch_size: Any,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """As `batch_join`, of those elements alone that are to be kept.

    Args:
        keep_input: for each place whether to keep an element, as for `maybe_batch`.
    """
    return _batched(locals())


@arguments_as(shuffle_batch, maybe_batch)
@composed
def maybe_shuffle_batch(
    tensors: Any,
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    keep_input: Any,
    num_threads: int = 1,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """As `shuffle_batch`, of those elements alone that are to be kept."""
    return _batched(locals())


@arguments_as(shuffle_batch_join, maybe_batch_join)
@composed
def maybe_shuffle_batch_join(
    tensors_list: Sequence[Any],
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    keep_input: Sequence[Any],
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """As `shuffle_batch_join`, of those elements alone that are to be kept."""
    return _batched(locals())


def _batched(given: Mapping[str, Any]) -> Any:
    """What each of these functions gives.

    Args:
        given: its arguments, by name. Those that join have a list of elements, each with a thread;
            those that shuffle say how many elements stay behind.
    """
    joins = "tensors_list" in given
    places = given["tensors_list"] if joins else [given["tensors"]]
    keep = given.get("keep_input")
    elements = Elements(
        places,
        given["enqueue_many"],
        given["shapes"],
        given.get("num_threads", 1),
        [keep] if "keep_input" in given and not joins else keep,
    )
    of_queue = {"shapes": elements.shapes, "shared_name": given["shared_name"], "name": "queue"}
    if "min_after_dequeue" in given:
        of_queue |= {"min_after_dequeue": given["min_after_dequeue"], "seed": given["seed"]}
        kind: Callable[..., Queue] = RandomShuffleQueue
    else:
        kind = PaddingFIFOQueue if given["dynamic_pad"] else FIFOQueue
    queue = kind(capacity=given["capacity"], dtypes=elements.dtypes, **of_queue)
    return elements.batch(queue, given["batch_size"], given["allow_smaller_final_batch"])
