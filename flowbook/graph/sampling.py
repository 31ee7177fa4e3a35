"""Distributions whose samples take a number of random words that only the words decide.

Each function draws from the Philox stream of a key, beginning at a counter. So that a sample does
not depend on how many words those before it took, every sample, or for normals every group that
one block makes, has `BLOCKS` blocks of its own; it takes the first of them, and further ones while
it is rejected. All samples of a draw are made together, and those rejected once more together.
Samples are computed in float64, and rounded to the dtype that is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import numpy as np
from ml_dtypes import finfo
from numpy.typing import NDArray

from flowbook.graph import philox, philox_numbers
from flowbook.graph.philox import Counter, Key

BLOCKS = 256
"""How many blocks of the stream a sample may take; rejections never come near."""

# So many samples at a time: of fewer, the calls for them cost a third of the time.
_CHUNK = 65536

_Doubles = NDArray[np.float64]
_Sample = Callable[[NDArray[np.uint64], slice], Any]


def blocks_for(size: int) -> int:
    """How many blocks a draw of `size` elements takes, whatever its distribution here."""
    return BLOCKS * size


def truncated_normal(
    key: Key, counter: Counter, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> NDArray[Any]:
    """Draw standard normals, none further than 2 from 0; those further out are drawn again.

    The values are TensorFlow's: in groups of as many as one block makes, a group's first values
    within the limits.
    """
    make: Callable[[Any], Any] = philox_numbers.normal_float32
    width = 4
    if dtype.itemsize == 8:
        make, width = philox_numbers.normal_float64, 2
    # A group of two takes half the blocks of one of four.
    stride = np.uint64(BLOCKS * width // 4)
    size = math.prod(shape)
    groups = -(-size // width)
    result = np.empty((groups, width), dtype)
    for part in _parts(groups):
        first = np.arange(part.start, part.stop, dtype=np.uint64) * stride

        def draw(rows: Any, turn: int, first: Any = first) -> Any:
            words = philox.blocks_at(key, counter, first[rows] + np.uint64(turn))
            return make(words.reshape(-1)).reshape(-1, width)

        result[part] = _within_limits(draw, part.stop - part.start, width)
    return result.reshape(-1)[:size].reshape(shape)


def _within_limits(draw: Callable[[Any, int], Any], groups: int, width: int) -> Any:
    rows = np.arange(groups)
    values = draw(rows, 0)
    found = values.copy()
    # The truth values of a group, as one number: NumPy reduces short rows slowly.
    rows = np.flatnonzero((np.abs(values) >= 2).view(f"u{width}"))
    values = values[rows]
    filled = np.zeros(groups, np.intp)
    for turn in count(1):
        for column in values.T:
            kept = (np.abs(column) < 2) & (filled[rows] < width)
            found[rows[kept], filled[rows[kept]]] = column[kept]
            filled[rows[kept]] += 1
        rows = rows[filled[rows] < width]
        if not rows.size:
            return found
        values = draw(rows, turn)


def gamma(key: Key, counter: Counter, alpha: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Draw gamma variates of the given shapes and scale 1; the values are TensorFlow's.

    Args:
        key: of the stream.
        counter: where the draw begins.
        alpha: not negative, already broadcast to the result's shape. Of 0 all variates are 0.
        dtype: of the result.

    Source: Marsaglia and Tsang, "A simple method for generating gamma variables", TOMS 2000.
    """
    flat = alpha.astype(np.float64).reshape(-1)

    def sample(first: NDArray[np.uint64], part: slice) -> _Doubles:
        return _gamma(key, counter, first, flat[part])

    return _sampled(sample, alpha.shape, dtype)


def _gamma(key: Key, counter: Counter, first: Any, alpha: _Doubles) -> _Doubles:
    # Below 1 a variate of alpha + 1 is scaled by a power of a uniform.
    small = alpha < 1
    d = np.where(small, alpha + 2 / 3, alpha - 1 / 3)
    c = 1 / (3 * np.sqrt(d))
    stream = _Stream(key, counter, first)
    found = np.empty_like(d)
    # The distribution of 1 is exponential.
    is_one = alpha == 1
    ones, rows = np.flatnonzero(is_one), np.flatnonzero(~is_one)
    found[ones] = -np.log1p(-stream.uniforms(ones))
    is_done = np.zeros(d.size, bool)
    while rows.size:
        x = stream.normals(rows)
        v = 1 + c[rows] * x
        tried = v > 0
        x, v, at = x[tried], v[tried] ** 3, rows[tried]
        bound = 0.5 * x * x + d[at] * (1 - v + np.log(v))
        # An infinite alpha makes the bound NaN; there is nothing to refuse.
        kept = ~(np.log(stream.uniforms(at)) >= bound)
        found[at[kept]] = d[at[kept]] * v[kept]
        is_done[at[kept]] = True
        rows = rows[~is_done[rows]]
    boosted = np.flatnonzero(small)
    with np.errstate(divide="ignore", over="ignore"):
        found[boosted] *= stream.uniforms(boosted) ** (1 / alpha[boosted])
    return found


