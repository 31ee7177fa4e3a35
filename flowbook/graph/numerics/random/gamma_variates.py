"""Gamma variates, by rejection, with the values of TensorFlow 1.

Source: Marsaglia and Tsang, "A simple method for generating gamma variables", TOMS 2000.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flowbook.graph.numerics import elementary
from flowbook.graph.numerics.hot_loop import HotLoop
from flowbook.graph.numerics.random import philox, philox_numbers, sampling
from flowbook.graph.numerics.random.philox import Counter, Key
from flowbook.graph.numerics.random.philox_blocks import TRIAL, TRIAL_PLACES, block
from flowbook.graph.numerics.random.philox_numbers import uniforms_of

_Doubles = NDArray[np.float64]


def gamma(key: Key, counter: Counter, alpha: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Draw gamma variates of the given shapes and scale 1.

    Args:
        key: of the stream.
        counter: where the draw begins.
        alpha: not negative, already broadcast to the result's shape. Of 0 all variates are 0.
        dtype: of the result.
    """
    flat = alpha.astype(np.float64).reshape(-1)
    # The inverse of -0 would make infinite variates.
    np.absolute(flat, flat)
    start = philox.scalars(key, counter)

    def first_tries(blocks: Any, part: slice) -> tuple[_Doubles, NDArray[np.bool_]]:
        orders = flat[part]
        found, is_done = np.empty_like(orders), np.ones(orders.size, bool)
        # The distribution of 1 is exponential.
        ones = np.flatnonzero(orders == 1)
        if ones.size < orders.size:
            tried = np.empty((orders.size, 3))
            _first_tries(tried.reshape(-1), *start, blocks, orders.view(np.uint64))
            found, margin, uniform = tried.T
            is_done = margin > 0
            boosted = np.flatnonzero(is_done & (orders < 1))
            found[boosted] *= uniform[boosted] ** (1 / orders[boosted])
            is_done[ones] = True
        exponential = np.empty(ones.size)
        _exponentials(exponential, *start, blocks[ones])
        found[ones] = exponential
        return found, is_done

    def more_tries(blocks: Any, rows: NDArray[np.intp]) -> _Doubles:
        return _by_many_tries(_Stream(key, counter, blocks), flat[rows])

    return sampling.sampled(first_tries, more_tries, alpha.shape, dtype)


def _first_try(
    index: Any, key0: Any, key1: Any, low: Any, high: Any, place: Any, alpha: Any
) -> Any:
    """A variate, by how much it is accepted, and the uniform that makes it one of an alpha below 1.

    Where the second number is not positive the first may be any.
    """
    scalars = key0, key1, low, high
    alpha = alpha.view(np.float64)
    d, c = _scale_and_slope(alpha)
    _, x = philox_numbers.box_muller(*uniforms_of(*block(place, *scalars)))
    scaling, u = uniforms_of(*block(place + 1, *scalars))
    v = c * x + 1.0
    cube = v * v * v
    bound = x * x * 0.5 + d * (1.0 - cube + elementary.log(cube))
    return d * cube, np.minimum(bound - elementary.log(u), d * cube), scaling


def _exponential(index: Any, key0: Any, key1: Any, low: Any, high: Any, place: Any) -> tuple[Any]:
    _, u = uniforms_of(*block(place, key0, key1, low, high))
    return (-elementary.log(1.0 - u),)


_exponentials = HotLoop(
    "exponential variates",
    _exponential,
    makes=np.float64,
    width=1,
    scalars=4,
    arrays=1,
    trial=(*TRIAL, TRIAL_PLACES),
)
_first_tries = HotLoop(
    "gamma variates",
    _first_try,
    makes=np.float64,
    width=3,
    scalars=4,
    arrays=2,
    trial=(*TRIAL, TRIAL_PLACES, np.linspace(0.01, 50, 1000).view(np.uint64)),
)


def _scale_and_slope(alpha: Any) -> tuple[Any, Any]:
    # Below 1 a variate of alpha + 1 is scaled by a power of a uniform.
    d = alpha - 1 / 3 + (alpha < 1)
    return d, 1.0 / (np.sqrt(d) * 3.0)


def _by_many_tries(stream: _Stream, alpha: _Doubles) -> _Doubles:
    d, c = _scale_and_slope(alpha)
    found: _Doubles = np.empty_like(d)
    rows = np.arange(d.size)
    is_done = np.zeros(d.size, bool)
    while rows.size:
        x = stream.normals.take(rows)
        v = 1 + c[rows] * x
        tried = v > 0
        x, v, at = x[tried], v[tried] ** 3, rows[tried]
        bound = 0.5 * x * x + d[at] * (1 - v + np.log(v))
        # An infinite alpha makes the bound NaN; there is nothing to refuse.
        kept = ~(np.log(stream.uniforms.take(at)) >= bound)
        found[at[kept]] = d[at[kept]] * v[kept]
        is_done[at[kept]] = True
        rows = rows[~is_done[rows]]
    boosted = np.flatnonzero(alpha < 1)
    found[boosted] *= stream.uniforms.take(boosted) ** (1 / alpha[boosted])
    return found


class _Stream:
    """What each sample takes of its blocks: two numbers of one, the second first, then the next.

    Args:
        key: of the stream.
        counter: where the draw begins.
        first: the first block of each sample.
    """

    def __init__(self, key: Key, counter: Counter, first: NDArray[np.uint64]) -> None:
        self._key, self._counter, self._next = key, counter, first
        self.uniforms = _Pairs(self, philox_numbers.uniform_float64, first.size)
        self.normals = _Pairs(self, philox_numbers.normal_float64, first.size)

    def words(self, rows: NDArray[np.intp]) -> NDArray[np.uint32]:
        """The next block of some samples."""
        words = philox.blocks_at(self._key, self._counter, self._next[rows])
        self._next[rows] += np.uint64(1)
        return words.reshape(-1)


class _Pairs:
    """Two numbers for each sample, and how many of them are left."""

    def __init__(self, stream: _Stream, make: Callable[[Any], _Doubles], size: int) -> None:
        self._stream, self._make = stream, make
        self._of = np.empty((size, 2))
        self._left = np.zeros(size, np.intp)

    def take(self, rows: NDArray[np.intp]) -> _Doubles:
        """The next number of some samples."""
        empty: NDArray[np.intp] = rows[self._left[rows] == 0]
        self._of[empty] = self._make(self._stream.words(empty)).reshape(-1, 2)
        self._left[empty] = 2
        self._left[rows] -= 1
        found: _Doubles = self._of[rows, self._left[rows]]
        return found
