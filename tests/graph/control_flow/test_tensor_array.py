"""Arrays of tensors, held against NumPy; in loops and branches; their gradients."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import flowbook as fb
from flowbook.graph.control_flow.array_ops import replace_op
from flowbook.graph.model.dtypes import MOVABLE, ZEROED

X = np.array([[0.5, -1.5], [2.0, 3.0], [-0.25, 1.25]])


def fed(shape=(3, 2)):
    return fb.placeholder(fb.float64, shape, name="x")


def kept(size=3, **options):
    return fb.TensorArray(fb.float64, size, clear_after_read=False, **options)


def check_gradient(loss, x, value=X, twice=True):
    """The gradient, and the gradient of its square's sum, against differences."""
    [found] = fb.gradients(loss, x)
    with fb.Session(graph=loss.graph) as sess:
        np.testing.assert_allclose(
            sess.run(found, {x: value}), difference(sess, loss, x, value), rtol=1e-5, atol=1e-6
        )
    if twice:
        check_gradient(fb.reduce_sum(found * found * 0.5), x, value, twice=False)


def difference(sess, loss, x, value, step=1e-6):
    gradient = np.zeros_like(value)
    for place in np.ndindex(value.shape):
        ends = []
        for sign in (1, -1):
            moved = value.copy()
            moved[place] += sign * step
            ends.append(sess.run(loss, {x: moved}))
        gradient[place] = (ends[0] - ends[1]) / (2 * step)
    return gradient


class TestValues:
    @pytest.mark.parametrize("dtype", [t for t in MOVABLE if t in (*ZEROED, fb.string)], ids=str)
    def test_every_dtype(self, dtype):
        numbers = np.array([[1, 0], [0, 1], [1, 1]])
        value = np.array([[b"a", b""], [b"", b"b"], [b"c", b"d"]], object)
        if dtype is not fb.string:
            value = numbers.astype(dtype.numpy)
        array = fb.TensorArray(dtype, 3, clear_after_read=False)
        array = array.write(2, value[2]).scatter([1, 0], value[[1, 0]])
        with fb.Session() as sess:
            for _ in range(2):
                found = sess.run(
                    [array.stack(), array.read(1), array.gather([2, 2]), array.concat()]
                )
                for each, wanted in zip(
                    found, (value, value[1], value[[2, 2]], value.ravel()), strict=True
                ):
                    assert each.dtype == dtype.numpy
                    assert each.tolist() == wanted.tolist()

    def test_a_write_leaves_the_array_as_it_was(self):
        x = fed()
        empty = kept()
        one = empty.write(0, x[0])
        left, right = one.write(1, x[1]), one.write(1, -x[1]).write(2, x[2])
        with fb.Session() as sess:
            for _ in range(3):
                found = sess.run([left.gather([0, 1]), right.stack(), one.read(0)], {x: X})
                np.testing.assert_array_equal(found[0], X[:2])
                np.testing.assert_array_equal(found[1], X * [[1], [-1], [1]])
                np.testing.assert_array_equal(found[2], X[0])
            for array in (empty, one, left):
                with pytest.raises(fb.errors.InvalidArgumentError, match="has not been written"):
                    sess.run(array.stack(), {x: X})

    def test_pieces_of_different_lengths(self):
        x = fed()
        array = kept(infer_shape=False).split(x, [2, 0, 1])
        with fb.Session() as sess:
            found = sess.run([array.read(0), array.read(1), array.concat()], {x: X})
            np.testing.assert_array_equal(found[0], X[:2])
            np.testing.assert_array_equal(found[1], X[:0])
            np.testing.assert_array_equal(found[2], X)

    def test_without_elements(self):
        known = fb.TensorArray(fb.float32, 0, element_shape=[2, 5])
        unknown = fb.TensorArray(fb.float32, 0, tensor_array_name="a")
        learnt = fb.TensorArray(fb.float32, 0).unstack(fb.zeros([0, 4]))
        with fb.Session() as sess:
            assert sess.run(known.stack()).shape == (0, 2, 5)
            assert sess.run(known.concat()).shape == (0, 5)
            assert sess.run(learnt.stack()).shape == (0, 4)
            for fetch in (unknown.stack(), unknown.concat()):
                with pytest.raises(
                    fb.errors.InvalidArgumentError,
                    match=r"shape of the elements .* 'a' is not known",
                ):
                    sess.run(fetch)

    def test_it_grows(self):
        n = fb.placeholder(fb.int32, [])
        array = fb.TensorArray(fb.int32, dynamic_size=True, element_shape=[])
        assert array.stack().shape == [None]
        _, array = fb.while_loop(
            lambda i, a: i < n, lambda i, a: (i + 1, a.write(i, i * i)), (0, array)
        )
        with fb.Session() as sess:
            for count in (4, 0, 7):
                found, size = sess.run([array.stack(), array.size()], {n: count})
                assert found.tolist() == [i * i for i in range(count)]
                assert size == count

    def test_what_a_run_fetches_is_its_own(self):
        variable = fb.Variable([1.0, 2.0])
        array = fb.TensorArray(fb.float32, 2).write(0, variable)
        with fb.control_dependencies([array.flow]):
            change = fb.assign_add(variable, [10.0, 10.0])
        with fb.control_dependencies([change]):
            read = array.identity().read(0)
        with fb.Session() as sess:
            for step in range(3):
                found = sess.run(read)
                assert found.tolist() == [1 + 10 * step, 2 + 10 * step]
                found += 1000

    def test_stored_graphs_hold_arrays(self):
        x = fed()
        array = kept().unstack(x)
        fb.identity(array.stack(), name="y")
        loaded = fb.Graph.from_bytes(x.graph.to_bytes())
        with fb.Session(graph=loaded) as sess:
            np.testing.assert_array_equal(sess.run("y:0", {"x:0": X}), X)


