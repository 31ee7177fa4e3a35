"""Tensors that wait for each other, or for what is named."""

from __future__ import annotations

import numpy as np
import pytest

import flowbook as fb


def test_with_dependencies():
    counter = fb.Variable(0)
    x = fb.placeholder(fb.float32, [])
    y = fb.control_flow.with_dependencies([fb.assign_add(counter, 1)], {"a": x, "b": [2 * x, 1]})
    with fb.Session() as sess:
        for count in (1, 2, 3):
            assert sess.run(y, {x: 2.0}) == {"a": 2, "b": [4, 1]}
            assert sess.run(counter) == count


def test_with_dependencies_of_what_consists_of_tensors():
    check = fb.assert_positive(fb.placeholder(fb.float32, [], name="n"))
    array = fb.TensorArray(fb.float32, 1).write(0, 3.0)
    waiting = fb.control_flow.with_dependencies([check], array)
    rows = fb.control_flow.with_dependencies([check], fb.IndexedSlices([[1.0]], [0]))
    with fb.Session() as sess:
        assert sess.run(waiting.stack(), {"n:0": 1.0}).tolist() == [3]
        assert sess.run(rows, {"n:0": 1.0}).indices.tolist() == [0]
        for fetch in (waiting.stack(), rows):
            with pytest.raises(fb.errors.InvalidArgumentError, match="assertion failed"):
                sess.run(fetch, {"n:0": -1.0})


def test_a_tuple_waits_for_all_of_it():
    seen = []

    def note(value):
        seen.append(float(value))
        return value

    x = fb.placeholder(fb.float32, [])
    acts = fb.py_func(note, [x], fb.float32)
    counter = fb.Variable(0.0)
    first, nothing, second = fb.tuple(
        [2 * x, None, acts], control_inputs=[fb.assign_add(counter, 1.0)]
    )
    assert nothing is None
    assert first.shape == []
    assert second.dtype == fb.float32
    with fb.Session() as sess:
        assert sess.run(first, {x: 3.0}) == 6
        assert seen == [3]
        assert sess.run(counter) == 1


def test_gradients_go_through_a_tuple():
    x = fb.placeholder(fb.float32, [2])
    one, other = fb.tuple([x * x, fb.gather(x, [0])])
    [found] = fb.gradients([one, other], x)
    with fb.Session() as sess:
        np.testing.assert_array_equal(sess.run(found, {x: [3.0, 4.0]}), [7, 8])


def test_what_cannot_be_is_refused():
    with pytest.raises(fb.errors.InvalidTypeError, match="a list of tensors"):
        fb.tuple(fb.constant(1.0))
    with pytest.raises(fb.errors.InvalidArgumentError, match="no tensor"):
        fb.tuple([None])


def test_assertions_in_bodies_hold_where_nothing_waits_for_them():
    n = fb.placeholder(fb.int32, [])

    def body(i, total):
        fb.Assert(i < 3, ["i is", i, "of", n])
        return i + 1, total + i

    _, total = fb.while_loop(lambda i, t: i < n, body, (0, 0))
    mapped = fb.map_fn(lambda v: (fb.Assert(v > 0, ["v is", v]), v * 2)[1], fb.stack([1, n]))
    chosen = fb.cond(n > 5, lambda: (fb.Assert(n < 7, ["n is", n]), n)[1], lambda: -n)
    with fb.Session() as sess:
        for _ in range(2):
            assert sess.run([total, mapped, chosen], {n: 3})[0] == 3
            for fetch, value, text in (
                (total, 5, "i is 3 of 5"),
                (mapped, -2, "v is -2"),
                (chosen, 9, "n is 9"),
            ):
                with pytest.raises(fb.errors.InvalidArgumentError, match=text):
                    sess.run(fetch, {n: value})
