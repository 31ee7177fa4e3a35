"""A loop runs in NumPy's form until it is given another, and says when it has become hot."""

import itertools
from typing import Any

import numpy as np
import pytest

from flowbook.graph.numerics import hot_loop
from flowbook.graph.numerics.hot_loop import HotLoop


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of loops that became hot, as often as they were told."""
    names: list[str] = []
    monkeypatch.setattr(hot_loop, "loops", {})
    monkeypatch.setattr(hot_loop, "_when_hot", hot_loop._when_hot)
    hot_loop.compile_with(lambda loop: names.append(loop.name))
    return names


def filled_with(number: int) -> Any:
    def fill(out: Any) -> None:
        out[:] = number

    return fill


def defined() -> HotLoop:
    return HotLoop(
        "fills",
        lambda index: [index],
        filled_with(1),
        makes=np.uint32,
        width=1,
        scalars=0,
        trial=(),
    )


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock by which every run takes a second."""
    monkeypatch.setattr(hot_loop, "perf_counter", itertools.count(0.0).__next__)


@pytest.mark.usefixtures("clock")
def test_a_loop_is_hot_once_it_ran_for_so_long(
    told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hot_loop, "WORTH", 2.5)
    loop, out = defined(), np.zeros(3, np.uint32)
    assert hot_loop.loops == {"fills": loop}
    for _ in range(2):
        loop(out)
    assert (loop.seconds, told) == (2.0, [])
    loop(out)
    assert (loop.seconds, told) == (3.0, ["fills"])
    assert out.tolist() == [1, 1, 1]


@pytest.mark.usefixtures("clock")
def test_the_native_form_takes_over_and_can_be_taken_back(told: list[str]) -> None:
    loop, out = defined(), np.zeros(3, np.uint32)
    loop.native = filled_with(2)
    loop(out)
    assert (out.tolist(), loop.seconds) == ([2, 2, 2], 0.0)
    loop.native = None
    loop(out)
    assert (out.tolist(), loop.seconds) == ([1, 1, 1], 1.0)
