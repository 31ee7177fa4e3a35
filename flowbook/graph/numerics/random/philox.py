"""Philox 4x32-10, the counter-based random generator behind every random operation.

A *block* is what one value of the 128-bit counter yields: four 32-bit words, a pure function of
(key, counter). So a draw has no state but its first counter, any part of a stream can be made
alone, and every device makes the same stream (Salmon, Moraes, Dror, Shaw: "Parallel random
numbers: as easy as 1, 2, 3", SC 2011). Keys, counters and the maps from words to numbers are
TensorFlow 1's, whose CPU kernels draw the same values from the same two seeds.

The layout that every implementation of this module keeps: word `w` of a draw is word `w % 4` of
block `counter + w // 4`. Element `e` is made of the word `e`, or of the words `2e` and `2e + 1`
where elements have 64 bits; normals come in pairs, which never straddle two blocks. Every draw
begins at a block, and takes `blocks_for(dtype, count)` of them, whatever its kind; what is left
of its last block is never used. (TensorFlow reserves 256 blocks per element, so its *second* draw
from one operation is this module's at `advance(counter, 256 * count)`.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from flowbook.graph.numerics.hot_loop import HotLoop
from flowbook.graph.numerics.random import philox_blocks
from flowbook.graph.numerics.random.philox_blocks import Words
from flowbook.graph.numerics.random.philox_numbers import (
    Convert,
    Kind,
    box_muller,
    converter,
    uniforms_of,
    words_per_element,
)

__all__ = [
    "Counter",
    "Key",
    "Kind",
    "advance",
    "blocks_at",
    "blocks_for",
    "draw",
    "key_and_counter",
    "random_bits",
    "scalars",
    "stateless_key_and_counter",
]

Key: TypeAlias = tuple[int, int]
"""Two 32-bit words, the less significant first."""

Counter: TypeAlias = tuple[int, int, int, int]
"""Four 32-bit words of one 128-bit integer, the least significant first."""

_LOW = (1 << 32) - 1
_LOW_HALF = (1 << 64) - 1
_SCRAMBLING_KEY = (0x3EC8F720, 0x02461E29)
# Up to so many numbers, copying all of them costs less than running a loop twice.
_FEW = 64


def key_and_counter(seed: int, seed2: int = 0) -> tuple[Key, Counter]:
    """Return the key and the first counter that TensorFlow 1 gives an operation with these seeds.

    Args:
        seed: the graph's seed, 64 bits; becomes the key. Negative values stand for their two's
            complement, as in TensorFlow's signed attributes.
        seed2: the operation's seed, 64 bits; becomes the counter's upper half, so that operations
            of one graph draw from streams 2**64 blocks apart.

    Returns:
        `(key, counter)`. Seeds 0 and 0 are seeds like any other here: it is for the caller to
        read them as "take entropy", as TensorFlow does.

    Raises:
        ValueError: a seed does not fit 64 bits.

    >>> key_and_counter(87654321, 42)
    ((87654321, 0), (0, 0, 42, 0))
    """
    for name, value in (("seed", seed), ("seed2", seed2)):
        if not -(1 << 63) <= value < 1 << 64:
            raise ValueError(f"{name} {value} does not fit 64 bits")
    return (
        (seed & _LOW, seed >> 32 & _LOW),
        (0, 0, seed2 & _LOW, seed2 >> 32 & _LOW),
    )


def stateless_key_and_counter(seed: int, seed2: int) -> tuple[Key, Counter]:
    """Return the key and the first counter of a draw that only two seeds determine.

    One block scrambles the seeds, so that neighbouring ones give unrelated streams; these are the
    streams of TensorFlow's stateless operations.

    Args:
        seed: any int, taken modulo 2**64.
        seed2: likewise.

    >>> stateless_key_and_counter(3, 7)
    ((1062149921, 2147208749), (0, 0, 1433866757, 2019731594))
    """
    counter = (seed & _LOW, seed >> 32 & _LOW, seed2 & _LOW, seed2 >> 32 & _LOW)
    k0, k1, c2, c3 = random_bits(_SCRAMBLING_KEY, counter, 4).tolist()
    return (k0, k1), (0, 0, c2, c3)


def advance(counter: Counter, blocks: int) -> Counter:
    """Return the counter `blocks` blocks further on (back, if negative), modulo 2**128.

    >>> advance((0xFFFFFFFF, 0xFFFFFFFF, 7, 0), 1)
    (0, 0, 8, 0)
    """
    return philox_blocks.words_of(_join(counter) + blocks)


def blocks_for(dtype: DTypeLike, count: int) -> int:
    """Return how many counter blocks a draw of `count` elements takes: ceil(32-bit words / 4).

    An element takes two words where it has 64 bits, and one otherwise (float16 included).

    >>> blocks_for(np.float32, 10), blocks_for(np.float64, 10)
    (3, 5)
    """
    return -(-count * words_per_element(np.dtype(dtype)) // 4)


def random_bits(key: Key, counter: Counter, count: int) -> Words:
    """Return the first `count` words of the stream that begins at `counter`.

    Args:
        key: as from `key_and_counter`.
        counter: the first block.
        count: how many 32-bit words; not necessarily whole blocks.

    Returns:
        uint32 [count].

    >>> [hex(word) for word in random_bits((0, 0), (0, 0, 0, 0), 4).tolist()]
    ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    """
    bits, _ = draw("bits", key, counter, [count], np.uint32)
    return bits


def blocks_at(key: Key, counter: Counter, offsets: NDArray[np.uint64]) -> Words:
    """Return the blocks that stand at the given distances from `counter`, in their order.

    Args:
        key: as from `key_and_counter`.
        counter: where distances count from.
        offsets: uint64 [n], numbers of blocks.

    Returns:
        uint32 [n, 4].
    """
    words = np.empty((offsets.size, 4), np.uint32)
    philox_blocks.words_at(words.reshape(-1), *scalars(key, counter), offsets)
    return words


def scalars(key: Key, counter: Counter) -> tuple[int, int, int, int]:
    """What loops over blocks take of a key and a counter: of the counter two halves."""
    return _start(key, _join(counter))


def draw(
    kind: Kind,
    key: Key,
    counter: Counter,
    shape: Sequence[int],
    dtype: DTypeLike,
    *,
    low: int | None = None,
    high: int | None = None,
) -> tuple[NDArray[Any], int]:
    """Draw an array from the stream of `key`, beginning at `counter`.

    Args:
        kind: "bits" (uint32), "uniform" on [0, 1) and "normal" of mean 0 and variance 1
            (bfloat16, float16, float32, float64), or "uniform_int" on [low, high) (int32, int64).
        key: as from `key_and_counter`.
        counter: the first block.
        shape: of the result; filled in row-major order.
        dtype: of the result.
        low: the least integer; for "uniform_int" only.
        high: one more than the greatest integer; for "uniform_int" only.

    Returns:
        `(array, blocks)`: a new array that owns its memory, and the number of blocks that it
        took, `blocks_for(dtype, array.size)`; the next draw begins at `advance(counter, blocks)`.

    Raises:
        ValueError: a negative dimension, or bounds that are missing, superfluous, out of the
            dtype's range or not in order.
        TypeError: there is no such kind of that dtype.

    >>> key, counter = key_and_counter(87654321, 42)
    >>> array, blocks = draw("uniform_int", key, counter, [2, 3], np.int32, low=0, high=100)
    >>> array.tolist(), blocks
    ([[72, 44, 93], [89, 41, 88]], 2)
    """
    dtype = np.dtype(dtype)
    convert = converter(kind, dtype, low, high)
    if any(size < 0 for size in shape):
        raise ValueError(f"dimensions must not be negative, got shape {list(shape)}")

    array = np.empty(shape, dtype)
    flat = array.reshape(-1)
    loop = _LOOPS.get((kind, dtype))
    if loop is None:
        _fill(flat, philox_blocks.words, convert, *_start(key, _join(counter)))
    else:
        _run(loop, flat, key, _join(counter))
    return array, blocks_for(dtype, array.size)


def _run(loop: HotLoop, out: NDArray[Any], key: Key, position: int) -> None:
    """Fill an array of any length by a loop, which makes the numbers of whole blocks."""
    made = out.size // loop.width * loop.width if out.size > _FEW else 0
    if made:
        loop(out[:made], *_start(key, position))
    rest = out.size - made
    if rest:
        blocks = -(-rest // loop.width)
        padded = np.empty(blocks * loop.width, out.dtype)
        loop(padded, *_start(key, position + made // loop.width))
        out[made:] = padded[:rest]


def _fill(
    out: NDArray[Any], make_words: Callable[..., None], convert: Convert, *start: int
) -> None:
    """Fill an array of any length with what becomes of words, a chunk of blocks at a time.

    Args:
        out: [n].
        make_words: a form of `philox_blocks.words`.
        convert: makes numbers of the words of whole blocks.
        start: the scalars of the first block.
    """
    *key, low, high = start
    position = low | high << 64
    each = 4 // words_per_element(out.dtype)
    blocks = -(-out.size // each)
    buffer = np.empty(4 * min(blocks, philox_blocks.CHUNK), np.uint32)
    for first in range(0, blocks, philox_blocks.CHUNK):
        words = buffer[: 4 * (blocks - first)]
        make_words(words, *_start(key, position + first))
        # The last block may hold more than is wanted.
        part = out[each * first : each * first + each * words.size // 4]
        part[:] = convert(words)[: part.size]


def _join(counter: Counter) -> int:
    return sum(int(word) << 32 * place for place, word in enumerate(counter))


def _start(key: Sequence[int], position: int) -> tuple[int, int, int, int]:
    return int(key[0]), int(key[1]), position & _LOW_HALF, position >> 64 & _LOW_HALF


def _uniform_float32_block(*turn: Any) -> list[Any]:
    words = philox_blocks.block(*turn)
    return [(word & 0x7FFFFF | 0x3F800000).view(np.float32) - 1 for word in words]


def _uniform_float64_block(*turn: Any) -> list[Any]:
    return uniforms_of(*philox_blocks.block(*turn))


def _normal_float64_block(*turn: Any) -> tuple[Any, Any]:
    return box_muller(*uniforms_of(*philox_blocks.block(*turn)))


def _loop(kind: Kind, dtype: DTypeLike, block: Callable[..., Any]) -> HotLoop:
    """A loop that makes the numbers of blocks without their words in between."""
    made = np.dtype(dtype)
    convert = converter(kind, made, None, None)

    def numpy(out: NDArray[Any], *start: int) -> None:
        _fill(out, philox_blocks.words_in_numpy, convert, *start)

    return HotLoop(
        f"{kind} {made}",
        block,
        numpy,
        makes=made,
        width=4 // words_per_element(made),
        scalars=4,
        trial=philox_blocks.TRIAL,
    )


_LOOPS = {
    ("bits", np.dtype(np.uint32)): philox_blocks.words,
    ("uniform", np.dtype(np.float32)): _loop("uniform", np.float32, _uniform_float32_block),
    ("uniform", np.dtype(np.float64)): _loop("uniform", np.float64, _uniform_float64_block),
    ("normal", np.dtype(np.float64)): _loop("normal", np.float64, _normal_float64_block),
}
