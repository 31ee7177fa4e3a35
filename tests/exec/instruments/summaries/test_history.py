"""Summaries in memory: bounded, and without losing an extreme."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowbook as fb
from flowbook.exec.instruments.summaries.curve import Point
from flowbook.exec.instruments.summaries.event import Summary
from flowbook.exec.instruments.summaries.history import News, Seen

NUMBERS = st.floats(allow_nan=True, allow_infinity=True)


def filled(values: list[float], points: int = 10) -> list[Point]:
    history = fb.summary.SummaryHistory(points=points)
    for step, value in enumerate(values):
        history.add([Summary("a", "x", "scalar", step, float(step), value)])
    return history.points("x") if values else []


@given(st.lists(NUMBERS, min_size=1, max_size=300), st.integers(10, 40))
def test_a_curve_is_bounded_and_keeps_its_extremes(values: list[float], most: int) -> None:
    kept = filled(values, most)
    assert len(kept) <= most
    assert [p.step for p in kept] == sorted({p.step for p in kept})
    for point in kept:
        assert repr(values[point.step]) == repr(point.value)
    assert (kept[0].step, kept[-1].step) == (0, len(values) - 1)
    numbers = [v for v in values if not math.isnan(v)]
    shown = [p.value for p in kept if not math.isnan(p.value)]
    if numbers:
        assert (min(shown), max(shown)) == (min(numbers), max(numbers))
    assert any(math.isnan(v) for v in values) == any(math.isnan(p.value) for p in kept)


@given(st.lists(NUMBERS, min_size=1, max_size=10))
def test_a_short_curve_is_kept_whole(values: list[float]) -> None:
    assert [p.step for p in filled(values)] == list(range(len(values)))


def test_a_peak_stays_wherever_it_is() -> None:
    for place in range(0, 500, 7):
        values = [0.0] * 500
        values[place] = 1.0
        assert max(p.value for p in filled(values)) == 1.0


def test_many_curves_keep_fewer_points_each_and_their_extremes() -> None:
    history = fb.summary.SummaryHistory(points=1000, most_points=2000)
    for step in range(1000):
        value = 5.0 if step == 333 else 1.0
        history.add([Summary("a", f"x{i}", "scalar", step, 0.0, value) for i in range(20)])
    kept = [history.points(f"x{i}") for i in range(20)]
    assert all(50 <= len(points) <= 100 for points in kept)
    assert all(max(p.value for p in points) == 5.0 for points in kept)


@given(st.integers(1, 300), st.integers(1, 9), st.integers(1, 40))
def test_texts_are_bounded_in_number_and_size(count: int, most: int, size: int) -> None:
    history = fb.summary.SummaryHistory(samples=most, most_bytes=1000)
    for step in range(count):
        history.add([Summary("a", "x", "text", step, 0.0, ("y" * size * 10,))])
        kept = history.points("x")
        assert kept[-1].step == step
        assert len(kept) <= most
        assert len(kept) == 1 or sum(64 + size * 10 for _ in kept) <= 1000
        assert [p.step for p in kept] == sorted({p.step for p in kept})


def test_what_is_larger_than_all_that_is_kept_is_kept_alone() -> None:
    history = fb.summary.SummaryHistory(most_bytes=1000)
    for step in range(3):
        history.add([Summary("a", "x", "text", step, 0.0, ("y" * 5000,))])
    assert [p.step for p in history.points("x")] == [2]


def test_several_runs() -> None:
    history = fb.summary.SummaryHistory()
    for run, value in (("a", 1.0), ("b", 2.0)):
        history.add([Summary(run, "x", "scalar", 0, 5.0, value)])
    assert history.runs == ["a", "b"]
    assert history.tags("a") == {"x": "scalar"}
    assert history.points("x", "a") == [Point(0, 5.0, 1.0)]
    assert history.points("x") == [Point(0, 5.0, 2.0)]
    assert history.version == 2


def test_a_tag_that_changes_its_kind_starts_afresh() -> None:
    history = fb.summary.SummaryHistory()
    history.add([Summary("a", "x", "scalar", 0, 0.0, 1.0)])
    history.add([Summary("a", "x", "text", 1, 0.0, ("hi",))])
    assert history.tags() == {"x": "text"}
    assert [p.value for p in history.points("x")] == [("hi",)]


def test_what_is_not_there() -> None:
    history = fb.summary.SummaryHistory()
    with pytest.raises(fb.errors.NotFoundError, match="there is none yet"):
        history.points("loss")
    with pytest.raises(fb.errors.InvalidArgumentError, match="at least 10 points"):
        fb.summary.SummaryHistory(points=1)


def placed(news: News) -> dict[int, Point]:
    return dict(zip(news.columns.places, news.columns.points(), strict=True))


@given(
    st.lists(st.tuples(st.integers(0, 2), st.booleans(), NUMBERS), max_size=300),
    st.integers(10, 20),
    st.integers(1, 9),
)
def test_news_add_up_to_what_is_kept(
    steps: list[tuple[int, bool, float]], points: int, samples: int
) -> None:
    history = fb.summary.SummaryHistory(points=points, samples=samples)
    seen = Seen()
    known: dict[str, dict[int, Point]] = {}
    for step, (series, looks, value) in enumerate(steps):
        if series == 2:
            history.add([Summary("a", "text", "text", step, 0.0, (str(value),))])
        else:
            history.add([Summary("a", str(series), "scalar", step, 0.0, value)])
        if looks or step == len(steps) - 1:
            for news in history.news(seen):
                series_known = known.setdefault(news.tag, {})
                for place in list(series_known):
                    gone = news.kept is not None and place not in news.kept
                    if place >= news.start or gone:
                        del series_known[place]
                series_known.update(placed(news))
            told = {tag: list(kept.values()) for tag, kept in known.items()}
            # As text: NaN is not equal to itself.
            assert repr(told) == repr({tag: history.points(tag) for tag in history.tags()})
    assert history.news(seen) == []


def test_news_tell_of_a_tag_that_starts_afresh() -> None:
    history, seen = fb.summary.SummaryHistory(), Seen()
    history.add([Summary("a", "x", "scalar", 0, 0.0, 1.0)])
    assert [placed(news) for news in history.news(seen)] == [{0: Point(0, 0.0, 1.0)}]
    history.add([Summary("a", "x", "text", 1, 0.0, ("hi",))])
    [news] = history.news(seen)
    assert (news.kind, news.start, placed(news)) == ("text", 0, {0: Point(1, 0.0, ("hi",))})