def poisson(key: Key, counter: Counter, lam: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Draw Poisson variates of the given means.

    Args:
        key: of the stream.
        counter: where the draw begins.
        lam: not negative, already broadcast to the result's shape.
        dtype: of the result; variates beyond its greatest value become that.

    The values are TensorFlow's. Below a mean of 10 uniforms are multiplied (Knuth, "The art of
    computer programming", volume 2, 3.4.1); above it is Hoermann's transformed rejection, "The
    transformed rejection method for generating Poisson random variables", 1993.
    """
    flat = lam.astype(np.float64).reshape(-1)
    greatest = np.iinfo(dtype).max if dtype.kind in "iu" else float(finfo(dtype).max)  # type: ignore[no-untyped-call]

    def sample(first: NDArray[np.uint64], part: slice) -> Any:
        mean = flat[part]
        few = mean < 10
        found = np.empty_like(mean)
        found[few] = _few(key, counter, first[few], mean[few])
        found[~few] = _many(key, counter, first[~few], mean[~few])
        # As float64 the greatest int64 is one more than itself.
        inside = found < float(greatest)
        return np.where(inside, np.where(inside, found, 0).astype(dtype), dtype.type(greatest))

    return _sampled(sample, lam.shape, dtype)


def _few(key: Key, counter: Counter, first: Any, mean: _Doubles) -> _Doubles:
    """How many uniforms can be multiplied until they fall to exp(-mean); so does TensorFlow."""
    limit, found, product = np.exp(-mean), np.zeros_like(mean), np.ones_like(mean)
    rows = np.arange(mean.size)
    for turn in count():
        if not rows.size:
            return found
        uniforms = _uniforms(key, counter, first[rows] + np.uint64(turn))
        once = product * uniforms[:, 1]
        twice = once * uniforms[:, 0]
        # Products only fall: what is above the limit after two was so after one.
        goes_on = twice > limit
        found[rows] += (once > limit).astype(np.float64) + goes_on
        rows, limit, product = rows[goes_on], limit[goes_on], twice[goes_on]
    raise AssertionError


def _many(key: Key, counter: Counter, first: Any, mean: _Doubles) -> _Doubles:
    b = 0.931 + 2.53 * np.sqrt(mean)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    sure = 0.9277 - 3.6224 / (b - 2)
    found = np.empty_like(mean)
    rows = np.arange(mean.size)
    for turn in count():
        if not rows.size:
            return found
        uniforms = _uniforms(key, counter, first[rows] + np.uint64(turn))
        u, v = uniforms[:, 1] - 0.5, uniforms[:, 0]
        rim = 0.5 - np.abs(u)
        m = mean[rows]
        k = np.floor((2 * a[rows] / rim + b[rows]) * u + m + 0.43)
        possible = (k >= 0) & ((rim >= 0.013) | (v <= rim))
        height = np.log(v * inverse_alpha[rows] / (a[rows] / (rim * rim) + b[rows]))
        kept = possible & (height <= _log_probability(np.maximum(k, 0), m))
        kept |= (rim >= 0.07) & (v <= sure[rows])
        found[rows[kept]] = k[kept]
        rows = rows[~kept]
    raise AssertionError


_LOG_FACTORIALS = np.log([float(math.factorial(k)) for k in range(16)])


def _log_probability(k: _Doubles, mean: _Doubles) -> _Doubles:
    """The logarithm of the probability of k, also where k and the mean are huge and close."""
    small = k < _LOG_FACTORIALS.size
    place = np.where(small, k, 0).astype(np.intp)
    of_small = k * np.log(mean) - mean - _LOG_FACTORIALS[place]
    n = np.where(small, _LOG_FACTORIALS.size, k)
    off = (n - mean) / mean
    # mean - n + n log(n / mean): as differences of terms of its own size, not of the mean's.
    distance = mean * ((1 + off) * np.log1p(off) - off)
    series = (1 / 12 - (1 / 360 - 1 / (1260 * n * n)) / (n * n)) / n
    of_large = -distance - 0.5 * np.log(2 * np.pi * n) - series
    return np.where(small, of_small, of_large)


def categorical(
    key: Key, counter: Counter, weights: _Doubles, samples: int, dtype: np.dtype[Any]
) -> NDArray[Any]:
    """Draw classes with probabilities in proportion to weights.

    Args:
        key: of the stream.
        counter: where the draw begins; it takes a block for every two samples.
        weights: float64 [batch, classes], not negative, not all 0 in any row.
        samples: how many to draw for each row.
        dtype: of the result.

    Returns:
        [batch, samples].
    """
    batch, classes = weights.shape
    cumulative = np.cumsum(weights, axis=1)
    uniforms, _ = philox.draw("uniform", key, counter, [batch, samples], np.float64)
    wanted = uniforms * cumulative[:, -1:]
    # The number of classes whose cumulative weight is at most what is wanted, by bisection.
    low = np.zeros((batch, samples), np.intp)
    high = np.full((batch, samples), classes - 1, np.intp)
    for _ in range(max(classes - 1, 0).bit_length()):
        middle = (low + high) >> 1
        below = np.take_along_axis(cumulative, middle, axis=1) <= wanted
        low = np.where(below, np.minimum(middle + 1, high), low)
        high = np.where(below, high, middle)
    return low.astype(dtype)


def permutation(key: Key, counter: Counter, size: int) -> NDArray[np.intp]:
    """Draw an order of `size` things: that of as many 64-bit numbers, from a block for every two.

    Equal numbers keep their order; they are too rare to show.
    """
    return order_of(philox.random_bits(key, counter, 2 * size).view(np.uint64))


def order_of(numbers: NDArray[np.uint64]) -> NDArray[np.intp]:
    """The stable order of many random numbers."""
    # Numbers that end in their own places are sorted ten times as fast as places by their numbers.
    places = np.uint64((1 << numbers.size.bit_length()) - 1)
    placed = numbers & ~places
    placed |= np.arange(numbers.size, dtype=np.uint64)
    placed.sort()
    order = (placed & places).astype(np.intp)
    # What differs in the bits given up alone is rare, and is brought in order once more.
    alike = np.flatnonzero(placed[1:] ^ placed[:-1] <= places)
    if alike.size:
        among = np.union1d(alike, alike + 1)
        order[among] = order[among][np.argsort(numbers[order[among]], kind="stable")]
    return order


class _Stream:
    """What each sample takes of its blocks: two numbers of one, the second first, then the next.

    Args:
        key: of the stream.
        counter: where the draw begins.
        first: the first block of each sample.
    """

    def __init__(self, key: Key, counter: Counter, first: NDArray[np.uint64]) -> None:
        self._key, self._counter, self._next = key, counter, first.copy()
        self._uniforms = _Pairs(first.size)
        # As radius and angle: a sine costs as much as all the rest, and is seldom asked for.
        self._normals = _Pairs(first.size)

    def uniforms(self, rows: NDArray[np.intp]) -> _Doubles:
        """The next uniform on [0, 1) of some samples."""
        pairs = self._uniforms
        empty = pairs.without(rows)
        pairs.of[empty] = philox_numbers.uniform_float64(self._words(empty)).reshape(-1, 2)
        found: _Doubles = pairs.of[rows, pairs.take(rows)]
        return found

    def normals(self, rows: NDArray[np.intp]) -> _Doubles:
        """The next standard normal of some samples."""
        pairs = self._normals
        empty = pairs.without(rows)
        pairs.of[empty, 0], pairs.of[empty, 1] = philox_numbers.polar_float64(self._words(empty))
        found: _Doubles = pairs.of[rows, 0]
        angles = pairs.of[rows, 1]
        is_second = pairs.take(rows) == 1
        found[is_second] *= np.cos(angles[is_second])
        found[~is_second] *= np.sin(angles[~is_second])
        return found

    def _words(self, rows: NDArray[np.intp]) -> NDArray[np.uint32]:
        words = philox.blocks_at(self._key, self._counter, self._next[rows])
        self._next[rows] += np.uint64(1)
        return words.reshape(-1)


class _Pairs:
    """Two numbers for each sample, `of` [size, 2], and how many of them are left."""

    def __init__(self, size: int) -> None:
        self.of = np.empty((size, 2))
        self._left = np.zeros(size, np.intp)

    def without(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Those samples that have none left, and are given two new ones."""
        empty: NDArray[np.intp] = rows[self._left[rows] == 0]
        self._left[empty] = 2
        return empty

    def take(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Which of its two each sample has next."""
        self._left[rows] -= 1
        which: NDArray[np.intp] = self._left[rows]
        return which


def _uniforms(key: Key, counter: Counter, offsets: Any) -> _Doubles:
    """Two uniforms on [0, 1) from each of the blocks."""
    words = philox.blocks_at(key, counter, offsets)
    return philox_numbers.uniform_float64(words.reshape(-1)).reshape(-1, 2)


def _parts(size: int) -> Iterator[slice]:
    for start in range(0, size, _CHUNK):
        yield slice(start, min(start + _CHUNK, size))


def _sampled(sample: _Sample, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    result = np.empty(math.prod(shape), dtype)
    with np.errstate(all="ignore"):
        for part in _parts(result.size):
            first = np.arange(part.start, part.stop, dtype=np.uint64) * np.uint64(BLOCKS)
            result[part] = sample(first, part)
    return result.reshape(shape)
