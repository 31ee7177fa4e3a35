"""The blocks of Philox 4x32-10: four 32-bit words from each value of a 128-bit counter.

The round is written once, `_round`, for Python's integers, NumPy's arrays and the symbols that
become machine code. Every form makes the same words. Here a counter is two halves of 64 bits, the
lower first, and what runs past the last of its 128 bits begins at 0 again.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from flowbook.graph.numerics.hot_loop import HotLoop

Words: TypeAlias = NDArray[np.uint32]
_State: TypeAlias = tuple[Any, Any, Any, Any]

_WORD = 1 << 32
_LOW = _WORD - 1
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10
# As arrays, because a ufunc takes these in two thirds of the time that it needs for a Python
# integer, and small draws consist of such calls.
_MULTIPLIER0, _MULTIPLIER1 = np.array(_MULTIPLIERS, np.uint64)[:, np.newaxis]
_HALF, _LOW_HALF = np.array([32, _LOW], np.uint64)[:, np.newaxis]

CHUNK = 12288
"""So many blocks at a time: their words, and what becomes of them, stay in a core's cache.

Four buffers of 192 KiB fit the second level, and calling some 70 ufuncs, 45 us, is a fourth of the
work. Measured: half of it a fifth slower, double no faster.
"""

# Up to here Python's own integers, 3 us a block, cost less than calling the ufuncs.
_SCALAR_BLOCKS = 10

TRIAL = (0x01234567, 0x89ABCDEF, (1 << 64) - 500, 0xFEDCBA98_FFFFFFFF)
"""Scalars of a loop over blocks: a key, and a counter that carries into its upper half."""
TRIAL_PLACES = np.arange(0, 256_000, 256, dtype=np.uint64)
"""Places of blocks for such a loop, as far apart as samples that may be rejected begin."""


def block(offset: Any, key0: Any, key1: Any, low: Any, high: Any) -> _State:
    """The words of the block at a distance from the counter (low, high), on symbols."""
    position = low + offset
    upper = high + (position < low)
    state: _State = (position & _LOW, position >> 32, upper & _LOW, upper >> 32)
    for round_key in _key_schedule(key0, key1):
        state = _round(state, round_key)
    return state


def words_in_numpy(out: Words, key0: int, key1: int, low: int, high: int) -> None:
    """Fill an array with the words of consecutive blocks."""
    keys = _key_schedule(key0, key1)
    position, blocks = low | high << 64, out.size // 4
    if blocks <= _SCALAR_BLOCKS:
        out[:] = _few_blocks(keys, position, blocks)
        return
    work = np.empty((3, 2 * min(blocks, CHUNK)), np.uint64)
    start = 0
    while start < blocks:
        # A chunk ends where the lowest word wraps: within one, the upper three are constant.
        size = min(blocks - start, CHUNK, _WORD - (position & _LOW))
        _chunk(keys, words_of(position), work[:, : 2 * size], out[4 * start : 4 * (start + size)])
        position += size
        start += size


words = HotLoop(
    "random words",
    block,
    words_in_numpy,
    makes=np.uint32,
    width=4,
    scalars=4,
    trial=TRIAL,
)
words_at = HotLoop(
    "random words at places",
    lambda index, *turn: block(turn[-1], *turn[:-1]),
    makes=np.uint32,
    width=4,
    scalars=4,
    arrays=1,
    trial=(*TRIAL, np.arange(0, 1000 << 40, 1 << 40, dtype=np.uint64)),
)


def _key_schedule(key0: Any, key1: Any) -> list[tuple[Any, Any]]:
    """The key of each round: raised by the Weyl constants, modulo 2**32."""
    s0, s1 = _KEY_STEPS
    return [(key0 + turn * s0 & _LOW, key1 + turn * s1 & _LOW) for turn in range(_ROUNDS)]


def _round(x: _State, key: tuple[Any, Any]) -> _State:
    """The state after one round; each word is below 2**32, in an integer of at least 64 bits."""
    product0 = x[0] * _MULTIPLIERS[0]
    product1 = x[2] * _MULTIPLIERS[1]
    return (
        (product1 >> 32) ^ x[1] ^ key[0],
        product1 & _LOW,
        (product0 >> 32) ^ x[3] ^ key[1],
        product0 & _LOW,
    )


def words_of(position: int) -> tuple[int, int, int, int]:
    """A position as the four words of a counter, the lowest first."""
    return (
        position & _LOW,
        position >> 32 & _LOW,
        position >> 64 & _LOW,
        position >> 96 & _LOW,
    )


def _few_blocks(keys: list[tuple[int, int]], position: int, blocks: int) -> list[int]:
    made: list[int] = []
    for place in range(position, position + blocks):
        state = words_of(place)
        for key in keys:
            state = _round(state, key)
        made.extend(state)
    return made


def _chunk(
    keys: list[tuple[int, int]], counter: _State, work: NDArray[np.uint64], out: Words
) -> None:
    """Make the words of n blocks whose counters differ in the lowest word only.

    Args:
        keys: of the ten rounds.
        counter: the first block's words.
        work: uint64 [3, 2 * n], for the state.
        out: uint32 [4 * n].
    """
    # A word of the state lies in the low half of a 64-bit lane, since NumPy multiplies 32 bits
    # by 32 into 64 only there. With x0 and x2 in `even`, x1 and x3 in `odd`, and the products that
    # they are made of in the same order, one call treats both halves of a row. (Rows of two
    # dimensions with broadcast keys would need fewer calls, but NumPy copies those to buffers.)
    even, odd, product = work
    size = even.size // 2
    x0, x2 = even[:size], even[size:]
    product1, product0 = product[:size], product[size:]

    # Only one word of four differs between the blocks: the first two rounds are half scalar.
    first: NDArray[np.uint64] = np.arange(counter[0], counter[0] + size, dtype=np.uint64)
    state = _round(_round((first, *counter[1:]), keys[0]), keys[1])
    x0[:], odd[:size], x2[:], odd[size:] = state
    for key0, key1 in np.array(keys[2:], np.uint64)[:, :, np.newaxis]:
        np.multiply(x0, _MULTIPLIER0, product0)
        np.multiply(x2, _MULTIPLIER1, product1)
        np.right_shift(product, _HALF, even)
        np.bitwise_xor(even, odd, even)
        np.bitwise_xor(x0, key0, x0)
        np.bitwise_xor(x2, key1, x2)
        np.bitwise_and(product, _LOW_HALF, odd)
    np.left_shift(odd, _HALF, odd)
    pairs = out.view(np.uint64).reshape(size, 2).T
    np.bitwise_or(even.reshape(2, size), odd.reshape(2, size), pairs)
