"""Partial runs, looks, summaries and retained feeds where there are loops and branches."""

from typing import Any

import numpy as np
import pytest

import flowbook as fb


def test_a_partial_run_through_loops_and_branches() -> None:
    x, z = (fb.placeholder(fb.float32, [], name=name) for name in "xz")
    n = fb.placeholder(fb.int32, [], name="n")
    first = fb.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * 2.0), (0, x))[1]
    second = fb.while_loop(lambda i, v: i < n, lambda i, v: (i + 1, v + z), (0, first))[1]
    third = fb.cond(n > 3, lambda: second * z, lambda: x * 1.0)
    for count in (4, 2):
        with fb.Session() as sess, sess.partial_run([first, second, third], [x, z, n]) as step:
            assert step.run(first, {x: 1.5}) == 12
            assert step.run(second, {z: 3.0, n: count}) == 12 + count * 3
            assert step.run(third) == ((12 + count * 3) * 3 if count > 3 else 1.5)


def test_what_a_loop_needs_only_in_its_body_is_missed_by_name() -> None:
    x, z = (fb.placeholder(fb.float32, [], name=name) for name in "xz")
    # What it begins with does not need z; what it goes on with does.
    v = fb.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, z + 0.0), (0, x))[1]
    with fb.Session() as sess, sess.partial_run([v], [x, z]) as step:
        with pytest.raises(fb.errors.InvalidArgumentError, match="needs 'z:0', not fed yet"):
            step.run(v, {x: 1.0})
        assert step.run(v, {x: 1.0, z: 2.0}) == 2


def test_variables_that_only_a_body_reads_are_initialised() -> None:
    start = fb.Variable(3.0, name="start")
    total = fb.while_loop(
        lambda i, v: i < 2, lambda i, v: (i + 1, v + start), (0, fb.constant(0.0))
    )[1]
    later = fb.Variable(total, name="later")
    with fb.Session() as sess:
        assert sess.run(later) == 6


def test_a_look_inside_of_a_loop_is_refused_and_says_why() -> None:
    x = fb.placeholder(fb.float32, [], name="x")
    v = fb.while_loop(
        lambda i, v: i < 3, lambda i, v: (i + 1, fb.multiply(v, 2.0, name="twice")), (0, x)
    )[1]
    with fb.Session() as sess:
        sess.retain_feeds()
        sess.run(v, {x: 1.0})
        assert sess.peek(v) == 8
        assert {t.name: value for t, value in sess.retained_feeds.items()} == {"x:0": 1.0}
        with pytest.raises(fb.errors.InvalidArgumentError, match="has a value for each iteration"):
            sess.peek("while/twice:0")


def test_a_look_into_a_branch() -> None:
    x = fb.placeholder(fb.float32, [], name="x")
    fb.cond(x > 0, lambda: fb.sqrt(x, name="taken"), lambda: fb.exp(x, name="other"))
    with fb.Session() as sess:
        sess.retain_feeds()
        sess.run("cond/Merge:0", {x: 4.0})
        assert sess.peek("cond/taken:0") == 2
        with pytest.raises(fb.errors.InvalidArgumentError, match="branch that was not taken"):
            sess.peek("cond/other:0")


def test_summaries_of_what_a_loop_gives_and_not_of_what_is_inside() -> None:
    def body(i: Any, v: Any) -> Any:
        fb.summary.scalar("inside", v)
        return i + 1, v * 2.0

    W = fb.Variable(1.0, name="W")
    v = fb.while_loop(lambda i, v: i < 3, body, (0, W.value))[1]
    fb.cond(v > 0, lambda: fb.summary.scalar("branch", v), lambda: fb.constant(0.0, fb.float64))
    fb.summary.scalar("after", v)
    train = fb.train.GradientDescentOptimizer(0.1).minimize(v)
    with fb.Session() as sess:
        summarizing = sess.summarize()
        sess.run(train)
        assert list(sess.summary_history.tags()) == ["after"]
        shown = "last=True shows its last iteration"
        assert summarizing.left_out == {
            "while/inside": f"what is outside of the loop 'while': {shown}",
            "cond/branch": "what is outside of the branches of 'cond/pred_id:0'",
        }


