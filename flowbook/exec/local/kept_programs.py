"""The programs that a master keeps ready to run, and which of them go when they become too many."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from flowbook.exec.engine.runnable import Runnable
from flowbook.exec.engine.runner import Stage
from flowbook.exec.plan.pipeline import Growing, Prepared
from flowbook.exec.plan.watching import Instrument
from flowbook.exec.signature.signature import Signature

# Programs are kept while they have no more nodes than this together, the latest in any case. Those
# that ran only once go first, so that a graph which grows under a loop drops its past, and not what
# a training loop comes back to; beyond the second number everything goes.
KEPT_NODES = 100_000
KEPT_NODES_IN_USE = 1_000_000

# What a program costs besides its nodes, in nodes.
OVERHEAD = 20

# So many programs are kept for what a new signature may begin with: the latest that were prepared,
# or that others have begun with.
MOST_BASES = 8

# What was asked for.
Key = tuple[Signature, tuple[Instrument, ...]]


@dataclass(slots=True, eq=False)
class Kept:
    """What runs a prepared signature, and what was seen to for it.

    Attributes:
        runner: what runs it.
        seen: an epoch of the stores, and how many of the first operations that touch something were
            seen to in it, as the program that this one begins with needs them.
        epoch: the one in which all that it needs was last seen to be initialised.
    """

    runner: Runnable[Any]
    seen: tuple[int, int] = (-1, 0)
    epoch: int = -1


class Programs:
    """What was prepared, by what was asked for, and what runs it.

    Attributes:
        lock: what every change holds, and whatever belongs together with one.
        kept: what runs each prepared signature.
        drops: how many programs were dropped.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.kept: dict[Prepared, Kept] = {}
        self.drops = 0
        self._prepared: dict[Key, Prepared] = {}
        self._growing: deque[Growing] = deque(maxlen=MOST_BASES)
        self._nodes = 0

    def find(self, key: Key) -> Prepared | None:
        """What was prepared for a key, if it is still there."""
        return self._prepared.get(key)

    @property
    def all(self) -> list[Prepared]:
        """What there is, the first prepared first."""
        return list(self._prepared.values())

    def bases_of(self, signature: Signature) -> Iterator[Growing]:
        """What a signature may begin with; the latest is the likeliest."""
        return (each for each in reversed(self._growing) if each.grows_into(signature))

    def add(
        self,
        key: Key,
        prepared: Prepared,
        kept: Kept,
        growing: Growing | None,
        base: Growing | None = None,
    ) -> None:
        """Keep one more, and make room for it.

        Args:
            key: what was asked for.
            prepared: what was prepared for that.
            kept: what runs it.
            growing: of it, if others may begin with it.
            base: what it begins with.
        """
        if base is not None:
            self._growing.remove(base)
            self._growing.append(base)
        if growing is not None and growing.is_large:
            self._growing.append(growing)
        self.kept[prepared] = kept
        self._prepared[key] = prepared
        self._nodes += _size(prepared)
        if self._nodes > KEPT_NODES:
            self._make_room(key)

    def _make_room(self, latest: Key) -> None:
        for key, prepared in list(self._prepared.items()):
            ran_again = self.kept[prepared].runner.stage is Stage.WRITTEN
            if key is not latest and (not ran_again or self._nodes > KEPT_NODES_IN_USE):
                self.drop(key)
            if self._nodes <= KEPT_NODES * 3 // 4:
                break  # Room for many more at once: dropping has a price per time.

    def discard(self, key: Key) -> None:
        """Let go of what was prepared for a key, if it is still there."""
        if key in self._prepared:
            self.drop(key)

    def drop(self, key: Key) -> Runnable[Any]:
        """Let go of what was prepared for a key; return what ran it."""
        prepared = self._prepared.pop(key)
        runner = self.kept.pop(prepared).runner
        others = [each for each in self._growing if each.prepared is not prepared]
        self._growing = deque(others, MOST_BASES)
        self._nodes -= _size(prepared)
        self.drops += 1
        return runner

    def drop_where(self, is_over: Callable[[Prepared], bool]) -> dict[Prepared, Runnable[Any]]:
        """Let go of all of which something holds; return them, and what ran them."""
        found = [(key, each) for key, each in self._prepared.items() if is_over(each)]
        return {each: self.drop(key) for key, each in found}

    def clear(self) -> None:
        """Let go of all."""
        self._prepared.clear()
        self.kept.clear()
        self._growing.clear()
        self._nodes = 0


def _size(prepared: Prepared) -> int:
    """What keeping it costs, in nodes."""
    return sum([len(part.nodes) for part in prepared.program.parts], OVERHEAD)
