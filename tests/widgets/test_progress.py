"""Bars on long work."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.instruments.guard import Guard
from flowbook.widgets import progress
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


def test_without_tqdm_it_goes_through_everything_and_draws_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    x = fb.placeholder(fb.float32, [])
    with fb.Session() as sess:
        for i in (bar := fb.progress(range(4), description="training", x=x)):
            sess.run(x + 1.0, {x: float(i)})
            if i == 2:
                break
    bar.close()
    assert repr(bar) == "training: 50%, 2/4 steps, x=2"
    assert list(fb.progress(iter("abc"))) == ["a", "b", "c"]
    assert len(fb.progress([1, 2])) == 2
    assert len(fb.progress(iter("abc"), total=3)) == 3
    with pytest.raises(TypeError, match="no total"):
        len(fb.progress(iter("abc")))
    assert capsys.readouterr() == ("", "")
    assert not progress._open


def test_without_tqdm_a_notebook_shows_how_it_ended(monkeypatch: Any) -> None:
    from IPython import display

    shown: list[Any] = []
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setattr(display, "display", lambda it, **_: shown.append(it))
    monkeypatch.setattr(progress, "_shell", lambda: SimpleNamespace(kernel=1))
    monkeypatch.setattr(progress, "is_looked_at", lambda shell: True)
    clock = stopped_clock(monkeypatch)
    for _ in fb.progress(range(2)):
        clock[0] += 1.5
    assert shown == [{"text/plain": "100%, 2/2 steps (3.00 s, 1.50 s per step)"}]


def stopped_clock(monkeypatch: Any) -> list[float]:
    """Return the time that the module goes by, in seconds."""
    clock = [0.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    return clock


@requires(module="tqdm")
def test_a_tensor_is_watched_in_runs_that_compute_it() -> None:
    x = fb.placeholder(fb.float32, [], name="x")
    calls = []
    counted = fb.py_func(lambda v: calls.append(1) or v, [x], fb.float32)
    loss, other = fb.square(counted, name="loss"), fb.negative(x)
    after = loss + 1.0
    with fb.Session() as sess, fb.Session() as second, fb.Session(graph=fb.Graph()) as stranger:
        texts = []
        for i in (bar := fb.progress(range(4), disable=True, loss=loss, fed=x)):
            if i == 3:
                second.run(after, {x: 10.0})
            else:
                sess.run(after if i < 2 else other, {x: float(i)})
            texts.append(bar.text)
        assert texts == ["loss=0, fed=0", "loss=1, fed=1", "loss=1, fed=2", "loss=100, fed=10"]
        # Nothing is computed for the bar alone, and nothing is watched after the loop.
        assert len(calls) == 3
        assert not any(s._instruments.all for s in (sess, second, stranger))
        sess.run(after, {x: 5.0})
        assert bar.text == "loss=100, fed=10"


@requires(module="tqdm")
def test_results_are_the_caller_s_and_errors_pass() -> None:
    v = fb.Variable(1.0, name="v")
    loss = fb.log(v)
    down = fb.assign_sub(v, 1.0)
    with fb.control_dependencies([down]):
        after = fb.identity(loss)
    with fb.Session() as sess, sess.guard():
        found = []
        bar = fb.progress(range(3), disable=True, loss="Log:0")
        with pytest.raises(fb.errors.InvalidArgumentError, match="Inf"):
            found.extend(sess.run({"a": [after]}) for _ in bar)
        assert found == [{"a": [0.0]}]
        assert bar.text == "loss=0"
        progress.close_left()
        assert not [i for i in sess._instruments.all if not isinstance(i, Guard)]


@requires(module="tqdm")
def test_what_is_shown_and_what_is_watched_stand_together() -> None:
    x = fb.placeholder(fb.float32, [])
    with fb.Session() as sess:
        for i in (bar := fb.progress(range(2), disable=True, x=x)):
            sess.run(x * 2.0, {x: 3.0})
            bar.show(step=i)
    assert bar.text == "x=3, step=1"
    assert repr(bar).endswith("x=3, step=1")


@requires(module="tqdm")
def test_values_are_not_tensors() -> None:
    with pytest.raises(fb.errors.InvalidTypeError, match=r"(?s)loss is a value.*show\(loss="):
        fb.progress(range(3), loss=0.5)
    with pytest.raises(fb.errors.NotFoundError, match="nowhere"):
        fb.progress(range(3), loss="nowhere:0")


@requires(module="tqdm")
def test_a_bar_in_the_loop_of_another_goes_when_it_is_full(monkeypatch: Any) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    for _ in fb.progress(range(2), description="epochs"):
        for _ in fb.progress(range(3), description="steps"):
            pass
    last = stream.getvalue().rstrip().rpartition("\r")[2]
    assert last.startswith("epochs: 100%")
    assert not progress._open


@requires(module="tqdm")
def test_a_loop_that_is_left_leaves_no_open_bar(monkeypatch: Any) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    bar = fb.progress(range(10), description="training")
    kept = iter(bar)
    next(kept)
    next(kept)
    # The traceback of an interrupt keeps the loop alive; the end of the cell closes its bar.
    progress.close_left()
    assert stream.getvalue().endswith("\n")
    assert repr(bar) == "training: 10%, 1/10 steps"
    bar.close()
    assert not progress._open


class Handle:
    def __init__(self) -> None:
        self.forms: list[Any] = []

    def update(self, forms: Any, raw: bool) -> None:
        assert raw
        self.forms.append(forms)


@requires(module="ipywidgets")
@requires(module="tqdm")
@pytest.mark.parametrize("leaves_early", [False, True])
def test_in_a_notebook_it_is_a_widget_and_then_a_text(leaves_early: bool, monkeypatch: Any) -> None:
    from IPython import display

    shown: list[Any] = []
    handle = Handle()
    monkeypatch.setattr(display, "display", lambda it, **_: shown.append(it) or handle)
    monkeypatch.setattr(progress, "_shell", lambda: SimpleNamespace(kernel=1))
    monkeypatch.setattr(progress, "is_looked_at", lambda shell: True)
    clock = stopped_clock(monkeypatch)
    for i in (bar := fb.progress(range(4), description="<b>")):
        bar.show(loss=i / 4)
        clock[0] += 0.5
        if leaves_early and i == 1:
            break
    progress.close_left()
    assert len(shown) == 1
    [forms] = handle.forms
    if leaves_early:
        far = "25%, 1/4 steps, loss=0.25 (1.00 s, 1.00 s per step)"
    else:
        far = "100%, 4/4 steps, loss=0.75 (2.00 s, 500 ms per step)"
    assert forms == {"text/plain": f"<b>: {far}"}
    assert shown[0].comm is None
    handle.forms.clear()
    for _ in fb.progress([1]):
        for _ in fb.progress(range(3)):
            pass
    assert handle.forms == [{}, {"text/plain": "100%, 1/1 steps (0 ns, 0 ns per step)"}]


@requires(module="tqdm")
def test_where_nobody_looks_only_its_end_is_shown(monkeypatch: Any) -> None:
    from IPython import display

    shown: list[Any] = []
    monkeypatch.setattr(display, "display", lambda it, **_: shown.append(it))
    monkeypatch.setattr(progress, "_shell", lambda: SimpleNamespace(kernel=1))
    monkeypatch.setattr(progress, "is_looked_at", lambda shell: False)
    clock = stopped_clock(monkeypatch)
    for _ in fb.progress(range(2)):
        clock[0] += 0.01
        for _ in fb.progress(range(3)):
            assert not shown
    assert shown == [{"text/plain": "100%, 2/2 steps (20.0 ms, 10.0 ms per step)"}]


@requires(module="ipywidgets")
@requires(module="tqdm")
@pytest.mark.parametrize("fails", [False, True])
def test_long_work_gets_a_bar_late_and_loses_it(fails: bool, monkeypatch: Any) -> None:
    from IPython import display

    shown: list[Any] = []
    handle = Handle()
    clock = stopped_clock(monkeypatch)
    monkeypatch.setattr(display, "display", lambda it, **_: shown.append(it) or handle)
    monkeypatch.setattr(progress, "_shell", lambda: SimpleNamespace(kernel=1))
    monkeypatch.setattr(progress, "is_looked_at", lambda shell: True)
    counts = []
    for item in (work := progress.track_long(range(5), "loading")):
        counts.append((item, len(shown)))
        clock[0] += 0.4
        if fails and item == 3:
            break
    del work
    progress.close_left()
    assert counts == [(0, 0), (1, 0), (2, 0), (3, 1), (4, 1)][: len(counts)]
    assert len(counts) == 4 if fails else 5
    # Its bar came after three of them, and the fourth did not end.
    left = {"text/plain": "loading: 60%, 3/5 operations (400 ms)"}
    assert handle.forms == ([left] if fails else [{}])
    assert shown[0].comm is None


@pytest.mark.parametrize("looked_at", [False, True])
def test_short_work_and_work_that_nobody_watches_get_no_bar(
    looked_at: bool, monkeypatch: Any
) -> None:
    monkeypatch.setattr(progress, "is_looked_at", lambda shell: looked_at)
    monkeypatch.setattr(progress, "_as_widget", lambda *_: pytest.fail("a bar"))
    assert list(progress.track_long(range(3), "loading")) == [0, 1, 2]
