"""A curve in memory: bounded, however many points it is given.

It is thinned out by time, but never loses an extreme: of each stretch the first, last, least and
greatest point stay, and one that is not a number. The points are kept in columns of plain numbers:
as objects, a quarter of a million of them would have Python's garbage collector, which stops every
thread, take most of a second whenever it looks at all that there is.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple


class Point(NamedTuple):
    """One value of a series.

    Attributes:
        step: the step of the training.
        wall_time: in seconds since 1970.
        value: see `Summary`.
    """

    step: int
    wall_time: float
    value: Any


class Columns(NamedTuple):
    """Points of a series, by what is known of each.

    Attributes:
        places: the places in the series.
        steps: as of `Point`.
        times: in seconds since 1970.
        values: as of `Point`.
    """

    places: Sequence[int]
    steps: Sequence[int]
    times: Sequence[float]
    values: Sequence[Any]

    def points(self) -> list[Point]:
        """The points as such."""
        return list(map(Point, self.steps, self.times, self.values))


class Curve:
    """The numbers of one tag."""

    def __init__(self) -> None:
        self._count = 0
        # A stretch is so many consecutive places, of which at most five are kept.
        self._width = 1
        self._places = array("q")
        self._values = array("d")
        self._columns: list[array[Any]] = [self._places, array("q"), array("d"), self._values]

    def add(self, step: int, wall_time: float, value: float, capacity: int) -> None:
        """Take a point, and keep so many at most: at least 10."""
        place = self._count
        for column, number in zip(self._columns, (place, step, wall_time, value), strict=True):
            column.append(number)
        self._count += 1
        if self._width > 1:
            self._thin(place)
        while len(self._places) > capacity:
            self._width *= 2
            self._thin(0)

    def _row(self, place: int) -> int:
        """Where the stretch begins that a place lies in."""
        return bisect_left(self._places, place // self._width * self._width)

    def _thin(self, place: int) -> None:
        """Keep what matters of each stretch, from the one on that a place lies in."""
        first, places, width = self._row(place), self._places, self._width
        rows: list[int] = []
        for _, stretch in groupby(range(first, len(places)), lambda row: places[row] // width):
            rows += _worth_keeping(list(stretch), self._values)
        if len(rows) < len(places) - first:
            for column in self._columns:
                column[first:] = array(column.typecode, [column[row] for row in rows])

    @property
    def state(self) -> tuple[int, int]:
        """How wide its stretches are, and how many points it was given."""
        return self._width, self._count

    def since(self, state: tuple[int, int]) -> tuple[int, None, Columns]:
        """From where on it has changed since it was in a state, and what is kept from there on."""
        width, count = state
        # The stretch that was the last one may have been joined with what came then.
        place = max(count - 1, 0) if width == self._width else 0
        first = self._row(place)
        columns = Columns(*[column[first:] for column in self._columns])
        return place // self._width * self._width, None, columns

    def points(self) -> list[Point]:
        """What is kept."""
        return Columns(*self._columns).points()


def _worth_keeping(rows: list[int], values: Sequence[float]) -> list[int]:
    """Which rows of a stretch are kept."""
    keep = {rows[0], rows[-1]}
    numbers = [row for row in rows if not math.isnan(values[row])]
    if numbers:
        keep |= {min(numbers, key=values.__getitem__), max(numbers, key=values.__getitem__)}
    if len(numbers) < len(rows):
        keep.add(next(row for row in rows if math.isnan(values[row])))
    return sorted(keep)


def thinned(points: Sequence[Point], most: int) -> list[Point]:
    """A curve in at most so many points, at least 10, which has its extremes still."""
    curve = Curve()
    for point in points:
        curve.add(*point, most)
    return curve.points()
