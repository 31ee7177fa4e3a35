"""A session's queues as they are shown, and what is kept of them for that."""

from __future__ import annotations

import gc
import re
import weakref
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.resources.queue import Reading
from flowbook.exec.session.input_pipeline import (
    NOTHING,
    InputPipeline,
    Look,
    QueuePlace,
    QueueUse,
    RunnerState,
    Verdict,
    Waiting,
)
from flowbook.widgets.pipelines import history as histories
from flowbook.widgets.pipelines.history import MOST, PipelineHistory, Shown
from flowbook.widgets.pipelines.payload import MOST_QUEUES, pipeline_payload
from flowbook.widgets.pipelines.svg import pipeline_svg, rates
from flowbook.widgets.publisher import publisher
from tests.widgets.summaries.test_summary_view import unpacked


class Seen:
    """A session of which what is seen is given."""

    def __init__(self) -> None:
        self.closed = False
        self.queue = fb.FIFOQueue(4, fb.int32, name="q").op
        self.moment = 0.0
        self.reading = NOTHING
        self.is_busy = False

    def watch(self) -> Seen:
        return self

    def look(self) -> Look:
        place = QueuePlace(self.queue, "q", [], [], True)
        runners = {self.queue: [RunnerState("r", 1, 1, "runs")]}
        return Look(self.moment, [place], {self.queue: self.reading}, runners, {}, self.is_busy)

    def pass_time(self, passed: float, **changes: Any) -> None:
        self.moment += passed
        self.reading = self.reading._replace(**changes)


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """The publisher gives no turns."""
    monkeypatch.setattr(histories.publisher, "add", lambda view: None)


@pytest.mark.usefixtures("quiet")
def test_time_in_which_nothing_happens_is_left_out() -> None:
    session: Any = Seen()
    history = PipelineHistory(session)
    session.pass_time(5)
    history.catch_up()
    assert history.shown().clocks == [0.0]
    session.pass_time(1, put=3, taken=2, fill=1, seconds=1.0)
    history.catch_up()
    session.pass_time(60, fill=4, put=6)  # Its runner fills it; nobody takes.
    version = history.version
    history.catch_up()
    assert history.version == version + 1
    shown = history.shown()
    assert shown.pipeline.queues[0].fill == shown.readings[0][-1].fill == 4
    assert shown.clocks == [0.0, 1.0]
    session.is_busy = True  # A long step is no pause.
    session.pass_time(2)
    history.catch_up()
    session.is_busy = False
    session.pass_time(3, awaited_since=70.0)  # Nor is a wait.
    history.catch_up()
    shown = history.shown()
    assert shown.clocks == [0.0, 1.0, 3.0, 6.0]
    [use] = shown.pipeline.queues
    assert (use.put_rate, use.taken_rate, use.seconds) == (1.0, pytest.approx(1 / 3), 6.0)


@pytest.mark.usefixtures("quiet")
def test_a_wait_for_room_over_a_pause_counts_for_what_it_was() -> None:
    session: Any = Seen()
    history = PipelineHistory(session)
    session.pass_time(1, taken=1, put=5, seconds=1.0, waited_for_room=0.5)
    history.catch_up()
    session.pass_time(100)
    history.catch_up()
    session.pass_time(1, taken=2, put=6, seconds=102.0, waited_for_room=101.0)
    history.catch_up()
    [use] = history.shown().pipeline.queues
    assert use.room_share == 0.75


@pytest.mark.usefixtures("quiet")
def test_no_more_is_kept_than_a_minute() -> None:
    session: Any = Seen()
    history = PipelineHistory(session)
    for count in range(2 * MOST):
        # At first it waits all of the time, then never.
        waited = min(float(count), MOST)
        session.pass_time(1, taken=count + 1, seconds=count + 1.0, waited_for_elements=waited)
        history.catch_up()
    shown = history.shown()
    assert len(shown.clocks) == len(shown.readings[0]) == MOST
    [use] = shown.pipeline.queues
    assert use.element_share == 0.0
    assert use.taken_rate == 1.0


@pytest.mark.usefixtures("quiet")
def test_it_ends_with_the_session() -> None:
    session: Any = Seen()
    history = PipelineHistory(session)
    session.pass_time(1, taken=1, put=2, fill=1, seconds=1.0)
    session.closed = True
    history.catch_up()
    assert history.has_ended
    shown = history.shown()
    assert shown.has_ended
    [use] = shown.pipeline.queues
    assert (use.taken, use.runners[0].state) == (1, "stopped")
    version = history.version
    session.pass_time(1, taken=9)
    history.catch_up()
    assert history.version == version


