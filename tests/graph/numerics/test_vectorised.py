"""What replaces functions of NumPy gives their bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowbook.graph.numerics import vectorised
from tests.graph.numerics.test_blocks import DTYPES, array

NUMBERS = [0, 1, -0.0, 2.5, np.nan, np.inf, np.float32(3), np.array(-1.0)]


@np.errstate(all="ignore")
@given(
    name=st.sampled_from(["maximum", "minimum"]),
    dtype=st.sampled_from("efd"),
    number=st.sampled_from(NUMBERS),
    is_first=st.booleans(),
)
def test_an_array_and_a_number(name: str, dtype: str, number: Any, is_first: bool) -> None:
    x = array(0, dtype, 100)
    given = (number, x) if is_first else (x, number)
    wanted = getattr(np, name)(*given)
    found = getattr(vectorised, name)(*given, out=np.empty_like(wanted))
    assert found.tobytes() == wanted.tobytes()


@np.errstate(all="ignore")
@given(
    dtype=st.sampled_from(DTYPES),
    x=st.sampled_from([None, 0, 1, -1]),
    y=st.sampled_from([None, 0, 1, -1]),
    place=st.sampled_from(["x", "y", "new"]),
)
def test_where(dtype: Any, x: int | None, y: int | None, place: str) -> None:
    first = array(0, dtype, 100) if x is None else np.array(x).astype(dtype)
    second = array(1, dtype, 100) if y is None else np.array(y).astype(dtype)
    condition = array(2, np.float64, 100) > 0
    wanted = np.where(condition, first, second)
    out = {"x": first, "y": second}.get(place)
    if out is None or not out.ndim:
        out = np.empty_like(wanted)
    assert vectorised.where(condition, first, second, out=out).tobytes() == wanted.tobytes()
    assert out.tobytes() == wanted.tobytes()


def test_where_of_conditions_that_are_numbers() -> None:
    condition, x = np.array([0.0, 2.0, np.nan]), np.ones(3)
    found = vectorised.where(condition, x, 0, out=np.empty(3))
    np.testing.assert_array_equal(found, [0, 1, 1])


@pytest.mark.parametrize("dtype", "efdFD")
@np.errstate(all="ignore")
def test_reciprocals(dtype: str) -> None:
    x = array(0, dtype, 1000)
    wanted = np.reciprocal(x)
    assert vectorised.reciprocal(x, out=np.empty_like(x)).tobytes() == wanted.tobytes()
