"""Functions of each element, held against Python's own loops; their gradients against unrolled."""

from __future__ import annotations

from functools import reduce
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import pytest

import flowbook as fb

X = np.array([[0.5, -1.5], [2.0, 3.0], [-0.25, 1.25], [1.0, 0.75]])


class Pair(NamedTuple):
    one: object
    other: object


def fed(shape=(None, 2)):
    return fb.placeholder(fb.float64, shape, name="x")


def agree_in_gradients(loop, unrolled, x):
    """Values, gradients and second derivatives of two functions of X."""
    ys = [fb.reduce_sum(y * y * y) for y in (loop, unrolled)]
    first = [fb.gradients(y, x)[0] for y in ys]
    second = [fb.gradients(fb.reduce_sum(g * g), x)[0] for g in first]
    with fb.Session() as sess:
        for _ in range(2):
            for one, other in ((loop, unrolled), first, second):
                found = sess.run([one, other], {x: X})
                np.testing.assert_allclose(*found, rtol=1e-12, atol=1e-12)


class TestMap:
    def test_each_element(self):
        x = fed()
        y = fb.map_fn(lambda row: fb.reduce_sum(row) * row, x)
        assert y.shape == [None, 2]
        with fb.Session() as sess:
            for count in (4, 1, 2, 0):
                found = sess.run(y, {x: X[:count]})
                np.testing.assert_array_equal(found, X[:count].sum(1, keepdims=True) * X[:count])

    def test_known_lengths_are_known(self):
        assert fb.map_fn(lambda row: row[0], fed([4, 2]), dtype=fb.float64).shape == [4]
        empty = fb.map_fn(lambda row: fb.stack([row[0], 1.0, 2.0]), fb.zeros([0, 2]))
        assert empty.shape == [0, 3]
        with fb.Session() as sess:
            assert sess.run(empty).shape == (0, 3)

    def test_structures_and_other_dtypes(self):
        x, n = fed(), fb.placeholder(fb.int32, [4])
        found = fb.map_fn(
            lambda e: Pair({"sum": fb.reduce_sum(e["rows"][0])}, [e["n"] * 2, e["n"] > 1, "text"]),
            {"rows": (x,), "n": n},
            dtype=Pair({"sum": fb.float64}, [fb.int32, bool, "string"]),
        )
        assert isinstance(found, Pair)
        assert found.other[0].shape == [4]
        with fb.Session() as sess:
            value = sess.run(found, {x: X, n: [0, 1, 2, 3]})
        np.testing.assert_array_equal(value.one["sum"], X.sum(1))
        assert [v.tolist() for v in value.other] == [
            [0, 2, 4, 6],
            [False, False, True, True],
            [b"text"] * 4,
        ]

    def test_the_structure_is_that_of_the_elements_unless_said(self):
        x = fed()
        same = fb.map_fn(lambda e: (e[1], e[0]), (x, -x))
        with fb.Session() as sess:
            found = sess.run(same, {x: X})
        np.testing.assert_array_equal(found, (-X, X))

    def test_in_each_other(self):
        x = fed()
        y = fb.map_fn(lambda row: fb.map_fn(lambda v: v * fb.reduce_sum(row), row), x)
        with fb.Session() as sess:
            np.testing.assert_allclose(sess.run(y, {x: X}), X.sum(1, keepdims=True) * X)

    def test_gradients(self):
        x = fed([4, 2])
        weight = x[0]
        loop = fb.map_fn(lambda row: fb.tanh(row) * weight + fb.reduce_sum(row), x)
        agree_in_gradients(loop, fb.tanh(x) * weight + fb.reduce_sum(x, 1, keepdims=True), x)

    def test_variables_learn_through_it(self):
        variable = fb.Variable([1.0, 2.0])
        y = fb.map_fn(lambda row: row * variable, fb.constant([[1.0, 2.0], [3.0, 4.0]]))
        [found] = fb.gradients(fb.reduce_sum(y), [variable])
        with fb.Session() as sess:
            assert sess.run(found).tolist() == [4, 6]

    @pytest.mark.parametrize("parallel", [1, 3])
    def test_what_acts_runs_in_order(self, parallel):
        seen = []

        def note(value):
            seen.append(int(value))
            return value

        y = fb.map_fn(
            lambda v: fb.py_func(note, [v], fb.int32),
            fb.constant([3, 1, 2]),
            parallel_iterations=parallel,
        )
        with fb.Session() as sess:
            sess.run(y)
        assert seen == [3, 1, 2]

    def test_what_cannot_be_is_refused(self):
        x, y = fed([4, 2]), fed([3])
        wrong_type, wrong = fb.errors.InvalidTypeError, fb.errors.InvalidArgumentError
        with pytest.raises(wrong_type, match="fn is a function"):
            fb.map_fn(x, x)
        with pytest.raises(wrong, match=r"elems\[1\] is a scalar"):
            fb.map_fn(lambda e: e, [x, 1.0])
        with pytest.raises(wrong, match=r"as many elements: elems\[0\] \[4, 2\], elems\[1\] \[3\]"):
            fb.map_fn(lambda e: e, (x, y))
        with pytest.raises(wrong, match="no tensor whose elements"):
            fb.map_fn(lambda e: e, ())
        with pytest.raises(wrong_type, match=r"elems\[1\] is a SparseTensor"):
            fb.map_fn(lambda e: e, (x, fb.SparseTensor([[0]], [1.0], [4])))
        with pytest.raises(wrong_type, match=r"elems gives fb.float64, but fn a tuple of 2"):
            fb.map_fn(lambda e: (e, e), x)
        with pytest.raises(wrong_type, match="map_fn: fn gives no value, where float64 is wanted"):
            fb.map_fn(lambda e: None, x)
        with pytest.raises(wrong_type, match=r"fn gives no value at \[1\], where int32 is wanted"):
            fb.map_fn(lambda e: (e, fb.no_op()), x, dtype=(fb.float64, fb.int32))
        with pytest.raises(wrong_type, match="fn gives bool, where float64 is wanted"):
            fb.map_fn(lambda e: e > 0, x)
        with pytest.raises(wrong_type, match=r"fn gives bool at \[1\], where int32 is wanted"):
            fb.map_fn(lambda e: (e, e > 0), x, dtype=(fb.float64, fb.int32))

    def test_lengths_that_only_the_run_knows(self):
        x, y = fed(), fb.placeholder(fb.float64, [None])
        total = fb.map_fn(lambda e: e[0] * e[1], (x, y), dtype=fb.float64)
        with fb.Session() as sess:
            assert sess.run(total, {x: X, y: np.ones(4)}).shape == (4, 2)
            with pytest.raises(fb.errors.InvalidArgumentError, match=r"'elems\[1\]' of size 4"):
                sess.run(total, {x: X, y: np.ones(5)})
            with pytest.raises(
                fb.errors.InvalidArgumentError, match=r"index 3 .* 'elems\[1\]' has"
            ):
                sess.run(total, {x: X, y: np.ones(3)})

    def test_elements_of_other_shapes_have_no_result(self):
        n = fb.constant([1, 2])
        y = fb.map_fn(lambda k: fb.range(k), n)
        with (
            fb.Session() as sess,
            pytest.raises(fb.errors.InvalidArgumentError, match=r"shape \[1\], and not \[2\]"),
        ):
            sess.run(y)