def test_a_view_of_a_closed_session_tells_what_it_did() -> None:
    x = fb.train.batches(np.arange(6), 2, prefetch=4)
    with fb.Session() as sess:
        view = fb.PipelineView(sess)
        assert "No run has taken an element yet" in repr(view)
        list(fb.train.until_end(sess, x))
    assert repr(view).splitlines()[2].startswith("  x      0 of 4")
    [use] = view._history.shown().pipeline.queues
    assert (use.put, use.taken) == (3, 3)
    assert "The session has ended." in view._svg()
    assert repr(view).endswith("\nThe session has ended.")
    with pytest.raises(fb.errors.FailedPreconditionError, match="closed"):
        fb.PipelineView(sess)
    with pytest.raises(fb.errors.InvalidTypeError, match="has no queues"):
        fb.PipelineView(fb.get_default_graph())  # type: ignore[arg-type]


def test_a_session_that_ended_unused_has_nothing_to_begin_with() -> None:
    fb.train.batches(np.arange(6), 2, prefetch=4)
    with fb.Session() as sess:
        view = fb.PipelineView(sess)
    assert "has taken an element yet" not in repr(view)
    assert "from the first run on" not in view._svg() + repr(view)
    assert repr(view).startswith("No run has taken an element\n")
    assert "not started" in repr(view)


def test_sessions_of_one_graph_are_told_apart() -> None:
    x = fb.train.batches(np.arange(100), 2)
    with fb.Session() as one, fb.Session() as other:
        views = [fb.PipelineView(one), fb.PipelineView(other)]
        for _ in range(3):
            one.run(x)
        other.run(x)
        for view in views:
            repr(view)
        assert [v._history.shown().pipeline.queues[0].taken for v in views] == [3, 1]


def test_nothing_of_a_view_or_a_session_stays() -> None:
    sess = fb.Session()
    view = fb.PipelineView(sess)
    known = weakref.ref(view._history)
    gone = weakref.ref(sess)
    del view
    gc.collect()
    assert known() is None
    view = fb.PipelineView(sess)
    del sess
    gc.collect()
    assert gone() is None
    assert "There are no queues yet" in repr(view)
    assert view._history.has_ended


def test_a_view_is_sent_what_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    from flowbook.widgets.pipelines import live

    x = fb.train.batches(np.arange(6), 2)
    with fb.Session() as sess:
        history = PipelineHistory(sess)
        monkeypatch.setattr(publisher, "add", lambda view: None)
        now = [100.0]
        monkeypatch.setattr(live.time, "monotonic", lambda: now[0])
        view = live.LivePipeline(history)
        sent: list[bytes] = []
        monkeypatch.setattr(view, "send", lambda content, buffers: sent.extend(buffers))
        view.publish()
        assert len(sent) == 1
        view.publish()
        assert len(sent) == 1  # Not so soon again,
        now[0] += 1
        view.publish()
        assert len(sent) == 2  # but soon, as one may be lost;
        now[0] += 10
        view.publish()
        assert len(sent) == 2  # and not for ever.
        sess.run(x)
        history.version += 1
        view.publish()
        assert len(sent) == 3
    history.catch_up()
    header, _ = unpacked(view.payload_now())
    assert header["said"].startswith("the session that this shows has ended")
    view.close()


# Forms


def use(name: str, **changes: Any) -> QueueUse:
    fields: dict[str, Any] = {
        "name": name,
        "operation": f"{name}/queue",
        "kind": "FIFOQueue",
        "place": "cell [1], line 2",
        "capacity": 8,
        "fill": 2,
        "put": 30,
        "taken": 28,
        "seconds": 2.0,
        "put_rate": 15.0,
        "taken_rate": 14.0,
        "room_share": 0.25,
        "element_share": 0.5,
        "feeds_training": True,
        "is_closed": False,
        "runners": [RunnerState("runner", 2, 1, "runs")],
        "waiting": [Waiting("take", "cell [1], line 3", "waits for it", 1.25, False, False)],
    }
    return QueueUse(**{**fields, **changes})


def shown(uses: list[QueueUse], samples: int = 3) -> Shown:
    verdict = Verdict("waits", "Training waits for input 50 % of the time: <why>", "See & tell.")
    clocks = [0.5 * i for i in range(samples)]
    reading = Reading(0, 0, 0, 0.0, 0.0, 0.0, None, False)
    readings = [
        [reading._replace(put=5 * i, taken=4 * i, fill=i) for i in range(samples)] for _ in uses
    ]
    return Shown(InputPipeline(verdict, uses), clocks, readings, False)


