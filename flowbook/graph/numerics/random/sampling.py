"""Distributions whose samples take a number of random words that only the words decide.

Each function draws from the Philox stream of a key, beginning at a counter. So that a sample does
not depend on how many words those before it took, every sample, or for normals every group that
one block makes, has `BLOCKS` blocks of its own; it takes the first of them, and further ones while
it is rejected. All samples of a draw are made together, and those rejected once more together:
`sampled` does so for gamma and Poisson variates, which have modules of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from flowbook.graph.numerics.random import philox, philox_numbers
from flowbook.graph.numerics.random.philox import Counter, Key

BLOCKS = 256
"""How many blocks of the stream a sample may take; rejections never come near."""

# So many samples at a time: of fewer, the calls for them cost a third of the time.
_CHUNK = 65536

_Doubles = NDArray[np.float64]
_Blocks: TypeAlias = NDArray[np.uint64]
FirstTries: TypeAlias = Callable[[_Blocks, slice], tuple[Any, NDArray[np.bool_]]]
MoreTries: TypeAlias = Callable[[_Blocks, NDArray[np.intp]], Any]


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


def _parts(size: int) -> Iterator[slice]:
    for start in range(0, size, _CHUNK):
        yield slice(start, min(start + _CHUNK, size))


def sampled(
    first_tries: FirstTries, more_tries: MoreTries, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> NDArray[Any]:
    """Draw samples that may be rejected: one try for each, and those left once more, together.

    Args:
        first_tries: makes the samples of a part, of the distances of their first blocks from the
            draw's; tells besides which of them are done.
        more_tries: makes those of some places, from such distances, which it may change.
        shape: of the result.
        dtype: of the result.
    """
    result = np.empty(math.prod(shape), dtype)
    left = []
    with np.errstate(all="ignore"):
        for part in _parts(result.size):
            blocks = np.arange(part.start, part.stop, dtype=np.uint64) * np.uint64(BLOCKS)
            result[part], is_done = first_tries(blocks, part)
            left.append(np.flatnonzero(~is_done) + part.start)
        rows = np.concatenate([*left, np.zeros(0, np.intp)])
        for part in _parts(rows.size):
            some = rows[part]
            result[some] = more_tries(some.astype(np.uint64) * np.uint64(BLOCKS), some)
    return result.reshape(shape)
