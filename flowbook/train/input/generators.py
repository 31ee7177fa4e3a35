"""Any Python iterable as an input."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import Any

from flowbook.graph.model.convert import dtype_of, to_array
from flowbook.graph.model.dtypes import DType, as_dtype
from flowbook.graph.model.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    InvalidTypeError,
    OpError,
)
from flowbook.graph.model.shape import UNKNOWN, Shape
from flowbook.graph.ops.queues.prefetching import prefetched
from flowbook.train.input.structures import Leaf, check_counts, fitting, leaves, rebuilt

__all__ = ["from_generator"]


class _Source:
    """Makes iterators over what an iterable gives.

    Args:
        iterable: an iterable, or a function that makes one.
    """

    def __init__(self, iterable: Any) -> None:
        self._iterable = iterable
        # An iterator goes through its elements once.
        self._is_single = not callable(iterable) and iter(iterable) is iterable
        self._is_used = False
        self._ahead: list[Any] = []

    def first(self) -> Any:
        """The first element, which iterators give all the same.

        Raises:
            InvalidArgumentError: if there is none.
        """
        if self._is_single:
            self._ahead = list(islice(self._iterable, 1))
            found = self._ahead
        else:
            with closing(self()) as elements:
                found = list(islice(elements, 1))
        if not found:
            raise InvalidArgumentError(
                "the iterable gives nothing, which tells no dtypes", hint="give it `dtypes`"
            )
        return found[0]

    def __call__(self) -> Generator[Any]:
        """An iterator over the elements, which closes what it goes through.

        Raises:
            FailedPreconditionError: with its first element, if there can be no other.
        """
        if self._is_used:
            raise FailedPreconditionError(
                "another session, or this one before the restore, goes through the iterator, "
                "which can be done once",
                hint="give the function that makes it: it is called for each session and restore",
            )
        self._is_used = self._is_single
        yield from self._ahead
        yield from self._iterable() if callable(self._iterable) else self._iterable


class _Elements:
    """Makes iterators over elements as tuples of arrays.

    Args:
        source: of elements.
        structure: how an element is arranged.
        dtypes: the dtype of each component.
        shapes: what its shape has to be.
    """

    def __init__(
        self, source: _Source, structure: Any, dtypes: Sequence[DType], shapes: Sequence[Shape]
    ) -> None:
        self._source = source
        self._structure = structure
        self._dtypes = dtypes
        self._shapes = shapes

    def __call__(self) -> Iterator[tuple[Any, ...]]:
        with closing(self._source()) as elements:
            for number, element in enumerate(elements):
                try:
                    components = self._components(element)
                except OpError as error:
                    raise type(error)(
                        f"element {number} (the first is 0): {error.message}", hint=error.hint
                    ) from None
                yield components

    def _components(self, element: Any) -> tuple[Any, ...]:
        values = fitting(self._structure, element)
        arrays = [to_array(v, dtype) for v, dtype in zip(values, self._dtypes, strict=True)]
        for leaf, array, shape in zip(leaves(self._structure), arrays, self._shapes, strict=True):
            if not shape.is_compatible_with(array.shape):
                raise InvalidArgumentError(
                    f"{leaf.path or 'it'} is of shape {Shape(array.shape)}, and {shape} was "
                    "promised",
                    hint="shapes= says what is the same in all elements; None is any size",
                )
        return tuple(arrays)


def from_generator(
    iterable: Iterable[Any] | Callable[[], Iterable[Any]],
    dtypes: Any = None,
    shapes: Any = None,
    prefetch: int = 4,
    name: str | None = None,
) -> Any:
    """The elements of any Python iterable: every run takes the next one.

    A thread goes through the iterable while the steps before run. A run after the last element is
    an OutOfRangeError; `fb.train.until_end` is the loop that ends there. What the iterable raises,
    the run raises, with the line. A generator is closed with the session, and when the cell that
    called this runs again.

    Args:
        iterable: a function that makes an iterable, as a generator function, or an iterable such as
            a list or a data loader; each session goes through it from the beginning, and leaves out
            what had been taken, if it goes on from a checkpoint. An iterator is good for one
            session. An element is an array or a number, or a tuple or dict of them.
        dtypes: the dtype of an element, or a tuple or dict of them, as the elements are arranged.
            Without them the first element is taken now, and says dtypes and shapes.
        shapes: what is the same in the shapes of all elements, arranged as `dtypes`; None is any
            size. With `dtypes` and without shapes nothing is known of them.
        prefetch: how many elements are made ready at most.
        name: the name of the scope of the operations.

    Returns:
        Tensors, arranged as an element.

    Raises:
        InvalidTypeError: if it is no iterable, or its elements are no tensors.
        InvalidArgumentError: if it is empty and there are no `dtypes`; in the run, if an element
            does not fit dtypes and shapes.

    >>> import flowbook as fb
    >>> def words():
    ...     for number, word in enumerate(["one", "two"], start=1):
    ...         yield {"word": word, "number": number}
    >>> element = fb.train.from_generator(words)
    >>> with fb.Session() as sess:
    ...     for found in fb.train.until_end(sess, element):
    ...         print(found["word"], found["number"])
    b'one' 1
    b'two' 2
    """
    if not callable(iterable) and not isinstance(iterable, Iterable):
        raise InvalidTypeError(
            f"an iterable is wanted, or a function that makes one, not {iterable!r}"
        )
    check_counts(prefetch=prefetch)
    source = _Source(iterable)
    if dtypes is None:
        structure = source.first()
        arrays = [_array(leaf) for leaf in leaves(structure)]
        types = [dtype_of(array) for array in arrays]
        known = [Shape(array.shape) for array in arrays]
    else:
        structure = tuple(dtypes) if isinstance(dtypes, list) else dtypes
        types = [as_dtype(leaf.value) for leaf in leaves(structure)]
        known = [UNKNOWN] * len(types)
    if shapes is not None:
        known = [Shape(shape) for shape in fitting(structure, shapes)]
    # Of the first element only the arrangement is kept.
    structure = rebuilt(structure, iter(types))
    elements = _Elements(source, structure, types, known)
    found = prefetched(elements, types, known, prefetch, name or "generator")
    return rebuilt(structure, iter(found))


def _array(leaf: Leaf) -> Any:
    try:
        return to_array(leaf.value)
    except OpError as error:
        where = f"the first element{leaf.path}"
        raise type(error)(f"{where} is no tensor: {error.message}", hint=error.hint) from None
