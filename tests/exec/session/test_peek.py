"""Looking at a tensor leaves no trace; what would is refused."""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowbook as fb
from flowbook.exec.session.peek import needs
from flowbook.exec.session.session import open_sessions
from tests.exec.random_graphs import Example, examples


def refused(kind: type[Exception], session: fb.Session, item: Any, **options: Any) -> str:
    with pytest.raises(kind) as caught:
        session.peek(item, **options)
    return str(caught.value)


def test_it_gives_what_a_run_gives_and_nothing_else_happens() -> None:
    w = fb.Variable([1.0, 2.0], name="w")
    h = w * 3.0
    with fb.Session() as sess:
        sess.run(w)
        before = len(sess.graph.operations)
        np.testing.assert_array_equal(sess.peek(h), [3.0, 6.0])
        np.testing.assert_array_equal(sess.peek("w"), [1.0, 2.0])
        assert len(sess.graph.operations) == before


def test_what_changes_something_is_refused() -> None:
    w = fb.Variable(1.0, name="w")
    updated = fb.assign_add(w, 1.0)
    noise = fb.random_uniform([2], name="noise")
    called = fb.py_func(lambda x: x, [w], fb.float32, name="called")
    with fb.control_dependencies([fb.assign(w, 5.0)]):
        after = fb.constant(1.0) + 1.0
    with fb.Session() as sess:
        assert sess.run(w) == 1.0
        kind = fb.errors.FailedPreconditionError
        assert "changes a variable" in refused(kind, sess, updated)
        assert "changes a variable" in refused(kind, sess, after)
        assert "acts outside the graph" in refused(kind, sess, called)
        told = refused(kind, sess, noise * 2.0)
        assert "'noise" in told
        assert "later runs would draw others" in told
        assert sess.run(w) == 1.0


def test_it_is_fed_like_a_run() -> None:
    x = fb.placeholder(fb.float32, [2], name="x")
    b = fb.placeholder(fb.float32, name="b")
    v = fb.Variable([1.0, 1.0])
    h = x * v + b
    with fb.Session() as sess:
        assert sess.peek(h, {x: [1, 2], "b": 1, v: [3, 4]}).tolist() == [4, 9]
        assert sess.peek(x + x, {(x, b): ([1, 2], 1)}).tolist() == [2, 4]
        assert "{x: value}" in refused(fb.errors.InvalidArgumentError, sess, x + x, feeds={b: 1})
        assert "does not fit [2]" in refused(
            fb.errors.InvalidArgumentError, sess, x + x, feeds={x: [1, 2, 3]}
        )
        assert "feeds is a dict" in refused(fb.errors.InvalidTypeError, sess, x + x, feeds=[1, 2])
        with sess.retain_feeds():
            sess.run(h, {x: [1, 2], b: 1})
            # What is fed goes before what the last run was fed with, which stays as it was.
            assert sess.peek(h, {b: 5}).tolist() == [6, 7]
            assert sess.peek(h).tolist() == [2, 3]


def test_random_states_are_where_they_were() -> None:
    fb.set_random_seed(3)
    noise = fb.random_uniform([2], seed=1)
    with fb.Session() as one, fb.Session() as other:
        expected = [one.run(noise) for _ in range(2)]
        first = other.run(noise)
        refused(fb.errors.FailedPreconditionError, other, noise)
        np.testing.assert_array_equal([first, other.run(noise)], expected)


def test_an_assertion_only_checks() -> None:
    with fb.control_dependencies([fb.Assert(fb.constant(True), ["no"])]):
        y = fb.constant(1.0) + 1.0
    with fb.control_dependencies([fb.Assert(fb.constant(False), ["what failed"])]):
        z = fb.constant(1.0) + 1.0
    with fb.Session() as sess:
        assert sess.peek(y) == 2.0
        assert "what failed" in refused(fb.errors.InvalidArgumentError, sess, z)


def test_a_variable_gets_no_value_by_looking() -> None:
    w = fb.Variable(fb.random_uniform([2]), name="w")
    with fb.Session() as sess:
        assert "'w' has no value yet" in refused(fb.errors.FailedPreconditionError, sess, w)
        with pytest.raises(fb.errors.FailedPreconditionError):
            sess.peek(w)
        value = sess.run(w)
        np.testing.assert_array_equal(sess.peek(w), value)


def test_feeds_are_used_only_where_they_are_retained() -> None:
    x = fb.placeholder(fb.float32, [2], name="x")
    scale = fb.placeholder(fb.float32, [], name="scale")
    h = fb.multiply(x, 2.0, name="h")
    y = fb.reduce_sum(h)
    with fb.Session() as sess:
        sess.run(y, {x: [1.0, 2.0]})
        told = refused(fb.errors.InvalidArgumentError, sess, h)
        assert "'x:0', which has no value" in told
        assert "sess.retain_feeds()" in told
        kept = sess.retain_feeds()
        assert kept is not None
        fed = np.array([1.0, 2.0], np.float32)
        sess.run(y, {x: fed})
        fed[:] = 9.0
        np.testing.assert_array_equal(sess.peek(h), [2.0, 4.0])
        told = refused(fb.errors.InvalidArgumentError, sess, h * scale)
        assert "run something that feeds them" in told
        # A run without feeds does not take them away, and one that fails is none.
        sess.run(fb.constant(1.0))
        with pytest.raises(fb.errors.InvalidArgumentError):
            sess.run(h * scale, {x: [5.0, 5.0]})
        np.testing.assert_array_equal(sess.peek(h), [2.0, 4.0])
        sess.retain_feeds(False)
        assert not kept.latest
        refused(fb.errors.InvalidArgumentError, sess, h)


