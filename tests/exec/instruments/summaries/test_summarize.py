"""Which runs give summaries, which summaries they give, and at which steps."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowbook as fb
from flowbook.graph.model.summaries import trainings_among


class Model:
    """A small regression with summaries."""

    def __init__(self, counted: bool = True) -> None:
        self.graph = fb.Graph()
        with self.graph.as_default():
            self.x = fb.placeholder(fb.float32, [None, 2], name="x")
            self.W = fb.Variable([[1.0], [2.0]], name="W")
            self.loss = fb.reduce_mean(fb.square(self.x @ self.W - 1.0), name="mse")
            counter = fb.train.get_or_create_global_step() if counted else None
            fb.summary.scalar("loss", self.loss)
            fb.summary.histogram("W", self.W)
            self.train = fb.train.GradientDescentOptimizer(0.05).minimize(
                self.loss, global_step=counter
            )
        self.feeds = {self.x: np.array([[1.0, 0.5], [0.25, -1.0]], np.float32)}


def steps(kept: Any, tag: str = "loss") -> list[int]:
    return [point.step for point in kept.history.points(tag)]


def test_training_runs_give_summaries_of_the_values_before_the_step() -> None:
    model = Model()
    with fb.Session(graph=model.graph) as sess:
        kept = sess.summarize()
        losses = [sess.run([model.train, model.loss], model.feeds)[1] for _ in range(4)]
        assert [p.value for p in kept.history.points("loss")] == [float(v) for v in losses]
        assert steps(kept) == [0, 1, 2, 3]
        first = kept.history.points("W")[0].value
        assert (first.low, first.high, first.number, first.total) == (1.0, 2.0, 2.0, 3.0)


def test_other_runs_give_none() -> None:
    model = Model()
    with fb.Session(graph=model.graph) as sess:
        kept = sess.summarize()
        sess.run(model.loss, model.feeds)
        sess.run(model.W)
        assert kept.history.tags() == {}


def test_other_runs_join_by_what_they_fetch_as_a_series() -> None:
    model = Model()
    with fb.Session(graph=model.graph) as sess:
        kept = sess.summarize()
        sess.summarize(fetches=model.loss, series="test")
        for _ in range(3):
            sess.run(model.train, model.feeds)
        value = sess.run(model.loss, model.feeds)
        sess.run([model.loss, model.W], model.feeds)
        assert [p[::2] for p in kept.history.points("test/loss")] == [(3, float(value))]
        assert steps(kept) == [0, 1, 2]


def test_without_a_counter_the_runs_of_a_signature_are_counted() -> None:
    model = Model(counted=False)
    with fb.Session(graph=model.graph) as sess:
        kept = sess.summarize(every=2)
        sess.summarize(fetches="mse:0", series="test")
        for _ in range(5):
            sess.run(model.train, model.feeds)
            sess.run(model.loss, model.feeds)
        assert steps(kept) == [0, 2, 4]
        # They stand beside the curve of the training, at the steps that it has made.
        assert steps(kept, "test/loss") == [1, 2, 3, 4, 5]


def test_without_a_training_to_stand_beside_runs_are_counted() -> None:
    model = Model(counted=False)
    with fb.Session(graph=model.graph) as sess:
        kept = sess.summarize(fetches="mse:0", series="test")
        for _ in range(2):
            sess.run(model.train, model.feeds)
            sess.run(model.loss, model.feeds)
        assert steps(kept, "test/loss") == [0, 1]


def test_a_summary_whose_inputs_the_run_does_not_compute_is_left_out() -> None:
    model = Model()
    with model.graph.as_default():
        fb.summary.scalar("distance", fb.reduce_max(model.x))
        fb.summary.scalar("reshaped", fb.reshape(model.loss, [1]))
        with fb.control_dependencies([fb.reduce_min(model.x, name="lowest")]):
            fb.summary.scalar("waiting", model.loss)
    with fb.Session(graph=model.graph) as sess:
        kept = sess.summarize()
        sess.run(model.train, model.feeds)
        assert set(kept.history.tags()) == {"loss", "W", "reshaped"}
        assert kept.left_out == {"distance": "Max", "waiting": "lowest"}


def test_a_fed_value_is_shown_as_it_was_fed() -> None:
    model = Model()
    with fb.Session(graph=model.graph) as sess:
        kept = sess.summarize()
        sess.run([model.train, model.loss], model.feeds | {model.W: [[3.0], [3.0]]})
        assert kept.history.points("W")[0].value.low == 3.0


def test_nothing_runs_twice() -> None:
    calls: list[int] = []

    def counted(value: Any) -> Any:
        calls.append(1)
        return value

    W = fb.Variable(2.0)
    seen = fb.py_func(counted, [W * 1.0], fb.float32)
    seen.set_shape([]) if hasattr(seen, "set_shape") else None
    fb.summary.histogram("seen", seen)
    train = fb.train.GradientDescentOptimizer(0.1).minimize(fb.square(W))
    with fb.Session() as sess:
        kept = sess.summarize()
        for _ in range(3):
            sess.run([train, seen])
        assert len(calls) == 3
        assert steps(kept, "seen") == [0, 1, 2]


def test_every_and_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    from flowbook.exec.instruments.summaries import summarizer

    now = [100.0]
    model = Model()
    with fb.Session(graph=model.graph) as sess:
        monkeypatch.setattr(summarizer.time, "monotonic", lambda: now[0])
        kept = sess.summarize(seconds=10)
        both = sess.summarize(every=4, seconds=10)
        for i in range(8):
            now[0] = 100.0 + 4 * i
            sess.run(model.train, model.feeds)
        # Two rules, one history: at 0, 12 and 24 seconds; and at 0, 12, 16 (the fourth run), 28.
        assert sorted(steps(kept)) == [0, 0, 3, 3, 4, 6, 7]
        assert both.history is kept.history


def test_a_new_summary_joins_what_runs_already() -> None:
    model = Model()
    with fb.Session(graph=model.graph) as sess:
        kept = sess.summarize(every=2)
        for _ in range(3):
            sess.run(model.train, model.feeds)
        with model.graph.as_default():
            fb.summary.scalar("again", model.loss)
        for _ in range(3):
            sess.run(model.train, model.feeds)
        assert steps(kept) == [0, 2, 4]
        assert steps(kept, "again") == [4]


def test_closing_ends_it() -> None:
    model = Model()
    with fb.Session(graph=model.graph) as sess:
        with sess.summarize() as kept:
            sess.run(model.train, model.feeds)
        sess.run(model.train, model.feeds)
        assert steps(kept) == [0]


def test_graph_summaries_are_those_that_live() -> None:
    model = Model()
    found = model.graph.summaries()
    assert [op.type for op in found] == ["ScalarSummary", "HistogramSummary"]
    model.graph.members.retire(found[0])
    assert model.graph.summaries() == found[1:]


def test_equal_tags_are_numbered_and_scopes_come_first() -> None:
    with fb.name_scope("train"):
        for _ in range(2):
            fb.summary.scalar("loss", 1.0)
    v = fb.Variable(1.0)
    train = fb.train.GradientDescentOptimizer(0.1).minimize(fb.square(v))
    with fb.Session() as sess:
        kept = sess.summarize()
        sess.run(train)
        assert set(kept.history.tags()) == {"train/loss", "train/loss_1"}


HOSTILE = ["<img src=x onerror=alert(1)>", "a\nb\x00c", "日本", "../../etc/passwd", "x" * 1_000_000]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_any_text_is_a_tag(name: str) -> None:
    v = fb.Variable(1.0)
    fb.summary.scalar(name, v * 1.0)
    fb.summary.text("text", fb.constant(name))
    product = v * 1.0
    fb.summary.scalar(name + "!", product)
    train = fb.train.GradientDescentOptimizer(0.1).minimize(product)
    with fb.Session() as sess:
        kept = sess.summarize()
        sess.run(train)
        assert kept.history.points("text")[0].value == (name,)
        assert kept.history.points(name + "!")[0].value == 1.0
    restored = fb.Graph.from_bytes(fb.get_default_graph().to_bytes())
    assert len(restored.summaries()) == 3


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_shown(value: float) -> None:
    x = fb.placeholder(fb.float32, [3])
    v = fb.Variable(1.0)
    total = fb.reduce_sum(x) * v
    fb.summary.scalar("total", total)
    fb.summary.histogram("x", x)
    fb.summary.image("pixels", fb.reshape(x, [1, 1, 1, 3]))
    train = fb.train.GradientDescentOptimizer(0.0).minimize(total)
    with fb.Session() as sess:
        kept = sess.summarize()
        sess.run(train, {x: [1.0, value, 2.0]})
        np.testing.assert_equal(kept.history.points("total")[0].value, value)
        histogram = kept.history.points("x")[0].value
        assert (histogram.number, histogram.lost, sum(histogram.counts)) == (2.0, 1, 2.0)
        assert kept.history.points("pixels/image/0")[0].value.channels == 3


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({"every": 0}, "every is greater than 0"),
        ({"every": 1.5}, "every is a number"),
        ({"seconds": -1}, "seconds is greater than 0"),
        ({"seconds": float("nan")}, "seconds is greater than 0"),
        ({"fetches": "mse"}, "the name of a series"),
        ({"series": "test"}, "the name of a series"),
        ({"fetches": "mse", "series": ""}, "named by a text"),
        ({"to": 3}, "named by a path"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], what: str) -> None:
    model = Model()
    with (
        fb.Session(graph=model.graph) as sess,
        pytest.raises(fb.errors.InvalidArgumentError, match=what),
    ):
        sess.summarize(**arguments)


@pytest.mark.parametrize("name", [None, "", 3])
def test_a_name_is_a_text(name: Any) -> None:
    with pytest.raises(fb.errors.InvalidTypeError, match="named by a text"):
        fb.summary.scalar(name, 1.0)


def test_steps_of_optimizers_are_marked_with_their_counters() -> None:
    model = Model()
    assert trainings_among(model.graph.operations) == {
        model.train: model.graph.variables(trainable=False)[0]
    }
    restored = fb.Graph.from_bytes(model.graph.to_bytes())
    [(train, counter)] = trainings_among(restored.operations).items()
    assert (train.name, counter.name) == (model.train.name, "global_step:0")
    with fb.Session(graph=restored) as sess:
        kept = sess.summarize()
        sess.run([train.name, "mse:0"], {"x:0": [[1.0, 2.0]]})
        assert set(kept.history.tags()) == {"loss", "W"}


@given(st.lists(st.sampled_from(["train", "loss", "both", "summarize", "close"]), max_size=12))
def test_instrumented_and_plain_runs_give_equal_results(actions: list[str]) -> None:
    results = []
    for is_watched in (False, True):
        model = Model()
        found, kept = [], []
        fetches = {"train": model.train, "loss": model.loss, "both": [model.train, model.W]}
        with fb.Session(graph=model.graph) as sess:
            for action in actions:
                if action in fetches:
                    found.append(sess.run(fetches[action], model.feeds))
                elif is_watched and action == "summarize":
                    kept.append(sess.summarize(every=2))
                elif is_watched and kept:
                    kept.pop().close()
            found.append(sess.run(model.W))
        results.append(found)
    for plain, watched in zip(*results, strict=True):
        for a, b in zip(
            plain if isinstance(plain, list) else [plain],
            watched if isinstance(watched, list) else [watched],
            strict=True,
        ):
            np.testing.assert_array_equal(a, b)


def test_threads_share_one_history() -> None:
    model = Model(counted=False)
    with fb.Session(graph=model.graph) as sess:
        kept = sess.summarize()
        sess.run(model.train, model.feeds)

        def train() -> None:
            for _ in range(50):
                sess.run(model.train, model.feeds)

        threads = [threading.Thread(target=train) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(steps(kept)) == list(range(201))


def test_a_closed_session_summarises_nothing() -> None:
    sess = fb.Session()
    sess.close()
    with pytest.raises(fb.errors.FailedPreconditionError, match="closed"):
        sess.summarize()


def test_one_history_can_gather_several_sessions() -> None:
    gathered = fb.summary.SummaryHistory()
    for _ in range(2):
        model = Model()
        with fb.Session(graph=model.graph) as sess:
            sess.summarize(to=gathered)
            sess.run(model.train, model.feeds)
    assert len(gathered.runs) == 2


def beside(model: Model) -> None:
    """Declare what a training does not compute."""
    with model.graph.as_default():
        held_out = fb.placeholder(fb.float32, [None, 2], name="held_out")
        fb.summary.scalar("norm", fb.reduce_sum(fb.exp(model.W)))
        fb.summary.scalar("val/loss", fb.reduce_mean(held_out @ model.W))
        fb.summary.scalar("drawn", fb.random_uniform([]))


def test_what_is_not_computed_is_said_with_what_computes_it() -> None:
    model = Model()
    beside(model)
    with fb.Session(graph=model.graph) as sess:
        kept = sess.summarize()
        sess.run(model.loss, model.feeds)
        [remark] = kept.history.remarks
        assert remark.startswith("no run so far is a step of a training")
        sess.run(model.train, model.feeds)
        assert kept.history.remarks == [
            "3 not computed by these runs: norm, val/loss, drawn "
            "(sess.summarize(compute=True) computes what the feeds suffice for)"
        ]
        assert "3 not computed" in repr(fb.SummaryView(kept))


def test_what_a_run_does_not_compute_is_computed_where_that_is_asked() -> None:
    model = Model()
    beside(model)
    with fb.Session(graph=model.graph) as sess:
        kept = sess.summarize(compute=True)
        for _ in range(2):
            sess.run(model.train, model.feeds)
        # The values from before the step, and nothing that a run would not touch.
        assert kept.history.points("norm")[0].value == pytest.approx(np.exp([1.0, 2.0]).sum())
        assert set(kept.history.tags()) == {"loss", "W", "norm"}
        assert kept.left_out == {"val/loss": "held_out", "drawn": "RandomUniform"}
        assert kept.history.remarks == [
            "2 not computed by these runs: val/loss, drawn "
            "(for want of 'held_out', 'RandomUniform')"
        ]


def test_a_session_that_ends_says_so_in_its_history() -> None:
    model = Model()
    with fb.Session(graph=model.graph) as sess:
        kept = sess.summarize()
        before = kept.history.version
        assert not kept.history.closed
    assert kept.history.closed
    assert kept.history.version > before
