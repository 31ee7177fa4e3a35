"""What programs for TensorFlow 1, and its own tests, ask of names that are rarely met.

Each is what such a test checks, in this project's spelling.
"""

import numpy as np
import pytest

import flowbook as fb

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize("axis", [0, 1, -1, [0, 1], []])
def test_axes_that_only_the_run_knows(axis: int | list[int]) -> None:
    x, axes = fb.placeholder(fb.float32, [2, 3]), fb.placeholder(fb.int32)
    total = fb.reduce_sum(x, axes)
    largest = fb.gradients(fb.reduce_max(x, axes), [x])[0]
    with fb.Session() as sess:
        feeds = {x: X, axes: axis}
        np.testing.assert_array_equal(sess.run(total, feeds), X.sum(tuple(np.atleast_1d(axis))))
        assert sess.run(largest, feeds).shape == (2, 3)


def test_a_place_for_joining_and_taking_that_only_the_run_knows() -> None:
    axis = fb.placeholder(fb.int32, [])
    with fb.Session() as sess:
        joined = sess.run(fb.concat([X, X], axis), {axis: 1})
        np.testing.assert_array_equal(joined, np.concatenate([X, X], 1))
        np.testing.assert_array_equal(sess.run(fb.gather(X, [1], axis=axis), {axis: 1}), X[:, [1]])


def test_channels_first() -> None:
    images = np.random.default_rng(0).random((2, 3, 6, 6), np.float32)
    filters = np.random.default_rng(1).random((3, 3, 3, 4), np.float32)
    first = fb.nn.conv2d(images, filters, [1, 1, 2, 2], "SAME", data_format="NCHW")
    last = fb.nn.conv2d(images.transpose(0, 2, 3, 1), filters, [1, 2, 2, 1], "SAME")
    pooled = fb.nn.max_pool(images, [1, 1, 2, 2], [1, 1, 2, 2], "VALID", data_format="NCHW")
    with fb.Session() as sess:
        a, b, c = sess.run([first, fb.transpose(last, [0, 3, 1, 2]), pooled])
    np.testing.assert_allclose(a, b, rtol=1e-5)
    np.testing.assert_array_equal(c, images.reshape(2, 3, 3, 2, 3, 2).max((3, 5)))


def test_space_becomes_batch_and_back() -> None:
    x = fb.constant([[[[1], [2]], [[3], [4]]]])
    none = [[0, 0], [0, 0]]
    batch = fb.space_to_batch(x, none, block_size=2)
    with fb.Session() as sess:
        assert sess.run(batch).tolist() == [[[[1]]], [[[2]]], [[[3]]], [[[4]]]]
        assert sess.run(fb.batch_to_space(batch, none, block_size=2)).tolist() == [
            [[[1], [2]], [[3], [4]]]
        ]


def test_rows_that_are_alike() -> None:
    unique = fb.unique([[1, 0], [1, 0], [2, 0]], axis=0)
    with fb.Session() as sess:
        rows, places = sess.run([unique.y, unique.idx])
    assert (rows.tolist(), places.tolist()) == ([[1, 0], [2, 0]], [0, 0, 1])


def test_a_part_of_a_variable_is_assigned_to() -> None:
    v = fb.Variable(np.zeros((3, 3), np.float32))
    with fb.Session() as sess:
        sess.run(fb.assign(v[1:, ::2], [[1, 2], [3, 4]]))
        assert sess.run(v).tolist() == [[0, 0, 0], [1, 0, 2], [3, 0, 4]]


def test_a_python_function_with_a_gradient() -> None:
    x = fb.constant([2.0, 3.0])
    y = fb.py_func(np.square, [x], fb.float32, grad=lambda op, dy: 2.0 * op.inputs[0] * dy)
    with fb.Session() as sess:
        assert sess.run(fb.gradients(y, [x])[0]).tolist() == [4.0, 6.0]


def test_what_is_initialized_is_told() -> None:
    v = fb.Variable(1.0, name="v")
    w = fb.Variable(v + 1.0, name="w")
    missing = fb.report_uninitialized_variables()
    with fb.Session(auto_initialize=False) as sess:
        assert sess.run(missing).tolist() == [b"v", b"w"]
        sess.run(v.initializer)
        assert sess.run([fb.is_variable_initialized(v), fb.is_variable_initialized(w)]) == [1, 0]
        assert sess.run(missing).tolist() == [b"w"]
        with pytest.raises(fb.errors.FailedPreconditionError, match="uninitialized value 'w'"):
            sess.run(w)


def test_a_variable_of_changing_shape() -> None:
    v = fb.Variable(fb.zeros([2]), validate_shape=False)
    grown = fb.assign(v, np.ones((3, 4), np.float32))
    assert v.shape.rank is None
    with fb.Session() as sess:
        assert sess.run(v).shape == (2,)
        sess.run(grown)
        assert sess.run(fb.shape(v)).tolist() == [3, 4]
    with pytest.raises(fb.errors.InvalidArgumentError, match="does not fit"):
        fb.assign(fb.Variable([1.0, 2.0]), [1.0])


def test_a_variable_that_is_read_elsewhere_and_stays_within_bounds() -> None:
    v = fb.Variable(
        5.0,
        caching_device="/device:cpu:0",
        constraint=lambda value: fb.clip_by_value(value, 0.0, 1.0),
    )
    train = fb.train.GradientDescentOptimizer(0.1).minimize(v * v)
    with fb.Session() as sess:
        sess.run(train)
        assert sess.run(v) == 1.0


def test_what_is_built_before_everything() -> None:
    with fb.control_dependencies([fb.constant(1.0)]), fb.init_scope():
        assert fb.identity(2.0).op.control_inputs == ()


def test_what_may_not_be_fed() -> None:
    x = fb.constant(1.0) * 2
    graph = fb.get_default_graph()
    assert graph.is_feedable(x)
    graph.prevent_feeding(x)
    assert not graph.is_feedable(x)
    with fb.Session() as sess, pytest.raises(fb.errors.InvalidArgumentError, match="prevented"):
        sess.run(x + 1, {x: 3.0})


def test_counting_ends() -> None:
    v = fb.Variable(0)
    count = fb.count_up_to(v, 2)
    with fb.Session() as sess:
        assert [sess.run(count), sess.run(count)] == [0, 1]
        with pytest.raises(fb.errors.OutOfRangeError, match="reached 2"):
            sess.run(count)
        assert sess.run(v) == 2


def test_shapes_are_set_after_a_function_of_pythons() -> None:
    image = fb.py_func(lambda: np.ones((4, 4, 3), np.float32), [], fb.float32)
    image.set_shape([None, None, 3])
    label = fb.py_func(lambda: np.int32(1), [], fb.int32)
    label.set_shape([])
    images, labels = fb.train.batch([fb.image.resize_images(image, [2, 2]), label], 2)
    assert (images.shape, labels.shape) == ([2, 2, 2, 3], [2])


def test_a_sum_is_accumulated_in_a_temporary_variable() -> None:
    terms = [fb.constant([1.0, 2.0]), fb.constant([3.0, 4.0]), fb.constant([5.0, 6.0])]
    total = fb.assign(fb.temporary_variable([2], fb.float32, var_name="sum"), fb.zeros([2]))
    for term in terms:
        total = fb.assign_add(total, term)
    final = fb.destroy_temporary_variable(total, var_name="sum")
    with fb.Session() as sess:
        assert sess.run(final).tolist() == [9.0, 12.0]
