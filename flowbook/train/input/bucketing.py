"""Batches of elements of one kind, such as sequences of about one length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.descriptions import arguments_as
from flowbook.graph.model.counted import counted
from flowbook.graph.model.dtypes import int32
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.shape import SCALAR
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.whole_numbers import as_whole
from flowbook.graph.ops.basis.broadcasting import reduce_sum
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.math.comparison import greater_equal
from flowbook.graph.ops.queues.queues import BucketQueue
from flowbook.train.input.batching import batch
from flowbook.train.input.elements import Elements
from flowbook.train.input.structures import check_counts

__all__ = ["bucket", "bucket_by_sequence_length"]


@composed
@arguments_as(batch)
def bucket(
    tensors: Any,
    which_bucket: Any,
    batch_size: int | Sequence[int],
    num_buckets: int,
    num_threads: int = 1,
    capacity: int = 32,
    bucket_capacities: Sequence[int] | None = None,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    keep_input: Any = True,
    shared_name: str | None = None,
    name: str | None = None,
) -> tuple[Tensor, Any]:
    """Batches of elements of one bucket each, that which first has enough of them.

    Args:
        which_bucket: the number of the bucket that it belongs to, an int32 scalar.
        batch_size: how many elements make a batch; a list has a number for each bucket.
        num_buckets: how many buckets there are.
        num_threads: how many threads make elements. With one their order is kept in a bucket.
        capacity: how many elements wait at most in a bucket, on the average; room for a batch of
            each there is always.
        bucket_capacities: the same, for each bucket.
        allow_smaller_final_batch: as for `batch`, of each bucket.
        keep_input: whether to keep the element: a bool scalar.

    Returns:
        The number of the bucket, an int32 scalar, and tensors as `tensors` has them, with one
        dimension more before the others.

    Raises:
        InvalidArgumentError: if something does not fit; in the run, if there is no such bucket.

    >>> import flowbook as fb
    >>> [number] = fb.train.slice_input_producer([[5, 2, 7, 4]], num_epochs=1, shuffle=False)
    >>> parity, numbers = fb.train.bucket(number, number % 2, batch_size=2, num_buckets=2)
    >>> with fb.Session() as sess:
    ...     for which, found in fb.train.until_end(sess, (parity, numbers)):
    ...         print(which, found)
    1 [5 7]
    0 [2 4]
    """
    given = locals()
    which = convert_to_tensor(which_bucket, int32)
    numbers, found = _bucketed([which], num_buckets, given)
    return numbers[0][0], found


@composed
@arguments_as(bucket)
def bucket_by_sequence_length(
    input_length: Any,
    tensors: Any,
    batch_size: int | Sequence[int],
    bucket_boundaries: Sequence[int],
    num_threads: int = 1,
    capacity: int = 32,
    bucket_capacities: Sequence[int] | None = None,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    keep_input: Any = True,
    shared_name: str | None = None,
    name: str | None = None,
) -> tuple[Tensor, Any]:
    """Batches of sequences of about one length, so that little is filled up.

    Args:
        input_length: the length of the sequence, an int32 scalar.
        batch_size: how many elements make a batch; a list has a number for each bucket, of which
            there is one more than boundaries.
        bucket_boundaries: lengths that grow; a bucket has those from one to below the next.

    Returns:
        The lengths, an int32 vector, and tensors as `bucket` gives them.

    Raises:
        InvalidTypeError: if the boundaries are no integers.
        InvalidArgumentError: if there are none, or they do not grow.

    >>> import flowbook as fb
    >>> [n] = fb.train.slice_input_producer([[3, 1, 4, 2]], num_epochs=1, shuffle=False)
    >>> lengths, words = fb.train.bucket_by_sequence_length(
    ...     n, fb.range(n), batch_size=2, bucket_boundaries=[3], dynamic_pad=True
    ... )
    >>> with fb.Session() as sess:
    ...     for found in fb.train.until_end(sess, words):
    ...         print(found.tolist())
    [[0, 1, 2, 0], [0, 1, 2, 3]]
    [[0, 0], [0, 1]]
    """
    given = locals()
    bounds = list(bucket_boundaries)
    if any(as_whole(bound) is None for bound in bounds):
        raise InvalidTypeError(f"boundaries are integers, not {bounds!r:.80}")
    if not bounds or any(a >= b for a, b in pairwise(bounds)):
        raise InvalidArgumentError(f"boundaries are given, and grow, unlike {bounds!r:.80}")
    length = cast(convert_to_tensor(input_length), int32)
    which = reduce_sum(cast(greater_equal(length, np.array(bounds, np.int32)), int32))
    (_, lengths), found = _bucketed([which, length], len(bounds) + 1, given)
    return lengths, found


def _bucketed(
    numbers: Sequence[Tensor], num_buckets: int, given: Mapping[str, Any]
) -> tuple[list[Tensor], Any]:
    """Numbers of elements, the first of which is that of the bucket, and the elements.

    Args:
        numbers: of the element.
        num_buckets: how many buckets there are.
        given: the arguments that both functions have, by name.
    """
    check_counts(num_buckets=num_buckets)
    sizes = _for_each(given["batch_size"], num_buckets, "batch_size")
    room = given["bucket_capacities"] or given["capacity"]
    capacities = _for_each(room, num_buckets, "bucket_capacities")
    threads, keep = given["num_threads"], [given["keep_input"]]
    elements = Elements([given["tensors"]], False, given["shapes"], threads, keep)
    _check_shapes(elements, given["dynamic_pad"])
    queue = BucketQueue(
        sum(map(max, sizes, capacities)),
        sizes,
        [*[int32] * len(numbers), *elements.dtypes],
        [*[SCALAR] * len(numbers), *elements.shapes],
        shared_name=given["shared_name"],
        name="queue",
    )
    found = queue.dequeue_bucket(given["allow_smaller_final_batch"])
    elements.fill_numbered(queue, numbers)
    return found[: len(numbers)], elements.arranged(found[len(numbers) :])


def _for_each(given: Any, count: int, what: str) -> list[int]:
    """A positive number for each bucket."""
    found = list(given) if isinstance(given, list | tuple) else [given] * count
    if len(found) != count:
        raise InvalidArgumentError(
            f"{what} has {counted(len(found), 'number')} for {count} buckets"
        )
    for number in found:
        check_counts(**{what: number})
    return found


def _check_shapes(elements: Elements, pads: bool) -> None:
    """Refuse elements that may differ in shape, unless they are filled up."""
    for shape in elements.shapes:
        if not (shape.is_fully_defined or (pads and shape.rank is not None)):
            raise InvalidArgumentError(
                f"elements make no batch: of the shape of a component is known {shape}",
                hint="give `shapes`, or dynamic_pad=True where dimensions are not known",
            )
