"""Functions that CuPy computes otherwise where numbers are not finite, on one that does so too."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.registry import kernel_for, op_named

# As CuPy 14 was seen to compute them.
CUPY = SimpleNamespace(
    **{name: getattr(np, name) for name in ("copysign", "fmod", "isnan", "where")},
    remainder=lambda x, y: x - np.floor_divide(x, y) * y,
    sinc=lambda x: np.where(np.abs(x) > 1e-9, np.sinc(x), np.ones_like(x)),
)

VALUES = [0.0, -0.0, 1.0, -1.0, 5.5, -5.5, 1e300, -1e300, np.inf, -np.inf, np.nan]


def on_gpus(type_name: str, *arrays: np.ndarray) -> np.ndarray:
    kernel = kernel_for(op_named(type_name), "gpu")
    assert kernel is not None
    with np.errstate(all="ignore"):
        return kernel(CUPY, *arrays)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_remainders_are_numpys(dtype: type) -> None:
    with warnings.catch_warnings(action="ignore"):
        values = np.array(VALUES).astype(dtype)
        x, y = values[:, None], values[None]
        wanted = np.remainder(x, y)
    found = on_gpus("Mod", x, y)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, wanted)
    is_number = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found)[is_number], np.signbit(wanted)[is_number])


def test_so_are_those_of_integers() -> None:
    values = np.arange(-7, 8)
    x, y = values[:, None], values[values != 0][None]
    np.testing.assert_array_equal(on_gpus("Mod", x, y), np.remainder(x, y))
    with pytest.raises(InvalidArgumentError):
        on_gpus("Mod", x, values[None])


def test_sinc_of_nan_is_nan() -> None:
    values = np.array([*VALUES, 1e-300, 0.25])
    with np.errstate(all="ignore"):
        wanted = np.sinc(values)
    np.testing.assert_array_equal(on_gpus("Sinc", values), wanted)
