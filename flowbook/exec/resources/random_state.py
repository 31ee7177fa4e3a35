"""The resource behind a random operation: its key, and the counter of what it has drawn.

The key comes from the graph's and the operation's seed. With neither set it comes from entropy
that the session draws once and records, so that a session can be repeated. Concurrent steps draw
disjoint ranges of the counter.

What a step draws counts when the step has come to its end: one that fails or is interrupted puts
the counters back, as far as nobody has drawn since, so that running it again gives what it would
have given.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar

import numpy as np

from flowbook.exec.resources.kinds import Birth, makes
from flowbook.graph.model.dtypes import DType
from flowbook.graph.model.touch import RANDOM_STATE
from flowbook.graph.numerics.random import philox

Result = TypeVar("Result")

# The graph's seed where only the operation has one (as in TensorFlow 1).
DEFAULT_GRAPH_SEED = 87654321


class Draws:
    """The draws of one step."""

    def __init__(self) -> None:
        self._drawn: list[tuple[RandomState, philox.Counter, philox.Counter]] = []

    def during(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call a function that is the step, or a part of it.

        If it does not come to its end, nothing counts that was drawn in this call or before.
        """
        try:
            # In a context of its own there is nothing to put back, nor to interrupt.
            return copy_context().run(self._call, function, arguments)
        except BaseException:
            while self._drawn:
                state, before, after = self._drawn[-1]
                state.take_back(before, after)
                self._drawn.pop()
            raise

    def _call(self, function: Callable[..., Result], arguments: tuple[Any, ...]) -> Result:
        _draws.set(self._drawn)
        return function(*arguments)


def keep_draws() -> None:
    """Have all count that the step has drawn for which this code runs, whatever becomes of it."""
    drawn = _draws.get()
    if drawn is not None:
        drawn.clear()


_draws: ContextVar[list[tuple[RandomState, philox.Counter, philox.Counter]] | None] = ContextVar(
    "flowbook_draws", default=None
)


class RandomState:
    """The state of one random operation.

    Args:
        name: the operation's name, from whose hash its seed comes by default.
        graph_seed: the graph's seed, or None.
        seed: the operation's seed, or None.
        entropy: the session's, used where neither seed is set.
    """

    __slots__ = ("_counter", "_first", "_key", "_lock")

    def __init__(self, name: str, graph_seed: int | None, seed: int | None, entropy: int) -> None:
        self._first = self._key, self._counter = seeded(name, graph_seed, seed, entropy)
        self._lock = threading.Lock()

    def uniform(self, shape: Any, dtype: DType) -> Any:
        """Uniform values in [0, 1)."""
        return self._draw("uniform", shape, dtype)

    def normal(self, shape: Any, dtype: DType) -> Any:
        """Standard normal values."""
        return self._draw("normal", shape, dtype)

    def integers(self, shape: Any, low: Any, high: Any, dtype: DType) -> Any:
        """Uniform integers in [low, high)."""
        return self._draw("uniform_int", shape, dtype, low=int(low), high=int(high))

    def reserve(self, blocks: int) -> tuple[philox.Key, philox.Counter]:
        """The key, and the counter of the first of `blocks` blocks that no other draw gets."""
        drawn = _draws.get()
        with self._lock:
            counter = self._counter
            after = philox.advance(counter, blocks)
            if drawn is not None:
                # Before it is drawn: what an interrupt prevents does not match, and is left.
                drawn.append((self, counter, after))
            self._counter = after
        return self._key, counter

    def state(self) -> Any:
        """Its key and its counter."""
        with self._lock:
            return [*self._key, *self._counter]

    def set_state(self, state: Any) -> None:
        """Go on from a key and a counter; ValueError or TypeError if it is none."""
        if any(type(word) is not int or not 0 <= word < 1 << 32 for word in state):
            raise ValueError("a key and a counter are words of 32 bits")
        low, high, a, b, c, d = state
        with self._lock:
            self._key, self._counter = (low, high), (a, b, c, d)

    def forget(self) -> None:
        """Begin afresh, with the first numbers again."""
        with self._lock:
            self._key, self._counter = self._first

    def take_back(self, before: philox.Counter, after: philox.Counter) -> None:
        """Put the counter back to before a draw, unless somebody has drawn since."""
        with self._lock:
            if self._counter == after:
                self._counter = before

    def _draw(self, kind: Any, shape: Any, dtype: DType, **arguments: Any) -> Any:
        dims = tuple(int(d) for d in np.asarray(shape).ravel())
        blocks = philox.blocks_for(dtype.numpy, int(np.prod(dims, dtype=np.int64)))
        key, counter = self.reserve(blocks)
        return philox.draw(kind, key, counter, dims, dtype.numpy, **arguments)[0]


def seeded(
    name: str, graph_seed: int | None, seed: int | None, entropy: int
) -> tuple[philox.Key, philox.Counter]:
    """The key that an operation draws with, and its first counter; arguments as `RandomState`."""
    if graph_seed is None:
        graph_seed = entropy if seed is None else DEFAULT_GRAPH_SEED
    if seed is None:
        seed = zlib.crc32(name.encode())
    return philox.key_and_counter(graph_seed, seed)


@makes(RANDOM_STATE)
def _random_state(birth: Birth) -> RandomState:
    seeds = birth.attributes["graph_seed"], birth.attributes["seed"]
    return RandomState(birth.key.name, *seeds, birth.entropy)