class TestErrors:
    def refused(self, fetch, text, feeds=None):
        with fb.Session() as sess:
            for _ in range(3):
                with pytest.raises(fb.errors.InvalidArgumentError, match=text):
                    sess.run(fetch, feeds)

    def test_in_the_run(self):
        i = fb.placeholder(fb.int32, [])
        row = fb.placeholder(fb.float64, None)
        array = fb.TensorArray(fb.float64, 3, tensor_array_name="rows").write(1, row)
        feeds = {i: 1, row: [1.0, 2.0]}
        again = array.write(i, row).flow.op
        self.refused(again, "index 1 of the TensorArray 'rows' has been written already", feeds)
        for index in (-1, 3):
            text = f"there is no index {index} in the TensorArray 'rows' of size 3"
            self.refused(array.read(i), text, {**feeds, i: index})
            self.refused(array.write(i, row).flow.op, text, {**feeds, i: index})
        self.refused(array.read(0), "index 0 .* 'rows' has not been written", feeds)
        with fb.control_dependencies([array.read(1)]):
            twice = array.identity().read(1)
        self.refused(twice, "index 1 .* 'rows' was let go of when it was read first", feeds)
        other = array.write(2, fb.concat([row, row], 0)).flow.op
        self.refused(other, r"have the shape \[2\], and not \[4\].* index 2", feeds)
        free = fb.TensorArray(fb.float64, 2, infer_shape=False, tensor_array_name="free")
        free = free.write(0, row).write(1, fb.concat([row, row], 0))
        self.refused(free.stack(), r"'free' have different shapes .* \[2\], \[4\]", feeds)
        scalars = fb.TensorArray(fb.float64, 1).write(0, row)
        self.refused(scalars.concat(), "are scalars", {row: 1.0})
        self.refused(fb.TensorArray(fb.float64, i).flow.op, "not negative: -2", {i: -2})

    def test_rows_and_pieces_in_the_run(self):
        x = fed([None, 2])
        places = fb.placeholder(fb.int32, [None])
        feeds = {x: X, places: [0, 1]}
        array = fb.TensorArray(fb.float64, 3, infer_shape=False)
        self.refused(array.scatter(places, x).flow.op, "2 indices .* rows of .3, 2.", feeds)
        self.refused(array.split(x, places).flow.op, "size 3, but there are 2 pieces", feeds)
        for lengths in ([1, 1, 2], [4, -1, 0]):
            text = "do not make up a value"
            self.refused(array.split(x, places).flow.op, text, {x: X, places: lengths})
        twice = array.scatter(places, x).flow.op
        self.refused(twice, "index 2 .* written already", {x: X, places: [2, 0, 2]})

    def test_at_construction(self):
        x = fed()
        wrong_type, wrong = fb.errors.InvalidTypeError, fb.errors.InvalidArgumentError
        array = fb.TensorArray(fb.float64, 3, tensor_array_name="rows")
        with pytest.raises(wrong_type, match="size of the array is missing"):
            fb.TensorArray(fb.float64)
        with pytest.raises(wrong_type, match="'size' is an int32 scalar"):
            fb.TensorArray(fb.float64, 2.5)
        with pytest.raises(wrong_type, match="'index' is an int32 scalar"):
            array.read([0, 1])
        with pytest.raises(wrong_type, match="'indices' is an int32 vector"):
            array.gather(0)
        with pytest.raises(wrong_type, match="float32 where float64 is wanted"):
            array.write(0, fb.zeros([2]))
        with pytest.raises(wrong, match="a scalar, and has no rows"):
            array.unstack(x[0, 0])
        written = array.write(0, x[0])
        with pytest.raises(wrong, match=r"'rows' have the shape \[2\], and not \[3\]"):
            written.write(1, x[:, 0])
        with pytest.raises(wrong, match=r"'rows' have the shape \[2\], and not \[3\]"):
            array.write(1, x[:, 0])  # All that are made of one array have elements of one shape.
        with pytest.raises(wrong, match=r"rows of .2, 2. cannot have 3 indices"):
            array.scatter([0, 1, 2], x[:2])
        declared = fb.TensorArray(fb.float64, 3, element_shape=[None, 4], infer_shape=False)
        with pytest.raises(wrong, match=r"\[\?, 4\], and not \[3, 2\]"):
            declared.write(0, x)
        assert declared.write(0, fb.zeros([1, 4], fb.float64)).element_shape == [None, 4]

    def test_an_array_is_neither_fetched_nor_fed(self):
        array = fb.TensorArray(fb.float32, 1).write(0, 1.0)
        with fb.Session() as sess:
            with pytest.raises(
                fb.errors.InvalidArgumentError, match="no value that can be fetched"
            ):
                sess.run(array.flow)
            with pytest.raises(fb.errors.InvalidArgumentError, match="cannot be fed"):
                sess.run(array.stack(), {array.flow: 1})


