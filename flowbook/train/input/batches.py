"""Batches of arrays in memory: the input of most notebooks, in one line."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from sys import getrefcount
from typing import Any

import numpy as np

from flowbook.graph.model.convert import dtype_of, to_array
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError, OpError
from flowbook.graph.model.shape import Shape
from flowbook.graph.ops.queues.prefetching import prefetched
from flowbook.train.input.structures import Leaf, check_counts, leaves, rebuilt, seed_of

__all__ = ["batches"]


# A batch of fewer bytes is made by its run: that takes less time than to have a thread beside the
# training that makes batches ready.
_LARGE = 1 << 20


class _Gathered:
    """Rows of an array by their numbers, in memory of an earlier batch that nobody has any more.

    Fresh memory would cost as much again as the gathering.

    Args:
        array: the rows.
    """

    def __init__(self, array: Any) -> None:
        self._array = array
        # `take` would copy another array as a whole first.
        self._takes = array.flags.c_contiguous and array.flags.aligned
        # Whoever goes through batches has one of them while the next is made.
        self._buffers: deque[Any] = deque(maxlen=2)

    def __getitem__(self, numbers: Any) -> Any:
        """The rows of these numbers, which are all there."""
        if not self._takes:
            return self._array[numbers]
        # Unlike indexing, `take` lets other threads run meanwhile. Where a number might be wrong
        # it would gather elsewhere and copy: none is, and so none is clipped.
        return self._array.take(numbers, axis=0, out=self._buffer(len(numbers)), mode="clip")

    def _buffer(self, count: int) -> Any:
        """Memory for so many rows."""
        for place in range(len(self._buffers)):
            if self._references(place) == _UNHELD and len(self._buffers[place]) == count:
                return self._buffers[place]
        buffer = np.empty((count, *self._array.shape[1:]), self._array.dtype)
        self._buffers.append(buffer)
        return buffer

    def _references(self, place: int) -> int:
        return getrefcount(self._buffers[place])


def _unheld_references() -> int:
    """What `_references` gives for a buffer that nobody else has, on this interpreter."""
    rows = _Gathered(np.zeros(1))
    rows._buffer(1)
    return rows._references(0)


_UNHELD = _unheld_references()


class _Batches:
    """The batches of arrays in their order, by their numbers.

    Args:
        arrays: of as many rows each.
        size: of a batch.
        epochs: how often all rows come; None for ever.
        seed: of their order in each epoch; None leaves it as it is.
        limit: how many rows of an epoch are in batches.
    """

    def __init__(
        self,
        arrays: Sequence[Any],
        size: int,
        epochs: int | None,
        seed: int | None,
        limit: int,
    ) -> None:
        self._arrays = arrays
        self._gathered = [_Gathered(array) for array in arrays]
        self._size = size
        self._epochs = epochs
        self._seed = seed
        self._limit = limit
        # The order of the rows in the epoch of the last batch.
        self._order: tuple[int, Any] = (-1, None)

    def __getitem__(self, number: int) -> tuple[Any, ...]:
        """A batch, of views if the rows are in their own order.

        Raises:
            IndexError: if there are no so many.
        """
        epoch, place = divmod(number, -(-self._limit // self._size))
        if self._epochs is not None and epoch >= self._epochs:
            raise IndexError(number)
        start = place * self._size
        rows = slice(start, min(start + self._size, self._limit))
        if self._seed is None:
            return tuple([array[rows] for array in self._arrays])
        if self._order[0] != epoch:
            draw = np.random.default_rng([self._seed, epoch])
            self._order = epoch, draw.permutation(len(self._arrays[0]))
        numbers = self._order[1][rows]
        return tuple([gathered[numbers] for gathered in self._gathered])


@dataclass(frozen=True, eq=False)
class _Source:
    """Makes the batches of a session; the same arrays in the same order are the same source.

    Attributes:
        arrays, size, epochs, seed, limit: see `_Batches`.
    """

    arrays: Sequence[Any]
    size: int
    epochs: int | None
    seed: int | None
    limit: int

    def __call__(self) -> _Batches:
        return _Batches(self.arrays, self.size, self.epochs, self.seed, self.limit)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Source) and self._known() == other._known()

    def __hash__(self) -> int:
        return hash((self.size, self.epochs, self.seed, self.limit))

    def _known(self) -> tuple[Any, ...]:
        """What it is known by: arrays are the same where they lie at the same place in memory."""
        places = [array.__array_interface__ for array in self.arrays]
        return places, self.size, self.epochs, self.seed, self.limit


def batches(
    arrays: Any,
    size: int,
    epochs: int | None = 1,
    shuffle: int | bool | None = None,
    allow_smaller_final_batch: bool = False,
    prefetch: int | None = None,
    name: str | None = None,
) -> Any:
    """Batches of the rows of arrays: every run takes the next one.

    A run after the last one is an OutOfRangeError; `fb.train.until_end` is the loop that ends
    there. Each session, and each time that the cell runs again, begins with the first; one that
    goes on from a checkpoint, with the one after the last that had been taken.

    Args:
        arrays: NumPy arrays, or what makes arrays, of as many rows each: one, a tuple or dict of
            them, or a table of pandas' or pyarrow's, whose categories are their values. They are
            not copied.
        size: how many rows a batch has.
        epochs: how often all rows come; None for ever.
        shuffle: a seed: each epoch has its rows in an order of its own, the same in each session.
            True is a seed that is drawn here; None leaves the order as it is.
        allow_smaller_final_batch: whether the rows that remain at the end of an epoch make a
            smaller batch, so that no batch's size is known to the graph. By default they are left
            out; shuffled, these are others in each epoch.
        prefetch: how many batches a thread makes ready at most while the steps before run; with 0
            each run makes its own. None is 4 if a batch has a megabyte or more, and else 0: to
            make a small one takes less than to have a thread do so.
        name: the name of the scope of the operations.

    Returns:
        Tensors, arranged as the arrays are: one, a tuple or a dict; of a table a dict by column.

    Raises:
        InvalidArgumentError: if the arrays differ in their numbers of rows, make no batch, or a
            column lacks values; NaN is a value in columns of NumPy's own floats.
        InvalidTypeError: if something is no array of a dtype that tensors have.

    >>> import numpy as np
    >>> import flowbook as fb
    >>> x, label = fb.train.batches((np.arange(4.0), np.array([0, 1, 1, 0])), 2)
    >>> with fb.Session() as sess:
    ...     for values, labels in fb.train.until_end(sess, (x, label)):
    ...         print(values, labels)
    [0. 1.] [0 1]
    [2. 3.] [1 0]
    """
    columns = [_array(leaf) for leaf in leaves(arrays)]
    rows = _common_rows(columns)
    if hasattr(size, "__len__"):
        raise InvalidTypeError(
            "size is how many rows a batch has, and not another array",
            hint="give several as one: fb.train.batches((x, y), size)",
        )
    check_counts(size=size, **({} if epochs is None else {"epochs": epochs}))
    if prefetch is not None:
        check_counts(0, prefetch=prefetch)
    limit = rows if allow_smaller_final_batch else rows - rows % size
    if not limit:
        raise InvalidArgumentError(
            f"{rows} rows make no batch of {size}",
            hint="allow_smaller_final_batch=True takes what there is" if rows else None,
        )
    source = _Source(columns, size, epochs, seed_of(shuffle), limit)
    if prefetch is None:
        is_large = size * sum(column.nbytes for column in columns) >= _LARGE * rows
        prefetch = 4 if is_large else 0
    length = size if limit % size == 0 else None
    found = prefetched(
        source,
        [dtype_of(column) for column in columns],
        [Shape([length, *column.shape[1:]]) for column in columns],
        prefetch,
        name or "batches",
    )
    return rebuilt(arrays, iter(found))


def _array(leaf: Leaf) -> Any:
    try:
        array = to_array(leaf.value)
        dtype_of(array)
    except OpError as error:
        where = f"arrays{leaf.path}"
        raise type(error)(f"{where} is no array: {error.message}", hint=error.hint) from None
    if not array.ndim:
        raise InvalidArgumentError(f"arrays{leaf.path} is a scalar, which has no rows")
    return array


def _common_rows(columns: Sequence[Any]) -> int:
    if not columns:
        raise InvalidArgumentError("there is no array to make batches of")
    numbers = {len(column) for column in columns}
    if len(numbers) > 1:
        raise InvalidArgumentError(
            f"the arrays have {' and '.join(map(str, sorted(numbers)))} rows, and each batch takes "
            "the same rows of each"
        )
    return numbers.pop()
