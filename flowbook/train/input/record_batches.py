"""Batches of the records of many files, in a random order: the input of what fits no memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, count, islice
from typing import Any

import numpy as np

from flowbook.graph.model.counted import counted
from flowbook.graph.model.dtypes import string
from flowbook.graph.model.errors import InvalidArgumentError, NotFoundError
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.queues.prefetching import prefetched
from flowbook.graph.storing.files import as_path
from flowbook.train.input.records import read_records
from flowbook.train.input.structures import check_counts, seed_of

__all__ = ["record_batches"]


class _Records:
    """Makes iterators over batches of records.

    Args:
        patterns: of the files' paths.
        size: of a batch.
        epochs: how often all records come; None for ever.
        seed: of their order in each epoch; None leaves it as it is.
        buffer_size: out of how many a random one goes next.
        is_less_enough: whether what is left at the end makes a batch.
        how: keywords of `read_records`.
    """

    def __init__(
        self,
        patterns: Sequence[str],
        size: int,
        epochs: int | None,
        seed: int | None,
        buffer_size: int,
        is_less_enough: bool,
        **how: Any,
    ) -> None:
        self._patterns = patterns
        self._size = size
        self._epochs = epochs
        self._seed = seed
        self._buffer_size = buffer_size
        self._is_less_enough = is_less_enough
        self._how = how

    def __call__(self) -> Iterator[tuple[Any, ...]]:
        records, size = self._of_all_epochs(), self._size
        least = 1 if self._is_less_enough else size
        batch = list(islice(records, size))
        if len(batch) < least:
            raise InvalidArgumentError(
                f"{counted(len(batch), 'record')} make no batch of {size}",
                hint="allow_smaller_final_batch=True takes what there is",
            )
        while len(batch) >= least:
            yield (np.array(batch, object),)
            batch = list(islice(records, size))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Records) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((*self._patterns, self._size))

    def _of_all_epochs(self) -> Iterator[bytes]:
        paths = [path for pattern in self._patterns for path in _matching(pattern)]
        for epoch in count() if self._epochs is None else range(self._epochs):
            if self._seed is None:
                yield from self._of(paths)
                continue
            draw = np.random.default_rng([self._seed, epoch])
            in_order = self._of([paths[n] for n in draw.permutation(len(paths))])
            # One that is drawn out of those in memory makes room for the next one of the files.
            held = list(islice(in_order, self._buffer_size))
            for record in in_order:
                place = draw.integers(len(held))
                held[place], record = record, held[place]
                yield record
            for place in draw.permutation(len(held)):
                yield held[place]

    def _of(self, paths: Sequence[str]) -> Iterator[bytes]:
        records = chain.from_iterable(read_records(path, **self._how) for path in paths)
        for first in islice(records, 1):
            yield first
            yield from records
            return
        raise InvalidArgumentError(f"there are no records in {', '.join(paths):.200}")


def _matching(pattern: str) -> list[str]:
    """The paths of the files that match a pattern, sorted; a path without wildcards is its own."""
    if not {*"*?["} & {*pattern}:
        return [pattern]
    from fsspec.core import url_to_fs

    system, path = url_to_fs(pattern)
    found = sorted(system.glob(path))
    if not found:
        raise NotFoundError(f"no file matches {pattern!r}")
    return [system.unstrip_protocol(each) for each in found]


def record_batches(
    files: Any,
    size: int,
    epochs: int | None = 1,
    shuffle: int | bool | None = None,
    buffer_size: int = 10_000,
    compression: str | None = None,
    skip_damaged: bool = False,
    allow_smaller_final_batch: bool = False,
    prefetch: int = 4,
    name: str | None = None,
) -> Tensor:
    """Batches of the records of TFRecord files: every run takes the next one.

    A thread reads them while the steps before run. A run after the last one is an OutOfRangeError;
    `fb.train.until_end` is the loop that ends there. Each session begins with the first; one that
    goes on from a checkpoint, with the one after the last that had been taken.

    Args:
        files: a path, or a URL that fsspec knows, or a list of them; `*`, `?` and `[]` stand for
            what they do in a shell.
        size: how many records a batch has.
        epochs: how often all records come; None for ever.
        shuffle: a seed: in each epoch the files come in an order of its own, and any of the
            `buffer_size` records that are in memory goes next; the same in each session. True is
            a seed that is drawn here; None leaves the order as it is.
        buffer_size: how many records are in memory to choose from.
        compression: as for `read_records`.
        skip_damaged: as for `read_records`.
        allow_smaller_final_batch: whether the records that are left at the end make a smaller
            batch. By default they are left out.
        prefetch: how many batches are made ready at most.
        name: the name of the scope of the operations.

    Returns:
        A vector of strings, which `parse_example` and its like take apart.

    Raises:
        InvalidArgumentError: if a number is not positive, or there are no files; in the run, if
            what they have makes no batch.
        NotFoundError: in the run, if there is no such file.
        DataLossError: in the run, with the file and the offset, if a record is damaged.

    >>> import flowbook as fb
    >>> for name in "ab":
    ...     with fb.train.RecordWriter(f"memory://words-{name}.records") as records:
    ...         for number in range(3):
    ...             records.write(f"{name}{number}".encode())
    >>> batch = fb.train.record_batches("memory://words-*.records", 2)
    >>> with fb.Session() as sess:
    ...     for words in fb.train.until_end(sess, batch):
    ...         print(words)
    [b'a0' b'a1']
    [b'a2' b'b0']
    [b'b1' b'b2']
    """
    patterns = [as_path(each) for each in (files if isinstance(files, list | tuple) else [files])]
    if not patterns:
        raise InvalidArgumentError("there are no files to read records of")
    check_counts(
        size=size,
        prefetch=prefetch,
        buffer_size=buffer_size,
        **({} if epochs is None else {"epochs": epochs}),
    )
    source = _Records(
        patterns,
        size,
        epochs,
        seed_of(shuffle),
        buffer_size,
        allow_smaller_final_batch,
        compression=compression,
        skip_damaged=skip_damaged,
    )
    shape = Shape([None if allow_smaller_final_batch else size])
    [found] = prefetched(source, [string], [shape], prefetch, name or "record_batches")
    return found