class TestWhatIsKnown:
    def test_shapes(self):
        x = fed([None, 2])
        array = fb.TensorArray(fb.float64, 3)
        assert array.element_shape == fb.Shape(None)
        assert array.stack().shape == fb.Shape(None)
        written = array.unstack(x)
        assert written.element_shape == [2]
        assert written.read(0).shape == [2]
        assert written.stack().shape == [3, 2]
        assert written.gather([0, 2]).shape == [2, 2]
        assert written.concat().shape == [None]
        assert (array.dtype, array.graph) == (fb.float64, x.graph)

    def test_a_loop_tells_the_shape_of_what_it_writes(self):
        _, array = fb.while_loop(
            lambda i, a: i < 4,
            lambda i, a: (i + 1, a.write(i, fb.zeros([5, 2]))),
            (0, fb.TensorArray(fb.float32, 4)),
        )
        assert array.stack().shape == [4, 5, 2]


class TestInLoopsAndBranches:
    def test_a_loop_that_reads_what_it_has_written(self):
        n = fb.placeholder(fb.int32, [])
        array = fb.TensorArray(fb.int64, n + 2, clear_after_read=False)
        array = array.unstack(fb.constant([1, 1], fb.int64))
        _, array = fb.while_loop(
            lambda i, a: i < n + 2,
            lambda i, a: (i + 1, a.write(i, a.read(i - 1) + a.read(i - 2))),
            (2, array),
        )
        with fb.Session() as sess:
            for _ in range(3):
                assert sess.run(array.stack(), {n: 6}).tolist() == [1, 1, 2, 3, 5, 8, 13, 21]

    @pytest.mark.parametrize("parallel", [1, 10])
    def test_the_array_of_the_iteration_is_the_one_before_its_write(self, parallel):
        """What reads the array that a write was given reads an older version."""

        def body(i, array, total):
            written = array.write(i, i * 10)
            return i + 1, written, total + array.read(i - 1) + written.read(i)

        first = fb.TensorArray(fb.int32, 50, clear_after_read=False).write(0, 7)
        _, array, total = fb.while_loop(
            lambda i, a, t: i < 50, body, (1, first, 0), parallel_iterations=parallel
        )
        with fb.Session() as sess:
            for _ in range(2):
                found, whole = sess.run([total, array.stack()])
                assert whole.tolist() == [7, *range(10, 500, 10)]
                assert found == 7 + sum(range(10, 490, 10)) + sum(range(10, 500, 10))

    def test_two_arrays_that_begin_as_one(self):
        def body(i, one, other):
            return i + 1, one.write(i, i), other.write(i, -i)

        first = fb.TensorArray(fb.int32, 20)
        _, one, other = fb.while_loop(lambda i, a, b: i < 20, body, (0, first, first))
        with fb.Session() as sess:
            found = sess.run([one.stack(), other.stack()])
            assert found[0].tolist() == list(range(20))
            assert found[1].tolist() == [-i for i in range(20)]

    def test_arrays_that_are_equal_are_not_one(self):
        """What one of them lets go of, the other one keeps."""
        arrays = [fb.TensorArray(fb.float32, 1, tensor_array_name="a") for _ in range(2)]
        total = sum(array.write(0, 2.0).read(0) * (i + 1.0) for i, array in enumerate(arrays))
        total += arrays[0].write(0, 5.0).stack()
        first, second = (array.write(0, total[0]) for array in arrays)
        fetches = [total, first.read(0), second.stack()]
        with fb.Session() as sess:
            for _ in range(2):
                assert [found.tolist() for found in sess.run(fetches)] == [[11.0], 11.0, [11.0]]

    def test_a_branch_writes_or_does_not(self):
        x = fb.placeholder(fb.float32, [])
        array = fb.TensorArray(fb.float32, 2, clear_after_read=False).write(0, x)
        chosen = fb.cond(x > 0, lambda: array.write(1, x), lambda: array.write(1, -10 * x))
        assert chosen.stack().shape == [2]
        with fb.Session() as sess:
            assert sess.run(chosen.stack(), {x: 2.0}).tolist() == [2, 2]
            assert sess.run(chosen.stack(), {x: -2.0}).tolist() == [-2, 20]

    def test_in_structures_with_invariants(self):
        def body(state):
            array = state["array"].write(state["i"], state["rows"])
            return {
                "rows": fb.concat([state["rows"], [1.0]], 0),
                "array": array,
                "i": state["i"] + 1,
            }

        found = fb.while_loop(
            lambda state: state["i"] < 3,
            body,
            {
                "array": fb.TensorArray(fb.float32, 3, infer_shape=False),
                "i": 0,
                "rows": fb.zeros([1]),
            },
            shape_invariants={"array": None, "i": fb.Shape([]), "rows": fb.Shape([None])},
        )
        with fb.Session() as sess:
            assert sess.run(found["array"].concat()).tolist() == [0, 0, 1, 0, 1, 1]

    def test_another_array_is_refused(self):
        first = fb.TensorArray(fb.float32, 1, tensor_array_name="first")
        second = fb.TensorArray(fb.float32, 1, tensor_array_name="second")
        text = "the TensorArray 'first'.* the TensorArray 'second'"
        with pytest.raises(fb.errors.InvalidTypeError, match=text):
            fb.cond(fb.placeholder(fb.bool, []), lambda: first, lambda: second)
        with pytest.raises(fb.errors.InvalidTypeError, match=text):
            fb.while_loop(lambda i, a: i < 1, lambda i, a: (i + 1, second), (0, first))

    def test_runs_in_threads_share_nothing(self):
        n = fb.placeholder(fb.int32, [])
        _, array = fb.while_loop(
            lambda i, a: i < 30,
            lambda i, a: (i + 1, a.write(i, i * n)),
            (0, fb.TensorArray(fb.int32, 30)),
        )
        whole = array.stack()
        with fb.Session() as sess, ThreadPoolExecutor(4) as pool:
            for value, found in enumerate(pool.map(lambda v: sess.run(whole, {n: v}), range(40))):
                assert found.tolist() == [i * value for i in range(30)]


