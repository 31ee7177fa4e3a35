"""Batches of what steps make one by one: a queue between who makes elements and who trains.

A runner has its threads make elements and put them into a queue; what is given back takes a batch
of them in every run. TensorFlow 1's arguments are meant as they are there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flowbook.graph.building.scopes import name_scope
from flowbook.graph.model import dtypes
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.arrays.masking import boolean_mask
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.filling import fill
from flowbook.graph.ops.basis.shaping import expand_dims
from flowbook.graph.ops.basis.shaping import shape as shape_of
from flowbook.graph.ops.queues.queue_runners import QueueRunner
from flowbook.graph.ops.queues.queues import (
    FIFOQueue,
    PaddingFIFOQueue,
    Queue,
    RandomShuffleQueue,
)

__all__ = [
    "batch",
    "batch_join",
    "maybe_batch",
    "shuffle_batch",
    "shuffle_batch_join",
]


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
        tensors: an element: a tensor, or a list or dict of tensors.
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
        name: the name of the scope of the operations.

    Returns:
        Tensors as `tensors` has them, with one dimension more before the others.

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
    made = _Making([tensors], enqueue_many, shapes, dynamic_pad, num_threads)
    with name_scope(name or "batch"):
        return made.batch(batch_size, allow_smaller_final_batch, capacity, shared_name)


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
        tensors: as for `batch`.
        keep_input: whether to keep an element: a bool scalar, or with `enqueue_many` a vector too.
        batch_size: as for `batch`.
        num_threads: as for `batch`.
        capacity: as for `batch`.
        enqueue_many: as for `batch`.
        shapes: as for `batch`.
        dynamic_pad: as for `batch`.
        allow_smaller_final_batch: as for `batch`.
        shared_name: as for `batch`.
        name: the name of the scope of the operations.
    """
    made = _Making([tensors], enqueue_many, shapes, dynamic_pad, num_threads)
    with name_scope(name or "batch"):
        made.keep(keep_input)
        return made.batch(batch_size, allow_smaller_final_batch, capacity, shared_name)


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
        batch_size: as for `batch`.
        capacity: as for `batch`.
        enqueue_many: as for `batch`.
        shapes: as for `batch`.
        dynamic_pad: as for `batch`.
        allow_smaller_final_batch: as for `batch`.
        shared_name: as for `batch`.
        name: the name of the scope of the operations.
    """
    made = _Making(tensors_list, enqueue_many, shapes, dynamic_pad, 1)
    with name_scope(name or "batch_join"):
        return made.batch(batch_size, allow_smaller_final_batch, capacity, shared_name)


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
        tensors: as for `batch`.
        batch_size: as for `batch`.
        capacity: how many elements wait at most.
        min_after_dequeue: how many of them stay behind, so that there is always a choice.
        num_threads: as for `batch`.
        seed: of the order, see `set_random_seed`.
        enqueue_many: as for `batch`.
        shapes: as for `batch`.
        allow_smaller_final_batch: as for `batch`.
        shared_name: as for `batch`.
        name: the name of the scope of the operations.
    """
    made = _Making([tensors], enqueue_many, shapes, False, num_threads)
    with name_scope(name or "shuffle_batch"):
        shuffled = (min_after_dequeue, seed)
        return made.batch(batch_size, allow_smaller_final_batch, capacity, shared_name, shuffled)


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
    """As `batch_join`, in a random order.

    Args:
        tensors_list: as for `batch_join`.
        batch_size: as for `batch`.
        capacity: as for `shuffle_batch`.
        min_after_dequeue: as for `shuffle_batch`.
        seed: as for `shuffle_batch`.
        enqueue_many: as for `batch`.
        shapes: as for `batch`.
        allow_smaller_final_batch: as for `batch`.
        shared_name: as for `batch`.
        name: the name of the scope of the operations.
    """
    made = _Making(tensors_list, enqueue_many, shapes, False, 1)
    with name_scope(name or "shuffle_batch_join"):
        shuffled = (min_after_dequeue, seed)
        return made.batch(batch_size, allow_smaller_final_batch, capacity, shared_name, shuffled)


