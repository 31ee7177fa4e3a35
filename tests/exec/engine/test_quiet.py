"""Steps do not warn of infinities and NaNs, and leave the caller's settings as they are."""

from contextvars import ContextVar
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.exec.state.executors import EXECUTORS, run_in


@pytest.mark.parametrize("kind", EXECUTORS)
def test_infinities_and_nans_are_values(kind: str) -> None:
    x = fb.placeholder(fb.float32, [3])
    with np.errstate(all="raise"), fb.Session() as sess:
        found = run_in(kind, sess, fb.log(x) / 0.0, {x: np.float32([0.0, 1.0, -1.0])})
        np.testing.assert_array_equal(found, [-np.inf, np.nan, np.nan])
        with pytest.raises(FloatingPointError):
            np.float32([1.0]) / np.float32(0.0)


@pytest.mark.parametrize("kind", EXECUTORS)
def test_py_func_sees_the_callers_context(kind: str) -> None:
    variable: ContextVar[int] = ContextVar("variable", default=0)
    seen: list[Any] = []
    y = fb.py_func(lambda: seen.append(variable.get()), [], [])
    token = variable.set(5)
    with fb.Session() as sess:
        run_in(kind, sess, y)
    variable.reset(token)
    assert seen == [5]
