"""The instruments of a session, and how a signature runs under their taps.

A session without instruments runs what it always runs; so does one with instruments wherever they
have no business, and in the runs that no tap is due for.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, TypeVar

from flowbook.exec.master import Master
from flowbook.exec.plan.pipeline import Prepared
from flowbook.exec.plan.watching import Instrument, Run, Tap
from flowbook.graph.building.graph import Graph

Kind = TypeVar("Kind", bound=Instrument)


class Instruments:
    """Those of one session.

    Args:
        graph: the session's.
        on_change: a method, called after one was added, removed or changed: what was made ready
            to run before has to be asked for anew. It is held weakly: a session that nothing
            refers to is gone at once, not with the next garbage collection.
    """

    def __init__(self, graph: Graph, on_change: Callable[[], None]) -> None:
        self.graph = graph
        self.all: tuple[Instrument, ...] = ()
        self._on_change = weakref.WeakMethod(on_change)
        self._lock = threading.Lock()
        with _known_lock:
            _known.add(self)

    @property
    def rewriting(self) -> tuple[Instrument, ...]:
        """Those that rewrite plans; of several of one kind the latest."""
        if not self.all:
            return ()
        return tuple({type(each): each for each in self.all if each.rewrites}.values())

    def find(self, kind: type[Kind]) -> Kind | None:
        """The one of a kind of which a session has one at most."""
        return next((i for i in self.all if isinstance(i, kind)), None)

    def changed(self) -> None:
        """Have what was made ready to run asked for anew."""
        on_change = self._on_change()
        if on_change is not None:
            on_change()

    def add(self, instrument: Instrument) -> None:
        """Have an instrument watch all runs that begin from now on."""
        with self._lock:
            self.all += (instrument,)
        self.changed()

    def exchange(self, change: Callable[[tuple[Instrument, ...]], tuple[Instrument, ...]]) -> None:
        """Have others watch in place of those that do, as a function of these, at once."""
        with self._lock:
            self.all = change(self.all)
        self.changed()

    def remove(self, instrument: Instrument | None) -> None:
        """Be rid of an instrument; it is closed. One that is not there does not matter."""
        with self._lock:
            present = [i for i in self.all if i is instrument]
            self.all = tuple([i for i in self.all if i is not instrument])
        for each in present:
            self.changed()
            each.close()

    def close(self) -> None:
        """Close all of them."""
        with self._lock:
            closing, self.all = self.all, ()
        with ExitStack() as block:  # One that fails keeps no other from being closed.
            for instrument in reversed(closing):
                block.callback(instrument.close)

    def running(self, master: Master, prepared: Prepared) -> Run:
        """What runs a prepared signature under the instruments, with their taps if it has any."""
        if not self.all:
            return master.run
        taps = [tap for i in self.all for tap in i.tap(prepared.signature, prepared.operations)]
        run: Run = Tapped(master, taps).run if taps else master.run
        for instrument in self.all:
            run = instrument.around(prepared.sources, run)
        return run


_known: weakref.WeakSet[Instruments] = weakref.WeakSet()
_known_lock = threading.Lock()


def watch(graph: Graph, instrument: Instrument) -> Callable[[], None]:
    """Have an instrument watch the runs of all sessions that a graph has now.

    Returns:
        What ends it.
    """
    with _known_lock:
        watched = [instruments for instruments in _known if instruments.graph is graph]
    for instruments in watched:
        instruments.add(instrument)

    def end() -> None:
        for instruments in watched:
            instruments.remove(instrument)

    return end


class Tapped:
    """The runs of a prepared signature with taps.

    Runs for which no tap is due run it plainly. For the others the signature is extended by what
    the taps want; so everything is computed in the same step.
    """

    def __init__(self, master: Master, taps: Sequence[Tap]) -> None:
        self._master = master
        self._taps = taps
        self._extended: dict[tuple[Tap, ...], Prepared] = {}

    def run(self, plain: Prepared, feeds: Sequence[Any], deadline: float | None) -> Sequence[Any]:
        """Run one step; see `Run`."""
        begun = [(tap, tap.begin()) for tap in self._taps]
        due = tuple([tap for tap, take in begun if take is not None])
        if not due:
            return self._master.run(plain, feeds, deadline)
        found = self._master.run(self._prepared(plain, due), feeds, deadline)
        start = count = len(plain.signature.fetches)
        for tap, take in begun:
            if take is not None:
                end = start + len(tap.tensors)
                take(found[start:end])
                start = end
        return found[:count]

    def _prepared(self, plain: Prepared, due: tuple[Tap, ...]) -> Prepared:
        found = self._extended.get(due)
        if found is None:
            signature = plain.signature
            fetches = (*signature.fetches, *[t for tap in due for t in tap.tensors])
            found = self._extended[due] = self._master.prepare(
                signature._replace(fetches=fetches), plain.instruments
            )
        return found
