"""Partial shapes: what is known of a tensor's shape before it has a value.

A dimension is a non-negative int, or None where it is unknown; a shape of unknown rank has
`dims` None. Shapes are immutable and compare by what they know.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from flowbook.graph.model.elsewhere import elsewhere
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError

__all__ = ["Shape"]

Dims = tuple["int | None", ...]


# What TensorFlow 1 calls otherwise.
_ELSEWHERE = {
    "assert_has_rank": "shape.with_rank(rank)",
    "assert_is_compatible_with": "shape.merge(other)",
    "assert_is_fully_defined": "shape.is_fully_defined",
    "assert_same_rank": "shape.with_rank(other.rank)",
    "merge_with": "shape.merge(other)",
    "most_specific_compatible_shape": "shape.generalise(other)",
    "ndims": "shape.rank",
    "num_elements": "shape.size",
    "value": "the dimension itself: an int, or None where it is unknown",
    "with_rank_at_least": "shape.rank, which is None where it is unknown",
    "with_rank_at_most": "shape.rank, which is None where it is unknown",
}


@elsewhere(_ELSEWHERE)
class Shape:
    """A possibly partially known shape.

    >>> Shape([None, 784]).merge(Shape([32, None]))
    Shape([32, 784])
    """

    __slots__ = ("dims",)

    def __init__(self, dims: Any = None) -> None:
        if isinstance(dims, Shape):
            self.dims: Dims | None = dims.dims
        elif dims is None:
            self.dims = None
        else:
            if not isinstance(dims, Iterable):
                dims = (dims,)
            self.dims = tuple(_dimension(d) for d in dims)

    @staticmethod
    def of(dims: Dims | None) -> Shape:
        """The shape of dimensions already known to be a tuple of ints and Nones (no checks)."""
        shape = _new(Shape)
        shape.dims = dims
        return shape

    @property
    def rank(self) -> int | None:
        """The number of dimensions, or None."""
        return None if self.dims is None else len(self.dims)

    @property
    def is_fully_defined(self) -> bool:
        """Whether every dimension is known."""
        return self.dims is not None and None not in self.dims

    @property
    def size(self) -> int | None:
        """The number of elements, or None while a dimension is unknown."""
        if self.dims is None:
            return None
        size = 1
        for d in self.dims:
            if d is None:
                return None
            size *= d
        return size

    def as_list(self) -> list[int | None]:
        """The dimensions as a list; ValueError when the rank is unknown."""
        return list(self._known())

    def _known(self) -> Dims:
        if self.dims is None:
            raise InvalidArgumentError("the rank of this shape is unknown")
        return self.dims

    def is_compatible_with(self, other: Any) -> bool:
        """Whether one value could have both shapes."""
        a, b = self.dims, Shape(other).dims
        if a is None or b is None:
            return True
        return len(a) == len(b) and all(
            p is None or q is None or p == q for p, q in zip(a, b, strict=True)
        )

    def admits(self, other: Shape) -> bool:
        """Whether every value that could have the other shape could have this one."""
        return self.generalise(other).dims == self.dims

    def merge(self, other: Any) -> Shape:
        """What both shapes together know; InvalidArgumentError where they contradict."""
        known = Shape(other)
        if self.dims is None or self.dims == known.dims:
            return known
        if known.dims is None:
            return self
        if not self.is_compatible_with(known):
            raise InvalidArgumentError(f"shapes {self} and {known} are not compatible")
        return Shape.of(
            tuple(p if q is None else q for p, q in zip(self.dims, known.dims, strict=True))
        )

    def generalise(self, other: Shape) -> Shape:
        """The most specific shape that both could be an instance of."""
        a, b = self.dims, other.dims
        if a is None or b is None or len(a) != len(b):
            return UNKNOWN
        return Shape.of(tuple(p if p == q else None for p, q in zip(a, b, strict=True)))

    def concatenate(self, other: Any) -> Shape:
        """The dimensions of self followed by those of other."""
        tail = Shape(other).dims
        if self.dims is None or tail is None:
            return UNKNOWN
        return Shape.of(self.dims + tail)

    def with_rank(self, rank: int) -> Shape:
        """This shape, known to have the given rank."""
        return self.merge(Shape.of((None,) * rank))

    def __len__(self) -> int:
        return len(self._known())

    def __iter__(self) -> Iterator[int | None]:
        return iter(self._known())

    def __getitem__(self, key: Any) -> Any:
        """A dimension, or the shape of some of them; where the rank is unknown, so are they."""
        if self.dims is None:
            return UNKNOWN if isinstance(key, slice) else None
        found = self.dims[key]
        return Shape.of(found) if isinstance(key, slice) else found

    def __bool__(self) -> bool:
        return self.dims is not None

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Shape):
            return self.dims == other.dims
        if other is None or isinstance(other, list | tuple):
            try:
                return self.dims == Shape(other).dims
            except (TypeError, ValueError):
                return False
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.dims)

    def __add__(self, other: Any) -> Shape:
        return self.concatenate(other)

    def __radd__(self, other: Any) -> Shape:
        return Shape(other).concatenate(self)

    def __str__(self) -> str:
        if self.dims is None:
            return "<unknown>"
        return "[" + ", ".join("?" if d is None else str(d) for d in self.dims) + "]"

    def __repr__(self) -> str:
        return "Shape(None)" if self.dims is None else f"Shape({list(self.dims)})"


_new = object.__new__


def _dimension(value: Any) -> int | None:
    if value is None:
        return None
    try:
        if isinstance(value, bool):
            raise AttributeError
        dimension = value.__index__()
    except (AttributeError, TypeError):  # NumPy's bools have an __index__ that raises.
        raise InvalidTypeError(
            f"a dimension is an int or None, not {value!r}",
            hint="a shape known only in the run is given as an int32 tensor, as by fb.shape(x)",
        ) from None
    if dimension < 0:
        raise InvalidArgumentError(
            f"a dimension is not negative: {dimension}", hint="an unknown dimension is None"
        )
    return int(dimension)


UNKNOWN = Shape.of(None)
SCALAR = Shape.of(())


def broadcast(a: Shape, b: Shape) -> Shape:
    """The shape of an elementwise operation's result, by NumPy's broadcasting rules.

    Raises:
        InvalidArgumentError: if two known dimensions differ and neither is 1.
    """
    p, q = a.dims, b.dims
    if p == q:
        return a
    if p is None or q is None:
        return UNKNOWN
    if not q:
        return a
    if not p:
        return b
    rank = max(len(p), len(q))
    dims: list[int | None] = []
    for m, n in zip((1,) * (rank - len(p)) + p, (1,) * (rank - len(q)) + q, strict=True):
        if m == 1 or m == n:
            dims.append(n)
        elif n == 1 or n is None:
            dims.append(m)
        elif m is None:
            dims.append(n)
        else:
            raise InvalidArgumentError(
                f"shapes {a} and {b} do not broadcast: {m} against {n}",
                hint="dimensions must be equal, or one of them 1, counted from the last",
            )
    return Shape.of(tuple(dims))