def test_fed_edges_and_variables_stand_for_what_is_behind_them() -> None:
    w = fb.Variable(1.0, name="w")
    noise = fb.random_uniform([], name="noise")
    y = w + noise
    with fb.Session() as sess, sess.retain_feeds():
        assert sess.run(y, {w: 4.0, noise: 0.5}) == 4.5
        assert sess.peek(y) == 4.5
        assert sess.peek(noise) == 0.5
        assert sess.peek(w) == 4.0


def test_retained_feeds_are_bounded() -> None:
    x = fb.placeholder(fb.float32, [None], name="x")
    text = fb.placeholder(fb.string, [None], name="text")
    y, z = fb.identity(x), fb.identity(text)
    with fb.Session() as sess, sess.retain_feeds(most_bytes=100) as kept:
        sess.run(y, {x: np.ones(25)})
        assert len(kept.latest) == 1
        sess.run(y, {x: np.ones(26)})
        assert not kept.latest
        assert "took 104 bytes" in refused(fb.errors.InvalidArgumentError, sess, y)
        sess.run(z, {text: [b"a" * 101]})
        assert kept.left_out > 100
    with fb.Session() as sess, pytest.raises(fb.errors.InvalidArgumentError, match="positive"):
        sess.retain_feeds(most_bytes=0)


def test_large_tensors_are_refused_before_and_after() -> None:
    known = fb.zeros([100])
    n = fb.placeholder(fb.int32, [], name="n")
    found_out = fb.zeros(fb.stack([n]))
    kind = fb.errors.ResourceExhaustedError
    with fb.Session() as sess, sess.retain_feeds():
        assert "takes 400 bytes; at most 100" in refused(kind, sess, known, most_bytes=100)
        assert sess.run(fb.reduce_sum(found_out), {n: 30}) == 0.0
        assert "takes 120 bytes" in refused(kind, sess, found_out, most_bytes=100)
        assert sess.peek(found_out, most_bytes=120).shape == (30,)


def test_summaries_and_guards_take_no_part() -> None:
    x = fb.placeholder(fb.float32, [], name="x")
    loss = fb.log(x, name="loss")
    fb.summary.scalar("loss", loss)
    with fb.Session() as sess, sess.retain_feeds():
        summaries = sess.summarize(fetches=loss, series="test")
        sess.run(loss, {x: -1.0})
        with sess.guard():
            assert np.isnan(sess.peek(loss))
        assert len(summaries.history.points("test/loss")) == 1


def test_one_tensor_is_looked_at() -> None:
    a = fb.constant(1.0)
    with fb.Session() as sess:
        for item in ([a, a], fb.no_op(), 3):
            refused(fb.errors.InvalidTypeError, sess, item)
        assert "nothing" in refused(fb.errors.NotFoundError, sess, "nothing:0")
        with fb.Graph().as_default():
            refused(fb.errors.InvalidArgumentError, sess, fb.constant(1.0))
    refused(fb.errors.FailedPreconditionError, sess, a)


def test_open_sessions_are_known_by_their_graph() -> None:
    graph = fb.Graph()
    with fb.Session() as first, fb.Session() as third, fb.Session(graph):
        assert open_sessions(first.graph) == [first, third]
        first.close()
        assert open_sessions(third.graph) == [third]


def test_open_sessions_are_told_while_a_thread_makes_more() -> None:
    graph, interval = fb.Graph(), sys.getswitchinterval()
    made = [fb.Session(graph) for _ in range(2000)]
    thread = threading.Thread(target=lambda: made.extend(fb.Session(graph) for _ in range(400)))
    sys.setswitchinterval(1e-6)
    try:
        thread.start()
        while thread.is_alive():
            assert open_sessions(graph)[:2000] == made[:2000]
    finally:
        sys.setswitchinterval(interval)
        thread.join()
    assert open_sessions(graph) == made


@given(examples(), st.data())
def test_peeking_agrees_with_running(example: Example, data: Any) -> None:
    """Where it is not refused it gives what a run would; where it is, there is a reason."""
    with fb.Session(graph=example.graph) as sess, sess.retain_feeds():
        for fetches, feeds in example.steps:
            sess.run(fetches, feeds)
        fed = [feeds for _, feeds in example.steps if feeds]
        tensors = [t for op in example.graph.operations for t in op.outputs]
        tensor = data.draw(st.sampled_from([t for t in tensors if t.dtype.name != "resource"]))
        needed = needs(tensor, fed[-1] if fed else ())
        try:
            value = sess.peek(tensor)
        except fb.errors.OpError:
            assert any(needed)
        else:
            assert not needed.effects
            assert not needed.placeholders
            np.testing.assert_array_equal(value, sess.run(tensor, fed[-1] if fed else None))


def test_one_can_look_while_another_thread_trains() -> None:
    w = fb.Variable(fb.zeros([64, 64]), name="w")
    h = fb.multiply(w, 2.0, name="h")
    step = fb.assign_add(w, fb.ones([64, 64]))
    seen = []
    with fb.Session() as sess:
        sess.run(step)

        def train() -> None:
            for _ in range(300):
                sess.run(step)

        training = threading.Thread(target=train)
        training.start()
        while training.is_alive():
            seen.append(sess.peek(h))
        training.join()
        # Never torn, never back in time, and no update lost.
        assert all((each == each[0, 0]).all() for each in seen)
        counts = [float(each[0, 0]) for each in seen]
        assert counts == sorted(counts)
        assert sess.run(w)[0, 0] == 301.0
