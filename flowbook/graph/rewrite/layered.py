"""Tables that grow without a copy of what they held before.

A graph of many thousand operations that grows by a few is prepared again in proportion to these
only if the tables of what was there are shared. Nobody changes a table any more that another one
has grown from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TypeAlias, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Layered(Mapping[K, V]):
    """A table that begins with another one.

    Args:
        base: the table that it begins with, which is shared.
        own: what was added, or put in the place of what is there.
    """

    __slots__ = ("_base", "_own")

    def __init__(self, base: dict[K, V], own: dict[K, V]) -> None:
        self._base = base
        self._own = own

    def __getitem__(self, key: K) -> V:
        return self._own[key] if key in self._own else self._base[key]

    def __contains__(self, key: object) -> bool:
        return key in self._own or key in self._base

    def __iter__(self) -> Iterator[K]:
        yield from self._base
        yield from self._added

    def __len__(self) -> int:
        return len(self._base) + sum(1 for _ in self._added)

    @property
    def _added(self) -> Iterable[K]:
        return (key for key in self._own if key not in self._base)

    def __setitem__(self, key: K, value: V) -> None:
        self._own[key] = value

    def setdefault(self, key: K, default: V) -> V:
        """What the table has for a key; it gets `default` if it has nothing."""
        return self[key] if key in self else self._own.setdefault(key, default)

    def update(self, pairs: Mapping[K, V] | Iterable[tuple[K, V]]) -> None:
        """Put all of these into the table."""
        self._own.update(pairs)

    def grown(self) -> Layered[K, V]:
        """A table that begins with what this one holds; see `grown`."""
        if len(self._own) ** 2 > len(self._base):
            return Layered({**self._base, **self._own}, {})
        return Layered(self._base, self._own.copy())

    def since(self, count: int) -> Iterator[K]:
        """Its keys but for the first ones; see `since`."""
        if count < len(self._base):
            return islice(iter(self), count, None)
        return islice(self._added, count - len(self._base), None)


Table: TypeAlias = dict[K, V] | Layered[K, V]


def grown(table: Table[K, V]) -> Table[K, V]:
    """A table that begins with what another one holds, which does not change any more.

    What was added to a table is copied, and what that began with is not: so the first is kept much
    smaller than the second. From time to time one table is made of both.
    """
    if isinstance(table, dict):
        return Layered(table, {}) if table else {}
    return table.grown()


def since(table: Mapping[K, V], count: int) -> Iterator[K]:
    """The keys of a table but for the first ones, in the order in which they came."""
    return table.since(count) if type(table) is Layered else islice(table, count, None)
