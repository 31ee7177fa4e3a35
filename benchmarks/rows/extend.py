"""`run` after the graph was extended by one operation: 3,000 operations, 200 extensions.

Building the new operation is not timed.  The chain is of `maximum` with a fed floor: a chain of
negations would fold in TensorFlow's optimizer.  TF1 runs with and without that optimizer; the
ratio takes the faster.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import tf1
from benchmarks.case import AtMost, Case, Row

_LENGTH = 3_000
_EXTENSIONS = 200
_BURST = 20
_X = np.asarray(1.5, dtype=np.float32)
_FLOOR = np.asarray(-1.0, dtype=np.float32)

MakeSession = Callable[[Any], Any]


class _GrowingChain:
    """A chain of 3,000 operations, run once to its end, that grows by one at a time."""

    def __init__(self, system: Any, session_on: MakeSession) -> None:
        self._system = system
        self._graph = system.Graph()
        with self._graph.as_default():
            x = self.end = system.placeholder(system.float32, [], name="x")
            floor = self._floor = system.placeholder(system.float32, [], name="floor")
            for _ in range(_LENGTH):
                self.end = system.maximum(self.end, floor)
                if self.end.op.inputs[0] is x:
                    self.start = self.end
        self._feeds = {x: _X, floor: _FLOOR}
        self._session = session_on(self._graph)
        self.run(self.end)
        self.run(self.start)

    def run(self, fetch: Any) -> Any:
        return self._session.run(fetch, self._feeds)

    def lengthen(self) -> None:
        """Add a new end of the whole chain."""
        with self._graph.as_default():
            self.end = self._system.maximum(self.end, self._floor)

    def add_independent(self) -> Any:
        """Add an operation that depends on no other of the chain, and return its output."""
        with self._graph.as_default():
            return self._system.negative(self._floor)


def _old(system: Any, session_on: MakeSession) -> Case:
    chain = _GrowingChain(system, session_on)
    return Case(
        before_each=chain.lengthen,
        step=lambda: chain.run(chain.start),
        value=chain.run(chain.start),
        burst=_BURST,
    )


def _independent(system: Any, session_on: MakeSession) -> Case:
    chain = _GrowingChain(system, session_on)
    new = chain.add_independent()

    def extend() -> None:
        nonlocal new
        new = chain.add_independent()

    return Case(before_each=extend, step=lambda: chain.run(new), value=chain.run(new), burst=_BURST)


def _end(system: Any, session_on: MakeSession) -> Case:
    chain = _GrowingChain(system, session_on)
    chain.lengthen()
    return Case(
        before_each=chain.lengthen,
        step=lambda: chain.run(chain.end),
        value=chain.run(chain.end),
        burst=_BURST,
    )


def _row(name: str, what: str, make: Callable[[Any, MakeSession], Case], seconds: float) -> Row:
    return Row(
        name=name,
        title=f"`run` after extending 3,000 operations by one: {what}",
        cases={
            "flowbook": lambda fb: make(fb, lambda graph: fb.Session(graph=graph)),
            "tf1": lambda tf: make(tf, lambda graph: tf1.session(tf, graph)),
            "tf1 unoptimized": lambda tf: make(
                tf, lambda graph: tf1.session(tf, graph, rewrite=False)
            ),
        },
        target=AtMost(seconds),
        unit="ms",
        rounds=_EXTENSIONS // _BURST,
        shows_growth=True,
    )


ROWS = (
    _row("extend_old", "fetching what was there before", _old, 0.02e-3),
    _row("extend_independent", "an independent new operation", _independent, 0.3e-3),
    _row("extend_end", "a new end of the whole chain", _end, 10e-3),
)