class _Making:
    """The elements that threads make, and the queue that they put them into.

    Args:
        places: of each place that makes elements one of them, or with `are_rows` many.
        are_rows: whether each row is an element.
        shapes: what else is known of the shape of each component.
        pads: whether elements of different shapes make a batch.
        threads: how many threads each place has.
    """

    def __init__(
        self, places: Sequence[Any], are_rows: bool, shapes: Any, pads: bool, threads: int
    ) -> None:
        if not isinstance(places, list | tuple) or not places:
            raise InvalidTypeError(f"a list of what makes elements is wanted, not {places!r}")
        if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
            raise InvalidArgumentError(f"num_threads is a positive integer, not {threads!r}")
        self._like = places[0]
        self._threads = threads
        self._pads = pads
        self._is_single = not isinstance(self._like, Mapping | list | tuple)
        # Of all places as rows: an element alone is one of them.
        self._rows = [self._components(place) for place in places]
        if not are_rows:
            self._rows = [[expand_dims(each, 0) for each in rows] for rows in self._rows]
        self._shapes = self._common_shapes(shapes)

    def _components(self, place: Any) -> list[Tensor]:
        """The tensors of a place, in order."""
        if isinstance(self._like, Mapping):
            if not isinstance(place, Mapping) or set(place) != set(self._like):
                raise InvalidArgumentError(f"a dict with {list(self._like)} is wanted, not {place}")
            given = [place[key] for key in self._like]
        else:
            given = [place] if self._is_single else list(place)
        return [convert_to_tensor(each) for each in given]

    def _common_shapes(self, shapes: Any) -> list[Shape]:
        """What is known of the shape of each component, wherever it comes from."""
        first = self._rows[0]
        types = [tensor.dtype for tensor in first]
        for rows in self._rows:
            if [tensor.dtype for tensor in rows] != types:
                raise InvalidArgumentError("the places that make elements differ in their dtypes")
        found = []
        for column in zip(*self._rows, strict=True):
            common = column[0].shape[1:]
            for tensor in column[1:]:
                common = common.generalise(tensor.shape[1:])
            found.append(common)
        if shapes is None:
            return found
        given = [Shape(shapes)] if self._is_single else [Shape(shape) for shape in shapes]
        return [known.merge(shape) for known, shape in zip(found, given, strict=True)]

    def keep(self, keep_input: Any) -> None:
        """Leave out elements: a bool for each row, or one for all."""
        for place, rows in enumerate(self._rows):
            wanted = convert_to_tensor(keep_input, dtypes.bool)
            if wanted.shape.rank is None:
                raise InvalidArgumentError(
                    "of keep_input has to be known whether it is a scalar or a vector"
                )
            if wanted.shape.rank == 0:
                wanted = fill(shape_of(rows[0])[:1], wanted)
            self._rows[place] = [boolean_mask(each, wanted) for each in rows]

    def batch(
        self,
        size: Any,
        is_less_enough: bool,
        capacity: int,
        shared_name: str | None,
        shuffled: tuple[int, int | None] | None = None,
    ) -> Any:
        """A batch of elements out of the queue, arranged as one of them."""
        typed: dict[str, Any] = {
            "capacity": capacity,
            "dtypes": [tensor.dtype for tensor in self._rows[0]],
            "shapes": self._shapes,
            "shared_name": shared_name,
            "name": "queue",
        }
        queue: Queue
        if shuffled is not None:
            queue = RandomShuffleQueue(min_after_dequeue=shuffled[0], seed=shuffled[1], **typed)
        else:
            queue = PaddingFIFOQueue(**typed) if self._pads else FIFOQueue(**typed)
        puts = [queue.enqueue_many(rows) for rows in self._rows]
        take = queue.dequeue_up_to if is_less_enough else queue.dequeue_many
        found = take(size)
        # Only now: nothing is to be filled where a batch cannot be made.
        QueueRunner(queue, [put for put in puts for _ in range(self._threads)])
        if isinstance(self._like, Mapping):
            values = list(found) if len(puts[0].inputs) > 2 else [found]
            return dict(zip(self._like, values, strict=True))
        return [found] if isinstance(self._like, list | tuple) and len(self._like) == 1 else found
