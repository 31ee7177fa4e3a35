"""Indices in a run: one that lies outside is an error that names it, its place, and the bound.

An index is never wrapped or clipped.
"""

from __future__ import annotations

import operator
from functools import reduce
from typing import Any

import numpy as np

from flowbook.graph.model.errors import InvalidIndexError


def check_indices(indices: Any, count: int, what: str = "index") -> None:
    """See in a run that all indices lie in [0, count).

    Raises:
        InvalidIndexError: naming the first that does not.
    """
    if not are_within(indices, count):
        raise outside(indices, (indices < 0) | (indices >= count), count, what)


def are_within(indices: Any, count: int) -> bool:
    """Whether all of them, int32, int64 or unsigned, lie in [0, count)."""
    # As unsigned numbers the negative ones are the largest: one pass finds both kinds.
    return not indices.size or int(indices.view(f"u{indices.dtype.itemsize}").max()) < count


def check_vectors(indices: Any, dims: tuple[int, ...]) -> None:
    """See in a run that all vectors of indices, along the last axis, lie within a shape.

    Raises:
        InvalidIndexError: naming the first that does not.
    """
    if not indices.size or not len(dims):
        return
    columns = [(indices[..., axis], length) for axis, length in enumerate(dims)]
    if not all(are_within(column, length) for column, length in columns):
        place = _first([(column < 0) | (column >= length) for column, length in columns])
        raise InvalidIndexError(
            f"indices {indices[place].tolist()} lie outside the shape {list(dims)}{_at(place)}"
        )


def outside(indices: Any, wrong: Any, count: int, what: str) -> InvalidIndexError:
    """The error for the first of the wrong indices."""
    place = _first([wrong])
    found = int(indices[place])
    return InvalidIndexError(
        f"{what} {found} is out of range: there are {count}, from 0{_at(place)}"
    )


def _first(wrong: list[Any]) -> tuple[int, ...]:
    """The first place at which one of several arrays holds."""
    holds = reduce(operator.or_, wrong)
    return tuple(int(p) for p in np.unravel_index(int(holds.argmax()), holds.shape))


def _at(place: tuple[int, ...]) -> str:
    return f" (element {list(place)})" if place else ""