def test_the_payload_says_it_all() -> None:
    header, columns = unpacked(pipeline_payload(shown([use("a"), use("b")]), "it has ended"))
    assert header["said"] == "it has ended"
    assert header["verdict"][0] == "waits"
    assert [queue["name"] for queue in header["queues"]] == ["a", "b"]
    assert header["queues"][0]["runners"] == [["runner", "runs", "1 of 2 threads run"]]
    text = "a run waits for elements: 'take', cell [1], line 3"
    assert header["queues"][0]["waiting"] == [[text, "waits for it", 1.25, False]]
    assert columns["clock"].tolist() == [0.0, 0.5, 1.0]
    assert columns["put"].tolist() == [0, 5, 10, 0, 5, 10]
    assert columns["taken"].tolist() == [0, 4, 8, 0, 4, 8]
    assert columns["fill"].tolist() == [0, 1, 2, 0, 1, 2]


def test_what_is_sent_is_bounded() -> None:
    waiting = [Waiting("w" * 9999, "p" * 9999, "x" * 9999, 0.0, True, False)] * 50
    many = [use("n" * 9999, place="p" * 9999, waiting=waiting) for _ in range(MOST_QUEUES + 7)]
    header, columns = unpacked(pipeline_payload(shown(many, MOST)))
    assert (len(header["queues"]), header["more"]) == (MOST_QUEUES, 7)
    assert header["queues"][0]["moreWaiting"] == 47
    assert len(str(header)) < MOST_QUEUES * 6000
    assert len(columns["fill"]) == MOST_QUEUES * MOST


def test_static_forms_are_deterministic_and_text_stays_text() -> None:
    bad = [use("<b>&x\n", place="<i>", runners=[RunnerState("<r>", 1, 0, "failed", "<boom>")])]
    svg = pipeline_svg(shown(bad))
    assert svg == pipeline_svg(shown(bad))
    assert "<b>" not in svg
    assert "<boom>" not in svg
    assert "&lt;b&gt;&amp;x" in svg
    assert "&lt;why&gt;" in svg
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", svg)
    for text in ("training waits", "50 %", "runner waits", "25 %", "2 of 8", "in 15", "out 14"):
        assert f">{text}<" in svg
    assert "now a run waits for elements: &#x27;take&#x27;, cell [1], line 3, for 1.25 s" in svg


def test_pictures_of_little_and_of_much() -> None:
    assert "There are no queues yet" in fb.PipelineView(fb.Session())._svg()
    one = pipeline_svg(shown([use("a", capacity=-1, runners=[], waiting=[])], samples=1))
    assert ">filling waits<" in one
    assert '<path d="M0' in one
    many = pipeline_svg(shown([use(f"q{i}") for i in range(20)]))
    assert "and 12 more queues" in many
    forms, _ = fb.PipelineView(fb.Session())._repr_mimebundle_()
    assert set(forms) == {"text/plain", "image/svg+xml", "image/png"}


def test_long_words_are_wrapped_where_they_may_be() -> None:
    text = f"Training {'waits ' * 13}it takes 3.46 ms an element"
    found = shown([use("a", place="cell [3], line 12, run by cell [4]")])
    found = found._replace(pipeline=InputPipeline(Verdict("waits", text), found.pipeline.queues))
    svg = pipeline_svg(found)
    assert ">3.46 ms an element<" in svg
    assert ">cell [3], line 12, run by cell<" in svg
    assert ">[4]<" in svg


def test_rates_are_taken_over_several_samples() -> None:
    assert rates([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [0, 10, 20, 30, 40, 90]) == [0, 10, 10, 10, 10, 20]
    assert rates([1.0, 1.0], [0, 5]) == [0.0, 0.0]
    assert rates([], []) == []


def test_a_page_of_its_own(tmp_path: Any) -> None:
    with fb.Session() as sess:
        view = fb.PipelineView(sess)
        fb.export_html(view, tmp_path / "input.html")
        assert unpacked(view._page().payload)[0]["said"] == ""
    assert "renderExportedPipeline" in (tmp_path / "input.html").read_text()
    assert unpacked(view._page().payload)[0]["said"] == "The session has ended."


def test_a_picture_of_what_has_ended_does_not_say_now() -> None:
    x = fb.train.batches(np.arange(6), 2, prefetch=4)
    with fb.Session() as sess:
        view = fb.PipelineView(sess)
        list(fb.train.until_end(sess, x))
        view._history.catch_up()
        assert ">now</text>" in view._svg()
        assert re.search(r">[^<]* ago</text>", view._svg())
    assert ">end</text>" in view._svg()
    assert re.search(r">[^<]* before</text>", view._svg())
    assert not re.search(r">now<| ago<", view._svg())
