"""A session that looks for a better placement, and changes nothing by that."""

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.placement import search as searching

SHAPE = [256, 256]


@pytest.fixture
def x():
    return fb.placeholder(fb.float32, SHAPE, name="x")


def branches(x):
    return fb.add_n([fb.reduce_sum(fb.exp(x * float(i))) for i in range(4)], name="y")


def search(sess, fetch, feeds, **how):
    return sess.search_placement(fetch, feeds, **{"tries": 50, "seconds": 0.02, **how})


def test_what_it_finds_is_taken(x):
    y, feeds = branches(x), {x: np.ones(SHAPE, np.float32)}
    with fb.device("cpu:0"):
        fb.zeros([2])
    with fb.Session(cpus=2) as sess:
        alone = sess.explain(y, feeds)
        sess.replace(dict.fromkeys(alone.operations, "cpu:0"))
        before = sess.run(y, feeds)
        now = sess.explain(y, feeds)
        found = search(sess, y, {x: tuple(SHAPE)}, seconds=10)
        assert [each.name for each in found.candidates][:2] == ["as it is", "greedy"]
        assert found.candidates[0].plan.seconds == now.seconds
        assert found.plan.seconds < now.seconds * 0.8
        assert found.tried == 50
        assert sess.explain(y, feeds).seconds == now.seconds
        sess.replace(found.plan)
        assert sess.explain(y, feeds).seconds == found.plan.seconds
        np.testing.assert_allclose(sess.run(y, feeds), before, rtol=1e-5)
    assert "No step was run: what is fed are shapes." in str(found)
    assert "`sess.replace(found.plan)` takes the best." in str(found)


def test_steps_that_are_run_change_nothing(x):
    W = fb.Variable(np.zeros(SHAPE, np.float32), name="W")
    noise = fb.random_uniform([4], seed=3, name="noise")
    step = [fb.assign_add(W, fb.exp(x)), branches(x), noise]
    feeds = {x: np.ones(SHAPE, np.float32)}
    with fb.Session(cpus=2) as other:
        other.run(step, feeds)
        expected = other.run(step, feeds)
    with fb.Session(cpus=2) as sess:
        sess.run(step, feeds)
        sess.replace({W: "cpu:1"})
        where = {op: each.device for op, each in sess.explain(step, feeds).operations.items()}
        found = search(sess, step, feeds)
        assert found.not_run == ""
        assert all(each.measured > 0 for each in found.candidates)
        best = min(found.candidates, key=lambda each: each.measured)
        assert found.plan is best.plan
        now = sess.explain(step, feeds)
        assert {op: each.device for op, each in now.operations.items()} == where
        assert now.reason(W.op) == "'W' lives there"
        assert "sess.replace" not in now.reason(branches_end(now))
        for got, wanted in zip(sess.run(step, feeds), expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-6)


def branches_end(plan):
    return next(op for op in plan.operations if op.name == "y")


@pytest.mark.parametrize("what", ["queue", "outside", "nobody"])
def test_steps_that_do_more_are_not_run(x, what):
    ran = []
    if what == "queue":
        queue = fb.FIFOQueue(4, [fb.float32], [[]], name="queue")
        step, why = queue.enqueue(fb.reduce_sum(x)), "'queue' is a fifo queue"
    elif what == "outside":
        step = fb.py_func(lambda a: ran.append(1) or a, [x], fb.float32, name="python")
        why = "'python' acts outside the graph"
    else:
        step, why = fb.exp(x), "it was not asked for"
    with fb.Session(cpus=2) as sess:
        found = search(sess, step, {x: np.ones(SHAPE, np.float32)}, measure=what != "nobody")
        assert why in found.not_run
        assert not ran
        assert all(each.measured is None for each in found.candidates)


def test_an_interrupt_keeps_the_best_and_puts_everything_back(x, monkeypatch):
    y, feeds = branches(x), {x: np.ones(SHAPE, np.float32)}

    def interrupted(items, what):
        if what == "measuring":
            yield 0
            raise KeyboardInterrupt
        yield from items

    monkeypatch.setattr("flowbook.exec.session.placement_search.track", interrupted)
    with fb.Session(cpus=2) as sess:
        before = sess.explain(y, feeds)
        found = search(sess, y, feeds)
        assert found.is_interrupted
        assert all(each.measured is None for each in found.candidates)
        assert "until it was interrupted" in str(found)
        assert str(sess.explain(y, feeds)) == str(before)


def test_how_far_it_is_is_shown(x, monkeypatch):
    shown = []
    monkeypatch.setattr(searching, "track", lambda items, what: shown.append(what) or items)
    with fb.Session(cpus=2) as sess:
        search(sess, branches(x), {x: tuple(SHAPE)})
    assert shown == ["searching"]


def test_with_one_device_there_is_nothing_to_find(x):
    with fb.Session() as sess:
        found = search(sess, branches(x), {x: tuple(SHAPE)})
    assert [each.name for each in found.candidates] == ["as it is"]


@pytest.mark.parametrize(
    "how", [{"seconds": 0}, {"seconds": "a"}, {"tries": 0}, {"tries": True}, {"seed": 1.5}]
)
def test_numbers_that_are_none(x, how):
    with fb.Session() as sess, pytest.raises(fb.errors.InvalidArgumentError):
        search(sess, fb.exp(x), {x: tuple(SHAPE)}, **how)
