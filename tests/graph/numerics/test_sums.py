"""Sums by matrix products are the sums that float64 gives, over any axes of any shape."""

import itertools
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowbook.exec.devices.simulated import Simulated
from flowbook.graph.numerics.sums import sum_of_products, sum_of_squares, sum_over, sums_by_id
from flowbook.graph.ops.reduction.segments import combined

# Few rows and many, short and long, whole blocks and what remains of them, and few columns and
# many: every way of summing, and what is left to NumPy.
SHAPES = [
    (1000, 20),
    (3000, 3),
    (20, 1000),
    (7, 3, 500),
    (3, 4111, 2),
    (5, 40, 300),
    (9000,),
    (10007,),
    (1, 8193),
    (8192, 1),
    (5000, 2, 3),
    (4, 30, 1, 80),
]


def values(shape: tuple[int, ...], dtype: type, seed: int = 0):
    return np.random.default_rng(seed).uniform(0, 1, shape).astype(dtype)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32])
def test_sums_over_all_choices_of_axes(shape, dtype):
    x = values(shape, dtype)
    wide = np.dtype(np.float32) if dtype is np.float16 else x.dtype
    for count in range(1, len(shape) + 1):
        for axes in itertools.combinations(range(len(shape)), count):
            for axis in (axes, tuple(a - len(shape) for a in reversed(axes))):
                for keepdims in (False, True):
                    found = sum_over(np, x, axis, keepdims)
                    expected = x.astype(np.float64).sum(axis=axes, keepdims=keepdims)
                    assert found.dtype == wide
                    assert found.shape == expected.shape
                    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sums_on_accelerators(shape):
    device, x = Simulated(), values(shape, np.float32)
    for count in range(1, len(shape) + 1):
        for axes in itertools.combinations(range(len(shape)), count):
            for keepdims in (False, True):
                found = device.run(partial(sum_over, device.xp, device.own(x), axes, keepdims))
                expected = x.astype(np.float64).sum(axis=axes, keepdims=keepdims)
                np.testing.assert_allclose(device.fetch(found), expected, rtol=1e-4)
                assert device.fetch(found).shape == expected.shape


def test_sum_over_everything_and_over_nothing():
    x = values((100, 100), np.float32)
    assert sum_over(np, x, None) == x.sum()
    np.testing.assert_array_equal(sum_over(np, x, ()), x)


@pytest.mark.parametrize("axis", [(2,), (-3,), (0, 0), (1, 5)])
def test_axes_that_there_are_not_are_an_error(axis):
    with pytest.raises(ValueError, match="axis"):
        sum_over(np, np.zeros([100, 100], np.float32), axis)


@given(st.integers(1, 40), st.integers(1, 2500), st.booleans())
def test_sizes_that_blocks_do_not_divide(rows, length, is_transposed):
    x = values((8192 // rows, length % 50 + 1, rows), np.float32)
    if is_transposed:
        x = x.T
    for axis in range(3):
        expected = x.astype(np.float64).sum(axis=axis)
        np.testing.assert_allclose(sum_over(np, x, (axis,)), expected, rtol=1e-5)


@pytest.mark.parametrize("place", [0, 4999, 9999])
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_what_is_not_finite_stays_in_its_row(place, value):
    x = np.ones([1000, 10], np.float32)
    x.ravel()[place] = value
    expected = np.full(1000, 10, np.float32)
    expected[place // 10] = value
    np.testing.assert_array_equal(sum_over(np, x, (1,)), expected)


@pytest.mark.parametrize("shape", [(3, 4), (1000, 20), (9, 1024), (3, 5000), (1, 20_000)], ids=str)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_sums_of_products(shape, dtype):
    x, y = values(shape, dtype), values(shape, dtype, seed=1)
    expected = (x.astype(np.float64) * y).sum(axis=-1, keepdims=True)
    found = sum_of_products(np, x, y)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=2e-3 if dtype is np.float16 else 1e-5)
    turned = np.asfortranarray(y)
    np.testing.assert_allclose(sum_of_products(np, x, turned), found, rtol=1e-5)


def test_long_sums_of_single_precision_keep_their_digits():
    # Added one after the other, these give 100958.
    x = np.full([1 << 20, 10], 0.1, np.float32)
    np.testing.assert_allclose(sum_over(np, x, (0,)), np.full(10, 104857.6), rtol=3e-5)


@pytest.mark.parametrize("size", [0, 1, 100, 8191, 8192, 8193, 50_000])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_sums_of_squares(size, dtype):
    x = values((size,), dtype) * 300
    expected = np.square(x.astype(np.float64)).sum()
    for given_ in (x, x.reshape(-1, 1), np.repeat(x, 2)[::2]):
        found = sum_of_squares(np, given_)
        assert found.dtype == (np.float64 if dtype is np.float64 else np.float32)
        np.testing.assert_allclose(found, expected, rtol=1e-5)


@given(st.integers(100, 3000), st.integers(4, 50), st.integers(90, 200), st.integers(0, 9))
def test_sums_of_rows_by_id(rows, columns, count, seed):
    random = np.random.default_rng(seed)
    ids = random.integers(0, count, rows).astype(random.choice(["i4", "i8"]))
    for dtype in (np.float32, np.float64, np.int32, np.int64):
        x = random.integers(-50, 50, (rows, columns)).astype(dtype)
        x[0, 0] = np.inf if np.dtype(dtype).kind == "f" else 7
        found = sums_by_id(np, x, ids, count)
        if x.size < 8192:
            assert found is None
            continue
        expected = np.zeros((count, columns), dtype)
        np.add.at(expected, ids, x)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, expected)


def test_long_sums_by_id_are_left_to_numpy_which_rounds_less():
    rows = np.full((40_000, 2), 0.1, np.float32)
    ids = np.zeros(40_000, np.int32)
    assert sums_by_id(np, rows, ids, 1) is None
    total = combined(np, "add", rows, ids, 1, 0)
    np.testing.assert_allclose(total, 4000, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.complex64])
def test_many_rows_combined_by_id(dtype):
    rows = values((600, 5, 7), np.float32).astype(dtype)
    rows[3, 2, 1] = np.inf
    ids = np.arange(600) * 7 % 50
    expected = np.zeros((51, 5, 7), np.complex128 if dtype is np.complex64 else np.float64)
    np.add.at(expected, ids, rows)
    found = combined(np, "add", rows, ids, 51, 0)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected, rtol=1e-3)
