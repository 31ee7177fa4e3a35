"""What operations took in steps that were measured."""

from __future__ import annotations

import weakref
from typing import NamedTuple

from flowbook.graph.model.operation import Operation


class Measured(NamedTuple):
    """What was measured of an operation on a kind of device.

    Attributes:
        seconds: of its fastest call: what else runs on a machine only makes calls slower.
        bytes: of what it gave then.
        trips: how often it ran in a step.
    """

    seconds: float
    bytes: int
    trips: int


class Measurements:
    """What was measured of the operations of a graph; of those that are gone nothing stays.

    Attributes:
        count: how often something was added.
    """

    def __init__(self) -> None:
        self.count = 0
        self._found: weakref.WeakKeyDictionary[Operation, dict[str, Measured]] = (
            weakref.WeakKeyDictionary()
        )

    def __bool__(self) -> bool:
        return bool(self.count)

    def add(self, operation: Operation, kind: str, measured: Measured) -> None:
        """Note what an operation took on a kind of device.

        Of the same sizes the fastest counts; of others the latest.
        """
        of_kinds = self._found.setdefault(operation, {})
        before = of_kinds.get(kind)
        if before is not None and before.bytes == measured.bytes:
            fastest = min(before.seconds, measured.seconds)
            measured = measured._replace(seconds=fastest)
        of_kinds[kind] = measured
        self.count += 1

    def of(self, operation: Operation, kind: str | None = None) -> Measured | None:
        """What an operation took on a kind of device; None for any kind."""
        of_kinds = self._found.get(operation)
        if of_kinds is None:
            return None
        return of_kinds.get(kind) if kind is not None else next(iter(of_kinds.values()))