def test_summaries_of_the_last_iteration() -> None:
    n = fb.placeholder(fb.int32, [], name="n")
    W = fb.Variable(1.0, name="W")

    def body(i: Any, v: Any) -> Any:
        v = v * 0.5 + W
        fb.summary.scalar("v", v, last=True)
        fb.summary.scalar("i", fb.expand_dims(i, 0), last=True)

        def inner(j: Any) -> Any:
            fb.summary.scalar("sum", i * 10 + j, last=True)
            return j + 1

        fb.while_loop(lambda j: j < 3, inner, [0], name="inner")
        return i + 1, v

    _, v = fb.while_loop(lambda i, v: i < n, body, (0, 0.0), name="loop")
    fb.while_loop(lambda i, v: i < n, body, (0, 0.0), name="unused")
    train = fb.train.GradientDescentOptimizer(0.0).minimize(v)
    with fb.Session() as sess:
        summarizing = sess.summarize()
        for trips in (3, 0, 2, 3):
            sess.run(train, {n: trips})
        history = summarizing.history
        found = {tag: [point.value for point in history.points(tag)] for tag in history.tags()}
        assert list(found) == ["loop/v", "loop/i"]  # Nothing else needs the inner loop.
        np.testing.assert_array_equal(found["loop/v"], [1.75, np.nan, 1.5, 1.75])
        assert found["loop/i"] == [2, 0, 1, 2]
        assert set(summarizing.left_out) == {
            "loop/inner/sum",
            *("unused/v", "unused/i", "unused/inner/sum"),
        }
        summarizing.close()
        summarizing = sess.summarize(compute=True)
        sess.run(train, {n: 2})
        sums = summarizing.history.points("loop/inner/sum")
        assert [point.value for point in sums] == [12]


def test_the_last_iteration_is_that_of_the_body_alone() -> None:
    def summarised(i: Any) -> Any:
        fb.summary.scalar("x", i, last=True)
        return i < 3

    with pytest.raises(fb.errors.InvalidArgumentError, match="once more than its body"):
        fb.while_loop(summarised, lambda i: i + 1, [0])

    def branch(i: Any) -> Any:
        return fb.cond(i > 1, lambda: fb.summary.scalar("x", i, last=True), lambda: i) + 1

    with pytest.raises(fb.errors.InvalidArgumentError, match="in a branch"):
        fb.while_loop(lambda i: i < 3, branch, [0])
    # Outside of loops there is one value, which is the last.
    fb.summary.scalar("x", 1.0, last=True)
    assert len(fb.get_default_graph().summaries()) == 1


def test_a_variable_that_is_perhaps_assigned_is_initialised() -> None:
    v, n = fb.Variable(5, name="v"), fb.placeholder(fb.int32, [], name="n")
    chosen = fb.cond(n > 3, lambda: fb.assign(v, 1), lambda: fb.assign_add(v, 1))

    def body(i: Any) -> Any:
        with fb.control_dependencies([fb.assign(v, i)]):
            return i + 1

    w = fb.Variable(7, name="w")

    def overwriting(i: Any) -> Any:
        with fb.control_dependencies([fb.assign(w, i)]):
            return i + 1

    ended = fb.while_loop(lambda i: i < n, overwriting, [0])
    with fb.control_dependencies(ended):
        added = fb.assign_add(w, 1)
    for count, expected in ((2, (6, 2)), (5, (1, 5)), (0, (6, 8))):
        with fb.Session() as sess:
            assert (sess.run(chosen, {n: count}), sess.run(added, {n: count})) == expected


def test_a_loop_waits_for_what_is_said_around_it() -> None:
    v = fb.Variable(1.0, name="v")

    def body(i: Any) -> Any:
        with fb.name_scope("in"), fb.control_dependencies([fb.assign(v, v * 2.0)]):
            return i + 1

    before = fb.assign_add(v, 100.0)
    with fb.name_scope("out"), fb.control_dependencies([before]):
        count = fb.while_loop(lambda i: i < 3, body, [0])
        after = fb.cond(count[0] > 1, lambda: fb.assign_add(v, 1000.0), lambda: v.value)
    with fb.Session() as sess:
        assert sess.run([count, after]) == [[3], 101 * 8 + 1000]
    assert "out/while/in/Add" in [o.name for o in fb.get_default_graph().operations]


def test_optimizers_with_state_in_a_body() -> None:
    def steps(train: Any) -> Any:
        def body(i: Any) -> Any:
            with fb.control_dependencies([train()]):
                return i + 1

        return fb.while_loop(lambda i: i < 3, body, [0])

    for kind in (fb.train.GradientDescentOptimizer, fb.train.AdamOptimizer):
        inside, outside = fb.Variable(5.0), fb.Variable(5.0)
        looping = steps(lambda k=kind, v=inside: k(0.1).minimize(fb.square(v)))
        step = kind(0.1).minimize(fb.square(outside))
        with fb.Session() as sess:
            sess.run(looping)
            for _ in range(3):
                sess.run(step)
            assert sess.run(inside) == pytest.approx(sess.run(outside), rel=1e-6)
