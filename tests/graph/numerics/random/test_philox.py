"""Philox against its published vectors, a scalar reference, TensorFlow's values and statistics."""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Iterator
from itertools import islice
from statistics import NormalDist
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import flowbook as fb
from flowbook.graph.numerics.random import philox, philox_blocks, philox_numbers
from flowbook.graph.numerics.random.philox import Counter, Key, Kind
from tests.need import requires

TOP = 2**32 - 1

words = st.one_of(st.integers(0, TOP), st.sampled_from([0, 1, TOP - 20, TOP - 1, TOP]))
keys = st.tuples(words, words)
counters = st.tuples(words, words, words, words)

FLOATS: list[tuple[Kind, str]] = [
    (kind, dtype)
    for kind in ("uniform", "normal")
    for dtype in ("float16", "float32", "float64")
]  # fmt: skip
BOUNDS = {"int32": (-1000, 999983), "int64": (-1000, 2**62)}
EVERY: list[tuple[Kind, str]] = [
    ("bits", "uint32"),
    *FLOATS,
    ("uniform_int", "int32"),
    ("uniform_int", "int64"),
]


@pytest.fixture(
    autouse=True,
    scope="module",
    params=["never", pytest.param("now", marks=requires(module="llvmlite"))],
)
def machine_code(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every test here holds for both forms of the loops."""
    fb.options.machine_code = request.param
    yield
    fb.options.machine_code = "never"


def draw(
    kind: Kind, dtype: str, key: Key, counter: Counter, shape: list[int]
) -> tuple[NDArray[Any], int]:
    low, high = BOUNDS[dtype] if kind == "uniform_int" else (None, None)
    return philox.draw(kind, key, counter, shape, dtype, low=low, high=high)


# ---- a reference, one word at a time, on Python's integers


def reference_words(key: Key, counter: Counter) -> Iterator[int]:
    position = int.from_bytes(b"".join(struct.pack("<I", word) for word in counter), "little")
    while True:
        a, b, c, d = struct.unpack("<4I", (position % 2**128).to_bytes(16, "little"))
        k, m = key
        for _ in range(10):
            high_b, low_b = divmod(a * 0xD2511F53, 2**32)
            high_d, low_d = divmod(c * 0xCD9E8D57, 2**32)
            a, b, c, d = high_d ^ b ^ k, low_d, high_b ^ d ^ m, low_b
            k, m = (k + 0x9E3779B9) % 2**32, (m + 0xBB67AE85) % 2**32
        yield from (a, b, c, d)
        position += 1


def reference_bits(key: Key, counter: Counter, count: int) -> list[int]:
    return list(islice(reference_words(key, counter), count))


def reference_normals(u: float, v: float) -> tuple[float, float]:
    radius = math.sqrt(-2 * math.log(max(u, 1e-7)))
    return radius * math.sin(2 * math.pi * v), radius * math.cos(2 * math.pi * v)


# ---- bits


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ("00000000 00000000 00000000 00000000", "00000000 00000000",
         "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff",
         "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0",
         "d16cfe09 94fdcceb 5001e420 24126ea1"),
    ],
)  # fmt: skip
def test_known_answers_of_random123(counter: str, key: str, expected: str) -> None:
    # kat_vectors of the Random123 distribution, philox4x32-10.
    c0, c1, c2, c3 = (int(word, 16) for word in counter.split())
    k0, k1 = (int(word, 16) for word in key.split())
    answer = [int(word, 16) for word in expected.split()]
    assert reference_bits((k0, k1), (c0, c1, c2, c3), 4) == answer
    assert philox.random_bits((k0, k1), (c0, c1, c2, c3), 4).tolist() == answer
    # Long enough for the vectorised path, which the four words alone would not reach.
    assert philox.random_bits((k0, k1), (c0, c1, c2, c3), 4000)[:4].tolist() == answer


@given(keys, counters, st.integers(0, 120))
def test_bits_match_the_scalar_reference(key: Key, counter: Counter, count: int) -> None:
    bits = philox.random_bits(key, counter, count)
    assert bits.dtype == np.uint32
    assert bits.tolist() == reference_bits(key, counter, count)


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("blocks", [8, 64])
def test_the_counter_carries_over_each_border(place: int, blocks: int) -> None:
    # All words below `place` are full but for 5 blocks: the carry runs up to `place`, or falls off
    # the end of the 128 bits.
    low = [TOP - 4, TOP, TOP, TOP][: place + 1]
    c0, c1, c2, c3 = low + [9] * (4 - len(low))
    bits = philox.random_bits((1, 2), (c0, c1, c2, c3), 4 * blocks)
    assert bits.tolist() == reference_bits((1, 2), (c0, c1, c2, c3), 4 * blocks)


@pytest.mark.parametrize("size", [1, 7, 64])
def test_chunks_do_not_show(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    counter = (TOP - 100, TOP, 3, 4)
    whole = philox.random_bits((5, 6), counter, 1003)
    monkeypatch.setattr(philox_blocks, "CHUNK", size)
    assert philox.random_bits((5, 6), counter, 1003).tolist() == whole.tolist()
    assert whole.tolist() == reference_bits((5, 6), counter, 1003)


def test_both_ways_to_make_a_block_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    few = philox.random_bits((5, 6), (TOP, TOP, 3, 4), 13)
    monkeypatch.setattr(philox_blocks, "_SCALAR_BLOCKS", 0)
    assert philox.random_bits((5, 6), (TOP, TOP, 3, 4), 13).tolist() == few.tolist()


@given(keys, counters)
def test_a_stream_can_be_cut_at_any_block(key: Key, counter: Counter) -> None:
    whole = philox.random_bits(key, counter, 1000)
    rest = philox.random_bits(key, philox.advance(counter, 100), 600)
    assert np.array_equal(whole[:400], philox.random_bits(key, counter, 400))
    assert np.array_equal(whole[400:], rest)


@given(counters, st.integers(0, 2**128), st.integers(0, 2**128))
def test_advances_add_up(counter: Counter, first: int, second: int) -> None:
    there = philox.advance(philox.advance(counter, first), second)
    assert there == philox.advance(counter, first + second)
    assert philox.advance(there, -first - second) == counter
    assert philox.advance(counter, 2**128) == counter


def test_advance_carries() -> None:
    assert philox.advance((TOP, 0, 0, 0), 1) == (0, 1, 0, 0)
    assert philox.advance((TOP, TOP, 0, 0), 1) == (0, 0, 1, 0)
    assert philox.advance((TOP, TOP, TOP, 0), 1) == (0, 0, 0, 1)
    assert philox.advance((TOP, TOP, TOP, TOP), 1) == (0, 0, 0, 0)
    assert philox.advance((5, TOP, 0, 0), 2**32) == (5, 0, 1, 0)


def test_words_of_a_key_or_counter_may_be_numpy_integers() -> None:
    # As they are when they come from a checkpoint's arrays.
    key = tuple(np.array([TOP, 7], np.uint32))
    counter = tuple(np.array([TOP, TOP, 2, 3], np.uint32))
    expected = reference_bits((TOP, 7), (TOP, TOP, 2, 3), 100)
    assert philox.random_bits(key, counter, 100).tolist() == expected
    assert philox.advance(counter, 1) == (0, 0, 3, 3)


def test_seeds_become_key_and_counter() -> None:
    pair = philox.key_and_counter(0x0123456789ABCDEF, 0xFEDCBA9876543210)
    assert pair == ((0x89ABCDEF, 0x01234567), (0, 0, 0x76543210, 0xFEDCBA98))
    assert philox.key_and_counter(-1, -2) == ((TOP, TOP), (0, 0, TOP - 1, TOP))
    assert philox.key_and_counter(0) == ((0, 0), (0, 0, 0, 0))


@pytest.mark.parametrize("seeds", [(2**64, 0), (0, -(2**63) - 1)])
def test_seeds_beyond_64_bits_are_refused(seeds: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="does not fit 64 bits"):
        philox.key_and_counter(*seeds)


# ---- words to numbers, element by element


@given(keys, counters, st.integers(0, 60))
def test_uniforms_match_the_scalar_reference(key: Key, counter: Counter, count: int) -> None:
    bits = philox.random_bits(key, counter, 2 * count)
    kept = bits.copy()
    singles = [struct.unpack("<f", struct.pack("<I", x & 0x7FFFFF | 127 << 23))[0] for x in bits]
    halves = [struct.unpack("<e", struct.pack("<H", int(x) & 0x3FF | 15 << 10))[0] for x in bits]
    doubles = [
        struct.unpack("<d", struct.pack("<II", y, x & 0xFFFFF | 1023 << 20))[0]
        for x, y in bits.reshape(-1, 2).tolist()
    ]
    assert philox_numbers.uniform_float32(bits).tolist() == [x - 1 for x in singles]
    assert philox_numbers.uniform_float16(bits).tolist() == [x - 1 for x in halves]
    assert philox_numbers.uniform_float64(bits).tolist() == [x - 1 for x in doubles]
    assert np.array_equal(bits, kept)


@given(keys, counters, st.integers(0, 30))
def test_normals_match_the_scalar_reference(key: Key, counter: Counter, pairs: int) -> None:
    bits = philox.random_bits(key, counter, 4 * pairs)
    kept = bits.copy()
    for dtype, normal, uniform, tolerance in (
        (np.float32, philox_numbers.normal_float32, philox_numbers.uniform_float32, 2e-6),
        (np.float64, philox_numbers.normal_float64, philox_numbers.uniform_float64, 1e-14),
    ):
        uniforms = uniform(bits).reshape(-1, 2).tolist()
        expected = [z for u, v in uniforms for z in reference_normals(u, v)]
        result = normal(bits)
        assert result.dtype == dtype
        assert result.tolist() == pytest.approx(expected, rel=0, abs=tolerance)
    halves = philox_numbers.normal_float16(bits)
    assert np.array_equal(halves, philox_numbers.normal_float32(bits).astype(np.float16))
    assert np.array_equal(bits, kept)


def test_words_may_lie_apart() -> None:
    bits = philox.random_bits((1, 2), (3, 4, 5, 6), 48)
    for convert in (
        philox_numbers.uniform_float64,
        philox_numbers.normal_float32,
        philox_numbers.uniform_float16,
    ):
        assert convert(bits[4::2]).tolist() == convert(bits[4::2].copy()).tolist()
    apart, together = bits[1::3], bits[1::3].copy()
    ints = [
        philox_numbers.uniform_int(words, -5, 2**40, np.int64).tolist()
        for words in (apart, together)
    ]
    assert ints[0] == ints[1]


def test_normals_are_finite_where_the_uniform_is_zero() -> None:
    largest = math.sqrt(-2 * math.log(1e-7))
    zeros = np.zeros(4, np.uint32)
    assert philox_numbers.normal_float32(zeros).tolist() == pytest.approx([0, largest] * 2)
    assert philox_numbers.normal_float64(zeros).tolist() == pytest.approx([0, largest])
    assert philox_numbers.normal_float16(zeros).tolist() == pytest.approx(
        [0, largest] * 2, rel=1e-3
    )


def test_sines_near_zero_have_the_accuracy_of_float64_angles() -> None:
    # v = 1/2 + 2**-23: 2 pi v rounded twice in float32 would spoil sin(2 pi v) = -7.5e-7.
    bits = np.array([0x400000, 0x400001], np.uint32)
    angle = float(np.float32(2 * math.pi * (0.5 + 2.0**-23)))
    expected = math.sqrt(-2 * math.log(0.5)) * math.sin(angle)
    assert philox_numbers.normal_float32(bits)[0] == pytest.approx(expected, rel=1e-6)


@st.composite
def ranges(draw_from: st.DrawFn, bits: int) -> tuple[int, int]:
    least, greatest = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    low = draw_from(st.integers(least, greatest - 1))
    return low, draw_from(st.integers(low + 1, greatest))


@given(keys, counters, ranges(32))
def test_int32_match_the_scalar_reference(key: Key, counter: Counter, r: tuple[int, int]) -> None:
    low, high = r
    bits = philox.random_bits(key, counter, 50)
    result = philox_numbers.uniform_int(bits, low, high, np.int32)
    assert result.dtype == np.int32
    assert result.tolist() == [low + x % (high - low) for x in bits.tolist()]


@given(keys, counters, ranges(64))
def test_int64_match_the_scalar_reference(key: Key, counter: Counter, r: tuple[int, int]) -> None:
    low, high = r
    bits = philox.random_bits(key, counter, 50)
    pairs = bits.reshape(-1, 2).tolist()
    result = philox_numbers.uniform_int(bits, low, high, np.int64)
    assert result.dtype == np.int64
    assert result.tolist() == [low + (x + (y << 32)) % (high - low) for x, y in pairs]


# ---- draws


@pytest.mark.parametrize(("kind", "dtype"), EVERY)
@pytest.mark.parametrize("shape", [[], [0], [1], [3], [2, 3], [4, 0, 2], [7, 11, 3]])
def test_a_draw_is_the_start_of_its_stream(kind: Kind, dtype: str, shape: list[int]) -> None:
    key, counter = (3, 4), (TOP - 2, TOP, 5, 6)
    array, blocks = draw(kind, dtype, key, counter, shape)
    count = math.prod(shape)
    each = 2 if dtype in ("float64", "int64") else 1
    assert blocks == philox.blocks_for(dtype, count) == math.ceil(count * each / 4)
    assert (array.shape, array.dtype.name) == (tuple(shape), dtype)
    assert array.flags.c_contiguous
    assert array.flags.owndata
    longer, _ = draw(kind, dtype, key, counter, [400])
    assert array.ravel().tolist() == longer[:count].tolist()


@pytest.mark.parametrize(("kind", "dtype"), EVERY)
def test_draws_convert_the_words_of_their_blocks(kind: Kind, dtype: str) -> None:
    key, counter = philox.key_and_counter(11, 12)
    array, blocks = draw(kind, dtype, key, counter, [64])
    bits = philox.random_bits(key, counter, 4 * blocks)
    if kind == "bits":
        expected: NDArray[Any] = bits
    elif kind == "uniform_int":
        expected = philox_numbers.uniform_int(bits, *BOUNDS[dtype], dtype)
    else:
        expected = getattr(philox_numbers, f"{kind}_{dtype}")(bits)
    assert array.tolist() == expected.tolist()


@pytest.mark.parametrize(("kind", "dtype"), EVERY)
def test_draws_do_not_show_their_chunks(
    kind: Kind, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, counter = (3, 4), (TOP - 50, TOP, 5, 6)
    whole, _ = draw(kind, dtype, key, counter, [1001])
    monkeypatch.setattr(philox_blocks, "CHUNK", 37)
    assert draw(kind, dtype, key, counter, [1001])[0].tolist() == whole.tolist()


@pytest.mark.parametrize(("kind", "dtype"), EVERY)
def test_the_next_draw_goes_on_where_the_last_one_ended(kind: Kind, dtype: str) -> None:
    key, counter = philox.key_and_counter(11, 12)
    whole, total = draw(kind, dtype, key, counter, [1000])
    first, used = draw(kind, dtype, key, counter, [400])
    second, left = draw(kind, dtype, key, philox.advance(counter, used), [600])
    assert used + left == total
    assert whole.tolist() == [*first.tolist(), *second.tolist()]


def test_draws_of_one_stream_never_share_a_block() -> None:
    # One element takes a whole block, so the next draw has nothing in common with it.
    key, counter = philox.key_and_counter(11, 12)
    _, used = philox.draw("bits", key, counter, [1], np.uint32)
    following, _ = philox.draw("bits", key, philox.advance(counter, used), [4], np.uint32)
    assert used == 1
    assert following.tolist() == philox.random_bits(key, counter, 8)[4:].tolist()


@pytest.mark.parametrize(
    ("kind", "dtype", "bounds", "shape", "error", "message"),
    [
        ("uniform", "int32", {}, [2], TypeError, "cannot draw 'uniform' as int32; there are bits"),
        ("uniform_int", "uint8", {"low": 0, "high": 2}, [2], TypeError, "uniform_int' as uint8"),
        ("normal", ">f4", {}, [2], TypeError, "cannot draw 'normal' as >f4"),
        ("gamma", "float32", {}, [2], TypeError, "cannot draw 'gamma'"),
        ("uniform", "float32", {"low": 0, "high": 2}, [2], ValueError, "takes no bounds"),
        ("uniform_int", "int32", {"low": 0}, [2], ValueError, "got low=0, high=None"),
        ("uniform_int", "int32", {"low": 3, "high": 3}, [2], ValueError, "low=3, high=3"),
        ("uniform_int", "int32", {"low": 0, "high": 2**31}, [2], ValueError, "high=2147483648"),
        ("normal", "float32", {}, [2, -1], ValueError, r"negative, got shape \[2, -1\]"),
    ],
)  # fmt: skip
def test_wrong_draws_say_what_is_wrong(
    kind: Any, dtype: str, bounds: Any, shape: list[int], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        philox.draw(kind, (0, 0), (0, 0, 0, 0), shape, dtype, **bounds)


@pytest.mark.parametrize(
    "bits",
    [np.zeros(3, np.uint32), np.zeros((2, 2), np.uint32), np.zeros(4, np.int64)],
    ids=["odd", "matrix", "int64"],
)
def test_wrong_bits_are_refused(bits: NDArray[Any]) -> None:
    with pytest.raises(ValueError, match=r"bits must be uint32 \[n\], n a multiple of 2"):
        philox_numbers.normal_float32(bits)


# ---- statistics, on fixed seeds

N = 100_000


def kolmogorov_distance(values: NDArray[Any], cdf: Any) -> float:
    """Return sqrt(n) times the largest distance between the empirical and the true cdf."""
    true = np.array([cdf(x) for x in np.sort(values).tolist()])
    steps = np.arange(values.size + 1) / values.size
    return float(max((steps[1:] - true).max(), (true - steps[:-1]).max()) * values.size**0.5)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_uniforms_are_uniform(dtype: str) -> None:
    values = draw("uniform", dtype, *philox.key_and_counter(2011, 1), [N])[0].astype(np.float64)
    grain = {"float16": 2.0**-10, "float32": 2.0**-23, "float64": 2.0**-52}[dtype]
    assert values.min() >= 0
    assert values.max() < 1
    values += grain / 2  # they are multiples of it, rounded down
    assert abs(values.mean() - 1 / 2) < 5 * (1 / 12 / N) ** 0.5
    assert abs(values.var() - 1 / 12) < 5 * (1 / 180 / N) ** 0.5
    # 1.95 is exceeded once in a thousand; the steps of float16 add up to sqrt(N) * grain / 2.
    assert kolmogorov_distance(values, float) < 1.95 + N**0.5 * grain / 2
    assert abs(np.corrcoef(values[:-1], values[1:])[0, 1]) < 5 / N**0.5


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_normals_are_normal(dtype: str) -> None:
    values = draw("normal", dtype, *philox.key_and_counter(2011, 2), [N])[0].astype(np.float64)
    assert abs(values.mean()) < 5 / N**0.5
    assert abs(values.var() - 1) < 5 * (2 / N) ** 0.5
    assert abs((values**3).mean()) < 5 * (15 / N) ** 0.5
    assert abs((values**4).mean() - 3) < 5 * (96 / N) ** 0.5
    assert np.abs(values).max() < 5.68
    assert kolmogorov_distance(values, NormalDist().cdf) < 1.95
    # The two of a pair share their radius and yet are independent.
    assert abs(np.corrcoef(values[0::2], values[1::2])[0, 1]) < 5 / (N / 2) ** 0.5


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_integers_are_uniform(dtype: str) -> None:
    values, _ = philox.draw("uniform_int", (20, 11), (0, 0, 0, 0), [N], dtype, low=-3, high=7)
    counts = np.bincount(values + 3)
    assert counts.size == 10
    # Chi-square with 9 degrees of freedom: 27.9 is exceeded once in a thousand.
    assert ((counts - N / 10) ** 2 / (N / 10)).sum() < 27.9


# ---- TensorFlow's values

# Recorded once with tensorflow-cpu 2.21.0 on x86-64 (AVX-512), from session graphs like
#     with tf.Graph().as_default(), tf.compat.v1.Session() as session:
#         tf.compat.v1.set_random_seed(seed)
#         session.run(tf.compat.v1.random_uniform([10], dtype=tf.float32, seed=seed2))
# (random_normal likewise; integers with minval=-1000, maxval=999983). Without a graph seed
# TensorFlow takes 87654321. Floats are given by their bits.
TENSORFLOW: list[tuple[Kind, str, int, int, str]] = [
    ("uniform", "float32", 1234, 42,
     "3f50cd9a 3f53dc22 3e6f58b0 3ef926cc 3e8dc1ec 3ce9c9c0 3de7eb70 3f2e86b6 3f01dc6c "
     "3f6cd95a"),
    ("uniform", "float64", 1234, 42,
     "3fe0cd9ab7d3dc22 3febd62cf67c9366 3fcb83dc741d3938 3fecfd6f1dae86b6 3fadc6d30ecd95a0 "
     "3fd9a75369c634d8 3fd6b23409a45b58 3fc3aced78c4f6b8 3fc3900b08be16f8 3f776abb681d5d00"),
    ("uniform", "float16", 1234, 42,
     "399a 3822 3a2c 36cc 2fb0 3a4e 396e 3ab6 386c 3168"),
    ("normal", "float32", 1234, 42,
     "bf106655 3e991795 3e128ff8 bfd97927 3e9258ed 3fc9d8e1 bff2f7c0 bf5e3259 bf071692 "
     "3f84f545"),
    ("normal", "float64", 1234, 42,
     "bfea7e69b289b7d5 3fe8d8a73dc9e34e bfef43da63e7e162 3ff74bdd3d55f375 3ff644dbc88677ba "
     "bffefe0cb47da576 3ff2f321ca8e40d6 3fea34d0d3a6cb0d 3fb1d1e7645ff308 3ffefdf3b29c5017"),
    ("normal", "float16", 1234, 42,
     "b883 34c9 3094 becc 3493 3e4f bf98 baf2 b839 3c28"),
    ("uniform_int", "int32", 1234, 42,
     "313496 542669 455273 648772 356961 644275 470279 117853 661861 385336"),
    ("uniform_int", "int64", 1234, 42,
     "385748 585694 33770 516400 341232 397797 481680 642490 958516 509186"),
    ("uniform", "float32", 87654321, 1,
     "3e74c638 3f6b9f4e 3d4ee620 3efdd238 3f55e4ca 3cd8d880 3db474a0 3ee9cf64 3f44d2a6 "
     "3f3cd5bc"),
    ("normal", "float32", 87654321, 1,
     "bf4fb28d 3fbe0755 3d85cb68 c01c5544 3dcb42bf 3f175a7a 3f17c33f c007de14 bf390fcb "
     "bd667bc5"),
    ("uniform", "float64", 7, 0,
     "3f9e8b70027e7700 3fe574842bdb5904 3fed1d37972f7826 3fe5fed7ea6bdd4c 3fec47800453f768 "
     "3fc3e356ca190538 3fd058590021adbc 3fd2550c8e5c9e7c 3fe18645faabfd9c 3fdb95962f20b224"),
    ("normal", "float64", 7, 0,
     "c0029c57edcc53ae bff4519bc4b1b85d bfd9b29e2f7790b5 bfc55795acd45b53 3fda5c55e5ee7b13 "
     "3fd1d2efb589f741 3ff9bef7a3bd12c4 bfd8002966d94e89 3fdd807e1fb99171 bfefde433b49ff5a"),
    ("uniform", "float32", 123456789, 2147483646,
     "3e979dd4 3e22e8e8 3e7cf3d0 3c07b000 3f26f320 3ea44bbc 3f0de7b4 3f093eb8 3eea3de0 "
     "3f1da27e"),
    ("uniform_int", "int32", 123456789, 2147483646,
     "941912 155257 916714 541831 336662 824149 504417 62934 981725 669539"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "dtype", "seed", "seed2", "recorded"), TENSORFLOW)
def test_first_values_of_tensorflow(
    kind: Kind, dtype: str, seed: int, seed2: int, recorded: str
) -> None:
    low, high = (-1000, 999983) if kind == "uniform_int" else (None, None)
    start = philox.key_and_counter(seed, seed2)
    values, _ = philox.draw(kind, *start, [10], dtype, low=low, high=high)
    if kind == "uniform_int":
        assert values.tolist() == [int(value) for value in recorded.split()]
        return
    unsigned = np.dtype(f"u{values.itemsize}")
    expected = np.array([int(value, 16) for value in recorded.split()], unsigned)
    if kind == "uniform":
        assert values.view(unsigned).tolist() == expected.tolist()
    else:
        # Of 100,001 normals in each dtype, none was further off than 1 and 4 units, and 2.3e-15.
        # In float64 those near 0 differ by more units: TensorFlow rounds their angles.
        if dtype == "float64":
            np.testing.assert_allclose(values, expected.view(dtype), rtol=0, atol=4e-15)
        else:
            units = {"float16": 1, "float32": 8}[dtype]
            np.testing.assert_array_max_ulp(values, expected.view(dtype), units)


def test_seeds_of_64_bits_are_tensorflows() -> None:
    # tf.raw_ops.RandomUniform(shape=[10], dtype=tf.float32, seed=..., seed2=...)
    start = philox.key_and_counter(0x0123456789ABCDEF, -0x0FEDCBA987654321)
    values, _ = philox.draw("uniform", *start, [10], np.float32)
    recorded = (
        "3f0fe494 3f01dcae 3dafb2f0 3f62a392 3f32c3ec 3f6ba4c4 3ce7b3c0 3f4a3120 3eee6c40 3f4f0a76"
    )
    assert [f"{word:08x}" for word in values.view(np.uint32).tolist()] == recorded.split()


def test_second_run_of_a_tensorflow_operation() -> None:
    # random_uniform([10], seed=42), run twice in a session: the second value. TensorFlow reserves
    # 256 blocks per element.
    key, counter = philox.key_and_counter(87654321, 42)
    values, _ = philox.draw("uniform", key, philox.advance(counter, 256 * 10), [10], np.float32)
    recorded = (
        "3d8732b0 3f08781e 3f40bb66 3f5b3a58 3d9a20f0 3eb48640 3f35a1f2 3ee19c14 3f1204d8 3bb76a00"
    )
    assert [f"{word:08x}" for word in values.view(np.uint32).tolist()] == recorded.split()


@pytest.mark.parametrize(
    ("dtype", "recorded"),
    [
        ("int32", [-2082806165, 1487621459, 1784124053, -1420221465, -1836257587]),
        ("int64", [6389285515297482347, -6099804741320600939, -8976099160016228659]),
    ],
)
def test_widest_ranges_of_tensorflow(dtype: str, recorded: list[int]) -> None:
    # tf.raw_ops.RandomUniformInt(..., minval=dtype.min, maxval=dtype.max, seed=5, seed2=6)
    limits = np.iinfo(dtype)
    values, _ = philox.draw(
        "uniform_int",
        *philox.key_and_counter(5, 6),
        [len(recorded)],
        dtype,
        low=int(limits.min),
        high=int(limits.max),
    )
    assert values.tolist() == recorded


@pytest.mark.parametrize(
    ("kind", "dtype", "digest"),
    [
        ("uniform", "float16",
         "40851724c2be1799654f234072bb109933505172f6c7a6eb8c81240929cc3628"),
        ("uniform", "float32",
         "5c82cf3ad1dea448458cb97d431e6dcfff1ccc1933fa7a654076c42a1a84b5cb"),
        ("uniform", "float64",
         "f4ed27c56cab7835529c3ad8a7489cca4bac4c882f0b773afc90af3617cc8af6"),
        ("uniform_int", "int32",
         "1f68b8356f99bb2134b7b1309ce8fd0b722dbcb8c872a594f0670b620f9f7d00"),
        ("uniform_int", "int64",
         "2fac5adc0ee8b2caf1d56caee788efcdb834a5b2ca919800c4def3a9cc293acb"),
    ],
)  # fmt: skip
def test_long_draws_of_tensorflow(kind: Kind, dtype: str, digest: str) -> None:
    # hashlib.sha256(value.tobytes()) of tf.raw_ops.RandomUniform and RandomUniformInt with
    # seed=1234, seed2=42, shape=[100001]: several chunks, and an end within a block.
    values, _ = draw(kind, dtype, *philox.key_and_counter(1234, 42), [100_001])
    assert hashlib.sha256(values.tobytes()).hexdigest() == digest


def test_bfloat16_is_drawn_from_the_same_words() -> None:
    key, counter = philox.key_and_counter(1, 2)
    words = philox.random_bits(key, counter, 64)
    uniform, blocks = philox.draw("uniform", key, counter, [64], ml_dtypes.bfloat16)
    assert (uniform.dtype, blocks) == (ml_dtypes.bfloat16, 16)
    np.testing.assert_array_equal(uniform.astype(float), (words % 128) / 128)
    normal, _ = philox.draw("normal", key, counter, [64], ml_dtypes.bfloat16)
    wide, _ = philox.draw("normal", key, counter, [64], np.float32)
    np.testing.assert_array_equal(normal, wide.astype(ml_dtypes.bfloat16))


@pytest.mark.parametrize("place", range(4))
def test_blocks_at_distances(place: int) -> None:
    c0, c1, c2, c3 = [TOP] * place + [TOP - 2] + [5] * (3 - place)
    offsets = np.array([0, 3, 1, 2**40, 2], np.uint64)
    found = philox.blocks_at((1, 2), (c0, c1, c2, c3), offsets)
    expected = [
        philox.random_bits((1, 2), philox.advance((c0, c1, c2, c3), k), 4) for k in offsets.tolist()
    ]
    np.testing.assert_array_equal(found, expected)
