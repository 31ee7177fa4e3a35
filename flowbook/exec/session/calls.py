"""What a session's fetches and feeds have come to mean, by how they are spelled.

A spelling is looked up once per run; what is behind it is prepared when it is first asked for, and
forgotten when the graph, the instruments or what the master has prepared change under it.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from flowbook.exec.instruments.attached import Instruments
from flowbook.exec.master import Master
from flowbook.exec.plan.pipeline import Prepared
from flowbook.exec.plan.watching import Run
from flowbook.exec.signature.asking import asked
from flowbook.exec.signature.feeds import Feed, check_mapping
from flowbook.exec.signature.fetches import Rebuild
from flowbook.exec.signature.spelling import is_lasting, spelling
from flowbook.exec.signature.unasked import warn_of_unasked_values
from flowbook.graph.building.graph import Graph
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.redefinition.stale_runs import check_stale

# How many spellings of signatures a session remembers.
MOST_REMEMBERED = 4096


class Call:
    """A spelling of a signature: how to check its feeds, what runs, how to rebuild its result."""

    __slots__ = ("feeds", "is_stale", "prepared", "rebuild", "run")

    def __init__(
        self, prepared: Prepared, run: Run, feeds: list[Feed], rebuild: Rebuild, is_stale: bool
    ) -> None:
        self.prepared = prepared
        self.run = run
        self.feeds = feeds
        self.rebuild = rebuild
        self.is_stale = is_stale


class Calls:
    """The calls that a session remembers.

    Args:
        graph: the session's graph.
        master: who prepares what they run.

    Attributes:
        known: the calls by the spellings of their fetches and feeds.
        instruments: what watches their runs.
    """

    def __init__(self, graph: Graph, master: Master) -> None:
        self.known: dict[Any, Call] = {}
        self.instruments = Instruments(graph, self.forget)
        self._feeds: dict[Tensor, Feed] = {}
        self._graph = graph
        self._master = master
        self._changes = 0
        self._drops = 0
        self._closed = False
        self._lock = threading.RLock()

    def prepare(self, fetches: Any, feeds: Mapping[Any, Any] | None) -> Call:
        """The call of fetches and feeds, which is remembered if it may be."""
        check_mapping(feeds)
        changes = self._changes
        call = self.call(fetches, list(feeds or ()))
        self._forget_dropped()
        # A stale one is asked for anew each time: the next cell that runs it hears of it too.
        if not call.is_stale and is_lasting(fetches, feeds):
            with self._lock:
                if len(self.known) >= MOST_REMEMBERED:
                    self.known.clear()
                # What a name stood for may have been redefined meanwhile by another thread.
                if not self._closed and changes == self._changes:
                    self.known[spelling(fetches, feeds)] = call
        return call

    def call(self, fetches: Any, keys: Sequence[Any]) -> Call:
        """The call of fetches and of what is fed, which is not remembered."""
        flat, feeds, signature = asked(self._graph, fetches, keys, feed_of=self._feed)
        if flat.targets:
            warn_of_unasked_values(self._graph, fetches)
        prepared = self._master.prepare(signature, self.instruments.rewriting)
        is_stale = check_stale(prepared.operations, signature.feeds)
        run = self.instruments.running(self._master, prepared)
        return Call(prepared, run, feeds, flat.rebuild, is_stale)

    def _feed(self, tensor: Tensor) -> Feed:
        """What checks the values of a fed tensor, which is the same in all calls."""
        feed = self._feeds.get(tensor)
        if feed is None or not feed.is_current:
            feed = self._feeds[tensor] = Feed(tensor)
        return feed

    def forget(self) -> None:
        """Let every signature be asked for anew."""
        with self._lock:
            self._changes += 1
            self.known.clear()
            self._feeds.clear()

    def _forget_dropped(self) -> None:
        """Forget all calls if the master has let go of what some of them run."""
        drops = self._master.drops
        if self._drops != drops:
            with self._lock:
                self._drops = drops
                self.known.clear()

    def close(self) -> None:
        """Forget everything, and remember nothing any more."""
        with self._lock:
            self._closed = True
            self.known = {}
            self._feeds = {}
