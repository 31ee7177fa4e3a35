"""Logarithms, sines and cosines against those of longer floats."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from flowbook.graph.numerics import elementary

pytestmark = pytest.mark.skipif(
    np.finfo(np.longdouble).nmant < 63, reason="this machine has no longer floats"
)

TURN = 8 * np.arctan(np.longdouble(1))


def units(found: np.ndarray, exact: np.ndarray) -> Any:
    """How far the worst is off, in units of the last place."""
    return (np.abs(found - exact) / np.spacing(np.abs(exact).astype(np.float64))).max()


def floats(least: float, most: float) -> Any:
    return arrays(np.float64, 20, elements=st.floats(least, most))


turns = arrays(np.uint64, 20, elements=st.integers(0, 2**52 - 1)).map(lambda n: n * 2.0**-52)


@given(floats(2.0**-1022, 1e308) | floats(0.5, 2))
def test_logarithms(x: np.ndarray) -> None:
    assert units(elementary.log(x), np.log(x.astype(np.longdouble))) < 1


@given(floats(-1 + 2.0**-53, 1e308) | floats(-1e-3, 1e-3).filter(lambda x: x.all()))
def test_logarithms_near_one(x: np.ndarray) -> None:
    assert units(elementary.log1p(x), np.log1p(x.astype(np.longdouble))) < 2


@given(turns)
def test_sines(x: np.ndarray) -> None:
    # The nearer multiple of a half turn, where a longer angle would not be long enough.
    off = np.where(x < 0.25, x, np.where(x < 0.75, 0.5 - x, x - 1))
    assert units(elementary.sine(x), np.sin(off * TURN)) < 3


@given(turns)
def test_cosines(x: np.ndarray) -> None:
    assert units(elementary.cosine(x), np.sin((np.abs(x - 0.5) - 0.25) * TURN)) < 3


def test_quarters_are_exact() -> None:
    quarters = np.array([0, 0.25, 0.5, 0.75])
    assert elementary.sine(quarters).tolist() == [0, 1, 0, -1]
    assert elementary.cosine(quarters).tolist() == [1, 0, -1, 0]
    assert elementary.log(np.array([1.0])).tolist() == [0]


def test_zero_has_some_logarithm() -> None:
    assert np.isfinite(elementary.log(np.array([0.0, np.inf, -1.0]))).all()
