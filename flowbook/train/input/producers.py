"""Queues of what an input is read from: numbers, slices of tensors, names of files.

A runner fills them, epoch after epoch; readers and `batch` take from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flowbook.graph.building.scopes import control_dependencies, name_scope
from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.descriptions import arguments_as
from flowbook.graph.model.dtypes import string
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.shape import UNKNOWN, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.arrays.gathering import gather
from flowbook.graph.ops.basis.constants import convert_to_tensor, identity
from flowbook.graph.ops.basis.filling import range as range_of
from flowbook.graph.ops.basis.shaping import shape as shape_of
from flowbook.graph.ops.checks.assertions import assert_positive
from flowbook.graph.ops.queues.queue_runners import QueueRunner
from flowbook.graph.ops.queues.queues import FIFOQueue, SavedQueue
from flowbook.graph.ops.random.orders import random_shuffle
from flowbook.graph.ops.state.variables import Variable
from flowbook.graph.ops.state.writing import count_up_to

__all__ = [
    "input_producer",
    "limit_epochs",
    "range_input_producer",
    "slice_input_producer",
    "string_input_producer",
]


# More epochs than anybody has.
_ENDLESS = int(np.iinfo(np.int64).max)


def limit_epochs(tensor: Any, num_epochs: int | None = None, name: str | None = None) -> Tensor:
    """A tensor that can be had only so many times.

    Args:
        tensor: the tensor.
        num_epochs: how many times; None for ever. A run after that is an OutOfRangeError.
        name: the name of the scope of the operations.
    """
    limited: Tensor = convert_to_tensor(tensor)
    if num_epochs is None:
        return limited
    if num_epochs < 1:
        raise InvalidArgumentError(f"num_epochs is a positive number, not {num_epochs!r}")
    with name_scope(name or "limit_epochs"):
        epochs = Variable(np.int64(0), trainable=False, name="epochs")
        with control_dependencies([count_up_to(epochs, num_epochs)]):
            limited = identity(limited)
    return limited


@composed
def input_producer(
    input_tensor: Any,
    element_shape: Any = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
) -> FIFOQueue:
    """A queue of the rows of a tensor, which a runner puts there again and again.

    Of scalars, such as numbers and names of files, those that nobody has taken out belong to a
    session's checkpoint, and so do the number of epochs and the random orders.

    Args:
        input_tensor: of at least one dimension.
        element_shape: the shape of a row, where the graph does not know it.
        num_epochs: how often each row comes; after that the queue is closed. None for ever.
        shuffle: whether each epoch has the rows in a random order.
        seed: of the order, see `set_random_seed`.
        capacity: of the queue.
        shared_name: of the queue, see `FIFOQueue`.

    Raises:
        InvalidArgumentError: if the rows' shape is not known, or there are none; where only the run
            can tell, the run that waits for one.
    """
    rows = convert_to_tensor(input_tensor)
    of_row = _shape_of_rows(rows, element_shape)
    if rows.shape.rank is None or rows.shape[0] is None:
        # Nothing would ever come, and the runner would look for it again and again.
        some = assert_positive(shape_of(rows)[0], message="the input has no rows")
        with control_dependencies([some]):
            rows = identity(rows)
    if shuffle:
        # Counted first: a checkpoint then has both the count and the order, or none.
        rows = limit_epochs(rows, _ENDLESS if num_epochs is None else num_epochs)
        rows = random_shuffle(rows, seed=seed)
    else:
        rows = limit_epochs(rows, num_epochs)
    queue = (
        SavedQueue(capacity, rows.dtype, shared_name, "queue")
        if of_row.rank == 0
        else FIFOQueue(capacity, rows.dtype, [of_row], shared_name=shared_name, name="queue")
    )
    QueueRunner(queue, [queue.enqueue_many(rows)])
    return queue


def _shape_of_rows(rows: Tensor, element_shape: Any) -> Shape:
    if rows.shape.rank == 0:
        raise InvalidArgumentError("the input is a scalar, which has no rows")
    if rows.shape.rank is not None and rows.shape[0] == 0:
        raise InvalidArgumentError("the input has no rows")
    found = rows.shape[1:] if rows.shape.rank is not None else UNKNOWN
    if element_shape is not None:
        found = found.merge(element_shape)
    if not found.is_fully_defined:
        raise InvalidArgumentError(
            f"of the shape of a row is known {found}", hint="give `element_shape`"
        )
    return found


@composed("input_producer")
@arguments_as(input_producer)
def string_input_producer(
    string_tensor: Any,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
) -> FIFOQueue:
    """A queue of strings, such as the names of files; see `input_producer`.

    Args:
        string_tensor: a vector of strings.
    """
    strings = convert_to_tensor(string_tensor, string)
    return input_producer(strings, [], num_epochs, shuffle, seed, capacity, shared_name, "strings")


@composed("input_producer")
@arguments_as(input_producer)
def range_input_producer(
    limit: Any,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
) -> FIFOQueue:
    """A queue of the integers from 0 to a limit; see `input_producer`.

    Args:
        limit: the first integer that is not in the queue.

    >>> import flowbook as fb
    >>> queue = fb.train.range_input_producer(3, num_epochs=1, shuffle=False)
    >>> with fb.Session() as sess:
    ...     print(*fb.train.until_end(sess, queue.dequeue()))
    0 1 2
    """
    numbers = range_of(limit)
    return input_producer(numbers, [], num_epochs, shuffle, seed, capacity, shared_name, "numbers")


@composed("input_producer")
@arguments_as(input_producer)
def slice_input_producer(
    tensor_list: Sequence[Any],
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
) -> list[Tensor]:
    """One row of each of several tensors, the same of all of them.

    Args:
        tensor_list: tensors of as many rows each.

    Returns:
        A tensor for each; every run takes the next row.

    Raises:
        InvalidArgumentError: if there is no tensor, or they differ in their numbers of rows.
    """
    tensors = [convert_to_tensor(tensor) for tensor in tensor_list]
    if not tensors:
        raise InvalidArgumentError("there is no tensor to take rows of")
    lengths = {t.shape[0] for t in tensors if t.shape.rank} - {None}
    if len(lengths) > 1 or any(t.shape.rank == 0 for t in tensors):
        shapes = " and ".join(str(tensor.shape) for tensor in tensors)
        raise InvalidArgumentError(f"tensors of as many rows are wanted, not of {shapes}")
    limit = shape_of(tensors[0])[0]
    numbers = range_input_producer(limit, num_epochs, shuffle, seed, capacity, shared_name)
    place = numbers.dequeue()
    return [gather(tensor, place) for tensor in tensors]
