"""Float32 in 16 bits and back: exact where 16 bits can say it, rounded towards zero where not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flowbook.exec.devices.cpu import Cpu
from flowbook.exec.devices.simulated import Simulated
from flowbook.graph.numerics.truncation import filled, truncated

ALL = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16)


@pytest.fixture(params=[Cpu, Simulated])
def device(request: Any) -> Any:
    return request.param()


def there(device: Any, function: Any, values: Any) -> Any:
    """What a function gives on a device."""
    return device.fetch(function(device.xp, device.own(values)))


def test_every_pattern_of_16_bits_stays_what_it_is(device: Any) -> None:
    numbers = there(device, filled, ALL)
    assert numbers.dtype == np.float32
    np.testing.assert_array_equal(numbers.view(np.uint32), ALL.astype(np.uint32) << 16)
    again = there(device, truncated, numbers)
    assert again.dtype == np.uint16
    is_nan = np.isnan(numbers)
    np.testing.assert_array_equal(again[~is_nan], ALL[~is_nan])
    # Of NaN the sign stays, not what else it says.
    back = there(device, filled, again)
    assert np.isnan(back[is_nan]).all()
    np.testing.assert_array_equal(np.signbit(back), np.signbit(numbers))


def test_the_rest_is_rounded_towards_zero(device: Any) -> None:
    # For each upper half some lower ones: the least, the largest, and drawn ones.
    lower = np.r_[0, 1, 0x7FFF, 0x8000, 0xFFFF, np.random.default_rng(1).integers(0, 1 << 16, 9)]
    bits = (ALL.astype(np.uint32)[:, None] << 16) | lower.astype(np.uint32)
    numbers = bits.view(np.float32)
    back = there(device, filled, there(device, truncated, numbers))
    assert back.shape == numbers.shape
    np.testing.assert_array_equal(np.isnan(back), np.isnan(numbers))
    np.testing.assert_array_equal(np.signbit(back), np.signbit(numbers))
    is_finite = np.isfinite(numbers)
    np.testing.assert_array_equal(np.isinf(back), np.isinf(numbers))
    found, given = back[is_finite], numbers[is_finite]
    expected = (bits & 0xFFFF0000).view(np.float32)[is_finite]
    np.testing.assert_array_equal(found, expected)
    assert (np.abs(found) <= np.abs(given)).all()
    is_normal = np.abs(given) >= np.finfo(np.float32).tiny
    error = np.abs(found[is_normal].astype(np.float64) - given[is_normal])
    assert (error < np.abs(given[is_normal].astype(np.float64)) * 2.0**-7).all()
    # Denormal numbers lose at most what 16 bits cannot say.
    assert (np.abs(given - found)[~is_normal] < 2.0**-133).all()


def test_a_nan_that_only_the_lower_half_tells_of_is_no_infinity(device: Any) -> None:
    given = np.array([0x7F800001, 0xFF80FFFF, 0x7F800000], np.uint32).view(np.float32)
    back = there(device, filled, there(device, truncated, given))
    assert np.isnan(back).tolist() == [True, True, False]
    assert back[2] == np.inf


@pytest.mark.parametrize("values", [np.float32(1.7), np.ones((0, 3), np.float32)])
def test_any_shape(values: Any, device: Any) -> None:
    bits = there(device, truncated, values)
    assert np.shape(bits) == np.shape(values)
    assert np.shape(there(device, filled, bits)) == np.shape(values)


def test_what_does_not_lie_in_a_row() -> None:
    given = np.arange(12, dtype=np.float32).reshape(3, 4).T[::2]
    np.testing.assert_array_equal(filled(np, truncated(np, given)), given)
