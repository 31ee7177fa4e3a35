"""Bars on long work."""

from __future__ import annotations

import io
import sys
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.need import requires


@requires(module="tqdm")
def test_a_bar_shows_how_far_how_fast_and_what_it_was_told(monkeypatch: Any) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    seen = []
    for step in (bar := fb.progress(range(5), description="training")):
        seen.append(step)
        bar.show(loss=np.float32(1.23456), accuracy=np.array([0.5]), note="<b>\n")
    shown = stream.getvalue()
    assert seen == list(range(5))
    assert "training: 100%" in shown
    assert "5/5" in shown
    assert "step/s" in shown
    assert "loss=1.235, accuracy=0.5, note=<b> " in shown
    assert "note=<b>\n" not in shown


@requires(module="tqdm")
def test_long_values_are_cut_and_nan_is_shown() -> None:
    bar = fb.progress([1], disable=True)
    bar.show(text="x" * 1_000_000, loss=float("nan"), many=np.zeros(3))
    assert len(bar.text) < 150
    assert "loss=nan" in bar.text
    assert "many=[0. 0. 0.]" in bar.text


@requires(module="tqdm")
def test_iterators_and_blocks() -> None:
    with fb.progress((i * i for i in range(3)), total=3, disable=True) as bar:
        assert list(bar) == [0, 1, 4]
    assert len(fb.progress([1, 2], disable=True)) == 2
    with pytest.raises(fb.errors.InvalidTypeError, match="iterable"):
        fb.progress(3)  # type: ignore[arg-type]


def test_without_tqdm_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tqdm.std", None)
    with pytest.raises(fb.errors.UnimplementedError, match=r"flowbook\[lab\]"):
        fb.progress([1])
