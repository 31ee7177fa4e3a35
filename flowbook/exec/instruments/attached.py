"""The instruments attached to a session, and what runs in their executables' place under taps.

A session without instruments runs what it always runs; so does one with instruments wherever they
have no business, and in the runs that no tap is due for.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from flowbook.exec.engine.executable import Executable
from flowbook.exec.engine.extension import Extension
from flowbook.exec.engine.instrument import Instrument, Signature, Tap
from flowbook.exec.master import Master
from flowbook.graph.building.graph import Graph

Kind = TypeVar("Kind", bound=Instrument)


class Instruments:
    """Those of one session.

    Args:
        graph: the session's.
        on_change: called after one was added, removed or changed: what was made ready to run
            before has to be asked for anew.
    """

    def __init__(self, graph: Graph, on_change: Callable[[], None]) -> None:
        self.graph = graph
        self.all: tuple[Instrument, ...] = ()
        self.changed = on_change
        self._lock = threading.Lock()
        with _known_lock:
            _known.add(self)

    @property
    def rewriting(self) -> tuple[Instrument, ...]:
        """Those that rewrite plans."""
        return tuple([i for i in self.all if i.rewrites])

    def find(self, kind: type[Kind]) -> Kind | None:
        """The one of a kind of which a session has one at most."""
        return next((i for i in self.all if isinstance(i, kind)), None)

    def add(self, instrument: Instrument) -> None:
        """Have an instrument watch all runs that begin from now on."""
        with self._lock:
            self.all += (instrument,)
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
        for instrument in closing:
            instrument.close()

    def asked_for(self, master: Master, signature: Signature) -> Executable | Extension | Tapped:
        """What runs a signature under the instruments."""
        if not self.all:
            return master.plainly_asked_for(signature)
        rewriting = self.rewriting
        executable = master.asked_for(signature, rewriting)
        taps = [tap for i in self.all for tap in i.tap(signature, executable)]
        return Tapped(master, signature, executable, rewriting, taps) if taps else executable


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
    """A signature with taps, in the place of its executable.

    Runs for which no tap is due run the plain executable. For the others the signature is extended
    by what the taps want; so everything is computed in the same step.
    """

    # The master sees to that for each of the executables.
    is_initialized = True

    def __init__(
        self,
        master: Master,
        signature: Signature,
        plain: Executable,
        rewriting: Sequence[Instrument],
        taps: Sequence[Tap],
    ) -> None:
        self._master = master
        self._signature = signature
        self._plain = plain
        self._rewriting = rewriting
        self._taps = taps
        self._extended: dict[tuple[Tap, ...], Executable] = {}

    @property
    def is_stale(self) -> bool:
        """Whether it used old definitions when it was last asked for."""
        return self._plain.is_stale

    @property
    def is_dropped(self) -> bool:
        """Whether the master keeps any of its executables no longer."""
        return any(e.is_dropped for e in (self._plain, *self._extended.values()))

    def run(self, feeds: Sequence[Any], deadline: float | None = None) -> Sequence[Any]:
        """Run one step; see `Executable.run`."""
        begun = [(tap, tap.begin()) for tap in self._taps]
        due = tuple([tap for tap, take in begun if take is not None])
        if not due:
            return self._master.run(self._plain, feeds, deadline)
        found = self._master.run(self._executable(due), feeds, deadline)
        start = count = len(self._signature.fetches)
        for tap, take in begun:
            if take is not None:
                end = start + len(tap.tensors)
                take(found[start:end])
                start = end
        return found[:count]

    def _executable(self, due: tuple[Tap, ...]) -> Executable:
        executable = self._extended.get(due)
        if executable is None:
            fetches = (*self._signature.fetches, *[t for tap in due for t in tap.tensors])
            executable = self._extended[due] = self._master.executable(
                self._signature._replace(fetches=fetches), self._rewriting
            )
        return executable