class TestFoldsAndScan:
    @pytest.mark.parametrize("count", [0, 1, 4])
    @pytest.mark.parametrize("initializer", [None, [10.0, 20.0]])
    def test_as_python_does_it(self, count, initializer):
        def step(state, row):
            return state * 0.5 - row

        x = fed()
        given = None if initializer is None else fb.constant(initializer, fb.float64)
        fetches = [
            fb.foldl(step, x, given),
            fb.foldr(step, x, given),
            fb.scan(step, x, given),
            fb.scan(step, x, given, reverse=True),
        ]
        rows = X[:count]
        start = [] if initializer is None else [np.array(initializer)]
        with fb.Session() as sess:
            if not count and initializer is None:
                for fetch in fetches:
                    with pytest.raises(fb.errors.InvalidArgumentError, match="no index"):
                        sess.run(fetch, {x: rows})
                return
            for _ in range(2):
                left, right, scanned, backwards = sess.run(fetches, {x: rows})
                np.testing.assert_array_equal(left, reduce(step, [*start, *rows]))
                np.testing.assert_array_equal(right, reduce(step, [*start, *rows[::-1]]))
                steps = list(accumulate([*start, *rows], step))[len(start) :]
                np.testing.assert_array_equal(scanned, np.reshape(steps, (count, 2)))
                steps = list(accumulate([*start, *rows[::-1]], step))[len(start) :]
                np.testing.assert_array_equal(backwards, np.reshape(steps, (count, 2))[::-1])

    def test_shapes(self):
        x = fed([4, 2])
        assert fb.foldl(lambda a, r: a + r, x).shape == [2]
        assert fb.scan(lambda a, r: a + r, x).shape == [4, 2]
        empty = fb.scan(lambda a, r: a + r, fb.zeros([0, 3]), fb.zeros([3]))
        assert empty.shape == [0, 3]
        with fb.Session() as sess:
            assert sess.run(empty).shape == (0, 3)

    def test_the_state_may_have_another_structure(self):
        x = fed()
        initializer = {"count": 0, "total": fb.zeros([2], fb.float64)}

        def step(state, row):
            return {"count": state["count"] + 1, "total": state["total"] + row}

        last, steps = fb.foldl(step, x, initializer), fb.scan(step, x, initializer)
        with fb.Session() as sess:
            found, each = sess.run([last, steps], {x: X})
        assert found["count"] == 4
        np.testing.assert_allclose(found["total"], X.sum(0))
        assert each["count"].tolist() == [1, 2, 3, 4]
        np.testing.assert_allclose(each["total"], np.cumsum(X, 0))

    def test_elements_may_be_a_structure(self):
        numbers = fb.constant([1, 2, 3, 4, 5, 6])
        found = fb.scan(
            lambda a, pair: (a[0] + pair[0], pair[1] - a[1]), (numbers, 10 * numbers), (0, 1)
        )
        with fb.Session() as sess:
            sums, differences = sess.run(found)
        assert sums.tolist() == [1, 3, 6, 10, 15, 21]
        assert (
            differences.tolist()
            == list(accumulate([1, *range(10, 70, 10)], lambda a, b: b - a))[1:]
        )

    @pytest.mark.parametrize("reverse", [False, True])
    def test_gradients(self, reverse):
        def step(state, row):
            return fb.tanh(state * row) + row

        x = fed([4, 2])
        rows = fb.unstack(x)[::-1] if reverse else fb.unstack(x)
        each = list(accumulate(rows, step))
        fold = fb.foldr if reverse else fb.foldl
        agree_in_gradients(fold(step, x), each[-1], x)
        unrolled = fb.stack(each[::-1] if reverse else each)
        agree_in_gradients(fb.scan(step, x, reverse=reverse), unrolled, x)

    def test_what_cannot_be_is_refused(self):
        x = fed([4, 2])
        wrong_type, wrong = fb.errors.InvalidTypeError, fb.errors.InvalidArgumentError
        for function in (fb.foldl, fb.foldr, fb.scan):
            with pytest.raises(wrong_type, match="fn is a function"):
                function(None, x)
            with pytest.raises(wrong, match="no element to begin with"):
                function(lambda a, r: a, fb.zeros([0, 2]))
            with pytest.raises(
                wrong_type, match=r"initializer gives fb.float64, but fn a tuple of 2"
            ):
                function(lambda a, r: (a, a), x, x[0])
            with pytest.raises(wrong_type, match="fn gives no value, where float64 is wanted"):
                function(lambda a, r: None, x)
            with pytest.raises(wrong_type, match="fn gives bool, where float64 is wanted"):
                function(lambda a, r: r > 0, x)
            with pytest.raises(wrong, match=r"fn gives the shape \[4\], but the first .* \[2\]"):
                function(lambda a, r: fb.concat([r, r], 0), x)