class TestGradients:
    def test_of_every_way_in_and_out(self):
        x = fed()
        array = kept().write(0, x[0]).write(2, x[1] * x[2]).write(1, x[0] + x[2])
        loss = fb.reduce_sum(array.stack() ** 3)
        loss += fb.reduce_sum(array.read(1) * array.read(2) + array.read(1) ** 2)
        loss += fb.reduce_sum(array.gather([0, 2, 0]) ** 2 * [[1.0], [2.0], [3.0]])
        check_gradient(loss, x)

    def test_of_rows_and_pieces(self):
        x = fed()
        rows = kept(size=5).scatter([3, 0, 1], x)
        pieces = kept(infer_shape=False).split(x, [2, 0, 1])
        loss = fb.reduce_sum(rows.gather([0, 1]) ** 3 * [[2.0], [3.0]])
        loss += fb.reduce_sum(pieces.concat() ** 2) + fb.reduce_sum(pieces.read(0) ** 3)
        check_gradient(loss, x)

    def test_of_what_nobody_reads_is_zero(self):
        x = fed()
        loss = fb.reduce_sum(kept().unstack(x).read(1) ** 2)
        pieces = kept(infer_shape=False).split(x, [1, 1, 1])
        first, second = fb.gradients(loss, x)[0], fb.gradients(pieces.read(0), x)[0]
        with fb.Session() as sess:
            found = sess.run([first, second], {x: X})
        np.testing.assert_array_equal(found[0], 2 * X * [[0], [1], [0]])
        np.testing.assert_array_equal(found[1], np.ones((3, 2)) * [[1], [0], [0]])

    def test_of_versions_that_part(self):
        x = fed()
        one = kept().write(0, x[0])
        left, right = one.write(1, x[1]), one.write(1, x[2]).write(2, x[1])
        loss = fb.reduce_sum(left.gather([0, 1]) ** 2) + fb.reduce_sum(right.stack() ** 3)
        check_gradient(loss, x)

    def test_in_a_loop(self):
        x = fed()
        source = fb.TensorArray(fb.float64, 3).unstack(x)

        def body(i, h, outputs):
            h = fb.tanh(0.5 * h + source.read(i))
            return i + 1, h, outputs.write(i, h * h)

        _, h, outputs = fb.while_loop(
            lambda i, h, o: i < 3,
            body,
            (0, fb.zeros([2], fb.float64), fb.TensorArray(fb.float64, 3)),
        )
        check_gradient(fb.reduce_sum(outputs.stack() ** 2) + fb.reduce_sum(h), x)

    def test_of_an_element_read_in_each_iteration(self):
        x = fed()
        source = kept().unstack(x)
        _, total = fb.while_loop(
            lambda i, t: i < 6,
            lambda i, t: (i + 1, t * 0.5 + source.read(i % 2) ** 2),
            (0, fb.zeros([2], fb.float64)),
        )
        check_gradient(fb.reduce_sum(total), x)

    def test_of_a_loop_that_reads_what_it_has_written(self):
        x = fed()
        first = kept(size=6).write(0, x[0]).write(1, x[1])
        _, array = fb.while_loop(
            lambda i, a: i < 6,
            lambda i, a: (i + 1, a.write(i, a.read(i - 1) * a.read(i - 2) + x[2])),
            (2, first),
        )
        check_gradient(fb.reduce_sum(array.stack()), x, X * 0.7)

    @pytest.mark.parametrize("sign", [1.0, -1.0])
    def test_in_a_branch(self, sign):
        x = fed()
        array = kept().write(0, x[0])
        chosen = fb.cond(
            x[1, 0] * sign > 0, lambda: array.write(1, x[1] ** 2), lambda: array.write(1, x[2])
        )
        check_gradient(fb.reduce_sum(chosen.gather([0, 1]) ** 2), x)

    def test_in_a_branch_that_does_not_touch_it(self):
        x = fed()
        array = kept().unstack(x)
        for sign in (1.0, -1.0):
            y = fb.cond(x[1, 0] * sign > 0, lambda: array.read(1) ** 2, lambda: x[2])
            check_gradient(fb.reduce_sum(y), x)

    def test_a_branch_in_a_loop(self):
        x = fed()

        def body(i, array):
            return i + 1, fb.cond(
                i % 2 > 0, lambda: array.write(i, x[0] ** 2), lambda: array.write(i, x[1] * x[2])
            )

        _, array = fb.while_loop(lambda i, a: i < 5, body, (0, fb.TensorArray(fb.float64, 5)))
        check_gradient(fb.reduce_sum(array.stack() ** 2), x)

    def test_what_was_replaced_has_none(self):
        x = fed()
        array = kept().unstack(x)
        for index in (1, 1, 2):
            row = array.read(index)
            array = array.with_flow(replace_op(array.flow, index, row**2 + x[0] * row))
        check_gradient(fb.reduce_sum(array.stack() ** 2), x)

    def test_what_a_loop_replaces_has_none(self):
        x = fed()

        def body(i, array):
            row = array.read(i % 2) * x[i % 3]
            return i + 1, array.with_flow(replace_op(array.flow, i % 2, row))

        _, array = fb.while_loop(lambda i, a: i < 5, body, (0, kept().unstack(x)))
        check_gradient(fb.reduce_sum(array.stack() ** 2), x)

    def test_of_integers_there_is_none(self):
        x = fed()
        array = fb.TensorArray(fb.int32, 2).write(0, fb.cast(x[0, 0], fb.int32))
        y = fb.cast(array.read(0), fb.float64)
        assert fb.gradients(y, [x]) == [None]

    def test_sums_of_arrays(self):
        x = fed()
        loss = sum(fb.reduce_sum(kept().unstack(x).read(1) ** 2) for _ in range(2))
        array = kept().unstack(x)
        loss += fb.reduce_sum(array.read(0)) + fb.reduce_sum(array.read(0) * array.read(2))
        fb.gradients(loss, x)
        assert "TensorArrayAdd" in {op.type for op in x.graph.operations}
        check_gradient(loss, x)

    def test_a_gradient_array_adds_up(self):
        x = fed()
        array = kept(element_shape=[2])
        grad = array.grad().write(1, x[0]).write(1, x[1]).scatter([0, 0], x[1:])
        with fb.Session() as sess:
            found = sess.run([grad.stack(), grad.concat(), grad.read(2)], {x: X})
        wanted = [X[1] + X[2], X[0] + X[1], [0, 0]]
        np.testing.assert_allclose(found[0], wanted)
        np.testing.assert_allclose(found[1], np.ravel(wanted))
        np.testing.assert_array_equal(found[2], [0, 0])


def test_closing_does_nothing():
    array = kept().write(0, 1.0)
    with fb.Session() as sess:
        assert sess.run([array.close(), array.read(0)]) == [None, 1.0]
    assert repr(array) == "<TensorArray 'TensorArray' element_shape=[] dtype=float64>"
